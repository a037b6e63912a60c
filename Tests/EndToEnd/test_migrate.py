# SPDX-License-Identifier: Apache-2.0
"""`identitybus migrate`, and services whose database roles may change rows and no tables (docs/operations.md "One role for
each service")."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest
from confluent_kafka import Producer

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgreSQL, PostgresServer, make_role, with_role
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.platform import Platform, one
from identitybus_testkit.service import Service
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

Make = Callable[..., Deployment]
RIGHTS = {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"}


@dataclass
class Roles:
    """A database of somebody, and a role without rights for each service."""

    database: PostgreSQL
    names: dict[str, str]

    @property
    def grant(self) -> str:
        return ",".join(f"{service}={role}" for service, role in self.names.items())

    def url(self, service: str) -> str:
        return with_role(self.database.url, self.names[service])

    def migrate(self, *arguments: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        return tool("migrate", *arguments, environment={"DATABASE_URL": url or self.database.url})

    def ask(self, sql: str, url: str | None = None) -> list[tuple[object, ...]]:
        with psycopg.connect(url or self.database.url, autocommit=True) as connection:
            cursor = connection.execute(sql)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def roles(postgres: PostgresServer) -> Iterator[Roles]:
    database = postgres.new_database()
    stem = fresh("role").replace("-", "_")
    names = {service: f"{stem}_{service}" for service in SERVICES}
    for name in names.values():
        make_role(database.url, name)
    yield Roles(database, names)
    with psycopg.connect(database.url, autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"DROP OWNED BY {name}")  # type: ignore[arg-type]
            connection.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]


@contextmanager
def locked(database: PostgreSQL, schema: str) -> Iterator[None]:
    """All tables of a schema, but the one that says which migrations have run."""
    with psycopg.connect(database.url) as connection:
        for (table,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'migrations'", [schema]
        ).fetchall():
            connection.execute(f"LOCK TABLE {schema}.{table} IN ACCESS EXCLUSIVE MODE")
        yield


def privileges(roles: Roles, role: str) -> set[tuple[object, ...]]:
    """What a role may do with the tables of all schemas, and what it will with those to come."""
    return set(roles.ask(
        f"""SELECT nspname, relname, privilege_type FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace,
                aclexplode(relacl) WHERE relkind = 'r' AND grantee = '{role}'::regrole
            UNION SELECT nspname, '', privilege_type FROM pg_namespace, aclexplode(nspacl)
                WHERE grantee = '{role}'::regrole
            UNION SELECT nspname, 'default', privilege_type FROM pg_default_acl
                JOIN pg_namespace n ON n.oid = defaclnamespace, aclexplode(defaclacl)
                WHERE grantee = '{role}'::regrole"""))


# The whole way


def test_services_run_without_the_right_to_change_a_table(roles: Roles, make_deployment: Make) -> None:
    answer = roles.migrate("--grant", roles.grant)
    assert answer.returncode == 0, answer
    lines = answer.stdout.splitlines()
    assert re.fullmatch(r"link {11}none -> \d+ +\d+\.\d+ s", lines[0]), lines
    grants = [line for line in lines if line.startswith("grants ")]
    assert len(grants) == 4 and re.fullmatch(
        rf"grants {{9}}{roles.names['link']}: USAGE identity_link; "
        r"SELECT INSERT UPDATE DELETE TRUNCATE on \d+ tables", grants[0]), lines
    assert lines[-1] == "done           services may run without CREATE"

    platform = make_deployment(kind=Platform, database=roles.database)
    assert isinstance(platform, Platform)
    running = {name: platform.service(name, DATABASE_URL=roles.url(name)).start() for name in SERVICES}
    for service in running.values():
        service.wait_ready()
    platform.bus.collector
    for command in [one(name) for _ in range(3) for name in SERVICES]:
        platform.bus.send(command)
        assert platform.bus.final(command.id, 30)["status"] == "succeeded", command

    # Again, beside the services: it waits for no table, and keeps nobody waiting.
    with locked(roles.database, "identity_link"):
        began = time.monotonic()
        again = roles.migrate("--grant", roles.grant)
        assert time.monotonic() - began < 3
    assert again.returncode == 0, again
    assert re.findall(r"^(\w+) +\d+ = +nothing to do$", again.stdout, re.M) == list(SERVICES), again
    assert again.stdout.count(": nothing to do\n") == 4, again

    # Each is kept to its own.
    for sql in ("SELECT * FROM identity_user.salt", "CREATE TABLE identity_link.mine (x int)",
                "DROP TABLE identity_link.saga", "CREATE SCHEMA mine"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            roles.ask(sql, roles.url("link"))
    for role in roles.names.values():
        assert {right for _, table, right in privileges(roles, role) if table} == RIGHTS
    for service in running.values():
        assert service.stop() == 0
        assert not service.lines('"event":"database.') and not service.lines("permission denied"), service.tail()


@pytest.mark.slow
def test_generations_of_the_inbox_are_emptied(roles: Roles, make_deployment: Make) -> None:
    """By the log's own time, which the test writes."""
    assert roles.migrate("--grant", roles.grant).returncode == 0
    deployment = make_deployment(database=roles.database)
    bus = deployment.bus
    if not deployment.broker.is_embedded:
        pytest.skip("the services' topics have the broker's time there")
    service = deployment.service(JOURNAL_RETENTION_HOURS="1", DATABASE_URL=roles.url("link")).start().wait_ready()
    partitions = deployment.broker.partitions(bus.commands)
    producer = Producer(deployment.broker.client(**{"linger.ms": 0, "log_level": 2}))
    now = int(time.time() * 1000)
    bus.collector
    stages = []
    for hours in (6, 4, 2, 1, 0):
        before = roles.database.execute("SELECT newest, begun_at FROM inbox_state")
        commands = [c.register(fresh("install")) for _ in partitions]
        for partition, command in zip(partitions, commands):
            value, headers = bus.signed(command)
            producer.produce(bus.commands, value, command.key, headers=headers, partition=partition,
                             timestamp=now - hours * 3_600_000)
        assert producer.flush(30) == 0
        for command in commands:
            assert bus.reply(command.id)["status"] == "succeeded"
        stages.append(commands)
        until(lambda: roles.database.execute("SELECT newest, begun_at FROM inbox_state") != before, 30, service.tail)
    until(lambda: not inbox.decided(roles.database, stages[0]), 30, service.tail)
    assert inbox.decided(roles.database, stages[-1]) == {command.id for command in stages[-1]}
    assert service.stop() == 0


