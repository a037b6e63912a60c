# SPDX-License-Identifier: Apache-2.0
"""`identitybus dlq show`, `edit`, and what it prints (docs/command-line.md)."""

import hashlib
import json
import os
import pty
import re
import stat
import subprocess
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.letters import Operator, acts, letters, linked, put, replays
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.up import tool


@pytest.fixture(scope="module")
def eva(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(deployment, tmp_path_factory.mktemp("operators") / "eva")


@pytest.fixture
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


def test_progress_shows_on_a_terminal_only(bus: Bus, eva: Operator) -> None:
    command, = linked(bus, 1)
    letter, = letters(eva, bus, put(bus, command))
    line = ["replay", letter, "--sign-as", "demo-backend", "--reason-text", "x"]
    master, slave = pty.openpty()
    run = subprocess.run(
        [binary("identitybus"), *eva.arguments(*line)], env=clean_environment() | eva.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, timeout=60)
    os.close(slave)
    shown = os.read(master, 100_000)
    os.close(master)
    assert run.returncode == 0 and b"\x1b" not in run.stdout
    assert b"/1" in shown and b"^C stops after the letters in hand" in shown
    assert eva.dlq(*line).stderr == ""


# One letter


def test_show_tells_what_came_after_and_what_would_happen(bus: Bus, eva: Operator) -> None:
    command, later = linked(bus, 2)
    letter, = letters(eva, bus, put(bus, command))
    bus.ask(later.but(signer="demo-backend"))
    lines = eva.dlq("show", letter, "--sign-as", "demo-backend").stdout.splitlines()
    told = {line[:18].strip(): line[18:] for line in lines}
    assert told[letter].startswith("KEY_EXPIRED at authenticate: key demo-expired expired at")
    assert ", signed by demo-expired" in told["came"] and f"key demo/{command.subject}" in told["came"]
    assert command.id in told["command"] and f'"externalId":"{command.subject}"' in told["command"]
    assert "rejected UNAUTHENTICATED (the sender knows" in told["answered"]
    assert told["since then"].startswith(f"1 later command for demo/{command.subject} (link.request)")
    assert told["handled"] == "never: it is open"
    assert told["would now be"].startswith("succeeded") and "signed as demo-backend" in told["would now be"]
    assert len(bus.collector.replies[command.id]) == 2, "the refusal and the dry run's"
    eva.dlq("dismiss", letter, "--reason-text", "the person was linked by hand", "--by", "eva")
    assert 'by eva  "the person was linked by hand"' in eva.dlq("show", letter).stdout


def editor(folder: Path, *replaced: tuple[str, str]) -> str:
    path = folder / fresh("editor")
    lines = [f"text = text.replace({old!r}, {new!r})" for old, new in replaced]
    path.write_text("\n".join([
        "#!/usr/bin/env python3", "import sys", "text = open(sys.argv[1]).read()", *lines,
        "open(sys.argv[1], 'w').write(text)"]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_edit_checks_shows_the_difference_and_keeps_the_id(bus: Bus, eva: Operator) -> None:
    good, = linked(bus, 1)
    command = good.but(type="link.requst", signer="demo-backend")
    letter, = letters(eva, bus, put(bus, command))
    line = ["edit", letter, "--reason-text", "a slip of the producer"]
    unchanged = eva.dlq(*line, status=3, EDITOR="true")
    assert "nothing was changed, and nothing was sent." in unchanged.stderr
    wrong = eva.dlq(*line, status=3, EDITOR=editor(eva.home, ("requst", "requet")))
    assert "the link service knows no link.requet. Did you mean link.request?" in wrong.stderr
    wrong = eva.dlq(*line, status=3, EDITOR=editor(eva.home, ("requst", "request"), ("installId", "instalId")))
    assert "INVALID_REQUEST: data: " in wrong.stderr and "installId" in wrong.stderr
    wrong = eva.dlq(*line, status=3, EDITOR=editor(eva.home, ("{", "")))
    assert "NOT_JSON" in wrong.stderr
    asked = eva.dlq(*line, status=64, EDITOR=editor(eva.home, ("requst", "request")))
    assert "Give --yes to send it." in asked.stderr and not replays(bus).get(command.id)
    done = eva.dlq(*line, "--yes", EDITOR=editor(eva.home, ("requst", "request")))
    assert '-   "type": "link.requst",' in done.stderr and '+   "type": "link.request",' in done.stderr
    assert "1 replayed: 1 succeeded." in done.stdout
    again, = replays(bus)[command.id]
    assert again.envelope["type"] == "identity.link.request.v1" and again.envelope["source"] == command.source
    refused = eva.dlq(*line, status=3, EDITOR="true")
    assert "is not open: it was replayed by" in refused.stderr
    assert list(eva.home.glob("identitybus-*")) == []


@pytest.mark.parametrize(("script", "part"), [
    ("rm \"$1\"", "has left no file."), (": > \"$1\"", "has left an empty file."),
    ("head -c 100 /dev/zero | tr '\\0' '\\377' > \"$1\"", "has left a file that is no text (UTF-8)."),
    ("printf '{\\n  \"type\": }' > \"$1\"", "the text is not JSON at byte 12: "),
    ("printf '{\\n  \"type\": }' > \"$1\"", "which is line 2, column 11"),
    ("exit 7", "ended with status 7."),
], ids=["removed", "empty", "binary", "broken", "where", "failed"])
def test_an_editor_may_leave_anything(bus: Bus, eva: Operator, script: str, part: str) -> None:
    letter = next((entry["letter"] for entry in eva.open() if entry["reason"] == "UNKNOWN_TYPE"), None)
    if letter is None:
        letter, = letters(eva, bus, put(bus, linked(bus, 1)[0].but(type="link.requst", signer="demo-backend")))
    path = eva.home / fresh("editor")
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    answer = eva.dlq("edit", letter, "--reason-text", "x", "--yes", status=3, EDITOR=str(path))
    assert part in answer.stderr and "Nothing was sent." in answer.stderr and answer.stdout == ""
    assert list(eva.home.glob("identitybus-*")) == []


def test_nothing_of_what_is_no_envelope_is_printed(bus: Bus, eva: Operator) -> None:
    secret = fresh("hidden")
    value = f'{{"authenticationCode":"{secret}",}}'.encode()
    letter, = letters(eva, bus, bus.put(value, [], key=b"demo/odd"))
    watch = ["watch", "--from-beginning", "--until", "now", "--key", "demo/odd", "--topic", "*.dlq.v1", "--topic",
             "*.commands.v1"]
    folder = ["--data-dir", str(eva.home / "data")]
    printed = [
        eva.dlq("show", letter, "--no-questions").stdout, json.dumps(eva.json("show", letter, "--no-questions")),
        json.dumps(eva.json("list", "--each")), eva.dlq("list", "--each").stdout,
        *(tool(*watch, *more, *folder, environment=eva.environment).stdout for more in ([], ["--json"]))]
    assert not any(secret in text for text in printed), printed
    facts = f"{len(value)} bytes, like JSON, no JSON from byte {len(value) - 1} on, SHA-256 {hashlib.sha256(value).hexdigest()}"
    assert facts in printed[0] and facts in printed[4]
    record = next(json.loads(line) for line in printed[5].splitlines() if '"NOT_JSON"' in line)
    assert record["value"] is None and record["noEnvelope"]["noJSONFrom"] == len(value) - 1
    assert secret in eva.dlq("show", letter, "--no-questions", "--raw").stdout
    assert secret in tool(*watch, "--json", "--raw", *folder, environment=eva.environment).stdout
    forced = eva.dlq("replay", letter, "--force", "--reason-text", "x", status=3)
    assert "1 replayed: 1 unreadable NOT_JSON." in forced.stdout
    assert f"{letter}: no service can read it, so it becomes a dead letter again" in forced.stdout


def test_what_is_no_envelope_is_edited_as_a_whole(bus: Bus, eva: Operator) -> None:
    good, = linked(bus, 1)
    value, headers = good.but(signer="demo-backend").structured()
    letter, = letters(eva, bus, bus.put(value[:-1] + b",}", headers, key=good.key))
    line = ["edit", letter, "--reason-text", "x", "--yes"]
    unsigned = eva.dlq(*line, status=64, EDITOR=editor(eva.home, (",}", "}")))
    assert "nobody has signed" in unsigned.stderr
    done = eva.dlq(*line, "--sign-as", "demo-backend", EDITOR=editor(eva.home, (",}", "}")))
    assert "1 replayed: 1 succeeded." in done.stdout


def test_what_is_handled_is_not_dismissed_again(bus: Bus, eva: Operator) -> None:
    letter, = letters(eva, bus, put(bus, linked(bus, 1)[0]))
    line = ["dismiss", letter, "--reason-text", "why"]
    assert re.fullmatch(r"dismissed 1 of 1\.  Recorded as \S+, \"why\"\n", eva.dlq(*line).stdout)
    before = acts(bus, letter)
    assert eva.dlq(*line).stdout == "dismissed 0 of 0.  Nothing was recorded.\n"
    assert acts(bus, letter) == before


# What cannot be done


@pytest.mark.parametrize(("arguments", "status", "part"), [
    (("replay", "--reason-text", "x"), 64, "Say which: letters such as link/9@0, --reason and the like, or --all"),
    (("replay", "--all"), 64, "Missing: --reason-text"),
    (("dismiss", "link/0@999999", "--reason-text", "x"), 3, "there is no dead letter link/0@999999"),
    (("show", "link/0@999999"), 3, "there is no dead letter link/0@999999."),
    (("show", "lnk/0@0"), 64, "there is no service lnk. Did you mean link?"),
    (("show", "link/0"), 64, "'link/0' is invalid"),
    (("replay", "--all", "--no-questions", "--reason-text", "x"), 64, "--no-questions goes with --dry-run"),
    (("replay", "--all", "--rate", "0", "--reason-text", "x"), 64, "give a number above 0"),
    (("list", "--reason", "KEY_EXPIRD"), 64, "no dead letter has the reason KEY_EXPIRD. Did you mean KEY_EXPIRED?"),
    (("list", "--app", "dmo"), 64, "has no app dmo, and no letter that was looked at is of one. Did you mean demo?"),
    (("replay", "--app", "dmo", "--reason-text", "x"), 64, "Did you mean demo?"),
    (("dismiss", "--app", "dmo", "--reason-text", "x"), 64, "Did you mean demo?"),
    (("replay", "--all", "--sign-as", "demo-bakend", "--reason-text", "x", "--bootstrap-servers", "127.0.0.1:1"), 64,
     "has a key demo-bakend. Did you mean demo-backend?"),
    (("list", "--bootstrap-servers", "127.0.0.1:1"), 69, "Kafka at 127.0.0.1:1 cannot be reached"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_what_cannot_be_done_is_told(eva: Operator, arguments: tuple[str, ...], status: int, part: str) -> None:
    answer = eva.dlq(*arguments, status=status)
    assert answer.stdout == "" and part in answer.stderr, answer


def test_without_services_of_this_version_nothing_is_done(
    deployment: Deployment, bus: Bus, eva: Operator
) -> None:
    answer = eva.dlq("list", status=3, TOPIC_PREFIX=f"{bus.prefix}nobody.")
    assert "has no topic" in answer.stderr and "TOPIC_PREFIX must be theirs" in answer.stderr
