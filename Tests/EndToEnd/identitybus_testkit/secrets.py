# SPDX-License-Identifier: Apache-2.0
"""The signature header, written from docs/contracts.md, and the search for leaked secrets."""

import base64
import functools
import hashlib
import hmac
import json
import uuid
from pathlib import Path
from typing import Any, Iterable

Headers = list[tuple[str, bytes | None]]

INTERNAL_KEY = "e2e-internal-key-Zx81-not-for-logs"
# In the URL that services get; a server that trusts everybody does not ask for it.
DATABASE_PASSWORD = "e2e-database-password-Qy72"
# Key ids give the secrets of the demo apps (config/apps.yaml); this marker makes them findable.
SECRET_PREFIX = "demo-secret-"
# Every password of Kafka begins with the one (`kafka_password`), every token for Kafka with the other.
KAFKA_PASSWORD_PREFIX = "e2e-kafka-password-"
KAFKA_TOKEN_HEADER = base64.urlsafe_b64encode(b'{"alg":"none","kid":"e2e-kafka-token"}').decode().rstrip("=")


# What is derived from the internal key for each purpose (docs/contracts.md "Signature").
PURPOSES = {
    "commands": "identitybus commands v1", "events": "identitybus events v1", "gateway": "identitybus gateway v1",
    "store": "identitybus store v1", "tokens": "identitybus tokens v1"}


@functools.cache
def derived(purpose: str, internal_key: str = INTERNAL_KEY) -> bytes:
    """HKDF-SHA256 without a salt, one block."""
    extracted = hmac.new(bytes(32), internal_key.encode(), hashlib.sha256).digest()
    return hmac.new(extracted, PURPOSES[purpose].encode() + b"\1", hashlib.sha256).digest()


SECRETS = [
    text.encode()
    for text in (
        INTERNAL_KEY, DATABASE_PASSWORD, SECRET_PREFIX, KAFKA_PASSWORD_PREFIX, KAFKA_TOKEN_HEADER,
        *(derived(purpose).hex() for purpose in PURPOSES))]


def derived_keys(purposes: Iterable[str], *internal_keys: str) -> str:
    """As `identitybus derive-keys` prints them."""
    return ",".join(
        ".".join(f"{purpose}:{derived(purpose, key).hex()}" for purpose in purposes) for key in internal_keys)


def gateway_keys(*internal_keys: str) -> str:
    """The gateway's setting IDENTITYBUS_GATEWAY_KEYS."""
    return derived_keys(("gateway", "tokens"), *(internal_keys or (INTERNAL_KEY,)))


def kafka_password() -> str:
    return KAFKA_PASSWORD_PREFIX + uuid.uuid4().hex


def secret_of(key_id: str) -> bytes:
    match key_id:
        case "internal": return derived("commands")
        case "events" | "gateway": return derived(key_id)
        case _: return (SECRET_PREFIX + key_id).encode()


def signing_string(topic: str, headers: Headers, value: bytes) -> bytes:
    lines = sorted(name.encode() + b"=" + (content or b"") for name, content in headers if name.startswith("ce_"))
    return b"\n".join([topic.encode(), *lines, value])


def signature(key_id: str, topic: str, headers: Headers, value: bytes, secret: bytes | None = None) -> bytes:
    code = hmac.new(secret or secret_of(key_id), signing_string(topic, headers, value), hashlib.sha256).digest()
    return b"v1;kid=" + key_id.encode() + b";" + base64.b64encode(code)


def digest(type: str, data: Any) -> str:
    """What a reply names as `commandDigest` (contracts.md): equal for equal data, however it was written."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(type.encode() + b"\0" + text.encode()).hexdigest()


def leaks(data: bytes) -> list[str]:
    """The secrets that stand in `data`."""
    return [text.decode() for text in SECRETS if text in data]


def assert_no_secrets_in_files(paths: Iterable[Path]) -> None:
    found = {str(path): leaks(path.read_bytes()) for path in paths}
    found = {path: names for path, names in found.items() if names}
    assert not found, f"secrets in logs: {found}"
