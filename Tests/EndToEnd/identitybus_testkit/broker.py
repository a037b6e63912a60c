# SPDX-License-Identifier: Apache-2.0
"""The Kafka broker of the tests: the one in the environment, or the embedded one of `identitybus up`."""

import os
import signal
import subprocess
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from .places import binary, clean_environment
from .waiting import until


# Whom a service sends commands: it waits until their topics are there.
_ASKED = {
    "link": ("user", "sync"), "user": ("link",), "sync": ("link", "verification"), "verification": ("sync",)}
SERVICES = tuple(_ASKED)


def topics_of(*services: str) -> list[str]:
    """What contracts.md calls the services' topics, without the prefix, and the topics of those whom they ask or hear."""
    own = [f"identity.{service}.{kind}.v1" for service in services for kind in ("commands", "events", "dlq", "dlq-actions")]
    asked = [f"identity.{other}.commands.v1" for service in services for other in _ASKED.get(service, ())]
    asked += ["identity.sync.events.v1"] if "link" in services else []
    own += [topic for topic in dict.fromkeys(asked) if topic not in own]
    return [*own, *(f"identity.replies.{service}.v1" for service in services), "identity.replies.v1",
            "identity.status.v1"]


LINK_TOPICS = topics_of("link")

_EMBEDDED_SERVICE_SETTINGS = {
    "KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "3500",
    "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "200",
    "KAFKA_CONSUMER_ALLOW_AUTO_CREATE_TOPICS": "true",
}

# On a real Kafka a crash is noticed when the session is over: here only the waiting for it is made shorter.
_REAL_SERVICE_SETTINGS = {"KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "6000", "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "1000"}


def kafka_environment() -> dict[str, str]:
    """What the environment says about the broker, for the processes of the product."""
    kit = ("KAFKA_STOP_COMMAND", "KAFKA_START_COMMAND")
    return {name: value for name, value in os.environ.items() if name.startswith("KAFKA_") and name not in kit}


