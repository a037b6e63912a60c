# SPDX-License-Identifier: Apache-2.0
"""Shapes of data that are rare and large: one key with nearly all of the traffic, one person on very many installs,
much poison, very many sagas that wait, very many apps. They cost what they must, and nothing is lost.

Sizes are small by default; with LOADS=full a person has 100,000 installs, 1,000,000 sagas wait, and there are 5,000
apps. That takes minutes. What was measured is printed.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database, PostgreSQL
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.history import History
from identitybus_testkit.proxy import ProxiedPostgreSQL
from identitybus_testkit.service import Service
from identitybus_testkit.standin import StandIn, erased
from identitybus_testkit.waiting import Deadline, until
from identitybus_testkit.workload import Workload

pytestmark = pytest.mark.slow
FULL = os.environ.get("LOADS") == "full"
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))

Make = Callable[..., Deployment]


def megabytes(service: Service) -> float:
    """What the process holds in memory."""
    for line in Path(f"/proc/{service.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def insert(database: Database, service: str, statement: str, *parameters: object) -> None:
    """Fills a table while the service does not need it."""
    assert isinstance(database, PostgreSQL)
    with psycopg.connect(database.url, options=f"-c search_path=identity_{service}") as connection:
        connection.execute(statement, parameters)  # type: ignore[arg-type]
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("ANALYZE")


# Keys


def test_the_others_do_not_wait_for_a_partition_with_a_backlog(
    make_deployment: Make, new_database: Callable[[str], Database]
) -> None:
    """One key has had nearly all commands for a while. The others wait for the batch that is being decided, and have
    their share of the next one: whatever has been fetched."""
    base = new_database("postgresql")
    assert isinstance(base, PostgreSQL)
    database = ProxiedPostgreSQL(base.url)
    deployment = make_deployment(database=database)
    bus = deployment.bus
    # Small batches, each some round trips of 10 ms: a machine on which the backlog takes a while.
    database.proxy.latency, batch = 0.005, 50
    service = deployment.service(BATCH_SIZE=str(batch), LOOPS="1").start().wait_ready()
    hot, *others = deployment.broker.partitions(bus.commands)
    service.pause()
    backlog = [c.register(fresh("install")) for _ in range(50_000 if FULL else 4000)]
    for command in backlog:
        value, headers = bus.signed(command)
        bus.produce(value, headers, b"hot", lambda *_: None, partition=hot)
    bus.flush()
    service.resume()
    until(lambda: bus.collector.answered > 10 * batch, 30, "the first answers")
    told = bus.collector.replies
    waits = []
    for number in range(6):
        command = c.register(fresh("install"))
        before = bus.collector.answered
        bus.send(command, partition=others[number % len(others)])
        assert bus.reply(command.id)["status"] == "succeeded"
        waits.append(bus.collector.answered - before)
    assert bus.collector.answered < len(backlog), "the backlog is over; nothing was seen"
    print(f"decided of the backlog while one of the others waited: {waits}")
    # The batch that is being decided, its own, and what this busy process and the broker take for their part.
    assert max(waits) < 6 * batch, "the others waited for what had been fetched of the backlog"
    for command in backlog:
        assert bus.reply(command.id, 240)["status"] == "succeeded"
    order = [told[command.id][0].offset for command in backlog]
    assert order == sorted(order), "the backlog is answered in its order"
    database.proxy.close()


# One person


def as_told(command: dict[str, object]) -> list[dict[str, object]]:
    return [erased()]


@pytest.fixture
def told(make_deployment: Make) -> Iterator[tuple[Deployment, list[StandIn]]]:
    """A link service, with stand-ins for the two that it tells of an erasure."""
    deployment = make_deployment("postgresql")
    stand_ins: list[StandIn] = []
    service = deployment.service().start().wait_ready()
    stand_ins += [StandIn(deployment.broker, deployment.prefix, name, as_told) for name in ("user", "sync")]
    yield deployment, stand_ins
    for one in stand_ins:
        one.close()
    assert service.is_running


def test_a_person_on_very_many_installs(told: tuple[Deployment, list[StandIn]]) -> None:
    """A link does not look at all of them, and the person can be erased."""
    (deployment, (user, _)), count = told, 100_000 if FULL else 12_000
    bus, [service] = deployment.bus, deployment.services
    first = c.establish(fresh("install"), fresh("ext"))
    made = [first]
    user_id = bus.ask(first)["result"]["userId"]
    external_id = first.data["externalId"]

    def link() -> Command:
        command = c.establish(fresh("install"), external_id)
        result = bus.ask(command)["result"]
        assert result["userId"] == user_id
        made.append(command)
        return command

    def quickest() -> float:
        return min(seconds(link) for _ in range(20))

    before = quickest()
    insert(
        deployment.database, "link",
        "INSERT INTO installs (install_id, app, kind, platform, status, user_id, activity, is_users_first, version, "
        "is_open, turn_is_brokers, is_imported) "
        "SELECT 'many-' || lpad(n::text, 24, '0'), 'demo', 'phone', 'ios', 'enabled', %s, 'deactivated', 0, 1, 0, 0, 0 "
        "FROM generate_series(1, %s) AS n", user_id, count)
    after: list[float] = []

    def is_quick() -> bool:
        """The machine may be busier for a while than it was before."""
        after.append(quickest())
        return after[-1] < 3 * before + 0.05

    until(is_quick, 30, lambda: f"a link: {before:.3f} s with 20 installs, {after} s with {count}")
    count += len(made)
    print(f"a link: {before * 1000:.0f} ms with 20 installs, {after[-1] * 1000:.0f} ms with {count}")
    erasure = c.erase(user_id)
    taken = seconds(lambda: bus.settle(erasure, 240 if FULL else 40))
    reply = bus.final(erasure.id)
    assert (reply["status"], reply["result"]["done"]["link"]["installs"]) == ("succeeded", count), reply
    print(f"the erasure of {count} installs: {taken:.1f} s, {megabytes(service):.0f} MB, {len(user.commands)} commands")
    # What is not answered within 5 s is asked again, with the same id.
    parts = {record.envelope["id"]: record.data["installIds"] for record in user.commands}
    named = [id for part in parts.values() for id in part]
    assert len(named) == len(set(named)) == count, "the user service is told of each install once"
    assert max(len(record.value or b"") for record in user.commands) < 256 * 1024, "as large as a command may be"
    [(left,)] = deployment.database.execute("SELECT COUNT(*) FROM installs WHERE user_id IS NOT NULL")
    records = deployment.database.execute("SELECT record FROM erasures")
    assert left == 0 and not any(b"many-" in bytes(record) for record, in records)
    assert not bus.collector.dead_letters


# Poison


class Poisoned(Workload):
    # 30 of 100.
    OPERATIONS = {**Workload.OPERATIONS, "poison": 42}


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_three_of_ten_records_are_poison(make_deployment: Make, engine: str) -> None:
    deployment, count = make_deployment(engine), 20_000 if FULL else 2500
    service = deployment.service().start().wait_ready()
    started = time.monotonic()
    # Some 13 of 100 are dead letters and nothing else.
    workload = Poisoned(deployment.bus, SEED, count, max_unanswered=max(2000, count // 4)).start()
    workload.finish(120)
    history = History(workload.sent, deployment.bus, deployment.database)
    history.wait_until_answered(120)
    taken = time.monotonic() - started
    poison = sum(sent.poison is not None for sent in workload.sent)
    # Families that stand anywhere have none.
    assert 0.15 * count < poison < 0.4 * count
    assert service.wait_ready().stop() == 0
    print(f"E2E_SEED={SEED}: {poison} of {count} were poison, {count / taken:.0f}/s answered. {history.check()}")


def test_three_of_ten_records_cannot_be_decided(make_deployment: Make) -> None:
    """The store refuses their values, one record at a time: the others of the batch succeed."""
    deployment, count = make_deployment("postgresql"), 2000 if FULL else 400
    bus, service = deployment.bus, deployment.service().start().wait_ready()
    with psycopg.connect(deployment.database.url) as connection:  # type: ignore[attr-defined]
        connection.execute("ALTER TABLE identity_link.installs ADD CHECK (model IS NULL OR model <> 'cursed')")
    chance = random.Random(SEED)
    commands = [
        c.register(fresh("install"), {**c.PHONE, "model": "cursed" if chance.random() < 0.3 else "fine"})
        for _ in range(count)]
    cursed = {command.id for command in commands if command.data["device"]["model"] == "cursed"}
    service.pause()
    bus.send_all(commands)
    service.resume()
    started = time.monotonic()
    for command in commands:
        expected = "rejected" if command.id in cursed else "succeeded"
        assert bus.reply(command.id, 120)["status"] == expected
    letters = bus.collector.dead_letters
    bus.collector.wait(lambda: len(letters) >= len(cursed), 10, lambda: f"{len(letters)} dead letters")
    print(f"E2E_SEED={SEED}: {len(cursed)} of {count} in {time.monotonic() - started:.1f} s")
    assert service.wait_ready().stop() == 0
    assert len(letters) == len(cursed)
    assert all(len({record.value for record in bus.collector.replies[command.id]}) == 1 for command in commands)


# Sagas


def test_very_many_sagas_wait(make_deployment: Make) -> None:
    """The link service does not answer, and all of the questions are due to be asked again."""
    deployment, count = make_deployment("postgresql", services=("user", "link")), 1_000_000 if FULL else 50_000
    bus, database = deployment.bus, deployment.database
    deployment.broker.ensure([bus.topic("link")])
    service = deployment.service().start().wait_ready()
    waiting = c.create(fresh("install"), appSecret=apps.APP_SECRET, linking="none")
    assert bus.ask(waiting)["status"] == "pending"
    empty = megabytes(service)
    assert service.stop() == 0
    for statement in (
        "INSERT INTO saga (app, source, id, inbox_key, origin, record_key, reply, is_settled, begun_at) "
        "SELECT app, source, id || n, inbox_key, origin, record_key, reply, 0, begun_at FROM saga, generate_series(1, %s) AS n",
        "INSERT INTO forward (app, id, message, asked, next_ask, begun_at) "
        "SELECT app, id || n, message, asked, begun_at, begun_at FROM forward, generate_series(1, %s) AS n",
    ):
        insert(database, "user", statement, count)
    start = seconds(lambda: service.start().wait_ready(15))
    latencies, quick = [], 0
    for _ in range(40):
        command, soon = c.request_code(fresh("ext")), Deadline(0.5)
        latencies.append(seconds(lambda: bus.ask(command, timeout=10)))
        quick += soon.left > 0
        time.sleep(0.05)
    latencies.sort()
    print(
        f"{count} sagas wait: started in {start:.1f} s, {megabytes(service):.0f} MB instead of {empty:.0f}, "
        f"answers after {latencies[20] * 1000:.0f} ms, the slowest after {latencies[-1] * 1000:.0f} ms")
    until(lambda: service.metric("identity_forwards_asked_again_total") >= 2000, 20, "questions asked again")
    assert quick > 20, latencies
    assert megabytes(service) < empty + 150
    assert service.wait_ready().stop() == 0


# Apps


def test_very_many_apps(make_deployment: Make) -> None:
    deployment, count = make_deployment("sqlite"), 5000 if FULL else 2000
    bus, service = deployment.bus, deployment.service().start().wait_ready()
    few = megabytes(service)
    assert service.stop() == 0
    many = [
        {"id": f"app{number}", "keys": [
            apps.key(f"app{number}-backend", "user.link"), apps.key(f"app{number}-admin", "admin")]}
        for number in range(count)]
    apps.write(deployment.apps_file, apps.apps() + many)
    start = seconds(lambda: service.start().wait_ready())
    started = service.cpu_seconds()
    last = f"app{count - 1}"
    assert bus.ask(c.register(fresh("install"), app=last))["status"] == "succeeded"
    # One more, under traffic: it is known soon. The loop reads the file itself, and the others wait for that.
    one_more = {"id": "more", "keys": [apps.key("more-backend", "user.link")]}
    apps.write(deployment.apps_file, [*apps.apps(), *many, one_more])
    written, limit, slowest, known = time.monotonic(), Deadline(20), 0.0, 0.0
    while time.monotonic() < written + 6 or not known:
        assert known or limit.left, f"{limit}: the new app is not known"
        slowest = max(slowest, seconds(lambda: bus.ask(c.register(fresh("install"), app=last), timeout=10)))
        request = c.request(fresh("install"), "ada", app="more")
        if not known and bus.ask(request).get("reason") == "INSTALL_NOT_FOUND":
            known = time.monotonic() - written
        time.sleep(0.02)
    size = deployment.apps_file.stat().st_size / 1e6
    print(
        f"{count} apps, {size:.1f} MB: started in {start:.1f} s ({started:.1f} s of a core), "
        f"{megabytes(service):.0f} MB instead of {few:.0f}; a new app known after {known:.1f} s, meanwhile the slowest answer {slowest:.1f} s, "
        f"{service.cpu_seconds() - started:.1f} s of a core")
    assert started < 20
    assert service.stop() == 0
