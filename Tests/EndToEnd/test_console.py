# SPDX-License-Identifier: Apache-2.0
"""The console (docs/console.md) without a browser: its files and their headers, and the calls that its pages make. The pages
themselves are tested in Tests/Browser."""

import re
from collections.abc import Iterator

import pytest

from identitybus_testkit.commands import fresh, request
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
SOURCES = REPOSITORY / "Services" / "Gateway" / "Console"


class Console:
    def __init__(self, deployment: GatewayDeployment) -> None:
        self.deployment = deployment
        self.services: dict[str, Service] = {name: deployment.process(name).start() for name in SERVICES}
        self.gateway: Gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0", CONSOLE="yes")
        self.gateway.start().wait_ready()
        for service in self.services.values():
            service.wait_ready()
        self.admin = self.gateway.admin

    def person(self, id: str, key: str = "demo-support", **more: object) -> dict[str, object]:
        answer = self.admin.post("/admin/v1/people/resolve", {"id": id, **more}, key)
        assert answer.status == 200, answer.body
        return dict(answer.json)


@pytest.fixture(scope="module")
def at(gateway_deployment: GatewayDeployment) -> Iterator[Console]:
    yield Console(gateway_deployment)


# The files


def served(at: Console) -> dict[str, str]:
    """What a browser loads, by path: the page, and all that it names."""
    found: dict[str, str] = {}
    wanted = ["/console"]
    while wanted:
        path = wanted.pop()
        if path in found:
            continue
        answer = at.admin.get(path)
        assert answer.status == 200, path
        found[path] = answer.body.decode()
        wanted += re.findall(r'"(/console/[\w.-]+)"', found[path])
        wanted += [f"/console/{name}" for name in re.findall(r'"\./([\w.-]+)"', found[path])]
    return found


def test_every_file_is_served_with_its_headers_and_all_are_small(at: Console) -> None:
    files = served(at)
    sources = [path for path in SOURCES.iterdir() if path.suffix in (".html", ".js", ".css")]
    assert len(files) == len(sources)
    assert sum(path.stat().st_size for path in sources) <= 60 * 1024, "as they are written, with comments and indentation"
    types = {"js": "text/javascript", "css": "text/css", "console": "text/html"}
    for path in files:
        headers = at.admin.get(path).headers
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Type"] == types[path.split("/")[-1].rsplit(".", 1)[-1]] + "; charset=utf-8"
        assert "Access-Control-Allow-Origin" not in headers and "Set-Cookie" not in headers
        if path != "/console":
            assert re.search(r"-[0-9a-f]{10}\.(js|css)$", path)


def test_nothing_else_is_there(at: Console) -> None:
    assert at.admin.get("/console/").body == at.admin.get("/console").body
    for path in ("/console//", "/console/app.js", "/console/nothing.js", "/console/..%2Fopenapi.json", "/console/a/b"):
        assert at.admin.get(path).status == 404, path
    assert at.admin.post("/console", {}).status == 405
    assert at.gateway.client.get("/console").status == 404


def test_no_text_can_become_markup(at: Console) -> None:
    for path, text in served(at).items():
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage", "cookie"):
            assert word not in text, (path, word)


def test_without_the_setting_no_address_answers(gateway_deployment: GatewayDeployment, at: Console) -> None:
    gateway = gateway_deployment.gateway(GATEWAY_ADMIN_PORT="0")
    gateway.start().wait_ready()
    for path in ("/console", "/admin/v1/status", "/admin/v1/dead-letters"):
        assert gateway.admin.get(path, "demo-support").status == 404, path
    gateway.stop()


# The calls


def test_a_key_is_told_what_it_may(at: Console) -> None:
    told = at.admin.get("/admin/v1/key", "demo-support").json
    assert told == {"key": "demo-support", "app": "demo", "scopes": ["support"], "enforces": False, "isMasked": False}
    assert at.admin.get("/admin/v1/key", "support-desk").json["enforces"] is True
    assert at.admin.get("/admin/v1/key").status == 401
    assert at.admin.send("GET", "/admin/v1/key", headers={"Authorization": "Bearer demo-support.wrong"}).status == 401


