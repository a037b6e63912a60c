# SPDX-License-Identifier: Apache-2.0
"""rehearsals.md, "Rotation of every key", under load: an API key, a verification key, the database password and the gateway's
certificate are changed one after the other, and of those who ask over HTTP meanwhile nobody is refused. The internal key:
`test_key_rotation.py`. Kafka's password and token: `test_kafka_sign_in.py`."""

import http.client
import os
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from identitybus_testkit import apps
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.crowd import Balancer, Crowd, Request, asked_with
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.fakes import Authority
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.ports import free_port
from identitybus_testkit.secrets import SECRET_PREFIX
from identitybus_testkit.verification import token
from identitybus_testkit.waiting import until
from test_changing_secrets import put
from test_operate_injuries import END_SESSIONS
from test_rehearsals import write_apps

pytestmark = [
    pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif("E2E_CHANGE_RATE" not in os.environ, reason="takes a minute: E2E_CHANGE_RATE gives a rate")]

RATE = float(os.environ.get("E2E_CHANGE_RATE") or 40)
PASSWORDS = f"{SECRET_PREFIX}one", f"{SECRET_PREFIX}two"


class Busy:
    """One of each program, the services on PostgreSQL as a role with a password, the gateway with TLS; and what is asked."""

    def __init__(self, deployment: GatewayDeployment, folder: Path) -> None:
        self.deployment = deployment
        self.key, self.code = "demo-backend", "k1"
        write_apps(deployment)
        self.authority = Authority(folder / "authority")
        self.context = ssl.create_default_context(cafile=self.authority.certificate)
        self._certificate = folder / "certificate.pem", folder / "key.pem"
        self.show(*self.authority.issue("127.0.0.1", ends="400101000000Z"))
        self._url = folder / "database-url"
        self.set_password(PASSWORDS[0])
        services = [deployment.process(name, DATABASE_URL="", DATABASE_URL_FILE=str(self._url)) for name in SERVICES]
        self.gateway = deployment.gateway(
            GATEWAY_PORT=str(free_port()), HTTP_PORT=str(free_port()),
            GATEWAY_TLS_CERTIFICATE=str(self._certificate[0]), GATEWAY_TLS_KEY=str(self._certificate[1]))
        self.processes = [process.start() for process in (*services, self.gateway)]
        for process in self.processes:
            process.wait_ready()

    def show(self, certificate: Path, key: Path) -> None:
        for source, file in zip((certificate, key), self._certificate):
            put(file, source.read_text())

    def set_password(self, password: str) -> None:
        parts = urlsplit(self.deployment.database.url)  # type: ignore[attr-defined]
        put(self._url, f"postgresql://changing:{password}@127.0.0.1:{parts.port}{parts.path}\n")

    def sql(self, *statements: str) -> int:
        """- Returns: of how many rows the last one has told."""
        with psycopg.connect(self.deployment.database.url, autocommit=True) as connection:  # type: ignore[attr-defined]
            return [connection.execute(statement).rowcount for statement in statements][-1]  # type: ignore[arg-type]

    def make(self, number: int) -> Request:
        """Every other one comes by a connection of its own."""
        match number % 3:
            case 0:
                request = asked_with(self.key, "code", "/users/auth-code", external_id=fresh("ext"))
            case 1:
                name = fresh("user")
                request = asked_with(
                    "enforced-sdk", "verified", "/v1/verification/login", deviceId=fresh("device"), userId=name,
                    userAuthToken=token(name, self.code))
            case _:
                request = asked_with(
                    "demo-sdk", "creation", "/sdk/v1/users", installId=fresh("install"), device=PHONE,
                    appSecret=apps.APP_SECRET, linking="none")
        if number % 2:
            request.headers["Connection"] = "close"
        return request

    # Asked beside the others, and now and then refused

    def status(self, key: str = "demo-backend", code: str = "k1") -> tuple[int, int]:
        """For whoever shows this API key, and for whom this verification key has vouched."""
        return self.ask(asked_with(key, "code", "/users/auth-code", external_id=fresh("ext"))), self.ask(
            asked_with("enforced-sdk", "verified", "/v1/verification/login", deviceId=fresh("device"), userId="ada",
                       userAuthToken=token("ada", code)))

    def ask(self, request: Request) -> int:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", int(self.gateway.environment["GATEWAY_PORT"]), timeout=60, context=self.context)
        head, _, body = request.bytes().partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
        connection.request("POST", request.path, body, {name: value for name, value in lines if name != "Host"})
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture
def busy(directory: Path, tmp_path: Path, make_deployment: Callable[..., GatewayDeployment]) -> Iterator[Busy]:
    server = PostgresServer.throwaway(directory / f"postgres-{fresh('changing')}")
    try:
        hba = server._data / "pg_hba.conf"
        hba.write_text("host all changing 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
        database = server.new_database()
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE changing LOGIN PASSWORD '{PASSWORDS[0]}'")  # type: ignore[arg-type]
            connection.execute(
                f'ALTER DATABASE "{urlsplit(database.url).path[1:]}" OWNER TO changing')  # type: ignore[arg-type]
            connection.execute("SELECT pg_reload_conf()")
        yield Busy(make_deployment(database=database, services=SERVICES, kind=GatewayDeployment), tmp_path)
    finally:
        server.close()


def test_secrets_are_changed_under_load(busy: Busy) -> None:
    deployment, pids = busy.deployment, [process.process.pid for process in busy.processes]
    balancer = Balancer([busy.gateway], busy.context)
    crowd = Crowd(balancer, busy.make, RATE, int(RATE)).start()
    took: dict[str, float] = {}

    def change(name: str, steps: Callable[[], None]) -> None:
        crowd.wait(int(RATE))
        began = time.monotonic()
        steps()
        took[name] = round(time.monotonic() - began, 1)

    def api_key() -> None:
        old, new = apps.key("demo-backend", "user.link"), apps.key("demo-backend-2", "user.link")
        assert busy.status() == (200, 200) and busy.status("demo-backend-2")[0] == 401
        write_apps(deployment, old, new)
        until(lambda: busy.status("demo-backend-2")[0] == 200, 20, busy.gateway.tail, 0.2)
        busy.key = "demo-backend-2"
        crowd.wait(int(2 * RATE))
        write_apps(deployment, new)
        until(lambda: busy.status()[0] == 401, 20, busy.gateway.tail, 0.2)

    def verification_key() -> None:
        new = apps.key("demo-backend-2", "user.link")
        write_apps(deployment, new, codes=("k1", "k2"))
        until(lambda: busy.status(busy.key, "k2")[1] == 200, 20, busy.gateway.tail, 0.2)
        busy.code = "k2"
        crowd.wait(int(2 * RATE))
        write_apps(deployment, new, codes=("k2",))
        until(lambda: busy.status(busy.key, "k1")[1] != 200, 20, busy.gateway.tail, 0.2)

    def database_password() -> None:
        busy.sql(f"ALTER ROLE changing PASSWORD '{PASSWORDS[1]}'")
        busy.set_password(PASSWORDS[1])
        assert busy.sql(END_SESSIONS) >= len(SERVICES)
        crowd.wait(int(2 * RATE))

    def certificate() -> None:
        def ends() -> float:
            return busy.gateway.metric("gateway_tls_certificate_expires_timestamp_seconds")

        before = ends()
        busy.show(*busy.authority.issue("127.0.0.1", ends="410101000000Z"))
        until(lambda: ends() > before, 20, busy.gateway.tail, 0.2)
        crowd.wait(int(2 * RATE))

    try:
        for steps in (api_key, verification_key, database_password, certificate):
            change(steps.__name__, steps)
        crowd.wait(int(RATE))
    finally:
        crowd.finish()
        balancer.close()
    print(f"\n{crowd}; {took}")
    assert set(crowd.statuses) == {"200"}, crowd
    assert {(one.kind, one.told[0]) for one in crowd.done if one.told} == {
        (kind, 200) for kind in ("code", "verified", "creation")}, crowd
    assert [process.process.pid for process in busy.processes] == pids
    for process in busy.processes:
        assert process.stop() == 0
