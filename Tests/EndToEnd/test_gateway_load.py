# SPDX-License-Identifier: Apache-2.0
"""200 connections at a steady rate through the gateway and the link service: no error. What it takes is printed, next to
the same commands sent straight over Kafka (`pytest -s`). The numbers mean something only with release builds."""

import json
import os
import time

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import bearer
from identitybus_testkit.load import Load, run

CONNECTIONS = 200
pytestmark = pytest.mark.alone
RATE = float(os.environ.get("E2E_RATE", "1000"))


@pytest.fixture(scope="module")
def running(gateway_deployment: GatewayDeployment) -> GatewayDeployment:
    gateway_deployment.process("link").start().wait_ready()
    return gateway_deployment


@pytest.fixture(scope="module")
def people(running: GatewayDeployment) -> list[tuple[str, str]]:
    """Installs and the external ids that they are linked to."""
    people = [(fresh("install"), fresh("ext")) for _ in range(CONNECTIONS)]
    registrations = [c.register(install) for install, _ in people]
    for registration in registrations:
        running.bus.send(registration)
    for registration in registrations:
        assert running.bus.reply(registration.id)["status"] == "succeeded"
    return people


def over_kafka(running: GatewayDeployment, people: list[tuple[str, str]], rate: float, seconds: float) -> Load:
    load, commands, due = Load(), [], {}
    start = time.monotonic()
    seen = running.bus.collector.replies
    for number in range(int(rate * seconds)):
        command = c.request(*people[number % CONNECTIONS])
        due[command.id] = start + number / rate
        time.sleep(max(0, due[command.id] - time.monotonic()))
        running.bus.send(command)
        commands.append(command.id)
        for id in [id for id in commands if id in seen]:
            load.latencies.append(time.monotonic() - due[id])
            commands.remove(id)
    while commands and time.monotonic() < start + seconds + 30:
        time.sleep(0.0005)
        for id in [id for id in commands if id in seen]:
            load.latencies.append(time.monotonic() - due[id])
            commands.remove(id)
    load.seconds = time.monotonic() - start
    load.statuses["unanswered"] = len(commands)
    return load


def over_http(gateway: Gateway, people: list[tuple[str, str]], rate: float, seconds: float) -> Load:
    authorization = bearer("demo-backend")["Authorization"]

    def request(number: int) -> bytes:
        install, external_id = people[number]
        body = json.dumps({"external_id": external_id}).encode()
        head = (
            f"POST /v2/users/{install}/link HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        return head.encode() + body

    client = gateway.client
    return run(client.host, client.port, request, connections=CONNECTIONS, rate=rate, seconds=seconds)


def check(running: GatewayDeployment, people: list[tuple[str, str]], rate: float, seconds: float) -> None:
    gateway = running.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    print(f"\nover Kafka  {over_kafka(running, people, rate, min(seconds, 5))}")
    load = over_http(gateway, people, rate, seconds)
    print(f"over HTTP   {load}")
    assert set(load.statuses) == {"200"}, load
    # A client sends all of its requests, however late: a gateway that cannot keep up takes longer. A debug build on a
    # busy machine has needed three times as long.
    assert load.seconds < 6 * seconds, load
    assert gateway.metric("gateway_requests_in_flight") == 0
    assert gateway.stop() == 0


def test_a_few_seconds(running: GatewayDeployment, people: list[tuple[str, str]]) -> None:
    check(running, people, RATE, 5)


@pytest.mark.slow
def test_a_quarter_of_a_minute(running: GatewayDeployment, people: list[tuple[str, str]]) -> None:
    """At a rate that a debug build keeps up with."""
    check(running, people, 0.3 * RATE, 15)
