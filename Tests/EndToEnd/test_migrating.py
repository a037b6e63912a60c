# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/migrating.md, on made-up exports in the vendors' forms: each block is run as it stands, and prints what
the page says. Between them the apps do what the page says of them."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import secrets
import shutil
import subprocess
import threading
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
        self.played: set[str] = set()
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

    def play(self, heading: str, before: dict[str, Callable[[], None]]) -> bool:
        """`before`: what happens elsewhere, before the first command that begins so. False: it was played before."""
        if heading in self.played:
            return False
        self.played.add(heading)
        for command, page in steps(heading):
            if command.startswith(FIRST):
                continue
            for beginning in [one for one in before if command.startswith(one)]:
                before.pop(beginning)()
            self.compare(command, page)
        assert not before, f"{set(before)} are no commands of the page"
        return True

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

    def __init__(self, team: Team, stamp: str = STAMP) -> None:
        self.team, self.stamp = team, stamp

    def call(self, name: str, previous: str | None, **identities: str) -> dict[str, Any]:
        body = json.dumps({
            "environment": "production", "known_identities": {"device_application_stamp": self.stamp, **identities},
            "previous_mpid": previous}).encode()
        headers = signed(SDK_KEY, f"/v1/{name}", body, secret=self.team.secret("shop-sdk"))
        answer = self.team.client.send("POST", f"/identity/v1/{name}", body, headers)
        assert answer.status == 200, answer
        return dict(answer.json)


def test_from_the_identity_vendor(team: Team) -> None:
    phone, other = Phone(team), Phone(team, "another-phone")
    # Who has signed up there meanwhile, and logs in here before the next import.
    twice: list[str] = []

    def switched() -> None:
        """S11. She is who she was, logged in or not, and logging out leads back to nobody known."""
        assert phone.call("identify", ANNA)["mpid"] == ANONYMOUS
        assert phone.call("login", ANONYMOUS, customerid="c-1001")["mpid"] == ANNA
        assert phone.call("identify", ANNA, customerid="c-1001")["is_logged_in"]
        twice.append(other.call("login", None, customerid="c-1007")["mpid"])

    if not team.play("From the identity vendor", {"scripts/from-vendor profiles profiles-of-cut-over.jsonl": switched}):
        return
    assert phone.call("login", ANNA, other2="loyalty-90", customerid="c-1001")["mpid"] == ANNA
    assert phone.call("login", ANNA, customerid="c-1006")["mpid"] == NEWCOMER
    assert other.call("login", twice[0], customerid="c-1007")["mpid"] == twice[0] != "-7000555566667777888"
    assert other.call("login", twice[0], customerid="c-1002", email="bert.new@mail.example")["mpid"] == BERT


def test_from_the_linking_vendor(team: Team) -> None:
    made: list[str] = []

    def signed_up_meanwhile() -> None:
        """On the new version, before the mapping of that day was imported."""
        code = team.post("/users/auth-code", "ride-backend", {"external_id": "r-7006"}).text_of("authentication_code")
        body = {"installId": "another-phone", "device": {"kind": "phone", "platform": "ios"}, "authCode": code}
        made.append(team.post("/sdk/v1/users", "ride-sdk", body).text_of("userId"))

    if not team.play("From the linking vendor", {
            "identitybus import users.csv --app ride --key-id ride-import --errors": signed_up_meanwhile}):
        return
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
    test_from_the_identity_vendor(team)
    test_from_the_linking_vendor(team)
    team.play("The way back", {})


def test_each_block_of_the_page_is_run() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.M)
    assert {one for one in headings if steps(one)} == {*VENDORS, "The way back"}
    assert set(re.findall(r"^```(\w+)$", PAGE, re.M)) == {"console", "yaml"}


