# SPDX-License-Identifier: Apache-2.0
"""`identitybus dlq`: dead letters are listed, sent again once, whoever does it at the same time, and dismissed
(docs/command-line.md, contracts.md "Handling dead letters")."""

import json
import os
import pty
import random
import signal
import stat
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.secrets import signature
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until


class Operator:
    """Somebody at a machine of their own."""

    def __init__(self, deployment: Deployment, home: Path) -> None:
        home.mkdir()
        self.home = home
        self.environment = deployment.environment() | {"HOME": str(home), "TMPDIR": str(home)}

    def arguments(self, *arguments: str) -> list[str]:
        return ["dlq", *arguments, "--data-dir", str(self.home / "data")]

    def dlq(self, *arguments: str, status: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        answer = tool(*self.arguments(*arguments), environment=self.environment | environment)
        assert status is None or answer.returncode == status, answer
        return answer

    def json(self, *arguments: str, status: int | None = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.dlq(*arguments, "--json", status=status).stdout.splitlines()]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [binary("identitybus"), *self.arguments(*arguments)], env=clean_environment() | self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def open(self, *choice: str) -> list[dict[str, Any]]:
        return self.json("list", "--each", "--open", *choice)


@pytest.fixture(scope="module")
def eva(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(deployment, tmp_path_factory.mktemp("operators") / "eva")


@pytest.fixture
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


# What stands in Kafka


class Topic:
    """All records of a topic up to its ends."""

    def __init__(self, bus: Bus, name: str) -> None:
        self.ends: dict[int, int] = {}
        self.records: list[Record] = []
        consumer = Consumer(bus.broker.client(**{
            "group.id": "nobody", "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 4_000_000}))
        try:
            places = [TopicPartition(name, number) for number in bus.broker.partitions(name)]
            wanted = {}
            for place in places:
                low, high = consumer.get_watermark_offsets(place, timeout=30)
                self.ends[place.partition] = high
                if high > low:
                    wanted[place.partition] = high
            consumer.assign([TopicPartition(name, number, 0) for number in wanted])
            deadline = time.monotonic() + 30
            while wanted:
                assert time.monotonic() < deadline, wanted
                for message in consumer.consume(1000, 0.2):
                    if message.error() is None and message.offset() < self.ends[message.partition()]:
                        self.records.append(Record.of(message))
                        if message.offset() + 1 == wanted.get(message.partition()):
                            del wanted[message.partition()]
        finally:
            consumer.close()


def is_question(record: Record) -> bool:
    try:
        return record.envelope.get("dryrun") == "true"
    except ValueError:
        return False


def topics(bus: Bus) -> dict[str, str]:
    named = {kind: bus.topic("link", kind) for kind in ("commands", "events", "dlq", "dlq-actions")}
    return named | {"replies": f"{bus.prefix}identity.replies.v1"}


def ends(bus: Bus) -> dict[str, list[int]]:
    """How much was ever written."""
    consumer = Consumer(bus.broker.client(**{"group.id": "nobody"}))
    try:
        return {
            kind: [consumer.get_watermark_offsets(TopicPartition(name, number), timeout=30)[1]
                   for number in bus.broker.partitions(name)] for kind, name in topics(bus).items()}
    finally:
        consumer.close()


def replays(bus: Bus) -> dict[str, list[Record]]:
    """The commands that were sent again, by id."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in Topic(bus, bus.commands).records:
        if record.header("dlq_replay") and not is_question(record):
            found[record.envelope["id"]].append(record)
    return found


def put(bus: Bus, command: Command, secret: bytes | None = None) -> tuple[int, int]:
    value, headers = command.structured()
    sign = signature(command.signer, bus.commands, headers, value, secret)
    return bus.put(value, [*headers, ("signature", sign)], key=command.key)


def letters(eva: Operator, bus: Bus, *places: tuple[int, int]) -> list[str]:
    """The names of the letters of these records."""
    for place in places:
        bus.dead_letter(place)
    found = {(entry["partition"], entry["offset"]): entry["letter"] for entry in eva.json("list", "--each")}
    return [found[place] for place in places]


def linked(bus: Bus, count: int, signer: str = "demo-expired") -> list[Command]:
    """Link requests of somebody who can be linked, under a key that may not."""
    install, external_id = fresh("install"), fresh("ext")
    assert bus.ask(c.register(install))["status"] == "succeeded"
    return [c.request(install, external_id, signer=signer) for _ in range(count)]


# Each once


@pytest.mark.parametrize("each", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_letters_are_sent_again_once_each_though_one_is_killed_and_two_do_it_at_once(
    make_deployment: Callable[..., Deployment], tmp_path: Path, each: int
) -> None:
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    bus = deployment.bus
    operators = [Operator(deployment, tmp_path / name) for name in ("eva", "max")]
    eva, max = operators
    total = 3 * each
    signers = {"KEY_EXPIRED": "demo-expired", "KEY_REVOKED": "demo-revoked", "SIGNATURE_INVALID": "demo-backend"}
    people = [(fresh("install"), fresh("ext")) for _ in range(20)]
    bus.send_all([c.register(install) for install, _ in people])
    order: dict[str, list[str]] = defaultdict(list)
    left = [person for person in people for _ in range(total // 20)]
    random.shuffle(left)
    kinds = [kind for kind in signers for _ in range(each)]
    random.shuffle(kinds)
    for (install, external_id), kind in zip(left, kinds):
        command = c.request(install, external_id, signer=signers[kind])
        value, headers = command.structured()
        secret = b"another" if kind == "SIGNATURE_INVALID" else None
        sign = signature(command.signer, bus.commands, headers, value, secret)
        bus.produce(value, [*headers, ("signature", sign)], command.key, lambda *_: None)
        order[external_id].append(command.id)
    bus.flush()
    odd = [bus.put(b"x" * 300_000, [], key=b"demo/large"), bus.put(b"\xff\xfe{", [], key=b"demo/bytes")]
    for place in odd:
        bus.dead_letter(place)
    until(lambda: sum(group["letters"] for group in eva.json("list")) == total + 2, 30, "the letters")
    counts = {group["reason"]: group["open"] for group in eva.json("list")}
    assert counts == dict.fromkeys(signers, each) | {"TOO_LARGE": 1, "NOT_UTF8": 1}

    before = ends(bus)
    preview = eva.dlq("replay", "--all", "--sign-as", "demo-backend", "--dry-run", "--no-questions")
    assert f"{total + 2} letters of 22 keys" in preview.stdout and f"would be sent {total}" in preview.stdout
    assert ends(bus) == before
    preview = eva.dlq("replay", "--all", "--sign-as", "demo-backend", "--dry-run", "--rate", "500")
    assert f"would succeed {total}" in preview.stdout and "would stay open 2 (NOT_UTF8 1, TOO_LARGE 1)" in preview.stdout
    after = ends(bus)
    assert all(after[kind] == before[kind] for kind in ("events", "dlq", "dlq-actions"))
    assert not replays(bus) and len(eva.open()) == total + 2

    line = ["replay", "--all", "--sign-as", "demo-backend", "--reason-text", "INC-4711"]
    killed = eva.start(*line, "--rate", str(each // 2))
    until(lambda: len(replays(bus)) > each // 3, 30, "a few replays")
    killed.kill()
    killed.communicate()
    assert each // 3 < len(replays(bus)) < total
    runs = [operator.start(*line, "--rate", "150") for operator in operators]
    outputs = [run.communicate(timeout=90) for run in runs]
    # Two cannot be sent.
    assert [run.returncode for run in runs] == [3, 3], outputs
    assert not any(error for _, error in outputs), outputs

    found = replays(bus)
    expected = {id for ids in order.values() for id in ids}
    assert {id: len(records) for id, records in found.items()} == dict.fromkeys(expected, 1)
    for external_id, ids in order.items():
        again = sorted((record.offset, id) for id in ids for record in found[id])
        assert [id for _, id in again] == ids, external_id
    # Nothing was decided twice, and everything has its answer.
    for external_id, ids in order.items():
        for id in ids:
            assert bus.reply_records(id, 3)[-1].data["status"] == "succeeded"

    for operator in operators:
        assert {entry["reason"] for entry in operator.open()} == {"TOO_LARGE", "NOT_UTF8"}
    large, bytes = letters(eva, bus, *odd)
    assert "300000 bytes, no envelope (TOO_LARGE): xxx" in eva.dlq("show", large).stdout
    assert "3 bytes, no envelope (NOT_UTF8)" in eva.dlq("show", bytes).stdout
    assert eva.dlq("edit", bytes, "--reason-text", "x", status=3).stderr.startswith(
        f"identitybus: {bytes} is no text")
    assert "dismissed 2 of 2" in max.dlq("dismiss", large, bytes, "--reason-text", "load test").stdout
    for operator in operators:
        assert operator.open() == []
        assert [group["open"] for group in operator.json("list")] == [0] * 5
    metrics = deployment.services[0]
    until(lambda: 'identity_open_dead_letters{service="link"} 0\n' in metrics.get("/metrics")[1], 20, metrics.tail)
    assert f'identity_dead_letters{{service="link"}} {total + 2}\n' in metrics.get("/metrics")[1]


# One after the other


def test_letters_of_a_key_stop_at_the_first_that_is_not_done(bus: Bus, eva: Operator) -> None:
    first, *others = linked(bus, 3)
    nobody = c.request(fresh("install"), first.data["externalId"], signer="demo-expired")
    chosen = letters(eva, bus, *[put(bus, command) for command in (first, nobody, *others)])
    line = ["replay", *chosen, "--sign-as", "demo-backend", "--reason-text", "x"]
    wishful = eva.json(*line, "--only-if", "succeeded")
    assert [(entry["letter"], entry["state"], entry["reason"]) for entry in wishful] == [
        (chosen[0], "replayed", None), (chosen[1], "open", "INSTALL_NOT_FOUND"),
        (chosen[2], "open", "BEHIND"), (chosen[3], "open", "BEHIND")]
    stopped = eva.dlq(*line, status=3)
    assert "done      1 replayed: 1 rejected INSTALL_NOT_FOUND.  2 left open." in stopped.stdout
    assert f"2 BEHIND  {chosen[2]}: {chosen[1]} of its key has failed" in stopped.stdout
    again = eva.json(*line)
    assert [(entry["letter"], entry["status"]) for entry in again] == [(chosen[2], "succeeded"), (chosen[3], "succeeded")]
    assert "nothing to do: 4 letters, 0 open." in eva.dlq(*line).stdout


def test_keep_going_sends_what_is_behind(bus: Bus, eva: Operator) -> None:
    good, = linked(bus, 1)
    nobody = c.request(fresh("install"), good.data["externalId"], signer="demo-expired")
    chosen = letters(eva, bus, put(bus, nobody), put(bus, good))
    done = eva.json(
        "replay", *chosen, "--sign-as", "demo-backend", "--reason-text", "x", "--keep-going", status=3)
    assert [entry["status"] for entry in done] == ["rejected", "succeeded"]


def test_without_a_key_the_bytes_and_the_signature_stay(deployment: Deployment, bus: Bus, eva: Operator) -> None:
    command, = linked(bus, 1, signer="demo-revoked")
    place = put(bus, command)
    letter, = letters(eva, bus, place)
    refused = eva.dlq("replay", letter, "--reason-text", "x", status=3)
    assert "1 KEY_REVOKED" in refused.stdout and not replays(bus).get(command.id)
    current = apps.apps()
    key = next(key for key in current[0]["keys"] if key["id"] == "demo-revoked")  # type: ignore[attr-defined]
    key["revoked"] = False
    apps.write(deployment.apps_file, current)
    try:
        told = lambda: json.loads(eva.dlq("show", letter, "--json").stdout)["wouldBe"]["status"]
        until(lambda: told() == "succeeded", 30, "the services to read the apps file")
        assert "1 replayed: 1 succeeded." in eva.dlq("replay", letter, "--reason-text", "x").stdout
    finally:
        apps.write(deployment.apps_file, apps.apps())
    original = bus.dead_letter(place)
    again, = replays(bus)[command.id]
    assert (again.key, again.value, again.header("signature")) == (
        original.key, original.value, original.header("signature"))


def test_ctrl_c_stops_after_the_letters_in_hand_and_the_same_line_goes_on(bus: Bus, eva: Operator) -> None:
    commands = [command for _ in range(6) for command in linked(bus, 5)]
    chosen = letters(eva, bus, *[put(bus, command) for command in commands])
    line = ["replay", *chosen, "--sign-as", "demo-backend", "--reason-text", "x", "--batch", "2"]
    run = eva.start(*line, "--rate", "10", "--json")
    until(lambda: len(set(replays(bus)) & {command.id for command in commands}) > 4, 30, "a few replays")
    run.send_signal(signal.SIGINT)
    output, error = run.communicate(timeout=20)
    assert run.returncode == 130 and b"the same line goes on" in error
    sent = [json.loads(entry) for entry in output.splitlines()]
    assert {entry["status"] for entry in sent if entry["state"] == "replayed"} == {"succeeded"}
    left = [entry["letter"] for entry in eva.open() if entry["letter"] in chosen]
    assert 0 < len(left) < 30 and sorted(left) == sorted(entry["letter"] for entry in sent if entry["state"] == "open")
    assert f"done      {len(left)} replayed: {len(left)} succeeded." in eva.dlq(*line, "--rate", "500").stdout
    found = replays(bus)
    assert all(len(found[command.id]) == 1 for command in commands)


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
    assert "signed by demo-expired" in told["came"] and f"key demo/{command.subject}" in told["came"]
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


def test_what_is_no_envelope_is_edited_as_a_whole(bus: Bus, eva: Operator) -> None:
    good, = linked(bus, 1)
    value, headers = good.but(signer="demo-backend").structured()
    letter, = letters(eva, bus, bus.put(value[:-1] + b",}", headers, key=good.key))
    line = ["edit", letter, "--reason-text", "x", "--yes"]
    unsigned = eva.dlq(*line, status=64, EDITOR=editor(eva.home, (",}", "}")))
    assert "nobody has signed" in unsigned.stderr
    done = eva.dlq(*line, "--sign-as", "demo-backend", EDITOR=editor(eva.home, (",}", "}")))
    assert "1 replayed: 1 succeeded." in done.stdout


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
