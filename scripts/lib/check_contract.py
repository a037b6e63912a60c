# SPDX-License-Identifier: Apache-2.0
"""What a new contract breaks for those who live by the old one: docs/asyncapi.yaml, docs/openapi.json, docs/openapi-admin.json.

    scripts/lib/check_contract.py OLD NEW    each break is one line; the exit status is 1 when there is one

What is taken (the data of commands, requests) may become less strict, and what is told (events, results, the envelope of
replies, answers) may become more exact: both are fine to those who are there already. It is the other way round that breaks
them.

    taken    a member removed, or of another type; a member required; a word of an enum gone; a limit lowered; a pattern new
    told     a member removed, or of another type; a member no longer always there; a new word where no x-open says that
             words may come; a limit raised
    both     a message gone, or of another type; a topic renamed; a message on another topic; another Kafka key
    command  a scope more, another form of reply
    HTTP     an operation, a parameter, a header, a media type or a problem's code gone; another operationId; a parameter or
             a body that is required now; a credential or a scope that is not enough any more; a 2xx or 3xx gone or new

It compares what schemas say, and not what they allow: a form that is written in other words is a break until somebody has
looked, and has put the line into `x-looked-at` of the new document. What goes both ways, such as a device in a command and in
an event, has both rules. The rules of schemas are in schema_changes.py, those of HTTP in openapi_changes.py."""

import sys
from collections.abc import Iterator
from pathlib import Path

from contract import Contract, ContractError, Node
from openapi import OpenAPI
from openapi_changes import HTTPChanges
from schema_changes import SchemaChanges


class Comparison(SchemaChanges):
    def __init__(self, old: Contract, new: Contract) -> None:
        super().__init__(old.document, new.document)
        self.old, self.new = old, new

    def breaks(self) -> Iterator[str]:
        yield from self.channels()
        yield from self.messages()
        yield from self.operations()

    # Who says what where

    def channels(self) -> Iterator[str]:
        new = self.new.document["channels"]
        for name, channel in self.old.document["channels"].items():
            if name not in new:
                yield f"the channel {name} is gone"
                continue
            for key, what in (("address", "the topic"), ("x-also", "the other topic"), ("x-topics", "the topics")):
                if channel.get(key) != new[name].get(key):
                    yield f"{what} of {name} is {new[name].get(key)} and was {channel.get(key)}"
            for message in channel["messages"]:
                if message not in new[name]["messages"]:
                    yield f"{message} does not stand on {name} any more"

    def messages(self) -> Iterator[str]:
        for name, message in self.old.messages.items():
            if name not in self.new.messages:
                yield f"the message {name} is gone"
                continue
            new = self.new.messages[name]
            for key, what in (("name", "type"), ("x-partition-subject", "Kafka key"), ("traits", "headers or Kafka key")):
                if message.get(key) != new.get(key):
                    yield f"{name}: the {what} is {new.get(key)} and was {message.get(key)}"
            yield from self.scopes(name, message, new)
            is_taken = name in self.old.commands
            yield from self.schema(name, message.get("payload"), new.get("payload"), is_taken)
            yield from self.schema(f"{name}, headers", message.get("headers"), new.get("headers"), is_taken)

    def scopes(self, name: str, old: Node, new: Node) -> Iterator[str]:
        """Whoever could send it can."""
        enough = {new.get("x-scope"), new.get("x-or-scope")}
        for key in ("x-scope", "x-or-scope"):
            if key in old and old[key] not in enough:
                yield f"{name}: the scope {old[key]} is not enough any more"

    def operations(self) -> Iterator[str]:
        new = self.new.document["operations"]
        for name, operation in self.old.document["operations"].items():
            if name not in new:
                yield f"the operation {name} is gone"
            elif operation.get("reply") != new[name].get("reply"):
                yield f"{name}: the reply is {new[name].get('reply')} and was {operation.get('reply')}"


def breaks(old: Contract | OpenAPI, new: Contract | OpenAPI) -> list[str]:
    if isinstance(old, OpenAPI) and isinstance(new, OpenAPI):
        found = dict.fromkeys(HTTPChanges(old, new).breaks())
    elif isinstance(old, Contract) and isinstance(new, Contract):
        found = dict.fromkeys(Comparison(old, new).breaks())
    else:
        raise ContractError("one of them tells of messages, and the other of HTTP")
    looked_at = new.document.get("x-looked-at", [])
    stale = [f"x-looked-at has a line that is no break: {line}" for line in looked_at if line not in found]
    return [*(line for line in found if line not in looked_at), *stale]


def read(path: Path) -> Contract | OpenAPI:
    try:
        return OpenAPI.of(path) if path.suffix == ".json" else Contract.of(path)
    except ContractError as problem:
        raise ContractError("\n".join(f"{path}: {line}" for line in str(problem).splitlines())) from None


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    old, new = Path(sys.argv[1]), Path(sys.argv[2])
    if not old.exists():
        print(f"{old} does not exist: nothing is released yet, so nothing can break")
        return 0
    try:
        found = breaks(read(old), read(new))
    except ContractError as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\n".join(f"{new}: {line}" for line in found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
