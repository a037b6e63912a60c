# SPDX-License-Identifier: Apache-2.0
"""The identity vendor's worked tables (F35) on imported people: the stories of Tests/SyncTests/WorkedTablesTests.swift, which
grow theirs, in a real service. In a story the people move after each of its steps: they are read as they are, brought as an
import to an app where nobody is known, and the story goes on there with the results that it has for who has grown."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, change, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import REPOSITORY

SOURCE = (REPOSITORY / "Tests" / "SyncTests" / "WorkedTablesTests.swift").read_text()
# As the tables are called there, and the apps with their settings.
STRATEGIES = {"conversion": "demo", "link": "linked", "isolation": "isolated", "bestMatch": "best", "defaultStrategy": "plain"}
TYPES = {"customerID": "customerid", "email": "email", "other": "other", "iosIDFV": "ios_idfv", "androidAAID": "android_aaid"}


def block(function: str) -> str:
    """A function, and the arguments above it."""
    [found] = re.findall(rf"\n\n((?:(?!\n\n).)*func {function}\(.*?)\n    \}}\n", SOURCE, re.S)
    return str(found)


def story(function: str) -> list[str]:
    [text] = re.findall(r'story\(\s*"""\n(.*?)"""', block(function), re.S)
    return [line.strip() for line in text.splitlines() if line.strip()]


def arguments(function: str) -> list[tuple[list[str], list[str]]]:
    """The lists of types that a table is about, and the story with each."""
    found = re.findall(r'\(\s*\[([^]]*)\],\s*(?:"""\n(.*?)"""|"((?:[^"\\]|\\.)*)")', block(function), re.S)
    return [
        ([TYPES[name] for name in re.findall(r"\w+", types)],
         [line.strip() for line in (many or one).replace(r"\n", "\n").splitlines() if line.strip()])
        for types, many, one in found]


def given(function: str) -> dict[str, dict[str, list[str]]]:
    """The profiles that are there when the story begins."""
    return {
        name: {TYPES[type]: [value] for type, value in re.findall(r'Identity\(\.(\w+), "(.*?)"\)', identities)}
        for name, identities in re.findall(r"given\(\s*(\d+), \[(.*?)\]\)", block(function), re.S)}


def settings(**more: Any) -> dict[str, Any]:
    return {"strategy": "conversion", "priority": ["customerid", "email", "ios_idfv"], "loginIdentities": ["customerid", "email"],
            "uniqueIdentities": ["customerid", "email"], "immutableIdentities": [], **more}


# The tables that begin with people: the app's settings, who is there, and the story.
GIVEN: list[tuple[str, dict[str, Any], str, list[str]]] = [
    *((f"priority-{number}", settings(priority=types, loginIdentities=["customerid"], uniqueIdentities=[]), "priority",
       [f"identify d1 {request}" for request in lines]) for number, (types, lines) in enumerate(arguments("priority"))),
    *((f"login-{number}", settings(loginIdentities=types), "hydeAndJekyll", lines)
      for number, (types, lines) in enumerate(arguments("loginIdentities"))),
    ("immutable-0", settings(immutableIdentities=["customerid"]), "hydeAndJekyll", story("immutableIdentities")),
    ("immutable-1", settings(immutableIdentities=["customerid"], searchByAnyIdentity=True), "hydeAndJekyll",
     re.findall(r'world.story\("(.*?)"\)', block("immutableIdentities"))),
    *((f"unique-{number}", settings(uniqueIdentities=types), "hydeAndJekyll", lines)
      for number, (types, lines) in enumerate(arguments("uniqueIdentities"))),
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def tables(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment(request.param, services=("sync", "link"))
    more = [apps.sync_app("plain", {"strategy": "default"}), *(apps.sync_app(name, own) for name, own, _, _ in GIVEN)]
    apps.write(deployment.apps_file, apps.apps() + more)
    deployment.service().start().wait_ready()
    return deployment


class Tale:
    """Plays a story. What each name in it stands for is new in each world: devices, values and MPIDs."""

    def __init__(self, deployment: Deployment, app: str) -> None:
        self.bus, self.app = deployment.bus, app
        self.mark = fresh("")
        self.mpids: dict[str, str] = {}
        self.devices: set[str] = set()
        self.left_behind: set[str] = set()
        # Whom each answer names as the user before.
        self.previous: list[str | None] = []

    def result(self, command: Command) -> dict[str, Any]:
        reply = self.bus.ask(command)
        assert reply["status"] == "succeeded", reply
        return dict(reply["result"])

    # Commands

    def play(self, lines: list[str]) -> None:
        for line in lines:
            told, expected = (part.split() for part in line.split("->", 1))
            answer = self.profile(told[1]) if told[0] == "profile" else self.run(told)
            said = answer.split()
            assert (said if told[0] == "profile" else said[:len(expected)]) == expected, f"{line}: {answer}"

    def run(self, told: list[str]) -> str:
        if told[0] == "modify":
            old, new = (None if value == "-" else value + self.mark for value in told[3:5])
            command = c.modify(self.mpids[told[1]], change(told[2], old, new), app=self.app)
        else:
            identities = {name: value + self.mark for name, value in (word.split("=") for word in told[2:])}
            self.devices.add(told[1])
            command = c.sync(told[0], told[1] + self.mark, identities, self.app)
        reply = self.bus.ask(command)
        if reply["status"] != "succeeded":
            return str(reply["reason"])
        result = reply["result"]
        self.previous.append(self.name(result["previousMPID"]) if "previousMPID" in result else None)
        words = [self.name(result["mpid"]), "known" if result["isLoggedIn"] else "anonymous", result["rule"]]
        if "changeResults" in result:
            words += ["changed", *(self.name(one["modifiedMPID"]) for one in result["changeResults"])]
        return " ".join(words)

    def name(self, mpid: str) -> str:
        for name, known in self.mpids.items():
            if known == mpid:
                return name
        # The ones that were given are numbers.
        name = chr(ord("A") + sum(name.isalpha() for name in self.mpids))
        self.mpids[name] = mpid
        return name

    def held(self, name: str) -> dict[str, Any]:
        return self.result(
            Command("sync.get-profile", {"mpid": self.mpids[name]}, self.mpids[name], app=self.app, signer="internal"))

    def profile(self, name: str) -> str:
        if name in self.left_behind:
            return "orphaned"
        told = self.held(name)
        words = [f"{type}={value.removesuffix(self.mark)}" for type, values in sorted(told["identities"].items())
                 for value in values]
        return " ".join(words + ["orphaned"] * told["isOrphaned"])

    def seen(self) -> dict[str, list[dict[str, Any]]]:
        """The users of each device."""
        return {
            device: self.result(c.get_users(device + self.mark, self.app).but(signer="internal"))["users"]
            for device in sorted(self.devices)}

    def users(self, without: set[str]) -> dict[str, list[tuple[str, bool]]]:
        named = {device: [(self.name(user["mpid"]), user["isCurrent"]) for user in users]
                 for device, users in self.seen().items()}
        return {device: [user for user in users if user[0] not in without] for device, users in named.items()}

    # Import

    def bring(self, profiles: dict[str, dict[str, Any]]) -> None:
        elements = []
        for name, profile in profiles.items():
            self.mpids[name] = str(int.from_bytes(fresh("").encode()[-8:], "big"))
            elements.append({"mpid": self.mpids[name], **profile})
        command = Command("sync.import-profiles", {"profiles": elements}, "list", app=self.app, signer=f"{self.app}-import")
        outcomes = [one["outcome"] for one in self.result(command)["results"]]
        assert outcomes == ["created"] * len(elements), outcomes

    def move(self) -> None:
        """Everybody is read, and imported where nobody is known. Orphans stay: nothing finds them again (S32)."""
        stays, moved = self.mark, fresh("")
        seen: dict[str, list[dict[str, Any]]] = {}
        for device, users in self.seen().items():
            for user in users:
                times = {time: user[time] for time in ("firstSeen", "lastSeen")}
                seen.setdefault(user["mpid"], []).append(
                    {"deviceId": device + moved, "isCurrent": user["isCurrent"], **times})
        profiles = {}
        for name in self.mpids:
            told = self.held(name)
            if told["isOrphaned"]:
                self.left_behind.add(name)
                continue
            identities = {type: [value.removesuffix(stays) + moved for value in values]
                          for type, values in told["identities"].items()}
            profiles[name] = {"identities": identities, "firstSeen": told["firstSeen"], "lastSeen": told["lastSeen"],
                              "devices": seen.get(self.mpids[name], [])}
        self.mark = moved
        self.bring(profiles)


@pytest.mark.parametrize(
    ("table", "steps"), [(table, steps) for table in STRATEGIES for steps in range(len(story(table)) + 1)])
def test_a_story_goes_on_with_imported_people(tables: Deployment, table: str, steps: int) -> None:
    """S22 to S26, S154. With 0 steps nobody has moved: so the story is the same here as there."""
    grown, tale, lines = Tale(tables, STRATEGIES[table]), Tale(tables, STRATEGIES[table]), story(table)
    grown.play(lines)
    tale.play(lines[:steps])
    if steps:
        tale.move()
    tale.play(lines[steps:])
    # Also in what the story does not tell.
    assert tale.previous == grown.previous
    assert tale.users(set()) == grown.users(tale.left_behind)


@pytest.mark.parametrize(("app", "people", "lines"), [(app, people, lines) for app, _, people, lines in GIVEN],
                         ids=[app for app, _, _, _ in GIVEN])
def test_a_table_of_imported_people(tables: Deployment, app: str, people: str, lines: list[str]) -> None:
    """S5 to S7, S30, S36, S37."""
    tale = Tale(tables, app)
    then = "2024-03-01T00:00:00Z"
    tale.bring({
        name: {"identities": {type: [value + tale.mark for value in values] for type, values in identities.items()},
               "firstSeen": then, "lastSeen": then}
        for name, identities in given(people).items()})
    assert lines
    tale.play(lines)


def test_all_tables_are_played() -> None:
    functions = set(re.findall(r"@Test.*?func (\w+)\(", SOURCE, re.S))
    assert functions == {*STRATEGIES, "priority", "loginIdentities", "immutableIdentities", "uniqueIdentities"}
    assert {app.rsplit("-", 1)[0] for app, _, _, _ in GIVEN} == {"priority", "login", "immutable", "unique"}
    assert all(len(given(people)) == 2 for people in ("priority", "hydeAndJekyll"))
