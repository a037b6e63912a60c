# SPDX-License-Identifier: Apache-2.0
"""What operations.md says of lag, metrics, log lines and `identitybus up`."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.service import Service
from identitybus_testkit.up import Up, tool
from identitybus_testkit.waiting import until


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


# Lag


# How long commands wait, and how many come in a second.
WAITED = float(os.environ.get("E2E_LAG_SECONDS") or 8)
RATE = 10
# Offsets are committed once a second.
COMMITTED = 1.5


class Group:
    """The commands' consumer group, as tools that measure lag see it."""

    def __init__(self, deployment: Deployment) -> None:
        self.topic = f"{deployment.prefix}identity.link.commands.v1"
        self.partitions = deployment.broker.partitions(self.topic)
        self._client = Consumer(deployment.broker.client(**{"group.id": f"{deployment.prefix}identity.link"}))

    def committed(self) -> list[int]:
        """Of each partition; -1001 where there is none."""
        places = [TopicPartition(self.topic, partition) for partition in self.partitions]
        return [place.offset for place in self._client.committed(places, timeout=10)]

    def lag(self) -> int:
        ends = [
            self._client.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=10)[1]
            for partition in self.partitions]
        return sum(end - max(0, offset) for end, offset in zip(ends, self.committed()))

    def close(self) -> None:
        self._client.close()


def committed_after(deployment: Deployment, group: Group) -> float:
    """How long after what was decided the group's offsets, which KEDA sees, say so too."""
    assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
    rows = deployment.database.execute("SELECT partition, next_offset FROM progress WHERE topic = ?", [group.topic])
    decided, began = dict(rows), time.monotonic()

    def is_committed() -> bool:
        return all(offset >= decided[partition] for partition, offset in zip(group.partitions, group.committed()))

    until(is_committed, COMMITTED, lambda: f"{decided} to be committed; {group.committed()} are", 0.01)
    return time.monotonic() - began


