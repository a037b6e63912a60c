# SPDX-License-Identifier: Apache-2.0
"""The messages of Shared/Contracts/Generated, written from docs/asyncapi.yaml: a struct or an enum of Swift for each schema
that is not marked `x-hand-written`. Run by scripts/generate.

A struct has its members in their order, an initialiser, `write(to:)`, what its message says of type, scope and Kafka key, and
`validate()` for what a service refuses. `Codable` is the compiler's, but where a form needs more than it knows: it reads, and
what `write(to:)` writes is compared with it. Rules stay in Shared/Contracts/Messages, as extensions."""

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from contract import Contract, ContractError, Node, follow
from reference import Pages

FOLDER = "Shared/Contracts/Generated"
WIDTH = 120
HEAD = """// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.
"""
# Words that are none of Swift's names.
NAMES = {"import": "importing"}
# What is written without an error.
PLAIN = {"String", "Bool", "Int64"}
# Forms whose limits are looked at as they are read.
READ = {"MPID", "GivenMPID", "Timestamp"}


def files(contract: Contract) -> dict[str, str]:
    return Structs(contract).files()


@dataclass
class Member:
    name: str
    schema: Node
    # Without the question mark.
    type: str
    is_optional: bool
    is_map: bool

    @property
    def full(self) -> str:
        return self.type + ("?" if self.is_optional else "")

    @property
    def default(self) -> str:
        """What the initialiser takes where nobody names the member."""
        if self.is_optional:
            return " = nil"
        if self.schema.get("x-empty") == "absent":
            return " = [:]"
        if "x-default" not in self.schema:
            return ""
        value = json.loads(self.schema["x-default"])
        return f" = {self.type}()" if value == {} and not self.is_map else f" = {'[:]' if value == {} else json.dumps(value)}"


@dataclass
class Form:
    """A schema, and what its message adds to it."""

    name: str
    schema: Node
    protocols: list[str]
    message: Node | None = None
    is_command: bool = False
    results: dict[str, str] = field(default_factory=dict)


