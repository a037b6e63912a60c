# SPDX-License-Identifier: Apache-2.0
"""Where the things under test are."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def binary(name: str) -> Path:
    """An executable of the product: in $IDENTITYBUS_BIN, else the debug build of the repository."""
    folder = Path(os.environ.get("IDENTITYBUS_BIN") or REPOSITORY / ".build" / "debug")
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `swift build`, or set IDENTITYBUS_BIN to a folder that has it")
    return path


def postgres_script() -> Path:
    return Path(os.environ.get("E2E_POSTGRES_SCRIPT") or REPOSITORY / "scripts" / "throwaway-postgres")


def clean_environment() -> dict[str, str]:
    """The environment without anything that configures IdentityBus, and without Kafka's address and group settings."""
    dropped = (
        "IDENTITYBUS_", "TOPIC_", "DATA_DIR", "DATABASE_URL", "TEST_DATABASE_URL", "HTTP_PORT", "HTTP_HOST", "LOG_",
        "KAFKA_", "BATCH_SIZE", "LOOPS", "MIGRATE", "SQLITE_", "JOURNAL_", "DRAIN_", "REPLAY_", "COLUMNS",
        "OTEL_",
    )
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
