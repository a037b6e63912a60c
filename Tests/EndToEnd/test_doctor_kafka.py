# SPDX-License-Identifier: Apache-2.0
"""`identitybus doctor` on Apache Kafka: settings of topics, rights and passwords (docs/command-line.md, "doctor")."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import doctor, is_defect, is_sound, late_clock, sight
from identitybus_testkit.waiting import until
from test_operate_injuries import LESSER, lesser


@pytest.fixture(scope="module")
def topics(make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment()
    if deployment.broker.is_embedded:
        pytest.skip("the embedded broker has neither settings of topics nor rights")
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


@pytest.mark.skipif(LESSER == ":", reason="TEST_KAFKA_USER does not name a user of a Kafka with ACLs")
def test_doctor_of_rights_of_kafka(topics: Deployment) -> None:
    rights, settings = lesser(topics.broker, topics.prefix)
    environment = topics.environment() | settings
    until(lambda: not doctor(environment, "--as", "link").ids("fail"), 30, "the rights")
    events = f"{topics.prefix}identity.link.events.v1"
    for operation, topic, words in (
        (AclOperation.READ, topics.bus.commands, "Read on the topic"), (AclOperation.WRITE, events, "Write on the topic"),
        (AclOperation.DESCRIBE, events, "on the topic"),
    ):
        with rights.without(ResourceType.TOPIC, topic, operation):
            until(lambda: doctor(environment, "--as", "link").ids("fail"), 20, f"{words} {topic}")
            report = doctor(environment, "--as", "link")
            is_defect(report, "kafka.rights", "no-right", f"Kafka user {rights.user} lacks .*{words}s? .*{topic}")
            fix = report.of("kafka.rights")["fix"]
            assert f"--bootstrap-server {environment['KAFKA_BOOTSTRAP_SERVERS']} --add --allow-principal User:{rights.user}" in fix, fix
    is_defect(doctor(environment | {"TOPIC_PREFIX": fresh("nothing")}, "--as", "link"), "kafka.rights", "no-right", "group")


@pytest.mark.skipif(LESSER == ":", reason="TEST_KAFKA_USER does not name a user of a Kafka with ACLs")
def test_doctor_of_a_wrong_password_of_kafka(topics: Deployment) -> None:
    report = doctor(topics.environment() | {"KAFKA_SASL_PASSWORD": "wrong"}, "--as", "link")
    is_defect(report, "kafka.sasl", "wrong-credentials", "refuses the user name or the password")


def test_doctor_of_a_wrong_clock_of_kafka(topics: Deployment, directory: Path) -> None:
    """A minute ahead of us, by the newest record that it has dated."""
    events = f"{topics.prefix}identity.link.events.v1"
    producer = Producer(topics.broker.client())
    producer.produce(events, b"{}")
    producer.flush(30)
    report = doctor(topics.environment() | {"LD_PRELOAD": str(late_clock(directory))}, "--as", "link")
    is_defect(report, "kafka.clock", None, r"the broker is at least ([45][0-9]|60)\.[0-9] s ahead of us")
