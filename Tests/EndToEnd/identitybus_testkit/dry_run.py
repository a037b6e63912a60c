# SPDX-License-Identifier: Apache-2.0
"""What dry runs leave, which is nothing, and what they tell, which is what happens."""

from typing import Any

from .broker import SERVICES
from .commands import Command
from .deployment import Deployment
from .platform import wait_until_quiet

# What differs between a dry run and the real command for the time that has passed, and for secrets.
PASSING = {
    "authenticationCode", "completedAt", "erasedAt", "expiresAt", "expiryDate", "firstSeen", "installToken", "lastSeen",
    "linkedAt", "move", "tokenId", "until", "verifiedAt"}


def tried(command: Command, word: Any = "true") -> Command:
    return command.but(attributes={**command.attributes, "dryrun": word})


def stored(deployment: Deployment) -> dict[str, Any]:
    """Every table of every service but inbox, outbox and the read positions, which any record moves."""
    passing = ("inbox", "outbox", "progress")
    found: dict[str, Any] = {}
    for service in SERVICES:
        if "DATA_DIR" in deployment.database.environment():
            names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        else:
            names = f"SELECT table_name FROM information_schema.tables WHERE table_schema = 'identity_{service}'"
        for (name,) in deployment.database.execute(names, service=service):
            if not str(name).startswith((*passing, "sqlite_")):
                rows = deployment.database.execute(f'SELECT * FROM "{name}"', service=service)
                found[f"{service}.{name}"] = sorted(repr(row) for row in rows)
    return found


def quiet(deployment: Deployment) -> dict[str, Any]:
    """What is stored when nothing moves any more."""
    wait_until_quiet(deployment)
    return stored(deployment)


def lasting(value: Any) -> Any:
    """What of an answer or an event is the same another time."""
    if isinstance(value, dict):
        return {name: lasting(one) for name, one in sorted(value.items()) if name not in PASSING}
    return [lasting(one) for one in value] if isinstance(value, list) else value
