# SPDX-License-Identifier: Apache-2.0
"""Comparing what happened with what the oracle says: every record, reply, event and row, exactly once."""

from collections import Counter, defaultdict
from typing import Any

from oracle import Answer, Model

from . import inbox
from .bus import Bus, Record
from .databases import Database
from .waiting import until
from .workload import Sent


class Names:
    """Which real user id belongs to which of the model's persons; 1:1."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._model: dict[str, str] = {}

    def bind(self, person: str, user_id: str) -> None:
        assert self._real.setdefault(person, user_id) == user_id, f"person {person} has two ids"
        assert self._model.setdefault(user_id, person) == person, f"user id {user_id} stands for two persons"

    def model(self, user_id: str) -> str:
        return self._model.get(user_id, user_id)

    def real(self, person: str) -> str:
        return self._real[person]


class History:
    def __init__(self, sent: list[Sent], bus: Bus, database: Database) -> None:
        self.sent = sorted(sent, key=lambda one: one.place)
        self.bus = bus
        self.database = database
        self.names = Names()
        self.models: dict[int, Model] = defaultdict(Model)
        # Their ids, family by family.
        self.commands: dict[int, set[str]] = defaultdict(set)
        for one in self.sent:
            if one.command is not None:
                self.commands[one.family].add(one.command.id)

    def wait_until_answered(self, timeout: float) -> None:
        """A reply for every time a command was sent, a dead letter for every poisoned record."""
        found = self.bus.collector
        times = Counter(sent.command.id for sent in self.sent if sent.command is not None)
        commands = list(times)
        places = [sent.place for sent in self.sent if sent.poison is not None]

        def is_all_there() -> bool:
            """Looks for the next one that is missing, and no further: this is asked whenever something came."""
            while commands and len(found.replies.get(commands[-1], ())) >= times[commands[-1]]:
                commands.pop()
            while places and places[-1] in found.dead_letters:
                places.pop()
            return not commands and not places

        def told() -> str:
            left = {id for id in commands if len(found.replies.get(id, ())) < times[id]} | {
                place for place in places if place not in found.dead_letters}
            some = [(one.place, one.command) for one in self.sent
                    if one.place in left or one.command and one.command.id in left][:3]
            return f"{len(left)} of {len(self.sent)} records unanswered, such as {some}"

        found.wait(is_all_there, timeout, told)

    def wait_until_published(self, timeout: float) -> None:
        """While the services run. A partition may change hands until the very end, and a replica is ready before it has
        claimed what it was given: stopped then, it would leave what it found there to the next start."""
        until(
            lambda: self._unpublished() == 0, timeout,
            lambda: f"what is published to be gone: {self._unpublished()} rows of the outbox are left")

    def _unpublished(self) -> int:
        return self.database.execute("SELECT count(*) FROM outbox")[0][0]

    def check(self) -> str:
        """Call it when the services have stopped. Returns a line about what was seen."""
        # The events stand on other topics than the replies that were waited for.
        self.bus.collector.catch_up()
        self._check_replies_are_one()
        self._check_dead_letters()
        contended: set[int] = set()
        for sent in self.sent:
            if sent.poison is None and sent.command is not None:
                if b"/" in sent.key:
                    contended.add(sent.family)
                else:
                    self._check_command(sent)
        for family in contended:
            self._check_contended(family)
        self._check_inbox()
        self._check_tables(contended)
        found = self.bus.collector
        copies = sum(len(records) for records in found.replies.values()) - sum(
            one.command is not None for one in self.sent)
        return f"{len(self.sent)} records, {len(found.replies)} commands, {copies} replies published again"

    # Messages

    def _check_replies_are_one(self) -> None:
        for id, records in self.bus.collector.replies.items():
            assert len({record.envelope["id"] for record in records}) == 1, f"command {id} has several replies"
            assert len({(record.value, str(record.headers)) for record in records}) == 1, f"replies to {id} differ"
        for id, records in self.bus.collector.events.items():
            by_id: dict[str, set[bytes | None]] = defaultdict(set)
            for record in records:
                by_id[record.envelope["id"]].add(record.value)
            assert all(len(values) == 1 for values in by_id.values()), f"events of {id} with one id differ"

    def _check_dead_letters(self) -> None:
        expected = {one.place: one for one in self.sent if one.poison is not None}
        found = self.bus.collector.dead_letters
        assert set(found) == set(expected), f"unexpected dead letters: {set(found) ^ set(expected)}"
        for place, records in found.items():
            sent = expected[place]
            assert len({(record.value, str(record.headers)) for record in records}) == 1, records
            assert (records[0].value, records[0].key) == (sent.value, sent.key)
            assert records[0].header("dlq_reason") == (sent.poison or "").encode(), records[0].headers
            if sent.command is not None:
                reply = self.bus.collector.replies[sent.command.id][0].data
                assert (reply["status"], reply["reason"]) == ("rejected", sent.notice)

    def _check_command(self, sent: Sent) -> None:
        command = sent.command
        assert command is not None
        if command.type == "link.erase-user":
            command = command.but(data={"userId": self.names.model(command.data["userId"])})
        answer = self.models[sent.family].apply(command)
        reply = self.bus.collector.replies[command.id][0].data
        note = f"\n{sent.place} {sent.command}\nexpected {answer}\nfound    {reply}"
        assert (reply["status"], reply.get("reason")) == (answer.status, answer.reason), note
        result = reply.get("result")
        if answer.result is not None and result is not None and "userId" in answer.result:
            assert "userId" in result, note
            self.names.bind(answer.result["userId"], result["userId"])
        assert self._in_model_names(result) == answer.result, note
        self._check_events(sent, answer)

    def _check_events(self, sent: Sent, answer: Answer) -> None:
        assert sent.command is not None
        records: dict[str, Record] = {
            record.envelope["id"]: record for record in self.bus.collector.events.get(sent.command.id, [])}
        found = [
            (record.envelope["type"].removeprefix("identity.link.").removesuffix(".v1"),
             self._in_model_names(told(record)))
            for record in records.values()]
        order = lambda event: str((event[0], sorted(event[1].items())))
        assert sorted(found, key=order) == sorted(answer.events, key=order), (
            f"{sent.command}\nexpected {answer.events}\nfound    {found}")

    def _in_model_names(self, data: dict[str, Any] | None) -> dict[str, Any] | None:
        if data is None or "userId" not in data:
            return data
        return data | {"userId": self.names.model(data["userId"])}

    def _check_contended(self, family: int) -> None:
        """However they came, all of them are one person's, and one of them brought it to life."""
        commands = self.commands[family]
        results = {id: self.bus.collector.replies[id][0].data["result"] for id in commands}
        assert len({result["userId"] for result in results.values()}) == 1, f"family {family} is several persons"
        assert sum(result["personCreated"] for result in results.values()) == 1
        user = next(iter(results.values()))["userId"]
        self.names.bind(f"family {family}", user)
        deactivated: Counter[str] = Counter()
        for id in commands:
            linked = {
                record.envelope["id"]: record.data for record in self.bus.collector.events[id]
                if record.envelope["type"] == "identity.link.linked.v1"}
            assert len(linked) == 1
            deactivated.update(next(iter(linked.values()))["deactivatedInstallIds"])
        assert not deactivated or max(deactivated.values()) == 1, "an install was deactivated twice"
        assert len(deactivated) == len(commands) - 1

    # The store

    def _check_inbox(self) -> None:
        rows = self.database.execute(
            f"SELECT partition, log_offset, incarnation FROM {inbox.ALL} JOIN logs ON logs.number = inbox.log "
            "WHERE topic = ?", [self.bus.commands])
        assert len({row[2] for row in rows}) == 1, "the log was taken for another one in between"
        assert sorted((row[0], row[1]) for row in rows) == [one.place for one in self.sent], (
            "the inbox must hold every record exactly once")
        assert self._unpublished() == 0, "what is published must be gone"
        for partition, published in self.database.execute(
            "SELECT partition, published_through FROM progress WHERE topic = ?", [self.bus.commands]
        ):
            last = max((one.offset for one in self.sent if one.partition == partition), default=-1)
            assert published == last, f"partition {partition} is published through {published} instead of {last}"

    def _check_tables(self, contended: set[int]) -> None:
        rows = self.database.execute("SELECT install_id, app, kind, platform, status, user_id, activity FROM installs")
        installs = {row[0]: tuple(row[1:]) for row in rows}
        active = Counter(row[5] for row in rows if row[6] == "active")
        assert not active or max(active.values()) == 1, "a person has two active installs"
        rows = self.database.execute("SELECT user_id, app, external_id, is_erased FROM persons")
        persons = {row[0]: tuple(row[1:]) for row in rows}
        known = Counter((row[1], row[2]) for row in rows if row[2] is not None)
        assert not known or max(known.values()) == 1, "an external id belongs to two persons"
        owned: dict[str, list[str]] = defaultdict(list)
        for name, row in installs.items():
            owned[row[4]].append(name)
        for family in contended:
            user = self.names.real(f"family {family}")
            mine = owned[user]
            assert active[user] == 1 and len(mine) == len(self.commands[family])
            assert persons.pop(user)[2] == 0
            for name in mine:
                del installs[name]
        expected_installs = {
            name: (
                one.app, one.device["kind"], one.device["platform"], one.status,
                self.names.real(one.person) if one.person else None, one.activity)
            for model in self.models.values() for name, one in model.installs.items()}
        assert installs == expected_installs
        expected_persons = {
            self.names.real(name): (one.app, one.external_id, int(one.is_erased))
            for model in self.models.values() for name, one in model.persons.items()}
        assert persons == expected_persons


def told(record: Record) -> dict[str, Any]:
    """An event's data without `linkedAt`, a time that the model does not know."""
    data = dict(record.data)
    linked_at = data.pop("linkedAt", None)
    assert (linked_at is not None) == record.envelope["type"].startswith("identity.link.linked."), record
    return data
