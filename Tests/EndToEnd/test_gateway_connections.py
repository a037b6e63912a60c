# SPDX-License-Identifier: Apache-2.0
"""Connections and limits of the gateway: clients that are slow, vanish, send too much or nonsense do not hurt the
others. The service behind it is a stand-in, so that what it does is known."""

import gzip
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Iterator

import pytest

from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, bearer, compressed, read_all
from identitybus_testkit.pipeliners import Pipeliners
from identitybus_testkit.secrets import INTERNAL_KEY
from identitybus_testkit.standin import StandIn, succeeded
from identitybus_testkit.waiting import Deadline, until

PATH = "/v2/users/an-install/link"
BODY = b'{"external_id":"ada"}'
AUTHORIZATION = bearer("demo-backend")["Authorization"]
LIMIT = 131_072
# A connection that is not cut off stays open for ever; how soon after its 5 s one is closed is up to the machine.
PATIENCE, CUT_OFF = 5, 20


def link_answer(command: dict[str, Any]) -> list[dict[str, Any]]:
    if command["data"].get("externalId") == "silence":
        return []
    return [succeeded({"userId": "0" * 24, "installId": "an-install", "isActive": True, "personCreated": True})]


@pytest.fixture(scope="module")
def service(gateway_deployment: GatewayDeployment) -> StandIn:
    return gateway_deployment.stand_in("link", link_answer)


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment, service: StandIn) -> Iterator[Gateway]:
    # Of 40, one app of several has 20, and of these one service 10.
    gateway = gateway_deployment.gateway(GATEWAY_MAX_IN_FLIGHT="40", GATEWAY_REPLY_TIMEOUT_MS="10000")
    gateway.start().wait_ready()
    yield gateway
    assert gateway.is_running and gateway.get("/livez")[0] == 200


@pytest.fixture(scope="module")
def impatient(gateway_deployment: GatewayDeployment, service: StandIn) -> Iterator[Gateway]:
    """It disconnects slow clients soon. The tests' own clients can be slow too, so only those of slow ones have it."""
    gateway = gateway_deployment.gateway(GATEWAY_CLIENT_TIMEOUT_SECONDS=str(PATIENCE))
    gateway.start().wait_ready()
    yield gateway
    assert gateway.is_running and gateway.get("/livez")[0] == 200


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Client]:
    """Before and after: the others are served."""
    assert is_served(gateway.client)
    yield gateway.client
    assert is_served(gateway.client)


def is_served(client: Client) -> bool:
    return client.post(PATH, {"external_id": "ada"}, "demo-backend").status == 200


