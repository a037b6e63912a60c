# SPDX-License-Identifier: Apache-2.0
"""What a reviewer asks of an API, as fifteen rules for docs/openapi.json and docs/openapi-admin.json.

    .venv/bin/python scripts/lib/lint_openapi.py    every fault is one line; the exit status says whether there was one

Each rule is a function with its sentence, and stands in RULES; Tests/EndToEnd/test_openapi_lint.py plants a mistake for each."""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from contract import Contract, Node, below
from openapi import PAGES, OpenAPI, Operation

# The form of errors where clients are a vendor's. Everywhere else an error is a problem of RFC 9457.
VENDORS = {
    "linking": {"LinkingError"}, "identity": {"IdentityError", "AliasError"}, "privacy": {"PrivacyError"}, "profiles": set()}
# What is thrown away, and what is asked of all services: there is nothing to repeat.
WITHOUT_EFFECT = {"events", "resolveFacts", "resolvePerson"}
CHANGES = ("post", "put", "patch", "delete")
FORMS = {"type", "$ref", "enum", "const", "allOf", "oneOf", "anyOf"}
LIMITS = {
    "string": {"maxLength", "enum", "const", "format"}, "array": {"maxItems"}, "integer": {"maximum", "enum", "const", "format"},
    "number": {"maximum", "format"}}


def operation_ids(document: OpenAPI) -> Iterator[str]:
    """Each operation has an id of its own, in lower camel case: programs that are generated are called by it."""
    seen: dict[str, str] = {}
    for operation in document.operations():
        name = operation.node.get("operationId", "")
        if not re.fullmatch(r"[a-z]+([A-Z]*[a-z0-9]+)*", name):
            yield f"{operation.name}: operationId {name or 'is missing'} is not in lower camel case"
        if name in seen:
            yield f"{operation.name}: operationId {name} is that of {seen[name]}"
        seen[name] = operation.name


def summaries(document: OpenAPI) -> Iterator[str]:
    """Each operation has a summary, a heading without a full stop, and one tag of those that the document tells of."""
    tags = {tag["name"] for tag in document.document.get("tags", [])}
    used = set()
    for operation in document.operations():
        summary = operation.node.get("summary", "")
        if not summary or summary.endswith(".") or not summary[0].isupper():
            yield f"{operation.name}: the summary is a heading, and not {summary!r}"
        own = operation.node.get("tags", [])
        if len(own) != 1 or not tags >= set(own):
            yield f"{operation.name}: {own} is not one of the document's tags"
        used.update(own)
    for tag in document.document.get("tags", []):
        if tag["name"] not in used:
            yield f"tags: no operation has {tag['name']}"
        if not tag.get("description"):
            yield f"tags: {tag['name']} has no description"


def callers(document: OpenAPI) -> Iterator[str]:
    """Each operation says who may call it: by which credentials, and with which scope where an API key is one."""
    schemes = document.document["components"]["securitySchemes"]
    scopes = key_scopes()
    for operation in document.operations():
        if "security" not in operation.node:
            yield f"{operation.name}: security does not say who may call"
            continue
        named = {name for choice in operation.node["security"] for name in choice}
        for name in sorted(named - set(schemes)):
            yield f"{operation.name}: there is no credential {name}"
        own = [operation.node[key] for key in ("x-scope", "x-or-scope") if key in operation.node]
        if (named & {"bearerAPIKey", "basic", "apiKey"}) and not own:
            yield f"{operation.name}: x-scope does not say what the API key may"
        if own and not named:
            yield f"{operation.name}: anybody may call, so no scope is asked for"
        for scope in own:
            if scope not in scopes:
                yield f"{operation.name}: there is no scope {scope}"


@cache
def key_scopes() -> set[str]:
    """Those of docs/asyncapi.yaml that a key may have; `any`: none is asked for."""
    return set(Contract.of().document["x-scopes"]) - {"internal"} | {"any"}


def places(document: OpenAPI) -> Iterator[str]:
    """Each $ref leads to something of the kind that belongs there, and servers are told, as paths of whoever serves this."""
    kinds = {"schema": "schemas", "items": "schemas", "parameters": "parameters", "headers": "headers", "responses": "responses"}
    for where, reference in document.references():
        kind = next((kinds[word] for word in reversed(re.findall(r"\w+", where)) if word in kinds), "schemas")
        if document.at(reference) is None:
            yield f"{where}: {reference} leads nowhere"
        elif not reference.startswith(f"#/components/{kind}/"):
            yield f"{where}: {reference} is none of components.{kind}"
    servers = document.document.get("servers", [])
    for server in servers or [{}]:
        if not server.get("url", "").startswith("/"):
            yield f"servers: {server.get('url')} is no path of whoever serves this document"


def unused(document: OpenAPI) -> Iterator[str]:
    """Each component is used by something."""
    named = {reference for _, reference in document.references()}
    named |= {f"#/components/securitySchemes/{name}" for operation in document.operations()
              for choice in operation.node.get("security", []) for name in choice}
    for kind, nodes in document.document["components"].items():
        for name in nodes:
            if not kind.startswith("x-") and f"#/components/{kind}/{name}" not in named:
                yield f"components.{kind}.{name}: nothing names it"


