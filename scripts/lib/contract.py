# SPDX-License-Identifier: Apache-2.0
"""Reads docs/asyncapi.yaml, and refuses what is not written as its head says.

    scripts/lib/contract.py [FILE]    every fault is one line; the exit status says whether there was one

Of AsyncAPI 3 it knows what we use: an object with another member is a fault, and so is a name that leads nowhere."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Another Python than Debian's does not look where Debian's packages are.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import yaml
except ImportError:
    raise SystemExit("PyYAML is missing: install Debian's python3-yaml, or pip install PyYAML")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "asyncapi.yaml"

Node = dict[str, Any]


class ContractError(Exception):
    pass


# The text


class Loader(yaml.SafeLoader):
    """YAML in which nothing has two readings: no member twice, no word that one reader takes for text and another for
    something else, no anchors."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent) or getattr(self.peek_event(), "anchor", None):
            raise ContractError(f"{place(self.peek_event())}: an anchor or an alias; name the thing by $ref")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Node:
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key)
            if not isinstance(name, str):
                raise ContractError(f"{place(key)}: the member {key.value} is no text; put it in quotes")
            if name in seen:
                raise ContractError(f"{place(key)}: the member {name} is there twice")
            seen.add(name)
        return super().construct_mapping(node, deep=True)


def place(node: Any) -> str:
    return f"line {node.start_mark.line + 1}"


# What YAML 1.1, YAML 1.2 and people agree about without quotes: true, false, null, whole and decimal numbers, and texts that
# look like none of what any of them takes for a number, a truth value, nothing, a day or a time.
PLAIN = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?")
DOUBTFUL = re.compile(
    r"[Yy]|[Nn]|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|True|TRUE|False|FALSE|Null|NULL|~|"
    r"[-+.]?[0-9][0-9_.,:eExXoOa-fA-F+TtZ-]*|[-+]?\.(inf|Inf|INF|nan|NaN|NAN)|=|<<")


def scalar(loader: Loader, node: yaml.ScalarNode) -> Any:
    text = node.value
    if node.style is not None:
        return text
    if PLAIN.fullmatch(text):
        return yaml.safe_load(text)
    if not text or DOUBTFUL.fullmatch(text):
        raise ContractError(f"{place(node)}: {text or 'nothing'} has two readings; put it in quotes")
    return text


for tag in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value"):
    Loader.add_constructor(f"tag:yaml.org,2002:{tag}", scalar)


def load(path: Path = PAGE) -> Node:
    """- Raises: `ContractError`, with the line."""
    try:
        read = yaml.load(path.read_text(), Loader)  # noqa: S506: a SafeLoader
    except yaml.YAMLError as problem:
        raise ContractError(str(problem)) from None
    if not isinstance(read, dict):
        raise ContractError("it is no mapping")
    return read


# The document


TEXTS = {
    "title", "summary", "description", "name", "address", "location", "contentType", "pattern", "format", "$ref", "url",
    "version", "bindingVersion", "asyncapi", "defaultContentType", "action", "x-scope", "x-or-scope", "x-swift",
    "x-hand-written", "x-refusal", "x-checked-by-hand", "x-empty", "x-elements", "x-also", "x-default"}
MARKS = {
    "x-max-bytes": int, "x-visible": bool, "x-values": dict, "x-open": bool, "x-secret": bool, "x-confidential": bool,
    "x-unless-dry-run": list, "x-swift": str, "x-hand-written": str, "x-refusal": str, "x-checked-by-hand": str, "x-empty": str, "x-elements": str,
    "x-default": str}
# Keywords that draft 7 and 2020-12 read alike, as long as nothing but words stands beside a $ref.
KEYWORDS = {
    "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
    "items", "required", "properties", "propertyNames", "additionalProperties", "minProperties", "maxProperties", "allOf",
    "anyOf", "oneOf", "not", "if", "then", "else", "description", "examples", "$ref"} | set(MARKS)
