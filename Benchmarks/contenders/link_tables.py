# SPDX-License-Identifier: Apache-2.0
"""The contenders' tables, where the oracle looks for those of the link service."""

import psycopg


def prepare_tables(connection: psycopg.Connection) -> None:
    connection.execute("SET client_min_messages TO warning")
    connection.execute("CREATE SCHEMA IF NOT EXISTS identity_link")
    connection.execute("SET search_path TO identity_link")
    for statement in (
        """
        CREATE TABLE IF NOT EXISTS installs (
            install_id text PRIMARY KEY, app text NOT NULL, platform text NOT NULL, user_id text, activity text NOT NULL,
            is_users_first boolean NOT NULL, version bigint NOT NULL)
        """,
        "CREATE INDEX IF NOT EXISTS installs_of_user ON installs (user_id) WHERE activity = 'active'",
        """
        CREATE TABLE IF NOT EXISTS persons (
            user_id text PRIMARY KEY, app text NOT NULL, external_id text NOT NULL, UNIQUE (app, external_id))
        """,
        """
        CREATE TABLE IF NOT EXISTS inbox (
            app text, source text, id text, digest bytea NOT NULL, messages bytea NOT NULL, PRIMARY KEY (app, source, id))
        """,
    ):
        connection.execute(statement)
