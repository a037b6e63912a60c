# SPDX-License-Identifier: Apache-2.0
"""`identitybus doctor` on PostgreSQL: how the server lets us in, rights, schemas, room, clocks, and a pooler in between
(docs/command-line.md, "doctor")."""

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest

from identitybus_testkit.databases import PostgreSQL, PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import Report, doctor, is_defect, is_sound, late_clock, rows
from identitybus_testkit.fakes import Authority, FakeBroker, silent
from identitybus_testkit.ports import free_port
from identitybus_testkit.secrets import DATABASE_PASSWORD, SECRET_PREFIX
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until
from test_doctor import in_days

RIGHT = f"{SECRET_PREFIX}right"


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")


class Server(NamedTuple):
    server: PostgresServer
    place: str
    name: str
    url: str
    environment: dict[str, str]

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def as_role(
        self, role: str, query: str = "", host: str = "127.0.0.1", password: str = RIGHT
    ) -> dict[str, str]:
        port = self.place.split(":")[1]
        return self.environment | {"DATABASE_URL": f"postgresql://{role}:{password}@{host}:{port}/{self.name}{query}"}


@pytest.fixture(scope="module")
def store(
    directory: Path, authority: Authority, make_deployment: Callable[..., Deployment]
) -> Iterator[Server]:
    """A server that speaks TLS and asks `doctored` for a password; who may do there what a service needs, and no more."""
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    database = server.new_database()
    link = make_deployment(database=database)
    link.service().start().wait_ready()
    assert link.services[0].stop() == 0
    place = f"127.0.0.1:{urlsplit(database.url).port}"
    store = Server(server, place, urlsplit(database.url).path[1:], database.url, link.environment())
    access = server._data / "pg_hba.conf"
    access.write_text("""
hostssl all ciphered 127.0.0.1/32 scram-sha-256
host all ciphered 127.0.0.1/32 reject
hostssl all certified 127.0.0.1/32 scram-sha-256 clientcert=verify-full
hostssl all named 127.0.0.1/32 cert
host all doctored 127.0.0.1/32 scram-sha-256
host all unlisted 127.0.0.1/32 reject
""" + access.read_text())
    shutil.copy(authority.certificate, server._data / "clients.crt")
    (server._data / "clients.crt").chmod(0o644)
    store.sql("ALTER SYSTEM SET ssl_ca_file TO 'clients.crt'")
    for role in ("doctored", "ciphered", "certified", "named", "unlisted"):
        store.sql(
            f"CREATE ROLE {role} LOGIN PASSWORD '{RIGHT}'", f"GRANT USAGE ON SCHEMA identity_link TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA identity_link TO {role}")
    shows(store, *authority.issue("localhost"))
    yield store
    server.close()


def shows(store: Server, certificate: Path, key: Path) -> None:
    """From now on the server has this certificate."""
    for file, name in ((certificate, "server.crt"), (key, "server.key")):
        shutil.copy(file, store.server._data / name)
        shutil.chown(store.server._data / name, (store.server._data / "PG_VERSION").owner())
        (store.server._data / name).chmod(0o600)
    store.sql("ALTER SYSTEM SET ssl TO on", "SELECT pg_reload_conf()")
    serial = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-serial"], capture_output=True, text=True, check=True).stdout
    look = f"openssl s_client -starttls postgres -connect {store.place} </dev/null 2>/dev/null | openssl x509 -noout -serial"
    until(lambda: subprocess.run(look, shell=True, capture_output=True, text=True).stdout == serial, 20, "the certificate")


def test_doctor_of_a_sound_postgresql(store: Server, authority: Authority) -> None:
    before = rows(store.url)
    environment = store.as_role("doctored", "?sslmode=verify-full", "localhost") | {
        "PGSSLROOTCERT": str(authority.certificate)}
    report = doctor(environment, "--as", "link")
    is_sound(report)
    assert {f"postgresql.{name}" for name in (
        "reachable", "tls", "certificate", "sign-in", "version", "writes", "schema", "rights", "room", "clock")
            } <= report.ids("ok"), report.text
    assert re.match(r"TLSv1\.\d \(verify-full\)", report.of("postgresql.tls")["message"])
    assert re.search("localhost, [0-9]+ days left, issued by authority", report.of("postgresql.certificate")["message"])
    assert rows(store.url) == before


