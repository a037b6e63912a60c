# SPDX-License-Identifier: Apache-2.0
"""`identitybus doctor`: a sound setting passes; of each prepared defect exactly one check fails and names it, within 15 s; and
nothing is different afterwards (docs/command-line.md, "doctor"). This is about settings, the broker and SQLite."""

import json
import re
import shutil
import socket
import sqlite3
import ssl
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as ending
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from identitybus_testkit.deployment import Deployment
from identitybus_testkit.doctors import LONGEST, Report, causes, doctor, is_defect, is_sound, sight, sqlite_rows
from identitybus_testkit.fakes import Authority, FakeBroker, Refusing, Talk, plain, shut, shut_unread, silent, tls
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.ports import free_port
from identitybus_testkit.secrets import INTERNAL_KEY, kafka_password
from identitybus_testkit.up import Up, tool


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
    "KAFKA_SASL_PASSWORD": kafka_password()}
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


def kafka_defects(authority: Authority, other: Authority) -> dict[str, Defect]:
    known = OVER_TLS | {"KAFKA_SSL_CA_LOCATION": str(authority.certificate)}
    good = authority.issue("127.0.0.1")
    own = other.issue("client.example")
    strange = {"KAFKA_SSL_CERTIFICATE_LOCATION": str(own[0]), "KAFKA_SSL_KEY_LOCATION": str(own[1])}
    past = authority.issue("client.example", ends="190201000000Z")
    over = {"KAFKA_SSL_CERTIFICATE_LOCATION": str(past[0]), "KAFKA_SSL_KEY_LOCATION": str(past[1])}
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
        "closing": Defect(shut, {}, reachable, "closed", "closed"),
        "closing unread": Defect(shut_unread, {}, reachable, "closed", "closed"),
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
        "client certificate wanted": Defect(
            tls(*good, clients=authority.certificate), known, certificate, "client-certificate", "a certificate of this client, and none is set"),
        "client certificate wanted, TLS 1.2": Defect(
            tls(*good, clients=authority.certificate, newest=ssl.TLSVersion.TLSv1_2), known, certificate,
            "client-certificate", "a certificate of this client, and none is set"),
        "client certificate refused": Defect(
            tls(*good, clients=authority.certificate), known | strange, certificate, "client-certificate",
            "this client's certificate"),
        "client certificate over": Defect(
            tls(*good, clients=authority.certificate), known | over, certificate, "client-certificate",
            r"this client's certificate .*/client\.example-19.*\.pem ended on 2019-02-01$"),
        "told address": Defect(
            Refusing(advertised=free_port()), {}, "kafka.brokers", "refused", "the address that it tells"),
        "no right": Defect(Refusing(), {}, "kafka.rights", "no-right", "lacks .*Write on the topics"),
    }


KAFKA = ("name", "refused", "silent", "closing", "closing unread", "no Kafka", "TLS to plain", "plain to TLS", "unknown authority", "wrong host", "expired",
         "client certificate wanted", "client certificate wanted, TLS 1.2", "client certificate refused",
         "client certificate over", "told address",
         "wrong mechanism", "wrong credentials", "wants signing in", "no right")


@pytest.fixture(scope="module")
def looked(shell: dict[str, str], authority: Authority, directory: Path) -> dict[str, tuple[Defect, Report]]:
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

    defects = kafka_defects(authority, Authority(directory / f"authority-{uuid.uuid4().hex[:8]}"))
    with ThreadPoolExecutor(6) as pool:
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
    if defect.id == "kafka.brokers":
        assert {"kafka.topics", "kafka.rights", "kafka.leaders", "kafka.clock"} <= report.ids("skip"), report.text
    # The rest is looked at all the same.
    assert report.of("sqlite.schema")["level"] == "ok"


def in_days(days: float) -> str:
    """As `openssl ca` takes it."""
    return time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86_400))


# Two weeks before the end, and not earlier.
ENDS = [(15.5, "ok", "15 days left"), (13.5, "warn", "13 days left")]


@pytest.mark.parametrize(("days", "level", "words"), ENDS)
def test_doctor_of_certificates_for_kafka_that_end(
    days: float, level: str, words: str, shell: dict[str, str], authority: Authority
) -> None:
    """The broker's, and ours."""
    own, broker = (authority.issue(host, ends=in_days(days)) for host in ("client.example", "127.0.0.1"))
    fake = FakeBroker(tls(*broker, clients=authority.certificate, inside=Refusing()))
    try:
        report = doctor(
            shell | OVER_TLS | {
                "KAFKA_BOOTSTRAP_SERVERS": fake.servers, "KAFKA_SSL_CA_LOCATION": str(authority.certificate),
                "KAFKA_SSL_CERTIFICATE_LOCATION": str(own[0]), "KAFKA_SSL_KEY_LOCATION": str(own[1])}, "--as", "link")
    finally:
        fake.close()
    found = {one["subject"]: one for one in report.findings if one["id"] == "kafka.certificate"}
    assert {subject: one["level"] for subject, one in found.items()} == {str(own[0]): level, fake.servers: level}, report.text
    ours, theirs = found[str(own[0])]["message"], found[fake.servers]["message"]
    assert ours.startswith(f"ours ({own[0]}): client.example, {words}, issued by authority"), ours
    assert theirs.startswith(f"127.0.0.1, {words}, issued by authority"), theirs


