# SPDX-License-Identifier: Apache-2.0
"""The link service as fast as one gets it in Python with a batch in each transaction.

Set-based SQL: what a batch needs is loaded with one statement for each table, decided in memory in the order of the log,
and written with one statement for each table (unnest). Same inbox, signatures and durability as one by one.
"""

import os

import orjson
import psycopg

import bus
from link_rules import Install, Person, State, decide
from link_tables import prepare_tables

COLUMNS = "install_id, app, platform, user_id, activity, is_users_first, version"


def known_answers(cursor: psycopg.Cursor, commands: list[bus.Command]) -> dict[tuple[str, ...], tuple[bytes, bytes]]:
    rows = cursor.execute(
        """
        SELECT app, source, id, digest, messages FROM inbox
        JOIN unnest(%s::text[], %s::text[], %s::text[]) AS wanted (app, source, id) USING (app, source, id)
        """,
        [list(column) for column in zip(*(command.id for command in commands), strict=True)], prepare=True)
    return {row[:3]: row[3:] for row in rows.fetchall()}


def load(cursor: psycopg.Cursor, commands: list[bus.Command]) -> State:
    state = State()
    ids = list({command.data["installId"] for command in commands})
    externals = list({
        (command.envelope["appid"], command.data["externalId"]) for command in commands
        if "externalId" in command.data
    })
    if externals:
        rows = cursor.execute(
            """
            SELECT user_id, app, external_id FROM persons
            JOIN unnest(%s::text[], %s::text[]) AS wanted (app, external_id) USING (app, external_id)
            """,
            [list(column) for column in zip(*externals, strict=True)], prepare=True)
        state.persons = {row[2]: Person(*row) for row in rows.fetchall()}
    users = [person.user_id for person in state.persons.values()]
    rows = cursor.execute(
        f"""
        SELECT {COLUMNS} FROM installs WHERE install_id = ANY(%s)
        UNION SELECT {COLUMNS} FROM installs WHERE user_id = ANY(%s) AND activity = 'active'
        """,
        [ids, users], prepare=True)
    for row in rows.fetchall():
        state.add(Install(*row))
    return state


def save(cursor: psycopg.Cursor, state: State) -> None:
    if state.new_persons:
        rows = [(person.user_id, person.app, person.external_id) for person in state.new_persons]
        cursor.execute(
            "INSERT INTO persons (user_id, app, external_id) SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])",
            [list(column) for column in zip(*rows, strict=True)], prepare=True)
    if state.changed_installs:
        rows = [
            (install.install_id, install.app, install.platform, install.user_id, install.activity,
             install.is_users_first, install.version)
            for install in state.changed_installs.values()
        ]
        cursor.execute(
            f"""
            INSERT INTO installs ({COLUMNS})
            SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[], %s::bigint[])
            ON CONFLICT (install_id) DO UPDATE SET user_id = excluded.user_id, activity = excluded.activity,
                is_users_first = excluded.is_users_first, version = excluded.version
            """,
            [list(column) for column in zip(*rows, strict=True)], prepare=True)


def decide_batch(connection: psycopg.Connection, messages: list[bus.Message]) -> list[bus.Outgoing]:
    commands = [bus.read(message) for message in messages]
    genuine = [command for command in commands if command is not None and command.is_genuine]
    outgoing: list[bus.Outgoing] = []
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        answers: dict[tuple[str, ...], tuple[bytes, list[bus.Outgoing]]] = {}
        if genuine:
            for key, (digest, packed) in known_answers(cursor, genuine).items():
                answers[key] = digest, [bus.Outgoing.unpack(message) for message in orjson.loads(packed)]
        fresh = [command for command in genuine if command.id not in answers]
        state = load(cursor, fresh) if fresh else State()
        time = bus.now()
        rows = []
        for message, command in zip(messages, commands, strict=True):
            if command is None:
                outgoing.append(bus.dead_letter("link", message, "NOT_JSON"))
            elif not command.is_genuine:
                outgoing.append(bus.dead_letter("link", message, "SIGNATURE_INVALID"))
                outgoing.append(bus.reply("link", command, 0, "rejected", time, "UNAUTHENTICATED"))
            elif (known := answers.get(command.id)) is not None:
                if known[0] == command.digest():
                    # After a crash the events may be missing too; their ids are the same.
                    outgoing.extend(known[1])
                else:
                    outgoing.append(bus.reply("link", command, -1, "rejected", time, "ID_REUSED"))
            else:
                decided = decide(command, state, time)
                digest = command.digest()
                answers[command.id] = digest, decided[-1:]
                rows.append((*command.id, digest, orjson.dumps([one.pack() for one in decided])))
                outgoing.extend(decided)
        save(cursor, state)
        if rows:
            cursor.execute(
                """
                INSERT INTO inbox (app, source, id, digest, messages)
                SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[])
                """,
                [list(column) for column in zip(*rows, strict=True)], prepare=True)
    return outgoing


def main() -> None:
    stop = bus.Stop()
    producer = bus.producer()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        prepare_tables(connection)
        consumer = bus.consumer([f"{bus.PREFIX}identity.link.commands.v1"], "contender")
        while not stop.asked:
            messages = consumer.consume(bus.BATCH, 0.02)
            if not messages:
                continue
            bus.send(producer, decide_batch(connection, messages))
            consumer.commit(asynchronous=False)
        consumer.close()


main()
