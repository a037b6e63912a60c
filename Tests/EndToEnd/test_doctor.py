# SPDX-License-Identifier: Apache-2.0
"""`identitybus doctor`: a sound setting passes; of each prepared defect exactly one check fails and names it, within 15 s; and
nothing is different afterwards (docs/command-line.md, "doctor")."""

import json
import re
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as ending
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource

from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority, FakeBroker, Refusing, Talk, closing, free_port, plain, silent, tls
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.secrets import INTERNAL_KEY, leaks
from identitybus_testkit.up import Up, tool
from identitybus_testkit.waiting import until
from test_operate_injuries import LESSER, Rights

LONGEST = 15.0


class Report(NamedTuple):
    status: int
    findings: list[dict[str, Any]]
    seconds: float
    text: str

    def ids(self, level: str) -> set[str]:
        return {finding["id"] for finding in self.findings if finding["level"] == level}

    def of(self, id: str) -> dict[str, Any]:
        return next(finding for finding in self.findings if finding["id"] == id)


def doctor(environment: dict[str, str], *options: str) -> Report:
    started = time.monotonic()
    answer = tool("doctor", "--json", *options, environment=environment)
    seconds = time.monotonic() - started
    assert not leaks((answer.stdout + answer.stderr).encode())
    assert answer.returncode in (0, 3), answer
    findings = [json.loads(line) for line in answer.stdout.splitlines()]
    for finding in findings:
        assert {"id", "level", "subject", "message", "fix", "ms"} <= set(finding), finding
        assert finding["level"] in ("ok", "warn", "fail", "skip") and finding["message"], finding
        assert finding["level"] != "fail" or finding["fix"] or finding["id"].endswith(".version"), finding
    return Report(answer.returncode, findings, seconds, answer.stdout)


def is_defect(report: Report, id: str, cause: str | None = None, *words: str) -> None:
    """Exactly this one fails."""
    assert report.ids("fail") == {id}, report.text
    assert report.status == 3 and report.seconds < LONGEST, report
    finding = next(one for one in report.findings if one["id"] == id and one["level"] == "fail")
    assert finding.get("cause") == cause or cause is None, finding
    for word in words:
        assert re.search(word, finding["message"]), f"{word} is missing in {finding}"


def is_sound(report: Report) -> None:
    assert report.status == 0 and not report.ids("fail") and report.seconds < LONGEST, report.text


# What is there


def sight(deployment: Deployment, groups: tuple[str, ...] = ("identity.link", "identity.link.replies")) -> dict[str, object]:
    """The topics with the ends of their partitions, and what groups have committed."""
    client = deployment.broker.client()
    admin = AdminClient(client)
    known = {
        name: len(topic.partitions) for name, topic in admin.list_topics(timeout=30).topics.items()
        if name.startswith(deployment.prefix)}
    places = [TopicPartition(name, number) for name, count in sorted(known.items()) for number in range(count)]
    seen: dict[str, object] = {"topics": known}
    for group in groups:
        consumer = Consumer({**client, "group.id": deployment.prefix + group})
        try:
            if group == groups[0]:
                seen["ends"] = [consumer.get_watermark_offsets(place, timeout=30) for place in places]
            seen[group] = [place.offset for place in consumer.committed(places, timeout=30)]
        finally:
            consumer.close()
    return seen


def rows(url: str) -> dict[str, object]:
    """All rows of all schemas, and who may do what."""
    with psycopg.connect(url, options="-c default_transaction_read_only=on") as connection:
        tables = connection.execute(
            """SELECT n.nspname, c.relname, c.relacl::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
               WHERE relkind = 'r' AND nspname !~ '^(pg_|information_schema)' ORDER BY 1, 2""").fetchall()
        schemas = connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()
        return {"schemas": schemas} | {
            f"{schema}.{table}": (rights, sorted(map(str, connection.execute(
                f'SELECT * FROM "{schema}"."{table}"').fetchall())))  # type: ignore[arg-type]
            for schema, table, rights in tables}