@pytest.mark.parametrize(("days", "level", "words"), [*ENDS, (-2.5, "warn", "ended 3 days ago")])
def test_doctor_of_the_certificate_of_the_gateway(
    days: float, level: str, words: str, shell: dict[str, str], authority: Authority
) -> None:
    certificate, key = authority.issue("gateway.example", ends=in_days(days))
    environment = shell | {"GATEWAY_TLS_CERTIFICATE": str(certificate), "GATEWAY_TLS_KEY": str(key)}
    report = doctor(environment, "--as", "gateway")
    assert not [id for id in report.ids("fail") if id.startswith("config.")], report.text
    found = report.of("config.certificate")
    assert (found["level"], found["subject"]) == (level, str(certificate)), report.text
    assert found["message"].startswith(f"ours ({certificate}): gateway.example, {words}, issued by authority"), found
    # Services show none.
    assert "config.certificate" not in {one["id"] for one in doctor(environment, "--as", "link").findings}


def test_doctor_says_where_the_address_is_from(shell: dict[str, str], tmp_path: Path) -> None:
    """As every command does. What `identitybus up` has written stays, where that was killed."""
    (tmp_path / "bootstrap").write_text(f"127.0.0.1:{free_port()}\n")
    given = f"127.0.0.1:{free_port()}"
    unset = {name: text for name, text in shell.items() if not name.startswith("KAFKA_")}
    for environment, options, words in (
        (unset, (), f"The address is from {tmp_path}/bootstrap. Does that `identitybus up` still run?"),
        (unset, ("--bootstrap-servers", given), "Does Kafka run there? Its address is from --bootstrap-servers."),
        (shell | {"KAFKA_BOOTSTRAP_SERVERS": given}, (),
         "Does Kafka run there? Its address is from KAFKA_BOOTSTRAP_SERVERS."),
    ):
        report = doctor(environment, "--as", "gateway", "--data-dir", str(tmp_path), *options)
        is_defect(report, "kafka.reachable", "refused")
        assert report.of("kafka.reachable")["fix"] == words, report.text


@pytest.mark.parametrize("name", ["refused", "name", "silent"])
def test_doctor_of_one_address_of_several(name: str, used: Deployment, shell: dict[str, str]) -> None:
    """Services go on with the others."""
    with ending(FakeBroker(silent)) as fake:
        dead, cause = {
            "refused": (f"127.0.0.1:{free_port()}", "refused"), "name": ("nosuch.invalid:9092", "name-not-resolved"),
            "silent": (fake.servers, "timed-out")}[name]
        for servers in (f"{dead},{used.broker.servers}", f"{used.broker.servers},{dead}"):
            report = doctor(shell | {"KAFKA_BOOTSTRAP_SERVERS": servers}, "--as", "link")
            is_sound(report)
            assert [(one["id"], one["cause"], one["subject"]) for one in report.findings if one["level"] == "warn"] == [
                ("kafka.reachable", cause, dead)], report.text
            assert "kafka.reachable" in report.ids("ok") and "kafka.topics" in report.ids("ok"), report.text


def test_doctor_tells_of_who_answers_rather_than_of_who_is_away(shell: dict[str, str]) -> None:
    with ending(FakeBroker(Refusing(["PLAIN"]))) as fake:
        servers = f"127.0.0.1:{free_port()},{fake.servers}"
        report = doctor(shell | SIGNING_IN | {"KAFKA_BOOTSTRAP_SERVERS": servers}, "--as", "link")
        is_defect(report, "kafka.sasl", "wrong-credentials", fake.servers)


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
    (key := tmp_path / "up" / "internal-key").parent.mkdir()
    key.mkdir()
    unreadable = doctor(without, "--as", "link", "--data-dir", str(key.parent))
    is_defect(unreadable, "config.settings", None, "internal-key cannot be read")
    assert "the user who has started it" in unreadable.of("config.settings")["fix"]
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

    def ending(days: int) -> Callable[[dict[str, Any]], None]:
        """Its day begins then: some hours less than that are left."""
        def change(file: dict[str, Any]) -> None:
            file["apps"][0]["keys"][0]["expires"] = time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * 86_400))

        return change

    is_defect(look("weak", weak), "config.weak-secret", None, "14 bytes, fewer than 32")
    is_defect(look("unknown", unknown), "config.apps", None, "unknown scope everything")
    is_defect(doctor(shell | {"IDENTITYBUS_APPS": "/nosuch.yaml"}, "--as", "link"), "config.apps", None, "no such file")
    ending_soon = look("soon", ending(14))
    is_sound(ending_soon)
    key = apps["apps"][0]["keys"][0]["id"]
    assert [one for one in ending_soon.findings if one["id"] == "config.key-expiry" and one["level"] == "warn"
            and key in one["message"] and "(13 days)" in one["message"]], ending_soon.text
    assert "config.key-expiry" not in look("later", ending(15)).ids("warn")


