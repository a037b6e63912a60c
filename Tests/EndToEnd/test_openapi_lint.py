# SPDX-License-Identifier: Apache-2.0
"""docs/openapi.json and docs/openapi-admin.json keep the fifteen rules of scripts/lib/lint_openapi.py, and each rule finds the
mistakes that are planted for it. Whether they tell the truth is looked at in test_gateway_openapi.py."""

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.places import REPOSITORY

import lint_openapi
from openapi import PAGES, OpenAPI

DOCUMENT = OpenAPI.of(PAGES["api"])
LINK = "/v2/users/{install_id}/link"


class Document:
    """A copy of the page, and what can be done to it."""

    def __init__(self) -> None:
        self.all: dict[str, Any] = copy.deepcopy(DOCUMENT.document)
        self.components = self.all["components"]
        self.schemas = self.components["schemas"]
        self.link = self.all["paths"][LINK]["post"]
        self.read = self.all["paths"]["/sdk/v1/installs/{install_id}"]["get"]

    def member(self, form: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.schemas[form]["properties"][name]
        return found

    def answer(self, status: str) -> dict[str, Any]:
        found: dict[str, Any] = self.components["responses"][status]
        return found


@pytest.mark.parametrize("port", PAGES)
def test_the_documents_keep_all_rules(port: str) -> None:
    assert lint_openapi.faults(OpenAPI.of(PAGES[port])) == []


Plant = Callable[[Document], Any]
LIMITLESS = {"name": "x", "in": "query", "description": "X.", "schema": {"type": "string"}}
# By rule: mistakes, and what is said of each.
MISTAKES: dict[str, list[tuple[Plant, str]]] = {
    "operation_ids": [
        (lambda one: one.link.update(operationId="link-user"), "operationId link-user is not in lower camel case"),
        (lambda one: one.link.update(operationId="LinkUser"), "operationId LinkUser is not in lower camel case"),
        (lambda one: one.link.pop("operationId"), "operationId is missing"),
        (lambda one: one.link.update(operationId="eraseUser"), "operationId eraseUser is that of POST"),
    ],
    "summaries": [
        (lambda one: one.link.pop("summary"), f"POST {LINK}: the summary is a heading"),
        (lambda one: one.link.update(summary="Links."), "the summary is a heading, and not 'Links.'"),
        (lambda one: one.link.update(tags=["linking", "devices"]), "is not one of the document's tags"),
        (lambda one: one.link.update(tags=["other"]), "['other'] is not one of the document's tags"),
        (lambda one: one.all["tags"].append({"name": "x", "description": "X."}), "no operation has x"),
        (lambda one: one.all["tags"][0].pop("description"), "linking has no description"),
    ],
    "callers": [
        (lambda one: one.link.pop("security"), "security does not say who may call"),
        (lambda one: one.link.update(security=[{"magic": []}]), "there is no credential magic"),
        (lambda one: one.link.pop("x-scope"), "x-scope does not say what the API key may"),
        (lambda one: one.link.update({"x-scope": "everything"}), "there is no scope everything"),
        (lambda one: one.link.update({"x-or-scope": "internal"}), "there is no scope internal"),
        (lambda one: one.link.update(security=[]), "so no scope is asked for"),
    ],
    "places": [
        (lambda one: one.link["parameters"].append({"$ref": "#/components/parameters/None"}), "leads nowhere"),
        (lambda one: one.link["parameters"].append({"$ref": "#/components/headers/ETag"}), "is none of components.parameters"),
        (lambda one: one.link["responses"].update({"400": {"$ref": "#/components/schemas/Problem"}}),
         "is none of components.responses"),
        (lambda one: one.schemas["Pending"]["properties"].update(x={"$ref": "other.json#/X"}), "leads nowhere"),
        (lambda one: one.all.pop("servers"), "servers: None"),
        (lambda one: one.all.update(servers=[{"url": "http://localhost:8080"}]), "servers: http://localhost:8080 is no path"),
    ],
    "unused": [
        (lambda one: one.schemas.update(Old={"type": "object"}), "components.schemas.Old: nothing names it"),
        (lambda one: one.components["securitySchemes"].update(old={"type": "http", "scheme": "bearer"}),
         "components.securitySchemes.old: nothing names it"),
    ],
    "path_parameters": [
        (lambda one: one.link["parameters"].pop(0), "the path has ['install_id'], and the parameters are []"),
        (lambda one: one.link["parameters"][0].update(name="id"), "and the parameters are ['id']"),
        (lambda one: one.link["parameters"][0].update(required=False), "install_id of the path is always there"),
        (lambda one: one.link["parameters"].append({"$ref": "#/components/parameters/Prefer"}), "a parameter is told twice"),
    ],
    "types": [
        (lambda one: one.member("Install", "installId").pop("type"), "Install.properties.installId: no type"),
        (lambda one: one.member("Device", "model").pop("maxLength"), "Device.properties.model: a string without a limit"),
        (lambda one: one.member("ModifyRequest", "identity_changes").pop("maxItems"), "a array without a limit"),
        (lambda one: one.member("Device", "model").update(type=["string", "integer"]), "a integer without a limit"),
        (lambda one: one.link["parameters"].append(LIMITLESS), "query x: a string without a limit"),
        (lambda one: one.link["parameters"][0].update(schema={"type": "string", "pattern": "^[a-z]{2,}$"}),
         "path install_id: a string without a limit"),
        (lambda one: one.components["headers"]["ETag"]["schema"].pop("type"), "ETag: no type"),
        (lambda one: one.member("VerificationLogin", "userName").update({"x-limit": "none"}), "a string without a limit"),
    ],
    "patterns": [
        (lambda one: one.member("User", "userId").update(pattern="^[0-9a-f{24}$"), "does not compile"),
        (lambda one: one.member("User", "userId").update(pattern="[0-9a-f]{24}"), "says nothing of the whole text"),
        (lambda one: one.member("User", "userId").update(pattern="^[0-9a-f]{24}"), "says nothing of the whole text"),
    ],
    "closed": [
        (lambda one: one.schemas["Device"].pop("additionalProperties"), "Device: additionalProperties does not say"),
        (lambda one: one.member("IdentityRequest", "client_sdk").pop("additionalProperties"), "client_sdk: additional"),
    ],
    "successes": [
        (lambda one: one.link["responses"].pop("200"), f"POST {LINK}: no 2xx"),
        (lambda one: one.link["responses"]["200"].pop("description"), "200: no description"),
        (lambda one: one.link["responses"]["200"]["content"]["application/json"].pop("schema"),
         "200: application/json has no schema"),
    ],
    "errors": [
        (lambda one: one.answer("Problem404").pop("content"), "404: an error without a body"),
        (lambda one: one.answer("Problem409").update(content={"application/json": {"schema": {"type": "object"}}}),
         "409: application/json with a form without a name is no problem"),
        (lambda one: one.read["responses"].update({"404": {"$ref": "#/components/responses/Linking404"}}),
         "404: application/json with LinkingError is no problem"),
        (lambda one: one.link["responses"].update({"400": {"$ref": "#/components/responses/Identity400"}}),
         "400: application/json with IdentityError is no problem"),
        (lambda one: one.link["responses"].pop("429"), "400, 403, 413 and 429 are answers"),
        (lambda one: one.components["x-problems"].update(NEW="new"), "components.x-problems.NEW: 'new' is no sentence"),
    ],
    "retry": [
        (lambda one: one.answer("Linking429")["headers"].pop("Retry-After"), "429: no Retry-After"),
        (lambda one: one.answer("Problem503").pop("headers"), "503: no Retry-After"),
        (lambda one: one.read["responses"].pop("304"), "304, If-None-Match and ETag go together"),
        (lambda one: one.read["responses"]["200"]["headers"].pop("ETag"), "304, If-None-Match and ETag go together"),
        (lambda one: one.read["parameters"].pop(), "304, If-None-Match and ETag go together"),
    ],
    "idempotency": [
        (lambda one: one.link["parameters"].remove({"$ref": "#/components/parameters/IdempotencyKey"}), "no idempotency-key"),
        (lambda one: one.link["parameters"].remove({"$ref": "#/components/parameters/Prefer"}), "no prefer"),
    ],
    "words": [
        (lambda one: one.link.update(description="Links an install"), "'Links an install' does not begin"),
        (lambda one: one.member("User", "userId").update(description="the user."), "'the user.' does not begin"),
        (lambda one: one.link.pop("description"), f"POST {LINK}: no description"),
        (lambda one: one.link["parameters"][0].pop("description"), f"POST {LINK}: no description of install_id"),
        (lambda one: one.components["headers"]["ETag"].update(description=""), "'' does not begin"),
    ],
    "examples": [
        (lambda one: one.link["requestBody"]["content"]["application/json"].pop("example"), f"POST {LINK}, body: no example"),
        (lambda one: one.link["responses"]["200"]["content"]["application/json"].update(example={"id": 7}),
         f"POST {LINK}, 200: the example is of another form: $.id"),
        (lambda one: one.member("LinkedUser", "id").update(pattern="^[0-9]{24}$"), "200: the example is of another form"),
    ],
}


def test_each_of_fifteen_rules_has_its_sentence_and_its_mistakes() -> None:
    assert [rule.__name__ for rule in lint_openapi.RULES] == list(MISTAKES)
    assert len(MISTAKES) == 15 and all(rule.__doc__ for rule in lint_openapi.RULES)


@pytest.mark.parametrize(("rule", "plant", "said"), [
    pytest.param(rule, plant, said, id=f"{rule}-{said}") for rule, planted in MISTAKES.items() for plant, said in planted])
def test_a_mistake_is_found_by_its_rule(rule: str, plant: Plant, said: str) -> None:
    document = Document()
    plant(document)
    [check] = [one for one in lint_openapi.RULES if one.__name__ == rule]
    found = list(check(OpenAPI(document.all)))
    assert any(said in line for line in found), found


def test_the_scopes_are_those_of_messages() -> None:
    """But for the one that no key can hold; `any` is that of whoever has a key."""
    assert lint_openapi.key_scopes() == {*CONTRACT.document["x-scopes"], "any"} - {"internal"}


def test_the_command_says_it_by_its_exit_status() -> None:
    script = REPOSITORY / "scripts" / "lib" / "lint_openapi.py"
    answer = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
