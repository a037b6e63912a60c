# SPDX-License-Identifier: Apache-2.0
"""What is erased is gone: one person through all services, over HTTP, and what is left of it in every table."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit import inbox
from identitybus_testkit.bus import Record
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.databases import Database, SQLite
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, basic, bearer
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.tokens import shown
from identitybus_testkit.verification import keys, secret, token
from identitybus_testkit.waiting import until

APP = "whole"
GUARDED = "guarded"
# The record of what was asked and answered goes after its retention: see docs/guarantees.md.
KEPT = {*inbox.TABLES, "saga", "outbox"}


def whole() -> dict[str, Any]:
    """One app with everything in use."""
    return {
        "id": APP,
        "keys": [
            apps.key("whole-backend", "user.link", "user.delete", "verification.check"),
            apps.key("whole-sdk", "sdk", "identity.sync"), apps.key("whole-admin", "admin"),
            apps.key("whole-desk", "support", "identity.sync", "identity.vouch"),
        ],
        "sdk": {"appSecret": apps.APP_SECRET},
        "sync": {**apps.worked("conversion"), "fromLinks": True},
        "verification": {
            "mode": "report", "signedFields": "userId", "keys": keys("k1", app=APP),
            "identityTokenSecret": secret("jwt", APP)},
    }


def guarded() -> dict[str, Any]:
    """One that believes nobody without a token, and turns anonymous users into known ones."""
    return {
        "id": GUARDED,
        "keys": [apps.key("guarded-backend", "user.link", "user.delete", "verification.check"),
                 apps.key("guarded-sdk", "sdk", "identity.sync")],
        "sdk": {"appSecret": apps.APP_SECRET},
        "sync": apps.worked("conversion"),
        "verification": {"mode": "enforce", "signedFields": "userId", "keys": keys("k1", app=GUARDED)},
    }


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def platform(request: pytest.FixtureRequest, make_deployment: Callable[..., GatewayDeployment]) -> GatewayDeployment:
    deployment = make_deployment(request.param, services=tuple(SERVICES), kind=GatewayDeployment)
    apps.write(deployment.apps_file, [whole(), guarded()])
    started = [deployment.process(name).start() for name in SERVICES]
    for service in started:
        service.wait_ready()
    return deployment


@pytest.fixture(scope="module")
def client(platform: GatewayDeployment) -> Client:
    # An erasure goes through all services.
    gateway = platform.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


class Person:
    """All that is known of somebody, each value to be found nowhere else."""

    def __init__(self) -> None:
        self.external_id = fresh("ext")
        self.email = f"{fresh('mail')}@example.org"
        self.name = fresh("Name")
        self.install = fresh("install")
        self.model = fresh("Model")
        self.device, self.other_device = fresh("device"), fresh("device")
        self.idfv = fresh("idfv")
        self.user_id = self.mpid = ""

    def live(self, client: Client) -> None:
        """A sign-up with an authentication code, a login on a device, and a verified one on another."""
        self.user_id = create(client, self.external_id, self.install, self.model)["userId"]
        client.post("/users/auth-code", {"external_id": self.external_id}, "whole-backend")  # not redeemed
        answer = login(
            client, self.device, customerid=self.external_id, email=self.email, ios_idfv=self.idfv)
        self.mpid = str(answer["mpid"])
        verified = client.post("/v1/verification/login", {
            "deviceId": self.other_device, "userId": self.external_id, "userEmail": self.email,
            "userName": self.name, "userAuthToken": token(self.external_id, app=APP)}, "whole-sdk")
        assert verified.status == 200, verified

    @property
    def secrets(self) -> list[str]:
        return [self.external_id, self.email, self.name, self.install, self.model, self.device, self.other_device,
                self.idfv]


def create(client: Client, external_id: str, install: str, model: str, app: str = APP) -> dict[str, Any]:
    code = client.post(
        "/users/auth-code", {"external_id": external_id}, f"{app}-backend").text_of("authentication_code")
    answer = client.post(
        "/sdk/v1/users", {"installId": install, "device": {**PHONE, "model": model}, "authCode": code}, f"{app}-sdk")
    assert answer.status == 200, answer
    return dict(answer.json)


def login(client: Client, device: str, **identities: str) -> dict[str, Any]:
    known = {"device_application_stamp": device, **identities}
    answer = client.send(
        "POST", "/v1/login", {"environment": "development", "known_identities": known}, basic("whole-sdk"))
    assert answer.status == 200, answer
    return dict(answer.json)


def tables(database: Database, service: str) -> list[str]:
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'table'" if isinstance(database, SQLite)
        else f"SELECT tablename FROM pg_tables WHERE schemaname = 'identity_{service}'")
    return [row[0] for row in database.execute(query, service=service)]


def text(cell: Any) -> str:
    return bytes(cell).decode("latin-1") if isinstance(cell, (bytes, memoryview)) else str(cell)


def found(database: Database, person: Person) -> dict[str, list[str]]:
    """In which tables which of the person's values stand, but for the record of what was asked."""
    places: dict[str, list[str]] = {}
    for service in SERVICES:
        for table in tables(database, service):
            if table in KEPT:
                continue
            rows = database.execute(f'SELECT * FROM "{table}"', service=service)
            content = "\n".join(text(cell) for row in rows for cell in row)
            for value in person.secrets:
                # Text in a BLOB is UTF-8, and all of these are ASCII.
                if value in content:
                    places.setdefault(f"{service}.{table}", []).append(value)
    return places


