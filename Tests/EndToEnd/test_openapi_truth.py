# SPDX-License-Identifier: Apache-2.0
"""What the OpenAPI documents say of scopes, of members that nobody knows, of tags and of types of problems is what the gateway
does. test_gateway_openapi.py looks at the forms of requests and answers."""

import copy
import json
import re
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic, bearer

from openapi import PAGES, OpenAPI, Operation

DOCUMENTS = {port: OpenAPI.of(path) for port, path in PAGES.items()}
SCOPES = [scope for scope in CONTRACT.document["x-scopes"] if scope != "internal"]
IDS = {
    "install_id": "demo-install-1", "user_id": "5a18fc4b0962209e0000000d", "mpid": "7346244611012968789", "id": "ada",
    "device_id": "demo-device-1", "request_id": "a7551968-d5d6-44b2-9831-815ac9017798", "group_id": "batch-1",
    "org_id": "1", "account_id": "2", "workspace_id": "3", "fields": "user_identities"}
EVERY = [(port, operation) for port, document in DOCUMENTS.items() for operation in document.operations()]


def key_of(scope: str) -> str:
    return "shop-" + scope.replace(".", "-")


def named(one: tuple[str, Operation]) -> str:
    return f"{one[0]}-{one[1].node['operationId']}"


class Shop:
    """One app with a key for each scope."""

    def __init__(self, deployment: GatewayDeployment) -> None:
        keys = [apps.key(key_of(scope), scope) for scope in SCOPES]
        keys += [apps.key("shop-all", *(scope for scope in SCOPES if scope not in ("import", "identity.vouch")))]
        apps.write(deployment.apps_file, [{
            "id": "shop", "keys": keys, "sdk": {"appSecret": "demo-app-secret"}, "sync": apps.worked("conversion")}])
        services = [deployment.process(name).start() for name in SERVICES]
        gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0", CONSOLE="yes").start()
        for service in [*services, gateway]:
            service.wait_ready()
        assert isinstance(gateway, Gateway)
        self.ports: dict[str, Client] = {"api": gateway.client, "admin": gateway.admin}

    def ask(self, port: str, operation: Operation, key: str, body: Any = None, known: str = "", **ids: str) -> Answer:
        """`known`: the tag of what is known already."""
        ids = IDS | {"api_key": key} | ids
        path = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], operation.path)
        query = [f"{name}={ids[name]}" for (place, name), one in DOCUMENTS[port].parameters(operation).items()
                 if place == "query" and one.get("required")]
        path += "?" + "&".join(query) if query else ""
        credential = basic(key) if "identity" in operation.node["tags"] else bearer(key)
        if operation.method != "get":
            credential["Prefer"] = "dry-run"
        if known:
            credential["If-None-Match"] = known
        return self.ports[port].send(operation.method.upper(), path, body, credential)


@pytest.fixture(scope="module")
def shop(gateway_deployment: GatewayDeployment) -> Shop:
    return Shop(gateway_deployment)


def body_of(operation: Operation, key: str = "") -> Any:
    """The example of the document."""
    content = operation.node.get("requestBody", {}).get("content", {}).get("application/json")
    body = copy.deepcopy(content["example"]) if content else None
    # It has the key of the path.
    return body | {"api_key": key} if operation.node["operationId"] == "alias" else body


def is_known(answer: Answer) -> bool:
    """A wrong token of somebody else is 401 too."""
    return answer.status != 401 or b"InvalidAuthToken" in answer.body


def lacks_scope(answer: Answer) -> bool:
    """The identity vendor's 403 has no body."""
    return answer.status == 403 and (not answer.body or b"INSUFFICIENT_SCOPE" in answer.body)


