# SPDX-License-Identifier: Apache-2.0
"""The link service as one writes it first: one message at a time, one transaction each.

Inbox pattern: a row for each command, in the transaction of its changes, holds what is published for it. A command that
comes again is answered from there. The offset is committed when the broker has the messages.
"""

import os

import orjson
import psycopg

import bus
from link_rules import Install, Person, State, decide
from link_tables import prepare_tables


def load(cursor: psycopg.Cursor, command: bus.Command) -> State:
    state = State()
    data = command.data
    columns = "install_id, app, platform, user_id, activity, is_users_first, version"
    rows = cursor.execute(f"SELECT {columns} FROM installs WHERE install_id = %s", [data["installId"]])
    for row in rows.fetchall():
        state.add(Install(*row))
    if "externalId" in data:
        rows = cursor.execute(
            "SELECT user_id, app, external_id FROM persons WHERE app = %s AND external_id = %s FOR UPDATE",
            [command.envelope["appid"], data["externalId"]])
        for row in rows.fetchall():
            person = Person(*row)
            state.persons[person.external_id] = person
            rows = cursor.execute(
                f"SELECT {columns} FROM installs WHERE user_id = %s AND activity = 'active'", [person.user_id])
            for row in rows.fetchall():
                state.add(Install(*row))
    return state


def save(cursor: psycopg.Cursor, state: State) -> None:
    for person in state.new_persons:
        cursor.execute(
            "INSERT INTO persons (user_id, app, external_id) VALUES (%s, %s, %s)",
            [person.user_id, person.app, person.external_id])
    for install in state.changed_installs.values():
        cursor.execute(
            """
            INSERT INTO installs (install_id, app, platform, user_id, activity, is_users_first, version)
            VALUES (%s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (install_id) DO UPDATE SET user_id = excluded.user_id, activity = excluded.activity,
                is_users_first = excluded.is_users_first, version = excluded.version
            """,
            [install.install_id, install.app, install.platform, install.user_id, install.activity,
             install.is_users_first, install.version])


def handle(connection: psycopg.Connection, message: bus.Message) -> list[bus.Outgoing]:
    command = bus.read(message)
    if command is None:
        return [bus.dead_letter("link", message, "NOT_JSON")]
    if not command.is_genuine:
        refusal = bus.reply("link", command, 0, "rejected", bus.now(), "UNAUTHENTICATED")
        return [bus.dead_letter("link", message, "SIGNATURE_INVALID"), refusal]
    with connection.transaction(), connection.cursor() as cursor:
        known = cursor.execute(
            "SELECT digest, messages FROM inbox WHERE app = %s AND source = %s AND id = %s", command.id).fetchone()
        if known is not None:
            if known[0] != command.digest():
                return [bus.reply("link", command, -1, "rejected", bus.now(), "ID_REUSED")]
            # After a crash the events may be missing too; their ids are the same.
            return [bus.Outgoing.unpack(packed) for packed in orjson.loads(known[1])]
        state = load(cursor, command)
        messages = decide(command, state, bus.now())
        save(cursor, state)
        cursor.execute(
            "INSERT INTO inbox (app, source, id, digest, messages) VALUES (%s, %s, %s, %s, %s)",
            [*command.id, command.digest(), orjson.dumps([message.pack() for message in messages])])
        return messages


def main() -> None:
    stop = bus.Stop()
    producer = bus.producer()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        prepare_tables(connection)
        consumer = bus.consumer([f"{bus.PREFIX}identity.link.commands.v1"], "contender")
        while not stop.asked:
            message = consumer.poll(0.1)
            if message is None:
                continue
            bus.send(producer, handle(connection, message))
            consumer.commit(message, asynchronous=False)
        consumer.close()


main()
