# SPDX-License-Identifier: Apache-2.0
"""Requests made up from our OpenAPI documents, right and wrong ones, against both ports of the gateway and every service: no
server error, and no answer that the document does not describe. E2E_EXAMPLES says how many for each operation."""

import json
import os
import re
import uuid
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance, response_schema_conformance, status_code_conformance)

from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, basic, bearer
from identitybus_testkit.tokens import shown
from identitybus_testkit.up import tool

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENT = json.loads((DOCS / "openapi.json").read_text())
ADMIN_DOCUMENT = json.loads((DOCS / "openapi-admin.json").read_text())
EXAMPLES = int(os.environ.get("E2E_EXAMPLES", "4"))
schema = schemathesis.openapi.from_dict(DOCUMENT)
admin_schema = schemathesis.openapi.from_dict(ADMIN_DOCUMENT)
for each in (schema, admin_schema):
    each.config.generation.modes = list(schemathesis.GenerationMode)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
made_up = settings(
    max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment) -> Gateway:
    services = [gateway_deployment.process(name).start() for name in SERVICES]
    for service in services:
        service.wait_ready()
    gateway = gateway_deployment.gateway(GATEWAY_ADMIN_PORT="0").start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway


@pytest.fixture(scope="module")
def client(gateway: Gateway) -> Client:
    return gateway.client


def test_the_served_documents_are_the_committed_ones(gateway: Gateway) -> None:
    for port, document in [(gateway.client, DOCUMENT), (gateway.admin, ADMIN_DOCUMENT)]:
        answer = port.get("/openapi.json")
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
        served = answer.json
        # And say which commit serves them.
        commit = json.loads(tool("--version", "--json", environment={}).stdout)["commit"]
        assert served["info"].pop("x-commit") == commit
        assert served == document


def credentials(path: str) -> dict[str, str]:
    if path.startswith(("/v2/users", "/users/")):
        return bearer("demo-backend")
    if path == "/v1/verification/check" or path.startswith("/v1/verification/sessions"):
        return bearer("demo-backend")
    if path.startswith(("/sdk/", "/v1/verification/")):
        return bearer("demo-sdk")
    return basic("demo-sdk")


def an_install(client: Client) -> tuple[str, dict[str, str]]:
    """A new one with a user, and what opens it: requests may reset it, so each has its own."""
    install = fresh("install")
    body = {"installId": install, "device": PHONE, "appSecret": "demo-app-secret", "linking": "none"}
    user = client.post("/sdk/v1/users", body, "demo-sdk").json
    return install, shown(user["installToken"]["tokenId"])


@schema.parametrize()
@seed(int(os.environ.get("E2E_SEED", "1")))
@made_up
def test_made_up_requests(case: schemathesis.Case, client: Client) -> None:
    # Made-up credentials would only ever get 401, and the same idempotency key only ever 409.
    for name in ["Authorization", "x-mp-key", "x-mp-signature", "Date"]:
        if case.headers:
            case.headers.pop(name, None)
    if case.headers and re.fullmatch("[ -~]{1,255}", str(case.headers.get("Idempotency-Key", ""))):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.path.startswith("/v1/identity/"):
        case.path_parameters = {"api_key": "demo-sdk"}
    headers = credentials(case.path)
    if case.path.startswith("/sdk/v1/installs/"):
        install, headers = an_install(client)
        case.path_parameters = {"install_id": install}
    answer = case.call(base_url=client.address, headers=headers, timeout=60)
    case.validate_response(answer, checks=CHECKS)


@admin_schema.parametrize()
@seed(int(os.environ.get("E2E_SEED", "1")))
@made_up
def test_made_up_requests_of_support(case: schemathesis.Case, gateway: Gateway) -> None:
    if case.headers:
        case.headers.pop("Authorization", None)
        if re.fullmatch("[ -~]{1,255}", str(case.headers.get("Idempotency-Key", ""))):
            case.headers["Idempotency-Key"] = str(uuid.uuid4())
    answer = case.call(base_url=gateway.admin.address, headers=bearer("demo-support"), timeout=60)
    case.validate_response(answer, checks=CHECKS)


def test_they_led_somewhere(client: Client, gateway_deployment: GatewayDeployment) -> None:
    """The made-up requests were not all refused at the door: what was asked above has succeeded and failed."""
    counts: dict[tuple[str, str], int] = {}
    for service in gateway_deployment.services:
        for route, status, count in re.findall(
            r'gateway_requests_total\{route="([^"]+)",status="(\d+)"\} (\d+)', service.get("/metrics")[1]
        ):
            counts[route, status] = int(count)
    for operation in [*DOCUMENT["paths"], *ADMIN_DOCUMENT["paths"]]:
        answers = {status for route, status in counts if route == operation}
        assert answers - {"401", "403"}, f"{operation} was never let in: {answers}"
    statuses = {status for _, status in counts}
    assert {"200", "400", "404"} <= statuses and not {"500", "502", "503", "504"} & statuses, counts
