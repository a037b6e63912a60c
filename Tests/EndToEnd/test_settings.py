# SPDX-License-Identifier: Apache-2.0
"""The list of settings: `identitybus settings`, the tables of the pages, and what programs say of an environment."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.up import tool

PROGRAMS = ("link", "user", "sync", "verification", "gateway")


def settings(environment: dict[str, str], *arguments: str, status: int = 0) -> dict[str, dict[str, Any]]:
    answer = tool("settings", "--json", *arguments, environment=environment)
    assert answer.returncode == status, answer
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    return {line["name"]: line for line in lines}


def plain(cell: str) -> str:
    return cell.replace("`", "").strip()


def test_the_pages_have_the_same_list() -> None:
    listed = settings({})
    seen: set[str] = set()
    for page in ("operations.md", "gateway.md"):
        is_table = False
        for line in (REPOSITORY / "docs" / page).read_text().splitlines():
            cells = line.strip().strip("|").split(" | ")
            is_table = line.startswith("|") and (is_table or cells[0].strip() == "variable")
            for name in re.findall("`([A-Z_*]+)`", cells[0]) if is_table else ():
                row = listed[name]
                default = ("none" if row["default"] is None else row["default"]) + (
                    f' ({row["remark"]})' if "remark" in row else "")
                assert plain(cells[1]) == plain(default), name
                assert plain(cells[2]) == plain(row["allowed"]), name
                assert len(cells) >= 4 and plain(cells[3]), name
                seen.add(name)
    assert seen == set(listed)
    secrets = {name for name, row in listed.items() if row["secret"]}
    assert all(listed[name]["file"] == f"{name}_FILE" for name in secrets)
    [told] = re.findall(r"\n(The variables for keys.*)\n", (REPOSITORY / "docs" / "operations.md").read_text())
    assert secrets - {name for name in secrets if name.endswith(("_KEY", "_KEYS"))} == set(
        re.findall("`([A-Z_]+)`", told.partition(" have a")[0]))


def test_every_limit_is_one_that_programs_refuse_beyond() -> None:
    """The list says what may be; the programs take their limits from it."""
    readable = {name: row for name, row in settings({}).items() if "least" in row}
    assert len(readable) > 10
    keys = {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2}

    def refusal(name: str) -> None:
        row = readable[name]
        program = "sync" if {"services", "sync"} & set(row["readers"]) else "gateway"
        wrong = str(row["most"] + 1)
        answer = subprocess.run(
            [binary(f"identitybus-{program}")], env=clean_environment() | keys | {name: wrong}, capture_output=True,
            text=True, timeout=60)
        assert answer.returncode == 78, answer
        assert answer.stderr == (
            f"identitybus-{program}: {name}: {wrong} is not a whole number from {row['least']} to {row['most']}\n")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refusal, readable))


def test_values_are_shown_and_secrets_are_not(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key-that-nobody-may-see\n")
    environment = {
        "BATCH_SIZE": "7", "DATABASE_URL": "postgresql://me:hush-hush@db/x", "KAFKA_SASL_PASSWORD": "hush-hush",
        "KAFKA_SASL_MECHANISM": "PLAIN", "IDENTITYBUS_INTERNAL_KEY_FILE": str(tmp_path / "key"),
        "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "10", "PGPASSWORD": "hush-hush", "PGSSLROOTCERT": "/ca.pem"}
    for arguments in ((), ("--set",), ("--json",), ("--json", "--set"), ("DATABASE_URL",), ("KAFKA_SASL_PASSWORD",)):
        answer = tool("settings", *arguments, environment=environment)
        assert answer.returncode == 0 and answer.stderr == "", answer
        assert "hush" not in answer.stdout and "nobody-may-see" not in answer.stdout
    rows = settings(environment, "--set")
    shown = {name: (row["value"], row["from"]) for name, row in rows.items()}
    assert shown == {
        "BATCH_SIZE": ("7", "environment"), "DATABASE_URL": ("‹hidden›", "environment"),
        "KAFKA_SASL_PASSWORD": ("‹hidden›", "environment"), "KAFKA_SASL_MECHANISM": ("PLAIN", "environment"),
        "IDENTITYBUS_INTERNAL_KEY": (str(tmp_path / "key"), "file"), "PGPASSWORD": ("‹hidden›", "environment"),
        "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": ("10", "environment"), "PGSSLROOTCERT": ("/ca.pem", "environment")}
    assert set(settings(environment, "BATCH_SIZE")) == {"BATCH_SIZE"}
    assert "ALIAS_DELAY" in settings({}, "--as", "sync") and "ALIAS_DELAY" not in settings({}, "--as", "link")
    assert "BATCH_SIZE" not in settings({}, "--as", "gateway")


def test_what_is_wrong_here_is_told(tmp_path: Path) -> None:
    answer = tool("settings", "--set", environment={"BATCH_SIZE": "abc", "LOOPS": "65", "BATCHSIZE": "5"})
    assert answer.returncode == 78 and "= abc" in answer.stdout
    assert answer.stderr.splitlines() == [
        "warning   BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?",
        "identitybus: BATCH_SIZE: abc is not a whole number from 1 to 10000",
        "             LOOPS: 65 is not a whole number from 1 to 64",
        "             docs/operations.md says what each is for in full."]
    rows = settings({"IDENTITYBUS_SALTS_FILE": "/none"}, "--set", status=78)
    assert rows["IDENTITYBUS_SALTS"]["problem"].endswith("/none cannot be read: no such file or directory")
    answer = tool("settings", "BATCH_SIZ", environment={})
    assert answer.returncode == 64 and "there is no setting BATCH_SIZ. Did you mean BATCH_SIZE?" in answer.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_start_tells_what_nothing_reads(program: str, tmp_path: Path) -> None:
    """It goes on; here it ends by its apps file, which is read right after."""
    environment = clean_environment() | {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2,
        "IDENTITYBUS_APPS": str(tmp_path / "none"), "BATCHSIZE": "hush-hush", "GATEWAY_PORT": "0",
        "IDENTITYBUS_EVENTS_KEYS": "hush-hush", "IDENTITYBUS_EVENTS_KEYS_FILE": "/none"}
    answer = subprocess.run(
        [binary(f"identitybus-{program}")], env=environment, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 78 and "hush" not in answer.stderr, answer
    lines = [json.loads(line) for line in answer.stderr.splitlines() if line.startswith("{")]
    told = [(line["event"], line["level"], line["message"]) for line in lines if line["event"].startswith("settings.")]
    assert ("settings.unknown", "warning", "BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?") in told
    assert ("settings.twice", "warning",
            "IDENTITYBUS_EVENTS_KEYS and IDENTITYBUS_EVENTS_KEYS_FILE are both set. Keep one of them.") in told
    assert len(told) == 2


def test_services_end_with_64_for_a_wrong_command_line_only() -> None:
    for program in PROGRAMS:
        answer = subprocess.run(
            [binary(f"identitybus-{program}"), "--port", "1"], env=clean_environment(), capture_output=True, text=True,
            timeout=60)
        assert answer.returncode == 64 and "--port 1" in answer.stderr and answer.stdout == "", answer
        answer = subprocess.run(
            [binary(f"identitybus-{program}")], env=clean_environment(), capture_output=True, text=True, timeout=60)
        assert answer.returncode == 78 and "KAFKA_BOOTSTRAP_SERVERS: must name" in answer.stderr, answer
