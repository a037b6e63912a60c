# SPDX-License-Identifier: Apache-2.0
"""Traces (docs/operations.md "Traces"), seen by a collector that reads them with OpenTelemetry's own protocol files."""

import json
import os
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.collector import Span, SpanCollector
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority, FakeBroker, silent
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline, until

GATEWAY, USER, LINK = "identitybus-gateway", "identitybus-user", "identitybus-link"


@pytest.fixture(scope="module")
def collector() -> Iterator[SpanCollector]:
    collector = SpanCollector()
    yield collector
    collector.close()


@pytest.fixture(scope="module")
def services(gateway_deployment: GatewayDeployment, collector: SpanCollector) -> dict[str, Service]:
    # What a start says once is no span.
    more = collector.environment | {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hush-hush"}
    services = {name: gateway_deployment.process(name, **more).start() for name in SERVICES}
    for service in services.values():
        service.wait_ready()
    return services


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment, services: dict[str, Service], collector: SpanCollector) -> Gateway:
    gateway = gateway_deployment.gateway(**collector.environment)
    gateway.start().wait_ready()
    return gateway


def parent(flags: str = "01") -> tuple[str, str, str]:
    """A trace, a span, and the header that names them."""
    trace, span = uuid.uuid4().hex, f"{random.randrange(1, 1 << 64):016x}"
    return trace, span, f"00-{trace}-{span}-{flags}"


def create(client: Client, install: str, **headers: str) -> Any:
    user = {"installId": install, "device": PHONE, "appSecret": "demo-app-secret", "linking": "none"}
    answer = client.post("/sdk/v1/users", user, "demo-sdk", **headers)
    assert answer.status == 200, answer
    return answer.json


def counter(service: Service, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", service.get("/metrics")[1], re.M)
    return float(found[1]) if found else 0


def topic(deployment: GatewayDeployment, name: str) -> str:
    return f"{deployment.prefix}{name}"


def test_one_request_is_one_trace(
    gateway: Gateway, gateway_deployment: GatewayDeployment, collector: SpanCollector
) -> None:
    """A user who is created with a code: the user service asks the link service, and answers when that has answered."""
    external_id, install = fresh("ext"), fresh("install")
    code = gateway.client.post("/users/auth-code", {"external_id": external_id}, "demo-backend").json[
        "authentication_code"]
    trace, caller, header = parent()
    answer = gateway.client.post(
        "/sdk/v1/users", {"installId": install, "device": PHONE, "authCode": code}, "demo-sdk", traceparent=header)
    assert answer.status == 200, answer
    commands = {name: f"process {topic(gateway_deployment, f'identity.{name}.commands.v1')}" for name in ("user", "link")}
    replies = f"process {topic(gateway_deployment, 'identity.replies.user.v1')}"
    spans = collector.wait(
        trace, f"{GATEWAY} POST /sdk/v1/users", f"{USER} {commands['user']}", f"{LINK} {commands['link']}", f"{USER} {replies}")
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans), "two spans have one id"

    def way(span: Span) -> list[str]:
        """From a span to whoever began the trace."""
        names = []
        while True:
            names.append(f"{span.service} {span.name}")
            if span.parent not in by_id:
                assert span.parent == caller, names
                return names
            span = by_id[span.parent]

    [last] = [span for span in spans if span.service == USER and span.name == replies and len(way(span)) == 5]
    assert way(last) == [
        f"{USER} {replies}", f"{LINK} {commands['link']}", f"{USER} {commands['user']}",
        f"{GATEWAY} send {topic(gateway_deployment, 'identity.user.commands.v1')}", f"{GATEWAY} POST /sdk/v1/users"]
    # Whatever else came of it, in whichever service, hangs on it.
    for span in spans:
        assert way(span)[-1] == f"{GATEWAY} POST /sdk/v1/users"
        assert span.start <= span.end and abs(span.end / 1e9 - time.time()) < 600
    server = next(span for span in spans if span.kind == "SERVER")
    assert server.attributes == {
        "http.request.method": "POST", "http.route": "/sdk/v1/users", "http.response.status_code": 200,
        "url.scheme": "http", "identitybus.app": "demo"}
    [sent] = [span for span in spans if span.kind == "PRODUCER"]
    assert sent.attributes["messaging.message.id"] == answer.headers["X-Request-Id"]
    decided = by_id[last.parent]
    assert {name: value for name, value in decided.attributes.items() if "offset" not in name and "partition" not in name} == {
        "messaging.system.name": "kafka", "messaging.operation.name": "process", "messaging.operation.type": "process",
        "messaging.destination.name": topic(gateway_deployment, "identity.link.commands.v1"),
        "messaging.consumer.group.name": topic(gateway_deployment, "identity.link"),
        "cloudevents.event_type": decided.attributes["cloudevents.event_type"], "identitybus.app": "demo",
        "identitybus.outcome": "succeeded"}
    # The transaction that it was decided in is a trace of its own, and links what it decided to what sent it.
    [(batch_trace, batch_id)] = decided.links
    [batch] = [span for span in collector.of(batch_trace) if span.id == batch_id]
    assert batch_trace != trace and batch.parent == "" and batch.service == LINK
    assert (trace, decided.parent) in batch.links
    assert 1 <= batch.attributes["messaging.batch.message_count"]
    assert collector.schemas == {"https://opentelemetry.io/schemas/1.45.0"}


