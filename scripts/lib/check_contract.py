# SPDX-License-Identifier: Apache-2.0
"""What a new contract breaks for those who live by the old one.

    scripts/lib/check_contract.py OLD NEW    each break is one line; the exit status is 1 when there is one

What a service takes (the data of commands) may become less strict, and what it tells (events, results, the envelope of
replies) may become more exact: both are fine to those who are there already. It is the other way round that breaks them.

    taken    a member removed, or of another type; a member required; a word of an enum gone; a limit lowered; a pattern new
    told     a member removed, or of another type; a member no longer always there; a new word where no x-open says that
             words may come; a limit raised
    both     a message gone, or of another type; a topic renamed; a message on another topic; another Kafka key
    command  a scope more, another form of reply

It compares what schemas say, and not what they allow: a form that is written in other words is a break until somebody has
looked, and has put the line into `x-looked-at` of the new document. What goes both ways, such as a device in a command and in
an event, has both rules."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract import Contract, ContractError, Node, follow

LOWER = ("maxLength", "maxItems", "maximum", "maxProperties", "x-max-bytes")
HIGHER = ("minLength", "minItems", "minimum", "minProperties")


class Comparison:
    def __init__(self, old: Contract, new: Contract) -> None:
        self.old, self.new = old, new
        self.seen: set[tuple[str, str, bool, bool]] = set()

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

    # What a message says

    def schema(self, where: str, old: Any, new: Any, is_taken: bool) -> Iterator[str]:
        references = tuple(str((node or {}).get("$ref")) for node in (old, new))
        is_open = any((node or {}).get("x-open", False) for node in (old, new))
        if references != ("None", "None"):
            # A form is told of once for each of the two directions, under its name.
            key = (*references, is_taken, is_open)
            if key in self.seen:
                return
            self.seen.add(key)
            if references[0].startswith("#/components/schemas/"):
                where = references[0].rpartition("/")[2] + (" (taken)" if is_taken else " (told)")
        old, new = follow(self.old.document, old), follow(self.new.document, new)
        if old is None:
            return
        if new is None:
            yield f"{where}: it says nothing any more"
            return
        yield from self.words(where, old, new, is_taken, is_open or new.get("x-open", False))
        yield from self.limits(where, old, new, is_taken)
        yield from self.members(where, old, new, is_taken)
        yield from self.parts(where, old, new, is_taken)

    def words(self, where: str, old: Node, new: Node, is_taken: bool, is_open: bool) -> Iterator[str]:
        for key in ("type", "const", "format", "x-empty", "x-elements"):
            if old.get(key) != new.get(key) and not (key == "format" and key not in new and is_taken):
                yield f"{where}: {key} is {new.get(key)} and was {old.get(key)}"
        if "enum" not in old and "enum" not in new:
            return
        before, after = old.get("enum"), new.get("enum")
        if before is None or after is None:
            if (after is not None) == is_taken:
                yield f"{where}: {'only some words are taken' if is_taken else 'any word may come'}"
            return
        for word in before:
            if word not in after and is_taken:
                yield f"{where}: the word {word} is not taken any more"
        for word in after:
            if word not in before and not is_taken and not is_open:
                yield f"{where}: the word {word} is new to readers (x-open does not say that words may come)"

    def limits(self, where: str, old: Node, new: Node, is_taken: bool) -> Iterator[str]:
        for keys, is_upper in ((LOWER, True), (HIGHER, False)):
            for key in keys:
                before, after = old.get(key), new.get(key)
                if before == after:
                    continue
                is_tighter = before is None or after is not None and (after < before) == is_upper
                if is_tighter == is_taken:
                    yield f"{where}: {key} is {after} and was {before}"
        if old.get("pattern") != new.get("pattern") and (new.get("pattern") if is_taken else old.get("pattern")):
            yield f"{where}: the pattern is {new.get('pattern')} and was {old.get('pattern')}"
        if is_taken and not old.get("x-visible") and new.get("x-visible"):
            yield f"{where}: something has to be visible"

    def members(self, where: str, old: Node, new: Node, is_taken: bool) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in before:
            if name not in after:
                yield f"{where}: the member {name} is gone"
        always = [set(node.get("required", [])) | set(node.get("x-unless-dry-run", [])) for node in (old, new)]
        for name in sorted(always[1] - always[0]) if is_taken else ():
            yield f"{where}: {name} is required now"
        for name in sorted(always[0] - always[1]) if not is_taken else ():
            if name in after:
                yield f"{where}: {name} is not always there any more"
        if is_taken and new.get("additionalProperties") is False and old.get("additionalProperties") is not False:
            yield f"{where}: members that nobody knows are refused now"
        for name in before:
            if name in after:
                yield from self.schema(f"{where}.{name}", before[name], after[name], is_taken)

    def parts(self, where: str, old: Node, new: Node, is_taken: bool) -> Iterator[str]:
        for key in ("items", "propertyNames", "additionalProperties"):
            before, after = old.get(key), new.get(key)
            if isinstance(before, dict) and isinstance(after, dict):
                yield from self.schema(f"{where}.{key}", before, after, is_taken)
            elif isinstance(before, dict) or isinstance(after, dict):
                yield f"{where}: {key} is {after} and was {before}"
        before, after = old.get("allOf", []), new.get("allOf", [])
        if len(before) != len(after):
            yield f"{where}: allOf has {len(after)} parts and had {len(before)}"
        for number, (one, other) in enumerate(zip(before, after)):
            yield from self.schema(f"{where}.allOf[{number}]", one, other, is_taken)
        for key in ("if", "then", "else"):
            if key == "if" and old.get(key) != new.get(key):
                yield f"{where}: if is {new.get(key)} and was {old.get(key)}"
            elif key != "if" and (key in old or key in new):
                yield from self.schema(f"{where}.{key}", old.get(key, {}), new.get(key, {}), is_taken)
        # What is one of several, or is not: whoever changes it has to look.
        for key in ("oneOf", "anyOf", "not"):
            if old.get(key) != new.get(key) and (key in new or not is_taken):
                yield f"{where}: {key} is {new.get(key)} and was {old.get(key)}"


def breaks(old: Contract, new: Contract) -> list[str]:
    found = dict.fromkeys(Comparison(old, new).breaks())
    looked_at = new.document.get("x-looked-at", [])
    stale = [f"x-looked-at has a line that is no break: {line}" for line in looked_at if line not in found]
    return [*(line for line in found if line not in looked_at), *stale]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    old, new = Path(sys.argv[1]), Path(sys.argv[2])
    if not old.exists():
        print(f"{old} does not exist: nothing is released yet, so nothing can break")
        return 0
    try:
        found = breaks(Contract.of(old), Contract.of(new))
    except ContractError as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\n".join(f"{new}: {line}" for line in found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
