# SPDX-License-Identifier: Apache-2.0
"""Replicas of a service: one that is killed, and two that cannot be replicas of each other."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import Platform, Traffic
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

TAKE_OVER = 12.0


@pytest.mark.slow
@pytest.mark.parametrize("loops", [1, 2])
def test_a_killed_replicas_partitions_are_taken_over_within_12_s(
    make_deployment: Callable[..., Deployment], loops: int
) -> None:
    """With the product's own settings on a real Kafka, not with those that save the tests time."""
    deployment = make_deployment("postgresql")
    bus = deployment.bus
    settings = deployment.broker.usual_settings() | {"LOOPS": str(loops)}
    replicas = [deployment.service(**settings).start().wait_ready() for _ in range(2)]
    partitions = set(deployment.broker.partitions(bus.commands))

    def shared() -> bool:
        first, second = (replica.owned().get(bus.commands, set()) for replica in replicas)
        return bool(first) and bool(second) and not first & second and first | second == partitions

    until(shared, 60, lambda: f"both to own partitions: {[replica.owned() for replica in replicas]}")
    replicas[0].kill()
    killed = time.monotonic()
    commands = [c.register(fresh("install")) for _ in partitions]
    for partition, command in zip(sorted(partitions), commands):
        bus.send(command, partition=partition)
    for command in commands:
        assert bus.reply(command.id, max(0.1, killed + TAKE_OVER - time.monotonic()))["status"] == "succeeded"
    print(f"{time.monotonic() - killed:.1f} s")


@pytest.mark.slow
def test_two_sqlite_stores_in_one_group_are_refused(
    make_deployment: Callable[..., Deployment], tmp_path: Path
) -> None:
    """Each would decide a part of the commands on a part of the state."""
    deployment = make_deployment("sqlite")
    first = deployment.service().start().wait_ready()
    second = deployment.service(DATA_DIR=str(tmp_path)).start()
    both = [first, second]
    until(lambda: not all(service.is_running for service in both), 30, lambda: f"one to end\n{second.tail()}")
    [ended] = [service for service in both if not service.is_running]
    [kept] = [service for service in both if service.is_running]
    assert ended.process.returncode == 64, ended.tail()
    [last] = [line for line in ended.text.splitlines() if line.startswith("identitybus-link: ")]
    assert "SQLite" in last and "PostgreSQL" in last, last
    kept.wait_ready()
    for partition in deployment.broker.partitions(deployment.bus.commands):
        command = c.register(fresh("install"))
        deployment.bus.send(command, partition=partition)
        assert deployment.bus.reply(command.id)["status"] == "succeeded"


@pytest.mark.slow
def test_replicas_are_replaced_one_by_one_under_load(make_deployment: Callable[..., Platform]) -> None:
    """A rolling upgrade without a migration, and for one replica the way back. $E2E_OLDER_BIN: an earlier build with the
    same schema; without it both are this one."""
    platform = make_deployment("postgresql", services=("link", "sync"), kind=Platform)
    older = os.environ.get("E2E_OLDER_BIN")

    def replica(name: str, is_older: bool) -> Service:
        service = platform.service(name, **platform.broker.usual_settings())
        if older and is_older:
            service.program = Path(older) / f"identitybus-{name}"
        return service.start()

    running = [replica(name, True) for name in ("link", "link", "sync", "sync")]
    for service in running:
        service.wait_ready()
    traffic = Traffic(platform.bus, ("link", "sync"), rate=80).start()
    for index, is_older in [(0, False), (1, False), (2, False), (3, False), (0, True)]:
        traffic.wait_for_answers(40)
        assert running[index].stop() == 0
        running[index] = replica(running[index].name, is_older).wait_ready()
    traffic.wait_for_answers(40)
    traffic.finish()
    platform.stop()
    traffic.check(platform)
