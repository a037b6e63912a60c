# SPDX-License-Identifier: Apache-2.0
"""Keeps a store of the user service as the version of today writes it, and what it was asked and answered, for
`test_migration.py`: later versions must go on with it. Run it with the executables of the version to keep, before a
migration lands:

    IDENTITYBUS_BIN=... python stores/keep.py NAME
"""

import base64
import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET
from identitybus_testkit.broker import Broker
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database, PostgreSQL, PostgresServer, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.secrets import Headers
from identitybus_testkit.standin import StandIn
from identitybus_testkit.waiting import until
from test_asked_again import as_link

# Stands in the store: in the names of topics.
PREFIX = "kept."


def text(part: bytes | None) -> str | None:
    return None if part is None else base64.b64encode(part).decode()


class Keeper:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.asked: list[dict[str, Any]] = []

    def send(self, *commands: Command) -> None:
        for command in commands:
            value, headers = self.bus.signed(command)
            self.note(command.id, value, headers, command.key)
        self.bus.send_all(list(commands))

    def note(self, id: str, value: bytes, headers: Headers, key: bytes) -> None:
        self.asked.append({
            "id": id, "value": text(value), "key": text(key),
            "headers": [[name, text(content)] for name, content in headers]})

    def told(self) -> None:
        """Adds the reply to each, the first final one if there is one, and the ids of its events."""
        self.bus.collector.catch_up()
        for one in self.asked:
            replies, events = self.bus.collector.replies[one["id"]], self.bus.collector.events[one["id"]]
            finals = [reply for reply in replies if reply.data["status"] != "pending"]
            one["reply"] = text((finals or replies)[0].value) if replies else None
            one["events"] = [event.envelope["id"] for event in events]


def dump(database: Database, path: Path) -> None:
    if isinstance(database, SQLite):
        with closing(sqlite3.connect(database.directory / "user.sqlite")) as connection:
            lines = list(connection.iterdump())
    else:
        assert isinstance(database, PostgreSQL)
        program = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))[-1]
        text = subprocess.run(
            [program, "--no-owner", "--inserts", "--schema=identity_user", database.url], check=True,
            capture_output=True, text=True).stdout
        lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\"))]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def keep(name: str, engine: str, broker: Broker, database: Database, folder: Path) -> None:
    deployment = Deployment(broker, folder, database, PREFIX, ("user", "link"))
    bus, keeper = deployment.bus, Keeper(deployment.bus)
    # The link service answers, but for some installs.
    link = StandIn(
        broker, PREFIX, "link",
        lambda command: [] if command["data"]["installId"].startswith("silent") else [as_link(command)])
    sync = StandIn(broker, PREFIX, "sync", lambda command: [])
    service = deployment.service("user").start().wait_ready()

    def create(kind: str = "install") -> Command:
        return c.create(fresh(kind), appSecret=APP_SECRET, linking="none")

    answered = [c.request_code(fresh("ext")) for _ in range(4)] + [create(), create(), c.get(fresh("nobody"))]
    keeper.send(*answered)
    for command in answered:
        bus.final(command.id)
    # Refused, repeated, under an id that is taken, tried, and not to be read: rows without a command's id.
    bus.ask(c.request_code(fresh("ext"), signer="demo-sdk"))
    bus.send(answered[0])
    bus.reply_records(answered[0].id, 2)
    bus.ask(answered[1].but(data={"externalId": fresh("ext")}))
    bus.ask(c.request_code(fresh("ext")).but(attributes={"dryrun": "true"}))
    bus.dead_letter(bus.put(b"not a command", [], key=b"k"))
    silent = [create("silent"), create("silent")]
    keeper.send(*silent)
    for command in silent:
        assert bus.reply(command.id)["status"] == "pending"
    keeper.told()
    assert service.stop() == 0

    # What is decided from here on never leaves the producer.
    service = deployment.service("user", KAFKA_PRODUCER_LINGER_MS="100000").start().wait_ready()
    owed = [c.request_code(fresh("ext")) for _ in range(3)] + [create(), create("silent")]
    count = database.execute("SELECT COUNT(*) FROM journal", service="user")[0][0]
    before = len(keeper.asked)
    keeper.send(*owed)
    bus.put(b"not a command either", [], key=b"k")
    until(
        lambda: database.execute("SELECT COUNT(*) FROM journal", service="user")[0][0] >= count + 6, 30,
        "what is owed is decided")
    time.sleep(2)
    service.kill()
    bus.collector.catch_up()
    assert not any(bus.collector.replies[command.id] for command in owed), "published after all"
    for one in keeper.asked[before:]:
        one["reply"], one["events"] = None, []

    target = Path(__file__).parent / f"{name}-{engine}"
    dump(database, target.with_suffix(".sql.gz"))
    target.with_suffix(".json").write_text(json.dumps(keeper.asked, indent=1) + "\n")
    for stand_in in (link, sync):
        stand_in.close()
    deployment.close()


def main(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="identitybus-keep-") as folder:
        directory = Path(folder)
        directory.chmod(0o755)
        postgres = PostgresServer.for_tests(directory / "postgres")
        for engine in ("sqlite", "postgresql"):
            broker = Broker.embedded(directory / f"broker-{engine}", PREFIX)
            (directory / engine).mkdir()
            database = SQLite(directory / "store") if engine == "sqlite" else postgres.new_database()
            keep(name, engine, broker, database, directory / engine)
            broker.close()
        postgres.close()


if __name__ == "__main__":
    main(sys.argv[1])