class Broker:
    """A broker, and how clients and services reach it."""

    def __init__(self, servers: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.servers = servers
        self.process = process
        self.is_away = False

    @property
    def is_embedded(self) -> bool:
        return self.process is not None

    @classmethod
    def for_tests(cls, directory: Path, prefix: str = "", partitions: int = 12) -> "Broker":
        servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
        return cls(servers) if servers else cls.embedded(directory, prefix, partitions)

    @classmethod
    def embedded(cls, directory: Path, prefix: str = "", partitions: int = 12) -> "Broker":
        """The broker makes topics with `prefix` with so many partitions, every other one that is asked for with 4."""
        directory.mkdir(parents=True, exist_ok=True)
        data = directory / "data"
        environment = clean_environment() | ({"TOPIC_PREFIX": prefix} if prefix else {})
        environment["TOPIC_PARTITIONS"] = str(partitions)
        log = (directory / "up.log").open("wb")
        process = subprocess.Popen(
            [binary("identitybus"), "up", "--broker-only", "--data-dir", data], env=environment, stdout=log, stderr=log)
        address = data / "bootstrap"

        def servers() -> str:
            assert process.poll() is None, f"up ended: {(directory / 'up.log').read_text()}"
            return address.read_text().strip() if address.exists() else ""

        return cls(until(servers, 30, "the embedded broker's address"), process)

    def close(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def go_away(self) -> None:
        """From now on it answers nobody, and keeps what it has; for tests marked `outage`. The embedded one loses all
        when it is killed: it stands still instead."""
        self.is_away = True
        if self.is_embedded:
            self.pause()
        else:
            subprocess.run(os.environ["KAFKA_STOP_COMMAND"], shell=True, check=True, timeout=60)

    def come_back(self) -> None:
        """Returns when it answers."""
        if self.is_embedded:
            self.resume()
        else:
            subprocess.run(os.environ["KAFKA_START_COMMAND"], shell=True, check=True, timeout=120)
        self.is_away = False

    def client(self, **settings: object) -> dict[str, object]:
        """Settings of a client of the tests."""
        common = {
            name.removeprefix("KAFKA_").lower().replace("_", "."): value
            for name, value in os.environ.items()
            if name.startswith(("KAFKA_SECURITY_PROTOCOL", "KAFKA_SASL_", "KAFKA_SSL_"))
        }
        # After an outage the tests must not be the ones who are slow to notice.
        patience = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 500}
        return {"bootstrap.servers": self.servers, **patience, **common, **settings}

    def service_environment(self) -> dict[str, str]:
        if self.is_embedded:
            return {"KAFKA_BOOTSTRAP_SERVERS": self.servers, **_EMBEDDED_SERVICE_SETTINGS}
        return _REAL_SERVICE_SETTINGS | kafka_environment() | {"KAFKA_BOOTSTRAP_SERVERS": self.servers}

    def usual_settings(self) -> dict[str, str]:
        """For tests of how long something takes: on a real broker the product's own, not those that save time here."""
        return {} if self.is_embedded else dict.fromkeys(_REAL_SERVICE_SETTINGS, "")

    def make_known(self, topics: list[str]) -> None:
        """The embedded broker makes up a topic when a client asks for it. On a real one the services do that."""
        if self.is_embedded:
            self.create(topics)

    def create(self, topics: list[str], partitions: int = 12) -> None:
        """Makes topics as the services make them, and waits until every partition can be read. One that a service has
        made meanwhile is as good. The embedded broker does it its own way."""
        admin = AdminClient(self.client())
        if self.is_embedded:
            for topic in topics:
                until(lambda: _exists(admin, topic), 30, f"topic {topic}")
            return
        new = [NewTopic(topic, num_partitions=partitions, config=_topic_settings(topic)) for topic in topics]
        for future in admin.create_topics(new).values():
            try:
                future.result(30)
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        for topic in topics:
            until(lambda: _is_led(admin, topic), 30, f"leaders of {topic}")

    def delete(self, topic: str) -> None:
        """Returns when it is gone. Not with the embedded broker."""
        admin = AdminClient(self.client())
        admin.delete_topics([topic])[topic].result(30)
        until(lambda: topic not in admin.list_topics(timeout=30).topics, 30, f"the end of {topic}")

    def delete_all(self, prefix: str) -> None:
        """Leaves a real broker as it was found: one that keeps thousands of partitions takes long to start."""
        if self.is_embedded or not prefix:
            return
        admin = AdminClient(self.client())
        topics = [topic for topic in admin.list_topics(timeout=30).topics if topic.startswith(prefix)]
        for future in (admin.delete_topics(topics) if topics else {}).values():
            future.result(30)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """As retention does. Not with the embedded broker."""
        place = TopicPartition(topic, partition, before)
        admin = AdminClient(self.client())
        admin.delete_records([place])[place].result(30)

    def ensure(self, topics: list[str]) -> None:
        """Creates those that are missing, for tests that read a topic before its service has made it, or that run
        without that service."""
        known = AdminClient(self.client()).list_topics(timeout=30).topics
        missing = [topic for topic in topics if topic not in known]
        if missing:
            self.create(missing)

    def partitions(self, topic: str) -> list[int]:
        """The topic's partitions, once it exists and all of them have leaders."""
        admin = AdminClient(self.client())

        def found() -> list[int]:
            known = admin.list_topics(timeout=30).topics.get(topic)
            is_whole = known is not None and known.error is None and (self.is_embedded or _is_led(admin, topic))
            return sorted(known.partitions) if known is not None and is_whole else []

        return until(found, 60, f"topic {topic}")


def _topic_settings(topic: str) -> dict[str, str]:
    """What the services set for their own."""
    sizes = {"commands": "2000000", "dlq": "3000000"}
    size = next((bytes for kind, bytes in sizes.items() if topic.endswith(f".{kind}.v1")), None)
    return {"max.message.bytes": size} if size else {}


def _is_led(admin: AdminClient, topic: str) -> bool:
    """Whether every partition's leader answers. Just after the creation metadata names leaders that do not know yet."""
    try:
        known = admin.list_topics(topic, timeout=30).topics[topic]
        wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in known.partitions}
        if known.error is not None or not wanted:
            return False
        for future in admin.list_offsets(wanted).values():
            future.result(30)
    except KafkaException:
        return False
    return True


def _exists(admin: AdminClient, topic: str) -> bool:
    try:
        known = admin.list_topics(topic, timeout=30).topics[topic]
    except KafkaException:
        return False
    return known.error is None and bool(known.partitions)
