# SPDX-License-Identifier: Apache-2.0
"""All topics are read once more: by empty stores that took the salts along, and by stores that were put back. The same
people, and nobody who was erased (docs/operations.md)."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.databases import Database, SQLite
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, bearer
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.stored import identities
from identitybus_testkit.verification import keys, token
from identitybus_testkit.verification import login as verified_login
from identitybus_testkit.waiting import until
from test_erasure import APP, GUARDED, create, guarded, login, whole

People = dict[str, Any]
ROUNDS, LOGINS, ERASURES = 4, 500, 20
# So long is a command valid that expires before it is replayed.
VALID_SECONDS = 4


def people(database: Database) -> People:
    """Who there is, with the ids that the services gave."""
    installs = database.execute("SELECT install_id, user_id FROM installs WHERE user_id IS NOT NULL")
    profiles = database.execute(
        "SELECT mpid, identities FROM profiles WHERE is_erased = 0 AND is_orphaned = 0", service="sync")
    return {
        "persons": sorted(
            database.execute("SELECT external_id, user_id FROM persons WHERE is_erased = 0"), key=str),
        "installs": sorted(installs),
        "profiles": sorted((mpid, sorted(identities(known))) for mpid, known in profiles),
    }


def mpids_of(database: Database) -> set[int]:
    """Also of those who were erased."""
    return {mpid for mpid, in database.execute("SELECT mpid FROM profiles", service="sync")}


class World:
    def __init__(self, deployment: GatewayDeployment) -> None:
        self.deployment = deployment
        self.store = deployment.database
        self.start()
        gateway = deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000").start().wait_ready()
        assert isinstance(gateway, Gateway)
        self.client: Client = gateway.client

    def start(self, **more: str) -> None:
        self.services = [self.deployment.process(name, **more).start() for name in SERVICES]
        for service in self.services:
            service.wait_ready()

    def stop(self) -> None:
        for service in self.services:
            assert service.stop() == 0

    def replay(self, **more: str) -> None:
        """Starts with what is now as the end of the past."""
        self.start(REPLAY_UNTIL=datetime.now(timezone.utc).isoformat(timespec="milliseconds"), **more)

    def quiet(self) -> People:
        wait_until_quiet(self.deployment, 120)
        return people(self.store)

    def salts(self) -> str:
        place = [f"--data-dir={self.store.directory}"] if isinstance(self.store, SQLite) else []
        answer = subprocess.run(
            [binary("identitybus"), "salts", *place],
            env=clean_environment() | self.store.environment(), capture_output=True, text=True, check=True)
        return answer.stdout.strip()

    def empty(self) -> None:
        """There is no store any more."""
        for service in SERVICES:
            if isinstance(self.store, SQLite):
                for file in self.store.directory.glob(f"{service}.sqlite*"):
                    file.unlink()
            else:
                self.store.execute(f"DROP SCHEMA identity_{service} CASCADE")

    # What happens

    def join(self, name: str) -> tuple[str, int]:
        """Two phones, one after the other, and two devices. The link's event is read before anybody logs in: by which of
        two the profile is made, a replay tells by their times alone."""
        for _ in range(2):
            user = str(create(self.client, name, fresh("install"), fresh("Model"))["userId"])
            wait_until_quiet(self.deployment, 60)
            mpid = int(login(self.client, fresh("device"), customerid=name, email=f"{name}@example.org")["mpid"])
        return user, mpid

    def erase_user(self, user: str) -> None:
        answer = self.client.send("DELETE", f"/users/{user}", headers=bearer("whole-backend"))
        assert answer.status == 200, answer

    def erasure(self, mpid: int) -> Command:
        return Command("sync.erase-profile", {"mpid": str(mpid)}, str(mpid), app=APP, signer="whole-backend")

    def erase_profile(self, mpid: int) -> None:
        reply = self.deployment.bus.settle(self.erasure(mpid), 60)
        assert reply["status"] == "succeeded", reply

    def live(self) -> None:
        """Two people stay, and two are erased, one by the link service, one by the sync service."""
        for _ in range(2):
            self.join(fresh("stay"))
        user, _ = self.join(fresh("go"))
        _, mpid = self.join(fresh("go"))
        self.erase_user(user)
        self.erase_profile(mpid)

    def come_back(self) -> None:
        """Somebody who was erased signs up again, on the same phone."""
        back, phone = fresh("back"), fresh("install")
        first = create(self.client, back, phone, fresh("Model"))["userId"]
        self.erase_user(str(first))
        assert create(self.client, back, phone, fresh("Model"))["userId"] != first

    def expire(self) -> float:
        """A login that is valid for a moment. - Returns: when it is not any more."""
        valid = datetime.now(timezone.utc) + timedelta(seconds=VALID_SECONDS)
        attributes = {"expirytime": valid.isoformat(timespec="milliseconds")}
        brief = c.sync("login", fresh("device"), {"customerid": fresh("brief")}, app=APP, signer="whole-sdk")
        reply = self.deployment.bus.settle(brief.but(attributes=attributes))
        assert reply["status"] == "succeeded", reply
        return valid.timestamp()

    def crowd(self) -> None:
        """Many log in, each on a partition of the device, and some of them are erased, each on one of the profile."""
        bus = self.deployment.bus
        for _ in range(ROUNDS):
            logins = [
                c.sync("login", fresh("device"), {"customerid": fresh("crowd")}, app=APP, signer="whole-sdk")
                for _ in range(LOGINS)]
            bus.send_all(logins)
            mpids = [int(bus.final(one.id, 60)["result"]["mpid"]) for one in logins]
            erasures = [self.erasure(mpid) for mpid in mpids[:ERASURES]]
            bus.send_all(erasures)
            for one in erasures:
                assert bus.final(one.id, 60)["status"] == "succeeded"


@pytest.fixture
def make_world(make_deployment: Callable[..., GatewayDeployment]) -> Callable[[str], World]:
    def make(engine: str) -> World:
        deployment = make_deployment(engine, services=tuple(SERVICES), kind=GatewayDeployment)
        apps.write(deployment.apps_file, [whole()])
        return World(deployment)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_empty_stores_that_took_the_salts_along(make_world: Callable[[str], World], engine: str) -> None:
    world = make_world(engine)
    expired = world.expire()
    world.live()
    world.come_back()
    if engine == "sqlite":
        world.crowd()
    after = world.quiet()
    assert len(after["persons"]) == 3, after["persons"]
    assert len(after["profiles"]) >= 3 + (ROUNDS * (LOGINS - ERASURES) if engine == "sqlite" else 0)
    world.stop()
    salts = world.salts()
    world.empty()
    time.sleep(max(0, expired - time.time()))
    world.replay(IDENTITYBUS_SALTS=salts)
    assert world.quiet() == after
    assert world.salts() == salts


@pytest.mark.slow
def test_stores_that_were_put_back(make_world: Callable[[str], World], tmp_path: Path) -> None:
    """Of those who are erased since the copy, one was there before it, the others came since."""
    world = make_world("sqlite")
    assert isinstance(world.store, SQLite)
    user, _ = world.join(fresh("go"))
    world.quiet()
    world.stop()
    shutil.copytree(world.store.directory, tmp_path / "copy", dirs_exist_ok=True)
    world.start()
    expired = world.expire()
    world.erase_user(user)
    world.live()
    world.come_back()
    after = world.quiet()
    world.stop()
    shutil.rmtree(world.store.directory)
    shutil.copytree(tmp_path / "copy", world.store.directory)
    time.sleep(max(0, expired - time.time()))
    world.replay()
    assert world.quiet() == after


@pytest.mark.slow
@pytest.mark.parametrize("by", ["identities", "mpid"])
def test_an_erasure_holds_whoever_was_first(make_world: Callable[[str], World], by: str) -> None:
    """Sync lags behind a link and logins on several devices, so they are decided in another order than they were logged."""
    world = make_world("sqlite")
    bus, sync = world.deployment.bus, world.services[SERVICES.index("sync")]
    gone = [fresh("go") for _ in range(4)]
    for name in gone:
        world.quiet()
        sync.pause()
        create(world.client, name, fresh("install"), fresh("Model"))
        logins = [c.sync("login", fresh("device"), {"customerid": name}, app=APP, signer="whole-sdk") for _ in range(6)]
        for one in logins:
            bus.send(one)
            time.sleep(0.02)
        sync.resume()
        mpids = {bus.final(one.id, 60)["result"]["mpid"] for one in logins}
        assert len(mpids) == 1
        who = {"mpid": mpids.pop()} if by == "mpid" else {"identities": {"customerid": name}}
        erasure = Command("sync.erase-profile", who, name, app=APP, signer="whole-backend")
        assert bus.settle(erasure, 60)["status"] == "succeeded"
    assert world.quiet() == {"persons": [], "installs": [], "profiles": []}
    world.stop()
    salts = world.salts()
    made = mpids_of(world.store)
    world.empty()
    world.replay(IDENTITYBUS_SALTS=salts)
    assert world.quiet() == {"persons": [], "installs": [], "profiles": []}
    # Once more, into the stores that have read it all.
    world.stop()
    world.replay()
    assert world.quiet() == {"persons": [], "installs": [], "profiles": []}
    if mpids_of(world.store) == made:
        pytest.skip("all were decided in the order of then")


@pytest.mark.slow
def test_users_are_who_they_were_though_link_lagged(make_world: Callable[[str], World]) -> None:
    """The link service lags on one partition. What is logged there first is decided last: a registration, so that the
    first request of its install is refused, or the first of several requests for one new external id, of installs that
    have users of their own or none. Some of those that come of it are erased by their user ids."""
    world = make_world("sqlite")
    world.stop()
    world.start(BATCH_SIZE="20")
    bus, link = world.deployment.bus, world.services[SERVICES.index("link")]
    # As many as there are installs, whatever the topic has.
    hot, *others = world.deployment.broker.partitions(bus.commands)[:4]
    erased = []

    def ask(install: str, name: str, partition: int) -> Command:
        command = c.request(install, name, app=APP, signer="whole-backend")
        bus.send(command, partition=partition)
        time.sleep(0.02)
        return command

    for number, kind in enumerate(["unknown", "new", "none", "unknown", "new", "none"]):
        name, installs = fresh("race"), [fresh("install") for _ in range(4)]
        for install in installs[1:] if kind == "unknown" else installs:
            user = "new" if kind == "new" else "none"
            assert bus.settle(c.register(install, user=user, app=APP), 60)["status"] == "succeeded"
        link.pause()
        answered = bus.collector.answered
        for _ in range(800):
            bus.send(c.query("nobody", app=APP), partition=hot)
        link.resume()
        until(lambda: bus.collector.answered > answered + 100, 30, "the first answers")
        if kind == "unknown":
            late = c.register(installs[0], app=APP)
            bus.send(late, partition=hot)
            requests = [ask(installs[0], name, others[0])]
        else:
            late = ask(installs[0], name, hot)
            requests = [ask(install, name, partition) for install, partition in zip(installs[1:], others, strict=True)]
        replies = [bus.final(one.id, 60) for one in requests]
        late_reply = bus.final(late.id, 60)
        if kind == "unknown":
            assert replies[0]["reason"] == "INSTALL_NOT_FOUND"
            replies = [bus.final(ask(installs[0], name, others[0]).id, 60)]
        else:
            assert replies[0]["status"] == "succeeded" and not (late_reply.get("result") or {}).get("personCreated")
        if number > 2:
            erased.append(replies[0]["result"]["userId"])
            world.erase_user(erased[-1])
    after = world.quiet()
    world.stop()
    salts = world.salts()
    world.empty()
    world.replay(IDENTITYBUS_SALTS=salts)
    assert world.quiet() == after
    # What a replay told has the times of then: another one goes by them.
    world.stop()
    world.empty()
    world.replay(IDENTITYBUS_SALTS=salts)
    assert world.quiet() == after
    assert len(erased) == 3 and not set(erased) & {user for _, user in after["persons"]}
    world.stop()
    # It is over: nothing of what was read for it stays.
    world.start()
    assert world.store.execute("SELECT count(*) FROM decision_times") == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_of_several_records_with_one_id_the_same_one_is_decided(
    make_world: Callable[[str], World], engine: str,
) -> None:
    """The second one stands in a lower partition, so a replay comes to it first. It says the same, and would do something
    else: it has expired, or the first one had; or its key is believed more, or less."""
    world = make_world(engine)
    bus = world.deployment.bus
    expired = {"expirytime": "2020-01-01T00:00:00Z"}
    sdk, desk = "whole-sdk", "whole-desk"

    def both(first: Command, second: Command) -> None:
        first_partition, *_, last_partition = world.deployment.broker.partitions(bus.topic_of(first))
        bus.send(first, partition=last_partition)
        told = bus.final(first.id, 60)
        # What the link service tells of it is read before anybody logs in.
        wait_until_quiet(world.deployment, 60)
        bus.send(second, partition=first_partition)
        replies = bus.collector.replies[first.id]
        until(lambda: [one.data for one in replies].count(told) >= 2, 30, "the second is answered as the first")

    stays, user = fresh("stay"), ""
    for number in range(10):
        user = str(create(world.client, stays, fresh("install"), f"Model {number}")["userId"])
    erasure = Command("link.erase-user", {"userId": user}, user, app=APP, signer="whole-backend")
    both(erasure.but(attributes=expired), erasure)
    assert stays in str(world.quiet()["persons"])
    why = {"author": "anna", "reason": "a test"}
    unlinking = Command("link.unlink-user", {"userId": user, **why}, user, app=APP, signer=desk)
    both(unlinking, unlinking.but(attributes=expired))
    for first, second in [(sdk, desk), (desk, sdk)]:
        device, name = fresh("device"), fresh("clear")
        stamp = c.sync("identify", device, {"device_application_stamp": fresh("stamp")}, app=APP, signer=sdk)
        assert bus.settle(stamp)["status"] == "succeeded"
        clearing = c.sync("login", device, {"customerid": name}, app=APP, signer=first, clearAnonymousUser=True)
        both(clearing, clearing.but(signer=second))
    after = world.quiet()
    world.stop()
    salts = world.salts()
    for _ in range(2):
        world.empty()
        world.replay(IDENTITYBUS_SALTS=salts)
        assert world.quiet() == after
        world.stop()


@pytest.mark.slow
def test_what_was_first_decided_is_decided_whatever_came_between(
    make_world: Callable[[str], World], tmp_path: Path,
) -> None:
    """A record is decided, and one that repeats it, in a partition that is read before, is not. Then the store is put back
    and read on without a replay: there it is the other way round. And a replay that misses a key refuses them all. A later
    replay decides one of them all the same."""
    world = make_world("sqlite")
    assert isinstance(world.store, SQLite)
    bus = world.deployment.bus
    name = fresh("go")
    user = str(create(world.client, name, fresh("install"), fresh("Model"))["userId"])
    world.quiet()
    world.stop()
    shutil.copytree(world.store.directory, tmp_path / "copy", dirs_exist_ok=True)
    world.start()
    erasure = Command("link.erase-user", {"userId": user}, user, app=APP, signer="whole-backend")
    first_partition, *_, last_partition = world.deployment.broker.partitions(bus.commands)
    for partition in [last_partition, first_partition]:
        bus.send(erasure, partition=partition)
        bus.final(erasure.id, 60)
        wait_until_quiet(world.deployment, 60)
    after = world.quiet()
    assert name not in str(after["persons"])
    world.stop()
    salts = world.salts()
    shutil.rmtree(world.store.directory)
    shutil.copytree(tmp_path / "copy", world.store.directory)
    world.start()
    assert world.quiet() == after
    world.stop()
    missing = whole()
    missing["keys"] = [key for key in missing["keys"] if key["id"] != "whole-backend"]
    for app in [missing, whole(), whole()]:
        apps.write(world.deployment.apps_file, [app])
        world.empty()
        world.replay(IDENTITYBUS_SALTS=salts)
        told = world.quiet()
        assert (told == after) == (app != missing), told
        world.stop()


@pytest.mark.slow
def test_what_a_replay_refuses_by_its_file_is_its_own(make_world: Callable[[str], World]) -> None:
    """The next replay has the file of before, and comes to what was. A login by a token stands behind one that was refused,
    so its replies have other numbers where its key is not known."""
    world = make_world("sqlite")
    bus, tablet = world.deployment.bus, fresh("tablet")

    def give(*key_ids: str) -> None:
        app = guarded()
        app["verification"]["keys"] = keys(*key_ids, app=GUARDED)
        apps.write(world.deployment.apps_file, [app])

    def log_in(signed: str) -> str:
        reply = bus.settle(verified_login(tablet, GUARDED, userId="anna", userAuthToken=signed), 60)
        return str(reply.get("reason") or reply["status"])

    def session() -> Any:
        return world.store.execute("SELECT state, mpid FROM sessions", service="verification")

    give("k1", "k2")
    world.stop()
    world.start()
    assert log_in("no token") == "InvalidAuthToken"
    assert log_in(token("anna", "k1", GUARDED)) == "succeeded"
    people_before, before = world.quiet(), session()
    salts = world.salts()
    for key_ids in ("k2",), ("k1", "k2"), ("k1", "k2"):
        world.stop()
        world.empty()
        give(*key_ids)
        world.replay(IDENTITYBUS_SALTS=salts)
        told = world.quiet()
        assert (session() == before) == ("k1" in key_ids)
        assert told == people_before or "k1" not in key_ids, told
    world.stop()


@pytest.mark.slow
def test_a_login_that_was_refused_stays_refused(make_world: Callable[[str], World]) -> None:
    """Its reply stands behind the events that tell of it. The app has got the key since that its token was signed with."""
    world = make_world("sqlite")
    bus, tablet = world.deployment.bus, fresh("tablet")

    def give(*key_ids: str) -> None:
        app = guarded()
        app["verification"]["keys"] = keys(*key_ids, app=GUARDED)
        apps.write(world.deployment.apps_file, [app])
        world.stop()
        world.start()

    def log_in(name: str, key_id: str) -> str:
        signed = token(name, key_id, GUARDED)
        reply = bus.settle(verified_login(tablet, GUARDED, userId=name, userAuthToken=signed), 60)
        return str(reply.get("reason") or reply["status"])

    def there() -> tuple[Any, Any]:
        """Whom the verification service has on the tablet, and whom the sync service."""
        [session] = world.store.execute("SELECT state, mpid FROM sessions", service="verification")
        users = world.store.execute("SELECT users FROM devices", service="sync")
        return session, users

    give("k1")
    assert log_in("anna", "k2") == "InvalidAuthToken"
    assert log_in("bob", "k1") == "succeeded"
    people_before, before = world.quiet(), there()
    assert "anna" not in str(people_before["profiles"])
    give("k1", "k2")
    world.quiet()
    world.stop()
    salts = world.salts()
    world.empty()
    world.replay(IDENTITYBUS_SALTS=salts)
    assert world.quiet() == people_before and there() == before
    world.stop()


def test_salts_that_do_not_fit_stop_the_start(make_deployment: Callable[..., GatewayDeployment]) -> None:
    deployment = make_deployment("sqlite", services=("link",), kind=GatewayDeployment)
    one, other = (os.urandom(32).hex() for _ in range(2))
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")

    def end(**settings: str) -> str:
        service = deployment.process("link", **settings).start()
        assert service.wait(30) == 78
        return service.log.read_text()

    assert "REPLAY_UNTIL: is not set" in end(IDENTITYBUS_SALTS=f"link={one}")
    assert "IDENTITYBUS_SALTS: names no salt" in end(IDENTITYBUS_SALTS=f"user={one}", REPLAY_UNTIL=now)
    assert "IDENTITYBUS_SALTS: is not a line" in end(IDENTITYBUS_SALTS="link=1234", REPLAY_UNTIL=now)
    started = deployment.process("link", IDENTITYBUS_SALTS=f"link={one}", REPLAY_UNTIL=now).start()
    started.wait_ready()
    assert started.stop() == 0
    # The salt is kept: it may go on being given.
    again = deployment.process("link", IDENTITYBUS_SALTS=f"link={one}").start()
    again.wait_ready()
    assert again.stop() == 0
    assert "IDENTITYBUS_SALTS: is not of this store" in end(IDENTITYBUS_SALTS=f"link={other}", REPLAY_UNTIL=now)