def test_types_are_read_as_the_gateway_writes_them(tmp_path: Path) -> None:
    """F46. So what one deployment tells in the vendor's form is an export too."""
    source = (REPOSITORY / "Services" / "Gateway" / "Dialects" / "ProfileCalls.swift").read_text()
    words = {theirs: ours for ours, theirs in re.findall(r'case "(\w+)": "(\w+)"', source)}
    words |= {"other": "other", "other_id_2": "other2", "other_id_10": "other10", "email": "email"}
    identities = [{"type": name, "encoding": "none", "value": name} for name in words]
    profile = {"mpid": -9223372036854775807, "created_timestamp_ms": 0, "last_stored_timestamp_ms": 1, "user_identities": [
        *identities, {"type": "email", "encoding": "sha-256", "value": "00"}]}
    (tmp_path / "one.jsonl").write_text(json.dumps(profile) + "\n")
    answer = subprocess.run(
        [REPOSITORY / "scripts" / "from-vendor", "profiles", tmp_path / "one.jsonl"], capture_output=True, text=True, timeout=60)
    told = json.loads(answer.stdout)
    assert len(words) == 8 and told["identities"] == {ours: [theirs] for theirs, ours in words.items()}
    assert (told["mpid"], told["firstSeen"], told["lastSeen"]) == (
        "-9223372036854775807", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z")


# What is counted


def counted(team: Team, lines: list[tuple[str, dict[str, Any], int, Any]], *more: str) -> tuple[dict[str, dict[str, int]], int]:
    (team.folder / "odd.jsonl").write_text("".join(
        json.dumps({"path": path, "body": body, "status": status, "answer": answer}) + "\n"
        for path, body, status, answer in lines))
    answer = subprocess.run(
        ["scripts/from-vendor", "compare", "odd.jsonl", "--imported", "people.jsonl", "--gateway", team.client.address,
         "--key", "shop-compare", "--secret-file", "secrets/shop-compare", *more],
        cwd=team.folder, capture_output=True, text=True, timeout=60)
    head, *rows = (re.split(r"\s{2,}", line.strip()) for line in answer.stdout.splitlines())
    return {row[0]: dict(zip(head, map(int, row[1:]), strict=True)) for row in rows}, answer.returncode


def test_what_each_column_counts(team: Team) -> None:
    test_from_the_identity_vendor(team)

    def line(call: str, old: str | None, status: int = 200, **identities: str) -> tuple[str, dict[str, Any], int, Any]:
        body = {"environment": "production", "known_identities": identities}
        return f"/v1/{call}", body, status, {"mpid": old} if old else None

    anna = {"customerid": "c-1001"}
    lines = [
        line("login", ANNA, **anna), line("login", "42", customerid="nobody"), line("login", ANNA, customerid="nobody"),
        line("login", "42", **anna), line("login", BERT, **anna), line("login", None, 403, **anna),
        line("identify", "42", device_application_stamp=STAMP), line("search", ANNA, **anna),
        line("search", None, 404, customerid="nobody")]
    counts, status = counted(team, lines)
    assert status == 3 and counts == {
        "identify": {"requests": 1, "same": 0, "both new": 0, "other anonymous": 1, "not found": 0, "found here": 0,
                     "somebody else": 0, "other status": 0},
        "login": {"requests": 6, "same": 1, "both new": 1, "other anonymous": 0, "not found": 1, "found here": 1,
                  "somebody else": 1, "other status": 1},
        "search": {"requests": 2, "same": 2, "both new": 0, "other anonymous": 0, "not found": 0, "found here": 0,
                   "somebody else": 0, "other status": 0}}
    counts, status = counted(team, lines[:2])
    assert status == 0 and counts["login"]["requests"] == 2


class Careless(http.server.BaseHTTPRequestHandler):
    """Something that carries out whatever it is asked."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def test_what_is_no_dry_run_is_not_gone_on_with(tmp_path: Path) -> None:
    files = {"log": json.dumps({"path": "/v1/login", "body": {}, "status": 200, "answer": {}}) + "\n", "people": "", "key": "k"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Careless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [REPOSITORY / "scripts" / "from-vendor", "compare", "log", "--imported", "people", "--key", "k",
                   "--secret-file", "key", "--gateway", f"http://127.0.0.1:{server.server_port}"]
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        server.shutdown()
    assert answer.returncode == 1 and "carried out, and not tried" in answer.stderr, answer
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 69 and answer.stderr.startswith("from-vendor: "), answer
