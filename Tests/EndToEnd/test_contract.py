# SPDX-License-Identifier: Apache-2.0
"""docs/asyncapi.yaml is true: it says what the golden files and Shared/Contracts say, and nothing else. What services make of
it is in test_contract_recorded.py.

Swift is compared by a scan (scripts/lib/swift_messages.py), which says itself what it does not see: limits and other refusals
of `validate`, which test_contract_recorded.py tries on services, and what is written by hand, which the golden files show."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.contract import BY_TYPE, CONTRACT, OTHERS, message_of, problems, subject_of
from identitybus_testkit.places import REPOSITORY

import contract
import swift_messages

GOLDEN = sorted((REPOSITORY / "Tests" / "ContractsTests" / "Golden").glob("*.json"))
SWIFT = swift_messages.scan()
SCOPES = swift_messages.scopes()


def topic_of(path: Path) -> str:
    """By the name of the golden file: `command-…`, `event-…`."""
    kind = path.stem.partition("-")[0]
    kinds = {"command": "commands", "event": "events", "noted": "events"}
    return f"identity.x.{kinds[kind]}.v1" if kind in kinds else ""


# The form of the document


GOOD = """\
asyncapi: '3.0.0'
info: {title: x, version: '1.0'}
x-scopes: {sdk: x}
channels:
  c: {address: a.b, messages: {m: {$ref: '#/components/messages/m'}}}
operations:
  o: {action: receive, channel: {$ref: '#/channels/c'}, messages: [{$ref: '#/channels/c/messages/m'}]}
components:
  messages:
    m:
      name: t
      x-scope: sdk
      payload: {allOf: [{$ref: '#/components/schemas/S'}, {properties: {type: {const: t}}}]}
  schemas:
    S: {type: object, required: [a], properties: {a: {type: string, enum: [x, 'no']}, b: {const: 1}}}
