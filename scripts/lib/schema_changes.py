# SPDX-License-Identifier: Apache-2.0
"""What a change of a JSON Schema breaks for those who live by the old one: the rules of check_contract.py, for messages and
for HTTP alike. What is taken may become less strict, what is told more exact."""

from collections.abc import Iterator
from typing import Any

from contract import KEYWORDS, Node, follow

LOWER = ("maxLength", "maxItems", "maximum", "maxProperties", "x-max-bytes")
HIGHER = ("minLength", "minItems", "minimum", "minProperties")
# What a type has beside itself.
WIDER = {"integer": {"integer", "number"}}
# For people only, as what begins with x- is unless the rules name it.
WORDS = {"title", "example", "deprecated", "default"}


class SchemaChanges:
    def __init__(self, old: Node, new: Node) -> None:
        """Both documents, in which a $ref is looked up."""
        self.old_document, self.new_document = old, new
        self.seen: set[tuple[str, str, bool, bool]] = set()

    def schema(self, where: str, old: Any, new: Any, is_taken: bool) -> Iterator[str]:
        references = tuple((node or {}).get("$ref", "") for node in (old, new))
        is_open = any((node or {}).get("x-open", False) for node in (old, new))
        if all(references):
            # A form is told of once for each of the two directions, under its name.
            key = (*references, is_taken, is_open)
            if key in self.seen:
                return
            self.seen.add(key)
            if references[0].startswith("#/components/schemas/"):
                where = references[0].rpartition("/")[2] + (" (taken)" if is_taken else " (told)")
        old, new = follow(self.old_document, old), follow(self.new_document, new)
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
        if self.is_other_type(old.get("type"), new.get("type"), is_taken):
            yield f"{where}: type is {new.get('type')} and was {old.get('type')}"
        for key in ("format", "contentEncoding"):
            if old.get(key) != new.get(key) and key in (new if is_taken else old):
                yield f"{where}: {key} is {new.get(key)} and was {old.get(key)}"
        # What the rules know nothing about: whoever changes it has to look.
        others = {key for key in {*old, *new} - KEYWORDS - WORDS - {"contentEncoding"} if not key.startswith("x-")}
        for key in ("x-empty", "x-elements", *sorted(others)):
            if old.get(key) != new.get(key):
                yield f"{where}: {key} is {new.get(key)} and was {old.get(key)}"
        before, after = values(old), values(new)
        if before is None and after is None:
            return
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

    def is_other_type(self, old: Any, new: Any, is_taken: bool) -> bool:
        """Whether somebody sends, or reads, what is not of the other type; None is any type."""
        sent, read = (old, new) if is_taken else (new, old)
        if read is None or sent is None:
            return read is not None
        sent, read = ({one} if isinstance(one, str) else set(one) for one in (sent, read))
        return any(not WIDER.get(one, {one}) & read for one in sent)

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
        for key in ("oneOf", "anyOf"):
            yield from self.alternatives(where, key, old, new, is_taken)
        # What may not be: whoever changes it has to look.
        if old.get("not") != new.get("not") and ("not" in new or not is_taken):
            yield f"{where}: not is {new.get('not')} and was {old.get('not')}"

    def alternatives(self, where: str, key: str, old: Node, new: Node, is_taken: bool) -> Iterator[str]:
        before, after = old.get(key, []), new.get(key, [])
        if not (before and after and all(is_form(one) for one in [*before, *after])):
            # Which members go together: whoever changes it has to look.
            if before != after and (after or not is_taken):
                yield f"{where}: {key} is {new.get(key)} and was {old.get(key)}"
        elif len(before) == len(after):
            for number, (one, other) in enumerate(zip(before, after)):
                yield from self.schema(f"{where}.{key}[{number}]", one, other, is_taken)
        else:
            for one in before:
                if one in after:
                    yield from self.schema(f"{where}.{key}", one, after[after.index(one)], is_taken)
                elif is_taken:
                    yield f"{where}: {one} is not one of {key} any more"
            for one in after:
                if one not in before and not is_taken:
                    yield f"{where}: {one} of {key} is new to readers"


def values(schema: Node) -> list[Any] | None:
    """All that may stand there, where that is listed."""
    return schema.get("enum", [schema["const"]] if "const" in schema else None)


def is_form(schema: Node) -> bool:
    """Whether it says what stands there, and not only which members go together."""
    return bool({"$ref", "type", "properties", "const", "enum", "allOf", "oneOf", "anyOf"} & set(schema))
