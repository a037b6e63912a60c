# SPDX-License-Identifier: Apache-2.0
"""A change of `caseInsensitiveIdentities`: refused while values are stored otherwise, and `identitybus rekey`."""

import hashlib
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import change, fresh
from identitybus_testkit.databases import PostgreSQL, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until


class Shop:
    """The sync service with the app `shop`, whose e-mails are compared with or without case."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.bus = deployment, deployment.bus
        self.write("with")

    def write(self, case: str, file: Path | None = None) -> None:
        ignored = {"with": [], "without": ["email"]}[case]
        shop = apps.sync_app("shop", {**apps.worked("conversion"), "caseInsensitiveIdentities": ignored})
        apps.write(file or self.deployment.apps_file, [shop])

    def start(self, **more: str) -> Service:
        return self.deployment.service(**more).start().wait_ready()

    def login(self, email: str) -> str:
        answer = self.bus.ask(c.sync("login", fresh("device"), {"email": email}, "shop"))
        assert answer["status"] == "succeeded", answer
        return answer["result"]["mpid"]

    def finds(self, email: str) -> str | None:
        answer = self.bus.ask(c.sync("search", fresh("device"), {"email": email}, "shop"))
        return answer["result"]["mpid"] if answer["status"] == "succeeded" else None

    def command(self, *more: str) -> tuple[list[str | Path], dict[str, str]]:
        environment = clean_environment() | self.deployment.database.environment()
        environment["IDENTITYBUS_APPS"] = str(self.deployment.apps_file)
        folder = environment.pop("DATA_DIR", "/nowhere")
        return [binary("identitybus"), "rekey", f"--data-dir={folder}", "--app=shop", *more], environment

    def rekey(self, *more: str) -> subprocess.CompletedProcess[str]:
        command, environment = self.command(*more)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def refused_start(self) -> str:
        """What it says when it ends by itself, on one line."""
        service = self.deployment.service().start()
        assert service.wait(60) == 78, service.tail()
        [line] = [line for line in service.text.splitlines() if not line.startswith("{")]
        return line


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def shop(engine: str, make_deployment: Callable[..., Deployment]) -> Iterator[Shop]:
    shop = Shop(make_deployment(engine, services=("sync", "link")))
    yield shop
    for service in shop.deployment.services:
        service.kill()


@pytest.mark.slow
def test_a_change_is_refused_until_the_values_are_rekeyed(shop: Shop) -> None:
    """S108, S111, S113."""
    service = shop.start()
    name = fresh("Ann")
    mpid = shop.login(f"{name}@X.example")
    shop.write("without")
    until(
        lambda: service.lines("apps file refused", "email with its case", "identitybus rekey --app shop"), 20,
        lambda: f"the refusal\n{service.tail()}")
    assert shop.login(f"{name}@X.example") == mpid
    assert shop.finds(f"{name}@x.example") is None, "the file before is in force"

    beside = shop.rekey()
    assert beside.returncode == 64 and "top" in beside.stderr and len(beside.stderr.splitlines()) <= 4, beside
    look = shop.rekey("--dry-run")
    assert look.returncode == 0, look
    assert look.stdout.splitlines() == [
        "email: 1 value, stored with case, to be stored without", "dry run: nothing was written"]

    assert service.stop() == 0
    line = shop.refused_start()
    assert str(shop.deployment.apps_file) in line and "identitybus rekey --app shop" in line, line
    done = shop.rekey()
    assert done.returncode == 0 and done.stdout.endswith("done: 1 value of email got another key\n"), done
    again = shop.rekey()
    assert again.returncode == 0 and again.stdout.startswith("nothing to do"), again
    service = shop.start()
    assert shop.login(f"{name.upper()}@x.EXAMPLE") == mpid and shop.login(f"{name}@X.example") == mpid

    shop.write("with")
    until(lambda: service.lines("apps file refused", "email without its case"), 20, "the refusal of the way back")
    assert service.stop() == 0
    assert shop.rekey().returncode == 0
    shop.start()
    assert shop.finds(f"{name}@X.example") == mpid and shop.finds(f"{name}@x.example") is None


@pytest.mark.slow
def test_values_that_would_meet_are_listed_and_nothing_is_written(shop: Shop) -> None:
    """S112."""
    service = shop.start()
    name = fresh("Bob")
    first, second = shop.login(f"{name}@x.example"), shop.login(f"{name}@X.example")
    assert first != second
    shop.write("without")
    beside = shop.rekey("--dry-run")
    assert beside.returncode == 3 and first in beside.stdout and second in beside.stdout, beside
    assert service.stop() == 0
    answer = shop.rekey()
    assert answer.returncode == 3 and first in answer.stdout and second in answer.stdout, answer
    assert "nothing was written" in answer.stdout and name not in answer.stdout + answer.stderr, answer
    shown = shop.rekey("--show-values")
    assert f"{name}@X.example: {second} | {name}@x.example: {first}" in shown.stdout, shown
    shop.write("with")
    service = shop.start()
    assert shop.finds(f"{name}@x.example") == first and shop.finds(f"{name}@X.example") == second
    taken = shop.bus.ask(c.modify(second, change("email", f"{name}@X.example", None), app="shop"))
    assert taken["status"] == "succeeded", taken
    assert service.stop() == 0
    shop.write("without")
    assert shop.rekey().returncode == 0
    shop.start()
    assert shop.finds(f"{name}@X.EXAMPLE") == first


@pytest.mark.slow
def test_an_app_without_values_changes_freely(shop: Shop) -> None:
    """S108."""
    service = shop.start()
    shop.write("without")
    until(lambda: service.lines("apps file reloaded"), 20, lambda: f"the new file\n{service.tail()}")
    name = fresh("Cid")
    assert shop.login(f"{name}@x.example") == shop.login(f"{name.upper()}@X.example")
    assert not service.lines("apps file refused")


def keys(shop: Shop) -> set[str]:
    """The values, each of them under its own key."""
    found = shop.deployment.database.execute(
        "SELECT value, value_key FROM identities WHERE app = 'shop'", service="sync")
    assert all(hashlib.sha256(value.encode()).digest() == bytes(key) for value, key in found)
    return {value for value, _ in found}


def fill(shop: Shop, values: list[str]) -> None:
    rows = [(value, hashlib.sha256(value.encode()).digest(), str(n + 1)) for n, value in enumerate(values)]
    insert = "INSERT INTO identities (app, type, value, value_key, holders, is_told) VALUES ('shop', 'email', ?, ?, ?, 0)"
    database: Any = shop.deployment.database
    if isinstance(database, SQLite):
        with closing(sqlite3.connect(database.directory / "sync.sqlite")) as connection, connection:
            connection.executemany(insert, rows)
    else:
        import psycopg

        assert isinstance(database, PostgreSQL)
        with psycopg.connect(database.url, options="-c search_path=identity_sync") as connection:
            connection.cursor().executemany(insert.replace("?", "%s"), rows)


@pytest.mark.slow
def test_a_rekey_that_is_killed_has_done_nothing_or_all(shop: Shop, engine: str) -> None:
    """S111."""
    assert shop.start().stop() == 0
    values = [f"User-{n}@x.example" for n in range(20_000)]
    fill(shop, values)
    shop.write("without")
    old, new = set(values), {value.lower() for value in values}
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moment, killed = random.Random(seed), 0
    for _ in range(8):
        command, environment = shop.command()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment.uniform(0.05, 1.5))
        process.kill()
        killed += process.wait() != 0
        # A server ends the session of a client that is gone a moment later.
        until(lambda: engine == "sqlite" or not sessions(shop), 30, "the end of the session")
        assert keys(shop) in (old, new)
    print(f"{killed} were killed in time")
    answer = shop.rekey()
    assert answer.returncode == 0, answer
    assert keys(shop) == new


def sessions(shop: Shop) -> list[Any]:
    return shop.deployment.database.execute(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", service="sync")


@pytest.mark.slow
def test_replicas_with_two_files_store_nothing_under_both(make_deployment: Callable[..., Deployment]) -> None:
    """S110: the one with the older file takes up the newer one when it has it, and ends when it has not."""
    shop = Shop(make_deployment("postgresql", services=("sync", "link")))
    theirs, mine = shop.deployment.directory / "theirs.yaml", shop.deployment.directory / "mine.yaml"
    shop.write("with", theirs)
    shop.write("with", mine)
    first = shop.start(IDENTITYBUS_APPS=str(theirs))
    follower = shop.start(IDENTITYBUS_APPS=str(mine))
    shop.write("without", mine)
    until(lambda: follower.lines("apps file reloaded"), 20, lambda: f"the new file\n{follower.tail()}")
    ended = until(lambda: not first.is_running or not shop.bus.ask(
        c.sync("search", fresh("device"), {"email": "nobody@x.example"}, "shop")), 60, "the end of the other one")
    assert ended and first.wait(30) == 78, first.tail()
    [line] = [line for line in first.text.splitlines() if not line.startswith("{")]
    assert "give all replicas one file" in line and str(theirs) in line, line
    name = fresh("Dan")
    mpid = shop.login(f"{name}@x.example")
    assert shop.login(f"{name.upper()}@x.example") == mpid
    assert follower.is_running
    first.start()
    assert first.wait(60) == 78, first.tail()
    assert "identitybus rekey --app shop" in first.text
    shop.write("without", theirs)
    first.start().wait_ready()
