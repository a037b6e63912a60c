# SPDX-License-Identifier: Apache-2.0
"""An attacker's day: with each credential that leaks in practice, everything is tried that a deployment offers, against
a person of the app "shop". What is listed can be done; nothing else can. docs/threat-model.md tells the same by words.

    page      what a web page shows: the id of the browser's key
    binary    what is in an app's copies: the SDK key with its secret, and the app's secret
    backend   a backend key of another app
    reader    the right to read topics
    writer    the right to write to command topics, with every key of another app, and every forged signature
    recorder  requests that somebody sent
    old       tokens and keys that were good once
    crowd     nothing, but many connections, requests and records
"""

import hashlib
import json
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit import verification as v
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, Command, fresh
from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer, signed
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.secrets import signature
from identitybus_testkit.waiting import Deadline, until

ORIGIN = "https://shop.example"
# Not findable as the others are: commands hold it, and dead letters hold commands.
APP_SECRET = "in-every-copy-of-the-app"


def app(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name, "sdk": {"appSecret": APP_SECRET}, "gateway": {"keyOnly": True, "origins": [ORIGIN]},
        "sync": {"strategy": "userIdThenEmail"},
        "verification": {"mode": "enforce", "signedFields": "userId",
                         "keys": [{"id": f"{name}-{key}", "secret": v.secret(f"{name}-{key}")} for key in ("k1", "k2")]},
        "keys": [
            apps.key(f"{name}-web", "identity.sync"), apps.key(f"{name}-sdk", "sdk", "identity.sync"),
            apps.key(f"{name}-backend", "user.link", "user.delete", "verification.check"),
            apps.key(f"{name}-vouching", "identity.sync", "identity.vouch"), apps.key(f"{name}-admin", "admin"),
        ], **more,
    }


@dataclass
class Person:
    """Somebody of "shop" with everything that the platform keeps of a person."""

    external_id: str
    email: str
    install: str
    device: str
    user: str
    mpid: str
    token: str


@dataclass
class World:
    deployment: GatewayDeployment
    client: Client
    bus: Bus

    def ask(self, command: Command) -> dict[str, Any]:
        """The final reply, on the topic where the app's replies are."""
        self.bus.send(command)
        return self.bus.final(command.id)

    def person(self) -> Person:
        external_id, install, device = fresh("ext"), fresh("install"), fresh("device")
        email = f"{external_id}@shop.example"
        code = good(self.client.post("/users/auth-code", {"external_id": external_id}, "shop-backend"))
        user = good(self.client.post("/sdk/v1/users", {
            "installId": install, "device": PHONE, "authCode": code["authentication_code"]}, "shop-sdk"))
        known = good(self.client.send("POST", "/v1/login", request(
            customerid=external_id, email=email, device_application_stamp=device), basic("shop-vouching")))
        session = self.ask(Command("verification.login", {
            "deviceId": device, "userId": external_id, "userAuthToken": v.token(external_id, "shop-k1")},
            device, app="shop", signer="shop-sdk"))
        assert session["status"] == "succeeded" and session["result"]["state"] == "verified", session
        return Person(external_id, email, install, device, user["userId"], str(known["mpid"]), user["token"]["tokenId"])

    def known_of(self, person: Person) -> dict[str, Any]:
        """All that decides who is who for this person, asked by the deployment itself."""
        asked = {
            "link": self.ask(c.query(person.install, "shop")),
            "users": self.ask(Command("sync.get-users", {"deviceId": person.device}, person.device, "shop", "internal")),
            "session": self.ask(Command(
                "verification.get-session", {"deviceId": person.device}, person.device, "shop", "internal")),
            "login": self.ask(Command("sync.search", {
                "deviceId": fresh("d"), "knownIdentities": {"customerid": person.external_id}}, "s", "shop", "internal")),
        }
        assert all(reply["status"] == "succeeded" for reply in asked.values()), asked
        return {name: stable(reply["result"]) for name, reply in asked.items()}


def stable(result: Any) -> Any:
    """Without what moves by being looked at."""
    if isinstance(result, dict):
        return {name: stable(value) for name, value in result.items() if name not in ("lastSeen", "token")}
    return [stable(one) for one in result] if isinstance(result, list) else result


def good(answer: Answer) -> Any:
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json


def request(**identities: str) -> dict[str, Any]:
    return {"environment": "development", "known_identities": identities}


@pytest.fixture(scope="module")
def world(make_deployment: Callable[..., Deployment]) -> Iterator[World]:
    deployment = make_deployment("sqlite", kind=GatewayDeployment, services=tuple(SERVICES))
    assert isinstance(deployment, GatewayDeployment)
    apps.write(deployment.apps_file, [app("shop", replies="identity.replies.shop"), app("evil")])
    deployment.bus.extra_replies.append(f"{deployment.prefix}identity.replies.shop")
    deployment.broker.make_known(deployment.bus.extra_replies)
    for service in [deployment.process(name).start() for name in SERVICES]:
        service.wait_ready()
    gateway = deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    yield World(deployment, gateway.client, deployment.bus)


