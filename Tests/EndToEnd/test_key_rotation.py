# SPDX-License-Identifier: Apache-2.0
"""The change of the internal key, as docs/operations.md says it is done, under traffic: services and gateways are restarted
one by one, three times. Nothing is refused, nothing is lost, and what was given out before stays good."""

import itertools
import random
import threading
import time
from typing import Any, Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import apps
from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import Gateway
from identitybus_testkit.http import Answer, Client
from identitybus_testkit.platform import SERVICES, Platform, Traffic
from identitybus_testkit.secrets import INTERNAL_KEY, gateway_keys
from identitybus_testkit.service import Service
from identitybus_testkit.verification import verification_apps
from identitybus_testkit.waiting import Deadline, until

OLD, NEW = INTERNAL_KEY, "e2e-next-internal-key-Qv40-not-for-logs"
PHONE = {"kind": "phone", "platform": "ios"}
# Each service reads its commands, what it is answered, and some the link service's events.
READS = {f"identity.{name}": f"identity.{name}.commands.v1" for name in SERVICES} | {
    f"identity.{name}.replies": f"identity.replies.{name}.v1" for name in SERVICES} | {
    f"identity.{name}.events.link": "identity.link.events.v1" for name in ("user", "sync")}
# This app's tokens have a key of their own.
TOKEN_SECRET = "e2e-token-secret-of-an-app-that-has-one-0123"


class Changing(Platform):
    """All five processes, two of the gateway, that can be started with other keys."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        own = {
            "id": "own", "sdk": {"appSecret": apps.APP_SECRET, "tokenSecret": TOKEN_SECRET},
            "keys": [apps.key("own-backend", "user.link"), apps.key("own-sdk", "sdk")]}
        apps.write(self.apps_file, apps.apps() + [own] + verification_apps())
        self.broker.make_known([f"{self.prefix}identity.replies.gateway.v1"])
        self.running: dict[str, Service] = {}

    def begin(self, name: str, *keys: str) -> None:
        """Starts a process with these internal keys, of which the first signs, in the place of the one that ran."""
        if name in self.running:
            assert self.running[name].stop() == 0
        if name.startswith("gateway"):
            environment = {**self.broker.service_environment(), "TOPIC_PREFIX": self.prefix, "LOG_FORMAT": "json",
                           "IDENTITYBUS_APPS": str(self.apps_file), "HTTP_PORT": "0", "GATEWAY_PORT": "0",
                           "IDENTITYBUS_GATEWAY_KEYS": gateway_keys(*keys)}
            log = self.directory / f"{name}-{len(self.services)}.log"
            process: Service = Gateway("gateway", environment, log)
            self.services.append(process)
        else:
            process = self.service(
                name, **self.broker.usual_settings(), IDENTITYBUS_INTERNAL_KEY=keys[0],
                IDENTITYBUS_PREVIOUS_INTERNAL_KEYS=",".join(keys[1:]))
        process.start().wait_ready()
        self.running[name] = process

    def wait_for_lag(self) -> None:
        """Until all that stands on the topics now is done by every group."""
        groups = [self._lag(self.prefix + group, self.prefix + topic) for group, topic in READS.items()]
        for behind, asker in groups:
            until(lambda: not behind(), 60, lambda: f"what is left: {behind()}")
            asker.close()

    def _lag(self, group: str, topic: str) -> tuple[Callable[[], dict[str, int]], Consumer]:
        """:returns: what the group has still to do of what stands there now, and whom that asks."""
        places = [TopicPartition(topic, number) for number in self.broker.partitions(topic)]
        asker = Consumer(self.broker.client(**{"group.id": group, "log_level": 2}))
        ends = {place.partition: asker.get_watermark_offsets(place, timeout=30)[1] for place in places}

        def behind() -> dict[str, int]:
            left = {place.partition: ends[place.partition] - max(0, place.offset)
                    for place in asker.committed(places, timeout=30)}
            return {f"{group} {topic}/{number}": count for number, count in left.items() if count > 0}

        return behind, asker

    def gateways(self) -> list[Client]:
        found = [process for process in self.running.values() if isinstance(process, Gateway) and process.is_running]
        return [gateway.client for gateway in found]


class Web:
    """Requests over HTTP, as backends and devices make them: with an Idempotency-Key, and again, at any gateway, until
    there is an answer."""

    def __init__(self, platform: Changing) -> None:
        self.platform = platform
        self.done: list[tuple[str, Answer]] = []
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(3)]

    def start(self) -> "Web":
        for thread in self._threads:
            thread.start()
        return self

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            until(lambda: not thread.is_alive(), 60, "the end of the requests")

    def until_answered(self, path: str, body: Any, key: str | None, headers: dict[str, str] | None = None,
                       method: str = "POST", timeout: float = 60) -> Answer:
        sent = {"Idempotency-Key": fresh("key")} | (headers or {})
        deadline = Deadline(timeout)
        while True:
            try:
                clients = self.platform.gateways()
                bearer = {"Authorization": f"Bearer {key}.demo-secret-{key}"} if key else {}
                answer = random.choice(clients).send(method, path, body, bearer | sent)
                # On a busy machine a restart may outlast the time that a reply is waited for.
                if answer.status not in (503, 504):
                    return answer
            except (OSError, IndexError, AssertionError):
                pass  # a gateway that was stopped meanwhile
            assert deadline.left, f"no answer to {path} {deadline}"
            time.sleep(0.1)

    def _run(self, number: int) -> None:
        try:
            for count in itertools.count():
                if self._stop.is_set():
                    return
                self._one((count + number) % 3)
                time.sleep(0.25)
        except BaseException as problem:
            self.refused.append(repr(problem))

    def _one(self, kind: int) -> None:
        match kind:
            case 0: path, body, key = "/users/auth-code", {"external_id": fresh("ext")}, "demo-backend"
            case 1: path, body, key = "/sdk/v1/users", creation(), "demo-sdk"
            case _: path, body, key = "/sdk/v1/users", creation(), "own-sdk"
        answer = self.until_answered(path, body, key)
        self.done.append((path, answer))
        if answer.status != 200:
            self.refused.append(f"{path}: {answer.status} {answer.body!r}")


def creation() -> dict[str, Any]:
    return {"installId": fresh("install"), "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "none"}


class GivenOut:
    """What people hold at one moment: user tokens, and requests whose answers may have got lost."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.tokens: dict[str, tuple[str, str]] = {}
        for app in ("demo", "own"):
            made = web.until_answered("/sdk/v1/users", creation(), f"{app}-sdk")
            assert made.status == 200, made.body
            self.tokens[app] = (made.json["installId"], made.json["token"]["tokenId"])
        self.request, self.body = fresh("request"), {"external_id": fresh("ext")}
        self.code = self.ask()

    def ask(self) -> str:
        """A repeated request gets the code that it was given first, which stands sealed in the store."""
        answer = self.web.until_answered(
            "/users/auth-code", self.body, "demo-backend", {"Idempotency-Key": self.request})
        assert answer.status == 200, answer.body
        return str(answer.json["authentication_code"])

    def status(self, app: str) -> int:
        install, token = self.tokens[app]
        return self.web.until_answered(
            f"/sdk/v1/installs/{install}", None, None, {"Authorization": f"Bearer {token}"}, "GET").status

    def check(self) -> None:
        assert self.ask() == self.code
        assert [self.status(app) for app in self.tokens] == [200, 200]


