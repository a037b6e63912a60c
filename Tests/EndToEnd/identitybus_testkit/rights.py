# SPDX-License-Identifier: Apache-2.0
"""What a user of a Kafka with ACLs may do."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType)

from .broker import Broker
from .commands import fresh
from .deployment import Deployment
from .kafka import Kafka


class Rights:
    """Of a user who may do everything with topics and groups under a prefix, but for what is denied. Without a prefix: who
    may do nothing."""

    def __init__(self, broker: Broker, user: str, prefix: str) -> None:
        self._admin = AdminClient(broker.client())
        self.user = user
        for kind in (ResourceType.TOPIC, ResourceType.GROUP) if prefix else ():
            self._allow(kind, prefix, ResourcePatternType.PREFIXED, AclOperation.ALL)

    def _allow(self, kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation) -> None:
        self._create(self._binding(kind, name, pattern, operation, AclPermissionType.ALLOW))

    def _binding(self, kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation,
                 permission: AclPermissionType) -> AclBinding:
        return AclBinding(kind, name, pattern, f"User:{self.user}", "*", operation, permission)

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


class Lesser:
    """A user of a deployment's broker who may use what is the deployment's, unless `may_nothing`, and the settings by which
    a service or a tool is that one."""

    def __init__(self, kafka: Kafka, deployment: Deployment, may_nothing: bool = False) -> None:
        self.deployment = deployment
        self.name = fresh("services")
        self.environment = kafka.user(self.name, deployment.directory / f"{self.name}.password").service_environment()
        self.rights = Rights(deployment.broker, self.name, "" if may_nothing else deployment.prefix)
