# SPDX-License-Identifier: Apache-2.0
"""The pages of reference, written from docs/asyncapi.yaml: one for the envelope, topics and the forms that several services
have, and one for each service. Run by scripts/generate."""

import json
import re
from collections.abc import Iterator
from typing import Any

from contract import Contract, below
from forms import Forms, capital, escape, slug

SHARED = "docs/reference.md"
MARK = "<!-- Written by scripts/generate from asyncapi.yaml. -->"


def pages(contract: Contract) -> dict[str, str]:
    return Pages(contract).all()


class Pages(Forms):
    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.schemas = contract.schemas
        channels = contract.document["channels"]
        self.services = [name.removesuffix(".commands") for name in channels if name.endswith(".commands")]
        self.homes = self.find_homes()

    def path(self, home: str) -> str:
        return f"docs/reference/{home}.md" if home else SHARED

    def find_homes(self) -> dict[str, str]:
        """The service on whose page a form stands, or '' where several have it, or none has."""
        users: dict[str, set[str]] = {name: set() for name in self.contract.schemas}
        for service in self.services:
            for kind in ("commands", "events"):
                for name in self.contract.of_channel(f"{service}.{kind}"):
                    self.spread(self.contract.messages[name]["payload"], service, users)
            for name in self.contract.of_channel(f"{service}.commands"):
                if reply := self.contract.reply_of(name):
                    self.spread(self.contract.messages[reply]["payload"], service, users)
        return {name: next(iter(found)) if len(found) == 1 else "" for name, found in users.items()}

    def spread(self, schema: Any, service: str, users: dict[str, set[str]]) -> None:
        if "$ref" in schema:
            name = self.contract.named(schema)
            if service not in users[name]:
                users[name].add(service)
                self.spread(self.contract.schemas[name], service, users)
        for _, inner in below(schema):
            self.spread(inner, service, users)

    def all(self) -> dict[str, str]:
        found = {SHARED: "\n".join([*self.shared(), ""])}
        for service in self.services:
            found[self.path(service)] = "\n".join([*self.service(service), ""])
        return {path: with_links(text, "../" * (path.count("/") - 1)) for path, text in found.items()}

    # Pages

    def service(self, service: str) -> Iterator[str]:
        channels = self.contract.document["channels"]
        yield from (f"# Messages of the {service} service", "", MARK, "")
        words = channels[f"{service}.commands"]["description"].partition(". ")[0]
        yield f"{words}. Rules are on [{service}.md](../{service}.md)."
        yield "The envelope, and forms that several services have, are on [reference.md](../reference.md)."
        commands = self.contract.of_channel(f"{service}.commands")
        events = [name for name in self.contract.of_channel(f"{service}.events") if name != "noted"]
        yield from ("", "## Commands", "")
        yield f"On `{channels[f'{service}.commands']['address']}`, or `{channels[f'{service}.commands']['x-also']}`."
        for name in commands:
            yield from self.message(name, service)
        yield from ("", "## Events", "", f"On `{channels[f'{service}.events']['address']}`.")
        for name in events:
            yield from self.message(name, service)
        yield from ("", "## Forms")
        yield from self.forms(service, commands + events)

    def shared(self) -> Iterator[str]:
        document = self.contract.document
        yield from ("# Reference", "", MARK, "", document["info"]["description"], "", "Messages: " + ", ".join(
            f"[{service}](reference/{service}.md)" for service in self.services)
            + ". As a document for tools: [asyncapi.yaml](asyncapi.yaml). Over HTTP: [calls](reference/http.md), "
            "[those of the admin port](reference/http-admin.md), [types of problems](reference/problems.md).")
        yield from ("", "## Topics", "", "| topic | what stands on it |", "|---|---|")
        for channel in document["channels"].values():
            names = [channel["address"]] if channel["address"] else list(channel["x-topics"])
            names += [channel["x-also"]] if "x-also" in channel else []
            names = [re.sub(r"\{(\w+)\}", r"<\1>", name) for name in names]
            yield f"| {', '.join(f'`{name}`' for name in names)} | {channel['title']}. {escape(channel['description'])} |"
        yield from ("", "## Scopes", "", "| scope | what it opens |", "|---|---|")
        for scope, words in document["x-scopes"].items():
            yield f"| `{scope}` | {escape(words)} |"
        yield from ("", "## Notes, status, dead letters")
        for name in ("noted", "status", "dlq.handling"):
            yield from self.message(name, "")
        yield from ("", "### Dead letters", "")
        yield from self.table(self.contract.schemas["DeadLetterHeaders"], "")
        yield from ("", "## Forms")
        yield from self.forms("", ["noted", "status", "dlq.handling"])

    # Their parts

    def forms(self, home: str, messages: list[str]) -> Iterator[str]:
        """What has not been told with one of these messages."""
        told = {data for data in (self.contract.data_of(self.contract.messages[name]) for name in messages)
                if self.homes[data] == home and not self.is_used_twice(data)}
        for name, there in self.homes.items():
            if there == home and name not in told and not self.is_short(name) and not self.is_around(name):
                yield from self.form(name, home)

    def message(self, name: str, home: str) -> Iterator[str]:
        message = self.contract.messages[name]
        data = self.contract.data_of(message)
        is_command = name in self.contract.commands
        yield from ("", f"### {name.replace('.event', ', event')}", "")
        schema = self.contract.schemas[data]
        if words := message.get("summary", schema.get("description")):
            yield from (words, "")
        said = [f"Type `{message['name']}`."]
        if is_command:
            scopes = " or ".join(f"`{message[key]}`" for key in ("x-scope", "x-or-scope") if key in message)
            said.append(f"Scope {scopes}.")
        if subject := message.get("x-partition-subject"):
            said.append(f"Key `<app>/` and {of_subject(subject)}.")
        if is_command:
            reply = self.contract.reply_of(name)
            said.append(f"Answer: {self.answer(reply, home)}." if reply else "Nobody is answered.")
        yield from (" ".join(said), "")
        if self.homes[data] != home:
            yield f"Data: {self.link(data, home)}."
        elif self.is_used_twice(data):
            yield f"Data: {self.link(data, home)}, below."
        else:
            yield from self.table(schema, home)
        yield from self.whole(name, "Whole, with its headers:")

    def whole(self, name: str, words: str) -> Iterator[str]:
        """The examples of a message, such as the reply that has a form as its result."""
        for shown in self.contract.messages.get(name, {}).get("examples", []):
            yield from ("", words, "", "```text")
            yield from (f"{header}: {value}" for header, value in shown["headers"].items())
            yield from ("", json.dumps(shown["payload"], ensure_ascii=False), "```")

    def is_used_twice(self, data: str) -> bool:
        messages = [*self.contract.commands.values(), *self.contract.events.values()]
        return sum(self.contract.data_of(message) == data for message in messages) > 1

    def answer(self, reply: str, home: str) -> str:
        """The results of a reply, with the status that they come with where there are several."""
        return " or, ".join(
            (f"where it is `{status}`, " if status else "") + self.link(name, home)
            for name, status in sorted(self.contract.results_of(reply).items(), key=lambda one: one[1]))

    def form(self, name: str, home: str) -> Iterator[str]:
        schema = self.contract.schemas[name]
        yield from ("", f"### {name}", "")
        if "description" in schema:
            yield from (schema["description"], "")
        if "properties" in schema:
            yield from self.table(schema, home)
            yield from self.whole(f"reply.{name}", "As a reply, with its headers:")
        elif "enum" in schema and schema.get("x-values"):
            yield from ("| word | |", "|---|---|")
            for word in schema["enum"]:
                yield f"| `{word}` | {escape(schema['x-values'].get(word, ''))} |"
        else:
            yield capital(self.kind({key: value for key, value in schema.items() if key != "description"}, home)) + "."

    def is_around(self, name: str) -> bool:
        """What stands around all data is told once: the envelope, and headers."""
        parts = self.contract.schemas[name].get("allOf", [])
        return name.endswith("Headers") or any(part.get("$ref", "").endswith("/Envelope") for part in parts)

    def link(self, name: str, home: str) -> str:
        there = self.homes[name]
        folder = "" if home else "reference/"
        place = "" if there == home else f"{folder}{there}.md" if there else "../reference.md"
        heading = name
        # Data that stands with its only message.
        if not self.is_used_twice(name):
            for key, message in [*self.contract.commands.items(), *self.contract.events.items()]:
                if self.contract.data_of(message) == name:
                    heading = key.replace(".event", ", event")
        return f"[{name}]({place}#{slug(heading)})"

def with_links(text: str, up: str) -> str:
    """Pages, and parts of pages, that the document names."""
    text = re.sub(
        r'(?<![\w/.])(?:docs/)?(\w+)\.md,? "([^"]+)"', lambda found: f"[{found[2]}]({up}{found[1]}.md#{slug(found[2])})", text)
    return re.sub(r"(?<![\w/.-])(?<!\]\()(?:docs/)?(\w+)\.md(?!\])", rf"[\1.md]({up}\1.md)", text)


def of_subject(paths: list[str]) -> str:
    """`[externalId, userId]` is the first of these that is there."""
    told = []
    for path in paths:
        if path.startswith("="):
            told.append(f"the word `{path[1:]}`")
        elif path == "{identities}":
            told.append("the value of `identities` whose type stands first")
        elif match := re.fullmatch(r"(\w+)\[(-1|0|\*)\](?:\.(\w+))?", path):
            of = f"`{match[3]}` of " if match[3] else ""
            told.append(f"{of}the {'last' if match[2] == '-1' else 'first'} of `{match[1]}`" + (" that has one" if of else ""))
        else:
            told.append(f"`{path}`")
    return told[0] if len(told) == 1 else f"the first that is there of {', '.join(told)}"