@pytest.fixture(scope="module")
def victim(world: World) -> Person:
    return world.person()


@pytest.fixture(autouse=True)
def nothing_changes(world: World, victim: Person) -> Iterator[None]:
    """Whatever was tried: the person is who they were."""
    before = world.known_of(victim)
    yield
    assert world.known_of(victim) == before


# HTTP: every operation of openapi.json, aimed at the person, by everyone who must not.


def calls(who: Person) -> dict[str, tuple[str, str, Any]]:
    """Each operation, as somebody would send it who knows everything about the person but no credential of theirs."""
    login = request(customerid=who.external_id)
    return {
        "linkUser": ("POST", f"/v2/users/{who.install}/link", {"external_id": fresh("thief")}),
        "requestAuthenticationCode": ("POST", "/users/auth-code", {"external_id": who.external_id}),
        "eraseUser": ("DELETE", f"/users/{who.user}", None),
        "getErasure": ("GET", f"/users/{who.user}/erasure", None),
        "createUser": ("POST", "/sdk/v1/users", {
            "installId": who.install, "device": PHONE, "appSecret": APP_SECRET, "linking": "none"}),
        "readInstall": ("GET", f"/sdk/v1/installs/{who.install}", None),
        "linkInstall": ("POST", f"/sdk/v1/installs/{who.install}/link", {"linking": "linker"}),
        "confirmLink": ("POST", f"/sdk/v1/installs/{who.install}/confirm-link", {"success": False}),
        "resetInstall": ("POST", f"/sdk/v1/installs/{who.install}/reset", None),
        "identify": ("POST", "/v1/identify", login),
        "login": ("POST", "/v1/login", login),
        "search": ("POST", "/v1/search", login),
        "modify": ("POST", f"/v1/{who.mpid}/modify", {"environment": "development", "identity_changes": [
            {"identity_type": "email", "old_value": who.email, "new_value": "thief@evil.example"}]}),
        "verificationLogin": ("POST", "/v1/verification/login", {"deviceId": fresh("device"), "userId": who.external_id}),
        "verificationLoginIdentity": ("POST", "/v1/verification/login-identity", {
            "deviceId": fresh("device"), "identityToken": v.identity_token(
                [{"identifier": "uid", "value": who.external_id}])}),
        "verificationCheck": ("POST", "/v1/verification/check", {"userId": who.external_id, "userAuthToken": "x"}),
        "verificationSession": ("GET", f"/v1/verification/sessions/{who.device}", None),
        "fileSubjectRequest": ("POST", "/v3/requests", {
            "regulation": "gdpr", "subject_request_id": str(uuid.uuid4()), "subject_request_type": "erasure",
            "submitted_time": "2026-10-02T15:00:00Z", "api_version": "3.0",
            "subject_identities": {"email": {"value": who.email, "encoding": "raw"}}}),
        "listSubjectRequests": ("GET", "/v3/requests?group_id=batch", None),
        "getSubjectRequest": ("GET", f"/v3/requests/{uuid.uuid4()}", None),
        "cancelSubjectRequest": ("DELETE", f"/v3/requests/{uuid.uuid4()}", None),
        "getSubjectResults": ("GET", f"/v3/requests/{uuid.uuid4()}/results", None),
        "eraseProfile": ("DELETE", f"/v1/profiles/{who.mpid}", None),
        "getProfileErasure": ("GET", f"/v1/profiles/{who.mpid}/erasure", None),
    }


# These say nothing of a person, or are about a device whose id only that device knows: see `test_what_is_left_open`.
ABOUT_NOBODY = {"events", "openapi", "logout", "verificationLogout", "alias", "discoverSubjectRequests"}


def operations() -> set[str]:
    document = json.loads((REPOSITORY / "docs" / "openapi.json").read_text())
    return {
        operation["operationId"] for methods in document["paths"].values() for operation in methods.values()
        if isinstance(operation, dict) and "operationId" in operation}


def test_every_operation_is_tried(victim: Person) -> None:
    assert set(calls(victim)) | ABOUT_NOBODY == operations()


def key_alone(key: str) -> dict[str, str]:
    return {"x-mp-key": key}


CREDENTIALS: dict[str, list[dict[str, str]]] = {
    "nobody": [{}],
    "page": [key_alone("shop-web"), key_alone("shop-web") | {"Origin": ORIGIN},
             key_alone("shop-web") | {"Origin": "https://evil.example"}],
    "binary": [bearer("shop-sdk"), basic("shop-sdk"), key_alone("shop-sdk")],
    "backend of another app": [
        bearer("evil-backend"), bearer("evil-sdk"), bearer("evil-admin"), basic("evil-sdk"), basic("evil-vouching"),
        key_alone("evil-web")],
    "a backend's key without its secret": [key_alone("shop-vouching"), key_alone("shop-backend")],
    "wrong secret": [bearer("shop-backend", "guess"), basic("shop-sdk", "guess"), bearer("internal", "guess"),
                     bearer("gateway", "guess")],
}
# What another app's credentials do under their own roof, with the same ids: they work there, and tell nothing.
AT_HOME = {
    "requestAuthenticationCode", "linkUser", "createUser", "identify", "login", "search", "verificationCheck",
    "verificationLogin", "verificationSession", "eraseUser", "getErasure", "modify", "fileSubjectRequest", "listSubjectRequests"}


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_nothing_of_the_person_opens(world: World, victim: Person, credential: str) -> None:
    for headers in CREDENTIALS[credential]:
        for name, (method, path, body) in calls(victim).items():
            answer = world.client.send(method, path, body, headers)
            what = (credential, headers, name, answer.status, answer.body)
            if credential != "backend of another app" or name not in AT_HOME:
                assert 400 <= answer.status < 500, what
                assert answer.status != 400, ("the call must be a good one, or it shows nothing", *what)
            for mine in (victim.user, victim.mpid, victim.token):
                assert mine.encode() not in answer.body.replace(path.encode(), b""), what


