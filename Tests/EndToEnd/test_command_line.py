# SPDX-License-Identifier: Apache-2.0
"""`identitybus` as people use it: what it says where, how it ends, and what it does on a terminal and in a pipe
(docs/command-line.md)."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition

from identitybus_testkit import commands as c
from identitybus_testkit.broker import Broker
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import fresh
from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import FakeBroker, Refusing, closing
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.secrets import INTERNAL_KEY, leaks
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

STATUSES = {
    int(line.split("|")[1]): line.split("|")[2].strip()
    for line in (REPOSITORY / "docs" / "command-line.md").read_text().splitlines() if re.match(r"\| \d+ \|", line)}


@pytest.fixture
def shell(deployment: Deployment) -> dict[str, str]:
    return deployment.environment()


@pytest.fixture
def bus(deployment: Deployment) -> Bus:
    return deployment.bus


def send(environment: dict[str, str], *options: str, type: str = "link.query", key: str = "internal",
         data: str = '{"installId":"nobody"}', app: str = "demo") -> subprocess.CompletedProcess[str]:
    return tool("send", type, "--app", app, "--key-id", key, "--data", data, *options, environment=environment)


def is_problem(answer: subprocess.CompletedProcess[str], status: int, *parts: str) -> None:
    """What is wrong and where, then what to do; no usage, nothing of a library, and no result."""
    lines = answer.stderr.splitlines()
    assert (answer.returncode, answer.stdout) == (status, ""), answer
    assert lines[0].startswith("identitybus: ") and len(lines) <= 4, answer.stderr
    assert all(line.startswith(" " * 13) for line in lines[1:]), answer.stderr
    assert "Usage" not in answer.stderr and "rdkafka" not in answer.stderr and "Error Domain" not in answer.stderr
    assert not leaks(answer.stderr.encode())
    for part in parts:
        assert part in answer.stderr, f"{part} is missing in\n{answer.stderr}"


def ends(bus: Bus) -> list[int]:
    """How much was ever written to the commands topic."""
    consumer = Consumer(bus.broker.client(**{"group.id": "nobody"}))
    try:
        return [consumer.get_watermark_offsets(TopicPartition(bus.commands, number), timeout=30)[1]
                for number in bus.broker.partitions(bus.commands)]
    finally:
        consumer.close()


# Help


def test_help_tells_every_status_of_the_page() -> None:
    first = tool("--help", environment={})
    assert first.returncode == 0 and not first.stderr
    told = {int(number): words for number, words in re.findall(r"^ +(\d+)  (.+)$", first.stdout, re.MULTILINE)}
    assert told == STATUSES and set(told) == {0, 1, 3, 4, 64, 69, 74, 77, 78, 130}


@pytest.mark.parametrize(("arguments", "part"), [
    (("send", "link.query", "--app", "demo"), "Missing: --key-id, --data"),
    (("send", "link.query", "--app", "demo", "--key-id", "k", "--data", "{}", "--wait", "-1"), "give seconds, 0 or more"),
    (("send", "link.query", "--app", "demo", "--key-id", "k", "--data", "{}", "--wait", "nan"), "give seconds, 0 or more"),
    (("send", "link.query", "--ap", "demo"), "Unknown option '--ap'"),
    (("explain", "x", "--app", "demo", "--limit", "-1"), "give a whole number, 1 or more"),
    (("watch", "--limit", "0"), "give a whole number, 1 or more"),
    (("watch", "--since", "yesterday"), "'yesterday' is invalid"),
    (("watch", "--until", "now"),
     "names a time that is over, so say where to begin: --since 10m --until now, or --from-beginning --until now."),
    (("watch", "--until", "10m"), "A time to come is 18:30 (UTC) or 2030-01-31T18:30:00Z."),
    (("watch", "--until", "tomorrow"), "now, 10m (ago), 18:30 (UTC), 2030-01-31"),
    (("sign", "--topic", "t", "--app", "demo", "--key-id", "k", "--header", "x=1"), "ce_<attribute>=<value>"),
    (("topics", "--cluster", "x", "--format", "sh"), "--cluster is for --format strimzi"),
    (("probe", "ready", "127.0.0.1:8080"), "127.0.0.1:8080 is not an address of a health server, such as http://127.0.0.1:8080"),
    (("probe", "ready", "https://127.0.0.1:8080"), "such as http://127.0.0.1:8080"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_what_cannot_be_read_gets_the_usage(arguments: tuple[str, ...], part: str) -> None:
    answer = tool(*arguments, environment={})
    assert (answer.returncode, answer.stdout) == (64, ""), answer
    assert answer.stderr.startswith("identitybus: ") and part in answer.stderr and "Usage: " in answer.stderr


@pytest.mark.parametrize(("arguments", "parts"), [
    (("doctr",), ("there is no command doctr. Did you mean doctor?", "All: identitybus --help")),
    (("sned", "link.query", "--app", "demo"), ("there is no command sned. Did you mean send?",)),
    (("nothing-like-it",), ("there is no command nothing-like-it.\n",)),
    (("dlq", "lits"), ("there is no command dlq lits. Did you mean list?", "All: identitybus dlq --help")),
    (("help", "foo"), ("there is no command foo.",)),
    (("--version", "extra"), ("--version takes nothing but --json.",)),
    (("--version", "--jsn"), ("--version takes nothing but --json.",)),
], ids=lambda value: " ".join(value))
def test_a_word_that_names_no_command(arguments: tuple[str, ...], parts: tuple[str, ...]) -> None:
    is_problem(tool(*arguments, environment={}), 64, *parts)


def test_help_and_version_of_a_command() -> None:
    for words in (("help", "dlq", "list"), ("dlq", "list", "--help")):
        answer = tool(*words, environment={})
        assert answer.returncode == 0 and "USAGE: identitybus dlq list" in answer.stdout, answer
    answer = tool("doctor", "--version", "--json", environment={})
    assert answer.returncode == 0 and json.loads(answer.stdout)["program"] == "identitybus", answer


# What is wrong, where, what to do


def test_a_type_that_nobody_knows_is_not_sent(shell: dict[str, str], bus: Bus) -> None:
    """It would become a dead letter."""
    before = ends(bus)
    is_problem(send(shell, type="link.requst"), 64, "Did you mean link.request?", "Nothing was sent", "send --types")
    is_problem(send(shell, "--wait", "3", type="nosuch.thing"), 64, "there is no command nosuch.thing.", "send --types")
    is_problem(send(shell, "--force", type="x"), 64, "there is no command x")
    # Neither is what no service could read.
    is_problem(send(shell, data="[]"), 64, "--data is no JSON object", "Nothing was sent")
    is_problem(send(shell, "--id", ""), 64, "no service can read this command", "Nothing was sent")
    is_problem(send(shell, "--source", "x" * 256), 64, "no service can read this command")
    assert ends(bus) == before
    forced = send(shell, "--force", "--wait", "60", type="link.requst")
    assert forced.returncode == 3 and json.loads(forced.stdout)["data"]["reason"] == "UNKNOWN_TYPE"
    assert sum(ends(bus)) == sum(before) + 1


def test_types_are_listed_with_their_scopes() -> None:
    listed = tool("send", "--types", environment={})
    assert listed.returncode == 0 and re.search(r"^link\.request +user\.link$", listed.stdout, re.MULTILINE)
    lines = [json.loads(line) for line in tool("send", "--types", "--json", environment={}).stdout.splitlines()]
    assert {"type": "identity.link.request.v1", "scope": "user.link"} in lines
    assert len(lines) == len(listed.stdout.splitlines()) > 20


def test_without_wait_it_tells_where_the_command_is(shell: dict[str, str], bus: Bus) -> None:
    sent = send(shell, "--json")
    place = json.loads(sent.stdout)
    assert sent.returncode == 0 and place["topic"] == bus.commands
    assert f'{place["topic"]}[{place["partition"]}]@{place["offset"]}' in sent.stderr
    assert place["id"] in sent.stderr and "--wait" in sent.stderr
    assert bus.reply(place["id"], timeout=60)["reason"] == "INSTALL_NOT_FOUND"
    shown = tool("watch", "--since", "5m", "--until", "now", "--id", place["id"], "--json", environment=shell)
    assert shown.returncode == 0, shown
    assert json.loads(shown.stdout)["value"]["data"]["commandId"] == place["id"]


def test_a_time_out_tells_how_to_ask_again(make_deployment: Callable[..., Deployment]) -> None:
    nobody = make_deployment()
    nobody.broker.ensure([nobody.bus.commands, f"{nobody.prefix}identity.replies.v1"])
    answer = send(nobody.environment(), "--wait", "1")
    [id] = set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", answer.stderr))
    is_problem(
        answer, 4, f"no reply within 1 s to {id}; it was written to {nobody.bus.commands}[",
        f"the same line with --id {id}", f"identitybus explain {id} --app demo")


def test_ctrl_c_while_it_waits_tells_it_too(make_deployment: Callable[..., Deployment]) -> None:
    nobody = make_deployment()
    nobody.broker.ensure([nobody.bus.commands, f"{nobody.prefix}identity.replies.v1"])
    waiting = subprocess.Popen(
        [binary("identitybus"), "send", "link.query", "--app", "demo", "--key-id", "internal", "--wait", "60", "--data",
         '{"installId":"i"}'], env=clean_environment() | nobody.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    until(lambda: sum(ends(nobody.bus)) == 1, 30, "the command")
    waiting.send_signal(signal.SIGINT)
    output, said = waiting.communicate(timeout=30)
    is_problem(subprocess.CompletedProcess([], waiting.returncode, output, said), 130, "interrupted", "--id ")


def test_a_topic_that_is_not_there_is_told_before_sending(shell: dict[str, str], deployment: Deployment) -> None:
    if deployment.broker.is_embedded:
        pytest.skip("the embedded broker makes every topic that it is asked for")
    is_problem(send(shell | {"TOPIC_PREFIX": "nowhere."}), 3, "has no topic nowhere.identity.link.commands.v1",
               "TOPIC_PREFIX")


@pytest.mark.parametrize(("case", "status", "parts"), [
    ("unknown app", 64, ("has no app demp.", "Did you mean demo?")),
    ("unknown app, as a service", 64, (
        "has no app demp. Did you mean demo?", "It has: ", "Nothing was sent. --force sends it.")),
    ("unknown key", 64, ("app demo has no key demo-backed.", "Did you mean demo-backend?", "internal")),
    ("data is not JSON", 64, ("--data: not JSON at byte 1: ", "Before that stands: {\n", "Nothing was sent")),
    ("data is quoted wrongly", 64, (
        "--data: not JSON at byte 1: expected a member name in double quotes, found '''. Before that stands: {\n",
        "A shell takes it whole in single quotes: --data '{\"installId\":\"phone-1\"}'")),
    ("data has no comma", 64, ("--data: not JSON at byte 15: ", "Before that stands: {\"x\":1,\"b\":\"a\" \n")),
    ("no broker", 78, ("KAFKA_BOOTSTRAP_SERVERS", "identitybus up", "/bootstrap")),
    ("no internal key", 78, ("IDENTITYBUS_INTERNAL_KEY", "/internal-key")),
    ("no apps file", 78, ("/none: cannot be read: no such file or directory; set IDENTITYBUS_APPS", "\n             --apps, or IDENTITYBUS_APPS")),
    ("a folder", 78, (": cannot be read: is a directory; set IDENTITYBUS_APPS", )),
    ("wrong Kafka setting", 78, ("KAFKA_CONSUMER_FETCH_WAIT_MAX_MS", "docs/operations.md")),
    ("no authorities", 78, ("KAFKA_SSL_CA_LOCATION: /none.pem cannot be read: no such file", "docs/operations.md")),
    ("wrong address", 78, ("KAFKA_BOOTSTRAP_SERVERS: 'foo bar:x' is not host:port", "localhost:9092")),
    ("no port", 78, ("KAFKA_BOOTSTRAP_SERVERS: 'localhost' is not host:port, such as localhost:9092", )),
    ("no events", 78, ("IDENTITYBUS_INTERNAL_KEY_FILE: names a file that is not there, in /", "no such file", "Give the path of a file")),
])
def test_each_wrong_value_is_told_once(
    shell: dict[str, str], tmp_path: Path, case: str, status: int, parts: tuple[str, ...]
) -> None:
    def without(name: str) -> dict[str, str]:
        return {variable: text for variable, text in shell.items() if variable != name}

    folder = ("--data-dir", str(tmp_path))
    answer = {
        "unknown app": lambda: send(shell, app="demp", key="k"),
        "unknown app, as a service": lambda: send(shell, app="demp"),
        "unknown key": lambda: send(shell, key="demo-backed"),
        "data is not JSON": lambda: send(shell, data="{"),
        "data is quoted wrongly": lambda: send(shell, data="{'installId':'x'}"),
        "data has no comma": lambda: send(shell, data='{"x":1,"b":"a" "c":1}'),
        "no broker": lambda: send(without("KAFKA_BOOTSTRAP_SERVERS"), *folder),
        "no internal key": lambda: send(without("IDENTITYBUS_INTERNAL_KEY"), *folder),
        "no apps file": lambda: send(shell, "--apps", str(tmp_path / "none"), key="demo-backend"),
        "a folder": lambda: send(shell, "--apps", str(tmp_path), key="demo-backend"),
        "wrong Kafka setting": lambda: send(shell | {"KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "soon"}),
        "no authorities": lambda: send(shell | {
            "KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CA_LOCATION": "/none.pem"}),
        "wrong address": lambda: send(shell | {"KAFKA_BOOTSTRAP_SERVERS": "foo bar:x"}),
        "no port": lambda: send(shell | {"KAFKA_BOOTSTRAP_SERVERS": "localhost"}),
        "no events": lambda: send(without("IDENTITYBUS_INTERNAL_KEY") | {
            "IDENTITYBUS_INTERNAL_KEY_FILE": str(tmp_path / "none")}),
    }[case]()
    is_problem(answer, status, *parts)


def test_errors_of_the_other_commands(shell: dict[str, str], tmp_path: Path, deployment: Deployment) -> None:
    nothing = ("--data-dir", str(tmp_path))
    login = ("--app", "demo", "--apps", str(deployment.apps_file))
    is_problem(tool("derive-keys", "--for", "gateway", environment={}), 78, "IDENTITYBUS_INTERNAL_KEY is not set")
    is_problem(tool("salts", *nothing, environment={}), 78, "no store", "DATABASE_URL", "--data-dir")
    is_problem(tool("explain", "x", *login, *nothing, environment={}), 78, "the internal key is not known")
    is_problem(
        tool("explain", "x", *login, *nothing, environment={"IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY}), 78,
        "no broker is named")
    is_problem(tool("rekey", *login, *nothing, environment={}), 78, "no store of the sync service")
    is_problem(tool("token", *login, environment={}), 64, "--user-id or --user-email")
    is_problem(tool("verify-token", *login, "A" * 43, environment={}), 64, "--user-id or --user-email")
    told = tool("verify-token", *login, "abc", environment={})
    assert told.returncode == 3 and "HMAC-SHA256 has 32" in told.stdout, told
    told = tool("verify-token", *login, "--json", "abc", environment={})
    assert told.returncode == 3 and json.loads(told.stdout)["passes"] is False, told
    is_problem(tool("up", "--data-dir", "/proc/nope", environment={}), 78, "/proc/nope", "cannot be made")
    is_problem(tool("watch", "--topic", "nothing.like.it", environment=shell), 3, "nothing.like.it")


def as_nobody(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What it says to a user who may not do what root may; the same where it runs as another one already."""
    return subprocess.run(
        [binary("identitybus"), *arguments], env=clean_environment(), capture_output=True, text=True, timeout=60,
        user="nobody" if os.geteuid() == 0 else None)


