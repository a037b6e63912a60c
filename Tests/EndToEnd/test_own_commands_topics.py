# SPDX-License-Identifier: Apache-2.0
"""An app that has commands topics of its own (`ownCommandsTopics`) waits behind nobody's backlog, and nobody behind its."""

import json
import os
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.dry_run import tried
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.platform import Platform, Traffic
from identitybus_testkit.up import Up, tool
from identitybus_testkit.waiting import until

BACKLOG = 20_000


def own(file: Path, app: str, is_owner: bool = True) -> None:
    """Changes the apps file."""
    content = json.loads(file.read_text())["apps"]
    for settings in content:
        if settings["id"] == app:
            settings["ownCommandsTopics"] = is_owner
    apps.write(file, content)


def written(deployment: Deployment, topic: str) -> int:
    """How many records were written to a topic; 0 where there is none."""
    asker = Consumer(deployment.broker.client(**{"group.id": "e2e-ends", "log_level": 2}))
    try:
        known = topic in asker.list_topics(timeout=30).topics
        places = [TopicPartition(topic, number) for number in deployment.broker.partitions(topic)] if known else []
        return sum(asker.get_watermark_offsets(place, timeout=30)[1] for place in places)
    finally:
        asker.close()


def tries(count: int, app: str, to_own_topic: bool) -> list[Command]:
    """Dry runs about as many installs."""
    return [tried(c.register(fresh("install"), app=app)).but(to_own_topic=to_own_topic) for _ in range(count)]


@pytest.mark.alone
@pytest.mark.parametrize("owner, waits", [("other", False), ("demo", False), (None, True)],
                         ids=["the backlog's app has topics", "the waiting app has topics", "nobody has"])
def test_one_apps_backlog(make_deployment: Callable[..., Deployment], owner: str | None, waits: bool) -> None:
    """`other` has a backlog, `demo` sends one command after the other meanwhile."""
    deployment = make_deployment("sqlite")
    if owner:
        own(deployment.apps_file, owner)
    bus, service = deployment.bus, deployment.service().start().wait_ready()
    assert bus.ask(c.register(fresh("install")))["status"] == "succeeded"
    assert service.stop() == 0
    backlog = tries(BACKLOG, "other", owner == "other")
    bus.send_all(backlog)
    before = bus.collector.answered

    def single() -> Command:
        return c.register(fresh("install")).but(to_own_topic=owner == "demo")

    singles = [single()]
    bus.send(singles[0])
    service.start()
    took: list[float] = []
    while bus.collector.answered - before - len(took) < BACKLOG:
        sent = time.monotonic()
        assert bus.reply(singles[-1].id, timeout=120)["status"] == "succeeded"
        took.append(time.monotonic() - sent)
        singles.append(single())
        bus.send(singles[-1])
    times = sorted(bus.collector.replies[command.id][0].timestamp for command in backlog)
    first = bus.collector.replies[singles[0].id][0].timestamp
    behind = sum(time < first for time in times)
    print(f"{owner}: {BACKLOG} in {times[-1] - times[0]} ms, the first behind {behind}, answered after "
          f"{first - times[0]} ms; {len(took) - 1} later ones took {max(took[1:], default=0):.2f} s at most")
    if waits:
        assert behind > BACKLOG * 0.5, behind
    else:
        # The first batches may be taken before both groups have given their shares.
        assert behind < BACKLOG * 0.3 and len(took) > 2 and max(took[1:]) < 2, (behind, took)
    assert all(len(bus.collector.replies[command.id]) == 1 for command in backlog)
    assert service.stop() == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_command_on_both_topics_is_decided_once(make_deployment: Callable[..., Deployment], engine: str) -> None:
    """In either order, and also when the service is killed in between."""
    deployment = make_deployment(engine)
    own(deployment.apps_file, "demo")
    bus, service = deployment.bus, deployment.service().start().wait_ready()
    commands = [c.register(fresh("install"), user="new").but(to_own_topic=number % 2 == 0) for number in range(200)]

    def elsewhere(command: Command) -> Command:
        return command.but(to_own_topic=not command.to_own_topic)

    bus.send_all(commands[:100])
    bus.send_all([elsewhere(command) for command in commands[:100]])
    bus.reply(commands[0].id)
    service.kill()
    service.start()
    bus.send_all([one for command in commands[100:] for one in (command, elsewhere(command))])
    for command in commands:
        answers = bus.reply_records(command.id, 2)
        assert {answer.value for answer in answers} == {answers[0].value}
        assert answers[0].data["status"] == "succeeded"
        bus.events(command.id, 1)
    assert deployment.database.execute("SELECT count(*) FROM persons") == [(len(commands),)]
    assert service.wait_ready().stop() == 0


