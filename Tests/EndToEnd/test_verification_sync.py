# SPDX-License-Identifier: Apache-2.0
"""What verification makes of the sync service's answers. That service is a stand-in, which says what the real one says
seldom: that it refuses, or something that this version does not know."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from identitybus_testkit.commands import fresh
from identitybus_testkit.standin import StandIn, pending, rejected, succeeded
from identitybus_testkit.verification import (
    ServiceBus, VerificationDeployment, forget, get_session, login, logout, vouched)


class Sync:
    """Answers logins with user 17 and logouts with the anonymous -4, unless the test says otherwise."""

    def __init__(self) -> None:
        self.login: list[dict[str, Any]] | None = None
        self.logout: list[dict[str, Any]] | None = None
        self.identify: list[dict[str, Any]] | None = None
        self.held: list[dict[str, Any]] = []
        self.asked: dict[str, str] = {}

    @property
    def kinds(self) -> list[str]:
        """Of the commands, each once: what waits long for its answer is asked again, under the same id."""
        return list(self.asked.values())

    def __call__(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        kind = self.asked[command["id"]] = command["type"].split(".")[2]
        answers: list[dict[str, Any]] | None = getattr(self, kind)
        if answers is None:
            return [found("17") if kind == "login" else found("-4")]
        if not answers:
            self.held.append(command)
        return answers


def found(mpid: str) -> dict[str, Any]:
    return succeeded({
        "mpid": mpid, "isLoggedIn": not mpid.startswith("-"), "isEphemeral": False, "matchedIdentities": {},
        "rule": "found"})


@pytest.fixture(scope="module")
def deployment(make_deployment: Callable[..., VerificationDeployment]) -> VerificationDeployment:
    deployment = make_deployment(kind=VerificationDeployment)
    deployment.broker.ensure([deployment.sync.commands])
    deployment.process("verification").start().wait_ready()
    return deployment


@pytest.fixture
def bus(deployment: VerificationDeployment) -> ServiceBus:
    return deployment.verification


@pytest.fixture
def sync(deployment: VerificationDeployment) -> Iterator[Sync]:
    script = Sync()
    stand_in = StandIn(deployment.broker, deployment.prefix, "sync", script)
    script.answer = stand_in.answer  # type: ignore[attr-defined]
    yield script
    stand_in.close()


def session(bus: ServiceBus, device: str) -> dict[str, Any]:
    return bus.ask(get_session(device))["result"]


@pytest.mark.parametrize("leave", [logout, login])
@pytest.mark.parametrize("reason", ["THROTTLED", "INTERNAL_ERROR"])
def test_a_logout_that_is_refused_is_not_announced(
    bus: ServiceBus, sync: Sync, leave: Callable[[str], Any], reason: str
) -> None:
    """V32. The user is still there, so that is what is told, and the next logout asks again."""
    device = fresh("device")
    assert bus.settle(vouched(device, "anna"))["result"]["mpid"] == "17"
    sync.logout = [rejected(reason)]
    assert bus.settle(leave(device))["reason"] == reason
    assert session(bus, device)["mpid"] == "17" and session(bus, device)["state"] == "verified"
    assert bus.wait_sessions(device, 1) == ["login verified 17"]
    sync.logout = None
    # Also without identifiers: that is a logout as long as somebody is there.
    assert bus.settle(login(device))["status"] == "succeeded"
    assert bus.wait_sessions(device, 2) == ["login verified 17", "logout anonymous 17"]
    assert session(bus, device)["state"] == "anonymous" and not session(bus, device)["hasLogin"]
    assert sync.kinds == ["login", "logout", "logout"]


def test_a_logout_is_told_when_it_is_true(bus: ServiceBus, sync: Sync) -> None:
    """V33, V35. The command may expire long before the sync service comes to it. The logout does not."""
    device = fresh("device")
    bus.settle(vouched(device, "anna"))
    sync.logout = []
    command = logout(device).but(attributes={"expirytime": "2040-01-01T00:00:00Z"})
    assert bus.ask(command)["status"] == "pending"
    bus.collector.wait(lambda: sync.held, 20, lambda: "the logout at the sync service")
    assert "expirytime" not in sync.held[0]
    assert session(bus, device)["mpid"] == "17"
    assert bus.wait_sessions(device, 1) == ["login verified 17"]
    sync.answer(sync.held[0], found("-4"))  # type: ignore[attr-defined]
    assert bus.final(command)["result"]["mpid"] == "-4"
    assert bus.wait_sessions(device, 2)[-1] == "logout anonymous 17"


@pytest.mark.parametrize(
    "answer",
    [{"status": "rejected", "reason": "A_REASON_OF_LATER", "message": "Not today."}, {"status": "postponed"},
     {"status": "rejected"}])
def test_an_answer_that_is_not_known_ends_the_login(bus: ServiceBus, sync: Sync, answer: dict[str, Any]) -> None:
    """V32. While the sync service is updated first, it may say what this version has never heard of."""
    sync.login = [pending(), answer]
    device = fresh("device")
    reply = bus.settle(vouched(device, "anna"), timeout=20)
    assert (reply["status"], reply["reason"]) == ("rejected", "SERVER_ERROR")
    assert reply["message"] == answer.get("message", reply["message"])
    assert "mpid" not in session(bus, device)
    sync.login = None
    assert bus.settle(vouched(device, "anna"))["result"]["mpid"] == "17"


def test_a_refused_login_between_a_login_and_its_answer(bus: ServiceBus, sync: Sync) -> None:
    """V38, V39. The first user is on the device all the same. The session says who, and that nothing may be done."""
    sync.login = []
    device = fresh("device")
    first = vouched(device, "anna")
    bus.send(first)
    bus.collector.wait(lambda: sync.held, 20, lambda: "the login at the sync service")
    assert bus.ask(login(device, userId="berta"))["reason"] == "AuthTokenNotProvided"
    sync.answer(sync.held[0], found("17"))  # type: ignore[attr-defined]
    assert bus.final(first)["result"]["mpid"] == "17"
    assert bus.wait_sessions(device, 2) == ["refusal unverified!", "login unverified! 17"]
    assert session(bus, device)["mpid"] == "17" and not session(bus, device)["mayFileIssues"]
    sync.login = [found("18")]
    assert bus.settle(vouched(device, "carla"))["result"]["mpid"] == "18"
    assert bus.wait_sessions(device, 4)[2:] == ["logout anonymous 17", "login verified 18"]


def test_a_late_answer_brings_nobody_back(bus: ServiceBus, sync: Sync) -> None:
    """V54.

    The sync service has found the user, who is erased before its answer is read: the answer changes nothing."""
    sync.login = []
    device, mpid = fresh("device"), str(time.time_ns())
    command = login(device, "unchecked", userId=fresh("user"))
    assert bus.ask(command)["status"] == "pending"
    bus.collector.wait(lambda: sync.held, 20, lambda: "the login at the sync service")
    assert bus.ask(forget([mpid], app="unchecked"))["result"]["done"] == {"verification": {"sessions": 0}}
    sync.answer(sync.held[0], found(mpid))  # type: ignore[attr-defined]
    assert bus.final(command)["reason"] == "PROFILE_ERASED"
    # Behind the late answer, as both are of one device.
    sync.login = None
    assert bus.settle(login(device, "unchecked", userId=fresh("user")))["result"]["mpid"] == "17"
    assert bus.wait_sessions(device, 1) == ["login unchecked 17"]
