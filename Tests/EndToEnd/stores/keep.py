# SPDX-License-Identifier: Apache-2.0
"""Keeps the stores of all services as this version writes them, and what it was asked and answered, for
`test_migration.py`: later versions must go on with them. To be run with the change that brings a migration, with the
executables and the test kit of the version to keep:

    IDENTITYBUS_BIN=... python stores/keep.py NAME
"""

import base64
import hashlib
import hmac
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from identitybus_testkit import apps, verification
from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import TABLET, Command, fresh
from identitybus_testkit.databases import Database, PostgreSQL, PostgresServer, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.secrets import SECRET_PREFIX, Headers
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

# Stands in the store: in the names of topics.
PREFIX = "kept."
SERVICES = ("link", "user", "sync", "verification")
APP = "kept"
_VERIFICATION_SECRET = SECRET_PREFIX + "of-kept-k1-with-at-least-32-bytes"
# What is to be done later is overdue when the store is used again.
_SOON = 60


def app() -> dict[str, Any]:
    """One app with everything in use."""
    sdk = {"appSecret": apps.APP_SECRET, "linkerTimeoutSeconds": _SOON, "keysOpenInstalls": True}
    return {
        "id": APP,
        "keys": [
            apps.key("kept-backend", "user.link", "user.delete", "verification.check"),
            apps.key("kept-sdk", "sdk", "identity.sync"), apps.key("kept-admin", "admin"),
        ],
        "sdk": sdk,
        "sync": {**apps.worked("conversion"), "fromLinks": True},
        "verification": {
            "mode": "report", "signedFields": "userId", "keys": [{"id": "k1", "secret": _VERIFICATION_SECRET}]},
    }


def token(user: str) -> str:
    return base64.b64encode(hmac.new(_VERIFICATION_SECRET.encode(), user.encode(), hashlib.sha256).digest()).decode()


def login(device: str, user: str) -> Command:
    return verification.login(device, APP, userId=user, userAuthToken=token(user))


def text(part: bytes | None) -> str | None:
    return None if part is None else part.decode()


class Keeper:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.asked: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []

    def send(self, command: Command) -> None:
        value, headers = self.bus.signed(command)
        self.note(command.id, self.bus.topic(command.service), value, headers, command.key)
        self.bus.send(command)

    def note(self, id: str, topic: str, value: bytes, headers: Headers, key: bytes) -> None:
        self.asked.append({
            "id": id, "topic": topic, "key": text(key), "headers": [[name, text(content)] for name, content in headers],
            "value": text(value)})

    def ask(self, command: Command, status: str = "succeeded") -> dict[str, Any]:
        """- Returns: the final result."""
        self.send(command)
        reply = self.bus.final(command.id)
        assert reply["status"] == status, (command, reply)
        return reply.get("result", {})

    def question(self, command: Command) -> None:
        """What a later version must know too: it is asked again under another id."""
        result = self.ask(command)
        kept = {name: getattr(command, name) for name in ("type", "data", "subject", "app", "signer", "source")}
        self.questions.append(kept | {"result": result})

    def told(self) -> None:
        """Adds the reply to each, the first final one if there is one, and the ids of its events."""
        time.sleep(2)
        for one in self.asked:
            replies, events = self.bus.collector.replies[one["id"]], self.bus.collector.events[one["id"]]
            finals = [reply for reply in replies if reply.data["status"] != "pending"]
            one["reply"] = text((finals or replies)[0].value) if replies else None
            one["events"] = [event.envelope["id"] for event in events]

    def bad_record(self, service: str) -> tuple[int, int]:
        return self.bus.put(b"not a command", [], key=b"k", topic=self.bus.topic(service))