def test_a_signature_needs_the_secret(world: World, victim: Person) -> None:
    body = json.dumps(request(device_application_stamp=victim.device)).encode()
    for secret in ("shop-sdk", "guess"):
        assert world.client.send("POST", "/v1/identify", body, signed("shop-sdk", "/v1/identify", body, secret=secret)).status == 401


def test_a_persons_own_token_opens_only_their_install(world: World, victim: Person) -> None:
    other = world.person()
    mine = {"Authorization": f"Bearer {other.token}"}
    assert good(world.client.send("GET", f"/sdk/v1/installs/{other.install}", None, mine))["userId"] == other.user
    for name, (method, path, body) in calls(victim).items():
        answer = world.client.send(method, path, body, mine)
        assert answer.status in (401, 403, 404), (name, answer.status, answer.body)


# Kafka: every command type, by everyone who can write to a topic.

# The scope that each type asks for, from the services' pages; `None`: only the deployment's own services.
SCOPES: dict[str, str | None] = {
    "link.request": "user.link", "link.set-install-status": "admin", "link.erase-user": "user.delete",
    "link.get-erasure": "user.delete", "sync.get-erasure": "user.delete",
    "link.register-install": None, "link.establish": None, "link.query": None, "link.detach-install": None,
    "link.forget": None, "link.get-user": "support", "link.make-active": "support", "link.unlink-user": "support",
    "link.change-external-id": "support", "sync.get-profile": "support",
    "user.request-auth-code": "user.link", "user.create": "sdk", "user.link": "sdk", "user.confirm-link": "sdk",
    "user.reset": "sdk", "user.get": "sdk", "user.expire-linker": None, "user.forget": None,
    "sync.identify": "identity.sync", "sync.login": "identity.sync", "sync.logout": "identity.sync",
    "sync.search": "identity.sync", "sync.modify": "identity.sync", "sync.alias": "identity.sync",
    "sync.get-users": "identity.sync", "sync.apply-alias": None, "sync.erase-profile": "user.delete", "sync.forget": None,
    "sync.keep-erased": None, "sync.detach": "support", "sync.allow": "support",
    "sync.restrict": "support", "link.import-users": "import", "sync.import-profiles": "import",
    "sync.file-request": "user.delete", "sync.get-request": "user.delete", "sync.get-requests": "user.delete",
    "sync.cancel-request": "user.delete", "sync.get-request-results": "support", "sync.process-request": None,
    "sync.expire-profile": None, "sync.expire-device": None, "verification.expire-session": None,
    "user.expire-user": None, "link.expire-user": None,
    "verification.login": "sdk", "verification.login-identity": "sdk", "verification.logout": "sdk",
    "verification.check": "verification.check", "verification.usage": "admin",
    "verification.get-session": "verification.check", "verification.forget": None, "verification.review-session": None,
}


def types() -> set[str]:
    """But for the `facts` of each service, which the table above does not have."""
    return {name for name in CONTRACT.commands if not name.endswith(".facts")}


def test_every_command_is_tried() -> None:
    assert types() == set(SCOPES)


