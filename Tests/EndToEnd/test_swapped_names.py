# SPDX-License-Identifier: Apache-2.0
"""Two people have each other's external id, in all services. Support gives each their own (docs/support.md), and everything
else stays where it is: e-mails, devices, sessions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.clock import Clock
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.service import Service
from identitybus_testkit.verification import keys, token
from identitybus_testkit.verification import login as verified_login

NAMES = ("link", "user", "sync", "verification")
running: dict[str, Service] = {}


def app(mode: str) -> dict[str, Any]:
    name = f"swap-{mode}"
    return {
        "id": name,
        "keys": [
            apps.key(f"{name}-backend", "user.link", "user.delete"), apps.key(f"{name}-sdk", "sdk", "identity.sync"),
            apps.key(f"{name}-desk", "support", "identity.vouch", "verification.check")],
        "sdk": {"appSecret": apps.APP_SECRET},
        "sync": {**apps.worked("conversion"), "fromLinks": True},
        "verification": {"mode": mode, "signedFields": "userId", "keys": keys("k1", app=name)},
    }


class Swapped:
    """Ute and Uwe. Their app's backend has mixed them up: each is linked, and logged in unless only the links are wrong, by
    the other's name."""

    def __init__(self, deployment: Deployment, clock: Clock, mode: str, only_links: bool = False) -> None:
        self.deployment, self.bus, self.clock, self.app, self.mode = deployment, deployment.bus, clock, f"swap-{mode}", mode
        self.names = {"ute": fresh("uwe"), "uwe": fresh("ute")}
        self.devices = {name: fresh(f"{name}s-phone") for name in self.names}
        self.emails = {name: f"{fresh(name)}@mail.example" for name in self.names}
        self.users: dict[str, str] = {}
        for name, external_id in self.names.items():
            install = fresh("install")
            self.done(c.register(install, app=self.app))
            self.users[name] = self.done(c.request(install, external_id, app=self.app))["userId"]
            wait_until_quiet(deployment, 60)
        if only_links:
            self.names = {"ute": self.names["uwe"], "uwe": self.names["ute"]}
        self.mpids = {name: self.logs_in(name) for name in self.names}
        wait_until_quiet(deployment, 60)

    def done(self, command: Command) -> dict[str, Any]:
        reply = self.bus.settle(command, 60)
        assert reply["status"] == "succeeded", reply
        return dict(reply.get("result") or {})

    def logs_in(self, name: str) -> str:
        """As who the backend says that they are. Where it is verified, by that alone."""
        external_id = self.names[name]
        if self.mode == "enforce":
            signed = token(external_id, "k1", self.app)
            command = verified_login(self.devices[name], self.app, userId=external_id, userAuthToken=signed)
        else:
            command = c.sync(
                "login", self.devices[name], {"customerid": external_id, "email": self.emails[name]}, self.app)
        return str(self.done(command)["mpid"])

    def give(self, name: str, external_id: str) -> dict[str, Any]:
        data = {"userId": self.users[name], "newExternalId": external_id, "endHold": True, "author": "kim", "reason": "swapped"}
        return self.bus.settle(
            Command("link.change-external-id", data, external_id, app=self.app, signer=f"{self.app}-desk"), 60)

    def repair(self, kind: str, name: str, **data: str) -> None:
        data = {"userId": self.users[name], "author": "kim", "reason": "swapped", **data}
        self.done(Command(
            f"link.{kind}", data, data.get("newExternalId", self.users[name]), app=self.app, signer=f"{self.app}-desk"))
        wait_until_quiet(self.deployment, 60)

    def a_minute_later(self, away: str | None = None) -> None:
        if not away:
            wait_until_quiet(self.deployment, 60)
        self.clock.set(self.ahead + 61)
        self.ahead += 61

    ahead = 0

    def profile(self, name: str) -> dict[str, Any]:
        mpid = self.mpids[name]
        return self.done(Command("sync.get-profile", {"mpid": mpid}, mpid, app=self.app, signer=f"{self.app}-desk"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def at(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment], tmp_path_factory: Any) -> tuple[Deployment, Clock]:
    deployment = make_deployment(request.param, services=NAMES)
    apps.write(deployment.apps_file, [app(mode) for mode in ("off", "enforce")])
    clock = Clock(Path(tmp_path_factory.mktemp("clock")))
    services = [deployment.service(name, **(clock.environment if name == "link" else {})).start() for name in NAMES]
    for service in services:
        service.wait_ready()
    running.update(zip(NAMES, services))
    return deployment, clock


@pytest.mark.parametrize("mode", ["off", "enforce"])
def test_each_gets_their_own_name_and_keeps_the_rest(at: tuple[Deployment, Clock], mode: str) -> None:
    """L68, S118."""
    deployment, clock = at
    clock.set(0)
    both = Swapped(deployment, clock, mode)
    before = {name: both.profile(name) for name in both.names}
    assert {name: one["userId"] for name, one in before.items()} == both.users
    wrong = dict(both.names)
    assert both.give("ute", fresh("nobody"))["status"] == "succeeded"
    refused = both.give("uwe", wrong["ute"])
    assert refused["reason"] == "EXTERNAL_ID_TAKEN" and "held until" in refused["message"], refused
    both.a_minute_later()
    assert both.give("uwe", wrong["ute"])["status"] == "succeeded"
    both.a_minute_later()
    assert both.give("ute", wrong["uwe"])["status"] == "succeeded"
    both.names = {"ute": wrong["uwe"], "uwe": wrong["ute"]}
    wait_until_quiet(deployment, 60)
    for name, profile in before.items():
        identities = {**profile["identities"], "customerid": [both.names[name]]}
        after = both.profile(name)
        assert after["identities"] == identities and after["userId"] == both.users[name]
        assert [one["deviceId"] for one in after["devices"]] == [both.devices[name]]
        # The backend has heard of it, too.
        assert both.logs_in(name) == both.mpids[name]
    erased = both.bus.settle(
        Command("link.erase-user", {"userId": both.users["ute"]}, both.users["ute"], app=both.app,
                signer=f"{both.app}-backend"), 60)
    assert erased["result"]["subject"] == {"userIds": [both.users["ute"]], "mpids": [both.mpids["ute"]]}, erased
    wait_until_quiet(deployment, 60)
    assert both.profile("uwe")["identities"]["customerid"] == [both.names["uwe"]]


@pytest.mark.parametrize("mode", ["off", "enforce"])
def test_where_only_the_links_are_wrong_each_gets_the_profile_of_their_name(
        at: tuple[Deployment, Clock], mode: str) -> None:
    """L72, S118, S119."""
    both = Swapped(*at, mode, only_links=True)
    before = {name: both.profile(name) for name in both.names}
    assert before["ute"]["userId"] == both.users["uwe"] and before["uwe"]["userId"] == both.users["ute"]
    for name in both.names:
        both.repair("unlink-user", name)
    for name, external_id in both.names.items():
        both.repair("change-external-id", name, newExternalId=external_id)
    for name, profile in before.items():
        after = both.profile(name)
        assert after["userId"] == both.users[name] and after["identities"] == profile["identities"]
        assert [one["deviceId"] for one in after["devices"]] == [both.devices[name]]
        assert both.logs_in(name) == both.mpids[name]


def names_go_round(pairs: list[Swapped], clock: Clock, away: str, first: list[Command]) -> None:
    """While one service is away, so that it reads all of it late, and what is sent before that."""
    assert running[away].stop() == 0
    for command in first:
        pairs[0].bus.send(command)
    for name, external_id in [("ute", None), ("uwe", "ute"), ("ute", "uwe")]:
        for both in pairs:
            given = both.give(name, both.names[external_id] if external_id else fresh("nobody"))
            assert given["status"] == "succeeded", given
        pairs[0].a_minute_later(away)
    running[away].start().wait_ready()
    wait_until_quiet(pairs[0].deployment, 60)


def test_a_code_of_before_brings_nobody_elses_user(at: tuple[Deployment, Clock]) -> None:
    """L66a: Uwe has a code from when he had Ute's name; who redeems it is not her."""
    deployment, clock = at
    clock.set(0)
    both = Swapped(deployment, clock, "off")
    theirs = both.names["uwe"]
    code = both.done(c.request_code(theirs, app=both.app, signer=f"{both.app}-backend"))["authenticationCode"]
    tablet = fresh("uwes-tablet")
    creation = c.create(tablet, app=both.app, authCode=code)
    names_go_round([both], clock, "user", [creation])
    reply = deployment.bus.settle(creation, 60)
    assert reply["status"] == "rejected", reply
    present = both.done(Command("link.get-user", {"externalId": theirs}, theirs, app=both.app, signer=f"{both.app}-desk"))
    assert present["userId"] == both.users["ute"]
    assert tablet not in [install["installId"] for install in present["installs"]]


def test_who_swapped_names_while_sync_was_away_are_two(at: tuple[Deployment, Clock]) -> None:
    """S122. Several, because sync reads the changes of two people in either order."""
    deployment, clock = at
    clock.set(0)
    pairs = [Swapped(deployment, clock, "off") for _ in range(6)]
    names_go_round(pairs, clock, "sync", [])
    for both in pairs:
        for one, other in (("ute", "uwe"), ("uwe", "ute")):
            both.repair("unlink-user", one)
            erased = both.bus.settle(
                Command("sync.erase-profile", {"mpid": both.mpids[other]}, both.mpids[other], app=both.app,
                        signer=f"{both.app}-backend", attributes={"dryrun": "true"}), 60)
            assert erased["status"] == "succeeded", erased
            assert erased["result"]["subject"]["mpids"] == [both.mpids[other]], erased
