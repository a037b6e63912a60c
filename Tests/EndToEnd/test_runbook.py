# SPDX-License-Identifier: Apache-2.0
"""The runbook's blocks, run as they stand: in the environment of a service, on a deployment that is injured as the alert
says where the embedded broker lets it be."""

import json
import re
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.blocks import Page
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

pytestmark = pytest.mark.slow


PAGE = Page("runbook.md")


class Ground:
    """A deployment with one process of each, and a shell in the containers of its services."""

    def __init__(self, deployment: GatewayDeployment, server: PostgresServer) -> None:
        self.deployment, self.server = deployment, server
        self.services = {name: deployment.process(name) for name in SERVICES}
        self.gateway: Gateway = deployment.gateway()

    @property
    def link(self) -> Service:
        return self.services["link"]

    def run(self, heading: str, number: int = 0, service: Service | None = None, port: int | None = None, timeout: float = 90,
            **more: str) -> subprocess.CompletedProcess[str]:
        service = service or self.link
        environment = service.environment | more | {"HTTP_PORT": str(port or service.port)}
        return PAGE.run(heading, number, environment, timeout)

    def write_apps(self, *more: dict[str, object]) -> None:
        """The tests' apps, of which `demo` has more keys."""
        content: list[dict[str, Any]] = json.loads(json.dumps(apps.apps()))
        content[0]["keys"] += more
        apps.write(self.deployment.apps_file, content)


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