class Structs:
    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.homes = Pages(contract).homes
        self.written = {
            name: schema for name, schema in contract.schemas.items()
            if "x-hand-written" not in schema and not name.endswith("Headers")}
        self.forms = self.find_forms()
        self.checked: set[str] = set()
        self.checked = self.find_checked()

    # What there is

    def find_forms(self) -> dict[str, Form]:
        forms = {name: Form(name, schema, ["Codable", "WireReadable", "WireWritable", "Sendable", "Hashable"]) for name, schema in self.written.items()}
        for command in self.contract.commands:
            if reply := self.contract.reply_of(command):
                for name in self.contract.results_of(reply):
                    if name in forms:
                        forms[name].protocols = ["CommandResult"]
        told = self.contract.commands | self.contract.events | {"status": self.contract.messages["status"]}
        for key, message in told.items():
            form = forms.get(self.contract.data_of(message))
            if form is None or "x-swift" in message:
                continue
            form.message, form.is_command = message, key in self.contract.commands
            if form.is_command:
                form.protocols = message.get("x-conforms", ["CommandMessage"])
                form.results = self.contract.results_of(self.contract.reply_of(key))
            else:
                form.protocols = ["EventMessage"] if key in self.contract.events else ["Message"]
        return forms

    def find_checked(self) -> set[str]:
        """The data of commands, and the forms with limits that it leads to: these can be validated."""
        data = {self.contract.data_of(message) for message in self.contract.commands.values()} & set(self.written)
        found: set[str] = set()

        def go(name: str) -> None:
            if name not in found and "x-checked-by-hand" not in self.written[name]:
                found.add(name)
                for inner in self.leads_to(self.written[name]):
                    go(inner)

        for name in data:
            go(name)
        while self.checked != found:
            self.checked = found
            found = {name for name in found if name in data or any(self.checks(name))}
        return found

    def leads_to(self, schema: Node) -> Iterator[str]:
        for member in schema.get("properties", {}).values():
            for inner in (member, member.get("items", {})):
                if "$ref" in inner and "properties" in self.written.get(self.contract.named(inner), {}):
                    yield self.contract.named(inner)

    # Types

    def swift(self, schema: Node) -> str:
        """The type that the schema stands for, without the question mark of an optional member."""
        if "x-swift" in schema:
            return str(schema["x-swift"])
        if "$ref" in schema:
            return str(follow(self.contract.document, schema).get("x-swift", self.contract.named(schema)))
        if len(schema.get("allOf", [])) == 1:
            return self.swift(schema["allOf"][0])
        match schema.get("type"):
            case "string": return "String"
            case ["string", "null"]: return "String?"
            case "boolean": return "Bool"
            case "number": return "Double"
            case "integer": return schema.get("format", "int").capitalize()
            case "array": return f"[{self.swift(schema['items'])}]"
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return f"[String: {self.swift(schema['additionalProperties'])}]"
        return "JSONValue"

    def members(self, name: str) -> list[Member]:
        schema = self.written[name]
        always = schema.get("required", []) + schema.get("x-unless-dry-run", [])
        found = []
        for key, inner in schema["properties"].items():
            # A nested type by its short name.
            type_ = re.sub(rf"\b{re.escape(name)}\.(?=[A-Z])", "", self.swift(inner))
            is_optional = key not in always and inner.get("x-empty") != "absent"
            is_map = type_.startswith("[String: ")
            if is_map and is_optional:
                raise ContractError(f"{name}.{key}: a map that may be missing has x-empty")
            found.append(Member(key, inner, type_.removesuffix("?"), is_optional, is_map))
        return found

    # Files

    def files(self) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for name, form in self.forms.items():
            parent = name.rpartition(".")[0]
            if parent in self.forms:
                continue
            lines = [*self.declaration(form, "")]
            if parent:
                lines = [f"extension {parent} {{", *(f"    {line}" if line else "" for line in lines), "}"]
            found.setdefault(self.home(name), []).append("\n".join(lines))
        texts = {}
        for home, parts in found.items():
            text = "\n\n".join(parts)
            texts[f"{FOLDER}/{home}.swift"] = f"{HEAD}\npublic import WireJSON\n\n{text}\n"
        return texts

    def home(self, name: str) -> str:
        return (self.homes[name] or "several").capitalize()

    def declaration(self, form: Form, indent: str) -> Iterator[str]:
        yield from docs(self.words(form), indent)
        short = form.name.rpartition(".")[2]
        if "enum" in form.schema:
            yield from words_of(short, form.schema, indent)
            return
        yield f"{indent}public struct {short}: {', '.join(form.protocols)} {{"
        for number, part in enumerate(part for part in self.parts(form, indent + "    ") if part):
            yield from ([""] if number else []) + part
        yield f"{indent}}}"

    def words(self, form: Form) -> str:
        words = form.schema.get("description", "")
        for status in sorted(set(form.results.values())):
            names = " or ".join(f"``{name}``" for name, its in form.results.items() if its == status)
            when = "While" if status == "pending" else "Where"
            words += f" {when} it is `{status}`: {names}." if status else f" Result: {names}."
        return words.strip()

    def parts(self, form: Form, indent: str) -> Iterator[list[str]]:
        yield [*self.head(form, indent)]
        for name, inner in self.forms.items():
            if name.rpartition(".")[0] == form.name:
                yield [*self.declaration(inner, indent)]
        members = self.members(form.name)
        yield [line for member in members for line in self.member(member, indent)]
        yield [*initialiser(members, indent)]
        yield from self.coding(form, members, indent)
        yield [*self.reading(form, members, indent)]
        yield [*self.writing(members, indent)]
        if form.message:
            yield [*self.about(form, indent)]
        if form.name in self.checked and "x-checked-by-hand" not in form.schema:
            yield [*self.validation(form, indent)]

    def head(self, form: Form, indent: str) -> Iterator[str]:
        message = form.message or {}
        if message:
            yield f'{indent}public static let type = "{message["name"]}"'
        if "x-scope" in message:
            yield f"{indent}public static let scope = Scope.{case(message['x-scope'])}"
        if "x-or-scope" in message:
            yield f"{indent}public static let orScope: Scope? = .{case(message['x-or-scope'])}"
        if form.schema.get("x-confidential"):
            yield f"{indent}public static var isConfidential: Bool {{ true }}"

    def member(self, member: Member, indent: str) -> Iterator[str]:
        yield from docs(member.schema.get("description", ""), indent)
        yield f"{indent}{'@SortedKeys ' if member.is_map else ''}public var {member.name}: {member.full}"

    # Reading and writing

    def coding(self, form: Form, members: list[Member], indent: str) -> Iterator[list[str]]:
        """Where the compiler's own does not do: an empty map that is not there, a number that may be 0 for none, a member that
        nobody knows."""
        if not self.has_coding(form, members):
            return
        refuses = self.refuses(form)
        is_empty = any(member.schema.get("x-empty") for member in members)
        all_cases = ", CaseIterable" if refuses else ""
        names = textwrap.wrap(", ".join(member.name for member in members), WIDTH - len(indent) - 10)
        yield [f"{indent}private enum CodingKeys: String, CodingKey{all_cases} {{",
               *(f"{indent}    case {line.removesuffix(',')}" for line in names), f"{indent}}}"]
        lines = [f"{indent}public init(from decoder: any Decoder) throws {{"]
        lines += [f"{indent}    try decoder.refuseUnknownMembers(but: CodingKeys.self)"] if refuses else []
        lines += [f"{indent}    let container = try decoder.container(keyedBy: CodingKeys.self)"]
        for member in members:
            is_empty_absent = "x-empty" in member.schema
            type_, more = (("OptionalMPID", "?.mpid") if takes_nothing(member.schema)
                           else (member.type, " ?? [:]" if is_empty_absent else ""))
            how = "decodeIfPresent" if member.is_optional or is_empty_absent else "decode"
            lines += [f"{indent}    {member.name} = try container.{how}({type_}.self, forKey: .{member.name}){more}"]
        yield [*lines, f"{indent}}}"]
        if is_empty:
            yield [*self.encoding(members, indent)]

    def has_coding(self, form: Form, members: list[Member]) -> bool:
        return self.refuses(form) or any(
            member.schema.get("x-empty") or takes_nothing(member.schema) for member in members)

    def refuses(self, form: Form) -> bool:
        return form.message is None and form.schema.get("additionalProperties") is False

    def encoding(self, members: list[Member], indent: str) -> Iterator[str]:
        yield f"{indent}public func encode(to encoder: any Encoder) throws {{"
        yield f"{indent}    var container = encoder.container(keyedBy: CodingKeys.self)"
        for member in members:
            name, how = member.name, "encodeIfPresent" if member.is_optional else "encode"
            if member.schema.get("x-empty"):
                yield f"{indent}    if !{name}.isEmpty {{ try container.encode(_{name}, forKey: .{name}) }}"
            else:
                yield f"{indent}    try container.{how}({'_' if member.is_map else ''}{name}, forKey: .{name})"
        yield f"{indent}}}"

    def reading(self, form: Form, members: list[Member], indent: str) -> Iterator[str]:
        """What is usual; where a form needs more than the compiler's own `Codable`, nothing is."""
        if self.has_coding(form, members):
            return
        yield f"{indent}public init?(usual view: JSONView) {{"
        if not members:
            yield f"{indent}    guard view.isObject else {{ return nil }}"
            yield f"{indent}}}"
            return
        terms = ["var json = JSONObjectReader(view)"]
        arguments = []
        for member in members:
            name, present = member.name, "IfPresent" if member.is_optional else ""
            if member.is_map:
                terms.append(f'let {name} = json.map("{name}", of: {member.type[9:-1]}.self)')
            elif member.type == "String" or is_id(member):
                terms.append(f'let {name} = json.text{present}("{name}")')
            else:
                terms.append(f'let {name} = json.value{present}("{name}", as: {member.type}.self)')
            value = name
            if is_id(member):
                value = f"{name}.map {{ {member.type}($0) }}" if member.is_optional else f"{member.type}({name})"
            arguments.append(f"{name}: {value}")
        yield f"{indent}    guard {terms[0]},"
        yield from (f"{indent}        {term}," for term in terms[1:-1])
        yield f"{indent}        {terms[-1]}"
        yield f"{indent}    else {{ return nil }}"
        call = f"{indent}    self.init({', '.join(arguments)})"
        if len(call) <= WIDTH:
            yield call
        else:
            yield f"{indent}    self.init("
            lines = [*wrapped(arguments, WIDTH - len(indent) - 9)]
            yield from (f"{indent}        {line}" for line in lines[:-1])
            yield f"{indent}        {lines[-1]})"
        yield f"{indent}}}"

    def writing(self, members: list[Member], indent: str) -> Iterator[str]:
        """The same bytes as `Codable` makes."""
        yield f"{indent}public func write(to json: inout JSONOutput) throws {{"
        yield f"{indent}    json.begin()"
        for member in members:
            name = member.name
            if member.is_map:
                line = f'try json.map("{name}", {name})'
                yield f"{indent}    {f'if !{name}.isEmpty {{ {line} }}' if 'x-empty' in member.schema else line}"
                continue
            mark = "?" if member.is_optional else ""
            plain = member.type in PLAIN or is_id(member)
            yield f'{indent}    {"" if plain else "try "}json.member{"IfPresent" if mark else ""}("{name}", {name})'
        yield f"{indent}    json.end()"
        yield f"{indent}}}"

    # Whom it is about

    def about(self, form: Form, indent: str) -> Iterator[str]:
        message = form.message or {}
        paths = message.get("x-partition-subject", [])
        # Of a list of people: ImportCommand says it.
        if not paths or "[*]" in paths[0]:
            return
        name = "partitionSubject" if form.is_command else "subject"
        yield f"{indent}public var {name}: String {{ {self.first(form, paths)} }}"
        if "x-about" not in message:
            return
        yield ""
        said = message["x-about"]
        if len(said) == 1:
            yield (f"{indent}public var subject: (kind: String, name: String) {{ "
                   f'("{said[0]}", {self.first(form, said)}) }}')
            return
        yield f"{indent}public var subject: (kind: String, name: String) {{"
        members = {member.name: member for member in self.members(form.name)}
        for number, one in enumerate(said):
            member = members[one]
            if member.is_map:
                yield f'{indent}    return {one}.min {{ $0.key < $1.key }}.map {{ ($0.key, $0.value) }} ?? ("", "")'
            elif is_identity(follow(self.contract.document, member.schema)):
                yield f'{indent}    return ({one}?.type ?? "", {one}?.value ?? "")'
            elif number + 1 == len(said):
                yield f'{indent}    return ("{one}", {self.first(form, [one])})'
            else:
                yield f'{indent}    if let {one} {{ return ("{one}", {self.text(one, member.type)}) }}'
        yield f"{indent}}}"

    def first(self, form: Form, paths: list[str]) -> str:
        """The first of these that is there, as a text."""
        terms, is_certain = [], False
        for path in paths:
            term, is_certain = self.term(form.name, path)
            terms.append(term)
        return " ?? ".join([*terms, *([] if is_certain else ['""'])])

    def term(self, name: str, path: str) -> tuple[str, bool]:
        """A member that a path leads to, and whether it is always there."""
        if path.startswith("="):
            return f'"{path[1:]}"', True
        if path == "{identities}":
            return "identities.min { $0.key < $1.key }?.value", False
        one = re.fullmatch(r"(\w+)(?:\[(0|-1)\]|\.(\w+))?", path)
        if one is None:
            raise ContractError(f"{name}: {path} leads to no member")
        member = next(member for member in self.members(name) if member.name == one[1])
        mark = "?" if member.is_optional else ""
        if one[2]:
            end = {"0": "first", "-1": "last"}[one[2]]
            return self.text(f"{one[1]}{mark}.{end}", member.type[1:-1], "?"), False
        if one[3]:
            inner = follow(self.contract.document, member.schema)["properties"][one[3]]
            return self.text(f"{one[1]}{mark}.{one[3]}", self.swift(inner)), not mark
        return self.text(one[1], member.type, mark), not mark

    def text(self, value: str, type_: str, mark: str = "") -> str:
        return value if type_ == "String" else f"{value}{mark}.{'description' if type_ == 'MPID' else 'text'}"

    # What is refused

    def validation(self, form: Form, indent: str) -> Iterator[str]:
        access = "public " if form.message else ""
        # Whoever is inside of others is told where it is; whatever is data by itself is not.
        parameter = "" if self.is_data(form.name) else "_ path: @autoclosure () -> String"
        lines = [*self.checks(form.name)]
        yield f"{indent}{access}func validate({parameter}) throws(Rejection) {{{'' if lines else '}'}"
        yield from (f"{indent}    {line}" for line in lines)
        if lines:
            yield f"{indent}}}"

    def is_data(self, name: str) -> bool:
        return any(self.contract.data_of(message) == name for message in self.contract.commands.values())

    def checks(self, name: str) -> Iterator[str]:
        """The choice first, then the members in their order."""
        yield from self.choice(name)
        for member in self.members(name):
            path = member.name if self.is_data(name) else f"\\(path()).{member.name}"
            yield from self.check(member.schema, member.name, path, member.is_optional)

    def choice(self, name: str) -> Iterator[str]:
        schema = self.written[name]
        if "x-refusal" not in schema:
            return
        members = {member.name: member for member in self.members(name)}
        sets = [one["required"] for key in ("oneOf", "anyOf") for one in schema.get(key, [])]
        if any(len(names) != 1 for names in sets):
            raise ContractError(f"{name}: a choice of several members is checked by hand")
        there = [f"!{one}.isEmpty" if members[one].is_map else f"{one} != nil" for [one] in sets]
        met = " || ".join(there)
        if "oneOf" in schema:
            met = f"[{', '.join(there)}].count(where: {{ $0 }}) == 1"
            if len(there) == 2:
                met = " != ".join(f"({one})" for one in there)
        yield f"guard {met} else {{"
        yield f'    throw Rejection(.invalidRequest, "{schema["x-refusal"]}")'
        yield "}"

    def check(self, schema: Node, value: str, path: str, is_optional: bool) -> Iterator[str]:
        """What is looked at where this value stands."""
        own = follow(self.contract.document, schema)
        if own.get("type") == "array":
            yield from self.list_checks(own, value, path, is_optional)
        elif isinstance(own.get("additionalProperties"), dict):
            yield from self.map_checks(own, value, path)
        elif line := self.line(schema, value, path):
            yield f"if let {value} {{ {line} }}" if is_optional else line

    def line(self, schema: Node, value: str, path: str) -> str | None:
        name = self.contract.named(schema) if "$ref" in schema else ""
        if name in READ:
            return None
        if name in self.checked:
            return f'try {value}.validate("{path}")'
        if name == "SubjectRequestID":
            return f'try Validation.requestID({value}, "{path}")'
        type_, limits = self.swift(schema), self.limits(schema)
        if "enum" in limits:
            return f'try Validation.identityType({value}, "{path}")' if name == "IdentityType" and type_ == "String" else None
        text = value if type_.removesuffix("?") == "String" else f"{value}.text"
        if limits.get("x-visible"):
            return f'try Validation.id({value}, "{path}")'
        if "x-max-bytes" in limits:
            most = "" if limits["x-max-bytes"] == 255 else f", atMost: {limits['x-max-bytes']}"
            least = "" if limits.get("minLength") else ", atLeast: 0"
            return f'try Validation.text({text}, "{path}"{least}{most})'
        if "maxLength" in limits:
            most = "" if limits["maxLength"] == 750 else f", atMost: {limits['maxLength']}"
            return f'try Validation.identityValue({text if most else value}, "{path}"{most})'
        return None

    def limits(self, schema: Node) -> Node:
        """All that is said of a text, by whatever it is made of."""
        found: Node = {}
        if "$ref" in schema:
            return self.limits(follow(self.contract.document, schema))
        for inner in schema.get("allOf", []):
            found |= self.limits(inner)
        return found | schema

    def list_checks(self, schema: Node, value: str, path: str, is_optional: bool) -> Iterator[str]:
        if "maxItems" in schema:
            least = ", atLeast: 1" if schema.get("minItems") else ""
            line = f'try Validation.entries({value}.count, "{path}"{least}, atMost: {schema["maxItems"]})'
            yield f"if let {value} {{ {line} }}" if is_optional else line
        inner = [*self.check(schema["items"], "one", f"{path}[\\(index)]", False)]
        if inner:
            yield f"for (index, one) in {f'({value} ?? [])' if is_optional else value}.enumerated() {{"
            yield from (f"    {line}" for line in inner)
            yield "}"

    def map_checks(self, schema: Node, value: str, path: str) -> Iterator[str]:
        inner = schema["additionalProperties"]
        words = schema.get("propertyNames", {}) | {"x-swift": "String"}
        names = [*self.check(words, "type", path, False)]
        values = [*self.check(inner, "value", f"{path}.\\(type)", "null" in inner.get("type", []))]
        if names or values:
            yield f"for (type, value) in {value}.sorted(by: {{ $0.key < $1.key }}) {{"
            yield from (f"    {line}" for line in [*names, *values])
            yield "}"


