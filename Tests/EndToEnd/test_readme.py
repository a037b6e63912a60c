# SPDX-License-Identifier: Apache-2.0
"""The README's blocks, taken out of the README and run one after the other as they stand there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit.broker import Broker
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.ports import free_port
from identitybus_testkit.up import Up
from identitybus_testkit.waiting import until

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
TOPIC = "identity.link.commands.v1"


def blocks(language: str, having: str) -> str:
    [found] = [text for name, text in BLOCKS if name == language and having in text]
    return found


class Reader:
    """Somebody who has started `scripts/up` and tries what the README says, in the folder where it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: text for name, text in clean_environment().items() if not name.startswith("VIRTUAL_ENV")}
        (folder / "config").symlink_to(REPOSITORY / "config")
        (folder / ".build").mkdir()
        (folder / ".build" / "release").symlink_to(binary("identitybus").parent)
        self.up = Up(folder / ".identitybus", REPOSITORY / "config" / "apps.yaml", "")
        # It makes one, and writes it where the other commands find it.
        del self.up.environment["IDENTITYBUS_INTERNAL_KEY"]
        # On a busy machine an answer may take longer than devices wait.
        self.up.environment["GATEWAY_REPLY_TIMEOUT_MS"] = "50000"
        # Where nobody listens until somebody tries that, too.
        self.collector = free_port()
        self.up.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{self.collector}"

    def run(self, block: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", block], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=timeout)

    def commands(self) -> list[tuple[str, str, int]]:
        """Key, source and partition of every command that was sent."""
        broker = Broker((self.folder / ".identitybus" / "bootstrap").read_text().strip(), self.up.process)
        consumer = Consumer(broker.client(**{"group.id": "reader", "auto.offset.reset": "earliest"}))
        found: list[tuple[str, str, int]] = []
        try:
            for number in broker.partitions(TOPIC):
                place = TopicPartition(TOPIC, number)
                low, high = consumer.get_watermark_offsets(place, timeout=30)
                place.offset = low
                consumer.assign([place])
                while low < high:
                    message = consumer.poll(30)
                    assert message is not None and message.error() is None
                    low = message.offset() + 1
                    found.append((message.key().decode(), json.loads(message.value())["source"], number))
        finally:
            consumer.close()
        return found


@pytest.fixture(scope="module")
def reader(directory: Path) -> Iterator[Reader]:
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        pytest.skip("the README's lines are about the embedded broker's address file")
    folder = directory / "reader"
    folder.mkdir()
    reader = Reader(folder)
    try:
        reader.up.start().wait_ready()
        yield reader
    finally:
        reader.up.close()


@pytest.fixture(scope="module")
def watched(reader: Reader) -> Iterator[Path]:
    """What the second terminal shows."""
    output = reader.folder / "watched.txt"
    [line] = blocks("console", "identitybus watch").splitlines()
    with output.open("wb") as file, (reader.folder / "watch.log").open("wb") as log:
        watch = subprocess.Popen(line.split(), cwd=reader.folder, env=reader.environment, stdout=file, stderr=log)
    until(lambda: "watching" in (reader.folder / "watch.log").read_text(), 30, "the topics that are watched")
    yield output
    watch.terminate()
    assert watch.wait(20) == 0


@pytest.fixture(scope="module")
def first(reader: Reader, watched: Path) -> str:
    """The reply that the first message got."""
    answer = reader.run(blocks("bash", "send link.register-install"))
    assert answer.returncode == 0 and answer.stderr == "", answer
    return answer.stdout.splitlines()[-1]


def shape(value: object) -> object:
    """The members, without what is in them."""
    return {name: shape(inner) for name, inner in value.items()} if isinstance(value, dict) else type(value)


def test_readme_the_first_message_is_answered_as_shown(first: str, watched: Path) -> None:
    reply, shown = json.loads(first), json.loads(blocks("json", "specversion"))
    assert shape(reply) == shape(shown) and reply["data"]["status"] == "succeeded"
    [line] = [text.strip() for name, text in BLOCKS if name == "" and "  OK  " in text]
    form = re.sub(r"[0-9a-f]{24}|[0-9a-f-]{36}|[\d:.]{12}Z", "…", line)
    until(lambda: form in re.sub(r"[0-9a-f]{24}|[0-9a-f-]{36}|[\d:.]{12}Z", "…", watched.read_text()), 30,
          lambda: f"{form}\n{watched.read_text()}")


@pytest.mark.slow
def test_readme_all_three_producers_are_answered_and_land_in_one_partition(reader: Reader, first: str) -> None:
    (reader.folder / "send.py").write_text(blocks("python", "cloudevents"))
    python = reader.run(blocks("bash", "-m venv"), 600)
    if python.returncode != 0 and re.search("No matching distribution|ConnectionError|NewConnectionError", python.stderr):
        pytest.skip("pip has nowhere to install from")
    shell = reader.run(blocks("bash", "id=$(cat /proc"))
    for answer in (python, shell):
        assert answer.returncode == 0, answer
        assert re.match(r"\S+Z  OK +link\.request +demo/grace ", answer.stdout), answer
        assert len(answer.stdout.splitlines()) == 1, answer
    mine = [(source, number) for key, source, number in reader.commands() if key == "demo/grace"]
    assert {source for source, _ in mine} >= {"identitybus-cli", "my-backend", "my-shell"}, mine
    assert len({number for _, number in mine}) == 1, mine


def test_readme_the_http_example_gets_a_code(reader: Reader, first: str) -> None:
    answer = reader.run(blocks("bash", "curl"))
    assert re.fullmatch("[0-9a-f]{128}", json.loads(answer.stdout)["authentication_code"])


def test_readme_what_became_of_it_is_explained(reader: Reader, first: str) -> None:
    """Of a command too that changed nothing: grace is on that phone already."""
    answer = reader.run(blocks("bash", "id=$(cat /proc") + "\n" + blocks("bash", "explain grace"))
    assert answer.returncode == 0 and "has external id grace" in answer.stdout, answer
    assert "request to link an install with an external id: succeeded, nothing changed" in answer.stdout, answer


def test_readme_a_dead_letter_is_sent_again(reader: Reader, first: str) -> None:
    answer = reader.run(blocks("bash", "dlq replay"))
    assert answer.returncode == 0, answer
    assert re.search(r"DEAD +link\.request +demo/grace +SIGNATURE_INVALID", answer.stdout), answer
    assert "1 letter, 1 open." in answer.stdout and "1 replayed: 1 succeeded" in answer.stdout, answer
    assert "1 letter, 0 open." in reader.run(".build/release/identitybus dlq list").stdout


def test_readme_a_trace_is_printed(reader: Reader, first: str) -> None:
    (reader.folder / "collector.py").write_text(blocks("python", "opentelemetry").replace("4318", str(reader.collector)))
    output = reader.folder / "traces.txt"
    with output.open("wb") as file:
        collector = subprocess.Popen([sys.executable, "collector.py"], cwd=reader.folder, stdout=file)
    try:
        assert reader.run(blocks("bash", "curl")).returncode == 0

        def whole() -> bool:
            ends = [line.split(" ", 5) for line in output.read_text().splitlines()]
            begun = {trace for _, trace, _, _, _, what in ends if what.endswith("identitybus-gateway, POST /users/auth-code")}
            done = {trace for _, trace, _, _, _, what in ends if "identitybus-user, process" in what}
            return bool(begun & done)

        until(whole, 60, lambda: output.read_text())
    finally:
        collector.kill()
        collector.wait()


def test_readme_every_block_that_can_be_run_is_run() -> None:
    """What none of these tests takes is a picture or what somebody sees."""
    run = [text for name, text in BLOCKS if name in ("bash", "python", "console", "sh", "shell")]
    taken = [blocks(*choice) for choice in (
        ("console", "identitybus watch"), ("bash", "send link.register-install"), ("python", "cloudevents"),
        ("bash", "-m venv"), ("bash", "id=$(cat /proc"), ("bash", "curl"), ("bash", "explain grace"), ("bash", "dlq replay"),
        ("python", "opentelemetry"))]
    assert sorted(run) == sorted(taken)
    assert {name for name, _ in BLOCKS} <= {"", "bash", "console", "python", "json", "mermaid"}
