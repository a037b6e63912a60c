# SPDX-License-Identifier: Apache-2.0
"""`sync.erase-profile` and `sync.forget` through a real sync process, on both stores. The link and the verification
service are stand-ins, so that what each is asked, and what comes of its answers, can be seen."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.secrets import signature
from identitybus_testkit.standin import StandIn, erased, rejected
from identitybus_testkit.waiting import until

APP = "fromlinks"
TABLES = ("profiles", "identities", "devices", "aliases", "linked_users", "erasures", "erasure_forwards", "certificates")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def erasing(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment(request.param, services=("sync", "link", "verification"))
    deployment.broker.ensure([deployment.bus.topic(name) for name in ("link", "verification")])
    deployment.service(ALIAS_DELAY="3600").start().wait_ready()
    return deployment


class Others:
    """The link and the verification service."""

    def __init__(self, deployment: Deployment) -> None:
        self.replies: dict[str, dict[str, Any]] = {}
        self.stand_ins = {
            name: StandIn(deployment.broker, deployment.prefix, name, lambda command, name=name: self.answer(name))
            for name in ("link", "verification")}

    def answer(self, name: str) -> list[dict[str, Any]]:
        return [self.replies.get(name) or erased()]

    def asked(self, name: str) -> list[dict[str, Any]]:
        """Each once: what waits long for its answer is asked again, under the same id."""
        asked = [record.envelope for record in self.stand_ins[name].commands]
        return list({envelope["id"]: envelope for envelope in asked}.values())


@pytest.fixture
def others(erasing: Deployment) -> Iterator[Others]:
    others = Others(erasing)
    yield others
    for stand_in in others.stand_ins.values():
        stand_in.close()


class Somebody:
    """A known profile, each of whose values is nobody else's."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.id, self.email, self.name = fresh("customer"), fresh("mail"), fresh("Name")
        self.device, self.idfv = fresh("device"), fresh("idfv")
        self.login = c.sync(
            "login", self.device, {"customerid": self.id, "email": self.email, "ios_idfv": self.idfv}, APP,
            signer="internal", name=self.name)
        self.mpid = self.result(bus.ask(self.login))["mpid"]

    @staticmethod
    def result(reply: dict[str, Any]) -> dict[str, Any]:
        assert reply["status"] == "succeeded", reply
        return reply["result"]


def erase(app: str = APP, **data: Any) -> Command:
    """Signed by a service: those may whatever a key with the scope user.delete may."""
    subject = data.get("mpid") or next(iter(data["identities"].values()))
    return Command("sync.erase-profile", data, str(subject), app=app, signer="internal")


def texts(deployment: Deployment) -> str:
    return "\n".join(
        str(row) for table in TABLES for row in deployment.database.execute(f"SELECT * FROM {table}", service="sync"))


def gone(*mpids: str, held_by_others: int = 0) -> tuple[list[str], int]:
    return list(mpids), held_by_others


def certified(reply: dict[str, Any]) -> tuple[list[str], int]:
    """Who is gone by a certificate, and how many others have what was named."""
    certificate = Somebody.result(reply)
    assert certificate["completedAt"], certificate
    return certificate["subject"]["mpids"], certificate["heldByOthers"]