def sqlite_rows(folder: Path) -> dict[str, object]:
    import sqlite3

    seen: dict[str, object] = {}
    for file in sorted(folder.glob("*.sqlite")):
        with ending(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                seen[f"{file.name} {table}"] = sorted(map(str, connection.execute(f'SELECT * FROM "{table}"').fetchall()))
    return seen


# Sound


@pytest.fixture(scope="module")
def used(make_deployment: Callable[..., Deployment]) -> Deployment:
    """A deployment of the link service on SQLite, which has made all that is its own, and does not run."""
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    assert deployment.services[0].stop() == 0
    return deployment


@pytest.fixture(scope="module")
def shell(used: Deployment) -> dict[str, str]:
    partitions = len(used.broker.partitions(used.bus.commands))
    return used.environment() | {"TOPIC_PARTITIONS": str(partitions)}


def test_doctor_of_a_sound_deployment(used: Deployment, shell: dict[str, str]) -> None:
    folder = Path(shell["DATA_DIR"])
    before = sight(used), sqlite_rows(folder), sorted(folder.iterdir())
    report = doctor(shell, "--as", "link")
    is_sound(report)
    assert (sight(used), sqlite_rows(folder), sorted(folder.iterdir())) == before
    assert {"config.settings", "config.apps", "kafka.reachable", "kafka.topics", "kafka.leaders", "sqlite.store",
            "sqlite.schema", "sqlite.room"} <= report.ids("ok"), report.text


@pytest.mark.slow
def test_doctor_beside_up(tmp_path: Path) -> None:
    """In the folder where it runs, as a newcomer does it."""
    up = Up(tmp_path / ".identitybus", REPOSITORY / "config" / "apps.yaml", "")
    del up.environment["IDENTITYBUS_INTERNAL_KEY"]
    try:
        up.start().wait_ready()
        environment = {"IDENTITYBUS_APPS": str(REPOSITORY / "config" / "apps.yaml")}
        report = doctor(environment, "--data-dir", str(up.data))
        is_sound(report)
        assert not report.ids("warn"), report.text
        text = tool("doctor", "--data-dir", str(up.data), environment=environment)
        assert text.returncode == 0 and not text.stderr, text
        lines = text.stdout.splitlines()
        assert re.fullmatch(r"IdentityBus \S+( \(\w+\))? {3}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", lines[0]), text.stdout
        assert "Configuration" in lines and any(line.startswith("Kafka   127.0.0.1:") for line in lines), text.stdout
        assert re.fullmatch(r"\d+ ok(, \d+ skipped)?", lines[-1]), text.stdout
        gateway = doctor(environment, "--data-dir", str(up.data), "--as", "gateway")
        is_sound(gateway)
        assert not [one for one in gateway.findings if one["id"].startswith("sqlite.")]
    finally:
        up.close()


# Defects: of Kafka's address and of how it lets us in


SIGNING_IN = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me",
    "KAFKA_SASL_PASSWORD": "a-password"}
OVER_TLS = {"KAFKA_SECURITY_PROTOCOL": "SSL"}


class Defect(NamedTuple):
    """What Kafka is, how it is spoken to, and what has to be found out."""

    talk: Talk | str
    settings: dict[str, str]
    id: str
    cause: str
    words: str


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")