def test_doctor_of_a_postgresql_that_is_not_reached(store: Server) -> None:
    def look(place: str) -> Report:
        url = f"postgresql://u@{place}/x?connect_timeout=2"
        return doctor(store.environment | {"DATABASE_URL": url}, "--as", "link")

    is_defect(look("nosuch.invalid"), "postgresql.reachable", "name-not-resolved", "nosuch.invalid:5432")
    report = look(f"127.0.0.1:{free_port()}")
    is_defect(report, "postgresql.reachable", "refused", "connection refused")
    assert {"postgresql.schema", "postgresql.rights", "postgresql.writes"} <= report.ids("skip"), report.text
    fake = FakeBroker(silent)
    is_defect(look(fake.servers), "postgresql.reachable", "timed-out", "no answer")
    fake.close()


def test_doctor_of_a_postgresql_that_does_not_let_us_in(store: Server) -> None:
    # By a server that takes anybody, and by one that takes this user only over TLS: what libpq says last is of TLS then.
    for role, query in (("doctored", ""), ("ciphered", ""), ("ciphered", "?sslmode=allow"), ("ciphered", "?sslmode=require")):
        report = doctor(store.as_role(role, query, password=f"{SECRET_PREFIX}wrong"), "--as", "link")
        is_defect(report, "postgresql.sign-in", "wrong-credentials", f'password authentication failed for user "{role}"$')
    report = doctor(store.as_role("ciphered", "?sslmode=disable"), "--as", "link")
    is_defect(report, "postgresql.tls", "wants-tls", "no encryption")
    assert "pg_hba.conf" in report.of("postgresql.tls")["fix"], report.text
    is_sound(doctor(store.as_role("ciphered"), "--as", "link"))
    for variable, value in (("PGTZ", "Nowhere/X"), ("PGOPTIONS", "-c nix=1"), ("PGCHANNELBINDING", "require")):
        report = doctor(store.as_role("doctored", "?sslmode=disable") | {variable: value}, "--as", "link")
        is_defect(report, "postgresql.reachable", "parameter-refused")
        assert variable in report.of("postgresql.reachable")["fix"], report.text
    nowhere = store.as_role("doctored")
    nowhere["DATABASE_URL"] = nowhere["DATABASE_URL"].replace(store.name, "nosuch")
    is_defect(doctor(nowhere, "--as", "link"), "postgresql.sign-in", "no-database", "does not exist")


def test_doctor_of_a_postgresql_where_a_role_may_not_sign_in(store: Server) -> None:
    """With and without TLS: so it is no question of TLS, and the password may be right."""
    def look(role: str, fix: str, query: str = "") -> None:
        report = doctor(store.as_role(role, query), "--as", "link")
        is_defect(report, "postgresql.sign-in", "no-right")
        assert fix in report.of("postgresql.sign-in")["fix"], report.text

    for query in ("", "?sslmode=require"):
        look("unlisted", "pg_hba.conf", query)
    store.sql("ALTER ROLE doctored NOLOGIN")
    look("doctored", "ALTER ROLE … LOGIN")
    store.sql("ALTER ROLE doctored LOGIN", f'REVOKE CONNECT ON DATABASE "{store.name}" FROM PUBLIC')
    look("doctored", "GRANT CONNECT")
    other = store.server.new_database().url
    admin = Server(store.server, store.place, "", other, {})
    admin.sql(f'GRANT CONNECT ON DATABASE "{store.name}" TO PUBLIC', f'ALTER DATABASE "{store.name}" ALLOW_CONNECTIONS false')
    try:
        look("doctored", "ALLOW_CONNECTIONS true")
    finally:
        admin.sql(f'ALTER DATABASE "{store.name}" ALLOW_CONNECTIONS true')