@pytest.mark.parametrize("one", [one for one in EVERY if "x-scope" in one[1].node], ids=named)
def test_the_scopes_are_those_that_are_told(shop: Shop, one: tuple[str, Operation]) -> None:
    port, operation = one
    enough = {operation.node[key] for key in ("x-scope", "x-or-scope") if key in operation.node}
    for scope in SCOPES:
        body = body_of(operation, key_of(scope))
        # Of the two scopes of data subjects' requests, one is for each kind.
        if operation.node["operationId"] == "fileSubjectRequest":
            body["subject_request_type"] = "erasure" if scope == "user.delete" else "access"
        answer = shop.ask(port, operation, key_of(scope), body)
        assert is_known(answer), answer.body
        assert lacks_scope(answer) == (scope not in enough and "any" not in enough), (scope, answer.status, answer.body)


def closed(document: OpenAPI, schema: Any) -> bool:
    schema = document.follow(schema)
    return closed(document, schema["oneOf"][0]) if "oneOf" in schema else schema["additionalProperties"] is False


@pytest.mark.parametrize("one", [one for one in EVERY if body_of(one[1]) is not None], ids=named)
def test_members_that_nobody_knows_are_refused_where_that_is_told(shop: Shop, one: tuple[str, Operation]) -> None:
    port, operation = one
    install, ask = fresh("install"), shop.ask
    if "userToken" in str(operation.node["security"]):
        new = {"installId": install, "device": PHONE, "appSecret": "demo-app-secret", "linking": "none"}
        token = shop.ports[port].post("/sdk/v1/users", new, "shop-sdk").json["installToken"]["tokenId"]

        def ask(port: str, operation: Operation, key: str, body: Any = None, **ids: str) -> Answer:
            return shop.ports[port].send(
                operation.method.upper(), operation.path.replace("{install_id}", install), body,
                {"Authorization": f"Bearer {token}", "Prefer": "dry-run"})

    body = body_of(operation, "shop-all")
    plain = ask(port, operation, "shop-all", body)
    more = ask(port, operation, "shop-all", body | {"somethingElse": 1})
    schema = operation.node["requestBody"]["content"]["application/json"]["schema"]
    # But for what it names, which is not there.
    is_good = plain.status not in (400, 403) and is_known(plain) or b"does not exist" in plain.body
    assert is_good, ("the example is a good one", plain.status, plain.body)
    assert more.status == (400 if closed(DOCUMENTS[port], schema) else plain.status), more.body
    assert (b"does not exist" in more.body) == (b"does not exist" in plain.body), more.body


def test_what_is_read_has_a_tag_where_that_is_told(shop: Shop) -> None:
    read = set()
    for port, operation in EVERY:
        if operation.method != "get" or "userToken" in str(operation.node["security"]):
            continue
        answer = shop.ask(port, operation, "shop-all")
        if answer.status == 200:
            read.add(operation.node["operationId"])
            tag, has_tag = answer.headers["ETag"], "304" in operation.node["responses"]
            assert (tag is not None) == has_tag, (operation.name, tag)
            again = shop.ask(port, operation, "shop-all", known=tag or '"x"')
            assert (again.status, again.body == b"") == ((304, True) if has_tag else (200, False)), operation.name
    assert {"verificationSession", "listSubjectRequests", "discoverSubjectRequests", "openapi", "getSession", "getFacts",
            "getKey", "getStatus", "getDeadLetters"} <= read


@pytest.mark.parametrize("port", PAGES)
def test_the_type_of_a_problem_leads_to_what_it_means(shop: Shop, port: str) -> None:
    client = shop.ports[port]
    found: dict[str, Any] = {}
    path = "/sdk/v1/users" if port == "api" else "/admin/v1/link/make-active"
    for answer in (client.get("/nothing"), client.get(path), client.post(path, {}), client.post(path, b"{", "shop-all"),
                   client.post(path, {"installId": "x", "author": "a", "reason": "b"}, "shop-import")):
        assert answer.headers["Content-Type"] == "application/problem+json", answer.body
        found[answer.json["code"]] = answer.json
    assert len(found) >= 4, found
    for code, problem in found.items():
        place, _, pointer = problem["type"].partition("#")
        leads: Any = json.loads(client.get(place).body)
        for part in pointer.strip("/").split("/"):
            leads = leads[part]
        assert leads == problem["title"] == DOCUMENTS[port].document["components"]["x-problems"][code]
