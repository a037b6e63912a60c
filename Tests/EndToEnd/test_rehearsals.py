# SPDX-License-Identifier: Apache-2.0
"""docs/rehearsals.md: restore, rotation of every key, failover, upgrade and the way back, with the page's blocks as they
stand, on running processes."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit import kafka
from identitybus_testkit.blocks import Page
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.databases import PostgreSQL, PostgresServer, Standby
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import bearer
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.platform import Platform, Traffic, wait_until_quiet
from identitybus_testkit.secrets import INTERNAL_KEY, gateway_keys
from identitybus_testkit.service import Service
from identitybus_testkit.verification import secret, token, verification_app
from identitybus_testkit.waiting import until
from test_erasure import create, login, whole
from test_migration import LATER
from test_replay import People, people

pytestmark = pytest.mark.slow
PAGE = Page("rehearsals.md")
NEXT_KEY = "e2e-next-internal-key-Wb57-not-for-logs"
# What the block of the differences counts.
DIFFERENCES = {"installs-without-user", "users-without-install", "profiles-without-user", "sessions-without-profile"}

Make = Callable[..., Deployment]
Answer = subprocess.CompletedProcess[str]


def done(answer: Answer) -> str:
    assert answer.returncode == 0, answer
    return answer.stdout


# Restore, upgrade and the way back


class World:
    """All services on PostgreSQL, people, and a folder for copies."""

    def __init__(self, deployment: GatewayDeployment, copies: Path) -> None:
        self.deployment, self.copies = deployment, copies
        apps.write(deployment.apps_file, [whole()])
        self.services: dict[str, Service] = {}
        self.start()
        gateway = deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000").start().wait_ready()
        assert isinstance(gateway, Gateway)
        self.client = gateway.client

    def start(self, **more: str) -> None:
        self.services = {name: self.deployment.process(name, **more).start() for name in SERVICES}
        for service in self.services.values():
            service.wait_ready()

    def stop(self) -> None:
        for service in self.services.values():
            assert service.stop() == 0

    def run(self, heading: str, number: int = 0, **more: str) -> str:
        place = {"COPIES": str(self.copies)}
        return done(PAGE.run(heading, number, self.deployment.environment() | place | more))

    def copy(self, *names: str) -> None:
        for name in names:
            self.run("Restore", SERVICE=name)

    def put_back(self) -> None:
        for name in SERVICES:
            self.run("Restore", 1, SERVICE=name)

    def differences(self) -> dict[str, int]:
        lines = [line.split() for line in self.run("Restore", 2).splitlines()]
        return {name: int(count) for name, count in lines}

    def replay(self) -> None:
        """Until nothing waits; then everything starts as usual."""
        name, _, value = self.run("Restore", 3).strip().partition("=")
        self.start(**{name: value})
        for service in self.services.values():
            self.run("Restore", 4, HTTP_PORT=str(service.port))
        self.quiet()
        self.stop()
        self.start()

    def quiet(self) -> People:
        wait_until_quiet(self.deployment, 120)
        return people(self.deployment.database)

    def join(self, name: str) -> tuple[str, str]:
        """A phone, and two devices; one of the logins is verified. The link's event is read before anybody logs in: by which
        of two the profile is made, a replay tells by their times alone."""
        user = str(create(self.client, name, fresh("install"), fresh("Model"))["userId"])
        wait_until_quiet(self.deployment, 60)
        mpid = str(login(self.client, fresh("device"), customerid=name)["mpid"])
        body = {"deviceId": fresh("device"), "userId": name, "userAuthToken": token(name, app="whole")}
        answer = self.client.post("/v1/verification/login", body, "whole-sdk")
        assert answer.status == 200, answer
        return user, mpid

    def erase(self, user: str) -> None:
        answer = self.client.send("DELETE", f"/users/{user}", headers=bearer("whole-backend"))
        assert answer.status == 200, answer


@pytest.fixture
def world(make_deployment: Make, tmp_path: Path) -> World:
    deployment = make_deployment("postgresql", services=SERVICES, kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    return World(deployment, tmp_path)


NONE = dict.fromkeys(DIFFERENCES, 0)


def test_restore(world: World) -> None:
    """Four copies of four moments: people came and went between them, and after the last."""
    gone = [world.join(fresh("go"))[0] for _ in range(2)]
    world.copy("sync")
    world.join(fresh("stay"))
    world.copy("link")
    world.erase(gone[0])
    world.join(fresh("stay"))
    world.copy("user")
    world.join(fresh("stay"))
    world.copy("verification")
    world.erase(gone[1])
    world.join(fresh("stay"))
    before = world.quiet()
    assert len(before["persons"]) == 4 and world.differences() == NONE
    world.stop()
    world.put_back()
    found = world.differences()
    # User knows somebody of after link's copy, verification two of after sync's; link's people of before are user's too.
    assert found["installs-without-user"] >= 1 and found["sessions-without-profile"] >= 2, found
    assert found["users-without-install"] >= 1, "who was erased is still there for link"
    world.replay()
    assert world.quiet() == before
    assert world.differences() == NONE
    for user in gone:
        reply = world.deployment.bus.settle(c.erase(user, "whole").but(signer="whole-backend"))
        assert reply["status"] == "succeeded", reply
    assert world.quiet() == before, "nobody of them was there"


def test_restore_of_a_link_store_that_is_the_oldest(world: World) -> None:
    """Profiles, too, are then of people whom link does not know."""
    world.copy("link")
    world.join(fresh("stay"))
    before = world.quiet()
    world.copy("user", "sync", "verification")
    world.stop()
    world.put_back()
    assert world.differences() == NONE | {"installs-without-user": 1, "profiles-without-user": 1}
    world.replay()
    assert world.quiet() == before
    assert world.differences() == NONE


@contextmanager
def another_broker(kind: str, folder: Path) -> Iterator[Broker]:
    """It has nothing of what the one before had."""
    server = kafka.Kafka(folder).start() if kind == "kafka" else None
    broker = server.open() if server else Broker.embedded(folder)
    try:
        yield broker
    finally:
        (server or broker).close()


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.skipif(
    not kafka.HOME, reason="TEST_KAFKA_HOME is not the folder of an Apache Kafka"))])
def test_restore_beside_a_new_kafka(
    kind: str, open_deployment: Callable[..., AbstractContextManager[Deployment]], directory: Path, tmp_path: Path
) -> None:
    """The topics are gone too. Whoever is in the copies has the ids of before, also who was erased since; who came since is
    nobody."""
    of_all = {"services": SERVICES, "kind": GatewayDeployment}
    named, late = [fresh("stay") for _ in range(2)], fresh("late")
    with another_broker(kind, directory / fresh("broker")) as first, \
            open_deployment("postgresql", on=first, **of_all) as deployment:
        assert isinstance(deployment, GatewayDeployment)
        world = World(deployment, tmp_path)
        known = [ids_of(world, name) for name in named]
        before = world.quiet()
        world.copy(*SERVICES)
        gone = ids_of(world, late)
        world.erase(known[1][0])
        world.quiet()
    with another_broker(kind, directory / fresh("broker")) as second, open_deployment(
            on=second, prefix=deployment.prefix, database=deployment.database, **of_all) as deployment:
        assert isinstance(deployment, GatewayDeployment)
        world.put_back()
        world = World(deployment, tmp_path)
        assert world.quiet() == before and world.differences() == NONE
        assert [ids_of(world, name) for name in named] == known, "who was there is the same one, also on another phone"
        again = ids_of(world, late)
        assert not set(again) & set(gone), "who came after the copies is somebody new"
        world.quiet()
        assert world.differences() == NONE
        assert not deployment.bus.collector.dead_letters
        # The embedded broker makes no topics for others: then chaos has one of its own.
        place = {} if second.is_embedded else deployment.environment()
        minutes = os.environ.get("E2E_CHAOS_MINUTES") or "0.1"
        chaos = subprocess.run(
            [binary("identitybus"), "chaos", "--minutes", minutes, "--rate", "20", "--settle", "120"],
            env=clean_environment() | place | deployment.database.environment(), capture_output=True, text=True, timeout=500)
        assert chaos.returncode == 0 and "PASSED: " in chaos.stdout, chaos
        print(next(line for line in chaos.stdout.splitlines() if "PASSED: " in line))


def ids_of(world: World, name: str) -> tuple[str, str]:
    """The user and the profile of who has this name and another phone; made when nobody has it."""
    user = str(create(world.client, name, fresh("install"), fresh("Model"))["userId"])
    wait_until_quiet(world.deployment, 60)
    return user, str(login(world.client, fresh("device"), customerid=name)["mpid"])


def test_upgrade_and_the_way_back(world: World) -> None:
    """A later version's migration, made by hand, and back to the copy from before it. What came meanwhile is decided."""
    heading = "Upgrade and the way back"
    outlook = world.run(heading)
    assert re.match(r"identitybus \d", outlook) and outlook.count("nothing to do") == 4, outlook
    assert "Nothing was changed." in outlook, outlook
    world.join(fresh("stay"))
    world.copy(*SERVICES)
    assert world.run(heading, 1).count("nothing to do") == 4
    name = fresh("since")
    world.join(name)
    before = world.quiet()
    database = world.deployment.database
    for service in SERVICES:
        database.execute(LATER, service=service)
        database.execute("UPDATE progress SET epoch = epoch + 1", service=service)
    for service in world.services.values():
        assert service.wait(40) == 78, service.tail()
    late = fresh("late")
    command = c.register(late, app="whole")
    world.deployment.bus.send(command)
    # Nobody goes back by mistake.
    again = world.deployment.process("link").start()
    assert again.wait(30) == 78 and again.lines("the database is newer than this code"), again.tail()
    world.put_back()
    world.replay()
    assert world.deployment.bus.reply(command.id)["status"] == "succeeded"
    assert world.quiet() == before