def test_doctor_of_certificates_of_postgresql(store: Server, authority: Authority, directory: Path) -> None:
    def look(host: str, ca: Authority) -> Report:
        environment = store.as_role("doctored", "?sslmode=verify-full", host) | {"PGSSLROOTCERT": str(ca.certificate)}
        return doctor(environment, "--as", "link")

    id = "postgresql.certificate"
    is_defect(look("127.0.0.1", authority), id, "wrong-host-name", "does not match host name")
    other = Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")
    is_defect(look("localhost", other), id, "unknown-ca", "its issuer is authority of the tests")
    shows(store, *authority.issue("localhost", ends="190201000000Z"))
    try:
        is_defect(look("localhost", authority), id, "certificate-expired", "from 2019-01-01 to 2019-02-01")
        report = doctor(store.as_role("doctored", "?sslmode=require", "localhost"), "--as", "link")
        is_sound(report)
        assert re.search("localhost, ended [0-9]+ days ago, issued by .*: ended on 2019-02-01", report.of(id)["message"]), report.text
        for days, level in ((15.5, "ok"), (13.5, "warn")):
            shows(store, *authority.issue("localhost", ends=in_days(days)))
            report = look("localhost", authority)
            is_sound(report)
            told = report.of(id)
            assert told["level"] == level and f"localhost, {int(days)} days left" in told["message"], report.text
    finally:
        shows(store, *authority.issue("localhost"))
    missing = store.as_role("doctored", "?sslmode=verify-full", "localhost")
    is_defect(doctor(missing, "--as", "link"), id, "no-ca-file", "root certificate file")


def test_doctor_of_our_certificate_for_postgresql(store: Server, authority: Authority, directory: Path) -> None:
    def look(certificate: tuple[Path, Path] | None, role: str = "certified") -> Report:
        environment = store.as_role(role, "?sslmode=verify-full", "localhost") | {
            "PGSSLROOTCERT": str(authority.certificate)}
        if certificate:
            environment |= {"PGSSLCERT": str(certificate[0]), "PGSSLKEY": str(certificate[1])}
        return doctor(environment, "--as", "link")

    other = Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")
    for certificate, role in (
        (None, "certified"), (other.issue("certified"), "certified"), (authority.issue("somebody.else"), "named")):
        is_defect(look(certificate, role), "postgresql.certificate", "client-certificate")
    over = authority.issue("certified", ends="190201000000Z")
    is_defect(look(over), "postgresql.certificate", "client-certificate", r"The one of .*\.pem ended on 2019-02-01")
    for days, level in ((15.5, "ok"), (13.5, "warn")):
        ends = authority.issue("certified", ends=in_days(days))
        report = look(ends)
        is_sound(report)
        told = [one for one in report.findings if one["id"] == "postgresql.certificate" and one["subject"] == str(ends[0])]
        assert [one["level"] for one in told] == [level], report.text
        assert f"certified, {int(days)} days left" in told[0]["message"], report.text
    is_sound(look(authority.issue("certified")))


