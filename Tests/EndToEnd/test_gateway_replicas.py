# SPDX-License-Identifier: Apache-2.0
"""Several replicas of the gateway: which of them reads which reply (docs/decisions/0008-gateway-replies.md)."""

import json
import threading
import uuid
from typing import Any, Callable

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, bearer
from identitybus_testkit.standin import StandIn, erased
from identitybus_testkit.waiting import until

BACKEND = "demo-backend"
READ = "gateway_replies_read_total"


@pytest.fixture(scope="module")
def running(gateway_deployment: GatewayDeployment) -> GatewayDeployment:
    gateway_deployment.process("link").start().wait_ready()
    return gateway_deployment


@pytest.fixture(scope="module")
def others(running: GatewayDeployment) -> dict[str, StandIn]:
    """The user and the sync service do all that they are asked."""
    return {name: running.stand_in(name, lambda _: [erased()]) for name in ("user", "sync")}


def partitions(gateway: Gateway) -> set[int]:
    """Those that it reads now: the shared one, and its own."""
    lines = until(lambda: gateway.lines('"replies.read"'), 60, lambda: f"replies to be read\n{gateway.tail()}")
    return {int(number) for number in json.loads(lines[-1])["fields"]["partitions"].split()}


@pytest.fixture(scope="module")
def gateways(running: GatewayDeployment) -> list[Gateway]:
    """Three whose own partitions are different."""
    found: list[Gateway] = []
    taken: list[set[int]] = []
    while len(found) < 3:
        gateway = running.gateway()
        gateway.start().wait_ready()
        mine = partitions(gateway)
        assert len(mine) == 2
        if mine in taken:
            gateway.stop()
            continue
        found.append(gateway)
        taken.append(mine)
    assert len(set.intersection(*taken)) == 1, "one partition is shared by all"
    return found


