# SPDX-License-Identifier: Apache-2.0
"""The linking vendor's REST calls (F1 to F5) against a running gateway and a running link service."""

import json
import re
import threading
import time
import uuid
from typing import Any
from urllib.parse import quote

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import PHONE, TABLET, fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer
from identitybus_testkit.standin import StandIn, erased
from identitybus_testkit.waiting import Deadline, until

BACKEND = "demo-backend"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def running(gateway_deployment: GatewayDeployment) -> GatewayDeployment:
    gateway_deployment.process("link").start().wait_ready()
    return gateway_deployment


@pytest.fixture(scope="module")
def gateway(running: GatewayDeployment) -> Gateway:
    gateway = running.gateway()
    gateway.start().wait_ready()
    return gateway


@pytest.fixture(scope="module")
def client(gateway: Gateway) -> Client:
    return gateway.client


def new_install(running: GatewayDeployment, device: dict[str, str] = PHONE, user: str = "none", app: str = "demo") -> str:
    install = fresh("install")
    assert running.bus.ask(c.register(install, device, user, app))["status"] == "succeeded"
    return install


def link(client: Client, install: str, external_id: object, key: str = BACKEND, **headers: str) -> Answer:
    return client.post(f"/v2/users/{install}/link", {"external_id": external_id}, key, **headers)


def refused(answer: Answer, status: int, code: str, message: str | None = None) -> None:
    assert answer.status == status, answer
    assert set(answer.json) == {"message", "errorCode", "ref"}
    assert answer.json["errorCode"] == code
    assert UUID.fullmatch(answer.json["ref"])
    if message is not None:
        assert answer.json["message"] == message


def test_a_new_person_and_the_same_person_again(running: GatewayDeployment, client: Client) -> None:
    """F1."""
    first, second, external_id = new_install(running), new_install(running), fresh("ext")
    answer = link(client, first, external_id)
    assert answer.status == 200
    assert set(answer.json) == {"id"} and re.fullmatch("[0-9a-f]{24}", answer.json["id"])
    assert link(client, second, external_id).json == answer.json


def test_an_id_with_every_kind_of_character_arrives_as_it_was_sent(running: GatewayDeployment, client: Client) -> None:
    install = "install é/?#%+" + uuid.uuid4().hex
    assert running.bus.ask(c.register(install))["status"] == "succeeded"
    external_id = "Zoë \U0001f642 + / " + fresh("ext")
    assert link(client, quote(install, safe=""), external_id).status == 200
    state = running.bus.ask(c.query(install))["result"]
    assert state["externalId"] == external_id


def test_the_vendors_codes_and_messages(running: GatewayDeployment, client: Client) -> None:
    """L5 to L10, L15, F2, F3."""
    external_id = fresh("ext")
    install = new_install(running)
    assert link(client, install, external_id).status == 200
    refused(link(client, fresh("install"), external_id), 404, "INSTALL_NOT_FOUND",
            "Install was not found by the install ID provided.")
    refused(link(client, new_install(running, app="other"), external_id), 403, "INSTALL_DOES_NOT_BELONG_TO_APP",
            "Install does not belong to this application.")
    refused(link(client, install, fresh("ext")), 403, "INSTALL_LINKED_TO_OTHER_USER", "Install linked to another user.")
    refused(link(client, new_install(running, user="new"), external_id), 403,
            "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON",
            "This install is already in use, linking to another install is not possible.")
    for status, code, message in [
        ("disabled", "INSTALL_DISABLED", "Install is disabled."), ("deleted", "INSTALL_DELETED", "Install is deleted.")
    ]:
        other = new_install(running)
        assert running.bus.ask(c.set_status(other, status))["status"] == "succeeded"
        refused(link(client, other, fresh("ext")), 403, code, message)
    assert link(client, new_install(running), external_id).status == 200
    refused(link(client, install, external_id), 403, "INSTALL_DEACTIVATED")


def test_a_tablet_beside_a_phone_succeeds(running: GatewayDeployment, client: Client) -> None:
    """L22."""
    external_id = fresh("ext")
    first = link(client, new_install(running), external_id)
    assert link(client, new_install(running, TABLET), external_id).json == first.json


@pytest.fixture(scope="module")
def others(running: GatewayDeployment) -> dict[str, StandIn]:
    """The user and the sync service do all that they are asked."""
    return {name: running.stand_in(name, lambda _: [erased()]) for name in ("user", "sync")}


def erase(client: Client, user: str, key: str = BACKEND) -> Answer:
    return client.send("DELETE", f"/users/{user}", headers=bearer(key))