def aimed(who: Person) -> dict[str, dict[str, Any]]:
    """Data for each type that would do harm."""
    known = {"deviceId": who.device, "knownIdentities": {"customerid": who.external_id}}
    mine = {"installId": who.install}
    why = {"author": "thief", "reason": "because"}
    asked, unused = {"requestId": str(uuid.uuid4())}, {"lastSeen": "2030-01-01T00:00:00Z"}
    return {
        "link.request": {**mine, "externalId": fresh("thief")}, "link.set-install-status": {**mine, "status": "deleted"},
        "link.erase-user": {"userId": who.user, **why}, "link.get-erasure": {"userId": who.user},
        "sync.get-erasure": {"mpid": who.mpid}, "link.register-install": {**mine, "device": PHONE, "user": "new"},
        "link.establish": {**mine, "device": PHONE, "externalId": fresh("thief"), "mode": "create"},
        "link.query": mine, "link.detach-install": mine, "link.forget": {"userId": who.user},
        "link.get-user": {"userId": who.user}, "sync.get-profile": {"mpid": who.mpid},
        "link.make-active": {**mine, **why}, "link.unlink-user": {"userId": who.user, **why},
        "link.change-external-id": {"userId": who.user, "newExternalId": fresh("thief"), **why},
        "user.request-auth-code": {"externalId": who.external_id},
        "user.create": {**mine, "device": PHONE, "appSecret": APP_SECRET, "linking": "none"},
        "user.link": {**mine, "linking": "linker"}, "user.confirm-link": {**mine, "success": False}, "user.reset": mine,
        "user.get": mine, "user.expire-linker": {**mine, "commandSource": "s", "commandId": "c"},
        "user.forget": {"userId": who.user, "installIds": [who.install]},
        "sync.identify": known, "sync.login": known, "sync.logout": known, "sync.search": known,
        "sync.modify": {"mpid": who.mpid, "changes": [c.change("email", who.email, "thief@evil.example")]},
        "sync.alias": {"sourceMPID": who.mpid, "destinationMPID": "42"}, "sync.get-users": {"deviceId": who.device},
        "sync.apply-alias": {"aliasId": str(uuid.uuid4())}, "sync.erase-profile": {"mpid": who.mpid},
        "sync.forget": {"userId": who.user}, "sync.allow": {"mpid": who.mpid, "otherMPID": "42", **why},
        "sync.detach": {"mpid": who.mpid, "identities": [{"type": "email", "value": who.email}], **why},
        "sync.restrict": {"mpid": who.mpid, "isRestricted": True, **why},
        "link.import-users": {"users": [{"userId": who.user, "installs": [
            {"installId": fresh("thief"), "device": PHONE, "isActive": True}]}], "upsert": True},
        "sync.import-profiles": {"profiles": [{"mpid": who.mpid, "identities": {"other": "thief"}, "firstSeen": "2024-03-01T00:00:00Z",
                                               "lastSeen": "2024-03-01T00:00:00Z"}], "upsert": True},
        "sync.keep-erased": {"mpid": who.mpid, "erasedAt": "2030-01-01T00:00:00Z", "whom": "00"},
        "verification.login": {"deviceId": who.device, "userId": who.external_id},
        "verification.login-identity": {"deviceId": who.device, "identityToken": "x.y.z"},
        "verification.logout": {"deviceId": who.device},
        "verification.check": {"userId": who.external_id, "userAuthToken": "x"}, "verification.usage": {},
        "verification.get-session": {"deviceId": who.device},
        "verification.forget": {"mpids": [who.mpid]}, "verification.review-session": {"deviceId": who.device},
        "sync.file-request": {**asked, "kind": "erasure", "identities": {"email": who.email}},
        "sync.get-request": asked, "sync.get-requests": {"groupId": "batch"}, "sync.cancel-request": asked,
        "sync.get-request-results": asked, "sync.process-request": asked,
        "sync.expire-profile": {"mpid": who.mpid, **unused}, "sync.expire-device": {"deviceId": who.device, **unused},
        "verification.expire-session": {"deviceId": who.device, **unused},
        "user.expire-user": {**mine, **unused}, "link.expire-user": {"userId": who.user, **unused},
    }


def kid_of(name: str) -> str:
    return {"forged internal": "internal", "forged gateway": "gateway", "forged events": "events"}.get(name, name)


@pytest.mark.parametrize("signer", [
    "evil-backend", "evil-sdk", "evil-admin", "evil-vouching", "forged internal", "forged gateway", "forged events",
    "unsigned"])
def test_who_can_write_to_a_topic_can_do_nothing_in_another_app(world: World, victim: Person, signer: str) -> None:
    bus = world.bus
    for name, data in aimed(victim).items():
        for claim in ({}, {"authtype": "api_key", "authid": "shop-backend"}, {"authtype": "app_user", "authid": victim.user}):
            command = Command(name, data, victim.install, "shop", signer, attributes={
                **claim, "replyto": "identity.replies.v1", "source": "identitybus/gateway" if claim else "e2e"})
            value, headers = command.structured()
            topic = bus.topic(command.service)
            if signer != "unsigned":
                secret = b"a guess" if signer.startswith("forged") else None
                headers.append(("signature", signature(kid_of(signer), topic, headers, value, secret)))
            place = bus.put(value, headers, command.key, topic=topic)
            reply = bus.final(command.id)
            assert (reply["status"], reply["reason"]) == ("rejected", "UNAUTHENTICATED"), (name, claim, reply)
            assert "result" not in reply, reply
            assert place


def test_keys_do_what_their_scopes_say(world: World, victim: Person) -> None:
    """The app's own keys, one by one: without the scope nothing happens."""
    scopes = {
        "shop-web": {"identity.sync"}, "shop-sdk": {"sdk", "identity.sync"}, "shop-admin": {"admin"},
        "shop-backend": {"user.link", "user.delete", "verification.check"},
        "shop-vouching": {"identity.sync", "identity.vouch"}}
    for signer, own in scopes.items():
        for name, data in aimed(victim).items():
            if SCOPES[name] in own:
                continue
            reply = world.ask(Command(name, data, victim.install, "shop", signer))
            assert (reply["status"], reply["reason"]) == ("rejected", "INSUFFICIENT_SCOPE"), (signer, name, reply)


