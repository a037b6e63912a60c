# SPDX-License-Identifier: Apache-2.0
"""Services and gateway are there before PostgreSQL, and PostgreSQL before Kafka: all are ready soon after the last one, none
ends, and the log stays short."""

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.waiting import until

pytestmark = pytest.mark.slow

APART = 20.0
READY = 30.0
# Of each kind one when it begins and one each minute, for what is away: the database first, and the broker.
LINES = 8


def test_what_they_need_comes_later(directory: Path, make_deployment: Callable[..., GatewayDeployment]) -> None:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    broker = Broker.embedded(directory / f"broker-{uuid.uuid4().hex[:8]}")
    try:
        deployment = make_deployment(database=server.new_database(), on=broker, kind=GatewayDeployment)
        server.crash()
        broker.pause()
        everybody = [deployment.process(name).start() for name in SERVICES] + [deployment.gateway().start()]
        processes = [service.process.pid for service in everybody]
        time.sleep(APART)
        for service in everybody:
            assert service.get("/livez")[0] == 200 and service.get("/readyz")[0] == 503, service.tail()
        server.start_again()
        time.sleep(APART)
        waited = {service.log: len(service.lines('"event":')) for service in everybody}
        assert max(waited.values()) <= LINES, (waited, everybody[0].tail())
        broker.resume()
        for service in everybody:
            service.wait_ready(READY)
        until(
            lambda: deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded", 30, "an answer")
        assert [service.process.pid for service in everybody] == processes
    finally:
        broker.resume()
        server.close()
        broker.close()
