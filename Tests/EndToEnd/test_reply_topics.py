# SPDX-License-Identifier: Apache-2.0
"""An app's own reply topic: made by the services, its only one, and nobody else's."""

import json
from typing import Any, Callable

import pytest
from confluent_kafka.admin import AdminClient

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

OWN = "identity.replies.own"


def app(app_id: str, **more: object) -> dict[str, object]:
    return {"id": app_id, "keys": [apps.key(f"{app_id}-backend", "user.link")], **more}


@pytest.fixture(scope="module")
def running(make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment("sqlite")
    apps.write(deployment.apps_file, [*apps.apps(), app("own", replies=OWN), app("late")])
    deployment.service().start().wait_ready()
    deployment.bus.extra_replies = [f"{deployment.prefix}{name}" for name in (OWN, "identity.replies.mine")]
    deployment.broker.ensure([f"{deployment.prefix}identity.replies.mine"])
    return deployment


@pytest.fixture
def bus(running: Deployment) -> Bus:
    return running.bus


def ask(bus: Bus, command: Command, replyto: str | None = None) -> tuple[Record, str]:
    """The reply, and its topic without prefix."""
    if replyto is not None:
        command = command.but(attributes={"replyto": replyto})
    bus.send(command)
    record = bus.reply_records(command.id)[0]
    return record, record.topic.removeprefix(bus.prefix)


def wish(app_id: str) -> Command:
    return c.request(fresh("install"), fresh("ext"), app=app_id)


@pytest.mark.parametrize("replyto", [None, OWN])
def test_the_apps_commands_are_answered_there(bus: Bus, replyto: str | None) -> None:
    record, topic = ask(bus, wish("own"), replyto)
    assert topic == OWN and record.data["reason"] == "INSTALL_NOT_FOUND"


@pytest.mark.parametrize("replyto", ["identity.replies.v1", "identity.replies.mine", "identity.replies.user.v1", "x"])
def test_and_nowhere_else(bus: Bus, replyto: str) -> None:
    command = wish("own")
    record, topic = ask(bus, command, replyto)
    assert topic == OWN and record.data["reason"] == "INVALID_REQUEST"
    # The id is not taken: it is sent again as it should be.
    bus.send(command)
    assert bus.reply_records(command.id, 2)[-1].data["reason"] == "INSTALL_NOT_FOUND"


@pytest.mark.parametrize("replyto", [OWN, "identity.replies.user.v1", "identity.replies.gateway.v1"])
def test_other_apps_may_not_name_it(bus: Bus, replyto: str) -> None:
    """Nor the topics on which services wait for each other."""
    record, topic = ask(bus, wish("demo"), replyto)
    assert topic == "identity.replies.v1" and record.data["reason"] == "INVALID_REQUEST"
    _, topic = ask(bus, wish("demo"), "identity.replies.mine")
    assert topic == "identity.replies.mine"


def test_a_stranger_may_not_name_it_either(bus: Bus) -> None:
    forged = wish("demo").but(signer="nobody")
    record, topic = ask(bus, forged, OWN)
    assert topic == "identity.replies.v1" and record.data["reason"] == "UNAUTHENTICATED"


def test_the_deployments_own_key_is_free(bus: Bus) -> None:
    _, topic = ask(bus, c.query(fresh("install"), app="own"))
    assert topic == "identity.replies.v1"


def test_the_tool_waits_there(running: Deployment) -> None:
    environment = running.broker.service_environment() | {
        "TOPIC_PREFIX": running.prefix, "IDENTITYBUS_APPS": str(running.apps_file)}
    data = json.dumps({"installId": fresh("install"), "externalId": "x"})
    answer = tool(
        "send", "link.request", "--app", "own", "--key-id", "own-backend", "--data", data, "--wait", "60",
        environment=environment)
    assert answer.returncode == 3, answer.stderr
    assert json.loads(answer.stdout)["data"]["reason"] == "INSTALL_NOT_FOUND"


def test_a_topic_that_the_apps_file_names_later_is_made(running: Deployment) -> None:
    name = fresh("identity.replies.late")
    apps.write(running.apps_file, [*apps.apps(), app("own", replies=OWN), app("late", replies=name)])
    topic = running.prefix + name
    admin = AdminClient(running.broker.client())
    until(lambda: topic in admin.list_topics(timeout=10).topics, 30, "the new topic")
    listener = Bus(running.broker, running.prefix)
    listener.extra_replies = [topic]

    def answered() -> Any:
        record, found = ask(listener, wish("late"))
        return found == name and record

    until(answered, 30, "an answer on it")
    listener.close()
    running.services[0].wait_ready()


def test_two_apps_with_one_topic_are_refused(running: Deployment, make_deployment: Callable[..., Deployment]) -> None:
    other = make_deployment("sqlite")
    apps.write(other.apps_file, [app("a", replies=OWN), app("b", replies=OWN)])
    service = other.service().start()
    assert service.wait(20) == 78
    assert "apps a and b" in service.text
