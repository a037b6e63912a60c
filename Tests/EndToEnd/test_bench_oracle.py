# SPDX-License-Identifier: Apache-2.0
"""The oracle of scripts/bench compare: a run that did its work passes, and every way to cheat is seen."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ORACLE = Path(__file__).resolve().parents[2] / "Benchmarks" / "contenders" / "oracle.py"

Run = dict[str, list[Any]]


def command(number: int, install: str, external: str) -> dict[str, Any]:
    data = {"installId": install, "externalId": external}
    value = json.dumps({"id": f"command-{number}", "type": "identity.link.request.v1", "data": data})
    return {"topic": "identity.link.commands.v1", "key": f"bench/{external}", "value": value}


def reply(number: int, install: str, user: str, version: int, *, active: bool = True, created: bool) -> dict[str, Any]:
    result = {"userId": user, "installId": install, "isActive": active, "personCreated": created, "version": version}
    data = {"commandId": f"command-{number}", "status": "succeeded", "result": result}
    return {"topic": "identity.replies.v1", "value": json.dumps({"id": f"r{number}", "type": "identity.reply.v1", "data": data})}


def event(id: str, type: str, **data: Any) -> dict[str, Any]:
    return {"topic": "identity.link.events.v1", "value": json.dumps({"id": id, "type": f"identity.link.{type}.v1", "data": data})}


def linked(id: str, install: str, external: str, user: str, former: list[str], *, created: bool) -> dict[str, Any]:
    return event(id, "linked", installId=install, externalId=external, userId=user, personCreated=created,
                 deactivatedInstallIds=former, version=1)


@pytest.fixture
def run() -> Run:
    """Anna takes a second install, asks again, and the broker repeats a command; Ben has one; one command is garbled."""
    commands = [command(0, "i0", "anna"), command(1, "i1", "anna"), command(2, "i1", "anna"), command(3, "i2", "ben")]
    garbled = {"topic": "identity.link.commands.v1", "key": "bench/ben", "value": '{"id": "comm'}
    again = reply(1, "i1", "u1", 1, created=False)
    return {
        "input": [*commands, commands[1], garbled],
        "output": [
            reply(0, "i0", "u1", 1, created=True), again, reply(2, "i1", "u1", 1, created=False),
            reply(3, "i2", "u2", 1, created=True), again,
            linked("e0", "i0", "anna", "u1", [], created=True), linked("e1", "i1", "anna", "u1", ["i0"], created=False),
            event("e2", "install-status-changed", installId="i0", version=2),
            linked("e3", "i2", "ben", "u2", [], created=True),
            {"topic": "identity.link.dlq.v1", "value": '{"id": "comm'},
        ],
        "installs": [["i0", "u1", "deactivated"], ["i1", "u1", "active"], ["i2", "u2", "active"], ["i3", None, "none"]],
        "persons": [["u1", "anna"], ["u2", "ben"]],
    }


def judge(run: Run, folder: Path) -> str:
    """What the oracle says; nothing when all is well."""
    for name, lines in run.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([sys.executable, ORACLE, "link", folder], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stdout == ""), done.stderr
    return done.stdout


def test_a_run_that_did_its_work(run: Run, tmp_path: Path) -> None:
    assert judge(run, tmp_path) == ""


def test_an_event_that_came_twice_under_its_id(run: Run, tmp_path: Path) -> None:
    run["output"].append(copy.deepcopy(run["output"][5]))
    assert judge(run, tmp_path) == ""


@pytest.mark.parametrize("lost", range(9))
def test_what_is_lost_is_missed(run: Run, tmp_path: Path, lost: int) -> None:
    del run["output"][lost]
    assert judge(run, tmp_path) != ""


@pytest.mark.parametrize("doubled", range(5))
def test_a_reply_too_many_is_seen(run: Run, tmp_path: Path, doubled: int) -> None:
    run["output"].append(run["output"][doubled])
    assert "answered" in judge(run, tmp_path)


@pytest.mark.parametrize("doubled", [5, 6, 7, 8])
def test_an_event_under_another_id_is_another_event(run: Run, tmp_path: Path, doubled: int) -> None:
    record = json.loads(run["output"][doubled]["value"])
    run["output"].append({**run["output"][doubled], "value": json.dumps({**record, "id": "other"})})
    assert "an event too many" in judge(run, tmp_path)


@pytest.mark.parametrize(("number", "name", "wrong"), [
    (0, "userId", "u2"), (1, "installId", "i0"), (2, "version", 2), (3, "personCreated", False), (3, "isActive", False),
])
def test_a_wrong_answer_is_seen(run: Run, tmp_path: Path, number: int, name: str, wrong: Any) -> None:
    record = json.loads(run["output"][number]["value"])
    record["data"]["result"][name] = wrong
    run["output"][number] = {**run["output"][number], "value": json.dumps(record)}
    assert judge(run, tmp_path) != ""


def test_a_refusal_without_a_dead_letter_is_seen(run: Run, tmp_path: Path) -> None:
    data = {"commandId": "command-0", "status": "rejected", "reason": "UNAUTHENTICATED"}
    run["output"][0]["value"] = json.dumps({"id": "r0", "type": "identity.reply.v1", "data": data})
    assert "no dead letter" in judge(run, tmp_path)


def test_another_answer_to_a_repetition_is_seen(run: Run, tmp_path: Path) -> None:
    record = json.loads(run["output"][4]["value"])
    record["data"]["message"] = "Done."
    run["output"][4] = {**run["output"][4], "value": json.dumps(record)}
    assert "differently" in judge(run, tmp_path)


@pytest.mark.parametrize(("row", "wrong"), [
    (0, ["i0", "u1", "active"]), (1, ["i1", "u2", "active"]), (2, ["i2", None, "none"]), (3, ["i3", "u2", "active"]),
])
def test_a_wrong_row_is_seen(run: Run, tmp_path: Path, row: int, wrong: list[Any]) -> None:
    run["installs"][row] = wrong
    assert "the table has" in judge(run, tmp_path)


def test_a_missing_person_is_seen(run: Run, tmp_path: Path) -> None:
    run["persons"].pop()
    assert "the table has" in judge(run, tmp_path)
