# SPDX-License-Identifier: Apache-2.0
"""The three steps of a creation with a code, each in a transaction of its own, each harmless when it is done again.

Less than the user and link services do: no tokens, no configuration, no second install of a person.
"""

import hashlib
import hmac
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

import bus

REQUEST_CODE = "identity.user.request-auth-code.v1"
CREATE = "identity.user.create.v1"


def prepare_tables(connection: psycopg.Connection) -> None:
    for statement in (
        "SET client_min_messages TO warning",
        "CREATE SCHEMA IF NOT EXISTS identity_link",
        """
        CREATE TABLE IF NOT EXISTS identity_link.codes (
            digest bytea PRIMARY KEY, external_id text NOT NULL, expires_at timestamptz NOT NULL, redeemed_by text)
        """,
        """
        CREATE TABLE IF NOT EXISTS identity_link.persons (
            user_id text PRIMARY KEY, app text NOT NULL, external_id text NOT NULL, UNIQUE (app, external_id))
        """,
        """
        CREATE TABLE IF NOT EXISTS identity_link.installs (
            install_id text PRIMARY KEY, user_id text NOT NULL, activity text NOT NULL)
        """,
    ):
        connection.execute(statement)


def as_input(command: bus.Command) -> dict[str, Any]:
    """What a workflow is given: JSON."""
    return {**asdict(command), "key": (command.key or b"").decode(), "value": command.value.decode()}


def from_input(given: dict[str, Any]) -> bus.Command:
    return bus.Command(**{**given, "key": given["key"].encode(), "value": given["value"].encode()})


def workflow_id(command: bus.Command) -> str:
    """The idempotency key: the same command is one workflow."""
    return "/".join(command.id)


def issue_code(connection: psycopg.Connection, command: bus.Command) -> list[bus.Outgoing]:
    """Not part of the saga: what comes before it. The code follows from the command, so that a retry gets the same."""
    code = hmac.digest(bus.derived("commands"), workflow_id(command).encode(), "sha256").hex()[:32]
    expiry = datetime.now(UTC) + timedelta(minutes=10)
    connection.execute(
        "INSERT INTO identity_link.codes (digest, external_id, expires_at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        [hashlib.sha256(code.encode()).digest(), command.data["externalId"], expiry])
    result = {"authenticationCode": code, "expiresAt": expiry.isoformat()}
    return [bus.reply("user", command, 0, "succeeded", bus.now(), result=result)]


def redeem(connection: psycopg.Connection, command: bus.Command) -> str | None:
    """Step 1. Returns the external id; None when the code is not good."""
    row = connection.execute(
        """
        UPDATE identity_link.codes SET redeemed_by = %s
        WHERE digest = %s AND (redeemed_by IS NULL OR redeemed_by = %s) AND expires_at > now() RETURNING external_id
        """,
        [workflow_id(command), hashlib.sha256(command.data["authCode"].encode()).digest(), workflow_id(command)],
    ).fetchone()
    return row[0] if row else None


def link(connection: psycopg.Connection, command: bus.Command, external_id: str) -> str:
    """Step 2. Returns the id of the user that the install has now."""
    user_id = hashlib.sha256(workflow_id(command).encode()).hexdigest()[:24]
    row = connection.execute(
        """
        INSERT INTO identity_link.persons (user_id, app, external_id) VALUES (%s, %s, %s)
        ON CONFLICT (app, external_id) DO UPDATE SET external_id = excluded.external_id RETURNING user_id
        """,
        [user_id, command.envelope["appid"], external_id]).fetchone()
    assert row is not None
    connection.execute(
        """
        INSERT INTO identity_link.installs (install_id, user_id, activity) VALUES (%s, %s, 'active')
        ON CONFLICT (install_id) DO NOTHING
        """,
        [command.data["installId"], row[0]])
    return str(row[0])


def messages(command: bus.Command, external_id: str | None, user_id: str | None) -> list[bus.Outgoing]:
    """Step 3 sends these: the events and the final reply."""
    time, install = bus.now(), command.data["installId"]
    if external_id is None or user_id is None:
        return [bus.reply("user", command, 0, "rejected", time, "AUTHENTICATION_CODE_INVALID")]
    registered = {"installId": install, "device": command.data["device"]}
    linked = {
        "installId": install, "externalId": external_id, "userId": user_id, "personCreated": True,
        "activeInstallId": install, "deactivatedInstallIds": [], "version": 1,
    }
    user = {"installId": install, "userId": user_id, "isLinked": True, "isRemoteEnabled": True}
    return [
        bus.event("link", command, 0, "identity.link.install-registered.v1", install, registered, time),
        bus.event("link", command, 1, "identity.link.linked.v1", install, linked, time),
        bus.event("user", command, 2, "identity.user.created.v1", install, user, time),
        bus.reply("user", command, 3, "succeeded", time, result=user),
    ]