# Defects: of topics and stores


def test_doctor_of_a_topic_that_is_missing(used: Deployment, shell: dict[str, str]) -> None:
    other = shell | {"TOPIC_PREFIX": f"nothing-{uuid.uuid4().hex[:8]}."}
    before = sight(used)
    report = doctor(other | {"TOPIC_CREATE": "never"}, "--as", "link")
    is_defect(report, "kafka.topics", "missing", f"missing: {other['TOPIC_PREFIX']}identity", "and [0-9]+ more")
    made = doctor(other, "--as", "link")
    if used.broker.is_embedded:
        is_defect(made, "kafka.topics", "missing", "the embedded broker makes none")
    else:
        # Whoever makes them needs nobody else.
        is_sound(made)
        assert "kafka.topics" in made.ids("warn"), made.text
        many = doctor(other | {"TOPIC_REPLICATION_FACTOR": "99"}, "--as", "link")
        is_defect(many, "kafka.topics", "missing", "cannot be made")
        assert "TOPIC_REPLICATION_FACTOR" in many.of("kafka.topics")["fix"]
    assert sight(used) == before
    assert not [name for name in AdminClient(used.broker.client()).list_topics(timeout=30).topics
                if name.startswith(other["TOPIC_PREFIX"])]


def test_doctor_of_sqlite(shell: dict[str, str], tmp_path: Path) -> None:
    def look(folder: Path, **more: str) -> Report:
        return doctor(shell | {"DATA_DIR": str(folder)} | more, "--as", "link")

    def copy(name: str, *statements: str) -> Path:
        shutil.copytree(shell["DATA_DIR"], tmp_path / name)
        with ending(sqlite3.connect(tmp_path / name / "link.sqlite")) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        return tmp_path / name

    newer = copy("newer", "INSERT INTO migrations VALUES (999, 'of tomorrow', 'x', 0)")
    is_defect(look(newer), "sqlite.schema", "other-version", "newer than this code: it has migration 999")
    is_defect(look(copy("other", "UPDATE migrations SET checksum = 'x' WHERE number = 100")),
              "sqlite.schema", "other-version", "made by another version of this code")
    is_defect(look(copy("alien", "UPDATE migrations SET name = 'profiles' WHERE number = 100")),
              "sqlite.schema", "other-version", "the store of another service, .*is 'profiles', and not 'installs, persons")
    is_defect(look(copy("lost", "DROP TABLE outbox")), "sqlite.schema", "table-missing", "the table outbox is missing")
    is_defect(look(copy("renamed", "ALTER TABLE progress RENAME last_time TO elsewhere")), "sqlite.schema", "unreadable",
              "is not as its migrations have made it: progress has no column last_time")
    older = copy("older", "DELETE FROM migrations WHERE number >= 100")
    is_sound(look(older))
    assert look(older).of("sqlite.schema")["level"] == "warn"
    is_defect(look(older, MIGRATE="never"), "sqlite.schema", "older", "is at migration 1.* MIGRATE=never")
    is_defect(look(tmp_path / "nothing", MIGRATE="never"), "sqlite.schema", "missing", "is not there yet.* MIGRATE=never")
    (empty := tmp_path / "empty").mkdir()
    is_sound(look(empty))
    absent = look(empty).of("sqlite.schema")
    assert (absent["level"], absent["cause"]) == ("warn", "missing") and "not there yet: link;" in absent["message"], absent
    is_defect(look(empty, MIGRATE="never"), "sqlite.schema", "missing", "is not there yet.* MIGRATE=never")
    (empty / "link.sqlite").touch()
    is_sound(look(empty))
    is_defect(look(empty, MIGRATE="never"), "sqlite.schema", "missing", "is empty.* MIGRATE=never")
    (broken := tmp_path / "broken").mkdir()
    (broken / "link.sqlite").write_bytes(b"no store" * 1000)
    report = look(broken)
    is_defect(report, "sqlite.schema", "unreadable", "not a database")
    assert "put a back-up in its place" in report.of("sqlite.schema")["fix"], report.text
    cut = copy("cut")
    with (cut / "link.sqlite").open("r+b") as store:
        store.truncate((cut / "link.sqlite").stat().st_size // 4096 // 2 * 4096)
    report = look(cut)
    is_defect(report, "sqlite.schema", "unreadable", "malformed")
    assert "put a back-up in its place" in report.of("sqlite.schema")["fix"], report.text
    (tmp_path / "folder" / "link.sqlite").mkdir(parents=True)
    report = look(tmp_path / "folder")
    is_defect(report, "sqlite.schema", "unreadable", "link.sqlite is a folder")
    assert "Move it away" in report.of("sqlite.schema")["fix"], report.text
    (file := tmp_path / "file").touch()
    is_defect(look(file / "store"), "config.settings", None, f"DATA_DIR {file}/store cannot be a folder: {file} is a file")
    (link := tmp_path / "link").symlink_to(tmp_path / "away")
    is_defect(look(link / "store"), "sqlite.store", None, "cannot be made: no such file")
    fresh_folder = look(tmp_path / "nothing" / "yet")
    is_sound(fresh_folder)
    assert not (tmp_path / "nothing").exists()


def files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """With who owns them, how large they are, and when they were written."""
    return {path.name: (path.stat().st_uid, path.stat().st_size, path.stat().st_mtime_ns)
            for path in sorted([folder, *folder.iterdir()])}


def test_doctor_changes_no_file_of_sqlite(make_deployment: Callable[..., Deployment], tmp_path: Path) -> None:
    """While the service runs, when it has stopped, and when it was killed; and for a reader who may write nothing there."""
    deployment = make_deployment("sqlite")
    service = deployment.service().start().wait_ready()
    environment = deployment.environment()
    folder = Path(environment["DATA_DIR"])

    def look(place: Path) -> Report:
        before = files(place)
        report = doctor(environment | {"DATA_DIR": str(place)}, "--as", "link")
        after = files(place)
        # What runs writes by itself.
        assert after == before or service.is_running and set(after) == set(before), (before, after)
        return report

    is_sound(look(folder))
    service.pause()
    held = files(folder)
    assert {"link.sqlite-wal", "link.sqlite-shm"} <= set(held)
    is_sound(look(folder))
    assert files(folder) == held
    killed = tmp_path / "killed"
    shutil.copytree(folder, killed)
    service.resume()
    assert service.stop() == 0
    assert set(files(folder)) == {folder.name, "link.sqlite", "link.sqlite.lock"}
    for place in (folder, killed):
        assert look(place).of("sqlite.schema")["level"] == "ok"
    (killed / "link.sqlite-shm").unlink()
    is_defect(look(killed), "sqlite.schema", "unreadable", "has a log .-wal. and no index")
    (killed / "link.sqlite-wal").unlink()
    # A name that a URI would read in another way.
    odd = tmp_path / "what?a#name%20"
    shutil.copytree(folder, odd)
    assert look(odd).of("sqlite.schema")["level"] == "ok"


# As it is used


def test_doctor_waits_until_all_is_well(used: Deployment, shell: dict[str, str]) -> None:
    """As an init container does."""
    port = free_port()
    broken = shell | {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
    started = time.monotonic()
    answer = tool("doctor", "--as", "link", "--wait", "12", environment=broken)
    assert answer.returncode == 3 and 2 < time.monotonic() - started < 12 + LONGEST, answer
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
        self._listener = socket.create_server(("127.0.0.1", port))
        self._target = target
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
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
    checks = page.partition("| id | fails, or warns, when |")[2].partition("\n\n")[0]
    table = dict(re.findall(r"^\| `((?:config|kafka|postgresql|sqlite)\.[a-z-]+)` \| (.+) \|$", checks, re.MULTILINE))
    assert list(table) == list(code)
    assert {id: text.replace("`", "") for id, text in table.items()} == code
    rest = page.partition("| id | `cause` |")[2].partition("\n\n")[0]
    told = {id: re.findall(r"`([a-z.-]+)`", text) for id, text in re.findall(r"^\| `([a-z.-]+)` \| (.+) \|$", rest, re.MULTILINE)}
    assert "those of the four above" in rest
    told["kafka.brokers"] = sorted(cause for id in ("reachable", "tls", "certificate", "sasl") for cause in told[f"kafka.{id}"])
    assert told | {"kafka.brokers": None} == {
        id: causes for id, causes in causes().items() if causes} | {"kafka.brokers": None}
    assert told["kafka.brokers"] == sorted(causes()["kafka.brokers"])


def test_doctor_of_somebody_who_does_not_exist() -> None:
    answer = tool("doctor", "--as", "nobody", environment={})
    assert answer.returncode == 64 and "link" in answer.stderr and "gateway" in answer.stderr, answer