def test_an_sdk_key_opens_no_install_over_kafka(world: World, victim: Person) -> None:
    """U43: it is in every copy of the app. Creating is what it is for."""
    for name in ("user.get", "user.link", "user.confirm-link", "user.reset"):
        reply = world.ask(Command(name, aimed(victim)[name], victim.install, "shop", "shop-sdk"))
        assert (reply["status"], reply["reason"]) == ("rejected", "USER_TOKEN_REQUIRED"), (name, reply)


@pytest.mark.parametrize("signer", ["shop-web", "shop-sdk"])
def test_an_sdk_key_names_nobody_where_verification_is_enforced(world: World, victim: Person, signer: str) -> None:
    wanted = aimed(victim)
    anything = {"sync.modify": {"mpid": victim.mpid, "changes": [c.change("push_token", None, fresh("mine"))]}}
    for name in ("sync.identify", "sync.login", "sync.search", "sync.modify", "sync.get-users"):
        for data in (wanted[name], anything.get(name)):
            reply = world.ask(Command(name, data or wanted[name], victim.device, "shop", signer))
            assert (reply["status"], reply["reason"]) == ("rejected", "VERIFICATION_REQUIRED"), (name, reply)
    other = world.person()
    reply = world.ask(c.alias(victim.mpid, other.mpid, app="shop").but(signer=signer))
    assert reply["status"] == "rejected", reply


# Topics that somebody may read.


def everything_on(world: World, *topics: str) -> Iterator[bytes]:
    """All records of topics, from the first."""
    broker = world.deployment.broker
    consumer = Consumer(broker.client(**{"group.id": fresh("reader"), "enable.auto.commit": False}))
    try:
        for topic in topics:
            name = f"{world.deployment.prefix}{topic}"
            for partition in broker.partitions(name):
                place = TopicPartition(name, partition, 0)
                low, high = consumer.get_watermark_offsets(place, timeout=20)
                consumer.assign([TopicPartition(name, partition, low)])
                while low < high:
                    message = consumer.poll(20)
                    assert message is not None and message.error() is None
                    low = message.offset() + 1
                    yield b"\n".join([message.key() or b"", message.value() or b"", *(
                        value or b"" for _, value in message.headers() or [])])
    finally:
        consumer.close()


def test_replies_of_an_app_are_nowhere_but_on_its_topic(world: World, victim: Person) -> None:
    code = Command("user.request-auth-code", {"externalId": victim.external_id}, victim.external_id, "shop", "shop-backend")
    secret = world.ask(code)["result"]["authenticationCode"]
    secrets = [secret, victim.token]
    for topic in ("identity.replies.v1", "identity.replies.evil"):
        lured = world.ask(code.again().but(attributes={"replyto": topic}))
        assert (lured["status"], lured["reason"]) == ("rejected", "INVALID_REQUEST"), lured
    topics = ["identity.replies.v1", *(f"identity.{name}.{kind}.v1" for name in SERVICES for kind in ("events", "dlq"))]
    for text in everything_on(world, *topics):
        assert not [one for one in secrets if one.encode() in text], text


def test_another_app_cannot_have_its_replies_sent_there(world: World) -> None:
    command = Command(
        "user.request-auth-code", {"externalId": fresh("ext")}, "x", "evil", "evil-backend",
        attributes={"replyto": "identity.replies.shop"})
    reply = world.ask(command)
    assert (reply["status"], reply["reason"]) == ("rejected", "INVALID_REQUEST"), reply
    own = f"{world.deployment.prefix}identity.replies.shop"
    assert not [record for record in world.bus.collector.replies[command.id] if record.topic == own]


# What somebody recorded.


def test_a_recorded_command_cannot_be_altered_moved_or_redirected(world: World, victim: Person) -> None:
    bus = world.bus
    recorded = c.request(victim.install, victim.external_id, "shop")
    first = world.ask(recorded)
    value, headers = bus.signed(recorded)
    altered = [
        (value.replace(victim.external_id.encode(), b"thief"), headers, bus.topic("link")),
        (value.replace(b'"id": "', b'"replyto": "identity.replies.v1", "id": "', 1), headers, bus.topic("link")),
        (value.replace(b'"shop"', b'"evil"'), headers, bus.topic("link")),
        (value, headers, bus.topic("user")), (value, headers, bus.topic("sync")),
    ]
    for changed, signed_headers, topic in altered:
        place = bus.put(changed, signed_headers, recorded.key, topic=topic)
        # Another service's may be of the same place on its own topic.
        bus.collector.wait(
            lambda: [one for one in list(bus.collector.dead_letters[place]) if one.value == changed], 20,
            lambda: "the dead letter")
    bus.put(value, headers, recorded.key, topic=bus.topic("link"))
    again = bus.reply_records(recorded.id, 2)
    final = [record.data for record in again if record.data["status"] != "rejected"]
    assert all(reply == first for reply in final), final


