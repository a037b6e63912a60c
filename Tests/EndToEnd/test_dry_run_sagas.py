# SPDX-License-Identifier: Apache-2.0
"""Dry runs of commands that go through several services: told whole, in one answer, and nothing is left in any table."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit import verification
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, Command, fresh
from identitybus_testkit.dry_run import lasting, quiet, stored, tried
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, bearer
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.waiting import until
from test_erasure import APP, Person, whole

# What is known is told after half a minute.
PATIENCE = 60


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def platform(request: pytest.FixtureRequest, make_deployment: Callable[..., GatewayDeployment]) -> GatewayDeployment:
    deployment = make_deployment(request.param, services=tuple(SERVICES), kind=GatewayDeployment)
    apps.write(deployment.apps_file, [*apps.apps(), whole()])
    started = [deployment.process(name).start() for name in SERVICES]
    for service in started:
        service.wait_ready()
    return deployment


@pytest.fixture(scope="module")
def client(platform: GatewayDeployment) -> Client:
    gateway = platform.gateway(GATEWAY_REPLY_TIMEOUT_MS="50000").start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


def good(bus: Bus, command: Command) -> dict[str, Any]:
    answer = bus.settle(command)
    assert answer["status"] == "succeeded", answer
    return dict(answer["result"])


def code(bus: Bus, external_id: str) -> str:
    return str(good(bus, c.request_code(external_id, app=APP))["authenticationCode"])


def by_user(command: Command, user: str) -> Command:
    """As the gateway sends it for somebody who shows the user's token."""
    return command.but(signer="internal", attributes={"authtype": "app_user", "authid": user})


class Somebody:
    """A user with an install, a profile and a session."""

    def __init__(self, bus: Bus) -> None:
        self.external_id, self.install, self.device = fresh("ext"), fresh("install"), fresh("device")
        self.user = good(bus, c.create(self.install, app=APP, authCode=code(bus, self.external_id)))["userId"]
        self.mpid = good(bus, verification.vouched(self.device, self.external_id, APP))["mpid"]


def erase_profile(mpid: str, **more: Any) -> Command:
    return Command("sync.erase-profile", {"mpid": mpid, **more}, mpid, app=APP, signer=f"{APP}-backend")


def link_by_code(bus: Bus) -> Command:
    """Of somebody who is nobody yet."""
    install = fresh("install")
    made = good(bus, c.create(install, app=APP, appSecret=apps.APP_SECRET, linking="none"))
    return by_user(c.link(install, app=APP, authCode=code(bus, fresh("ext"))), made["userId"])


def link_to_another(bus: Bus) -> Command:
    somebody = Somebody(bus)
    return by_user(c.link(somebody.install, app=APP, authCode=code(bus, fresh("ext"))), somebody.user)


def reset(bus: Bus) -> Command:
    somebody = Somebody(bus)
    return by_user(c.reset(somebody.install, app=APP), somebody.user)


def left_over(bus: Bus) -> Command:
    """A creation on an install that the link service knows from an earlier life."""
    install = fresh("install")
    good(bus, c.register(install, user="new", app=APP))
    return c.create(install, app=APP, appSecret=apps.APP_SECRET, linking="none")


SAGAS: dict[str, Callable[[Bus], Command]] = {
    "create by code": lambda bus: c.create(fresh("install"), app=APP, authCode=code(bus, fresh("ext"))),
    "restore by code": lambda bus: c.create(fresh("install"), app=APP, authCode=code(bus, Somebody(bus).external_id)),
    "create unlinked": lambda bus: c.create(fresh("install"), app=APP, appSecret=apps.APP_SECRET, linking="none"),
    "create with the linker": lambda bus: c.create(fresh("install"), appSecret=apps.APP_SECRET, linking="linker"),
    "link by code": link_by_code,
    "link to another": link_to_another,
    "reset": reset,
    "log in": lambda bus: verification.vouched(fresh("device"), fresh("ext"), APP),
    "log out": lambda bus: verification.logout(Somebody(bus).device, APP),
    "erase a user": lambda bus: c.erase(Somebody(bus).user, app=APP),
    "erase a profile": lambda bus: erase_profile(Somebody(bus).mpid),
    "erase a profile and all it names": lambda bus: erase_profile(Somebody(bus).mpid, persons="byCustomerId"),
}


@pytest.mark.parametrize("saga", SAGAS)
def test_what_all_services_would_do_is_told_and_then_done(platform: GatewayDeployment, saga: str) -> None:
    bus = platform.bus
    command = SAGAS[saga](bus)
    before = quiet(platform)
    dry = bus.ask(tried(command))
    assert dry["dryRun"] and dry["status"] != "pending" or saga == "create with the linker", dry
    assert quiet(platform) == before
    assert len(bus.collector.replies[command.id]) == 1

    bus.send(command)
    real = end(bus, command)
    assert "dryRun" not in real
    for member in ("status", "reason", "message", "commandDigest"):
        assert dry.get(member) == real.get(member), (dry, real)
    assert lasting(dry.get("result")) == lasting(real.get("result"))
    wait_until_quiet(platform)
    bus.collector.catch_up()
    answered, all_of_them = happened(bus, command)
    assert answered <= told(dry) <= all_of_them


