# SPDX-License-Identifier: Apache-2.0
# Part of IdentityBus. See LICENSE for the full text.
"""The signature header, written from architecture.md section 7, and the search for leaked secrets."""

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Iterable

Headers = list[tuple[str, bytes | None]]

INTERNAL_KEY = "e2e-internal-key-Zx81-not-for-logs"
DATABASE_PASSWORD = "e2e-database-password-Qy72"
# Key ids give the secrets of the demo apps (contracts.md); this marker makes them findable.
SECRET_PREFIX = "demo-secret-"


def secret_of(key_id: str) -> bytes:
    return (INTERNAL_KEY if key_id == "internal" else SECRET_PREFIX + key_id).encode()


def signing_string(topic: str, headers: Headers, value: bytes) -> bytes:
    lines = sorted(name.encode() + b"=" + (content or b"") for name, content in headers if name.startswith("ce_"))
    return b"\n".join([topic.encode(), *lines, value])


def signature(key_id: str, topic: str, headers: Headers, value: bytes, secret: bytes | None = None) -> bytes:
    code = hmac.new(secret or secret_of(key_id), signing_string(topic, headers, value), hashlib.sha256).digest()
    return b"v1;kid=" + key_id.encode() + b";" + base64.b64encode(code)


def leaks(data: bytes) -> list[str]:
    """The secrets that stand in `data`."""
    return [text for text in (INTERNAL_KEY, DATABASE_PASSWORD, SECRET_PREFIX) if text.encode() in data]


def assert_no_secrets_in_files(paths: Iterable[Path]) -> None:
    found = {str(path): leaks(path.read_bytes()) for path in paths}
    found = {path: names for path, names in found.items() if names}
    assert not found, f"secrets in logs: {found}"