def test_the_sql_of_the_documentation_gives_the_same(roles: Roles) -> None:
    assert roles.migrate("--grant", f"link={roles.names['link']}").returncode == 0
    expected = {(table, right) for _, table, right in privileges(roles, roles.names["link"])}
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    [section] = re.findall(r"^### One role for each service$(.*?)^##", page, re.M | re.S)
    [sql] = re.findall(r"^```sql\n(.*?)^```", section, re.M | re.S)
    stem = roles.names["link"].removesuffix("_link")
    script = re.sub(r"^CREATE ROLE.*\n", "", sql, flags=re.M).replace("ib_verify", "ib_verification")
    script = script.replace("ib_", f"{stem}_")
    roles.ask(script)
    for service, role in roles.names.items():
        given = privileges(roles, role)
        assert {schema for schema, _, _ in given} == {f"identity_{service}"}
        shared = {(table, right) for _, table, right in given if table in ("", "default", "inbox_0", "salt")}
        assert shared == {(table, right) for table, right in expected if table in ("", "default", "inbox_0", "salt")}
        tables = {table for _, table, _ in given} - {"", "default"}
        [(count,)] = roles.ask(f"SELECT count(*) FROM pg_tables WHERE schemaname = 'identity_{service}'")
        assert len(tables) == count
    again = roles.migrate("--grant", roles.grant)
    assert again.returncode == 0 and again.stdout.count(": nothing to do\n") == 4, again


# A schema that is behind


