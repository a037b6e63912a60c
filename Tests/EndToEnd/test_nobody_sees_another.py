# SPDX-License-Identifier: Apache-2.0
"""Random commands of all services, with mixed credentials, over Kafka and HTTP, on the people of two apps. Every value
that belongs to somebody says whose it is; then every answer, event and log line is searched: nothing of one app is ever
told to another, and nothing of a person to another person's device.

TEST_SEED=... repeats a run.
"""

import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit import verification as v
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, basic, bearer

from test_attackers_day import APP_SECRET, app

SEED = int(os.environ.get("TEST_SEED", random.SystemRandom().getrandbits(32)))
STEPS = 400
APPS = ("red", "blue")
# `red-2` is the second person of the app red. In all of a person's values, and in nobody else's.
TAINT = re.compile(r"taint-(red|blue)-(\d+)-")


@dataclass
class Person:
    app: str
    number: int
    mpid: str | None = None
    user: str | None = None
    tokens: list[str] = field(default_factory=list)

    def value(self, kind: str) -> str:
        return f"taint-{self.app}-{self.number}-{kind}"

    @property
    def email(self) -> str:
        return f"{self.value('mail')}@example.org"


@dataclass
class Asked:
    """What was sent: for which app, by whose key, and the people whose values the sender named."""

    app: str
    owner: str
    named: set[tuple[str, str]]
    # A device's calls tell of one person; a backend's of its app.
    of_a_device: bool


def taints(text: str) -> set[tuple[str, str]]:
    return set(TAINT.findall(text))


class Play:
    def __init__(self, rng: random.Random, bus: Bus, client: Client) -> None:
        self.rng, self.bus, self.client = rng, bus, client
        self.people = [Person(name, number) for name in APPS for number in range(3)]
        self.asked: dict[str, Asked] = {}
        self.http: list[tuple[Asked, str]] = []
        self.statuses: dict[str, int] = {}

    def step(self) -> None:
        who = self.rng.choice(self.people)
        sender = who.app if self.rng.random() < 0.7 else self.rng.choice(APPS)
        (self.over_http if self.rng.random() < 0.4 else self.over_kafka)(who, sender)

    def over_kafka(self, who: Person, sender: str) -> None:
        kind, data, key = self.rng.choice(self.wishes(who))
        # Somebody of the sender's app asks about `who`, under the sender's app or under theirs.
        claimed = self.rng.choice([sender, who.app])
        command = Command(kind, data, who.value("subject"), claimed, f"{sender}-{key}")
        self.asked[command.id] = Asked(claimed, sender, taints(str(data) + command.subject), key in ("sdk", "web"))
        self.bus.send(command)
        reply = self.bus.final(command.id)
        self.count(kind, reply["status"])
        if reply["status"] == "succeeded" and claimed == who.app:
            self.learn(who, reply["result"])

    def over_http(self, who: Person, sender: str) -> None:
        method, path, body, headers, is_device = self.rng.choice(self.requests(who, sender))
        answer = self.client.send(method, path, body, headers)
        asked = Asked(sender, sender, taints(path + str(body) + str(headers)), is_device)
        self.http.append((asked, answer.body.decode() + str(answer.headers)))
        self.asked[answer.headers.get("X-Request-Id", "")] = asked
        self.count(f"{method} {TAINT.sub('', path)[:24]}", str(answer.status))
        assert answer.status < 500, (method, path, body, answer.status, answer.body)
        if answer.status == 200 and sender == who.app and answer.body.startswith(b"{"):
            self.learn(who, answer.json)

    def count(self, what: str, status: str) -> None:
        self.statuses[f"{what} {status}"] = self.statuses.get(f"{what} {status}", 0) + 1

    def learn(self, who: Person, result: Any) -> None:
        who.mpid = str(result.get("mpid") or who.mpid or "") or None
        who.user = result.get("userId") or result.get("id") or who.user
        for name in ("token", "installToken"):
            if token := (result.get(name) or {}).get("tokenId"):
                who.tokens = [*who.tokens[-2:], token]

    def identities(self, who: Person) -> dict[str, str]:
        mine = {
            "customerid": who.value("ext"), "email": who.email, "device_application_stamp": who.value("device"),
            "other": who.value("other")}
        return {name: mine[name] for name in self.rng.sample(sorted(mine), self.rng.randint(1, 4))}

    def wishes(self, who: Person) -> list[tuple[str, dict[str, Any], str]]:
        install = {"installId": who.value("install")}
        device = {"deviceId": who.value("device")}
        known = {**device, "knownIdentities": self.identities(who), "context": who.value("context")}
        phone = PHONE | {"model": who.value("model")}
        token = v.token(who.value("ext"), f"{who.app}-k1")
        mpid = who.mpid or "42"
        return [
            ("link.request", {**install, "externalId": who.value("ext")}, "backend"),
            ("user.request-auth-code", {"externalId": who.value("ext")}, "backend"),
            ("user.create", {**install, "device": phone, "appSecret": APP_SECRET, "linking": "none"}, "sdk"),
            ("user.reset", install, "sdk"), ("user.get", install, "sdk"),
            *((f"sync.{name}", known, self.rng.choice(["sdk", "vouching", "web"]))
              for name in ("identify", "login", "logout", "search")),
            ("sync.login", {**known, "name": who.value("name")}, "vouching"),
            ("sync.get-users", device, "vouching"),
            ("sync.modify", {"mpid": mpid, "changes": [c.change("other", None, who.value("new"))]}, "vouching"),
            ("sync.alias", {"sourceMPID": mpid, "destinationMPID": mpid}, "vouching"),
            ("verification.login", {
                **device, "userId": who.value("ext"), "userEmail": who.email, "userName": who.value("name"),
                "userAuthToken": token}, "sdk"),
            ("verification.logout", device, "sdk"), ("verification.get-session", device, "backend"),
            ("verification.check", {"userId": who.value("ext"), "userAuthToken": token}, "backend"),
            ("verification.usage", {}, "admin"),
            ("link.set-install-status", {**install, "status": self.rng.choice(["enabled", "disabled"])}, "admin"),
            *([("link.erase-user", {"userId": who.user}, "backend")] if who.user and self.rng.random() < 0.1 else []),
        ]

    def requests(
        self, who: Person, sender: str
    ) -> list[tuple[str, str, Any, dict[str, str], bool]]:
        install, identities = who.value("install"), {
            "environment": "development", "known_identities": self.identities(who), "context": who.value("context")}
        path = f"/sdk/v1/installs/{install}"
        theirs = [{"Authorization": f"Bearer {token}"} for token in who.tokens] or [bearer(f"{sender}-sdk")]
        somebody = self.rng.choice([token for one in self.people for token in one.tokens] or ["none"])
        stranger = {"Authorization": f"Bearer {somebody}"}
        backend, sdk, vouching = bearer(f"{sender}-backend"), bearer(f"{sender}-sdk"), basic(f"{sender}-vouching")
        create = {"installId": install, "device": PHONE | {"model": who.value("model")}}
        return [
            ("POST", f"/v2/users/{install}/link", {"external_id": who.value("ext")}, backend, False),
            ("POST", "/users/auth-code", {"external_id": who.value("ext")}, backend, False),
            ("POST", "/sdk/v1/users", create | {"appSecret": APP_SECRET, "linking": "none"}, sdk, True),
            ("GET", path, None, self.rng.choice(theirs), True), ("GET", path, None, stranger, True),
            ("POST", f"{path}/reset", None, self.rng.choice([stranger, sdk]), True),
            ("POST", "/v1/identify", identities, {"x-mp-key": f"{sender}-web"}, True),
            ("POST", "/v1/login", identities, vouching, False), ("POST", "/v1/search", identities, vouching, False),
            ("POST", "/v1/login", identities, {"x-mp-key": f"{sender}-web"}, True),
            ("POST", f"/v1/{who.mpid or 42}/modify", {"environment": "development", "identity_changes": [
                {"identity_type": "email", "old_value": None, "new_value": who.email}]}, vouching, False),
            ("GET", f"/v1/verification/sessions/{who.value('device')}", None, backend, False),
        ]