def kafka_defects(authority: Authority) -> dict[str, Defect]:
    known = OVER_TLS | {"KAFKA_SSL_CA_LOCATION": str(authority.certificate)}
    good = authority.issue("127.0.0.1")
    reachable, certificate, sasl = "kafka.reachable", "kafka.certificate", "kafka.sasl"
    return {
        "name": Defect("nosuch.invalid:9092", {}, reachable, "name-not-resolved", "cannot be resolved"),
        "refused": Defect(f"127.0.0.1:{free_port()}", {}, reachable, "refused", "connection refused"),
        "silent": Defect(silent, {}, reachable, "timed-out", "no answer"),
        "no Kafka": Defect(plain, {}, reachable, "not-kafka", "not a Kafka broker"),
        "TLS to plain": Defect(plain, OVER_TLS, "kafka.tls", "tls-to-plain", "does not speak TLS"),
        "plain to TLS": Defect(
            tls(*good), {}, "kafka.tls", "plain-to-tls", "perhaps this port speaks TLS"),
        "unknown authority": Defect(
            tls(*good), OVER_TLS, certificate, "unknown-ca",
            "no known authority.* issued by authority of the tests"),
        "wrong host": Defect(
            tls(*authority.issue("other.example")), known, certificate, "wrong-host-name",
            "another host name.* It is other.example"),
        "expired": Defect(
            tls(*authority.issue("127.0.0.1", ends="190201000000Z")), known, certificate, "certificate-expired",
            "expired.* until 2019-02-01"),
        "wrong mechanism": Defect(
            Refusing(["SCRAM-SHA-512"]), SIGNING_IN, sasl, "wrong-mechanism", "it knows SCRAM-SHA-512"),
        "wrong credentials": Defect(
            Refusing(["PLAIN"]), SIGNING_IN, sasl, "wrong-credentials", "refuses the user name or the password"),
        "wants signing in": Defect(Refusing(["PLAIN"], sasl=True), {}, sasl, "wants-sasl", "asks for signing in"),
        "no right": Defect(Refusing(), {}, "kafka.rights", "no-right", "lacks .*Write on the topics"),
    }


KAFKA = ("name", "refused", "silent", "no Kafka", "TLS to plain", "plain to TLS", "unknown authority", "wrong host", "expired",
         "wrong mechanism", "wrong credentials", "wants signing in", "no right")


@pytest.fixture(scope="module")
def looked(shell: dict[str, str], authority: Authority) -> dict[str, tuple[Defect, Report]]:
    """All of them at once: most of the time is waiting."""
    without = {name: text for name, text in shell.items() if not name.startswith("KAFKA_S")}

    def look(defect: Defect) -> Report:
        fake = None if isinstance(defect.talk, str) else FakeBroker(defect.talk)
        try:
            address = fake.servers if fake else str(defect.talk)
            return doctor(without | defect.settings | {"KAFKA_BOOTSTRAP_SERVERS": address}, "--as", "link")
        finally:
            if fake:
                fake.close()

    defects = kafka_defects(authority)
    with ThreadPoolExecutor(5) as pool:
        return dict(zip(defects, zip(defects.values(), pool.map(look, defects.values()))))


@pytest.mark.parametrize("name", KAFKA)
def test_doctor_of_kafka(name: str, looked: dict[str, tuple[Defect, Report]]) -> None:
    assert set(looked) == set(KAFKA)
    defect, report = looked[name]
    is_defect(report, defect.id, defect.cause, defect.words)
    if defect.id in ("kafka.reachable", "kafka.tls", "kafka.certificate", "kafka.sasl"):
        behind = {"kafka.topics", "kafka.rights", "kafka.leaders", "kafka.retention", "kafka.clock"}
        assert behind <= report.ids("skip"), report.text
        assert all(one["message"] == "needs the broker" for one in report.findings if one["id"] in behind)
    # The rest is looked at all the same.
    assert report.of("sqlite.schema")["level"] == "ok"


# Defects: of settings


