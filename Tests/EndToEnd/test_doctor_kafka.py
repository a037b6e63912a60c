# SPDX-License-Identifier: Apache-2.0
"""`identitybus doctor` on Apache Kafka: settings of topics, rights and passwords (docs/command-line.md, "doctor")."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import doctor, is_defect, is_sound, late_clock, sight
from identitybus_testkit.kafka import Kafka
from identitybus_testkit.rights import Lesser
from identitybus_testkit.secrets import kafka_password
from identitybus_testkit.waiting import until


@pytest.fixture(scope="module")
def topics(real_broker: Broker, make_deployment: Callable[..., Deployment]) -> Deployment:
    """The embedded broker has neither settings of topics nor rights."""
    deployment = make_deployment(on=real_broker)
    deployment.service().start().wait_ready()
    assert deployment.services[0].stop() == 0
    return deployment


def test_doctor_of_a_sound_kafka(topics: Deployment) -> None:
    groups = ("identity.link", "identity.link.replies")
    before = sight(topics, groups), {
        group.group_id for group in AdminClient(topics.broker.client()).list_consumer_groups().result().valid}
    report = doctor(topics.environment(), "--as", "link")
    is_sound(report)
    assert {"kafka.rights", "kafka.topics", "kafka.leaders", "kafka.retention", "kafka.time", "kafka.message-size"
            } <= report.ids("ok"), report.text
    resource = ConfigResource(ConfigResource.Type.TOPIC, topics.bus.commands)
    admin = AdminClient(topics.broker.client())
    kept = admin.describe_configs([resource])[resource].result(30)["retention.bytes"]
    assert kept.value == "-1" and not kept.is_default, "a default of the broker would limit it"
    after = sight(topics, groups), {
        group.group_id for group in AdminClient(topics.broker.client()).list_consumer_groups().result().valid}
    assert after == before


@pytest.mark.parametrize(("setting", "value", "usual", "id", "words"), [
    ("retention.ms", "3600000", "1209600000", "kafka.retention", "retention 1 h, wants 14 d"),
    ("retention.bytes", "1000000", "-1", "kafka.retention", "keeps 1.0 MB of a partition"),
    ("cleanup.policy", "compact", "delete", "kafka.retention", "cleanup.policy compact"),
    ("message.timestamp.type", "CreateTime", "LogAppendTime", "kafka.time", "time by sender, wants broker"),
    ("max.message.bytes", "100000", "2000000", "kafka.message-size", "max.message.bytes 100 kB, wants 2.0 MB"),
])
def test_doctor_of_a_weak_topic(setting: str, value: str, usual: str, id: str, words: str, topics: Deployment) -> None:
    admin = AdminClient(topics.broker.client())

    def change(to: str) -> None:
        # All that is not named goes back to the broker's defaults.
        kept = {"retention.ms": "1209600000", "message.timestamp.type": "LogAppendTime", "max.message.bytes": "2000000"}
        resource = ConfigResource(ConfigResource.Type.TOPIC, topics.bus.commands, set_config=kept | {setting: to})
        for future in admin.alter_configs([resource]).values():
            future.result(30)

    change(value)
    try:
        until(lambda: doctor(topics.environment(), "--as", "link").ids("fail"), 20, "the change")
        report = doctor(topics.environment(), "--as", "link")
        is_defect(report, id, setting, f"{topics.bus.commands}: {words}")
    finally:
        change(usual)


@pytest.fixture(scope="module")
def lesser(guarded_kafka: Kafka, make_deployment: Callable[..., Deployment]) -> Lesser:
    """Who has all rights that the link service needs; it has made its topics, and does not run."""
    deployment = make_deployment(on=guarded_kafka.open())
    deployment.service().start().wait_ready()
    assert deployment.services[0].stop() == 0
    lesser = Lesser(guarded_kafka, deployment)
    environment = deployment.environment() | lesser.environment
    until(lambda: not doctor(environment, "--as", "link").ids("fail"), 30, "the rights")
    return lesser


TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


@pytest.mark.parametrize(("kind", "name", "operation", "words"), [
    (TOPIC, "identity.link.commands.v1", AclOperation.READ, "Read on the topic"),
    (TOPIC, "identity.link.events.v1", AclOperation.WRITE, "Write on the topic"),
    (TOPIC, "identity.link.events.v1", AclOperation.DESCRIBE, "on the topic"),
    (GROUP, "identity.link", AclOperation.READ, "Read on the group"),
])
def test_doctor_of_a_right_that_is_missing(
    kind: ResourceType, name: str, operation: AclOperation, words: str, lesser: Lesser
) -> None:
    """With the line that cures it."""
    deployment = lesser.deployment
    environment = deployment.environment() | lesser.environment
    name = deployment.prefix + name
    with lesser.rights.without(kind, name, operation):
        until(lambda: doctor(environment, "--as", "link").ids("fail"), 20, f"{words} {name}")
        report = doctor(environment, "--as", "link")
    is_defect(report, "kafka.rights", "no-right", f"Kafka user {lesser.name} lacks .*{words}s? .*{name}")
    fix = report.of("kafka.rights")["fix"]
    servers = environment["KAFKA_BOOTSTRAP_SERVERS"]
    assert f"--bootstrap-server {servers} --add --allow-principal User:{lesser.name}" in fix, fix
    until(lambda: not doctor(environment, "--as", "link").ids("fail"), 20, "the right")


def test_doctor_of_no_rights(lesser: Lesser) -> None:
    environment = lesser.deployment.environment() | lesser.environment | {"TOPIC_PREFIX": fresh("nothing")}
    is_defect(doctor(environment, "--as", "link"), "kafka.rights", "no-right", "group")


def test_doctor_of_the_right_to_make_a_topic(lesser: Lesser) -> None:
    """One is missing, and its service may not make it."""
    deployment = lesser.deployment
    environment = deployment.environment() | lesser.environment
    letters = f"{deployment.prefix}identity.link.dlq.v1"
    deployment.broker.delete(letters)
    with lesser.rights.without(TOPIC, letters, AclOperation.CREATE):
        until(lambda: doctor(environment, "--as", "link").ids("fail"), 20, "the denial")
        report = doctor(environment, "--as", "link")
        print(f"\n{report.of('kafka.topics')}")
        is_defect(report, "kafka.topics", "missing", f"missing: {letters}, and they may not be made: ")
        assert f"Kafka user {lesser.name} lacks Create on the topic {letters}" in report.text, report.text
        grant = f"--add --allow-principal User:{lesser.name} --operation Create --topic {letters}"
        assert grant in report.of("kafka.topics")["fix"], report.text
    until(lambda: not doctor(environment, "--as", "link").ids("fail"), 20, "the right")
    deployment.broker.create([letters])


def test_doctor_of_a_wrong_password_of_kafka(lesser: Lesser, tmp_path: Path) -> None:
    (file := tmp_path / "kafka-password").write_text(kafka_password())
    environment = lesser.deployment.environment() | lesser.environment | {"KAFKA_SASL_PASSWORD_FILE": str(file)}
    is_defect(
        doctor(environment, "--as", "link"), "kafka.sasl", "wrong-credentials", "refuses the user name or the password")


def test_doctor_of_a_wrong_clock_of_kafka(topics: Deployment, directory: Path) -> None:
    """A minute ahead of us, by the newest record that it has dated."""
    events = f"{topics.prefix}identity.link.events.v1"
    producer = Producer(topics.broker.client())
    producer.produce(events, b"{}")
    producer.flush(30)
    report = doctor(topics.environment() | {"LD_PRELOAD": str(late_clock(directory))}, "--as", "link")
    is_defect(report, "kafka.clock", None, r"the broker is at least ([45][0-9]|60)\.[0-9] s ahead of us")
