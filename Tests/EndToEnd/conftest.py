# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests. Environment:

IDENTITYBUS_BIN          folder of the executables (default: the debug build)
KAFKA_BOOTSTRAP_SERVERS  the broker (default: the embedded one of `identitybus up`)
KAFKA_STOP_COMMAND       a shell command that kills that broker, its data kept (default: tests that need it are skipped)
KAFKA_START_COMMAND      starts it again on the same address; returns when it answers
TEST_KAFKA_HOME          folder of an Apache Kafka, for tests that start one of their own, with users and ACLs or with TLS
                         (default: they are skipped)
TEST_DATABASE_URL        the PostgreSQL server (default: a throw-away one)
TEST_DATABASE_ROLES      least: each service works with a role of its own that may change no table, and migrates nothing
E2E_COMMANDS, E2E_SEED   size and seed of the chaos runs
E2E_REAL_TIME            each limit counts by the clock on the wall (default: by what the machine has for whoever wants to run)
E2E_LAG_SECONDS          how long commands wait whose lag and age are looked at (default: 8)
E2E_ALERTS, ALERT_QUIET_SECONDS  see alerts fire in Debian's Prometheus; how long none may where nothing is wrong
E2E_ROLL_RATE            requests a second while everything is restarted (default: 60); named, each process is restarted alone too
E2E_SIGN_IN_RATE, E2E_SIGN_IN_SECONDS  how much is asked, and for how long, while Kafka's passwords change (default: 60, 120)
E2E_COLLECTOR_AWAY       for how many seconds the collector of traces is away while requests are timed (default: not at all)
E2E_CHANGE_RATE          requests a second while an API key, a verification key, the database password and the certificate change
E2E_OLDER_BIN            folder of an earlier build's executables, to be replaced by these in a rolling upgrade

They may run in several workers (`pytest -n 4 --no-loadscope-reorder`): each has its own embedded
broker, every deployment its own topics and store. Tests marked `alone` need the machine or the broker for themselves;
`scripts/test` runs them afterwards, without workers.
"""

import gc
import os
import re
import shutil
import tempfile
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from identitybus_testkit.broker import Broker
from identitybus_testkit.databases import Database, PostgresServer, SQLite
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.kafka import HOME, Kafka
from identitybus_testkit.verification import VerificationDeployment

_deployments: list[Deployment] = []
_failed: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    # Tens of thousands of records are kept: looking for cycles among them took half of the tests' own time.
    gc.set_threshold(50_000, 25, 25)
    config.addinivalue_line("markers", "chaos: kills, pauses and outages under load; takes minutes")
    config.addinivalue_line("markers", "slow: waits for many seconds; left out of the inner loop")
    config.addinivalue_line("markers", "alone: measures time or the processor; little may run beside it")
    config.addinivalue_line("markers", "outage: stops its broker; alone if that is one that others use")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes goes first, then what takes long, then what is much: so that all workers end together."""
    names: Counter[str] = Counter()
    for item in items:
        # The tests that schemathesis makes share one name, and workers run a name once.
        names[item.nodeid] += 1
        if names[item.nodeid] > 1:
            item._id = item._id.with_params(str(names[item.nodeid]))  # type: ignore[attr-defined]
        if item.get_closest_marker("outage") and os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
            item.add_marker(pytest.mark.alone)
            if not {"KAFKA_STOP_COMMAND", "KAFKA_START_COMMAND"} <= set(os.environ):
                item.add_marker(pytest.mark.skip(
                    reason="stops the broker; KAFKA_STOP_COMMAND and KAFKA_START_COMMAND do not say how"))
    size = Counter(shared(item.nodeid) for item in items)
    long = {mark: {shared(item.nodeid) for item in items if item.get_closest_marker(mark)} for mark in ("chaos", "slow")}

    def place(item: pytest.Item) -> tuple[bool, bool, int, str]:
        group = shared(item.nodeid)
        return group not in long["chaos"], group not in long["slow"], -size[group], group

    items.sort(key=place)


# Modules whose tests share nothing that is costly to make.
APART = ("test_chaos.py", "test_user_chaos.py", "test_verification_faults.py", "test_outages.py",
         "test_database_faults.py", "test_process_faults.py", "test_loads.py", "test_operate_injuries.py",
         "test_migrate.py", "test_dlq.py", "test_failover.py")


