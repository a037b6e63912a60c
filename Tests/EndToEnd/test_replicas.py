# SPDX-License-Identifier: Apache-2.0
"""Replicas of a service: one that is killed, and two that cannot be replicas of each other."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import Platform, Traffic
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline, until

# A session of the product's own length, and two seconds. The embedded broker takes a round of some seconds for each member
# that was killed.
TAKE_OVER = 8.0 if os.environ.get("KAFKA_BOOTSTRAP_SERVERS") else 40.0
real = pytest.mark.skipif(
    not os.environ.get("KAFKA_BOOTSTRAP_SERVERS"), reason="the embedded broker takes sessions to put a group together")


@pytest.mark.slow
@pytest.mark.parametrize("loops", [1, 2])
def test_a_killed_replicas_partitions_are_taken_over_within_8_s(
    make_deployment: Callable[..., Deployment], loops: int
) -> None:
    """With the product's own settings on a real Kafka, not with those that save the tests time."""
    deployment = make_deployment("postgresql")
    bus = deployment.bus
    settings = deployment.broker.usual_settings() | {"LOOPS": str(loops)}
    replicas = [deployment.service(**settings).start().wait_ready() for _ in range(2)]
    partitions = set(deployment.broker.partitions(bus.commands))

    def shared() -> bool:
        first, second = (replica.owned().get(bus.commands, set()) for replica in replicas)
        return bool(first) and bool(second) and not first & second and first | second == partitions

    until(shared, 60, lambda: f"both to own partitions: {[replica.owned() for replica in replicas]}")
    replicas[0].kill()
    killed, in_time = time.monotonic(), Deadline(TAKE_OVER)
    commands = [c.register(fresh("install")) for _ in partitions]
    for partition, command in zip(sorted(partitions), commands):
        bus.send(command, partition=partition)
    for command in commands:
        assert bus.reply(command.id, in_time.left)["status"] == "succeeded"
    print(f"{time.monotonic() - killed:.1f} s")


def named(name: str) -> dict[str, str]:
    return {"KAFKA_CONSUMER_GROUP_INSTANCE_ID": name}


@pytest.mark.slow
# The embedded broker may share the partitions out anew when of two members that were killed at once one is back first.
@pytest.mark.parametrize("loops", [1, pytest.param(2, marks=real)])
def test_a_killed_replica_with_a_name_comes_back_and_the_other_notices_nothing(
    make_deployment: Callable[..., Deployment], loops: int
) -> None:
    deployment = make_deployment("postgresql")
    bus = deployment.bus
    settings = deployment.broker.usual_settings() | {"LOOPS": str(loops)}
    replicas = [deployment.service(**settings, **named(name)).start().wait_ready() for name in ("a", "b")]
    partitions = set(deployment.broker.partitions(bus.commands))

    def all_are_shared() -> bool:
        """The group comes to rest only when each has its half: while one still gives partitions back, this is not yet so."""
        first, second = (replica.owned() for replica in replicas)
        return bus.commands in first and all(
            2 * len(first[topic]) == len(partitions) and partitions - first[topic] == second.get(topic)
            for topic in first)

    until(all_are_shared, 60, lambda: f"each to own a half: {[replica.owned() for replica in replicas]}")
    owned = replicas[0].owned()
    changes = replicas[1].text.count('"event":"partitions.')
    for stop in (replicas[0].kill, replicas[0].stop):
        stop()
        commands = [c.register(fresh("install")) for _ in partitions]
        for partition, command in zip(sorted(partitions), commands):
            bus.send(command, partition=partition)
        replicas[0].start().wait_ready()
        for command in commands:
            assert bus.reply(command.id, TAKE_OVER)["status"] == "succeeded"
        assert replicas[0].owned() == owned
    assert replicas[1].text.count('"event":"partitions.') == changes > 0, replicas[1].tail()


