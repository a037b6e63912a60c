# SPDX-License-Identifier: Apache-2.0
"""A deployment under test: its apps file, topics, store and processes."""

import uuid
from pathlib import Path

from . import apps
from .broker import Broker, topics_of
from .bus import Bus
from .databases import Database
from .secrets import INTERNAL_KEY, assert_no_secrets_in_files
from .service import Service


class Deployment:
    def __init__(self, broker: Broker, directory: Path, database: Database, prefix: str | None = None,
                 names: tuple[str, ...] = ("link",)) -> None:
        """`names`: the services that the tests talk to; the first is the one under test."""
        self.broker = broker
        self.directory = directory
        self.database = database
        self.prefix = prefix if prefix is not None else f"e2e-{uuid.uuid4().hex[:8]}."
        self.apps_file = directory / "apps.yaml"
        self.names = names
        self.services: list[Service] = []
        apps.write(self.apps_file, apps.apps())
        broker.make_known([self.prefix + topic for topic in topics_of(*names)])
        self.bus = Bus(broker, self.prefix, names)
        self.buses = [self.bus]

    def environment(self) -> dict[str, str]:
        return {
            **self.broker.service_environment(), **self.database.environment(), "TOPIC_PREFIX": self.prefix,
            "IDENTITYBUS_APPS": str(self.apps_file), "IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY, "LOG_FORMAT": "json",
            "HTTP_PORT": "0",
        }

    def service(self, name: str | None = None, **more: str) -> Service:
        """Another process of the service under test, or of another one; not started."""
        name = name or self.names[0]
        log = self.directory / f"{name}-{len(self.services)}.log"
        service = Service(name, self.environment() | more, log)
        self.services.append(service)
        return service

    def close(self) -> None:
        for service in self.services:
            if service.is_running:
                service.resume()
                service.kill()
        try:
            for bus in self.buses:
                bus.close()
        finally:
            self.broker.delete_all(self.prefix)
        assert_no_secrets_in_files(service.log for service in self.services if service.log.exists())

    def tails(self) -> str:
        return "\n".join(service.tail() for service in self.services)