def path_parameters(document: OpenAPI) -> Iterator[str]:
    """The parameters of a path are those that it names, in its order, each required; no parameter is told twice."""
    for operation in document.operations():
        parameters = [document.follow(one) for one in operation.node.get("parameters", [])]
        wanted = re.findall(r"\{(\w+)\}", operation.path)
        told = [one["name"] for one in parameters if one["in"] == "path"]
        if told != wanted:
            yield f"{operation.name}: the path has {wanted}, and the parameters are {told}"
        for one in parameters:
            if one["in"] == "path" and one.get("required") is not True:
                yield f"{operation.name}: {one['name']} of the path is always there: required"
        if len(document.parameters(operation)) != len(parameters):
            yield f"{operation.name}: a parameter is told twice"


def types(document: OpenAPI) -> Iterator[str]:
    """Each parameter, header and member has a type, and each that is taken a limit: of its own, or that of
    bodies, headers or heads (`x-limit`)."""
    for where, schema, is_taken in every_schema(document):
        # What says which members go together has none, and what may be anything says so.
        if not FORMS & set(schema) and not re.search(r"\.(not|anyOf)\b", where):
            if not schema.get("description", "").startswith("Any value"):
                yield f"{where}: no type"
        kind = schema.get("type")
        for one in [kind] if isinstance(kind, str) else kind or []:
            has_limit = LIMITS.get(one, set(schema)) & set(schema) or one == "string" and is_bounded(schema.get("pattern"))
            if is_taken and schema and not has_limit and schema.get("x-limit") not in ("body", "header", "head"):
                yield f"{where}: a {one} without a limit"


def is_bounded(pattern: str | None) -> bool:
    """Whether a pattern gives the length too."""
    return pattern is not None and not re.search(r"(?<!\\)[*+]|,\}", re.sub(r"\[[^\]]*\]", "x", pattern))


def patterns(document: OpenAPI) -> Iterator[str]:
    """Each pattern compiles, and says of the whole text what it is."""
    for where, schema, _ in every_schema(document):
        if (pattern := schema.get("pattern")) is not None:
            try:
                re.compile(pattern)
            except re.error as problem:
                yield f"{where}: {pattern} does not compile: {problem}"
            if not (pattern.startswith("^") and (pattern.endswith("$") or pattern.startswith("^(?!"))):
                yield f"{where}: {pattern} says nothing of the whole text"


def closed(document: OpenAPI) -> Iterator[str]:
    """Each object that is taken says what becomes of members that nobody knows: refused (false), or passed over (true)."""
    for where, schema, is_taken in every_schema(document):
        if is_taken and schema.get("type") == "object" and "additionalProperties" not in schema:
            yield f"{where}: additionalProperties does not say whether other members are refused"


def successes(document: OpenAPI) -> Iterator[str]:
    """Each operation tells of a success, and what stands in it: a form, or that there is no body."""
    for operation in document.operations():
        responses = document.responses(operation)
        if not any(status.startswith("2") for status in responses):
            yield f"{operation.name}: no 2xx"
        for status, response in responses.items():
            if not response.get("description"):
                yield f"{operation.name}, {status}: no description"
            for kind, media in response.get("content", {}).items():
                if "schema" not in media:
                    yield f"{operation.name}, {status}: {kind} has no schema"


def errors(document: OpenAPI) -> Iterator[str]:
    """Each 4xx and 5xx is a problem of RFC 9457, or in the words of the vendor whose client calls; each code of a problem is
    told in a sentence."""
    for operation in document.operations():
        vendor = set().union(*(VENDORS.get(tag, set()) for tag in operation.node.get("tags", [])))
        responses = document.responses(operation)
        for status, response in responses.items():
            if status[0] not in "45":
                continue
            content = response.get("content", {})
            if not content and (status not in ("401", "403") or not vendor):
                yield f"{operation.name}, {status}: an error without a body"
            for kind, media in content.items():
                form = document.named(media["schema"]) if "$ref" in media.get("schema", {}) else ""
                if (kind, form) != ("application/problem+json", "Problem") and (kind != "application/json" or form not in vendor):
                    yield f"{operation.name}, {status}: {kind} with {form or 'a form without a name'} is no problem"
        if operation.node.get("security") and not {"400", "403", "413", "429"} <= set(responses):
            yield f"{operation.name}: 400, 403, 413 and 429 are answers to whoever may call"
    for code, words in document.document["components"]["x-problems"].items():
        if not re.fullmatch(r"[A-Za-z].*\.", words):
            yield f"components.x-problems.{code}: {words!r} is no sentence"


