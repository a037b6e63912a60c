# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/migrating.md, on made-up exports in the vendors' forms: each block is run as it stands, and prints what
the page says. Between them the apps do what the page says of them."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.http import Answer, Client, bearer, signed
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.up import Up
from identitybus_testkit.waiting import until

PAGE = (REPOSITORY / "docs" / "migrating.md").read_text()
EXPORTS = Path(__file__).parent / "migrating"
SDK_KEY = "us1-0d9cbd1e1f2a4f3d8a5f0a6c2b7e4d19"
ANNA, ANONYMOUS, BERT, NEWCOMER = (
    "6504934091054997508", "-8125763390821548237", "-2716339047712204555", "-7000111122223333444")
STAMP = "7d1f0a9e-5a0c-4b3f-9f43-0d6b8a1c2e01"
# These end with 3 when somebody is refused, or something differs.
MAY_DIFFER = ("identitybus import", "scripts/from-vendor compare")


def section(heading: str) -> str:
    [text] = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return str(text)


def steps(heading: str) -> list[tuple[str, list[str]]]:
    """The commands of a section, and what the page says they print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", section(heading), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found[-1][0].endswith("\\") or found[-1][0].count("'") % 2:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            else:
                found[-1][1].append(line)
    return found


VENDORS = ("From the identity vendor", "From the linking vendor", "From the verification vendor")
# The deployment of the page is there when the keys are.
FIRST = ("for key in", "identitybus check-config apps.yaml")


class Team:
    """In the folder that the page describes, with the exports and the secrets that it has from the vendors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXPORTS, folder)
        (folder / "secrets").mkdir()
        (folder / "scripts").symlink_to(REPOSITORY / "scripts")
        for name in ("shop-sdk", "ride-app", "desk-vendor"):
            (folder / "secrets" / name).write_text(secrets.token_hex(32) + "\n")
        self.environment = clean_environment() | {
            "PATH": f"{binary('identitybus').parent}:{os.environ['PATH']}", "IDENTITYBUS_APPS": "apps.yaml"}
        for heading in VENDORS:
            with (folder / "apps.yaml").open("a") as file:
                file.writelines(re.findall(r"^```yaml\n(.*?)^```", section(heading), re.M | re.S))
            for command, page in steps(heading):
                if command.startswith(FIRST):
                    self.compare(command, page)
        self.up = Up(folder / ".identitybus", folder / "apps.yaml", "")
        # It makes one, and writes it where the other commands find it.
        del self.up.environment["IDENTITYBUS_INTERNAL_KEY"]
        self.up.environment["GATEWAY_REPLY_TIMEOUT_MS"] = "50000"

    def run(self, command: str) -> list[str]:
        answer = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=120)
        allowed = (0, 3) if command.startswith(MAY_DIFFER) else (0,)
        assert answer.returncode in allowed, f"{command}\nends with {answer.returncode}:\n{answer.stdout}"
        return answer.stdout.splitlines()

    def secret(self, key: str) -> str:
        return (self.folder / "secrets" / key).read_text().strip()

    @property
    def client(self) -> Client:
        return Client((self.folder / ".identitybus" / "gateway").read_text().strip())

    def post(self, path: str, key: str, body: dict[str, Any]) -> Answer:
        return self.client.send("POST", path, body, bearer(key, self.secret(key)))

    def play(self, heading: str, before: dict[str, Callable[[], None]]) -> None:
        """`before`: what happens elsewhere, before the first command that begins so."""
        for command, page in steps(heading):
            if command.startswith(FIRST):
                continue
            for beginning in [one for one in before if command.startswith(one)]:
                before.pop(beginning)()
            self.compare(command, page)
        assert not before, f"{set(before)} are no commands of the page"

    def compare(self, command: str, page: list[str]) -> None:
        """A line of its own that is `…` stands for any number of lines."""
        printed = self.run(command)
        left, may_skip = list(printed), False
        for line in page:
            if line == "…":
                may_skip = True
                continue
            form = ".*".join(map(re.escape, line.split("…")))
            while may_skip and left and not re.fullmatch(form, left[0]):
                del left[0]
            assert left and re.fullmatch(form, left.pop(0)), (
                f"{command}\nprints\n" + "\n".join(printed) + f"\nand the page says\n{line}")
            may_skip = False
        assert may_skip or not left, f"{command}\nprints too\n" + "\n".join(left)