# Parts of the text


def docs(words: str, indent: str) -> list[str]:
    wide = WIDTH - len(indent) - 4
    return [f"{indent}/// {line}" for line in textwrap.wrap(words, wide, break_long_words=False, break_on_hyphens=False)]


def case(word: str) -> str:
    """`EXTERNAL_ID_TAKEN` is `externalIDTaken`, `creation-failed` is `creationFailed`."""
    parts = re.split(r"[-_.]", word.lower() if word.isupper() else word)
    name = parts[0] + "".join("ID" if part == "id" else part[:1].upper() + part[1:] for part in parts[1:])
    return NAMES.get(name, name)


def words_of(name: str, schema: Node, indent: str) -> Iterator[str]:
    cases = [case(word) + (f' = "{word}"' if case(word) != word else "") for word in schema["enum"]]
    said = schema.get("x-values", {})
    yield f"{indent}public enum {name}: String, WireEnum {{"
    if said:
        for word, text in zip(schema["enum"], cases):
            yield from docs(said.get(word, ""), indent + "    ")
            yield f"{indent}    case {text}"
    else:
        wide = WIDTH - len(indent) - 10
        yield from (f"{indent}    case {line.removesuffix(',')}" for line in textwrap.wrap(", ".join(cases), wide))
    yield f"{indent}}}"