def test_nobody_is_named(gateway: Gateway, gateway_deployment: GatewayDeployment, collector: SpanCollector) -> None:
    """Neither in names nor in attributes; looked for in what was sent, byte for byte."""
    external_id, install = fresh("ext"), fresh("install")
    trace, _, header = parent()
    user = create(gateway.client, install, traceparent=header)
    linked = gateway.client.post(
        f"/v2/users/{install}/link", {"external_id": external_id}, "demo-backend", traceparent=header)
    assert linked.status == 200, linked
    wrong = gateway.client.send("GET", f"/nowhere/{install}?who={external_id}", headers={"traceparent": header})
    assert wrong.status == 404
    refused = gateway.client.post(
        f"/v2/users/{fresh('hush')}/link", {"external_id": external_id}, "demo-backend", traceparent=header)
    assert refused.status >= 400
    # A foreign producer chooses its commands' ids.
    gateway_deployment.bus.ask(c.request(install, external_id).but(id=f"hush-of-{external_id}"))
    spans = collector.wait(
        trace, f"{GATEWAY} POST /sdk/v1/users", f"{GATEWAY} POST /v2/users/{{install_id}}/link", f"{GATEWAY} GET",
        f"{LINK} process {topic(gateway_deployment, 'identity.link.commands.v1')}")
    assert any(span.attributes.get("identitybus.reason") for span in spans)
    until(lambda: any(span.service == LINK and span.attributes.get("identitybus.app") for span in collector.spans),
          10, "the foreign command")
    time.sleep(0.5)
    everything = b"".join(collector.bodies)
    for name in (external_id, install, user["userId"], "hush", "nowhere"):
        assert name.encode() not in everything


def test_what_the_collector_is_told_of_the_process(
    gateway: Gateway, services: dict[str, Service], collector: SpanCollector
) -> None:
    trace, _, header = parent()
    create(gateway.client, fresh("install"), traceparent=header)
    until(lambda: {span.service for span in collector.of(trace)} >= {GATEWAY, USER}, 30, "two processes")
    resources = {resource["service.name"]: resource for resource in collector.resources}
    assert {"service.version", "service.instance.id", "telemetry.sdk.name"} <= set(resources[USER])
    asked = {headers.get("authorization") for headers in collector.headers}
    assert asked == {None, "Bearer hush-hush"}
    for service in services.values():
        assert "hush-hush" not in service.text
        assert counter(service, 'process_spans_dropped_total{reason="queue"}') == 0
    assert counter(services["user"], "process_spans_sent_total") > 0


