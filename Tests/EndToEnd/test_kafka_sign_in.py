# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Passwords, tokens and certificates that change", over TLS on an Apache Kafka under load: the file that
services and a gateway sign in with changes for two minutes, and whoever asks over HTTP notices nothing. The broker closes each
connection 15 s after it was signed in, so that each change is needed. And a broker that is not trusted is named."""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit.crowd import Balancer, Crowd
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import doctor, is_defect, is_sound, tells_no_secret
from identitybus_testkit.fakes import Authority
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.kafka import HOME, SIGNED_IN_FOR, Kafka, Listener, unsigned
from identitybus_testkit.secrets import kafka_password
from identitybus_testkit.service import Service
from identitybus_testkit.up import tool
from test_changing_secrets import put
from test_operate_injuries import wait_until_told
from test_rolling_restart import Rolling

pytestmark = [
    pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(not HOME, reason="needs an Apache Kafka to start: TEST_KAFKA_HOME names its folder")]

SECONDS = float(os.environ.get("E2E_SIGN_IN_SECONDS") or 120)
EVERY = 20.0
RATE = float(os.environ.get("E2E_SIGN_IN_RATE") or 60)


@pytest.fixture(scope="module")
def kafka(directory: Path) -> Iterator[Kafka]:
    name = uuid.uuid4().hex[:8]
    kafka = Kafka(directory / f"kafka-{name}", authority=Authority(directory / f"authority-{name}"))
    yield kafka.start()
    kafka.close()


class Secret:
    """What signs in, and another one every 20 s from `begin` to `settle`."""

    seconds = SECONDS
    listener: Listener

    def __init__(self) -> None:
        self.told: list[str] = []
        self.changes = 0
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="secret", daemon=True)

    def change(self) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        self._thread.start()

    def settle(self) -> None:
        """What is in force stays so."""
        self._stop.set()
        self._thread.join(60)
        assert not self.problems, self.problems

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.change()
                self.changes += 1
                self._stop.wait(EVERY)
        except Exception as problem:  # whoever settles sees it
            self.problems.append(repr(problem))

    def check(self, service: Service) -> None:
        """What a service has said of it."""


class Password(Secret):
    """A user of Kafka whose password changes."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        super().__init__()
        self.kafka, self.user, self.file = kafka, fresh("services"), directory / "kafka-password"
        self.change()
        self.listener = kafka.scram(self.user, self.file)

    def change(self) -> None:
        self.told.append(kafka_password())
        self.kafka.set_password(self.user, self.told[-1])
        put(self.file, f"{self.told[-1]}\n")

    def check(self, service: Service) -> None:
        """It says so once for each, however many clients it has."""
        assert len(service.lines('"kafka.password-changed"')) == self.changes, service.tail()


class Fixed(Secret):
    """A user by PLAIN, whose password the broker reads at its start: the connections alone change."""

    seconds = min(SECONDS, 45.0)

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        super().__init__()
        self.file = directory / "kafka-password"
        self.listener = kafka.plain(self.file)
        self.told.append(self.file.read_text().strip())

    def change(self) -> None:
        """The broker ends connections all the same."""

    def check(self, service: Service) -> None:
        assert not service.lines('"kafka.password-changed"'), service.tail()


class Token(Secret):
    """It lives for half as long again as it takes until the next one is there, from before the services start."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        super().__init__()
        self.file = directory / "kafka-token"
        self.change()
        self.listener = kafka.tokens(self.file)
        self._thread.start()

    def begin(self) -> None:
        self.changes = 0

    def change(self, seconds: float = EVERY * 1.5) -> None:
        self.told.append(unsigned("services", seconds))
        put(self.file, self.told[-1])

    def settle(self) -> None:
        super().settle()
        self.change(3600)


@pytest.mark.parametrize("how", [Password, Fixed, Token], ids=["scram", "plain", "token"])
def test_what_signs_in_changes_under_load(
    how: type[Password] | type[Fixed] | type[Token], kafka: Kafka, directory: Path,
    make_deployment: Callable[..., GatewayDeployment]
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
    secret.begin()
    try:
        ends = time.monotonic() + secret.seconds
        while time.monotonic() < ends:
            assert not crowd.problems and not secret.problems, (crowd.problems, secret.problems)
            time.sleep(0.2)
        secret.settle()
        time.sleep(SIGNED_IN_FOR)
    finally:
        crowd.finish()
        balancer.close()
    print(f"\n{how.__name__}: {secret.changes} changes; {crowd}")
    assert set(crowd.statuses) <= {"200", "503"} and crowd.statuses["503"] < len(crowd.done) / 20, crowd
    assert secret.changes >= secret.seconds // EVERY
    assert [service.process.pid for service in everybody] == processes
    rolling.check(crowd)
    assert not [letters for letters in deployment.bus.collector.dead_letters.values() if letters]
    for service in everybody:
        secret.check(service)
        tells_no_secret(service)
        assert not [told for told in secret.told if told in service.log.read_text()]
        errors = [line for line in service.text.splitlines() if json.loads(line)["level"] in ("error", "critical")]
        assert not errors, errors[:3]
        assert service.stop() == 0


UNTRUSTED = {
    "unknown CA": ("unknown-ca", "no known authority"), "wrong host name": ("wrong-host-name", "another host name")}


@pytest.mark.parametrize("case", UNTRUSTED)
def test_a_broker_that_is_not_trusted_is_named(
    case: str, kafka: Kafka, tmp_path: Path, make_deployment: Callable[..., Deployment]
) -> None:
    """By `doctor` and by a service that starts; with the right authority and name both work."""
    listener = kafka.plain(tmp_path / "kafka-password")
    deployment = make_deployment(on=listener)
    strange = {
        "unknown CA": {"KAFKA_SSL_CA_LOCATION": str(Authority(tmp_path / "stranger").certificate)},
        # Its certificate is for the number.
        "wrong host name": {"KAFKA_BOOTSTRAP_SERVERS": f"localhost:{listener.port}"}}[case]
    environment = deployment.environment() | strange
    cause, words = UNTRUSTED[case]
    place = environment["KAFKA_BOOTSTRAP_SERVERS"]
    service = deployment.service(**strange)
    began = time.monotonic()
    service.start()
    wait_until_told(service, "broker", f"Kafka at {place}", words, starts=True)
    told = time.monotonic() - began
    assert told < 30, "by the clock on the wall"
    print(f"\n{case}: told after {told:.1f} s: {service.failed_checks()['broker']}")
    is_defect(doctor(environment, "--as", "link"), "kafka.certificate", cause, words)
    assert service.stop() == 0
    service.environment |= deployment.environment()
    service.start().wait_ready()
    report = doctor(deployment.environment(), "--as", "link")
    is_sound(report)
    assert {"kafka.tls", "kafka.certificate", "kafka.sasl"} <= report.ids("ok"), report.text
    looked = tool("topics", environment=deployment.environment() | {"TOPIC_REPLICATION_FACTOR": "1"})
    assert looked.returncode in (0, 3) and deployment.bus.commands in looked.stdout, looked
    assert service.stop() == 0
