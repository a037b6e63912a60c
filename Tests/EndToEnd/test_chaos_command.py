# SPDX-License-Identifier: Apache-2.0
"""`identitybus chaos`: short runs. What its judge can find is shown by Tests/ChaosTests/ChaosJudgeTests.swift."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Callable, Iterator

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from identitybus_testkit.broker import Broker
from identitybus_testkit.databases import PostgreSQL, PostgresServer
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.waiting import until

SHORT = ("--minutes", "0.2", "--rate", "20", "--settle", "60")


class Chaos:
    """A run that goes on beside the test."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        folder.mkdir(exist_ok=True)
        self.report = folder / "report.json"
        self.output = folder / "output.txt"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [binary("identitybus"), "chaos", *arguments, "--report", self.report],
                env=clean_environment() | environment, stdout=file, stderr=file)

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait(self) -> int:
        until(lambda: self.process.poll() is not None, 240, lambda: self.text)
        return self.process.returncode

    def name(self) -> str:
        """Of the topics, without the last dot."""
        found = until(lambda: re.search(r"topics (identitybus-chaos-[0-9a-f]+)\.\*", self.text), 60, lambda: self.text)
        return found[1]

    def until_it_works(self) -> None:
        until(lambda: "commands a second" in self.text, 120, lambda: self.text)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Chaos]]:
    runs: list[Chaos] = []

    def start(environment: dict[str, str], *arguments: str) -> Chaos:
        runs.append(Chaos(tmp_path / f"run-{len(runs)}", environment, *arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()


@pytest.fixture
def database(postgres: PostgresServer) -> PostgreSQL:
    return postgres.new_database()


def on(broker: Broker, database: PostgreSQL) -> dict[str, str]:
    """The services' own embedded broker makes no topics for others: with it, chaos has one of its own."""
    return database.environment() | ({} if broker.is_embedded else broker.service_environment())


def leaves_nothing(name: str, broker: Broker, database: PostgreSQL) -> None:
    with psycopg.connect(database.url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%chaos%'").fetchall()
    assert rows == []
    if not broker.is_embedded:
        admin = AdminClient(broker.client())
        # A broker deletes a topic some time after it was asked to.
        topics = lambda: [topic for topic in admin.list_topics(timeout=10).topics if topic.startswith(name)]
        until(lambda: not topics(), 10, lambda: f"no topic of {name}: {topics()}")
        groups = admin.list_consumer_groups().result(10).valid
        assert not [group.group_id for group in groups if group.group_id.startswith(name)]


def test_chaos_command_passes_and_leaves_nothing(
    start: Callable[..., Chaos], broker: Broker, database: PostgreSQL
) -> None:
    run = start(on(broker, database), *SHORT, "--seed", "1")
    assert run.wait() == 0, run.text
    assert "PASSED: " in run.text and "nothing lost, nothing doubled" in run.text
    report = json.loads(run.report.read_text())
    assert report["verdict"] == "PASSED" and report["findings"] == [] and report["settings"]["seed"] == 1
    assert report["commands"] > 100 and report["injuries"] and report["outcomes"]["ID_REUSED"] > 0
    assert report["copiesSent"] > report["commands"]
    assert str(database.environment()["DATABASE_URL"]) not in run.text + run.report.read_text()
    leaves_nothing(run.name(), broker, database)


def test_chaos_command_finds_what_is_broken(
    start: Callable[..., Chaos], broker: Broker, database: PostgreSQL
) -> None:
    short = ("--minutes", "0.25", "--rate", "20", "--settle", "10")
    robbed = start(on(broker, database), *short)
    robbed.until_it_works()
    table = robbed.name().replace("-", "_") + "_link.installs"
    with psycopg.connect(database.url, autocommit=True) as connection:
        count = f"SELECT count(*) FROM {table}"
        until(lambda: connection.execute(count).fetchone()[0] > 20, 60, "installs")  # type: ignore
        connection.execute(f"DELETE FROM {table}")  # type: ignore[arg-type]

    # On SQLite and, if nobody names a broker, an embedded one. Nothing is late in it: it has time for all answers.
    fooled = start({} if broker.is_embedded else broker.service_environment(), *short[:-1], "60")
    fooled.until_it_works()
    servers = re.search(r"broker at ([\d.:]+)", fooled.text) if broker.is_embedded else None
    producer = Producer({"bootstrap.servers": servers[1]} if servers else broker.client())
    producer.produce(f"{fooled.name()}.identity.link.events.v1", b'{"type": "planted"}')
    assert producer.flush(30) == 0

    assert robbed.wait() == 3, robbed.text
    assert "FAILED: " in robbed.text and "INSTALL_NOT_FOUND" in robbed.text
    report = json.loads(robbed.report.read_text())
    assert report["verdict"] == "FAILED"
    assert "UNEXPECTED_ANSWER" in {finding["kind"] for finding in report["findings"]}
    leaves_nothing(robbed.name(), broker, database)

    assert fooled.wait() == 3, fooled.text
    kinds = {finding["kind"] for finding in json.loads(fooled.report.read_text())["findings"]}
    # Those who read the events of link set it aside.
    assert "NOT_SIGNED_BY_A_SERVICE" in kinds and kinds <= {"NOT_SIGNED_BY_A_SERVICE", "DEAD_LETTER"}, fooled.text


NO_START = [
    ({"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, 69, "Kafka at 127.0.0.1:1 cannot be reached: connection refused"),
    ({"DATABASE_URL": "postgresql://nobody:a-password@127.0.0.1:1/none"}, 69, "PostgreSQL cannot be used"),
    ({"DATABASE_URL": "mysql://x"}, 78, "DATABASE_URL"),
]


def test_chaos_command_without_a_verdict_leaves_nothing(
    start: Callable[..., Chaos], broker: Broker, database: PostgreSQL
) -> None:
    interrupted = start(on(broker, database), "--minutes", "5")
    for run, status, named in [(start(environment), status, named) for environment, status, named in NO_START]:
        assert run.wait() == status, run.text
        lines = run.text.splitlines()
        assert lines[0].startswith("identitybus: cannot start: ") and named in lines[0] and len(lines) <= 2, run.text
        assert "a-password" not in run.text, run.text
    interrupted.until_it_works()
    interrupted.process.send_signal(signal.SIGINT)
    assert interrupted.wait() == 130, interrupted.text
    assert "no verdict: interrupted" in interrupted.text
    leaves_nothing(interrupted.name(), broker, database)