def retry(document: OpenAPI) -> Iterator[str]:
    """A 429 and a 503 say when to try again (`Retry-After`); what may be 304 takes `If-None-Match`, and has an `ETag`."""
    for operation in document.operations():
        for status, response in document.responses(operation).items():
            if status in ("429", "503") and "Retry-After" not in response.get("headers", {}):
                yield f"{operation.name}, {status}: no Retry-After"
        responses = document.responses(operation)
        knows = ("header", "if-none-match") in document.parameters(operation)
        if ("304" in responses) != knows or ("304" in responses) != ("ETag" in responses.get("200", {}).get("headers", {})):
            yield f"{operation.name}: 304, If-None-Match and ETag go together"


def idempotency(document: OpenAPI) -> Iterator[str]:
    """What changes something can be sent again (`Idempotency-Key`), and tried without effect (`Prefer`)."""
    for operation in document.operations():
        if operation.method in CHANGES and operation.node.get("operationId") not in WITHOUT_EFFECT:
            for name in ("idempotency-key", "prefer"):
                if ("header", name) not in document.parameters(operation):
                    yield f"{operation.name}: no {name}"


def words(document: OpenAPI) -> Iterator[str]:
    """Each description is there for people: it begins with a capital or a name and ends with a full stop."""
    def look(node: Any, where: str, is_map: bool = False) -> Iterator[str]:
        if isinstance(node, list):
            for number, inner in enumerate(node):
                yield from look(inner, f"{where}[{number}]")
        elif isinstance(node, dict):
            for name, inner in node.items():
                if name == "description" and not is_map and not (
                        isinstance(inner, str) and re.fullmatch(r"[A-Z`0-9](.|\n)*[.?]", inner)):
                    yield f"{where}: {inner!r} does not begin with a capital and end with a full stop"
                elif name not in ("example", "examples", "x-problems"):
                    yield from look(inner, f"{where}.{name}".lstrip("."), name in ("properties", "schemas") and not is_map)

    yield from look(document.document, "")
    for operation in document.operations():
        for node in [operation.node, *document.parameters(operation).values()]:
            if not node.get("description"):
                yield f"{operation.name}: no description{' of ' + node['name'] if 'name' in node else ''}"


def examples(document: OpenAPI) -> Iterator[str]:
    """Each body, of a request and of a success, has an example, and each example is of the form that it shows."""
    for operation, where, media in bodies(document):
        shown = [media["example"]] if "example" in media else [one["value"] for one in media.get("examples", {}).values()]
        if not shown:
            yield f"{operation.name}, {where}: no example"
        schema = {"components": document.document["components"], "allOf": [media.get("schema", {})]}
        for value in shown:
            for fault in Draft202012Validator(schema).iter_errors(value):
                yield f"{operation.name}, {where}: the example is of another form: {fault.json_path}: {fault.message[:200]}"


RULES: list[Callable[[OpenAPI], Iterator[str]]] = [
    operation_ids, summaries, callers, places, unused, path_parameters, types, patterns, closed, successes, errors, retry,
    idempotency, words, examples]


# Ways through the document


def bodies(document: OpenAPI) -> Iterator[tuple[Operation, str, Node]]:
    """Of requests and of successes."""
    for operation in document.operations():
        parts = {"body": document.follow(operation.node.get("requestBody")) or {}}
        parts |= {status: one for status, one in document.responses(operation).items() if status.startswith("2")}
        for where, part in parts.items():
            for media in part.get("content", {}).values():
                yield operation, where, media


def every_schema(document: OpenAPI) -> Iterator[tuple[str, Node, bool]]:
    """Each schema once, where it stands, and whether it is of something that is taken."""
    seen: set[tuple[int, bool]] = set()

    def walk(schema: Any, where: str, is_taken: bool) -> Iterator[tuple[str, Node, bool]]:
        if not isinstance(schema, dict) or (id(schema), is_taken) in seen:
            return
        seen.add((id(schema), is_taken))
        yield where, schema, is_taken
        if "$ref" in schema and (found := document.at(schema["$ref"])) is not None:
            yield from walk(found, document.named(schema), is_taken)
        for inside, inner in below(schema):
            yield from walk(inner, f"{where}.{inside}", is_taken and inside not in ("not", "propertyNames"))

    for operation in document.operations():
        for (place, name), parameter in document.parameters(operation).items():
            yield from walk(parameter.get("schema", {}), f"{operation.name}, {place} {name}", True)
        body = document.follow(operation.node.get("requestBody")) or {}
        for media in body.get("content", {}).values():
            yield from walk(media.get("schema", {}), f"{operation.name}, body", True)
        for status, response in document.responses(operation).items():
            for name, header in response.get("headers", {}).items():
                yield from walk(document.follow(header).get("schema", {}), f"{operation.name}, {status}, {name}", False)
            for media in response.get("content", {}).values():
                yield from walk(media.get("schema", {}), f"{operation.name}, {status}", False)


def faults(document: OpenAPI) -> list[str]:
    return [f"{rule.__name__}: {line}" for rule in RULES for line in dict.fromkeys(rule(document))]


def main() -> int:
    found = [f"{path}: {line}" for path in PAGES.values() for line in faults(OpenAPI.of(path))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
