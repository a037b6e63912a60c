# SPDX-License-Identifier: Apache-2.0
"""What is known of somebody is kept and not used (docs/sync.md "Restriction"): through both ports of the gateway and all
services as they run, on both stores."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.http import Answer, basic
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.verification import token, verification_app
from identitybus_testkit.waiting import until
from test_admin import Desk, code, desk, good

SERVICES = ("link", "user", "sync", "verification")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def at(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Iterator[Desk]:
    deployment = make_deployment(request.param, kind=GatewayDeployment, services=SERVICES)
    assert isinstance(deployment, GatewayDeployment)
    yield Desk(deployment, desk("desk") | {"verification": verification_app("desk", "report")["verification"]})


def restrict(at: Desk, is_restricted: bool = True, query: str = "", key: str = "desk-support", **whom: Any) -> Answer:
    data = {**whom, "isRestricted": is_restricted, "author": "kim", "reason": "case 4711"}
    return at.admin.post(f"/admin/v1/sync/restrict{query}", data, key)


def profile(at: Desk, mpid: str) -> dict[str, Any]:
    return dict(good(at.read(f"/admin/v1/profiles/{mpid}")))


def installs(at: Desk, user: str) -> dict[str, str | None]:
    """Why the user is not active on each install."""
    found = good(at.read(f"/admin/v1/users/{user}"))["installs"]
    return {one["installId"]: one.get("inactiveBecause") for one in found}


def logs_in(at: Desk, device: str, **identities: str) -> dict[str, Any]:
    body = {"environment": "production", "known_identities": {"device_application_stamp": device, **identities}}
    return dict(good(at.api.send("POST", "/v1/login", body, basic("desk-sdk"))))


def linked(at: Desk, name: str) -> tuple[dict[str, Any], str]:
    """Somebody with an install, and their profile, which is marked."""
    user = at.signs_up(name)
    mpid = at.logs_in(name, fresh("device"))
    until(lambda: profile(at, mpid).get("userId") == user["userId"], 30, "the mark")
    return user, mpid


def test_it_is_tried_and_then_done(at: Desk) -> None:
    """S136, S141."""
    user, mpid = linked(at, fresh("anna"))
    tried = good(restrict(at, query="?dryRun=true", mpid=mpid))
    result = {"mpid": mpid, "isRestricted": True, "userId": user["userId"]}
    assert tried["dryRun"] is True and tried["result"] == result
    assert [event["type"] for event in tried["events"]] == [
        "identity.sync.user-restriction-changed.v1", "identity.sync.restriction-changed.v1",
        "identity.link.install-status-changed.v1"]
    assert profile(at, mpid)["isRestricted"] is False
    assert good(restrict(at, mpid=mpid)) == result == good(restrict(at, mpid=mpid))
    assert profile(at, mpid)["isRestricted"] is True
    assert good(at.read(f"/userprofile/v1/1/2/3/{mpid}", fields="user_identities"))["is_opted_out"] is True
    assert code(restrict(at, mpid="42")) == (404, "NOT_FOUND_ERROR")
    assert code(restrict(at, mpid=mpid, key="desk-backend")) == (403, "INSUFFICIENT_SCOPE")
    assert code(restrict(at)) == (400, "INVALID_REQUEST")


def test_the_person_uses_the_app_and_nothing_is_learnt(at: Desk) -> None:
    """S137, S139."""
    anna, device = fresh("anna"), fresh("device")
    mpid = at.logs_in(anna, device)
    good(restrict(at, identity={"type": "customerid", "value": anna}))
    before = profile(at, mpid)
    email, other = f"{anna}@mail.example", fresh("tablet")
    assert logs_in(at, other, customerid=anna, email=email)["mpid"] == mpid
    bus = at.deployment.bus
    reply = bus.ask(c.sync("identify", device, {"customerid": anna, "email": email}, "desk"))
    assert (reply["result"]["mpid"], reply["result"]["isRestricted"]) == (mpid, True)
    after = profile(at, mpid)
    assert {one["deviceId"] for one in after["devices"]} > {one["deviceId"] for one in before["devices"]}
    assert {**after, "devices": 0, "deviceCount": 0} == {**before, "devices": 0, "deviceCount": 0}
    out = bus.ask(c.sync("logout", device, {"device_application_stamp": device}, "desk"))["result"]
    assert out["mpid"] != mpid and "isRestricted" not in out

    change = {"environment": "production", "identity_changes": [
        {"old_value": None, "new_value": email, "identity_type": "email"}]}
    refused = at.api.send("POST", f"/v1/{mpid}/modify", change, basic("desk-sdk"))
    # The vendor's 403 has no body.
    assert (refused.status, refused.body) == (403, b"")
    asked = bus.ask(c.modify(mpid, c.change("email", None, email), app="desk"))
    assert asked["reason"] == "RESTRICTED"
    bert = at.logs_in(fresh("bert"), fresh("device"))
    for source, destination in ((mpid, bert), (bert, mpid)):
        alias = Command(
            "sync.alias", {"sourceMPID": source, "destinationMPID": destination}, destination, app="desk",
            signer="desk-sdk")
        assert bus.ask(alias)["reason"] == "RESTRICTED"

    good(restrict(at, False, mpid=mpid))
    assert logs_in(at, other, customerid=anna, email=email)["mpid"] == mpid
    assert profile(at, mpid)["identities"]["email"] == [email]


def test_the_installs_are_disabled_meanwhile(at: Desk) -> None:
    """L82, L83, U95."""
    name = fresh("anna")
    user, mpid = linked(at, name)
    phone = user["installId"]
    good(restrict(at, mpid=mpid))
    until(lambda: installs(at, user["userId"]) == {phone: "restricted"}, 30, "the phone is disabled")

    def told(install: str) -> Any:
        token_of = user["token"]["tokenId"]
        return good(at.api.send("GET", f"/sdk/v1/installs/{install}", headers={"Authorization": f"Bearer {token_of}"}))

    until(lambda: told(phone).get("inactiveBecause") == "restricted", 30, "the app of the phone is told")
    assert told(phone)["isRemoteEnabled"] is False
    new = at.signs_up(name)
    assert (new["userId"], new["isRemoteEnabled"], new["inactiveBecause"]) == (user["userId"], False, "restricted")
    tablet = at.signs_up(name, TABLET)
    assert set(installs(at, user["userId"]).values()) == {"restricted"}
    good(restrict(at, False, mpid=mpid))
    active = {phone: "superseded", new["installId"]: None, tablet["installId"]: "waitsForPhone"}
    until(lambda: installs(at, user["userId"]) == active, 30, "the last phone is active")
    until(lambda: told(new["installId"])["isRemoteEnabled"], 30, "its app is told")


def test_somebody_who_signs_up_later_is_disabled_too(at: Desk) -> None:
    """S141."""
    name = fresh("later")
    mpid = at.logs_in(name, fresh("device"))
    good(restrict(at, mpid=mpid))
    user = at.signs_up(name, PHONE)
    until(lambda: installs(at, user["userId"]) == {user["installId"]: "restricted"}, 30, "the phone is disabled")
    good(at.admin.post("/admin/v1/link/unlink-user", {
        "userId": user["userId"], "author": "kim", "reason": "somebody else"}, "desk-support"))
    # Whoever the user is, it is not who is restricted.
    until(lambda: installs(at, user["userId"]) == {user["installId"]: None}, 30, "the phone is enabled")
    assert profile(at, mpid)["isRestricted"] is True


def test_issues_are_filed_as_before(at: Desk) -> None:
    """V94, S138."""
    def logs_in_verified(device: str, **who: str) -> dict[str, Any]:
        return dict(good(at.api.post("/v1/verification/login", {"deviceId": device, **who}, "desk-sdk")))

    device, anna = fresh("device"), fresh("anna")
    nobody = logs_in_verified(device)
    assert nobody["state"] == "anonymous"
    good(restrict(at, mpid=nobody["mpid"]))
    assert logs_in_verified(device) == nobody and nobody["mayFileIssues"] is True
    who = {"userId": anna, "userAuthToken": token(anna, app="desk")}
    verified = logs_in_verified(device, **who)
    assert verified["state"] == "verified" and verified["mpid"] != nobody["mpid"]
    good(restrict(at, mpid=verified["mpid"]))
    assert logs_in_verified(fresh("device"), **who) == verified and verified["mayFileIssues"] is True
    session = good(at.read(f"/admin/v1/sessions/{device}"))
    assert (session["state"], session["mpid"]) == ("verified", verified["mpid"])
    assert "customerid" not in profile(at, nobody["mpid"])["identities"]


def test_facts_say_so_and_an_erasure_ends_it(at: Desk) -> None:
    """S135, S136, L81, L84."""
    user, mpid = linked(at, fresh("anna"))
    done = restrict(at, mpid=mpid)
    assert good(done)["isRestricted"]
    until(lambda: installs(at, user["userId"]) == {user["installId"]: "restricted"}, 30, "the phone is disabled")
    bus = at.deployment.bus

    def facts(service: str, subject: str) -> dict[str, Any]:
        reply = bus.ask(Command(f"{service}.facts", {"id": subject}, subject, app="desk", signer="desk-support"))
        assert reply["status"] == "succeeded", reply
        return dict(reply["result"])

    of_profile, of_user = facts("sync", mpid), facts("link", user["userId"])
    assert [row["isRestricted"] for row in of_profile["state"] if row["kind"] == "profile"] == [True]
    assert of_profile["facts"][0]["type"] == "identity.sync.restrict.v1"
    assert [row["isRestricted"] for row in of_user["state"] if row["kind"] == "user"] == [True]
    assert of_user["facts"][0]["type"] == "identity.sync.user-restriction-changed.v1"
    environment = clean_environment() | at.deployment.environment()
    explained = subprocess.run(
        [binary("identitybus"), "explain", "--app=desk", "--key-id=desk-support", "--", user["userId"]],
        env=environment, capture_output=True, text=True, timeout=60)
    assert f"user {user['userId']} has external id " in explained.stdout, explained
    assert explained.stdout.split("HOW IT CAME")[0].count(", restricted") == 2, explained.stdout
    erase = Command("sync.erase-profile", {"mpid": mpid, "persons": "none"}, mpid, app="desk", signer="desk-backend")
    assert bus.settle(erase)["status"] == "succeeded"
    assert profile(at, mpid)["isRestricted"] is False
    until(lambda: installs(at, user["userId"]) == {user["installId"]: None}, 30, "the phone is enabled")
