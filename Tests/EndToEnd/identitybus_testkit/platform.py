# SPDX-License-Identifier: Apache-2.0
"""A deployment of all services, and steady traffic to them of which everything is checked."""

import threading
import time
from pathlib import Path
from typing import Any, Callable

from confluent_kafka import Consumer, KafkaError, TopicPartition

from . import apps
from . import commands as c
from .broker import SERVICES, Broker
from .bus import Bus, Record
from .commands import Command, fresh
from .databases import Database
from .deployment import Deployment
from .service import Service
from .verification import verification_apps, vouched
from .waiting import Deadline, until


class Platform(Deployment):
    def __init__(self, broker: Broker, directory: Path, database: Database, prefix: str | None = None,
                 names: tuple[str, ...] = SERVICES) -> None:
        super().__init__(broker, directory, database, prefix, SERVICES)
        apps.write(self.apps_file, apps.apps() + verification_apps())

    def start(self, *names: str) -> list[Service]:
        """Starts services, all of them at once, with their usual settings, and waits until they are ready."""
        started = [self.service(name, **self.broker.usual_settings()).start() for name in names or SERVICES]
        return [service.wait_ready() for service in started]

    def stop(self) -> None:
        for service in self.services:
            if service.is_running:
                assert service.stop() == 0


def wait_until_quiet(deployment: Deployment, timeout: float = 60) -> None:
    """Until the services have read all that stands on their topics, have published all that came of it, and wait for
    nobody's answer."""
    asker = Consumer(deployment.broker.client(**{"group.id": "e2e-ends", "log_level": 2}))
    ask = deployment.database.execute

    def read(service: str) -> dict[tuple[str, int], int]:
        rows = ask("SELECT topic, partition, next_offset FROM progress", service=service)
        return {(topic, partition): offset for topic, partition, offset in rows}

    def ends() -> dict[tuple[str, int], int]:
        places = {place for service in SERVICES for place in read(service)}
        return {place: asker.get_watermark_offsets(TopicPartition(*place), timeout=30)[1] for place in places}

    def left() -> list[Any]:
        stand = ends()
        # In this order: what has been read by now is in the outbox by now, or has left it.
        found: list[Any] = [
            (service, *place) for service in SERVICES for place, offset in read(service).items()
            if max(offset, 0) < stand[place]]
        found += [
            (service, table) for service in SERVICES for table in ("outbox", "forward")
            if ask(f"SELECT count(*) FROM {table}", service=service) != [(0,)]]
        return found or [place for place, end in ends().items() if end != stand.get(place)]

    try:
        until(lambda: not left(), timeout, lambda: f"the services to come to rest: {left()}", interval=0.2)
    finally:
        asker.close()


def one(service: str) -> Command:
    """A command that makes one new thing. The user service asks link for it, and verification asks sync."""
    match service:
        case "link": return c.register(fresh("install"), user="new")
        case "user": return c.create(fresh("install"), appSecret=apps.APP_SECRET, linking="none")
        case "sync": return c.sync("identify", fresh("device"), {"device_application_stamp": fresh("stamp")})
        case _: return vouched(fresh("device"), fresh("user"))


class Traffic:
    """Commands to the services in turn, at a steady rate, until it is stopped."""

    def __init__(self, bus: Bus, services: tuple[str, ...] = SERVICES, rate: float = 40, is_lossy: bool = False) -> None:
        """- is_lossy: the topic may refuse some; they do not count as sent."""
        self.bus = bus
        self.sent: dict[str, Command] = {}
        self._services, self._rate, self._is_lossy = services, rate, is_lossy
        self._problem: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def start(self) -> "Traffic":
        self.bus.collector
        self._thread.start()
        return self

    def stop(self) -> None:
        """Sends no more."""
        self._stop.set()
        self._thread.join(30)

    def finish(self, timeout: float = 60) -> None:
        """Sends no more, and waits for all answers."""
        self.stop()
        self.bus.flush(timeout)
        if self._problem is not None:
            raise self._problem
        deadline = Deadline(timeout)
        for id in list(self.sent):
            self.bus.final(id, deadline.left)

    def wait_for_answers(self, more: int, timeout: float = 30) -> None:
        goal = self.answered() + more
        until(lambda: self.answered() >= goal, timeout, lambda: f"{goal} answers; there are {self.answered()}")

    def answered(self) -> int:
        return sum(self._is_final(id) for id in list(self.sent))

    def _is_final(self, id: str) -> bool:
        return any(record.data["status"] != "pending" for record in self.bus.collector.replies.get(id, ()))

    def send(self, command: Command) -> None:
        def failed(error: KafkaError) -> None:
            assert self._is_lossy, error
            del self.sent[command.id]

        self.sent[command.id] = command
        value, headers = self.bus.signed(command)
        self.bus.produce(value, headers, command.key, lambda *_: None, self.bus.topic(command.service), failed)

    def _run(self) -> None:
        started, count = time.monotonic(), 0
        try:
            while not self._stop.is_set():
                if count > (time.monotonic() - started) * self._rate:
                    self.bus.poll(0.01)
                    continue
                self.send(one(self._services[count % len(self._services)]))
                count += 1
        except BaseException as problem:  # raised again when it is finished
            self._problem = problem

    def check(
        self, platform: Platform, content: Callable[[Record], object] = lambda record: record.value,
        put_aside: frozenset[bytes] = frozenset(),
    ) -> None:
        """When everything has stopped: one answer to each command, and one thing for each answer.

        - content: what of a record is the same in each of its copies.
        - put_aside: for what reasons there may be dead letters."""
        results: dict[str, dict[str, Any]] = {}
        for id, command in self.sent.items():
            replies = {record.envelope["id"]: record for record in self.bus.collector.replies[id]}
            values = {(record.envelope["id"], content(record)) for record in self.bus.collector.replies[id]}
            finals = [record.data for record in replies.values() if record.data["status"] != "pending"]
            assert len(finals) == 1 and len(values) == len(replies) <= 2, (command, values)
            assert finals[0]["status"] == "succeeded", (command, finals)
            results[id] = finals[0]["result"]
        letters = [letter for letters in self.bus.collector.dead_letters.values() for letter in letters]
        assert {letter.header("dlq_reason") for letter in letters} <= put_aside, letters
        users = [results[id]["userId"] for id, one in self.sent.items() if one.service in ("link", "user")]
        found = [row[0] for row in platform.database.execute("SELECT user_id FROM persons")]
        assert sorted(found) == sorted(users), "a person for each answer, and no other"
        if "sync" in self._services:
            profiles = [int(results[id]["mpid"]) for id, one in self.sent.items() if one.service in ("sync", "verification")]
            found = [row[0] for row in platform.database.execute("SELECT mpid FROM profiles", service="sync")]
            assert sorted(found) == sorted(profiles), "a profile for each answer, and no other"
        if "verification" in self._services:
            found = dict(platform.database.execute("SELECT device_id, mpid FROM sessions", service="verification"))
            assert found == {
                one.subject: int(results[id]["mpid"]) for id, one in self.sent.items() if one.service == "verification"}
