# SPDX-License-Identifier: Apache-2.0
"""The complaints of docs/support.md: each is prepared, and the page's commands are run as they stand there. They print what
the page says, and the end is as it says."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.up import Up
from identitybus_testkit.waiting import Deadline, until

PAGE = (REPOSITORY / "docs" / "support.md").read_text()
PHONE = {"kind": "phone", "platform": "ios"}
TABLET = {"kind": "tablet", "platform": "ios"}
# MPIDs and user ids: others on each deployment.
ID = r"(?<![\w-])(?:-?\d{16,19}|[0-9a-f]{24})(?!\w)"
TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+Z)?"


def steps(case: str) -> list[tuple[str, list[str]]]:
    """The commands of a case, and what the page says they print."""
    [section] = re.findall(rf"^## {re.escape(case)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", section, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found[-1][0].count("'") % 2:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            else:
                found[-1][1].append(line)
    return found


class Desk:
    """Somebody who helps users of the demo apps, in the folder where `identitybus up` runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = clean_environment() | {"PATH": f"{binary('identitybus').parent}:{os.environ['PATH']}"}
        (folder / "config").symlink_to(REPOSITORY / "config")
        self.up = Up(folder / ".identitybus", REPOSITORY / "config" / "apps.yaml", "")
        # It makes one, and writes it where the other commands find it.
        del self.up.environment["IDENTITYBUS_INTERNAL_KEY"]

    def run(self, command: str) -> str:
        answer = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120)
        assert answer.returncode == 0 or command.startswith("identitybus verify-token"), (command, answer)
        return answer.stdout

    def ask(self, kind: str, key: str, app: str = "demo", **data: Any) -> dict[str, Any]:
        """The reply, whatever it says."""
        answer = subprocess.run(
            ["identitybus", "send", kind, "--app", app, "--key-id", key, "--wait", "30", "--data", json.dumps(data)],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120)
        assert answer.stdout, answer.stderr
        return dict(json.loads(answer.stdout)["data"])

    def result(self, kind: str, key: str, app: str = "demo", **data: Any) -> dict[str, Any]:
        reply = self.ask(kind, key, app, **data)
        assert reply["status"] == "succeeded", reply
        return dict(reply["result"])

    def signs_up(self, external_id: str, install: str, device: dict[str, str]) -> str:
        code = self.result("user.request-auth-code", "demo-backend", externalId=external_id)["authenticationCode"]
        return str(self.result("user.create", "demo-sdk", installId=install, device=device, authCode=code)["userId"])

    def logs_in(self, device: str, **identities: str) -> str:
        return str(self.result("sync.login", "demo-sdk", deviceId=device, environment="production",
                               knownIdentities=identities)["mpid"])

    def marie_logs_in(self, token: str) -> dict[str, Any]:
        return self.ask("verification.login", "support-sdk", "support", deviceId="maries-phone", userId="Marie",
                        userAuthToken=token)

    def token(self, user: str) -> str:
        return self.run(f"identitybus token --app support --user-id {user}").strip()

    def active(self, external_id: str) -> list[str]:
        user = self.result("link.get-user", "demo-support", externalId=external_id)
        return [one["installId"] for one in user["installs"] if one["isActive"]]


class Script:
    """Plays a case, and compares what is printed with the page."""

    def __init__(self, desk: Desk, case: str, ids: dict[str, str] | None = None) -> None:
        self.desk = desk
        self.steps = steps(case)
        # As the page has them, and as they are here.
        self.ids = ids or {}

    def play(self, count: int | None = None) -> None:
        """The next ones, or all that are left."""
        for _ in range(len(self.steps) if count is None else count):
            command, page = self.steps.pop(0)
            for theirs, ours in self.ids.items():
                command = command.replace(theirs, ours)
            if command.startswith("identitybus explain"):
                self.explain(command, page)
            else:
                self.compare(page, self.desk.run(command).splitlines())

    def explain(self, command: str, page: list[str]) -> None:
        """The services hear of each other's news a moment later: until then less is printed."""
        deadline, before = Deadline(20), dict(self.ids)
        while True:
            try:
                return self.compare(page, self.desk.run(command).splitlines())
            except AssertionError:
                if not deadline.left:
                    raise
                self.ids = dict(before)
                time.sleep(0.2)

    def compare(self, page: list[str], printed: list[str]) -> None:
        left = list(printed)
        assert page
        for line in page:
            if line == "…":
                continue
            match = next((found for one in left if (found := self.match(line, one))), None)
            # An answer that comes before the event leaves nothing to leave out.
            if match is None and line.startswith("  … between the services"):
                continue
            assert match is not None, f"{line}\nis not printed:\n" + "\n".join(printed)
            left.remove(match.string)
            self.ids |= dict(zip(re.findall(ID, line), match.groups(), strict=True))
        # A line of its own stands for steps that were left out, and for nothing of what is known now.
        steps = next((place for place, line in enumerate(printed) if line.startswith("HOW IT CAME TO BE")), 0)
        kept = left if "…" not in page else [line for line in left if line in printed[:steps]]
        assert not kept, f"{kept} is printed too"

    def match(self, line: str, printed: str) -> re.Match[str] | None:
        pattern = ""
        for part in re.split(f"({ID}|{TIME}|…)", line):
            if re.fullmatch(TIME, part):
                pattern += TIME
            elif re.fullmatch(ID, part):
                pattern += f"({re.escape(self.ids[part]) if part in self.ids else ID})"
            else:
                pattern += ".*" if part == "…" else re.escape(part)
        return re.fullmatch(pattern, printed)


