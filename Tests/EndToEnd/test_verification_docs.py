# SPDX-License-Identifier: Apache-2.0
"""The server-side examples of docs/verification.md, run as they stand there, and the commands token and verify-token."""

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from identitybus_testkit import apps
from identitybus_testkit.places import REPOSITORY, binary
from identitybus_testkit.verification import identity_token, keys, secret, token, verification_app

TEXT = (REPOSITORY / "docs" / "verification.md").read_text()
SECRET = "test_secret_key_0123456789"
# F55, and a line feed in the middle.
MESSAGES = ["captain_planet", "captain@example.com", "captain_planetCaptain@Example.com", "üser-✓", "anna\na@b.io"]
PROGRAMS = {
    "python": ("token.py", [sys.executable]), "javascript": ("token.js", ["node"]), "go": ("token.go", ["go", "run"]),
    "ruby": ("token.rb", ["ruby"]), "php": ("token.php", ["php"]), "sh": ("token.sh", ["sh"]),
}


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"docs/verification.md has {len(found)} blocks of {language}"
    return found[0]


def expected(message: str) -> str:
    return base64.b64encode(hmac.new(SECRET.encode(), message.encode(), hashlib.sha256).digest()).decode()


def test_the_vector_is_the_vendors() -> None:
    """V8, V9, F55."""
    assert expected("captain_planet") == "0YXx/SAmWmwcgIqAjMdsomnTjPwnxVzMyRflSGFBRDU="
    assert expected("captain_planet") in TEXT


@pytest.mark.parametrize("language", list(PROGRAMS))
def test_the_programs(language: str, tmp_path: Path) -> None:
    """V8."""
    name, command = PROGRAMS[language]
    source = block(language)
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / name).write_text(source)
    environment = os.environ | {"VERIFICATION_SECRET": SECRET, "LC_ALL": "C.UTF-8"}
    for message in MESSAGES:
        run = subprocess.run(
            [*command, tmp_path / name, message], env=environment, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stderr
        assert run.stdout == expected(message) + "\n"


def test_the_swift_lines_are_the_tested_ones() -> None:
    tested = (REPOSITORY / "Tests" / "VerificationTests" / "ServerSnippet.swift").read_text()
    assert tested.endswith("\n\n" + block("swift"))


# The command line


@pytest.fixture(scope="module")
def apps_file(directory: Path) -> Path:
    path = directory / "token-apps.yaml"
    retired = {"id": "old", "secret": secret("old", "vendor"), "retireAt": "2020-01-01"}
    apps.write(path, [
        verification_app("vendor", "enforce", keys=[*keys("k1", "k2", app="vendor"), retired]),
        verification_app("delimited", "enforce", "delimited")])
    return path


def cli(apps_file: Path, *arguments: str) -> tuple[int, str]:
    run = subprocess.run(
        [binary("identitybus"), *arguments, "--apps", apps_file], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout + run.stderr


def test_token(apps_file: Path) -> None:
    # The newest live key, unless one is named.
    assert cli(apps_file, "token", "--app", "vendor", "--user-id", "anna") == (0, token("anna", "k2", "vendor") + "\n")
    assert cli(apps_file, "token", "--app", "vendor", "--user-id", "anna", "--user-email", "a@b.io", "--key", "k1") == (
        0, token("annaa@b.io", app="vendor") + "\n")
    assert cli(apps_file, "token", "--app", "delimited", "--user-id", "anna", "--user-email", "a@b.io", "--key", "k1") == (
        0, token("anna\na@b.io", app="delimited") + "\n")
    for wrong, words in (
        (["--app", "vendor"], "valid --user-id"), (["--app", "nobody", "--user-id", "a"], "no app nobody"),
        (["--app", "vendor", "--user-id", "a", "--key", "old"], "no live verification key old"),
        (["--app", "delimited", "--user-id", "a"], "an identifier is missing"),
    ):
        status, said = cli(apps_file, "token", *wrong)
        assert status == 64 and words in said, said


def test_verify_token(apps_file: Path) -> None:
    """V57."""
    who = ["verify-token", "--app", "vendor", "--user-id", "Anna", "--user-email", "Anna@B.io"]
    assert cli(apps_file, *who, token("AnnaAnna@B.io", "k2", "vendor")) == (0, "passes (key k2)\n")
    for wrong, words in (
        (token("Anna@B.ioAnna", app="vendor"), "wrong field order"), (token("Annaanna@b.io", app="vendor"), "e-mail case"),
        (token("AnnaAnna@B.io", "old", "vendor"), "retired key: old"), (token("x"), "none of the usual mistakes"),
        ("not base64!", "neither base64 nor hex"),
    ):
        status, said = cli(apps_file, *who, wrong)
        assert status == 3 and said.startswith("does not pass: InvalidAuthToken\n") and words in said, said
        assert secret("k1", "vendor") not in said


def test_identity_tokens(apps_file: Path) -> None:
    status, made = cli(apps_file, "token", "--app", "vendor", "--user-id", "anna", "--identity")
    assert status == 0
    assert cli(apps_file, "verify-token", "--app", "vendor", made.strip()) == (0, "passes\n")
    payload = made.split(".")[1]
    identities = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["identities"]
    assert identities == [{"identifier": "uid", "value": "anna"}]
    old = identity_token([{"identifier": "uid", "value": "anna"}], age=25 * 3600, app="vendor")
    status, said = cli(apps_file, "verify-token", "--app", "vendor", old)
    assert status == 3 and said.startswith("does not pass: INVALID_IDENTITY_TOKEN") and "24 hours" in said


def test_the_identity_program(apps_file: Path, tmp_path: Path) -> None:
    """V17, V18."""
    (tmp_path / "identity.py").write_text(block("python identity"))
    made = subprocess.run(
        [sys.executable, tmp_path / "identity.py", "anna"], env=os.environ | {"VERIFICATION_SECRET": secret("jwt", "vendor")},
        capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    assert cli(apps_file, "verify-token", "--app", "vendor", made) == (0, "passes\n")
