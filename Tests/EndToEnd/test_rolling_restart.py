# SPDX-License-Identifier: Apache-2.0
"""Everything is restarted under load, the gateways too: nothing that was asked over HTTP is lost, nobody is told of an error
but 503 with `Retry-After`, and whoever asks again is told the same.

The usual run has a rate that a debug build carries beside other tests. E2E_ROLL_RATE (500 with release builds) is another;
then each process is restarted on its own too. What rate there was is printed; kubernetes.md says why it may be so much less.
"""

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from identitybus_testkit import commands as c
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.crowd import Balancer, Crowd, Request, again, asked_with
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import basic
from identitybus_testkit.platform import SERVICES, wait_until_quiet
from identitybus_testkit.ports import free_port
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline, until

RATE = float(os.environ.get("E2E_ROLL_RATE") or 60)
# Enough that most of them are not waiting while a group comes together anew.
CLIENTS = int(min(10 * RATE, 2000))
REPLICAS = 2
# How long it may take from a step, the start of a process or the end of one, until each partition has an owner.
OWNED = 10.0
# What share of the rate is reached on a real Kafka at least. One that two cores carry is reached whole, but for the end.
LOW = RATE <= 100
SHARE = 0.9 if LOW else 0.6
# Where the rate is one that two cores carry, one request in a hundred may take so long while replicas come and go.
P99 = 2.0
pytestmark = [pytest.mark.slow, pytest.mark.alone]


class Rolling:
    """Two replicas of each service and two gateways, and what the clients ask."""

    def __init__(self, deployment: GatewayDeployment, replicas: int = REPLICAS, is_patient: bool = False) -> None:
        self.deployment = deployment
        self._admin = AdminClient(deployment.broker.client())
        usual = deployment.broker.usual_settings()
        self.replicas: dict[str, list[Service]] = {
            name: [deployment.process(name, **usual).start() for _ in range(replicas)] for name in SERVICES}
        # A broker that takes long to put a group together is no defect of the product; a real one is quick enough.
        patience = {} if is_patient or deployment.broker.is_embedded else {"GATEWAY_REPLY_TIMEOUT_MS": ""}
        self.gateways: list[Gateway] = [
            deployment.gateway(
                GATEWAY_PORT=str(free_port()), HTTP_PORT=str(free_port()), GATEWAY_DRAIN_DELAY_SECONDS="2", **patience)
            for _ in range(replicas)]
        for gateway in self.gateways:
            gateway.start()
        self.replicas["gateway"] = list(self.gateways)
        for service in itertools.chain(*self.replicas.values()):
            service.wait_ready()
        self.people = self._join(400)
        self._next = itertools.cycle(self.people)

    def _join(self, count: int) -> list[tuple[str, str]]:
        """Installs, and the external ids that they will be linked to."""
        people = [(fresh("install"), fresh("ext")) for _ in range(count)]
        registrations = [c.register(install) for install, _ in people]
        self.deployment.bus.send_all(registrations)
        for registration in registrations:
            assert self.deployment.bus.reply(registration.id, 60)["status"] == "succeeded"
        return people

    def make(self, number: int) -> Request:
        """Half of them are links; a fifth are creations, which two services decide, as they do verified logins."""
        match number % 10:
            case 0 | 1:
                return asked_with(
                    "demo-sdk", "creation", "/sdk/v1/users", installId=fresh("install"), device=PHONE,
                    appSecret="demo-app-secret", linking="none")
            case 2 | 3:
                return asked_with("demo-backend", "code", "/users/auth-code", external_id=fresh("ext"))
            case 4:
                return asked_with(
                    "demo-sdk", "verified", "/v1/verification/login", deviceId=fresh("device"), userId=fresh("user"))
            case 5:
                known = {"device_application_stamp": fresh("stamp")}
                return Request(
                    "identify", "/v1/identify", {"environment": "development", "known_identities": known},
                    basic("demo-sdk"))
            case _:
                install, external_id = next(self._next)
                return asked_with(
                    "demo-backend", "link", f"/v2/users/{install}/link", external_id=external_id)

    @staticmethod
    def roll(replicas: list[Service]) -> None:
        """As a Deployment that may lack one: the next goes when the one before is ready."""
        for service in replicas:
            assert service.stop(60) == 0
            service.start().wait_ready(90)

    def owns_all(self, name: str, replicas: int) -> bool:
        """Whether each partition of the service's commands has one owner, among so many: as Kafka tells it to whoever asks."""
        topic, group = self.deployment.bus.topic(name), f"{self.deployment.prefix}identity.{name}"
        told = self._admin.describe_consumer_groups([group])[group].result(30)
        shares = [member.assignment.topic_partitions for member in told.members]
        owned = sorted(place.partition for share in shares for place in share if place.topic == topic)
        return (told.state == ConsumerGroupState.STABLE and len(shares) == replicas
                and owned == self.deployment.broker.partitions(topic))

    def check(self, crowd: Crowd) -> None:
        """Each was told of success, those who ask once more are told the same, and there is one thing for each answer."""
        assert "answer cut" not in crowd.statuses, crowd
        assert self.deployment.broker.is_embedded or len(crowd.done) >= SHARE * RATE * crowd.seconds, crowd
        done = crowd.done
        assert {(one.kind, one.told[0]) for one in done if one.told} == {
            (kind, 200) for kind in ("creation", "code", "verified", "identify", "link")}, crowd
        balancer = Balancer(self.gateways)
        told = again(balancer, done, CLIENTS, 10 * RATE)
        balancer.close()
        different = [(one, later) for one, later in zip(done, told) if later != one.told]
        assert not different, (len(different), different[0])
        wait_until_quiet(self.deployment, 120)
        self._check_stores(done)

    def _check_stores(self, done: list[Request]) -> None:
        def members(kind: str, name: str) -> list[str]:
            return [str(json_of(one)[name]) for one in done if one.kind == kind]

        ask = self.deployment.database.execute
        links = {one.body["external_id"] for one in done if one.kind == "link"}
        linked = dict(ask("SELECT external_id, user_id FROM persons WHERE external_id IS NOT NULL"))
        assert set(linked) == links, "a person for each external id that was linked"
        created = members("creation", "userId")
        alone = [user for user, in ask("SELECT user_id FROM persons WHERE external_id IS NULL")]
        assert sorted(alone) == sorted(created), "a person for each creation"
        codes = members("code", "authentication_code")
        assert len(set(codes)) == len(codes) == ask("SELECT count(*) FROM auth_codes", service="user")[0][0]
        mpids = members("identify", "mpid") + members("verified", "mpid")
        found = [str(mpid) for mpid, in ask("SELECT mpid FROM profiles", service="sync")]
        assert sorted(found) == sorted(mpids), "a profile for each device and each login"