def initialiser(members: list[Member], indent: str) -> Iterator[str]:
    parameters = [f"{member.name}: {member.full}{member.default}" for member in members]
    head = f"{indent}public init({', '.join(parameters)}) {{"
    if not members:
        yield f"{head}}}"
        return
    if len(head) <= WIDTH:
        yield head
    else:
        yield f"{indent}public init("
        yield from (f"{indent}    {line}" for line in wrapped(parameters, WIDTH - len(indent) - 4))
        yield f"{indent}) {{"
    yield from (f"{indent}    self.{member.name} = {member.name}" for member in members)
    yield f"{indent}}}"


def wrapped(parts: list[str], wide: int) -> list[str]:
    """Lines of whole parts."""
    lines = [""]
    for number, part in enumerate(parts):
        part += "," if number + 1 < len(parts) else ""
        if lines[-1] and len(lines[-1]) + 1 + len(part) > wide:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return lines


def is_identity(schema: Node) -> bool:
    return set(schema.get("properties", {})) == {"type", "value"}


def is_id(member: Member) -> bool:
    """Whether any text is one."""
    return member.type != "MPID" and re.fullmatch(r"\w+ID|IdentityValue", member.type) is not None


def takes_nothing(schema: Node) -> bool:
    """Whether a number may be 0 where it is not there."""
    return any(None in one.get("enum", []) for one in schema.get("anyOf", []))
