# SPDX-License-Identifier: Apache-2.0
"""docs/asyncapi.yaml is true: it says what the golden files and Shared/Contracts say, and nothing else. What services make of
it is in test_contract_recorded.py.

Swift's messages are written from it. Compared here is what stands beside them by hand: words, names, members, secrets. What
`validate` refuses is tried on services by test_contract_recorded.py, and the golden files show what encoders write."""

import copy
import difflib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.contract import CONTRACT, message_of, problems, subject_of
from identitybus_testkit.places import REPOSITORY

import contract
import swift_structs

GOLDEN = sorted((REPOSITORY / "Tests" / "ContractsTests" / "Golden").glob("*.json"))


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


# Swift: what is written by hand beside Shared/Contracts/Generated


MESSAGES = REPOSITORY / "Shared" / "Contracts" / "Messages"


def body(file: str, head: str) -> str:
    """What stands between the head of a type and the brace that closes it."""
    text = (MESSAGES / f"{file}.swift").read_text().partition(f"public {head}")[2]
    assert text, head
    return text.partition("\n}\n")[0]


def words_of(file: str, name: str) -> list[str]:
    """The words of an enum, as they stand on the wire."""
    found: list[str] = []
    for line in re.findall(r"^    case ([^(]+?)(?: *//.*)?$", body(file, f"enum {name}: "), re.M):
        for one in line.split(", "):
            case, _, raw = one.partition(" = ")
            found.append(raw.strip('"') or case.strip("`"))
    return found


@pytest.mark.parametrize("kind", ["commands", "events"])
def test_a_message_has_the_name_of_its_type(kind: str) -> None:
    for name, message in CONTRACT.on(kind).items():
        assert name.removesuffix(".event") == message["name"].removeprefix("identity.").removesuffix(".v1")


def test_commands_that_share_their_data() -> None:
    """The members of another struct, and none of their own: the generator leaves them alone."""
    shared = {message["name"]: message for message in CONTRACT.messages.values() if "x-swift" in message}
    found = {type_: name for name, type_ in re.findall(
        r'public struct (\w+): SyncRequestMessage \{\n    public static let type = "([^"]+)"',
        (MESSAGES / "SyncRequest.swift").read_text())}
    owners = re.findall(r'public enum (\w+): FactsOwner \{ public static let service = "(\w+)" \}', body("Facts", "enum FactsOf"))
    found |= {f"identity.{service}.facts.v1": f"ReadFacts<FactsOf.{name}>" for name, service in owners}
    assert {type_: message["x-swift"] for type_, message in shared.items()} == found
    for type_, message in shared.items():
        is_facts = type_.endswith(".facts.v1")
        assert message["x-scope"] == ("support" if is_facts else "identity.sync") and "x-or-scope" not in message
        assert message["x-partition-subject"] == (["id"] if is_facts else ["deviceId"])
        assert message["x-conforms"] == (["PersonQuery"] if is_facts else ["SyncRequestMessage"])


def test_commands_by_hand_refuse_what_nobody_reads() -> None:
    for name, message in CONTRACT.commands.items():
        by_hand = bool({"CommandByHand", "RepairCommand"} & set(message.get("x-conforms", [])))
        assert (CONTRACT.schemas[CONTRACT.data_of(message)].get("additionalProperties") is False) == by_hand, name


def test_refusals_that_are_worded_by_hand() -> None:
    by_hand = {schema["x-refusal"] for schema in CONTRACT.schemas.values() if {"x-refusal", "x-checked-by-hand"} <= set(schema)}
    source = "".join(path.read_text() for path in MESSAGES.glob("*.swift"))
    assert set(re.findall(r'"(data needs [^"\\]+)"', source)) == by_hand
    for name, schema in CONTRACT.schemas.items():
        is_choice = any("required" in one for key in ("oneOf", "anyOf") for one in schema.get(key, []))
        assert is_choice == ("x-refusal" in schema), name


# The generator


def swift(changed: contract.Contract) -> str:
    return "\n".join(swift_structs.files(changed).values())


