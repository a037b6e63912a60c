# SPDX-License-Identifier: Apache-2.0
"""Says whether a run did its work: reads what went in and what came out, and knows nothing of who did it.

    oracle.py link|user FOLDER

The folder holds input.jsonl, output.jsonl, installs.jsonl and persons.jsonl (Benchmarks/Bench/Report/Dump.swift).
Decides every command again in a few lines of its own, in the order in which its partition has it: every command must have
as many replies as it was sent, all alike and as expected, every event must be there once, and the tables must say the same
as the replies. User ids are the contender's own: whose they are must be consistent. Signatures were checked before.
Prints what is wrong, at most twenty lines; the exit status says whether there was anything.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any


class Oracle:
    def __init__(self, folder: Path) -> None:
        self.faults: list[str] = []
        self.inputs = self._lines(folder / "input.jsonl")
        self.replies: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.events: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        for record in self._lines(folder / "output.jsonl"):
            if record["topic"].endswith(".dlq.v1"):
                if (envelope := self._envelope(record)) is not None:
                    self.refused.add(envelope["id"])
                continue
            envelope = json.loads(record["value"])
            if envelope["type"] == "identity.reply.v1":
                self.replies[envelope["data"]["commandId"]].append(envelope["data"])
            elif self.events.setdefault(envelope["id"], envelope)["data"] != envelope["data"]:
                self.fault(f"event {envelope['id']} came twice and differs")
        self.installs = {row[0]: (row[1], row[2]) for row in self._lines(folder / "installs.jsonl")}
        self.persons = dict(self._lines(folder / "persons.jsonl"))

    @staticmethod
    def _lines(path: Path) -> list[Any]:
        with path.open() as lines:
            return [json.loads(line) for line in lines]

    @staticmethod
    def _envelope(record: dict[str, Any]) -> dict[str, Any] | None:
        try:
            envelope: dict[str, Any] = json.loads(record["value"])
        except json.JSONDecodeError:
            return None
        return envelope

    def fault(self, what: str) -> None:
        self.faults.append(what)

    def commands(self) -> tuple[list[dict[str, Any]], Counter[str]]:
        """The commands in order, each once, and how often each was sent. What is no JSON gets no reply."""
        seen: dict[str, dict[str, Any]] = {}
        sent: Counter[str] = Counter()
        for record in self.inputs:
            if (envelope := self._envelope(record)) is None:
                continue
            sent[envelope["id"]] += 1
            seen.setdefault(envelope["id"], envelope)
        return list(seen.values()), sent

    def answer(self, command: str, times: int) -> dict[str, Any] | None:
        """What the command was answered; None when that is no answer."""
        replies = self.replies.get(command, [])
        if len(replies) != times:
            self.fault(f"{command} was sent {times} times and answered {len(replies)} times")
        if any(reply != replies[0] for reply in replies):
            self.fault(f"{command} was answered differently when it came again")
        return replies[0] if replies else None

    def link(self) -> None:
        """Phones only, each registered and linked to nobody before (LinkWorkload): a new one takes the person over."""
        commands, sent = self.commands()
        owner: dict[str, str] = {}
        active: dict[str, str] = {}
        versions: Counter[str] = Counter()
        user_ids: dict[str, str] = {}
        expected: Counter[tuple[Any, ...]] = Counter()
        for command in commands:
            reply = self.answer(command["id"], sent[command["id"]])
            if reply is None:
                continue
            # Which were forged is not written on them. They become dead letters, whose number was compared before.
            is_refused = command["id"] in self.refused
            if is_refused != (reply.get("reason") == "UNAUTHENTICATED"):
                self.fault(f"{command['id']} is {'' if is_refused else 'no '}dead letter and was answered {reply}")
            if is_refused:
                continue
            install, external = command["data"]["installId"], command["data"]["externalId"]
            is_new = external not in active
            if owner.get(install) is None:
                former = active.get(external)
                owner[install], active[external] = external, install
                versions[install] += 1
                if former is not None:
                    versions[former] += 1
                    expected["status", former, versions[former]] += 1
                expected["linked", install, external, is_new, former, versions[install]] += 1
            else:
                is_new = False
            result = reply.get("result") or {}
            user = result.get("userId")
            if user_ids.setdefault(external, user) != user:
                self.fault(f"{command['id']}: {external} has the user ids {user_ids[external]} and {user}")
            wanted = {"installId": install, "isActive": active[external] == install, "personCreated": is_new,
                      "version": versions[install]}
            got = {name: result.get(name) for name in wanted}
            if reply["status"] != "succeeded" or got != wanted:
                self.fault(f"{command['id']}: expected {wanted}, got {reply}")
        self._compare_events(expected)
        self._compare_rows(owner, active, user_ids)

    def _compare_events(self, expected: Counter[tuple[Any, ...]]) -> None:
        found: Counter[tuple[Any, ...]] = Counter()
        for event in self.events.values():
            data = event["data"]
            if event["type"] == "identity.link.linked.v1":
                former = next(iter(data["deactivatedInstallIds"]), None)
                found["linked", data["installId"], data["externalId"], data["personCreated"], former, data["version"]] += 1
            elif event["type"] == "identity.link.install-status-changed.v1":
                found["status", data["installId"], data["version"]] += 1
        for missing in (expected - found):
            self.fault(f"no event {missing}")
        for surplus in (found - expected):
            self.fault(f"an event too many: {surplus}")

    def _compare_rows(self, owner: dict[str, str], active: dict[str, str], user_ids: dict[str, str]) -> None:
        if len(set(user_ids.values())) != len(user_ids):
            self.fault("two persons have one user id")
        for external, user in user_ids.items():
            if self.persons.get(user) != external:
                self.fault(f"the table has {self.persons.get(user)} as {user}, who is {external}")
        for install, (user, activity) in self.installs.items():
            external = owner.get(install)
            wanted = (user_ids.get(external or ""), "none" if external is None
                      else "active" if active[external] == install else "deactivated")
            if (user, activity) != wanted:
                self.fault(f"the table has {install} as {(user, activity)}, not {wanted}")

    def user(self) -> None:
        """Creations with a code, one for each external id (UserWorkload): a user and a linked, active install each."""
        commands, sent = self.commands()
        users: dict[str, str] = {}
        for command in commands:
            reply = self.answer(command["id"], sent[command["id"]])
            if reply is None:
                continue
            install = command["data"]["installId"]
            result = reply.get("result") or {}
            if reply["status"] != "succeeded" or result.get("installId") != install or not result.get("isLinked"):
                self.fault(f"{command['id']}: got {reply}")
                continue
            users[install] = result["userId"]
        if len(set(users.values())) != len(users):
            self.fault("two installs have one user id")
        for install, user in users.items():
            # The workload gives install n to customer n.
            wanted = "customer-" + install.rpartition("-")[2]
            if self.installs.get(install) != (user, "active") or self.persons.get(user) != wanted:
                self.fault(f"the tables have {install} as {self.installs.get(install)}, {self.persons.get(user)}")
        created = Counter(event["data"]["installId"] for event in self.events.values()
                          if event["type"] == "identity.user.created.v1")
        if created != Counter(users.keys()):
            self.fault("user.created was not told once for each install")


def main() -> None:
    oracle = Oracle(Path(sys.argv[2]))
    {"link": oracle.link, "user": oracle.user}[sys.argv[1]]()
    for fault in oracle.faults[:20]:
        print(fault)
    sys.exit(1 if oracle.faults else 0)


if __name__ == "__main__":
    main()
