# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/check_contract.py names what breaks somebody, each of them planted, and nothing that breaks nobody."""

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.places import REPOSITORY
from test_contract import GOOD

import check_contract
from contract import Contract

SCRIPT = REPOSITORY / "scripts" / "lib" / "check_contract.py"


class Document:
    """A copy of the page, and what can be done to it."""

    def __init__(self) -> None:
        self.all: dict[str, Any] = copy.deepcopy(CONTRACT.document)
        self.schemas = self.all["components"]["schemas"]
        self.messages = self.all["components"]["messages"]
        self.channels = self.all["channels"]
        self.operations = self.all["operations"]

    def members(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.schemas[name]["properties"]
        return found

    def without(self, name: str, member: str) -> None:
        del self.members(name)[member]
        if member in self.schemas[name].get("required", []):
            self.schemas[name]["required"].remove(member)


def breaks(change: Callable[[Document], Any]) -> list[str]:
    document = Document()
    change(document)
    return check_contract.breaks(CONTRACT, Contract(document.all))


def rename(document: Document) -> None:
    document.channels["link.events"]["address"] = "identity.links.events.v1"


def lose_scope(document: Document) -> None:
    document.messages["sync.get-request"]["x-or-scope"] = "admin"


def longer(name: str, limit: int) -> Callable[[Document], Any]:
    def change(document: Document) -> None:
        document.schemas[name]["maxLength"] = limit

    return change


@pytest.mark.parametrize(("change", "said"), [
    # Taken
    (lambda one: one.without("LinkRequest", "installId"), ["LinkRequest (taken): the member installId is gone"]),
    (lambda one: one.members("ConfirmLink").update(success={"type": "string"}),
     ["ConfirmLink (taken).success: type is string and was boolean"]),
    (lambda one: one.schemas["ConfirmLink"]["required"].append("externalId"),
     ["ConfirmLink (taken): externalId is required now"]),
    (lambda one: one.schemas["RegisterInstall.User"]["enum"].remove("none"),
     ["RegisterInstall.User (taken): the word none is not taken any more"]),
    (longer("PageMark", 999), ["PageMark (taken): maxLength is 999 and was 1000"]),
    (lambda one: one.schemas["PageMark"].update({"minLength": 2}), ["PageMark (taken): minLength is 2 and was 1"]),
    (lambda one: one.members("ImportUsers")["users"].update(maxItems=100),
     ["ImportUsers (taken).users: maxItems is 100 and was 500"]),
    (lambda one: one.members("GetProfile").update(after={"type": "string", "enum": ["a"]}), ["only some words are taken"]),
    (lambda one: one.schemas["ShortText"].update(pattern="^a"), ["ShortText (taken): the pattern is ^a"]),
    (lambda one: one.schemas["LinkRequest"].update(additionalProperties=False),
     ["LinkRequest (taken): members that nobody knows are refused now"]),
    (lambda one: one.schemas["LinkRequest"].update(oneOf=[{"required": ["installId"]}]), ["LinkRequest (taken): oneOf is"]),
    (lambda one: one.schemas["Envelope"]["properties"].pop("replykey"), ["the member replykey is gone"]),
    # Told
    (lambda one: one.without("Linked", "version"), ["Linked (told): the member version is gone"]),
    (lambda one: one.members("Linked").update(version={"type": "string"}),
     ["Linked (told).version: type is string and was integer"]),
    (lambda one: one.schemas["Linked"]["required"].remove("version"),
     ["Linked (told): version is not always there any more"]),
    (lambda one: one.schemas["UserDeactivated.Cause"]["enum"].append("lost"),
     ["UserDeactivated.Cause (told): the word lost is new to readers"]),
    (lambda one: one.members("ProfileResult")["barriers"].update(maxItems=200),
     ["ProfileResult (told).barriers: maxItems is 200 and was 100"]),
    (lambda one: one.members("Reply").pop("commandDigest"), ["Reply (told): the member commandDigest is gone"]),
    (lambda one: one.schemas["MPID"].update(type="integer"), ["MPID (told): type is integer and was string"]),
    # Both ways
    (lambda one: one.without("Device", "model"),
     ["Device (taken): the member model is gone", "Device (told): the member model is gone"]),
    (lambda one: one.schemas["InstallStatus"]["enum"].remove("deleted"),
     ["InstallStatus (taken): the word deleted is not taken any more"]),
    (lambda one: one.schemas["InstallStatus"]["enum"].append("lost"),
     ["InstallStatus (told): the word lost is new to readers"]),
    # Who says what where
    (rename, ["the topic of link.events is identity.links.events.v1 and was identity.link.events.v1"]),
    (lambda one: one.channels["link.events"]["messages"].pop("link.linked"),
     ["link.linked does not stand on link.events any more"]),
    (lambda one: one.channels.pop("status"), ["the channel status is gone"]),
    (lambda one: one.messages.pop("link.query"), ["the message link.query is gone"]),
    (lambda one: one.messages["link.query"].update(name="identity.link.query.v2"),
     ["link.query: the type is identity.link.query.v2 and was identity.link.query.v1"]),
    (lambda one: one.messages["sync.modify"].update({"x-partition-subject": ["mpid"]}), ["sync.modify: the Kafka key is"]),
    (lambda one: one.messages["link.query"].update({"x-scope": "admin"}),
     ["link.query: the scope internal is not enough any more"]),
    (lose_scope, ["sync.get-request: the scope support is not enough any more"]),
    (lambda one: one.operations["link.query"].pop("reply"), ["link.query: the reply is None and was"]),
    (lambda one: one.operations.pop("link.query"), ["the operation link.query is gone"]),
])
def test_what_breaks_somebody_is_named(change: Callable[[Document], Any], said: list[str]) -> None:
    found = breaks(change)
    for line in said:
        assert any(line in one for one in found), found


@pytest.mark.parametrize("change", [
    lambda one: None,
    lambda one: one.members("LinkRequest").update(note={"type": "string"}),
    lambda one: one.members("Linked").update(note={"type": "string"}),
    lambda one: one.schemas["Linked"]["required"].append("linkedAt"),
    lambda one: one.schemas["LinkRequest"]["required"].remove("installId"),
    lambda one: one.schemas["RegisterInstall.User"]["enum"].append("some"),
    longer("PageMark", 2000),
    lambda one: one.schemas["ReplyStatus"]["enum"].append("later"),
    lambda one: one.messages["sync.get-request"].update({"x-scope": "support", "x-or-scope": "user.delete"}),
    lambda one: one.messages["link.query"].update(title="Another title"),
    lambda one: one.schemas["LinkRequest"].update(description="Other words."),
    lambda one: one.members("ProfileResult")["barriers"].update(maxItems=50),
    lambda one: one.channels["link.commands"]["messages"].update(more={"$ref": "#/components/messages/link.query"}),
])
def test_what_breaks_nobody_is_not_named(change: Callable[[Document], Any]) -> None:
    assert breaks(change) == []


def test_a_reason_is_open_only_where_the_page_says_so() -> None:
    """Events tell reasons too, and nothing says to their readers that more may come."""
    found = breaks(lambda one: one.schemas["ReasonCode"]["enum"].append("NEW_REASON"))
    assert found == ["ReasonCode (told): the word NEW_REASON is new to readers (x-open does not say that words may come)"]


def test_what_was_looked_at_is_not_named_and_what_is_no_break_cannot_be_looked_at() -> None:
    line = "Linked (told): the member version is gone"

    def change(document: Document) -> None:
        document.without("Linked", "version")
        document.all["x-looked-at"] = [line, "another"]

    assert breaks(change) == ["x-looked-at has a line that is no break: another"]


def test_the_command_says_it_by_its_exit_status(tmp_path: Path) -> None:
    def run(*arguments: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60)

    (page := tmp_path / "old.yaml").write_text(GOOD)
    other = tmp_path / "new.yaml"
    assert run(page, page).returncode == 0
    absent = run(tmp_path / "none.yaml", page)
    assert absent.returncode == 0 and "nothing is released yet" in absent.stdout
    other.write_text(GOOD.replace("address: a.b", "address: a.c"))
    answer = run(page, other)
    assert answer.returncode == 1 and "the topic of c is a.c and was a.b" in answer.stdout
    other.write_text(GOOD.replace("asyncapi: '3.0.0'", "asyncapi: 3"))
    assert run(page, other).returncode == 1
    assert run(page).returncode == 64