def test_a_used_idempotency_key_gives_nobody_elses_answer(world: World, victim: Person) -> None:
    key = fresh("key")
    first = world.client.post("/users/auth-code", {"external_id": victim.external_id}, "shop-backend", Idempotency_Key=key)
    code = good(first)["authentication_code"]
    for path, body, who in (
            ("/users/auth-code", {"external_id": fresh("thief")}, "shop-backend"),
            (f"/v2/users/{victim.install}/link", {"external_id": fresh("thief")}, "shop-backend")):
        answer = world.client.post(path, body, who, Idempotency_Key=key)
        assert answer.status == 409 and code.encode() not in answer.body, answer
    other = world.client.post("/users/auth-code", {"external_id": victim.external_id}, "evil-backend", Idempotency_Key=key)
    assert code.encode() not in other.body


def test_ids_do_not_follow_from_what_is_logged(world: World) -> None:
    """Who reads the access log knows the ids of commands; no id of a person follows from them."""
    answer = world.client.send("POST", "/v1/identify", request(device_application_stamp=fresh("d")), basic("shop-sdk"))
    mpid = int(good(answer)["mpid"])
    parts = ["mpid", "shop", "identitybus/gateway", answer.headers["X-Request-Id"], "0"]
    text = "\n".join(f"{len(part)}:{part}" for part in parts).encode()
    guess = int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)
    assert guess != mpid


# What was good once.


def test_tokens_end_with_what_they_were_for(world: World) -> None:
    who = world.person()
    mine = {"Authorization": f"Bearer {who.token}"}
    assert good(world.client.send("POST", f"/sdk/v1/installs/{who.install}/reset", None, mine)) == {"installId": who.install}
    code = good(world.client.post("/users/auth-code", {"external_id": fresh("next")}, "shop-backend"))
    someone = good(world.client.post("/sdk/v1/users", {
        "installId": who.install, "device": PHONE, "authCode": code["authentication_code"]}, "shop-sdk"))
    assert someone["userId"] != who.user
    for method, path, body in (
            ("GET", f"/sdk/v1/installs/{who.install}", None), ("POST", f"/sdk/v1/installs/{who.install}/reset", None)):
        answer = world.client.send(method, path, body, mine)
        assert answer.status in (401, 403), ("the install is somebody else's now", path, answer.status, answer.body)


def test_a_code_opens_one_install_once(world: World, victim: Person) -> None:
    code = good(world.client.post("/users/auth-code", {"external_id": fresh("ext")}, "shop-backend"))
    body = {"device": PHONE, "authCode": code["authentication_code"]}
    at_another = world.client.post("/sdk/v1/users", body | {"installId": fresh("i")}, "evil-sdk")
    assert at_another.status == 403
    assert world.client.post("/sdk/v1/users", body | {"installId": fresh("i")}, "shop-sdk").status == 200
    assert world.client.post("/sdk/v1/users", body | {"installId": fresh("i")}, "shop-sdk").status == 403


def test_a_token_of_a_key_that_is_gone_opens_nothing(world: World) -> None:
    who = world.person()
    device = fresh("device")
    login = Command("verification.login", {
        "deviceId": device, "userId": who.external_id, "userAuthToken": v.token(who.external_id, "shop-k2")},
        device, "shop", "shop-sdk")
    assert world.ask(login)["result"]["state"] == "verified"
    content = [app("shop", replies="identity.replies.shop"), app("evil")]
    fewer = json.loads(json.dumps(content))
    fewer[0]["verification"]["keys"].pop()
    apps.write(world.deployment.apps_file, fewer)
    try:
        def session() -> Any:
            return world.ask(Command(
                "verification.get-session", {"deviceId": device}, device, "shop", "shop-backend"))["result"]

        until(lambda: not session()["mayFileIssues"], 30, "the session ends with its key")
        assert session()["state"] == "unverified"
        assert world.ask(login.again())["reason"] == "InvalidAuthToken"
    finally:
        apps.write(world.deployment.apps_file, content)


# Left open, plainly (docs/threat-model.md): who knows the id of a device can end what goes on there, not become its user.


def test_what_is_left_open(world: World) -> None:
    who = world.person()
    by_page = world.client.send(
        "POST", "/v1/logout", request(device_application_stamp=who.device), key_alone("shop-web") | {"Origin": ORIGIN})
    assert by_page.status == 200 and str(by_page.json["mpid"]) != who.mpid
    found = world.ask(Command("sync.search", {
        "deviceId": fresh("d"), "knownIdentities": {"customerid": who.external_id}}, "s", "shop", "internal"))
    assert found["result"]["mpid"] == who.mpid


# Who wants to stop the others.


def is_served(world: World, client: Client | None = None) -> bool:
    """Another app's backend, within a second or two."""
    in_time = Deadline(5)
    answer = (client or world.client).post("/users/auth-code", {"external_id": fresh("ext")}, "evil-backend")
    return answer.status == 200 and in_time.left > 0


