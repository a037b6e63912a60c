# SPDX-License-Identifier: Apache-2.0
"""Verification while services are killed and keys are changed."""

import threading
import time
from contextlib import AbstractContextManager
from typing import Any, Callable, Iterator

import pytest

from identitybus_testkit import apps
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.service import Service
from identitybus_testkit.verification import (
    VerificationDeployment, get_session, identity_token, keys, login, login_identity, logout, secret, usage,
    verification_app, verification_apps, vouched)
from identitybus_testkit.waiting import until

Open = Callable[..., AbstractContextManager[VerificationDeployment]]


@pytest.fixture(params=["sqlite", "postgresql"])
def deployment(request: pytest.FixtureRequest, open_deployment: Open) -> Iterator[VerificationDeployment]:
    with open_deployment(request.param, kind=VerificationDeployment) as deployment:
        yield deployment


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


def test_two_replicas_of_each(open_deployment: Open) -> None:
    """A device's commands and the sync service's answers come to different replicas. Its story is the same, and no
    count is lost."""
    with open_deployment("postgresql", kind=VerificationDeployment) as deployment:
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


def write_section(deployment: VerificationDeployment, mode: str = "enforce", **section: Any) -> None:
    others = [app for app in verification_apps() if app["id"] != "enforced"]
    apps.write(deployment.apps_file, [verification_app("enforced", mode, **section), *others])


def write_keys(deployment: VerificationDeployment, ids: tuple[str, ...], **more: Any) -> None:
    write_section(deployment, keys=[entry | more.get(entry["id"], {}) for entry in keys(*ids)])


def write_identity_secrets(deployment: VerificationDeployment, ids: tuple[str, ...]) -> None:
    write_section(deployment, identityTokenSecret=None, identityTokenSecrets=keys(*ids))


# Keys are read from the apps file: the store makes no difference.
def by_token(user: str, key_id: str) -> Command:
    return vouched(fresh("device"), user, key_id=key_id)


def by_identity_token(user: str, key_id: str) -> Command:
    identities = [{"identifier": "uid", "value": user}]
    return login_identity(fresh("device"), identity_token(identities, key_id=key_id))


@pytest.mark.slow
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("old", "new", "write", "enter", "reason"),
    [("k1", "k2", write_keys, by_token, "InvalidAuthToken"),
     ("j1", "j2", write_identity_secrets, by_identity_token, "INVALID_IDENTITY_TOKEN")], ids=["keys", "identity"])
def test_rotation(
    deployment: VerificationDeployment, old: str, new: str, write: Callable[..., None],
    enter: Callable[[str, str], Command], reason: str
) -> None:
    """V42, V56.

    Two keys are live, traffic comes with both, and the old one goes: none is refused before, all after, and the
    process is the same one all along."""
    bus = deployment.verification
    verification, _ = deployment.start()
    process = verification.process.pid
    write(deployment, (old,))
    until(lambda: bus.settle(enter("user", old))["status"] == "succeeded", 15, "the old key")
    write(deployment, (old, new))
    until(lambda: bus.settle(enter("user", new))["status"] == "succeeded", 15, "the new key")

    sent: list[tuple[str, Command]] = []
    stop = threading.Event()

    def traffic() -> None:
        turn = 0
        while not stop.is_set():
            key_id = (old, new)[turn % 2]
            command = enter(f"user-{turn % 7}", key_id)
            sent.append((key_id, command))
            bus.send(command)
            turn += 1
            time.sleep(0.02)

    def one_is_refused() -> bool:
        return any(
            record.data["status"] == "rejected" for _, command in sent[early:]
            for record in list(bus.collector.replies.get(command.id, ())))

    worker = threading.Thread(target=traffic)
    worker.start()
    try:
        until(lambda: len(sent) > 80, 60, "traffic with both keys")
        # What is answered by now was decided before the old key goes, what is sent behind a refusal after that.
        early = len(sent)
        for _, command in sent[:early]:
            bus.final(command, timeout=60)
        write(deployment, (new,))
        until(one_is_refused, 10.5, "the end of the old key in ten seconds")
        late = len(sent)
        until(lambda: len(sent) > late + 80, 60, "traffic without the old key")
    finally:
        stop.set()
        worker.join()
    ended: set[str] = set()
    for turn, (key_id, command) in enumerate(sent):
        reply = bus.final(command, timeout=60)
        if key_id == new or turn < early:
            assert reply["status"] == "succeeded" and reply["result"]["keyId"] == key_id, reply
        elif turn >= late:
            assert reply["status"] == "rejected" and reply["reason"] == reason, reply
        if key_id == old and turn < early:
            ended.add(command.data["deviceId"])
    assert verification.process.pid == process and verification.is_running
    counts = {count.get("keyId") for count in bus.settle(usage())["result"]["counts"]}
    assert {old, new} <= counts
    # What the old key had vouched for is over, without anybody asking; what the new one vouches for is not.
    for device in ended:
        assert " ".join(bus.wait_sessions(device, 2)[-1].split()[:3]) == "ended keyGone unverified!"
    for key_id, command in sent:
        if key_id == new:
            assert len(bus.wait_sessions(command.data["deviceId"], 1)) == 1


