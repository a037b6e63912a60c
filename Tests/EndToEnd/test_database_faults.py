# SPDX-License-Identifier: Apache-2.0
"""Guarantee 3, the database's side, with the whole process and under load: every kind of error, at any request. What an
operator has to mend is waited for and told, what is wrong with one record concerns that record only, and in the end
each command has its one answer.

E2E_SEED is printed; the commands and the moments of the faults follow from it.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database, PostgreSQL, PostgresServer, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.history import History
from identitybus_testkit.proxy import ProxiedPostgreSQL
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline, until
from identitybus_testkit.workload import Workload

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))
# What guarantees.md promises of /readyz.
TOLD = 10.0
# How long after the repair all is well.
WELL = 15.0

Make = Callable[..., Deployment]


def sql(database: Database, *statements: str) -> None:
    assert isinstance(database, PostgreSQL)
    with psycopg.connect(database.url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def sessions(database: Database, function: str) -> int:
    """Calls `pg_cancel_backend` or `pg_terminate_backend` for the service's sessions. Returns how many there are."""
    return len(database.execute(
        f"SELECT {function}(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'identitybus'"))


def wait_until_told(service: Service, *words: str, within: float = TOLD) -> None:
    """/readyz is 503, and its check of the database says one of the words."""
    def told() -> bool:
        detail = service.failed_checks().get("database", "")
        return bool(detail) and any(word in detail for word in words)

    until(told, within, lambda: f"{words} at /readyz: {service.failed_checks()}\n{service.tail()}")
    assert service.get("/livez")[0] == 200, "an outage must not restart every process"


def conclude(deployment: Deployment, service: Service, workload: Workload) -> None:
    """The fault is over; then every answer, event and row is compared."""
    service.wait_ready(20)
    workload.finish(60)
    history = History(workload.sent, deployment.bus, deployment.database)
    history.wait_until_answered(120)
    assert service.wait_ready(10).stop() == 0
    print(f"E2E_SEED={SEED}: {history.check()}")


def progress(workload: Workload, more: int, timeout: float = 60) -> None:
    goal = workload.answered + more
    until(lambda: workload.answered >= goal, timeout, lambda: f"{workload.answered} of {goal} answers", 0.01)


# Errors that the server names


# Something that an operator or time mends: nothing is decided, and the service says so.
OUTAGES = """
    08006 08P01 25006 25P03 26000 28000 3D000 3F000 42501 42P01 42703 42883 53100 53200 53300 55000 57014 57P01 57P03
    58030 F0000 XX000 XX001""".split()
# Somebody else got on: decided again at once.
CONFLICTS = "40001 40P01 55P03 23505 23P01".split()
# Something about the values of one record.
REFUSALS = "21000 22001 22021 22P05 23502 23514 54000 P0001".split()


class Raiser:
    """Lets the server answer an INSERT into the inbox with a SQLSTATE."""

    def __init__(self, database: Database) -> None:
        self.database = database
        sql(
            database, "CREATE TABLE public.fault (state TEXT, command BYTEA)",
            """
            CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
            DECLARE found TEXT;
            BEGIN
                SELECT state INTO found FROM public.fault WHERE command IS NULL OR command = NEW.key;
                IF found IS NOT NULL THEN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = found; END IF;
                RETURN NEW;
            END $$
            """,
            *(f"CREATE TRIGGER fail BEFORE INSERT ON identity_link.{table} FOR EACH ROW EXECUTE FUNCTION public.fail()"
              for table in inbox.TABLES))

    def begin(self, state: str, *commands: Command) -> None:
        which = [f"'\\x{inbox.key(command).hex()}'" for command in commands] or ["NULL"]
        sql(self.database, "INSERT INTO public.fault VALUES " + ", ".join(f"('{state}', {one})" for one in which))

    def end(self) -> None:
        sql(self.database, "TRUNCATE public.fault")


def links(count: int) -> list[Command]:
    return [c.establish(fresh("install"), fresh("ext")) for _ in range(count)]


def all_succeed(bus: Bus, commands: list[Command], timeout: float = 30) -> None:
    for command in commands:
        assert bus.reply(command.id, timeout)["status"] == "succeeded", command