def test_a_caller_who_is_told_of_nothing_leaves_no_span(
    gateway: Gateway, gateway_deployment: GatewayDeployment, collector: SpanCollector
) -> None:
    trace, _, header = parent("00")
    answer = gateway.client.post(
        f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend", traceparent=header)
    other, _, sampled = parent()
    gateway.client.post(
        f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend", traceparent=sampled)
    collector.wait(other, f"{LINK} process {topic(gateway_deployment, 'identity.link.commands.v1')}")
    assert answer.headers["X-Request-Id"] and collector.of(trace) == []


def test_one_of_ten(gateway_deployment: GatewayDeployment, services: dict[str, Service], collector: SpanCollector) -> None:
    """The gateway decides, and the services do as it did."""
    known = {span.trace for span in collector.spans}
    gateway = gateway_deployment.gateway(**collector.environment, **{
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1",
        "OTEL_SERVICE_NAME": "one-of-ten"})
    gateway.start().wait_ready()
    client, count = gateway.client, 300
    for _ in range(count):
        client.post(f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend")
    gateway.stop()
    began = {span.trace for span in collector.spans if span.service == "one-of-ten" and span.kind == "SERVER"}
    # Less than once in ten million runs it is outside.
    assert 5 <= len(began) <= 65
    name = f"process {topic(gateway_deployment, 'identity.link.commands.v1')}"
    until(lambda: began <= {span.trace for span in collector.spans if span.service == LINK and span.name == name}, 30,
          "the link service's part")
    new = {span.trace for span in collector.spans if span.name == name and span.service == LINK} - known
    assert new == began


def test_what_is_decided_once_has_one_span_whoever_asks_again(
    gateway: Gateway, gateway_deployment: GatewayDeployment, collector: SpanCollector
) -> None:
    """A repeated command stands in the log twice, so it has two spans; its answer is that of the first, byte for byte."""
    trace, _, header = parent()
    command = c.register(fresh("install")).but(attributes={"traceparent": header})
    first = gateway_deployment.bus.ask(command)
    assert first["status"] == "succeeded"
    gateway_deployment.bus.send(command)
    name = f"process {topic(gateway_deployment, 'identity.link.commands.v1')}"
    spans = until(
        lambda: (found := [span for span in collector.of(trace) if span.service == LINK and span.name == name])
        and len(found) == 2 and found, 30, "both")
    assert {span.attributes["identitybus.outcome"] for span in spans} == {"succeeded", "repeated"}
    [decided] = [span for span in spans if span.attributes["identitybus.outcome"] == "succeeded"]
    seen = gateway_deployment.bus.collector.events[command.id]
    assert {event.envelope["traceparent"] for event in seen} == {f"00-{trace}-{decided.id}-01"}


def test_a_collector_that_is_away_costs_spans_and_nothing_else(
    gateway_deployment: GatewayDeployment, services: dict[str, Service]
) -> None:
    away = SpanCollector()
    more = away.environment | {"OTEL_BSP_MAX_QUEUE_SIZE": "40", "OTEL_SERVICE_NAME": "patient"}
    gateway = gateway_deployment.gateway(**more)
    gateway.start().wait_ready()
    client = gateway.client

    def latencies(count: int) -> list[float]:
        taken = []
        for _ in range(count):
            start = time.monotonic()
            answer = client.post(f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend")
            taken.append(time.monotonic() - start)
            assert answer.status in (200, 404), answer
        return sorted(taken)

    latencies(30)
    there = latencies(150)
    until(lambda: away.spans, 30, "spans")
    away.close()
    gone = latencies(150)
    dropped = counter(gateway, 'process_spans_dropped_total{reason="queue"}')
    # Each request is two spans, and at most the queue and what was on its way are kept.
    assert dropped >= 100
    # Whoever waited for the collector would wait for seconds.
    assert gone[75] < there[75] * 1.5 + 0.01 and gone[148] < there[148] + 0.5, (there[75], gone[75], there[148], gone[148])
    assert gateway.is_ready
    [said] = gateway.lines('"traces.refused"')
    assert json.loads(said)["fields"]["receiver"] == f"127.0.0.1:{away.port}" and "at most " in json.loads(said)["message"]
    known = len(away.spans)
    away.open()
    until(lambda: len(away.spans) > known and gateway.lines('"traces.accepted"'), 30, lambda: f"spans again\n{gateway.tail()}")
    [over] = [json.loads(line)["fields"] for line in gateway.lines('"traces.accepted"')]
    # The last command's span may have ended after its answer.
    assert dropped <= over["dropped"] <= dropped + 2
    latencies(5)
    assert counter(gateway, 'process_spans_dropped_total{reason="queue"}') == over["dropped"]
    assert gateway.stop() == 0
    assert len(gateway.lines('"traces.refused"')) == 1
    away.close()


# How long the collector is away, in seconds: a minute is what it has to be.
AWAY = float(os.environ.get("E2E_COLLECTOR_AWAY", "0"))
# Requests a second for each of three deployments, and spans that wait for the collector.
EACH, WAITING = 12, 40


class Observed:
    """A gateway and two services that tell one collector of their spans, and somebody who goes on asking them."""

    def __init__(self, deployment: GatewayDeployment) -> None:
        self.collector = SpanCollector()
        more = self.collector.environment | {"OTEL_BSP_MAX_QUEUE_SIZE": str(WAITING)}
        self.services = [deployment.process(name, **more).start() for name in ("link", "user")]
        self.gateway = deployment.gateway(**more)
        self.processes = [*self.services, self.gateway.start()]
        for process in self.processes:
            process.wait_ready()
        self.asked = 0

    def ask(self, seconds: float) -> list[float]:
        """How long each request took."""
        client, taken, began = self.gateway.client, [], time.monotonic()
        for number in range(int(seconds * EACH)):
            time.sleep(max(0.0, began + number / EACH - time.monotonic()))
            start = time.monotonic()
            create(client, fresh("install"))
            taken.append(time.monotonic() - start)
        self.asked += len(taken)
        return sorted(taken)

    def dropped(self) -> list[float]:
        return [process.metric("process_spans_dropped_total") for process in self.processes]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        self.collector.close()


def at_once(*observed: Observed, seconds: float) -> list[list[float]]:
    """All are asked in the same seconds, so that what else this machine does takes as much from each."""
    taken: dict[int, list[float]] = {}
    threads = [
        threading.Thread(target=lambda place=place, one=one: taken.update({place: one.ask(seconds)}))  # type: ignore[misc]
        for place, one in enumerate(observed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [taken[place] for place in range(len(observed))]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(not AWAY, reason="takes minutes: scripts/test --long")
@pytest.mark.parametrize("how", ["refuses", "hangs"])
def test_a_collector_that_is_away_for_a_minute_delays_nobody(how: str, make_deployment: Callable[..., Deployment]) -> None:
    """Of three deployments one has none. Its p99 is within a tenth of the slower of the others, or within what these, who both
    have theirs, differ by. Every span that was not sent is counted."""
    with ExitStack() as stack:
        everybody = []
        for _ in range(3):
            deployment = make_deployment("sqlite", kind=GatewayDeployment, services=("link", "user"))
            assert isinstance(deployment, GatewayDeployment)
            everybody.append(one := Observed(deployment))
            stack.callback(one.close)
        lonely = everybody[-1]
        at_once(*everybody, seconds=5)
        until(lambda: lonely.collector.spans, 30, "spans")
        before = lonely.dropped()
        lonely.collector.close()
        fake = FakeBroker(silent, lonely.collector.port) if how == "hangs" else None
        *there, gone = at_once(*everybody, seconds=AWAY)
        lost = [after - already for already, after in zip(before, lonely.dropped())]
        if fake:
            fake.close()
        lonely.collector.open()
        for part in (0.5, 0.99):
            low, high = sorted(taken[int(len(taken) * part)] for taken in there)
            mine = gone[int(len(gone) * part)]
            print(f"\n{how}, p{part * 100:.0f} of {len(gone)}: {low * 1e3:.1f} and {high * 1e3:.1f} ms with a collector, "
                  f"{mine * 1e3:.1f} ms without: {mine / high:.2f}")
            assert mine <= high * max(1.1, high / low), (low, high, mine)
        print(f"dropped: {lost}, {len(lonely.gateway.lines('traces.refused'))} line")
        # What waits is kept, and what was on its way. In the gateway each request is two spans, in a service more.
        assert all(count >= 2 * len(gone) - 2 * WAITING for count in lost), lost
        for process in lonely.processes:
            assert len(process.lines('"traces.refused"')) == 1, process.tail()
            until(lambda process=process: process.lines('"traces.accepted"'), 60, process.tail)  # type: ignore[misc]
        gateway = lonely.gateway
        until(lambda: gateway.metric("process_spans_sent_total") + gateway.metric("process_spans_dropped_total")
              == 2 * lonely.asked, 30, lambda: f"{2 * lonely.asked} spans: {gateway.get('/metrics')[1]}")


def test_the_end_sends_what_waits(gateway_deployment: GatewayDeployment, services: dict[str, Service]) -> None:
    """And does not wait for a collector that is away."""
    for is_there in (True, False):
        collector = SpanCollector()
        gateway = gateway_deployment.gateway(**collector.environment | {"OTEL_BSP_SCHEDULE_DELAY": "600000"})
        gateway.start().wait_ready()
        trace, _, header = parent()
        gateway.client.post(
            f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend", traceparent=header)
        if not is_there:
            collector.close()
        in_time = Deadline(20)
        assert gateway.stop() == 0 and in_time.left
        assert {span.kind for span in collector.of(trace)} == ({"SERVER", "PRODUCER"} if is_there else set())
        collector.close()


@pytest.fixture(scope="module")
def authorities(directory: Path) -> tuple[Authority, Authority]:
    """One that vouches for collectors, and another one."""
    return tuple(Authority(directory / f"authority-{uuid.uuid4().hex[:8]}") for _ in range(2))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_collector_with_a_certificate_of_its_own_authority(
    host: str, gateway_deployment: GatewayDeployment, services: dict[str, Service],
    authorities: tuple[Authority, Authority], tmp_path: Path
) -> None:
    """Nothing is sent to one that this authority does not vouch for. Its file may change while the process runs."""
    authority, other = authorities
    collector = SpanCollector(authority.issue(host), host)
    file = tmp_path / "authorities.pem"
    file.write_bytes(other.certificate.read_bytes())
    gateway = gateway_deployment.gateway(**collector.environment, OTEL_EXPORTER_OTLP_CERTIFICATE=str(file))
    gateway.start().wait_ready()
    try:
        trace, _, header = parent()
        create(gateway.client, fresh("install"), traceparent=header)
        until(lambda: gateway.lines('"traces.refused"'), 30, gateway.tail)
        [said] = [json.loads(line)["fields"] for line in gateway.lines('"traces.refused"')]
        assert said["receiver"] == f"{host}:{collector.port}"
        assert said["error"].startswith("its certificate is not trusted: "), said
        assert not collector.bodies
        file.write_bytes(authority.certificate.read_bytes())
        # What waited comes too.
        collector.wait(trace, f"{GATEWAY} POST /sdk/v1/users")
        until(lambda: gateway.lines('"traces.accepted"'), 30, gateway.tail)
    finally:
        gateway.stop()
        collector.close()


@pytest.mark.parametrize(("name", "words"), [
    ("elsewhere.example", "its certificate is not trusted: hostname mismatch"), (None, "TLS failed: ")])
def test_a_collector_that_is_somebody_else(
    name: str | None, words: str, gateway_deployment: GatewayDeployment, authorities: tuple[Authority, Authority]
) -> None:
    """A certificate for another name, and no TLS at all."""
    authority, _ = authorities
    collector = SpanCollector(authority.issue(name) if name else None, "localhost")
    endpoint = f"https://localhost:{collector.port}"
    gateway = gateway_deployment.gateway(**collector.environment | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority.certificate)})
    gateway.start().wait_ready()
    try:
        gateway.client.send("GET", "/nowhere")
        until(lambda: gateway.lines('"traces.refused"'), 30, gateway.tail)
        [said] = [json.loads(line)["fields"] for line in gateway.lines('"traces.refused"')]
        assert said["error"].startswith(words), said
        assert not collector.bodies
    finally:
        gateway.stop()
        collector.close()
