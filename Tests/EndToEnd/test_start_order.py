# SPDX-License-Identifier: Apache-2.0
"""Services and gateway are there before PostgreSQL, and PostgreSQL before Kafka: all are ready soon after the last one, none
ends, and while they wait the log says next to nothing."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import kafka
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.ports import free_port
from identitybus_testkit.proxy import Proxy
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline

pytestmark = pytest.mark.slow

APART = 20.0
# For all of them together.
READY = 30.0
# Of one process in a minute, once it has said what it waits for.
LINES = 3
# What is said at the start: who it is, where its port is, and what is away.
SAID = 5.0


class Later(Broker):
    """An embedded broker that does not run yet. Who asks at its address meanwhile is refused."""

    def __init__(self, directory: Path) -> None:
        self._port = free_port()
        super().__init__(f"127.0.0.1:{self._port}")
        self._directory = directory
        self._known: list[str] = []
        self._door: Proxy | None = None

    @property
    def is_embedded(self) -> bool:
        return True

    def make_known(self, topics: list[str]) -> None:
        self._known += topics

    def come(self) -> None:
        broker = Broker.embedded(self._directory)
        self.process = broker.process
        broker.create(self._known)
        self._door = Proxy("127.0.0.1", int(broker.servers.rpartition(":")[2]), self._port)

    def close(self) -> None:
        if self._door is not None:
            self._door.close()
        super().close()


@contextmanager
def later(kind: str, directory: Path) -> Iterator[tuple[Broker, Callable[[], object]]]:
    """A broker that does not run yet, and what starts it: that returns when it answers."""
    folder = directory / f"broker-{uuid.uuid4().hex[:8]}"
    if kind == "embedded":
        embedded = Later(folder)
        try:
            yield embedded, embedded.come
        finally:
            embedded.close()
    else:
        server = kafka.Kafka(folder)
        try:
            yield server.open(), server.start
        finally:
            server.close()


def lines_in_a_minute(service: Service) -> int:
    """The most that it has logged in any minute, without what it says at the start."""
    times = [datetime.fromisoformat(json.loads(line)["time"]).timestamp() for line in service.text.splitlines()]
    waited = [moment for moment in times if moment > times[0] + SAID]
    return max((sum(0 <= other - moment < 60 for other in waited) for moment in waited), default=0)


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.skipif(
    not kafka.HOME, reason="TEST_KAFKA_HOME is not the folder of an Apache Kafka"))])
def test_what_they_need_comes_later(
    kind: str, directory: Path, open_deployment: Callable[..., AbstractContextManager[GatewayDeployment]]
) -> None:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    try:
        database = server.new_database()
        server.crash()
        with later(kind, directory) as (broker, come), \
                open_deployment(database=database, on=broker, kind=GatewayDeployment) as deployment:
            everybody = [deployment.process(name).start() for name in SERVICES] + [deployment.gateway().start()]
            processes = [service.process.pid for service in everybody]
            time.sleep(APART)
            for service in everybody:
                assert service.get("/livez")[0] == 200 and service.get("/readyz")[0] == 503, service.tail()
            server.start_again()
            time.sleep(APART)
            waited = {service.name: lines_in_a_minute(service) for service in everybody}
            assert max(waited.values()) <= LINES, (waited, deployment.tails())
            come()
            began, in_time = time.monotonic(), Deadline(READY)
            for service in everybody:
                service.wait_ready(in_time.left)
            print(f"{time.monotonic() - began:.1f} s until all were ready; lines in a minute {waited}")
            assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"
            assert [service.process.pid for service in everybody] == processes
    finally:
        server.close()
