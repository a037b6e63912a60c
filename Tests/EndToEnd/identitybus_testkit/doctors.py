# SPDX-License-Identifier: Apache-2.0
"""What `identitybus doctor` finds, and what is there to be left as it is."""

import functools
import json
import re
import shutil
import sqlite3
import subprocess
import time
import uuid
from contextlib import closing as ending
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from .deployment import Deployment
from .secrets import leaks
from .service import Service
from .up import tool
from .waiting import until

LONGEST = 30.0


class Report(NamedTuple):
    status: int
    findings: list[dict[str, Any]]
    seconds: float
    text: str

    def ids(self, level: str) -> set[str]:
        return {finding["id"] for finding in self.findings if finding["level"] == level}

    def of(self, id: str) -> dict[str, Any]:
        return next(finding for finding in self.findings if finding["id"] == id)


@functools.cache
def causes() -> dict[str, list[str]]:
    """By check: what the program says it may name."""
    lines = [json.loads(line) for line in tool("doctor", "--checks", "--json", environment={}).stdout.splitlines()]
    return {line["id"]: line["causes"] for line in lines}


def doctor(environment: dict[str, str], *options: str) -> Report:
    started = time.monotonic()
    answer = tool("doctor", "--json", *options, environment=environment)
    seconds = time.monotonic() - started
    assert not leaks((answer.stdout + answer.stderr).encode())
    assert answer.returncode in (0, 3), answer
    known = causes()
    findings = [json.loads(line) for line in answer.stdout.splitlines()]
    for finding in findings:
        assert {"id", "level", "subject", "message", "fix", "ms"} <= set(finding), finding
        assert finding["level"] in ("ok", "warn", "fail", "skip") and finding["message"], finding
        assert finding.get("cause") in (None, *known[finding["id"]]), finding
        assert finding["level"] != "fail" or finding["fix"] or finding["id"].endswith(".version"), finding
    return Report(answer.returncode, findings, seconds, answer.stdout)


def tells_no_secret(service: Service) -> None:
    """Neither it, nor `doctor` with its settings. What it answers is looked through whenever it is asked."""
    service.get("/readyz")
    service.get("/metrics")
    assert not leaks(service.log.read_bytes()), service.tail()
    doctor(service.environment, "--as", service.name)


def is_defect(report: Report, id: str, cause: str | None = None, *words: str) -> None:
    """Exactly this one fails."""
    assert report.ids("fail") == {id}, report.text
    assert report.status == 3 and report.seconds < LONGEST, report
    finding = next(one for one in report.findings if one["id"] == id and one["level"] == "fail")
    assert finding.get("cause") == cause or cause is None, finding
    for word in words:
        assert re.search(word, finding["message"]), f"{word} is missing in {finding}"


def is_sound(report: Report) -> None:
    assert report.status == 0 and not report.ids("fail") and report.seconds < LONGEST, report.text


# What is there


def sight(deployment: Deployment, groups: tuple[str, ...] = ("identity.link", "identity.link.replies")) -> dict[str, object]:
    """The topics with the ends of their partitions, and what groups have committed."""
    client = deployment.broker.client()
    admin = AdminClient(client)
    known = {
        name: len(topic.partitions) for name, topic in admin.list_topics(timeout=30).topics.items()
        if name.startswith(deployment.prefix)}
    places = [TopicPartition(name, number) for name, count in sorted(known.items()) for number in range(count)]
    seen: dict[str, object] = {"topics": known}
    for group in groups:
        consumer = Consumer({**client, "group.id": deployment.prefix + group})
        try:
            if group == groups[0]:
                seen["ends"] = [ends(consumer, place) for place in places]
            seen[group] = [place.offset for place in consumer.committed(places, timeout=30)]
        finally:
            consumer.close()
    return seen


def ends(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Where a partition begins and ends. Apache Kafka tells who leads a new one before that broker has made it."""
    found: list[tuple[int, int]] = []

    def look() -> bool:
        try:
            found.append(consumer.get_watermark_offsets(place, timeout=30))
        except KafkaException:
            return False
        return True

    until(look, 30, f"the ends of {place.topic}")
    return found[0]


def rows(url: str) -> dict[str, object]:
    """All rows of all schemas, and who may do what."""
    with psycopg.connect(url, options="-c default_transaction_read_only=on") as connection:
        tables = connection.execute(
            """SELECT n.nspname, c.relname, c.relacl::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
               WHERE relkind = 'r' AND nspname !~ '^(pg_|information_schema)' ORDER BY 1, 2""").fetchall()
        schemas = connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()
        return {"schemas": schemas} | {
            f"{schema}.{table}": (rights, sorted(map(str, connection.execute(
                f'SELECT * FROM "{schema}"."{table}"').fetchall())))  # type: ignore[arg-type]
            for schema, table, rights in tables}


def sqlite_rows(folder: Path) -> dict[str, object]:
    seen: dict[str, object] = {}
    for file in sorted(folder.glob("*.sqlite")):
        with ending(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                seen[f"{file.name} {table}"] = sorted(map(str, connection.execute(f'SELECT * FROM "{table}"').fetchall()))
    return seen


def late_clock(directory: Path) -> Path:
    """A library that sets the clock of a program back by a minute."""
    source = directory / f"late-{uuid.uuid4().hex[:8]}.c"
    source.write_text("""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <time.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            if (clock == CLOCK_REALTIME) time->tv_sec -= 60;
            return result;
        }""")
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = source.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library
