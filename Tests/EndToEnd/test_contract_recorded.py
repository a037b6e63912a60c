# SPDX-License-Identifier: Apache-2.0
"""What four services take, refuse and write is what docs/asyncapi.yaml says. Every command is sent: in a story, as the example
of the page, and with one thing after the other changed. Then all topics are read, and every record is validated."""

import copy
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from identitybus_testkit import apps
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.bus import Record
from identitybus_testkit.commands import fresh
from identitybus_testkit.contract import CONTRACT, message_of, problems, subject_of
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.story import APP, PLAIN, Story, command, recorded_app
from identitybus_testkit.waiting import until

import contract

# Why a service does not take what a command says, whatever is known.
REFUSED = {"INVALID_REQUEST", "VALIDATION_ERROR"}


@pytest.fixture(scope="module")
def platform(make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment("sqlite", services=SERVICES)
    apps.write(deployment.apps_file, [recorded_app(APP), recorded_app(PLAIN)])
    started = [deployment.service(name, ALIAS_DELAY="0").start() for name in SERVICES]
    for service in started:
        service.wait_ready()
    return deployment


# One thing changed


def paths(schema: Any, value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Where in the value what of the schema stands: two levels below `data`, and no further into lists that are imported."""
    schema = contract.follow(CONTRACT.document, schema) or {}
    yield path, schema
    if "x-elements" in schema or len(path) > 2:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in schema.get("properties", {}):
                yield from paths(schema["properties"][name], inner, (*path, name))
    elif isinstance(value, list) and value and "items" in schema:
        yield from paths(schema["items"], value[0], (*path, 0))


def changed(data: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else in this place; `...` takes it out."""
    if not path:
        return new
    copied = copy.deepcopy(data)
    node = copied
    for part in path[:-1]:
        node = node[part]
    if new is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = new
    return copied


def longest(schema: dict[str, Any]) -> int | None:
    schema = contract.follow(CONTRACT.document, schema) or {}
    found = [schema.get("maxLength"), *(longest(inner) for inner in schema.get("allOf", []))]
    return min((one for one in found if one is not None), default=None)


def changes(kind: str) -> Iterator[tuple[str, Any]]:
    """What is done to the example of a command, and what comes of it."""
    name = CONTRACT.data_of(CONTRACT.commands[kind])
    data = CONTRACT.schemas[name]["examples"][0]
    for what, new in changes_of(name, data):
        # The same request again has to be the same.
        is_new = kind == "sync.file-request" and isinstance(new, dict) and new.get("requestId") == data["requestId"]
        yield what, {**new, "requestId": str(uuid.uuid4())} if is_new else new


def changes_of(name: str, data: Any) -> Iterator[tuple[str, Any]]:
    yield "as it is", data
    for path, schema in paths({"$ref": f"#/components/schemas/{name}"}, data):
        where = ".".join(map(str, path))
        value = data
        for part in path:
            value = value[part]
        if isinstance(value, dict) and "additionalProperties" not in schema or schema.get("additionalProperties") is False:
            yield f"{where} and noSuchMember", changed(data, path, {**value, "noSuchMember": 1})
        if path and isinstance(path[-1], str):
            yield f"without {where}", changed(data, path, ...)
        if path:
            yield f"{where} is a list in a list", changed(data, path, [[]])
            yield f"{where} is null", changed(data, path, None)
        if isinstance(value, str):
            yield f"{where} is a number", changed(data, path, 7)
            yield f"{where} is empty", changed(data, path, "")
            yield f"{where} has a control character", changed(data, path, "a\nb")
            yield f"{where} has one at its end", changed(data, path, "a\n")
            if limit := longest(schema):
                yield f"{where} is as long as can be", changed(data, path, "7" * limit)
                yield f"{where} is too long", changed(data, path, "7" * (limit + 1))
        if isinstance(value, list) and "maxItems" in schema:
            yield f"{where} has too many", changed(data, path, value[:1] * (schema["maxItems"] + 1))
            yield f"{where} has none", changed(data, path, [])


# What is wrong in a list that is imported is told of that element, and does not refuse the command.
LISTS = {"link.import-users", "sync.import-profiles"}


def judged(kind: str, what: str, data: Any) -> Any:
    """What the page is asked about: a member that is null is as good as none, as its head says."""
    if not what.endswith(" is null") or not isinstance(data, dict):
        return data
    return without_nulls(data, CONTRACT.schemas[CONTRACT.data_of(CONTRACT.commands[kind])])


def without_nulls(value: Any, schema: Any) -> Any:
    schema = contract.follow(CONTRACT.document, schema) or {}
    if isinstance(value, dict) and "properties" in schema:
        return {name: without_nulls(inner, schema["properties"].get(name, {}))
                for name, inner in value.items() if inner is not None}
    return [without_nulls(inner, schema.get("items", {})) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def story(platform: Deployment) -> Story:
    story = Story(platform)
    for part in (story.users, story.links, story.profiles, story.sessions, story.attributes, story.crowd):
        part()
    return story


def test_services_refuse_what_the_page_refuses(platform: Deployment, story: Story) -> None:
    bus = platform.bus
    sent = [(kind, what, command(kind, data, PLAIN)) for kind in CONTRACT.commands for what, data in changes(kind)]
    bus.send_all([one for _, _, one in sent])
    wait_until_quiet(platform, 180)
    bus.collector.catch_up(60)
    wrong: list[str] = []
    for kind, what, one in sent:
        replies = [record.data for record in bus.collector.replies.get(one.id, [])]
        # Nobody is answered about what a service sends to itself.
        assert replies or not CONTRACT.reply_of(kind) or kind == "sync.keep-erased", (kind, what)
        refused = any(reply["status"] == "rejected" and reply["reason"] in REFUSED and "is not the next of an answer"
                      not in reply["message"] for reply in replies)
        said = problems(kind, {**one.envelope(), "data": judged(kind, what, one.data)})
        is_told_apart = kind in LISTS and what.endswith(" is a list in a list")
        if bool(said) != refused and not is_told_apart:
            wrong.append(f"{kind}, {what}: the page {said or 'takes it'}, the service {replies}"[:700])
    assert len(sent) > 500
    assert not wrong, "\n".join([f"{len(wrong)} of {len(sent)}", *wrong])


# For members of which there has to be one, or one and not the other.
SAMPLES: dict[str, Any] = {
    "userId": "u", "externalId": "x", "installId": "i", "mpid": "7", "otherMPID": "8", "authCode": "x", "appSecret": "x",
    "linking": "linker", "identity": {"type": "email", "value": "a@b.io"}, "identities": {"email": "a@b.io"},
    "userEmail": "a@b.io"}


@pytest.mark.parametrize("kind", [
    kind for kind, message in CONTRACT.commands.items() if "x-refusal" in CONTRACT.schemas[CONTRACT.data_of(message)]])
def test_a_choice_is_refused_in_the_words_of_the_page(platform: Deployment, story: Story, kind: str) -> None:
    schema = CONTRACT.schemas[CONTRACT.data_of(CONTRACT.commands[kind])]
    sets = [one["required"] for key in ("oneOf", "anyOf") for one in schema.get(key, [])]
    names = {name for one in sets for name in one}
    rest = {name: value for name, value in schema["examples"][0].items() if name not in names | {"after", "everyHolder"}}
    good = [{name: SAMPLES[name] for name in one} for one in sets]
    both = {name: SAMPLES[name] for name in names}
    for choice, is_good in [({}, False), (both, "anyOf" in schema), *((one, True) for one in good)]:
        one = command(kind, {**rest, **choice})
        reply = platform.bus.ask(one)
        assert (reply.get("message") != schema["x-refusal"]) == is_good, (choice, reply)
        assert bool(problems(kind, one.envelope())) != is_good, choice


@pytest.mark.parametrize(("attributes", "is_read"), [
    ({}, True), ({"id": ...}, False), ({"id": ""}, False), ({"id": "x" * 255}, True), ({"id": "x" * 256}, False),
    ({"source": ...}, False), ({"type": ...}, False), ({"appid": ...}, False), ({"specversion": "1.1"}, False),
    ({"specversion": 1.0}, False), ({"time": "yesterday"}, False), ({"time": "2030-01-31t12:00:00.5+01:00"}, True),
    ({"expirytime": "2030-01-31"}, False), ({"subject": "x" * 3000}, True), ({"subject": "x" * 3001}, False),
    ({"replykey": "x" * 4000}, True), ({"replykey": "x" * 4001}, False), ({"partitionkey": "a\nb"}, False),
    ({"tracestate": "x" * 512}, True), ({"tracestate": "x" * 513}, False), ({"traceparent": 7}, False),
    ({"data_base64": "e30="}, False), ({"nosuchattribute": 7}, True), ({"dryrun": True}, True), ({"dryrun": "false"}, True),
])
def test_an_envelope_that_is_read_or_put_aside(
    platform: Deployment, story: Story, attributes: dict[str, Any], is_read: bool
) -> None:
    bus = platform.bus
    one = command("link.query", {"installId": fresh("i")}, **attributes)
    one = one.but(id=fresh("id")) if "id" not in attributes else one
    assert bool(problems("link.query", one.envelope())) != is_read
    value, headers = bus.signed(one)
    place = bus.put(value, headers, one.key, topic=bus.topic("link"))
    if is_read:
        assert bus.reply(attributes.get("id", one.id))["status"] in ("succeeded", "rejected")
    else:
        assert (bus.dead_letter(place).header("dlq_step") or b"").decode() == "decode"


def everything(platform: Deployment, ending: str = "") -> list[Record]:
    """All that stands on the deployment's topics, or on those with such a name."""
    known = AdminClient(platform.broker.client()).list_topics(timeout=30).topics
    places = [(topic, partition) for topic, one in known.items() if topic.startswith(platform.prefix) and topic.endswith(ending)
              for partition in one.partitions]
    consumer = Consumer(platform.broker.client(**{
        "group.id": "e2e-contract", "enable.auto.commit": False, "fetch.message.max.bytes": 4_000_000, "log_level": 2}))
    ends = {place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=30)[1] for place in places}
    left = {place: end for place, end in ends.items() if end > 0}
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in left])
    found: list[Record] = []
    while left:
        message = consumer.poll(30)
        assert message is not None and message.error() is None, (message and message.error(), left)
        record = Record.of(message)
        found.append(record)
        if record.offset + 1 >= left.get((record.topic, record.partition), 0):
            left.pop((record.topic, record.partition), None)
    consumer.close()
    return found