def test_erasing_a_user_is_answered_when_it_is_done(
    running: GatewayDeployment, client: Client, others: dict[str, StandIn]
) -> None:
    """L42, L61, F5. 200 with the certificate, of which the vendor's clients read nothing."""
    install, external_id = new_install(running), fresh("ext")
    user = link(client, install, external_id).text_of("id")
    for key, status, code in [("demo-sdk", 403, "INSUFFICIENT_SCOPE"), ("nobody", 401, "UNAUTHENTICATED")]:
        refused(erase(client, user, key), status, code)
    refused(erase(client, "0" * 24), 404, "USER_NOT_FOUND", "User was not found by the user ID provided.")
    later = lambda: client.send("GET", f"/users/{user}/erasure", headers=bearer(BACKEND))
    refused(later(), 404, "USER_NOT_FOUND", "No user with this id was erased.")
    for _ in range(2):
        answer = erase(client, user)
        assert answer.status == 200 and answer.json["done"]["link"] == {"persons": 1, "installs": 1}, answer
        assert later().json == answer.json and later().status == 200
    refused(link(client, install, external_id), 409, "NO_LINKING_IN_PROGRESS")
    again = link(client, new_install(running), external_id)
    assert again.status == 200 and again.text_of("id") != user
    assert client.post(f"/users/{user}", {}, BACKEND).status == 405
    for path in ["/users/", f"/users/{user}/x", "/users/a%2Fb"]:
        assert client.send("DELETE", path, headers=bearer(BACKEND)).status == 404


def test_an_erasure_that_takes_long_goes_on(
    running: GatewayDeployment, client: Client, others: dict[str, StandIn]
) -> None:
    hasty = running.gateway(GATEWAY_REPLY_TIMEOUT_MS="1500").start().wait_ready()
    assert isinstance(hasty, Gateway)
    user = link(client, new_install(running), fresh("ext")).text_of("id")
    sync = others["sync"]

    def goes_on() -> bool:
        answer = erase(hasty.client, user)
        # 504: this gateway's time was over before the service had begun.
        assert answer.status in (202, 504) and (answer.body == b"") == (answer.status == 202), answer
        assert answer.status == 504 or answer.headers["Location"] == f"/users/{user}/erasure"
        return answer.status == 202

    def asked() -> list[dict[str, Any]]:
        return [one.envelope for one in list(sync.commands) if one.data["userId"] == user]

    ready, sync.script = sync.script, lambda _: []
    until(goes_on, 30, "the erasure has begun")
    until(goes_on, 30, "who asks again waits along")
    until(asked, 15, "the command to sync")
    sync.script = ready
    so_far = client.send("GET", f"/users/{user}/erasure", headers=bearer(BACKEND))
    assert so_far.status == 202 and "completedAt" not in so_far.json, so_far
    # Link asks again after 5 s, with the same command.
    assert len({command["id"] for command in asked()}) == 1
    sync.answer(asked()[0], erased())
    until(lambda: erase(hasty.client, user).status == 200, 15, "the end of the erasure")
    hasty.stop()