def test_doctor_of_room_in_postgresql(store: Server) -> None:
    """What this role may open: the sessions of others are seen too, and what is kept for others is not counted."""
    def look(**more: str) -> Report:
        return doctor(store.as_role("doctored") | {"LOOPS": "2"} | more, "--as", "link")

    def room(report: Report) -> tuple[str, str | None, str]:
        finding = report.of("postgresql.room")
        return finding["level"], finding.get("cause"), finding["message"]

    with psycopg.connect(store.url) as connection:
        most = int(connection.execute("SHOW max_connections").fetchone()[0])  # type: ignore[index]
        kept = int(connection.execute("SHOW superuser_reserved_connections").fetchone()[0])  # type: ignore[index]
        level, cause, words = room(look())
        free, of = map(int, re.match("([0-9]+) of ([0-9]+) connections of the server", words).groups())  # type: ignore[union-attr]
        # The one that is open here is a superuser's.
        assert level == "ok" and cause is None and of == most - kept and free <= of - 1, words
        own = doctor(store.environment, "--as", "link").of("postgresql.room")["message"]
        assert f" of {most} connections of the server" in own
    wide = doctor(store.environment | {"LOOPS": "64"})
    # The embedded broker has the link service's topics alone.
    assert wide.ids("fail") <= {"kafka.topics"}, wide.text
    assert room(wide)[:2] == ("warn", "server-limit") and room(wide)[2].endswith("4 services with LOOPS=64: 256 more")
    link = "the link service"
    store.sql("ALTER ROLE doctored CONNECTION LIMIT 2")
    assert room(look())[0] == "ok" and f"2 of 2 connections of role doctored are free; wanted by {link}" in room(look())[2]
    store.sql("ALTER ROLE doctored CONNECTION LIMIT 1")
    report = look()
    is_sound(report)
    assert room(report) == (
        "warn", "role-limit", "1 of 1 connections of role doctored are free; wanted by the link service with LOOPS=2: 2 more")
    assert report.of("postgresql.schema")["level"] == "ok"
    url = store.as_role("doctored")["DATABASE_URL"]
    with psycopg.connect(url):
        is_defect(look(), "postgresql.room", "too-many-connections", "too many connections for role")
    store.sql("ALTER ROLE doctored CONNECTION LIMIT -1", f'ALTER DATABASE "{store.name}" CONNECTION LIMIT 1')
    report = look()
    is_sound(report)
    assert room(report)[:2] == ("warn", "database-limit")
    store.sql(f'ALTER DATABASE "{store.name}" CONNECTION LIMIT -1')


def test_doctor_of_room_beside_a_service(make_deployment: Callable[..., Deployment]) -> None:
    """A service that runs has its connections already."""
    link = make_deployment("postgresql")
    environment = link.environment() | {"LOOPS": "2"}
    assert doctor(environment, "--as", "link").of("postgresql.room")["message"].endswith("LOOPS=2: 2 more")
    link.service(LOOPS="2").start().wait_ready()
    assert doctor(environment, "--as", "link").of("postgresql.room")["message"].endswith("LOOPS=2: no more")


