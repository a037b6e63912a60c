# SPDX-License-Identifier: Apache-2.0
"""Stores that were kept (`stores/keep.py`) are used on; a version does nothing with a store that another one has made or
migrated (docs/operations.md "Upgrading")."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database, PostgreSQL, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import Platform, Traffic
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.secrets import Headers
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until
from stores.keep import APP, PREFIX, app, login
from test_erasure import KEPT, tables, text

STORES = Path(__file__).parent / "stores"
# Oldest first. The newest one has the migrations of today.
VERSIONS = ("baseline",)
ENGINES = ("sqlite", "postgresql")
# A store stays as it is however old it is.
SETTINGS = {"JOURNAL_RETENTION_HOURS": "87600", "ALIAS_DELAY": "0"}


def load(database: Database, version: str, *services: str) -> None:
    engine = "sqlite" if isinstance(database, SQLite) else "postgresql"
    content = (STORES / version / f"{engine}.sql").read_text()
    for service, script in re.findall(r"^-- (\w+)\n(.*?)(?=^-- \w+$|\Z)", content, re.MULTILINE | re.DOTALL):
        if services and service not in services:
            continue
        if isinstance(database, SQLite):
            database.directory.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(database.directory / f"{service}.sqlite")) as connection:
                connection.executescript(script)
        else:
            assert isinstance(database, PostgreSQL)
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(script)  # type: ignore[arg-type]


def state(database: Database, service: str) -> dict[str, list[str]]:
    """All rows of all tables, but for the times of the migrations."""
    found: dict[str, list[str]] = {}
    for table in tables(database, service):
        columns = "number, name, checksum" if table == "migrations" else "*"
        rows = database.execute(f"SELECT {columns} FROM {table}", service=service)
        found[table] = sorted(repr([text(cell) for cell in row]) for row in rows)
    return found


class Kept:
    """What a store was asked and answered."""

    def __init__(self, version: str, engine: str) -> None:
        content = json.loads((STORES / version / f"{engine}.json").read_text())
        self.names: dict[str, str] = content["names"]
        self.asked: list[dict[str, Any]] = content["asked"]
        self.questions = content["questions"]
        self.owed = [one for one in self.asked if one["reply"] is None]
        told = [one for one in self.asked if one["reply"] is not None]
        self.waiting = [one for one in told if json.loads(one["reply"])["data"]["status"] == "pending"]
        self.settled = [one for one in told if one not in self.waiting]

    def put(self, bus: Bus, record: dict[str, Any]) -> None:
        headers: Headers = [(name, content.encode()) for name, content in record["headers"]]
        bus.put(record["value"].encode(), headers, key=record["key"].encode(), topic=record["topic"])


@pytest.fixture(scope="module")
def make_broker(directory: Path) -> Iterator[Callable[[], Broker]]:
    """One of its own for each store: the names of its topics are those that stand in the store."""
    brokers: list[Broker] = []

    def make() -> Broker:
        brokers.append(Broker.embedded(directory / f"migration-broker-{len(brokers)}", PREFIX))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_kept_store_is_used_on(
    make_broker: Callable[[], Broker], make_deployment: Callable[..., Deployment],
    new_database: Callable[[str], Database], engine: str, version: str
) -> None:
    """With sagas that wait, questions that are not answered, and messages, dead letters among them, that were never
    published."""
    database, kept = new_database(engine), Kept(version, engine)
    load(database, version)
    before = migrations(database)
    deployment = make_deployment(on=make_broker(), database=database, prefix=PREFIX, services=SERVICES)
    apps.write(deployment.apps_file, [app()])
    services = [deployment.service(name, **SETTINGS).start() for name in SERVICES]
    for service in services:
        service.wait_ready()

    if version == VERSIONS[-1]:
        assert migrations(database) == before, "there is a new migration: keep a store with it (stores/keep.py)"

    goes_on(deployment.bus, kept)
    is_known(deployment.bus, kept)
    bus = deployment.bus
    for one in new():
        assert bus.settle(one)["status"] == "succeeded"
    explained(deployment, kept)
    erased(deployment, kept)

    for name in SERVICES:
        until(lambda: database.execute("SELECT COUNT(*) FROM outbox", service=name) == [(0,)], 15, "an empty outbox")
    for service in services:
        assert service.stop() == 0
        assert not service.lines('"level":"error"') and not service.lines('"level":"critical"'), service.complaints()


def migrations(database: Database) -> dict[str, list[Any]]:
    query = "SELECT number, name FROM migrations ORDER BY 1"
    return {name: database.execute(query, service=name) for name in SERVICES}


def goes_on(bus: Bus, kept: Kept) -> None:
    """What was decided and not published is published, the dead letters too; what waited gets its answer."""
    found = bus.collector
    assert len(kept.settled) >= 30 and len(kept.waiting) >= 2 and len(kept.owed) == 5
    for one in kept.owed:
        assert bus.final(one["id"])["status"] == "succeeded", one
    found.wait(
        lambda: sum(len(letters) for letters in found.dead_letters.values()) == 3, 30, lambda: "the dead letters")
    for one in kept.waiting:
        # Nobody has confirmed what waits for the app's linker, and its time is over.
        is_linker = json.loads(one["value"])["data"].get("linking") == "linker"
        assert bus.final(one["id"])["status"] == ("expired" if is_linker else "succeeded"), one
    [alias] = [one["id"] for one in kept.asked if "sync.alias" in json.loads(one["value"])["type"]]
    until(lambda: any(
        event.envelope["type"] == "identity.sync.aliased.v1" and event.data["aliasId"] == kept.names["alias"]
        for events in list(found.events.values()) for event in events), 30, "the alias")
    found.catch_up()
    # Nothing of what was published is published again.
    for one in kept.settled:
        assert not found.replies[one["id"]]
        assert one["id"] == alias or not found.events[one["id"]]


def is_known(bus: Bus, kept: Kept) -> None:
    """Everything is answered again with the same bytes, secrets too, and nothing is done twice."""
    found = bus.collector
    counts = {one["id"]: len(found.replies[one["id"]]) for one in kept.asked}
    events = {one["id"]: len(found.events[one["id"]]) for one in kept.asked}
    first: dict[str, bytes | None] = {one["id"]: one["reply"].encode() for one in kept.settled}
    for one in kept.owed + kept.waiting:
        first[one["id"]] = next(
            record.value for record in found.replies[one["id"]] if record.data["status"] != "pending")
    for one in kept.asked:
        kept.put(bus, one)
    for one in kept.asked:
        again: Record = bus.reply_records(one["id"], counts[one["id"]] + 1)[-1]
        assert again.value == first[one["id"]], one
    found.catch_up()
    for one in kept.asked:
        assert len(found.events[one["id"]]) == events[one["id"]]
    # Another command under an id that is taken is noticed.
    for taken in new():
        [id, *_] = [one["id"] for one in kept.settled if one["topic"] == bus.topic(taken.service)]
        count = len(found.replies[id])
        bus.send(taken.but(id=id, source="e2e"))
        reused = bus.reply_records(id, count + 1)[-1].data
        assert (reused["status"], reused["reason"]) == ("rejected", "ID_REUSED")
    for question in kept.questions:
        result = question.pop("result")
        reply = bus.ask(Command(**question))
        for name in result.keys() - {"token", "installToken"}:
            assert reply["result"].get(name) == result[name], (question, reply, result)


def new() -> list[Command]:
    """One command for each service."""
    return [
        c.register(fresh("install"), user="new", app=APP),
        c.create(fresh("install"), app=APP, appSecret=apps.APP_SECRET, linking="none"),
        c.sync("identify", fresh("device"), {"device_application_stamp": fresh("stamp")}, APP),
        login(fresh("device"), fresh("user")),
    ]


def explained(deployment: Deployment, kept: Kept) -> None:
    answer = subprocess.run(
        [binary("identitybus"), "explain", f"--app={APP}", "--verbose", "--", kept.names["ada-phone"]],
        env=clean_environment() | deployment.environment(), capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    for part in (*(kept.names[name] for name in ("ada", "ada-user", "ada-tablet", "ada-mpid")), "link.request  succeeded"):
        assert part in answer.stdout, (part, answer.stdout)


def erased(deployment: Deployment, kept: Kept) -> None:
    bus, database = deployment.bus, deployment.database
    assert bus.settle(c.erase(kept.names["ada-user"], APP))["status"] == "succeeded"
    left = [
        (service, table) for service in SERVICES for table in tables(database, service)
        if table not in KEPT and kept.names["ada"] in "\n".join(
            text(cell) for row in database.execute(f"SELECT * FROM {table}", service=service) for cell in row)]
    assert not left


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kept_store_is_opened_as_it_is(
    make_deployment: Callable[..., Deployment], new_database: Callable[[str], Database], engine: str
) -> None:
    """By services that come as far as their stores, and no farther: there is no broker."""
    database = new_database(engine)
    load(database, VERSIONS[-1])
    deployment = make_deployment(database=database)
    apps.write(deployment.apps_file, [app()])
    before = {name: state(database, name) for name in SERVICES}
    services = [deployment.service(name, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").start() for name in SERVICES]
    for service in services:
        until(lambda: service.lines('"event":"broker.down"'), 30, service.tail)
        service.kill()
    assert {name: state(database, name) for name in SERVICES} == before


# A store of another version


LATER = "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (999, 'of a later version', 'x', 0)"


@pytest.mark.parametrize(("change", "complaint"), [
    (LATER, "the database is newer than this code: it has migration 999 'of a later version'; run the version that made "
     "it, or a later one"),
    ("UPDATE migrations SET checksum = 'x' WHERE number = 1", "the database was made by another version of this code: its "
     "migration 1 'shared tables' is another one; run that version, or start with an empty database"),
], ids=["later", "other"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_of_another_version_is_left_alone(
    make_deployment: Callable[..., Deployment], new_database: Callable[[str], Database], engine: str, change: str,
    complaint: str
) -> None:
    database = new_database(engine)
    load(database, VERSIONS[-1])
    deployment = make_deployment(database=database)
    for name in SERVICES:
        database.execute(change, service=name)
        before = state(database, name)
        service = deployment.service(name).start()
        assert service.wait(30) == 78
        told = [line for line in service.text.splitlines() if line.startswith("identitybus-")]
        assert told == [f"identitybus-{name}: {complaint}"]
        assert state(database, name) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_the_store_of_another_service_is_left_alone(
    make_deployment: Callable[..., Deployment], new_database: Callable[[str], Database], engine: str
) -> None:
    database = new_database(engine)
    load(database, VERSIONS[-1], "link", "user")
    deployment = make_deployment(database=database)
    if isinstance(database, SQLite):
        (database.directory / "user.sqlite").rename(database.directory / "link.sqlite")
    else:
        database.execute("ALTER SCHEMA identity_link RENAME TO kept")
        database.execute("ALTER SCHEMA identity_user RENAME TO identity_link")
    before = state(database, "link")
    service = deployment.service("link").start()
    assert service.wait(30) == 78
    told = [line for line in service.text.splitlines() if line.startswith("identitybus-")]
    complaint = (
        "the database is the store of another service, or of another version of this code: its migration 100 is "
        "'installations, codes and users', and not 'installs, persons and erasures'; put the store of this service in its "
        "place, or run that version")
    assert told == [f"identitybus-link: {complaint}"]
    answer = tool("migrate", "--service", "link", environment=deployment.environment())
    assert answer.returncode == 78 and answer.stderr.startswith(f"identitybus: the store of link: {complaint}.\n"), answer
    answer = tool("salts", environment=deployment.environment())
    assert answer.returncode == 78 and not answer.stdout, answer
    assert answer.stderr.startswith(f"identitybus: the store of link: {complaint}.\n"), answer
    assert state(database, "link") == before


@pytest.mark.slow
@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
def test_a_replica_whose_store_a_later_version_migrates_leaves(
    make_deployment: Callable[..., Platform], is_busy: bool
) -> None:
    """It decides nothing more from the moment of the migration. Two replicas, as in a rolling upgrade."""
    platform = make_deployment("postgresql", services=("link",), kind=Platform)
    database, bus = platform.database, platform.bus
    assert isinstance(database, PostgreSQL)
    old = platform.start("link", "link")
    traffic = Traffic(bus, ("link",), rate=80).start()
    traffic.wait_for_answers(40)
    if not is_busy:
        traffic.finish()
    decided = f"SELECT COUNT(*) FROM {inbox.ALL}"
    with psycopg.connect(database.url, options="-c search_path=identity_link") as later:
        # Row by row it could meet a batch that locks them in another order; a migrator would begin anew then.
        later.execute("LOCK TABLE progress IN EXCLUSIVE MODE")
        # What the migrator of a later version does.
        later.execute("UPDATE progress SET epoch = epoch + 1")
        later.execute("ALTER TABLE persons RENAME COLUMN user_id TO something_else")
        later.execute(LATER)
        [before] = later.execute(decided).fetchall()
    for replica in old:
        assert replica.wait(30) == 78, replica.tail()
        assert replica.lines("identitybus-link: the database is newer than this code"), replica.tail()
    assert database.execute(decided) == [before]

    # The later version goes on.
    database.execute("ALTER TABLE persons RENAME COLUMN something_else TO user_id")
    database.execute("DELETE FROM migrations WHERE number = 999")
    platform.start("link")
    if is_busy:
        traffic.wait_for_answers(40)
        traffic.finish()
    platform.stop()
    traffic.check(platform)
