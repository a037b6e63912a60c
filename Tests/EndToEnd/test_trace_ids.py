# SPDX-License-Identifier: Apache-2.0
"""The id of the trace that a command was sent in is told of what every service decided of it (docs/contracts.md "Facts"),
where spans are told (docs/operations.md "Traces") and where they are not."""

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.collector import SpanCollector
from identitybus_testkit.commands import PHONE, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import SERVICES, GatewayDeployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.waiting import until

BACKEND, SDK, SUPPORT = "demo-backend", "demo-sdk", "demo-support"


def traceparent(flags: str = "01") -> tuple[str, str]:
    trace = uuid.uuid4().hex
    return trace, f"00-{trace}-00f067aa0ba902b7-{flags}"


class Running:
    """All services and a gateway. `collector` is `None` where no spans are told."""

    def __init__(self, deployment: GatewayDeployment, collector: SpanCollector | None) -> None:
        self.deployment, self.collector, self.bus = deployment, collector, deployment.bus
        more = collector.environment if collector else {}
        services = [deployment.process(name, **more).start() for name in SERVICES]
        self.gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0", **more)
        self.gateway.start()
        for service in [*services, self.gateway]:
            service.wait_ready()
        self.client, self.admin = self.gateway.client, self.gateway.admin

    def facts(self, id: str, source: str | None = None) -> list[dict[str, Any]]:
        """Of all services."""
        answer = self.admin.post("/admin/v1/facts/resolve", {"id": id, **({"source": source} if source else {})}, SUPPORT)
        assert answer.status == 200, answer
        return [fact for part in answer.json["services"].values() for fact in part["facts"]]

    def traces(self, id: str, **types: int) -> dict[str, set[str | None]]:
        """By service and type, as soon as these are among them, each so often; in names `_` stands for `.` and `-`."""
        def found() -> dict[str, set[str | None]]:
            traces: dict[str, set[str | None]] = {}
            counts: dict[str, int] = {}
            for fact in self.facts(id):
                name = f"{fact['service']} {fact['type'].removeprefix('identity.').removesuffix('.v1')}"
                traces.setdefault(name, set()).add(fact.get("traceId"))
                word = name.replace(" ", "_").replace(".", "_").replace("-", "_")
                counts[word] = counts.get(word, 0) + 1
            return traces if all(counts.get(word, 0) >= count for word, count in types.items()) else {}

        return until(found, 30, lambda: f"{types} among {self.facts(id)}")

    def of(self, command: Command) -> str | None:
        """What the facts of this command have for its trace; it was answered."""
        [fact] = [fact for fact in self.facts(command.id, command.source) if fact["commandId"] == command.id]
        return fact.get("traceId")

    def explain(self, *arguments: str) -> str:
        return self.tool("explain", *arguments)

    def tool(self, *arguments: str) -> str:
        environment = clean_environment() | self.deployment.environment()
        environment.pop("DATABASE_URL", None)
        run = subprocess.run(
            [binary("identitybus"), *arguments, "--app=demo"], env=environment, capture_output=True, text=True,
            timeout=60)
        assert run.returncode == 0, run.stderr
        return run.stdout


