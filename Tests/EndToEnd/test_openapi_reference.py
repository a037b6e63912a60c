# SPDX-License-Identifier: Apache-2.0
"""The pages of reference of HTTP tell all that the OpenAPI documents say: each call, each member, each code of a problem. That
they are current is looked at by scripts/generate --check, and their links by scripts/lib/check_docs.py."""

import copy
import json
import re
from typing import Any

import pytest

from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.contract import CONTRACT

import openapi_reference
from forms import slug
from lint_openapi import every_schema
from openapi import PAGES, OpenAPI

DOCUMENTS = {port: OpenAPI.of(path) for port, path in PAGES.items()}
TEXTS = {port: (REPOSITORY / place).read_text() for port, place in openapi_reference.PLACES.items()}


def headings(text: str) -> list[str]:
    return [slug(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("port", PAGES)
def test_each_call_stands_there_with_who_may_call_it(port: str) -> None:
    for operation in DOCUMENTS[port].operations():
        start = TEXTS[port].index(f"`{operation.name}`, `{operation.node['operationId']}`.")
        told = TEXTS[port][start:].partition("\n### ")[0]
        assert operation.node["description"] in told
        for key in ("x-scope", "x-or-scope"):
            if (scope := operation.node.get(key, "any")) != "any":
                assert f"`{scope}`" in told.partition("\n")[0], operation.name
        for status, response in DOCUMENTS[port].responses(operation).items():
            assert status in told and (status[0] in "45" or response["description"] in told), (operation.name, status)
        for _, name in DOCUMENTS[port].parameters(operation):
            assert f"`{name.lower()}`" in told.lower(), (operation.name, name)


@pytest.mark.parametrize("port", PAGES)
def test_each_member_stands_there(port: str) -> None:
    for where, schema, _ in every_schema(DOCUMENTS[port]):
        for name in schema.get("properties", {}):
            # One that is a form of its own, one of a call, or a member of a member.
            assert re.search(rf"^\| `([\w.*\[\]-]+\.)?{re.escape(name)}`\??\ \|", TEXTS[port], re.M), (where, name)


@pytest.mark.parametrize("port", PAGES)
def test_no_heading_stands_there_twice(port: str) -> None:
    found = headings(TEXTS[port])
    assert len(found) == len(set(found)), sorted(one for one in found if found.count(one) > 1)


def test_each_problem_has_its_heading() -> None:
    page = (REPOSITORY / openapi_reference.PROBLEMS).read_text()
    for document in DOCUMENTS.values():
        for code, words in document.document["components"]["x-problems"].items():
            assert f"\n## {code}\n\n{words}\n" in page
    codes = [slug(code) for code in CONTRACT.schemas["ReasonCode"]["enum"]]
    assert set(codes) <= set(headings(page))


def test_a_member_of_a_member_stands_below_it_and_what_may_be_absent_has_its_mark() -> None:
    document: dict[str, Any] = copy.deepcopy(DOCUMENTS["api"].document)
    document["components"]["schemas"]["Install"] = {
        "type": "object", "required": ["installId"], "additionalProperties": False, "properties": {
            "installId": {"type": "string", "maxLength": 5, "description": "One | two."},
            "size": {"type": "integer", "minimum": 0, "maximum": 1000},
            "seen": {"type": "array", "maxItems": 3, "items": {"type": "object", "required": ["at"], "properties": {
                "at": {"type": "string", "format": "date-time"}, "by": {"type": ["string", "null"], "x-limit": "body"}}}},
        }}
    text = openapi_reference.pages({"api": OpenAPI(document), "admin": DOCUMENTS["admin"]})[openapi_reference.PLACES["api"]]
    assert """\
| `installId` | text (up to 5 characters) | One \\| two. |
| `size`? | whole number (0 to 1,000) |  |
| `seen`? | list of object (up to 3) |  |
| `seen[].at` | text (RFC 3339) |  |
| `seen[].by`? | text (as much as the body holds) or `null` |  |

Another member is refused.
""" in text


def test_what_is_shown_is_the_example_of_the_document() -> None:
    for port, document in DOCUMENTS.items():
        for operation in document.operations():
            for status, response in document.responses(operation).items():
                for media in response.get("content", {}).values():
                    if status[0] == "2":
                        assert json.dumps(media["example"], ensure_ascii=False) in TEXTS[port], (operation.name, status)