# How a session ends by itself. The store is asked for it, so both are tried.


def wait_ended(deployment: VerificationDeployment, device: str, reason: str, timeout: float = 40) -> None:
    sessions = deployment.verification.wait_sessions(device, 2, timeout)
    assert sessions[-1].startswith(f"ended {reason} unverified!"), sessions
    reply = deployment.verification.ask(get_session(device))["result"]
    assert (reply["state"], reply["mayFileIssues"]) == ("unverified", False) and "keyId" not in reply


@pytest.mark.slow
def test_sessions_end_with_their_key(deployment: VerificationDeployment) -> None:
    """V42, V46. Also those that are not looked at, also in steps, and also where another secret takes the same id."""
    bus = deployment.verification
    deployment.process("verification", BATCH_SIZE="7").start().wait_ready()
    deployment.process("sync").start().wait_ready()
    gone, stays = [fresh("device") for _ in range(30)], [fresh("device") for _ in range(5)]
    commands = [vouched(device, fresh("user")) for device in gone]
    commands += [vouched(device, fresh("user"), key_id="k2") for device in stays]
    bus.send_all(commands)
    for command in commands:
        assert bus.final(command)["status"] == "succeeded"
    replaced = [{"id": "k1", "secret": secret("k1-of-later")}, *keys("k2")]
    write_section(deployment, keys=replaced)
    for device in gone:
        wait_ended(deployment, device, "keyGone")
    for device in stays:
        assert bus.ask(get_session(device))["result"]["state"] == "verified"
        assert len(bus.sessions(device)) == 1


@pytest.mark.slow
def test_a_session_of_a_gone_key_is_over_for_whoever_looks(deployment: VerificationDeployment) -> None:
    """V46. As soon as the settings are read: the answers never show more than the settings allow."""
    bus = deployment.verification
    verification, _ = deployment.start()
    device = fresh("device")
    mpid(bus.settle(vouched(device, fresh("user"))))
    write_keys(deployment, ("k2",))
    until(lambda: verification.lines("apps file reloaded"), 20, "the file to be read")
    assert bus.ask(get_session(device))["result"]["state"] == "unverified"
    assert bus.wait_sessions(device, 2)[-1].startswith("ended keyGone unverified!")


@pytest.mark.slow
def test_a_switch_to_enforce_ends_what_nobody_vouched_for(deployment: VerificationDeployment) -> None:
    """V43."""
    bus = deployment.verification
    write_section(deployment, "report")
    deployment.start()
    unverified, verified, anonymous = (fresh("device") for _ in range(3))
    assert bus.settle(login(unverified, userId=fresh("user")))["result"]["mayFileIssues"]
    mpid(bus.settle(vouched(verified, fresh("user"))))
    bus.ask(login(anonymous))
    write_section(deployment, "enforce")
    wait_ended(deployment, unverified, "verificationRequired")
    for device, state in ((verified, "verified"), (anonymous, "anonymous")):
        session = bus.ask(get_session(device))["result"]
        assert (session["state"], session["mayFileIssues"]) == (state, True)
        assert len(bus.sessions(device)) == 1


@pytest.mark.slow
def test_a_session_ends_by_age(deployment: VerificationDeployment) -> None:
    """V44."""
    bus = deployment.verification
    write_section(deployment, sessionSeconds=10)
    deployment.start()
    device, user = fresh("device"), fresh("user")
    mpid(bus.settle(vouched(device, user)))
    wait_ended(deployment, device, "sessionExpired")
    again = mpid(bus.settle(vouched(device, user)))
    assert bus.wait_sessions(device, 3)[2] == f"login verified {again}"


@pytest.mark.slow
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_retire_at(deployment: VerificationDeployment) -> None:
    """V42, V56. A key with a date ends on it, although nobody touches the file."""
    bus = deployment.verification
    verification, _ = deployment.start()
    end = time.time() + 25
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    write_keys(deployment, ("k1", "k2"), k1={"retireAt": text})
    until(lambda: verification.lines("apps file reloaded"), 20, "the file to be read")
    assert bus.settle(vouched(fresh("device"), "user"))["status"] == "succeeded"
    assert time.time() < end - 1, "the services took too long for this test to say anything"
    until(lambda: time.time() > end + 0.2, 60, "the end of the key")
    assert bus.ask(vouched(fresh("device"), "user"))["reason"] == "InvalidAuthToken"
    assert bus.settle(vouched(fresh("device"), "user", key_id="k2"))["status"] == "succeeded"