@pytest.fixture(scope="module", params=["no spans, sqlite", "spans, postgresql"])
def running(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Iterator[Running]:
    spans, engine = request.param.split(", ")
    deployment = make_deployment(engine, kind=GatewayDeployment, services=SERVICES)
    assert isinstance(deployment, GatewayDeployment)
    collector = SpanCollector() if spans == "spans" else None
    yield Running(deployment, collector)
    if collector:
        collector.close()


@pytest.mark.parametrize("flags", ["01", "00"])
def test_one_request_over_http_has_one_trace_in_every_service(running: Running, flags: str) -> None:
    """A user who is created with a code: the user service asks the link service, hears its answer, and what it told."""
    external_id, install = fresh("ext"), fresh("install")
    code = running.client.post("/users/auth-code", {"external_id": external_id}, BACKEND)
    trace, header = traceparent(flags)
    answer = running.client.post(
        "/sdk/v1/users", {"installId": install, "device": PHONE, "authCode": code.json["authentication_code"]}, SDK,
        traceparent=header)
    assert answer.status == 200, answer
    found = running.traces(install, user_user_create=1, link_link_establish=1, user_reply=1)
    assert set().union(*found.values()) == {trace}, found
    [asked] = [fact for fact in running.facts(external_id) if fact["type"] == "identity.user.request-auth-code.v1"]
    # Nobody named a trace there, so the gateway did; its log and its answers say which.
    [line] = until(lambda: running.gateway.access(code.headers["X-Request-Id"]), 10, "the line")
    assert asked["traceId"] == line["trace"] != trace and asked["hasSecret"] is True

    id = answer.headers["X-Request-Id"]
    told = [json.loads(line) for line in running.explain("--json", id).splitlines()]
    [own] = [line["decision"] for line in told if line["kind"] == "decision" and line["decision"]["commandId"] == id]
    assert own["traceId"] == trace
    assert f"\n      trace    {trace}\n" in running.explain("--verbose", id)
    assert trace not in running.explain(id)
    person = running.admin.post("/admin/v1/people/resolve", {"id": id}, "demo-trainee").json
    assert {decision["traceId"] for decision in person["decisions"] if decision["commandId"] == id} == {trace}


def test_a_command_over_kafka_has_the_trace_that_its_sender_named(running: Running) -> None:
    trace, header = traceparent()
    in_envelope = c.register(fresh("install")).but(attributes={"traceparent": header})
    running.bus.ask(in_envelope)
    assert running.of(in_envelope) == trace
    # In Kafka's headers, as OpenTelemetry's clients do; over the envelope's it does not count.
    for command, expected in [(c.register(fresh("install")), trace), (in_envelope.again(), trace)]:
        value, headers = running.bus.signed(command)
        other = header if command.attributes == {} else traceparent()[1]
        running.bus.put(
            value, [*headers, ("traceparent", other.encode())], key=command.key, topic=running.bus.topic_of(command))
        assert running.bus.reply(command.id)["status"] == "succeeded"
        assert running.of(command) == expected
    refused = c.request(fresh("nobody"), fresh("ext")).but(attributes={"traceparent": header})
    assert running.bus.ask(refused)["reason"] == "INSTALL_NOT_FOUND" and running.of(refused) == trace
    for attributes in [{}, {"traceparent": "00-nonsense"}, {"traceparent": header.upper()}]:
        unnamed = c.register(fresh("install")).but(attributes=attributes)
        running.bus.ask(unnamed)
        own = running.of(unnamed)
        # Where spans are told it begins a trace.
        assert (own is not None) == (running.collector is not None) and own != trace
        if running.collector and own:
            running.collector.wait(own, f"identitybus-link process {running.bus.topic_of(unnamed)}")


def test_a_saga_takes_the_trace_along(running: Running) -> None:
    """Over Kafka, from the user service to the link service and back; an erasure from the link service to all others."""
    external_id, install = fresh("ext"), fresh("install")
    trace, header = traceparent()
    code = running.bus.ask(c.request_code(external_id))["result"]["authenticationCode"]
    created = running.bus.settle(c.create(install, authCode=code).but(attributes={"traceparent": header}))
    found = running.traces(install, user_user_create=1, link_link_establish=1, user_reply=1)
    assert set().union(*found.values()) == {trace}, found
    erased, other = traceparent()
    command = c.erase(created["result"]["userId"]).but(attributes={"traceparent": other})
    running.bus.settle(command)
    found = running.traces(created["result"]["userId"], link_link_erase_user=1, user_user_forget=1)
    assert found["link link.erase-user"] == found["user user.forget"] == {erased}, found
    assert running.of(command) == erased


def test_what_is_sent_by_hand_begins_a_trace(running: Running) -> None:
    ids = [fresh("by-hand") for _ in range(2)]
    for id in ids:
        running.tool("send", "link.register-install", f"--id={id}", "--key-id=internal", "--wait=30", "--data",
                     json.dumps({"installId": fresh("install"), "device": PHONE, "user": "none"}))
    [first, second] = [fact["traceId"] for id in ids for fact in running.facts(id, "identitybus-cli")]
    assert first != second and int(first, 16) and int(second, 16)


def test_a_repeated_command_has_the_trace_of_the_first(running: Running) -> None:
    trace, header = traceparent()
    command = c.register(fresh("install")).but(attributes={"traceparent": header})
    first = running.bus.ask(command)
    running.bus.send(command.but(attributes={"traceparent": traceparent()[1]}))
    records = running.bus.reply_records(command.id, 2)
    assert first["status"] == "succeeded" and len({record.value for record in records}) == 1
    assert running.of(command) == trace
