# SPDX-License-Identifier: Apache-2.0
"""Dry runs of every command, over Kafka and HTTP: told what would happen, and nothing happens."""

import json
import random
import uuid
from typing import Any, Callable

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, change, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.dry_run import lasting, quiet, stored, tried
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, basic
from identitybus_testkit.platform import Platform
from identitybus_testkit.up import tool
from identitybus_testkit.verification import vouched

SEED = 11


# Over Kafka


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def platform(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Platform:
    platform = make_deployment(request.param, kind=Platform)
    assert isinstance(platform, Platform)
    platform.start()
    return platform


class People:
    """Installs, users, devices and profiles that are there, and some that are not."""

    def __init__(self, platform: Platform) -> None:
        bus = platform.bus
        self.bus = bus
        self.installs = [fresh("install") for _ in range(3)]
        self.external_ids = [fresh("ext") for _ in range(2)]
        self.devices = [fresh("device") for _ in range(2)]
        self.customers = [fresh("customer") for _ in range(2)]
        for install in self.installs[:2]:
            self.good(c.create(install, appSecret=apps.APP_SECRET, linking="none"))
        self.good(c.request(self.installs[0], self.external_ids[0]))
        code = self.good(c.request_code(self.external_ids[1]))["result"]["authenticationCode"]
        self.codes = [str(code), "0" * 128]
        self.user = self.good(c.query(self.installs[1]))["result"]["userId"]
        login = c.sync("login", self.devices[0], {"customerid": self.customers[0]})
        self.mpid = self.good(login)["result"]["mpid"]
        self.good(vouched(self.devices[0], fresh("vouched")))

    def good(self, command: Command) -> dict[str, Any]:
        answer = self.bus.settle(command)
        assert answer["status"] == "succeeded", answer
        return answer

    def wish(self, luck: random.Random) -> Command:
        install, external_id = luck.choice(self.installs), luck.choice([*self.external_ids, fresh("ext")])
        device, customer = luck.choice([*self.devices, fresh("device")]), luck.choice([*self.customers, fresh("new")])
        identities = {"customerid": customer, "device_application_stamp": device}
        wishes: list[Callable[[], Command]] = [
            lambda: c.request(install, external_id),
            lambda: c.register(luck.choice([install, fresh("install")]), user=luck.choice(["none", "new"])),
            lambda: c.establish(install, external_id),
            lambda: c.query(install),
            lambda: c.detach(install),
            lambda: c.set_status(install, luck.choice(["enabled", "disabled", "deleted"])),
            lambda: c.erase(self.user),
            lambda: c.request_code(external_id),
            lambda: c.create(fresh("install"), authCode=luck.choice(self.codes)),
            lambda: c.create(fresh("install"), appSecret=apps.APP_SECRET, linking="none"),
            lambda: c.create(fresh("install"), appSecret=apps.APP_SECRET, linking="linker"),
            lambda: c.link(install, authCode=luck.choice(self.codes)),
            lambda: c.link(install, linking="linker"),
            lambda: c.confirm(install),
            lambda: c.reset(install),
            lambda: c.get(install),
            lambda: c.sync("identify", device, identities),
            lambda: c.sync("login", device, identities),
            lambda: c.sync("logout", device, {"device_application_stamp": device}),
            lambda: c.sync("search", device, identities),
            lambda: c.modify(self.mpid, change("email", None, fresh("a@b"))),
            lambda: c.get_users(device),
            lambda: vouched(device, fresh("user")),
        ]
        return luck.choice(wishes)()


def settled(platform: Platform, command: Command) -> None:
    """Sends it for real, after a dry run, and waits for the end or for the linker's turn."""
    platform.bus.send(command)
    found = platform.bus.collector.replies

    def is_over(reply: dict[str, Any]) -> bool:
        return reply["status"] != "pending" or (reply.get("result") or {}).get("awaiting") == "linker"

    platform.bus.collector.wait(
        lambda: any("dryRun" not in record.data and is_over(record.data) for record in found[command.id]), 30,
        lambda: f"the answer to {command}; there are {[record.data for record in found[command.id]]}")


def told(platform: Platform) -> int:
    collector = platform.bus.collector
    collector.catch_up()
    return sum(len(records) for found in (collector.events, collector.dead_letters) for records in list(found.values()))


def test_dry_runs_leave_nothing(platform: Platform) -> None:
    """Random ones of every kind, in bursts; between the bursts the same wishes for real."""
    people, luck = People(platform), random.Random(SEED)
    bus = platform.bus
    for _ in range(3):
        before, events = quiet(platform), told(platform)
        wishes = [people.wish(luck) for _ in range(60)]
        for wish in wishes:
            bus.send(tried(wish), mode=luck.choice(["structured", "binary"]))
        answers = {wish.id: bus.reply(wish.id) for wish in wishes}
        assert all(answer["dryRun"] is True for answer in answers.values()), answers
        assert all("authenticationCode" not in json.dumps(answer) for answer in answers.values())
        assert all("tokenId" not in json.dumps(answer) for answer in answers.values())
        assert stored(platform) == before
        assert told(platform) == events
        assert all(len(bus.collector.replies[wish.id]) == 1 for wish in wishes)
        for wish in luck.sample(wishes, 10):
            settled(platform, wish)


def test_what_it_says_is_what_happens(platform: Platform) -> None:
    """The same command for real: status, reason, result and events are those that the dry run told."""
    bus = platform.bus
    install, external_id, device = fresh("install"), fresh("ext"), fresh("device")
    wishes = [
        c.register(install), c.request(install, external_id), c.request(install, fresh("ext")),
        c.request(fresh("install"), external_id), c.request_code(external_id),
        c.sync("identify", device, {"device_application_stamp": device}),
        c.sync("login", device, {"customerid": fresh("customer"), "device_application_stamp": device}),
        c.sync("search", device, {"customerid": fresh("customer")}), c.get_users(device), c.erase("nobody"),
    ]
    for wish in wishes:
        dry = bus.ask(tried(wish))
        bus.send(wish)
        real = bus.reply_records(wish.id, 2)[1].data
        assert "dryRun" not in real and "events" not in real
        for member in ("status", "reason", "message", "commandDigest"):
            assert dry.get(member) == real.get(member), (dry, real)
        if wish.type != "user.request-auth-code":
            assert lasting(dry.get("result")) == lasting(real.get("result"))
        bus.collector.wait(
            lambda: len(bus.collector.events[wish.id]) >= len(dry["events"]), 20, lambda: f"the events of {wish}")
        events = [(record.envelope["type"], lasting(record.data)) for record in bus.collector.events[wish.id]]
        expected = [(event["type"], lasting(event["data"])) for event in dry["events"]]
        assert sorted(map(repr, events)) == sorted(map(repr, expected))


def test_the_id_stays_free_and_an_answer_stays_the_answer(platform: Platform) -> None:
    bus, external_id = platform.bus, fresh("ext")
    wish = c.request_code(external_id)
    assert bus.ask(tried(wish))["result"].keys() == {"expiresAt"}
    bus.send(wish)
    code = bus.reply_records(wish.id, 2)[1].data["result"]["authenticationCode"]
    bus.send(tried(wish))
    again = bus.reply_records(wish.id, 3)[2].data
    assert again["dryRun"] and again["status"] == "succeeded" and "authenticationCode" not in again["result"]
    other = tried(wish.but(data={"externalId": fresh("ext")}))
    bus.send(other)
    refused = bus.reply_records(wish.id, 4)[3].data
    assert refused["dryRun"] and refused["reason"] == "ID_REUSED"
    assert bus.settle(c.create(fresh("install"), authCode=code))["status"] == "succeeded"


def test_the_code_of_a_dry_run_opens_nothing(platform: Platform) -> None:
    """Limits do not count them either: an external id has three codes at most in the app `hasty`."""
    bus, external_id = platform.bus, fresh("ext")
    for _ in range(6):
        assert bus.ask(tried(c.request_code(external_id, app="hasty")))["status"] == "succeeded"
    assert bus.ask(c.request_code(external_id, app="hasty"))["status"] == "succeeded"
    for _ in range(6):
        device = fresh("device")
        wish = c.sync("identify", "throttled-device", {"device_application_stamp": device}, app="throttled")
        assert bus.ask(tried(wish))["status"] == "succeeded"


@pytest.mark.parametrize("word", ["yes", "TRUE", "1", "", 1, {}])
def test_another_word_is_refused(platform: Platform, word: Any) -> None:
    command = c.register(fresh("install"))
    answer = platform.bus.ask(tried(command, word))
    assert answer["status"] == "rejected" and answer["reason"] == "INVALID_REQUEST" and "dryrun" in answer["message"]
    assert platform.bus.ask(c.query(command.subject))["reason"] == "INSTALL_NOT_FOUND"
    # The id is not taken.
    platform.bus.send(tried(command, "false"))
    assert platform.bus.reply_records(command.id, 2)[1].data["status"] == "succeeded"


def test_who_may_not_send_it_may_not_try_it(platform: Platform) -> None:
    bus = platform.bus
    command = tried(c.request(fresh("install"), "x").but(signer="demo-sdk"))
    answer = bus.ask(command)
    assert answer["dryRun"] and answer["reason"] == "INSUFFICIENT_SCOPE"
    assert bus.ask(tried(c.query(fresh("install")).but(signer="nobody")))["reason"] == "UNAUTHENTICATED"


def test_the_tool(platform: Platform) -> None:
    environment = platform.broker.service_environment() | {
        "TOPIC_PREFIX": platform.prefix, "IDENTITYBUS_APPS": str(platform.apps_file)}
    install = fresh("install")
    assert platform.bus.ask(c.register(install))["status"] == "succeeded"
    data = json.dumps({"installId": install, "externalId": fresh("ext")})
    answer = tool(
        "send", "link.request", "--app", "demo", "--key-id", "demo-backend", "--data", data, "--dry-run",
        environment=environment)
    assert answer.returncode == 0, answer.stderr
    reply = json.loads(answer.stdout)["data"]
    assert reply["dryRun"] is True and reply["events"][0]["type"] == "identity.link.linked.v1"
    assert platform.bus.ask(c.query(install))["result"].get("userId") is None


# Over HTTP


@pytest.fixture(scope="module")
def client(gateway_deployment: GatewayDeployment) -> Client:
    services = [gateway_deployment.process(name).start() for name in SERVICES]
    for service in services:
        service.wait_ready()
    gateway = gateway_deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


def test_prefer_dry_run(client: Client, gateway_deployment: GatewayDeployment) -> None:
    external_id, key = fresh("ext"), str(uuid.uuid4())
    body = {"external_id": external_id}
    dry = client.post("/users/auth-code", body, "demo-backend", Prefer="dry-run", Idempotency_Key=key)
    assert dry.status == 200 and dry.headers["Preference-Applied"] == "dry-run", dry
    assert dry.json["authentication_code"] is None and dry.json["expires_at"]
    # The key is still free, for anything.
    real = client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend", Idempotency_Key=key)
    assert real.status == 200 and real.json["authentication_code"] and "Preference-Applied" not in real.headers

    install, device = fresh("install"), {"kind": "phone", "platform": "ios"}
    new = {"installId": install, "device": device, "appSecret": "demo-app-secret", "linking": "none"}
    created = client.post("/sdk/v1/users", new, "demo-sdk", Prefer="respond-async, Dry-Run")
    assert created.status == 200 and created.json["userId"], created
    assert created.headers["Preference-Applied"] == "dry-run"
    assert gateway_deployment.bus.ask(c.query(install))["reason"] == "INSTALL_NOT_FOUND"

    refused = client.post("/v2/users/nope/link", body, "demo-backend", Prefer="dry-run")
    assert refused.status == 404 and refused.headers["Preference-Applied"] == "dry-run"
    assert client.post("/v2/users/nope/link", body, "demo-backend", Prefer="wait=1").headers["Preference-Applied"] is None


def sync(client: Client, call: str, body: dict[str, Any], **more: Any) -> Any:
    answer = client.send("POST", f"/v1/{call}", {"environment": "development"} | body | more, basic("demo-sdk"))
    assert answer.status == 200, answer
    return answer.json


def test_the_vendors_read_only(client: Client) -> None:
    stamp, customer = fresh("stamp"), fresh("customer")
    known = {"known_identities": {"device_application_stamp": stamp}}
    login = {"known_identities": {"device_application_stamp": stamp, "customerid": customer}}
    assert sync(client, "identify", known, read_only=True)["is_logged_in"] is False
    first = sync(client, "identify", known)["mpid"]
    dry = sync(client, "login", login, read_only=True)
    assert dry["is_logged_in"] is True
    assert sync(client, "identify", known)["is_logged_in"] is False
    real = sync(client, "login", login)
    assert real["mpid"] == dry["mpid"] == first
    assert sync(client, "logout", known, read_only=True)["is_logged_in"] is False
    assert sync(client, "identify", login)["mpid"] == real["mpid"]
    new = {"identity_type": "email", "old_value": None, "new_value": fresh("a@b")}
    sync(client, f"{first}/modify", {"identity_changes": [new]}, read_only=True)
    found = client.send(
        "POST", "/v1/search", {"known_identities": {"email": new["new_value"]}, "environment": "development"},
        basic("demo-sdk"))
    assert found.status == 404
    odd = client.send("POST", "/v1/login", {"environment": "development", **login, "read_only": "yes"}, basic("demo-sdk"))
    assert odd.status == 400 and odd.json["ErrorCode"] == "VALIDATION_ERROR"
