# SPDX-License-Identifier: Apache-2.0
"""Guarantee 4: bad input gets a named reason, never a crash, never silence, and never blocks what is behind it.
Guarantee 5: no secret comes out (the collector looks at every record, the deployment at every log when it ends)."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.secrets import Headers, assert_no_secrets_in_files, leaks, signature

# What must come back byte for byte.
ODD_HEADERS: Headers = [
    ("x-empty", b""), ("x-null", None), ("x-twice", b"1"), ("x-bytes", b"\xff\x00\r\n"), ("x-twice", b"2"),
]
DLQ_HEADERS = [
    "dlq_reason", "dlq_step", "dlq_timestamp", "dlq_error", "dlq_attempts", "dlq_original_topic",
    "dlq_original_partition", "dlq_original_offset", "dlq_original_timestamp", "dlq_group",
]
STRUCTURED = ("content-type", b"application/cloudevents+json")


@pytest.fixture
def bus(link: Deployment) -> Bus:
    return link.bus


def good() -> Command:
    return c.request(fresh("install"), fresh("ext"))


def check_behind(bus: Bus, partition: int) -> None:
    """A good command behind the bad record, on the same partition, is answered."""
    command = c.register(fresh("install"))
    bus.send(command, partition=partition)
    assert bus.reply(command.id)["status"] == "succeeded"


def check_dead_letter(
    bus: Bus, place: tuple[int, int], reason: str, step: str, value: bytes | None, headers: Headers, key: bytes | None
) -> None:
    letter = bus.dead_letter(place)
    text = lambda name: (letter.header(name) or b"").decode()
    assert (text("dlq_reason"), text("dlq_step")) == (reason, step), text("dlq_error")
    assert letter.value == value and letter.key == key
    count = len(headers)
    assert letter.headers[:count] == headers, "the original headers, in their order"
    assert [name for name, _ in letter.headers[count:]] == DLQ_HEADERS
    assert text("dlq_original_topic") == bus.commands
    assert (int(text("dlq_original_partition")), int(text("dlq_original_offset"))) == place
    assert text("dlq_group") == f"{bus.prefix}identity.link"
    assert text("dlq_attempts") == "1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text("dlq_timestamp"))
    assert int(text("dlq_original_timestamp")) > 1_600_000_000_000
    assert 0 < len(text("dlq_error")) <= 8192 and "\n" not in text("dlq_error")


def check_refused(
    bus: Bus, reason: str, step: str, value: bytes | None, headers: Headers, key: bytes | None = b"a key"
) -> None:
    place = bus.put(value, headers, key)
    check_dead_letter(bus, place, reason, step, value, headers, key)
    check_behind(bus, place[0])


# Values that are no envelope


def nested(depth: int) -> bytes:
    return json.dumps(c.request("i", "e").envelope() | {"data": 0}).encode().replace(
        b'"data": 0', b'"data": ' + b"[" * depth + b"]" * depth)


def envelope_text(**changes: Any) -> bytes:
    return json.dumps({**good().envelope(), **changes}).encode()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"\xff\xfe", "NOT_UTF8", id="not UTF-8"),
        pytest.param(envelope_text(id="@").replace(b"@", b"\xc3\x28"), "NOT_UTF8", id="not UTF-8 in a string"),
        pytest.param(envelope_text(id="@").replace(b"@", b"\xed\xa0\x80"), "NOT_UTF8", id="a surrogate in UTF-8"),
        pytest.param(b"not json", "NOT_JSON", id="not JSON"),
        pytest.param(b"{", "NOT_JSON", id="cut off"),
        pytest.param(envelope_text() + b" x", "NOT_JSON", id="more behind"),
        pytest.param(b" ", "NOT_JSON", id="white space"),
        pytest.param(b"{'id': 1}", "NOT_JSON", id="single quotes"),
        pytest.param(envelope_text(data=float("nan")), "NOT_JSON", id="NaN"),
        pytest.param(b"\x00" * 100, "NOT_JSON", id="zero bytes"),
        pytest.param(nested(100), "TOO_DEEP", id="depth 100"),
        pytest.param(nested(100_000), "TOO_DEEP", id="depth 100,000"),
        pytest.param(b"[" * 200_000, "TOO_DEEP", id="200,000 open brackets"),
        pytest.param(envelope_text(data="x" * 1_000_000), "TOO_LARGE", id="1 MB"),
        pytest.param(b"x" * (256 * 1024 + 1), "TOO_LARGE", id="256 KiB and a byte"),
        pytest.param(b"[]", "INVALID_ENVELOPE", id="an array"),
        pytest.param(b"7", "INVALID_ENVELOPE", id="a number"),
        pytest.param(b"null", "INVALID_ENVELOPE", id="null"),
        pytest.param(b'"text"', "INVALID_ENVELOPE", id="a string"),
        pytest.param(b'{"id":"1","id":"1"}', "DUPLICATE_MEMBER", id="an attribute twice"),
        pytest.param(b'{"id":"1","\\u0069d":"1"}', "DUPLICATE_MEMBER", id="an attribute twice, once escaped"),
        pytest.param(
            envelope_text(data=0).replace(b'"data": 0', b'"data": {"a": {"b": 1, "b": 2}}'), "DUPLICATE_MEMBER",
            id="a member of the data twice"),
        pytest.param(envelope_text(data_base64="e30="), "INVALID_ENVELOPE", id="data_base64"),
        pytest.param(b"{}", "MISSING_ATTRIBUTE", id="an empty object"),
        pytest.param(None, "EMPTY_VALUE", id="tombstone"),
    ])
def test_guarantee_4_a_value_that_is_no_envelope(bus: Bus, value: bytes | None, reason: str) -> None:
    headers: Headers = [STRUCTURED, ("signature", signature("demo-backend", bus.commands, [], value or b""))]
    check_refused(bus, reason, "decode", value, headers + ODD_HEADERS)


def test_guarantee_4_an_empty_value_is_not_a_tombstone_in_the_dead_letter(bus: Bus) -> None:
    place = bus.put(b"", [STRUCTURED])
    letter = bus.dead_letter(place)
    assert letter.header("dlq_reason") == b"NOT_JSON"
    assert letter.value == b"" and letter.key is None
    check_behind(bus, place[0])


def test_contracts_256_kib_and_depth_32_are_within_the_limits(bus: Bus) -> None:
    command = c.query(fresh("install"))
    value, _ = command.structured()
    padded = command.but(data=command.data | {"pad": "x" * (256 * 1024 - len(value) - len(', "pad": ""'))})
    assert len(padded.structured()[0]) == 256 * 1024
    assert bus.ask(padded)["reason"] == "INSTALL_NOT_FOUND"
    deep: Any = 1
    for _ in range(29):
        deep = [deep]
    assert bus.ask(command.again().but(data=command.data | {"deep": deep}))["reason"] == "INSTALL_NOT_FOUND"


# Attributes


def check_attributes(bus: Bus, reason: str, mode: str = "structured", **attributes: Any) -> None:
    command = good().but(attributes=attributes)
    value, headers = bus.signed(command, mode)
    check_refused(bus, reason, "decode", value, headers + ODD_HEADERS, command.key)


REQUIRED = ["specversion", "id", "source", "type", "appid"]


@pytest.mark.parametrize("mode", ["structured", "binary"])
@pytest.mark.parametrize("name", REQUIRED)
def test_contracts_a_missing_attribute(bus: Bus, name: str, mode: str) -> None:
    if mode == "binary" and name == "specversion":
        # Without ce_specversion it is not binary mode, and the value is no envelope.
        return check_attributes(bus, "MISSING_ATTRIBUTE", mode, specversion=...)
    check_attributes(bus, "MISSING_ATTRIBUTE", mode, **{name: ...})


@pytest.mark.parametrize("mode", ["structured", "binary"])
@pytest.mark.parametrize("name", REQUIRED)
def test_contracts_an_empty_attribute(bus: Bus, name: str, mode: str) -> None:
    check_attributes(bus, "MISSING_ATTRIBUTE", mode, **{name: ""})


@pytest.mark.parametrize("name", [*REQUIRED, "subject", "time", "replyto", "expirytime", "traceparent", "authid"])
@pytest.mark.parametrize("value", [7, True, ["x"], {"x": 1}], ids=str)
def test_contracts_an_attribute_of_a_wrong_type(bus: Bus, name: str, value: Any) -> None:
    check_attributes(bus, "INVALID_ENVELOPE", **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("specversion", "0.3"), ("specversion", "1.1"), ("id", "x" * 256), ("source", "\u00e9" * 128), ("id", "a\nb"),
        ("source", "a\u0000b"), ("type", "x" * 256), ("appid", "a\tb"), ("time", "yesterday"),
        ("time", "2026-02-30T00:00:00Z"), ("expirytime", "2026-01-01"), ("expirytime", ""),
        ("datacontenttype", "text/plain"), ("datacontenttype", "application/xml; x=application/json"),
        ("replyto", "identity.replies." + "x" * 255), ("correlationid", "x" * 256),
    ],
    ids=lambda text: ascii(text)[:30])
def test_contracts_an_attribute_over_a_limit(bus: Bus, name: str, value: str) -> None:
    check_attributes(bus, "INVALID_ENVELOPE", **{name: value})


def test_contracts_a_binary_header_that_is_not_utf8(bus: Bus) -> None:
    value, headers = good().binary()
    headers = [(name, b"\xff" if name == "ce_id" else text) for name, text in headers]
    headers.append(("signature", signature("demo-backend", bus.commands, headers, value)))
    check_refused(bus, "NOT_UTF8", "decode", value, headers)


@pytest.mark.parametrize("type", ["identity.link.request.v2", "identity.user.create.v1", "x", "identity.link.linked.v1"])
def test_contracts_an_unknown_type_is_dead_lettered_and_answered(bus: Bus, type: str) -> None:
    command = good().but(attributes={"type": type})
    value, headers = bus.signed(command)
    check_refused(bus, "UNKNOWN_TYPE", "decode", value, headers + ODD_HEADERS, command.key)
    reply = bus.reply(command.id)
    assert (reply["status"], reply["reason"], reply["commandType"]) == ("rejected", "UNKNOWN_TYPE", type)


@pytest.mark.parametrize("subject", ["a\u0000b", "x" * 10_000, "\ud83d\ude00" * 100])
@pytest.mark.parametrize("name", ["subject", "partitionkey", "traceparent", "tracestate", "correlationid", "extra"])
def test_guarantee_4_an_odd_attribute_that_nobody_forbids(bus: Bus, name: str, subject: str) -> None:
    """Whatever the answer, it comes, and the next command is answered."""
    command = c.register(fresh("install")).but(attributes={name: subject.encode("utf-16", "surrogatepass").decode("utf-16")})
    place = bus.send(command)
    check_behind(bus, place[0])
    found = bus.collector
    found.wait(
        lambda: found.replies.get(command.id) or found.dead_letters.get(place), 10, lambda: "a reply or a dead letter")
    if found.dead_letters.get(place):
        assert bus.dead_letter(place).header("dlq_step") == b"decode", bus.dead_letter(place).headers
    else:
        assert bus.reply(command.id)["status"] == "succeeded"


# Credentials


def with_signature(header: bytes | None) -> Callable[[Bus, bytes, Headers], Headers]:
    return lambda bus, value, headers: headers if header is None else [*headers, ("signature", header)]


def signed_by(key_id: str, **changes: Any) -> Callable[[Bus, bytes, Headers], Headers]:
    def sign(bus: Bus, value: bytes, headers: Headers) -> Headers:
        topic = changes.get("topic", bus.commands)
        code = signature(key_id, topic, headers, changes.get("value", value), changes.get("secret"))
        return [*headers, ("signature", code)]

    return sign


CODE = b"A" * 43 + b"="
CREDENTIALS = [
    pytest.param(with_signature(None), "SIGNATURE_MISSING", id="none"),
    *(
        pytest.param(with_signature(header), "SIGNATURE_MALFORMED", id=f"malformed {header[:30]!r}")
        for header in [
            b"", b"v1", b"v2;kid=demo-backend;" + CODE, b"v1;kid=;" + CODE, b"v1;kid=demo-backend;", b"v1;demo-backend;x",
            b"v1;kid=demo-backend;!!", b"v1;kid=demo-backend;" + CODE[:20], b"v1;kid=demo-backend;" + CODE + b";x",
            b"\xff\xfe", b"v1;kid=" + b"k" * 300 + b";" + CODE, CODE, b"x" * 100_000,
        ]
    ),
    pytest.param(with_signature(b"v1;kid=demo-backend;" + CODE), "SIGNATURE_INVALID", id="another code"),
    pytest.param(signed_by("demo-backend", secret=b"guess-guess"), "SIGNATURE_INVALID", id="another secret"),
    pytest.param(signed_by("demo-backend", topic="identity.link.events.v1"), "SIGNATURE_INVALID", id="another topic"),
    pytest.param(signed_by("demo-backend", value=b"{}"), "SIGNATURE_INVALID", id="another value"),
    pytest.param(signed_by("internal", secret=b"guess-guess-guess"), "SIGNATURE_INVALID", id="internal, guessed"),
    pytest.param(signed_by("no-such-key"), "KEY_UNKNOWN", id="unknown key"),
    pytest.param(signed_by("other-backend"), "KEY_OF_OTHER_APP", id="key of another app"),
    pytest.param(signed_by("demo-expired"), "KEY_EXPIRED", id="expired key"),
    pytest.param(signed_by("demo-revoked"), "KEY_REVOKED", id="revoked key"),
]


@pytest.mark.parametrize(("sign", "reason"), CREDENTIALS)
def test_a_credential_that_does_not_check_out(
    bus: Bus, sign: Callable[[Bus, bytes, Headers], Headers], reason: str
) -> None:
    command = good()
    value, headers = command.structured()
    headers = sign(bus, value, headers) + ODD_HEADERS
    check_refused(bus, reason, "authenticate", value, headers, command.key)
    reply = bus.reply(command.id)
    assert (reply["status"], reply["reason"]) == ("rejected", "UNAUTHENTICATED")
    if reason.startswith("KEY_") and reason not in ("KEY_EXPIRED", "KEY_REVOKED"):
        assert "does not check out" in reply["message"], "whether a key exists is not told"


@pytest.mark.parametrize("signer", ["demo-backend", "internal"])
def test_an_unknown_app(bus: Bus, signer: str) -> None:
    command = good().but(app="no-such-app", signer=signer)
    value, headers = bus.signed(command)
    check_refused(bus, "APP_UNKNOWN", "authenticate", value, headers, command.key)
    assert bus.reply(command.id)["reason"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    "attributes",
    [
        {"authtype": "app_user"}, {"authid": "x"}, {"authtype": "service", "authid": "x"},
        {"authtype": "api_key", "authid": "other-backend"}, {"authtype": "", "authid": ""},
    ],
    ids=str)
def test_a_principal_that_cannot_be_believed(bus: Bus, attributes: dict[str, str]) -> None:
    command = good().but(signer="internal", attributes=attributes)
    value, headers = bus.signed(command)
    check_refused(bus, "PRINCIPAL_INVALID", "authenticate", value, headers, command.key)


def test_the_expired_key_a_gateway_speaks_for(bus: Bus) -> None:
    command = good().but(signer="internal", attributes={"authtype": "api_key", "authid": "demo-expired"})
    value, headers = bus.signed(command)
    check_refused(bus, "KEY_EXPIRED", "authenticate", value, headers, command.key)


@pytest.mark.parametrize("change", ["added", "removed", "changed", "value"])
def test_binary_mode_signs_every_attribute(bus: Bus, change: str) -> None:
    command = good().but(attributes={"subject": "s", "expirytime": "2020-01-01T00:00:00Z"})
    value, headers = bus.signed(command, "binary")
    if change == "added":
        headers.append(("ce_authtype", b"app_user"))
    elif change == "removed":
        headers = [pair for pair in headers if pair[0] != "ce_expirytime"]
    elif change == "changed":
        headers = [(name, b"2099-01-01T00:00:00Z" if name == "ce_expirytime" else text) for name, text in headers]
    else:
        value = value.replace(b"install", b"INSTALL")
    check_refused(bus, "SIGNATURE_INVALID", "authenticate", value, headers, command.key)


def test_a_header_cannot_be_swallowed_by_its_neighbour(bus: Bus) -> None:
    """The signing string joins headers with newlines: a newline inside a header must not give the same string."""
    command = good().but(attributes={"subject": "s", "expirytime": "2020-01-01T00:00:00Z", "extra": "x"})
    value, headers = bus.signed(command, "binary")
    kept = dict(headers)
    # Sorted, ce_expirytime stands right before ce_extra: ce_dummy would swallow it if there were one.
    swallowed = kept.pop("ce_extra") or b""
    kept["ce_expirytime"] = (kept["ce_expirytime"] or b"") + b"\nce_extra=" + swallowed
    place = bus.put(value, list(kept.items()), command.key)
    assert bus.dead_letter(place).header("dlq_reason") == b"INVALID_ENVELOPE"


def test_an_attribute_that_stops_a_replay_cannot_be_hidden_in_another(bus: Bus) -> None:
    command = good().but(attributes={"expirytime": "2020-01-01T00:00:00Z", "eaten": "x"})
    value, headers = bus.signed(command, "binary")
    kept = dict(headers)
    hidden = kept.pop("ce_expirytime") or b""
    kept["ce_eaten"] = (kept["ce_eaten"] or b"") + b"\nce_expirytime=" + hidden
    place = bus.put(value, list(kept.items()), command.key)
    found = bus.collector
    found.wait(
        lambda: found.replies.get(command.id) or found.dead_letters.get(place), 10, lambda: "a reply or a dead letter")
    letters = found.dead_letters.get(place)
    assert letters, f"the signature covers expirytime, yet without it the answer was {bus.reply(command.id)}"


def test_the_order_of_two_equal_headers_is_signed(bus: Bus) -> None:
    """Two ce_subject headers: readers take one of them. Swapping them must not leave the signature valid, or such a
    record must be refused."""
    install = fresh("install")
    command = c.register(install)
    value, headers = command.binary()
    headers += [("ce_expirytime", b"2020-01-01T00:00:00Z"), ("ce_expirytime", b"2099-01-01T00:00:00Z")]
    code = ("signature", signature("internal", bus.commands, headers, value))
    swapped = headers[:-2] + headers[-1:] + headers[-2:-1]
    place = bus.put(value, [*swapped, code], command.key)
    found = bus.collector
    found.wait(
        lambda: found.replies.get(command.id) or found.dead_letters.get(place), 10, lambda: "a reply or a dead letter")
    assert found.dead_letters.get(place), f"answered {bus.reply(command.id)}"


def test_a_repeated_command_needs_the_scope_too(bus: Bus) -> None:
    """Ids travel in events and replies (causationid); knowing one must not open what the key may not ask for."""
    install = fresh("install")
    bus.ask(c.register(install))
    command = c.query(install)
    bus.ask(command)
    bus.send(command.but(signer="demo-sdk"))
    reply = bus.reply_records(command.id, count=2)[1].data
    assert (reply["status"], reply.get("reason")) == ("rejected", "INSUFFICIENT_SCOPE"), reply


def test_a_key_without_the_scope_cannot_use_up_the_id_of_a_command(bus: Bus) -> None:
    install = fresh("install")
    bus.ask(c.register(install))
    command = c.request(install, fresh("ext"))
    assert bus.ask(command.but(signer="demo-sdk"))["reason"] == "INSUFFICIENT_SCOPE"
    bus.send(command)
    reply = bus.reply_records(command.id, count=2)[1].data
    assert reply["status"] == "succeeded", reply


# External ids


BLOCKED = [
    "NULL", "nil", "None", "(null)", "<null>", "unknown", "nan", "f" * 32, "null", "undefined", "anonymous", "guest", "0", "-1", "[object Object]", "NaN", "", "-", "--", "00", "0-0"]
SPACES = [" a", "a ", "\u00a0a", "a\u00a0", "\u2003a", "a\u3000", " "]
CONTROLS = ["a\u0000b", "\ta", "a\n", "a\r\nb", "a\u001fb", "a\u007fb", "a\u0085b", "\u0000"]


@pytest.mark.parametrize("external_id", BLOCKED + SPACES + CONTROLS, ids=ascii)
def test_an_external_id_that_names_nobody(bus: Bus, external_id: str) -> None:
    """L3, S49."""
    install = fresh("install")
    bus.ask(c.register(install))
    for command in (c.request(install, external_id), c.establish(fresh("install"), external_id)):
        reply = bus.ask(command)
        assert (reply["status"], reply["reason"]) == ("rejected", "INVALID_REQUEST"), reply
    assert "userId" not in bus.ask(c.query(install))["result"]


def test_the_apps_own_blocked_external_ids(bus: Bus) -> None:
    """L3, S50."""
    install = fresh("install")
    bus.ask(c.register(install, app="strict"))
    assert bus.ask(c.request(install, "nobody", app="strict"))["reason"] == "INVALID_REQUEST"
    assert bus.ask(c.request(install, "Nobody", app="strict"))["status"] == "succeeded"


def characters(kind: str, count: int) -> str:
    random.seed(1)
    first, last = {"ascii": (0x21, 0x7E), "cjk": (0x4E00, 0x9FFF), "astral": (0x20000, 0x2A6DF)}[kind]
    return "".join(chr(random.randint(first, last)) for _ in range(count))


@pytest.mark.parametrize("kind", ["ascii", "cjk", "astral"])
def test_contracts_an_external_id_has_at_most_750_characters(bus: Bus, kind: str) -> None:
    """L3."""
    install = fresh("install")
    bus.ask(c.register(install))
    reply = bus.ask(c.request(install, characters(kind, 751)))
    assert reply.get("reason") == "INVALID_REQUEST", reply
    reply = bus.ask(c.request(install, characters(kind, 750)))
    assert reply["status"] == "succeeded", reply


@pytest.mark.parametrize(
    "command",
    [
        c.register("i" * 256), c.register(""), c.register("a\u0000b"), c.register("i", {"kind": "watch", "platform": "x"}),
        c.register("i", {"kind": "phone"}), c.register("i", {"kind": "phone", "platform": ""}),
        c.register("i", {"kind": "phone", "platform": "x" * 256}), c.register("i", user="maybe"),
        c.register("i", {"kind": "phone", "platform": "x", "model": 7}),  # type: ignore[dict-item]
        c.query(""), c.detach("i\u0007"), c.erase(""), c.erase("x" * 256), c.establish("i", "e", mode="x"),
        c.query("i").but(data={"installId": None}), c.query("i").but(data={"InstallId": "i"}),
    ],
    ids=lambda command: ascii(command.data)[:60])
def test_contracts_data_over_a_limit_is_a_named_rejection(bus: Bus, command: Command) -> None:
    reply = bus.ask(command.again())
    assert (reply["status"], reply["reason"]) == ("rejected", "INVALID_REQUEST"), reply
    assert "\n" not in reply["message"]


def test_guarantee_5_no_secret_in_any_log_dead_letter_or_reply(link: Deployment) -> None:
    """Last in the file: everything above has been said by now."""
    assert not link.bus.collector.problems
    assert link.bus.collector.count > 0
    for service in link.services:
        assert not leaks(service.get("/metrics")[1].encode())
    assert_no_secrets_in_files(service.log for service in link.services)