# The install's id stays, so that what is of before the erasure is refused (docs/link.md).
def left(person: Person) -> dict[str, list[str]]:
    return {"link.installs": [person.install]}


def everything(broker: Broker, prefix: str) -> list[Record]:
    """Every record of every topic of the deployment."""
    admin = AdminClient(broker.client())
    consumer = Consumer(broker.client(**{"group.id": "e2e-everything", "enable.auto.commit": False, "log_level": 2}))
    topics = {name: topic for name, topic in admin.list_topics(timeout=30).topics.items() if name.startswith(prefix)}
    places = [TopicPartition(name, number, OFFSET_BEGINNING) for name in topics for number in topics[name].partitions]
    bounds = {(place.topic, place.partition): consumer.get_watermark_offsets(place, timeout=30) for place in places}
    last = {place: high - 1 for place, (low, high) in bounds.items() if low < high}
    consumer.assign([place for place in places if (place.topic, place.partition) in last])
    records: list[Record] = []
    while last:
        message = consumer.poll(30)
        assert message is not None, last
        assert message.error() is None, message.error()
        record = Record.of(message)
        if record.offset <= last.get((record.topic, record.partition), -1):
            records.append(record)
        if record.offset == last.get((record.topic, record.partition)):
            del last[record.topic, record.partition]
    consumer.close()
    return records


def replay(broker: Broker, records: list[Record]) -> None:
    """Produces them again, each to where it stood."""
    producer = Producer(broker.client(**{"log_level": 2}))
    for record in records:
        producer.produce(
            record.topic, record.value, key=record.key, partition=record.partition, headers=record.headers)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.slow
def test_a_person_that_is_erased_is_gone_from_every_table_and_stays_gone(
    platform: GatewayDeployment, client: Client
) -> None:
    """L39, U36, S57, S59, V55."""
    person, stranger = Person(), Person()
    person.live(client)
    stranger.live(client)
    # The sync service learns of links by their events.
    wait_until_quiet(platform)
    before = found(platform.database, person)
    assert set(before) >= {"link.persons", "user.installations", "user.auth_codes", "sync.identities",
                           "verification.sessions"}, before
    others = found(platform.database, stranger)

    answer = client.send("DELETE", f"/users/{person.user_id}", headers=bearer("whole-backend"))
    assert answer.status == 200 and answer.json["subject"] == {"userIds": [person.user_id], "mpids": [person.mpid]}, answer
    assert answer.json["done"] == {
        "link": {"persons": 1, "installs": 1}, "user": {"installs": 1, "codes": 2},
        "sync": {"profiles": 1, "identities": 4, "devices": 2, "aliases": 0}, "verification": {"sessions": 1}}, answer
    assert not [value for value in person.secrets if value in answer.body.decode()]
    assert found(platform.database, person) == left(person)
    assert found(platform.database, stranger) == others, "nobody else has lost anything"

    # All that was ever said, once more: nothing comes back.
    replay(platform.broker, everything(platform.broker, platform.prefix))
    wait_until_quiet(platform, 120)
    assert found(platform.database, person) == left(person)
    assert found(platform.database, stranger) == others

    # Who gets the external id next is a new, empty user with a new, empty profile; on the same phone too.
    again = create(client, person.external_id, person.install, fresh("Model"))
    assert again["userId"] != person.user_id
    device = fresh("device")
    mpid = str(login(client, device, customerid=person.external_id)["mpid"])
    assert mpid != person.mpid
    users = platform.bus.ask(c.get_users(device, APP))
    assert users["status"] == "succeeded", users
    for value in (person.email, person.name, person.device, person.other_device, person.idfv, person.mpid):
        assert value not in str(users), users