def test_stores_are_migrated_before_the_new_version_starts(make_deployment: Make) -> None:
    heading = "Upgrade and the way back"
    deployment = make_deployment("postgresql")
    outlook = done(PAGE.run(heading, 0, deployment.environment()))
    assert len(re.findall(r"^\w+ +none -> \d+", outlook, re.M)) == 4 and "Nothing was changed." in outlook, outlook
    waiting = deployment.service(MIGRATE="never").start()
    until(lambda: "run identitybus migrate" in waiting.failed_checks().get("database", ""), 30, waiting.tail)
    assert len(re.findall(r"^\w+ +none -> \d+", done(PAGE.run(heading, 1, deployment.environment())), re.M)) == 4
    waiting.wait_ready()


# Keys


def write_apps(deployment: Deployment, *more: dict[str, object], codes: tuple[str, ...] = ("k1",), path: Path | None = None) -> None:
    """An app whose backend has these keys beside its first, and one whose users are vouched for by these keys."""
    demo: dict[str, Any] = json.loads(json.dumps(apps.apps()[0]))
    demo["keys"] = [key for key in demo["keys"] if key["id"] in ("demo-sdk", *([] if more else ["demo-backend"]))] + list(more)
    vouched = verification_app("enforced", "enforce", "userId")
    vouched["verification"]["keys"] = [{"id": key, "secret": secret(key)} for key in codes]
    apps.write(path or deployment.apps_file, [demo, vouched])


