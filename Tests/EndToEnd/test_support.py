# SPDX-License-Identifier: Apache-2.0
"""Who helps users reads who they are and puts right what is wrong (docs/link.md "Support", docs/sync.md S118 to S120),
through the link, the user and the sync service as they run, on both stores."""

from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.waiting import until

APP = "helped"
SERVICES = ("link", "user", "sync")
Reply = dict[str, Any]


def helped() -> dict[str, Any]:
    return {
        "id": APP,
        "keys": [
            apps.key("helped-backend", "user.link", "user.delete"), apps.key("helped-sdk", "sdk", "identity.sync"),
            apps.key("helped-support", "support"),
        ],
        "sdk": {"keysOpenInstalls": True},
        "sync": {**apps.worked("conversion"), "fromLinks": True},
    }


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def platform(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment(request.param, services=SERVICES)
    apps.write(deployment.apps_file, [helped(), *apps.apps()])
    for service in [deployment.service(name).start() for name in SERVICES]:
        service.wait_ready()
    return deployment


@pytest.fixture
def bus(platform: Deployment) -> Bus:
    return platform.bus


class Person:
    """Somebody with an external id who signed up on a phone."""

    def __init__(self, bus: Bus) -> None:
        self.bus, self.external_id, self.phone = bus, fresh("ext"), fresh("phone")
        self.user = self.comes(self.phone, PHONE)["userId"]

    def code(self, external_id: str | None = None) -> str:
        reply = self.bus.ask(c.request_code(external_id or self.external_id, APP, signer="helped-backend"))
        return str(result(reply)["authenticationCode"])

    def comes(self, install: str, device: dict[str, str]) -> dict[str, Any]:
        return result(self.bus.settle(
            c.create(install, device, APP, authCode=self.code()).but(signer="helped-sdk")))

    def profile(self, external_id: str | None = None) -> dict[str, Any] | None:
        """As soon as the link has made it."""
        named = {"type": "customerid", "value": external_id or self.external_id}
        reply = self.bus.ask(support("sync.get-profile", named["value"], identity=named))
        return reply["result"] if reply["status"] == "succeeded" else None


def support(kind: str, subject: str, signer: str = "helped-support", app: str = APP, **data: Any) -> Command:
    return Command(kind, data, subject, app=app, signer=signer)


def repair(kind: str, subject: str, **data: Any) -> Command:
    return support(kind, subject, author="kim@support", reason="case 4711", **data)


def result(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return dict(reply["result"])


def refusal(reply: Reply) -> str:
    assert reply["status"] == "rejected", reply
    return str(reply["reason"])


def told(bus: Bus, kind: str, user: str) -> list[dict[str, Any]]:
    """Events of a type about a user, by whichever command."""
    found = [event.data for events in list(bus.collector.events.values()) for event in events
             if event.envelope["type"] == f"identity.{kind}.v1" and event.data.get("userId") == user]
    return found


def test_a_person_is_found_by_each_of_its_ids(bus: Bus) -> None:
    person = Person(bus)
    tablet = fresh("tablet")
    person.comes(tablet, TABLET)
    named = result(bus.ask(support("link.get-user", person.external_id, externalId=person.external_id)))
    assert named["userId"] == person.user and named["externalId"] == person.external_id
    assert {one["installId"]: (one["isActive"], one.get("inactiveBecause")) for one in named["installs"]} == {
        person.phone: (True, None), tablet: (False, "waitsForPhone")}
    for member, value in {"userId": person.user, "installId": tablet}.items():
        assert result(bus.ask(support("link.get-user", value, **{member: value}))) == named
    until(person.profile, 30, "the profile that the link makes")
    profile = person.profile()
    assert profile and profile["userId"] == person.user and profile["isLoggedIn"]
    assert profile["identities"] == {"customerid": [person.external_id]}
    assert result(bus.ask(support("sync.get-profile", str(profile["mpid"]), mpid=profile["mpid"]))) == profile


@pytest.mark.parametrize("signer", ["helped-backend", "helped-sdk"])
def test_without_the_scope_nobody_learns_whether_somebody_exists(bus: Bus, signer: str) -> None:
    person = Person(bus)
    asked = [
        lambda name: support("link.get-user", name, signer, externalId=name),
        lambda name: support(
            "sync.get-profile", name, signer, identity={"type": "customerid", "value": name}),
        lambda name: support(
            "link.change-external-id", "new", signer, externalId=name, newExternalId="new", author="a", reason="r"),
    ]
    for ask in asked:
        assert {refusal(bus.ask(ask(name))) for name in (person.external_id, fresh("nobody"))} == {"INSUFFICIENT_SCOPE"}
    # Nor does support of another app.
    assert refusal(bus.ask(support(
        "link.get-user", person.user, "internal", "other", userId=person.user))) == "USER_NOT_FOUND"


def test_a_wrong_external_id_is_changed(bus: Bus) -> None:
    person = Person(bus)
    old, new = person.external_id, fresh("ext")
    stale = person.code()
    until(person.profile, 30, "the profile that the link makes")
    before = person.profile()
    changed = result(bus.ask(repair("link.change-external-id", new, externalId=old, newExternalId=new)))
    assert (changed["userId"], changed["externalId"]) == (person.user, new)
    event = until(lambda: told(bus, "link.external-id-changed", person.user), 30, "the event")[0]
    assert (event["previousExternalId"], event["author"], event["reason"]) == (old, "kim@support", "case 4711")
    # The profile has the new id, and is the same.
    after = until(lambda: person.profile(new), 30, "the profile under the new id")
    assert before and (after["mpid"], after["userId"]) == (before["mpid"], person.user)
    assert after["identities"] == {"customerid": [new]} and person.profile(old) is None
    # Who comes with the old id, or with a code for it, is not made a second person.
    assert refusal(bus.ask(c.request(person.phone, old, APP, signer="helped-backend"))) == "EXTERNAL_ID_CHANGED"
    late = bus.settle(c.create(fresh("phone"), PHONE, APP, authCode=stale).but(signer="helped-sdk"))
    assert refusal(late) == "AUTH_CODE_INVALID"
    later = bus.settle(c.create(fresh("phone"), PHONE, APP, authCode=person.code(old)).but(signer="helped-sdk"))
    assert refusal(later) == "EXTERNAL_ID_CHANGED"
    # By the new one the person comes back.
    person.external_id = new
    assert person.comes(fresh("phone"), PHONE)["userId"] == person.user


def test_a_wrong_link_is_undone(bus: Bus) -> None:
    person = Person(bus)
    until(person.profile, 30, "the profile that the link makes")
    assert "externalId" not in result(bus.ask(repair("link.unlink-user", person.user, userId=person.user)))
    assert until(lambda: told(bus, "user.unlinked", person.user), 30, "the SDK's event")[0]["installId"] == person.phone
    known = result(bus.ask(c.get(person.phone, APP).but(signer="helped-sdk")))
    assert known["userId"] == person.user and not known["isLinked"]
    assert until(lambda: (found := person.profile()) and "userId" not in found, 30, "the mark to go")
    # The backend that repeats its call changes nothing, and the external id is free for its owner.
    assert refusal(bus.ask(c.request(person.phone, person.external_id, APP, signer="helped-backend"))) == "LINK_BARRED"
    owner = person.comes(fresh("phone"), PHONE)["userId"]
    assert owner != person.user
    assert until(lambda: (found := person.profile()) and found.get("userId") == owner, 30, "the owner's mark")


def test_the_install_that_support_names_is_the_active_one(bus: Bus) -> None:
    person = Person(bus)
    tablet = fresh("tablet")
    person.comes(tablet, TABLET)
    chosen = result(bus.ask(repair("link.make-active", tablet, installId=tablet)))
    assert chosen["isActive"]
    assert until(lambda: told(bus, "user.activated", person.user), 30, "the tablet's event")[-1]["installId"] == tablet
    lost = until(lambda: told(bus, "user.deactivated", person.user), 30, "the phone's event")[-1]
    assert (lost["installId"], lost["cause"]) == (person.phone, "superseded")
    assert result(bus.ask(c.get(tablet, APP).but(signer="helped-sdk")))["isRemoteEnabled"]
    assert not result(bus.ask(c.get(person.phone, APP).but(signer="helped-sdk")))["isRemoteEnabled"]


def tried_events(reply: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """What a dry run says would be told."""
    return [event["data"] for event in reply["events"] if event["type"] == f"identity.{kind}.v1"]


def test_a_repair_that_is_only_tried_changes_nothing(bus: Bus) -> None:
    person = Person(bus)
    profile = until(person.profile, 30, "the profile that the link makes")
    tried = repair("link.unlink-user", person.user, userId=person.user).but(attributes={"dryrun": "true"})
    reply = bus.ask(tried)
    assert reply["dryRun"] and "externalId" not in result(reply)
    assert tried_events(reply, "sync.linked-user-changed") == [{
        "mpid": profile["mpid"], "cause": "link", "previousUserId": person.user,
        "identities": [{"type": "customerid", "value": person.external_id}]}]
    read = result(bus.ask(support("link.get-user", person.user, userId=person.user)))
    assert read["externalId"] == person.external_id


def test_whom_a_change_takes_a_customer_id_from_is_told_before(bus: Bus) -> None:
    """What the sync service makes of a change stands in its dry run, and is done by it."""
    person, new = Person(bus), fresh("new")
    until(person.profile, 30, "the profile that the link makes")
    before = person.profile()
    mail = f"{new}@x.io"
    login = c.sync("login", fresh("device"), {"customerid": new, "email": mail}, APP).but(signer="helped-sdk")
    other = result(bus.ask(login))["mpid"]
    asked = repair("link.change-external-id", new, externalId=person.external_id, newExternalId=new)
    reply = bus.ask(asked.but(attributes={"dryrun": "true"}))
    assert reply["status"] == "succeeded" and reply["dryRun"]
    taken = [event for event in tried_events(reply, "sync.identities-changed") if event["mpid"] == other]
    assert [identity["value"] for event in taken for identity in event["removed"]] == [new], reply
    # Whose e-mail that is goes with the person's erasure from then on.
    assert before and tried_events(reply, "sync.profile-joined") == [{
        "sourceMPID": other, "destinationMPID": before["mpid"], "cause": "link",
        "identities": [{"type": "email", "value": mail}]}]
    assert person.profile() == before and person.profile(new)["mpid"] == other, "nothing is done"
    result(bus.ask(repair("link.change-external-id", new, externalId=person.external_id, newExternalId=new)))
    after = until(lambda: (found := person.profile(new)) and found["mpid"] != other and found, 30, "the change")
    assert before and after["mpid"] == before["mpid"]

    def events() -> list[dict[str, Any]]:
        return [event.data for all in list(bus.collector.events.values()) for event in all
                if event.envelope["type"] == "identity.sync.identities-changed.v1" and event.data["mpid"] == other]

    done = until(events, 30, "the event")[-1]
    assert (done["removed"], done["reason"]) == (taken[0]["removed"], taken[0]["reason"])


def test_what_a_restriction_comes_to_on_installs_is_told_before(bus: Bus) -> None:
    person = Person(bus)
    mpid = until(person.profile, 30, "the profile that the link makes")["mpid"]
    asked = repair("sync.restrict", mpid, mpid=mpid, isRestricted=True)
    reply = bus.ask(asked.but(attributes={"dryrun": "true"}))
    tried = [event["data"] for event in reply["events"] if event["type"] == "identity.link.install-status-changed.v1"]
    assert [(event["installId"], event["cause"]) for event in tried] == [(person.phone, "restricted")], reply
    assert result(bus.ask(c.get(person.phone, APP).but(signer="helped-sdk")))["isRemoteEnabled"], "nothing is done"
    result(bus.ask(repair("sync.restrict", mpid, mpid=mpid, isRestricted=True)))
    lost = until(lambda: told(bus, "user.deactivated", person.user), 30, "the install's event")[-1]
    assert (lost["installId"], lost["cause"]) == (person.phone, "restricted")
