# SPDX-License-Identifier: Apache-2.0
"""Reads the message structs of Shared/Contracts/Messages as `swift format` leaves them: types, members, enums.

It is a scan and no compiler. It does not see: what a hand-written `encode` leaves out or renames (an empty map of
EraseProfile and FileRequest), what `validate` refuses, members that a protocol or a wrapped struct brings (ReadFacts and the
four commands of SyncRequest: see FORWARDED), and whether the order of `CodingKeys` is the order on the wire, which the
golden files show."""

import re
from dataclasses import dataclass, field
from pathlib import Path

MESSAGES = Path(__file__).resolve().parents[2] / "Shared" / "Contracts" / "Messages"
GENERATED = MESSAGES.parent / "Generated"

TYPE = re.compile(r"( *)public (struct|enum) (\w+)(?:<[^>]*>)?(?:: ([^{]+))? \{")
MEMBER = re.compile(r" *(?:@SortedKeys )?public (?:private\(set\) )?var (\w+): ([^={]+?)$")
CASES = re.compile(r" *case (.+)$")
STATIC = re.compile(r' *public static (?:let|var) (\w+)(?:: [^={]+)? (?:= |\{ )(.+?)(?: \})?$')
# `installId.text`, `externalId?.text ?? userId?.text ?? ""`, `subject.name`.
SUBJECT = re.compile(r" *public var (partitionSubject|subject): String \{ (.+) \}$")
ABOUT = re.compile(r' *public var subject: \(kind: String, name: String\) \{ \("(\w+)", ')
DOC = re.compile(r" */// ?(.*)")

# Who has the members of another struct and none of its own.
FORWARDED = {
    "IdentifyUser": "SyncRequest", "LogInUser": "SyncRequest", "LogOutUser": "SyncRequest", "SearchUser": "SyncRequest",
    "ReadFacts": "FactsQuery",
}
# What a type is by one of the protocols that it conforms to.
COMMANDS = {
    "CommandMessage", "PersonQuery", "CommandByHand", "RepairCommand", "ImportCommand", "RequestCommand",
    "SyncRequestMessage"}
DEFAULT_SCOPES = {"RepairCommand": "support", "ImportCommand": "import", "SyncRequestMessage": "identity.sync"}


@dataclass
class SwiftType:
    name: str
    kind: str
    protocols: list[str]
    doc: str = ""
    # Swift's type of each member, as it is written, in the order of their declaration.
    members: dict[str, str] = field(default_factory=dict)
    docs: dict[str, str] = field(default_factory=dict)
    cases: dict[str, str] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    # The members that say whom it is about, as in x-partition-subject; None where that takes more than one line.
    subject: list[str] | None = None
    # The kind of name that it is, for the log of who reads about people.
    about: str | None = None

    @property
    def type(self) -> str | None:
        return self.statics.get("type", "").strip('"') or None

    @property
    def is_command(self) -> bool:
        return bool(COMMANDS & set(self.protocols))

    @property
    def is_event(self) -> bool:
        return "EventMessage" in self.protocols

    @property
    def is_result(self) -> bool:
        return "CommandResult" in self.protocols

    @property
    def is_words(self) -> bool:
        """An enum whose values stand on the wire."""
        return self.kind == "enum" and ("WireEnum" in self.protocols or "String" in self.protocols)


def scopes() -> dict[str, str]:
    source = (MESSAGES / "Message.swift").read_text()
    body = source.partition("public enum Scope")[2].partition("\n    ///  Whether")[0]
    return {name: raw or name for name, raw in re.findall(r'    case `?(\w+)`?(?: = "([^"]+)")?$', body, re.M)}


def scan(folder: Path = MESSAGES) -> dict[str, SwiftType]:
    """By full name, such as `ImportedUser.Install`. Extensions add to the type that they name."""
    found: dict[str, SwiftType] = {}
    for path in sorted([*folder.glob("*.swift"), *(GENERATED.glob("*.swift") if folder == MESSAGES else [])]):
        read(path.read_text(), found)
    return found


def read_all(folder: Path) -> dict[str, SwiftType]:
    found: dict[str, SwiftType] = {}
    for path in sorted(folder.glob("*.swift")):
        read(path.read_text(), found)
    return found


def read(source: str, found: dict[str, SwiftType]) -> None:
    open_types: list[tuple[int, str]] = []  # indentation and full name
    doc: list[str] = []
    lines = source.splitlines()
    for number, line in enumerate(lines):
        if match := DOC.match(line):
            doc.append(match[1])
            continue
        indent = len(line) - len(line.lstrip())
        while open_types and line.strip() == "}" and indent == open_types[-1][0]:
            open_types.pop()
        text, doc = (" ".join(doc), []) if line.strip() else ("", [])
        # The cases of an enum whose head goes over two lines are read too, because nothing else begins so.
        if match := TYPE.match(line):
            outer = f"{open_types[-1][1]}." if open_types else ""
            name = outer + match[3]
            protocols = [word.strip() for word in (match[4] or "").split(",")]
            found[name] = SwiftType(name, match[2], protocols, text)
            if not line.rstrip().endswith("}"):
                open_types.append((len(match[1]), name))
            elif match[2] == "enum":
                take_cases(found[name], line.partition("{")[2].rpartition("}")[0].strip(), "")
            continue
        if not open_types or indent != open_types[-1][0] + 4:
            continue
        one = found[open_types[-1][1]]
        if one.kind == "enum" and (match := CASES.match(line)):
            take_cases(one, match[0].strip(), text)
        elif match := SUBJECT.match(line):
            one.subject = subject(match[2])
        elif match := ABOUT.match(line):
            one.about = match[1]
        elif match := STATIC.match(line):
            one.statics[match[1]] = match[2]
        elif match := MEMBER.match(line):
            one.members[match[1]] = match[2].strip()
            one.docs[match[1]] = text


def subject(text: str) -> list[str] | None:
    parts = [re.sub(r"\??\.(text|description)$", "", part).removeprefix("query.") for part in text.split(" ?? ")]
    words = [f"={part[1:-1]}" if part.startswith('"') else part.replace(".first", "[0]") for part in parts if part != '""']
    return None if words == ["subject.name"] or any(word.startswith("last") for word in words) else words


def take_cases(one: SwiftType, text: str, doc: str) -> None:
    for case in re.sub(r"\s*//.*", "", text.removeprefix("case ")).split(", "):
        name, _, raw = case.partition(" = ")
        one.cases[raw.strip('"') or name.strip("`").strip()] = doc