def test_every_sqlstate_does_what_its_class_means(make_deployment: Make) -> None:
    deployment = make_deployment("postgresql")
    bus, service = deployment.bus, deployment.service().start().wait_ready()
    raiser = Raiser(deployment.database)
    sent: list[Command] = []
    for state in OUTAGES:
        commands = links(3)
        raiser.begin(state)
        bus.send_all(commands)
        wait_until_told(service, f"[{state}]")
        raiser.end()
        all_succeed(bus, commands)
        service.wait_ready(TOLD)
        sent += commands
    for state in CONFLICTS:
        commands = links(3)
        seen = service.metric("identity_conflicts_total")
        raiser.begin(state)
        bus.send_all(commands)
        until(lambda: service.metric("identity_conflicts_total") >= seen + 2, 10, f"conflicts of {state}")
        # A lock that nobody gives up is what an operator has to see.
        assert state == "55P03" or "database" not in service.failed_checks(), state
        raiser.end()
        all_succeed(bus, commands)
        service.wait_ready(TOLD)
        sent += commands
    assert not bus.collector.dead_letters, "none of these concerns the record"
    for state in REFUSALS:
        commands = links(6)
        raiser.begin(state, commands[2], commands[5])
        bus.send_all(commands)
        for command in (commands[2], commands[5]):
            reply = bus.reply(command.id)
            assert (reply["status"], reply["reason"]) == ("rejected", "INTERNAL_ERROR"), (state, reply)
        all_succeed(bus, commands[:2] + commands[3:5])
        assert "database" not in service.failed_checks(), state
        service.wait_ready(TOLD)
        raiser.end()
        sent += commands
    letters = bus.collector.dead_letters
    bus.collector.wait(
        lambda: len(letters) >= 2 * len(REFUSALS), 30, lambda: f"{len(letters)} dead letters")
    assert service.stop() == 0
    assert len(letters) == 2 * len(REFUSALS)
    assert {one.header("dlq_reason") for records in letters.values() for one in records} == {b"INTERNAL_ERROR"}
    for command in sent:
        records = bus.collector.replies[command.id]
        assert len({(record.envelope["id"], record.value) for record in records}) == 1, command


# Connections


@pytest.fixture
def proxied(new_database: Callable[[str], Database]) -> Iterator[ProxiedPostgreSQL]:
    base = new_database("postgresql")
    assert isinstance(base, PostgreSQL)
    database = ProxiedPostgreSQL(base.url)
    yield database
    database.proxy.close()


def test_commits_are_lost_on_the_way_and_so_are_their_answers(
    make_deployment: Make, proxied: ProxiedPostgreSQL
) -> None:
    deployment, proxy = make_deployment(database=proxied), proxied.proxy
    service = deployment.service().start().wait_ready()
    proxy.chance = random.Random(SEED)
    proxy.lost_commits = 0.2
    workload = Workload(deployment.bus, SEED, rate=250).start()
    until(lambda: min(proxy.lost_answers, proxy.lost_requests) >= 5, 120, "ten lost commits")
    progress(workload, 100)
    proxy.lost_commits = 0
    conclude(deployment, service, workload)
    print(f"{proxy.lost_requests} COMMITs did not arrive, {proxy.lost_answers} answers to one were lost")


def test_sessions_are_cancelled_and_ended_at_any_instant(make_deployment: Make) -> None:
    deployment = make_deployment("postgresql")
    service = deployment.service().start().wait_ready()
    chance = random.Random(SEED)
    workload = Workload(deployment.bus, SEED + 1, rate=250).start()
    hit, began, in_time = 0, time.monotonic(), Deadline(40)

    def enough() -> bool:
        return time.monotonic() > began + 4 and hit > 10 and service.metric("identity_database_waits_total") > 3

    # A commit that was lost can cost a rebalance, of some seconds in which there is no session to hit.
    while not enough():
        assert in_time.left, f"only {hit} sessions were there to hit"
        hit += sessions(deployment.database, chance.choice(["pg_cancel_backend", "pg_terminate_backend"]))
        time.sleep(chance.uniform(0, 0.1))
    conclude(deployment, service, workload)


