# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Passwords, tokens and certificates that change": a process that runs takes what a mounted file holds
now."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import tells_no_secret
from identitybus_testkit.fakes import Authority, FakeBroker, Refusing
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import bearer
from identitybus_testkit.kafka import unsigned
from identitybus_testkit.secrets import SECRET_PREFIX, kafka_password
from identitybus_testkit.service import Service
from identitybus_testkit.standin import StandIn, succeeded
from identitybus_testkit.waiting import until

SASL = {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_USERNAME": "link", "KAFKA_SASL_PASSWORD": ""}
PATH = "/v2/users/an-install/link"


def put(path: Path, text: str) -> None:
    """As what mounts secrets does: another file takes the name."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


def events(service: Service, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in service.lines(f'"{name}"')]


# Kafka. What answers lets nobody in, and keeps what was tried.


def test_the_next_connection_signs_in_with_the_password_of_now(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment()
    password = deployment.directory / "kafka-password"
    first, second = kafka_password(), kafka_password()
    put(password, f"{first}\n")
    door = Refusing(["PLAIN"])
    fake = FakeBroker(door)
    service = deployment.service(
        KAFKA_BOOTSTRAP_SERVERS=fake.servers, **SASL, KAFKA_SASL_MECHANISM="PLAIN",
        KAFKA_SASL_PASSWORD_FILE=str(password)).start()
    try:
        until(lambda: f"\0link\0{first}".encode() in door.attempts, 20, lambda: f"{door.attempts}\n{service.tail()}")
        put(password, f"{second}\n")
        until(lambda: f"\0link\0{second}".encode() in door.attempts, 20, lambda: f"{door.attempts}\n{service.tail()}")
        until(lambda: events(service, "kafka.password-changed"), 5, service.tail)
        # The next that is put there is as good; one that is gone leaves the one before.
        password.unlink()
        until(lambda: events(service, "kafka.password-unreadable"), 20, service.tail)
        tried = len(door.attempts)
        until(lambda: len(door.attempts) > tried + 1, 20, "another attempt")
        assert door.attempts[-1] == f"\0link\0{second}".encode()
        tells_no_secret(service)
        assert "refuses the user name or the password" in service.failed_checks()["broker"]
        assert service.stop() == 0
    finally:
        fake.close()


def test_a_client_that_is_made_later_signs_in_with_the_password_of_then(make_deployment: Callable[..., Deployment]) -> None:
    """A gateway makes itself a consumer each time that Kafka lets it have none."""
    deployment = make_deployment(kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    password = deployment.directory / "kafka-password"
    first, second = kafka_password(), kafka_password()
    put(password, first)
    door = Refusing(["PLAIN"])
    fake = FakeBroker(door)
    gateway = deployment.gateway(
        KAFKA_BOOTSTRAP_SERVERS=fake.servers, **SASL, KAFKA_SASL_MECHANISM="PLAIN",
        KAFKA_SASL_PASSWORD_FILE=str(password)).start()
    try:
        until(lambda: f"\0link\0{first}".encode() in door.attempts, 20, gateway.tail)
        put(password, second)
        until(lambda: events(gateway, "kafka.password-changed"), 20, gateway.tail)
        time.sleep(3)
        tried = len(door.attempts)
        time.sleep(20)
        later = door.attempts[tried:]
        assert len(later) > 3 and set(later) == {f"\0link\0{second}".encode()}, later
        # Written once more with what it held, which is no change.
        put(password, f"{second}\n")
        time.sleep(3)
        assert len(events(gateway, "kafka.password-changed")) == 1
    finally:
        gateway.kill()
        fake.close()


def test_a_token_is_read_before_the_one_before_ends(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment()
    file = deployment.directory / "kafka-token"
    file.touch()
    door = Refusing(["OAUTHBEARER"])
    fake = FakeBroker(door)
    service = deployment.service(
        KAFKA_BOOTSTRAP_SERVERS=fake.servers, **SASL, KAFKA_SASL_MECHANISM="OAUTHBEARER",
        KAFKA_OAUTHBEARER_TOKEN_FILE=str(file)).start()

    def tried(token: str) -> bool:
        return any(f"auth=Bearer {token}".encode() in attempt for attempt in door.attempts)

    try:
        # It may come later than the service, into a file that is there.
        until(lambda: "there is no token to sign in with" in service.failed_checks().get("broker", ""), 20, service.tail)
        assert f"{file} is empty" in service.failed_checks()["broker"] and not door.attempts
        first, second = unsigned("first", 15), unsigned("second", 3600)
        put(file, first)
        until(lambda: tried(first), 25, lambda: f"{service.failed_checks()}\n{service.tail()}")
        put(file, second)
        until(lambda: tried(second), 25, lambda: f"{len(door.attempts)} attempts\n{service.tail()}")
        tells_no_secret(service)
        assert service.stop() == 0
    finally:
        fake.close()


# PostgreSQL


def test_the_next_session_has_the_url_of_now(
    directory: Path, make_deployment: Callable[..., Deployment]
) -> None:
    server = PostgresServer.throwaway(directory / f"postgres-{fresh('changing')}")
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE changing LOGIN PASSWORD '{SECRET_PREFIX}one'")  # type: ignore[arg-type]
            hba = server._data / "pg_hba.conf"
            hba.write_text("host all changing 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
            connection.execute("SELECT pg_reload_conf()")
        database = server.new_database()
        parts = urlsplit(database.url)
        deployment = make_deployment(database=database)
        file = deployment.directory / "database-url"

        def url(password: str) -> str:
            return f"postgresql://changing:{SECRET_PREFIX}{password}@127.0.0.1:{parts.port}{parts.path}\n"

        put(file, url("one"))
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{parts.path[1:]}" OWNER TO changing')  # type: ignore[arg-type]
            service = deployment.service(DATABASE_URL="", DATABASE_URL_FILE=str(file)).start().wait_ready()
            connection.execute(f"ALTER ROLE changing PASSWORD '{SECRET_PREFIX}two'")  # type: ignore[arg-type]
            put(file, url("two"))
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'identitybus' "
                "AND datname = current_database()").fetchall()
            assert ended
            assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
            # What cannot be used leaves what was there before.
            put(file, "not a URL")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'identitybus' "
                "AND datname = current_database()")
            assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
            until(lambda: events(service, "database.url-unreadable"), 5, service.tail)
            assert "not a URL" not in service.text and service.stop() == 0
    finally:
        server.close()


# The gateway


@pytest.fixture(scope="module")
def service(gateway_deployment: GatewayDeployment) -> StandIn:
    def answer(command: dict[str, object]) -> list[dict[str, object]]:
        return [succeeded({"userId": "0" * 24, "installId": "an-install", "isActive": True, "personCreated": True})]

    return gateway_deployment.stand_in("link", answer)


def asked(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    """The answer, read to its end, on a connection that the client would keep."""
    headers = {"Content-Type": "application/json", **bearer("demo-backend")}
    connection.request("POST", PATH, b'{"external_id":"ada"}', headers)
    answer = connection.getresponse()
    answer.read()
    return answer


def request(gateway: Gateway, context: ssl.SSLContext | None = None) -> tuple[int, int]:
    """The status, and the serial number of the certificate."""
    serial = 0
    host, port = gateway.client.host, gateway.client.port
    raw = socket.create_connection((host, port), timeout=20)
    connection = context.wrap_socket(raw, server_hostname="127.0.0.1") if context else raw
    with connection:
        if isinstance(connection, ssl.SSLSocket):
            serial = int(str((connection.getpeercert() or {})["serialNumber"]), 16)
        body = b'{"external_id":"ada"}'
        connection.sendall(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Authorization: {bearer('demo-backend')['Authorization']}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return int(answer.split(b" ")[1]), serial


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes certificates with openssl")
def test_the_next_handshake_shows_the_certificate_of_now(
    gateway_deployment: GatewayDeployment, service: StandIn, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"

    def install(*names: Path) -> None:
        for name, file in zip(names, files):
            put(file, name.read_text())

    first = authority.issue("127.0.0.1", ends="400101000000Z")
    second = authority.issue("127.0.0.1", ends="410101000000Z")
    install(*first)
    gateway = gateway_deployment.gateway(
        GATEWAY_TLS_CERTIFICATE=str(files[0]), GATEWAY_TLS_KEY=str(files[1])).start().wait_ready()
    context = ssl.create_default_context(cafile=authority.certificate)
    status, before = request(gateway, context)
    assert status == 200
    assert "gateway_tls_certificate_expires_timestamp_seconds 2208988800\n" in gateway.get("/metrics")[1]
    # A key that is not the certificate's: half of a change.
    put(files[0], second[0].read_text())
    until(lambda: events(gateway, "tls.refused"), 15, gateway.tail)
    assert request(gateway, context) == (200, before)
    install(*second)
    seen: list[tuple[int, int]] = []

    def changed() -> bool:
        seen.append(request(gateway, context))
        return seen[-1][1] != before

    until(changed, 15, gateway.tail)
    assert {status for status, _ in seen} == {200}
    assert len(events(gateway, "tls.changed")) == 1 and len(events(gateway, "tls.refused")) == 1
    assert "gateway_tls_certificate_expires_timestamp_seconds 2240611200\n" in gateway.get("/metrics")[1]
    assert gateway.stop() == 0


def test_a_gateway_that_ends_says_so_before_it_closes_its_port(
    gateway_deployment: GatewayDeployment, service: StandIn
) -> None:
    gateway = gateway_deployment.gateway(GATEWAY_DRAIN_DELAY_SECONDS="4").start().wait_ready()
    kept = http.client.HTTPConnection(gateway.client.host, gateway.client.port, timeout=20)
    assert [asked(kept).status, asked(kept).getheader("Connection")] == [200, None]
    own_end, began = kept.sock, time.monotonic()
    gateway.process.send_signal(signal.SIGTERM)
    until(lambda: gateway.get("/readyz")[0] == 503, 2, gateway.tail, 0.05)
    assert gateway.failed_checks() == {"running": "stopping"}
    # Who keeps a connection hears it with the next answer, well before the port closes, and none is cut.
    last = asked(kept)
    assert [last.status, last.getheader("Connection")] == [200, "close"]
    assert own_end is not None and own_end.fileno() == -1, "the client has closed it, as it was told"
    served = 0
    with ThreadPoolExecutor(4) as pool:
        while time.monotonic() - began < 3:
            statuses = {status for status, _ in pool.map(lambda _: request(gateway), range(8))}
            assert statuses == {200}, statuses
            served += 8
    assert served > 8 and gateway.wait(30) == 0
    assert time.monotonic() - began >= 4
    assert [line["message"] for line in events(gateway, "service.stopped")] == ["gateway has stopped"]