BESIDE_REF = {"$ref", "description"} | set(MARKS)
MESSAGE_MARKS = {"x-scope", "x-or-scope", "x-partition-subject", "x-about", "x-conforms", "x-swift"}
OBJECTS = {
    "document": {"asyncapi", "info", "defaultContentType", "channels", "operations", "components", "x-scopes", "x-looked-at"},
    "info": {"title", "version", "license", "description"},
    "channel": {"address", "title", "description", "messages", "parameters", "x-topics", "x-also"},
    "operation": {"action", "channel", "messages", "reply"},
    "reply": {"address", "channel", "messages"},
    "components": {"parameters", "replyAddresses", "messageTraits", "messages", "schemas"},
    "parameter": {"description", "enum"},
    "reply address": {"description", "location"},
    "trait": {"name", "headers", "bindings"},
    "message": {"name", "title", "summary", "contentType", "headers", "bindings", "traits", "payload", "examples"}
    | MESSAGE_MARKS,
}
NAME = re.compile(r"[A-Za-z0-9._-]+")


def at(document: Node, reference: str) -> Any:
    """What a $ref names; None where nothing is."""
    if not reference.startswith("#/"):
        return None
    node: Any = document
    for part in reference[2:].split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node


def follow(document: Node, node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        node = at(document, node["$ref"])
    return node


@dataclass
class Check:
    document: Node
    faults: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def fault(self, where: str, what: str) -> None:
        self.faults.append(f"{where}: {what}")

    def members(self, kind: str, where: str, node: Any) -> bool:
        if not isinstance(node, dict):
            self.fault(where, f"this {kind} is no mapping")
            return False
        for name in node:
            if name not in OBJECTS[kind]:
                self.fault(where, f"{name} is no member of this {kind}")
        return True

    def reference(self, where: str, node: Any, below: str) -> Any:
        """The thing named, which stands below `#/…`."""
        if not isinstance(node, dict) or set(node) != {"$ref"}:
            self.fault(where, f"a $ref to {below} is wanted here, and nothing beside it")
            return None
        self.named.add(node["$ref"])
        found = at(self.document, node["$ref"])
        if not str(node["$ref"]).startswith(below) or found is None:
            self.fault(where, f"{node['$ref']} names nothing in {below}")
        return found

    def run(self) -> list[str]:
        document = self.document
        self.members("document", "the document", document)
        self.texts("", document)
        if document.get("asyncapi") != "3.0.0":
            self.fault("asyncapi", "3.0.0 is the version that is known here")
        self.members("info", "info", document.get("info"))
        for part in ("title", "version"):
            if not document.get("info", {}).get(part):
                self.fault("info", f"{part} is missing")
        self.components(document.get("components", {}))
        for name, channel in document.get("channels", {}).items():
            self.channel(name, channel)
        for name, operation in document.get("operations", {}).items():
            self.operation(name, operation)
        self.unused()
        return self.faults

    def texts(self, where: str, node: Any, is_map: bool = False) -> None:
        """Text where it is wanted, whatever the word looks like. `is_map`: the members' names are somebody's own."""
        if isinstance(node, list):
            for index, inner in enumerate(node):
                self.texts(f"{where}[{index}]", inner)
        elif isinstance(node, dict):
            for name, inner in node.items():
                inside = f"{where}.{name}".lstrip(".")
                is_address = name == "address" and (inner is None or isinstance(inner, dict))
                if name in TEXTS and not is_map and not isinstance(inner, str) and not is_address:
                    self.fault(inside, "a text is wanted here")
                if name == "examples":
                    continue
                own = {"properties", "messages", "schemas", "channels", "operations", "x-values", "x-scopes", "parameters"}
                self.texts(inside, inner, is_map=name in own and not is_map)

    # Channels and operations

    def channel(self, name: str, channel: Any) -> None:
        where = f"channels.{name}"
        if not self.members("channel", where, channel):
            return
        address = channel.get("address", "")
        wanted = set(re.findall(r"\{(\w+)\}", address or ""))
        if wanted != set(channel.get("parameters", {})):
            self.fault(where, "the parameters are not those of the address")
        for key, parameter in channel.get("parameters", {}).items():
            self.reference(f"{where}.parameters.{key}", parameter, "#/components/parameters/")
        if address is None and "x-topics" not in channel:
            self.fault(where, "without an address x-topics says which topics there are")
        if not channel.get("messages"):
            self.fault(where, "no message")
        for key, message in channel.get("messages", {}).items():
            self.reference(f"{where}.messages.{key}", message, "#/components/messages/")

    def operation(self, name: str, operation: Any) -> None:
        where = f"operations.{name}"
        if not self.members("operation", where, operation):
            return
        if operation.get("action") not in ("send", "receive"):
            self.fault(where, "the action is send or receive")
        self.messages(where, operation)
        reply = operation.get("reply")
        if reply is not None and self.members("reply", f"{where}.reply", reply):
            self.messages(f"{where}.reply", reply)
            self.reference(f"{where}.reply.address", reply.get("address"), "#/components/replyAddresses/")
            if (follow(self.document, reply.get("channel")) or {}).get("address") is not None:
                self.fault(where, "a channel whose address the command names has none of its own")

    def messages(self, where: str, node: Node) -> None:
        channel = node.get("channel")
        self.reference(f"{where}.channel", channel, "#/channels/")
        for index, message in enumerate(node.get("messages", [])):
            self.reference(f"{where}.messages[{index}]", message, f"{(channel or {}).get('$ref')}/messages/")

    # Components

    def components(self, components: Node) -> None:
        self.members("components", "components", components)
        for kind, nodes in components.items():
            for name in nodes:
                if not NAME.fullmatch(name):
                    self.fault(f"components.{kind}.{name}", "a name has letters, digits, dots, hyphens and underscores")
        for name, one in components.get("parameters", {}).items():
            self.members("parameter", f"components.parameters.{name}", one)
        for name, one in components.get("replyAddresses", {}).items():
            self.members("reply address", f"components.replyAddresses.{name}", one)
        for name, trait in components.get("messageTraits", {}).items():
            if self.members("trait", f"components.messageTraits.{name}", trait):
                self.bindings(f"components.messageTraits.{name}", trait)
        for name, message in components.get("messages", {}).items():
            self.message(f"components.messages.{name}", message)
        for name, schema in components.get("schemas", {}).items():
            self.schema(f"components.schemas.{name}", schema)

    def message(self, where: str, message: Any) -> None:
        if not self.members("message", where, message):
            return
        for index, trait in enumerate(message.get("traits", [])):
            self.reference(f"{where}.traits[{index}]", trait, "#/components/messageTraits/")
        self.bindings(where, message)
        self.schema(f"{where}.payload", message.get("payload"))
        scopes = self.document.get("x-scopes", {})
        for key in ("x-scope", "x-or-scope"):
            if key in message and message[key] not in scopes:
                self.fault(where, f"{key} {message[key]} is not in x-scopes")
        payload = Contract(self.document).type_of(message)
        if "name" in message and message["name"] != payload:
            self.fault(where, f"it is called {message['name']}, and its type is {payload}")

    def bindings(self, where: str, node: Node) -> None:
        if "headers" in node:
            self.schema(f"{where}.headers", node["headers"])
        if "bindings" in node:
            kafka = node["bindings"].get("kafka", {})
            if set(node["bindings"]) != {"kafka"} or not set(kafka) <= {"key", "bindingVersion"}:
                self.fault(f"{where}.bindings", "kafka is known here, with key and bindingVersion")
            self.schema(f"{where}.bindings.kafka.key", kafka.get("key"))

    def schema(self, where: str, schema: Any) -> None:
        if not isinstance(schema, dict):
            self.fault(where, "a schema is a mapping")
            return
        for name in schema:
            if name not in KEYWORDS:
                self.fault(where, f"{name} is no keyword that is known here")
            elif name in MARKS and not isinstance(schema[name], MARKS[name]):
                self.fault(where, f"{name} is to be {MARKS[name].__name__}")
        if "$ref" in schema:
            self.reference(where, {"$ref": schema["$ref"]}, "#/components/schemas/")
            if more := set(schema) - BESIDE_REF:
                self.fault(where, f"{', '.join(sorted(more))} beside $ref: draft 7 passes over it; use allOf")
        self.words(where, schema)
        for inside, inner in below(schema):
            self.schema(f"{where}.{inside}", inner)

    def words(self, where: str, schema: Node) -> None:
        words = schema.get("enum", [])
        if schema.get("type") == "string" and not all(isinstance(word, str) for word in [*words, schema.get("const", "")]):
            self.fault(where, "enum and const of a text are texts; put them in quotes")
        if len({repr(word) for word in words}) != len(words):
            self.fault(where, "a word of enum is there twice")
        if unknown := set(schema.get("x-values", {})) - set(words):
            self.fault(where, f"x-values has {', '.join(sorted(unknown))}, which enum has not")
        if "properties" in schema and schema.get("type") == "object":
            names = schema.get("required", []) + schema.get("x-unless-dry-run", [])
            if unknown := set(names) - set(schema["properties"]):
                self.fault(where, f"{', '.join(sorted(unknown))} is required and no member")
            order = [name for name in schema["properties"] if name in schema.get("required", [])]
            if order != schema.get("required", order):
                self.fault(where, "required names the members in another order than properties")

    def unused(self) -> None:
        for kind, nodes in self.document.get("components", {}).items():
            for name in nodes:
                if f"#/components/{kind}/{name}" not in self.named:
                    self.fault(f"components.{kind}.{name}", "nothing names it")


def below(schema: Node) -> Iterator[tuple[str, Any]]:
    """The schemas in a schema."""
    for name in ("items", "propertyNames", "not", "if", "then", "else"):
        if name in schema:
            yield name, schema[name]
    if isinstance(schema.get("additionalProperties"), dict):
        yield "additionalProperties", schema["additionalProperties"]
    for name in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(name, [])):
            yield f"{name}[{index}]", inner
    for name, inner in schema.get("properties", {}).items():
        yield f"properties.{name}", inner