def test_doctor_of_settings(shell: dict[str, str], tmp_path: Path) -> None:
    def look(**more: str) -> Report:
        return doctor(shell | more, "--as", "link")

    is_defect(look(BATCH_SIZE="many"), "config.settings", None, "BATCH_SIZE many is not a whole number from 1 to 10000")
    (tmp_path / "key").write_text(INTERNAL_KEY + "\n")
    is_defect(look(IDENTITYBUS_INTERNAL_KEY_FILE=str(tmp_path / "key")), "config.twice", None,
              "IDENTITYBUS_INTERNAL_KEY and IDENTITYBUS_INTERNAL_KEY_FILE are both set")
    without = {name: text for name, text in shell.items() if name != "IDENTITYBUS_INTERNAL_KEY"}
    is_defect(doctor(without, "--as", "link", "--data-dir", str(tmp_path)), "config.settings", None, "INTERNAL_KEY is not set")
    is_defect(look(KAFKA_SASL_MECHANISM="PLAIN", KAFKA_SECURITY_PROTOCOL="SASL_SSL", KAFKA_SASL_USERNAME=""), "config.settings", None,
              "KAFKA_SASL_USERNAME is not set")
    # All at once.
    both = look(BATCH_SIZE="many", LOG_LEVEL="loud", KAFKA_BOOTSTRAP_SERVERS="nowhere")
    assert {one["subject"] for one in both.findings if one["level"] == "fail"} == {
        "BATCH_SIZE", "LOG_LEVEL", "KAFKA_BOOTSTRAP_SERVERS"}, both.text
    near = look(BATCHSIZE="100")
    assert near.status == 0 and near.ids("warn") == {"config.unknown-variable"}, near.text
    assert near.of("config.unknown-variable")["message"] == "BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?"


def test_doctor_of_the_apps_file(used: Deployment, shell: dict[str, str], tmp_path: Path) -> None:
    apps = yaml.safe_load(used.apps_file.read_text())

    def look(name: str, change: Callable[[dict[str, Any]], None]) -> Report:
        changed = json.loads(json.dumps(apps))
        change(changed)
        path = tmp_path / name
        path.write_text(json.dumps(changed))
        return doctor(shell | {"IDENTITYBUS_APPS": str(path)}, "--as", "link")

    def weak(file: dict[str, Any]) -> None:
        # A demo app may have it.
        file["apps"][1]["keys"] = [{"id": "weak", "secret": "much-too-short", "scopes": ["admin"]}]

    def unknown(file: dict[str, Any]) -> None:
        file["apps"][0]["keys"][0]["scopes"] = ["everything"]

    def soon(file: dict[str, Any]) -> None:
        file["apps"][0]["keys"][0]["expires"] = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 5 * 86_400))

    is_defect(look("weak", weak), "config.weak-secret", None, "14 bytes, fewer than 32")
    is_defect(look("unknown", unknown), "config.apps", None, "unknown scope everything")
    is_defect(doctor(shell | {"IDENTITYBUS_APPS": "/nosuch.yaml"}, "--as", "link"), "config.apps", None, "no such file")
    ending_soon = look("soon", soon)
    is_sound(ending_soon)
    key = apps["apps"][0]["keys"][0]["id"]
    assert [one for one in ending_soon.findings if one["id"] == "config.key-expiry" and one["level"] == "warn"
            and key in one["message"] and re.search(r"\([45] days\)", one["message"])], ending_soon.text


# Defects: of topics and stores


def test_doctor_of_a_topic_that_is_missing(used: Deployment, shell: dict[str, str]) -> None:
    other = shell | {"TOPIC_PREFIX": f"nothing-{uuid.uuid4().hex[:8]}."}
    before = sight(used)
    report = doctor(other | {"TOPIC_CREATE": "never"}, "--as", "link")
    is_defect(report, "kafka.topics", "missing", f"missing: {other['TOPIC_PREFIX']}identity", "and [0-9]+ more")
    # Whoever makes them needs nobody else.
    made = doctor(other, "--as", "link")
    is_sound(made)
    assert "kafka.topics" in made.ids("warn"), made.text
    assert sight(used) == before
    assert not [name for name in AdminClient(used.broker.client()).list_topics(timeout=30).topics
                if name.startswith(other["TOPIC_PREFIX"])]