@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_nothing_comes_through_in_one_direction(
    make_deployment: Make, proxied: ProxiedPostgreSQL, direction: str
) -> None:
    """Neither side is told. Requests get through in the end; of the answers nobody hears any more."""
    deployment, proxy = make_deployment(database=proxied), proxied.proxy
    service = deployment.service().start().wait_ready()
    workload = Workload(deployment.bus, SEED + 2, rate=200).start()
    progress(workload, 100)
    proxy.stall(direction)
    until(lambda: not service.is_ready, TOLD, "not ready")
    assert service.get("/livez")[0] == 200
    if direction == "answers":
        proxy.cut()
    proxy.resume()
    progress(workload, 100)
    conclude(deployment, service, workload)


def test_a_slow_link_costs_time_and_nothing_else(make_deployment: Make, proxied: ProxiedPostgreSQL) -> None:
    deployment, proxy = make_deployment(database=proxied), proxied.proxy
    service = deployment.service().start().wait_ready()
    proxy.latency = 0.05
    workload = Workload(deployment.bus, SEED + 3, rate=250).start()
    # A transaction takes about a second then: only large batches keep up.
    progress(workload, 1000, timeout=30)
    service.wait_ready(10)
    assert service.metric("identity_database_waits_total") == 0
    proxy.latency = 0
    conclude(deployment, service, workload)