def test_files_of_somebody_else() -> None:
    """In a folder into which everybody may look."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        store = sqlite3.connect(folder / "sync.sqlite")
        store.execute("CREATE TABLE salt (x)")
        store.close()
        place = ("--data-dir", folder)
        rekey = ("rekey", "--app=demo", f"--apps={REPOSITORY}/config/apps.yaml")
        for mode, commands, words in (
            (0o000, (("salts",), (*rekey, "--dry-run")), "cannot be read"),
            (0o444, (("migrate",), rekey), "cannot be written"),
        ):
            (folder / "sync.sqlite").chmod(mode)
            for command in commands:
                is_problem(as_nobody(*command, *place), 77, f"{folder}/sync.sqlite {words}: permission denied.",
                           "Be the user whose services these are")
        (folder / "sync.sqlite").chmod(0o666)
        folder.chmod(0o555)
        is_problem(as_nobody("migrate", *place), 77, f"{folder}/. cannot be written: permission denied.")
        is_problem(as_nobody("up", "--data-dir", folder / "new"), 77, "cannot be made: permission denied.")
        folder.chmod(0o000)
        is_problem(as_nobody("salts", *place), 77, "cannot be read: permission denied.")
        folder.chmod(0o755)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").write_text("hunter2 " * 1000)
    is_problem(tool("migrate", "--data-dir", tmp_path, environment={}), 78, "link.sqlite", "not a database",
               "Is it the store of a service?", "put a back-up in its place")


def test_a_store_that_is_cut_off_or_a_folder(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "link.sqlite")) as store, store:
        store.execute("PRAGMA journal_mode = WAL")
        for number in range(20):
            store.execute(f"CREATE TABLE t{number} (a TEXT)")
    with (tmp_path / "link.sqlite").open("r+b") as file:
        file.truncate(5 * 4096)
    (tmp_path / "other" / "link.sqlite").mkdir(parents=True)
    for command in ("migrate", "salts"):
        is_problem(tool(command, "--data-dir", tmp_path, environment={}), 78, "link.sqlite", "malformed",
                   "put a back-up in its place")
        is_problem(tool(command, "--data-dir", tmp_path / "other", environment={}), 78, "link.sqlite is a folder",
                   "Move it away")


def test_explain_tells_a_wrong_app_from_an_unknown_id(deployment: Deployment) -> None:
    shell = deployment.environment()
    is_problem(tool("explain", "nobody", "--app", "nope", environment=shell), 64, "has no app nope")
    # Only the link service runs.
    told = tool("explain", "nobody", "--app", "demo", "--wait", "2", environment=shell)
    assert told.returncode == 4 and "from: sync, user, verification. What they know is missing" in told.stderr, told


@pytest.mark.parametrize(("url", "status", "parts"), [
    ("postgresql://me:a-password@127.0.0.1:1/x", 69, (
        "identitybus: PostgreSQL at 127.0.0.1:1: connection refused\n",
        "Does PostgreSQL run there? DATABASE_URL has its host and port.")),
    ("postgresql://me:a-password@127.0.0.1:1,nosuch.invalid/x", 69, (
        "127.0.0.1:1: connection refused; nosuch.invalid: name or service not known", "DATABASE_URL has its host and port.")),
    ("mysql://me:a-password@127.0.0.1/x", 78, ("DATABASE_URL",)),
])
def test_a_database_that_is_not_there(url: str, status: int, parts: tuple[str, ...]) -> None:
    answer = tool("salts", environment={"DATABASE_URL": url})
    is_problem(answer, status, *parts)
    assert "a-password" not in answer.stderr and "\t" not in answer.stderr and "\\t" not in answer.stderr
    assert len(answer.stderr.splitlines()) == 2 and "Is the server running" not in answer.stderr


def test_a_database_that_says_no(postgres: PostgresServer) -> None:
    """It is not there, has no store, or does not let this user look. Whoever only looks changes nothing."""
    def salts(url: str) -> subprocess.CompletedProcess[str]:
        return tool("salts", environment={"DATABASE_URL": url})

    rekey = ("rekey", "--app=demo", f"--apps={REPOSITORY}/config/apps.yaml")
    database = postgres.new_database()
    is_problem(salts(re.sub(r"/[^/]*$", "/no-such-database", database.url)), 78, "no-such-database",
               "Check the name of the database in DATABASE_URL, or make it: CREATE DATABASE.")
    is_problem(salts(re.sub("//.*@", "//nobody:a-password@", database.url)), 77, 'role "nobody" does not exist',
               "Check the user and the password of DATABASE_URL")
    is_problem(salts(database.url), 78, "no store with a salt in the database of DATABASE_URL", "DATABASE_SCHEMA_PREFIX")
    for more in ((), ("--dry-run",)):
        is_problem(tool(*rekey, *more, environment={"DATABASE_URL": database.url}), 78,
                   "no store of the sync service in the database of DATABASE_URL", "DATABASE_SCHEMA_PREFIX")
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'identity%'"
    stranger = fresh("stranger").replace("-", "_")
    with psycopg.connect(database.url, autocommit=True) as connection:
        assert connection.execute(schemas).fetchone() == (0,)
        for service in ("link", "sync"):
            connection.execute(f"CREATE SCHEMA identity_{service} CREATE TABLE inbox_state (x int)")  # type: ignore[arg-type]
        connection.execute(f"CREATE ROLE {stranger} LOGIN PASSWORD 'a-password'")  # type: ignore[arg-type]
        try:
            place = urlsplit(database.url)
            url = urlunsplit(place._replace(netloc=f"{stranger}:a-password@{place.netloc.rpartition('@')[2]}"))
            is_problem(salts(url), 77, f"{stranger} may not read the schema identity_link", "GRANT")
            for more in ((), ("--dry-run",)):
                is_problem(tool(*rekey, *more, environment={"DATABASE_URL": url}), 77,
                           f"{stranger} may not read the schema identity_sync", "GRANT")
        finally:
            connection.execute(f"DROP ROLE {stranger}")  # type: ignore[arg-type]


def test_a_table_that_somebody_locks_is_named_with_who_does(
    postgres: PostgresServer, make_deployment: Callable[..., Deployment]
) -> None:
    database = postgres.new_database()
    service = make_deployment(database=database).service().start().wait_ready()
    service.stop()
    with psycopg.connect(database.url, application_name="a backup") as other:
        other.execute("LOCK TABLE identity_link.salt")
        is_problem(tool("salts", environment={"DATABASE_URL": database.url}), 69,
                   f"identity_link.salt is locked by session {other.info.backend_pid} (a backup of ",
                   f"Wait until it is done, or end it: SELECT pg_terminate_backend({other.info.backend_pid})")


# Kafka is not there, or not what it should be


@pytest.fixture(scope="module")
def certificate(directory: Path) -> Path:
    """Of an authority that nobody trusts, with its key."""
    path = directory / "broker.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


class Listener:
    """Something on a port that is no Kafka: it accepts, and does as it is told with each connection."""

    def __init__(self, meet: Callable[[socket.socket], Any]) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.kept: list[Any] = []
        threading.Thread(target=self.accept, args=(meet,), daemon=True).start()

    def accept(self, meet: Callable[[socket.socket], Any]) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            try:
                self.kept.append(meet(connection))
            except OSError:
                connection.close()

    def close(self) -> None:
        self.server.close()


@pytest.fixture
def listener() -> Iterator[Callable[[Callable[[socket.socket], Any]], str]]:
    all: list[Listener] = []

    def listen(meet: Callable[[socket.socket], Any]) -> str:
        all.append(Listener(meet))
        return all[-1].address

    yield listen
    for one in all:
        one.close()


@pytest.mark.parametrize("command", ["send", "send --wait 3", "watch"])
def test_a_broker_that_is_not_there_is_told_soon(shell: dict[str, str], command: str) -> None:
    name, *more = command.split()
    more = [*more, "--bootstrap-servers", "127.0.0.1:1"]
    started = time.monotonic()
    answer = send(shell, *more) if name == "send" else tool(name, *more, environment=shell)
    assert time.monotonic() - started < 20
    is_problem(answer, 69, "Kafka at 127.0.0.1:1 cannot be reached: connection refused.\n",
               "Does Kafka run there? Its address is from --bootstrap-servers.")
    assert len(answer.stderr.splitlines()) == 2


@pytest.mark.alone
def test_it_is_told_within_four_seconds(shell: dict[str, str]) -> None:
    started = time.monotonic()
    assert send(shell, "--wait", "3", "--bootstrap-servers", "127.0.0.1:1").returncode == 69
    assert time.monotonic() - started < 4


def test_a_stale_address_is_named(shell: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bootstrap").write_text("127.0.0.1:1\n")
    without = {name: text for name, text in shell.items() if not name.startswith("KAFKA_")}
    is_problem(send(without, "--data-dir", str(tmp_path)), 69, "connection refused", f"{tmp_path}/bootstrap", "still run")


def test_a_name_that_nobody_knows(shell: dict[str, str]) -> None:
    is_problem(send(shell, "--bootstrap-servers", "nosuch.invalid:9092"), 69, "nosuch.invalid:9092", "host name cannot be resolved")


def test_a_broker_that_says_nothing(shell: dict[str, str], listener: Callable[..., str]) -> None:
    address = listener(lambda connection: connection)
    is_problem(send(shell | {"KAFKA_BOOTSTRAP_SERVERS": address}, "--wait", "3"), 69, f"Kafka at {address} does not answer",
               "Its address is from KAFKA_BOOTSTRAP_SERVERS.")


def test_tls_and_plain_text_are_told_apart(
    shell: dict[str, str], listener: Callable[..., str], certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    tls = listener(lambda connection: context.wrap_socket(connection, server_side=True))
    plain = listener(lambda connection: (connection.recv(100), connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    over_tls = shell | {"KAFKA_SECURITY_PROTOCOL": "SSL"}
    is_problem(send(over_tls, "--bootstrap-servers", tls), 78, f"Kafka at {tls}", "certificate", "KAFKA_SSL_CA_LOCATION")
    is_problem(send(over_tls, "--bootstrap-servers", plain), 78, "does not speak TLS", "KAFKA_SECURITY_PROTOCOL")
    is_problem(send(shell, "--bootstrap-servers", tls), 78, "speaks TLS", "KAFKA_SECURITY_PROTOCOL")
    is_problem(send(shell, "--bootstrap-servers", plain), 78, "not a Kafka broker", "KAFKA_BOOTSTRAP_SERVERS")


def test_settings_that_do_not_fit_the_port_are_named(shell: dict[str, str]) -> None:
    """As Apache Kafka meets them."""
    over_tls = {"KAFKA_SECURITY_PROTOCOL": "SSL"}
    signing_in = {
        "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me",
        "KAFKA_SASL_PASSWORD": "a-password"}
    for talk, settings, words in (
        (closing, over_tls, "perhaps this port does not speak TLS"),
        (Refusing(["PLAIN"], sasl=True), {}, "perhaps this port asks for signing in"),
        (Refusing(sasl=False), signing_in, "this port knows no signing in"),
        (Refusing(["SCRAM-SHA-256", "SCRAM-SHA-512"]), signing_in, "it knows SCRAM-SHA-256, SCRAM-SHA-512."),
    ):
        fake = FakeBroker(talk)
        answer = send(shell | settings, "--bootstrap-servers", fake.servers)
        fake.close()
        is_problem(answer, 78, f"Kafka at {fake.servers} cannot be used", words, "KAFKA_S")
        assert "SSL routines" not in answer.stderr and "Broker:" not in answer.stderr
    fake = FakeBroker(Refusing(["PLAIN"]))
    answer = send(shell | signing_in, "--bootstrap-servers", fake.servers)
    fake.close()
    is_problem(answer, 77, f"Kafka at {fake.servers} does not let us in: it refuses the user name or the password",
               "Set both to a user that this Kafka knows, for the mechanism of KAFKA_SASL_MECHANISM.")


# The result


def full(*command: str | Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w") as device:
        return subprocess.run(
            command, env=clean_environment() | environment, stdout=device, stderr=subprocess.PIPE, text=True, timeout=60)


@pytest.mark.parametrize("arguments", [
    "--help", "--version", "send --help", "send --types", "salts", "derive-keys --for gateway", "sign",
    "watch --from-beginning --until now", "watch --from-beginning", "send", "send --wait 30",
])
def test_a_result_that_cannot_be_written_is_an_error(arguments: str, story: tuple[Deployment, str, str]) -> None:
    words = arguments.split()
    if arguments == "salts":
        words += ["--data-dir", story[0].database.environment()["DATA_DIR"]]
    if arguments == "sign":
        words += ["--topic", "t", "--app", "demo", "--key-id", "demo-backend"]
    if words[0] == "send" and len(words) != 2:
        words += ["--json", "link.query", "--app", "demo", "--key-id", "internal", "--data", '{"installId":"nobody"}']
    answer = full(binary("identitybus"), *words, environment=story[0].environment())
    assert answer.returncode == 74, answer
    assert answer.stderr.splitlines()[-1] == "identitybus: standard output cannot be written: no space left on device."


@pytest.mark.parametrize("name", ["link", "gateway"])
def test_a_version_that_cannot_be_written_is_an_error(name: str) -> None:
    answer = full(binary(f"identitybus-{name}"), "--version", environment={})
    assert answer.returncode == 74 and "cannot be written" in answer.stderr, answer


@pytest.mark.parametrize("columns", ["20", "0", "-5"])
def test_help_on_a_narrow_terminal(columns: str) -> None:
    answer = subprocess.run(
        [binary("identitybus"), "send", "--help"], env=clean_environment() | {"COLUMNS": columns}, capture_output=True,
        text=True, timeout=60)
    assert answer.returncode == 0 and "USAGE" in answer.stdout, answer


def test_streams_that_are_closed_are_nobody_elses() -> None:
    """No file of the program gets the number of a stream that it was started without."""
    apps = REPOSITORY / "config" / "apps.yaml"
    sign = f"{binary('identitybus')} sign --topic t --app demo --key-id demo-backend --apps {apps}"
    for closed, status in [("<&-", 0), (">&-", 74), ("2>&-", 0), ("<&- >&- 2>&-", 74)]:
        answer = subprocess.run(
            ["bash", "-c", f"{sign} {closed}"], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=60)
        assert answer.returncode == status, (closed, answer)


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "2>&-"])
@pytest.mark.parametrize("name", ["link", "user", "sync", "verification", "gateway"])
def test_programs_that_run_keep_the_numbers_of_closed_streams(name: str, closed: str, tmp_path: Path) -> None:
    """What the runtime opens for itself gets none either."""
    environment = clean_environment() | {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY,
        "IDENTITYBUS_APPS": str(REPOSITORY / "config" / "apps.yaml"), "DATA_DIR": str(tmp_path), "HTTP_PORT": "0"}
    process = subprocess.Popen(
        ["bash", "-c", f"exec '{binary(f'identitybus-{name}')}' {closed}"], env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        place = Path(f"/proc/{process.pid}/fd")

        def opened() -> dict[int, str]:
            found = {}
            for link in place.iterdir():
                # One may be closed meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    found[int(link.name)] = os.readlink(link)
            return found

        until(lambda: any("eventpoll" in file for file in opened().values()), 30, "the start")
        assert {opened()[number] for number in range(3)} == {"/dev/null"}, opened()
    finally:
        process.kill()
        process.wait(30)


def test_errors_that_cannot_be_written_change_no_status() -> None:
    with open("/dev/full", "w") as device:
        answer = subprocess.run(
            [binary("identitybus"), "salts", "--data-dir", "/none"], env=clean_environment(), stderr=device, timeout=60)
    assert answer.returncode == 78


@pytest.mark.parametrize("ignoring", ["", "trap '' PIPE; "])
def test_a_reader_that_is_gone_is_no_error(ignoring: str) -> None:
    """Whether it is gone before or after the last line: `set -o pipefail` makes a script's end of it."""
    look = f"{ignoring}'{binary('identitybus')}' send --types | true; exit ${{PIPESTATUS[0]}}"
    answer = subprocess.run(
        ["bash", "-c", look], env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr, answer.returncode) == ("", "", 0), answer