@pytest.mark.parametrize("path", ["/v2/users/some-install/link", "/users/auth-code"])
def test_credentials(client: Client, path: str) -> None:
    body = {"external_id": "ada"}
    wrong = [
        {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer nodot"}, basic(BACKEND),
        bearer(BACKEND, "wrong"), bearer("nobody", "secret-secret"), bearer("demo-backend.extra"),
        {"Authorization": f"Bearer {BACKEND}."}, {"Authorization": "Bearer ."},
        {"Authorization": f"Bearer internal.{'x' * 16}"}, bearer("demo-expired"),
    ]
    for headers in wrong:
        answer = client.send("POST", path, body, headers)
        refused(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    refused(client.post(path, body, "demo-expired"), 401, "UNAUTHENTICATED", "The API key has expired.")
    # Who does not hold the key does not learn that it expired.
    assert "expired" not in client.send("POST", path, body, bearer("demo-expired", "wrong")).text_of("message")
    refused(client.post(path, body, "demo-sdk"), 403, "INSUFFICIENT_SCOPE")
    token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    refused(client.send("POST", path, body, {"Authorization": f"Bearer {token}"}), 403, "USER_TOKEN_NOT_ALLOWED")


@pytest.mark.parametrize("path", ["/v2/users/some-install/link", "/users/auth-code"])
@pytest.mark.parametrize("body", [
    None, b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"{}", b'{"external_id":null}', b'{"external_id":7}',
    b'{"external_id":""}', b'{"external_id":["a"]}', b'{"external_id":"a","external_id":"b"}',
    b'{"external_id":"\\ud800"}', b'{"a":' * 40 + b"1" + b"}" * 40, b"\xef\xbb\xbf{}",
], ids=lambda body: "none" if body is None else body[:24].decode(errors="replace"))
def test_bodies_that_are_refused(client: Client, path: str, body: bytes | None) -> None:
    refused(client.post(path, body, BACKEND), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("external_id", ["null", "undefined", "0", " ada", "ada ", "--", "a\u0007b", "x" * 751])
def test_external_ids_that_are_refused(running: GatewayDeployment, client: Client, external_id: str) -> None:
    answer = link(client, new_install(running), external_id)
    refused(answer, 400, "INVALID_REQUEST")
    assert answer.json["message"].startswith("external_id")


def test_an_install_of_255_bytes_is_looked_for_and_one_of_256_is_refused(client: Client) -> None:
    refused(link(client, "i" * 255, "ada"), 404, "INSTALL_NOT_FOUND")
    refused(link(client, "i" * 256, "ada"), 400, "INVALID_REQUEST")


def test_the_same_key_gets_the_first_answer(running: GatewayDeployment, client: Client) -> None:
    install, external_id, key = new_install(running), fresh("ext"), str(uuid.uuid4())
    first = link(client, install, external_id, Idempotency_Key=key)
    assert link(client, new_install(running), external_id).status == 200  # deactivates the first install
    again = link(client, install, external_id, Idempotency_Key=key)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["X-Request-Id"] == first.headers["X-Request-Id"]
    refused(link(client, install, external_id), 403, "INSTALL_DEACTIVATED")
    refused(link(client, install, fresh("ext"), Idempotency_Key=key), 409, "ID_REUSED")
    refused(link(client, install, external_id, Idempotency_Key="k" * 256), 400, "INVALID_REQUEST")


def test_a_refusal_is_the_first_answer_too(running: GatewayDeployment, client: Client) -> None:
    install, key = fresh("install"), str(uuid.uuid4())
    first = link(client, install, "ada", Idempotency_Key=key)
    assert running.bus.ask(c.register(install))["status"] == "succeeded"
    again = link(client, install, "ada", Idempotency_Key=key)
    assert (first.status, first.body) == (again.status, again.body) and first.status == 404


def test_one_key_twice_at_once(running: GatewayDeployment, client: Client) -> None:
    install, external_id, key = new_install(running), fresh("ext"), str(uuid.uuid4())
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(link(client, install, external_id, Idempotency_Key=key)))
        for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and len({(answer.status, answer.body) for answer in answers}) == 1
    assert answers[0].status == 200


def test_killed_while_requests_wait(running: GatewayDeployment) -> None:
    """The client's retry, at another replica, gets the answer that the first one would have got."""
    gateway = running.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    link_service = running.services[0]
    installs = [new_install(running) for _ in range(20)]
    external_ids = [fresh("ext") for _ in installs]
    keys = [str(uuid.uuid4()) for _ in installs]
    link_service.pause()
    failures: list[BaseException] = []
    client = gateway.client

    def request(number: int) -> None:
        try:
            link(client, installs[number], external_ids[number], Idempotency_Key=keys[number])
        except OSError as problem:
            failures.append(problem)

    threads = [threading.Thread(target=request, args=[number]) for number in range(len(installs))]
    for thread in threads:
        thread.start()
    until(lambda: gateway.metric("gateway_requests_in_flight") == 20, 20, "all waiting")
    gateway.kill()
    for thread in threads:
        thread.join()
    assert len(failures) == 20
    link_service.resume()
    second = running.gateway().start().wait_ready()
    assert isinstance(second, Gateway)
    answers = [
        link(second.client, install, external_id, Idempotency_Key=key)
        for install, external_id, key in zip(installs, external_ids, keys)]
    assert [answer.status for answer in answers] == [200] * 20
    for answer in answers:
        # Linked once: that no other event follows is seen at the end.
        events = running.bus.events(answer.headers["X-Request-Id"], 1)
        assert {(type, data["userId"]) for type, data in events} == {("linked", answer.json["id"])}
    second.stop()


def test_without_a_service_the_request_times_out_and_says_which(running: GatewayDeployment) -> None:
    # Long enough for the answer of a service that is there, on a machine with other things to do.
    gateway = running.gateway(GATEWAY_REPLY_TIMEOUT_MS="3000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    link_service = running.services[0]
    install, external_id, key = new_install(running), fresh("ext"), str(uuid.uuid4())
    link_service.pause()
    try:
        start, in_time = time.monotonic(), Deadline(30)
        late = link(gateway.client, install, external_id)
        refused(late, 504, "REPLY_TIMEOUT")
        assert 2.9 < time.monotonic() - start and in_time.left
        kept = link(gateway.client, install, external_id, Idempotency_Key=key)
        refused(kept, 504, "REPLY_TIMEOUT")
        assert kept.json["ref"] == kept.headers["X-Request-Id"]
    finally:
        link_service.resume()
    # Without a key nobody can ask again, so the command has expired; with one it is decided, as soon as the service is
    # back in its groups.
    deadline = Deadline(30)
    while (answer := link(gateway.client, install, external_id, Idempotency_Key=key)).status == 504:
        assert deadline.left, "the service is back, and its answer does not come"
    assert answer.status == 200
    gateway.stop()


def test_the_access_log_has_traces_and_no_secrets(running: GatewayDeployment, gateway: Gateway) -> None:
    trace = uuid.uuid4().hex
    install, external_id = new_install(running), fresh("ext")
    answer = link(gateway.client, install, external_id, traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    assert answer.status == 200
    lines = until(lambda: gateway.access(trace), 10, "the access log's line")
    assert len(lines) == 1
    fields = lines[0]
    assert {name: fields[name] for name in ("method", "route", "status", "app", "key", "trace", "ref")} == {
        "method": "POST", "route": "/v2/users/{install_id}/link", "status": 200, "app": "demo", "key": BACKEND,
        "trace": trace, "ref": answer.headers["X-Request-Id"]}
    text = gateway.log.read_text()
    assert install not in text and external_id not in text
    event = running.bus.collector.wait(
        lambda: running.bus.collector.events[answer.headers["X-Request-Id"]], 10, lambda: "the event")[0]
    assert event.envelope["traceparent"] == f"00-{trace}-00f067aa0ba902b7-01"


def test_paths_and_methods(client: Client) -> None:
    for path in ["/", "/v2/users//link", "/v2/users/a/b/link", "/v2/users/a/link/", "/nothing", "/v2/users/%ff/link"]:
        answer = client.post(path, {}, BACKEND)
        assert answer.status == 404 and answer.json["code"] == "NO_SUCH_ENDPOINT", path
        assert answer.headers["Content-Type"] == "application/problem+json"
    for method in ["GET", "PUT", "DELETE", "PATCH"]:
        answer = client.send(method, "/v2/users/a/link")
        assert answer.status == 405 and answer.headers["Allow"] == "POST, OPTIONS"
    for path in ["/v2/users/a/link", "/users/auth-code", "/v1/verification/check", "/v1/verification/sessions/a"]:
        answer = client.send("OPTIONS", path)
        assert answer.status == 204 and answer.headers["Allow"].endswith("OPTIONS")
        assert not any(name.startswith("Access-Control") for name in answer.headers), "backends' calls are not for browsers"


def test_what_can_be_done_is_told(client: Client) -> None:
    """HEAD is GET without the body, OPTIONS tells the methods (RFC 9110, 9.3.2 and 9.3.7)."""
    whole = client.get("/openapi.json")
    head = client.send("HEAD", "/openapi.json")
    assert head.status == 200 and head.body == b""
    for name in ["Content-Length", "Content-Type", "ETag"]:
        assert head.headers[name] == whole.headers[name]
    assert client.send("OPTIONS", "/openapi.json").headers["Allow"] == "GET, HEAD, OPTIONS"
    assert client.send("OPTIONS", "*").headers["Allow"] == "DELETE, GET, HEAD, POST, OPTIONS"
    assert client.send("OPTIONS", "/nothing").status == 404
    # A refusal of HEAD has no body either, or it would be read as the next answer.
    data = b"HEAD /nothing HTTP/1.1\r\nHost: l\r\n\r\nHEAD /v1/login HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n"
    answer = client.raw(data)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"404", b"405"] and b"{" not in answer


def test_answers_are_not_kept_by_caches(client: Client) -> None:
    assert link(client, "nobody", "ada").headers["Cache-Control"] == "no-store"


def test_a_key_that_is_added_to_the_apps_file_works_without_a_restart(
    running: GatewayDeployment, client: Client
) -> None:
    secret = "demo-secret-added-later"
    text = running.apps_file.read_text()
    added = text.replace(
        "      - id: demo-backend\n",
        f"      - id: added-later\n        secret: {secret}\n        scopes: [user.link]\n      - id: demo-backend\n", 1)

    def write(content: str) -> None:
        part = running.apps_file.with_suffix(".part")
        part.write_text(content)
        part.replace(running.apps_file)

    write(added)
    try:
        install, external_id = new_install(running), fresh("ext")
        until(lambda: link(client, install, external_id, "added-later").status == 200, 15, "the new key", 0.5)
    finally:
        write(text)


def test_health_and_metrics(gateway: Gateway) -> None:
    assert gateway.get("/livez")[0] == 200

    def is_ready() -> bool:
        status, text = gateway.get("/readyz")
        return status == 200 and json.loads(text)["status"] == "ok"

    until(is_ready, 15, "ready")  # the latest look at the broker may have come late
    text = gateway.get("/metrics")[1]
    assert 'gateway_requests_total{route="/v2/users/{install_id}/link",status="200"}' in text
    assert "gateway_request_duration_seconds_bucket" in text