def test_a_member_that_is_added_travels_without_another_edit() -> None:
    changed = contract.Contract(copy.deepcopy(CONTRACT.document))
    changed.schemas["LinkRequest"]["properties"]["label"] = {
        "$ref": "#/components/schemas/ShortText", "description": "What it is called."}
    before, after = swift(CONTRACT).splitlines(), swift(changed).splitlines()
    assert [line.strip() for line in difflib.ndiff(before, after) if line[0] in "+-"] == [
        "+     /// What it is called.",
        "+     public var label: String?",
        "-     public init(installId: InstallID, externalId: ExternalID) {",
        "+     public init(installId: InstallID, externalId: ExternalID, label: String? = nil) {",
        "+         self.label = label",
        '-             let externalId = json.text("externalId")',
        '+             let externalId = json.text("externalId"),',
        '+             let label = json.textIfPresent("label")',
        "-         self.init(installId: InstallID(installId), externalId: ExternalID(externalId))",
        "+         self.init(installId: InstallID(installId), externalId: ExternalID(externalId), label: label)",
        '+         json.memberIfPresent("label", label)',
        '+         if let label { try Validation.text(label, "label") }',
    ]


@pytest.mark.parametrize(("word", "name"), [
    ("created", "created"), ("tie-to-most-recent", "tieToMostRecent"), ("user.link", "userLink"), ("import", "importing"),
    ("EXTERNAL_ID_TAKEN", "externalIDTaken"), ("userIdTooLong", "userIdTooLong"), ("mobile_number", "mobileNumber"),
])
def test_the_name_of_a_case(word: str, name: str) -> None:
    assert swift_structs.case(word) == name


def test_a_choice_of_several_members_is_not_guessed() -> None:
    changed = contract.Contract(copy.deepcopy(CONTRACT.document))
    del changed.schemas["CreateUser"]["x-checked-by-hand"]
    with pytest.raises(contract.ContractError, match="CreateUser: a choice of several members is checked by hand"):
        swift(changed)


@pytest.mark.parametrize(("member", "schema", "line"), [
    ("label", {"type": "string"}, None),
    ("label", {"type": "string", "maxLength": 9, "x-max-bytes": 9, "minLength": 1}, 'try Validation.text(label, "label", atMost: 9)'),
    ("label", {"type": "string", "maxLength": 9, "x-max-bytes": 9}, 'try Validation.text(label, "label", atLeast: 0, atMost: 9)'),
    ("label", {"type": "string", "maxLength": 9}, 'try Validation.identityValue(label, "label", atMost: 9)'),
    ("label", {"$ref": "#/components/schemas/ExternalID"}, 'try Validation.identityValue(label, "label")'),
    ("label", {"$ref": "#/components/schemas/DeviceID"}, 'try Validation.id(label, "label")'),
    ("label", {"$ref": "#/components/schemas/GetProfile.Named"}, 'try label.validate("label")'),
    ("label", {"$ref": "#/components/schemas/Timestamp"}, None), ("label", {"$ref": "#/components/schemas/GivenMPID"}, None),
    ("label", {"type": "array", "maxItems": 9, "items": {"type": "string"}},
     'try Validation.entries(label.count, "label", atMost: 9)'),
])
def test_how_a_limit_is_looked_at(member: str, schema: dict[str, Any], line: str | None) -> None:
    changed = contract.Contract(copy.deepcopy(CONTRACT.document))
    changed.schemas["LinkRequest"]["properties"][member] = schema
    struct = swift(changed).partition("struct LinkRequest")[2].partition("\n}\n")[0]
    assert [text.strip() for text in struct.splitlines() if "if let" in text] == ([f"if let label {{ {line} }}"] if line else [])


def test_secrets_are_marked() -> None:
    source = (MESSAGES / "Reply.swift").read_text()
    names = set(re.findall(r'"(\w+)"', source.partition("names: Set<String> = [")[2].partition("]")[0]))

    def marked(schema: dict[str, Any]) -> set[str]:
        return {name for name, inner in schema.get("properties", {}).items() if inner.get("x-secret")}

    found = set().union(*(marked(schema) for schema in CONTRACT.schemas.values()))
    assert found == names
    for schema in CONTRACT.schemas.values():
        assert set(schema.get("x-unless-dry-run", [])) <= marked(schema)


def test_words_and_members_that_are_written_by_hand() -> None:
    for name, file in {"ReasonCode": "ReasonCode", "IdentityType": "Members", "ReplyStatus": "Reply"}.items():
        assert CONTRACT.schemas[name]["enum"] == words_of(file, name)
    assert list(CONTRACT.document["x-scopes"]) == words_of("Message", "Scope")
    members = re.findall(r"^    public var (\w+): ", body("Reply", "struct Reply<"), re.M)
    assert list(CONTRACT.schemas["Reply"]["properties"]) == members


def test_the_envelope_has_the_attributes_of_swift_in_their_order() -> None:
    source = (MESSAGES.parent / "Envelope" / "CloudEvent.swift").read_text()
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
