# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/link.md on imported people: the tests of test_link_rows.py that begin with somebody, with the same
results. Their people come as an import (L150 to L154), with the ids that they had elsewhere."""

import inspect
import random
from typing import Any

import pytest

import test_link_rows as rows
from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, Command, fresh
from test_link_rows import bus, others

GROWN_INSTALL = rows.new_install


def import_user(bus: Bus, app: str, install: str, device: dict[str, str], **more: str) -> str:
    user = f"{random.getrandbits(96):024x}"
    element: dict[str, Any] = {
        "userId": user, "createdAt": "2024-03-01T00:00:00Z", "installs": [{"installId": install, "device": device}], **more}
    # Other apps of the tests have no key that imports.
    reply = bus.ask(Command("link.import-users", {"users": [element]}, user, app=app, signer="internal"))
    assert [one["outcome"] for one in reply["result"]["results"]] == ["created"], reply
    return user


def imported_install(bus: Bus, device: dict[str, str] = PHONE, user: str = "none", app: str = "demo") -> str:
    if user == "none":  # nobody is there
        return GROWN_INSTALL(bus, device, user, app)
    install = fresh("install")
    import_user(bus, app, install, device)
    return install


def imported_person(bus: Bus, device: dict[str, str] = PHONE) -> tuple[str, str, str]:
    install, external_id = fresh("install"), fresh("ext")
    return install, external_id, import_user(bus, "demo", install, device, externalId=external_id)


@pytest.fixture(autouse=True)
def imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "new_install", imported_install)
    monkeypatch.setattr(rows, "new_person", imported_person)


# An imported user without an external id is given to the first creation (L157), one who has grown is a left-over (L54).
DIFFERS = "test_a_creation_elects_anew_and_takes_over_nobody"


def begins_with_somebody(test: Any) -> bool:
    source = inspect.getsource(test)
    return "new_person(" in source or 'user="new"' in source


TESTS = {name: test for name, test in vars(rows).items() if name.startswith("test_") and name != DIFFERS
         and begins_with_somebody(test)}
globals().update(TESTS)


def test_each_row_that_knows_somebody_is_here() -> None:
    for row in range(7, 16):
        assert row == 12 or any(f"row_{row}_" in name for name in TESTS), row
    assert hasattr(rows, DIFFERS)