def json_of(request: Request) -> dict[str, object]:
    assert request.told is not None
    return dict(json.loads(request.told[1]))


@pytest.fixture
def rolling(make_deployment: Callable[..., GatewayDeployment]) -> Rolling:
    return Rolling(make_deployment("postgresql", services=tuple(SERVICES), kind=GatewayDeployment))


@pytest.fixture
def crowd(rolling: Rolling) -> Iterator[Crowd]:
    balancer = Balancer(rolling.gateways)
    crowd = Crowd(balancer, rolling.make, RATE, CLIENTS).start()
    yield crowd
    crowd.finish()
    balancer.close()


def test_all_deployments_are_restarted_at_once(rolling: Rolling, crowd: Crowd) -> None:
    """As `kubectl rollout restart` of all of them does: one replica of each goes, then the other."""
    crowd.wait(int(2 * RATE))
    with ThreadPoolExecutor(len(rolling.replicas)) as pool:
        list(pool.map(rolling.roll, rolling.replicas.values()))
    crowd.wait(int(2 * RATE))
    crowd.finish()
    print(f"\nat once: {crowd}")
    rolling.check(crowd)


@pytest.mark.skipif("E2E_ROLL_RATE" not in os.environ, reason="takes minutes: E2E_ROLL_RATE gives a rate")
def test_one_process_is_restarted_after_the_other(rolling: Rolling, crowd: Crowd) -> None:
    """As an upgrade does: services first, then gateways."""
    crowd.wait(int(2 * RATE))
    for replicas in rolling.replicas.values():
        rolling.roll(replicas)
    crowd.wait(int(2 * RATE))
    crowd.finish()
    print(f"\none by one: {crowd}")
    rolling.check(crowd)


@pytest.mark.skipif(
    not os.environ.get("KAFKA_BOOTSTRAP_SERVERS"), reason="the embedded broker takes sessions to put a group together")
def test_replicas_come_and_go(make_deployment: Callable[..., GatewayDeployment]) -> None:
    """One replica of each service becomes three, one after the other, and one again."""
    rolling = Rolling(make_deployment("postgresql", services=tuple(SERVICES), kind=GatewayDeployment), replicas=1)
    deployment = rolling.deployment
    balancer = Balancer(rolling.gateways)
    crowd = Crowd(balancer, rolling.make, RATE, CLIENTS).start()
    took: dict[str, float] = {}

    def settle(step: str, replicas: int, began: float, in_time: Deadline) -> None:
        until(
            lambda: all(rolling.owns_all(name, replicas) for name in SERVICES), in_time.left,
            f"an owner for each partition: {step}")
        took[step] = round(time.monotonic() - began, 1)
        for name in SERVICES:
            rolling.replicas[name][-1].wait_ready(90)
        crowd.wait(int(2 * RATE))

    def leave(name: str) -> int:
        return rolling.replicas[name].pop(0).stop(60)

    try:
        settle("one", 1, time.monotonic(), Deadline(OWNED))
        for step, replicas in (("two", 2), ("three", 3)):
            began, in_time = time.monotonic(), Deadline(OWNED)
            for name in SERVICES:
                rolling.replicas[name].append(deployment.process(name, **deployment.broker.usual_settings()).start())
            settle(step, replicas, began, in_time)
        for step, replicas in (("two again", 2), ("one again", 1)):
            began, in_time = time.monotonic(), Deadline(OWNED)
            with ThreadPoolExecutor(len(SERVICES)) as pool:
                left = [pool.submit(leave, name) for name in SERVICES]
                settle(step, replicas, began, in_time)
                assert {each.result() for each in left} == {0}
    finally:
        crowd.finish()
        balancer.close()
    seconds = sorted(one.seconds for one in crowd.done)
    lost = {service.name: service.lines("partitions lost") for service in deployment.services}
    assert not any(lost.values()), ("a group that changes lets each member keep what stays with it", lost)
    p99 = seconds[len(seconds) * 99 // 100]
    print(f"\ncome and go: {crowd}; p99 {p99:.2f} s; from each step until all had owners {took}")
    assert p99 < P99 or not LOW, (p99, str(crowd))
    rolling.check(crowd)