@pytest.mark.parametrize("by", ["mpid", "identities"])
def test_everything_goes_and_all_others_are_asked(erasing: Deployment, others: Others, by: str) -> None:
    """S53, S54, S55, S57, S59."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    stranger = Somebody(bus)
    who = {"mpid": somebody.mpid} if by == "mpid" else {"identities": {"email": somebody.email}}
    command = erase(**who, persons="byCustomerId")
    assert certified(bus.settle(command)) == gone(somebody.mpid)
    assert [record.data["status"] for record in bus.reply_records(command.id, 2)] == ["pending", "succeeded"]
    events = bus.events(command.id, 2)
    assert events[0][1].pop("move") > 0
    assert events == [
        ("current-user-erased", {"deviceId": somebody.device, "mpid": somebody.mpid, "cause": "erase"}),
        ("profile-erased", {"mpid": somebody.mpid, "cause": "erase"})]
    assert [one["data"] for one in others.asked("verification")] == [
        {"mpids": [somebody.mpid]}]
    [asked] = [one["data"] for one in others.asked("link")]
    assert asked.pop("erasedAt") and asked == {"externalId": somebody.id}
    query = Command("sync.get-erasure", {"mpid": somebody.mpid}, somebody.mpid, app=APP, signer="internal")
    certificate = somebody.result(bus.ask(query))
    assert certificate["done"] == {
        "link": {"persons": 0, "installs": 0}, "user": {"installs": 0, "codes": 0},
        "sync": {"profiles": 1, "identities": 3, "devices": 1, "aliases": 0}, "verification": {"sessions": 0}}
    left = texts(erasing)
    for value in (somebody.id, somebody.email, somebody.name, somebody.device, somebody.idfv):
        assert value not in left, value
    for value in (stranger.id, stranger.email, stranger.name, stranger.device, stranger.idfv):
        assert value in left, value
    # The command that made the profile comes again under a forgotten id: the tombstone says no.
    service = erasing.services[0]
    assert service.stop() == 0
    inbox.forget(erasing.database, [somebody.login], service="sync")
    service.start().wait_ready()
    bus.send(somebody.login)
    again = bus.reply_records(somebody.login.id, 2)[-1].data
    assert (again["status"], again["reason"]) == ("rejected", "PROFILE_ERASED"), again
    # The freed customer id is a new, empty profile.
    fresh_one = somebody.result(bus.ask(c.sync("login", fresh("d"), {"customerid": somebody.id}, APP)))
    assert fresh_one["mpid"] != somebody.mpid and fresh_one["rule"] == "created"


def test_an_erased_profile_is_erased_again_and_nobody_is_not_found(erasing: Deployment, others: Others) -> None:
    """S56."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    for _ in range(2):
        assert certified(bus.settle(erase(mpid=somebody.mpid))) == gone(somebody.mpid)
    for data in ({"mpid": "12345"}, {"identities": {"email": somebody.email}}):
        assert bus.ask(erase(**data))["reason"] == "NOT_FOUND_ERROR"
    for signer in ("fromlinks-sdk", "fromlinks-backend"):
        assert bus.ask(erase(mpid=somebody.mpid).but(signer=signer))["reason"] == "INSUFFICIENT_SCOPE"


def test_who_only_shares_a_device_or_a_value_stays(erasing: Deployment, others: Others) -> None:
    """S90 to S93. A tablet that two people logged in on: its id erases neither, and who shares it asks for no person."""
    bus, first, second = erasing.bus, Somebody(erasing.bus), Somebody(erasing.bus)
    for one in (first, second):
        one.result(bus.ask(c.sync("login", first.device, {"customerid": one.id, "ios_idfv": first.idfv}, APP)))
    refused = bus.ask(erase(identities={"ios_idfv": first.idfv}))
    assert (refused["reason"], refused["result"]) == ("NOT_FOUND_ERROR", {"count": 0, "heldByOthers": 2}), refused
    named = {"customerid": first.id, "ios_idfv": first.idfv}
    assert certified(bus.settle(erase(identities=named))) == gone(first.mpid, held_by_others=1)
    assert others.asked("link") == []
    left = texts(erasing)
    assert first.id not in left and second.id in left and first.idfv in left


def test_a_part_that_fails_is_told_and_can_be_tried_again(erasing: Deployment, others: Others) -> None:
    """S55."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    others.replies["verification"] = rejected("INTERNAL_ERROR")
    reply = bus.settle(erase(mpid=somebody.mpid))
    assert (reply["status"], reply["reason"]) == ("rejected", "SERVER_ERROR"), reply
    others.replies.clear()
    assert certified(bus.settle(erase(mpid=somebody.mpid))) == gone(somebody.mpid)


def test_the_link_service_has_a_person_forgotten(erasing: Deployment, others: Others) -> None:
    """S53."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    command = Command(
        "sync.forget", {"externalId": somebody.id, "userId": fresh("user")}, somebody.id, app=APP, signer="internal")
    assert certified(bus.settle(command)) == gone(somebody.mpid)
    assert others.asked("link") == []
    assert somebody.id not in texts(erasing)
    nobody = Command("sync.forget", {"externalId": fresh("x")}, "x", app=APP, signer="internal")
    assert certified(bus.settle(nobody)) == gone()
    assert bus.ask(nobody.again().but(signer="fromlinks-sdk"))["reason"] == "INSUFFICIENT_SCOPE"