def shared(nodeid: str) -> str:
    """What goes to one worker: the tests that share a module's deployment, for each engine."""
    module, _, test = nodeid.partition("::")
    if module.endswith(APART):
        return nodeid
    engine = re.search(r"\[(?:.*-)?(sqlite|postgresql)\b", test)
    return f"{module} {engine[1]}" if engine else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared(nodeid)

    return Scheduling(config, log)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the ends of the logs of every process that took part, and where the whole logs are."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        _failed.append(item.nodeid)
        for deployment in _deployments:
            report.sections.append((f"logs of {deployment.prefix} (kept in {deployment.directory})", deployment.tails()))


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """Short names, readable for the user that PostgreSQL runs as. Kept, with all logs and SQLite stores, when a test
    failed."""
    path = Path(tempfile.mkdtemp(prefix="identitybus-e2e-"))
    path.chmod(0o755)
    yield path
    if not _failed:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def broker(directory: Path) -> Iterator[Broker]:
    broker = Broker.for_tests(directory / "broker")
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def guarded_kafka(directory: Path) -> Iterator[Kafka]:
    """A Kafka where whoever signs in may do nothing but what an ACL says."""
    if not HOME:
        pytest.skip("needs an Apache Kafka to start: TEST_KAFKA_HOME names its folder")
    kafka = Kafka(directory / "guarded-kafka", has_rights=True)
    try:
        yield kafka.start()
    finally:
        kafka.close()


@pytest.fixture(scope="session")
def real_broker(request: pytest.FixtureRequest) -> Broker:
    """A Kafka that deletes topics and has settings of them: the one of the environment, or one that is started."""
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        return request.getfixturevalue("broker")  # type: ignore[no-any-return]
    return request.getfixturevalue("guarded_kafka").open()  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def postgres(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.for_tests(directory / "postgres")
    yield server
    server.close()


@pytest.fixture(scope="session")
def new_database(directory: Path, request: pytest.FixtureRequest) -> Callable[[str], Database]:
    """Makes an empty store: `sqlite` or `postgresql`."""
    count = 0

    def make(engine: str) -> Database:
        nonlocal count
        count += 1
        if engine == "sqlite":
            return SQLite(directory / f"store-{count}")
        return request.getfixturevalue("postgres").new_database()

    return make


@pytest.fixture(scope="session")
def open_deployments() -> list[Deployment]:
    """Those whose logs are shown when a test fails."""
    return _deployments


@pytest.fixture(scope="session")
def open_deployment(
    broker: Broker, new_database: Callable[[str], Database], directory: Path
) -> Callable[..., AbstractContextManager[Deployment]]:
    """Makes a deployment that ends with its `with`."""

    @contextmanager
    def opened(engine: str = "sqlite", on: Broker = broker, prefix: str | None = None,
               database: Database | None = None, services: tuple[str, ...] = ("link",),
               kind: type[Deployment] = Deployment) -> Iterator[Deployment]:
        folder = Path(tempfile.mkdtemp(prefix="deployment-", dir=directory))
        deployment = kind(on, folder, database or new_database(engine), prefix, services)
        _deployments.append(deployment)
        try:
            yield deployment
        finally:
            _deployments.remove(deployment)
            deployment.close()

    return opened


@pytest.fixture(scope="module")
def make_deployment(
    open_deployment: Callable[..., AbstractContextManager[Deployment]]
) -> Iterator[Callable[..., Deployment]]:
    """Makes deployments that end with the module, with what `open_deployment` takes."""
    with ExitStack() as mine:
        yield lambda *arguments, **more: mine.enter_context(open_deployment(*arguments, **more))


@pytest.fixture(scope="module")
def deployment(make_deployment: Callable[..., Deployment]) -> Deployment:
    """One link process on SQLite, ready."""
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    return deployment


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def link(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Deployment:
    """One link process, on each engine in turn, ready."""
    deployment = make_deployment(request.param)
    deployment.service().start().wait_ready()
    return deployment


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sync(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Deployment:
    """One sync process, on each engine in turn, ready."""
    deployment = make_deployment(request.param, services=("sync", "link"))
    deployment.service(ALIAS_DELAY="0").start().wait_ready()
    return deployment


@pytest.fixture(scope="module")
def gateway_deployment(make_deployment: Callable[..., Deployment]) -> GatewayDeployment:
    """The topics and apps of a deployment with a gateway; nothing runs yet."""
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    return deployment


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def verification_deployment(
    request: pytest.FixtureRequest, make_deployment: Callable[..., VerificationDeployment]
) -> VerificationDeployment:
    """The topics and apps of the verification and the sync service, on each engine in turn; nothing runs yet."""
    return make_deployment(request.param, kind=VerificationDeployment)
