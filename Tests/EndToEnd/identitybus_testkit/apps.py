# SPDX-License-Identifier: Apache-2.0
# Part of IdentityBus. See LICENSE for the full text.
"""The apps file of the tests: the demo apps' keys, and a few apps that show one setting each."""

from pathlib import Path

import json

from .secrets import SECRET_PREFIX


def key(key_id: str, *scopes: str, **more: object) -> dict[str, object]:
    return {"id": key_id, "secret": SECRET_PREFIX + key_id, "scopes": list(scopes), **more}


def apps() -> list[dict[str, object]]:
    return [
        {
            "id": "demo",
            "keys": [
                key("demo-backend", "user.link", "user.delete", "verification.check"),
                key("demo-sdk", "sdk", "identity.sync"),
                key("demo-admin", "admin"),
                key("demo-expired", "user.link", expires="2020-01-01"),
                key("demo-revoked", "user.link", revoked=True),
            ],
        },
        {"id": "other", "keys": [key("other-backend", "user.link", "user.delete"), key("other-admin", "admin")]},
        {"id": "unlinked", "linking": {"enabled": False}, "keys": [key("unlinked-backend", "user.link")]},
        {
            "id": "strict",
            "linking": {"blockedExternalIds": ["nobody"]},
            "keys": [key("strict-backend", "user.link")],
        },
    ]


def write(path: Path, content: list[dict[str, object]]) -> None:
    """JSON is YAML. Written beside and moved, so that no reader sees half a file."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"apps": content}, indent=1))
    part.replace(path)
