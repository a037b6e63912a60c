# SPDX-License-Identifier: Apache-2.0
"""How long a large import takes, what it needs, and what others notice of it: IMPORT_PEOPLE=1000000 says how many users
and as many profiles. Left out without it. With PostgreSQL; IMPORT_KILLS (2) times the tool and a service are killed."""

import json
import os
import random
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service

PEOPLE = int(os.environ.get("IMPORT_PEOPLE", "0"))
pytestmark = [pytest.mark.alone, pytest.mark.slow, pytest.mark.skipif(not PEOPLE, reason="IMPORT_PEOPLE says how many")]
THEN = "2024-03-01T00:00:00Z"
# Each of so many has the next one's name.
TWIN = 1000


def write(path: Path) -> None:
    with path.open("w") as file:
        for number in range(PEOPLE):
            name = number if number % TWIN else number + 1
            file.write(
                f'{{"mpid":"{number + 1}","identities":{{"customerid":"c-{name}","email":"c-{name}@mail.example"}},'
                f'"firstSeen":"{THEN}","lastSeen":"{THEN}","devices":[{{"deviceId":"d-{number}","isCurrent":true,'
                f'"firstSeen":"{THEN}","lastSeen":"{THEN}"}}]}}\n')
        for number in range(PEOPLE):
            name = number if number % TWIN else number + 1
            file.write(
                f'{{"userId":"{number:024x}","externalId":"c-{name}","createdAt":"{THEN}","installs":[{{"installId":'
                f'"i-{number}","device":{{"kind":"phone","platform":"ios"}}}}]}}\n')


class Probe:
    """Another app's commands, ten a second to each service, and how long each takes to be answered."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        topic = f"{deployment.prefix}identity.replies.probe"
        deployment.broker.ensure([topic])
        self._reply_to = "identity.replies.probe"
        self._producer = Producer(deployment.broker.client(**{"linger.ms": 0}))
        self._consumer = Consumer(deployment.broker.client(**{"group.id": f"probe-{uuid.uuid4()}"}))
        self._consumer.assign([TopicPartition(topic, one, 0) for one in deployment.broker.partitions(topic)])
        # When each was sent, and how long it took.
        self.times: list[tuple[float, float]] = []
        self._sent: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _send(self, command: Command) -> None:
        command = command.but(attributes={"replyto": self._reply_to})
        value, headers = self._deployment.bus.signed(command)
        self._sent[command.id] = time.monotonic()
        self._producer.produce(self._deployment.bus.topic_of(command), value, command.key, headers=headers)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set() or self._sent:
            if time.monotonic() >= due and not self._stop.is_set():
                due += 0.1
                number = len(self.times)
                self._send(c.query(f"nobody-{number % 97}", app="other"))
                self._send(c.sync("search", f"probe-{number % 97}", {"email": f"{number % 97}@probe"}, app="linked"))
            self._producer.poll(0)
            # One alone comes back at once, and what waits for more would wait for the time's end.
            for message in self._consumer.consume(1, timeout=0.02):
                if message.error() is None:
                    start = self._sent.pop(json.loads(message.value() or b"")["data"]["commandId"], None)
                    if start is not None:
                        self.times.append((start, time.monotonic() - start))

    def close(self) -> list[tuple[float, float]]:
        self._stop.set()
        self._thread.join(60)
        self._consumer.close()
        return self.times


def told(what: str, times: list[float]) -> None:
    times = sorted(times)
    shares = {share: times[int(len(times) * share)] for share in (0.5, 0.99, 0.999)}
    print(f"{what}, {len(times)} answers: {', '.join(f'{k}: {v:.3f} s' for k, v in shares.items())}, longest {times[-1]:.3f} s")


def peak(pid: int) -> int:
    """The most memory that the process had, in MiB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def test_a_large_import(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("postgresql", services=("link", "sync", "user", "verification"))
    services: dict[str, Service] = {}
    for name in deployment.names:
        # One that is killed and started again at once goes on at once.
        services[name] = deployment.service(name, KAFKA_CONSUMER_GROUP_INSTANCE_ID="a").start()
    for service in services.values():
        service.wait_ready()
    path, progress, errors = (deployment.directory / name for name in ("people.jsonl", "progress", "refused.jsonl"))
    write(path)
    environment = clean_environment() | deployment.environment()
    environment.pop("DATABASE_URL", None)
    arguments = [
        binary("identitybus"), "import", path, "--app=demo", "--key-id=demo-import", "--json", f"--resume={progress}",
        f"--errors={errors}", *os.environ.get("IMPORT_OPTIONS", "").split()]
    kills, memory = int(os.environ.get("IMPORT_KILLS", "2")), dict.fromkeys(("tool", *services), 0)
    dice, probe, start = random.Random(11), Probe(deployment), time.monotonic()
    away: list[tuple[float, float]] = []
    while True:
        tool = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + (dice.uniform(5, 20) if kills else 3600)
        while tool.poll() is None and time.monotonic() < end:
            memory["tool"] = max(memory["tool"], peak(tool.pid))
            for name, service in services.items():
                memory[name] = max(memory[name], peak(service.process.pid))
            time.sleep(0.2)
        if tool.poll() is not None:
            break
        kills -= 1
        tool.kill()
        tool.communicate()
        victim = services[("link", "sync")[kills % 2]]
        killed = time.monotonic()
        victim.kill()
        victim.start().wait_ready()
        away.append((killed, time.monotonic()))
    took = time.monotonic() - start
    output, complaint = tool.communicate()
    times = probe.close()
    refused = len(range(0, PEOPLE, TWIN))
    print(f"\n{PEOPLE} users and {PEOPLE} profiles in {took:.0f} s: {2 * PEOPLE / took:.0f}/s; at most, in MiB: {memory}")
    told("other apps", [took for _, took in times])
    told("other apps while no service was away", [
        took for sent, took in times if not any(began <= sent + took and sent <= ended for began, ended in away)])
    assert tool.returncode == 3, complaint
    counts = {"created": PEOPLE - refused, "same": 0, "changed": 0, "refused": refused}
    assert json.loads(output) == {"users": counts, "profiles": counts}
    lines = [json.loads(line) for line in errors.read_text().splitlines()]
    assert len({line.get("userId", line.get("mpid")) for line in lines}) == len(lines) == 2 * refused
    for service, table in (("link", "persons"), ("link", "installs"), ("sync", "profiles"), ("sync", "devices")):
        [(count,)] = deployment.database.execute(f"SELECT count(*) FROM {table} WHERE app = 'demo'", service=service)
        assert count == PEOPLE - refused, (table, count)
