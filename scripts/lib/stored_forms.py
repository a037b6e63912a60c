# SPDX-License-Identifier: Apache-2.0
"""How values stand in columns (Shared/Storage/SQL/Stored.swift): the conformances to `Stored` of the structs and enums that the
services declare so, read from their Swift, and of the messages that these lead to, which are docs/asyncapi.yaml's. Run by
scripts/generate.

Of a declaration only what stands alone in its line is read: stored members and cases. A member that is optional or has a
default, and after which all others do too, may be missing from a row of before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from contract import Contract
from swift_structs import Structs

HEAD = """// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from {source}.
"""
# Messages that a column holds whole.
WHOLE = "ForgetPerson Identity"
MESSAGES = "Shared/Storage/Generated/StoredMessages.swift"
DECLARATION = re.compile(r"^((?:\w+ )*)(struct|enum|extension|class|actor|protocol) ([\w.]+)(?:<.*?>)?(?:: ([^{]*))?\{")
MEMBER = re.compile(r"^(?:public |package |private |private\(set\) |internal )*(?:let|var) (\w+)(?:: ([^={]+?))?(?: = (.+))?$")
PAYLOAD = re.compile(r"(?:(\w+): )?([\w.\[\]?: <>]+?)(?: = .+)?$")


@dataclass
class Declared:
    name: str
    kind: str
    is_public: bool
    protocols: list[str]
    members: list[tuple[str, str, str]] = field(default_factory=list)
    cases: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def is_stored(self) -> bool:
        return "Stored" in self.protocols

    @property
    def names(self) -> str:
        """Everything in which the name of another type may stand."""
        return " ".join([*(f"{type_} {default}" for _, type_, default in self.members),
                         *(type_ for _, payload in self.cases for type_ in payload)])


def files(root: Path, contract: Contract, services: list[str]) -> dict[str, str]:
    texts = {}
    declared = []
    for service in services:
        found = [it for path in sorted((root / "Services" / service).rglob("*.swift")) if "Generated" not in path.parts
                 for it in declarations(path.read_text()) if it.is_stored and "String" not in it.protocols]
        if found:
            declared += found
            parts = "\n\n".join("\n".join(of_service(it)) for it in sorted(found, key=lambda it: it.name))
            head = HEAD.format(source="what this module declares as Stored")
            texts[f"Services/{service}/Generated/Stored.swift"] = f"{head}\npublic import Storage\n\n{parts}\n"
    parts = "\n\n".join("\n".join(part) for part in of_messages(Structs(contract), declared))
    texts[MESSAGES] = f"{HEAD.format(source='docs/asyncapi.yaml')}\npublic import Contracts\n\n{parts}\n"
    return texts


def declarations(text: str) -> Iterator[Declared]:
    """Each struct and enum, under its whole name."""
    around: list[Declared | None] = []
    # A declaration may go on in the next line.
    text = re.sub(r",\n\s+(?=[A-Z]\w+(?:, [A-Z]\w+)* \{)", ", ", text)
    for line in text.splitlines():
        line = re.sub(r"//.*", "", re.sub(r'#".*?"#|"(?:[^"\\]|\\.)*"', '""', line)).strip()
        inner = around[-1] if around else None
        opened = None
        if match := DECLARATION.match(line):
            outer = next((it.name for it in reversed(around) if it), "")
            opened = Declared(f"{outer}.{match[3]}".lstrip("."), match[2], "public" in match[1].split(),
                              [name.strip() for name in (match[4] or "").split(",")])
        elif inner and inner.kind == "struct" and (match := MEMBER.match(line)) and line.count("{") == line.count("}"):
            inner.members.append((match[1], (match[2] or "").strip(), match[3] or ""))
        elif inner and inner.kind == "enum" and line.startswith("case ") and not line.endswith(":"):
            inner.cases += cases(line.removeprefix("case "))
        change = line.count("{") - line.count("}")
        if opened and change == 0:
            yield opened
        for _ in range(change):
            around.append(opened)
            opened = None
        for _ in range(-change):
            if (closed := around.pop()) and closed.kind in ("struct", "enum"):
                yield closed


def cases(text: str) -> Iterator[tuple[str, list[str]]]:
    for name, payload in re.findall(r"(\w+)(?:\((.*?)\))?(?:, |$)", text):
        yield name, [part.strip() for part in re.split(r", (?![^\[]*\])", payload)] if payload else []


def rest(members: list[tuple[str, bool]]) -> int:
    """How many of them a row of before must have."""
    count = len(members)
    while count and members[count - 1][1]:
        count -= 1
    return count


def of_service(it: Declared) -> Iterator[str]:
    public = "public " if it.is_public else ""
    yield f"extension {it.name} {{"
    if it.kind == "enum":
        yield f"    {public}func store(in bytes: inout StoredWriter) {{"
        yield "        switch self {"
        for number, (name, payload) in enumerate(it.cases):
            values = [f"value{place}" for place in range(len(payload))] if len(payload) > 1 else ["value"] * len(payload)
            bound = f"(let {', let '.join(values)})" if values else ""
            yield f"        case .{name}{bound}:"
            yield f"            bytes.add(byte: {number})"
            for value in values:
                yield f"            {value}.store(in: &bytes)"
        yield "        }"
        yield "    }"
        yield ""
        yield f"    {public}init(stored bytes: inout StoredReader) throws(StorageError) {{"
        yield "        switch try bytes.byte() {"
        for number, (name, payload) in enumerate(it.cases):
            labels = [PAYLOAD.match(part)[1] for part in payload]
            values = ", ".join(f"{label}: try bytes.next()" if label else "try bytes.next()" for label in labels)
            yield f"        case {number}: self = .{name}{f'({values})' if values else ''}"
        yield "        default: throw StoredReader.damaged"
    else:
        members = [(name, type_.endswith("?") or bool(default)) for name, type_, default in it.members]
        required = rest(members)
        yield from storing([name for name, _ in members], public)
        yield f"    {public}init(stored bytes: inout StoredReader) throws(StorageError) {{"
        yield from counting(required, len(members))
        for place, (name, _, default) in enumerate(it.members):
            if place < required:
                yield f"        {name} = try bytes.next()"
            else:
                yield f"        {name} = {place} < count ? try bytes.next() : {default or 'nil'}"
        yield "    }"
        yield "}"
        return
    yield "        }"
    yield "    }"
    yield "}"


def storing(names: list[str], public: str) -> Iterator[str]:
    yield f"    {public}func store(in bytes: inout StoredWriter) {{"
    yield f"        bytes.add(count: {len(names)})"
    for name in names:
        yield f"        {name}.store(in: &bytes)"
    yield "    }"
    yield ""


def counting(required: int, count: int) -> Iterator[str]:
    if required == count:
        yield f"        _ = try bytes.members({required}, of: {count})"
    else:
        yield f"        let count = try bytes.members({required}, of: {count})"


def of_messages(structs: Structs, declared: list[Declared]) -> Iterator[list[str]]:
    """Of the forms whose names stand in what is declared, and of those that they lead to."""
    own = {it.name.rpartition(".")[2] for it in declared}
    every = {name: schema for name, schema in structs.contract.schemas.items() if "properties" in schema or "enum" in schema}
    found: set[str] = set()

    def go(words: str, inside: str = "") -> None:
        for word in re.findall(r"[A-Z][\w.]*", words):
            for name in (f"{inside}.{word}", word, word.rpartition(".")[0]):
                if name in every and name not in found and (inside or word not in own):
                    found.add(name)
                    if name in structs.written and "properties" in every[name]:
                        for member in structs.members(name):
                            go(member.full, name)

    for words in [WHOLE, *(it.names for it in declared)]:
        go(words)
    for name in sorted(found):
        if "enum" in every[name]:
            yield [f"extension {name}: Stored {{}}"]
        elif name in structs.written:
            yield [*of_message(name, structs)]


def of_message(name: str, structs: Structs) -> Iterator[str]:
    members = structs.members(name)
    required = rest([(member.name, bool(member.default)) for member in members])
    yield f"extension {name}: Stored {{"
    yield from storing([member.name for member in members], "public ")
    yield "    public init(stored bytes: inout StoredReader) throws(StorageError) {"
    yield from counting(required, len(members))
    yield "        self.init("
    values = [
        f"            {member.name}: " + (
            "try bytes.next()" if place < required else f"{place} < count ? try bytes.next() : {member.default[3:]}")
        for place, member in enumerate(members)]
    yield ",\n".join(values) + ")"
    yield "    }"
    yield "}"
