# SPDX-License-Identifier: Apache-2.0
"""Who gets into the gateway, and how often: keys that are shown alone, origins, limits, strangers' bodies, paths, and
what the access log and the metrics say about it. Behind it are stand-ins."""

import itertools
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import TOKEN_SECRET, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer, compressed, signed
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.standin import StandIn, succeeded
from identitybus_testkit.tokens import shown, user_token
from identitybus_testkit.waiting import Deadline, until

MPID = "-7000000000000000002"
RESULT = {"mpid": MPID, "isLoggedIn": True, "isEphemeral": False, "matchedIdentities": {}, "context": None}
WEB = {"environment": "development", "known_identities": {"device_application_stamp": "das-1"}}
MODIFY = {"identity_changes": [{"identity_type": "email", "old_value": None, "new_value": "a@b.c"}]}
SHOP, EVIL = "https://shop.example", "https://evil.example"
CALLS: dict[str, tuple[str, Any]] = {
    "identify": ("/v1/identify", WEB), "login": ("/v1/login", WEB), "logout": ("/v1/logout", WEB),
    "search": ("/v1/search", WEB), "modify": (f"/v1/{MPID}/modify", MODIFY),
    "alias": ("/v1/identity/{key}/Alias", {"data": {"source_mpid": "1", "destination_mpid": "2"}}),
}
PER_MINUTE = 5


def alone(key: str, **more: str) -> dict[str, str]:
    return {"x-mp-key": key} | more


def set_gateway(text: str, app: str, lines: list[str]) -> str:
    """The apps file with this section `gateway` for the app."""
    at = text.index("    sync:\n", text.index(f"  - id: {app}\n"))
    before = re.sub(r"    gateway:\n(      .*\n)+\Z", "", text[:at])
    return before + "    gateway:\n" + "".join(f"      {line}\n" for line in lines) + text[at:]


@pytest.fixture(scope="module")
def sync(gateway_deployment: GatewayDeployment) -> StandIn:
    text = gateway_deployment.apps_file.read_text()
    text = set_gateway(text, "isolated", ["keyOnly: true", f"origins: ['{SHOP}']"])
    text = set_gateway(
        text, "best", ["keyOnly: true", "limits: {keyPerSecond: 1, keyBurst: 6, addressPerSecond: 1, addressBurst: 3}"])
    gateway_deployment.apps_file.write_text(text)
    gateway_deployment.stand_in("link", lambda _: [succeeded({"userId": "0" * 24})])
    gateway_deployment.stand_in("user", lambda _: [succeeded({"installId": "i-1"})])
    return gateway_deployment.stand_in("sync", lambda _: [succeeded(RESULT)])


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment, sync: StandIn) -> Gateway:
    """It knows its proxy: this machine."""
    gateway = gateway_deployment.gateway(
        GATEWAY_TRUSTED_PROXIES="127.0.0.0/8,::1", GATEWAY_WRONG_CREDENTIALS_PER_MINUTE=str(PER_MINUTE))
    gateway.start().wait_ready()
    return gateway


@pytest.fixture
def client(gateway: Gateway) -> Client:
    return gateway.client


_addresses = (f"198.51.{number // 200 % 100}.{number % 200 + 1}" for number in range(1, 20_000))


@pytest.fixture
def address() -> str:
    """A client that no other test is."""
    return next(_addresses)


def post(client: Client, path: str, body: Any, headers: dict[str, str], address: str) -> Answer:
    return client.send("POST", path, body, headers | {"X-Forwarded-For": address})


# A key alone


@pytest.mark.parametrize("call", CALLS)
def test_a_key_alone_may_do_what_the_app_names(client: Client, sync: StandIn, call: str) -> None:
    path, body = CALLS[call]
    usual = call in ("identify", "login", "logout")
    for key, may in [("demo-sdk", True), ("linked-sdk", usual), ("other-sdk", False)]:
        count = len(sync.commands)
        answer = client.send("POST", path.replace("{key}", key), body, alone(key))
        assert (answer.status, answer.status == 401 and answer.body != b"") == (
            (202 if call == "alias" else 200) if may else 401, False), (key, answer)
        assert len(sync.commands) == count + may