def test_topics_that_strangers_make_up_are_not_written_to(world: World) -> None:
    """Each would cost the producer requests and memory, and thousands of them everybody's answers."""
    prefix, stamp = world.deployment.prefix, fresh("y")
    for number in range(300):
        value, _ = world.bus.signed(Command(
            "user.request-auth-code", {"externalId": "x"}, "x", "evil", "evil-backend",
            attributes={"replyto": f"identity.replies.{stamp}-{number}"}))
        world.bus.put(value, [], "x", topic=world.bus.topic("user"))
    assert is_served(world)
    consumer = Consumer(world.deployment.broker.client(**{"group.id": "strangers"}))
    try:
        known = consumer.list_topics(timeout=30).topics
    finally:
        consumer.close()
    assert not [topic for topic in known if topic.startswith(f"{prefix}identity.replies.{stamp}")]


def test_a_service_that_stands_still_holds_up_no_other(world: World) -> None:
    gateway = world.deployment.gateway(GATEWAY_MAX_IN_FLIGHT="40").start().wait_ready()
    assert isinstance(gateway, Gateway)
    verification = next(one for one in world.deployment.services if one.name == "verification" and one.is_running)
    check = json.dumps({"userId": "x", "userAuthToken": "x"}).encode()
    head = (f"POST /v1/verification/check HTTP/1.1\r\nHost: l\r\nAuthorization: {bearer('shop-backend')['Authorization']}"
            f"\r\nContent-Length: {len(check)}\r\n\r\n").encode()
    callers = [socket.create_connection((gateway.client.host, gateway.client.port), timeout=20) for _ in range(60)]
    verification.pause()
    try:
        for caller in callers:
            caller.sendall(head + check)
        until(lambda: gateway.metric("gateway_full_total") > 0, 10, "its share is used up")
        assert all(is_served(world, gateway.client) for _ in range(20))
        own = gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, "shop-backend")
        assert own.status == 200, "its own calls of other services go on"
    finally:
        verification.resume()
        for caller in callers:
            caller.close()
        assert gateway.stop() == 0


@pytest.mark.parametrize("deaf,path,key,body,other", [
    ("link", "/sdk/v1/users", "shop-sdk", {
        "installId": "i", "device": PHONE, "appSecret": APP_SECRET, "linking": "none"}, ("POST", "/users/auth-code")),
    ("sync", "/v1/verification/login", "shop-sdk", {"deviceId": "d", "userId": "u"},
     ("GET", "/v1/verification/sessions/d")),
], ids=["link", "sync"])
def test_what_waits_for_a_service_that_stands_still_holds_up_no_other(
    world: World, deaf: str, path: str, key: str, body: dict[str, Any], other: tuple[str, str]
) -> None:
    """Also where it was asked of another service, which goes on with what it can do alone."""
    gateway = world.deployment.gateway(GATEWAY_MAX_IN_FLIGHT="40").start().wait_ready()
    assert isinstance(gateway, Gateway)
    service = next(one for one in world.deployment.services if one.name == deaf and one.is_running)
    callers = [socket.create_connection((gateway.client.host, gateway.client.port), timeout=20) for _ in range(60)]
    service.pause()
    try:
        for number, caller in enumerate(callers):
            content = json.dumps(body | {
                name: f"{fresh('stuck')}-{number}" for name in ("installId", "deviceId") if name in body}).encode()
            if deaf == "sync":
                content = json.dumps(json.loads(content) | {"userAuthToken": v.token("u", "shop-k1")}).encode()
            head = (f"POST {path} HTTP/1.1\r\nHost: l\r\nAuthorization: {bearer(key)['Authorization']}\r\n"
                    f"Content-Length: {len(content)}\r\n\r\n")
            caller.sendall(head.encode() + content)
        until(lambda: gateway.metric("gateway_full_total") > 0, 10, "its share is used up")
        statuses = [
            gateway.client.send(
                *other, {"external_id": fresh("ext")} if other[0] == "POST" else None, bearer("shop-backend")).status
            for _ in range(20)]
        assert gateway.metric("gateway_requests_in_flight") > 0, "they still wait"
        assert 503 not in statuses and 504 not in statuses, statuses
    finally:
        service.resume()
        for caller in callers:
            caller.close()
        assert gateway.stop() == 0


def test_a_copy_without_a_key_answers_nobody(world: World) -> None:
    """Who can read and write topics copies what the gateway and the services send, without the signature, at once."""
    bus, stop, copies = world.bus, threading.Event(), [0]
    topics = [bus.topic(service) for service in ("user", "link")]
    consumer = Consumer(world.deployment.broker.client(**{"group.id": "copies", "fetch.wait.max.ms": 10}))
    places = [TopicPartition(topic, number) for topic in topics for number in world.deployment.broker.partitions(topic)]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place, timeout=30)[1]
    consumer.assign(places)

    def copy() -> None:
        while not stop.is_set():
            message = consumer.poll(0.05)
            headers = [] if message is None or message.error() else message.headers() or []
            if any(name == "signature" for name, _ in headers):
                copies[0] += 1
                bus.produce(
                    message.value(), [(name, value) for name, value in headers if name != "signature"], message.key(),
                    lambda *_: None, topic=message.topic(), partition=message.partition())

    copier = threading.Thread(target=copy)
    copier.start()
    try:
        answers = [
            world.client.post("/sdk/v1/users", {
                "installId": fresh("install"), "device": PHONE, "appSecret": APP_SECRET, "linking": "none"}, "shop-sdk")
            for _ in range(20)]
    finally:
        stop.set()
        copier.join()
        consumer.close()
        bus.flush()
    assert [answer.status for answer in answers] == [200] * 20 and copies[0] >= 40, (copies, answers)


