# SPDX-License-Identifier: Apache-2.0
"""Services on a PostgreSQL that they know by its certificate (`sslmode=verify-full`, an authority of one's own), as
deploy/kubernetes/production sets it: they work, name a certificate that is not good, and take a password that changes."""

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgreSQL
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority
from identitybus_testkit.secrets import SECRET_PREFIX
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until
from test_changing_secrets import put
from test_doctor_postgresql import Server, authority, shows, store
from test_operate_injuries import END_SESSIONS, wait_until_over, wait_until_told

pytestmark = pytest.mark.slow

FIRST, SECOND = f"{SECRET_PREFIX}one", f"{SECRET_PREFIX}two"


class Strict:
    """A deployment whose service has a database, a role with a password, and only what a certificate vouches for."""

    def __init__(self, store: Server, authority: Authority, make_deployment: Callable[..., Deployment]) -> None:
        self.database: PostgreSQL = store.server.new_database()
        name = urlsplit(self.database.url).path[1:]
        self.port = urlsplit(self.database.url).port
        self.sql(f'ALTER DATABASE "{name}" OWNER TO doctored', f"ALTER ROLE doctored PASSWORD '{FIRST}'")
        self.deployment = make_deployment(database=self.database)
        self._name, self._authority = name, authority

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def url(self, host: str = "localhost", password: str = f":{FIRST}") -> str:
        return f"postgresql://doctored{password}@{host}:{self.port}/{self._name}?sslmode=verify-full"

    def service(self, **more: str) -> Service:
        trusted = {"PGSSLROOTCERT": str(self._authority.certificate), "DATABASE_URL": self.url()}
        return self.deployment.service(**trusted | more)

    def register(self) -> None:
        assert self.deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"


@pytest.fixture
def strict(store: Server, authority: Authority, make_deployment: Callable[..., Deployment]) -> Strict:
    return Strict(store, authority, make_deployment)


def test_a_certificate_that_is_for_another_host_is_named(strict: Strict, store: Server, authority: Authority) -> None:
    """While it runs: then the server has its own again, and the service goes on by itself."""
    service = strict.service().start().wait_ready()
    strict.register()
    [(sessions, are_encrypted)] = strict.sql("""
        SELECT count(*), bool_and(ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE datname = current_database() AND application_name = 'identitybus'""")
    assert sessions and are_encrypted
    words = 'does not match host name "localhost"'
    shows(store, *authority.issue("db.example"))
    try:
        strict.sql(END_SESSIONS)
        began = time.monotonic()
        wait_until_told(service, "database", f"PostgreSQL at localhost:{strict.port}", f"{words}|terminating connection")
        until(lambda: words in service.failed_checks().get("database", ""), 30, service.tail)
        assert time.monotonic() - began < 30, "by the clock on the wall"
    finally:
        shows(store, *authority.issue("localhost"))
    wait_until_over(strict.deployment, service, "database")
    assert service.stop() == 0


@pytest.mark.parametrize("case", ["wrong host name", "unknown CA"])
def test_a_server_that_is_not_trusted_is_named_at_the_start(case: str, strict: Strict, tmp_path: Path) -> None:
    host, words, settings = {
        "wrong host name": (
            "127.0.0.1", 'does not match host name "127.0.0.1"',
            {"DATABASE_URL": strict.url("127.0.0.1")}),
        "unknown CA": (
            "localhost", "certificate verify failed",
            {"PGSSLROOTCERT": str(Authority(tmp_path / "stranger").certificate)})}[case]
    service = strict.service(**settings)
    began = time.monotonic()
    service.start()
    wait_until_told(service, "database", f"PostgreSQL at {host}:{strict.port}", words, starts=True)
    assert time.monotonic() - began < 30, "by the clock on the wall"
    print(f"\n{case}: {service.failed_checks()['database']}")
    assert service.stop() == 0


@pytest.mark.parametrize("by", ["DATABASE_URL_FILE", "PGPASSFILE"])
def test_the_next_session_has_the_password_of_now(by: str, strict: Strict, tmp_path: Path) -> None:
    file = tmp_path / "password"

    def write(password: str) -> None:
        # libpq reads no file of passwords that others may read.
        file.with_suffix(".new").touch(0o600)
        put(file, strict.url(password=f":{password}") if by == "DATABASE_URL_FILE" else f"localhost:*:*:doctored:{password}\n")

    write(FIRST)
    address = {"DATABASE_URL": "" if by == "DATABASE_URL_FILE" else strict.url(password="")}
    service = strict.service(**address, **{by: str(file)}).start().wait_ready()
    process = service.process.pid
    strict.register()
    strict.sql(f"ALTER ROLE doctored PASSWORD '{SECOND}'")
    write(SECOND)
    assert strict.sql(END_SESSIONS)
    strict.register()
    service.wait_ready()
    assert service.process.pid == process and service.stop() == 0
