# SPDX-License-Identifier: Apache-2.0
"""Sagas of the user and the link service through crashes, absences and races: each ends once, and nothing is left half
linked.

E2E_SAGAS sets the size (80), E2E_SEED the seed; both are shown when a test fails.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.databases import SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

SAGAS = int(os.environ.get("E2E_SAGAS", "80"))
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))


@pytest.fixture(params=["sqlite", "postgresql"])
def users(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Iterator[Deployment]:
    deployment = make_deployment(request.param, services=("user", "link"))
    for name in ("user", "link"):
        deployment.service(name).start()
    for service in deployment.services:
        service.wait_ready()
    yield deployment
    for service in deployment.services:
        service.kill()


def succeeded(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return reply["result"]


def codes_for(bus: Bus, external_ids: list[str]) -> list[str]:
    requests = [c.request_code(external_id) for external_id in external_ids]
    bus.send_all(requests)
    return [succeeded(bus.final(request.id, 120))["authenticationCode"] for request in requests]


def assert_both_services_agree(bus: Bus, installs: list[str]) -> None:
    """What the user service says of an install is what the link service knows, once it has read the last event."""
    for install in installs:
        said: list[Any] = []

        def agree() -> bool:
            said[:] = mine, theirs = bus.settle(c.get(install)), bus.ask(c.query(install))
            found = theirs.get("result", {})
            if mine["status"] == "rejected":
                assert mine["reason"] == "NO_USER", mine
                return "userId" not in found
            told = mine["result"]
            return (told["userId"], told["isLinked"], told["isRemoteEnabled"]) == (
                found.get("userId"), "externalId" in found, found.get("isActive"))

        until(agree, 30, lambda: f"both to say the same of {install}: {said}")


# Races


def test_two_devices_redeem_one_code_and_one_of_them_wins(users: Deployment) -> None:
    bus = users.bus
    codes = codes_for(bus, [fresh("ext") for _ in range(30)])
    pairs = [[c.create(fresh("install"), authCode=code) for _ in range(2)] for code in codes]
    bus.send_all([command for pair in pairs for command in pair])
    for pair in pairs:
        replies = [bus.final(command.id) for command in pair]
        assert sorted(reply["status"] for reply in replies) == ["rejected", "succeeded"], replies
        assert [reply["reason"] for reply in replies if reply["status"] == "rejected"] == ["AUTH_CODE_USED"]


def test_two_devices_redeem_codes_for_one_new_external_id_and_are_one_person(users: Deployment) -> None:
    """"Two devices redeeming codes for one new external id at the same moment: one person, one of them active.\""""
    bus = users.bus
    external_ids = [fresh("ext") for _ in range(20)]
    codes = zip(codes_for(bus, external_ids), codes_for(bus, external_ids))
    pairs = [[c.create(fresh("install"), authCode=code) for code in pair] for pair in codes]
    bus.send_all([command for pair in pairs for command in pair])
    for pair in pairs:
        results = [succeeded(bus.final(command.id)) for command in pair]
        assert results[0]["userId"] == results[1]["userId"]
        installs = [command.data["installId"] for command in pair]
        active = [succeeded(bus.ask(c.query(install)))["isActive"] for install in installs]
        assert sorted(active) == [False, True]


# One of the two is away


def service(deployment: Deployment, name: str) -> Service:
    return next(service for service in deployment.services if service.name == name)


def test_a_saga_completes_when_the_link_service_returns(users: Deployment) -> None:
    bus, link = users.bus, service(users, "link")
    [first, second, third] = codes_for(bus, [fresh("ext") for _ in range(3)])
    link.kill()
    soon = datetime.now(timezone.utc) + timedelta(seconds=8)
    patient = c.create(fresh("install"), authCode=first)
    hasty = c.create(fresh("install"), authCode=second).but(attributes={"expirytime": soon.isoformat()})
    undone = c.create(fresh("install"), authCode=third)
    for command in (hasty, patient, undone):
        assert bus.ask(command)["status"] == "pending"
    reset = c.reset(undone.data["installId"])
    assert bus.ask(reset)["status"] == "pending"
    repeated = patient.again()
    assert bus.ask(repeated)["status"] == "pending"
    until(lambda: datetime.now(timezone.utc) > soon + timedelta(seconds=0.2), 60, "the end of the hasty one")
    link.start().wait_ready()
    result = succeeded(bus.final(patient.id))
    assert succeeded(bus.final(repeated.id)) == result, "the same install repeating the same create: the same answer"
    # Too late: nothing is half linked, and the code is not burnt.
    late = bus.final(hasty.id)
    assert (late["status"], late.get("result")) == ("expired", None)
    assert bus.ask(c.query(hasty.data["installId"]))["reason"] == "INSTALL_NOT_FOUND"
    succeeded(bus.settle(hasty.again().but(attributes={})))
    # The reset wins over the creation that went on.
    assert bus.final(undone.id)["reason"] == "SDK_RESET_IN_PROGRESS"
    succeeded(bus.final(reset.id))
    assert_both_services_agree(bus, [command.data["installId"] for command in (patient, hasty, undone)])