@contextmanager
def pooler(store: Server, folder: Path, mode: str) -> Iterator[str]:
    """The environment's DATABASE_URL leads through PgBouncer."""
    folder.mkdir()
    folder.chmod(0o755)
    port = free_port()
    users = ("postgres", "e2e_link")  # the second one with TEST_DATABASE_ROLES=least
    (folder / "users").write_text("".join(f'"{user}" "{DATABASE_PASSWORD}"\n' for user in users))
    (folder / "pgbouncer.ini").write_text(f"""
[databases]
* = host=127.0.0.1 port={store.place.split(":")[1]}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
""")
    owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    process = subprocess.Popen([*owner, shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin") or "", "-q",
                                folder / "pgbouncer.ini"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql://postgres@127.0.0.1:{port}/{store.name}"
    try:
        def answers() -> bool:
            try:
                psycopg.connect(url).close()
                return True
            except psycopg.OperationalError:
                return False
        until(answers, 20, "the pooler")
        yield url
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.skipif(
    shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="PgBouncer is not installed")
@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_doctor_of_a_pooler(
    mode: str, store: Server, directory: Path, make_deployment: Callable[..., Deployment]
) -> None:
    with pooler(store, directory / f"pooler-{uuid.uuid4().hex[:8]}", mode) as url:
        report = doctor(store.environment | {"DATABASE_URL": url}, "--as", "link")
        link = make_deployment(database=PostgreSQL(url))
        service = link.service().start()
        if mode == "session":
            is_sound(report)
            service.wait_ready()
            assert service.stop() == 0
            return
        before = rows(store.url)
        is_defect(report, "postgresql.session", "transaction-pooler", "a connection pooler in transaction mode is in between")
        assert {"postgresql.schema", "postgresql.rights"} <= report.ids("skip"), report.text
        assert service.wait(30) == 78
        migrated = tool("migrate", environment=store.environment | {"DATABASE_URL": url})
        assert migrated.returncode == 78 and "a connection pooler in transaction mode" in migrated.stderr, migrated
        assert "DATABASE_URL: a connection pooler in transaction mode is in between" in service.text
        assert rows(store.url) == before


def test_doctor_of_rights_and_schemas_of_postgresql(store: Server) -> None:
    def look(**more: str) -> Report:
        return doctor(store.as_role("doctored") | more, "--as", "link")

    store.sql("REVOKE UPDATE, TRUNCATE ON identity_link.outbox FROM doctored")
    is_defect(look(), "postgresql.rights", "no-right", "doctored lacks UPDATE, TRUNCATE on identity_link.outbox")
    store.sql("GRANT UPDATE, TRUNCATE ON identity_link.outbox TO doctored",
              f'ALTER DATABASE "{store.name}" SET default_transaction_read_only TO on')
    is_defect(look(), "postgresql.writes", "read-only", "takes no writes")
    store.sql(f'ALTER DATABASE "{store.name}" RESET default_transaction_read_only',
              "UPDATE identity_link.migrations SET number = 999 WHERE number = 100")
    is_defect(look(), "postgresql.schema", "other-version", "newer than this code")
    store.sql("UPDATE identity_link.migrations SET number = 100 WHERE number = 999",
              "CREATE TABLE kept AS SELECT * FROM identity_link.migrations WHERE number >= 100",
              "DELETE FROM identity_link.migrations WHERE number >= 100")
    is_defect(look(), "postgresql.schema", "older", "is at migration 1, this code wants 10[0-9]; doctored has no right")
    assert "identitybus migrate" in look().of("postgresql.schema")["fix"]
    store.sql("INSERT INTO identity_link.migrations SELECT * FROM kept", "DROP TABLE kept",
              "ALTER TABLE identity_link.outbox RENAME TO elsewhere")
    is_defect(look(), "postgresql.schema", "table-missing", "identity_link.outbox is missing")
    store.sql("ALTER TABLE identity_link.elsewhere RENAME TO outbox",
              "ALTER TABLE identity_link.migrations RENAME TO elsewhere")
    is_defect(look(), "postgresql.schema", "table-missing", "identity_link.migrations is missing")
    store.sql("ALTER TABLE identity_link.elsewhere RENAME TO migrations",
              "ALTER TABLE identity_link.migrations RENAME checksum TO elsewhere")
    is_defect(look(), "postgresql.schema", "unreadable", "identity_link is not as its migrations have made it")
    store.sql("ALTER TABLE identity_link.migrations RENAME elsewhere TO checksum",
              "ALTER TABLE identity_link.progress RENAME last_time TO elsewhere")
    is_defect(look(), "postgresql.schema", "unreadable",
              "identity_link is not as its migrations have made it: progress has no column last_time")
    store.sql("ALTER TABLE identity_link.progress RENAME elsewhere TO last_time")
    is_defect(look(DATABASE_SCHEMA_PREFIX="other_"), "postgresql.schema", "missing", "other_link is not there yet")
    # Who may make it needs nobody else.
    owner = doctor(store.environment | {"DATABASE_SCHEMA_PREFIX": "other_"}, "--as", "link")
    is_sound(owner)
    assert "postgresql.schema" in owner.ids("warn")
    is_defect(doctor(store.environment | {"DATABASE_SCHEMA_PREFIX": "other_", "MIGRATE": "never"}, "--as", "link"),
              "postgresql.schema", "missing", "MIGRATE=never")
    with psycopg.connect(store.url) as other:
        other.execute("LOCK TABLE identity_link.outbox IN ACCESS EXCLUSIVE MODE")
        is_defect(look(), "postgresql.writes", "lock", "keeps a lock on identity_link.outbox")
    with psycopg.connect(store.url) as other:
        other.execute("LOCK TABLE identity_link.migrations IN ACCESS EXCLUSIVE MODE")
        is_defect(look(), "postgresql.writes", "lock", "somebody keeps a lock on a table of identity_link")
    is_sound(look())


@pytest.fixture(scope="module")
def late(directory: Path) -> Path:
    return late_clock(directory)


def test_doctor_of_a_wrong_clock(store: Server, late: Path) -> None:
    report = doctor(store.as_role("doctored") | {"LD_PRELOAD": str(late)}, "--as", "link")
    is_defect(report, "postgresql.clock", None, r"the server is (59|60)\.\d s ahead of us")