def behind(service: Service, words: str) -> None:
    """It is not ready for this, says so everywhere, and does not end."""
    until(lambda: words in service.failed_checks().get("database", ""), 30,
          lambda: f"{service.failed_checks()}\n{service.tail()}")
    metric = 'identity_check_ok{check="database",service="link"} 0'
    until(lambda: metric in service.get("/metrics")[1], 5, lambda: service.get("/metrics")[1])
    until(lambda: service.lines('"event":"database.down"', words), 5, service.tail)
    assert service.get("/livez")[0] == 200
    time.sleep(1)
    assert service.is_running


def test_an_older_schema_is_waited_for_where_the_role_may_not_change_it(roles: Roles, make_deployment: Make) -> None:
    deployment = make_deployment(database=roles.database)
    service = deployment.service(DATABASE_URL=roles.url("link")).start()
    refused = f"(role {roles.names['link']} has no right to change it); run identitybus migrate"
    behind(service, "there is no identity_link yet, this code wants it at ")
    assert refused in service.failed_checks()["database"]
    assert roles.migrate("--grant", roles.grant).returncode == 0
    service.wait_ready()
    assert service.stop() == 0

    # As if the code had one more.
    [(number,)] = roles.ask("SELECT max(number) FROM identity_link.migrations")
    [(before,)] = roles.ask(f"SELECT max(number) FROM identity_link.migrations WHERE number < {number}")
    roles.ask(f"CREATE TABLE kept AS SELECT * FROM identity_link.migrations WHERE number = {number}")
    roles.ask(f"DELETE FROM identity_link.migrations WHERE number = {number}")
    words = f"the schema is at {before}, this code wants {number}"
    service.start()
    behind(service, f"{words} {refused}")
    roles.ask("INSERT INTO identity_link.migrations SELECT * FROM kept")
    service.wait_ready()
    until(lambda: service.lines('"event":"database.up"'), 5, service.tail)
    assert service.stop() == 0


def test_an_owner_who_is_told_not_to_migrate_waits(roles: Roles, make_deployment: Make) -> None:
    deployment = make_deployment(database=roles.database)
    service = deployment.service(MIGRATE="never").start()
    behind(service, "there is no identity_link yet, this code wants it at ")
    assert roles.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'identity_link'") == [(0,)]
    assert roles.migrate("--service", "link").returncode == 0
    service.wait_ready()
    assert service.stop() == 0


# What it says


def test_a_dry_run_changes_nothing(roles: Roles) -> None:
    answer = roles.migrate("--dry-run", "--grant", roles.grant)
    assert answer.returncode == 0, answer
    assert re.search(r"^link {11}none -> (\d+) +1 shared tables   .*\1 ", answer.stdout, re.M), answer
    assert answer.stdout.endswith("Nothing was changed.\n") and "would grant" in answer.stdout, answer
    assert roles.ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'identity%'") == [(0,)]
    assert roles.migrate("--service", "sync").returncode == 0
    [(number,)] = roles.ask("SELECT max(number) FROM identity_sync.migrations")
    roles.ask(f"DELETE FROM identity_sync.migrations WHERE number = {number}")
    answer = roles.migrate("--dry-run", "--json")
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [line["service"] for line in lines] == list(SERVICES) and not any(line["changed"] for line in lines)
    [sync] = [line for line in lines if line["service"] == "sync"]
    assert sync["to"] == number and [one["number"] for one in sync["migrations"]] == [number], sync
    answer = roles.migrate("--dry-run", "--service", "sync")
    assert f"-> {number} " in answer.stdout and "Way back: only a back-up." in answer.stdout, answer


def test_who_may_not_is_told_what_lets_it(roles: Roles) -> None:
    link = roles.names["link"]
    answer = roles.migrate("--service", "link", url=roles.url("link"))
    assert answer.returncode == 77 and not answer.stdout, answer
    assert answer.stderr.startswith(f"identitybus: role {link} may not CREATE in database e2e_"), answer
    [sql] = re.findall(r"as a superuser: (GRANT CREATE ON DATABASE .*;)", answer.stderr)
    roles.ask(sql)
    assert roles.migrate("--service", "link", url=roles.url("link")).returncode == 0
    # Another one does not own what that one has made, and cannot give it away.
    user = roles.names["user"]
    roles.ask(f"GRANT USAGE ON SCHEMA identity_link TO {user}")
    roles.ask(f"GRANT SELECT ON identity_link.migrations TO {user}")
    answer = roles.migrate("--service", "link", "--grant", f"link={user}", url=roles.url("user"))
    assert answer.returncode == 77, answer
    assert f"Run this as {link}" in answer.stderr and f"GRANT USAGE ON SCHEMA identity_link TO {user};" in answer.stderr
    roles.ask("DELETE FROM identity_link.migrations WHERE number > 1")
    answer = roles.migrate("--service", "link", url=roles.url("user"))
    assert answer.returncode == 77 and f"does not own the tables of identity_link: {link} does." in answer.stderr, answer


