# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/check_contract.py names what breaks a caller of the gateway, each of them planted in docs/openapi.json, and
nothing that breaks none."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.contract import CONTRACT
from identitybus_testkit.places import REPOSITORY

import check_contract
from contract import ContractError
from openapi import PAGES, OpenAPI

SCRIPT = REPOSITORY / "scripts" / "lib" / "check_contract.py"
DOCUMENT = OpenAPI.of(PAGES["api"])


class Document:
    """A copy of the page, and what can be done to it."""

    def __init__(self) -> None:
        self.all: dict[str, Any] = copy.deepcopy(DOCUMENT.document)
        self.paths = self.all["paths"]
        self.schemas = self.all["components"]["schemas"]

    def members(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.schemas[name]["properties"]
        return found

    def without(self, name: str, member: str) -> None:
        del self.members(name)[member]
        if member in self.schemas[name].get("required", []):
            self.schemas[name]["required"].remove(member)

    def operation(self, name: str) -> dict[str, Any]:
        method, path = name.split()
        found: dict[str, Any] = self.paths[path][method.lower()]
        return found

    def parameter(self, name: str, of: str) -> dict[str, Any]:
        return next(one for one in self.operation(of)["parameters"] if one.get("name") == name)

    def schema(self, name: str, status: str = "") -> dict[str, Any]:
        """Of the body, or of an answer."""
        operation = self.operation(name)
        node = operation["responses"][status] if status else operation["requestBody"]
        found: dict[str, Any] = node["content"]["application/json"]["schema"]
        return found


def breaks(change: Callable[[Document], Any]) -> list[str]:
    document = Document()
    change(document)
    return check_contract.breaks(DOCUMENT, OpenAPI(document.all))


LINK = "POST /v2/users/{install_id}/link"
CONFIRM = "POST /sdk/v1/installs/{install_id}/confirm-link"
ERASE = "DELETE /users/{user_id}"
GROUP = "GET /v3/requests"
REQUIRED = {"name": "why", "in": "query", "required": True, "schema": {"type": "string"}}


def second_form(one: Document) -> None:
    one.schema("POST /sdk/v1/users")["oneOf"].pop()


def third_form(one: Document) -> None:
    one.paths[LINK.split()[1]]["post"]["responses"]["200"]["content"]["application/json"]["schema"] = {
        "oneOf": [{"$ref": "#/components/schemas/LinkedUser"}, {"type": "null"}]}


@pytest.mark.parametrize(("change", "said"), [
    # Taken
    (lambda one: one.without("NewUserByCode", "authCode"), "NewUserByCode (taken): the member authCode is gone"),
    (lambda one: one.schema(CONFIRM)["required"].append("externalId"), f"{CONFIRM}, body: externalId is required now"),
    (lambda one: one.members("VerificationCheck")["userId"].update(type="integer"),
     "VerificationCheck (taken).userId: type is integer and was string"),
    (lambda one: one.schemas["IdentityRequest"]["properties"]["known_identities"]["additionalProperties"].update(
        type="string"), "known_identities.additionalProperties: type is string and was ['string', 'null']"),
    (lambda one: one.members("Device")["kind"]["enum"].remove("tablet"),
     "Device (taken).kind: the word tablet is not taken any more"),
    (lambda one: one.members("ExternalID")["external_id"].update(maxLength=100),
     "ExternalID (taken).external_id: maxLength is 100 and was 750"),
    (lambda one: one.members("ExternalID")["external_id"].update(pattern="^a"), "external_id: the pattern is ^a"),
    (lambda one: one.members("ExternalID")["external_id"].update(format="email"), "format is email and was None"),
    (lambda one: one.schemas["Device"].update(minProperties=3), "Device (taken): minProperties is 3 and was None"),
    (lambda one: one.schemas["Device"].update(dependentRequired={"model": ["osVersion"]}),
     "Device (taken): dependentRequired is"),
    (lambda one: one.schemas["VerificationLogout"].update(additionalProperties=False),
     "VerificationLogout (taken): members that nobody knows are refused now"),
    (second_form, "is not one of oneOf any more"),
    (lambda one: one.schemas["NewUserBySecret"].update({"not": {"required": ["authCode", "x"]}}),
     "NewUserBySecret (taken): not is"),
    (lambda one: one.parameter("install_id", LINK)["schema"].update(maxLength=64),
     f"{LINK}, path install_id: maxLength is 64 and was 255"),
    (lambda one: one.all["components"]["parameters"]["IdempotencyKey"].update(required=True),
     f"{LINK}, header idempotency-key: it is required now"),
    (lambda one: one.parameter("group_id", GROUP).update(name="group"), f"{GROUP}, query group_id: it is gone"),
    (lambda one: one.operation(GROUP)["parameters"].append(REQUIRED), f"{GROUP}, query why: it is new, and required"),
    (lambda one: one.parameter("group_id", GROUP).update(explode=False), f"{GROUP}, query group_id: explode is False"),
    (lambda one: one.operation(ERASE).update(requestBody={"required": True, "content": {}}),
     f"{ERASE}, body: it is required now"),
    (lambda one: one.operation(LINK).pop("requestBody"), f"{LINK}, body: it is gone"),
    (lambda one: one.operation(LINK)["requestBody"]["content"].update(
        {"application/yaml": one.operation(LINK)["requestBody"]["content"].pop("application/json")}),
     f"{LINK}, body: application/json is not taken any more"),
    # Told
    (lambda one: one.without("User", "token"), "User (told): the member token is gone"),
    (lambda one: one.members("LinkedUser").update(id={"type": "integer"}),
     "LinkedUser (told).id: type is integer and was string"),
    (lambda one: one.members("Install")["installId"].update(type=["string", "null"]),
     "Install (told).installId: type is ['string', 'null'] and was string"),
    (lambda one: one.members("Install")["installId"].pop("type"), "Install (told).installId: type is None"),
    (lambda one: one.schemas["Problem"]["required"].remove("code"), "Problem (told): code is not always there any more"),
    (lambda one: one.members("Verification")["state"]["enum"].append("asleep"),
     "Verification (told).state: the word asleep is new to readers"),
    (lambda one: one.members("AuthenticationCode")["expires_at"].pop("format"), "expires_at: format is None"),
    (third_form, f"{LINK}, 200"),
    (lambda one: one.all["components"]["responses"]["Linking429"]["headers"].pop("Retry-After"),
     f"{LINK}, 429: the header retry-after is gone"),
    (lambda one: one.all["components"]["headers"]["Location"]["schema"].update(type="integer"),
     f"{ERASE}, 202, header location: type is integer and was string"),
    (lambda one: one.operation(LINK)["responses"]["200"].pop("content"), f"{LINK}, 200: it says nothing any more"),
    (lambda one: one.all["components"]["responses"]["Linking404"]["content"].update({"text/plain": {}}),
     f"{LINK}, 404: text/plain is new to readers"),
    (lambda one: one.operation(LINK)["responses"].update({"202": {"description": "Later."}}), f"{LINK}: 202 is new to callers"),
    (lambda one: one.operation(ERASE)["responses"].pop("202"), f"{ERASE}: 202 is not answered any more"),
    # Who calls what, and how
    (lambda one: one.paths.pop("/users/auth-code"), "POST /users/auth-code is gone"),
    (lambda one: one.paths["/users/{user_id}"].pop("delete"), f"{ERASE} is gone"),
    (lambda one: one.operation(LINK).update(operationId="link"), f"{LINK}: operationId is link and was linkUser"),
    (lambda one: one.operation(LINK).update(security=[{"bearerAPIKey": [], "date": []}]),
     f"{LINK}: bearerAPIKey is not enough any more"),
    (lambda one: one.operation("POST /v1/login")["security"].pop(0), "POST /v1/login: basic is not enough any more"),
    (lambda one: one.operation("GET /openapi.json").update(security=[{"basic": []}]),
     "GET /openapi.json: no credential is not enough any more"),
    (lambda one: one.operation(LINK).update({"x-scope": "admin"}), f"{LINK}: the scope user.link is not enough any more"),
    (lambda one: one.operation(GROUP).pop("x-or-scope"), f"{GROUP}: the scope support is not enough any more"),
    (lambda one: one.operation(CONFIRM).update({"x-scope": "sdk"}), f"{CONFIRM}: a scope is needed now"),
    (lambda one: one.all["components"]["securitySchemes"]["apiKey"].update(name="x-key"),
     "the credential apiKey: name is x-key and was x-mp-key"),
    (lambda one: one.all.update(servers=[{"url": "/api"}]), "the server / is gone"),
    (lambda one: one.all["components"]["x-problems"].pop("NO_USER"), "the problem NO_USER is gone"),
])
def test_what_breaks_a_caller_is_named(change: Callable[[Document], Any], said: str) -> None:
    found = breaks(change)
    assert any(said in line for line in found), found


@pytest.mark.parametrize("change", [
    lambda one: None,
    # Taken
    lambda one: one.members("Device").update(colour={"type": "string"}),
    lambda one: one.members("Device")["kind"]["enum"].append("watch"),
    lambda one: one.members("ExternalID")["external_id"].update(maxLength=1000),
    lambda one: one.schemas["VerificationLogout"]["required"].clear(),
    lambda one: one.parameter("install_id", LINK)["schema"].update(type=["string", "integer"]),
    lambda one: one.schema("POST /sdk/v1/users")["oneOf"].append({"type": "object", "required": ["ticket"]}),
    lambda one: one.operation(GROUP)["parameters"].append({**REQUIRED, "required": False}),
    lambda one: one.parameter("group_id", GROUP).update(required=False),
    lambda one: one.operation(LINK)["requestBody"].update(required=False),
    lambda one: one.operation(LINK)["requestBody"]["content"].update({"application/cbor": {}}),
    # Told
    lambda one: one.members("User").update(colour={"type": "string"}),
    lambda one: one.members("Verification")["state"]["enum"].remove("unchecked"),
    lambda one: one.schemas["User"]["required"].append("installToken"),
    lambda one: one.members("Identity")["context"].update(type="string"),
    lambda one: one.members("Install")["installId"].update(maxLength=10, format="uuid"),
    lambda one: one.operation(LINK)["responses"].pop("410"),
    lambda one: one.operation(LINK)["responses"].update({"418": {"description": "Tea."}}),
    lambda one: one.operation(LINK)["responses"]["200"].update(headers={"ETag": {"$ref": "#/components/headers/ETag"}}),
    # Who calls what, and how
    lambda one: one.paths.update({"/users": {"post": one.operation(LINK)}}),
    lambda one: one.operation(LINK).update(security=[{"bearerAPIKey": []}, {"basic": []}]),
    lambda one: one.operation(LINK).update(security=[]),
    lambda one: one.operation(GROUP).update({"x-scope": "support", "x-or-scope": "user.delete"}),
    lambda one: one.operation(LINK).update({"x-or-scope": "support"}),
    lambda one: one.operation(LINK).update({"x-scope": "any"}),
    lambda one: one.operation(LINK).pop("x-scope"),
    lambda one: one.operation(LINK).update(summary="Other words", tags=["devices"]),
    lambda one: one.all["components"]["x-problems"].update(NEW="New."),
    lambda one: one.all["info"].update(version="9.9.9"),
])
def test_what_breaks_nobody_is_not_named(change: Callable[[Document], Any]) -> None:
    assert breaks(change) == []


def test_a_form_that_is_put_under_a_name_is_the_same_form() -> None:
    def change(one: Document) -> None:
        one.schemas["Confirmation"] = dict(one.schema(CONFIRM))
        one.operation(CONFIRM)["requestBody"]["content"]["application/json"]["schema"] = {
            "$ref": "#/components/schemas/Confirmation"}

    assert breaks(change) == []
    for place in ({"type": "integer"}, {"type": "boolean"}):
        found = breaks(lambda one, place=place: (change(one), one.members("Confirmation").update(success=place)))
        assert bool(found) == (place["type"] == "integer"), found


def test_what_was_looked_at_is_not_named() -> None:
    line = f"{LINK}: 202 is new to callers"

    def change(one: Document) -> None:
        one.operation(LINK)["responses"]["202"] = {"description": "Later."}
        one.all["x-looked-at"] = [line, "another"]

    assert breaks(change) == ["x-looked-at has a line that is no break: another"]


def test_messages_are_not_compared_with_calls() -> None:
    with pytest.raises(ContractError, match="the other of HTTP"):
        check_contract.breaks(CONTRACT, DOCUMENT)


def test_the_admin_port_has_its_own() -> None:
    admin = OpenAPI.of(PAGES["admin"])
    changed = copy.deepcopy(admin.document)
    changed["components"]["schemas"]["Key"]["properties"].pop("scopes")
    changed["components"]["schemas"]["Key"]["required"].remove("scopes")
    changed["paths"]["/admin/v1/key"]["get"]["x-scope"] = "support"
    assert check_contract.breaks(admin, OpenAPI(changed)) == [
        "GET /admin/v1/key: the scope any is not enough any more", "Key (told): the member scopes is gone"]


def test_the_command_says_it_by_its_exit_status(tmp_path: Path) -> None:
    def run(*arguments: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60)

    new = tmp_path / "new.json"
    for page in PAGES.values():
        assert run(page, page).returncode == 0
        assert "nothing is released yet" in run(tmp_path / "none.json", page).stdout
        document = json.loads(page.read_text())
        del document["paths"]["/openapi.json"]
        new.write_text(json.dumps(document))
        answer = run(page, new)
        assert answer.returncode == 1 and "GET /openapi.json is gone" in answer.stdout
    for text, said in (("{", "Expecting"), ("[]", "no OpenAPI document"), ('{"openapi": 1, "openapi": 2}', "twice")):
        new.write_text(text)
        answer = run(PAGES["api"], new)
        assert answer.returncode == 1 and said in answer.stderr and str(new) in answer.stderr


def test_scripts_test_compares_all_three() -> None:
    text = (REPOSITORY / "scripts" / "test").read_text()
    for old, new in (("contract-released.yaml", "asyncapi.yaml"), ("openapi-released.json", "openapi.json"),
                     ("openapi-admin-released.json", "openapi-admin.json")):
        assert f"check_contract.py docs/{old} docs/{new}" in text
