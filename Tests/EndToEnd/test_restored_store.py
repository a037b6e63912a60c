# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL is put back to an earlier copy while a replica runs: a back-up is restored, or a standby takes over that
lacks the last commits. What was answered since is decided again from the topic, to the same answers."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import PostgreSQL, PostgresServer, Standby
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

Copy = dict[str, bytes]


def tables(connection: "psycopg.Connection[tuple[str]]") -> list[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'identity_link' ORDER BY 1")
    return [name for (name,) in rows.fetchall()]


def copy_of(database: PostgreSQL) -> Copy:
    """All rows at one moment."""
    with psycopg.connect(database.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        copy: Copy = {}
        for name in tables(connection):
            with connection.cursor().copy(
                sql.SQL("COPY identity_link.{} TO STDOUT").format(sql.Identifier(name))) as rows:
                copy[name] = b"".join(bytes(part) for part in rows)
        return copy


def put_back(database: PostgreSQL, copy: Copy, break_connections: bool) -> None:
    """In one transaction: nobody sees anything in between."""
    with psycopg.connect(database.url) as connection:
        connection.execute("SET session_replication_role = replica")
        # In the order of the services: a claim looks at the migrations, and whoever writes begins with the progress.
        first = ["migrations", "progress"]
        names = [sql.Identifier("identity_link", name) for name in first + [name for name in copy if name not in first]]
        connection.execute(sql.SQL("LOCK TABLE {}").format(sql.SQL(", ").join(names)))
        connection.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(names)))
        for name, rows in copy.items():
            with connection.cursor().copy(
                sql.SQL("COPY identity_link.{} FROM STDIN").format(sql.Identifier(name))) as into:
                into.write(rows)
        if break_connections:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()")


def one_message(records: list[Record]) -> bool:
    """The same id and the same content; decided again, it has another time."""
    return len({(record.envelope["id"], json.dumps(record.data, sort_keys=True)) for record in records}) == 1


def links(count: int) -> list[Command]:
    return [c.establish(fresh("install"), fresh("ext")) for _ in range(count)]


def answered(bus: Bus, commands: list[Command]) -> list[str]:
    """The users of the replies."""
    bus.send_all(commands)
    replies = [bus.final(command.id) for command in commands]
    assert all(reply["status"] == "succeeded" for reply in replies), replies
    return [reply["result"]["userId"] for reply in replies]


def check_all_are_there(
    bus: Bus, database: PostgreSQL, service: Service, commands: list[Command], users: list[str], lost: list[Command]
) -> None:
    """Every effect is in the store; what was lost and is asked for again is answered as it was."""
    wanted = {command.id for command in commands}

    def missing() -> set[str]:
        return wanted - inbox.decided(database, commands)

    until(lambda: not missing(), 30, lambda: f"{len(missing())} of {len(wanted)} are not in the store\n{service.tail()}")
    for command, user in zip(commands, users):
        found = bus.ask(c.query(command.data["installId"]))["result"]
        assert (found["userId"], found["externalId"]) == (user, command.data["externalId"])
    before = {command.id: len(bus.collector.replies[command.id]) for command in lost}
    bus.send_all(lost)
    for command in lost:
        records = bus.reply_records(command.id, before[command.id] + 1)
        assert one_message(records), command
        events = bus.collector.events[command.id]
        for event_id in {event.envelope["id"] for event in events}:
            assert one_message([event for event in events if event.envelope["id"] == event_id]), command


@pytest.mark.slow
@pytest.mark.parametrize("how", ["connections break", "connections stay"])
def test_what_was_answered_since_the_copy_is_decided_again(
    make_deployment: Callable[..., Deployment], how: str
) -> None:
    deployment = make_deployment("postgresql")
    bus, database = deployment.bus, deployment.database
    assert isinstance(database, PostgreSQL)
    service = deployment.service().start().wait_ready()
    process = service.process.pid
    answered(bus, links(30))
    copy = copy_of(database)
    lost, later = links(30), links(30)
    users = answered(bus, lost)
    put_back(database, copy, how == "connections break")
    users += answered(bus, later)
    check_all_are_there(bus, database, service, lost + later, users, lost)
    service.wait_ready()
    assert service.process.pid == process and service.is_running


@pytest.fixture
def followed(directory: Path) -> Iterator[tuple[PostgresServer, Standby]]:
    """A server of one's own, and a standby that follows it."""
    folder = directory / f"postgres-{uuid.uuid4().hex[:8]}"
    primary = PostgresServer.throwaway(folder / "primary")
    standby = primary.standby(folder / "standby")
    yield primary, standby
    standby.close()
    primary.close()


@pytest.mark.slow
def test_a_standby_that_lacks_the_last_commits_takes_over(
    make_deployment: Callable[..., Deployment], followed: tuple[PostgresServer, Standby]
) -> None:
    primary, standby = followed
    database = standby.both(primary)
    deployment = make_deployment(database=database)
    bus = deployment.bus
    service = deployment.service().start().wait_ready()
    process = service.process.pid
    kept = answered(bus, links(30))
    until(lambda: standby.ask("SELECT count(*) FROM identity_link.inbox_1") == [(len(kept),)], 20, "the standby")
    standby.stop_following()
    lost, later = links(30), links(30)
    users = answered(bus, lost)
    # Once it is promoted the service may be there at once.
    assert standby.ask("SELECT count(*) FROM identity_link.inbox_1") == [(len(kept),)], "nothing was lost"
    primary.crash()
    standby.promote()
    users += answered(bus, later)
    check_all_are_there(bus, database, service, lost + later, users, lost)
    service.wait_ready()
    assert service.process.pid == process and service.is_running
