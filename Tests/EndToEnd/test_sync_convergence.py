# SPDX-License-Identifier: Apache-2.0
"""Several replicas on PostgreSQL, devices on different partitions, identities that overlap, kill -9 at any instant: the
result equals some serial order. The order is the database's own: a transaction that relied on another's writes got its
number later. In that order an oracle, written from docs/sync.md, repeats every command and must come to the same
replies, events and rows.

E2E_COMMANDS sets the size (1,000 here), E2E_SEED the seed; both are shown when a test fails.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.commands import Command
from identitybus_testkit.databases import Database
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.stored import identities
from identitybus_testkit.waiting import Deadline, until
from sync_oracle import LOGIN, PRIORITY, UNIQUE, Identity, Oracle, Told

pytestmark = pytest.mark.chaos

COMMANDS = int(os.environ.get("E2E_COMMANDS", "1000"))
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))


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
    deployment.database.execute("GRANT USAGE ON SEQUENCE inbox_1_place_seq TO PUBLIC", service="sync")
    commands = Commands(deployment, chance)
    next_kill = COMMANDS // (kills + 1)
    for number in range(COMMANDS):
        command = commands.next()
        commands.sent.append(command)
        value, headers = bus.signed(command)
        bus.produce(value, headers, command.key, lambda *place: None)
        deadline = Deadline(240)
        while number - bus.collector.answered > 400:
            assert deadline.left, f"{number - bus.collector.answered} answers are missing"
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
        assert replica.stop() == 0  # so that every event is out
    found.catch_up()
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
        events = found.events.get(id, [])
        if reply["status"] == "rejected":
            # Relies on nothing that it writes: true for its snapshot. The only one that can come here:
            assert (command.type, reply["reason"]) == ("sync.modify", "NOT_FOUND_ERROR"), reply
            assert not events
            continue
        try:
            told = oracle.decide(command, reply["result"], now)
            assert Told.of(events, command.type.removeprefix("sync."), reply["result"].get("rule")) == told, told
        except AssertionError as problem:
            raise AssertionError(f"step {place}: {command}\n{reply}\n{problem}") from None
    profiles = {str(row[0]): row for row in query(
        "SELECT mpid, identities, last_seen, is_orphaned FROM profiles", service="sync")}
    assert set(profiles) == set(oracle.profiles)
    for mpid, profile in oracle.profiles.items():
        _, known, seen, is_orphaned = profiles[mpid]
        assert identities(known) == profile.identities, mpid
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