"""


def refusal(text: str, tmp_path: Path) -> str:
    (path := tmp_path / "a.yaml").write_text(text)
    try:
        contract.Contract.of(path)
    except contract.ContractError as problem:
        return str(problem)
    return ""


def test_the_small_document_is_fine(tmp_path: Path) -> None:
    assert refusal(GOOD, tmp_path) == ""


@pytest.mark.parametrize(("old", "new", "said"), [
    ("title: x", "title: x, title: y", "title is there twice"),
    ("'1.0'", "1.0", "info.version: a text is wanted"),
    ("'1.0'", "2030-01-31", "line 2: 2030-01-31 has two readings"),
    ("'no'", "no", "no has two readings"),
    ("[x, 'no']", "[x, 7]", "enum and const of a text are texts"),
    ("[x, 'no']", "[x, x]", "twice"),
    ("title: x", "title:", "nothing has two readings"),
    ("title: x", "title: ~", "~ has two readings"),
    ("title: x", "title: 0x10", "0x10 has two readings"),
    ("title: x", "title: &a x", "an anchor"),
    ("title: x", "title: x, contact: z", "contact is no member of this info"),
    ("action: receive", "action: take", "send or receive"),
    ("address: a.b", "address: 'a.{b}'", "the parameters are not those of the address"),
    ("address: a.b", "address: null", "without an address x-topics"),
    ("channels/c'", "channels/d'", "#/channels/d names nothing"),
    ("channels/c/messages/m", "components/messages/m", "names nothing in #/channels/c/messages/"),
    ("schemas/S'", "schemas/T'", "#/components/schemas/T names nothing"),
    ("{$ref: '#/components/schemas/S'}", "{$ref: '#/components/schemas/S', minLength: 1}", "minLength beside $ref"),
    ("required: [a]", "required: [c]", "c is required and no member"),
    ("required: [a]", "required: [b, a]", "another order"),
    ("b: {const: 1}", "b: {unevaluatedProperties: false}", "unevaluatedProperties is no keyword"),
    ("b: {const: 1}", "b: {x-max-bytes: many}", "x-max-bytes is to be int"),
    ("b: {const: 1}", "b: {enum: [k], x-values: {l: z}}", "x-values has l, which enum has not"),
    ("x-scope: sdk", "x-scope: all", "x-scope all is not in x-scopes"),
    ("name: t", "name: u", "it is called u, and its type is t"),
    ("    S: {", "    T: {type: string}\n    S: {", "components.schemas.T: nothing names it"),
    ("'1.0'}", "'1.0'", "line"),
])
def test_what_has_two_readings_or_leads_nowhere_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert GOOD.count(old) >= 1
    assert said in refusal(GOOD.replace(old, new, 1), tmp_path)


def test_its_version_is_that_of_the_tree() -> None:
    assert CONTRACT.document["info"]["version"] == (REPOSITORY / "VERSION").read_text().strip()


# Golden files and examples


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_file_is_what_it_says(path: Path) -> None:
    envelope = json.loads(path.read_text())
    name = message_of(topic_of(path), envelope)
    assert name and not problems(name, envelope)
    assert out_of_order(envelope, CONTRACT.messages[name]["payload"]) == []


def out_of_order(value: Any, schema: Any) -> list[str]:
    """The members that stand in another order than in the schema."""
    schema = contract.follow(CONTRACT.document, schema) or {}
    found: list[str] = []
    for inner in [*schema.get("allOf", []), *(schema[key] for key in ("then", "else") if key in schema)]:
        found += out_of_order(value, inner)
    if isinstance(value, dict):
        known = list(schema.get("properties", {}))
        order = [name for name in value if name in known]
        if order != sorted(order, key=known.index):
            found.append(f"{order} and not {known}")
        for name in order:
            found += out_of_order(value[name], schema["properties"][name])
        if isinstance(schema.get("additionalProperties"), dict) and list(value) != sorted(value):
            found.append(f"{list(value)} is no order of names")
    elif isinstance(value, list) and "items" in schema:
        for inner in value:
            found += out_of_order(inner, schema["items"])
    return found


EXAMPLES = [(name, index) for name, schema in CONTRACT.schemas.items() for index in range(len(schema.get("examples", [])))]


@pytest.mark.parametrize(("name", "index"), EXAMPLES)
def test_an_example_is_what_it_shows(name: str, index: int) -> None:
    example = CONTRACT.schemas[name]["examples"][index]
    assert not problems(name, example, "schema")
    assert out_of_order(example, CONTRACT.schemas[name]) == []


@pytest.mark.parametrize("name", [name for name, message in CONTRACT.messages.items() if "examples" in message])
def test_a_whole_message_is_what_it_shows(name: str) -> None:
    for shown in CONTRACT.messages[name]["examples"]:
        assert not problems(name, shown["payload"]) and not problems("SignedHeaders", shown["headers"], "schema")
        assert out_of_order(shown["payload"], CONTRACT.messages[name]["payload"]) == []


def test_every_message_has_an_example() -> None:
    missing = {
        CONTRACT.data_of(message) for message in [*CONTRACT.commands.values(), *CONTRACT.events.values()]
        if not CONTRACT.schemas[CONTRACT.data_of(message)].get("examples")}
    assert not missing


# Swift


def swift_types(what: str) -> dict[str, str]:
    """Of each CloudEvents type the name of its struct. `ReadFacts` is one struct for four services."""
    found = {
        one.type: name for name, one in SWIFT.items() if getattr(one, f"is_{what}") and one.type and name != "ReadFacts"}
    if what == "command":
        found |= {f"identity.{service}.facts.v1": f"ReadFacts<FactsOf.{service.capitalize()}>"
                  for service in ("link", "user", "sync", "verification")}
    return found


@pytest.mark.parametrize(("what", "kind"), [("command", "commands"), ("event", "events")])
def test_both_have_the_same_messages(what: str, kind: str) -> None:
    messages = CONTRACT.on(kind)
    told = {message["name"]: message.get("x-swift", CONTRACT.data_of(message)) for message in messages.values()}
    assert told == swift_types(what)
    assert ReplicaStatus.type in OTHERS
    for name, message in messages.items():
        assert name.removesuffix(".event") == message["name"].removeprefix("identity.").removesuffix(".v1")


ReplicaStatus = SWIFT["ReplicaStatus"]


def test_commands_have_the_scopes_of_swift() -> None:
    for kind, struct in swift_types("command").items():
        one = SWIFT[struct.partition("<")[0]]
        message = CONTRACT.commands[BY_TYPE["commands"][kind]]
        scope = next((swift_messages.DEFAULT_SCOPES[name] for name in one.protocols
                      if name in swift_messages.DEFAULT_SCOPES), None)
        if "scope" in one.statics:
            scope = SCOPES[one.statics["scope"].removeprefix("Scope").removeprefix(".").strip("`")]
        other = SCOPES[one.statics["orScope"].removeprefix(".")] if "orScope" in one.statics else None
        assert (message["x-scope"], message.get("x-or-scope")) == (scope, other), kind
        assert message.get("x-conforms", []) == [name for name in one.protocols if name != "CommandMessage"], kind
        # By hand: what nobody reads is a mistake.
        by_hand = bool({"CommandByHand", "RepairCommand"} & set(one.protocols))
        assert (CONTRACT.schemas[CONTRACT.data_of(message)].get("additionalProperties") is False) == by_hand, kind


# Of which Swift says it in more than one line: the cases below show them.
BY_HAND = {
    "EraseProfile", "GetProfile", "GetLinkedUser", "RestrictProfile", "ImportUsers", "ImportProfiles", "DecisionsNoted"}

SEVERAL_NAMES = {"EraseProfile", "GetProfile", "GetLinkedUser", "RestrictProfile", "ChangeExternalID"}


@pytest.mark.parametrize("kind", ["command", "event"])
def test_messages_are_about_whom_swift_says(kind: str) -> None:
    for type_, struct in swift_types(kind).items():
        struct = struct.partition("<")[0]
        one = SWIFT[struct]
        message = CONTRACT.messages[BY_TYPE[f"{kind}s"][type_]]
        wanted = one.subject
        if {"RequestCommand", "SyncRequestMessage"} & set(one.protocols):
            wanted = ["requestId"] if "RequestCommand" in one.protocols else ["deviceId"]
        assert (wanted is None) == (struct in BY_HAND), struct
        assert wanted in (None, message["x-partition-subject"]), struct
        if one.about:
            assert message["x-about"] == [one.about], struct
        assert ("x-about" in message) == bool(one.about or struct in SEVERAL_NAMES), struct


def test_refusals_are_worded_as_swift_words_them() -> None:
    told = {schema["x-refusal"] for schema in CONTRACT.schemas.values() if "x-refusal" in schema}
    source = "".join(path.read_text() for path in swift_messages.MESSAGES.parent.glob("*/*.swift"))
    assert set(re.findall(r'"(data needs [^"\\]+)"', source)) == told
    for name, schema in CONTRACT.schemas.items():
        is_choice = any("required" in one for key in ("oneOf", "anyOf") for one in schema.get(key, []))
        assert is_choice == ("x-refusal" in schema), name


def resolved(owner: str, name: str) -> str:
    """A nested type by its full name, as Swift finds it."""
    parts = owner.split(".")
    for end in range(len(parts), -1, -1):
        full = ".".join([*parts[:end], name])
        if full in SWIFT:
            return full
    return name


def swift_member(owner: str, text: str) -> str:
    text = text.replace("IdentityType.RawValue", "String")
    return re.sub(r"[A-Z]\w*(?:\.\w+)*", lambda match: resolved(owner, match[0]), text)


def swift_of(schema: dict[str, Any]) -> str:
    """The Swift type that the schema stands for, without the question mark of an optional member."""
    if "x-swift" in schema:
        return str(schema["x-swift"])
    if "$ref" in schema:
        return str(contract.follow(CONTRACT.document, schema).get("x-swift", CONTRACT.named(schema)))
    if len(schema.get("allOf", [])) == 1:
        return swift_of(schema["allOf"][0])
    match schema.get("type"):
        case "string": return "String"
        case ["string", "null"]: return "String?"
        case "boolean": return "Bool"
        case "number": return "Double"
        case "integer": return {"int64": "Int64", "int32": "Int32"}.get(schema.get("format", ""), "Int")
        case "array": return f"[{swift_of(schema['items'])}]"
        case "object" if "additionalProperties" in schema:
            return f"[String: {swift_of(schema['additionalProperties'])}]"
    return "JSONValue"


WRITTEN = [name for name, schema in CONTRACT.schemas.items() if "x-hand-written" not in schema and "Headers" not in name]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_form_has_the_members_of_swift(name: str) -> None:
    schema, one = CONTRACT.schemas[name], SWIFT[name]
    if one.is_words:
        assert schema["enum"] == list(one.cases)
        return
    assert list(schema["properties"]) == list(one.members), "the members, in their order"
    always = schema.get("required", []) + schema.get("x-unless-dry-run", [])
    for member, text in one.members.items():
        inner = schema["properties"][member]
        is_optional = text.endswith("?") or inner.get("x-empty") == "absent"
        assert (member in always) != is_optional, f"{member}: {text}"
        assert swift_of(inner).removesuffix("?") == swift_member(name, text).removesuffix("?"), member
    assert schema.get("x-confidential", False) == (one.statics.get("isConfidential") == "true")


def test_every_form_that_travels_is_there() -> None:
    """What commands, events, results and the status lead to."""
    found: set[str] = set()

    def go(name: str) -> None:
        name = swift_messages.FORWARDED.get(name, name)
        if name in found or name not in SWIFT:
            return
        found.add(name)
        for text in SWIFT[name].members.values():
            for other in re.findall(r"[A-Z]\w*(?:\.\w+)*", swift_member(name, text)):
                go(other)

    for name, one in SWIFT.items():
        if one.is_command or one.is_event or one.is_result or name == "ReplicaStatus":
            go(name)
    # Enums of Swift that are no form of their own, and what is written by hand.
    found -= {"ListElement", "ID", "SubjectRequest"}
    assert not found - set(CONTRACT.schemas)


def test_secrets_are_marked() -> None:
    source = (swift_messages.MESSAGES / "Reply.swift").read_text()
    names = set(re.findall(r'"(\w+)"', source.partition("names: Set<String> = [")[2].partition("]")[0]))

    def marked(schema: dict[str, Any]) -> set[str]:
        return {name for name, inner in schema.get("properties", {}).items() if inner.get("x-secret")}

    found = set().union(*(marked(schema) for schema in CONTRACT.schemas.values()))
    assert found == names
    for schema in CONTRACT.schemas.values():
        assert set(schema.get("x-unless-dry-run", [])) <= marked(schema)


def test_reason_codes_and_statuses() -> None:
    assert CONTRACT.schemas["ReasonCode"]["enum"] == list(SWIFT["ReasonCode"].cases)
    assert CONTRACT.schemas["IdentityType"]["enum"] == list(SWIFT["IdentityType"].cases)
    assert CONTRACT.schemas["ReplyStatus"]["enum"] == list(SWIFT["ReplyStatus"].cases)
    assert list(CONTRACT.document["x-scopes"]) == list(SWIFT["Scope"].cases)
    assert list(CONTRACT.schemas["Reply"]["properties"]) == list(SWIFT["Reply"].members)


def test_the_envelope_has_the_attributes_of_swift_in_their_order() -> None:
    source = (swift_messages.MESSAGES.parent / "Envelope" / "CloudEvent.swift").read_text()
    keys = source.partition("enum CodingKeys: String, CodingKey, CaseIterable {")[2].partition("}")[0]
    words: list[str] = []
    for line in re.findall(r"case (.+)", keys):
        words += [raw.strip('"') if raw else name for name, _, raw in (one.partition(" = ") for one in line.split(", "))]
    assert list(CONTRACT.schemas["Envelope"]["properties"]) == [*words, "data"]


def test_names_of_topics() -> None:
    addresses = {channel["address"] for channel in CONTRACT.document["channels"].values()}
    services = ("link", "user", "sync", "verification")
    assert addresses == {
        *(f"identity.{service}.{kind}.v1" for service in services for kind in ("commands", "events")), None,
        "identity.{service}.dlq.v1", "identity.{service}.dlq-actions.v1", "identity.status.v1"}


# What is refused


COMMANDS = sorted(CONTRACT.commands)


def example(name: str) -> dict[str, Any]:
    data = CONTRACT.schemas[CONTRACT.data_of(CONTRACT.messages[name])]["examples"][0]
    kind = CONTRACT.messages[name]["name"]
    return {"specversion": "1.0", "id": "c1", "source": "backend", "type": kind, "appid": "demo", "data": data}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_missing_or_unknown(name: str) -> None:
    good = example(name)
    assert not problems(name, good)
    schema = CONTRACT.schemas[CONTRACT.data_of(CONTRACT.messages[name])]
    for member in schema.get("required", []):
        less = {key: value for key, value in good["data"].items() if key != member}
        assert problems(name, good | {"data": less}), member
    more = problems(name, good | {"data": good["data"] | {"noSuchMember": 1}})
    assert bool(more) == (schema.get("additionalProperties") is False)
    assert not problems(name, good | {"nosuchattribute": "1"})


@pytest.mark.parametrize("attribute", ["specversion", "id", "source", "type", "appid", "data"])
def test_an_envelope_without_what_it_needs(attribute: str) -> None:
    good = example("link.request")
    assert problems("link.request", {key: value for key, value in good.items() if key != attribute})


@pytest.mark.parametrize(("member", "value", "is_fine"), [
    ("installId", "x" * 255, True), ("installId", "x" * 256, False), ("installId", "", False), ("installId", "a\n", False),
    ("installId", "a\u0085", False), ("installId", 7, False), ("installId", None, False),
    ("externalId", "\U0001F44B" * 750, True), ("externalId", "x" * 751, False), ("externalId", "\x00", False),
    ("externalId", "Ren\u00e9 \"x\" </", True),
])
def test_limits_of_a_text(member: str, value: Any, is_fine: bool) -> None:
    good = example("link.request")
    assert (problems("link.request", good | {"data": good["data"] | {member: value}}) == []) == is_fine


@pytest.mark.parametrize(("value", "is_fine"), [
    ("1", True), ("-9223372036854775808", True), (7, True), (-7, True), ("007", True), (0, False), ("0", False), ("+1", False),
    ("1.5", False), (1.5, False), ("", False), (None, False), (9223372036854775808, False),
])
def test_an_mpid_in_a_command(value: Any, is_fine: bool) -> None:
    good = example("sync.get-erasure")
    assert (problems("sync.get-erasure", good | {"data": {"mpid": value}}) == []) == is_fine


# Whom a message is about


@pytest.mark.parametrize(("name", "data", "subject"), [
    ("link.request", {"installId": "i", "externalId": "ada"}, "ada"),
    ("link.forget", {"userId": "u"}, "u"), ("link.forget", {"userId": "u", "externalId": "ada"}, "ada"),
    ("link.get-user", {"installId": "i"}, "i"), ("link.import-users", {"users": [{"userId": "u"}]}, "u"),
    ("link.import-users", {"users": [1]}, "import"), ("sync.modify", {"mpid": "1", "changes": []}, "1"),
    ("sync.modify", {"mpid": "1", "changes": [], "deviceId": "d"}, "d"),
    ("sync.erase-profile", {"identities": {"email": "a@b.io", "customerid": "ada"}}, "ada"),
    ("sync.get-profile", {"identity": {"type": "email", "value": "a@b.io"}}, "a@b.io"),
    ("verification.forget", {"mpids": []}, "nobody"), ("verification.forget", {"mpids": ["-7", "1"]}, "-7"),
    ("verification.usage", {}, "usage"), ("verification.check", {"userEmail": "a@b.io", "userAuthToken": ""}, "a@b.io"),
    ("noted", {"decisions": [], "repeated": ["a", "b"]}, "b"),
])
def test_whom_a_message_is_about(name: str, data: dict[str, Any], subject: str) -> None:
    assert subject_of(name, data) == subject