@pytest.mark.parametrize("call", CALLS)
def test_who_holds_the_secret_may_do_all(client: Client, call: str) -> None:
    path, body = CALLS[call]
    path = path.replace("{key}", "linked-sdk")
    assert client.send("POST", path, body, basic("linked-sdk")).status in (200, 202)
    content = json.dumps(body).encode()
    assert client.send("POST", path, content, signed("linked-sdk", path, content)).status in (200, 202)


# Origins


@pytest.mark.parametrize("call", ["identify", "login", "logout"])
def test_only_the_pages_that_the_app_names_may_call(client: Client, sync: StandIn, call: str) -> None:
    path, body = CALLS[call]
    good = client.send("POST", path, body, alone("isolated-sdk", Origin=SHOP))
    assert good.status == 200 and good.headers["Access-Control-Allow-Origin"] == SHOP
    assert good.headers["Vary"] == "Origin"
    count = len(sync.commands)
    for origin in [EVIL, "null", "http://shop.example", SHOP + ".evil.example", SHOP + ":8443"]:
        for headers in [alone("isolated-sdk"), basic("isolated-sdk")]:
            bad = client.send("POST", path, body, headers | {"Origin": origin})
            assert bad.status == 403 and bad.json["ErrorCode"] == "ORIGIN_NOT_ALLOWED"
            assert bad.headers["Access-Control-Allow-Origin"] is None and bad.headers["Vary"] == "Origin"
    assert len(sync.commands) == count
    assert client.send("POST", path, body, alone("isolated-sdk")).status == 200, "a native SDK is no page"
    anywhere = client.send("POST", path, body, alone("demo-sdk", Origin=EVIL))
    assert anywhere.status == 200 and anywhere.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/v1/identity/isolated-sdk/alias", "/v3/JS/isolated-sdk/events"])
