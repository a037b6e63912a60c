# SPDX-License-Identifier: Apache-2.0
"""The creation saga with Temporal: a workflow for each command, an activity for each step.

Runs against Temporal's development server, which keeps its state in an SQLite file and is started here: the servers for
production come as containers only. What the steps change stands in PostgreSQL. The workflow's id is the command's key.
"""

from temporalio import workflow

# What is not passed through is imported again for every workflow.
with workflow.unsafe.imports_passed_through():
    import asyncio
    import os
    import signal
    import subprocess
    import sys
    import tempfile
    import threading
    from concurrent.futures import ThreadPoolExecutor
    from datetime import timedelta
    from pathlib import Path
    from typing import Any

    import psycopg
    from temporalio import activity
    from temporalio.client import Client
    from temporalio.common import WorkflowIDConflictPolicy
    from temporalio.worker import Worker

    import bus
    import user_steps as steps

LIMIT = timedelta(seconds=60)
THREADS = 16
_local = threading.local()


def connection() -> psycopg.Connection:
    """One for each thread."""
    if not hasattr(_local, "connection"):
        _local.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        _local.producer = bus.producer()
    return _local.connection


@activity.defn
def redeem(given: dict[str, Any]) -> str | None:
    return steps.redeem(connection(), steps.from_input(given))


@activity.defn
def link(given: dict[str, Any], external_id: str) -> str:
    with connection().transaction():
        return steps.link(connection(), steps.from_input(given), external_id)


@activity.defn
def publish(given: dict[str, Any], external_id: str | None, user_id: str | None) -> None:
    connection()
    bus.send(_local.producer, steps.messages(steps.from_input(given), external_id, user_id))


@workflow.defn
class CreateUser:
    @workflow.run
    async def run(self, given: dict[str, Any]) -> None:
        external_id = await workflow.execute_activity(redeem, given, start_to_close_timeout=LIMIT)
        user_id = None
        if external_id is not None:
            user_id = await workflow.execute_activity(link, args=[given, external_id], start_to_close_timeout=LIMIT)
        await workflow.execute_activity(publish, args=[given, external_id, user_id], start_to_close_timeout=LIMIT)


async def serve(client: Client, stop: bus.Stop) -> None:
    loop = asyncio.get_running_loop()
    consumer = bus.consumer([f"{bus.PREFIX}identity.user.commands.v1"], "contender")
    while not stop.asked:
        found = await loop.run_in_executor(None, consumer.consume, bus.BATCH, 0.02)
        if not found:
            continue
        commands, answers = [], []
        for message in found:
            command = bus.read(message)
            if command is None or not command.is_genuine:
                answers.append(bus.dead_letter("user", message, "REFUSED"))
            elif command.type == steps.REQUEST_CODE:
                answers.extend(steps.issue_code(connection(), command))
            else:
                commands.append(command)
        if answers:
            bus.send(_local.producer, answers)
        # A command's offset is committed when the server has its workflow; no more are under way than one batch.
        handles = await asyncio.gather(*(
            client.start_workflow(
                CreateUser.run, steps.as_input(command), id=steps.workflow_id(command), task_queue="users",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
            for command in commands))
        consumer.commit(asynchronous=False)
        await asyncio.gather(*(handle.result() for handle in handles))
    consumer.close()


async def main() -> None:
    stop = bus.Stop()
    steps.prepare_tables(connection())
    with tempfile.TemporaryDirectory(dir=os.environ["DATA_DIR"]) as folder:
        port = str(20000 + os.getpid() % 10000)
        server = subprocess.Popen(
            [Path(sys.executable).with_name("temporal"), "server", "start-dev", "--headless", "--port", port,
             "--db-filename", f"{folder}/temporal.sqlite", "--log-level", "never"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    client = await Client.connect(f"127.0.0.1:{port}")
                    break
                except RuntimeError:
                    await asyncio.sleep(0.1)
            else:
                raise RuntimeError("Temporal's server does not start")
            worker = Worker(
                client, task_queue="users", workflows=[CreateUser], activities=[redeem, link, publish],
                activity_executor=ThreadPoolExecutor(THREADS), max_concurrent_activities=THREADS)
            async with worker:
                await serve(client, stop)
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()


# Temporal reads this file again for each workflow, in a sandbox.
if __name__ == "__main__":
    asyncio.run(main())