@pytest.mark.parametrize("arguments, status, words", [
    (["--service", "lnik"], 64, "Did you mean link?"),
    (["--grant", "link"], 64, "does not name a service and its role"),
    (["--grant", "gateway=x"], 64, "none of link, user, sync, verification"),
    (["--grant", "link=nobody_at_all"], 3, "CREATE ROLE nobody_at_all LOGIN;"),
])
def test_a_wrong_word_is_named(roles: Roles, arguments: list[str], status: int, words: str) -> None:
    answer = roles.migrate(*arguments)
    assert answer.returncode == status and words in answer.stderr and not answer.stdout, answer
    assert roles.ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'identity%'") == [(0,)]


def test_a_database_that_takes_no_writes(roles: Roles) -> None:
    name = roles.database.url.rpartition("/")[2].partition("?")[0]
    roles.ask(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    answer = roles.migrate()
    assert answer.returncode == 77 and "takes no writes (read-only)" in answer.stderr, answer
    assert "Is it a standby" in answer.stderr and "Does PostgreSQL run there" not in answer.stderr, answer
    with psycopg.connect(
            roles.database.url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", [
    "ALTER TABLE identity_link.migrations DROP COLUMN checksum",
    "DELETE FROM identity_link.migrations WHERE number > 1",
    "ALTER TABLE identity_link.progress RENAME last_time TO elsewhere",
    "DROP TABLE identity_link.outbox",
])
def test_tables_that_somebody_has_changed(roles: Roles, sql: str) -> None:
    assert roles.migrate("--service", "link").returncode == 0
    roles.ask(sql)
    answer = roles.migrate("--service", "link")
    assert answer.returncode == 78 and not answer.stdout, answer
    assert "the store of link is not as its migrations have left it: " in answer.stderr, answer
    assert "In this store nothing was changed." in answer.stderr and "start its service" not in answer.stderr, answer


def test_a_store_that_somebody_has_locked_is_named(roles: Roles) -> None:
    assert roles.migrate("--service", "link").returncode == 0
    before = roles.ask("SELECT number, name FROM identity_link.migrations ORDER BY 1")
    with psycopg.connect(roles.database.url) as connection:
        connection.execute("LOCK TABLE identity_link.migrations IN ACCESS EXCLUSIVE MODE")
        answer = roles.migrate("--service", "link")
    assert answer.returncode == 69 and not answer.stdout, answer
    assert answer.stderr.startswith("identitybus: the store of link is locked by another session: "), answer
    assert "Wait for it, or end it: pg_locks and pg_stat_activity show which." in answer.stderr, answer
    again = roles.migrate("--service", "link")
    assert again.returncode == 0 and "nothing to do" in again.stdout, again
    assert roles.ask("SELECT number, name FROM identity_link.migrations ORDER BY 1") == before


def test_a_file_in_use_is_left_alone(make_deployment: Make) -> None:
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    data = deployment.database.environment()["DATA_DIR"]
    answer = tool("migrate", "--data-dir", data, environment={})
    assert answer.returncode == 64 and "Stop the link service first." in answer.stderr, answer
    deployment.services[-1].stop()
    answer = tool("migrate", "--data-dir", data, environment={})
    assert answer.returncode == 0 and re.fullmatch(r"link +\d+ = +nothing to do\n", answer.stdout), answer
    answer = tool("migrate", "--data-dir", data, "--grant", "link=x", environment={})
    assert answer.returncode == 64 and "DATABASE_URL is not set" in answer.stderr, answer
