# SPDX-License-Identifier: Apache-2.0
"""What a change of an OpenAPI document breaks for those who call: check_contract.py says which rules there are. Requests are
taken, answers are told."""

from collections.abc import Iterator

from contract import Node
from openapi import OpenAPI, Operation
from schema_changes import SchemaChanges


class HTTPChanges(SchemaChanges):
    def __init__(self, old: OpenAPI, new: OpenAPI) -> None:
        super().__init__(old.document, new.document)
        self.old, self.new = old, new

    def breaks(self) -> Iterator[str]:
        after = {server["url"] for server in self.new.document["servers"]}
        for server in self.old.document["servers"]:
            if server["url"] not in after:
                yield f"the server {server['url']} is gone"
        for name, scheme in self.old.document["components"]["securitySchemes"].items():
            new = self.new.document["components"]["securitySchemes"].get(name, {})
            for key in ("type", "scheme", "in", "name", "bearerFormat"):
                if new and scheme.get(key) != new.get(key):
                    yield f"the credential {name}: {key} is {new.get(key)} and was {scheme.get(key)}"
        for code in self.old.document["components"].get("x-problems", {}):
            if code not in self.new.document["components"].get("x-problems", {}):
                yield f"the problem {code} is gone, and its URI leads nowhere"
        operations = {operation.name: operation for operation in self.new.operations()}
        for operation in self.old.operations():
            if operation.name not in operations:
                yield f"{operation.name} is gone"
            else:
                yield from self.operation(operation, operations[operation.name])

    def operation(self, old: Operation, new: Operation) -> Iterator[str]:
        if old.node.get("operationId") != new.node.get("operationId"):
            yield f"{old.name}: operationId is {new.node.get('operationId')} and was {old.node.get('operationId')}"
        yield from self.credentials(old, new)
        yield from self.parameters(old, new)
        yield from self.body(old, new)
        yield from self.responses(old, new)

    # What is taken

    def credentials(self, old: Operation, new: Operation) -> Iterator[str]:
        """Whoever could call it can."""
        after = self.choices(self.new, new)
        for choice in self.choices(self.old, old):
            if not any(other <= choice for other in after):
                yield f"{old.name}: {' with '.join(sorted(choice)) or 'no credential'} is not enough any more"
        scopes = {new.node[key] for key in ("x-scope", "x-or-scope") if key in new.node}
        if not scopes or "any" in scopes:
            return
        if "x-scope" not in old.node:
            yield f"{old.name}: a scope is needed now"
        for key in ("x-scope", "x-or-scope"):
            if key in old.node and old.node[key] not in scopes:
                yield f"{old.name}: the scope {old.node[key]} is not enough any more"

    def choices(self, document: OpenAPI, operation: Operation) -> list[frozenset[str]]:
        """The credentials of which one is enough; one without parts is none."""
        told = operation.node.get("security", document.document.get("security", []))
        return [frozenset(choice) for choice in told] or [frozenset()]

    def parameters(self, old: Operation, new: Operation) -> Iterator[str]:
        before, after = self.old.parameters(old), self.new.parameters(new)
        for (place, name), parameter in before.items():
            where = f"{old.name}, {place} {name}"
            if (place, name) not in after:
                yield f"{where}: it is gone"
                continue
            changed = after[place, name]
            if changed.get("required") and not parameter.get("required"):
                yield f"{where}: it is required now"
            for key in ("style", "explode", "allowReserved"):
                if parameter.get(key) != changed.get(key):
                    yield f"{where}: {key} is {changed.get(key)} and was {parameter.get(key)}"
            yield from self.schema(where, parameter.get("schema"), changed.get("schema"), True)
        for (place, name), parameter in after.items():
            if (place, name) not in before and parameter.get("required"):
                yield f"{old.name}, {place} {name}: it is new, and required"

    def body(self, old: Operation, new: Operation) -> Iterator[str]:
        before, after = self.old.follow(old.node.get("requestBody")), self.new.follow(new.node.get("requestBody"))
        where = f"{old.name}, body"
        if after and after.get("required") and not (before or {}).get("required"):
            yield f"{where}: it is required now"
        if before and not after:
            yield f"{where}: it is gone"
        elif before:
            yield from self.content(where, before.get("content", {}), after.get("content", {}), True)

    # What is told

    def responses(self, old: Operation, new: Operation) -> Iterator[str]:
        """A client takes an error that it does not know for the first of its hundred, a success for what it asked."""
        before, after = self.old.responses(old), self.new.responses(new)
        for status, response in before.items():
            if status in after:
                yield from self.response(f"{old.name}, {status}", response, after[status])
            elif is_good(status):
                yield f"{old.name}: {status} is not answered any more"
        for status in after:
            if status not in before and is_good(status):
                yield f"{old.name}: {status} is new to callers"

    def response(self, where: str, old: Node, new: Node) -> Iterator[str]:
        before, after = (
            {name.lower(): header for name, header in node.get("headers", {}).items()} for node in (old, new))
        for name, header in before.items():
            if name not in after:
                yield f"{where}: the header {name} is gone"
                continue
            one, other = self.old.follow(header), self.new.follow(after[name])
            if one.get("required") and not other.get("required"):
                yield f"{where}: the header {name} is not always there any more"
            yield from self.schema(f"{where}, header {name}", one.get("schema"), other.get("schema"), False)
        yield from self.content(where, old.get("content", {}), new.get("content", {}), False)

    def content(self, where: str, old: Node, new: Node, is_taken: bool) -> Iterator[str]:
        for kind, media in old.items():
            if kind in new:
                yield from self.schema(where, media.get("schema"), new[kind].get("schema"), is_taken)
            elif is_taken:
                yield f"{where}: {kind} is not taken any more"
            elif not new:
                yield f"{where}: it says nothing any more"
        for kind in new:
            if kind not in old and not is_taken:
                yield f"{where}: {kind} is new to readers"


def is_good(status: str) -> bool:
    return status[:1] in "23"