@pytest.fixture(scope="module")
def desk(directory: Path) -> Iterator[Desk]:
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        pytest.skip("the page's lines are about the embedded broker's address file")
    folder = directory / "desk"
    folder.mkdir()
    desk = Desk(folder)
    try:
        desk.up.start().wait_ready()
        yield desk
    finally:
        desk.up.close()


def test_two_people_in_one_profile(desk: Desk) -> None:
    grace = desk.logs_in("tablet-7", customerid="grace", device_application_stamp="stamp-7")
    desk.result("sync.modify", "demo-sdk", mpid=grace, deviceId="tablet-7", changes=[
        {"identityType": "email", "newValue": "ivan@mail.example"}])
    ivans = {"email": "ivan@mail.example", "device_application_stamp": "stamp-8"}
    assert desk.logs_in("ivans-phone", **ivans) == grace
    Script(desk, "Two people in one profile").play()
    ivan = desk.logs_in("ivans-phone", **ivans)
    assert ivan != grace == desk.logs_in("tablet-7", customerid="grace", device_application_stamp="stamp-7")
    # Whatever an app says.
    again = desk.ask("sync.modify", "demo-sdk", mpid=grace, changes=[
        {"identityType": "email", "newValue": "ivan@mail.example"}])
    assert again["reason"] == "MERGE_BARRED"


def test_a_wrong_external_id(desk: Desk) -> None:
    user = desk.signs_up("lnida", "lindas-phone", PHONE)
    Script(desk, "A wrong external id").play()
    assert desk.result("link.get-user", "demo-support", externalId="linda")["userId"] == user
    late = desk.ask("link.request", "demo-backend", installId="lindas-phone", externalId="lnida")
    assert late["reason"] == "EXTERNAL_ID_CHANGED"
    assert "refused, EXTERNAL_ID_CHANGED" in desk.run("identitybus explain lnida --app demo")
    assert desk.signs_up("linda", "lindas-new-phone", PHONE) == user


def test_a_stolen_phone(desk: Desk) -> None:
    ada = desk.signs_up("ada", "adas-phone", PHONE)
    assert desk.signs_up("ada", "adas-tablet", TABLET) == ada and desk.active("ada") == ["adas-phone"]
    Script(desk, "A stolen phone").play()
    assert desk.active("ada") == ["adas-tablet"]
    stolen = desk.result("user.get", "demo-sdk", installId="adas-phone")
    assert (stolen["isRemoteEnabled"], stolen["inactiveBecause"]) == (False, "disabled")
    assert desk.signs_up("ada", "adas-new-phone", PHONE) == ada and desk.active("ada") == ["adas-new-phone"]


def test_a_refused_login(desk: Desk) -> None:
    wrong = desk.token("marie")
    assert desk.marie_logs_in(wrong)["reason"] == "InvalidAuthToken"
    script = Script(desk, "A refused login", {"TOKEN": wrong})
    script.play(2)
    assert desk.marie_logs_in(desk.token("Marie"))["result"]["state"] == "verified"
    script.play()


def test_erased_and_back(desk: Desk) -> None:
    joan = desk.signs_up("joan", "joans-phone", PHONE)
    erased = desk.result("link.erase-user", "demo-backend", userId=joan)
    assert erased["done"]["link"]["persons"] == 1
    back: Callable[[], str] = lambda: desk.signs_up("joan", "joans-phone", PHONE)
    assert until(back, 30, "the one who comes back") != joan
    Script(desk, "Erased, and back").play()
    assert desk.active("joan") == ["joans-phone"]


def test_each_case_of_the_page_is_played() -> None:
    cases = set(re.findall(r"^## (.*)$", PAGE, re.M))
    played = set(re.findall(r'Script\(desk, "(.*?)"', Path(__file__).read_text()))
    assert cases == played
    assert all(output for case in cases for _, output in steps(case))