class Keys:
    """One process of each that keys concern."""

    def __init__(self, deployment: GatewayDeployment) -> None:
        self.deployment = deployment
        write_apps(deployment)
        self.services = [deployment.process(name) for name in ("link", "user", "verification", "sync")]
        self.gateway = deployment.gateway()
        for service in (*self.services, self.gateway):
            service.start()
        for service in (*self.services, self.gateway):
            service.wait_ready()

    def run(self, heading: str, number: int = 0, **more: str) -> Answer:
        return PAGE.run(heading, number, self.deployment.environment() | more)

    def change_apps(self, *more: dict[str, object], codes: tuple[str, ...] = ("k1",)) -> str:
        """By the page's block. - Returns: what it told."""
        following = self.deployment.directory / "next.yaml"
        write_apps(self.deployment, *more, codes=codes, path=following)
        told = self.run("API keys", NEXT=str(following))
        assert not following.exists()
        return done(told)

    def restart(self) -> None:
        everybody = (self.gateway, *self.services)
        with ThreadPoolExecutor(len(everybody)) as pool:
            assert {*pool.map(lambda service: service.stop(), everybody)} == {0}
        for service in everybody:
            service.start()
        for service in everybody:
            service.wait_ready()

    def code(self, key: str = "demo-backend") -> int:
        return self.gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, key).status


