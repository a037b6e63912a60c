# SPDX-License-Identifier: Apache-2.0
"""Under load: a clock that jumps, a producer that has no room, an inbox that forgets while commands come. An independent
model recomputes every answer from the order of the topic.

E2E_SEED is printed; the commands follow from it.
"""

import os
import random
import time
from collections.abc import Callable
from datetime import datetime

import pytest
from confluent_kafka import Producer

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.bus import Record
from identitybus_testkit.clock import Clock
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.history import History
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until
from identitybus_testkit.workload import Workload

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))
DAY = 86_400.0

Make = Callable[..., Deployment]


def progress(workload: Workload, more: int) -> None:
    goal = workload.answered + more
    until(lambda: workload.answered >= goal, 30, lambda: f"{workload.answered} of {goal} answers", 0.01)


def conclude(deployment: Deployment, service: Service, workload: Workload) -> None:
    workload.finish(60)
    history = History(workload.sent, deployment.bus, deployment.database)
    history.wait_until_answered(120)
    assert service.wait_ready(10).stop() == 0
    print(f"E2E_SEED={SEED}: {history.check()}")


def test_the_clock_jumps_both_ways(make_deployment: Make) -> None:
    """By a minute, a day, and more than the retention; repetitions get their first answer all the same."""
    deployment = make_deployment("sqlite")
    clock = Clock(deployment.directory)
    service = deployment.service(**clock.environment).start().wait_ready()
    replies = deployment.bus.collector.replies
    workload = Workload(deployment.bus, SEED, rate=200).start()
    for ahead in (60, -60, DAY, -DAY, 20 * DAY, -20 * DAY, 0):
        progress(workload, 50)
        known = set(replies)
        clock.set(ahead)
        asked = time.time()
        # Some are repetitions, with the time of the first answer.
        until(
            lambda: any(
                asked - 2 < moment(replies[id][0]) - ahead < time.time() + 2
                for id in list(replies) if id not in known and replies[id]),
            20, f"an answer {ahead} s ahead")
        service.wait_ready(10)
    conclude(deployment, service, workload)


def moment(record: Record) -> float:
    return datetime.fromisoformat(record.envelope["time"]).timestamp()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_the_producer_has_room_for_five_messages(make_deployment: Make, engine: str) -> None:
    deployment = make_deployment(engine)
    service = deployment.service(KAFKA_PRODUCER_QUEUE_BUFFERING_MAX_MESSAGES="5").start().wait_ready()
    conclude(deployment, service, Workload(deployment.bus, SEED + 1, 1000).start())


def test_the_inbox_forgets_while_commands_come(make_deployment: Make) -> None:
    """By the log's own time, which the test writes: six hours pass in a moment, and the retention is one."""
    deployment = make_deployment("postgresql")
    bus, database = deployment.bus, deployment.database
    if not deployment.broker.is_embedded:
        pytest.skip("the services' topics have the broker's time there")
    replicas = [deployment.service(JOURNAL_RETENTION_HOURS="1").start().wait_ready() for _ in range(2)]
    partitions = deployment.broker.partitions(bus.commands)
    producer = Producer(deployment.broker.client(**{"linger.ms": 0, "log_level": 2}))
    now = int(time.time() * 1000)
    bus.collector

    def state() -> tuple[int, int]:
        [(newest, begun)] = database.execute("SELECT newest, begun_at FROM inbox_state")
        return newest, begun

    stages: list[list[Command]] = []
    for hours in (6, 4, 2, 1, 0):
        before = state()
        commands = [c.register(fresh("install")) for _ in range(200)]
        for number, command in enumerate(commands):
            value, headers = bus.signed(command)
            producer.produce(
                bus.commands, value, command.key, headers=headers, partition=partitions[number % len(partitions)],
                timestamp=now - hours * 3_600_000)
        assert producer.flush(30) == 0
        for command in commands:
            assert bus.reply(command.id)["status"] == "succeeded"
        stages.append(commands)
        # The first one begins the first generation, each of the others the next one: before its end, or behind it.
        until(lambda: state() != before, 30, lambda: f"the next generation: {state()}")
    # Two generations have gone. Whether those in between stood in one of them is a matter of when the others began.
    old, young = stages[0] + stages[1], stages[3] + stages[4]
    until(lambda: not inbox.decided(database, old), 30, lambda: f"{len(inbox.decided(database, old))} to be forgotten")
    assert inbox.decided(database, young) == {command.id for command in young}
    [(count,)] = database.execute("SELECT COUNT(*) FROM installs")
    assert count == 1000, "what was decided stays"
    again = stages[-1][0]
    bus.send(again)
    assert len({record.value for record in bus.reply_records(again.id, 2)}) == 1, "what is young is remembered"
    for service in replicas:
        assert service.wait_ready().stop() == 0
    assert not bus.collector.dead_letters
