# SPDX-License-Identifier: Apache-2.0
"""Dead letters: who handles them, and what stands in Kafka about them (docs/contracts.md "Handling dead letters")."""

import hashlib
import json
import subprocess
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from . import commands as c
from .bus import Bus, Record
from .commands import Command, fresh
from .deployment import Deployment
from .places import binary, clean_environment
from .secrets import signature
from .up import tool


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


def act(bus: Bus, letter: str, act: str, run: str, timestamp: int = 0, **more: Any) -> None:
    """Writes what somebody does about a letter, as contracts.md says it."""
    place = letter.removeprefix("link/")
    partition, offset = (int(number) for number in place.split("@"))
    written, = [
        record.timestamp for record in Topic(bus, bus.topic("link", "dlq")).records
        if (record.partition, record.offset) == (partition, offset)]
    data = {"act": act, "letter": {"partition": partition, "offset": offset, "written": written},
            "run": run, "by": "max@laptop", **more}
    value = json.dumps({
        "specversion": "1.0", "id": str(uuid.uuid4()), "source": "identitybus-cli", "type": "identity.dlq.handling.v1",
        "datacontenttype": "application/json", "data": data}).encode()
    producer = Producer(bus.broker.client())
    producer.produce(
        bus.topic("link", "dlq-actions"), value, place, partition=0, timestamp=timestamp,
        headers=[("content-type", b"application/cloudevents+json")])
    assert producer.flush(30) == 0


def acts(bus: Bus, letter: str) -> list[str]:
    partition, offset = (int(number) for number in letter.removeprefix("link/").split("@"))
    return [
        record.data["act"] for record in Topic(bus, bus.topic("link", "dlq-actions")).records
        if record.data["by"] != "max@laptop"
        and (record.data["letter"]["partition"], record.data["letter"]["offset"]) == (partition, offset)]


def digest(key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> str:
    parts = [key, value, *(part for name, content in headers for part in (name.encode(), content))]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def put_forged(bus: Bus, command: Command, mark: bytes) -> None:
    """Sends the command as it would be signed anew, by somebody without the key."""
    value, headers = command.but(signer="demo-backend").structured()
    signed = ("signature", b"v1;kid=demo-backend;" + b"A" * 43 + b"=")
    bus.put(value, [*headers, signed, ("dlq_replay", mark)], key=command.key)
