# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Who may read and write what": a service, a gateway or a tool that lacks one right at an Apache Kafka with ACLs
says which, once, and goes on when it has it."""

import subprocess
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.kafka import Kafka
from identitybus_testkit.rights import Lesser
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until
from test_operate_injuries import TOLD, events, wait_until_over, wait_until_told

# Where no Apache Kafka can be started they are skipped (`guarded_kafka`).
pytestmark = pytest.mark.slow

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


Make = Callable[..., Deployment]
READ_TOPIC, WRITE_TOPIC = MISSING["read commands"][4], MISSING["write events"][4]


@pytest.fixture
def lesser(guarded_kafka: Kafka, make_deployment: Make) -> Lesser:
    return Lesser(guarded_kafka, make_deployment(on=guarded_kafka.open()))


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


# A gateway, and who answers it


@pytest.fixture
def web(guarded_kafka: Kafka, make_deployment: Make) -> Lesser:
    return Lesser(guarded_kafka, make_deployment(on=guarded_kafka.open(), kind=GatewayDeployment))


@pytest.mark.parametrize("kind", ["replies.gateway", "link.commands"])
def test_a_right_that_the_gateway_misses(kind: str, web: Lesser) -> None:
    deployment = web.deployment
    assert isinstance(deployment, GatewayDeployment)
    service = deployment.process("link").start().wait_ready()
    gateway = deployment.gateway(**web.environment).start().wait_ready()
    topic = f"{deployment.prefix}identity.{kind}.v1"
    operation, words = (AclOperation.READ, READ_TOPIC) if kind == "replies.gateway" else (AclOperation.WRITE, WRITE_TOPIC)
    with web.rights.without(ResourceType.TOPIC, topic, operation):
        wait_until_told(gateway, "topics", words, topic)
        status = gateway.client.post("/v2/users/a/link", {"external_id": "b"}, "demo-backend").status
        assert status == 503, status
    gateway.wait_ready(TOLD)
    until(lambda: events(gateway, "topics.up"), 10, gateway.tail)
    assert gateway.client.post("/v2/users/a/link", {"external_id": "b"}, "demo-backend").status == 404
    assert service.stop() == 0


def test_a_right_to_answer_the_gateway(web: Lesser) -> None:
    """Once a service has answered a gateway, the right to do so is looked for whether or not somebody asks."""
    deployment = web.deployment
    assert isinstance(deployment, GatewayDeployment)
    service = deployment.process("link", **web.environment).start().wait_ready()
    gateway = deployment.gateway().start().wait_ready()

    def link() -> int:
        # Nobody has registered it.
        return gateway.client.post("/v2/users/a/link", {"external_id": "b"}, "demo-backend").status

    assert link() == 404
    topic = f"{deployment.prefix}identity.replies.gateway.v1"
    time.sleep(6)
    with web.rights.without(ResourceType.TOPIC, topic, AclOperation.WRITE):
        wait_until_told(service, "topics", WRITE_TOPIC, topic)
    service.wait_ready(TOLD)
    until(lambda: events(service, "topics.up"), 10, service.tail)
    assert link() == 404
    assert service.stop() == 0


# Tools


def test_a_right_that_the_tool_misses(guarded_kafka: Kafka, make_deployment: Make) -> None:
    """Of somebody without any right to the topics: Kafka leaves them out of its lists."""
    deployment = make_deployment(on=guarded_kafka.open())
    nobody = Lesser(guarded_kafka, deployment, may_nothing=True)
    name, environment = nobody.name, deployment.environment() | nobody.environment
    events = f"{deployment.prefix}identity.link.events.v1"
    deployment.broker.ensure([deployment.bus.commands, events])
    sent = tool("send", "link.query", "--app", "demo", "--key-id", "internal", "--data", '{"installId":"i"}',
                environment=environment)
    assert sent.returncode == 77 and "Nothing was sent." in sent.stderr, sent
    assert f"Kafka user {name} may not write {deployment.bus.commands} at " in sent.stderr, sent
    assert f"--operation Write --topic {deployment.bus.commands}" in sent.stderr, sent
    watched = tool("watch", "--topic", events, environment=environment)
    assert watched.returncode == 77 and f"Kafka user {name} may not see {events} at " in watched.stderr, watched
    assert "(READ on the topic)" in watched.stderr, watched
    nothing = tool("watch", "--topic", "identity.nothing.*", environment=environment)
    assert nothing.returncode == 3 and "Or they are there and hidden" in nothing.stderr, nothing
    # What may be read is shown, and what is missing is no success.
    replies = f"{deployment.prefix}identity.replies.v1"
    deployment.broker.ensure([replies])
    for topic in (events, replies):
        deployment.bus.put(b'{"data":{"commandId":"x"}}', [], topic=topic)
    somebody = Lesser(guarded_kafka, deployment)
    with somebody.rights.without(ResourceType.TOPIC, events, AclOperation.READ):
        part = tool("watch", "--from-beginning", "--until", "now", "--json", environment=environment | somebody.environment)
    assert part.returncode == 77 and replies in part.stdout, part
    assert f"what is shown is not all: Kafka user {somebody.name} may not read {events} at " in part.stderr, part


def test_letters_are_not_called_open_by_who_may_not_see_what_was_done(lesser: Lesser) -> None:
    deployment, rights = lesser.deployment, lesser.rights
    deployment.service().start().wait_ready()
    assert deployment.services[0].stop() == 0
    letters, actions = (f"{deployment.prefix}identity.link.{kind}.v1" for kind in ("dlq", "dlq-actions"))
    deployment.broker.ensure([f"{deployment.prefix}identity.user.dlq.v1"])
    environment = deployment.environment() | lesser.environment

    def listed(*words: str) -> subprocess.CompletedProcess[str]:
        return tool("dlq", "list", *words, environment=environment)

    until(lambda: listed("--service", "link").returncode == 0, 30, "the rights")
    with rights.without(ResourceType.TOPIC, actions, AclOperation.ALL):
        until(lambda: listed().returncode, 30, "the denial")
        answer = listed()
        assert answer.returncode == 77 and not answer.stdout, answer
        assert f"Kafka user {rights.user} may not read {actions} at " in answer.stderr, answer
    with rights.without(ResourceType.TOPIC, letters, AclOperation.ALL):
        until(lambda: listed().stderr, 30, "the denial")
        answer = listed()
        assert answer.returncode == 0 and letters in answer.stderr, answer
