# SPDX-License-Identifier: Apache-2.0
"""Producers and consumers that know nothing of IdentityBus but its documentation: the CloudEvents SDK, kcat, openssl and
a shell. And what happens when they send something twice (guarantee 1)."""

import json
import os
import subprocess
import uuid
from datetime import datetime, timezone
from typing import Any

import pytest
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus, Record
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.secrets import Headers, derived, secret_of, signature
from test_contract import GOLDEN


@pytest.fixture
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


def new_install(bus: Bus) -> str:
    install = fresh("install")
    assert bus.ask(c.register(install))["status"] == "succeeded"
    return install


def sdk_event(command: Command) -> CloudEvent:
    return CloudEvent(
        attributes={
            "id": command.id, "source": command.source, "type": command.full_type, "specversion": "1.0",
            "time": datetime.now(timezone.utc), "datacontenttype": "application/json", "subject": command.subject,
            "appid": command.app, "partitionkey": command.key.decode(),
        },
        data=command.data)


def send_event(bus: Bus, message: kafka.KafkaMessage, signer: str) -> tuple[int, int]:
    headers: Headers = list(message.headers.items())
    key = message.key.encode() if isinstance(message.key, str) else message.key
    headers.append(("signature", signature(signer, bus.commands, headers, message.value)))
    return bus.put(message.value, headers, key)


def parsed(record: Record) -> CloudEvent:
    message = kafka.KafkaMessage(
        headers={name: value or b"" for name, value in record.headers}, key=record.key, value=record.value or b"")
    event = kafka.from_structured(message, JSONFormat())
    assert isinstance(event, CloudEvent)
    return event


# The CloudEvents SDK


SHOWN = {
    **{f"{name} {index}": shown for name, message in CONTRACT.messages.items()
       for index, shown in enumerate(message.get("examples", []))},
    # Of every type there is one, without headers.
    **{path.stem: {"payload": json.loads(path.read_text())} for path in GOLDEN}}


@pytest.mark.parametrize("name", SHOWN)
def test_contracts_the_cloudevents_sdk_reads_what_the_page_shows_in_both_modes(name: str) -> None:
    payload = SHOWN[name]["payload"]
    headers = {"content-type": "application/cloudevents+json"} | SHOWN[name].get("headers", {})
    message = kafka.KafkaMessage(
        headers={header: value.encode() for header, value in headers.items()},
        key=payload.get("partitionkey"), value=json.dumps(payload).encode())
    event = kafka.from_structured(message, JSONFormat())
    again = kafka.from_binary(kafka.to_binary(event, JSONFormat()), JSONFormat())
    for read in (event, again):
        assert isinstance(read, CloudEvent) and read.get_data() == payload.get("data")
        told = read.get_attributes()
        for attribute, value in payload.items():
            if attribute == "time":
                assert told["time"] == datetime.fromisoformat(value.replace("Z", "+00:00"))
            elif attribute != "data":
                assert str(told[attribute]) == str(value), attribute


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_contracts_the_cloudevents_sdk_is_understood_in_both_modes(bus: Bus, mode: str) -> None:
    command = c.request(new_install(bus), fresh("ext\u00e9\u4e2d"))
    event = sdk_event(command)
    write = kafka.to_structured if mode == "structured" else kafka.to_binary
    send_event(bus, write(event, JSONFormat()), command.signer)
    reply = bus.reply(command.id)
    assert reply["status"] == "succeeded", reply
    assert reply["result"]["personCreated"] is True


def test_contracts_the_cloudevents_sdk_reads_replies_and_events(bus: Bus) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    command = c.request(new_install(bus), fresh("ext")).but(
        attributes={"subject": "what it is about", "correlationid": "the first", "traceparent": trace})
    bus.ask(command)
    bus.events(command.id, 1)
    reply = parsed(bus.reply_records(command.id)[0])
    event = parsed(bus.collector.events[command.id][0])
    assert reply.get_type() == "identity.reply.v1"
    assert event.get_type() == "identity.link.linked.v1"
    assert reply.get_subject() == "what it is about"
    for message in (reply, event):
        assert message.get_specversion() == "1.0"
        assert message.get_datacontenttype() == "application/json"
        assert message.get_source() == "identitybus/link"
        assert uuid.UUID(message.get_id()).version == 5
        time = message.get_time()
        assert time is not None and abs((datetime.now(timezone.utc) - time).total_seconds()) < 60
        for name, value in {
            "appid": "demo", "correlationid": "the first", "causationid": command.id, "traceparent": trace,
        }.items():
            assert message.get_extension(name) == value
    data: Any = event.get_data()
    assert data["externalId"] == command.data["externalId"]