def test_operate_lag_is_what_is_not_decided(server: PostgresServer, make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment(database=server.new_database())
    service = deployment.service().start().wait_ready()
    group = Group(deployment)
    until(lambda: min(group.committed()) >= 0, 10, lambda: f"a committed offset everywhere: {group.committed()}")
    behind = [committed_after(deployment, group) for _ in range(20)]
    until(lambda: service.metric("kafka_consumer_lag") == 0 and group.lag() == 0, 10, "nothing waits")
    server.crash()
    until(lambda: not service.is_ready, 20, "the outage")
    sent, waiting = time.time(), []
    while time.time() < sent + WAITED:
        waiting.append(c.register(fresh("install")))
        deployment.bus.send(waiting[-1])
        time.sleep(max(0.0, sent + len(waiting) / RATE - time.time()))
    age, passed = service.metric("identity_oldest_undecided_seconds"), time.time() - sent
    assert passed - 4 < age < passed + 1, (age, passed)
    count = len(waiting)
    until(
        lambda: service.metric("kafka_consumer_lag") == count == group.lag(), 10,
        lambda: f"{service.metric('kafka_consumer_lag')} and {group.lag()}, not {count}")
    print(f"{count} in {passed:.0f} s, the oldest {age:.1f} s old; committed {max(behind):.2f} s after it was decided, at most")
    server.start_again()
    until(lambda: service.is_ready, 20, service.tail)
    until(
        lambda: service.metric("kafka_consumer_lag") == 0 == service.metric("identity_oldest_undecided_seconds"), 10,
        lambda: str(service.metric("kafka_consumer_lag")))
    until(lambda: group.lag() == 0, 5, "the group's offsets")
    for command in waiting:
        assert deployment.bus.reply(command.id, timeout=20)["status"] == "succeeded"
    [line] = until(lambda: service.lines('"event":"database.up"'), 10, service.tail)
    # And what it catches up on, unless that is done when somebody looks.
    assert "well again after" in line
    until(lambda: service.lines('"event":"service.caught-up"'), 10, service.tail)
    group.close()


# Metrics and lines


def test_operate_dead_letters_are_counted(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite")
    service = deployment.service().start().wait_ready()
    metric = service.metric
    until(lambda: 'identity_dead_letters{service="link"} 0\n' in service.get("/metrics")[1], 15, service.tail)
    assert metric("identity_oldest_dead_letter_seconds") == 0
    sent = time.time()
    for _ in range(3):
        deployment.bus.put(b"no envelope", [], b"a key")
    until(lambda: metric("identity_dead_letters") == 3, 15, lambda: str(metric("identity_dead_letters")))
    until(lambda: metric("identity_oldest_dead_letter_seconds") > 2, 20, lambda: service.get("/metrics")[1])
    assert metric("identity_oldest_dead_letter_seconds") < time.time() - sent + 1


def promtool() -> str | None:
    return shutil.which("promtool")


@pytest.fixture(scope="module")
def everybody(make_deployment: Callable[..., Deployment]) -> list[Service]:
    """One of each program, which has done something."""
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    services = [deployment.process(name).start() for name in ("link", "user", "sync", "verification")]
    gateway = deployment.gateway().start()
    for service in (*services, gateway):
        service.wait_ready()
    deployment.bus.ask(c.register(fresh("install")))
    until(lambda: services[0].metric("kafka_broker_round_trip_seconds") > 0, 20, "statistics")
    return [*services, gateway]


def test_operate_metrics_are_few_and_name_nobody(everybody: list[Service]) -> None:
    for service in everybody:
        text = service.get("/metrics")[1]
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        assert len(samples) <= 1000, service.name
        names = {re.split(r"[{ ]", sample)[0] for sample in samples}
        for name in names:
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert f"# HELP {family} " in text or f"# HELP {name} " in text, name
        assert f'identity_ready{{service="{service.name}"}} 1\n' in text
        assert re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}", re.sub(r'"\S*e2e-\S*"', "", text)) is None


@pytest.mark.skipif(promtool() is None, reason="promtool is not there (Debian: prometheus)")
def test_operate_promtool_finds_nothing(everybody: list[Service]) -> None:
    for service in everybody:
        text = service.get("/metrics")[1]
        answer = subprocess.run(
            [promtool() or "", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        assert (answer.stdout, answer.stderr) == ("", ""), service.name


def test_operate_every_line_has_a_name(everybody: list[Service]) -> None:
    for service in everybody:
        for line in service.text.splitlines():
            entry = json.loads(line)
            assert re.fullmatch(r"[a-z-]+(\.[a-z-]+)?", entry["event"]), line
    [start] = everybody[0].lines('"event":"service.start"')
    fields = json.loads(start)["fields"]
    assert isinstance(fields["schema"], int) and fields["brokers"] == 1 and fields["version"]
    assert {"database_version", "librdkafka", "cluster", "replicas", "process"} <= set(fields)
    assert all(service.lines('"event":"service.ready"') for service in everybody)


def test_operate_readyz_lists_its_checks_also_when_all_is_well(everybody: list[Service]) -> None:
    for service in everybody:
        status, text = service.get("/readyz")
        report = json.loads(text)
        assert (status, report["status"]) == (200, "ok")
        assert report["checks"] and all(check["ok"] and "since" not in check for check in report["checks"])


def test_operate_text_lines_have_date_and_zone(make_deployment: Callable[..., Deployment]) -> None:
    service = make_deployment().service(LOG_FORMAT="text", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").start()
    until(lambda: "broker.down" in service.text, 20, service.tail)
    [line] = service.lines("broker.down")
    assert re.match(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING identitybus\.link broker\.down: Kafka at 127\.0\.0\.1:1: "
        "connection refused", line), line
    service.kill()


def test_operate_a_port_that_is_taken_ends_the_start_with_one_line(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        service = deployment.service(HTTP_PORT=str(port)).start()
        assert service.wait(20) == 78
    told = [line for line in service.log.read_text().splitlines() if '"level":"info"' not in line]
    problems = [line for line in told if '"level":"notice"' not in line]
    assert problems == [
        f"identitybus-link: HTTP_PORT: 127.0.0.1:{port} cannot be listened on: address already in use; "
        "choose another address or port"], problems


# `identitybus up`


@pytest.fixture
def apps_file(directory: Path) -> Path:
    path = directory / f"apps-{uuid.uuid4().hex[:8]}.yaml"
    apps.write(path, apps.apps())
    return path


def test_operate_a_second_up_in_the_same_folder(directory: Path, apps_file: Path) -> None:
    up = Up(directory / f"up-{uuid.uuid4().hex[:8]}", apps_file, f"e2e-{uuid.uuid4().hex[:8]}.").start()
    try:
        up.wait_ready()
        before = {path: path.read_bytes() for path in up.data.iterdir() if path.is_file() and "sqlite" not in path.name}
        started = time.monotonic()
        second = tool("up", "--data-dir", up.data, environment=up.environment)
        assert (second.returncode, second.stdout) == (64, "")
        assert time.monotonic() - started < 5
        assert second.stderr.startswith(f"identitybus: identitybus up is running already in {up.data} (pid {up.process.pid}, since 20")
        assert second.stderr.splitlines()[1:] == ["             Stop it, or choose another --data-dir."], second.stderr
        after = {path: path.read_bytes() for path in up.data.iterdir() if path.is_file() and "sqlite" not in path.name}
        assert after == before
        sent = tool(
            "send", "link.query", "--app", "demo", "--key-id", "internal", "--data", '{"installId":"i"}', "--wait", "10",
            "--data-dir", up.data, environment=up.environment)
        assert "INSTALL_NOT_FOUND" in sent.stdout, sent
        assert up.stop() == 0
    finally:
        up.close()


def test_operate_up_says_what_it_waits_for_and_why_a_child_ended(directory: Path, apps_file: Path) -> None:
    up = Up(directory / f"up-{uuid.uuid4().hex[:8]}", apps_file, f"e2e-{uuid.uuid4().hex[:8]}.")
    up.environment["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:1"
    up.start()
    try:
        until(
            lambda: re.search(r"^waiting .*link.*: broker: Kafka at 127\.0\.0\.1:1: connection refused \(\d+ s\)", up.text, re.M),
            30, lambda: up.text)
        assert up.stop() == 0
    finally:
        up.close()


def test_operate_up_names_a_folder_that_cannot_be_made(apps_file: Path) -> None:
    answer = tool("up", "--data-dir", "/proc/nope", environment={"IDENTITYBUS_APPS": str(apps_file)})
    assert answer.returncode == 78
    assert answer.stderr.startswith("identitybus: /proc/nope cannot be made: no such file or directory."), answer.stderr
