# SPDX-License-Identifier: Apache-2.0
"""What is said when something is wrong: /readyz names the right check, with the address and the cause, the metric of that
check is 0, and one line of the log has a stable name, within 30 s and without traffic. Nothing false is said meanwhile;
after the repair a line says for how long it was, and a command is answered."""

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgreSQL, PostgresServer, with_role
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import tells_no_secret
from identitybus_testkit.fakes import Authority, FakeBroker, Refusing, Talk, closing, plain, silent, tls
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.ports import free_port
from identitybus_testkit.secrets import DATABASE_PASSWORD, SECRET_PREFIX, kafka_password
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import Deadline, until

# Within this time somebody who looks has to be told.
TOLD = 30.0
# Within this time after the repair of a database all has to be well.
WELL = 15.0
# What may fail beside a check for its sake.
CONSEQUENCES = {
    "database": {"partitions", "turns"}, "broker": {"group", "publishing", "topics", "replies"},
    "topics": {"group", "publishing", "replies"}, "group": set(), "apps": set()}


def events(service: Service, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in service.lines(f'"event":"{name}"')]


def failing(service: Service) -> dict[str, dict[str, object]]:
    """The checks of /readyz that fail."""
    return {check["name"]: check for check in json.loads(service.get("/readyz")[1])["checks"] if not check["ok"]}


def says(text: object, words: tuple[str, ...]) -> bool:
    """Whether all words are there, or one of those with `|` between them."""
    return all(any(part in str(text) for part in word.split("|")) for word in words)


def wait_until_told(service: Service, check: str, *words: str, starts: bool = False, ready: bool = False) -> None:
    """All three say it, and nothing else is blamed."""
    allowed = CONSEQUENCES[check] | {check} | ({"started", "group", "database", "broker", "topics"} if starts else set())

    def told() -> bool:
        checks = failing(service)
        return check in checks and says(checks[check]["detail"], words) and "since" in checks[check]

    until(told, TOLD, lambda: f"{check} {words}: {failing(service)}\n{service.tail()}")
    assert set(failing(service)) <= allowed, failing(service)
    for name, other in failing(service).items():
        is_starting = says(other["detail"], ("not asked yet|are being migrated",))
        assert name == check or is_starting or name not in ("database", "broker"), other

    def zero() -> set[str]:
        return set(re.findall(r'^identity_check_ok\{check="(\w+)",service="\w+"\} 0$', service.get("/metrics")[1], re.M))

    until(lambda: zero() == {check}, 10, lambda: f"{check} alone to be 0: {zero()}")
    assert f'identity_ready{{service="{service.name}"}} {int(ready)}\n' in service.get("/metrics")[1]
    until(lambda: events(service, f"{check}.down"), 10, lambda: f"the line\n{service.tail()}")
    [line] = events(service, f"{check}.down")
    # Its first word may be of the connections that the injury ended.
    assert says(line["message"], words) or "57P01" in line["message"], line
    others = [json.loads(entry)["event"] for entry in service.lines(".down\"")]
    assert set(others) == {f"{check}.down"}, others
    assert not service.lines("librdkafka reports"), "chatter"


def wait_until_over(deployment: Deployment, service: Service, check: str) -> None:
    def line() -> list[dict[str, object]]:
        return events(service, f"{check}.up")

    in_time = Deadline(WELL if check == "database" else TOLD)
    until(line, in_time.left, lambda: f"{check} well again: {failing(service)}\n{service.tail()}")
    [over] = line()
    assert re.fullmatch(r"well again after [\d.]+ s.*", str(over["message"])), over
    assert isinstance(over["fields"]["seconds"], (int, float))  # type: ignore[index]
    service.wait_ready(in_time.left)
    assert not failing(service)
    assert deployment.bus.ask(c.register(fresh("install")))["status"] == "succeeded"


# The database

PASSWORD = f"{SECRET_PREFIX}of-the-database"


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    yield server
    server.close()


def sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


