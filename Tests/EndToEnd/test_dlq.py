# SPDX-License-Identifier: Apache-2.0
"""`identitybus dlq replay`: dead letters are sent again once, whoever does it at the same time and whatever others write
(docs/command-line.md, contracts.md "Handling dead letters")."""

import json
import os
import random
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.letters import (
    Operator, act, acts, digest, ends, letters, linked, put, put_forged, replays)
from identitybus_testkit.secrets import signature
from identitybus_testkit.waiting import until


@pytest.fixture(scope="module")
def eva(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(deployment, tmp_path_factory.mktemp("operators") / "eva")


@pytest.fixture
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


# Each once


def test_letters_are_sent_again_once_each_though_one_is_killed_and_two_do_it_at_once(
    make_deployment: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    bus = deployment.bus
    operators = [Operator(deployment, tmp_path / name) for name in ("eva", "max")]
    eva, max = operators
    each = int(os.environ.get("E2E_LETTERS", "20"))
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
    told = [line for _, error in outputs for line in error.splitlines()]
    assert all(b" is in hand of " in line and b", by Kafka's clock. Waiting for it, 40 s" in line for line in told), told

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
    assert "no envelope (TOO_LARGE): 300000 bytes, text, SHA-256 " in eva.dlq("show", large).stdout
    assert "no envelope (NOT_UTF8): 3 bytes, UTF-16, SHA-256 " in eva.dlq("show", bytes).stdout
    assert eva.dlq("edit", bytes, "--reason-text", "x", status=3).stderr.startswith(
        f"identitybus: {bytes} is no text")
    assert "dismissed 2 of 2" in max.dlq("dismiss", large, bytes, "--reason-text", "load test").stdout
    for operator in operators:
        assert operator.open() == []
        assert [group["open"] for group in operator.json("list")] == [0] * 5
    metrics = deployment.services[0]
    until(lambda: 'identity_open_dead_letters{service="link"} 0\n' in metrics.get("/metrics")[1], 20, metrics.tail)
    assert f'identity_dead_letters{{service="link"}} {total + 2}\n' in metrics.get("/metrics")[1]


# Nobody else makes a letter look sent, or in hand for ever


def test_what_others_claim_is_waited_for_and_only_the_very_record_counts_as_sent(bus: Bus, eva: Operator) -> None:
    """Somebody has claimed three letters and is gone. Of the first nothing stands on the topic but what names it; the second
    was sent, signed anew; the third with another type, after an edit."""
    commands = [linked(bus, 1)[0] for _ in range(3)]
    commands[2] = commands[2].but(type="link.requst")
    chosen = letters(eva, bus, *[put(bus, command) for command in commands])
    marks = [
        f"{bus.topic('link', 'dlq')}[{letter.removeprefix('link/').replace('@', ']@')}".encode() for letter in chosen]
    # Anybody who may write commands can say what it likes of a letter, under its key too.
    other = c.register(fresh("install"))
    value, headers = bus.signed(other)
    bus.put(value, [*headers, ("dlq_replay", marks[0])], key=commands[0].key)
    put_forged(bus, commands[0], marks[0])
    future = int(time.time() * 1000) + 3_600_000
    act(bus, chosen[0], "claimed", "gone", timestamp=future, digest="0" * 64)
    for command, letter, mark in list(zip(commands, chosen, marks))[1:]:
        value, headers = bus.signed(command.but(type="link.request", signer="demo-backend"))
        headers = [*headers, ("dlq_replay", mark)]
        act(bus, letter, "claimed", "gone", digest=digest(command.key, value, headers))
        bus.put(value, headers, key=command.key)
    before = {command.id: len(replays(bus).get(command.id, [])) for command in commands}
    line = ["replay", *chosen, "--sign-as", "demo-backend", "--reason-text", "x"]
    busy = eva.dlq(*line, "--wait", "3", status=4)
    assert re.search(r"3 IN_HAND  link/\d+@\d+: max@laptop has it in hand until 20", busy.stdout), busy
    assert "is in hand of max@laptop until 20" in busy.stderr and "Waiting for it, 3 s at most" in busy.stderr
    assert len(busy.stderr.splitlines()) == 1
    assert all(acts(bus, letter).count("claimed") <= 4 for letter in chosen), "once a second"
    started = time.monotonic()
    done = eva.dlq(*line)
    assert "done      3 replayed: 3 succeeded." in done.stdout and time.monotonic() - started < 12
    found = replays(bus)
    assert [len(found[command.id]) - before[command.id] for command in commands] == [1, 0, 0]
    for command, count in zip(commands, (3, 2, 2)):
        assert bus.reply_records(command.id, count)[-1].data["status"] == "succeeded"
    assert f"as {found[commands[1].id][0].topic}[" in eva.dlq("show", chosen[1]).stdout


def test_what_is_never_answered_stops_its_key_until_the_answer_comes(
    make_deployment: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = make_deployment("sqlite")
    service = deployment.service().start().wait_ready()
    bus, eva = deployment.bus, Operator(deployment, tmp_path / "eva")
    commands = linked(bus, 2)
    first, second = letters(eva, bus, *[put(bus, command) for command in commands])
    assert service.stop() == 0
    line = ["replay", "--all", "--sign-as", "demo-backend", "--reason-text", "x", "--wait", "1"]
    alone = eva.dlq(*line, status=4)
    assert "1 replayed: 1 without an answer.  1 left open." in alone.stdout
    assert f"1 BEHIND  {second}: {first} of its key is not answered yet" in alone.stdout
    for part in ("Does the link service run?", f"identitybus explain {commands[0].id} --app demo", "--keep-going"):
        assert part in alone.stdout, alone
    again = eva.dlq(*line, status=4)
    assert f"no answer  {first}: sent by " in again.stdout and "and not answered yet" in again.stdout
    assert [len(replays(bus)[command.id]) if command.id in replays(bus) else 0 for command in commands] == [1, 0]
    service.start().wait_ready()
    bus.reply_records(commands[0].id, 2)
    # Nobody waited when the answer came.
    late = eva.json(*line[:-2])
    assert [(entry["letter"], entry["state"], entry["status"]) for entry in late] == [
        (first, "handled by others", "succeeded"), (second, "replayed", "succeeded")]
    assert [len(replays(bus)[command.id]) for command in commands] == [1, 1] and eva.open() == []
    assert "succeeded" in eva.dlq("show", first).stdout


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
