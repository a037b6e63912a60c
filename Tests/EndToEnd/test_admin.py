# SPDX-License-Identifier: Apache-2.0
"""The admin port (docs/gateway.md "The admin port"): who may come in, what is read and by whom that is noted, pages, repairs
and their dry runs, through the gateway and the services as they run."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest

from identitybus_testkit import apps
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, basic, bearer
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

MANY = 250
UNKNOWN_USER = "0" * 24


def desk(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "keys": [
            apps.key(f"{name}-backend", "user.link", "user.delete", "verification.check"),
            apps.key(f"{name}-sdk", "sdk", "identity.sync"), apps.key(f"{name}-support", "support"),
            {**apps.key(f"{name}-masked", "support", "user.delete"), "masked": True},
        ],
        "sync": {**apps.worked("conversion"), "fromLinks": True},
    }


class Desk:
    """A deployment with two apps, and both ports of its gateway."""

    def __init__(self, deployment: GatewayDeployment, *settings: dict[str, Any]) -> None:
        apps.write(deployment.apps_file, list(settings) or [desk("desk"), desk("other")])
        self.deployment = deployment
        self.services = {name: deployment.process(name).start() for name in SERVICES}
        self.gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0")
        self.gateway.start().wait_ready()
        for service in self.services.values():
            service.wait_ready()
        self.api = self.gateway.client
        self.admin = self.gateway.admin

    def signs_up(self, external_id: str, device: dict[str, str] = PHONE, app: str = "desk") -> dict[str, Any]:
        code = good(self.api.post("/users/auth-code", {"external_id": external_id}, f"{app}-backend"))
        user = {"installId": fresh("install"), "device": device, "authCode": code["authentication_code"]}
        return dict(good(self.api.post("/sdk/v1/users", user, f"{app}-sdk")))

    def logs_in(self, customer: str, device: str, app: str = "desk") -> str:
        body = {"environment": "production",
                "known_identities": {"customerid": customer, "device_application_stamp": device}}
        return str(good(self.api.send("POST", "/v1/login", body, basic(f"{app}-sdk")))["mpid"])

    def read(self, path: str, key: str = "desk-support", **query: str) -> Answer:
        return self.admin.get(path + (f"?{urlencode(query)}" if query else ""), key)

    def resolve(self, kind: str, key: str = "desk-support", **body: Any) -> Answer:
        return self.admin.post(f"/admin/v1/{kind}/resolve", body, key)

    def reads(self, service: str, ref: str) -> list[dict[str, Any]]:
        """What the log of a service says of reading by this command."""
        return [json.loads(line)["fields"] for line in self.services[service].lines('"person.read"', f'"{ref}"')]


@pytest.fixture(scope="module")
def at(gateway_deployment: GatewayDeployment) -> Iterator[Desk]:
    yield Desk(gateway_deployment)


def good(answer: Answer) -> Any:
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, str(answer.json["code"])


def subject_digest(service: Service, desk_: Desk, kind: str, name: str, app: str = "desk") -> str:
    """As docs/operations.md says it is made."""
    salt = desk_.deployment.database.execute("SELECT value FROM salt", service=service.name)[0][0]
    text = b"".join(f"{len(part.encode())}:{part}".encode() for part in ("person-read", app, kind, name))
    return hmac.new(bytes(salt), text, hashlib.sha512).hexdigest()[:32]


def test_each_call_is_behind_one_port(at: Desk) -> None:
    document = good(at.admin.get("/openapi.json"))
    public = good(at.api.get("/openapi.json"))
    assert document["info"]["title"] == "IdentityBus, admin port" != public["info"]["title"]
    both = set(document["paths"]) & set(public["paths"])
    assert both == {"/openapi.json"}
    for path in set(document["paths"]) - both:
        for method in document["paths"][path]:
            assert code(at.api.send(method.upper(), path.replace("{", "").replace("}", ""))) == (404, "NO_SUCH_ENDPOINT")
    for path in ("/v1/login", "/sdk/v1/users", "/users/auth-code", "/healthz", "/readyz", "/metrics"):
        assert code(at.admin.send("POST", path)) == (404, "NO_SUCH_ENDPOINT")


def test_without_a_setting_there_is_no_such_port(gateway_deployment: GatewayDeployment) -> None:
    gateway = gateway_deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway) and gateway.address and not gateway.lines('"admin.up"')
    gateway.stop()


@pytest.mark.parametrize("key, status", [(None, 401), ("desk-backend", 403), ("desk-sdk", 403)])
def test_without_the_scope_nobody_learns_whether_somebody_exists(at: Desk, key: str | None, status: int) -> None:
    name = fresh("ext")
    user = at.signs_up(name)
    asked = at.services["link"].lines('"person.read"')
    answers = []
    for user_id, external_id in [(user["userId"], name), (UNKNOWN_USER, fresh("nobody"))]:
        headers = {} if key is None else bearer(key)
        for method, path, body in [
            ("GET", f"/admin/v1/users/{user_id}", None),
            ("POST", "/admin/v1/users/resolve", {"externalId": external_id}),
            ("POST", "/admin/v1/profiles/resolve", {"identity": {"type": "customerid", "value": external_id}}),
            ("POST", "/admin/v1/link/unlink-user", {"userId": user_id, "author": "a", "reason": "r"}),
        ]:
            answer = at.admin.send(method, path, body, headers)
            told = {k: v for k, v in answer.json.items() if k != "ref"}
            answers.append((method, path.split("/")[3:5] if body else "", answer.status, told))
    half = len(answers) // 2
    assert answers[:half] == answers[half:] and {answer[2] for answer in answers} == {status}
    # No command was made of it.
    assert at.services["link"].lines('"person.read"') == asked


def test_a_read_is_noted_with_the_key_and_without_the_person(at: Desk) -> None:
    name = f"{fresh('ada')}@example.com"
    user = at.signs_up(name)
    counted = at.services["link"].metric("identity_person_reads_total")
    by_id = at.read(f"/admin/v1/users/{user['userId']}")
    by_name = at.resolve("users", externalId=name)
    assert good(by_id) == good(by_name) and good(by_id)["externalId"] == name
    nobody = at.resolve("users", externalId=fresh("nobody"))
    assert code(nobody) == (404, "USER_NOT_FOUND")
    for answer, kind, subject, outcome in [
        (by_id, "userId", user["userId"], "succeeded"), (by_name, "externalId", name, "succeeded"), (nobody, "", "", "rejected"),
    ]:
        ref = answer.headers["X-Request-Id"]
        [line] = until(lambda ref=ref: at.reads("link", ref), 30, "the line")
        assert (line["authid"], line["app"], line["type"], line["outcome"]) == (
            "desk-support", "desk", "identity.link.get-user.v1", outcome)
        if kind:
            assert line["subject"] == subject_digest(at.services["link"], at, kind, subject)
    text = "\n".join(service.text for service in [*at.services.values(), at.gateway])
    assert name not in text and str(user["userId"]) not in text
    assert at.services["link"].metric("identity_person_reads_total") == counted + 3
    assert 'identity_person_reads_total{app="desk",key="desk-support",service="link"}' in at.services["link"].get(
        "/metrics")[1]


def test_a_read_over_kafka_is_noted_too(at: Desk) -> None:
    bus = at.deployment.bus
    mpid = at.logs_in(customer := fresh("ada"), fresh("device"))
    command = Command("link.get-user", {"externalId": customer}, customer, app="desk", signer="desk-support")
    assert bus.ask(command)["reason"] == "USER_NOT_FOUND"
    assert until(lambda: at.reads("link", command.id), 30, "the line")[0]["authid"] == "desk-support"
    for path, service in [(f"/admin/v1/profiles/{mpid}", "sync"), ("/admin/v1/sessions/some-device", "verification")]:
        answer = at.read(path)
        good(answer)
        assert until(lambda a=answer, s=service: at.reads(s, a.headers["X-Request-Id"]), 30, "the line")


def test_the_facts_of_all_services_about_an_id(at: Desk) -> None:
    name, device = fresh("ext"), fresh("device")
    user, mpid = at.signs_up(name), at.logs_in(name, device)
    answer = at.read(f"/admin/v1/facts/{user['installId']}")
    facts = good(answer)
    assert set(facts) == {"id", "services"} and set(facts["services"]) == set(SERVICES)
    told = {service: [(fact["service"], fact["outcome"], [event["type"] for event in fact["events"]])
                      for fact in part["facts"]] for service, part in facts["services"].items()}
    assert ("link", "succeeded", ["identity.link.install-registered.v1", "identity.link.linked.v1"]) in told["link"]
    assert [row["kind"] for row in facts["services"]["link"]["state"]] == ["install"]
    assert told["sync"] == told["verification"] == []
    # Reading is noted by each service, with the one id that the caller sees.
    ref = answer.headers["X-Request-Id"]
    for service in SERVICES:
        [line] = until(lambda s=service: at.reads(s, ref), 30, f"the line of {service}")
        assert (line["authid"], line["type"]) == ("desk-support", f"identity.{service}.facts.v1")
        assert line["subject"] == subject_digest(at.services[service], at, "id", user["installId"])
    # By what people are called, in the body.
    named = good(at.resolve("facts", id=name))
    assert {row["kind"] for row in named["services"]["sync"]["state"]} == {"identity"}
    assert {row["externalId"] for row in named["services"]["link"]["state"] if row["kind"] == "user"} == {name}
    profile = good(at.read(f"/admin/v1/facts/{mpid}"))
    assert {row["kind"] for row in profile["services"]["sync"]["state"]} == {"profile", "device"}
    # Who may not, and who is another app's; nobody is told apart from somebody unknown.
    assert code(at.read(f"/admin/v1/facts/{mpid}", "desk-backend")) == (403, "INSUFFICIENT_SCOPE")
    for nobody in (good(at.read(f"/admin/v1/facts/{mpid}", "other-support")), good(at.read(f"/admin/v1/facts/{fresh('x')}"))):
        assert all(part == {"state": [], "facts": []} for part in nobody["services"].values())


def test_facts_come_in_pages(at: Desk) -> None:
    name, device = fresh("ext"), fresh("device")
    mpid = at.logs_in(name, device)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: at.logs_in(name, f"{device}-{number}"), range(MANY)))
    seen, body = [], {"id": mpid}
    while True:
        page = good(at.resolve("facts", **body))
        seen += [(fact["topic"], fact["partition"], fact["offset"]) for fact in page["services"]["sync"]["facts"]]
        assert len(page["services"]["sync"]["facts"]) <= 100
        if "next" not in page:
            break
        by_query = {"after": body["after"]} if "after" in body else {}
        assert page == good(at.read(f"/admin/v1/facts/{mpid}", **by_query))
        body["after"] = page["next"]
    assert len(set(seen)) == len(seen) >= MANY
    # For another id it says nothing.
    other = at.logs_in(fresh("ext"), fresh("device"))
    assert code(at.resolve("facts", id=other, after=body["after"])) == (400, "INVALID_REQUEST")


def test_a_service_that_does_not_answer_is_named(at: Desk) -> None:
    mpid = at.logs_in(fresh("ext"), fresh("device"))
    assert at.services["user"].stop() == 0
    facts = good(at.read(f"/admin/v1/facts/{mpid}"))
    at.services["user"].start().wait_ready()
    assert facts["silent"] == ["user"] and facts["services"]["sync"]["state"]
    assert set(facts["services"]) == set(SERVICES) - {"user"}


def test_two_apps_see_nothing_of_each_other(at: Desk) -> None:
    name = fresh("ext")
    user, mpid = at.signs_up(name), at.logs_in(name, fresh("device"))
    for answer, reason in [
        (at.read(f"/admin/v1/users/{user['userId']}", "other-support"), "USER_NOT_FOUND"),
        (at.resolve("users", "other-support", externalId=name), "USER_NOT_FOUND"),
        (at.resolve("users", "other-support", installId=user["installId"]), "USER_NOT_FOUND"),
        (at.read(f"/admin/v1/profiles/{mpid}", "other-support"), "NOT_FOUND_ERROR"),
        (at.resolve("profiles", "other-support", identity={"type": "customerid", "value": name}), "NOT_FOUND_ERROR"),
        (at.admin.post("/admin/v1/link/unlink-user", {"userId": user["userId"], "author": "a", "reason": "r"},
                       "other-support"), "USER_NOT_FOUND"),
    ]:
        assert code(answer) == (404, reason)


def test_many_installs_and_devices_come_in_pages(at: Desk) -> None:
    name = fresh("ext")
    with ThreadPoolExecutor(8) as pool:
        users = list(pool.map(lambda _: at.signs_up(name), range(MANY)))
        list(pool.map(lambda number: at.logs_in(name, f"{name}-{number}"), range(MANY)))
    latest = at.signs_up(name)
    installs = {user["installId"] for user in [*users, latest]}
    mpid = at.logs_in(name, f"{name}-0")

    def pages(path: str, member: str) -> list[Any]:
        seen, after = [], {}
        while True:
            answer = at.read(path, **after)
            assert len(answer.body) < 256 * 1024
            page = good(answer)
            assert len(page[member]) <= 100
            seen += page[member]
            if "next" not in page:
                return seen
            after = {"after": page["next"]}

    user = good(at.resolve("users", externalId=name))
    assert user["installs"][0]["installId"] == latest["installId"] and len(user["installs"]) == 100
    found = pages(f"/admin/v1/users/{latest['userId']}", "installs")
    assert len(found) == MANY + 1 and {one["installId"] for one in found} == installs
    # By whichever name one goes on, and with nobody else's.
    more = good(at.resolve("users", externalId=name, after=user["next"]))
    assert more["installs"] == found[100:200]
    stranger = at.signs_up(fresh("ext"))
    assert code(at.read(f"/admin/v1/users/{stranger['userId']}", after=user["next"])) == (400, "INVALID_REQUEST")
    devices = pages(f"/admin/v1/profiles/{mpid}", "devices")
    assert len({one["deviceId"] for one in devices}) == MANY and devices[0]["deviceId"] == f"{name}-0"
    seen = [one["lastSeen"] for one in devices]
    assert seen == sorted(seen, reverse=True)


def test_a_repair_is_tried_and_then_done(at: Desk) -> None:
    name, new = fresh("ext"), fresh("new")
    user = at.signs_up(name)
    tablet = at.signs_up(name, TABLET)
    asked = {"externalId": name, "newExternalId": new, "author": "kim", "reason": "case 4711"}
    tried = good(at.admin.post("/admin/v1/link/change-external-id?dryRun=true", asked, "desk-support"))
    assert tried["dryRun"] is True and tried["result"]["externalId"] == new
    assert [event["type"] for event in tried["events"]] == [
        "identity.link.external-id-changed.v1", "identity.sync.identities-changed.v1"]
    assert good(at.read(f"/admin/v1/users/{user['userId']}"))["externalId"] == name
    for misspelt in ("?dryrun=true", "?dryRun=1", "?dryRun"):
        answer = at.admin.post(f"/admin/v1/link/change-external-id{misspelt}", asked, "desk-support")
        assert code(answer) == (400, "INVALID_REQUEST")
    # A member that nobody reads is a mistake, and so nothing is done.
    answer = at.admin.post("/admin/v1/link/change-external-id", {**asked, "newExternalID": "x"}, "desk-support")
    assert code(answer) == (400, "INVALID_REQUEST") and b"newExternalID" in answer.body
    # Who tries reads about somebody.
    ref = at.admin.post("/admin/v1/link/change-external-id?dryRun=true", asked, "desk-support").headers["X-Request-Id"]
    assert until(lambda: at.reads("link", ref), 30, "the line")[0]["outcome"] == "dry-run"
    done = at.admin.post("/admin/v1/link/change-external-id", asked, "desk-support")
    assert good(done)["externalId"] == new
    # What is so already is a read.
    again = at.admin.post("/admin/v1/link/change-external-id", {**asked, "externalId": new}, "desk-support")
    assert good(again)["externalId"] == new
    ref = again.headers["X-Request-Id"]
    assert until(lambda: at.reads("link", ref), 30, "the line")[0]["authid"] == "desk-support"
    assert not at.reads("link", done.headers["X-Request-Id"]), "its event says who has done it"
    # Whoever asks says who they are; whose key it was cannot be chosen.
    bus = at.deployment.bus

    def events() -> list[Any]:
        return [event for event in bus.collector.events.get(done.headers["X-Request-Id"], [])
                if event.envelope["type"] == "identity.link.external-id-changed.v1"]

    event = until(events, 30, "the event")[0]
    assert (event.data["author"], event.envelope["authtype"], event.envelope["authid"]) == (
        "kim", "api_key", "desk-support")
    active = good(at.admin.post("/admin/v1/link/make-active", {
        "installId": tablet["installId"], "author": "kim", "reason": "the phone is lost"}, "desk-support"))
    assert active["isActive"]
    unlinked = good(at.admin.post("/admin/v1/link/unlink-user", {
        "userId": user["userId"], "author": "kim", "reason": "wrong person"}, "desk-support"))
    assert "externalId" not in unlinked
    erased = at.api.send("DELETE", f"/users/{user['userId']}", headers=bearer("desk-backend"))
    assert good(erased)["done"]["link"]["persons"] == 1
    gone = until(lambda: bus.collector.events.get(erased.headers["X-Request-Id"]), 30, "the event")[0]
    assert gone.envelope["type"] == "identity.link.user-erased.v1" and gone.envelope["authid"] == "desk-backend"
    without = at.admin.post("/admin/v1/link/unlink-user", {"userId": user["userId"]}, "desk-support")
    assert code(without) == (400, "INVALID_REQUEST")


def test_an_erasure_by_hand_has_an_author(at: Desk) -> None:
    name = fresh("ext")
    user, mpid = at.signs_up(name), at.logs_in(name, fresh("device"))
    asked = {"userId": user["userId"], "author": "kim", "reason": "case 4712"}
    path = "/admin/v1/link/erase-user"
    # Who helps people may not erase them, and learns nothing.
    assert code(at.admin.post(path, asked, "desk-support")) == (403, "INSUFFICIENT_SCOPE")
    assert code(at.admin.post(path, asked, "other-backend")) == (404, "USER_NOT_FOUND")
    assert code(at.admin.post(path, {**asked, "userid": "x"}, "desk-backend")) == (400, "INVALID_REQUEST")
    assert code(at.admin.post(path, {**asked, "author": ""}, "desk-backend")) == (400, "INVALID_REQUEST")
    assert code(at.read(f"/admin/v1/users/{user['userId']}/erasure", "desk-backend")) == (404, "USER_NOT_FOUND")
    tried = good(at.admin.post(f"{path}?dryRun=true", asked, "desk-backend"))
    assert tried["dryRun"] is True and tried["result"]["done"]["sync"]["profiles"] == 1
    assert f"user {user['userId']} is erased; by kim: case 4712" in [event["words"] for event in tried["events"]]
    assert any(event["words"].startswith(f"profile {mpid} is erased") for event in tried["events"])
    assert good(at.read(f"/admin/v1/users/{user['userId']}"))["externalId"] == name
    done = at.admin.post(path, asked, "desk-backend")
    certificate = good(done)
    assert certificate["subject"] == {"userIds": [user["userId"]], "mpids": [mpid]} and certificate["completedAt"]
    assert good(at.read(f"/admin/v1/users/{user['userId']}/erasure", "desk-backend")) == certificate
    assert code(at.read(f"/admin/v1/users/{user['userId']}/erasure")) == (403, "INSUFFICIENT_SCOPE")
    # What is told of it, and what is read of it later, says who asked, beside the key that nobody chooses.
    event = until(lambda: at.deployment.bus.collector.events.get(done.headers["X-Request-Id"]), 30, "the event")[0]
    assert event.data == {"userId": user["userId"], "author": "kim", "reason": "case 4712"}
    assert event.envelope["authid"] == "desk-backend"
    facts = good(at.read(f"/admin/v1/facts/{user['userId']}"))["services"]["link"]["facts"]
    [fact] = [one for one in facts if one["type"] == "identity.link.erase-user.v1"]
    assert fact["authId"] == "desk-backend" and fact["events"][0]["data"]["author"] == "kim"
    # Programs say neither.
    other = at.signs_up(fresh("ext"))
    assert good(at.admin.post(path, {"userId": other["userId"]}, "desk-backend"))["completedAt"]


def test_a_masked_key_finds_by_whole_values_and_is_shown_none(at: Desk) -> None:
    """docs/gateway.md "The admin port": in every read, in sentences, in what a dry run says and in what was asked for."""
    name, phone, device = f"{fresh('ivan')}@mail.example", "+491701234567", fresh("device")
    email, alias = f"{fresh('mail')}@mail.example", fresh("nick")
    identities = {"customerid": name, "email": email, "mobile_number": phone, "other": alias, "device_application_stamp": device}
    mpid = str(good(at.api.send(
        "POST", "/v1/login", {"environment": "production", "known_identities": identities}, basic("desk-sdk")))["mpid"])
    user = at.signs_up(name)
    hidden = [text.encode() for text in (name, name.split("@")[0], email, phone, alias)]
    asked = {"mpid": mpid, "isRestricted": True, "author": "kim", "reason": f"{email} wrote"}
    path = f"/userprofile/v1/1/2/3/{mpid}?fields=user_identities"
    reads = {
        "person by e-mail": lambda key: at.resolve("people", key, id=email),
        "person by external id": lambda key: at.resolve("people", key, id=name),
        "facts": lambda key: at.resolve("facts", key, id=phone), "facts by id": lambda key: at.read(f"/admin/v1/facts/{mpid}", key),
        "profile": lambda key: at.read(f"/admin/v1/profiles/{mpid}", key),
        "profile by e-mail": lambda key: at.resolve("profiles", key, identity={"type": "email", "value": email}),
        "user": lambda key: at.resolve("users", key, externalId=name),
        "the vendor's profile": lambda key: at.admin.get(path, key),
        "a dry run": lambda key: at.admin.post("/admin/v1/sync/restrict?dryRun=true", asked, key),
        "an erasure": lambda key: at.admin.post(
            "/admin/v1/link/erase-user?dryRun=true", {"userId": user["userId"], "author": "kim", "reason": email}, key),
    }
    for what, read in reads.items():
        plain = "desk-backend" if what == "an erasure" else "desk-support"
        whole, masked = good(read(plain)), read("desk-masked")
        assert any(text in str(whole).encode() for text in hidden) or what == "an erasure", what
        shown = good(masked)
        assert not [text for text in hidden if text in masked.body], (what, masked.body)
        # It is the same answer otherwise: nobody is found or missed for it.
        assert set(shown) == set(whole) and len(str(shown)) > len(str(whole)) / 2, what
    person = good(at.resolve("people", "desk-masked", id=email))
    assert person["id"] == "m•••@m•••" and {row["row"]["kind"] for row in person["rows"]} >= {"profile", "identity"}
    # What is masked finds nobody, and no part of a value does.
    for part in ("m•••@m•••", email[:-1], phone[-2:], "•••67"):
        assert good(at.resolve("people", "desk-masked", id=part))["rows"] == [], part
    refused = at.admin.post("/admin/v1/sync/detach", {
        "mpid": mpid, "identities": [{"type": "email", "value": "m•••@m•••"}], "author": "kim", "reason": "r"}, "desk-masked")
    assert refused.status == 400 and not [text for text in hidden if text in refused.body]
    assert good(at.admin.get("/admin/v1/key", "desk-masked"))["isMasked"] is True


def test_programs_of_the_vendor_read_profiles(at: Desk) -> None:
    name = fresh("ext")
    mpid = at.logs_in(name, fresh("device"))
    path = f"/userprofile/v1/11/22/33/{mpid}?fields=user_identities,audience_memberships"
    profile = good(at.admin.get(path, "desk-support"))
    assert profile["mpid"] == int(mpid) and profile["audience_memberships"] == []
    assert profile["user_identities"] == [{"type": "customer_id", "encoding": "none", "value": name}]
    asked = {"environment_type": "production", "identity": {"type": "customer_id", "value": name}}
    resolved = at.admin.post(
        "/userprofile/v1/resolve/11/22/33?fields=user_identities,audience_memberships", asked, "desk-support")
    assert good(resolved) == profile
    assert at.admin.get(f"/userprofile/v1/11/22/33/{mpid}", "desk-support").status == 400
    assert at.admin.get(path, "desk-sdk").status == 403
