# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Who may read and write what": a service that lacks one right at an Apache Kafka with ACLs says which, once,
and goes on when it has it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType)

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.kafka import HOME, Kafka
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


class Rights:
    """A user who may use topics and groups under a prefix, but for what is denied."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path) -> None:
        self._admin = AdminClient({"bootstrap.servers": kafka.servers})
        self._user, password, file = fresh("services"), uuid.uuid4().hex, folder / f"password-{uuid.uuid4().hex[:8]}"
        kafka.set_password(self._user, password)
        file.write_text(password)
        self.environment = kafka.scram(self._user, file).service_environment()
        for kind in (TOPIC, GROUP):
            self._create(self._binding(kind, prefix, ResourcePatternType.PREFIXED, AclOperation.ALL, AclPermissionType.ALLOW))

    def _binding(self, kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation,
                 permission: AclPermissionType) -> AclBinding:
        return AclBinding(kind, name, pattern, f"User:{self._user}", "*", operation, permission)

    def _create(self, binding: AclBinding) -> None:
        for future in self._admin.create_acls([binding]).values():
            future.result(30)

    @contextmanager
    def without(self, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
        denial = self._binding(kind, name, ResourcePatternType.LITERAL, operation, AclPermissionType.DENY)
        self._create(denial)
        yield
        entry = AclBindingFilter(
            denial.restype, denial.name, denial.resource_pattern_type, denial.principal, denial.host, denial.operation,
            denial.permission_type)
        for future in self._admin.delete_acls([entry]).values():
            future.result(30)


@pytest.fixture(scope="module")
def kafka(directory: Path) -> Iterator[Kafka]:
    kafka = Kafka(directory / f"kafka-{uuid.uuid4().hex[:8]}", has_rights=True)
    yield kafka.start()
    kafka.close()


@pytest.fixture
def rights(kafka: Kafka, make_deployment: Callable[..., Deployment], tmp_path: Path) -> tuple[Deployment, Rights]:
    deployment = make_deployment(on=kafka.open())
    return deployment, Rights(kafka, deployment.prefix, tmp_path)


@pytest.mark.parametrize("starts", [True, False], ids=["at the start", "while it runs"])
@pytest.mark.parametrize("what", MISSING)
def test_a_right_that_is_missing_is_named(what: str, starts: bool, rights: tuple[Deployment, Rights]) -> None:
    deployment, user = rights
    kind, name, operation, check, words = MISSING[what]
    service = deployment.service(**user.environment)
    if not starts:
        service.start().wait_ready()
    with user.without(kind, deployment.prefix + name, operation):
        if starts:
            # Whoever may make topics needs to see them; here somebody else has made them.
            deployment.broker.create([f"{deployment.prefix}identity.link.{kind}.v1" for kind in ("commands", "events", "dlq")])
            service.start()
        wait_until_told(service, check, words, deployment.prefix + name, starts=starts)
        print(f"\n{what}: {service.failed_checks()[check]}")
    wait_until_over(deployment, service, check)
    assert service.stop() == 0


def test_the_right_to_write_idempotently_is_not_needed(rights: tuple[Deployment, Rights]) -> None:
    """Since Kafka 2.8, whoever may write to one topic has it."""
    deployment, user = rights
    with user.without(ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE):
        service = deployment.service(**user.environment).start().wait_ready(TOLD)
        assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
        assert not service.complaints(), service.complaints()
    assert service.stop() == 0
