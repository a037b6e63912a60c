# SPDX-License-Identifier: Apache-2.0
"""The first start of everything, on a Kafka that has no topic of ours yet and a machine without a store."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit.broker import Broker
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import SERVICES, Platform, one
from identitybus_testkit.waiting import Deadline, until

# What each service reads.
READS = {
    "link": ["link.commands", "replies.link", "sync.events"], "user": ["user.commands", "replies.user", "link.events"],
    "sync": ["sync.commands", "replies.sync", "link.events"],
    "verification": ["verification.commands", "replies.verification", "sync.events"],
}


@pytest.fixture(scope="module")
def empty_broker(directory: Path) -> Iterator[Callable[[str], Broker]]:
    """A new one, unless there is a real one. `identitybus up` makes the topics of the embedded one."""
    brokers: list[Broker] = []

    def make(prefix: str) -> Broker:
        brokers.append(Broker.for_tests(directory / prefix, prefix))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_all_services_own_all_partitions_within_10_s_and_have_nothing_to_complain_of(
    empty_broker: Callable[[str], Broker], make_deployment: Callable[..., Deployment], engine: str
) -> None:
    prefix = f"first-{uuid.uuid4().hex[:8]}."
    platform = make_deployment(engine, on=empty_broker(prefix), prefix=prefix, kind=Platform)
    started, in_time = time.monotonic(), Deadline(10)
    services = [platform.service(name, **platform.broker.usual_settings()).start() for name in SERVICES]
    expected = {
        name: {f"{prefix}identity.{topic}.v1": set(range(12)) for topic in topics} for name, topics in READS.items()}
    until(
        lambda: all(service.is_ready and service.owned() == expected[service.name] for service in services),
        in_time.left,
        lambda: "all ready with all partitions: "
        + str([(service.name, service.is_ready, service.owned()) for service in services]))
    print(f"{time.monotonic() - started:.1f} s")
    for name in SERVICES:
        assert platform.bus.settle(one(name))["status"] == "succeeded"
    assert not [line for service in services for line in service.complaints()]
