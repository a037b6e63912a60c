# SPDX-License-Identifier: Apache-2.0
"""One of two gateways goes while clients keep their connections: it says so first, answers until its delay is over, and no
request fails. Nobody repeats anything."""

import signal
import socket
import threading
import time
from collections.abc import Callable

import pytest

from identitybus_testkit.commands import fresh
from identitybus_testkit.crowd import Balancer, Crowd, Request, asked_with
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.ports import free_port
from identitybus_testkit.standin import succeeded

pytestmark = pytest.mark.slow

RATE = 50.0
# Each is used every two seconds, so it hears within the delay that it should open another one.
CLIENTS = 100
# As in the image.
DELAY = 5.0


class Door:
    """Looks at a gateway's readiness and at its port, until both are gone."""

    def __init__(self, gateway: Gateway) -> None:
        self.not_ready = self.closed = float("inf")
        self._gateway, self._port = gateway, int(gateway.environment["GATEWAY_PORT"])
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "the port is still open"

    def _run(self) -> None:
        while self.closed == float("inf"):
            if self.not_ready == float("inf") and not self._gateway.is_ready:
                self.not_ready = time.monotonic()
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
            except OSError:
                self.closed = time.monotonic()
            time.sleep(0.02)


def link(_: int) -> Request:
    return asked_with("demo-backend", "link", f"/v2/users/{fresh('install')}/link", external_id=fresh("ext"))


def test_one_of_two_gateways_goes_and_no_request_fails(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    answer = {"userId": "0" * 24, "installId": "an-install", "isActive": True, "personCreated": True}
    deployment.stand_in("link", lambda _: [succeeded(answer)])
    gateways = [
        deployment.gateway(
            GATEWAY_PORT=str(free_port()), HTTP_PORT=str(free_port()), GATEWAY_DRAIN_DELAY_SECONDS=str(int(DELAY))).start()
        for _ in range(2)]
    for gateway in gateways:
        gateway.wait_ready()
    balancer = Balancer(gateways)
    crowd = Crowd(balancer, link, RATE, CLIENTS).start()
    crowd.wait(int(3 * RATE))
    door, goes = Door(gateways[0]), time.monotonic()
    gateways[0].process.send_signal(signal.SIGTERM)
    door.join()
    assert gateways[0].wait(30) == 0
    crowd.wait(int(2 * RATE))
    crowd.finish()
    balancer.close()
    print(f"not ready after {door.not_ready - goes:.2f} s, closed after {door.closed - goes:.2f} s; {crowd}")
    assert set(crowd.statuses) == {"200"}, "each was answered, and at the first time of asking"
    assert door.not_ready < goes + 2 and door.closed >= goes + DELAY, "it says that it goes, and goes later"
    shares = [len(gateway.access("/link")) for gateway in gateways]
    assert min(shares) > RATE, ("both had clients", shares)