def end(bus: Bus, command: Command) -> dict[str, Any]:
    """The final answer, or that it is the linker's turn."""
    found = bus.collector.replies

    def last() -> dict[str, Any] | None:
        replies = [record.data for record in found[command.id] if "dryRun" not in record.data]
        return next((reply for reply in replies if reply["status"] != "pending"
                     or (reply.get("result") or {}).get("awaiting") == "linker"), None)

    return bus.collector.wait(last, 30, lambda: f"the answer to {command}; there are {found[command.id]}")


def told(dry: dict[str, Any]) -> Counter[str]:
    return Counter(f"{event['type']} {lasting(event['data'])}" for event in dry["events"])


def happened(bus: Bus, command: Command) -> tuple[Counter[str], Counter[str]]:
    """The events of all services: those that did not follow from other events, and all. A service that both hears of
    something and is answered tells it once, whichever comes first."""
    events = [
        record for records in bus.collector.events.values() for record in records
        if record.envelope.get("correlationid") == command.id and record.envelope["type"] != "identity.noted.v1"]
    ids = {record.envelope["id"] for record in events}
    described = [(f"{record.envelope['type']} {lasting(record.data)}", record) for record in events]
    answered = Counter(text for text, record in described if record.envelope["causationid"] not in ids)
    return answered, Counter(text for text, _ in described)


def test_a_second_step_at_one_service_is_not_made_up(platform: GatewayDeployment) -> None:
    """The user service would have the link service clear the install, and then ask anew."""
    bus = platform.bus
    command = left_over(bus)
    before = quiet(platform)
    dry = bus.ask(tried(command))
    assert dry["dryRun"] and dry["status"] == "pending", dry
    assert "link service" in dry["message"]
    assert quiet(platform) == before
    assert bus.settle(command)["status"] == "succeeded"


def test_many_at_once_leave_nothing(platform: GatewayDeployment) -> None:
    bus = platform.bus
    commands = [make(bus) for make in SAGAS.values() for _ in range(3)]
    before = quiet(platform)
    for command in commands * 2:
        bus.send(tried(command))
    for command in commands:
        answers = [record.data for record in bus.reply_records(command.id, 2, timeout=60)]
        assert all(answer["dryRun"] for answer in answers)
        # Whichever service answers first is told first.
        assert told(answers[0]) == told(answers[1])
        first, second = ({**answer, "events": None} for answer in answers)
        assert lasting(first) == lasting(second)
    assert quiet(platform) == before


def test_a_service_that_is_away(platform: GatewayDeployment) -> None:
    """After half a minute what is known is told; what comes later is passed over."""
    bus, somebody = platform.bus, Somebody(platform.bus)
    before = quiet(platform)
    verifier = next(service for service in platform.services if service.name == "verification" and service.is_running)
    assert verifier.stop() == 0
    try:
        profile, user = erase_profile(somebody.mpid), c.erase(somebody.user, app=APP)
        for command in (profile, user):
            bus.send(tried(command))
        for command, service in ((profile, "verification"), (user, "sync")):
            dry = bus.reply(command.id, PATIENCE)
            assert dry["dryRun"] and dry["status"] == "pending" and service in dry["message"], dry
            assert dry["events"], dry
        until(lambda: stored(platform) == before, 30, lambda: "nothing to be left")
    finally:
        platform.process("verification").start().wait_ready()
    assert quiet(platform) == before
    assert all(len(bus.collector.replies[command.id]) == 1 for command in (profile, user))


# Over HTTP


def test_over_http(platform: GatewayDeployment, client: Client) -> None:
    """Previewed, then carried out: an erasure through all four services, a creation, a verified login."""
    person = Person()
    person.live(client)
    before = quiet(platform)

    def delete(**headers: str) -> Any:
        return client.send("DELETE", f"/users/{person.user_id}", headers=bearer(f"{APP}-backend") | headers)

    dry = delete(Prefer="dry-run")
    assert dry.status == 200 and dry.headers["Preference-Applied"] == "dry-run", dry
    certificate = dry.json
    assert all(certificate["done"][service] for service in SERVICES), certificate
    install, device, user = fresh("install"), fresh("device"), fresh("ext")
    new = {"installId": install, "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "none"}
    created = client.post("/sdk/v1/users", new, f"{APP}-sdk", Prefer="dry-run")
    assert created.status == 200 and created.json["userId"], created
    proof = {"deviceId": device, "userId": user, "userAuthToken": verification.token(user, app=APP)}
    login = client.post("/v1/verification/login", proof, f"{APP}-sdk", Prefer="dry-run")
    assert login.status == 200 and login.json["mpid"], login
    assert quiet(platform) == before

    real = delete()
    assert real.status == 200 and forget_ids(real.json) == forget_ids(certificate)
    assert client.post("/sdk/v1/users", new, f"{APP}-sdk").status == 200
    assert client.post("/v1/verification/login", proof, f"{APP}-sdk").status == 200


def forget_ids(certificate: dict[str, Any]) -> Any:
    """A dry run is a request of its own."""
    return lasting({name: value for name, value in certificate.items() if name != "requestId"})
