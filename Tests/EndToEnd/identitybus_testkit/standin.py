# SPDX-License-Identifier: Apache-2.0
"""A service that a test scripts: reads its command topic, checks who signed, and replies what the test says."""

import json
import threading
import uuid
from typing import Any, Callable

from confluent_kafka import Consumer, Producer, TopicPartition

from .broker import Broker
from .bus import Record
from .secrets import derived, digest, signature

Script = Callable[[dict[str, Any]], "list[dict[str, Any]]"]


def succeeded(result: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"status": "succeeded", "result": result or {}}


def erased(**done: Any) -> dict[str, Any]:
    """The certificate of another service's part of an erasure."""
    return succeeded({
        "requestId": "part", "erasedAt": "2030-01-01T00:00:00.000Z", "completedAt": "2030-01-01T00:00:00.000Z",
        "subject": {"userIds": [], "mpids": []}, "done": done, "heldByOthers": 0, "remains": []})


def pending(result: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"status": "pending", "result": result or {}}


def rejected(reason: str, message: str = "refused", result: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"status": "rejected", "reason": reason, "message": message} | ({"result": result} if result else {})


class StandIn:
    """`script` gets each command's envelope and gives the replies to it, in order; none leaves it unanswered."""

    def __init__(self, broker: Broker, prefix: str, service: str, script: Script) -> None:
        self.prefix, self.service, self.script = prefix, service, script
        self.topic = f"{prefix}identity.{service}.commands.v1"
        self.commands: list[Record] = []
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(broker.client(**{
            "linger.ms": 0, "socket.nagle.disable": True, "log_level": 2,
            # As services do: who reads only the partition of its reply key finds it there.
            "partitioner": "murmur2_random"}))
        self._consumer = Consumer(broker.client(**{
            "group.id": "e2e-stand-in", "enable.auto.commit": False,
            "allow.auto.create.topics": broker.is_embedded, "log_level": 2}))
        partitions = [TopicPartition(self.topic, number) for number in broker.partitions(self.topic)]
        for partition in partitions:
            partition.offset = self._consumer.get_watermark_offsets(partition, timeout=60)[1]
        self._consumer.assign(partitions)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(20)
        self._consumer.close()
        assert not self.problems, self.problems

    @property
    def last(self) -> dict[str, Any]:
        return self.commands[-1].envelope

    def answer(self, command: dict[str, Any], reply: dict[str, Any], signer: str | None = None) -> None:
        data = {
            "commandId": command["id"], "commandType": command["type"],
            "commandDigest": digest(command["type"], command["data"]), **reply}
        envelope = {
            "specversion": "1.0", "id": str(uuid.uuid4()), "source": f"identitybus/{self.service}",
            "type": "identity.reply.v1", "appid": command["appid"], "datacontenttype": "application/json",
            "data": {name: value for name, value in data.items() if value is not ...}}
        value = json.dumps(envelope).encode()
        if signer is None:
            signer = "gateway" if command["replyto"].endswith("identity.replies.gateway.v1") else "events"
        self._producer.produce(
            command["replyto"], value, key=command.get("replykey", command["partitionkey"]).encode(),
            headers=[("signature", signature(signer, command["replyto"], [], value))] if signer else [])
        self._producer.poll(0)

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            record = Record.of(message)
            # Those of services and of the gateway.
            good = [
                signature(key_id, self.topic, record.headers, record.value or b"", derived(purpose))
                for key_id, purpose in (("internal", "commands"), ("gateway", "gateway"))]
            if record.header("signature") not in good:
                self.problems.append(f"not signed with a key of the deployment: {record}")
            self.commands.append(record)
            try:
                for reply in self.script(record.envelope):
                    self.answer(record.envelope, reply)
            except Exception as problem:  # shown at the end: a thread's exception fails no test
                self.problems.append(repr(problem))