def test_preflights_and_events_tell_nothing_of_an_app(client: Client, path: str) -> None:
    """They show no credential: the key in the path may be anybody's, or nobody's."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for origin, name in itertools.product([SHOP, EVIL], [path, path.replace("isolated-sdk", "nobody"), "/v1/login"]):
        answer = client.send("OPTIONS", name, headers=asked | {"Origin": origin})
        assert answer.status == 204 and answer.headers["Access-Control-Allow-Origin"] == "*"
        if "events" in name:
            answer = client.send("POST", name, b"{}", {"Origin": origin})
            assert answer.status == 202 and answer.headers["Access-Control-Allow-Origin"] == "*"


def test_an_alias_from_another_origin_is_refused(client: Client) -> None:
    path, body = CALLS["alias"]
    bad = client.send("POST", path.replace("{key}", "isolated-sdk"), body, basic("isolated-sdk") | {"Origin": EVIL})
    assert bad.status == 403 and bad.headers["Access-Control-Allow-Origin"] is None
    assert bad.json["code"] == "ORIGIN_NOT_ALLOWED"


# Limits


def until_refused(send: Callable[[], Answer], status: int = 200) -> tuple[int, Answer]:
    """How many requests are let in before a limit is reached, and the refusal. A share fills up by one each second:
    how many these are is a matter of time."""
    deadline, count = Deadline(30), 0
    while (answer := send()).status != 429:
        assert answer.status == status and deadline.left, answer
        count += 1
    return count, answer


def test_a_client_address_has_its_share_of_what_anybody_can_send(
    client: Client, gateway: Gateway, sync: StandIn, address: str
) -> None:
    before, start = gateway.metric("gateway_throttled_total"), time.monotonic()
    for round in range(1, 4):
        passed, refused = until_refused(lambda: post(client, "/v1/login", WEB, alone("best-sdk"), address))
        if round == 1:
            assert 3 <= passed <= 3 + time.monotonic() - start
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.headers["X-mp-rate-limit-exceeded"] == "user"
        assert refused.json["Errors"][0]["code"] == refused.json["ErrorCode"] == "THROTTLED"
        assert "address" in refused.json["Errors"][0]["message"]
        assert gateway.metric("gateway_throttled_total") == before + round
    # Others, and other apps, have theirs.
    assert post(client, "/v1/login", WEB, alone("linked-sdk"), address).status == 200
    until(lambda: post(client, "/v1/login", WEB, alone("best-sdk"), address).status == 200, 5, "it fills up again", 0.3)


def test_what_a_client_says_of_itself_is_not_believed(client: Client, address: str) -> None:
    """It can put addresses into the header; the proxy adds the true one at its right."""
    time.sleep(4)  # the key's own share fills up
    numbers, start = itertools.count(), time.monotonic()
    passed, refused = until_refused(
        lambda: post(client, "/v1/login", WEB, alone("best-sdk"), f"192.0.2.{next(numbers)}, {address}"))
    assert 3 <= passed <= 3 + time.monotonic() - start
    assert refused.headers["X-mp-rate-limit-exceeded"] == "user"


def test_a_key_has_its_share(client: Client) -> None:
    def send(**headers: str) -> Answer:
        return post(client, "/v1/login", WEB, basic("best-sdk") | headers, next(_addresses))

    start = time.monotonic()
    passed, refused = until_refused(send)
    assert 6 <= passed <= 6 + time.monotonic() - start
    assert refused.headers["X-mp-rate-limit-exceeded"] == "app"
    assert "API key" in refused.json["Errors"][0]["message"] and refused.headers["Retry-After"]
    # The share is one for all calls. What is let in because a second has passed is refused for its body.
    more, devices = until_refused(lambda: client.send("POST", "/v1/verification/login", b"[", bearer("best-sdk")), 400)
    assert passed + more <= 6 + time.monotonic() - start
    assert devices.json["code"] == "THROTTLED" and devices.headers["Content-Type"] == "application/problem+json"


def test_a_limit_is_asked_before_the_body_comes(client: Client, address: str) -> None:
    headers = {"x-mp-key": "best-sdk", "X-Forwarded-For": address}

    def is_refused() -> bool:
        until_refused(lambda: post(client, "/v1/login", WEB, alone("best-sdk"), address))
        return first_answer(client, "/v1/login", headers).startswith(b"HTTP/1.1 429 ")

    until(is_refused, 60, "the limit, before the next second's request is let in")


def test_thousands_of_valid_requests_of_one_key_are_let_through(client: Client, address: str) -> None:
    for _ in range(300):
        assert post(client, "/v1/login", WEB, basic("demo-sdk"), address).status == 200


# Wrong credentials


def wrong_secrets() -> list[tuple[str, dict[str, str]]]:
    return [("/users/auth-code", bearer("demo-backend", "wrong")), ("/v1/login", basic("demo-sdk", "wrong")),
            ("/sdk/v1/users", bearer("nobody", "wrong")), ("/v1/login", signed("demo-sdk", "/v1/login", b"other"))]


@pytest.mark.parametrize("path,headers", wrong_secrets(), ids=["bearer", "basic", "unknown", "signature"])
def test_guessing_comes_to_an_end(client: Client, address: str, path: str, headers: dict[str, str]) -> None:
    statuses = [post(client, path, {}, headers, address).status for _ in range(PER_MINUTE + 3)]
    assert statuses == [401] * PER_MINUTE + [429] * 3
    # A right one would tell itself from the wrong ones: it is not looked at either.
    right = post(client, "/users/auth-code", {"external_id": "ada"}, bearer("demo-backend"), address)
    assert right.status == 429 and right.json["errorCode"] == "THROTTLED" and int(right.headers["Retry-After"]) >= 1
    # Others are not told apart from it by anything but the address; and a key alone is nothing to guess.
    assert post(client, "/v1/login", WEB, basic("demo-sdk"), next(_addresses)).status == 200
    assert post(client, "/v1/login", WEB, alone("demo-sdk"), address).status == 200


def test_a_token_that_has_expired_is_no_guess(client: Client, address: str) -> None:
    """Phones behind one address wake up with them."""
    old = shown(user_token(TOKEN_SECRET, "u", "i-1", age=600 + 400 * 86400 + 5))
    for _ in range(3 * PER_MINUTE):
        assert client.send("GET", "/sdk/v1/installs/i-1", headers=old | {"X-Forwarded-For": address}).status == 401
    good = shown(user_token(TOKEN_SECRET, "u", "i-1")) | {"X-Forwarded-For": address}
    assert client.send("GET", "/sdk/v1/installs/i-1", headers=good).status == 200


def test_401s_are_counted_by_key(client: Client, gateway: Gateway) -> None:
    def count(key: str) -> float:
        values = re.findall(
            rf'^gateway_unauthorized_total{{key="{key}"}} (\S+)$', gateway.get("/metrics")[1], re.MULTILINE)
        return float(values[0]) if values else 0

    keys = ["linked-sdk", "demo-expired", "unknown"]
    before = [count(key) for key in keys]
    for headers in [basic("linked-sdk", "wrong"), alone("linked-sdk") | {"x-mp-signature": "0" * 64, "Date": "x"}]:
        assert post(client, "/v1/login", WEB, headers, next(_addresses)).status == 401
    assert post(client, "/users/auth-code", {}, bearer("demo-expired"), next(_addresses)).status == 401
    for number in range(20):  # what anybody makes up is one series
        assert post(client, "/users/auth-code", {}, bearer(fresh("made-up")), next(_addresses)).status == 401
    assert [count(key) for key in keys] == [before[0] + 2, before[1] + 1, before[2] + 20]


# Bodies of strangers


def first_answer(client: Client, path: str, headers: dict[str, str]) -> bytes:
    """What is answered to a head whose body never comes."""
    lines = [f"POST {path} HTTP/1.1", "Host: l", "Content-Length: 100000"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection((client.host, client.port), timeout=30) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return connection.recv(65536)


@pytest.mark.parametrize("path,headers,status", [
    ("/users/auth-code", {}, 401), ("/users/auth-code", bearer("demo-backend", "wrong"), 401),
    ("/users/auth-code", bearer("demo-sdk"), 403), ("/v1/login", {}, 401), ("/v1/login", basic("demo-sdk", "x"), 401),
    ("/v1/login", alone("other-sdk"), 401), ("/v1/login", alone("nobody", Date="x") | {"x-mp-signature": "0" * 63}, 401),
    ("/v1/login", alone("isolated-sdk", Origin=EVIL), 403), ("/sdk/v1/users", bearer("nobody"), 401),
    ("/sdk/v1/installs/i/reset", bearer("demo-sdk"), 403), ("/v1/verification/login", {}, 401),
    ("/v3/JS/demo-sdk/events", {}, 202),
])
def test_a_strangers_body_is_not_waited_for(
    client: Client, address: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = first_answer(client, path, headers | {"X-Forwarded-For": address})
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    if status != 202:
        assert b"connection: close" in answer.lower(), "the rest of the body is not wanted"


@pytest.mark.parametrize("more,body,status", [
    ({"Content-Encoding": "br"}, b"x", 415), ({"Content-Encoding": "gzip"}, b"no gzip", 400), ({}, b"x" * 200_000, 413),
    ({}, b"{}", 401), ({"Content-Encoding": "gzip"}, compressed(b"{}"), 401),
], ids=["encoding", "gzip", "large", "wrong", "compressed"])
def test_a_signature_by_a_key_that_there_is_not_is_answered_as_a_wrong_one(
    client: Client, address: str, more: dict[str, str], body: bytes, status: int
) -> None:
    def answer(key: str, *lines: str) -> tuple[int, bytes, set[str]]:
        headers = alone(key, Date="x") | {"x-mp-signature": "0" * 64, "X-Forwarded-For": address} | more
        answer = client.send("POST", "/v1/login", body, headers)
        return answer.status, re.sub(rb'"RequestId":"[^"]*"', b"", answer.body), set(answer.headers.keys())

    answers = [answer(key) for key in ("nobody", "demo-sdk", "linked-sdk", "best-sdk", "demo-revoked")]
    assert answers[0][0] == status and all(other == answers[0] for other in answers), answers


def test_a_signers_body_is_asked_for_whatever_key_is_named(client: Client, address: str) -> None:
    for key in ("nobody", "demo-sdk"):
        headers = alone(key, Date="x", Expect="100-continue") | {"x-mp-signature": "0" * 64, "X-Forwarded-For": address}
        assert first_answer(client, "/v1/login", headers) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_events_have_one_limit_whatever_key_is_named(client: Client, address: str) -> None:
    def statuses(key: str, address: str) -> list[int]:
        return [
            client.send("POST", f"/v3/JS/{key}/events", b"[]", {"X-Forwarded-For": address}).status for _ in range(8)]

    assert statuses("best-sdk", next(_addresses)) == statuses("nobody", next(_addresses)) == [202] * 8


# Paths


@pytest.mark.parametrize("prefix", ["identity", "webevents", "nativeevents"])
def test_a_prefix_opens_the_vendors_calls_only(client: Client, prefix: str) -> None:
    """An ingress that publishes /identity/* publishes the identity calls, and not the backend's."""
    for path in ["/users/auth-code", "/v2/users/i/link"]:
        assert client.post(path, {"external_id": "ada"}, "demo-backend").status == 200
        answer = client.post(f"/{prefix}{path}", {"external_id": "ada"}, "demo-backend")
        assert answer.status == 404 and answer.json["code"] == "NO_SUCH_ENDPOINT"
    for path in ["/sdk/v1/users", "/v1/verification/login", "/v1/verification/check"]:
        assert client.post(f"/{prefix}{path}", {}, "demo-sdk").status == 404
    assert client.get(f"/{prefix}/openapi.json").status == 404
    assert client.send("POST", f"/{prefix}/v1/login", WEB, alone("demo-sdk")).status == 200


@pytest.mark.parametrize("path", ["/%75sers/auth-code", "/users/auth%2dcode", "/v2/%75sers/i/link", "/v2/users/i/lin%6B"])
def test_an_endpoint_has_one_spelling(client: Client, path: str) -> None:
    assert client.post(path, {"external_id": "ada"}, "demo-backend").status == 404


# Control characters


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\x7f", "\n"])
def test_control_characters_in_headers_are_refused(client: Client, gateway: Gateway, character: str) -> None:
    for name in ["x-mp-key", "Origin", "Idempotency-Key", "X-Forwarded-For", "traceparent", "tracestate", "User-Agent"]:
        head = f"POST /v1/login HTTP/1.1\r\nHost: l\r\n{name}: a{character}b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        answer = client.raw(head.encode("latin-1"))
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 ")), (name, answer)
    assert not [line for line in gateway.text.splitlines() if character in line]


@pytest.mark.parametrize("odd", ["\x1b[2J", "a\u0007", "\u009b31m", "x\u007f", "\u0085"])
def test_what_people_may_read_has_no_control_characters(client: Client, sync: StandIn, odd: str) -> None:
    """Anybody who reads a page can send a context; an operator's terminal shows it."""
    answer = client.send("POST", "/v1/identify", WEB | {"context": odd, "request_id": odd}, alone("demo-sdk"))
    assert answer.status == 200
    assert "context" not in sync.last["data"] and "requestId" not in sync.last["data"]


def test_an_install_with_a_control_character_reaches_no_log(client: Client, gateway: Gateway) -> None:
    client.post("/v2/users/%1b%5b2J/link", {"external_id": "ada"}, "demo-backend")
    assert "\x1b" not in gateway.text


# The access log


def test_the_access_log_names_the_client_where_it_may(
    client: Client, gateway: Gateway, gateway_deployment: GatewayDeployment, address: str
) -> None:
    assert post(client, "/v1/login", WEB, basic("demo-sdk", "wrong"), f"192.0.2.1, {address}").status == 401
    fields = until(lambda: gateway.access(address), 10, "the access log's line")[0]
    assert (fields["client"], fields["status"], fields["code"]) == (address, 401, "UNAUTHENTICATED")
    assert "key" not in fields and "app" not in fields, "nobody has shown to be that key"
    quiet = gateway_deployment.gateway(GATEWAY_LOG_CLIENTS="no").start().wait_ready()
    assert isinstance(quiet, Gateway)
    assert post(quiet.client, "/v1/login", WEB, basic("demo-sdk"), address).status == 200
    assert "client" not in until(lambda: quiet.access("/v1/login"), 10, "the access log's line")[0]
    # Where nothing is said about proxies, the header is not believed, and somebody is told.
    assert address not in quiet.text
    assert [line for line in quiet.complaints() if "GATEWAY_TRUSTED_PROXIES" in line]
    for _ in range(PER_MINUTE * 20):
        assert post(quiet.client, "/v1/login", {}, basic("demo-sdk", "wrong"), address).status == 401
    assert post(quiet.client, "/v1/login", WEB, basic("demo-sdk"), address).status == 200, "all come from the proxy"
    assert len([line for line in quiet.complaints() if "GATEWAY_TRUSTED_PROXIES" in line]) == 1
    assert quiet.stop() == 0


@pytest.mark.parametrize("setting", [
    {"GATEWAY_TRUSTED_PROXIES": "10.0.0.0/40"}, {"GATEWAY_TRUSTED_PROXIES": "proxy.example"},
    {"GATEWAY_LOG_CLIENTS": "maybe"}, {"GATEWAY_WRONG_CREDENTIALS_PER_MINUTE": "-1"},
])
def test_a_wrong_setting_ends_the_start(gateway_deployment: GatewayDeployment, setting: dict[str, str]) -> None:
    gateway = gateway_deployment.gateway(**setting)
    gateway.start()
    assert gateway.wait(20) == 78
    assert next(iter(setting)) in gateway.text


@pytest.fixture
def unread(gateway_deployment: GatewayDeployment, sync: StandIn, tmp_path: Path) -> Iterator[Callable[[], Client]]:
    """A gateway whose standard error is a pipe that nobody reads."""
    place = tmp_path / "address"
    reader, writer = os.pipe()
    environment = gateway_deployment.gateway().environment | {
        "IDENTITYBUS_GATEWAY_FILE": str(place), "IDENTITYBUS_HEALTH_FILE": str(tmp_path / "health")}
    process = subprocess.Popen(
        [binary("identitybus-gateway")], env=clean_environment() | environment, stdin=subprocess.DEVNULL,
        stdout=writer, stderr=writer)
    os.close(writer)

    def client() -> Client:
        return Client(until(lambda: place.read_text().strip() if place.exists() else "", 30, "the address"))

    client.health = lambda: Client((tmp_path / "health").read_text().strip())  # type: ignore[attr-defined]
    yield client
    process.terminate()
    assert process.wait(40) == 0, "also its end does not wait for a reader"
    os.close(reader)


def test_a_log_that_nobody_reads_stops_no_request(unread: Any) -> None:
    client = unread()
    until(lambda: post(client, "/v1/login", WEB, basic("demo-sdk"), "-").status == 200, 30, "it is served", 0.2)
    # A pipe holds 64 KiB, a line of the access log some 300 bytes.
    in_time = Deadline(30)
    for _ in range(600):
        assert client.send("POST", "/v1/login", {}, {}).status == 401
    assert post(client, "/v1/login", WEB, basic("demo-sdk"), "-").status == 200
    assert in_time.left
    text = unread.health().send("GET", "/metrics").body.decode()
    assert re.search(r"^log_lines_dropped_total \d+$", text, re.MULTILINE)


# The document


def test_the_document_is_sent_once(client: Client) -> None:
    first = client.get("/openapi.json")
    tag = first.headers["ETag"]
    again = client.send("GET", "/openapi.json", headers={"If-None-Match": tag})
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
    assert client.send("GET", "/openapi.json", headers={"If-None-Match": '"other"'}).body == first.body
