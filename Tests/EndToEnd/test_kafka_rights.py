# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Who may read and write what": a service that lacks one right at an Apache Kafka with ACLs says which, once,
and goes on when it has it."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.kafka import HOME, Kafka
from identitybus_testkit.rights import Rights
from test_operate_injuries import TOLD, wait_until_over, wait_until_told

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(not HOME, reason="needs an Apache Kafka to start: TEST_KAFKA_HOME names its folder")]

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
# What is denied, which check fails for it, and in what words.
MISSING = {
    "read commands": (TOPIC, "identity.link.commands.v1", AclOperation.READ, "topics", "no right to read (Read) the topic"),
    "write events": (TOPIC, "identity.link.events.v1", AclOperation.WRITE, "topics", "no right to write (Write) to the topic"),
    "write letters": (TOPIC, "identity.link.dlq.v1", AclOperation.WRITE, "topics", "no right to write (Write) to the topic"),
    "see events": (TOPIC, "identity.link.events.v1", AclOperation.DESCRIBE, "topics", "no right"),
    "be a member": (GROUP, "identity.link", AclOperation.READ, "group", "no right"),
    "see the group": (GROUP, "identity.link", AclOperation.DESCRIBE, "group", "no right"),
}


@pytest.fixture(scope="module")
def kafka(directory: Path) -> Iterator[Kafka]:
    kafka = Kafka(directory / f"kafka-{uuid.uuid4().hex[:8]}", has_rights=True)
    yield kafka.start()
    kafka.close()


class Lesser:
    """A deployment, and a user of its broker who may use what is the deployment's."""

    def __init__(self, kafka: Kafka, deployment: Deployment, folder: Path) -> None:
        self.deployment = deployment
        user, password, file = fresh("services"), uuid.uuid4().hex, folder / "password"
        kafka.set_password(user, password)
        file.write_text(password)
        self.environment = kafka.scram(user, file).service_environment()
        self.rights = Rights(deployment.broker, user, deployment.prefix)


@pytest.fixture
def lesser(kafka: Kafka, make_deployment: Callable[..., Deployment], tmp_path: Path) -> Lesser:
    return Lesser(kafka, make_deployment(on=kafka.open()), tmp_path)


@pytest.mark.parametrize("starts", [True, False], ids=["at the start", "while it runs"])
@pytest.mark.parametrize("what", MISSING)
def test_a_right_that_is_missing_is_named(what: str, starts: bool, lesser: Lesser) -> None:
    deployment = lesser.deployment
    kind, name, operation, check, words = MISSING[what]
    service = deployment.service(**lesser.environment)
    if not starts:
        service.start().wait_ready()
    with lesser.rights.without(kind, deployment.prefix + name, operation):
        if starts:
            # Whoever may make topics needs to see them; here somebody else has made them.
            deployment.broker.create([f"{deployment.prefix}identity.link.{kind}.v1" for kind in ("commands", "events", "dlq")])
            service.start()
        wait_until_told(service, check, words, deployment.prefix + name, starts=starts)
        print(f"\n{what}: {service.failed_checks()[check]}")
    wait_until_over(deployment, service, check)
    assert service.stop() == 0


def test_the_right_to_write_idempotently_is_not_needed(lesser: Lesser) -> None:
    """Since Kafka 2.8, whoever may write to one topic has it."""
    deployment = lesser.deployment
    with lesser.rights.without(ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE):
        service = deployment.service(**lesser.environment).start().wait_ready(TOLD)
        assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
        assert not service.complaints(), service.complaints()
    assert service.stop() == 0