END_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'identitybus'"""


@contextmanager
def stopped(server: PostgresServer, _: PostgreSQL) -> Iterator[None]:
    with server.away():
        yield


@contextmanager
def read_only(_: PostgresServer, database: PostgreSQL) -> Iterator[None]:
    name = urlsplit(database.url).path[1:]
    sql(database.url, f'ALTER DATABASE "{name}" SET default_transaction_read_only TO on', END_SESSIONS)
    yield
    sql(database.url, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


@contextmanager
def wrong_password(server: PostgresServer, database: PostgreSQL) -> Iterator[None]:
    sql(database.url, "ALTER ROLE operated PASSWORD 'another'", END_SESSIONS)
    yield
    sql(database.url, f"ALTER ROLE operated PASSWORD '{PASSWORD}'")


@contextmanager
def no_connection_left(_: PostgresServer, database: PostgreSQL) -> Iterator[None]:
    """Others have all that the server gives to whoever is not its superuser (`max_connections`)."""
    url, taken = with_role(database.url, "operated").replace(DATABASE_PASSWORD, PASSWORD), []
    ours = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'identitybus'"
    with psycopg.connect(database.url, autocommit=True) as watcher:
        alone = float("inf")
        # A place is free a moment after its session was ended, and the service looks for one every second.
        while time.monotonic() < alone + 2:
            try:
                taken.append(psycopg.connect(url))
            except psycopg.OperationalError:
                if watcher.execute(ours).fetchone() != (0,):
                    watcher.execute(END_SESSIONS)
                    alone = float("inf")
                alone = min(alone, time.monotonic())
        # Whoever watches has a place too, so it stays.
        yield
        for connection in taken:
            connection.close()


@contextmanager
def full(_: PostgresServer, database: PostgreSQL) -> Iterator[None]:
    """As the server says it when its disk is full."""
    sql(
        database.url,
        """
        CREATE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END $$""",
        "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON identity_link.progress EXECUTE FUNCTION public.no_room()")
    yield
    sql(database.url, "DROP TRIGGER no_room ON identity_link.progress")


@contextmanager
def lock(table: str, database: PostgreSQL) -> Iterator[None]:
    """By somebody who has other rights than the service."""
    connection = psycopg.connect(database.url)
    connection.execute(f"LOCK TABLE identity_link.{table} IN ACCESS EXCLUSIVE MODE")  # type: ignore[arg-type]
    yield
    connection.close()


def locked(_: PostgresServer, database: PostgreSQL) -> AbstractContextManager[None]:
    return lock("progress", database)


def outbox_locked(_: PostgresServer, database: PostgreSQL) -> AbstractContextManager[None]:
    """What an idle service has no use for."""
    return lock("outbox", database)


def installs_locked(_: PostgresServer, database: PostgreSQL) -> AbstractContextManager[None]:
    return lock("installs", database)


def inbox_locked(_: PostgresServer, database: PostgreSQL) -> AbstractContextManager[None]:
    return lock("inbox_0", database)


DATABASE = {
    # Whoever was just asking is told that the connection ends, whoever asks next that there is none.
    stopped: [": connection refused [08001]|closed the connection|terminating connection"],
    read_only: ["takes no writes (read-only) [08001]|read-only transaction"],
    wrong_password: [': password authentication failed for user "operated" [08001]'],
    full: ["No space left on device", "[53100]"], no_connection_left: ["too many clients already|connection slots", "[08001]"],
    locked: ["lock"],
    outbox_locked: ["another session (process ", ") keeps a lock on identity_link.outbox"],
    installs_locked: ["another session (process ", ") keeps a lock on identity_link.installs"],
    inbox_locked: ["another session (process ", ") keeps a lock on identity_link.inbox_0"]}

# What commands wait for, by its code: libpq has one for all connections that are not made, and the server's words beside it.
STATES = {
    stopped: "[08001]", read_only: "[08001]|[25006]", wrong_password: "[08001]", full: "[53100]", no_connection_left: "[08001]"}


@pytest.fixture(scope="module")
def role(server: PostgresServer) -> None:
    """A role that has to say its password."""
    sql(server.url, f"CREATE ROLE operated LOGIN PASSWORD '{PASSWORD}'")
    file = server._data / "pg_hba.conf"
    file.write_text("host all operated 127.0.0.1/32 scram-sha-256\n" + file.read_text())
    sql(server.url, "SELECT pg_reload_conf()")


@pytest.mark.parametrize("injury", DATABASE, ids=lambda injury: injury.__name__)
def test_operate_the_database(
    injury: Callable[[PostgresServer, PostgreSQL], AbstractContextManager[None]], server: PostgresServer, role: None,
    make_deployment: Callable[..., Deployment]
) -> None:
    database = server.new_database()
    name = urlsplit(database.url).path[1:]
    sql(database.url, f'ALTER DATABASE "{name}" OWNER TO operated')
    deployment = make_deployment(database=database)
    place = f"127.0.0.1:{urlsplit(database.url).port}"
    service = deployment.service(DATABASE_URL=f"postgresql://operated:{PASSWORD}@{place}/{name}").start().wait_ready()
    process = service.process.pid
    with injury(server, database):
        told = Deadline(TOLD)
        wait_until_told(service, "database", f"PostgreSQL at {place}", *DATABASE[injury])
        if injury in STATES:
            until(
                lambda: says(failing(service).get("database"), (STATES[injury],)), told.left,
                lambda: f"{STATES[injury]}: {failing(service)}")
            waiting = [c.register(fresh("install")) for _ in range(20)]
            deployment.bus.send_all(waiting)
            until(lambda: service.metric("kafka_consumer_lag") == 20, 20, lambda: f"{service.metric('kafka_consumer_lag')}")
    wait_until_over(deployment, service, "database")
    if injury in STATES:
        assert {deployment.bus.reply(command.id)["status"] for command in waiting} == {"succeeded"}
    assert not deployment.bus.collector.dead_letters and service.process.pid == process and service.is_running


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own, where this process may make one."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("makes a disk with mount, which takes rights")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_operate_a_disk_that_is_full(directory: Path, make_deployment: Callable[..., Deployment]) -> None:
    """Nobody writes anything meanwhile."""
    with disk(directory / f"disk-{uuid.uuid4().hex[:8]}", "16m") as folder:
        deployment = make_deployment("sqlite")
        store = folder / "link.sqlite"
        service = deployment.service(DATA_DIR=str(folder)).start().wait_ready()
        ballast = folder / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        wait_until_told(service, "database", str(store), "is full")
        ballast.unlink()
        wait_until_over(deployment, service, "database")
        service.kill()


def test_operate_a_disk_that_is_full_at_the_start(
    directory: Path, make_deployment: Callable[..., Deployment]
) -> None:
    """A store that cannot be opened is waited for, as one that does not answer is."""
    with disk(directory / f"disk-{uuid.uuid4().hex[:8]}", "8m") as folder:
        ballast = folder / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        deployment = make_deployment("sqlite")
        service = deployment.service(DATA_DIR=str(folder / "store")).start()
        wait_until_told(service, "database", "SQLite in", str(folder / "store"), "full", starts=True)
        ballast.unlink()
        wait_until_over(deployment, service, "database")
        service.kill()


def test_operate_a_folder_that_cannot_be_made(directory: Path, make_deployment: Callable[..., Deployment]) -> None:
    """Its disk is not there yet. A file in its place ends the start: `test_settings.py`."""
    disk = directory / f"disk-{uuid.uuid4().hex[:8]}"
    (link := directory / f"link-{uuid.uuid4().hex[:8]}").symlink_to(disk)
    deployment = make_deployment("sqlite")
    service = deployment.service(DATA_DIR=str(link / "store")).start()
    wait_until_told(service, "database", f"SQLite in {link}/store: the folder cannot be made", starts=True)
    disk.mkdir()
    wait_until_over(deployment, service, "database")


def test_operate_a_database_that_is_away_at_the_start(
    server: PostgresServer, make_deployment: Callable[..., Deployment]
) -> None:
    """The broker is not blamed for it, and its state is known."""
    database = server.new_database()
    deployment = make_deployment(database=database)
    with stopped(server, database):
        service = deployment.service().start()
        wait_until_told(service, "database", "refused", starts=True)
        checks = {check["name"]: check for check in json.loads(service.get("/readyz")[1])["checks"]}
        assert checks["broker"]["ok"], checks
    wait_until_over(deployment, service, "database")


@pytest.mark.parametrize("table", ["progress", "salt", "decider", "logs", "set_aside"])
def test_operate_a_lock_at_the_start(
    table: str, server: PostgresServer, make_deployment: Callable[..., Deployment]
) -> None:
    """Partitions cannot be claimed: neither Kafka nor the group is to blame."""
    database = server.new_database()
    deployment = make_deployment(database=database)
    service = deployment.service().start().wait_ready()
    service.stop()
    with lock(table, database):
        service.start()
        words = ("another session (process ", f") keeps a lock on identity_link.{table}")
        wait_until_told(service, "database", *words, starts=True)
    wait_until_over(deployment, service, "database")


def test_operate_a_database_that_is_silent_at_the_start(make_deployment: Callable[..., Deployment]) -> None:
    """Whoever has not answered yet migrates nothing."""
    broker = FakeBroker(silent)
    service = make_deployment("sqlite").service(DATABASE_URL=f"postgresql://u@{broker.servers}/x").start()
    seen: set[str] = set()

    def told() -> bool:
        with suppress(OSError):
            seen.update(str(check["detail"]) for name, check in failing(service).items() if name == "database")
        return any("no answer" in words for words in seen)

    until(told, TOLD, lambda: f"{seen}")
    assert not [words for words in seen if "migrated" in words], seen
    service.kill()
    broker.close()


@pytest.mark.skipif(os.environ.get("TEST_DATABASE_ROLES") == "least", reason="who migrates nothing waits for no lock")
def test_operate_a_stop_while_a_start_waits_for_a_lock(
    server: PostgresServer, make_deployment: Callable[..., Deployment]
) -> None:
    """What has not been up does not say that it is."""
    database = server.new_database()
    service = make_deployment(database=database).service().start().wait_ready()
    service.stop()
    with lock("migrations", database):
        service.start()
        until(lambda: "database" in failing(service), TOLD, lambda: f"{failing(service)}")
        service.process.terminate()
        time.sleep(1)
    assert service.wait(25) == 0
    assert not events(service, "service.up"), service.tail()


def test_operate_a_stop_beside_a_database_that_is_frozen(
    server: PostgresServer, make_deployment: Callable[..., Deployment]
) -> None:
    """Whoever gives a stop its thirty seconds need not kill."""
    service = make_deployment(database=server.new_database()).service(DRAIN_TIMEOUT_SECONDS="0").start().wait_ready()
    with server.frozen():
        until(lambda: "database" in failing(service), TOLD, lambda: f"{failing(service)}")
        assert service.stop(25) == 1
    [line] = events(service, "service.stop-cut")
    assert "18 s" in line["message"], line


@pytest.mark.parametrize("rest, words", [
    ("127.0.0.1/x?nosuch=1", "a parameter that is not known: nosuch"), ("127.0.0.1:5999999/x", "port"),
    ("127.0.0.1/x?sslmode=nonsense", "sslmode"), ("127.0.0.1/%zz", "%")])
def test_operate_a_database_url_that_is_none(rest: str, words: str, make_deployment: Callable[..., Deployment]) -> None:
    """Nothing starts, for a service and for a tool."""
    deployment = make_deployment("sqlite")
    url = f"postgresql://u:hunter2@{rest}"
    service = deployment.service(DATABASE_URL=url)
    assert service.start().wait(30) == 78
    tool = subprocess.run(
        [binary("identitybus"), "salts"], env=clean_environment() | {"DATABASE_URL": url},
        capture_output=True, text=True, timeout=30)
    assert tool.returncode == 78, tool
    for said in (service.text, tool.stderr):
        assert words in said and "DATABASE_URL" in said, said
        assert "hunter2" not in said and "health.bound" not in said, said


# The broker


@pytest.fixture(scope="module")
def own_broker(directory: Path) -> Iterator[Broker]:
    broker = Broker.embedded(directory / f"broker-{uuid.uuid4().hex[:8]}")
    yield broker
    broker.resume()
    broker.close()


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")


# Empty is not set: what the tests themselves sign in with is not for these brokers.
NO_SASL = dict.fromkeys(
    ["KAFKA_SECURITY_PROTOCOL", "KAFKA_SASL_MECHANISM", "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"], "")
SASL = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_USERNAME": "somebody", "KAFKA_SASL_PASSWORD": kafka_password()}


def kafka(case: str, authority: Authority, folder: Path) -> tuple[Talk | None, dict[str, str]]:
    """Who listens, and the settings of the service."""
    trusting = {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CA_LOCATION": str(authority.certificate)}
    match case:
        case "refused":
            return None, {}
        case "silent":
            return silent, {}
        case "TLS to plain":
            return plain, trusting
        case "TLS to plain Kafka":
            return closing, trusting
        case "no Kafka":
            return plain, {}
        case "no SASL to SASL":
            return Refusing(["PLAIN"], sasl=True), {}
        case "SASL to no SASL":
            return Refusing(sasl=False), {**SASL, "KAFKA_SASL_MECHANISM": "PLAIN"}
        case "plain to TLS":
            return tls(*authority.issue("127.0.0.1")), {}
        case "unknown CA":
            return tls(*Authority(folder / "stranger").issue("127.0.0.1")), trusting
        case "wrong host name":
            return tls(*authority.issue("kafka.example")), trusting
        case "expired certificate":
            return tls(*authority.issue("127.0.0.1", ends="200101000000Z")), trusting
        case "wrong mechanism":
            return Refusing(["SCRAM-SHA-512"]), {**SASL, "KAFKA_SASL_MECHANISM": "PLAIN"}
        case "wrong password":
            return Refusing(["PLAIN"]), {**SASL, "KAFKA_SASL_MECHANISM": "PLAIN"}
        case "no token":
            return Refusing(["OAUTHBEARER"]), {
                "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM": "OAUTHBEARER"}
        case "no right":
            return Refusing(), {}
        case _:
            raise AssertionError(case)


KAFKA = {
    "refused": "connection refused", "silent": "no answer", "TLS to plain": "does not speak TLS",
    "TLS to plain Kafka": "perhaps this port does not speak TLS", "no Kafka": "not a Kafka broker",
    "no SASL to SASL": "perhaps this port asks for signing in", "SASL to no SASL": "knows no signing in",
    "plain to TLS": "perhaps this port speaks TLS", "unknown CA": "no known authority",
    "wrong host name": "another host name", "expired certificate": "expired", "wrong mechanism": "SASL mechanism",
    "wrong password": "refuses the user name or the password", "no token": "no token", "no right": "(Describe)"}


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes certificates with openssl")
@pytest.mark.parametrize("case", KAFKA)
def test_operate_a_broker_that_lets_nobody_in(
    case: str, authority: Authority, make_deployment: Callable[..., Deployment]
) -> None:
    deployment = make_deployment()
    talk, settings = kafka(case, authority, deployment.directory)
    port = free_port()
    fake = FakeBroker(talk, port) if talk else None
    try:
        service = deployment.service(KAFKA_BOOTSTRAP_SERVERS=f"127.0.0.1:{port}", **NO_SASL | settings).start()
        if case == "no right":
            wait_until_told(service, "topics", KAFKA[case], starts=True)
            # Whoever is gone says nothing of topics.
            assert fake
            fake.close()
            until(lambda: events(service, "broker.down"), TOLD, service.tail)
            assert not events(service, "topics.up") and {"broker", "topics"} <= set(failing(service))
        else:
            wait_until_told(service, "broker", f"Kafka at 127.0.0.1:{port}", KAFKA[case], starts=True)
        if case in ("unknown CA", "wrong mechanism", "wrong password"):
            tells_no_secret(service)
        assert service.stop() == 0
    finally:
        if fake:
            fake.close()


@pytest.mark.slow
def test_operate_a_broker_that_is_away_at_the_start_is_named_all_the_time(
    authority: Authority, make_deployment: Callable[..., Deployment]
) -> None:
    """After 5, 10 and 20 s, by address and cause, and by one metric; the database is not blamed."""
    deployment = make_deployment(kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    cases, fakes, started = ("refused", "wrong password", "TLS to plain"), [], []
    for case in cases:
        talk, settings = kafka(case, authority, deployment.directory)
        port = free_port()
        fakes += [FakeBroker(talk, port)] if talk else []
        settings = {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}", **NO_SASL, **settings}
        service = deployment.process("link", DATA_DIR=str(deployment.directory / f"store-{port}"), **settings)
        started += [(case, port, one.start()) for one in (service, deployment.gateway(**settings))]
    for moment in [Deadline(seconds) for seconds in (5, 10, 20)]:
        while moment.left:
            time.sleep(0.1)
        for case, port, service in started:
            checks = failing(service)
            told = (moment.timeout, case, checks)
            assert says(checks["broker"]["detail"], (f"Kafka at 127.0.0.1:{port}", KAFKA[case])), told
            assert "database" not in checks and "SQL" not in str(checks), told
            zero = re.findall(r'^identity_check_ok\{check="(\w+)",service="\w+"\} 0$', service.get("/metrics")[1], re.M)
            assert zero == ["broker"], (moment.timeout, case, zero)
    assert {service.stop() for *_, service in started} == {0}
    for fake in fakes:
        fake.close()


def test_operate_a_gateway_that_may_not_see_its_topic(gateway_deployment: GatewayDeployment) -> None:
    """A broker that answers is not at fault."""
    fake = FakeBroker(Refusing())
    gateway = gateway_deployment.gateway(KAFKA_BOOTSTRAP_SERVERS=fake.servers, **NO_SASL).start()
    wait_until_told(gateway, "topics", "(Describe)", starts=True)
    time.sleep(6)  # so that the broker is asked again
    assert len(events(gateway, "topics.down")) == 1 and not events(gateway, "broker.down"), gateway.tail()
    gateway.kill()
    fake.close()


def test_operate_a_host_name_that_nobody_knows(make_deployment: Callable[..., Deployment]) -> None:
    service = make_deployment().service(KAFKA_BOOTSTRAP_SERVERS="kafka.invalid:9092").start()
    wait_until_told(service, "broker", "Kafka at kafka.invalid:9092", "cannot be resolved", starts=True)
    assert service.stop() == 0


@pytest.mark.skipif(bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS")), reason="freezes the embedded broker")
def test_operate_a_broker_that_freezes(own_broker: Broker, make_deployment: Callable[..., Deployment]) -> None:
    """And nothing is measured of it meanwhile."""
    deployment = make_deployment(on=own_broker)
    service = deployment.service().start().wait_ready()
    until(lambda: "kafka_broker_round_trip_seconds{" in service.get("/metrics")[1], 20, "a round trip measured")
    own_broker.pause()
    wait_until_told(service, "broker", f"Kafka at {own_broker.servers}", "no answer")
    until(lambda: "kafka_broker_round_trip_seconds{" not in service.get("/metrics")[1], 30, "no old round trip")
    # Each goes at the next look of its own.
    until(lambda: "kafka_consumer_lag{" not in service.get("/metrics")[1], 30, "no old lag")
    said = [json.loads(line) for line in service.text.splitlines()]
    since = next(place for place, line in enumerate(said) if line.get("event") == "broker.down")
    assert len(said) - since <= 4, f"chatter: {said[since:]}"
    own_broker.resume()
    wait_until_over(deployment, service, "broker")


@pytest.mark.slow
@pytest.mark.skipif(bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS")), reason="is about how the embedded broker waits")
def test_operate_a_rebalance_that_hangs(make_deployment: Callable[..., Deployment]) -> None:
    """The embedded broker waits for a session before it gives those who have joined their shares."""
    deployment = make_deployment("postgresql")
    first, second = (deployment.service(KAFKA_CONSUMER_SESSION_TIMEOUT_MS="40000") for _ in range(2))
    first.start().wait_ready()
    second.start()
    until(lambda: "group" in failing(first), 100, lambda: f"{failing(first)}\n{first.tail()}", 0.5)
    told = re.search(
        r"a rebalance of the group \S+ has lasted for (\d+) s: this member \w+ ", str(failing(first)["group"]["detail"]))
    assert told and int(told[1]) < TOLD, failing(first)
    assert set(failing(first)) == {"group"}
    assert first.metric("kafka_consumer_rebalance_seconds") > 15
    until(lambda: events(first, "group.down"), 10, first.tail)
    # It counts from where the rebalance began.
    until(lambda: events(first, "group.up"), 150, first.tail, 0.5)
    [over] = events(first, "group.up")
    assert over["fields"]["seconds"] > 30, over  # type: ignore[index, operator]


# The apps file


@pytest.mark.parametrize("content", ["", "apps: [", '{"apps": [{"id": "demo", "kees": []}]}'], ids=["empty", "broken", "wrong"])
def test_operate_an_apps_file_that_is_not_accepted(content: str, make_deployment: Callable[..., Deployment]) -> None:
    """The one of before stays in force, so the service is ready all the same."""
    deployment = make_deployment()
    service = deployment.service().start().wait_ready()
    before = deployment.apps_file.read_text()
    deployment.apps_file.write_text(content)
    wait_until_told(service, "apps", str(deployment.apps_file), ready=True)
    assert service.get("/readyz")[0] == 200
    assert service.metric("identity_apps_file_valid") == 0
    deployment.apps_file.write_text(before)
    wait_until_over(deployment, service, "apps")
    assert service.metric("identity_apps_file_valid") == 1


def test_operate_a_key_that_expires(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment()
    service = deployment.service().start().wait_ready()

    def lines() -> list[str]:
        return [str(line["fields"]["keys"]) for line in events(service, "apps.key-expired")]  # type: ignore[index]

    until(lambda: lines() == ["demo/demo-expired"], TOLD, service.tail)
    sample = 'identity_api_key_expires_timestamp_seconds{app="demo",key="demo-expired",service="link"} 1577836800\n'
    assert sample in service.get("/metrics")[1]
    changed = apps.apps()
    changed[1]["keys"].append(apps.key("other-old", "admin", expires="2021-01-01"))  # type: ignore[attr-defined]
    apps.write(deployment.apps_file, changed)
    until(lambda: lines() == ["demo/demo-expired", "other/other-old"], TOLD, service.tail)
    assert not failing(service)


# Services and topics


def test_operate_a_service_that_is_stopped(gateway_deployment: GatewayDeployment) -> None:
    gateway = gateway_deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="500").start().wait_ready()
    link = gateway_deployment.process("link").start().wait_ready()
    assert not failing(gateway)
    link.pause()
    answer = gateway.client.post(f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend")
    assert answer.status == 504
    sample = 'gateway_reply_timeouts_total{service="link"} 1\n'
    until(lambda: sample in gateway.get("/metrics")[1], 5, lambda: gateway.get("/metrics")[1])
    [line] = events(gateway, "service.silent")
    assert "the link service has not answered" in str(line["message"]) and line["level"] == "warning"
    link.resume()
    assert link.stop() == 0


def test_operate_a_gateway_whose_reply_topic_is_deleted(
    real_broker: Broker, make_deployment: Callable[..., Deployment]
) -> None:
    """It makes the topic anew, and calls no service silent meanwhile that it does not hear. The embedded broker deletes
    none."""
    gateway_deployment = make_deployment(on=real_broker, kind=GatewayDeployment)
    assert isinstance(gateway_deployment, GatewayDeployment)
    gateway = gateway_deployment.gateway(GATEWAY_REPLY_TIMEOUT_MS="2000").start().wait_ready()
    service = gateway_deployment.process("link").start().wait_ready()

    def link() -> int:
        # Nobody has registered it.
        return gateway.client.post(
            f"/v2/users/{fresh('install')}/link", {"external_id": fresh("ext")}, "demo-backend").status

    assert link() == 404
    gateway_deployment.broker.delete(f"{gateway_deployment.prefix}identity.replies.gateway.v1")
    statuses: list[int] = []

    def answered() -> bool:
        statuses.append(link())
        return len(events(gateway, "replies.moved")) == 1 and statuses[-3:] == [404] * 3

    until(answered, TOLD, lambda: f"{statuses}\n{gateway.tail()}")
    assert not events(gateway, "service.silent"), gateway.tail()
    assert service.stop() == 0


def test_operate_a_topic_that_is_missing(real_broker: Broker, make_deployment: Callable[..., Deployment]) -> None:
    """The embedded broker deletes none."""
    deployment = make_deployment(on=real_broker)
    service = deployment.service().start().wait_ready()
    topic = f"{deployment.prefix}identity.link.dlq.v1"
    deployment.broker.delete(topic)
    wait_until_told(service, "topics", topic)
    deployment.broker.create([topic])
    wait_until_over(deployment, service, "topics")