@pytest.fixture(scope="module")
def keys(make_deployment: Make) -> Keys:
    deployment = make_deployment("sqlite", services=("link", "user", "verification"), kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    return Keys(deployment)


def test_an_api_key_is_changed(keys: Keys) -> None:
    old, new = apps.key("demo-backend", "user.link"), apps.key("demo-backend-2", "user.link")
    assert keys.code() == 200 and keys.code("demo-backend-2") == 401
    told = keys.change_apps(old, new)
    assert "demo-backend-2" in told, told
    until(lambda: keys.code("demo-backend-2") == 200, 20, keys.gateway.tail, 0.2)
    assert keys.code() == 200, "both are good"
    assert {entry["key"] for entry in keys.gateway.access("auth-code") if "key" in entry} >= {"demo-backend", "demo-backend-2"}
    told = keys.change_apps(new)
    assert "key demo-backend" in told and "dead letters" in told, told
    until(lambda: keys.code() == 401, 20, keys.gateway.tail, 0.2)
    assert keys.code("demo-backend-2") == 200
    keys.change_apps()


def test_a_verification_key_is_changed(keys: Keys) -> None:
    def passes(key: str) -> bool:
        name = fresh("user")
        body = {"deviceId": fresh("device"), "userId": name, "userAuthToken": token(name, key)}
        answer = keys.gateway.client.post("/v1/verification/login", body, "enforced-sdk")
        assert answer.status in (200, 401, 403), answer
        return answer.status == 200

    def usage() -> tuple[str, set[str]]:
        lines = done(keys.run("Verification keys", APP="enforced", KEY_ID="enforced-admin")).splitlines()
        counts = json.loads(lines[-1])["data"]["result"]["counts"]
        return lines[0], {count["keyId"] for count in counts if "keyId" in count}

    assert passes("k1") and not passes("k2")
    keys.change_apps(codes=("k1", "k2"))
    until(lambda: passes("k2"), 20, "the new key", 0.2)
    assert passes("k1")
    made, used = usage()
    assert made == token("somebody", "k2") and used >= {"k1", "k2"}, (made, used)
    keys.change_apps(codes=("k2",))
    until(lambda: not passes("k1"), 20, "the end of the old key", 0.2)
    assert passes("k2")


def test_the_internal_key_is_changed(keys: Keys) -> None:
    """With the lines that the page's block prints; under traffic in test_key_rotation.py."""
    lines = done(keys.run("Internal key", OLD=INTERNAL_KEY, NEW=NEXT_KEY)).splitlines()
    steps = [(INTERNAL_KEY, NEXT_KEY), (NEXT_KEY, INTERNAL_KEY), (NEXT_KEY,)]
    assert lines == [gateway_keys(*step) for step in steps]
    body = {"installId": fresh("install"), "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "none"}
    request = fresh("request")
    first = keys.gateway.client.post("/sdk/v1/users", body, "demo-sdk", Idempotency_Key=request)
    assert first.status == 200, first
    for step, line in zip(steps, lines):
        keys.gateway.environment["IDENTITYBUS_GATEWAY_KEYS"] = line
        for service in keys.services:
            service.environment |= {
                "IDENTITYBUS_INTERNAL_KEY": step[0], "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": ",".join(step[1:])}
        keys.restart()
        assert keys.code() == 200
        if len(step) > 1:
            again = keys.gateway.client.post("/sdk/v1/users", body, "demo-sdk", Idempotency_Key=request)
            assert (again.status, again.body) == (200, first.body), again


@pytest.fixture
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


def test_the_database_password_is_changed(server: PostgresServer, make_deployment: Make) -> None:
    database = server.new_database()
    name, port = urlsplit(database.url).path, urlsplit(database.url).port
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE rehearsing LOGIN PASSWORD 'one'")
        connection.execute(f'ALTER DATABASE "{name[1:]}" OWNER TO rehearsing')  # type: ignore[arg-type]
        access = server._data / "pg_hba.conf"
        access.write_text("host all rehearsing 127.0.0.1/32 scram-sha-256\n" + access.read_text())
        connection.execute("SELECT pg_reload_conf()")
        deployment = make_deployment(database=database)
        file = deployment.directory / "database-url"
        file.write_text(f"postgresql://rehearsing:one@127.0.0.1:{port}{name}\n")
        service = deployment.service(DATABASE_URL="", DATABASE_URL_FILE=str(file)).start().wait_ready()
        answer = PAGE.run("Database password", 0, service.environment | {
            "OWNER_URL": database.url, "ROLE": "rehearsing", "PASSWORD": "two",
            "NEW_URL": f"postgresql://rehearsing:two@127.0.0.1:{port}{name}"})
        assert "FAIL" not in done(answer) and "as rehearsing" in answer.stdout, answer
        assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded", "the session of before"
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'identitybus' "
            "AND datname = current_database()")
        assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded", "and the next one"
        assert service.stop() == 0 and not service.lines("password authentication failed"), service.tail()


# Failover


@pytest.fixture
def followed(directory: Path) -> Iterator[tuple[PostgresServer, Standby]]:
    folder = directory / f"postgres-{uuid.uuid4().hex[:8]}"
    primary = PostgresServer.throwaway(folder / "primary")
    standby = primary.standby(folder / "standby")
    yield primary, standby
    standby.close()
    primary.close()


def test_failover(make_deployment: Make, followed: tuple[PostgresServer, Standby], directory: Path) -> None:
    primary, standby = followed
    platform = make_deployment(database=standby.both(primary), kind=Platform)
    assert isinstance(platform, Platform)
    services = platform.start()
    link = services[0]
    places = {"PRIMARY": primary.url, "STANDBY": standby.url, "HTTP_PORT": str(link.port)}

    def run(number: int, **more: str) -> str:
        environment = link.environment | places | more
        return done(PAGE.run("Failover", number, environment, owner="postgres" if more else None))

    def is_followed() -> bool:
        return "|sync|" in run(0)

    until(is_followed, 20, "the standby to be waited for", 0.5)
    traffic = Traffic(platform.bus).start()
    traffic.wait_for_answers(40)
    primary.kill()
    told = run(1)
    assert "FAIL" not in told and "takes writes" in told, told
    traffic.wait_for_answers(40, 60)
    # The old server's data is worth nothing any more.
    again = Standby(directory / fresh("postgres"), urlsplit(primary.url).port or 0, lambda data: run(2, OLD_DATA=str(data)))
    places |= {"PRIMARY": standby.url, "STANDBY": again.url}
    until(is_followed, 20, "the old server to be waited for", 0.5)
    traffic.wait_for_answers(40, 60)
    # And back: to where services have looked first all the time.
    standby.kill()
    again.promote()
    traffic.finish(60)
    platform.stop()
    traffic.check(platform)
    again.close()


def test_every_block_has_been_run(request: pytest.FixtureRequest) -> None:
    if len(request.session.items) < 9:
        pytest.skip("only some of the tests were chosen")
    assert PAGE.run_ones == set(PAGE.blocks)
