# SPDX-License-Identifier: Apache-2.0
"""What every contender needs of the bus: clients as the services set theirs, envelopes, signatures (docs/contracts.md).

Settings come from the environment that a service would get.
"""

import base64
import hashlib
import hmac
import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson
from confluent_kafka import Consumer, Message, Producer

PREFIX = os.environ.get("TOPIC_PREFIX", "")
REPLIES = f"{PREFIX}identity.replies.v1"
BATCH = int(os.environ.get("BATCH_SIZE", "1000"))
CONTENT_TYPE = b"application/cloudevents+json"


def derived(purpose: str) -> bytes:
    """HKDF-SHA256 without a salt, one block."""
    internal = os.environ["IDENTITYBUS_INTERNAL_KEY"].encode()
    extracted = hmac.digest(bytes(32), internal, "sha256")
    return hmac.digest(extracted, f"identitybus {purpose} v1".encode() + b"\x01", "sha256")


_app_key_id, _, _app_secret = os.environ.get("BENCH_APP_KEY", "").partition(".")
_SECRETS = {_app_key_id: _app_secret.encode(), "internal": derived("commands")}
_EVENTS_KEY = derived("events")
NAMESPACE = uuid5(NAMESPACE_URL, "https://contender.example")


def settings(role: str) -> dict[str, Any]:
    """What the environment says for all clients and for this kind: KAFKA_CONSUMER_FETCH_WAIT_MAX_MS is fetch.wait.max.ms."""
    found = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "socket.nagle.disable": True}
    start = f"KAFKA_{role}_"
    for name, value in os.environ.items():
        if name.startswith(start):
            found[name.removeprefix(start).lower().replace("_", ".")] = value
    return found


def consumer(topics: list[str], group: str) -> Consumer:
    """A member of a group; what it is assigned first is told to who waits for it."""
    client = Consumer({
        "fetch.wait.max.ms": 500, "session.timeout.ms": 10000, "queued.min.messages": 10000,
        **settings("CONSUMER"), "group.id": PREFIX + group, "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "partition.assignment.strategy": "cooperative-sticky",
    })
    client.subscribe(topics, on_assign=lambda *_: tell_ready())
    return client


def producer() -> Producer:
    return Producer({
        "linger.ms": 0, "batch.size": 1_000_000, "compression.type": "lz4", "queue.buffering.max.messages": 200_000,
        **settings("PRODUCER"), "enable.idempotence": True, "partitioner": "murmur2_random",
    })


def tell_ready() -> None:
    line = {"time": now(), "level": "info", "message": "partitions assigned"}
    print(json.dumps(line, separators=(",", ":")), flush=True)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Stop:
    """Set by SIGTERM: what is begun is ended, then the process goes."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


# Reading


@dataclass(slots=True)
class Command:
    """A record that holds an envelope."""

    topic: str
    key: bytes | None
    value: bytes
    envelope: dict[str, Any]
    is_genuine: bool

    @property
    def id(self) -> tuple[str, str, str]:
        return self.envelope["appid"], self.envelope["source"], self.envelope["id"]

    @property
    def type(self) -> str:
        return self.envelope["type"]

    @property
    def data(self) -> dict[str, Any]:
        return self.envelope["data"]

    def digest(self) -> bytes:
        canonical = orjson.dumps(self.data, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(self.type.encode() + b"\0" + canonical).digest()


def read(message: Message) -> Command | None:
    """None for what is no JSON."""
    if (error := message.error()) is not None:
        raise RuntimeError(error.str())
    value, topic = message.value() or b"", message.topic()
    try:
        envelope = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return Command(topic, message.key(), value, envelope, _is_signed(topic, value, message.headers() or []))


def _is_signed(topic: str, value: bytes, headers: list[tuple[str, bytes]]) -> bool:
    header = next((value for name, value in headers if name == "signature"), b"").decode()
    version, _, rest = header.partition(";kid=")
    key_id, _, code = rest.partition(";")
    secret = _SECRETS.get(key_id)
    if version != "v1" or secret is None:
        return False
    return hmac.compare_digest(hmac.digest(secret, topic.encode() + b"\n" + value, "sha256"), base64.b64decode(code))


# Writing


@dataclass(slots=True)
class Outgoing:
    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]

    def pack(self) -> list[Any]:
        return [self.topic, (self.key or b"").decode(), self.value.decode(), [[n, v.decode()] for n, v in self.headers]]

    @staticmethod
    def unpack(packed: list[Any]) -> "Outgoing":
        topic, key, value, headers = packed
        return Outgoing(topic, key.encode(), value.encode(), [(n, v.encode()) for n, v in headers])


def sealed(topic: str, key: bytes | None, envelope: dict[str, Any]) -> Outgoing:
    value = orjson.dumps(envelope)
    code = base64.b64encode(hmac.digest(_EVENTS_KEY, topic.encode() + b"\n" + value, "sha256"))
    return Outgoing(topic, key, value, [("content-type", CONTENT_TYPE), ("signature", b"v1;kid=events;" + code)])


def _attributes(service: str, command: Command, type: str, index: int, time: str) -> dict[str, Any]:
    envelope = command.envelope
    return {
        "specversion": "1.0", "id": str(uuid5(NAMESPACE, "\n".join((*command.id, str(index))))),
        "source": f"identitybus/{service}", "type": type, "time": time, "datacontenttype": "application/json",
        "appid": envelope["appid"], "correlationid": envelope.get("correlationid", envelope["id"]),
        "causationid": envelope["id"], "traceparent": envelope.get("traceparent"),
    }


def event(
    service: str, command: Command, index: int, type: str, subject: str, data: dict[str, Any], time: str
) -> Outgoing:
    envelope = _attributes(service, command, type, index, time)
    key = f"{envelope['appid']}/{subject}"
    envelope |= {"subject": subject, "partitionkey": key, "data": data}
    return sealed(f"{PREFIX}identity.{service}.events.v1", key.encode(), envelope)


def reply(
    service: str, command: Command, index: int, status: str, time: str, reason: str | None = None,
    result: dict[str, Any] | None = None,
) -> Outgoing:
    envelope = _attributes(service, command, "identity.reply.v1", index, time)
    data: dict[str, Any] = {
        "commandId": command.envelope["id"], "commandType": command.type, "commandDigest": command.digest().hex(),
        "status": status,
    }
    if reason is not None:
        data["reason"] = reason
    if result is not None:
        data["result"] = result
    envelope |= {"subject": command.envelope.get("subject"), "partitionkey": (command.key or b"").decode(), "data": data}
    return sealed(REPLIES, command.key, envelope)


def dead_letter(service: str, message: Message, reason: str) -> Outgoing:
    headers = list(message.headers() or []) + [("dlq_reason", reason.encode()), ("dlq_timestamp", now().encode())]
    return Outgoing(f"{PREFIX}identity.{service}.dlq.v1", message.key(), message.value() or b"", headers)


def send(client: Producer, records: list[Outgoing]) -> None:
    """Hands the records over and waits until the broker has them all."""
    failed: list[str] = []

    def told(error: Any, _: Message) -> None:
        if error is not None:
            failed.append(error.str())

    for record in records:
        while True:
            try:
                client.produce(record.topic, record.value, record.key, headers=record.headers, on_delivery=told)
                break
            except BufferError:
                client.poll(0.01)
    client.flush()
    if failed:
        raise RuntimeError(failed[0])


def complain(problem: str) -> None:
    print(json.dumps({"time": now(), "level": "error", "message": problem}, separators=(",", ":")), file=sys.stderr)
