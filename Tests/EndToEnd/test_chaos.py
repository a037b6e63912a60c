# SPDX-License-Identifier: Apache-2.0
"""Guarantee 3: any replica may be killed, paused past its session, or cut off from the database or the broker at any
instant: nothing acknowledged is lost, nothing is applied twice, no partition stalls. An independent model (oracle.py)
recomputes every answer from the order of the topic.

E2E_COMMANDS sets the size (3,000), E2E_SEED the seed; both are shown when a test fails.
"""

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.databases import Database, PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.history import History
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until
from identitybus_testkit.workload import Workload

pytestmark = pytest.mark.chaos

COMMANDS = int(os.environ.get("E2E_COMMANDS", "3000"))
SEED = int(os.environ.get("E2E_SEED") or random.randrange(1 << 32))
# Short enough to wait for, long enough for the brokers' own limits.
EMBEDDED_SESSION = 3.5
REAL_SESSION = 6.0

Make = Callable[[Database], Deployment]


@pytest.fixture
def make(directory: Path, open_deployments: list[Deployment]) -> Iterator[Make]:
    """Makes a deployment with a broker of its own, whose topics have all their partitions."""
    brokers: list[Broker] = []
    mine: list[Deployment] = []

    def make(database: Database) -> Deployment:
        prefix = f"chaos-{uuid.uuid4().hex[:8]}."
        place = directory / prefix
        broker = Broker.for_tests(place, prefix)
        brokers.append(broker)
        place.mkdir(exist_ok=True)
        deployment = Deployment(broker, place, database, prefix)
        mine.append(deployment)
        open_deployments.append(deployment)
        print(f"E2E_SEED={SEED} E2E_COMMANDS={COMMANDS}")
        return deployment

    yield make
    for deployment in mine:
        open_deployments.remove(deployment)
    try:
        for deployment in mine:
            deployment.close()
    finally:
        for broker in brokers:
            broker.close()


def conclude(deployment: Deployment, workload: Workload) -> None:
    """Everything is sent, answered and stopped; then it is compared."""
    workload.finish(240)
    history = History(workload.sent, deployment.bus, deployment.database)
    history.wait_until_answered(120)
    history.wait_until_published(60)
    for service in deployment.services:
        if service.is_running:
            assert service.wait_ready().stop() == 0
    print(history.check())


def wait_for_progress(workload: Workload, more: int, timeout: float = 60) -> None:
    """Until so many more answers came, or there are no more to come."""
    goal = workload.answered + more
    until(
        lambda: workload.answered >= goal or not workload.is_sending, timeout,
        lambda: f"progress: {workload.answered} of {goal} answers", interval=0.002)


def session_settings(deployment: Deployment) -> tuple[float, dict[str, str]]:
    """How long a replica may be silent, and what to set for it."""
    if deployment.broker.is_embedded:
        return EMBEDDED_SESSION, {}
    return REAL_SESSION, {"KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "6000", "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "1000"}


