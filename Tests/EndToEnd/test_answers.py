# SPDX-License-Identifier: Apache-2.0
"""Who gets which answer: an `Idempotency-Key` for two requests at once, late, and over several gateways."""

import threading
import uuid
from typing import Any, Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client
from identitybus_testkit.secrets import digest
from identitybus_testkit.standin import succeeded
from identitybus_testkit.waiting import until

BACKEND = "demo-backend"


@pytest.fixture(scope="module")
def running(gateway_deployment: GatewayDeployment) -> GatewayDeployment:
    for service in [gateway_deployment.process(name).start() for name in ("link", "user")]:
        service.wait_ready()
    return gateway_deployment


@pytest.fixture(scope="module")
def gateways(running: GatewayDeployment) -> list[Gateway]:
    # A service that stood still for long is given its partitions anew first.
    found = [running.gateway(GATEWAY_REPLY_TIMEOUT_MS="25000") for _ in range(2)]
    for gateway in found:
        gateway.start()
    for gateway in found:
        gateway.wait_ready()
    return found


def code(client: Client, external_id: str, key: str) -> Answer:
    return client.post("/users/auth-code", {"external_id": external_id}, BACKEND, Idempotency_Key=key)


class Asked:
    """Requests that wait, each on a thread of its own."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._answers: dict[int, Answer] = {}

    def ask(self, request: Callable[[], Answer]) -> int:
        number = len(self._threads)

        def run() -> None:
            self._answers[number] = request()

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()
        return number

    def answer(self, number: int, timeout: float = 30) -> Answer:
        self._threads[number].join(timeout)
        return self._answers[number]


def code_is_of(running: GatewayDeployment, client: Client, answer: Answer, external_id: str) -> None:
    """The code opens the account of `external_id`, and nobody else's."""
    install = fresh("install")
    device = {"kind": "phone", "platform": "ios"}
    user = client.post(
        "/sdk/v1/users", {"installId": install, "device": device, "authCode": answer.text_of("authentication_code")},
        "demo-sdk")
    assert user.status == 200, user
    assert running.bus.ask(c.query(install))["result"]["externalId"] == external_id


def pause(running: GatewayDeployment) -> None:
    for service in running.services[:2]:
        service.pause()


def resume(running: GatewayDeployment) -> None:
    for service in running.services[:2]:
        service.resume()


def refused(answer: Answer) -> None:
    assert answer.status == 409 and answer.json["errorCode"] == "ID_REUSED", answer


def test_two_bodies_under_one_key_at_once(running: GatewayDeployment, gateways: list[Gateway]) -> None:
    """At one gateway the second is refused before anything is decided."""
    alice, bob, key = fresh("alice"), fresh("bob"), str(uuid.uuid4())
    gateway, asked = gateways[0], Asked()
    pause(running)
    try:
        asked.ask(lambda: code(gateway.client, alice, key))
        until(lambda: gateway.metric("gateway_requests_in_flight") == 1, 10, "the first waits")
        refused(code(gateway.client, bob, key))
    finally:
        resume(running)
    first = asked.answer(0)
    assert first.status == 200
    code_is_of(running, gateway.client, first, alice)
    refused(code(gateway.client, bob, key))
    assert code(gateway.client, alice, key).body == first.body


def test_two_bodies_under_one_key_at_two_gateways_at_once(
    running: GatewayDeployment, gateways: list[Gateway]
) -> None:
    """Both gateways read the replies to keyed requests; each waits for the one to what it sent."""
    names, key = [fresh("alice"), fresh("bob")], str(uuid.uuid4())
    asked = Asked()
    pause(running)
    try:
        for gateway, name in zip(gateways, names):
            asked.ask(lambda gateway=gateway, name=name: code(gateway.client, name, key))  # type: ignore[misc]
            until(lambda: gateway.metric("gateway_requests_in_flight") == 1, 10, "it waits")
    finally:
        resume(running)
    answers = [asked.answer(number) for number in range(2)]
    assert sorted(answer.status for answer in answers) == [200, 409]
    for answer, name in zip(answers, names):
        if answer.status == 200:
            code_is_of(running, gateways[0].client, answer, name)
        else:
            refused(answer)


