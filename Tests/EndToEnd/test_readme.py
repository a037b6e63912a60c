# SPDX-License-Identifier: Apache-2.0
"""The README's first messages, taken out of the README and run as they stand there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from identitybus_testkit.places import REPOSITORY, binary
from identitybus_testkit.up import Up

README = (REPOSITORY / "README.md").read_text()
seen: set[str] = set()


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"the README has {len(found)} blocks of {language}"
    return found[0]


@pytest.fixture(scope="module")
def place(directory: Path) -> Iterator[Path]:
    """A folder in which `identitybus up` runs with its defaults, where the README's reader would be."""
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        pytest.skip("the README's lines are about the embedded broker's address file")
    folder = directory / "reader"
    folder.mkdir()
    (folder / "config").symlink_to(REPOSITORY / "config")
    up = Up(folder / ".identitybus", REPOSITORY / "config" / "apps.yaml", "")
    # On a busy machine an answer may take longer than devices wait.
    up.environment["GATEWAY_REPLY_TIMEOUT_MS"] = "50000"
    try:
        up.start().wait_ready()
        send(folder, "link.register-install", "internal",
             {"installId": "phone-1", "device": {"kind": "phone", "platform": "ios"}, "user": "none"})
        yield folder
    finally:
        up.close()


def send(folder: Path, type: str, key: str, data: dict[str, object]) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    environment["IDENTITYBUS_INTERNAL_KEY"] = Up(folder / ".identitybus", Path(), "").environment[
        "IDENTITYBUS_INTERNAL_KEY"]
    answer = subprocess.run(
        [binary("identitybus"), "send", type, "--app", "demo", "--key-id", key, "--data", json.dumps(data), "--wait",
         "60"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["data"]["result"]


def linked_by(folder: Path, command: list[str], source: str) -> None:
    """Runs the block, and waits until its command is answered."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    watch = subprocess.Popen(
        [binary("identitybus"), "watch", "--json", "--from-beginning", "--topic", "identity.replies.v1"], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert watch.stdout is not None
        for line in watch.stdout:
            reply = json.loads(line)["value"]["data"]
            if reply["commandType"] == "identity.link.request.v1" and reply["commandId"] not in seen:
                seen.add(reply["commandId"])
                assert reply["status"] == "succeeded", f"{source}: {reply}"
                return
    finally:
        watch.terminate()
        watch.wait(20)


def test_readme_the_python_example_links(place: Path) -> None:
    linked_by(place, [sys.executable, "-c", block("python")], "python")
    assert send(place, "link.query", "internal", {"installId": "phone-1"})["externalId"] == "grace"


def test_readme_the_shell_example_links(place: Path) -> None:
    linked_by(place, ["sh", "-c", block("sh")], "shell")


def test_readme_the_http_example_gets_a_code(place: Path) -> None:
    answer = subprocess.run(["bash", "-c", block("bash")], cwd=place, check=True, capture_output=True, timeout=60)
    assert re.fullmatch("[0-9a-f]{128}", json.loads(answer.stdout)["authentication_code"])
