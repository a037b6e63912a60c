# SPDX-License-Identifier: Apache-2.0
"""The creation saga with DBOS: a workflow for each command, its steps checkpointed in PostgreSQL.

The workflow's id is the command's key, as DBOS means it for idempotency; steps 1 and 2 are transactions whose checkpoint
commits with them. A command's offset is committed when its workflow is written down.
"""

import os
from typing import Any

import psycopg
from dbos import DBOS, DBOSConfig, SetWorkflowID, SQLAlchemyDatasource

import bus
import user_steps as steps

CONFIGURATION: DBOSConfig = {
    "name": "contender", "system_database_url": os.environ["DATABASE_URL"], "dbos_system_schema": "identity_user",
    "log_level": "ERROR", "run_admin_server": False, "application_version": "1",
}
DBOS(config=CONFIGURATION)
datasource = SQLAlchemyDatasource.create(os.environ["DATABASE_URL"], schema="identity_user")
producer = bus.producer()


def in_transaction(step: Any, *arguments: Any) -> Any:
    """Runs a step on the connection of the transaction that its checkpoint commits with."""

    def run() -> Any:
        connection = datasource.sql_session().connection().connection.dbapi_connection
        return step(connection, *arguments)

    return datasource.run_tx_step({"name": step.__name__, "isolation_level": "READ COMMITTED"}, run)


@DBOS.step()
def publish(given: dict[str, Any], external_id: str | None, user_id: str | None) -> None:
    records = steps.messages(steps.from_input(given), external_id, user_id)
    bus.send(producer, records)


@DBOS.workflow()
def create_user(given: dict[str, Any]) -> None:
    command = steps.from_input(given)
    external_id = in_transaction(steps.redeem, command)
    user_id = in_transaction(steps.link, command, external_id) if external_id else None
    publish(given, external_id, user_id)


def main() -> None:
    stop = bus.Stop()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        steps.prepare_tables(connection)
        DBOS.launch()
        consumer = bus.consumer([f"{bus.PREFIX}identity.user.commands.v1"], "contender")
        while not stop.asked:
            found = consumer.consume(bus.BATCH, 0.02)
            handles, answers = [], []
            for message in found:
                command = bus.read(message)
                if command is None or not command.is_genuine:
                    answers.append(bus.dead_letter("user", message, "REFUSED"))
                elif command.type == steps.REQUEST_CODE:
                    answers.extend(steps.issue_code(connection, command))
                else:
                    with SetWorkflowID(steps.workflow_id(command)):
                        handles.append(DBOS.start_workflow(create_user, steps.as_input(command)))
            if answers:
                bus.send(producer, answers)
            if found:
                consumer.commit(asynchronous=False)
            # No more under way than one batch.
            for handle in handles:
                handle.get_result()
        consumer.close()
        DBOS.destroy()


main()
