# SPDX-License-Identifier: Apache-2.0
"""Forms of JSON in words, as the pages of reference tell them."""

import json
import re
from collections.abc import Iterator

from contract import Node


class Forms:
    """What both kinds of pages have. A subclass says where a form stands, and which ones are told where they are used."""

    schemas: dict[str, Node]

    def link(self, name: str, home: str) -> str:
        raise NotImplementedError

    def is_short(self, name: str) -> bool:
        """A few words that explain themselves stand where they are used."""
        schema = self.schemas[name]
        return "x-values" not in schema and len(schema.get("enum", "x" * 9)) < 9

    def table(self, schema: Node, home: str) -> Iterator[str]:
        members = schema.get("properties", {})
        if not members:
            yield "No members."
            return
        yield from ("| member | form | |", "|---|---|---|")
        yield from self.rows(schema, home)
        for text in choices(schema):
            yield from ("", text)
        if schema.get("additionalProperties") is False:
            yield from ("", "Another member is refused.")
        for example in schema.get("examples", [])[:1]:
            yield from ("", "```json", json.dumps(example, ensure_ascii=False), "```")

    def rows(self, schema: Node, home: str) -> Iterator[str]:
        always = schema.get("required", []) + schema.get("x-unless-dry-run", [])
        for name, inner in schema["properties"].items():
            words = [inner.get("description", "")]
            words += ["Not in a dry run's answer."] if name in schema.get("x-unless-dry-run", []) else []
            words += ["A secret."] if inner.get("x-secret") else []
            words += ["Other words may come."] if inner.get("x-open") else []
            words += [f"{inner['x-elements']}"] if "x-elements" in inner else []
            words += [f"`{word}`: {text}" for word, text in inner.get("x-values", {}).items()]
            form = self.kind({key: value for key, value in inner.items() if key != "description"}, home)
            yield f"| `{name}`{'' if name in always else '?'} | {form} | {escape(' '.join(filter(None, words)))} |"

    def kind(self, schema: Node, home: str) -> str:
        """What stands there, in words."""
        if "$ref" in schema:
            name = named(schema)
            return self.kind(self.schemas[name], home) if self.is_short(name) else self.link(name, home)
        if len(schema.get("allOf", [])) == 1:
            more = self.limits({key: value for key, value in schema.items() if key != "allOf"})
            return self.kind(schema["allOf"][0], home) + more
        if "anyOf" in schema:
            return " or ".join(self.kind(one, home) for one in schema["anyOf"])
        if "enum" in schema:
            are_texts = all(isinstance(one, str) for one in schema["enum"])
            return ", ".join(f"`{one if are_texts else json.dumps(one)}`" for one in schema["enum"])
        if "const" in schema:
            return f"`{json.dumps(schema['const']) if not isinstance(schema['const'], str) else schema['const']}`"
        match schema.get("type"):
            case "array":
                return f"list of {self.kind(schema['items'], home)}{self.limits(schema)}"
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                keys = f"{self.kind(schema['propertyNames'], home)}: " if "propertyNames" in schema else ""
                return f"object of {keys}{self.kind(schema['additionalProperties'], home)}{self.limits(schema)}"
            case "object":
                return "object: " + ", ".join(
                    f"`{name}`{'' if name in schema.get('required', []) else '?'}" for name in schema.get("properties", {}))
            case "string":
                return "text" + self.limits(schema)
            case ["string", "null"]:
                return "text or `null`" + self.limits(schema)
            case "integer":
                return "whole number" + self.limits(schema)
            case "number" | "boolean":
                return str(schema["type"])
        return "anything"

    def limits(self, schema: Node) -> str:
        unit = "bytes" if "x-max-bytes" in schema else "characters" if "maxLength" in schema else ""
        most = schema.get("x-max-bytes", schema.get("maxLength", schema.get("maxItems", schema.get("maxProperties"))))
        least = schema.get("minLength", schema.get("minItems", schema.get("minProperties")))
        said = []
        pattern = schema.get("pattern")
        # One that gives the form gives the length too.
        if pattern and not pattern.startswith("^(?!"):
            said.append(f"`{pattern}`".replace("|", "\\|"))
        elif most is not None or least is not None:
            many = f"{least} or more" if most is None else f"{least or 'up'} to {most:,}"
            said.append(f"{many} {unit}".strip())
        if pattern and pattern.startswith("^(?!"):
            said.append("no control characters")
        if schema.get("x-visible"):
            said.append("something visible")
        if schema.get("format") == "date-time":
            said = ["RFC 3339"]
        return f" ({', '.join(said)})" if said else ""


def named(node: Node) -> str:
    """The last part of a $ref."""
    return node["$ref"].rpartition("/")[2]


def choices(schema: Node) -> Iterator[str]:
    """Which members go together."""
    for key, words in (("oneOf", "Either"), ("anyOf", "At least one of")):
        sets = [[*one.get("required", [])] for one in schema.get(key, [])]
        if sets and all(sets):
            told = [" and ".join(f"`{name}`" for name in names) for names in sets]
            joined = (" or " if key == "oneOf" else ", ").join(told)
            yield f"{words} {joined}{', and not both' if len(sets) == 2 and key == 'oneOf' else ''}."


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def escape(text: str) -> str:
    return text.replace("|", "\\|")


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