def head(length: int | None = None, *more: str) -> bytes:
    lines = [f"POST {PATH} HTTP/1.1", "Host: localhost", f"Authorization: {AUTHORIZATION}", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connect(client: Client) -> socket.socket:
    return socket.create_connection((client.host, client.port), timeout=20)


# Slow clients


@pytest.fixture
def slow(impatient: Gateway) -> Iterator[Client]:
    assert is_served(impatient.client)
    yield impatient.client
    assert is_served(impatient.client)


def until_closed(connection: socket.socket, timeout: float, drip: bytes = b"") -> None:
    """Waits until the gateway closes; `drip` is sent byte by byte meanwhile."""
    deadline = Deadline(timeout)
    connection.settimeout(0.2)
    while deadline.left:
        try:
            if drip:
                connection.sendall(drip[:1])
                drip = drip[1:] or b"x"
            if connection.recv(65536) == b"":
                return
        except TimeoutError:
            continue
        except OSError:
            return
    raise AssertionError(f"the connection is still open, {deadline}")


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Cut:
    """It is closed when the client's time is over and not before. To be made before the client's time begins."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def off(self, connection: socket.socket, drip: bytes = b"") -> None:
        until_closed(connection, CUT_OFF, drip)
        assert time.monotonic() - self._began > PATIENCE - 0.5


def test_a_connection_that_says_nothing_is_closed(slow: Client) -> None:
    cut = Cut()
    with connect(slow) as connection:
        cut.off(connection)


def test_a_head_that_drips_is_cut_off(slow: Client) -> None:
    cut = Cut()
    with connect(slow) as connection:
        cut.off(connection, b"POST /v2/users/x/link HTTP/1.1\r\nHost: l\r\nX-Slow: ")


def test_a_body_that_drips_is_cut_off(slow: Client) -> None:
    cut = Cut()
    with connect(slow) as connection:
        connection.sendall(head(1000))
        cut.off(connection, b'{"external_id":"')


def test_a_connection_that_is_kept_open_is_closed_when_idle(slow: Client) -> None:
    with connect(slow) as connection:
        for _ in range(4):
            connection.sendall(head(len(BODY)) + BODY)
            assert b" 200 " in connection.recv(65536)
            time.sleep(PATIENCE / 3)  # as far from the limit as it can be, and beyond it in all
        until_closed(connection, CUT_OFF)


def test_a_connection_whose_body_comes_after_the_answer_is_closed_when_idle(slow: Client) -> None:
    cut = Cut()
    with connect(slow) as connection:
        connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: l\r\nContent-Length: 4\r\n\r\n")
        assert b" 404 " in connection.recv(65536)
        connection.sendall(b"late")
        cut.off(connection)


def test_a_connection_that_is_told_to_close_is_closed_whatever_comes(client: Client) -> None:
    with connect(client) as connection:
        connection.sendall(head(LIMIT + 1))
        assert b" 413 " in connection.recv(65536)
        try:
            connection.sendall(b"x" * (LIMIT + 1) + head(len(BODY)) + BODY)
        except ConnectionError:
            return  # closed by now
        # A second to read the refusal; without being told it would have 15.
        until_closed(connection, 5)


def test_500_slow_clients_do_not_stop_the_others(slow: Client) -> None:
    lasting = [connect(slow) for _ in range(500)]
    try:
        for number, connection in enumerate(lasting):
            connection.sendall(head(1000)[: 20 + number % 40])
        in_time = Deadline(5)
        assert all(is_served(slow) for _ in range(20))
        assert in_time.left
    finally:
        for connection in lasting:
            connection.close()


# Clients that do not read


def ask_without_reading(port: int, path: str, count: int) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
    connection.connect(("127.0.0.1", port))
    connection.setblocking(False)
    connection.send(f"GET {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode() * count)
    return connection


def test_who_does_not_read_is_disconnected(slow: Client) -> None:
    size = len(slow.get("/openapi.json").body)
    with socket.create_connection((slow.host, slow.port), timeout=20) as connection:
        # More than the kernel takes.
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: l\r\n\r\n" * 100)
        time.sleep(PATIENCE + 3)
        assert len(read_all(connection)) < 90 * size


@pytest.mark.parametrize("path,where", [("/openapi.json", "api"), ("/metrics", "health")])
def test_those_who_do_not_read_keep_nobody_out(gateway_deployment: GatewayDeployment, path: str, where: str) -> None:
    """As many as there may be, and more: each waits for answers that it asked for, and does not take."""
    gateway = gateway_deployment.gateway(GATEWAY_MAX_CONNECTIONS="64", GATEWAY_CLIENT_TIMEOUT_SECONDS="300")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    readers: list[socket.socket] = []
    try:
        for _ in range(90):
            readers.append(ask_without_reading(gateway.client.port if where == "api" else gateway.port, path, 60))
        for _ in range(10):
            in_time = Deadline(1)
            assert gateway.client.get("/nothing").status == 404 and gateway.get("/livez")[0] == 200
            assert in_time.left
        # Nor does a stop wait for them.
        in_time = Deadline(10)
        gateway.process.terminate()
        assert gateway.wait(20) == 0 and in_time.left
    finally:
        for connection in readers:
            connection.close()


def resident(gateway: Gateway) -> int:
    """MiB of its memory."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) // 1024


def test_what_waits_takes_little_memory(gateway_deployment: GatewayDeployment) -> None:
    """Behind answers that nobody reads, twenty thousand small requests of each."""
    gateway = gateway_deployment.gateway(GATEWAY_CLIENT_TIMEOUT_SECONDS="300")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    assert gateway.client.get("/openapi.json").status == 200
    before, readers = resident(gateway), []
    try:
        for _ in range(60):
            reader = ask_without_reading(gateway.client.port, "/openapi.json", 5)
            readers.append(reader)
            try:
                while reader.send(b"GET / HTTP/1.1\r\nHost:x\r\n\r\n" * 20_000):
                    pass
            except BlockingIOError:
                pass
        time.sleep(3)
        assert resident(gateway) - before < 30
        answers = gateway.access('"/openapi.json"')
        assert len(answers) <= 1 + 3 * 60, "nor are answers made for those who do not read"
    finally:
        for reader in readers:
            reader.close()
        assert gateway.stop() == 0


def test_those_who_ask_much_at_once_take_turns_with_the_others(gateway: Gateway) -> None:
    """Each of fifty has asked a hundred times: whoever asks once waits for one answer of each at most."""
    connections = [socket.create_connection(("127.0.0.1", gateway.port), timeout=20) for _ in range(50)]
    try:
        for connection in connections:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: l\r\n\r\n" * 100)
        in_time = Deadline(2)
        assert gateway.get("/livez")[0] == 200 and in_time.left
    finally:
        for connection in connections:
            connection.close()


def test_requests_at_once_are_answered_in_their_order(client: Client) -> None:
    """Whatever is between them, and though the client has closed its side."""
    with connect(client) as connection:
        connection.sendall(
            head(len(BODY)) + BODY + b"GET /nothing HTTP/1.1\r\nHost: l\r\n\r\n"
            + head(None, "Transfer-Encoding: chunked") + b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
            + b"HEAD /openapi.json HTTP/1.1\r\nHost: l\r\n\r\n" + head(len(BODY)) + BODY + b"FOO / HTTP/1.1\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert answers_of(read_all(connection))[:5] == [200, 404, 200, 200, 200]


# Too much


def test_a_body_at_the_limit_and_over_it(client: Client) -> None:
    fits = b'{"external_id":"ada","more":"' + b"x" * (LIMIT - 31) + b'"}'
    assert len(fits) == LIMIT
    assert client.post(PATH, fits, "demo-backend").status == 200
    answer = client.raw(head(LIMIT + 1) + fits + b" ")
    assert answer.startswith(b"HTTP/1.1 413 ") and b'"REQUEST_TOO_LARGE"' in answer


def test_a_length_over_the_limit_is_refused_before_the_body(client: Client) -> None:
    # It is told at once, and has a second to read that; the body could take 15.
    in_time = Deadline(5)
    answer = client.raw(head(10**12))
    assert answer.startswith(b"HTTP/1.1 413 ") and b"connection: close" in answer.lower()
    assert in_time.left


def test_an_endless_chunked_body_is_refused(client: Client) -> None:
    with connect(client) as connection:
        connection.sendall(head(None, "Transfer-Encoding: chunked"))
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        in_time = Deadline(8)
        with pytest.raises(ConnectionError):
            while in_time.left:
                connection.sendall(chunk)
        assert in_time.left, "a second to read the refusal, no longer"


def test_a_gzip_body_is_limited_by_what_it_becomes(client: Client) -> None:
    def post(body: bytes) -> Answer:
        return client.post(PATH, body, "demo-backend", Content_Encoding="gzip")

    assert post(compressed(BODY)).status == 200
    bomb = gzip.compress(b'{"external_id":"' + b"a" * 100_000_000 + b'"}')
    assert len(bomb) < LIMIT
    assert post(bomb).status == 413
    for wrong in [b"no gzip", b"", compressed(BODY)[:-5], compressed(BODY) + b"rest", compressed(BODY)[:20]]:
        assert post(wrong).status == 400, wrong
    assert client.post(PATH, BODY, "demo-backend", Content_Encoding="br").status == 415
    assert client.post(PATH, BODY, "demo-backend", Content_Encoding="identity").status == 200


@pytest.mark.parametrize("header", [
    "X-Long: " + "x" * 20_000,
    "\r\n".join(f"X-{number}: {'y' * 1000}" for number in range(40)),
    "\r\n".join(f"X-{number}: y" for number in range(200)),
], ids=["field", "total", "count"])
def test_headers_over_the_limits_are_refused(client: Client, header: str) -> None:
    answer = client.raw(head(len(BODY), header) + BODY)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


def test_a_path_over_the_limits_is_refused(client: Client) -> None:
    answer = client.raw(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: l\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 4")


# Nonsense


@pytest.mark.parametrize("data", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\0" * 100, b"POST / HTTP/9.9\r\n\r\n",
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    head(None, "Transfer-Encoding: chunked") + b"zz\r\n",
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nbad header\r\n\r\n",
], ids=["tls", "no-version", "zeros", "version", "negative", "two-lengths", "chunk", "header"])
def test_what_is_not_http_is_answered_400(client: Client, data: bytes) -> None:
    assert_problem(client.raw(data), 400, "INVALID_REQUEST")


def assert_problem(answer: bytes, status: int, code: str) -> None:
    head, body = answer.split(b"\r\n\r\n", 1)
    assert head.startswith(f"HTTP/1.1 {status} ".encode()) and b"connection: close" in head.lower()
    assert b"content-type: application/problem+json" in head.lower()
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (status, code) and problem["type"].endswith(f"/x-problems/{code}")


def test_a_method_that_nobody_knows_is_not_implemented(client: Client) -> None:
    for path in ("/openapi.json", PATH):
        assert_problem(client.raw(f"FOO {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode()), 501, "METHOD_NOT_IMPLEMENTED")


# Bodies that wait for the word


def test_a_body_is_asked_for_where_it_is_read(client: Client) -> None:
    for _ in range(2):
        with connect(client) as connection:
            for _ in range(2):
                connection.sendall(head(len(BODY), "Expect: 100-Continue"))
                assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
                connection.sendall(BODY)
                assert answers_of(connection.recv(65536)) == [200]


@pytest.mark.parametrize("start,status", [
    (head(len(BODY), "Expect: 100-continue").replace(b"demo-secret", b"wrong"), 401),
    (head(LIMIT + 1, "Expect: 100-continue"), 413),
    (b"GET /openapi.json HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", 200),
], ids=["credential", "length", "not-read"])
def test_a_body_that_nobody_reads_is_not_asked_for(client: Client, start: bytes, status: int) -> None:
    in_time = Deadline(5)
    answer = client.raw(start)
    assert answers_of(answer) == [status] and b"connection: close" in answer.lower() and in_time.left


def test_a_body_that_comes_without_the_word_is_taken(client: Client) -> None:
    answer = client.raw(head(len(BODY), "Expect: 100-continue", "Connection: close") + BODY)
    assert answers_of(answer)[-1] == 200


def test_what_is_expected_else_is_refused(client: Client) -> None:
    assert_problem(client.raw(head(len(BODY), "Expect: bananas") + BODY), 417, "EXPECTATION_FAILED")
    old = head(len(BODY), "Expect: bananas").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert answers_of(client.raw(old + BODY)) == [200], "HTTP/1.0 has no such word"


def test_curl_does_not_wait_for_the_word(client: Client) -> None:
    in_time = Deadline(5)
    curl = subprocess.run(
        ["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "-H", "Expect: 100-continue",
         "-H", f"Authorization: {AUTHORIZATION}", "-d", BODY.decode(), "--expect100-timeout", "30",
         f"{client.address}{PATH}"], capture_output=True, text=True, check=True)
    assert curl.stdout.startswith("200 ") and in_time.left, curl.stdout


# Half-closed and vanishing


def test_a_client_that_has_closed_its_side_still_gets_its_answer(client: Client) -> None:
    with connect(client) as connection:
        connection.sendall(head(len(BODY)) + BODY)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_closes_in_the_middle_of_a_body(client: Client) -> None:
    with connect(client) as connection:
        connection.sendall(head(len(BODY)) + BODY[:5])
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")


def test_clients_that_vanish_while_they_wait(client: Client, gateway: Gateway) -> None:
    silent = b'{"external_id":"silence"}'
    before = len(gateway.access('"status":504'))
    connections = [connect(client) for _ in range(10)]
    for connection in connections:
        connection.sendall(head(len(silent)) + silent)
    until(lambda: gateway.metric("gateway_requests_in_flight") == 10, 10, "all wait")
    for connection in connections:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
    # Each is logged at its end, so none is still to come when all are there.
    until(lambda: len(gateway.access('"status":504')) == before + 10, 30, "the waits have ended")
    until(lambda: gateway.metric("gateway_requests_in_flight") == 0, 5, "nothing waits")


def test_requests_one_after_the_other_without_waiting(client: Client) -> None:
    with connect(client) as connection:
        connection.sendall((head(len(BODY)) + BODY) * 4 + head(len(BODY), "Connection: close") + BODY)
        assert read_all(connection).count(b"HTTP/1.1 200 ") == 5


# The bound of what waits


def test_what_is_over_the_bound_is_told_to_come_back(client: Client, gateway: Gateway) -> None:
    answers: list[Answer] = []

    def wait() -> None:
        answers.append(client.post(PATH, {"external_id": "silence"}, "demo-backend"))

    threads = [threading.Thread(target=wait) for _ in range(10)]
    for thread in threads:
        thread.start()
    until(lambda: gateway.metric("gateway_requests_in_flight") == 10, 10, "ten wait")
    full = client.post(PATH, {"external_id": "ada"}, "demo-backend")
    assert full.status == 503 and full.headers["Retry-After"] == "1"
    assert full.json["errorCode"] == "TOO_MANY_REQUESTS_IN_FLIGHT"
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {504}
    assert gateway.metric("gateway_requests_in_flight") == 0


# Replies


def test_only_services_can_answer(client: Client, service: StandIn) -> None:
    """Who can write to the reply topic cannot answer for a service."""
    answers: list[Answer] = []
    count = len(service.commands)
    thread = threading.Thread(
        target=lambda: answers.append(client.post(PATH, {"external_id": "silence"}, "demo-backend")))
    thread.start()
    until(lambda: len(service.commands) > count, 10, "the command")
    for signer in ["", "demo-backend", "events"]:
        service.answer(service.last, succeeded({"userId": "f" * 24}), signer)
    service.answer(service.last | {"appid": "other"}, succeeded({"userId": "e" * 24}))
    # They are all on one partition, and the first that is believed is the answer.
    service.answer(service.last, succeeded({"userId": "1" * 24}))
    thread.join()
    assert answers[0].json == {"id": "1" * 24}


# Connections that end


def answers_of(data: bytes) -> list[int]:
    # A body ends without a line's end.
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


@pytest.mark.parametrize("request_head", [
    head(len(BODY), "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"),
    head(len(BODY), "Connection: Upgrade", "Upgrade: websocket"), head(len(BODY), "Connection: close"),
    head(len(BODY), "Connection: Close"), head(len(BODY), "Connection: close, TE"),
    head(len(BODY), "Connection: keep-alive, CLOSE"), head(len(BODY), "Connection: keep-alive", "Connection: close"),
    head(len(BODY)).replace(b"HTTP/1.1", b"HTTP/1.0"),
    head(len(BODY)).replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: localhost\r\n", b""),
], ids=["h2c", "websocket", "close", "Close", "close-TE", "keep-alive-CLOSE", "two", "1.0", "1.0-no-host"])
def test_the_last_request_of_a_connection_is_answered_and_closed(client: Client, request_head: bytes) -> None:
    in_time = Deadline(5)
    answer = client.raw(request_head + BODY)
    assert answers_of(answer) == [200] and b"connection: close" in answer.lower()
    assert in_time.left, "it does not wait for a next request"


def test_connect_is_answered_and_closed(client: Client) -> None:
    in_time = Deadline(5)
    answer = client.raw(b"CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n")
    assert answers_of(answer) == [404] and b"connection: close" in answer.lower() and in_time.left


def test_nothing_behind_the_last_request_is_answered(client: Client) -> None:
    for last in ["Connection: close, TE", "Upgrade: h2c"]:
        assert answers_of(client.raw((head(len(BODY), last) + BODY) * 2)) == [200]
    chunked = head(None, "Connection: keep-alive", "Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert answers_of(client.raw((chunked + b"0\r\n\r\n") * 2)) == [400]


def test_http_1_0_may_stay(client: Client) -> None:
    with connect(client) as connection:
        for _ in range(3):
            connection.sendall(head(len(BODY), "Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0") + BODY)
            answer = connection.recv(65536)
            assert answers_of(answer) == [200] and b"connection: keep-alive" in answer.lower()


def test_ten_requests_of_clients_that_ask_for_http_2(client: Client, tmp_path: Path) -> None:
    """curl and Java's HttpClient ask for it by default, or when told, and go on in HTTP/1.1."""
    urls = [word for _ in range(10) for word in ("-o", "/dev/null", f"{client.address}/openapi.json")]
    in_time = Deadline(10)
    curl = subprocess.run(
        ["curl", "-sS", "--http2", "-m", "60", "-w", "%{http_code} ", *urls], capture_output=True, text=True, check=True)
    assert curl.stdout.split() == ["200"] * 10 and in_time.left
    if not shutil.which("java"):
        return
    (tmp_path / "Ten.java").write_text("""
        import java.net.URI;
        import java.net.http.*;

        class Ten {
            public static void main(String[] arguments) throws Exception {
                var client = HttpClient.newHttpClient();
                for (int number = 0; number < 10; number++) {
                    long start = System.nanoTime();
                    var answer = client.send(
                        HttpRequest.newBuilder(URI.create(arguments[0])).build(), HttpResponse.BodyHandlers.ofString());
                    System.out.println(answer.statusCode() + " " + (System.nanoTime() - start) / 1_000_000);
                }
            }
        }""")
    java = subprocess.run(
        ["java", str(tmp_path / "Ten.java"), f"{client.address}/openapi.json"], capture_output=True, text=True, check=True)
    answers = [line.split() for line in java.stdout.splitlines()]
    assert [status for status, _ in answers] == ["200"] * 10
    assert all(int(milliseconds) < 5000 for _, milliseconds in answers), answers


@pytest.mark.parametrize("lines", [
    b"", b"Host: a\r\nHost: a\r\n", b"Host: a\r\nHOST: b\r\n", b"Host: a, b\r\n", b"Host: a,b\r\n", b"Host: a b\r\n",
    b"Host: a/b\r\n", b"Host: user@a\r\n",
], ids=["none", "two", "cases", "list", "comma", "words", "path", "user"])
def test_a_request_names_one_host(client: Client, lines: bytes) -> None:
    assert_problem(client.raw(b"GET /openapi.json HTTP/1.1\r\n" + lines + b"\r\n"), 400, "INVALID_REQUEST")
    answer = client.raw(b"HEAD /openapi.json HTTP/1.1\r\n" + lines + b"\r\n")
    assert answers_of(answer) == [400] and answer.endswith(b"\r\n\r\n"), "HEAD has no body"


@pytest.mark.parametrize("host", ["a", "A-1.example:8443", "[2001:db8::1]:80", "", "1.2.3.4"])
def test_hosts_that_there_are(client: Client, host: str) -> None:
    request = f"HEAD /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert answers_of(client.raw(request.encode())) == [200]


def test_a_body_without_end_ends(client: Client) -> None:
    """Also where nobody reads it: for a call that is refused, and for events."""
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for start in [
        b"POST /nothing HTTP/1.1\r\nHost: l\r\n", b"POST /v3/JS/demo-sdk/events HTTP/1.1\r\nHost: l\r\n",
        f"POST {PATH} HTTP/1.1\r\nHost: l\r\n".encode(),
    ]:
        with connect(client) as connection:
            connection.sendall(start + b"Transfer-Encoding: chunked\r\n\r\n")
            sent = 0
            with pytest.raises(ConnectionError):
                while sent < 200_000_000:
                    connection.sendall(chunk)
                    sent += len(chunk)


@pytest.mark.parametrize("data", [b"\r\n" * 0x8000, b"1;" + b"x" * 0x4000 + b"\r\nx\r\n"], ids=["lines", "extensions"])
def test_what_no_body_counts_ends_too(client: Client, data: bytes) -> None:
    """Empty lines in front of a request, and extensions of chunks, which the decoder passes over."""
    with connect(client) as connection:
        if data.startswith(b"1;"):
            connection.sendall(head(None, "Transfer-Encoding: chunked"))
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < 200_000_000:
                connection.sendall(data)
                sent += len(data)


def test_two_idempotency_keys_are_none(client: Client) -> None:
    for more in [(), ("Prefer: dry-run",)]:
        keys = ("Idempotency-Key: a", "Idempotency-Key: b", "Connection: close", *more)
        answer = client.raw(head(len(BODY), *keys) + BODY)
        assert answers_of(answer) == [400] and b"more than one Idempotency-Key" in answer


# Places


CREATION = json.dumps({
    "installId": "an-install", "device": {"kind": "phone", "platform": "ios"}, "appSecret": "s", "linking": "none"}).encode()
CREATE = (f"POST /sdk/v1/users HTTP/1.1\r\nHost: l\r\nAuthorization: {bearer('demo-sdk')['Authorization']}\r\n"
          f"Content-Length: {len(CREATION)}\r\n\r\n").encode() + CREATION


@pytest.mark.parametrize("waits", [head(len(b'{"external_id":"silence"}')) + b'{"external_id":"silence"}', CREATE],
                         ids=["its-calls", "what-waits-for-it"])
def test_a_stalled_service_holds_up_no_other(
    gateway_deployment: GatewayDeployment, service: StandIn, waits: bytes
) -> None:
    """With "link" deaf and its callers at the bound, 95 of 100 calls of "user" succeed, of its app and of another; also
    where the callers asked "user" for what needs "link"."""
    code = {"authenticationCode": "A" * 24, "expiresAt": "2030-01-01T00:00:00.000Z"}
    gateway_deployment.stand_in(
        "user", lambda command: [] if "user.create" in command["type"] else [succeeded(code)])
    gateway = gateway_deployment.gateway(GATEWAY_MAX_IN_FLIGHT="40", GATEWAY_REPLY_TIMEOUT_MS="20000")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    callers = [connect(client) for _ in range(60)]
    try:
        for connection in callers:
            connection.sendall(waits)
        until(lambda: gateway.metric("gateway_full_total") >= 40, 10, "its share is used up")
        with ThreadPoolExecutor(4) as pool:  # all within the time for which the callers wait
            statuses = list(pool.map(
                lambda key: client.post("/users/auth-code", {"external_id": "ada"}, key).status,
                ["demo-backend", "other-backend"] * 50))
        assert gateway.metric("gateway_requests_in_flight") >= 10, "it is still stalled"
        assert statuses.count(200) >= 95, statuses
    finally:
        for connection in callers:
            connection.close()
        assert gateway.stop() == 0


def test_the_longest_idle_connection_makes_room(gateway_deployment: GatewayDeployment, service: StandIn) -> None:
    gateway = gateway_deployment.gateway(GATEWAY_MAX_CONNECTIONS="50", GATEWAY_CLIENT_TIMEOUT_SECONDS="300")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    kept = connect(client)
    idle = [connect(client) for _ in range(40)]
    try:
        assert is_served(client), "and so the others are accepted, in their order"
        # It is used now and then, and stays.
        for _ in range(4):
            kept.sendall(head(len(BODY)) + BODY)
            assert answers_of(kept.recv(65536)) == [200]
            idle += [connect(client) for _ in range(20)]
            in_time = Deadline(1)
            assert is_served(client) and in_time.left
        until_closed(idle[0], 5)
        assert gateway.metric("process_connections_given_up_total") >= 60
    finally:
        for connection in [kept, *idle]:
            connection.close()
        assert gateway.stop() == 0


def test_an_address_has_its_part_of_the_connections(gateway_deployment: GatewayDeployment, service: StandIn) -> None:
    """Where every peer is a client, one address has an eighth: its own longest idle ones go, and nobody else's."""
    gateway = gateway_deployment.gateway(
        GATEWAY_MAX_CONNECTIONS="400", GATEWAY_MAX_CONNECTIONS_PER_ADDRESS="20", GATEWAY_TRUSTED_PROXIES="none",
        GATEWAY_CLIENT_TIMEOUT_SECONDS="300")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    other = socket.create_connection((client.host, client.port), 20, source_address=("127.0.0.2", 0))
    many = [connect(client) for _ in range(60)]
    try:
        # Each event loop takes its own in their order, so which of the 60 are the first is not quite told.
        until(lambda: sum(is_closed(connection) for connection in many) == 40, 10, "what is over is closed")
        other.sendall(head(len(BODY)) + BODY)
        assert answers_of(other.recv(65536)) == [200]
        assert is_served(client) and not is_closed(other)
    finally:
        for connection in [other, *many]:
            connection.close()
        assert gateway.stop() == 0


@pytest.mark.alone
def test_those_whose_bodies_drip_keep_nobody_out(gateway_deployment: GatewayDeployment, service: StandIn) -> None:
    """Twice as many as there may be, of sixteen addresses of which each has its part; and each is another one before its
    first second is over."""
    count, lasting = 160, 0.8
    gateway = gateway_deployment.gateway(GATEWAY_MAX_CONNECTIONS="80", GATEWAY_TRUSTED_PROXIES="none")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    hogs: list[socket.socket] = []
    stop = threading.Event()

    def half() -> socket.socket:
        source = (f"127.0.1.{1 + len(hogs) % 16}", 0)
        connection = socket.create_connection((client.host, client.port), 20, source_address=source)
        connection.sendall(head(100) + b"{")
        return connection

    def hog() -> None:
        started = time.monotonic()
        while not stop.wait(0.005):
            while len(hogs) < (time.monotonic() - started) / lasting * count:
                if len(hogs) >= count:
                    hogs[-count].close()
                hogs.append(half())

    hogging = threading.Thread(target=hog)

    def other() -> list[int]:
        with socket.create_connection((client.host, client.port), 20, source_address=("127.0.0.2", 0)) as connection:
            try:
                connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: l\r\n\r\n")
                return answers_of(connection.recv(65536))
            except ConnectionError:
                return []

    try:
        hogging.start()
        until(lambda: len(hogs) >= count, 30, "all are there")
        statuses = []
        for _ in range(50):
            statuses.append(other())
            time.sleep(2 * lasting / 50)
        # On a busy machine one may be the longest idle before it is looked at. Half of them were kept out.
        assert statuses.count([404]) >= 45 and hogging.is_alive(), statuses
    finally:
        stop.set()
        hogging.join()
        for connection in hogs:
            connection.close()
        assert gateway.stop() == 0


@pytest.mark.alone
def test_another_client_waits_for_less_than_a_second_beside_4000_connections_of_one(
    gateway_deployment: GatewayDeployment, service: StandIn
) -> None:
    """They say nothing, and what is closed is opened again."""
    gateway = gateway_deployment.gateway(GATEWAY_TRUSTED_PROXIES="none", GATEWAY_CLIENT_TIMEOUT_SECONDS="300")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    hogs: list[socket.socket] = []
    stop = threading.Event()

    def other() -> float:
        started = time.monotonic()
        with socket.create_connection((client.host, client.port), 20, source_address=("127.0.0.2", 0)) as connection:
            connection.sendall(head(len(BODY)) + BODY)
            assert answers_of(connection.recv(65536)) == [200]
        return time.monotonic() - started

    def open_again() -> None:
        for number in range(len(hogs)):
            if stop.wait(0.005):
                return
            hogs[number].close()
            hogs[number] = connect(client)

    hogging = threading.Thread(target=open_again)
    try:
        for _ in range(4000):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((client.host, client.port))
            hogs.append(connection)
        # The kernel has made the connections; the gateway takes them in their order, and so does whoever comes now.
        flooded = other()
        until(lambda: gateway.metric("process_connections_given_up_total") >= 3000, 60, "the flood is over")
        hogging.start()
        waits = [other() for _ in range(50)]
        print(f"beside 4,000 the slowest of {len(waits)}: {max(waits):.3f} s; right behind their flood {flooded:.3f} s")
        assert max(waits) < 1, waits
    finally:
        stop.set()
        if hogging.ident:
            hogging.join()
        for connection in hogs:
            connection.close()
        assert gateway.stop() == 0


@pytest.mark.alone
def test_another_client_is_let_in_beside_450_that_ask_for_much_at_once(
    gateway_deployment: GatewayDeployment
) -> None:
    """They read, and ask again for every answer; and the same address opens more connections. It would wait for as long
    as they ask."""
    gateway = gateway_deployment.gateway(GATEWAY_TRUSTED_PROXIES="none")
    gateway.start().wait_ready()
    assert isinstance(gateway, Gateway)
    client = gateway.client
    more: list[socket.socket] = []

    def other() -> float:
        started = time.monotonic()
        with socket.create_connection((client.host, client.port), 60, source_address=("127.0.0.2", 0)) as connection:
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: l\r\n\r\n")
            assert answers_of(connection.recv(65536)) == [404]
        return time.monotonic() - started

    try:
        with Pipeliners(client.port, "/openapi.json", 450, 40):
            for _ in range(400):
                connection = socket.socket()
                connection.setblocking(False)
                connection.bind((Pipeliners.ADDRESS, 0))
                connection.connect_ex((client.host, client.port))
                more.append(connection)
            waits = [other() for _ in range(20)]
        print(f"beside 450 that ask for much at once the slowest of {len(waits)}: {max(waits):.3f} s")
        assert max(waits) < 10, waits
    finally:
        for connection in more:
            connection.close()
        assert gateway.stop() == 0


@pytest.mark.alone
def test_the_health_port_answers_beside_those_who_ask_for_much_at_once(gateway: Gateway) -> None:
    """As many as it has connections, and more, which come again when they are closed."""
    with Pipeliners(gateway.port, "/metrics", 80, 40):
        assert [gateway.get("/livez")[0] for _ in range(100)] == [200] * 100


def test_the_health_port_answers_whatever_else_is_connected(gateway: Gateway) -> None:
    """200 connections that say nothing, and 200 whose heads drip."""
    connections: list[socket.socket] = []
    try:
        for number in range(400):
            connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=5)
            connections.append(connection)
            if number % 2:
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: l\r\nX-Slow: ")
        for _ in range(5):
            for connection in connections:
                try:
                    connection.sendall(b"x")
                except OSError:
                    pass  # closed by now
            in_time = Deadline(1)
            assert gateway.get("/livez")[0] == 200 and in_time.left
            time.sleep(0.3)
    finally:
        for connection in connections:
            connection.close()


# Start, stop, settings


def test_a_stop_answers_what_is_in_progress(
    gateway_deployment: GatewayDeployment, service: StandIn
) -> None:
    gateway = gateway_deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    client, answers = gateway.client, []

    def lets_in() -> bool:
        try:
            connect(client).close()
            return True
        except ConnectionError:
            return False

    thread = threading.Thread(
        target=lambda: answers.append(client.post(PATH, {"external_id": "silence"}, "demo-backend")))
    count = len(service.commands)
    thread.start()
    until(lambda: len(service.commands) > count, 10, "the command")
    command = service.last
    gateway.process.terminate()
    until(lambda: not lets_in(), 15, "the stop has begun")
    service.answer(command, succeeded({"userId": "1" * 24}))
    thread.join()
    assert answers[0].status == 200 and answers[0].json == {"id": "1" * 24}
    assert gateway.wait(30) == 0


def test_without_a_broker_it_says_so(gateway_deployment: GatewayDeployment) -> None:
    gateway = gateway_deployment.gateway(KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").start()
    assert isinstance(gateway, Gateway)
    answer = gateway.client.post(PATH, {"external_id": "ada"}, "demo-backend")
    assert answer.status == 503 and answer.headers["Retry-After"] == "1"
    assert answer.json["errorCode"] == "SERVICE_UNAVAILABLE"
    assert gateway.get("/livez")[0] == 200 and gateway.get("/readyz")[0] == 503
    assert gateway.stop() == 0


@pytest.mark.outage
def test_a_broker_that_goes_away_and_comes_back(gateway_deployment: GatewayDeployment, client: Client) -> None:
    def status() -> int:
        return client.post(PATH, {"external_id": "ada"}, "demo-backend").status

    broker = gateway_deployment.broker
    broker.go_away()
    try:
        # One that stands still is not known to be away yet; one that is killed may be.
        assert status() in ((504,) if broker.is_embedded else (503, 504))
        until(lambda: status() == 503, 30, "requests are refused at once")
    finally:
        broker.come_back()
    until(lambda: status() == 200, 30, "requests are served again")


@pytest.mark.parametrize("setting", [
    {"GATEWAY_PORT": "70000"}, {"GATEWAY_MAX_IN_FLIGHT": "0"}, {"GATEWAY_TLS_KEY": "/nowhere"},
    {"GATEWAY_TLS_KEY": "/nowhere", "GATEWAY_TLS_CERTIFICATE": "/nowhere"}, {"IDENTITYBUS_GATEWAY_KEYS": ""},
    {"IDENTITYBUS_GATEWAY_KEYS": "guess"}, {"IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY},
    {"IDENTITYBUS_APPS": "/nowhere"},
])
def test_a_wrong_setting_ends_the_start(gateway_deployment: GatewayDeployment, setting: dict[str, str]) -> None:
    gateway = gateway_deployment.gateway(**setting)
    gateway.start()
    assert gateway.wait(20) == 78
    lines = gateway.text.splitlines()
    assert len(lines) == 1 and lines[0].startswith("identitybus-gateway: "), lines


def test_tls_by_certificate_files(
    gateway_deployment: GatewayDeployment, service: StandIn, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    gateway = gateway_deployment.gateway(
        GATEWAY_TLS_CERTIFICATE=str(certificate), GATEWAY_TLS_KEY=str(key), GATEWAY_REPLY_TIMEOUT_MS="8000")
    gateway.start().wait_ready()
    assert gateway.address.startswith("https://")
    context = ssl.create_default_context(cafile=certificate)
    client = gateway.client
    with context.wrap_socket(connect(client), server_hostname="127.0.0.1") as connection:
        connection.sendall(head(len(BODY), "Connection: close") + BODY)
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 200 ") and json.loads(answer.split(b"\r\n\r\n")[1]) == {"id": "0" * 24}
    # What is encrypted at once is decrypted at once: too many requests behind one that waits.
    waits = b'{"external_id":"silence"}'
    for count in (20, 400):
        with context.wrap_socket(connect(client), server_hostname="127.0.0.1") as connection:
            connection.sendall(head(len(waits)) + waits + b"GET / HTTP/1.1\r\nHost:x\r\n\r\n" * count)
            if count > 128:
                until_closed(connection, 5)
                continue
            connection.settimeout(2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
    with pytest.raises(ConnectionError):
        client.post(PATH, {"external_id": "ada"}, "demo-backend")
    assert gateway.stop() == 0