def test_whoever_asks_while_it_goes_on_waits_along(platform: GatewayDeployment, client: Client) -> None:
    """L40, S55. Several at once, and by both names: the user's and the profile's."""
    person = Person()
    person.live(client)
    commands = [
        c.erase(person.user_id, APP), c.erase(person.user_id, APP),
        c.Command("sync.erase-profile", {"mpid": person.mpid}, person.mpid, app=APP, signer="whole-backend"),
    ]
    platform.bus.send_all(commands)
    for command in commands:
        reply = platform.bus.final(command.id, 60)
        assert reply["status"] == "succeeded" or reply["reason"] in ("PROFILE_ERASED", "NOT_FOUND_ERROR"), reply
    until(lambda: found(platform.database, person) == left(person), 20,
          lambda: str(found(platform.database, person)))
    for service in SERVICES:
        unanswered = lambda: platform.database.execute("SELECT id, asked FROM forward", service=service)
        until(lambda: not unanswered(), 20, lambda: f"the answers to {service}: {unanswered()}")


def erase_profile(who: dict[str, str], **more: Any) -> c.Command:
    return c.Command(
        "sync.erase-profile", {"identities": who, **more}, next(iter(who.values())), app=APP, signer="whole-backend")


def test_whoever_shares_a_device_stays_in_all_services(platform: GatewayDeployment, client: Client) -> None:
    """S90 to S93. A tablet that two people logged in on, and a customer id that only a device said."""
    first, second = Person(), Person()
    for person in (first, second):
        person.live(client)
        login(client, first.device, customerid=person.external_id, ios_idfv=first.idfv)
    wait_until_quiet(platform)
    before = [found(platform.database, person) for person in (first, second)]
    refused = platform.bus.settle(erase_profile({"ios_idfv": first.idfv}), 60)
    assert (refused["reason"], refused["result"]) == ("NOT_FOUND_ERROR", {"count": 0, "heldByOthers": 2}), refused
    every = erase_profile({"ios_idfv": first.idfv}, everyHolder=True)
    assert platform.bus.ask(every)["reason"] == "INSUFFICIENT_SCOPE"
    assert [found(platform.database, person) for person in (first, second)] == before
    # Named by the customer id, one goes, in all services, and the other has lost nothing.
    reply = platform.bus.settle(erase_profile({"customerid": second.external_id, "ios_idfv": second.idfv}), 60)
    assert reply["status"] == "succeeded", reply
    assert reply["result"]["subject"] == {"userIds": [second.user_id], "mpids": [second.mpid]}, reply
    assert reply["result"]["done"]["link"] == {"persons": 1, "installs": 1}, "a link had marked the profile"
    until(lambda: found(platform.database, second) == left(second), 20, lambda: str(found(platform.database, second)))
    # The device is no longer known by what was said of it when the second was there (S87).
    devices = [text for text in before[0]["sync.devices"] if text != first.idfv]
    assert found(platform.database, first) == {**before[0], "sync.devices": devices}


def test_an_erasure_of_somebody_whom_sync_knows_by_another_id_says_so(
    platform: GatewayDeployment, client: Client
) -> None:
    """L60. Zero profiles are a number to be read, and not a silence."""
    external_id, other_id, install = fresh("internal"), fresh("known-as"), fresh("install")
    user_id = create(client, external_id, install, fresh("Model"))["userId"]
    login(client, fresh("device"), customerid=other_id)
    wait_until_quiet(platform)
    answer = client.send("DELETE", f"/users/{user_id}", headers=bearer("whole-backend"))
    assert answer.status == 200 and answer.json["heldByOthers"] == 0, answer
    # The link made the one profile that has the external id.
    assert answer.json["done"]["sync"]["profiles"] == 1 and answer.json["done"]["sync"]["devices"] == 0, answer
    again = client.send("DELETE", f"/users/{user_id}", headers=bearer("whole-backend"))
    later = client.send("GET", f"/users/{user_id}/erasure", headers=bearer("whole-backend"))
    assert again.json == later.json == answer.json, "erased twice with different commands: one certificate"


def test_a_creation_that_is_in_flight_is_of_somebody_else(platform: GatewayDeployment, client: Client) -> None:
    """S95, L38. A code of the external id is redeemed while its person is erased."""
    for _ in range(5):
        external_id, install = fresh("ext"), fresh("install")
        old = create(client, external_id, fresh("install"), fresh("Model"))["userId"]
        code = client.post(
            "/users/auth-code", {"external_id": external_id}, "whole-backend").text_of("authentication_code")
        erasure = c.erase(old, APP).but(signer="whole-backend")
        creation = c.create(install, app=APP, authCode=code).but(signer="whole-sdk")
        platform.bus.send_all([erasure, creation])
        assert platform.bus.final(erasure.id, 60)["status"] == "succeeded"
        reply = platform.bus.final(creation.id, 60)
        wait_until_quiet(platform)
        rows = platform.database.execute("SELECT user_id, is_erased FROM persons WHERE user_id = ?", [old], service="link")
        assert [tuple(row) for row in rows] == [(old, 1)]
        alive = platform.database.execute(
            "SELECT user_id FROM persons WHERE external_id = ?", [external_id], service="link")
        if reply["status"] == "succeeded" and reply["result"]["userId"] != old:
            assert [tuple(row) for row in alive] == [(reply["result"]["userId"],)]
        else:
            assert list(alive) == [], (reply, "nobody is brought back")


