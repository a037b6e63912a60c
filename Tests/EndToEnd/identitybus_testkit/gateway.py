# SPDX-License-Identifier: Apache-2.0
"""A deployment with the HTTP gateway, with the demo apps of config/apps.yaml."""

import json
from pathlib import Path
from typing import Any

from .broker import SERVICES, Broker, topics_of
from .databases import Database
from .deployment import Deployment
from .http import Client
from .places import REPOSITORY
from .secrets import SECRET_PREFIX, gateway_keys
from .service import Service
from .standin import Script, StandIn
from .waiting import until

# So that tests can make tokens of the app `demo`.
TOKEN_SECRET = SECRET_PREFIX + "of-the-tokens-of-demo"


def topics() -> list[str]:
    return [*topics_of(*SERVICES), "identity.replies.gateway.v1"]


class Gateway(Service):
    @property
    def address(self) -> str:
        return self._address("gateway is up")

    def _address(self, text: str) -> str:
        def bound() -> str:
            assert self.is_running, f"{self.name} has ended with {self.process.returncode}\n{self.tail()}"
            for line in self.lines(f'"{text}"'):
                return str(json.loads(line)["fields"]["address"])
            return ""

        return until(bound, 60, lambda: f"the gateway's address\n{self.tail()}")

    @property
    def admin(self) -> Client:
        """The admin port, where `GATEWAY_ADMIN_PORT` is set."""
        return Client(self._address("admin port is up"))

    @property
    def client(self) -> Client:
        return Client(self.address)

    def access(self, *parts: str) -> list[dict[str, Any]]:
        """The access log's fields of the requests whose lines contain all `parts`."""
        return [json.loads(line)["fields"] for line in self.lines('"request"', *parts)]


class GatewayDeployment(Deployment):
    def __init__(self, broker: Broker, directory: Path, database: Database, prefix: str | None = None,
                 names: tuple[str, ...] = ("link",)) -> None:
        super().__init__(broker, directory, database, prefix, names)
        broker.make_known([self.prefix + topic for topic in topics()])
        demo = (REPOSITORY / "config" / "apps.yaml").read_text()
        secret = "      appSecret: demo-app-secret\n"
        assert demo.count(secret) == 1
        self.apps_file.write_text(demo.replace(secret, f"{secret}      tokenSecret: {TOKEN_SECRET}\n"))
        self.stand_ins: list[StandIn] = []

    def gateway(self, **more: str) -> Gateway:
        """Another gateway process, not started. It waits for replies for as long as a busy machine may take."""
        environment = self.broker.service_environment() | {
            "GATEWAY_REPLY_TIMEOUT_MS": "30000",
            "TOPIC_PREFIX": self.prefix, "IDENTITYBUS_APPS": str(self.apps_file), "LOG_FORMAT": "json",
            "IDENTITYBUS_GATEWAY_KEYS": gateway_keys(), "HTTP_PORT": "0", "GATEWAY_PORT": "0"}
        gateway = Gateway("gateway", environment | more, self.directory / f"gateway-{len(self.services)}.log")
        self.services.append(gateway)
        return gateway

    def stand_in(self, service: str, script: Script) -> StandIn:
        self.broker.ensure([self.prefix + topic for topic in topics()])
        stand_in = StandIn(self.broker, self.prefix, service, script)
        self.stand_ins.append(stand_in)
        return stand_in

    def process(self, name: str, **more: str) -> Service:
        """A real service, not started."""
        service = Service(name, self.environment() | more, self.directory / f"{name}-{len(self.services)}.log")
        self.services.append(service)
        return service

    def close(self) -> None:
        for stand_in in self.stand_ins:
            stand_in.close()
        super().close()
