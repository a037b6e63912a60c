# SPDX-License-Identifier: Apache-2.0
"""A store that an earlier version has written (`stores/keep.py`) is migrated and used: with sagas that wait, questions
that are not answered, and messages, dead letters among them, that were never published."""

import base64
import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.bus import Record
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import Database, PostgreSQL, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.standin import StandIn
from identitybus_testkit.waiting import until
from stores.keep import PREFIX
from test_asked_again import as_link

STORES = Path(__file__).parent / "stores"


def load(database: Database, path: Path) -> None:
    script = gzip.decompress(path.read_bytes()).decode()
    if isinstance(database, SQLite):
        database.directory.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(database.directory / "user.sqlite")) as connection:
            connection.executescript(script)
    else:
        assert isinstance(database, PostgreSQL)
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(script)  # type: ignore[arg-type]


def as_bytes(part: str | None) -> bytes | None:
    return None if part is None else base64.b64decode(part)


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
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_store_from_before_inbox_and_outbox_is_used_on(
    make_broker: Callable[[], Broker], make_deployment: Callable[..., Deployment],
    new_database: Callable[[str], Database], engine: str
) -> None:
    database = new_database(engine)
    load(database, STORES / f"before-inbox-{engine}.sql.gz")
    asked: list[dict[str, Any]] = json.loads((STORES / f"before-inbox-{engine}.json").read_text())
    deployment = make_deployment(on=make_broker(), database=database, prefix=PREFIX, services=("user", "link"))
    bus, found = deployment.bus, deployment.bus.collector
    link = StandIn(deployment.broker, PREFIX, "link", lambda command: [as_link(command)])
    service = deployment.service("user").start().wait_ready()
    known = [one for one in asked if one["reply"] is not None]
    owed = [one for one in asked if one["reply"] is None]
    assert len(known) >= 8 and len(owed) == 5

    # What was decided and not published is published, the dead letter too; what waited for an answer gets it.
    for one in owed:
        assert bus.final(one["id"])["status"] == "succeeded"
    until(lambda: len(found.dead_letters) == 1, 30, "the dead letter")
    waiting = [one for one in known if json.loads(as_bytes(one["reply"]) or b"")["data"]["status"] == "pending"]
    assert len(waiting) == 2
    for one in waiting:
        assert bus.final(one["id"])["status"] == "succeeded"
    found.catch_up()
    # Nothing of what was published is published again.
    settled = [one for one in known if one not in waiting]
    for one in settled:
        assert not found.replies[one["id"]] and not found.events[one["id"]]

    # Everything is known, and answered with the same bytes, secrets too.
    counts = {one["id"]: len(found.replies[one["id"]]) for one in asked}
    first: dict[str, bytes | None] = {one["id"]: as_bytes(one["reply"]) for one in settled}
    for one in owed + waiting:
        first[one["id"]] = next(
            record.value for record in found.replies[one["id"]] if record.data["status"] != "pending")
    events = {one["id"]: len(found.events[one["id"]]) for one in asked}
    for one in asked:
        headers = [(name, as_bytes(content)) for name, content in one["headers"]]
        bus.put(as_bytes(one["value"]), headers, key=as_bytes(one["key"]))
    for one in asked:
        again: Record = bus.reply_records(one["id"], counts[one["id"]] + 1)[-1]
        assert again.value == first[one["id"]], one["id"]
        assert len(found.events[one["id"]]) == events[one["id"]]
    # Another command under an id that is taken is noticed.
    taken = c.request_code(fresh("ext")).but(id=asked[0]["id"])
    bus.send(taken)
    reused = bus.reply_records(taken.id, counts[taken.id] + 2)[-1].data
    assert (reused["status"], reused["reason"]) == ("rejected", "ID_REUSED")
    assert bus.ask(c.request_code(fresh("ext")))["status"] == "succeeded"

    # Once all is published the outbox is empty, and the old table is gone.
    until(lambda: database.execute("SELECT COUNT(*) FROM outbox", service="user") == [(0,)], 15, "an empty outbox")
    with pytest.raises((sqlite3.Error, psycopg.Error)):
        database.execute("SELECT 1 FROM journal", service="user")
    assert service.stop() == 0
    link.close()
