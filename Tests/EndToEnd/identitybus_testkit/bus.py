# SPDX-License-Identifier: Apache-2.0
"""Sending commands and collecting everything that comes back."""

import json
import threading
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from .broker import Broker
from .commands import Command
from .secrets import Headers, leaks, signature
from .waiting import Deadline


@dataclass(frozen=True)
class Record:
    """A record as it stands on a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    # Of its producer, in milliseconds.
    timestamp: int

    @classmethod
    def of(cls, message: Message) -> "Record":
        return cls(
            message.topic(), message.partition(), message.offset(), message.key(), message.value(),
            [(name, value) for name, value in message.headers() or []], message.timestamp()[1])

    @cached_property
    def envelope(self) -> dict[str, Any]:
        return json.loads(self.value or b"")

    @property
    def data(self) -> dict[str, Any]:
        return self.envelope["data"]

    def header(self, name: str) -> bytes | None:
        return next((value for key, value in reversed(self.headers) if key == name), None)


class Collector:
    """Reads topics from their beginning on a thread of its own and sorts what it finds."""

    def __init__(self, broker: Broker, replies: list[str], events: list[str], dead_letters: list[str]) -> None:
        self._broker = broker
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._replies, self._events, self._dead = set(replies), set(events), set(dead_letters)
        self.replies: dict[str, list[Record]] = defaultdict(list)
        self.events: dict[str, list[Record]] = defaultdict(list)
        self.dead_letters: dict[tuple[int, int], list[Record]] = defaultdict(list)
        self.count = 0
        self.answered = 0
        self.problems: list[str] = []
        self.tolerated = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._PARTITION_EOF}
        self._consumer = Consumer(broker.client(**{
            "group.id": "e2e-collector", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "allow.auto.create.topics": broker.is_embedded,
            "fetch.message.max.bytes": 4_000_000, "log_level": 2,
        }))
        topics = replies + events + dead_letters
        if not broker.is_embedded:
            broker.ensure(topics)
        self._places = [(topic, partition) for topic in topics for partition in broker.partitions(topic)]
        self._next: dict[tuple[str, int], int] = {}
        self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in self._places])
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(20)
        self._consumer.close()

    def wait(self, condition: Callable[[], Any], timeout: float, what: Callable[[], str]) -> Any:
        """The first true value of `condition`, which is asked again whenever something came."""
        deadline = Deadline(timeout)
        with self._changed:
            while not (value := condition()):
                left = deadline.left
                assert left, f"{deadline}: {what()}"
                self._changed.wait(min(left, 0.5))
            return value

    def catch_up(self, timeout: float = 30) -> None:
        """Until all that stands on the topics now is read."""
        asker = Consumer(self._broker.client(**{"group.id": "e2e-ends", "log_level": 2}))
        ends: dict[tuple[str, int], int] = {}
        for place in self._places:
            low, high = asker.get_watermark_offsets(TopicPartition(*place), timeout=timeout)
            if high > low:
                ends[place] = high
        asker.close()
        self.wait(
            lambda: all(self._next.get(place, 0) >= end for place, end in ends.items()), timeout,
            lambda: f"the ends {ends}; read is {self._next}")

    def _run(self) -> None:
        while not self._stop.is_set():
            # A batch call waits its whole time for a full batch: block for the first, then take what is there.
            first = self._consumer.poll(0.1)
            if first is not None:
                messages = [first, *self._consumer.consume(1000, timeout=0)]
                with self._changed:
                    for message in messages:
                        self._note(message)
                    self._changed.notify_all()

    def _note(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.code() not in self.tolerated:
                self.problems.append(str(error))
            return
        record = Record.of(message)
        self._next[record.topic, record.partition] = record.offset + 1
        self.count += 1
        text = b"\n".join([record.key or b"", record.value or b"", *(value or b"" for _, value in record.headers)])
        if found := leaks(text):
            self.problems.append(f"{found} in {record}")
        if record.topic in self._replies:
            self.replies[record.data["commandId"]].append(record)
            self.answered += 1
        elif record.topic in self._events:
            # A note tells of many commands, and is of none.
            if cause := record.envelope.get("causationid"):
                self.events[cause].append(record)
        else:
            partition = int(record.header("dlq_original_partition") or b"-1")
            self.dead_letters[partition, int(record.header("dlq_original_offset") or b"-1")].append(record)


class Bus:
    """One deployment's topics, from the outside."""

    def __init__(self, broker: Broker, prefix: str, services: tuple[str, ...] = ("link",)) -> None:
        self.broker = broker
        self.prefix = prefix
        self.services = services
        self.commands = self.topic(services[0])
        self.extra_replies: list[str] = []
        self._collector: Collector | None = None
        self._sent: dict[int, tuple[int, int]] = {}
        self._expected_events: dict[str, int] = {}
        self._producer = Producer(broker.client(**{
            "linger.ms": 0, "message.max.bytes": 4_000_000, "enable.idempotence": True, "socket.nagle.disable": True,
            "topic.metadata.propagation.max.ms": 30_000, "log_level": 2,
        }))

    @property
    def collector(self) -> Collector:
        if self._collector is None:
            replies = [f"{self.prefix}identity.replies.v1", *self.extra_replies]
            events, letters = ([self.topic(name, kind) for name in self.services] for kind in ("events", "dlq"))
            self._collector = Collector(self.broker, replies, events, letters)
        return self._collector

    def topic(self, service: str, kind: str = "commands") -> str:
        return f"{self.prefix}identity.{service}.{kind}.v1"

    def topic_of(self, command: Command) -> str:
        shared = self.topic(command.service)
        return f"{shared}.{command.app}" if command.to_own_topic else shared

    def close(self) -> None:
        """Ends the threads, and checks what can only be checked in the end."""
        if self._collector is None:
            return
        self._collector.close()
        assert not self._collector.problems, self._collector.problems
        for command, expected in self._expected_events.items():
            ids = {event.envelope["id"] for event in self._collector.events[command]}
            assert len(ids) == expected, f"command {command} led to {len(ids)} events instead of {expected}"

    # Sending

    def put(
        self, value: bytes | None, headers: Headers, key: bytes | None = None, partition: int = -1,
        topic: str | None = None,
    ) -> tuple[int, int]:
        """Sends a record as it is and waits until the broker has it. Returns its partition and offset."""
        self.collector
        places: list[tuple[int, int]] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            places.append((message.partition(), message.offset()))

        self._producer.produce(
            topic or self.commands, value, key, partition=partition, headers=headers, on_delivery=delivered)
        self._producer.flush(30)
        assert places, "the broker did not take the record"
        return places[0]

    def signed(self, command: Command, mode: str = "structured") -> tuple[bytes, Headers]:
        value, headers = command.structured() if mode == "structured" else command.binary()
        topic = self.topic_of(command)
        return value, [*headers, ("signature", signature(command.signer, topic, headers, value))]

    def send(self, command: Command, mode: str = "structured", partition: int = -1) -> tuple[int, int]:
        topic = self.topic_of(command)
        return self.put(*self.signed(command, mode), key=command.key, partition=partition, topic=topic)

    def produce(
        self, value: bytes | None, headers: Headers, key: bytes | None, delivered: Callable[[int, int], None],
        topic: str | None = None, failed: Callable[[KafkaError], None] | None = None, partition: int = -1,
    ) -> None:
        """Sends without waiting; `delivered` gets the partition and offset, in a later call of this or of `flush`."""

        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None and failed is not None:
                return failed(error)
            assert error is None, error
            delivered(message.partition(), message.offset())

        while True:
            try:
                self._producer.produce(
                    topic or self.commands, value, key, partition=partition, headers=headers, on_delivery=report)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def poll(self, timeout: float) -> None:
        self._producer.poll(timeout)

    def flush(self, timeout: float = 60) -> None:
        assert self._producer.flush(timeout) == 0, "the broker did not take everything"

    def send_all(self, commands: list[Command]) -> None:
        """Many at once."""
        self.collector

        def delivered(error: KafkaError | None, _: Message) -> None:
            assert error is None, error

        for command in commands:
            value, headers = self.signed(command)
            self._producer.produce(
                self.topic_of(command), value, command.key, headers=headers, on_delivery=delivered)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    # Receiving

    def reply_records(self, command_id: str, count: int = 1, timeout: float = 30) -> list[Record]:
        found = self.collector.replies
        return self.collector.wait(
            lambda: found[command_id] if len(found[command_id]) >= count else None, timeout,
            lambda: f"{count} replies to {command_id}; there are {len(found[command_id])}")

    def reply(self, command_id: str, timeout: float = 30) -> dict[str, Any]:
        return self.reply_records(command_id, timeout=timeout)[0].data

    def ask(self, command: Command, mode: str = "structured", timeout: float = 30) -> dict[str, Any]:
        """Sends the command and returns its reply's data."""
        self.send(command, mode)
        return self.reply(command.id, timeout)

    def final(self, command_id: str, timeout: float = 30) -> dict[str, Any]:
        """The reply that is not `pending`."""
        found = self.collector.replies
        return self.collector.wait(
            lambda: next((record.data for record in found[command_id] if record.data["status"] != "pending"), None),
            timeout, lambda: f"the final reply to {command_id}; there are {[r.data for r in found[command_id]]}")

    def settle(self, command: Command, timeout: float = 30) -> dict[str, Any]:
        """Sends the command and returns its final reply's data."""
        self.send(command)
        return self.final(command.id, timeout)

    def events(self, command_id: str, count: int, timeout: float = 15) -> list[tuple[str, dict[str, Any]]]:
        """The events that the command led to, as (short type, data), sorted. Exactly `count` of them."""
        self._expected_events[command_id] = count
        found = self.collector.events
        self.collector.wait(
            lambda: count == 0 or len(found[command_id]) >= count, timeout,
            lambda: f"{count} events of {command_id}; there are {[event.value for event in found[command_id]]}")
        short = lambda text: text.removeprefix("identity.").split(".", 1)[1].removesuffix(".v1")
        return sorted(
            ((short(event.envelope["type"]), event.data) for event in found[command_id]), key=lambda pair: str(pair))

    def dead_letter(self, place: tuple[int, int], timeout: float = 30) -> Record:
        found = self.collector.dead_letters
        records = self.collector.wait(lambda: found[place], timeout, lambda: f"a dead letter for record {place}")
        return records[0]
