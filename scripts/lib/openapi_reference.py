# SPDX-License-Identifier: Apache-2.0
"""The pages of reference of HTTP, written from docs/openapi.json and docs/openapi-admin.json: one for each port, and one with
a heading for each type of problem. Run by scripts/generate."""

import json
from collections.abc import Iterator

from contract import Node
from forms import Forms, capital, escape, slug
from openapi import OpenAPI, Operation

PLACES = {"api": "docs/reference/http.md", "admin": "docs/reference/http-admin.md"}
TITLES = {"api": "HTTP calls", "admin": "HTTP calls of the admin port"}
SOURCES = {"api": "openapi.json", "admin": "openapi-admin.json"}
PROBLEMS = "docs/reference/problems.md"
# What has no limit of its own has that of these.
HOLDERS = {"body": "the body", "header": "a header", "head": "the request's head"}
# Forms that stand in most calls, and are told with the errors.
ERRORS = ("Problem", "LinkingError", "IdentityError", "AliasError", "PrivacyError")


def pages(documents: dict[str, OpenAPI]) -> dict[str, str]:
    found = {PLACES[port]: HTTPPage(port, document).text() for port, document in documents.items()}
    return found | {PROBLEMS: "\n".join([*problems(documents["api"]), ""])}


def problems(document: OpenAPI) -> Iterator[str]:
    yield from ("# Types of problems", "", "<!-- Written by scripts/generate from openapi.json. -->", "")
    yield "The `type` of a problem (RFC 9457) is a place in the document that the gateway serves at `/openapi.json`, such as"
    yield "`/openapi.json#/components/x-problems/NO_USER`. There stands what is written here under the same code. A code is never"
    yield "renamed or reused. The errors in the words of vendors have the same codes ([gateway](../gateway.md#errors))."
    for code, words in document.document["components"]["x-problems"].items():
        yield from ("", f"## {code}", "", words)


