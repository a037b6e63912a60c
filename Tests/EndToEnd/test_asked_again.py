# SPDX-License-Identifier: Apache-2.0
"""A saga whose question or answer is lost on the way ends all the same: what was not answered is asked again, with the
same id, after 5 s and then after pauses that grow. The other service is a stand-in that does not answer at first."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.standin import StandIn, succeeded
from identitybus_testkit.verification import VerificationDeployment, logout, vouched
from identitybus_testkit.waiting import until

pytestmark = pytest.mark.slow
# 5 s until it is asked again, and what the ways there and back take on a busy machine.
ASKED_AGAIN = 15.0
USER = "5a18fc4b0962209e0000000d"


class Forgetful:
    """Answers a command only when it has come `times` times more."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]], times: int = 1) -> None:
        self.answer, self.times = answer, times
        self.heard: dict[str, list[float]] = defaultdict(list)
        self.told: dict[str, dict[str, Any]] = {}

    def __call__(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        first = self.told.setdefault(command["id"], command)
        assert {**command, "time": ""} == {**first, "time": ""}, "the same question"
        self.heard[command["id"]].append(time.time())
        return [self.answer(command)] if len(self.heard[command["id"]]) > self.times else []


def one_final(bus: Bus, command: Command) -> None:
    records = [record for record in bus.collector.replies[command.id] if record.data["status"] != "pending"]
    assert len({(record.envelope["id"], record.value) for record in records}) == 1, records


# The user service asks the link service


def as_link(command: dict[str, Any]) -> dict[str, Any]:
    """The install, as the link service would see it if it had done what it is asked for."""
    type, data = command["type"].split(".")[2], command["data"]
    install = {"installId": data["installId"], "isActive": True, "version": int(time.time() * 1000)}
    if type == "establish":
        return succeeded(install | {"userId": USER, "personCreated": True})
    install |= {"appId": command["appid"], "status": "enabled", "isUsersFirst": True}
    if type == "register-install":
        return succeeded(install | ({"userId": USER} if data["user"] == "new" else {}))
    if type == "query":
        return succeeded(install | {"userId": USER, "externalId": "ada"})
    assert type == "detach-install", type
    return succeeded(install | {"isActive": False})


@pytest.fixture
def users(make_deployment: Callable[..., Deployment]) -> Iterator[tuple[Bus, Callable[[Forgetful], StandIn]]]:
    deployment = make_deployment("sqlite", services=("user", "link"))
    stand_ins: list[StandIn] = []

    def stand_in(script: Forgetful) -> StandIn:
        stand_ins.append(StandIn(deployment.broker, deployment.prefix, "link", script))
        return stand_ins[-1]

    deployment.broker.ensure([deployment.bus.topic("link")])
    deployment.service().start().wait_ready()
    yield deployment.bus, stand_in
    for one in stand_ins:
        one.close()


def code_for(bus: Bus) -> str:
    reply = bus.ask(c.request_code(fresh("ext")))
    return str(reply["result"]["authenticationCode"])


def test_every_phase_of_the_user_service_ends(users: tuple[Bus, Callable[[Forgetful], StandIn]]) -> None:
    bus, stand_in = users
    link = stand_in(Forgetful(as_link))
    by_code, unlinked, with_linker = (fresh("install") for _ in range(3))

    def all_succeed(phase: str, *commands: Command) -> None:
        bus.send_all(list(commands))
        for command in commands:
            reply = bus.final(command.id, ASKED_AGAIN)
            assert reply["status"] == "succeeded", (phase, command, reply)
            one_final(bus, command)

    creation = c.create(with_linker, appSecret=APP_SECRET, linking="linker")
    bus.send(creation)
    all_succeed(
        "creating", c.create(by_code, authCode=code_for(bus)),
        c.create(unlinked, appSecret=APP_SECRET, linking="none"))
    # `pending` comes when the link service knows the install.
    assert bus.reply(creation.id, ASKED_AGAIN)["status"] == "pending"
    all_succeed(
        "confirming, linking, resetting", c.confirm(with_linker), c.link(unlinked, authCode=code_for(bus)),
        c.reset(by_code))
    assert bus.final(creation.id)["status"] == "succeeded"
    one_final(bus, creation)
    asked = sorted(record.envelope["type"].split(".")[2] for record in link.commands)
    kinds = ["detach-install", "establish", "establish", "query", "register-install", "register-install"]
    assert asked == sorted(2 * kinds), "each is asked twice, and no more once it is answered"


def test_the_pauses_grow(users: tuple[Bus, Callable[[Forgetful], StandIn]]) -> None:
    bus, stand_in = users
    script = Forgetful(as_link, times=2)
    stand_in(script)
    command = c.create(fresh("install"), appSecret=APP_SECRET, linking="none")
    bus.send(command)
    for count, timeout in ((1, 30), (2, 9), (3, 20)):
        until(lambda: any(len(times) >= count for times in list(script.heard.values())), timeout, f"question {count}")
    assert bus.final(command.id)["status"] == "succeeded"
    [times], [question] = script.heard.values(), script.told.values()
    begun = datetime.fromisoformat(question["time"]).timestamp()
    # 5 s after the first one, and 10 s after the second one: whoever is slow hears it later, never sooner.
    first, second = times[1] - begun, times[2] - begun
    assert first > 4.9 and second > 14.9, (first, second)


def test_sixteen_commands_wait_for_what_goes_on_and_no_more(users: tuple[Bus, Callable[[Forgetful], StandIn]]) -> None:
    """U68."""
    bus, stand_in = users
    install = fresh("install")
    creation = c.create(install, appSecret=APP_SECRET, linking="none")
    assert bus.ask(creation)["status"] == "pending"
    resets = [c.reset(install) for _ in range(16)]
    for reset in resets:
        assert bus.ask(reset)["status"] == "pending"
    refused = bus.ask(c.reset(install))
    assert (refused["status"], refused["reason"]) == ("rejected", "USER_CREATION_IN_PROGRESS")
    stand_in(Forgetful(as_link, times=0))
    # The pause of now may be a longer one: nobody heard what was asked before.
    assert bus.final(creation.id, 3 * ASKED_AGAIN)["reason"] == "SDK_RESET_IN_PROGRESS"
    for reset in resets:
        assert bus.final(reset.id, ASKED_AGAIN)["status"] == "succeeded"


# The verification service asks the sync service


@pytest.fixture
def verification(
    open_deployment: Callable[..., AbstractContextManager[VerificationDeployment]]
) -> Iterator[VerificationDeployment]:
    with open_deployment(kind=VerificationDeployment) as deployment:
        deployment.broker.ensure([deployment.sync.commands])
        deployment.process("verification").start().wait_ready()
        yield deployment


def as_sync(command: dict[str, Any]) -> dict[str, Any]:
    is_login = command["type"] == "identity.sync.login.v1"
    return succeeded({
        "mpid": "17" if is_login else "-4", "isLoggedIn": is_login, "isEphemeral": not is_login,
        "matchedIdentities": {}, "rule": "created"})


def test_logins_and_logouts_end(verification: VerificationDeployment) -> None:
    bus = verification.verification
    script = Forgetful(as_sync)
    sync = StandIn(verification.broker, verification.prefix, "sync", script)
    try:
        device = fresh("device")
        login = vouched(device, fresh("ada"))
        assert bus.settle(login, ASKED_AGAIN)["result"]["mpid"] == "17"
        assert bus.settle(logout(device), ASKED_AGAIN)["status"] == "succeeded"
        one_final(bus, login)
        assert bus.wait_sessions(device, 2) == ["login verified 17", "logout anonymous 17"]
        assert {len(times) for times in script.heard.values()} == {2}, "asked again once, and no more once answered"
    finally:
        sync.close()
