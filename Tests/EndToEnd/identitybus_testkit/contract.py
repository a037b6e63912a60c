# SPDX-License-Identifier: Apache-2.0
"""docs/asyncapi.yaml as a stranger uses it: by PyPI's jsonschema, as draft 7 and as 2020-12, which have to agree."""

import sys
from functools import cache
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator

from .places import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from contract import Contract  # noqa: E402

CONTRACT = Contract.of()
# Two messages may have one type on two channels: `user.reset` is a command, and the event that tells of it.
BY_TYPE = {
    kind: {message["name"]: name for name, message in messages.items()}
    for kind, messages in (("commands", CONTRACT.commands), ("events", CONTRACT.events))}
OTHERS = {message["name"]: name for name, message in CONTRACT.messages.items() if name in ("status", "dlq.handling")}


@cache
def validators(kind: str, name: str) -> tuple[Any, Any]:
    schema = CONTRACT.payload(name) if kind == "message" else CONTRACT.schema(name)
    return Draft202012Validator(schema), Draft7Validator(schema)


def problems(name: str, value: Any, kind: str = "message") -> list[str]:
    """Why the value is no such message, or (`kind` is `schema`) not of such a form."""
    now, old = (
        [f"{error.json_path}: {error.message[:300]}" for error in one.iter_errors(value)] for one in validators(kind, name))
    assert bool(now) == bool(old), f"draft 7 and 2020-12 do not agree about {name}: {now} {old}"
    return now


def message_of(topic: str, envelope: dict[str, Any]) -> str:
    """The message that an envelope is to be, by its type and the kind of its topic; '' for none."""
    kind = envelope.get("type", "")
    if kind == "identity.reply.v1":
        return CONTRACT.reply_by_type(envelope["data"]["commandType"])
    if ".commands.v1" in topic:
        # In a dry run of several services an event is tried on a commands topic.
        return BY_TYPE["commands"].get(kind) or BY_TYPE["events"].get(kind, "")
    if topic.endswith(".events.v1"):
        return BY_TYPE["events"].get(kind, "")
    return OTHERS.get(kind, "")


def subject_of(name: str, data: Any) -> str | None:
    """What `x-partition-subject` of a message says of this data."""
    for path in CONTRACT.messages[name].get("x-partition-subject", []):
        if path.startswith("="):
            return path[1:]
        value = look(data, path)
        if value is not None:
            return str(value)
    return None


def look(data: Any, path: str) -> Any:
    if path == "{identities}":
        # Of the type that stands first in the order of their names.
        identities = data.get("identities")
        return identities[min(identities)] if isinstance(identities, dict) and identities else None
    for part in path.split("."):
        name, _, index = part.partition("[")
        data = data.get(name) if isinstance(data, dict) else None
        if index and isinstance(data, list):
            place = index.rstrip("]")
            if place == "*":
                rest = path.partition("[*].")[2]
                return next((one[rest] for one in data if isinstance(one, dict) and rest in one), None)
            data = data[int(place)] if data else None
        elif index:
            return None
    return data