def test_the_command_line(make_deployment: Callable[..., Deployment]) -> None:
    """`send` writes to the app's topic, `watch` takes what stands there for commands, `explain` knows it."""
    deployment = make_deployment("sqlite")
    own(deployment.apps_file, "demo")
    service = deployment.service().start().wait_ready()

    def identitybus(*arguments: str) -> str:
        answer = tool(*arguments, environment=deployment.environment())
        assert answer.returncode == 0, answer
        return answer.stdout

    def send(app: str) -> Any:
        data = json.dumps(c.register(fresh("install")).data)
        return json.loads(identitybus(
            "send", "link.register-install", "--app", app, "--key-id", "internal", "--data", data, "--json"))

    sent, shared = send("demo"), send("other")
    topic = f"{deployment.prefix}identity.link.commands.v1"
    assert (sent["topic"], shared["topic"]) == (f"{topic}.demo", topic)
    assert deployment.bus.reply(sent["id"])["status"] == "succeeded"
    line = json.loads(identitybus(
        "watch", "--topic", "*.commands.*", "--from-beginning", "--until", "now", "--id", sent["id"], "--json"))
    assert line["topic"] == f"{topic}.demo"
    told = tool("explain", sent["id"], "--app", "demo", environment=deployment.environment())
    assert told.returncode == 4 and "registration of an install" in told.stdout, "only one service runs"
    assert service.stop() == 0


@pytest.mark.skipif(bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS")), reason="is about the embedded broker")
def test_the_embedded_broker_begins_with_the_topics_of_the_apps_file(
    directory: Path, make_deployment: Callable[..., Deployment]
) -> None:
    """With as many partitions as the services want: no warning meets who tries it."""
    deployment = make_deployment("sqlite")
    own(deployment.apps_file, "demo")
    up = Up(directory / "up-with-own-topics", deployment.apps_file, "").start()
    try:
        broker = up.wait_ready()
        assert len(broker.partitions("identity.link.commands.v1.demo")) == 12
        logs = "".join(path.read_text() for path in sorted((up.data / "logs").iterdir()))
        assert "topics.weak" not in logs and "is not as it should be" not in logs, logs
    finally:
        up.close()


def test_the_gateway_and_services_follow_the_file(make_deployment: Callable[..., Deployment]) -> None:
    """Without a restart: the gateway writes to the app's topic when it is there, and to everybody's when the file says so
    again."""
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    services = [deployment.process(name).start() for name in ("link", "user")]
    for service in services:
        service.wait_ready()
    gateway = deployment.gateway().start().wait_ready()
    topic = f"{deployment.prefix}identity.user.commands.v1.demo"
    plain = deployment.apps_file.read_text()

    def ask() -> int:
        """How many of its commands stand on the app's topic, when one more is answered."""
        answer = gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend")  # type: ignore[attr-defined]
        assert answer.status == 200, (answer.status, answer.body)
        return written(deployment, topic)

    def switch(text: str) -> None:
        part = deployment.apps_file.with_suffix(".part")
        part.write_text(text)
        part.replace(deployment.apps_file)

    assert ask() == 0
    switch(plain.replace("  - id: demo\n", "  - id: demo\n    ownCommandsTopics: true\n", 1))
    until(lambda: ask() > 0, 30, "a command on the app's own topic", 0.2)
    count = written(deployment, topic)
    assert ask() == count + 1
    switch(plain)

    def is_back() -> bool:
        nonlocal count
        before, count = count, ask()
        return count == before

    until(is_back, 30, "a command on everybody's topic", 0.2)
    for service in [*services, gateway]:
        assert service.stop() == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_sagas_go_on_while_the_file_changes(make_deployment: Callable[..., Deployment], engine: str) -> None:
    """What services ask each other for the app goes to its topics, and none of it is lost when it has them no more."""
    platform = make_deployment(engine, kind=Platform)
    assert isinstance(platform, Platform)
    platform.start()
    if engine == "postgresql":
        platform.start("link", "user")
    traffic = Traffic(platform.bus).start()
    asked = [f"{platform.prefix}identity.{name}.commands.v1.demo" for name in ("link", "sync")]

    def counts() -> list[int]:
        return [written(platform, topic) for topic in asked]

    traffic.wait_for_answers(40)
    own(platform.apps_file, "demo")
    until(lambda: counts()[0] > 20, 60, lambda: f"forwards on the app's own topics: {counts()}", 0.5)
    own(platform.apps_file, "demo", False)
    # At once: what is on its way to its topics is asked again where somebody reads.
    platform.stop()
    platform.start()
    traffic.wait_for_answers(40)
    traffic.finish(120)
    platform.stop()
    traffic.check(platform)