@pytest.mark.skipif("KAFKA_BOOTSTRAP_SERVERS" not in os.environ, reason="the embedded broker throws nobody out")
def test_the_second_of_one_name_ends_the_first(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("postgresql")
    first = deployment.service(**named("a")).start().wait_ready()
    second = deployment.service(**named("a")).start().wait_ready()
    until(lambda: not first.is_running, 30, lambda: f"the first to end\n{first.tail()}")
    assert first.process.returncode == 78, first.tail()
    [last] = [line for line in first.text.splitlines() if line.startswith("identitybus-link: ")]
    assert "KAFKA_CONSUMER_GROUP_INSTANCE_ID" in last and "'a'" in last, last
    command = c.register(fresh("install"))
    deployment.bus.send(command)
    assert deployment.bus.reply(command.id)["status"] == "succeeded"
    assert second.is_running


@pytest.fixture(params=[12, 1])
def partitions(request: pytest.FixtureRequest) -> int:
    """With one partition, whoever has it has all of them."""
    return request.param


@pytest.fixture
def lone(make_deployment: Callable[..., Deployment], partitions: int, tmp_path: Path) -> Iterator[Deployment]:
    """Nothing runs yet; on topics with so many partitions."""
    prefix = f"{fresh('stores')}."
    broker = Broker.for_tests(tmp_path / "broker", prefix, partitions)
    deployment = make_deployment("sqlite", on=broker, prefix=prefix)
    yield deployment
    for service in deployment.services:
        service.kill()
    broker.close()


def is_refused(newcomer: Service) -> None:
    until(lambda: not newcomer.is_running, 30, lambda: f"it to end\n{newcomer.tail()}")
    assert newcomer.process.returncode == 78, newcomer.tail()
    [last] = [line for line in newcomer.text.splitlines() if line.startswith("identitybus-link: ")]
    assert "SQLite" in last and "PostgreSQL" in last, last


@pytest.mark.slow
@pytest.mark.parametrize("goes", [False, True])
def test_two_sqlite_stores_in_one_group_are_refused(
    lone: Deployment, partitions: int, goes: bool, tmp_path: Path
) -> None:
    """Each would decide a part of the commands on a part of the state. The newcomer goes, also when the other one has gone
    before: it would decide all that stands in the log once more."""
    settings = {"TOPIC_PARTITIONS": str(partitions)}
    first = lone.service(**settings).start().wait_ready()
    assert len(lone.broker.partitions(lone.bus.commands)) == partitions
    install = fresh("install")
    command = c.register(install, user="new")
    lone.bus.send(command)
    user = lone.bus.reply(command.id)["result"]["userId"]
    second = lone.service(DATA_DIR=str(tmp_path), **settings).start()

    def is_member() -> bool:
        if not second.is_running:  # it has been quicker than this test
            return True
        try:
            return "group" not in second.failed_checks()
        except (AssertionError, OSError):  # it ends just now, or did not answer in time
            return False

    if goes:
        until(is_member, 30, second.tail)
        assert first.stop() == 0
    is_refused(second)
    if goes:
        first.start()
    first.wait_ready()
    for partition in range(partitions):
        command = c.query(install)
        lone.bus.send(command, partition=partition)
        assert lone.bus.reply(command.id)["result"]["userId"] == user
    # Were there two truths, both would have answered.
    lone.bus.collector.catch_up()
    answers = {record.value for records in lone.bus.collector.replies.values() for record in records}
    assert len(answers) == 1 + partitions


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_sqlite_service_is_killed_while_it_joins_and_comes_back(
    make_deployment: Callable[..., Deployment], seed: int
) -> None:
    """A member that was killed right after it had joined has its share until its session ends."""
    deployment = make_deployment("sqlite")
    service = deployment.service(**deployment.broker.usual_settings()).start().wait_ready()
    assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
    chance = random.Random(seed)
    for _ in range(6):
        service.kill()
        service.start()
        time.sleep(chance.uniform(0.5, 3))
        assert service.is_running, service.tail()
    service.wait_ready()
    assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"


@pytest.mark.slow
def test_replicas_are_replaced_one_by_one_under_load(make_deployment: Callable[..., Platform]) -> None:
    """A rolling upgrade without a migration, and for one replica the way back. $E2E_OLDER_BIN: an earlier build with the
    same schema; without it both are this one."""
    platform = make_deployment("postgresql", services=("link", "sync"), kind=Platform)
    older = os.environ.get("E2E_OLDER_BIN")

    def replica(name: str, is_older: bool) -> Service:
        service = platform.service(name, **platform.broker.usual_settings())
        if older and is_older:
            service.program = Path(older) / f"identitybus-{name}"
        return service.start()

    running = [replica(name, True) for name in ("link", "link", "sync", "sync")]
    for service in running:
        service.wait_ready()
    traffic = Traffic(platform.bus, ("link", "sync"), rate=40).start()
    for index, is_older in [(0, False), (1, False), (2, False), (3, False), (0, True)]:
        traffic.wait_for_answers(40)
        assert running[index].stop() == 0
        running[index] = replica(running[index].name, is_older).wait_ready()
    traffic.wait_for_answers(40)
    traffic.finish()
    platform.stop()
    traffic.check(platform)


@pytest.mark.slow
@real
@pytest.mark.parametrize("seed", range(3))
def test_a_replica_that_says_it_is_ready_has_its_share(make_deployment: Callable[..., Deployment], seed: int) -> None:
    """Whoever restarts one replica after the other stops the next one then: it may be the only one that decides."""
    deployment = make_deployment("postgresql")
    usual, chance = deployment.broker.usual_settings(), random.Random(seed)
    deployment.service(**usual).start().wait_ready()
    for _ in range(2):
        time.sleep(chance.uniform(0, 2))
        newcomer = deployment.service(**usual).start().wait_ready()
        assert newcomer.owned().get(deployment.bus.commands), newcomer.tail()


@pytest.mark.slow
@real
@pytest.mark.parametrize("after", [0.0, 0.3, 0.6, 0.9, 1.2, 1.6, 2.0])
def test_a_replica_that_is_stopped_within_a_rebalance_leaves_its_group(
    make_deployment: Callable[..., Deployment], after: float
) -> None:
    """Its partitions have an owner long before its session would have ended (6 s)."""
    deployment = make_deployment("postgresql")
    bus, usual = deployment.bus, deployment.broker.usual_settings()
    first, second = (deployment.service(**usual).start() for _ in range(2))
    partitions = set(deployment.broker.partitions(bus.commands))
    until(lambda: first.owned().get(bus.commands) and second.owned().get(bus.commands), 30, deployment.tails)
    third = deployment.service(**usual).start()
    until(lambda: third.lines('"service.start"'), 30, third.tail)
    time.sleep(after)
    assert second.stop() == 0
    stopped = time.monotonic()

    def owned() -> bool:
        shares = [replica.owned().get(bus.commands, set()) for replica in (first, third)]
        return shares[0] | shares[1] == partitions

    until(owned, 20, deployment.tails, 0.05)
    took = time.monotonic() - stopped
    print(f"{after} s: {took:.1f} s")
    assert took < 4.5, (took, second.tail())


@pytest.mark.slow
def test_a_replica_that_gets_nothing_is_ready_too(make_deployment: Callable[..., Deployment], tmp_path: Path) -> None:
    """There are more replicas than partitions: one is a spare."""
    prefix = f"{fresh('spare')}."
    broker = Broker.for_tests(tmp_path / "broker", prefix, 1)
    deployment = make_deployment("postgresql", on=broker, prefix=prefix)
    try:
        replicas = [deployment.service(TOPIC_PARTITIONS="1").start() for _ in range(2)]
        for replica in replicas:
            replica.wait_ready(60)
        assert sorted(len(replica.owned().get(deployment.bus.commands, set())) for replica in replicas) == [0, 1]
        assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
        began = time.monotonic()
        assert [replica.stop() for replica in replicas] == [0, 0]
        print(f"{time.monotonic() - began:.1f} s")
    finally:
        for service in deployment.services:
            service.kill()
        broker.close()
