# SPDX-License-Identifier: Apache-2.0
# Part of IdentityBus. See LICENSE for the full text.
"""Verification while services are killed and keys are changed."""

import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from identitybus_testkit import apps
from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.service import Service
from identitybus_testkit.verification import (
    VerificationDeployment, keys, logout, usage, verification_app, verification_apps, vouched)
from identitybus_testkit.waiting import until


@pytest.fixture(params=["sqlite", "postgresql"])
def deployment(
    request: pytest.FixtureRequest, broker: Broker, new_database: Callable[[str], Database], directory: Path,
    open_deployments: list[Deployment],
) -> Iterator[VerificationDeployment]:
    folder = Path(tempfile.mkdtemp(prefix="verification-", dir=directory))
    deployment = VerificationDeployment(broker, folder, new_database(request.param))
    open_deployments.append(deployment)
    try:
        yield deployment
    finally:
        open_deployments.remove(deployment)
        deployment.close()


def mpid(reply: dict[str, Any]) -> str:
    assert reply["status"] == "succeeded", reply
    return reply["result"]["mpid"]


def again(service: Service) -> None:
    service.kill()
    service.start().wait_ready()


def test_a_switch_while_either_service_is_killed(deployment: VerificationDeployment) -> None:
    """A is current. B's login is sent, and each service dies at some point between that and the final reply."""
    bus = deployment.verification
    verification, sync = deployment.start()

    def sync_is_gone(command: Command) -> None:
        """Dead before the forward is read; verification dies while it waits."""
        sync.kill()
        bus.send(command)
        assert bus.reply(command.id)["status"] == "pending"
        again(verification)
        bus.send(command)
        sync.start().wait_ready()

    def verification_is_gone(command: Command) -> None:
        """Dies at once: before the command is read, or in the middle of it, or of the answer."""
        bus.send(command)
        verification.kill()
        again(sync)
        verification.start().wait_ready()
        bus.send(command)

    def both_are_killed(command: Command) -> None:
        bus.send(command)
        bus.reply(command.id)
        verification.kill()
        sync.kill()
        sync.start()
        verification.start()
        bus.send(command)

    for between in (sync_is_gone, verification_is_gone, both_are_killed):
        device = fresh("device")
        anna = mpid(bus.settle(vouched(device, fresh("anna")), timeout=60))
        command = vouched(device, fresh("berta"))
        between(command)
        berta = mpid(bus.final(command, timeout=60))
        assert berta != anna
        expected = [f"login verified {anna}", f"logout anonymous {anna}", f"login verified {berta}"]
        assert bus.wait_sessions(device, 3, timeout=60) == expected
        # Nothing comes after it: the answers of the last round trip would stand behind.
        mpid(bus.settle(logout(device), timeout=60))
        assert bus.wait_sessions(device, 4) == [*expected, f"logout anonymous {berta}"]
        finals = [record.data for record in bus.collector.replies[command.id] if record.data["status"] != "pending"]
        assert all(final == finals[0] for final in finals)


def test_many_switches_under_kills(deployment: VerificationDeployment) -> None:
    """Several devices switch accounts over and over while the services are killed in turn."""
    bus = deployment.verification
    services = deployment.start()
    devices = [fresh("device") for _ in range(4)]
    stop = threading.Event()

    def kill_in_turn() -> None:
        turn = 0
        while not stop.wait(1.5):
            again(services[turn % 2])
            turn += 1

    killer = threading.Thread(target=kill_in_turn)
    killer.start()
    sent: dict[str, list[Command]] = {device: [] for device in devices}
    try:
        for _ in range(15):
            for device in devices:
                command = vouched(device, fresh("user"))
                sent[device].append(command)
                bus.send(command)
            time.sleep(0.4)
    finally:
        stop.set()
        killer.join()
    for device, commands in sent.items():
        people = [mpid(bus.final(command, timeout=90)) for command in commands]
        assert len(set(people)) == len(people)
        expected = [f"login verified {people[0]}"]
        for before, after in zip(people, people[1:]):
            expected += [f"logout anonymous {before}", f"login verified {after}"]
        assert bus.wait_sessions(device, len(expected), timeout=60) == expected


