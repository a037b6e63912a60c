# SPDX-License-Identifier: Apache-2.0
# Part of IdentityBus. See LICENSE for the full text.
"""Requests made up from our OpenAPI document, right and wrong ones, against the gateway and every service: no server
error, and no answer that the document does not describe. E2E_EXAMPLES says how many for each operation."""

import json
import os
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance, response_schema_conformance, status_code_conformance)

from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Client, basic, bearer

DOCUMENT = json.loads((Path(__file__).resolve().parents[2] / "docs" / "openapi.json").read_text())
EXAMPLES = int(os.environ.get("E2E_EXAMPLES", "15"))
schema = schemathesis.openapi.from_dict(DOCUMENT)
schema.config.generation.modes = list(schemathesis.GenerationMode)


@pytest.fixture(scope="module")
def client(gateway_deployment: GatewayDeployment) -> Client:
    services = [gateway_deployment.process(name).start() for name in SERVICES]
    for service in services:
        service.wait_ready()
    gateway = gateway_deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway.client


def test_the_served_document_is_the_committed_one(client: Client) -> None:
    answer = client.get("/openapi.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json == DOCUMENT


def credentials(path: str) -> dict[str, str]:
    if path.startswith(("/v2/users", "/users/")):
        return bearer("demo-backend")
    if path == "/v1/verification/check":
        return bearer("demo-backend")
    if path.startswith(("/sdk/", "/v1/verification/")):
        return bearer("demo-sdk")
    return basic("demo-sdk")


@schema.parametrize()
@seed(int(os.environ.get("E2E_SEED", "1")))
@settings(
    max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck))
def test_made_up_requests(case: schemathesis.Case, client: Client) -> None:
    # Made-up credentials would only ever get 401; right ones lead further.
    for name in ["Authorization", "x-mp-key", "x-mp-signature", "Date"]:
        if case.headers:
            case.headers.pop(name, None)
    answer = case.call(base_url=client.address, headers=credentials(case.path), timeout=20)
    case.validate_response(answer, checks=[
        not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance])