# What others ask of it


class Contract:
    """The document, and ways through it."""

    def __init__(self, document: Node) -> None:
        self.document = document

    @classmethod
    def of(cls, path: Path = PAGE) -> "Contract":
        """- Raises: `ContractError` with all that is wrong."""
        document = load(path)
        if faults := Check(document).run():
            raise ContractError("\n".join(faults))
        return cls(document)

    @property
    def schemas(self) -> dict[str, Node]:
        return self.document["components"]["schemas"]

    @property
    def messages(self) -> dict[str, Node]:
        return self.document["components"]["messages"]

    def named(self, node: Node) -> str:
        """The last part of a $ref."""
        return node["$ref"].rpartition("/")[2]

    def of_channel(self, channel: str) -> list[str]:
        return [self.named(message) for message in self.document["channels"][channel]["messages"].values()]

    @property
    def commands(self) -> dict[str, Node]:
        return self.on("commands")

    @property
    def events(self) -> dict[str, Node]:
        return self.on("events")

    def on(self, kind: str) -> dict[str, Node]:
        channels = [name for name in self.document["channels"] if name.endswith(f".{kind}")]
        return {name: self.messages[name] for channel in channels for name in self.of_channel(channel)}

    def type_of(self, message: Node) -> str | None:
        """The CloudEvents type."""
        return self.const(message.get("payload"), "type")

    def const(self, schema: Any, member: str) -> str | None:
        schema = follow(self.document, schema) or {}
        own = follow(self.document, schema.get("properties", {}).get(member, {}))
        found = [own.get("const")] + [self.const(inner, member) for inner in schema.get("allOf", [])]
        return next((one for one in found if one is not None), None)

    def data_of(self, message: Node) -> str:
        """The name of the schema of `data`."""
        parts = message["payload"]["allOf"]
        return next(self.named(part["properties"]["data"]) for part in parts if "data" in part.get("properties", {}))

    def reply_of(self, command: str) -> str | None:
        """The message that answers a command; None for what nobody is answered."""
        reply = self.document["operations"][command].get("reply")
        return self.named(reply["messages"][0]) if reply else None

    def results_of(self, reply: str | None) -> dict[str, str]:
        """The results of a reply, with the status that they come with where there are several."""
        found: dict[str, str] = {}

        def look(schema: Any, status: str) -> None:
            result = schema.get("properties", {}).get("result", {})
            if "$ref" in result:
                found[self.named(result)] = status
            condition = schema.get("if", {}).get("properties", {}).get("status", {}).get("const", "")
            for key, inner in below(schema):
                look(inner, condition if key == "then" else status)

        look(self.messages[reply]["payload"] if reply else {}, "")
        return found

    def reply_by_type(self, kind: str) -> str:
        """The message that answers commands of a CloudEvents type."""
        for name, message in self.commands.items():
            if message["name"] == kind:
                return self.reply_of(name) or "reply"
        return "reply"

    def payload(self, message: str) -> Node:
        """A schema of its own, with all that it names."""
        return {"components": self.document["components"], "$ref": f"#/components/messages/{message}/payload"}

    def schema(self, name: str) -> Node:
        return {"components": self.document["components"], "$ref": f"#/components/schemas/{name}"}


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    try:
        Contract.of(path)
    except ContractError as problem:
        print("\n".join(f"{path}: {line}" for line in str(problem).splitlines()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
