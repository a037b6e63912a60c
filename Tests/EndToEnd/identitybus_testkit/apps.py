# SPDX-License-Identifier: Apache-2.0
"""The apps file of the tests: the demo apps' keys, and a few apps that show one setting each."""

import json
from pathlib import Path

from .secrets import SECRET_PREFIX

APP_SECRET = SECRET_PREFIX + "app"
CONFIGURATION = {"detections": True, "interval": 10, "text": "10", "list": [1.5, None, {"a": "b"}]}


def key(key_id: str, *scopes: str, **more: object) -> dict[str, object]:
    return {"id": key_id, "secret": SECRET_PREFIX + key_id, "scopes": list(scopes), **more}


def apps() -> list[dict[str, object]]:
    return [
        {
            "id": "demo",
            "keys": [
                key("demo-backend", "user.link", "user.delete", "verification.check"),
                key("demo-sdk", "sdk", "identity.sync"),
                key("demo-admin", "admin"), key("demo-import", "import"),
                key("demo-expired", "user.link", expires="2020-01-01"),
                key("demo-revoked", "user.link", revoked=True),
            ],
            "sdk": {"appSecret": APP_SECRET, "configuration": CONFIGURATION, "keysOpenInstalls": True},
            "sync": worked("conversion"),
        },
        {
            "id": "other",
            "keys": [
                key("other-backend", "user.link", "user.delete"), key("other-admin", "admin"),
                key("other-sdk", "sdk", "identity.sync"),
            ],
            "sdk": {"keysOpenInstalls": True},
        },
        # Everything of the user service that takes time, in seconds: enough for what must be done within it.
        {
            "id": "hasty",
            "keys": [key("hasty-backend", "user.link"), key("hasty-sdk", "sdk")],
            "sdk": {"appSecret": APP_SECRET, "authCodeLifetimeSeconds": 8, "linkerTimeoutSeconds": 8,
                    "maxOutstandingCodes": 3, "keysOpenInstalls": True},
        },
        # Installs are opened by tokens alone, as is the default.
        {
            "id": "guarded",
            "keys": [key("guarded-backend", "user.link"), key("guarded-sdk", "sdk")],
        },
        {"id": "unlinked", "linking": {"enabled": False}, "keys": [key("unlinked-backend", "user.link")]},
        {
            "id": "strict",
            "linking": {"blockedExternalIds": ["nobody"]},
            "keys": [key("strict-backend", "user.link")],
        },
        sync_app("linked", worked("link")),
        sync_app("isolated", worked("isolation")),
        sync_app(
            "best",
            {
                "strategy": "bestMatch", "priority": ["email", "ios_idfv", "android_uuid"], "loginIdentities": [],
                "uniqueIdentities": [], "immutableIdentities": [],
            }),
        sync_app("support", {"strategy": "userIdThenEmail"}),
        sync_app(
            "immutable",
            {
                "strategy": "conversion", "priority": ["customerid", "email", "ios_idfv"],
                "loginIdentities": ["customerid", "email"], "uniqueIdentities": ["customerid", "email"],
                "immutableIdentities": ["customerid"],
            }),
        sync_app("joining", {**worked("conversion"), "joinByLowerRank": True}),
        # Nobody is believed without a token, but the backend.
        enforcing("enforcing", worked("conversion")), enforcing("enforcing-default", {"strategy": "default"}),
        sync_app("fromlinks", {**worked("conversion"), "fromLinks": True}),
        sync_app("throttled", {**worked("conversion"), "throttle": {"devicePerSecond": 1, "deviceBurst": 3}}),
    ]


def enforcing(name: str, sync: dict[str, object]) -> dict[str, object]:
    return {
        "id": name,
        "keys": [
            key(f"{name}-sdk", "sdk", "identity.sync"), key(f"{name}-voucher", "identity.vouch"),
            key(f"{name}-backend", "identity.sync", "identity.vouch"),
        ],
        "sync": sync,
        "verification": {
            "mode": "enforce", "signedFields": "userId",
            "keys": [{"id": "k1", "secret": f"{SECRET_PREFIX}of-{name}-k1-with-32-bytes"}]},
    }


def worked(strategy: str) -> dict[str, object]:
    """The settings of the worked tables (F35)."""
    return {
        "strategy": strategy, "priority": ["customerid", "email", "ios_idfv", "roku_aid", "device_application_stamp"],
        "loginIdentities": ["customerid", "email"], "uniqueIdentities": ["customerid", "email"],
        "immutableIdentities": [],
    }


def sync_app(app_id: str, settings: dict[str, object]) -> dict[str, object]:
    keys = [
        key(f"{app_id}-sdk", "sdk", "identity.sync"), key(f"{app_id}-backend", "user.link"),
        key(f"{app_id}-import", "import"),
    ]
    return {"id": app_id, "keys": keys, "sync": settings}


def write(path: Path, content: list[dict[str, object]]) -> None:
    """JSON is YAML. Written beside and moved, so that no reader sees half a file."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"apps": content}, indent=1))
    part.replace(path)