class Counted:
    """How many replies each gateway has read since the beginning."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self.gateways = gateways
        self.before = [gateway.metric(READ) for gateway in gateways]

    def now(self) -> list[float]:
        return [gateway.metric(READ) - before for gateway, before in zip(self.gateways, self.before)]

    def become(self, expected: list[float]) -> None:
        until(lambda: self.now() == expected, 20, lambda: f"{expected}; read are {self.now()}")


def nowhere(gateway: Gateway, **headers: str) -> None:
    """A request with one reply."""
    answer = gateway.client.post("/v2/users/nope/link", {"external_id": fresh("ext")}, BACKEND, **headers)
    assert answer.status == 404, answer


def test_a_reply_is_read_by_the_replica_that_asked(gateways: list[Gateway]) -> None:
    counted = Counted(gateways)
    threads = [
        threading.Thread(target=lambda gateway=gateway: [nowhere(gateway) for _ in range(100)])  # type: ignore[misc]
        for gateway in gateways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    counted.become([100, 100, 100])


def test_with_an_idempotency_key_it_is_read_by_all(gateways: list[Gateway]) -> None:
    counted = Counted(gateways)
    for _ in range(5):
        nowhere(gateways[0], Idempotency_Key=str(uuid.uuid4()))
    counted.become([5, 5, 5])
    # Nobody can ask for a dry run's answer again.
    nowhere(gateways[1], Idempotency_Key=str(uuid.uuid4()), Prefer="dry-run")
    counted.become([5, 6, 5])


def test_every_replica_gives_the_first_answer(running: GatewayDeployment, gateways: list[Gateway]) -> None:
    install, external_id, key = fresh("install"), fresh("ext"), str(uuid.uuid4())
    assert running.bus.ask(c.register(install))["status"] == "succeeded"

    def link(gateway: Gateway, external_id: str) -> Answer:
        answer: Answer = gateway.client.post(
            f"/v2/users/{install}/link", {"external_id": external_id}, BACKEND, Idempotency_Key=key)
        return answer

    answers = [link(gateway, external_id) for gateway in [*gateways, *gateways]]
    assert [answer.status for answer in answers] == [200] * 6
    assert len({(answer.body, answer.headers["X-Request-Id"]) for answer in answers}) == 1
    assert [link(gateway, fresh("ext")).status for gateway in gateways] == [409] * 3


def test_one_key_for_two_services_at_two_replicas(
    gateways: list[Gateway], others: dict[str, StandIn]
) -> None:
    key = str(uuid.uuid4())
    counted = Counted(gateways)
    nowhere(gateways[0], Idempotency_Key=key)
    counted.become([1, 1, 1])
    count = len(others["user"].commands)
    for gateway in gateways:
        answer = gateway.client.post("/users/auth-code", {"external_id": "ada"}, BACKEND, Idempotency_Key=key)
        assert answer.status == 409 and answer.json["errorCode"] == "ID_REUSED", answer
    assert len(others["user"].commands) == count, "the user service was not asked"


@pytest.mark.parametrize("key", [None, "the same"])
def test_a_saga_ends_at_every_replica_that_asked(
    running: GatewayDeployment, gateways: list[Gateway], others: dict[str, StandIn], key: str | None
) -> None:
    """The second asks while the saga goes on: it is told `pending`, and then the final answer."""
    install = fresh("install")
    assert running.bus.ask(c.register(install))["status"] == "succeeded"
    linked = gateways[0].client.post(f"/v2/users/{install}/link", {"external_id": fresh("ext")}, BACKEND)
    user, sync = linked.text_of("id"), others["sync"]
    headers = bearer(BACKEND) | ({"Idempotency-Key": str(uuid.uuid4())} if key else {})
    ready, sync.script = sync.script, lambda _: []
    answers: dict[int, Answer] = {}
    counted = Counted(gateways)

    def erase(number: int) -> threading.Thread:
        def run() -> None:
            answers[number] = gateways[number].client.send("DELETE", f"/users/{user}", headers=headers)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def asked() -> list[dict[str, Any]]:
        return [one.envelope for one in list(sync.commands) if one.data["userId"] == user]

    threads = [erase(0)]
    counted.become([1, 1, 1] if key else [1, 0, 0])
    threads.append(erase(1))
    counted.become([2, 2, 2] if key else [1, 1, 0])
    until(asked, 15, "the command to sync")
    assert not answers
    sync.script = ready
    sync.answer(asked()[0], erased())
    for thread in threads:
        thread.join(30)
    assert {number: answer.status for number, answer in answers.items()} == {0: 200, 1: 200}
    assert answers[0].json == answers[1].json and answers[0].json["completedAt"], answers
    # With a key there is one command with one final answer; without one there are two.
    counted.become([3, 3, 3] if key else [2, 2, 0])


def test_partitions_that_are_added_are_read(make_deployment: Callable[..., Any]) -> None:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    if deployment.broker.is_embedded:
        pytest.skip("Apache only: the embedded broker adds no partitions")
    deployment.process("link").start().wait_ready()
    gateway = deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="3000").start().wait_ready()
    nowhere(gateway)
    before = partitions(gateway)
    topic = f"{deployment.prefix}identity.replies.gateway.v1"
    admin = AdminClient(deployment.broker.client())
    count = len(deployment.broker.partitions(topic))
    for future in admin.create_partitions([NewPartitions(topic, 2 * count + 1)]).values():
        future.result(30)

    def answered(**headers: str) -> bool:
        answer = gateway.client.post("/v2/users/nope/link", {"external_id": fresh("ext")}, BACKEND, **headers)
        # Those on their way may not be answered, and while it looks for the new ends none is taken.
        assert answer.status in (404, 503, 504), answer
        return answer.status == 404

    until(lambda: len(gateway.lines('"replies.read"')) == 2, 30, "the gateway to look again")
    gateway.wait_ready()
    assert partitions(gateway) >= before, "a service that does not know yet of the new ones is heard"
    for _ in range(20):
        assert answered()
        assert answered(Idempotency_Key=str(uuid.uuid4()))