def test_doctor_of_sqlite(shell: dict[str, str], tmp_path: Path) -> None:
    def look(folder: Path) -> Report:
        return doctor(shell | {"DATA_DIR": str(folder)}, "--as", "link")

    newer = tmp_path / "newer"
    shutil.copytree(shell["DATA_DIR"], newer)
    import sqlite3

    with ending(sqlite3.connect(newer / "link.sqlite")) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES (999, 'of tomorrow', 'x', 0)")
    is_defect(look(newer), "sqlite.schema", "other-version", "newer than this code: it has migration 999")
    (broken := tmp_path / "broken").mkdir()
    (broken / "link.sqlite").write_bytes(b"no store" * 1000)
    is_defect(look(broken), "sqlite.schema", "unreadable", "not a database")
    (file := tmp_path / "file").touch()
    is_defect(look(file / "store"), "sqlite.store", None, "not a directory|cannot be")
    fresh_folder = look(tmp_path / "nothing" / "yet")
    is_sound(fresh_folder)
    assert not (tmp_path / "nothing").exists()


# Defects: of PostgreSQL


class Server(NamedTuple):
    server: PostgresServer
    place: str
    name: str
    url: str
    environment: dict[str, str]

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def as_role(self, role: str, query: str = "", host: str = "127.0.0.1") -> dict[str, str]:
        port = self.place.split(":")[1]
        return self.environment | {"DATABASE_URL": f"postgresql://{role}:right@{host}:{port}/{self.name}{query}"}


@pytest.fixture(scope="module")
def store(
    directory: Path, shell: dict[str, str], authority: Authority, make_deployment: Callable[..., Deployment]
) -> Iterator[Server]:
    """A server that speaks TLS and asks `doctored` for a password; who may do there what a service needs, and no more."""
    server = PostgresServer.throwaway(directory / f"postgres-{uuid.uuid4().hex[:8]}")
    database = server.new_database()
    link = make_deployment(database=database)
    link.service().start().wait_ready()
    assert link.services[0].stop() == 0
    place = f"127.0.0.1:{urlsplit(database.url).port}"
    store = Server(server, place, urlsplit(database.url).path[1:], database.url, shell | database.environment())
    lines = "host all doctored 127.0.0.1/32 scram-sha-256\n"
    access = server._data / "pg_hba.conf"
    access.write_text(lines + access.read_text())
    store.sql(
        "CREATE ROLE doctored LOGIN PASSWORD 'right'", "GRANT USAGE ON SCHEMA identity_link TO doctored",
        "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA identity_link TO doctored")
    shows(store, *authority.issue("localhost"))
    yield store
    server.close()


def shows(store: Server, certificate: Path, key: Path) -> None:
    """From now on the server has this certificate."""
    for file, name in ((certificate, "server.crt"), (key, "server.key")):
        shutil.copy(file, store.server._data / name)
        shutil.chown(store.server._data / name, (store.server._data / "PG_VERSION").owner())
        (store.server._data / name).chmod(0o600)
    store.sql("ALTER SYSTEM SET ssl TO on", "SELECT pg_reload_conf()")
    serial = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-serial"], capture_output=True, text=True, check=True).stdout
    look = f"openssl s_client -starttls postgres -connect {store.place} </dev/null 2>/dev/null | openssl x509 -noout -serial"
    until(lambda: subprocess.run(look, shell=True, capture_output=True, text=True).stdout == serial, 20, "the certificate")


def test_doctor_of_a_sound_postgresql(store: Server, authority: Authority) -> None:
    before = rows(store.url)
    environment = store.as_role("doctored", "?sslmode=verify-full", "localhost") | {
        "PGSSLROOTCERT": str(authority.certificate)}
    report = doctor(environment, "--as", "link")
    is_sound(report)
    assert {f"postgresql.{name}" for name in (
        "reachable", "tls", "certificate", "sign-in", "version", "writes", "schema", "rights", "room", "clock")
            } <= report.ids("ok"), report.text
    assert re.match(r"TLSv1\.\d \(verify-full\)", report.of("postgresql.tls")["message"])
    assert re.search("localhost, [0-9]+ days left, issued by authority", report.of("postgresql.certificate")["message"])
    assert rows(store.url) == before


