# SPDX-License-Identifier: Apache-2.0
"""Several replicas on PostgreSQL, devices on different partitions, identities that overlap, kill -9 at any instant: the
result equals some serial order. The order is the database's own: a transaction that relied on another's writes got its
number later. In that order an oracle, written from docs/sync.md, repeats every command and must come to the same
replies and the same rows.

E2E_COMMANDS sets the size (4,000 here), E2E_SEED the seed; both are shown when a test fails.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.commands import Command
from identitybus_testkit.databases import Database
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.waiting import until

pytestmark = pytest.mark.chaos

COMMANDS = int(os.environ.get("E2E_COMMANDS", "4000"))
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))
PRIORITY = ["customerid", "email", "ios_idfv", "roku_aid", "device_application_stamp"]
PROFILES_PER_VALUE = 50
UNIQUE = LOGIN = {"customerid", "email"}

Identity = tuple[str, str]


@dataclass
class Profile:
    identities: list[Identity] = field(default_factory=list)
    seen: int = 0
    is_orphaned: bool = False

    @property
    def is_known(self) -> bool:
        return any(kind in LOGIN for kind, _ in self.identities)


class Oracle:
    """Profile conversion, one command after the other."""

    def __init__(self) -> None:
        self.profiles: dict[str, Profile] = {}
        self.current: dict[str, str] = {}
        self.returned: set[str] = set()

    def holders(self, identity: Identity) -> list[str]:
        return [mpid for mpid, profile in self.profiles.items() if identity in profile.identities]

    def find(self, wanted: dict[str, str], current: str | None) -> str | None:
        left: list[str] = []
        for kind in PRIORITY:
            if kind not in wanted:
                continue
            found = [
                mpid for mpid in self.holders((kind, wanted[kind]))
                if not self.profiles[mpid].is_known or self.is_meant(self.profiles[mpid], wanted)]
            left = [mpid for mpid in left if mpid in found] or left or found
            if len(left) == 1:
                break
        if current in left:
            return current
        return min(left, key=lambda mpid: (-self.profiles[mpid].seen, int(mpid)), default=None)

    def is_meant(self, profile: Profile, wanted: dict[str, str]) -> bool:
        """By the best ranked login identity that both have, and that they have in common."""
        own = dict(one for one in profile.identities if one[0] in LOGIN)
        both = [kind for kind in PRIORITY if kind in own and kind in wanted]
        return bool(both) and own[both[0]] == wanted[both[0]]

    def move(self, operation: str, data: dict[str, Any], result: dict[str, Any], now: int) -> None:
        wanted = dict(data["knownIdentities"])
        device, current = data["deviceId"], self.current.get(data["deviceId"])
        if operation == "logout":
            wanted = {kind: value for kind, value in wanted.items() if kind not in LOGIN}
            found = None
        else:
            found = self.find(wanted, current)
        mpid = found or result["mpid"]
        assert result["mpid"] == mpid, f"expected {mpid} ({self.profiles.get(mpid)})"
        assert (found is None) == (mpid not in self.profiles), "an MPID was used again"
        assert result.get("previousMPID") == current
        profile = self.profiles.setdefault(mpid, Profile())
        assert not profile.is_orphaned, "an orphan came back"
        for kind in sorted(wanted, key=lambda kind: (PRIORITY + [kind]).index(kind)):
            identity = (kind, wanted[kind])
            if identity in profile.identities or (kind in UNIQUE and self.holders(identity)):
                continue
            if kind in UNIQUE:
                profile.identities = [own for own in profile.identities if own[0] != kind]
            elif not self.make_room(identity):
                continue
            profile.identities.append(identity)
        profile.seen = now
        self.current[device] = mpid
        assert result["isLoggedIn"] == profile.is_known

    def make_room(self, identity: Identity) -> bool:
        """Anonymous ones give a value up that too many share, those seen longest ago first; others keep it."""
        holders = self.holders(identity)
        anonymous = sorted(
            (mpid for mpid in holders if not self.profiles[mpid].is_known),
            key=lambda mpid: (self.profiles[mpid].seen, int(mpid)))
        excess = max(0, len(holders) - PROFILES_PER_VALUE + 1)
        if excess > len(anonymous):
            return False
        for mpid in anonymous[:excess]:
            self.profiles[mpid].identities.remove(identity)
            self.profiles[mpid].is_orphaned = not self.profiles[mpid].identities
        return True

    def modify(self, data: dict[str, Any], result: dict[str, Any]) -> None:
        mpid, touched = data["mpid"], []
        profile = self.profiles[mpid]
        assert not profile.is_orphaned
        before = bool(profile.identities)
        for change in data["changes"]:
            kind, new = change["identityType"], change["newValue"]
            own = [one for one in profile.identities if one[0] == kind]
            if own == ([(kind, new)] if new else []):
                continue
            touched.append(mpid)
            profile.identities = [one for one in profile.identities if one[0] != kind]
            if new:
                for other in self.holders((kind, new)):
                    loser = self.profiles[other]
                    loser.identities.remove((kind, new))
                    loser.is_orphaned = not loser.identities
                    touched.append(other)
                profile.identities.append((kind, new))
        profile.is_orphaned = before and not profile.identities
        assert [one["modifiedMPID"] for one in result["changeResults"]] == touched
        assert result["isLoggedIn"] == profile.is_known


class Commands:
    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        self.bus, self.chance = deployment.bus, chance
        self.sent: list[Command] = []
        self.mpids: list[str] = []
        self.looked_at = 0

    def next(self) -> Command:
        if self.sent and self.chance.random() < 0.05:
            return self.chance.choice(self.sent)
        kind = self.chance.choices(["identify", "login", "logout", "modify"], [45, 25, 12, 18])[0]
        if kind == "modify":
            self.learn()
            if not self.mpids:
                return self.next()
            identity = self.chance.choice(sorted(LOGIN))
            change = c.change(identity, None, self.value(identity) if self.chance.random() < 0.8 else None)
            return self.fixed(c.modify(self.chance.choice(self.mpids[-60:]), change))
        kinds = {"identify": 0.25, "login": 0.7, "logout": 0.0}[kind]
        identities = {name: self.value(name) for name in sorted(LOGIN) if self.chance.random() < kinds}
        identities |= {name: self.value(name) for name in PRIORITY[2:] if self.chance.random() < 0.5}
        if not identities:
            identities = {"ios_idfv": self.value("ios_idfv")}
        return self.fixed(c.sync(kind, f"device-{self.chance.randrange(60)}", identities))

    def fixed(self, command: Command) -> Command:
        return command.but(id=f"{self.chance.getrandbits(128):032x}")

    def value(self, kind: str) -> str:
        return f"{kind}-{self.chance.randrange(25)}"

    def learn(self) -> None:
        """The MPIDs of replies that are here by now."""
        for command in self.sent[self.looked_at:]:
            records = self.bus.collector.replies.get(command.id)
            if not records:
                break
            self.looked_at += 1
            if mpid := (records[0].data.get("result") or {}).get("mpid"):
                self.mpids.append(mpid)


@pytest.mark.parametrize("kills", [0, 6])
def test_replicas_come_to_a_serial_order(
    make_deployment: Callable[..., Deployment], new_database: Callable[[str], Database], kills: int
) -> None:
    """S68."""
    print(f"E2E_SEED={SEED} E2E_COMMANDS={COMMANDS}")
    chance = random.Random(SEED + kills)
    deployment = make_deployment("postgresql", services=("sync", "link"))
    bus = deployment.bus
    # Three, because the group may give one of two replicas all partitions of the commands and the other one those of
    # the link service's events.
    replicas = [deployment.service(BATCH_SIZE="50").start().wait_ready() for _ in range(3)]
    until(lambda: len(workers(deployment)) >= 2, 60, "two replicas that have partitions of the commands")
    # A batch writes all its rows at once: what tells them apart is the order in which they are numbered.
    deployment.database.execute("ALTER TABLE inbox_1 ADD COLUMN place BIGSERIAL", service="sync")
    commands = Commands(deployment, chance)
    next_kill = COMMANDS // (kills + 1)
    for number in range(COMMANDS):
        command = commands.next()
        commands.sent.append(command)
        value, headers = bus.signed(command)
        bus.produce(value, headers, command.key, lambda *place: None)
        while number - bus.collector.answered > 400:
            bus.poll(0.01)
        if kills and number and number % next_kill == 0:
            victim = chance.choice(replicas)
            time.sleep(chance.uniform(0, 0.3))
            victim.kill()
            victim.start()
    bus.flush()
    times = Counter(command.id for command in commands.sent)
    found = bus.collector
    found.wait(
        lambda: all(len(found.replies.get(id, ())) >= count for id, count in times.items()), 240,
        lambda: f"answers: {sum(len(found.replies.get(id, ())) < count for id, count in times.items())} missing")
    conflicts = sum(replica.metric("identity_conflicts_total") for replica in replicas)
    for replica in replicas:
        assert replica.stop() == 0
    check(commands.sent, deployment)
    print(f"{len(times)} commands, {conflicts:.0f} conflicts decided again")


def workers(deployment: Deployment) -> set[str]:
    """Who owns partitions of the commands."""
    rows = deployment.database.execute(
        "SELECT DISTINCT owner FROM progress WHERE topic = ?", [deployment.bus.commands], service="sync")
    return {row[0] for row in rows}


def check(sent: list[Command], deployment: Deployment) -> None:
    found = deployment.bus.collector
    for id, records in found.replies.items():
        assert len({(record.envelope["id"], record.value) for record in records}) == 1, f"replies to {id} differ"
    by_id = {command.id: command for command in sent}
    query = deployment.database.execute
    by_key = {inbox.key(command): command.id for command in sent}
    rows = query(
        "SELECT key, decided_at FROM inbox_1 ORDER BY xmin::text::bigint, place", service="sync")
    decided = [(by_key[bytes(key)], now) for key, now in rows if bytes(key) in by_key]
    assert len(decided) == len(by_id)
    oracle = Oracle()
    for place, (id, now) in enumerate(decided):
        command, reply = by_id[id], found.replies[id][0].data
        if reply["status"] == "rejected":
            # Relies on nothing that it writes: true for its snapshot. The only one that can come here:
            assert (command.type, reply["reason"]) == ("sync.modify", "NOT_FOUND_ERROR"), reply
            continue
        try:
            if command.type == "sync.modify":
                oracle.modify(command.data, reply["result"])
            else:
                oracle.move(command.type.removeprefix("sync."), command.data, reply["result"], now)
        except AssertionError as problem:
            raise AssertionError(f"step {place}: {command}\n{reply}\n{problem}") from None
    profiles = {str(row[0]): row for row in query(
        "SELECT mpid, identities::json, last_seen, is_orphaned FROM profiles", service="sync")}
    assert set(profiles) == set(oracle.profiles)
    for mpid, profile in oracle.profiles.items():
        _, identities, seen, is_orphaned = profiles[mpid]
        assert [(one["type"], one["value"]) for one in identities] == profile.identities, mpid
        assert (seen, bool(is_orphaned)) == (profile.seen, profile.is_orphaned), mpid
    holders = {(kind, value): set(text.split(",")) - {""} for kind, value, text in query(
        "SELECT type, value, holders FROM identities", service="sync")}
    expected: dict[Identity, set[str]] = {identity: set() for identity in holders}
    for mpid, profile in oracle.profiles.items():
        for identity in profile.identities:
            expected.setdefault(identity, set()).add(mpid)
    assert holders == expected
    assert all(len(mpids) <= 1 for (kind, _), mpids in holders.items() if kind in UNIQUE)
    devices = query("SELECT device_id, current_mpid FROM devices WHERE current_mpid IS NOT NULL", service="sync")
    assert {device: str(mpid) for device, mpid in devices} == oracle.current


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_replaying_any_prefix_changes_nothing(make_deployment: Callable[..., Deployment], engine: str) -> None:
    print(f"E2E_SEED={SEED}")
    chance = random.Random(SEED)
    deployment = make_deployment(engine, services=("sync", "link"))
    service = deployment.service().start().wait_ready()
    commands, bus = Commands(deployment, chance), deployment.bus
    for _ in range(15):
        for _ in range(20):
            commands.sent.append(commands.next())
            bus.send(commands.sent[-1])
        for command in commands.sent:
            bus.reply(command.id)
    assert service.stop() == 0  # so that every event is out
    found = bus.collector
    found.catch_up()
    service.start().wait_ready()
    first = {id: records[0].value for id, records in found.replies.items()}
    rows = lambda: [
        sorted(deployment.database.execute(f"SELECT * FROM {table}", service="sync"), key=str)
        for table in ("profiles", "identities", "devices", "aliases")]
    ids = lambda: {id: {one.envelope["id"] for one in records} for id, records in found.events.items()}
    before, events = rows(), ids()
    times = Counter(command.id for command in commands.sent)
    for length in (1, 100, 300):
        if length == 100:  # the inbox remembers, not the process
            service.kill()
            service.start().wait_ready()
        for command in commands.sent[:length]:
            bus.send(command)
        times.update(command.id for command in commands.sent[:length])
    for id, count in times.items():
        assert {record.value for record in bus.reply_records(id, count)} == {first[id]}
    assert rows() == before
    assert service.stop() == 0
    found.catch_up()
    assert ids() == events