# Kill -9


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_guarantee_3_killed_a_dozen_times_while_it_works(
    make: Make, new_database: Callable[[str], Database], engine: str
) -> None:
    deployment = make(new_database(engine))
    _, settings = session_settings(deployment)
    service = deployment.service(**settings).start().wait_ready()
    chance = random.Random(SEED)
    workload = Workload(deployment.bus, SEED, COMMANDS, max_unanswered=COMMANDS // 14).start()
    for _ in range(12):
        if chance.random() < 0.3:
            time.sleep(chance.uniform(0, 6))  # any moment of starting, claiming or publishing what is owed
        else:
            wait_for_progress(workload, chance.randint(1, COMMANDS // 14))
            time.sleep(chance.uniform(0, 0.1))
        service.kill()
        service.start()
    conclude(deployment, workload)


# Replicas


def wait_for_partitions(service: Service, since: int = 0) -> int:
    """Until the replica was given partitions once more than `since` times."""
    count = lambda: len(service.lines('"partitions assigned"'))
    until(lambda: count() > since, 60, lambda: f"partitions for {service.log.name}\n{service.tail()}")
    return count()


def test_guarantee_3_replicas_join_leave_are_killed_and_paused(
    make: Make, new_database: Callable[[str], Database]
) -> None:
    deployment = make(new_database("postgresql"))
    session, settings = session_settings(deployment)
    first, third = (deployment.service(**settings) for _ in range(2))
    second = deployment.service(**settings, LOOPS="2")
    first.start().wait_ready()
    second.start().wait_ready()
    workload = Workload(deployment.bus, SEED + 1, rate=150).start()
    wait_for_progress(workload, 300)
    third.start().wait_ready()  # join
    wait_for_partitions(third)
    wait_for_progress(workload, 300)
    assert first.stop() == 0  # leave
    wait_for_progress(workload, 300)
    first.start()
    second.kill()  # crash
    wait_for_progress(workload, 300)
    second.start()
    wait_for_partitions(second)
    assigned = wait_for_partitions(third)
    third.pause()  # zombie
    time.sleep(session + 4)  # a time is what this is about
    wait_for_progress(workload, 300)
    third.resume()
    until(
        lambda: third.metric("identity_fenced_total") > 0 or third.lines("partitions lost"), 30,
        lambda: f"the paused replica to notice\n{third.tail()}")
    wait_for_partitions(third, assigned)
    wait_for_progress(workload, 300)
    conclude(deployment, workload)


def test_guarantee_3_a_replica_paused_again_and_again_at_any_instant(
    make: Make, new_database: Callable[[str], Database]
) -> None:
    """Short pauses hit transactions and sends in the middle; the other replica must not wait for the sleeper."""
    deployment = make(new_database("postgresql"))
    session, settings = session_settings(deployment)
    sleeper, other = (deployment.service(**settings) for _ in range(2))
    sleeper.start().wait_ready()
    other.start().wait_ready()
    wait_for_partitions(other)
    chance = random.Random(SEED)
    workload = Workload(deployment.bus, SEED + 2, rate=400).start()
    for _ in range(4):
        wait_for_progress(workload, chance.randint(1, 400))
        assigned = wait_for_partitions(sleeper)
        sleeper.pause()
        time.sleep(session + 2)
        wait_for_progress(workload, 800, timeout=30)  # most of it is the other's by then
        sleeper.resume()
        wait_for_partitions(sleeper, assigned)
        time.sleep(chance.uniform(0, 3))
    conclude(deployment, workload)


# Outages


@pytest.fixture
def own_postgres(directory: Path) -> Iterator[PostgresServer]:
    """One that may be crashed."""
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


def test_guarantee_3_the_database_crashes_and_comes_back(make: Make, own_postgres: PostgresServer) -> None:
    deployment = make(own_postgres.new_database())
    service = deployment.service().start().wait_ready()
    workload = Workload(deployment.bus, SEED + 3, rate=300).start()
    for _ in range(3):
        wait_for_progress(workload, 500)
        own_postgres.crash()
        until(lambda: service.get("/readyz")[0] == 503, 15, "not ready")
        assert service.get("/livez")[0] == 200, "an outage must not restart every process"
        time.sleep(2)
        own_postgres.start_again()
        service.wait_ready(30)
    conclude(deployment, workload)


def test_guarantee_3_an_idle_service_notices_the_databases_return(make: Make, own_postgres: PostgresServer) -> None:
    deployment = make(own_postgres.new_database())
    service = deployment.service().start().wait_ready()
    own_postgres.crash()
    until(lambda: service.get("/readyz")[0] == 503, 15, "not ready")
    own_postgres.start_again()
    service.wait_ready(20)
    assert deployment.bus.ask(c.register("install"))["status"] == "succeeded"


def test_guarantee_3_a_service_that_starts_before_its_database(make: Make, own_postgres: PostgresServer) -> None:
    database = own_postgres.new_database()
    own_postgres.crash()
    deployment = make(database)
    service = deployment.service().start()
    until(lambda: service.lines('"event":"database.down"'), 20, "the log to say what is waited for")
    assert service.get("/readyz")[0] == 503 and service.get("/livez")[0] == 200
    own_postgres.start_again()
    service.wait_ready(30)
    assert deployment.bus.ask(c.register("install"))["status"] == "succeeded"


@pytest.mark.outage
def test_guarantee_3_the_broker_stands_still(make: Make, new_database: Callable[[str], Database]) -> None:
    deployment = make(new_database("sqlite"))
    service = deployment.service().start().wait_ready()
    workload = Workload(deployment.bus, SEED + 4, rate=300).start()
    for seconds in (2.0, EMBEDDED_SESSION + 2):
        wait_for_progress(workload, 500)
        deployment.broker.go_away()
        time.sleep(seconds)
        deployment.broker.come_back()
        wait_for_progress(workload, 500)
    assert service.is_running
    conclude(deployment, workload)