class Story:
    """What people did before the upgrade."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        # Texts that a reviewer can follow through the tables.
        self.names: dict[str, str] = {}

    def name(self, what: str) -> str:
        self.names[what] = fresh(what)
        return self.names[what]

    def linked(self) -> None:
        ask = self.keeper.ask
        phone, tablet, ada = self.name("ada-phone"), self.name("ada-tablet"), self.name("ada")
        ask(c.register(phone, app=APP))
        self.names["ada-user"] = ask(c.request(phone, ada, APP))["userId"]
        ask(c.register(tablet, TABLET, app=APP))
        ask(c.request(tablet, ada, APP))
        ask(c.request(phone, "", APP), "rejected")
        gone, cyd = self.name("cyd-phone"), self.name("cyd")
        ask(c.establish(gone, cyd, app=APP))
        ask(c.erase(ask(c.query(gone, APP))["userId"], APP))
        disabled, detached = self.name("disabled"), self.name("detached")
        ask(c.register(disabled, user="new", app=APP))
        ask(c.set_status(disabled, "disabled", APP))
        ask(c.register(detached, app=APP))
        ask(c.detach(detached, APP))

    def created(self) -> None:
        ask = self.keeper.ask
        phone, bob, unlinked, resetting = (self.name(what) for what in ("bob-phone", "bob", "unlinked", "resetting"))
        code = ask(c.request_code(bob, APP))["authenticationCode"]
        ask(c.create(phone, app=APP, authCode=code))
        ask(c.request_code(bob, APP))
        for install in (unlinked, resetting):
            ask(c.create(install, app=APP, appSecret=apps.APP_SECRET, linking="none"))
        ask(c.reset(resetting, APP))

    def profiles(self) -> None:
        ask, stamp = self.keeper.ask, {"device_application_stamp": self.name("stamp")}
        device, email = self.name("ada-device"), self.name("ada-mail") + "@example.org"
        ask(c.sync("identify", device, stamp, APP))
        known = {"customerid": self.names["ada"], "email": "old-" + email, **stamp}
        self.names["ada-mpid"] = ask(c.sync("login", device, known, APP))["mpid"]
        ask(c.modify(self.names["ada-mpid"], c.change("email", "old-" + email, email), app=APP))
        visitor = ask(c.sync("identify", self.name("visitor-device"), {"ios_idfv": self.name("idfv")}, APP))
        self.names["visitor-mpid"] = visitor["mpid"]
        ask(c.sync("search", fresh("device"), {"customerid": self.names["ada"]}, APP))

    def sessions(self) -> None:
        ask = self.keeper.ask
        device, eve = self.name("eve-device"), self.name("eve")
        ask(login(device, eve))
        left = self.name("left-device")
        ask(login(left, eve))
        ask(verification.logout(left, APP))
        ask(verification.check(APP, userId=eve, userAuthToken=token(eve)))
        ask(verification.check(APP, userId=eve, userAuthToken=token("somebody else")), "rejected")

    def seen(self) -> None:
        """Commands that came again, were not allowed, or cannot be read; and what is known of everybody."""
        keeper = self.keeper
        bus, first = keeper.bus, [next(one for one in keeper.asked if one["topic"] == keeper.bus.topic(service))
                                  for service in SERVICES]
        for one in first:
            bus.put(
                one["value"].encode(), [(name, content.encode()) for name, content in one["headers"]],
                key=one["key"].encode(), topic=one["topic"])
            bus.reply_records(one["id"], 2)
        assert bus.ask(c.request_code(fresh("ext"), APP, signer="kept-sdk"))["status"] == "rejected"
        for service in SERVICES:
            bus.dead_letter(keeper.bad_record(service))
        for install in ("ada-phone", "ada-tablet", "disabled", "detached", "bob-phone"):
            keeper.question(c.query(self.names[install], APP))
        keeper.question(c.get(self.names["bob-phone"], APP))
        keeper.question(c.get(self.names["unlinked"], APP))
        keeper.question(c.get_users(self.names["visitor-device"], APP))
        keeper.question(c.sync("search", fresh("device"), {"customerid": self.names["ada"]}, APP))
        keeper.question(c.sync("search", fresh("device"), {"customerid": self.names["eve"]}, APP))

    def waiting(self, sync: Service) -> None:
        """What is still to be answered or done: by the time, by the app, by the sync service that is away from now on."""
        keeper, bus = self.keeper, self.keeper.bus
        alias = c.alias(self.names["visitor-mpid"], self.names["ada-mpid"], APP)
        self.names["alias"] = keeper.ask(alias)["aliasId"]
        linker = c.create(self.name("linker"), app=APP, appSecret=apps.APP_SECRET, linking="linker")
        keeper.send(linker)
        bus.reply(linker.id)
        until(lambda: any(r.data["result"].get("awaiting") == "linker" for r in bus.collector.replies[linker.id]), 20,
              lambda: f"the linker's turn: {bus.collector.replies[linker.id]}")
        install, dan = self.name("dan-phone"), self.name("dan")
        user = keeper.ask(c.establish(install, dan, app=APP))["userId"]
        assert sync.stop() == 0
        keeper.send(login(self.name("fay-device"), self.name("fay")))
        assert bus.reply(keeper.asked[-1]["id"])["status"] == "pending"
        keeper.send(c.erase(user, APP))
        bus.reply(keeper.asked[-1]["id"])

    def owed(self) -> dict[str, int]:
        """Decided and never published. How many records were sent to each service."""
        keeper = self.keeper
        keeper.send(c.register(self.name("owed-install"), user="new", app=APP))
        keeper.send(c.request(self.names["ada-phone"], self.names["ada"], APP))
        keeper.send(c.request_code(self.name("owed-ext"), APP))
        keeper.send(c.create(self.name("owed-created"), app=APP, appSecret=apps.APP_SECRET, linking="none"))
        keeper.send(verification.check(APP, userId=self.names["eve"], userAuthToken=token(self.names["eve"])))
        for service in ("link", "user", "verification"):
            keeper.bad_record(service)
        return {"link": 3, "user": 3, "verification": 2}


def read(database: Database, service: str) -> int:
    """How many records the service has decided."""
    sql = "SELECT COALESCE(SUM(next_offset), 0) FROM progress WHERE next_offset > 0 AND topic = ?"
    return int(database.execute(sql, [f"{PREFIX}identity.{service}.commands.v1"], service)[0][0])


def dump(database: Database) -> str:
    """As SQL, with a line that begins each service."""
    parts = []
    for service in SERVICES:
        if isinstance(database, SQLite):
            with closing(sqlite3.connect(database.directory / f"{service}.sqlite")) as connection:
                lines = list(connection.iterdump())
        else:
            assert isinstance(database, PostgreSQL)
            program = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))[-1]
            # What is text can be read.
            environment = os.environ | {"PGOPTIONS": "-c bytea_output=escape"}
            answer = subprocess.run(
                [program, "--no-owner", "--inserts", f"--schema=identity_{service}", database.url], check=True,
                capture_output=True, text=True, env=environment).stdout
            lines = [line for line in answer.splitlines() if line and not line.startswith(("--", "\\"))]
        parts += [f"-- {service}", *lines]
    # Replicas are named after the machine.
    return "\n".join(parts).replace(f"'{socket.gethostname()}:", "'machine:") + "\n"


def keep(name: str, engine: str, broker: Broker, database: Database, folder: Path) -> None:
    deployment = Deployment(broker, folder, database, PREFIX, SERVICES)
    apps.write(deployment.apps_file, [app()])
    bus, keeper = deployment.bus, Keeper(deployment.bus)
    story = Story(keeper)

    def start(*names: str, **more: str) -> dict[str, Service]:
        services = {name: deployment.service(name, ALIAS_DELAY=str(_SOON), **more).start() for name in names}
        return {name: service.wait_ready() for name, service in services.items()}

    services = start(*SERVICES)
    story.linked()
    story.created()
    story.profiles()
    story.sessions()
    story.seen()
    story.waiting(services["sync"])
    keeper.told()
    for service in services.values():
        assert not service.is_running or service.stop() == 0

    # What is decided from here on never leaves the producer.
    away = start("link", "user", "verification", KAFKA_PRODUCER_LINGER_MS="100000")
    before = {service: read(database, service) for service in away}
    count = len(keeper.asked)
    sent = story.owed()
    for service, number in sent.items():
        until(lambda: read(database, service) >= before[service] + number, 30, f"what {service} owes is decided")
    time.sleep(2)
    for process in away.values():
        process.kill()
    time.sleep(1)
    for one in keeper.asked[count:]:
        assert not bus.collector.replies[one["id"]], "published after all"
        one["reply"], one["events"] = None, []
    target = Path(__file__).parent / name
    target.mkdir(exist_ok=True)
    (target / f"{engine}.sql").write_text(dump(database))
    content = {"names": story.names, "asked": keeper.asked, "questions": keeper.questions}
    (target / f"{engine}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
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