# Not seen here: what takes days or a limit, and operators who handle dead letters.
UNSEEN = {
    "dlq.handling", "sync.value-too-common", "sync.profile-joined", "sync.profile-expired", "sync.device-expired",
    "verification.session-expired",
}


def test_every_record_is_what_the_page_says(platform: Deployment, story: Story) -> None:
    wait_until_quiet(platform)
    until(lambda: everything(platform, "identity.status.v1"), 40, "a status")
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for record in everything(platform):
        topic = record.topic.removeprefix(platform.prefix)
        headers = {key: (value or b"").decode() for key, value in record.headers}
        if topic.endswith(".dlq.v1"):
            seen["dead-letter"] += 1
            wrong += problems("DeadLetterHeaders", headers, "schema")
            continue
        envelope = json.loads(record.value or b"")
        name = message_of(topic, envelope)
        ours = not str(envelope.get("source")).startswith("identitybus/")
        if not name or ours and problems(name, envelope):
            # What the test wrote wrong, on purpose.
            assert ours and ".commands.v1" in topic, envelope
            continue
        seen[name] += 1
        signed = "UnsignedHeaders" if name == "status" else "SignedHeaders"
        said = problems(name, envelope) + problems(signed, headers, "schema")
        if not ours and ".events.v1" in topic:
            if envelope.get("subject") != subject_of(name, envelope["data"]):
                said.append(f"x-partition-subject is {subject_of(name, envelope['data'])}")
            if record.key != f"{envelope['appid']}/{envelope['subject']}".encode():
                said.append(f"the key is {record.key!r}")
        if not ours and name in CONTRACT.commands:
            subject = subject_of(name, envelope["data"])
            if envelope.get("subject", subject) != subject or not (record.key or b"").endswith(f"/{subject}".encode()):
                said.append(f"x-partition-subject is {subject}, and the key {record.key!r}")
        if said:
            wrong.append(f"{name}: {said} {envelope}"[:900])
    assert not wrong, "\n".join([f"{len(wrong)} of {seen.total()}", *wrong[:20]])
    assert seen.total() > 500
    assert set(CONTRACT.messages) - set(seen) == UNSEEN, " ".join(sorted((set(CONTRACT.messages) - set(seen)) ^ UNSEEN))