def test_a_link_of_before_that_is_read_meanwhile_takes_nobody_along(erasing: Deployment, others: Others) -> None:
    """S116. The link service has not answered yet; whoever logs in with the customer id meanwhile is somebody new."""
    bus, somebody, user = erasing.bus, Somebody(erasing.bus), fresh("user")
    before = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    link = others.stand_ins["link"]
    link.script = lambda command: []
    try:
        command = erase(mpid=somebody.mpid, persons="byCustomerId")
        assert bus.ask(command)["status"] == "pending"
        asked = until(lambda: [one.envelope for one in link.commands], 30, "the link service to be asked")[-1]
        install, other = fresh("install"), fresh("customer")
        tell(bus, install, somebody.id, user, before)
        # What stands behind it in its partition is read by then.
        tell(bus, install, other, fresh("user"), before)
        named = Command("sync.get-profile", {"identity": {"type": "customerid", "value": other}}, other, APP, "internal")
        until(lambda: bus.ask(named.again())["status"] == "succeeded", 30, "sync to read the events")
        login = c.sync("login", fresh("d"), {"customerid": somebody.id}, APP)
        new = somebody.result(bus.ask(login))
        assert new["rule"] == "created" and new["mpid"] != somebody.mpid
        part = erased(link={"persons": 1, "installs": 1})
        part["result"]["subject"]["userIds"] = [user]
        link.answer(asked, part)
        assert certified(bus.final(command.id)) == gone(somebody.mpid)
    finally:
        link.script = lambda command: [erased()]
    again = somebody.result(bus.ask(c.sync("login", fresh("d"), {"customerid": somebody.id}, APP)))
    assert again["mpid"] == new["mpid"]


def tell(bus: Bus, install: str, external_id: str, user: str, linked_at: str) -> None:
    """What the link service says of a link."""
    envelope = {
        "specversion": "1.0", "id": str(uuid.uuid4()), "source": "identitybus/link", "appid": APP,
        "type": "identity.link.linked.v1", "datacontenttype": "application/json", "causationid": str(uuid.uuid4()),
        "subject": install,
        "data": {
            "installId": install, "externalId": external_id, "userId": user, "personCreated": True,
            "activeInstallId": install, "deactivatedInstallIds": [], "version": 1, "linkedAt": linked_at}}
    value, headers = json.dumps(envelope).encode(), [("content-type", b"application/cloudevents+json")]
    topic = bus.topic("link", "events")
    bus.put(value, [*headers, ("signature", signature("events", topic, headers, value))],
            key=f"{APP}/{install}".encode(), topic=topic)


def test_an_alias_that_waits_is_dropped(erasing: Deployment, others: Others) -> None:
    """S54."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    stamp = fresh("stamp")
    visitor = somebody.result(bus.ask(c.sync("identify", fresh("d"), {"ios_idfv": fresh("v")}, APP)))["mpid"]
    somebody.result(bus.ask(c.alias(visitor, somebody.mpid, app=APP, deviceApplicationStamp=stamp)))
    assert stamp in texts(erasing)
    command = erase(mpid=visitor)
    bus.settle(command)
    assert stamp not in texts(erasing)
    assert "alias-dropped" in [name for name, _ in bus.events(command.id, 3)]


def test_what_is_not_answered_is_asked_again(erasing: Deployment) -> None:
    """The others were away: the erasure ends when they are back."""
    bus, somebody = erasing.bus, Somebody(erasing.bus)
    command = erase(mpid=somebody.mpid)
    assert bus.ask(command)["status"] == "pending"
    time.sleep(1)
    others = Others(erasing)
    try:
        assert certified(bus.final(command.id, 40)) == gone(somebody.mpid)
    finally:
        for stand_in in others.stand_ins.values():
            stand_in.close()
    until(lambda: erasing.database.execute("SELECT * FROM erasures", service="sync") == [], 30, lambda: "it is over")
