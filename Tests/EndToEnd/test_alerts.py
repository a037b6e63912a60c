# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus scrapes a deployment with deploy/monitoring/alerts.yaml, whose times are made shorter: where nothing is
wrong no alert fires, and for each injury the one of its name does, and no other. Beside a whole deployment that is well stand one
more process, or a few, that are injured: by everything that test_operate_injuries.py does to a running service's database and
to a broker, and by each right that test_kafka_rights.py takes away. Every query of the dashboard has an answer."""

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgreSQL, PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority, FakeBroker
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.kafka import HOME, Kafka
from identitybus_testkit.monitoring import ONLY_WHEN_WRONG, Prometheus, metrics_of, queries, rules
from identitybus_testkit.ports import free_port
from identitybus_testkit.proxy import ProxiedPostgreSQL
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until
from test_kafka_rights import MISSING, Lesser
from test_operate_injuries import DATABASE, END_SESSIONS, KAFKA, NO_SASL, role, sql, stopped
from test_operate_injuries import kafka as who_listens

pytestmark = [
    pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("E2E_ALERTS"), reason="takes half an hour: scripts/test --long"),
    pytest.mark.skipif(Prometheus.program() is None, reason="prometheus is not there (Debian: prometheus)")]

# How long an alert may take, once an injury is done: what is noticed last is a consumer group that hangs.
FIRED = 60.0
# How long nothing may fire where nothing is wrong: an hour is 3600.
QUIET = float(os.environ.get("ALERT_QUIET_SECONDS", "30"))
NAMES = (*SERVICES, "gateway")
# What an Apache Kafka is needed for that the tests may injure.
apache = pytest.mark.skipif(not HOME, reason="needs an Apache Kafka to start: TEST_KAFKA_HOME names its folder")


class Well:
    """A whole deployment of which nothing is injured but where a test says so."""

    def __init__(self, deployment: GatewayDeployment) -> None:
        self.deployment = deployment
        self.services = {name: deployment.process(name, HTTP_PORT=str(free_port())) for name in SERVICES}
        self.gateway = deployment.gateway(HTTP_PORT=str(free_port()))

    @property
    def all(self) -> list[Service]:
        return [*self.services.values(), self.gateway]

    def use(self) -> None:
        """Something of everything that the dashboard shows."""
        self.deployment.bus.ask(c.register(fresh("install")))
        answer = self.gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend")
        assert answer.status == 200, answer
        read = c.Command("link.get-user", {"installId": fresh("install")}, fresh("x"), signer="demo-support")
        self.deployment.bus.ask(read)


@pytest.fixture(scope="module")
def prometheus(directory: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(directory / f"prometheus-{uuid.uuid4().hex[:8]}")
    yield prometheus.start()
    prometheus.close()


@pytest.fixture(scope="module")
def well(prometheus: Prometheus, make_deployment: Callable[..., Deployment]) -> Well:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    well = Well(deployment)
    for service in well.all:
        service.start()
    for service in well.all:
        service.wait_ready()
        prometheus.watch(service)
    well.use()
    until(lambda: len(prometheus.query("up == 1")) == 5, 30, "all targets")
    return well


@pytest.fixture
def quiet(prometheus: Prometheus, well: Well) -> Prometheus:
    """Prometheus, when what the test before did is over."""
    until(lambda: not prometheus.firing(), 90, lambda: f"the end of {prometheus.firing()}", 0.5)
    # As long as causes keep consequences silent.
    time.sleep(16)
    prometheus.forget()
    return prometheus


def watch_for_others(prometheus: Prometheus) -> None:
    end = time.monotonic() + 8
    while time.monotonic() < end:
        prometheus.firing()
        time.sleep(0.5)


def wait_until_fires(prometheus: Prometheus, alert: str, seconds: float = FIRED) -> dict[str, str]:
    """That alert, and no other then or within the next seconds. Its labels."""
    until(lambda: alert in prometheus.firing(), seconds, lambda: f"{alert}; fired have {prometheus.fired}", 0.5)
    watch_for_others(prometheus)
    assert set(prometheus.fired) == {alert}, prometheus.fired
    return prometheus.fired[alert][0]


def wait_until_over(prometheus: Prometheus, alert: str, seconds: float = 90) -> None:
    """Nothing else fires on the way back."""
    until(lambda: not prometheus.firing(), seconds, lambda: f"the end of {prometheus.firing()}", 0.5)
    assert set(prometheus.fired) == {alert}, prometheus.fired


@contextmanager
def watched(prometheus: Prometheus, service: Service) -> Iterator[Service]:
    prometheus.watch(service)
    try:
        yield service
    finally:
        prometheus.leave(service)
        service.kill()


Make = Callable[..., Deployment]


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


# Nothing is wrong


def test_alerts_nothing_fires_where_nothing_is_wrong(quiet: Prometheus, well: Well) -> None:
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        well.use()
        assert not quiet.firing(), quiet.fired
        time.sleep(1)


def test_alerts_every_query_of_the_dashboard_has_an_answer(quiet: Prometheus, well: Well) -> None:
    silent = queries()

    def answered() -> bool:
        nonlocal silent
        well.use()
        silent = [
            query for query in silent
            if not quiet.query(query.replace("$service", ".*").replace("$__rate_interval", "30s"))]
        return all(metrics_of(query) <= ONLY_WHEN_WRONG or "== 0" in query or "expires" in query for query in silent)

    until(answered, 60, lambda: f"answers to {silent}", 1)


def test_alerts_every_rule_is_evaluated(quiet: Prometheus, well: Well) -> None:
    found = {rule["name"]: rule["health"] for group in quiet.ask("rules")["groups"] for rule in group["rules"]}
    assert found == {rule["alert"]: "ok" for rule in rules()}


# Something is away


def test_alerts_service_down(quiet: Prometheus, well: Well) -> None:
    link = well.services["link"]
    link.kill()
    assert wait_until_fires(quiet, "IdentityBusServiceDown")["component"] == "link"
    link.start().wait_ready()
    wait_until_over(quiet, "IdentityBusServiceDown")


def test_alerts_replica_down(quiet: Prometheus, make_deployment: Make) -> None:
    service = make_deployment("sqlite").service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        service.pause()
        assert wait_until_fires(quiet, "IdentityBusReplicaDown")["instance"].endswith(service.environment["HTTP_PORT"])
        service.resume()
        wait_until_over(quiet, "IdentityBusReplicaDown")


def test_alerts_restarting(quiet: Prometheus, make_deployment: Make) -> None:
    service = make_deployment("sqlite").service(HTTP_PORT=str(free_port())).start()
    with watched(quiet, service):
        for _ in range(5):
            time.sleep(2.5)  # so that it is seen
            service.kill()
            service.start()
        service.wait_ready()
        assert wait_until_fires(quiet, "IdentityBusRestarting")["component"] == "link"


def test_alerts_database_down(quiet: Prometheus, server: PostgresServer, make_deployment: Make) -> None:
    """With commands that wait, so that the alert about these could fire too."""
    deployment = make_deployment(database=server.new_database())
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        deployment.bus.ask(c.register(fresh("install")))
        server.crash()
        deployment.bus.send_all([c.register(fresh("install")) for _ in range(30)])
        assert wait_until_fires(quiet, "IdentityBusDatabaseDown")["service"] == "link"
        server.start_again()
        wait_until_over(quiet, "IdentityBusDatabaseDown")


@contextmanager
def crowded(server: PostgresServer, database: PostgreSQL) -> Iterator[None]:
    """Others have all connections that the server gives (`max_connections`); whoever had one has it no more."""
    others: list[psycopg.Connection[Any]] = []

    def is_out() -> bool:
        try:
            while True:
                others.append(psycopg.connect(database.url.replace("postgres@", "operated:right@", 1)))
        except psycopg.OperationalError as problem:
            assert "connection slots" in str(problem) or "too many clients" in str(problem), problem
        sql(database.url, END_SESSIONS)
        ours = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'identitybus'"
        return database.execute(ours) == [(0,)]

    try:
        # It tries again and again, and may be the first to have what it has just lost.
        until(lambda: all(is_out() for _ in range(5)), 30, "the service to be out")
        yield
    finally:
        for other in others:
            other.close()


@pytest.mark.parametrize(
    "injury", [*(injury for injury in DATABASE if injury is not stopped), crowded], ids=lambda injury: injury.__name__)
def test_alerts_of_the_database(
    injury: Callable[[PostgresServer, PostgreSQL], AbstractContextManager[None]], quiet: Prometheus, server: PostgresServer,
    role: None, make_deployment: Make
) -> None:
    """It is there, and cannot be worked with."""
    database = server.new_database()
    name = urlsplit(database.url).path[1:]
    sql(database.url, f'ALTER DATABASE "{name}" OWNER TO operated')
    deployment = make_deployment(database=database)
    url = f"postgresql://operated:right@127.0.0.1:{urlsplit(database.url).port}/{name}"
    service = deployment.service(HTTP_PORT=str(free_port()), DATABASE_URL=url).start().wait_ready()
    with watched(quiet, service):
        deployment.bus.ask(c.register(fresh("install")))
        with injury(server, database):
            deployment.bus.send_all([c.register(fresh("install")) for _ in range(30)])
            assert wait_until_fires(quiet, "IdentityBusDatabaseDown")["service"] == "link"
        wait_until_over(quiet, "IdentityBusDatabaseDown")


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")


CASES = list(KAFKA)


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes certificates with openssl")
@pytest.mark.parametrize("cases", [CASES[start:start + len(NAMES)] for start in range(0, len(CASES), len(NAMES))], ids=", ".join)
def test_alerts_of_brokers_that_let_nobody_in(
    cases: list[str], quiet: Prometheus, authority: Authority, make_deployment: Make
) -> None:
    """One of each program, each before another broker: its alert has its name."""
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    expected = {
        ("IdentityBusTopicsUnusable" if case == "no right" else "IdentityBusBrokerDown", name)
        for name, case in zip(NAMES, cases)}

    def fired() -> set[tuple[str, str]]:
        quiet.firing()
        return {(alert, labels.get("service", "")) for alert, all_labels in quiet.fired.items() for labels in all_labels}

    with ExitStack() as stack:
        for name, case in zip(NAMES, cases):
            talk, settings = who_listens(case, authority, deployment.directory)
            port = free_port()
            if talk:
                stack.callback(FakeBroker(talk, port).close)
            place = {"HTTP_PORT": str(free_port()), "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"} | NO_SASL | settings
            service = deployment.gateway(**place) if name == "gateway" else deployment.process(name, **place)
            stack.enter_context(watched(quiet, service.start()))
        until(lambda: expected <= fired(), FIRED, lambda: f"{expected}; fired have {quiet.fired}", 0.5)
        watch_for_others(quiet)
        assert fired() == expected


def test_alerts_broker_down(quiet: Prometheus, directory: Path, make_deployment: Make) -> None:
    """One that stands still."""
    broker = Broker.embedded(directory / f"broker-{uuid.uuid4().hex[:8]}")
    try:
        service = make_deployment("sqlite", on=broker).service(HTTP_PORT=str(free_port())).start().wait_ready()
        with watched(quiet, service):
            broker.pause()
            assert wait_until_fires(quiet, "IdentityBusBrokerDown")["service"] == "link"
            broker.resume()
            wait_until_over(quiet, "IdentityBusBrokerDown")
    finally:
        broker.resume()
        broker.close()


@pytest.fixture(scope="module")
def kafka(directory: Path) -> Iterator[Kafka]:
    kafka = Kafka(directory / f"kafka-{uuid.uuid4().hex[:8]}", has_rights=True)
    yield kafka.start()
    kafka.close()


@pytest.fixture
def make_on_kafka(kafka: Kafka, open_deployment: Callable[..., AbstractContextManager[Deployment]]) -> Iterator[Make]:
    """Makes deployments that end with the test, while their broker is there."""
    with ExitStack() as mine:
        yield lambda **more: mine.enter_context(open_deployment(on=kafka.open(), **more))


@apache
def test_alerts_broker_refused(quiet: Prometheus, kafka: Kafka, make_on_kafka: Make) -> None:
    service = make_on_kafka().service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        kafka.kill()
        try:
            assert wait_until_fires(quiet, "IdentityBusBrokerDown")["service"] == "link"
        finally:
            kafka.start_again()
        wait_until_over(quiet, "IdentityBusBrokerDown")


@apache
def test_alerts_a_password_that_kafka_knows_no_more(
    quiet: Prometheus, kafka: Kafka, make_on_kafka: Make, tmp_path: Path
) -> None:
    lesser = Lesser(kafka, make_on_kafka(), tmp_path)
    file = Path(lesser.environment["KAFKA_SASL_PASSWORD_FILE"])
    service = lesser.deployment.service(HTTP_PORT=str(free_port()), **lesser.environment).start().wait_ready()
    with watched(quiet, service):
        kafka.set_password(lesser.rights.user, "another")
        assert wait_until_fires(quiet, "IdentityBusBrokerDown")["service"] == "link"
        assert "refuses the user name or the password" in service.failed_checks()["broker"]
        file.write_text("another")
        wait_until_over(quiet, "IdentityBusBrokerDown")


@apache
@pytest.mark.parametrize("what", MISSING)
def test_alerts_of_a_right_that_is_missing(
    what: str, quiet: Prometheus, kafka: Kafka, make_on_kafka: Make, tmp_path: Path
) -> None:
    deployment = make_on_kafka()
    lesser = Lesser(kafka, deployment, tmp_path)
    kind, name, operation, check, _ = MISSING[what]
    alert = {"topics": "IdentityBusTopicsUnusable", "group": "IdentityBusGroupHangs"}[check]
    service = deployment.service(HTTP_PORT=str(free_port()), **lesser.environment).start().wait_ready()
    with watched(quiet, service):
        with lesser.rights.without(kind, deployment.prefix + name, operation):
            deployment.bus.send_all([c.register(fresh("install")) for _ in range(30)])
            assert wait_until_fires(quiet, alert)["service"] == "link"
        wait_until_over(quiet, alert)


@apache
def test_alerts_topics_unusable(quiet: Prometheus, make_on_kafka: Make) -> None:
    """One of them is missing, and the service may not make it."""
    deployment = make_on_kafka()
    service = deployment.service(HTTP_PORT=str(free_port()), TOPIC_CREATE="never").start()
    topic = f"{deployment.prefix}identity.link.dlq.v1"
    with watched(quiet, service):
        deployment.broker.ensure([f"{deployment.prefix}identity.link.{kind}.v1" for kind in ("commands", "events")])
        assert wait_until_fires(quiet, "IdentityBusTopicsUnusable")["service"] == "link"
        assert topic in str(service.failed_checks())


@apache
def test_alerts_stuck(quiet: Prometheus, make_on_kafka: Make) -> None:
    """The topic of dead letters takes nothing, however small, and nothing else is wrong."""
    deployment = make_on_kafka()
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    topic = f"{deployment.prefix}identity.link.dlq.v1"

    def take(size: int) -> None:
        change = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        admin = AdminClient(deployment.broker.client())
        admin.incremental_alter_configs([resource])[resource].result(30)

    with watched(quiet, service):
        take(1)
        deployment.bus.put(b"no envelope", [], b"a key")
        labels = wait_until_fires(quiet, "IdentityBusStuck")
        assert (labels["service"], labels["check"]) == ("link", "publishing")
        assert f"topic {topic} has refused messages" in service.failed_checks()["publishing"]
        take(3_000_000)
        # Then there is a dead letter, of which somebody has to be told.
        until(lambda: quiet.firing() == {"IdentityBusDeadLetters"}, 90, lambda: f"{quiet.firing()}", 0.5)
        assert set(quiet.fired) == {"IdentityBusStuck", "IdentityBusDeadLetters"}, quiet.fired


def test_alerts_group_hangs(
    quiet: Prometheus, directory: Path, server: PostgresServer, make_deployment: Make
) -> None:
    """The embedded broker waits for a session before it gives those who have joined their shares."""
    broker = Broker.embedded(directory / f"broker-{uuid.uuid4().hex[:8]}")
    deployment = make_deployment(database=server.new_database(), on=broker)
    first, second = (
        deployment.service(HTTP_PORT=str(free_port()), KAFKA_CONSUMER_SESSION_TIMEOUT_MS="40000") for _ in range(2))
    try:
        with watched(quiet, first.start()):
            first.wait_ready(100)
            until(lambda: not quiet.firing(), 90, "quiet")
            quiet.forget()
            second.start()
            assert wait_until_fires(quiet, "IdentityBusGroupHangs", 100)["service"] == "link"
            wait_until_over(quiet, "IdentityBusGroupHangs", 150)
    finally:
        second.kill()
        broker.close()


@apache
def test_alerts_a_member_hangs(quiet: Prometheus, server: PostgresServer, make_on_kafka: Make) -> None:
    """All wait for the one that has stopped, until its session is over."""
    deployment = make_on_kafka(database=server.new_database())
    first, hangs, newcomer = (
        deployment.service(HTTP_PORT=str(free_port()), KAFKA_CONSUMER_SESSION_TIMEOUT_MS="40000") for _ in range(3))
    for member in (first, hangs):
        member.start().wait_ready()
    with watched(quiet, first):
        quiet.forget()
        hangs.pause()
        newcomer.start()
        assert wait_until_fires(quiet, "IdentityBusGroupHangs", 100)["service"] == "link"
        wait_until_over(quiet, "IdentityBusGroupHangs", 150)


# Somebody is not served


@contextmanager
def slow(server: PostgresServer, latency: float) -> Iterator[tuple[ProxiedPostgreSQL, Callable[[], None]]]:
    """A database that is reached late, once the second one is called."""
    database = ProxiedPostgreSQL(server.new_database().url)

    def begin() -> None:
        database.proxy.latency = latency

    try:
        yield database, begin
    finally:
        database.proxy.latency = 0
        database.proxy.close()


@apache
def test_alerts_records_lost(quiet: Prometheus, make_on_kafka: Make) -> None:
    deployment = make_on_kafka()
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    bus = deployment.bus
    read = c.query(fresh("install"))
    bus.send(read, partition=3)
    bus.reply(read.id)
    assert service.stop() == 0
    _, last = [bus.send(c.query(fresh("install")), partition=3) for _ in range(3)][-1]
    deployment.broker.delete_records(bus.commands, 3, last)
    service.start()
    with watched(quiet, service):
        service.wait_ready()
        assert wait_until_fires(quiet, "IdentityBusRecordsLost")["partition"] == "3"
        wait_until_over(quiet, "IdentityBusRecordsLost", 120)


def test_alerts_commands_wait(quiet: Prometheus, server: PostgresServer, make_deployment: Make) -> None:
    with slow(server, 0.1) as (database, begin):
        deployment = make_deployment(database=database)
        service = deployment.service(HTTP_PORT=str(free_port()), BATCH_SIZE="1").start().wait_ready()
        with watched(quiet, service):
            begin()
            deployment.bus.send_all([c.register(fresh("install")) for _ in range(40)])
            assert wait_until_fires(quiet, "IdentityBusCommandsWait")["topic"].endswith("identity.link.commands.v1")


class Crowd:
    """Requests over HTTP, so many at a time, until it is over."""

    def __init__(self, gateway: Gateway, count: int) -> None:
        self.gateway = gateway
        self.statuses: list[int] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def _run(self) -> None:
        client = self.gateway.client
        while not self._stop.is_set():
            self.statuses.append(
                client.post(f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend").status)
            time.sleep(0.2)

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


@pytest.mark.parametrize("alert, count, status, settings", [
    ("IdentityBusRepliesLate", 1, 504, {"GATEWAY_REPLY_TIMEOUT_MS": "300"}),
    ("IdentityBusGatewayFull", 8, 503, {"GATEWAY_MAX_IN_FLIGHT": "4"})], ids=["late", "full"])
def test_alerts_of_the_gateway(
    alert: str, count: int, status: int, settings: dict[str, str], quiet: Prometheus, server: PostgresServer,
    make_deployment: Make
) -> None:
    """A link service that takes a second for what it does."""
    with slow(server, 0.04) as (database, begin):
        deployment = make_deployment(database=database, kind=GatewayDeployment)
        assert isinstance(deployment, GatewayDeployment)
        link = deployment.process("link", HTTP_PORT=str(free_port())).start()
        gateway = deployment.gateway(HTTP_PORT=str(free_port()), **settings).start()
        with watched(quiet, link.wait_ready()), watched(quiet, gateway.wait_ready()):
            begin()
            with Crowd(gateway, count) as crowd:
                assert wait_until_fires(quiet, alert)["service"] == "link"
            assert status in crowd.statuses, crowd.statuses
            wait_until_over(quiet, alert)


# Somebody has to look


def test_alerts_dead_letters(quiet: Prometheus, make_deployment: Make) -> None:
    deployment = make_deployment("sqlite")
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        deployment.bus.put(b"no envelope", [], b"a key")
        assert wait_until_fires(quiet, "IdentityBusDeadLetters")["service"] == "link"


def changed(settings: list[dict[str, Any]], **more: object) -> list[dict[str, Any]]:
    settings[1]["keys"].append(apps.key("other-more", "user.link", **more))
    return settings


def test_alerts_apps_file_refused(quiet: Prometheus, make_deployment: Make) -> None:
    deployment = make_deployment("sqlite")
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        before = deployment.apps_file.read_text()
        deployment.apps_file.write_text(before.replace('"keys"', '"kees"'))
        assert wait_until_fires(quiet, "IdentityBusAppsFileRefused")["service"] == "link"
        deployment.apps_file.write_text(before)
        wait_until_over(quiet, "IdentityBusAppsFileRefused")


def test_alerts_key_ends_soon(quiet: Prometheus, make_deployment: Make) -> None:
    deployment = make_deployment("sqlite")
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3 * 86400))
    apps.write(deployment.apps_file, changed(json.loads(json.dumps(apps.apps())), expires=soon))
    service = deployment.service(HTTP_PORT=str(free_port())).start().wait_ready()
    with watched(quiet, service):
        assert wait_until_fires(quiet, "IdentityBusKeyEndsSoon")["key"] == "other-more"


@pytest.mark.parametrize("days", [3, -3])
def test_alerts_certificate_ends_soon(days: int, quiet: Prometheus, make_deployment: Make, tmp_path: Path) -> None:
    """Until there is a new one in its files."""
    authority = Authority(tmp_path / "authority")
    soon = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400))
    files = authority.issue("127.0.0.1", ends=soon)
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    gateway = deployment.gateway(
        HTTP_PORT=str(free_port()), GATEWAY_TLS_CERTIFICATE=str(files[0]), GATEWAY_TLS_KEY=str(files[1])).start()
    with watched(quiet, gateway.wait_ready()):
        assert wait_until_fires(quiet, "IdentityBusCertificateEndsSoon")["component"] == "gateway"
        for new, file in zip(authority.issue("127.0.0.1"), files):
            shutil.copy(new, file)
        wait_until_over(quiet, "IdentityBusCertificateEndsSoon")


def test_alerts_all_have_a_test() -> None:
    source = Path(__file__).read_text()
    assert not {rule["alert"] for rule in rules() if f'"{rule["alert"]}"' not in source}
