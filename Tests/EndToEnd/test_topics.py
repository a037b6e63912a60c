# SPDX-License-Identifier: Apache-2.0
"""`identitybus topics`, and services that make no topics (TOPIC_CREATE=never). What needs a Kafka with admin requests, or
one with access rules and users, is skipped where there is none and none can be started."""

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient, AlterConfigOpType, ConfigEntry,
    ConfigResource, NewTopic, ResourcePatternType, ResourceType)

from identitybus_testkit.broker import LINK_TOPICS, SERVICES, Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.kafka import Kafka
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.service import Service
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

Make = Callable[..., Deployment]
APPS = {"IDENTITYBUS_APPS": str(REPOSITORY / "config" / "apps.yaml")}
IS_KAFKA = bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS"))
MEMBERS = (*SERVICES, "gateway")


def topics(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return tool("topics", *arguments, environment=APPS | environment)


def read_properties(text: str) -> dict[str, NewTopic]:
    """As somebody reads them who makes topics."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(.*)\.(partitions|replication\.factor|config\.[^=]+)=(.*)", line)
        assert match, line
        found.setdefault(match[1], {})[match[2]] = match[3]
    return {
        name: NewTopic(
            name, num_partitions=int(settings.pop("partitions")),
            replication_factor=int(settings.pop("replication.factor")),
            config={key.removeprefix("config."): value for key, value in settings.items()})
        for name, settings in found.items()}


# Without a broker


def test_all_forms_have_the_same_topics(tmp_path: Any) -> None:
    """Offline, from the settings and the apps file."""
    settings = {"TOPIC_PREFIX": "x.", "TOPIC_PARTITIONS": "3", "TOPIC_REPLICATION_FACTOR": "3"}
    answers = {form: topics("--format", form, **settings) for form in ("properties", "terraform", "strimzi", "sh")}
    for answer in answers.values():
        assert answer.returncode == 0 and not answer.stderr, answer
    expected = read_properties(answers["properties"].stdout)
    terraform = json.loads(answers["terraform"].stdout)["resource"]["kafka_topic"].values()
    assert {one["name"]: one["config"] for one in terraform} == {name: one.config for name, one in expected.items()}
    strimzi = [one["spec"] for one in yaml.safe_load_all(answers["strimzi"].stdout)]
    assert {one["topicName"]: {key: str(value) for key, value in one["config"].items()} for one in strimzi} == {
        name: one.config for name, one in expected.items()}
    shell = [shlex.split(line) for line in answers["sh"].stdout.splitlines() if not line.startswith("#")]
    assert [line[line.index("--topic") + 1] for line in shell] == list(expected)
    assert expected["x.identity.link.commands.v1"].config["min.insync.replicas"] == "2"
    assert {name for name, one in expected.items() if one.num_partitions != 3} == {
        "x.identity.status.v1",
        *(f"x.identity.{service}.dlq-actions.v1" for service in ("link", "user", "sync", "verification"))}
    # The shell runs it as it stands.
    program = tmp_path / "kafka-topics"
    program.write_text('#!/bin/sh\necho "$@" >>"$0.calls"\n')
    program.chmod(0o755)
    subprocess.run(["sh", "-eu"], input=answers["sh"].stdout, text=True, check=True,
                   env={"B": "a:1", "PATH": f"{tmp_path}:/usr/bin:/bin"})
    calls = (tmp_path / "kafka-topics.calls").read_text().splitlines()
    assert len(calls) == len(expected) and calls[0].startswith("--bootstrap-server a:1 --create --if-not-exists")
    said = topics("--format", "sh").stderr
    assert said == "copies    3, since TOPIC_REPLICATION_FACTOR does not say how many\n"


def test_rights_are_lines_of_kafka_acls() -> None:
    users = ",".join(f"{member}=User:ib-{member}" for member in (*MEMBERS, "operator"))
    answer = topics("--acls", "--principal", users, TOPIC_CREATE="never")
    assert answer.returncode == 0 and not answer.stderr, answer
    bindings = [one for line in answer.stdout.splitlines() if not line.startswith("#") for one in parse(line)]
    lines = [json.loads(line) for line in
             topics("--acls", "--principal", users, "--json", TOPIC_CREATE="never").stdout.splitlines()]
    assert {(line["principal"], line["name"], operation.lower()) for line in lines for operation in line["operations"]} == {
        (one.principal, one.name, one.operation.name.replace("_", "").lower()) for one in bindings}
    assert not [one for one in bindings if one.operation == AclOperation.CREATE]
    assert "--operation Create" in topics("--acls", "--principal", users).stdout


@pytest.mark.parametrize("arguments, status, words", [
    (["--acls"], 64, "--principal link=User:ib-link,gateway=User:ib-gateway"),
    (["--acls", "--principal", "lnik=User:x"], 64, "Did you mean link?"),
    (["--format", "yaml"], 64, "properties"), (["--create", "--format", "sh"], 64, "give one of them"),
    (["--format", "sh", "--apps", "/none"], 78, "/none"), ([], 78, "no broker is named"),
])
def test_what_is_wrong_is_named(arguments: list[str], status: int, words: str, tmp_path: Any) -> None:
    answer = topics(*arguments, "--data-dir", str(tmp_path))
    assert answer.returncode == status and words in answer.stderr and not answer.stdout, answer


@pytest.mark.skipif(IS_KAFKA, reason="is about the embedded broker")
def test_the_embedded_broker_is_looked_at(broker: Broker) -> None:
    environment = broker.service_environment()
    answer = topics(**environment)
    assert answer.returncode == 0 and answer.stdout.endswith("topics, all there. The embedded broker does not tell their settings.\n"), answer
    lines = [json.loads(line) for line in topics("--json", **environment).stdout.splitlines()]
    assert {line["state"] for line in lines} == {"ok"} and len(lines) == 23
    absent = topics("--create", TOPIC_PREFIX="absent.", **environment)
    assert absent.returncode == 3 and "the embedded broker makes no topics" in absent.stderr, absent
    assert "MISSING" in topics(TOPIC_PREFIX="absent.", **environment).stdout


# TOPIC_CREATE=never


def missing(service: Service, *names: str, within: float = 30) -> None:
    """It is not ready for want of these, says so everywhere, and does not end."""
    def told() -> bool:
        detail = service.failed_checks().get("topics", "")
        return all(name in detail for name in names)

    until(told, within, lambda: f"{names}: {service.failed_checks()}\n{service.tail()}")
    metric = f'identity_check_ok{{check="topics",service="{service.name}"}} 0'
    until(lambda: metric in service.get("/metrics")[1], 5, lambda: service.get("/metrics")[1])
    assert [line for line in service.lines('"event":"topics.') if all(name in line for name in names)], service.tail()
    assert service.get("/livez")[0] == 200 and service.is_running


def test_a_missing_topic_is_waited_for(make_deployment: Make) -> None:
    deployment = make_deployment()
    prefix = f"{fresh('never')}."
    names = [prefix + topic for topic in LINK_TOPICS]
    service = deployment.service(TOPIC_CREATE="never", TOPIC_PREFIX=prefix).start()
    missing(service, "topics missing: ", *names, "TOPIC_CREATE is never; identitybus topics --create makes them")
    deployment.broker.create(names[1:])
    until(lambda: names[1] not in service.failed_checks()["topics"], 30, lambda: service.failed_checks())
    missing(service, names[0])
    assert not service.lines("topics created")
    deployment.broker.create(names[:1])
    service.wait_ready()
    until(lambda: service.lines('"event":"topics.up"'), 5, service.tail)
    assert service.stop() == 0
    deployment.broker.delete_all(prefix)


def test_a_gateway_waits_for_its_reply_topic(make_deployment: Make) -> None:
    deployment = make_deployment(kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    prefix = f"{fresh('never')}."
    topic = f"{prefix}identity.replies.gateway.v1"
    gateway = deployment.gateway(TOPIC_CREATE="never", TOPIC_PREFIX=prefix).start()
    missing(gateway, f"topic {topic} does not exist")
    deployment.broker.create([topic])
    gateway.wait_ready()
    assert gateway.stop() == 0
    deployment.broker.delete_all(prefix)


def test_topics_are_made_from_the_properties(real_broker: Broker, make_deployment: Make) -> None:
    """All but one; then that one too, by the tool. Weak ones are told with what may come of it."""
    deployment = make_deployment(on=real_broker, kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    environment = deployment.environment() | {"TOPIC_REPLICATION_FACTOR": "1", "TOPIC_CREATE": "never"}
    wanted = read_properties(tool("topics", "--format", "properties", environment=environment).stdout)
    absent = f"{deployment.prefix}identity.link.dlq.v1"
    admin = AdminClient(deployment.broker.client())
    for future in admin.create_topics([topic for name, topic in wanted.items() if name != absent]).values():
        future.result(30)
    services = [deployment.process(name, TOPIC_CREATE="never").start() for name in SERVICES]
    gateway = deployment.gateway(TOPIC_CREATE="never").start().wait_ready()
    for service in services[1:]:
        service.wait_ready()
    missing(services[0], absent)

    def rows() -> tuple[int, dict[str, str], str]:
        answer = tool("topics", environment=environment)
        assert not answer.stderr, answer
        lines = answer.stdout.splitlines()
        return answer.returncode, {line.split()[0]: line for line in lines[1:-1]}, lines[-1]

    status, table, summary = rows()
    assert status == 3 and re.search(r" - +MISSING$", table[absent]), table
    assert summary == "1 missing.   identitybus topics --create    makes the missing, changes none"
    made = tool("topics", "--create", environment=environment)
    assert made.returncode == 0 and made.stderr == f"created   {absent}\n", made
    services[0].wait_ready()
    assert rows()[0] == 0

    weak = f"{deployment.prefix}identity.user.commands.v1"
    change = ConfigResource(ConfigResource.Type.TOPIC, weak, incremental_configs=[
        ConfigEntry("retention.ms", "172800000", incremental_operation=AlterConfigOpType.SET)])
    for future in admin.incremental_alter_configs([change]).values():
        future.result(30)

    def told() -> bool:
        status, table, summary = rows()
        reason = "WEAK   retention 2 d, wants 14 d: what nobody has read by then is lost"
        return status == 3 and table[weak].endswith(reason) and summary == "1 weak."

    until(told, 10, lambda: rows())
    answer = gateway.client.post("/v2/users/a/link", {"external_id": "b"}, "demo-backend")
    assert answer.status == 404
    for service in [gateway, *services]:
        assert service.stop() == 0


# Rights


def parse(line: str) -> list[AclBinding]:
    """What a line of kafka-acls allows."""
    words = shlex.split(line)
    assert words[:4] == ["kafka-acls", "--bootstrap-server", "$B", "--add"], line
    user, operations, pattern = "", [], ResourcePatternType.LITERAL
    kind, name = ResourceType.BROKER, "kafka-cluster"
    rest = iter(words[4:])
    for word in rest:
        match word:
            case "--allow-principal": user = next(rest)
            case "--operation": operations.append(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", next(rest)).upper())
            case "--topic": kind, name = ResourceType.TOPIC, next(rest)
            case "--group": kind, name = ResourceType.GROUP, next(rest)
            case "--resource-pattern-type": pattern = ResourcePatternType[next(rest).upper()]
            case "--cluster": pass
            case _: raise AssertionError(line)
    return [AclBinding(kind, name, pattern, user, "*", AclOperation[operation], AclPermissionType.ALLOW)
            for operation in operations]


class Rights:
    """Lines of kafka-acls in force."""

    def __init__(self, broker: Broker) -> None:
        self._admin = AdminClient(broker.client())

    def give(self, *lines: str) -> None:
        for future in self._admin.create_acls([one for line in lines for one in parse(line)]).values():
            future.result(30)

    def take(self, *lines: str) -> None:
        filters = [
            AclBindingFilter(one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation,
                             one.permission_type)
            for line in lines for one in parse(line)]
        for future in self._admin.delete_acls(filters).values():
            future.result(30)


def lines_of(environment: dict[str, str]) -> dict[str, list[str]]:
    """The lines that each has."""
    users = ",".join(f"{member}=User:{member}" for member in MEMBERS)
    answer = tool("topics", "--acls", "--principal", users, environment=environment)
    assert answer.returncode == 0, answer
    lines = [line for line in answer.stdout.splitlines() if not line.startswith("#")]
    return {member: [line for line in lines if f"User:{member} " in line] for member in MEMBERS}


class Five(GatewayDeployment):
    """Users of Kafka who have no rights yet, one for each program."""

    users: dict[str, dict[str, str]] = {}

    def make_users(self, kafka: Kafka) -> None:
        self.users = {
            member: kafka.user(member, self.directory / f"{member}.password").service_environment() for member in MEMBERS}


@pytest.fixture
def five(guarded_kafka: Kafka, make_deployment: Make) -> Five:
    """Apps with topics of their own, too."""
    deployment = make_deployment(on=guarded_kafka.open(), kind=Five)
    assert isinstance(deployment, Five)
    deployment.make_users(guarded_kafka)
    text = deployment.apps_file.read_text()
    deployment.apps_file.write_text(text.replace(
        "    name: Profile link\n", "    name: Profile link\n    ownCommandsTopics: true\n"
        "    replies: identity.replies.linked\n"))
    assert "ownCommandsTopics" in deployment.apps_file.read_text()
    return deployment


def play(environment: dict[str, str]) -> None:
    """The story of scripts/up until support comes, by somebody who may do everything."""
    def send(type: str, key: str, app: str = "demo", **data: object) -> dict[str, Any]:
        answer = tool("send", type, "--app", app, "--key-id", key, "--data", json.dumps(data), "--wait", "30",
                      environment=environment)
        assert answer.returncode == 0, answer
        result: dict[str, Any] = json.loads(answer.stdout)["data"].get("result") or {}
        return result

    def new_user(install: str, device: dict[str, str]) -> str:
        code = send("user.request-auth-code", "demo-backend", externalId="ada")["authenticationCode"]
        return str(send("user.create", "demo-sdk", installId=install, device=device, authCode=code)["userId"])

    def active(*installs: str) -> list[str]:
        return [one for one in installs if send("link.query", "internal", installId=one).get("isActive")]

    phone, second, tablet = (fresh(name) for name in ("phone", "phone", "tablet"))
    ada = new_user(phone, {"kind": "phone", "platform": "ios"})
    assert active(phone) == [phone]
    assert new_user(second, {"kind": "phone", "platform": "ios"}) == ada
    new_user(tablet, {"kind": "tablet", "platform": "ios"})
    assert active(phone, second, tablet) == [second]
    send("user.reset", "demo-sdk", installId=second)
    assert active(phone, second, tablet) == []
    device, stamp = fresh("browser"), {"device_application_stamp": fresh("stamp")}
    for step in ("identify", "login", "logout"):
        known = stamp | ({"customerid": fresh("grace")} if step == "login" else {})
        send(f"sync.{step}", "demo-sdk", deviceId=device, environment="development", knownIdentities=known)
    send("sync.identify", "linked-sdk", app="linked", deviceId=device, environment="development", knownIdentities=stamp)
    token = tool("token", "--app", "support", "--user-id", "ada", environment=environment).stdout.strip()
    send("verification.login", "support-sdk", app="support", deviceId=device, userId="ada", userAuthToken=token)


def single(lines: list[str]) -> list[str]:
    """A line for each operation."""
    found = []
    for line in lines:
        operations = re.findall(r" --operation \w+", line)
        found += [line.replace("".join(operations), operation) for operation in operations]
    return found


def needle(line: str) -> re.Pattern[str]:
    """What a line is about, as a complaint names it: whole, unless the line is about all that begins so."""
    [one] = parse(line)
    is_prefix = one.resource_pattern_type == ResourcePatternType.PREFIXED
    return re.compile(re.escape(one.name) + ("" if is_prefix else r"(?![\w-]|\.\w)"))


def complaints(process: Service) -> list[str]:
    """What it says of what it lacks, now: the checks that fail, and the last word about dead letters."""
    unreadable = process.lines('"event":"dead-letters.unreadable"')
    return [*process.failed_checks().values(), *unreadable[-1:]]


@contextmanager
def running(deployment: Five, **settings: str) -> Iterator[dict[str, Service]]:
    """All five, each as its own Kafka user."""
    processes: dict[str, Service] = {
        name: deployment.process(name, **deployment.users[name], **settings).start() for name in SERVICES}
    processes["gateway"] = deployment.gateway(**deployment.users["gateway"], **settings).start()
    yield processes
    for process in processes.values():
        assert process.stop() == 0


@pytest.mark.alone
@pytest.mark.slow
def test_the_rights_are_enough_and_each_is_needed(five: Five) -> None:
    """The story is played by five users who may do what the lines say. Of each of them one line after the other is taken
    away: its own process names what it lacks."""
    environment = five.environment() | {"TOPIC_CREATE": "never", "TOPIC_REPLICATION_FACTOR": "1"}
    made = tool("topics", "--create", environment=environment)
    assert made.returncode == 0, made
    rights, lines = Rights(five.broker), lines_of(environment)
    rights.give(*(line for each in lines.values() for line in each))
    with running(five, TOPIC_CREATE="never") as processes:
        for process in processes.values():
            process.wait_ready()
        play(environment)
        answer = processes["gateway"].client.post("/v2/users/a/link", {"external_id": "b"}, "demo-backend")  # type: ignore[attr-defined]
        assert answer.status == 404
        letters = Producer(five.broker.client())
        each_right = {member: single(each) for member, each in lines.items()}
        # Who may not say how it is goes on without.
        [row] = [line for line in each_right["gateway"] if line.endswith(".status.v1")]
        each_right["gateway"].remove(row)
        for number in range(max(len(each) for each in each_right.values())):
            taken = {member: each[number] for member, each in each_right.items() if number < len(each)}
            rights.take(*taken.values())
            for member, line in taken.items():
                if "--operation Read" in line and line.endswith(".dlq.v1"):
                    # Its service reads it to say how old the oldest is.
                    for partition in range(12):
                        letters.produce(f"{five.prefix}identity.{member}.commands.v1", b"not JSON", partition=partition)
                    assert letters.flush(30) == 0
            for member, line in taken.items():
                process, words, began = processes[member], needle(line), time.monotonic()
                until(lambda: any(words.search(one) for one in complaints(process)), 60,
                      lambda: f"{member} to name what it lacks: {line}\n{complaints(process)}\n{process.tail()}")
                print(f"{member:13} {time.monotonic() - began:4.1f} s  {' '.join(line.split()[7:])}")
            rights.give(*taken.values())
            for member in taken:
                processes[member].wait_ready(90)
        play(environment)
    rights.take(*(line for each in lines.values() for line in each))


def test_who_makes_topics_needs_the_right_to_each(five: Five) -> None:
    """Without TOPIC_CREATE=never: one after the other starts without a topic, and is told which right it lacks."""
    environment = five.environment() | {"TOPIC_REPLICATION_FACTOR": "1"}
    rights, lines = Rights(five.broker), lines_of(environment)
    absent = f"{five.prefix}identity.link.dlq.v1"
    everybodys = [line for each in lines.values() for line in each]
    withheld = [line for line in everybodys if line.endswith(f"--topic {absent}")]
    assert len(withheld) == 1 and "--operation Create" in withheld[0]
    rights.give(*(line for line in everybodys if line not in withheld))
    rights.give(withheld[0].replace("--operation Create ", ""))
    with running(five, TOPIC_REPLICATION_FACTOR="1") as processes:
        missing(processes["link"], absent, "not created")
        rights.give(*withheld)
        for process in processes.values():
            process.wait_ready()
        assert not [line for process in processes.values() for line in process.complaints()
                    if "topics.down" not in line and "topics.still" not in line]
    rights.take(*everybodys)


def test_who_sees_no_topics_makes_none(five: Five) -> None:
    """Kafka does not tell a stranger what is missing."""
    environment = five.environment() | five.users["link"]
    answer = tool("topics", environment=environment)
    assert answer.returncode == 3 and answer.stdout.endswith(" hidden.\n") and "(Describe)" in answer.stdout, answer
    answer = tool("topics", "--create", environment=environment)
    assert answer.returncode == 77 and "Kafka user link may not see" in answer.stderr and not answer.stdout, answer