# watch


@pytest.fixture(scope="module")
def story(make_deployment: Callable[..., Deployment]) -> tuple[Deployment, str, str]:
    """One install that is registered and linked, a refusal, and a dead letter; a deployment that nobody else uses."""
    deployment = make_deployment("sqlite")
    deployment.service().start().wait_ready()
    bus, install, person = deployment.bus, fresh("install"), fresh("ada")
    bus.ask(c.register(install))
    request = c.request(install, person)
    bus.ask(request)
    bus.ask(c.query(fresh("nobody")))
    bus.put(b"not json", [])
    until(lambda: len(deployment_lines(deployment, "--topic", "*.dlq.v1")) == 1, 30, "the dead letter")
    return deployment, request.id, f"demo/{person}"


def deployment_lines(deployment: Deployment, *options: str) -> list[str]:
    answer = tool("watch", "--from-beginning", "--until", "now", *options, environment=deployment.environment())
    assert answer.returncode == 0 and answer.stderr == "", answer
    return answer.stdout.splitlines()


def test_watch_shows_what_is_there_in_the_order_of_time_and_ends(story: tuple[Deployment, str, str]) -> None:
    deployment, request, person = story
    lines = deployment_lines(deployment)
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert all(re.match(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}Z  (EVENT|OK|NO|DEAD) ", line) for line in lines), lines
    [dead] = [line for line in lines if "  DEAD " in line]
    assert "NOT_JSON (decode): " in dead and "identity.link.dlq.v1[" in dead
    mine = deployment_lines(deployment, "--id", request)
    assert len(mine) > 1 and all(f"id {request}" in line for line in mine)
    assert len(deployment_lines(deployment, "--id", request, "--limit", "1")) == 1
    assert deployment_lines(deployment, "--key", person) and deployment_lines(deployment, "--key", "demo/*") == [
        line for line in lines if "  DEAD " not in line]
    assert deployment_lines(deployment, "--app", "demo")
    # Dead letters may be of an app that is not there: no more than a remark.
    nobodys = tool("watch", "--from-beginning", "--until", "now", "--app", "nobody", environment=deployment.environment())
    assert (nobodys.returncode, nobodys.stdout) == (0, "") and "has no app nobody." in nobodys.stderr, nobodys
    records = [json.loads(line) for line in deployment_lines(deployment, "--json")]
    assert len(records) == len(lines) and all(record["timestamp"].endswith("Z") for record in records)
    middle = records[len(records) // 2]["timestamp"]
    since = [json.loads(line) for line in tool(
        "watch", "--since", middle, "--until", "now", "--json", environment=deployment.environment()).stdout.splitlines()]
    assert since == [record for record in records if record["timestamp"] >= middle]
    until_then = [json.loads(line) for line in deployment_lines(deployment, "--until", middle, "--json")]
    assert until_then == [record for record in records if record["timestamp"] <= middle]


def test_watch_reads_nobody_elses_topics(story: tuple[Deployment, str, str], make_deployment: Callable[..., Deployment]) -> None:
    deployment, request, _ = story
    other = make_deployment("sqlite", prefix=f"x{uuid.uuid4().hex[:6]}.{deployment.prefix}")
    topic = f"{other.prefix}identity.replies.theirs"
    other.broker.ensure([topic])
    other.bus.put(b"theirs", [], topic=topic)
    assert not [line for line in deployment_lines(deployment) if other.prefix in line]
    assert [line for line in deployment_lines(deployment, "--all-prefixes") if other.prefix in line]


def test_watch_goes_on_when_all_is_shown(story: tuple[Deployment, str, str]) -> None:
    deployment = story[0]
    watch = subprocess.Popen(
        [binary("identitybus"), "watch", "--since", "1h"], env=clean_environment() | deployment.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert watch.stdout is not None
        assert "EVENT" in watch.stdout.readline()
        command = c.query(fresh("late"))
        deployment.bus.ask(command)
        for line in watch.stdout:
            if command.id in line:
                break
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == 0
    finally:
        watch.kill()
        watch.wait()


def test_watch_ends_when_nobody_reads_it(story: tuple[Deployment, str, str]) -> None:
    environment = clean_environment() | story[0].environment()
    for more in ("", " --until now"):
        look = f"set -o pipefail; '{binary('identitybus')}' watch --from-beginning{more} | head -n 1"
        answer = subprocess.run(["bash", "-c", look], env=environment, capture_output=True, text=True, timeout=60)
        assert len(answer.stdout.splitlines()) == 1 and answer.returncode == 0, answer


@pytest.mark.slow
@pytest.mark.outage
def test_watch_tells_when_kafka_says_nothing_and_when_it_does_again(
    make_deployment: Callable[..., Deployment], directory: Path
) -> None:
    broker = Broker.for_tests(directory / fresh("frozen"))
    deployment = make_deployment("sqlite", on=broker)
    watch = subprocess.Popen(
        [binary("identitybus"), "watch"], env=clean_environment() | deployment.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert watch.stderr is not None and "watching " in watch.stderr.readline()
        broker.go_away()
        assert "does not answer" in watch.stderr.readline()
        broker.come_back()
        assert re.search(r"answers again, after \d+ s", watch.stderr.readline())
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == 0
    finally:
        if broker.is_away:
            broker.come_back()
        watch.kill()
        watch.wait()
        if broker.is_embedded:
            broker.close()


def on_terminal(environment: dict[str, str], *arguments: str) -> str:
    """What a person sees: both outputs are a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(binary("identitybus"), ["identitybus", *arguments], clean_environment() | environment)
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(terminal)
    os.waitpid(child, 0)
    return seen.decode()


def test_colours_are_for_terminals(story: tuple[Deployment, str, str]) -> None:
    deployment = story[0]
    environment = {name: text for name, text in deployment.environment().items()} | {"NO_COLOR": ""}
    look = ("watch", "--from-beginning", "--until", "now")
    assert "\x1b[32mOK" in on_terminal(environment, *look)
    assert "\x1b" not in on_terminal(environment | {"NO_COLOR": "1"}, *look)
    assert "\x1b" not in on_terminal(environment, *look, "--color", "never")
    piped = tool(*look, environment=environment)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "\x1b[31mDEAD" in tool(*look, "--color", "always", environment=environment).stdout


def test_progress_is_for_terminals(shell: dict[str, str]) -> None:
    arguments = ("send", "link.query", "--app", "demo", "--key-id", "internal", "--data", '{"installId":"nobody"}',
                 "--wait", "60")
    assert re.search(r"^sent +[0-9a-f-]{36}  .*\(waiting 60 s at most\)", on_terminal(shell, *arguments))
    assert tool(*arguments, environment=shell).stderr == ""