def test_doctor_of_a_postgresql_that_is_not_reached(store: Server) -> None:
    def look(place: str) -> Report:
        url = f"postgresql://u@{place}/x?connect_timeout=2"
        return doctor(store.environment | {"DATABASE_URL": url}, "--as", "link")

    is_defect(look("nosuch.invalid"), "postgresql.reachable", "name-not-resolved", "nosuch.invalid:5432")
    report = look(f"127.0.0.1:{free_port()}")
    is_defect(report, "postgresql.reachable", "refused", "connection refused")
    assert {"postgresql.schema", "postgresql.rights", "postgresql.writes"} <= report.ids("skip"), report.text
    fake = FakeBroker(silent)
    is_defect(look(fake.servers), "postgresql.reachable", "timed-out", "no answer")
    fake.close()


def test_doctor_of_a_postgresql_that_does_not_let_us_in(store: Server) -> None:
    wrong = store.as_role("doctored")
    wrong["DATABASE_URL"] = wrong["DATABASE_URL"].replace(":right@", ":wrong@")
    is_defect(doctor(wrong, "--as", "link"), "postgresql.sign-in", "wrong-credentials", "password authentication failed")
    nowhere = store.as_role("doctored")
    nowhere["DATABASE_URL"] = nowhere["DATABASE_URL"].replace(store.name, "nosuch")
    is_defect(doctor(nowhere, "--as", "link"), "postgresql.sign-in", "no-database", "does not exist")


def test_doctor_of_certificates_of_postgresql(store: Server, authority: Authority, directory: Path) -> None:
    def look(host: str, ca: Authority) -> Report:
        environment = store.as_role("doctored", "?sslmode=verify-full", host) | {"PGSSLROOTCERT": str(ca.certificate)}
        return doctor(environment, "--as", "link")

    id = "postgresql.certificate"
    is_defect(look("127.0.0.1", authority), id, "wrong-host-name", "does not match host name")
    other = Authority(directory / f"authority-{uuid.uuid4().hex[:8]}")
    is_defect(look("localhost", other), id, "unknown-ca", "its issuer is authority of the tests")
    shows(store, *authority.issue("localhost", ends="190201000000Z"))
    try:
        is_defect(look("localhost", authority), id, "certificate-expired", "from 2019-01-01 to 2019-02-01")
    finally:
        shows(store, *authority.issue("localhost", ends="390101000000Z"))
    missing = store.as_role("doctored", "?sslmode=verify-full", "localhost") | {"PGSSLROOTCERT": "/nosuch"}
    is_defect(doctor(missing, "--as", "link"), id, "no-ca-file", "root certificate file")


def test_doctor_of_rights_and_schemas_of_postgresql(store: Server) -> None:
    def look(**more: str) -> Report:
        return doctor(store.as_role("doctored") | more, "--as", "link")

    store.sql("REVOKE UPDATE, TRUNCATE ON identity_link.outbox FROM doctored")
    is_defect(look(), "postgresql.rights", "no-right", "doctored lacks UPDATE, TRUNCATE on identity_link.outbox")
    store.sql("GRANT UPDATE, TRUNCATE ON identity_link.outbox TO doctored",
              f'ALTER DATABASE "{store.name}" SET default_transaction_read_only TO on')
    is_defect(look(), "postgresql.writes", "read-only", "takes no writes")
    store.sql(f'ALTER DATABASE "{store.name}" RESET default_transaction_read_only',
              "UPDATE identity_link.migrations SET number = 999 WHERE number = 100")
    is_defect(look(), "postgresql.schema", "other-version", "newer than this code")
    store.sql("UPDATE identity_link.migrations SET number = 100 WHERE number = 999",
              "CREATE TABLE kept AS SELECT * FROM identity_link.migrations WHERE number >= 100",
              "DELETE FROM identity_link.migrations WHERE number >= 100")
    is_defect(look(), "postgresql.schema", "older", "is at migration 1, this code wants 10[0-9]; doctored has no right")
    assert "identitybus migrate" in look().of("postgresql.schema")["fix"]
    store.sql("INSERT INTO identity_link.migrations SELECT * FROM kept", "DROP TABLE kept")
    is_defect(look(DATABASE_SCHEMA_PREFIX="other_"), "postgresql.schema", "missing", "other_link is not there yet")
    # Who may make it needs nobody else.
    owner = doctor(store.environment | {"DATABASE_SCHEMA_PREFIX": "other_"}, "--as", "link")
    is_sound(owner)
    assert "postgresql.schema" in owner.ids("warn")
    is_defect(doctor(store.environment | {"DATABASE_SCHEMA_PREFIX": "other_", "MIGRATE": "never"}, "--as", "link"),
              "postgresql.schema", "missing", "MIGRATE=never")
    with psycopg.connect(store.url) as other:
        other.execute("LOCK TABLE identity_link.outbox IN ACCESS EXCLUSIVE MODE")
        is_defect(look(), "postgresql.writes", None, "keeps a lock on identity_link.outbox")
    is_sound(look())


