# SPDX-License-Identifier: Apache-2.0
"""Metrics under the names of OpenTelemetry's semantic conventions (docs/operations.md "Under OpenTelemetry's names")."""

import re
from typing import Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
# As the conventions give them.
BOUNDS = ["0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1", "2.5", "5", "7.5", "10", "+Inf"]
OURS = ("messaging_", "http_")

Labels = dict[str, str]


def samples(service: Service, name: str) -> list[tuple[Labels, float]]:
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", service.get("/metrics")[1], re.M)
    return [(dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)), float(value)) for labels, value in found]


def value(service: Service, name: str, **labels: str) -> float:
    """Of the one series with exactly these labels."""
    return sum(value for found, value in samples(service, name) if found == labels)


def comes_to(count: int, service: Service, name: str, **labels: str) -> None:
    """No more and no less. What is counted beside an answer may be counted after it."""
    until(lambda: value(service, name, **labels) >= count, 20, f"{count} of {name}")
    assert value(service, name, **labels) == count


def names(service: Service) -> set[str]:
    text = service.get("/metrics")[1]
    return {name for name in re.findall(r"^# TYPE (\S+) ", text, re.M) if name.startswith(OURS)}


def kafka(operation: str, topic: str, **more: str) -> Labels:
    return {
        "messaging_system_name": "kafka", "messaging_operation_name": operation, "messaging_destination_name": topic, **more}


def test_a_request_and_what_it_leads_to(gateway_deployment: GatewayDeployment) -> None:
    """Every count is that of what was sent; `/dup` and the plain value say the same, and our names stay."""
    deployment = gateway_deployment
    link = deployment.process("link", **{OPT_IN: "messaging"}).start()
    gateway = deployment.gateway(**{OPT_IN: "http/dup, messaging/dup"})
    gateway.start().wait_ready()
    link.wait_ready()
    commands = f"{deployment.prefix}identity.link.commands.v1"
    replies, group = f"{deployment.prefix}identity.replies.gateway.v1", f"{deployment.prefix}identity.link"
    count = 20
    installs = [fresh("install") for _ in range(count)]
    for install in installs:
        answer = gateway.client.post(f"/v2/users/{install}/link", {"external_id": fresh("ext")}, "demo-backend")
        assert answer.status == 404, answer
    assert gateway.client.send("GET", "/nowhere/hush").status == 404

    asked = {
        "http_request_method": "POST", "http_route": "/v2/users/{install_id}/link", "http_response_status_code": "404",
        "url_scheme": "http"}
    comes_to(count, gateway, "http_server_request_duration_seconds_count", **asked)
    comes_to(1, gateway, "http_server_request_duration_seconds_count", http_request_method="GET",
             http_response_status_code="404", url_scheme="http")
    buckets = [found["le"] for found, _ in samples(gateway, "http_server_request_duration_seconds_bucket")
               if found.get("http_route") == asked["http_route"]]
    assert buckets == BOUNDS
    ours = value(gateway, "gateway_request_duration_seconds_sum", route=asked["http_route"])
    assert value(gateway, "http_server_request_duration_seconds_sum", **asked) == pytest.approx(ours, rel=0.001)

    sent = kafka("send", commands)
    comes_to(count, gateway, "messaging_client_sent_messages_total", **sent)
    timed = sent | {"messaging_operation_type": "send"}
    comes_to(count, gateway, "messaging_client_operation_duration_seconds_count", **timed)
    assert value(gateway, "messaging_client_operation_duration_seconds_sum", **timed) > 0
    # The partition that all gateways share has nothing, and no other gateway's are read.
    comes_to(count, gateway, "messaging_client_consumed_messages_total", **kafka("poll", replies))

    read = {"messaging_consumer_group_name": group}
    comes_to(count, link, "messaging_client_consumed_messages_total", **kafka("poll", commands), **read)
    comes_to(count, link, "messaging_process_duration_seconds_count", **kafka("process", commands), **read)
    comes_to(count, link, "messaging_client_sent_messages_total", **kafka("send", replies))
    # No more and no less than what the log calls decisions.
    assert link.metric("identity_commands_total") == link.metric("messaging_process_duration_seconds_count")

    assert names(link) == {
        "messaging_client_sent_messages_total", "messaging_client_operation_duration_seconds",
        "messaging_client_consumed_messages_total", "messaging_process_duration_seconds"}
    assert names(gateway) == names(link) - {"messaging_process_duration_seconds"} | {"http_server_request_duration_seconds"}
    for service in (link, gateway):
        text = service.get("/metrics")[1]
        assert not any(install in text for install in installs) and "hush" not in text
        assert "\nmetrics_dropped_series_total 0\n" in text
        assert not service.lines("settings.ignored")
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    table = page.partition("### Under OpenTelemetry's names")[2].partition("\n## ")[0]
    assert names(link) | names(gateway) == set(re.findall(r"^\| `((?:messaging|http)_\w+)`", table, re.M))


def test_what_failed_and_what_somebody_else_named(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite")
    service = deployment.service(**{OPT_IN: "messaging"}).start().wait_ready()
    bus = deployment.bus
    name = fresh("identity.replies.hush-ada")
    bus.extra_replies = [f"{deployment.prefix}{name}"]
    deployment.broker.ensure([f"{deployment.prefix}{name}"])
    forged = c.register(fresh("install")).but(signer="other-backend")
    registered = c.register(fresh("install")).but(attributes={"replyto": name})
    bus.send(forged)
    bus.send(registered)
    assert bus.reply(forged.id)["status"] == "rejected"
    assert bus.reply(registered.id)["status"] == "succeeded"
    prefix, group = deployment.prefix, f"{deployment.prefix}identity.link"
    process = kafka("process", f"{prefix}identity.link.commands.v1", messaging_consumer_group_name=group)
    comes_to(1, service, "messaging_process_duration_seconds_count", **process)
    [reason] = until(
        lambda: [found["error_type"] for found, _ in samples(service, "messaging_process_duration_seconds_count")
                 if "error_type" in found], 20, "the dead letter's reason")
    assert service.metric("identity_commands_total") == 2
    comes_to(1, service, "messaging_process_duration_seconds_count", error_type=reason, **process)

    def sent(**labels: str) -> float:
        named = kafka("send", "") | labels
        return value(service, "messaging_client_sent_messages_total", **{k: v for k, v in named.items() if v})

    until(lambda: sent(messaging_destination_template=f"{prefix}identity.replies.{{name}}") == 1, 20, "the reply")
    until(lambda: sent(messaging_destination_name=f"{prefix}identity.link.dlq.v1") == 1, 20, "the dead letter")
    assert "hush" not in service.get("/metrics")[1]


def test_nobody_is_told_who_does_not_ask(make_deployment: Callable[..., Deployment]) -> None:
    """What is not known here stops nothing: other programs of the deployment may know it."""
    deployment = make_deployment("sqlite")
    plain = deployment.service().start().wait_ready()
    bus = deployment.bus
    assert bus.ask(c.register(fresh("install")))["status"] == "succeeded"
    assert names(plain) == set()
    assert plain.stop() == 0
    other = deployment.service(**{OPT_IN: "rpc,http,mesaging"}).start().wait_ready()
    assert bus.ask(c.register(fresh("install")))["status"] == "succeeded"
    assert names(other) == set()
    [line] = other.lines("settings.ignored")
    assert '"rpc,mesaging"' in line and OPT_IN in line and '"info"' in line