@pytest.fixture(scope="module")
def deployment(make_deployment: Callable[..., Deployment]) -> Iterator[GatewayDeployment]:
    made = make_deployment("sqlite", kind=GatewayDeployment, services=tuple(SERVICES))
    assert isinstance(made, GatewayDeployment)
    apps.write(made.apps_file, [{**app(name), "gateway": {"keyOnly": True}} for name in APPS])
    yield made


def test_nobody_sees_another(deployment: GatewayDeployment) -> None:
    print(f"TEST_SEED={SEED}")
    for service in [deployment.process(name).start() for name in SERVICES]:
        service.wait_ready()
    # On a busy machine an answer may take longer than devices wait.
    gateway = deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="120000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    play = Play(random.Random(SEED), deployment.bus, Client(gateway.address, timeout=150))
    for _ in range(STEPS):
        play.step()
    for service in deployment.services:
        assert service.stop() == 0
    deployment.bus.collector.catch_up()
    print(sorted(play.statuses.items()))
    succeeded = [what for what in play.statuses if what.endswith(" succeeded") or what.endswith(" 200")]
    assert len(succeeded) >= 12, "too little worked for the search to mean something"

    def search(asked: Asked, text: str, what: object) -> None:
        found = taints(text)
        # Whoever names a value knows it.
        strangers = {one for one in found - asked.named if one[0] != asked.owner}
        assert not strangers, (f"told to {asked.owner}", strangers, what)
        if asked.of_a_device:
            assert found <= asked.named, ("told to a device", found - asked.named, what)

    for command, records in deployment.bus.collector.replies.items():
        for record in records:
            if command in play.asked:
                search(play.asked[command], (record.value or b"").decode(), record)
    for asked, body in play.http:
        search(asked, body, body)
    for records in deployment.bus.collector.events.values():
        for record in records:
            owner = record.envelope["appid"]
            assert all(found[0] == owner for found in taints(str(record.data))) or _was_sent_by(play, record, owner), record
    for service in deployment.services:
        lines = [line for line in service.log.read_text().splitlines() if TAINT.search(line)]
        assert not lines, (service.name, lines[:3])


def _was_sent_by(play: Play, record: Any, owner: str) -> bool:
    """Whether the app itself named the other app's values, as it may name any text."""
    asked = play.asked.get(record.envelope.get("correlationid", ""))
    return asked is not None and asked.app == owner and taints(str(record.data)) <= asked.named
