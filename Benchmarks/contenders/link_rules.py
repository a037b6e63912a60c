# SPDX-License-Identifier: Apache-2.0
"""Registering phones and linking them (docs/link.md), as far as the benchmark asks for it, over dictionaries."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from bus import Command, Outgoing, event, reply

REGISTER = "identity.link.register-install.v1"
REQUEST = "identity.link.request.v1"


@dataclass(slots=True)
class Install:
    install_id: str
    app: str
    platform: str
    user_id: str | None = None
    activity: str = "none"
    is_users_first: bool = False
    version: int = 0


@dataclass(slots=True)
class Person:
    user_id: str
    app: str
    external_id: str


@dataclass
class State:
    """The rows that the commands at hand touch, and those that were changed."""

    installs: dict[str, Install] = field(default_factory=dict)
    persons: dict[str, Person] = field(default_factory=dict)
    active: dict[str, Install] = field(default_factory=dict)
    changed_installs: dict[str, Install] = field(default_factory=dict)
    new_persons: list[Person] = field(default_factory=list)

    def add(self, install: Install) -> None:
        known = self.installs.setdefault(install.install_id, install)
        if known.activity == "active" and known.user_id is not None:
            self.active[known.user_id] = known

    def put(self, install: Install) -> None:
        self.installs[install.install_id] = install
        self.changed_installs[install.install_id] = install


def new_user_id(command: Command) -> str:
    return hashlib.sha256("\n".join(command.id).encode()).hexdigest()[:24]


def decide(command: Command, state: State, time: str) -> list[Outgoing]:
    """The messages to publish, the reply last."""
    if command.type == REGISTER:
        return _register(command, state, time)
    if command.type == REQUEST:
        return _request(command, state, time)
    return [reply("link", command, 0, "rejected", time, "UNKNOWN_TYPE")]


def _register(command: Command, state: State, time: str) -> list[Outgoing]:
    data, app = command.data, command.envelope["appid"]
    install_id = data["installId"]
    messages = []
    install = state.installs.get(install_id)
    if install is None:
        install = Install(install_id, app, data["device"]["platform"])
        state.put(install)
        told = {"installId": install_id, "device": data["device"]}
        messages.append(event("link", command, 0, "identity.link.install-registered.v1", install_id, told, time))
    result = {
        "installId": install_id, "appId": app, "status": "enabled", "isActive": install.activity == "active",
        "isUsersFirst": install.is_users_first, "version": install.version,
    }
    return [*messages, reply("link", command, len(messages), "succeeded", time, result=result)]


def _request(command: Command, state: State, time: str) -> list[Outgoing]:
    data, app = command.data, command.envelope["appid"]
    install, external_id = state.installs.get(data["installId"]), data["externalId"]
    person = state.persons.get(external_id)

    def refused(reason: str) -> list[Outgoing]:
        told = {"installId": data["installId"], "reason": reason}
        return [
            event("link", command, 0, "identity.link.refused.v1", data["installId"], told, time),
            reply("link", command, 1, "rejected", time, reason),
        ]

    def linked(user_id: str, is_new: bool) -> dict[str, Any]:
        return {
            "userId": user_id, "installId": install.install_id, "isActive": install.activity == "active",
            "personCreated": is_new, "version": install.version,
        }

    if install is None:
        return refused("INSTALL_NOT_FOUND")
    if install.user_id is not None:
        if person is None or person.user_id != install.user_id:
            return refused("INSTALL_LINKED_TO_OTHER_USER")
        if install.activity != "active":
            return refused("INSTALL_DEACTIVATED")
        return [reply("link", command, 0, "succeeded", time, result=linked(person.user_id, False))]
    is_new = person is None
    if person is None:
        person = state.persons[external_id] = Person(new_user_id(command), app, external_id)
        state.new_persons.append(person)
    former = state.active.get(person.user_id)
    if former is not None:
        former.activity = "deactivated"
        former.version += 1
        state.put(former)
    install.user_id, install.activity, install.is_users_first = person.user_id, "active", is_new
    install.version += 1
    state.put(install)
    state.active[person.user_id] = install
    told = {
        "installId": install.install_id, "externalId": external_id, "userId": person.user_id, "personCreated": is_new,
        "activeInstallId": install.install_id, "deactivatedInstallIds": [former.install_id] if former else [],
        "version": install.version,
    }
    messages = [event("link", command, 0, "identity.link.linked.v1", install.install_id, told, time)]
    if former is not None:
        told = {
            "installId": former.install_id, "status": "enabled", "isActive": False, "userId": person.user_id,
            "isLinked": True, "cause": "superseded", "version": former.version,
        }
        subject = former.install_id
        messages.append(event("link", command, 1, "identity.link.install-status-changed.v1", subject, told, time))
    return [*messages, reply("link", command, len(messages), "succeeded", time, result=linked(person.user_id, is_new))]
