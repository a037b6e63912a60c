# SPDX-License-Identifier: Apache-2.0
"""What a service's inbox holds. A command stands there under a hash of its app, source and id."""

import hashlib
from collections.abc import Iterable

from .commands import Command
from .databases import Database

TABLES = ("inbox_0", "inbox_1", "inbox_2")
ALL = "(" + " UNION ALL ".join(f"SELECT * FROM {table}" for table in TABLES) + ") AS inbox"


def key(command: Command) -> bytes:
    digest = hashlib.sha256(b"\1")
    for part in (command.app, command.source):
        digest.update(len(part.encode()).to_bytes(4, "little") + part.encode())
    digest.update(command.id.encode())
    return digest.digest()[:16]


def decided(database: Database, commands: Iterable[Command], service: str = "link") -> set[str]:
    """The ids of those that the inbox holds."""
    keys = {bytes(row[0]) for row in database.execute(f"SELECT key FROM {ALL}", service=service)}
    return {command.id for command in commands if key(command) in keys}


def forget(database: Database, commands: Iterable[Command], service: str = "link") -> None:
    """As the end of a generation would after weeks. Only while the service is stopped."""
    for command in commands:
        for table in TABLES:
            database.execute(f"DELETE FROM {table} WHERE key = ?", [key(command)], service=service)