@pytest.fixture(scope="module")
def ground(server: PostgresServer, make_deployment: Callable[..., Deployment]) -> Ground:
    deployment = make_deployment(database=server.new_database(), kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    ground = Ground(deployment, server)
    ground.write_apps()
    for service in (*ground.services.values(), ground.gateway):
        service.start()
    for service in (*ground.services.values(), ground.gateway):
        service.wait_ready()
    return ground


@pytest.fixture
def well(ground: Ground) -> Ground:
    """When all is well again after the test before."""
    for service in (*ground.services.values(), ground.gateway):
        service.wait_ready(90)
    return ground


def test_runbook_where_the_blocks_are_run(well: Ground) -> None:
    answer = well.run("Where the blocks are run")
    assert answer.stdout.startswith("ready\n") and "PostgreSQL" in answer.stdout, answer
    # What the embedded broker promises less than a cluster is a warning.
    assert "FAIL" not in answer.stdout and answer.returncode == 0, answer


def test_runbook_service_down(well: Ground) -> None:
    """Whoever starts finds what is wrong without a start."""
    port = well.link.port
    assert well.link.stop() == 0
    answer = well.run("IdentityBusServiceDown", port=port)
    assert "FAIL" not in answer.stdout and answer.returncode == 0, answer
    wrong = well.run("IdentityBusServiceDown", port=port, IDENTITYBUS_INTERNAL_KEY="short")
    assert "FAIL" in wrong.stdout and "IDENTITYBUS_INTERNAL_KEY" in wrong.stdout, wrong
    well.link.start()


def test_runbook_replica_down(well: Ground) -> None:
    assert well.run("IdentityBusReplicaDown").returncode == 0
    well.link.pause()
    answer = well.run("IdentityBusReplicaDown", port=well.link.port)
    assert answer.returncode == 69, answer
    well.link.resume()


def test_runbook_restarting(well: Ground) -> None:
    answer = well.run("IdentityBusRestarting", BATCH_SIZE="abc")
    assert answer.returncode == 3 and "BATCH_SIZE" in answer.stdout, answer


def test_runbook_database_down(well: Ground) -> None:
    found: list[subprocess.CompletedProcess[str]] = []
    waits = threading.Thread(target=lambda: found.append(well.run("IdentityBusDatabaseDown", 1)))
    with well.server.away():
        # The first that it says may be how its connections ended.
        until(lambda: "refused" in well.link.failed_checks().get("database", ""), 30, well.link.tail)
        answer = well.run("IdentityBusDatabaseDown")
        assert answer.returncode == 3 and answer.stdout.startswith("not ready\n"), answer
        assert answer.stdout.count("connection refused") >= 2, f"both say it: {answer}"
        waits.start()
        time.sleep(2)
        assert not found
    waits.join(90)
    assert found and found[0].returncode == 0 and found[0].stdout.rstrip().endswith("ready"), found


def test_runbook_broker_down(well: Ground) -> None:
    lost = well.deployment.process("link", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1", DATABASE_SCHEMA_PREFIX="lost_").start()
    until(lambda: "refused" in lost.failed_checks().get("broker", ""), 30, lost.tail)
    answer = well.run("IdentityBusBrokerDown", service=lost)
    assert answer.returncode == 3 and answer.stdout.startswith("not ready\n"), answer
    assert answer.stdout.count("127.0.0.1:1") >= 2 and "connection refused" in answer.stdout.lower(), answer
    lost.kill()


def test_runbook_topics_unusable(well: Ground) -> None:
    answer = well.run("IdentityBusTopicsUnusable")
    assert answer.returncode == 0 and f"{well.deployment.prefix}identity.link.commands.v1" in answer.stdout, answer
    assert "--allow-principal User:ib-link" in answer.stdout, answer


@pytest.mark.parametrize("heading", ["IdentityBusGroupHangs", "IdentityBusStuck", "IdentityBusRecordsLost"])
def test_runbook_what_only_looks(heading: str, well: Ground) -> None:
    answer = well.run(heading)
    assert answer.stdout and answer.returncode in (0, 3) and "identitybus: " not in answer.stderr, answer


def test_runbook_commands_wait(well: Ground) -> None:
    well.deployment.bus.ask(c.register(fresh("install")))
    until(lambda: "kafka_consumer_lag{" in well.link.get("/metrics")[1], 20, "the lag")
    answer = well.run("IdentityBusCommandsWait")
    for name in ("kafka_consumer_lag", "identity_oldest_undecided_seconds", "identity_batch_duration_seconds_sum",
                 "identity_app_seconds_total"):
        assert re.search(rf"^{name}\{{.*\}} \S+$", answer.stdout, re.M), answer
    assert answer.returncode == 0, answer


def test_runbook_replies_late(well: Ground) -> None:
    """Of a request that a gateway has answered with 504: it was decided all the same."""
    hasty = well.deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="300").start().wait_ready()
    well.link.pause()
    sent = hasty.client.post(
        f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend", Idempotency_Key=fresh("key"))
    well.link.resume()
    assert sent.status == 504
    ID = sent.headers["X-Request-Id"]

    def told() -> bool:
        answer = well.run("IdentityBusRepliesLate", ID=ID, APP="demo")
        return answer.returncode == 0 and "INSTALL_NOT_FOUND" in answer.stdout

    until(told, 60, lambda: str(well.run("IdentityBusRepliesLate", ID=ID, APP="demo")), 0.5)
    hasty.kill()


def test_runbook_gateway_full(well: Ground) -> None:
    answer = well.run("IdentityBusGatewayFull", service=well.gateway)
    assert answer.returncode == 0 and "gateway_requests_in_flight" in answer.stdout, answer


def test_runbook_dead_letters(well: Ground) -> None:
    bus = well.deployment.bus
    late = []
    for _ in range(2):
        install, person = fresh("install"), fresh("ext")
        bus.ask(c.register(install))
        late.append(c.request(install, person, signer="demo-late"))
        bus.dead_letter(bus.send(late[-1]))

    def listed() -> list[str]:
        return re.findall(r"^link/\d+@\d+", subprocess.run(
            [binary("identitybus"), "dlq", "list", "--each", "--service", "link"], capture_output=True, text=True,
            env=clean_environment() | well.link.environment, timeout=60).stdout, re.M)

    until(lambda: len(listed()) == 2, 30, lambda: str(listed()), 0.5)
    letters = listed()
    shown = well.run("IdentityBusDeadLetters", LETTER=letters[0])
    assert shown.returncode == 0 and letters[0] in shown.stdout and "link.request" in shown.stdout, shown
    well.write_apps(apps.key("demo-late", "user.link"))
    time.sleep(12)  # for the services to read it
    replayed = well.run("IdentityBusDeadLetters", 1, LETTER=letters[0])
    assert replayed.returncode == 0 and "would succeed 1" in replayed.stdout and "1 replayed" in replayed.stdout, replayed
    dismissed = well.run("IdentityBusDeadLetters", 2, LETTER=letters[1])
    assert dismissed.returncode == 0 and "dismissed 1 of 1" in dismissed.stdout, dismissed
    well.write_apps()


def test_runbook_apps_file_refused(well: Ground) -> None:
    before = well.deployment.apps_file.read_text()
    well.deployment.apps_file.write_text(before.replace('"keys"', '"kees"', 1))
    answer = well.run("IdentityBusAppsFileRefused")
    assert answer.returncode == 78 and re.search(r"apps\.yaml:\d+:\d+", answer.stdout + answer.stderr), answer
    well.deployment.apps_file.write_text(before)


def test_runbook_key_ends_soon(well: Ground) -> None:
    well.write_apps(apps.key("demo-soon", "user.link", expires="2999-01-01"))
    until(lambda: 'key="demo-soon"' in well.link.get("/metrics")[1], 30, "the key")
    answer = well.run("IdentityBusKeyEndsSoon")
    assert answer.returncode == 0 and 'key="demo-soon"' in answer.stdout, answer
    well.write_apps()


def test_runbook_certificate_ends_soon(well: Ground, tmp_path: Path) -> None:
    """What the gateway shows, and the files: its own, a certificate without its key, and both."""
    authority = Authority(tmp_path / "authority")
    soon = int(time.time()) + 3 * 86_400
    first = authority.issue("127.0.0.1", ends=time.strftime("%y%m%d%H%M%SZ", time.gmtime(soon)))
    second = authority.issue("127.0.0.1", ends="400101000000Z")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    shutil.copy(first[0], certificate)
    shutil.copy(first[1], key)
    gateway = well.deployment.gateway(GATEWAY_TLS_CERTIFICATE=str(certificate), GATEWAY_TLS_KEY=str(key))
    gateway.start().wait_ready()

    def told(status: int) -> tuple[str, str]:
        answer = well.run("IdentityBusCertificateEndsSoon", service=gateway)
        assert answer.returncode == status, answer
        shown, _, rest = answer.stdout.partition("\n")
        return shown, rest

    shown, files = told(0)
    assert shown == time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(soon))
    assert re.search(rf"warn  certificate +ours \({certificate}\): .* ends on {shown[:10]}", files), files
    shutil.copy(second[0], certificate)
    until(lambda: gateway.lines('"tls.refused"'), 15, gateway.tail)
    still, files = told(3)
    assert still == shown and re.search(r"FAIL  settings +GATEWAY_TLS_KEY .* is not the key of", files), (still, files)
    assert re.search(r"ok    certificate ", files), files
    shutil.copy(second[1], key)
    until(lambda: gateway.lines('"tls.changed"'), 15, gateway.tail)
    assert told(0)[0] == "2040-01-01T00:00:00+00:00"
    gateway.kill()


def test_runbook_every_block_has_been_run(request: pytest.FixtureRequest) -> None:
    if len(request.session.items) < 10:
        pytest.skip("only some of the tests were chosen")
    assert PAGE.run_ones == set(PAGE.blocks)
