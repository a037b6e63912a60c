# SPDX-License-Identifier: Apache-2.0
"""Reads docs/openapi.json and docs/openapi-admin.json: what each port of the gateway takes and answers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import ROOT, ContractError, Node, at, follow

PAGES = {"api": ROOT / "docs" / "openapi.json", "admin": ROOT / "docs" / "openapi-admin.json"}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def once(members: list[tuple[str, Any]]) -> Node:
    names = [name for name, _ in members]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ContractError(f"the member {sorted(twice)[0]} is there twice")
    return dict(members)


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    node: Node

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"


class OpenAPI:
    """The document, and ways through it."""

    def __init__(self, document: Node) -> None:
        self.document = document

    @classmethod
    def of(cls, path: Path) -> "OpenAPI":
        """- Raises: `ContractError`."""
        try:
            read = json.loads(path.read_text(), object_pairs_hook=once)
        except ValueError as problem:
            raise ContractError(str(problem)) from None
        if not isinstance(read, dict) or "openapi" not in read:
            raise ContractError("it is no OpenAPI document")
        return cls(read)

    @property
    def schemas(self) -> dict[str, Node]:
        return self.document["components"]["schemas"]

    def operations(self) -> Iterator[Operation]:
        for path, methods in self.document["paths"].items():
            for method in methods:
                if method in METHODS:
                    yield Operation(method, path, methods[method])

    def follow(self, node: Any) -> Any:
        return follow(self.document, node)

    def parameters(self, operation: Operation) -> dict[tuple[str, str], Node]:
        """By place and name. The names of headers have no case."""
        found = {}
        for parameter in operation.node.get("parameters", []):
            parameter = self.follow(parameter)
            name = parameter["name"]
            found[parameter["in"], name.lower() if parameter["in"] == "header" else name] = parameter
        return found

    def responses(self, operation: Operation) -> dict[str, Node]:
        return {status: self.follow(response) for status, response in operation.node["responses"].items()}

    def references(self, node: Any = None, where: str = "") -> Iterator[tuple[str, str]]:
        """Every $ref, and where it stands. Examples are somebody's data."""
        node = self.document if node is None else node
        if isinstance(node, list):
            for number, inner in enumerate(node):
                yield from self.references(inner, f"{where}[{number}]")
        elif isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield where, node["$ref"]
            for name, inner in node.items():
                if name not in ("example", "examples") and isinstance(inner, (dict, list)):
                    yield from self.references(inner, f"{where}.{name}".lstrip("."))

    def named(self, node: Node) -> str:
        """The last part of a $ref."""
        return node["$ref"].rpartition("/")[2]

    def at(self, reference: str) -> Any:
        return at(self.document, reference)