def test_the_server_refuses_connections_above_a_limit(make_deployment: Make, postgres: PostgresServer) -> None:
    """Somebody else takes the last one. The same for a role that may not log in any more."""
    role, database = f"e2e_{uuid.uuid4().hex[:8]}", postgres.new_database()
    sql(
        database, f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1",
        f"GRANT CREATE ON DATABASE {database.url.rpartition('/')[2]} TO {role}")
    deployment = make_deployment(database=database)
    service = deployment.service(
        LOOPS="1", DATABASE_URL=database.environment()["DATABASE_URL"].replace("//postgres", f"//{role}"))
    try:
        service.start().wait_ready()
        workload = Workload(deployment.bus, SEED + 4, rate=200).start()
        progress(workload, 100)
        sql(database, f"ALTER ROLE {role} CONNECTION LIMIT 0")
        assert sessions(database, "pg_terminate_backend") == 1
        wait_until_told(service, "too many connections")
        sql(database, f"ALTER ROLE {role} NOLOGIN CONNECTION LIMIT 1")
        wait_until_told(service, "not permitted to log in")
        sql(database, f"ALTER ROLE {role} LOGIN")
        progress(workload, 100)
        conclude(deployment, service, workload)
    finally:
        service.kill()
        sql(database, f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def test_the_server_takes_no_writes(make_deployment: Make) -> None:
    """As a standby, or a server whose operator wants it so; also for connections that stay."""
    deployment = make_deployment("postgresql")
    database, service = deployment.database, deployment.service().start().wait_ready()
    [(name,)] = database.execute("SELECT current_database()")
    workload = Workload(deployment.bus, SEED + 5, rate=200).start()
    progress(workload, 100)
    sql(database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    sessions(database, "pg_terminate_backend")
    wait_until_told(service, "read-only", "read-write")
    seen = workload.answered
    sql(database, f"ALTER DATABASE {name} RESET default_transaction_read_only")
    progress(workload, 100)
    assert workload.answered > seen
    conclude(deployment, service, workload)


def test_the_tables_are_away_for_a_while(make_deployment: Make) -> None:
    """Somebody's maintenance: what is wrong with the store is wrong with no record."""
    deployment = make_deployment("postgresql")
    service = deployment.service().start().wait_ready()
    workload = Workload(deployment.bus, SEED + 6, rate=200).start()
    progress(workload, 100)
    for away, back in (
        ("ALTER TABLE identity_link.persons RENAME TO mislaid", "ALTER TABLE identity_link.mislaid RENAME TO persons"),
        ("ALTER TABLE identity_link.installs RENAME COLUMN version TO mislaid",
         "ALTER TABLE identity_link.installs RENAME COLUMN mislaid TO version"),
    ):
        sql(deployment.database, away)
        wait_until_told(service, "42P01", "42703")
        sql(deployment.database, back)
        progress(workload, 100)
    conclude(deployment, service, workload)


def test_the_server_has_no_transaction_ids_left(make_deployment: Make, directory: Path) -> None:
    """It has the same SQLSTATE for that as for a value over a limit."""
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    try:
        deployment = make_deployment(database=server.new_database())
        bus, service = deployment.bus, deployment.service().start().wait_ready()
        [(next_id, oldest)] = deployment.database.execute(
            "SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT), "
            "min(CAST(CAST(datfrozenxid AS TEXT) AS BIGINT)) FROM pg_database")
        server.number_transactions_from(int(oldest) + (1 << 31) - 1_500_000)
        commands = links(5)
        bus.send_all(commands)
        wait_until_told(service, "[54000]")
        server.number_transactions_from(int(next_id) + 100)
        all_succeed(bus, commands)
        assert service.wait_ready(10).stop() == 0
        assert not bus.collector.dead_letters
    finally:
        server.close()


# Disks


@pytest.fixture
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of 64 MB: many times what a slow machine's longer run writes."""
    place = directory / f"disk-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=777", "tmpfs", place], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("may not mount a small file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> Path:
    """Leaves room for nothing."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


@pytest.fixture
def disk_database(small_disk: Path, directory: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "sqlite":
        yield SQLite(small_disk)
        return
    # One that sees the mount.
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    try:
        shutil.chown(small_disk, "postgres" if os.getuid() == 0 else None)
        database = server.new_database()
        sql(PostgreSQL(server.url), f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        sql(database, "CREATE SCHEMA identity_link")
        name = database.url.rpartition("/")[2]
        sql(PostgreSQL(server.url), f"ALTER DATABASE {name} SET default_tablespace = small")
        yield database
    finally:
        server.close()


@pytest.mark.parametrize("disk_database", ["sqlite", "postgresql"], indirect=True)
def test_the_disk_is_full(make_deployment: Make, disk_database: Database, small_disk: Path) -> None:
    deployment = make_deployment(database=disk_database)
    service = deployment.service().start().wait_ready()
    workload = Workload(deployment.bus, SEED + 7, rate=200).start()
    for _ in range(2):
        progress(workload, 100)
        ballast = fill(small_disk)
        wait_until_told(service, "full", "No space left", "I/O")
        ballast.unlink()
        progress(workload, 100)
    conclude(deployment, service, workload)
    if isinstance(disk_database, SQLite):
        assert disk_database.execute("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("disk_database", ["sqlite", "postgresql"], indirect=True)
def test_the_disk_is_full_and_nobody_writes(
    make_deployment: Make, disk_database: Database, small_disk: Path
) -> None:
    deployment = make_deployment(database=disk_database)
    service = deployment.service().start().wait_ready()
    for round in range(2):
        ballast = fill(small_disk)
        # SQLite has no codes for it.
        wait_until_told(service, "is full" if isinstance(disk_database, SQLite) else "[53100]", within=2 * TOLD)
        time.sleep(12)  # some looks long
        ends = len(service.lines("database.up"))
        assert service.failed_checks().get("database"), service.tail()
        assert ends == round, "it was well again while the disk was full"
        ballast.unlink()
        service.wait_ready(WELL)
    assert service.stop() == 0


def test_pages_are_damaged_and_a_backup_is_put_in_their_place(make_deployment: Make) -> None:
    """What was answered since the backup is decided again, to the same answers."""
    deployment = make_deployment("sqlite")
    bus, database = deployment.bus, deployment.database
    assert isinstance(database, SQLite)
    service = deployment.service().start().wait_ready()
    file, backup = database.directory / "link.sqlite", database.directory / "backup"
    before, since, during = links(300), links(50), links(50)
    bus.send_all(before)
    all_succeed(bus, before)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    bus.send_all(since)
    all_succeed(bus, since)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as pages:
        size = pages.seek(0, os.SEEK_END)
        pages.seek(4096)
        pages.write(random.Random(SEED).randbytes(size - 4096))
    bus.send_all(during)
    wait_until_told(service, "malformed")
    assert not bus.collector.dead_letters and not any(bus.collector.replies.get(one.id) for one in during)
    backup.chmod(0o600)
    os.replace(backup, file)
    all_succeed(bus, during)
    service.wait_ready(10)
    assert service.stop() == 0
    assert not bus.collector.dead_letters
    rows = dict(database.execute("SELECT install_id, user_id FROM installs"))
    for command in before + since + during:
        users = {record.data["result"]["userId"] for record in bus.collector.replies[command.id]}
        assert users == {rows[command.data["installId"]]}, command
