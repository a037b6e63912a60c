# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's server is gone and its standby takes its place, with all four services and under load
(docs/rehearsals.md "Failover"). What a synchronous one has is what was told; what an asynchronous one lacks is decided again,
to the same ids."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit.bus import Record
from identitybus_testkit.databases import PostgresServer, Standby
from identitybus_testkit.dry_run import lasting
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import Platform, Traffic
from identitybus_testkit.waiting import Deadline, until

pytestmark = pytest.mark.slow


@pytest.fixture
def followed(directory: Path) -> Iterator[tuple[PostgresServer, Standby]]:
    folder = directory / f"postgres-{uuid.uuid4().hex[:8]}"
    primary = PostgresServer.throwaway(folder / "primary")
    standby = primary.standby(folder / "standby")
    yield primary, standby
    standby.close()
    primary.close()


@pytest.fixture
def platform(make_deployment: Callable[..., Deployment], followed: tuple[PostgresServer, Standby]) -> Platform:
    primary, standby = followed
    deployment = make_deployment(database=standby.both(primary), kind=Platform)
    assert isinstance(deployment, Platform)
    return deployment


def conclude(platform: Platform, traffic: Traffic, processes: list[int]) -> None:
    """Nobody had to be restarted, and all is well again."""
    traffic.finish(120)
    for service in platform.services:
        service.wait_ready()
    assert [service.process.pid for service in platform.services] == processes
    platform.stop()


def lasts(record: Record) -> str:
    """What is decided again has another time, and other tokens."""
    return json.dumps(lasting(record.data), sort_keys=True)


def take_over(platform: Platform, primary: PostgresServer, standby: Standby, traffic: Traffic) -> None:
    """While nobody takes writes each service says so; soon after the standby does, all are ready."""
    primary.kill()

    def named() -> bool:
        return all("[08001]" in service.failed_checks().get("database", "") for service in platform.services)

    until(named, 30, lambda: str([service.failed_checks() for service in platform.services]))
    standby.promote()
    began, in_time = time.monotonic(), Deadline(15)
    for service in platform.services:
        service.wait_ready(in_time.left)
    traffic.wait_for_answers(80, 60)
    print(f"\n80 answers {time.monotonic() - began:.1f} s after the standby took over")


def test_a_synchronous_standby_takes_over(platform: Platform, followed: tuple[PostgresServer, Standby]) -> None:
    """Nothing that was decided is lost, and nothing is told twice in other words."""
    primary, standby = followed
    primary.wait_for_standbys("*")
    processes = [service.process.pid for service in platform.start()]
    traffic = Traffic(platform.bus).start()
    traffic.wait_for_answers(80)
    take_over(platform, primary, standby, traffic)
    conclude(platform, traffic, processes)
    traffic.check(platform)


def test_an_asynchronous_standby_takes_over(platform: Platform, followed: tuple[PostgresServer, Standby]) -> None:
    """It lacks the last seconds of all four stores. They are decided again from the topics: the same ids."""
    primary, standby = followed
    processes = [service.process.pid for service in platform.start()]
    traffic = Traffic(platform.bus).start()
    traffic.wait_for_answers(80)
    standby.stop_following()
    known = standby.ask("SELECT count(*) FROM identity_link.persons")
    traffic.wait_for_answers(80)
    with_the_first = platform.database.execute("SELECT count(*) FROM persons")
    assert with_the_first > known, "nothing was lost"
    take_over(platform, primary, standby, traffic)
    conclude(platform, traffic, processes)
    # The moment of a login stands in sync's event, and verification has heard another one.
    traffic.check(platform, lasts, frozenset({b"ID_REUSED"}))


def test_commands_wait_while_a_synchronous_standby_is_away(
    platform: Platform, followed: tuple[PostgresServer, Standby]
) -> None:
    """Until it is back, or until the server no longer waits for it: that commits wait is what is bought."""
    primary, standby = followed
    primary.wait_for_standbys("*")
    services = platform.start()
    processes = [service.process.pid for service in services]
    traffic = Traffic(platform.bus, rate=20).start()
    traffic.wait_for_answers(40)
    standby.stop()
    until(
        lambda: all("database" in service.failed_checks() for service in services), 40,
        lambda: str([service.failed_checks() for service in services]))
    primary.wait_for_standbys("")
    traffic.wait_for_answers(80, 60)
    conclude(platform, traffic, processes)
    traffic.check(platform)