def test_who_does_not_read_keeps_nobody_out(world: World) -> None:
    gateway = world.deployment.gateway(GATEWAY_MAX_CONNECTIONS="64").start().wait_ready()
    assert isinstance(gateway, Gateway)
    held: list[socket.socket] = []
    try:
        for number in range(90):
            for port, path in ((gateway.client.port, "/openapi.json"), (gateway.port, "/metrics")):
                held.append(socket.socket())
                held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
                held[-1].connect(("127.0.0.1", port))
                held[-1].setblocking(False)
                held[-1].send(f"GET {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode() * 50)
        for _ in range(5):
            assert is_served(world, gateway.client)
            assert gateway.get("/livez", timeout=5)[0] == 200
    finally:
        for connection in held:
            connection.close()
        assert gateway.stop() == 0


def test_what_nobody_sees_is_no_id(world: World) -> None:
    for hidden in ("\u200b", "\ufffc", "\ufff9\ufffb", "\U0001d159", "\U00013441", "\uffff", "\u0301"):
        for path, body, key in (
            ("/users/auth-code", {"external_id": hidden}, "shop-backend"),
            ("/sdk/v1/users", {
                "installId": hidden, "device": PHONE, "appSecret": APP_SECRET, "linking": "none"}, "shop-sdk"),
            ("/v1/verification/login", {"deviceId": hidden, "userId": "u"}, "shop-sdk"),
        ):
            assert world.client.post(path, body, key).status == 400, (hidden.encode("unicode_escape"), path)
        for identities in ({"customerid": hidden}, {"email": f"{hidden}@shop.example"}):
            login = world.client.send("POST", "/v1/login", request(**identities), basic("shop-vouching"))
            assert login.status == 400, (hidden.encode("unicode_escape"), identities)


def test_connections_of_others_keep_nobody_out(world: World) -> None:
    """Idle and dripping ones, of the API and of the health port; also when each is opened again."""
    gateway = world.deployment.gateway(GATEWAY_MAX_CONNECTIONS="100").start().wait_ready()
    assert isinstance(gateway, Gateway)
    held: list[socket.socket] = []
    try:
        for number in range(300):
            for port in (gateway.client.port, gateway.port):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
                if number % 2:
                    held[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: l\r\nX: ")
            if number % 100 == 99:
                assert is_served(world, gateway.client)
                assert gateway.get("/livez", timeout=5)[0] == 200
    finally:
        for connection in held:
            connection.close()
        assert gateway.stop() == 0


def test_one_header_makes_no_connection_deaf(world: World) -> None:
    in_time = Deadline(5)
    for header in ["Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c", "Connection: close, TE", "Connection: Close"]:
        answer = world.client.raw(f"GET /openapi.json HTTP/1.1\r\nHost: l\r\n{header}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 ") and b"connection: close" in answer.lower()
    assert in_time.left


def test_odd_spellings_are_taken_for_nothing_else(world: World, victim: Person) -> None:
    who = {"x-mp-key": "shop-web", "Origin": ORIGIN}
    # A key that may not do this is not told from one that there is not.
    refused = [world.client.send("POST", "/v1/login", request(), key_alone(key)) for key in ("shop-backend", "nobody")]
    assert {(answer.status, answer.body, answer.headers["Access-Control-Allow-Origin"]) for answer in refused} == {
        (401, b"", "*")}
    # Nor is a key that signed wrongly, whatever is wrong with the body.
    for more, body in [({"Content-Encoding": "br"}, b"x"), ({"Content-Encoding": "gzip"}, b"x"), ({}, b"x" * 200_000)]:
        told = set()
        for key in ("shop-web", "shop-backend", "nobody"):
            signature = {"x-mp-key": key, "Date": "x", "x-mp-signature": "0" * 64}
            answer = world.client.send("POST", "/v1/login", body, signature | more)
            told.add((answer.status, re.sub(rb'"RequestId":"[^"]*"', b"", answer.body)))
        assert len(told) == 1, told
    # A stamp that reads like another device's id logs out no such device.
    logout = world.client.send(
        "POST", "/v1/logout", request(device_application_stamp=f"device_application_stamp:{victim.device}"), who)
    assert logout.status == 200
    head = f"POST /users/auth-code HTTP/1.1\r\nAuthorization: {bearer('evil-backend')['Authorization']}\r\n"
    for lines in ["Host: l\r\nHost: l\r\n", "Host: l\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n"]:
        answer = world.client.raw((head + lines + "Connection: close\r\nContent-Length: 2\r\n\r\n{}").encode())
        assert answer.startswith(b"HTTP/1.1 400 "), answer