@pytest.mark.chaos
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_the_internal_key_is_changed_under_traffic(
    broker: Broker, make_deployment: Callable[..., Deployment], engine: str
) -> None:
    platform = make_deployment(engine, kind=Changing, services=SERVICES)
    assert isinstance(platform, Changing)
    names = [*SERVICES, "gateway-1", "gateway-2"]
    for name in names:
        platform.begin(name, OLD)
    web = Web(platform)
    # Signed with apps' keys; the user service asks link, and verification asks sync, under the deployment's own.
    traffic = Traffic(platform.bus, ("user", "sync", "verification"), rate=10).start()
    web.start()
    given = [GivenOut(web)]
    # 1: the new key is believed. 2: it signs; in any order. 3: the old one goes.
    for step, keys in enumerate([(OLD, NEW), (NEW, OLD), (NEW,)], start=1):
        order = names if step == 1 else random.sample(names, len(names))
        if step == 3:
            # What was sent under the old key is decided; the tokens and sealed answers under it are what one waits for.
            platform.wait_for_lag()
        for name in order:
            platform.begin(name, *keys)
            if step < 3:
                for each in given:
                    each.check()
        given.append(GivenOut(web))
    traffic.wait_for_answers(40)
    for each in given[2:]:
        each.check()
    # Before the second step the old key signed: its tokens are gone with it, those under an app's own secret are not.
    assert [[each.status(app) for app in each.tokens] for each in given[:2]] == [[401, 200]] * 2
    web.finish()
    traffic.finish()
    assert not web.refused, web.refused
    assert len(web.done) > 30
    for process in platform.services:
        if process.is_running:
            assert process.stop() == 0
    assert not platform.bus.collector.dead_letters, platform.bus.collector.dead_letters
    finals = [
        [record.data for record in platform.bus.collector.replies[id] if record.data["status"] != "pending"]
        for id in traffic.sent]
    for replies in finals:
        assert {reply["status"] for reply in replies} == {"succeeded"}, replies
    codes = [answer.json["authentication_code"] for path, answer in web.done if path == "/users/auth-code"]
    assert len(set(codes)) == len(codes)