@pytest.fixture(scope="module")
def late(directory: Path) -> Path:
    """A library that sets the clock of a program back by a minute."""
    source = directory / f"late-{uuid.uuid4().hex[:8]}.c"
    source.write_text("""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <time.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            if (clock == CLOCK_REALTIME) time->tv_sec -= 60;
            return result;
        }""")
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = source.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def test_doctor_of_a_wrong_clock(store: Server, late: Path) -> None:
    report = doctor(store.as_role("doctored") | {"LD_PRELOAD": str(late)}, "--as", "link")
    is_defect(report, "postgresql.clock", None, r"the server is (59|60)\.\d s ahead of us")


# As it is used


def test_doctor_waits_until_all_is_well(used: Deployment, shell: dict[str, str]) -> None:
    """As an init container does."""
    port = free_port()
    broken = shell | {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
    started = time.monotonic()
    answer = tool("doctor", "--as", "link", "--wait", "8", environment=broken)
    assert answer.returncode == 3 and 2 < time.monotonic() - started < 8 + LONGEST, answer
    assert answer.stderr == "waiting   kafka.reachable\n", answer.stderr
    assert "FAIL  reachable         127.0.0.1:" in answer.stdout and "connection refused" in answer.stdout, answer.stdout
    assert re.search(r"^  skip  .*rights, topics, .* {2}needs the broker$", answer.stdout, re.MULTILINE), answer.stdout
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(doctor, broken, "--as", "link", "--wait", "60")
        time.sleep(1)
        with ending(Forward(port, used.broker.servers)):
            is_sound(waiting.result()._replace(seconds=0))


class Forward:
    """Makes a broker that is somewhere else answer at this port, so that it comes up only now."""

    def __init__(self, port: int, target: str) -> None:
        import threading

        self._listener = socket.create_server(("127.0.0.1", port))
        self._target = target
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        import threading

        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            host, port = self._target.split(",")[0].rsplit(":", 1)
            server = socket.create_connection((host, int(port)))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                target.sendall(data)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()


def test_doctor_lists_its_checks_as_the_page_does() -> None:
    listed = tool("doctor", "--checks", environment={})
    assert listed.returncode == 0 and not listed.stderr
    code = dict(line.split(maxsplit=1) for line in listed.stdout.splitlines())
    page = (REPOSITORY / "docs" / "command-line.md").read_text()
    page = page.partition("| id | fails, or warns, when |")[2].partition("\n\n")[0]
    table = dict(re.findall(r"^\| `((?:config|kafka|postgresql|sqlite)\.[a-z-]+)` \| (.+) \|$", page, re.MULTILINE))
    assert list(table) == list(code)
    assert {id: text.replace("`", "") for id, text in table.items()} == code


def test_doctor_of_somebody_who_does_not_exist() -> None:
    answer = tool("doctor", "--as", "nobody", environment={})
    assert answer.returncode == 64 and "link" in answer.stderr and "gateway" in answer.stderr, answer


# Apache Kafka


@pytest.fixture(scope="module")
def topics(make_deployment: Callable[..., Deployment]) -> Deployment:
    deployment = make_deployment()
    if deployment.broker.is_embedded:
        pytest.skip("the embedded broker has neither settings of topics nor rights")
    deployment.service().start().wait_ready()
    assert deployment.services[0].stop() == 0
    return deployment


def test_doctor_of_a_sound_kafka(topics: Deployment) -> None:
    groups = ("identity.link", "identity.link.replies")
    before = sight(topics, groups), {
        group.group_id for group in AdminClient(topics.broker.client()).list_consumer_groups().result().valid}
    report = doctor(topics.environment(), "--as", "link")
    is_sound(report)
    assert {"kafka.rights", "kafka.topics", "kafka.leaders", "kafka.retention", "kafka.time", "kafka.message-size"
            } <= report.ids("ok"), report.text
    after = sight(topics, groups), {
        group.group_id for group in AdminClient(topics.broker.client()).list_consumer_groups().result().valid}
    assert after == before


@pytest.mark.parametrize(("setting", "value", "usual", "id", "words"), [
    ("retention.ms", "3600000", "1209600000", "kafka.retention", "retention 1 h, wants 14 d"),
    ("cleanup.policy", "compact", "delete", "kafka.retention", "cleanup.policy compact"),
    ("message.timestamp.type", "CreateTime", "LogAppendTime", "kafka.time", "time by sender, wants broker"),
    ("max.message.bytes", "100000", "2000000", "kafka.message-size", "max.message.bytes 100 kB, wants 2.0 MB"),
])
def test_doctor_of_a_weak_topic(setting: str, value: str, usual: str, id: str, words: str, topics: Deployment) -> None:
    admin = AdminClient(topics.broker.client())

    def change(to: str) -> None:
        # All that is not named goes back to the broker's defaults.
        kept = {"retention.ms": "1209600000", "message.timestamp.type": "LogAppendTime", "max.message.bytes": "2000000"}
        resource = ConfigResource(ConfigResource.Type.TOPIC, topics.bus.commands, set_config=kept | {setting: to})
        for future in admin.alter_configs([resource]).values():
            future.result(30)

    change(value)
    try:
        until(lambda: doctor(topics.environment(), "--as", "link").ids("fail"), 20, "the change")
        report = doctor(topics.environment(), "--as", "link")
        is_defect(report, id, setting, f"{topics.bus.commands}: {words}")
    finally:
        change(usual)


@pytest.mark.skipif(LESSER == ":", reason="TEST_KAFKA_USER does not name a user of a Kafka with ACLs")
def test_doctor_of_rights_of_kafka(topics: Deployment) -> None:
    rights = Rights(topics.broker, topics.prefix)
    environment = topics.environment() | rights.settings()
    until(lambda: not doctor(environment, "--as", "link").ids("fail"), 30, "the rights")
    events = f"{topics.prefix}identity.link.events.v1"
    for operation, topic, words in (
        (AclOperation.READ, topics.bus.commands, "Read on the topic"), (AclOperation.WRITE, events, "Write on the topic"),
        (AclOperation.DESCRIBE, events, "on the topic"),
    ):
        with rights.without(operation, topic):
            until(lambda: doctor(environment, "--as", "link").ids("fail"), 20, f"{words} {topic}")
            report = doctor(environment, "--as", "link")
            is_defect(report, "kafka.rights", "no-right", f"Kafka user {rights.name} lacks .*{words}s? .*{topic}")
            assert f"--allow-principal User:{rights.name}" in report.of("kafka.rights")["fix"]
    is_defect(doctor(environment | {"TOPIC_PREFIX": fresh("nothing")}, "--as", "link"), "kafka.rights", "no-right", "group")


@pytest.mark.skipif(LESSER == ":", reason="TEST_KAFKA_USER does not name a user of a Kafka with ACLs")
def test_doctor_of_a_wrong_password_of_kafka(topics: Deployment) -> None:
    report = doctor(topics.environment() | {"KAFKA_SASL_PASSWORD": "wrong"}, "--as", "link")
    is_defect(report, "kafka.sasl", "wrong-credentials", "refuses the user name or the password")