@pytest.fixture(scope="module")
def team(directory: Path) -> Iterator[Team]:
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        pytest.skip("the page's lines are about the embedded broker's address file")
    team = Team(directory / "team")
    try:
        team.up.start().wait_ready()
        yield team
    finally:
        team.up.close()


# Step by step


class Phone:
    """With an unmodified identity SDK, under the team's own domain, whose proxy leads to the gateway now."""

    def __init__(self, team: Team) -> None:
        self.team = team

    def call(self, name: str, previous: str | None, **identities: str) -> dict[str, Any]:
        body = json.dumps({
            "environment": "production", "known_identities": {"device_application_stamp": STAMP, **identities},
            "previous_mpid": previous}).encode()
        headers = signed(SDK_KEY, f"/v1/{name}", body, secret=self.team.secret("shop-sdk"))
        answer = self.team.client.send("POST", f"/identity/v1/{name}", body, headers)
        assert answer.status == 200, answer
        return dict(answer.json)


def test_from_the_identity_vendor(team: Team) -> None:
    phone = Phone(team)

    def switched() -> None:
        """S11. She is who she was, logged in or not, and logging out leads back to nobody known."""
        assert phone.call("identify", ANNA)["mpid"] == ANONYMOUS
        assert phone.call("login", ANONYMOUS, customerid="c-1001")["mpid"] == ANNA
        assert phone.call("identify", ANNA, customerid="c-1001")["is_logged_in"]

    team.play("From the identity vendor", {"scripts/from-vendor profiles profiles-of-cut-over.jsonl": switched})
    assert phone.call("login", ANNA, other2="loyalty-90", customerid="c-1001")["mpid"] == ANNA
    assert phone.call("login", ANNA, customerid="c-1006")["mpid"] == NEWCOMER
    assert phone.call("login", NEWCOMER, email="bert.new@mail.example")["mpid"] != NEWCOMER


def test_from_the_linking_vendor(team: Team) -> None:
    made: list[str] = []

    def signed_up_meanwhile() -> None:
        """On the new version, before the mapping of that day was imported."""
        code = team.post("/users/auth-code", "ride-backend", {"external_id": "r-7006"}).text_of("authentication_code")
        body = {"installId": "another-phone", "device": {"kind": "phone", "platform": "ios"}, "authCode": code}
        made.append(team.post("/sdk/v1/users", "ride-sdk", body).text_of("userId"))

    team.play("From the linking vendor", {"identitybus import users.csv --app ride --key-id ride-import --errors":
                                          signed_up_meanwhile})
    assert made and not made[0].startswith("61c1d2e3")


def test_from_the_verification_vendor(team: Team) -> None:
    def token(text: str) -> str:
        """As the backend has always made it (F54)."""
        code = hmac.new(team.secret("desk-vendor").encode(), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(code).decode()

    def given_out() -> None:
        days = [("h-1", "eva@mail.example", token("h-1eva@mail.example")), ("H-2", None, token("h-2"))]
        lines = [{"path": "/v1/verification/check", "status": 200, "body": {
            "userId": user, **({"userEmail": email} if email else {}), "userAuthToken": code}} for user, email, code in days]
        (team.folder / "tokens.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    team.play("From the verification vendor", {"scripts/from-vendor compare tokens.jsonl": given_out})

    def is_enforced() -> bool:
        answer = team.post("/v1/verification/login", "desk-sdk", {"deviceId": "maxs-phone", "userId": "h-2"})
        return answer.status != 200 and answer.text_of("code") == "AuthTokenNotProvided"

    until(is_enforced, 60, "the mode enforce", 0.5)
    body = {"deviceId": "maxs-phone", "userId": "h-2", "userAuthToken": token("h-2")}
    assert team.post("/v1/verification/login", "desk-sdk", body).json["state"] == "verified"


def test_the_way_back(team: Team) -> None:
    """After the others."""
    team.play("The way back", {})
