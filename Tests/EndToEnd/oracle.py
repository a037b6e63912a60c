# SPDX-License-Identifier: Apache-2.0
"""A naive model of the link service, written from docs/link.md: dictionaries, one command at a time. It shares no line
with the product, and does not know how ids are derived: a person is called after the command that brought it to life."""

from dataclasses import dataclass, field
from typing import Any

from identitybus_testkit.commands import Command

Event = tuple[str, dict[str, Any]]


@dataclass
class Install:
    app: str
    device: dict[str, str]
    status: str = "enabled"
    person: str | None = None
    activity: str = "none"
    is_users_first: bool = False
    is_open: bool = False
    version: int = 0


@dataclass
class Person:
    app: str
    external_id: str | None = None
    is_erased: bool = False


@dataclass
class Answer:
    """What a command must lead to. Persons are named by the id of their first command."""

    status: str
    reason: str | None = None
    result: dict[str, Any] | None = None
    events: list[Event] = field(default_factory=list)


class Refusal(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


class Model:
    def __init__(self) -> None:
        self.installs: dict[str, Install] = {}
        self.persons: dict[str, Person] = {}
        self._answers: dict[tuple[str, str, str], Answer] = {}

    def apply(self, command: Command) -> Answer:
        """Decides the command; the same one again has the same answer, and leads to nothing."""
        key = (command.app, command.source, command.id)
        if key not in self._answers:
            self._answers[key] = self._decide(command)
        return self._answers[key]

    def _decide(self, command: Command) -> Answer:
        if command.attributes.get("expirytime", "9999") < "2021":
            return Answer("expired")
        decide = getattr(self, "_" + command.type.removeprefix("link.").replace("-", "_"))
        try:
            result, events = decide(command, **command.data)
        except Refusal as refusal:
            events = []
            if command.type in ("link.request", "link.establish"):
                events = [("refused", {"installId": command.data["installId"], "reason": refusal.reason})]
            return Answer("rejected", refusal.reason, events=events)
        return Answer("succeeded" if result else "pending", result=result, events=events)

    # Commands

    def _register_install(
        self, command: Command, installId: str, device: dict[str, str], user: str
    ) -> tuple[dict[str, Any], list[Event]]:
        known = self.installs.get(installId)
        if known:
            self._check(known, command.app)
        install = known or Install(command.app, device)
        if user == "new" and install.person is not None:
            raise Refusal("USER_ALREADY_EXISTS")
        news = known is None or known.device != device
        self.installs[installId] = install
        install.device = device
        if user == "new" and install.person is None:
            self.persons[command.id] = Person(command.app)
            install.person, install.activity = command.id, "active"
            install.is_users_first = True
            install.version += 1
            news = True
        install.is_open = install.person is None
        event = ("install-registered", _without_none(installId=installId, device=device, userId=install.person))
        return self._state(installId), [event] if news else []

    def _request(self, command: Command, installId: str, externalId: str) -> tuple[dict[str, Any], list[Event]]:
        install = self._find(installId)  # 5
        self._check(install, command.app)  # 6, 7
        if install.person is None and not install.is_open:
            raise Refusal("NO_LINKING_IN_PROGRESS")  # 7a
        return self._connect(command, installId, install, externalId)

    def _establish(
        self, command: Command, installId: str, device: dict[str, str], externalId: str, mode: str
    ) -> tuple[dict[str, Any], list[Event]]:
        assert mode == "create", "the model knows no other"
        known = self.installs.get(installId)
        if known:
            self._check(known, command.app)
        old_device, old_person = (known.device, known.person) if known else (None, None)
        install = known or Install(command.app, device)
        install.device = device
        try:
            result, events = self._connect(command, installId, install, externalId, is_creation=True)
        except Refusal:
            if old_device is not None:
                install.device = old_device
            raise
        self.installs[installId] = install
        if old_device != device:
            registered = _without_none(installId=installId, device=device, userId=old_person)
            events = [("install-registered", registered), *events]
        return result, events

    def _query(self, command: Command, installId: str) -> tuple[dict[str, Any], list[Event]]:
        self._check_app(self._find(installId), command.app)
        return self._state(installId), []

    def _detach_install(
        self, command: Command, installId: str, cause: str
    ) -> tuple[dict[str, Any], list[Event]]:
        assert cause == "reset", "the model knows no other"
        install = self._find(installId)
        self._check_app(install, command.app)
        if install.status == "deleted" and install.person is None:
            raise Refusal("INSTALL_DELETED")
        person, install.person, install.activity = install.person, None, "none"
        install.is_users_first = install.is_open = False
        install.version += 1 if person else 0
        detached = {"installId": installId, "userId": person, "version": install.version}
        events: list[Event] = [("install-detached", detached)] if person else []
        return self._state(installId), events

    def _set_install_status(self, command: Command, installId: str, status: str) -> tuple[dict[str, Any], list[Event]]:
        install = self._find(installId)
        self._check_app(install, command.app)
        if install.status == status:
            return self._state(installId), []
        if install.status == "deleted":
            raise Refusal("INSTALL_DELETED")
        install.status = status
        install.version += 1
        had_it = install.activity in ("active", "active-once-enabled")
        if status == "disabled" and had_it:
            install.activity = "active-once-enabled"
        elif had_it:
            is_free = status == "enabled" and not self._actives(install.person or "", installId)
            install.activity = "active" if is_free else "deactivated"
        return self._state(installId), [self._changed(installId, "command")]

    def _erase_user(self, command: Command, userId: str) -> tuple[None, list[Event]]:
        """Nobody answers what the link service asks of the others: every erasure stays pending."""
        person = self.persons.get(userId)
        if person is None or person.app != command.app:
            raise Refusal("USER_NOT_FOUND")
        if person.is_erased:
            return None, []
        gone = [install for install in self.installs.values() if install.person == userId]
        for install in gone:
            install.device = {"kind": "other", "platform": "erased"}
            install.person, install.activity = None, "none"
            install.is_users_first = install.is_open = False
            install.version += 1
        person.external_id, person.is_erased = None, True
        return None, [("user-erased", {"userId": userId})]

    # Rules

    def _connect(
        self, command: Command, name: str, install: Install, external_id: str, is_creation: bool = False
    ) -> tuple[dict[str, Any], list[Event]]:
        owner = next(
            (key for key, person in self.persons.items()
             if (person.app, person.external_id) == (command.app, external_id)), None)
        mine = self.persons[install.person] if install.person else None
        if mine and mine.external_id is not None and mine.external_id != external_id:
            raise Refusal("INSTALL_LINKED_TO_OTHER_USER")  # 8
        if mine and mine.external_id == external_id:
            if install.activity == "deactivated" and not is_creation:
                raise Refusal("INSTALL_DEACTIVATED")  # 10, 53
            waits = install.activity == "standby" and self._waits(name, install, install.person or "")
            if install.activity == "active" or waits:  # 9
                return self._linked(name, install, install.person or "", False), []
        elif mine and (owner or is_creation):
            raise Refusal("CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON")  # 15, 54
        created = not mine and not owner
        person = install.person or owner or command.id
        if created:
            self.persons[person] = Person(command.app)  # 12
        others = self._actives(person, name)
        if len(others) > 1:
            raise Refusal("MULTIPLE_INSTALLS_ACTIVE")  # 11
        self.persons[person].external_id = external_id
        install.is_users_first = created or (install.person is not None and install.is_users_first)
        install.version += 1
        install.person = person
        install.is_open = False
        install.activity = "standby" if self._waits(name, install, person) else "active"
        loses = self._holders(person, name) if install.activity == "active" else []  # 49
        for other in loses:
            self.installs[other].activity = "deactivated"
            self.installs[other].version += 1
        event = ("linked", {
            "installId": name, "externalId": external_id, "userId": person, "personCreated": created,
            "activeInstallId": name if install.activity == "active" else others[0], "deactivatedInstallIds": loses,
            "version": install.version})
        return (
            self._linked(name, install, person, created),
            [event, *(self._changed(other, "superseded") for other in loses)])

    def _waits(self, name: str, install: Install, person: str) -> bool:
        """A tablet waits for a phone."""
        return install.device["kind"] == "tablet" and any(
            self.installs[other].device["kind"] == "phone" for other in self._actives(person, name))

    def _find(self, install: str) -> Install:
        if install not in self.installs:
            raise Refusal("INSTALL_NOT_FOUND")
        return self.installs[install]

    def _check_app(self, install: Install, app: str) -> None:
        if install.app != app:
            is_erased = install.device["platform"] == "erased"
            raise Refusal("INSTALL_NOT_FOUND" if is_erased else "INSTALL_DOES_NOT_BELONG_TO_APP")  # 5, 6

    def _check(self, install: Install, app: str) -> None:
        self._check_app(install, app)
        if install.status != "enabled":
            raise Refusal("INSTALL_DELETED" if install.status == "deleted" else "INSTALL_DISABLED")

    def _holders(self, person: str, but: str) -> list[str]:
        return sorted(
            name for name, install in self.installs.items()
            if install.person == person and install.activity in ("active", "active-once-enabled") and name != but)

    def _actives(self, person: str, but: str) -> list[str]:
        return [
            name for name, install in self.installs.items()
            if install.person == person and install.activity == "active" and name != but]

    # Answers

    def _state(self, name: str) -> dict[str, Any]:
        install = self.installs[name]
        person = self.persons[install.person] if install.person else None
        return _without_none(
            installId=name, appId=install.app, userId=install.person,
            externalId=person.external_id if person else None, status=install.status,
            isActive=install.activity == "active", inactiveBecause=self._reason(install),
            isUsersFirst=install.is_users_first, version=install.version)

    def _reason(self, install: Install) -> str | None:
        if install.person is None or install.activity == "active":
            return None
        if install.status != "enabled":
            return "disabled"
        return "waitsForPhone" if install.activity == "standby" else "superseded"

    def _linked(self, name: str, install: Install, person: str, created: bool) -> dict[str, Any]:
        return {
            "userId": person, "installId": name, "isActive": install.activity == "active", "personCreated": created,
            "version": install.version}

    def _changed(self, name: str, cause: str) -> Event:
        install = self.installs[name]
        person = self.persons[install.person] if install.person else None
        return "install-status-changed", _without_none(
            installId=name, status=install.status, isActive=install.activity == "active", userId=install.person,
            isLinked=person is not None and person.external_id is not None, cause=cause,
            inactiveBecause=self._reason(install), version=install.version)


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
