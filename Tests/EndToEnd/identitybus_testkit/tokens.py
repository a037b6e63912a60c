# SPDX-License-Identifier: Apache-2.0
"""User and install tokens as a consumer reads them, and as who holds an app's `sdk.tokenSecret` makes them."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any


def claims(token: str, typ: str = "JWT") -> dict[str, Any]:
    header, payload, _ = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    assert json.loads(header) == {"alg": "HS256", "typ": typ}
    return json.loads(payload)


def _signed(content: dict[str, Any], key: bytes, typ: str) -> str:
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "HS256", "typ": typ}, content)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    code = hmac.new(key, text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(code).rstrip(b"=")).decode()


def user_token(secret: str, user: str, install: str, app: str = "demo", age: int = 0) -> str:
    issued = int(time.time()) - age
    content = {"aud": app, "creation": "life-1", "exp": issued + 600, "iat": issued, "install": install, "sub": user}
    return _signed(content, secret.encode(), "JWT")


def install_token(secret: str, install: str, creation: str, app: str = "demo", age: int = 0) -> str:
    issued = int(time.time()) - age
    content = {"aud": app, "creation": creation, "exp": issued + 600, "iat": issued, "install": install}
    # HKDF (RFC 5869) without a salt, one block.
    extracted = hmac.new(bytes(32), secret.encode(), hashlib.sha256).digest()
    key = hmac.new(extracted, b"identitybus install token v1\x01", hashlib.sha256).digest()
    return _signed(content, key, "install+jwt")


def shown(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