def test_contracts_events_are_signed_with_the_events_key(bus: Bus) -> None:
    command = c.register(fresh("install"))
    bus.ask(command)
    bus.events(command.id, 1)
    event = bus.collector.events[command.id][0]
    expected = signature("events", event.topic, event.headers, event.value or b"")
    assert event.header("signature") == expected


# Shells


SEND = r"""
set -euo pipefail
value=$(printf '{"specversion":"1.0","id":"%s","source":"shell","type":"identity.link.request.v1","appid":"demo","data":{"installId":"%s","externalId":"%s"}}' "$ID" "$INSTALL" "$EXTERNAL")
code=$(printf '%s\n%s' "$TOPIC" "$value" | openssl dgst -sha256 -hmac "$SECRET" -binary | base64 -w0)
printf '%s' "$value" | kcat -P "$@" -t "$TOPIC" -k "demo/$EXTERNAL" \
    -H 'content-type=application/cloudevents+json' -H "signature=v1;kid=demo-backend;$code"
"""
READ = 'kcat -C -q -e -o beginning "$@" -t "$TOPIC" -f "%s\\n"'


def shell(bus: Bus, script: str, **environment: str) -> str:
    options = [option for name, value in bus.broker.client().items() for option in ("-X", f"{name}={value}")]
    answer = subprocess.run(
        ["bash", "-c", script, "bash", *options], env=os.environ | environment, capture_output=True, text=True,
        timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_kcat_with_a_signature_made_by_openssl(bus: Bus) -> None:
    command_id, install = str(uuid.uuid4()), new_install(bus)
    shell(
        bus, SEND, ID=command_id, INSTALL=install, EXTERNAL=fresh("ext"), TOPIC=bus.commands,
        SECRET=secret_of("demo-backend").decode())
    assert bus.reply(command_id)["status"] == "succeeded"
    lines = shell(bus, READ, TOPIC=f"{bus.prefix}identity.replies.v1").splitlines()
    assert [line for line in lines if command_id in line and '"succeeded"' in line]


def sign(deployment: Deployment, value: bytes, key_id: str, headers: Headers) -> str:
    options = [f"--header={name}={(text or b'').decode()}" for name, text in headers if name.startswith("ce_")]
    environment = {
        name: deployment.environment()[name] for name in ("IDENTITYBUS_APPS", "IDENTITYBUS_INTERNAL_KEY")}
    answer = subprocess.run(
        [binary("identitybus"), "sign", "--topic", deployment.bus.commands, "--app", "demo", "--key-id", key_id,
         *options],
        input=value, env=clean_environment() | environment, capture_output=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.decode().rstrip("\n")


@pytest.mark.parametrize("mode", ["structured", "binary"])
@pytest.mark.parametrize("key_id", ["demo-backend", "internal"])
def test_identitybus_sign_gives_the_same_header(deployment: Deployment, mode: str, key_id: str) -> None:
    command = c.request("install", "\u00e9 = \\ \" ; %s").but(attributes={"aaa": "a=b", "subject": "x y"})
    value, headers = command.structured() if mode == "structured" else command.binary()
    secret = derived("commands") if key_id == "internal" else None
    expected = signature(key_id, deployment.bus.commands, headers, value, secret).decode()
    assert sign(deployment, value, key_id, headers) == expected


def test_identitybus_sign_does_not_touch_the_value(deployment: Deployment) -> None:
    for value in (b"", b"\n", b"a\n", b"\xff\x00\r\n"):
        assert sign(deployment, value, "demo-backend", []) == signature(
            "demo-backend", deployment.bus.commands, [], value).decode()


# Duplicates


@pytest.mark.parametrize(
    "modes", [("structured", "structured"), ("binary", "binary"), ("structured", "binary"), ("binary", "structured")],
    ids="-then-".join)
def test_guarantee_1_a_duplicate_gets_the_same_reply_and_changes_nothing(bus: Bus, modes: tuple[str, str]) -> None:
    install = new_install(bus)
    command = c.request(install, fresh("ext"))
    bus.ask(command, modes[0])
    # What the command did is undone by another: a second effect would show.
    assert bus.ask(c.detach(install))["status"] == "succeeded"
    bus.send(command, modes[1])
    first, second = bus.reply_records(command.id, count=2)
    assert first.value == second.value and first.headers == second.headers and first.key == second.key
    assert bus.events(command.id, 1)
    assert "userId" not in bus.ask(c.query(install))["result"]


def test_guarantee_1_a_rejected_command_gets_the_same_rejection_again(bus: Bus) -> None:
    install = fresh("install")
    command = c.request(install, fresh("ext"))
    assert bus.ask(command)["reason"] == "INSTALL_NOT_FOUND"
    bus.ask(c.register(install))
    bus.send(command)
    first, second = bus.reply_records(command.id, count=2)
    assert first.value == second.value
    assert bus.ask(command.again())["status"] == "succeeded"


def test_guarantee_1_twenty_copies_at_once_over_all_partitions(bus: Bus) -> None:
    command = c.request(new_install(bus), fresh("ext"))
    bus.send_all([command.but(subject=fresh("key")) for _ in range(20)])
    records = bus.reply_records(command.id, count=20)
    assert len({record.value for record in records}) == 1
    assert records[0].data["result"]["personCreated"] is True
    bus.events(command.id, 1)


def test_guarantee_1_members_in_another_order_are_the_same_content(bus: Bus) -> None:
    command = c.request(new_install(bus), fresh("ext"))
    bus.ask(command)
    bus.send(command.but(data=dict(reversed(command.data.items()))))
    first, second = bus.reply_records(command.id, count=2)
    assert first.value == second.value


@pytest.mark.parametrize("change", ["data", "type"])
def test_contracts_the_same_id_with_other_content_is_id_reused(bus: Bus, change: str) -> None:
    install = new_install(bus)
    command = c.request(install, fresh("ext"))
    bus.ask(command)
    other = command.but(data=command.data | {"externalId": fresh("ext")})
    if change == "type":
        other = c.query(install).but(id=command.id)
    bus.send(other)
    first, second = bus.reply_records(command.id, count=2)
    assert (second.data["status"], second.data["reason"]) == ("rejected", "ID_REUSED")
    assert first.envelope["id"] != second.envelope["id"]
    bus.send(command)
    assert bus.reply_records(command.id, count=3)[2].value == first.value


def test_contracts_ids_of_other_sources_and_apps_do_not_meet(bus: Bus) -> None:
    shared = str(uuid.uuid4())
    installs = [new_install(bus) for _ in range(2)]
    bus.ask(c.register("other-" + shared, app="other"))
    commands = [
        c.request(installs[0], fresh("ext")).but(id=shared),
        c.request(installs[1], fresh("ext")).but(id=shared, source="another"),
        c.request("other-" + shared, fresh("ext"), app="other").but(id=shared),
    ]
    for command in commands:
        bus.send(command)
    records = bus.reply_records(shared, count=3)
    assert {record.data["status"] for record in records} == {"succeeded"}
    assert len({record.envelope["id"] for record in records}) == 3
    assert len({record.data["result"]["userId"] for record in records}) == 3


def test_nobody_can_use_up_the_id_of_anothers_command_without_a_key(bus: Bus) -> None:
    command = c.request(new_install(bus), fresh("ext"))
    forged = command.but(data=command.data | {"externalId": "forged"})
    value, headers = forged.structured()
    bus.put(value, [*headers, ("signature", signature("demo-backend", bus.commands, headers, value, b"guess"))])
    bus.send(command)
    records = bus.reply_records(command.id, count=2)
    assert [record.data.get("reason", "ok") for record in records].count("UNAUTHENTICATED") == 1
    assert [record.data["status"] for record in records].count("succeeded") == 1