def verified(client: Client, device: str, user: str) -> str:
    """The MPID of who logs in with a genuine token."""
    answer = client.post("/v1/verification/login", {
        "deviceId": device, "userId": user, "userAuthToken": token(user, app=GUARDED)}, "guarded-sdk")
    assert answer.status == 200 and answer.json["state"] == "verified", answer
    return str(answer.json["mpid"])


def test_nobody_goes_with_whom_a_stranger_aliased_them_into(client: Client) -> None:
    """S96.

    The key from the app says that two devices whom nobody uses yet are one; then two people log in there."""
    anna, mallory = fresh("anna"), fresh("mallory")
    phone, other = fresh("device"), fresh("device")
    user = create(client, mallory, fresh("install"), "Phone", GUARDED)["userId"]

    def anonymous(device: str) -> str:
        answer = client.send("POST", "/v1/identify", {
            "environment": "development", "known_identities": {"device_application_stamp": device}}, basic("guarded-sdk"))
        assert answer.status == 200, answer
        return str(answer.json["mpid"])

    source, destination = anonymous(phone), anonymous(other)
    alias = client.send("POST", "/v1/identity/guarded-sdk/alias", {
        "request_id": fresh("request"), "request_type": "alias", "environment": "development", "api_key": "guarded-sdk",
        "data": {"source_mpid": source, "destination_mpid": destination}}, basic("guarded-sdk"))
    assert alias.status == 202, alias
    assert (verified(client, phone, anna), verified(client, other, mallory)) == (source, destination)
    answer = client.send("DELETE", f"/users/{user}", headers=bearer("guarded-backend"))
    assert answer.status == 200 and answer.json["subject"]["mpids"] == [destination], answer
    session = client.send("GET", f"/v1/verification/sessions/{phone}", headers=bearer("guarded-backend"))
    assert session.json["state"] == "verified" and session.json["mpid"] == source, session
    assert verified(client, fresh("device"), anna) == source


def test_the_token_of_the_erased_opens_nothing_on_a_phone_that_is_used_again(client: Client) -> None:
    install = fresh("install")
    before = create(client, fresh("ext"), install, "Phone")
    answer = client.send("DELETE", f"/users/{before['userId']}", headers=bearer("whole-backend"))
    assert answer.status == 200, answer
    after = create(client, fresh("ext"), install, "Phone")
    assert after["userId"] != before["userId"]
    path = f"/sdk/v1/installs/{install}"
    for method, place, body in (
            ("GET", path, None), ("POST", f"{path}/link", {"linking": "linker"}), ("POST", f"{path}/reset", None),
            ("POST", f"{path}/confirm-link", {"success": True})):
        refused = client.send(method, place, body, shown(before["token"]["tokenId"]))
        assert refused.status in (403, 404) and after["userId"] not in refused.body.decode(), (place, refused)
    mine = client.send("GET", path, headers=shown(after["token"]["tokenId"]))
    assert mine.status == 200 and mine.json["userId"] == after["userId"], mine


def test_whoever_comes_back_at_once_is_somebody_new_or_has_no_session(
    platform: GatewayDeployment, client: Client
) -> None:
    """V53, V54, U35: what the sync service and the sessions say agrees, whatever came first."""
    before: dict[str, str] = {}
    for number in range(16):
        name, device = fresh("anna"), fresh("device")
        user = create(client, name, fresh("install"), "Phone", GUARDED)["userId"]
        before[device] = verified(client, device, name)
        with ThreadPoolExecutor(2) as pool:
            erasure = pool.submit(client.send, "DELETE", f"/users/{user}", headers=bearer("guarded-backend"))
            code = pool.submit(client.post, "/users/auth-code", {"external_id": name}, "guarded-backend")
            time.sleep(number / 100)
            again = client.post("/v1/verification/login", {
                "deviceId": device, "userId": name, "userAuthToken": token(name, app=GUARDED)}, "guarded-sdk")
            assert erasure.result().status == 200 and code.result().status == 200, (erasure, code)
        assert again.status in (200, 410), again
    wait_until_quiet(platform)
    for device, old in before.items():
        session = client.send("GET", f"/v1/verification/sessions/{device}", headers=bearer("guarded-backend")).json
        reply = platform.bus.ask(c.get_users(device, GUARDED).but(signer="internal"))
        assert reply["status"] == "succeeded", reply
        current = [user for user in reply["result"]["users"] if user["isCurrent"]]
        assert old not in str(current) and session.get("mpid") != old, (session, current)
        known = [user["mpid"] for user in current if user["isLoggedIn"]]
        assert session["hasLogin"] == bool(known) and [session.get("mpid")] * bool(known) == known, (session, current)