def test_two_endpoints_under_one_key(running: GatewayDeployment, gateways: list[Gateway]) -> None:
    """Of two services, which know nothing of each other's commands."""
    key, asked = str(uuid.uuid4()), Asked()

    def link(client: Client) -> Answer:
        return client.post("/v2/users/nope/link", {"external_id": "ada"}, BACKEND, Idempotency_Key=key)

    alice = fresh("alice")
    pause(running)
    try:
        asked.ask(lambda: code(gateways[0].client, alice, key))
        until(lambda: gateways[0].metric("gateway_requests_in_flight") == 1, 10, "the first waits")
        refused(link(gateways[0].client))
    finally:
        resume(running)
    first = asked.answer(0)
    assert first.status == 200 and first.json["authentication_code"]
    refused(link(gateways[0].client))
    # The other gateway has read the reply when it has the next one of the shared partition.
    assert code(gateways[1].client, alice, str(uuid.uuid4())).status == 200
    refused(link(gateways[1].client))


def test_a_reply_that_comes_after_504_answers_nobody_else(
    running: GatewayDeployment, gateways: list[Gateway]
) -> None:
    hasty = running.gateway(GATEWAY_REPLY_TIMEOUT_MS="500").start().wait_ready()
    assert isinstance(hasty, Gateway)
    alice, bob, key, asked = fresh("alice"), fresh("bob"), str(uuid.uuid4()), Asked()
    pause(running)
    try:
        assert code(hasty.client, alice, key).status == 504
        # Another gateway knows nothing of it, and waits.
        asked.ask(lambda: code(gateways[0].client, bob, key))
        until(lambda: gateways[0].metric("gateway_requests_in_flight") == 1, 10, "it waits")
        refused(code(hasty.client, bob, key))
    finally:
        resume(running)
    # The two commands may lie on two partitions: either one is decided first, and the other one is refused.
    answered = asked.answer(0)
    # It is hasty still, and whoever gets 504 asks again.
    again = until(
        lambda: answer if (answer := code(hasty.client, alice, key)).status != 504 else None, 30, "an answer for alice")
    answers = [(answered, bob), (again, alice)]
    assert sorted(answer.status for answer, _ in answers) == [200, 409]
    for answer, name in answers:
        if answer.status == 200:
            code_is_of(running, gateways[0].client, answer, name)
        else:
            refused(answer)
    hasty.stop()


def test_a_reply_that_names_another_command_or_none_answers_nobody(
    make_deployment: Callable[..., Any],
) -> None:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    nameless = [True]

    def script(command: dict[str, Any]) -> list[dict[str, Any]]:
        result = {"userId": "u", "installId": "i", "isActive": True, "personCreated": True, "version": 1}
        name: dict[str, Any] = {"commandDigest": ... if nameless[0] else "0" * 64}
        wrong = succeeded(result | {"userId": "wrong"}) | name
        return [wrong] if nameless[0] else [wrong, succeeded(result)]

    deployment.stand_in("link", script)
    hasty, patient = (
        deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS=patience).start() for patience in ("1500", "25000"))

    def link(gateway: Gateway) -> Answer:
        gateway.wait_ready()
        answer: Answer = gateway.client.post("/v2/users/i/link", {"external_id": "ada"}, BACKEND)
        return answer

    assert link(hasty).status == 504
    nameless[0] = False
    answer = link(patient)
    assert answer.status == 200 and answer.json == {"id": "u"}


def test_every_kind_of_answer_names_its_command(running: GatewayDeployment) -> None:
    bus = running.bus
    good = c.query(fresh("install"))
    foreign = good.again().but(signer="demo-sdk")
    forged = good.again().but(signer="nobody")
    unknown = good.again().but(type="link.unknown")
    for command in (good, foreign, forged, unknown, good):
        bus.send(command)
        record = bus.reply_records(command.id)[-1]
        assert record.data["commandDigest"] == digest(command.full_type, command.data), record
    other = good.but(data={"installId": fresh("install")}, subject=good.subject)
    bus.send(other)
    records = bus.reply_records(good.id, 3)
    assert records[-1].data["reason"] == "ID_REUSED"
    assert records[-1].data["commandDigest"] == digest(other.full_type, other.data)
