# SPDX-License-Identifier: Apache-2.0
# Part of IdentityBus. See LICENSE for the full text.
"""User tokens as a consumer reads them."""

import base64
import json
from typing import Any


def claims(token: str) -> dict[str, Any]:
    header, payload, _ = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    assert json.loads(header) == {"alg": "HS256", "typ": "JWT"}
    return json.loads(payload)