def test_two_replicas_of_each(
    broker: Broker, new_database: Callable[[str], Database], directory: Path, open_deployments: list[Deployment]
) -> None:
    """A device's commands and the sync service's answers come to different replicas. Its story is the same, and no
    count is lost."""
    folder = Path(tempfile.mkdtemp(prefix="verification-", dir=directory))
    deployment = VerificationDeployment(broker, folder, new_database("postgresql"))
    open_deployments.append(deployment)
    try:
        deployment.start()
        deployment.start()
        bus = deployment.verification
        sent = {fresh("device"): [] for _ in range(8)}
        for turn in range(12):
            commands = [vouched(device, fresh("user"), key_id=f"k{turn % 2 + 1}") for device in sent]
            for command in commands:
                sent[command.subject].append(command)
            bus.send_all(commands)
        for device, commands in sent.items():
            people = [mpid(bus.final(command, timeout=60)) for command in commands]
            expected = [f"login verified {people[0]}"]
            for before, after in zip(people, people[1:]):
                expected += [f"logout anonymous {before}", f"login verified {after}"]
            assert bus.wait_sessions(device, len(expected), timeout=60) == expected
        counts = bus.settle(usage())["result"]["counts"]
        assert [(count["keyId"], count["count"]) for count in counts] == [("k1", 48), ("k2", 48)]
    finally:
        open_deployments.remove(deployment)
        deployment.close()


def write_keys(deployment: VerificationDeployment, ids: tuple[str, ...], **more: Any) -> None:
    entries = [entry | more.get(entry["id"], {}) for entry in keys(*ids)]
    others = [app for app in verification_apps() if app["id"] != "enforced"]
    apps.write(deployment.apps_file, [verification_app("enforced", "enforce", keys=entries), *others])


# Keys are read from the apps file: the store makes no difference.
@pytest.mark.slow
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_rotation(deployment: VerificationDeployment) -> None:
    """Two keys are live, traffic comes with both, and the old one goes: none is refused before, all after, and the
    process is the same one all along."""
    bus = deployment.verification
    verification, _ = deployment.start()
    process = verification.process.pid
    write_keys(deployment, ("k1",))
    bus.settle(vouched(fresh("device"), "user"))
    write_keys(deployment, ("k1", "k2"))
    until(
        lambda: bus.settle(vouched(fresh("device"), "user", key_id="k2"))["status"] == "succeeded", 15,
        "the new key")

    sent: list[tuple[float, str, Command]] = []
    stop = threading.Event()

    def traffic() -> None:
        turn = 0
        while not stop.is_set():
            key_id = ("k1", "k2")[turn % 2]
            command = vouched(fresh("device"), f"user-{turn % 7}", key_id=key_id)
            sent.append((time.monotonic(), key_id, command))
            bus.send(command)
            turn += 1
            time.sleep(0.02)

    worker = threading.Thread(target=traffic)
    worker.start()
    try:
        time.sleep(3)
        cut = time.monotonic()
        write_keys(deployment, ("k2",))
        until(lambda: verification.lines("apps file reloaded") and time.monotonic() > cut + 10.5, 20, "ten seconds")
        late = time.monotonic()
        time.sleep(2)
    finally:
        stop.set()
        worker.join()
    seen = {"k1": [0, 0], "k2": [0, 0]}
    for when, key_id, command in sent:
        reply = bus.final(command, timeout=60)
        if key_id == "k2" or when < cut:
            assert reply["status"] == "succeeded" and reply["result"]["keyId"] == key_id, reply
        elif when > late:
            assert reply["status"] == "rejected" and reply["reason"] == "InvalidAuthToken", reply
        seen[key_id][when > late] += 1
    assert all(before > 20 and after > 20 for before, after in seen.values()), seen
    assert verification.process.pid == process and verification.is_running


@pytest.mark.slow
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_retire_at(deployment: VerificationDeployment) -> None:
    """A key with a date ends on it, although nobody touches the file."""
    bus = deployment.verification
    verification, _ = deployment.start()
    end = time.time() + 8
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    write_keys(deployment, ("k1", "k2"), k1={"retireAt": text})
    until(lambda: verification.lines("apps file reloaded"), 20, "the file to be read")
    assert bus.settle(vouched(fresh("device"), "user"))["status"] == "succeeded"
    assert time.time() < end - 1, "the services took too long for this test to say anything"
    until(lambda: time.time() > end + 0.2, 20, "the end of the key")
    assert bus.ask(vouched(fresh("device"), "user"))["reason"] == "InvalidAuthToken"
    assert bus.settle(vouched(fresh("device"), "user", key_id="k2"))["status"] == "succeeded"