def test_a_saga_completes_when_the_user_service_returns(users: Deployment) -> None:
    bus, user = users.bus, service(users, "user")
    external_id = fresh("ext")
    [code] = codes_for(bus, [external_id])
    first = fresh("install")
    result = succeeded(bus.settle(c.create(first, authCode=code)))
    [code] = codes_for(bus, [external_id])
    second = c.create(fresh("install"), authCode=code)
    linker = c.create(fresh("install"), appSecret=APP_SECRET, linking="linker")
    assert bus.ask(linker)["status"] == "pending"
    user.kill()
    bus.send(second)
    third = fresh("install")
    succeeded(bus.ask(c.register(third)))
    # Meanwhile somebody else moves the user.
    succeeded(bus.ask(c.request(third, external_id)))
    bus.send(c.confirm(linker.data["installId"]))
    user.start().wait_ready()
    assert succeeded(bus.final(second.id))["userId"] == result["userId"]
    assert bus.final(linker.id)["reason"] == "APP_SIDE_LINKING_FAILED"
    assert_both_services_agree(bus, [first, second.data["installId"], linker.data["installId"]])


# Secrets at rest


def test_codes_and_tokens_are_not_in_the_store(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite", services=("user", "link"))
    for name in ("user", "link"):
        deployment.service(name).start().wait_ready()
    bus = deployment.bus
    codes = codes_for(bus, [fresh("ext") for _ in range(5)])
    used, install = codes[0], fresh("install")
    token = succeeded(bus.settle(c.create(install, authCode=used)))["token"]["tokenId"]
    for running in deployment.services:
        assert running.stop() == 0
    assert isinstance(deployment.database, SQLite)
    content = b"".join(path.read_bytes() for path in sorted(deployment.database.directory.iterdir()) if path.is_file())
    assert install.encode() in content, "the right files"
    for secret in [*codes, token, token.split(".")[2]]:
        assert secret.encode() not in content
        assert secret.encode().hex().encode() not in content
    for code in codes:
        assert bytes.fromhex(code) not in content
    log = b"".join(running.log.read_bytes() for running in deployment.services)
    assert not [secret for secret in [*codes, token] if secret.encode() in log]


# Kills at random instants


class Killer:
    """Kills one of the services at a random instant and starts it again, until told to stop."""

    def __init__(self, services: list[Service], random: random.Random) -> None:
        self.kills = 0
        self._services, self._random = services, random
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(0.05, 1.5)):
            victim = self._random.choice(self._services)
            victim.kill()
            self.kills += 1
            self._stop.wait(self._random.choice([0, 0, 0.5]))
            victim.start()
            # Now and then it is killed again before it is up.
            if self._random.random() < 0.5:
                victim.wait_ready(90)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self.is_alive


@pytest.mark.chaos
def test_sagas_survive_kill_9_of_either_service_at_any_instant(users: Deployment) -> None:
    print(f"E2E_SEED={SEED} E2E_SAGAS={SAGAS}")
    dice = random.Random(SEED)
    bus = users.bus
    external_ids = [fresh("ext") for _ in range(max(1, SAGAS // 8))]
    killer = Killer(users.services, dice)
    people: dict[str, set[str]] = {}
    installs: list[str] = []
    try:
        rounds = 0
        while rounds < 4 or killer.kills < 8:
            assert killer.is_alive
            rounds += 1
            # None more often than it may have codes at once.
            chosen = dice.sample(external_ids * 8, SAGAS // 4)
            creations: list[tuple[str, Command]] = []
            for external_id, code in zip(chosen, codes_for_few(bus, chosen)):
                creations.append((external_id, c.create(fresh("install"), dice.choice([PHONE, TABLET]), authCode=code)))
            unlinked = [c.create(fresh("install"), appSecret=APP_SECRET, linking="none") for _ in range(5)]
            # Sent twice, as a producer does that was not answered in time.
            bus.send_all([command for _, command in creations] + unlinked)
            bus.send_all([command for _, command in creations if dice.random() < 0.3])
            for external_id, command in creations:
                people.setdefault(external_id, set()).add(succeeded(bus.final(command.id, 240))["userId"])
                installs.append(command.data["installId"])
            for command in unlinked:
                assert succeeded(bus.final(command.id, 240))["isLinked"] is False
            resets = [c.reset(install) for install in dice.sample(installs, len(installs) // 4)]
            bus.send_all(resets)
            for command in resets:
                succeeded(bus.final(command.id, 240))
    finally:
        killer.stop()
    for running in users.services:
        if not running.is_running:
            running.start()
        running.wait_ready(90)
    assert all(len(ids) == 1 for ids in people.values()), "one person for an external id"
    assert len({user for ids in people.values() for user in ids}) == len(people)
    for replies in bus.collector.replies.values():
        final = {record.envelope["id"]: record.data for record in replies if record.data["status"] != "pending"}
        assert len({str(data) for data in final.values()}) <= 1, "a saga ends once"
    wait_until_quiet(bus)
    assert_both_services_agree(bus, installs)
    print(f"{killer.kills} kills")


def codes_for_few(bus: Bus, external_ids: list[str]) -> list[str]:
    """A few at a time."""
    codes: list[str] = []
    for start in range(0, len(external_ids), 8):
        codes += codes_for(bus, external_ids[start:start + 8])
    return codes


def wait_until_quiet(bus: Bus) -> None:
    """Until nothing has come for a while: events are still on their way when the last reply has come."""
    while True:
        count = bus.collector.count
        time.sleep(2)
        if bus.collector.count == count:
            return