class HTTPPage(Forms):
    def __init__(self, port: str, document: OpenAPI) -> None:
        self.port, self.document = port, document
        self.schemas = document.schemas
        parameters = document.document["components"].get("parameters", {})
        # Told once, above all calls.
        self.shared = {document.follow(one)["name"] for one in parameters.values()}

    def text(self) -> str:
        return "\n".join([*self.lines(), ""])

    def lines(self) -> Iterator[str]:
        document = self.document.document
        yield from (f"# {TITLES[self.port]}", "", f"<!-- Written by scripts/generate from {SOURCES[self.port]}. -->", "")
        yield document["info"]["description"]
        other = next(port for port in PLACES if port != self.port)
        yield f"Rules are on [gateway.md](../gateway.md). For tools: [{SOURCES[self.port]}](../{SOURCES[self.port]})."
        yield f"The other port has [a page of its own]({PLACES[other].rpartition('/')[2]})."
        yield from ("", "A `?` stands behind what may be absent.")
        yield from self.credentials()
        yield from self.headers()
        for tag in document["tags"]:
            yield from ("", f"## Calls: {tag['name']}", "", tag["description"])
            for operation in self.document.operations():
                if operation.node["tags"] == [tag["name"]]:
                    yield from self.operation(operation)
        yield from self.errors()
        yield from ("", "## Forms")
        for name, schema in self.schemas.items():
            if name not in ERRORS and not self.is_short(name):
                yield from self.form(name, schema)

    # What all calls have

    def credentials(self) -> Iterator[str]:
        yield from ("", "## Credentials", "", "| name | what is sent | |", "|---|---|---|")
        for name, scheme in self.document.document["components"]["securitySchemes"].items():
            if scheme["type"] == "http":
                shown = scheme.get("bearerFormat", "id and secret, as Base64")
                form = f"`Authorization: {scheme['scheme'].capitalize()} {shown if '<' in shown else f'<{shown}>'}`"
            else:
                form = f"the header `{scheme['name']}`"
            yield f"| `{name}` | {form} | {escape(scheme.get('description', ''))} |"

    def headers(self) -> Iterator[str]:
        components = self.document.document["components"]
        yield from ("", "## Headers", "", "| header | of | form | |", "|---|---|---|---|")
        for parameter in components["parameters"].values():
            form = self.kind(parameter["schema"], "")
            yield f"| `{parameter['name']}` | requests | {form} | {escape(parameter['description'])} |"
        for name, header in components["headers"].items():
            yield f"| `{name}` | answers | {self.kind(header['schema'], '')} | {escape(header['description'])} |"

    def errors(self) -> Iterator[str]:
        told: dict[str, str] = {}
        for name, response in self.document.document["components"]["responses"].items():
            told.setdefault(name[-3:], response["description"])
        yield from ("", "## Errors", "", "Each code of a problem has [its heading](problems.md).")
        yield from ("", "| status | what it means |", "|---|---|")
        for status, words in sorted(told.items()):
            yield f"| {status} | {escape(words)} |"
        for name in ERRORS:
            if name in self.schemas:
                yield from self.form(name, self.schemas[name])

    # One call

    def operation(self, operation: Operation) -> Iterator[str]:
        node = operation.node
        yield from ("", f"### {node['summary']}", "", f"`{operation.name}`, `{node['operationId']}`. {self.callers(operation)}")
        yield from ("", node["description"])
        yield from self.parameters(operation)
        if body := self.document.follow(node.get("requestBody")):
            yield from self.content("Body" + ("" if body.get("required") else " (may be absent)"), body)
        for status, response in self.document.responses(operation).items():
            if status[0] in "23":
                headers = ", ".join(f"`{name}`" for name in response.get("headers", {}))
                more = f" With {headers}." if headers else ""
                yield from self.content(f"**{status}**", response, response["description"] + more)
        statuses = [status for status in sorted(self.document.responses(operation)) if status[0] in "45"]
        if statuses:
            yield from ("", f"[Errors](#errors): {', '.join(statuses)}; {self.forms_of_errors(operation)}.")

    def callers(self, operation: Operation) -> str:
        node = operation.node
        told = [" with ".join(f"`{name}`" for name in choice) or "no credential" for choice in node["security"]]
        words = f"By {', or '.join(told)}." if told else "Anybody may call."
        scopes = [node[key] for key in ("x-scope", "x-or-scope") if key in node]
        if scopes == ["any"]:
            return f"{words} Whatever the key may."
        return words + (f" Scope {' or '.join(f'`{scope}`' for scope in scopes)}." if scopes else "")

    def forms_of_errors(self, operation: Operation) -> str:
        found: dict[str, None] = {}
        for status, response in self.document.responses(operation).items():
            for media in response.get("content", {}).values():
                if status[0] in "45":
                    found[self.link(media["schema"]["$ref"].rpartition("/")[2], "")] = None
        return " or ".join(found)

    def parameters(self, operation: Operation) -> Iterator[str]:
        all_of_them = list(self.document.parameters(operation).values())
        own = [one for one in all_of_them if one["name"] not in self.shared]
        if own:
            yield from ("", "| parameter | in | form | |", "|---|---|---|---|")
        for one in own:
            name = f"`{one['name']}`{'' if one.get('required') else '?'}"
            yield f"| {name} | {one['in']} | {self.kind(one['schema'], '')} | {escape(one['description'])} |"
        if others := [f"`{one['name']}`" for one in all_of_them if one["name"] in self.shared]:
            yield from ("", f"[Headers](#headers): {', '.join(others)}.")

    def content(self, title: str, part: Node, words: str = "") -> Iterator[str]:
        if not part.get("content"):
            yield from ("", f"{title}: {words}")
            return
        for kind, media in part["content"].items():
            schema = media["schema"]
            form = "" if kind == "application/json" else f" `{kind}`,"
            # What stands here alone is told here.
            inline = schema if "properties" in schema else None
            told = "this object." if inline else f"{self.kind(schema, '')}."
            yield from ("", f"{title}:{' ' + words if words else ''}{form} {capital(told) if words else told}")
            if inline:
                yield from ("", *self.table(inline, ""))
            elif "oneOf" in schema:
                for one in schema["oneOf"]:
                    if "properties" in one:
                        yield from ("", *self.table(one, ""))
            if "example" in media:
                shown = media["example"]
                yield from ("", "```json", shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False), "```")

    # Forms

    def form(self, name: str, schema: Node) -> Iterator[str]:
        yield from ("", f"### {name}", "")
        if "description" in schema:
            yield from (schema["description"], "")
        if "properties" in schema:
            yield from self.table(schema, "")
            return
        yield capital(self.kind({key: value for key, value in schema.items() if key != "description"}, "")) + "."
        if inside := list(members_of(schema)):
            yield from ("", "| member | form | |", "|---|---|---|")
            for place, one in inside:
                yield from self.rows(one, "", f"{place.lstrip('.')}." if place else "")

    def rows(self, schema: Node, home: str, before: str = "") -> Iterator[str]:
        """A member of a member stands below it, as `token.tokenId`; one of a list's elements as `list[].member`."""
        for name, inner in schema["properties"].items():
            form = self.kind({key: value for key, value in inner.items() if key != "description"}, home)
            mark = "" if name in schema.get("required", []) else "?"
            yield f"| `{before}{name}`{mark} | {form} | {escape(inner.get('description', ''))} |"
            for place, one in members_of(inner):
                yield from self.rows(one, home, f"{before}{name}{place}.")

    def kind(self, schema: Node, home: str) -> str:
        if "oneOf" in schema:
            return " or ".join(self.kind(one, home) for one in schema["oneOf"])
        if len(schema.get("allOf", [])) > 1:
            return " and ".join(self.kind(one, home) for one in schema["allOf"])
        if isinstance(schema.get("type"), list):
            return " or ".join(self.kind({**schema, "type": one}, home) for one in schema["type"])
        match schema.get("type"):
            case "null":
                return "`null`"
            case "object" if not isinstance(schema.get("additionalProperties"), dict):
                return "object"
            case "array" if "items" not in schema:
                return "list" + self.limits(schema)
            case "string" if schema.get("format") == "uuid":
                return "UUID"
        return super().kind(schema, home)

    def limits(self, schema: Node) -> str:
        said = [super().limits(schema)[2:-1]]
        least, most = schema.get("minimum"), schema.get("maximum")
        if schema.get("format") == "int64" or (least, most) == (-(2 ** 63), 2 ** 63 - 1):
            said.append("64 bits")
        elif most is not None:
            said.append(f"{least if least is not None else 'up'} to {most:,}")
        elif least is not None:
            said.append(f"{least} or more")
        if "x-limit" in schema:
            said.append(f"as much as {HOLDERS[schema['x-limit']]} holds")
        if schema.get("contentEncoding"):
            said.append(schema["contentEncoding"])
        told = ", ".join(filter(None, said))
        return f" ({told})" if told else ""

    def link(self, name: str, home: str) -> str:
        return f"[{name}](#{slug(name)})"


def members_of(schema: Node) -> Iterator[tuple[str, Node]]:
    """The objects that stand in a form without a name of their own, and where: `[]` in a list, `.*` under any name."""
    if "properties" in schema:
        yield "", schema
    for key, place in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from ((place + more, one) for more, one in members_of(schema[key]))
    for key in ("allOf", "oneOf", "anyOf"):
        for inner in schema.get(key, []):
            yield from members_of(inner)
