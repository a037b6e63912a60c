# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Passwords, tokens and certificates that change", on an Apache Kafka under load: the file that services and a
gateway sign in with changes for two minutes, and whoever asks over HTTP notices nothing. The broker closes each connection 15 s
after it was signed in, so that each change is needed."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit.crowd import Balancer, Crowd
from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.kafka import HOME, SIGNED_IN_FOR, Kafka, Listener, unsigned
from identitybus_testkit.service import Service
from test_changing_secrets import put
from test_rolling_restart import Rolling

pytestmark = [
    pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(not HOME, reason="needs an Apache Kafka to start: TEST_KAFKA_HOME names its folder")]

SECONDS = float(os.environ.get("E2E_SIGN_IN_SECONDS") or 120)
EVERY = 20.0
RATE = float(os.environ.get("E2E_SIGN_IN_RATE") or 60)


@pytest.fixture(scope="module")
def kafka(directory: Path) -> Iterator[Kafka]:
    kafka = Kafka(directory / f"kafka-{uuid.uuid4().hex[:8]}")
    yield kafka.start()
    kafka.close()


class Passwords:
    """A user of Kafka whose password changes."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.kafka, self.user, self.file = kafka, fresh("services"), directory / "kafka-password"
        self.told: list[str] = []
        self.change()
        self.listener: Listener = kafka.scram(self.user, self.file)

    def change(self) -> None:
        self.told.append(f"e2e-{uuid.uuid4().hex}-not-for-logs")
        self.kafka.set_password(self.user, self.told[-1])
        put(self.file, f"{self.told[-1]}\n")

    def settle(self) -> None:
        """What is in force stays so."""

    def check(self, service: Service, changes: int) -> None:
        """It says so once for each, however many clients it has."""
        assert len(service.lines('"kafka.password-changed"')) == changes, service.tail()


class Tokens:
    """A token that lives for half as long again as it takes until the next one is there."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.file = directory / "kafka-token"
        self.told: list[str] = []
        self.change()
        self.listener = kafka.tokens(self.file)

    def change(self, seconds: float = EVERY * 1.5) -> None:
        self.told.append(unsigned("services", seconds))
        put(self.file, self.told[-1])

    def settle(self) -> None:
        self.change(3600)

    def check(self, service: Service, changes: int) -> None:
        """None of the first is good any more, and a connection does not outlive its token."""


@pytest.mark.parametrize("how", [Passwords, Tokens], ids=["scram", "token"])
def test_what_signs_in_changes_under_load(
    how: type[Passwords] | type[Tokens], kafka: Kafka, directory: Path, make_deployment: Callable[..., GatewayDeployment]
) -> None:
    folder = directory / f"sign-in-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    secret = how(kafka, folder)
    deployment = make_deployment("postgresql", services=("link", "user", "sync", "verification"), kind=GatewayDeployment,
                                 on=secret.listener)
    rolling = Rolling(deployment, replicas=1, is_patient=True)
    everybody = [service for services in rolling.replicas.values() for service in services]
    processes = [service.process.pid for service in everybody]
    balancer = Balancer(rolling.gateways)
    crowd = Crowd(balancer, rolling.make, RATE, int(10 * RATE)).start()
    # Tokens were new when the services began.
    began, changes = time.monotonic(), 0
    try:
        while (passed := time.monotonic() - began) < SECONDS:
            assert not crowd.problems, crowd.problems
            if passed > changes * EVERY:
                secret.change()
                changes += 1
            time.sleep(0.2)
        secret.settle()
        time.sleep(SIGNED_IN_FOR)
    finally:
        crowd.finish()
        balancer.close()
    print(f"\n{how.__name__}: {changes} changes; {crowd}")
    assert set(crowd.statuses) <= {"200", "503"} and crowd.statuses["503"] < len(crowd.done) / 20, crowd
    assert changes >= SECONDS // EVERY and [service.process.pid for service in everybody] == processes
    rolling.check(crowd)
    assert not [letters for letters in deployment.bus.collector.dead_letters.values() if letters]
    for service in everybody:
        secret.check(service, changes)
        assert not [told for told in secret.told if told in service.log.read_text()]
        errors = [line for line in service.text.splitlines() if json.loads(line)["level"] in ("error", "critical")]
        assert not errors, errors[:3]
        assert service.stop() == 0