def test_from_an_install_to_the_refusal_that_explains_the_case(at: Console) -> None:
    install, owner, other = fresh("install"), fresh("olivia"), fresh("otto")
    backend = at.gateway.client
    code = backend.post("/users/auth-code", {"external_id": owner}, "demo-backend").json["authentication_code"]
    user = {"installId": install, "device": {"kind": "phone", "platform": "ios"}, "authCode": code}
    assert backend.post("/sdk/v1/users", user, "demo-sdk").status == 200
    assert backend.post(f"/v2/users/{install}/link", {"external_id": other}, "demo-backend").status == 403

    person = at.person(install)
    assert person["silent"] == [] and person["leftOut"] == [] and person["hasMore"] is False
    rows = {(row["service"], row["row"]["kind"]): row for row in person["rows"]}
    assert rows["link", "user"]["row"]["externalId"] == owner
    assert rows["link", "user"]["words"].endswith(f"has external id {owner}")
    refusal = [one for one in person["decisions"] if one["outcome"] == "rejected"][-1]
    assert refusal["reason"] == "INSTALL_LINKED_TO_OTHER_USER"
    assert refusal["words"]["rule"] == "L8" and refusal["words"]["isShown"] is True
    assert refusal["words"]["outcome"].startswith("refused, INSTALL_LINKED_TO_OTHER_USER: ")
    # Of her it is not told: somebody else was meant.
    assert refusal["commandId"] not in [one["commandId"] for one in at.person(owner)["decisions"]]
    command = at.person(refusal["commandId"])
    assert command["rows"] == [] and {one["commandId"] for one in command["decisions"]} == {refusal["commandId"]}
    assert len(at.person(install, limit=1)["decisions"]) == 1 and at.person(install, limit=1)["hasMore"] is True
    assert at.person(fresh("nobody"))["rows"] == []


def test_without_the_scope_nothing_is_told(at: Console) -> None:
    for key in ("demo-backend", "demo-sdk", "demo-admin"):
        answer = at.admin.post("/admin/v1/people/resolve", {"id": "ada"}, key)
        assert (answer.status, answer.json["code"]) == (403, "INSUFFICIENT_SCOPE"), key
    for path in ("/admin/v1/status", "/admin/v1/dead-letters"):
        assert at.admin.get(path, "demo-backend").status == 403
    for body in ({}, {"id": 7}, {"id": "a", "limit": 0}, {"id": "a", "limit": "x"}, {"id": "a", "source": 1}):
        assert at.admin.post("/admin/v1/people/resolve", body, "demo-support").status == 400, body


def test_a_dry_run_is_told_in_words(at: Console) -> None:
    client = at.gateway.client
    names = {"customerid": fresh("grace"), "email": f"{fresh('grace')}@mail.example", "device_application_stamp": fresh("stamp")}
    body = {"environment": "development", "known_identities": names}
    mpid = client.send("POST", "/v1/login", body, {"x-mp-key": "demo-sdk"}).json["mpid"]
    act = {"mpid": str(mpid), "author": "kim", "reason": "case 1", "identities": [{"type": "email", "value": names["email"]}]}
    trial = at.admin.post("/admin/v1/sync/detach?dryRun=true", act, "demo-support").json
    assert any(f"was made with email {names['email']}" in event["words"] for event in trial["events"])


def test_the_replicas_say_how_they_are(at: Console) -> None:
    seen: dict[str, dict[str, object]] = {}

    def all_are_ready() -> bool:
        status = at.admin.get("/admin/v1/status", "demo-support").json
        seen.update({one["service"]: one for one in status["replicas"]})
        return all(seen.get(name, {}).get("isReady") for name in (*SERVICES, "gateway"))

    until(all_are_ready, 30, lambda: str(seen))
    for name, one in seen.items():
        assert one["failing"] == [] and one["apps"]["isValid"], name
        assert ("decided" in one, one["partitions"] > 0) == (name != "gateway", name != "gateway")
    first = at.admin.get("/admin/v1/status", "demo-support").json
    later = at.admin.get(f"/admin/v1/status?after={first['next']}", "demo-support").json
    assert later["next"] != first["next"]


def test_dead_letters_are_counted_by_reason(at: Console) -> None:
    at.deployment.bus.send(request(fresh("install"), fresh("dora"), signer="demo-expired"))

    def expired() -> list[dict[str, object]]:
        told = at.admin.get("/admin/v1/dead-letters", "demo-support").json
        return [one for one in told["groups"] if (one["service"], one["reason"]) == ("link", "KEY_EXPIRED")]

    until(lambda: bool(expired()), 30, lambda: "no dead letter")
    assert expired()[0]["open"] == expired()[0]["letters"] == 1
    assert re.fullmatch(r"link/\d+@\d+", str(expired()[0]["example"]))
    other = at.admin.get("/admin/v1/dead-letters", "support-desk").json
    assert all(one["reason"] != "KEY_EXPIRED" for one in other["groups"])
