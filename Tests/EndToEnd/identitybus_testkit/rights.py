# SPDX-License-Identifier: Apache-2.0
"""What a user of a Kafka with ACLs may do."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType)

from .broker import Broker


class Rights:
    """Of a user who may do everything with topics and groups under a prefix, but for what is denied."""

    def __init__(self, broker: Broker, user: str, prefix: str) -> None:
        self._admin = AdminClient(broker.client())
        self.user = user
        for kind in (ResourceType.TOPIC, ResourceType.GROUP):
            self._allow(kind, prefix, ResourcePatternType.PREFIXED, AclOperation.ALL)

    def allow_idempotent_writes(self) -> None:
        self._allow(
            ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, AclOperation.IDEMPOTENT_WRITE)

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
