# SPDX-License-Identifier: Apache-2.0
"""The list of settings: `identitybus settings`, the tables of the pages, and what programs say of an environment."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit.fakes import Authority
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.up import tool

PROGRAMS = ("link", "user", "sync", "verification", "gateway")


def settings(environment: dict[str, str], *arguments: str, status: int = 0) -> dict[str, dict[str, Any]]:
    answer = tool("settings", "--json", *arguments, environment=environment)
    assert answer.returncode == status, answer
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    return {line["name"]: line for line in lines}


def plain(cell: str) -> str:
    return cell.replace("`", "").strip()


def test_the_pages_have_the_same_list() -> None:
    listed = settings({})
    seen: set[str] = set()
    for page in ("operations.md", "gateway.md"):
        is_table = False
        for line in (REPOSITORY / "docs" / page).read_text().splitlines():
            cells = line.strip().strip("|").split(" | ")
            is_table = line.startswith("|") and (is_table or cells[0].strip() == "variable")
            for name in re.findall("`([A-Z_*]+)`", cells[0]) if is_table else ():
                row = listed[name]
                default = ("none" if row["default"] is None else row["default"]) + (
                    f' ({row["remark"]})' if "remark" in row else "")
                assert plain(cells[1]) == plain(default), name
                assert plain(cells[2]) == plain(row["allowed"]), name
                assert len(cells) >= 4 and plain(cells[3]), name
                seen.add(name)
    assert seen == set(listed)
    secrets = {name for name, row in listed.items() if row["secret"]}
    assert all(listed[name]["file"] == f"{name}_FILE" for name in secrets)
    [told] = re.findall(r"\n(The variables for keys.*)\n", (REPOSITORY / "docs" / "operations.md").read_text())
    assert secrets - {name for name in secrets if name.endswith(("_KEY", "_KEYS"))} == set(
        re.findall("`([A-Z_]+)`", told.partition(" have a")[0]))


def test_several_by_their_beginning_and_a_member_that_is_not_set() -> None:
    found = settings({"KAFKA_PRODUCER_LINGER_MS": "5"}, "KAFKA_*")
    assert {"KAFKA_BOOTSTRAP_SERVERS", "KAFKA_PRODUCER_*", "KAFKA_PRODUCER_LINGER_MS"} <= set(found)
    assert all(name.startswith("KAFKA_") for name in found)
    [family] = settings({}, "PGSSLROOTCERT")
    assert family.endswith("*") and "PGSSLROOTCERT".startswith(family[:-1])
    assert "there is no setting NOTHING_*." in tool("settings", "NOTHING_*", environment={}).stderr


def test_every_limit_is_one_that_programs_refuse_beyond() -> None:
    """The list says what may be; the programs take their limits from it."""
    readable = {name: row for name, row in settings({}).items() if "least" in row}
    assert len(readable) > 10
    keys = {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2}

    def refusal(name: str) -> None:
        row = readable[name]
        program = "sync" if {"services", "sync"} & set(row["readers"]) else "gateway"
        wrong = str(row["most"] + 1)
        answer = subprocess.run(
            [binary(f"identitybus-{program}")], env=clean_environment() | keys | {name: wrong}, capture_output=True,
            text=True, timeout=60)
        assert answer.returncode == 78, answer
        assert answer.stderr == (
            f"identitybus-{program}: {name}: {wrong} is not a whole number from {row['least']} to {row['most']}\n")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refusal, readable))


def test_values_are_shown_and_secrets_are_not(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key-that-nobody-may-see\n")
    (authorities := tmp_path / "ca.pem").write_text("")
    environment = {
        "BATCH_SIZE": "7", "DATABASE_URL": "postgresql://me:hush-hush@db/x", "KAFKA_SASL_PASSWORD": "hush-hush",
        "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "IDENTITYBUS_INTERNAL_KEY_FILE": str(tmp_path / "key"),
        "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "10", "PGPASSWORD": "hush-hush", "PGSSLROOTCERT": str(authorities)}
    lines = [(), ("--set",), ("--json",), ("--json", "--set"), ("DATABASE_URL",), ("KAFKA_SASL_PASSWORD",)]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda line: tool("settings", *line, environment=environment), lines))
    for answer in answers:
        assert answer.returncode == 0 and answer.stderr == "", answer
        assert "hush" not in answer.stdout and "nobody-may-see" not in answer.stdout
    rows = settings(environment, "--set")
    shown = {name: (row["value"], row["from"]) for name, row in rows.items()}
    assert shown == {
        "BATCH_SIZE": ("7", "environment"), "DATABASE_URL": ("‹hidden›", "environment"),
        "KAFKA_SASL_PASSWORD": ("‹hidden›", "environment"), "KAFKA_SASL_MECHANISM": ("PLAIN", "environment"),
        "KAFKA_SASL_USERNAME": ("‹hidden›", "environment"), "KAFKA_SECURITY_PROTOCOL": ("SASL_SSL", "environment"),
        "IDENTITYBUS_INTERNAL_KEY": (str(tmp_path / "key"), "file"), "PGPASSWORD": ("‹hidden›", "environment"),
        "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": ("10", "environment"), "PGSSLROOTCERT": (str(authorities), "environment")}
    assert set(settings(environment, "BATCH_SIZE")) == {"BATCH_SIZE"}
    assert "ALIAS_DELAY" in settings({}, "--as", "sync") and "ALIAS_DELAY" not in settings({}, "--as", "link")
    assert "BATCH_SIZE" not in settings({}, "--as", "gateway")


def test_the_file_of_kafkas_password_is_shown_and_what_may_be_the_password_is_not(tmp_path: Path) -> None:
    (file := tmp_path / "password").write_text("hush-hush")
    environment = {"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}
    name = "KAFKA_SASL_PASSWORD_FILE"
    assert settings(environment | {name: str(file)}, "--set")[name]["value"] == str(file)
    mistaken = tool("settings", "--set", "--json", environment=environment | {name: "hush-hush"})
    rows = {row["name"]: row for row in map(json.loads, mistaken.stdout.splitlines())}
    assert rows[name]["value"] == "‹hidden›" and "hush" not in mistaken.stdout + mistaken.stderr, mistaken


def test_what_is_wrong_here_is_told(tmp_path: Path) -> None:
    answer = tool("settings", "--set", environment={"BATCH_SIZE": "abc", "LOOPS": "65", "BATCHSIZE": "5"})
    assert answer.returncode == 78 and "= abc" in answer.stdout
    assert answer.stderr.splitlines() == [
        "warning   BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?",
        "identitybus: BATCH_SIZE: abc is not a whole number from 1 to 10000",
        "             LOOPS: 65 is not a whole number from 1 to 64",
        "             docs/operations.md says what each is for in full."]
    rows = settings({"IDENTITYBUS_SALTS_FILE": "/none"}, "--set", status=78)
    assert rows["IDENTITYBUS_SALTS"]["problem"].startswith("names a file that is not there, in /: no such file or directory")
    answer = tool("settings", "BATCH_SIZ", environment={})
    assert answer.returncode == 64 and "there is no setting BATCH_SIZ. Did you mean BATCH_SIZE?" in answer.stderr


KEY = "0123456789abcdef" * 2
MISTAKES = {
    "GATEWAY_PORT": {"GATEWAY_PORT": "65536"},
    "GATEWAY_REPLY_TIMEOUT_MS": {"GATEWAY_REPLY_TIMEOUT_MS": "99"},
    "GATEWAY_TRUSTED_PROXIES": {"GATEWAY_TRUSTED_PROXIES": "10.0.0.0/8,nonsense"},
    "GATEWAY_LOG_CLIENTS": {"GATEWAY_LOG_CLIENTS": "perhaps"},
    "GATEWAY_TLS_CERTIFICATE": {"GATEWAY_TLS_KEY": "/none"},
    "GATEWAY_TLS_KEY": {"GATEWAY_TLS_CERTIFICATE": "/none"},
    "GATEWAY_TLS_CERTIFICATE, both": {"GATEWAY_TLS_CERTIFICATE": "/none", "GATEWAY_TLS_KEY": "/none"},
    "GATEWAY_PORT, taken": {"GATEWAY_PORT": "18080", "HTTP_PORT": "18080"},
    "IDENTITYBUS_GATEWAY_KEYS": {"IDENTITYBUS_INTERNAL_KEY": "", "IDENTITYBUS_GATEWAY_KEYS": "hush-hush"},
    "IDENTITYBUS_GATEWAY_KEYS, and the internal key": {"IDENTITYBUS_GATEWAY_KEYS": "hush-hush"},
    "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": {"KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "soon"},
    "GATEWAY_HOST": {"GATEWAY_HOST": "nosuch.invalid"},
    "GATEWAY_ADMIN_HOST": {"GATEWAY_ADMIN_HOST": "192.0.2.1", "GATEWAY_ADMIN_PORT": "0"},
    "OTEL_EXPORTER_OTLP_ENDPOINT": {"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://collector:4317"},
    "OTEL_EXPORTER_OTLP_CERTIFICATE": {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such.pem"},
    "OTEL_EXPORTER_OTLP_HEADERS": {"OTEL_EXPORTER_OTLP_HEADERS": "hush-hush"},
    "KAFKA_SECURITY_PROTOCOL": {"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": "hush"},
}
OF_SERVICES = {
    "HTTP_HOST": {"HTTP_HOST": "nosuch.invalid"},
    "HTTP_HOST, of another machine": {"HTTP_HOST": "192.0.2.1"},
    "LOOPS": {"LOOPS": "2"},
    "KAFKA_BOOTSTRAP_SERVERS": {"KAFKA_BOOTSTRAP_SERVERS": "hunter2"},
    "TOPIC_PREFIX": {"TOPIC_PREFIX": "a b"},
    "REPLAY_UNTIL": {"REPLAY_UNTIL": "2999-01-31T12:00:00Z"},
    "IDENTITYBUS_SALTS": {"IDENTITYBUS_SALTS": "hush-hush"},
    "IDENTITYBUS_INTERNAL_KEY": {"IDENTITYBUS_INTERNAL_KEY": "hush"},
    "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": {"IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "hush,hush"},
    "KAFKA_PRODUCER_ACKS": {"KAFKA_PRODUCER_ACKS": "1"},
    "KAFKA_CONSUMER_FOO": {"KAFKA_CONSUMER_FOO": "1"},
    "KAFKA_SASL_MECHANISM": {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "FOO", "KAFKA_SASL_USERNAME": "me"},
    "KAFKA_SASL_MECHANISM, none": {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"},
    "KAFKA_SSL_CERTIFICATE_LOCATION": {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CERTIFICATE_LOCATION": "/none"},
    "KAFKA_SECURITY_PROTOCOL": {"KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": "hush"},
    "KAFKA_SECURITY_PROTOCOL, no TLS": {"KAFKA_SSL_CA_LOCATION": "/none", "KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"},
    "KAFKA_SSL_CA_LOCATION": {"KAFKA_SSL_CA_LOCATION": "/none", "KAFKA_SECURITY_PROTOCOL": "SSL"},
    "KAFKA_OAUTHBEARER_TOKEN_FILE": {
        "KAFKA_OAUTHBEARER_TOKEN_FILE": "/none/hush", "KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SECURITY_PROTOCOL": "SASL_SSL"},
    "KAFKA_SASL_KERBEROS_KEYTAB": {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM": "GSSAPI"},
    "KAFKA_SASL_KERBEROS_KEYTAB, another": {
        "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SASL_MECHANISM": "GSSAPI", "KAFKA_SASL_KERBEROS_KEYTAB": "/none"},
    "KAFKA_SSL_KEY_LOCATION": {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CERTIFICATE_LOCATION": "/etc/hosts"},
    "DATABASE_URL": {"DATABASE_URL": "postgresql://127.0.0.1/x?foo=1"},
    "DATABASE_URL, its TLS": {"DATABASE_URL": "postgresql://127.0.0.1/x?ssl_min_protocol_version=TLSv9"},
    "PGSSLMODE": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSSLMODE": "foo"},
    "PGSERVICE": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSERVICE": "foo"},
    "PGSSLMINPROTOCOLVERSION": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSSLMINPROTOCOLVERSION": "TLSv9"},
    "PGSSLROOTCERT": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSSLROOTCERT": "/none"},
    "PGSSLCERT": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSSLCERT": "/none"},
    "PGSSLKEY": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGSSLKEY": "-----BEGIN PRIVATE KEY----- hush"},
    "PGPASSFILE": {"DATABASE_URL": "postgresql://127.0.0.1/x", "PGPASSFILE": "/none"},
    "DATABASE_URL, its certificate": {"DATABASE_URL": "postgresql://127.0.0.1/x?sslcert=/none"},
    "DATABASE_SCHEMA_PREFIX": {"DATABASE_SCHEMA_PREFIX": "1abc"},
    "DATA_DIR": {"DATA_DIR": "/etc/hosts"},
    "DATA_DIR, within a file": {"DATA_DIR": "/etc/hosts/store"},
    "ALIAS_DELAY": {"ALIAS_DELAY": "soon"},
    "OTEL_EXPORTER_OTLP_PROTOCOL": {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    "OTEL_TRACES_SAMPLER_ARG": {"OTEL_TRACES_SAMPLER_ARG": "2"},
}
STOPS = [(case, "gateway", change) for case, change in MISTAKES.items()] + [
    (case, "sync", change) for case, change in OF_SERVICES.items()]


@pytest.mark.parametrize(("case", "program", "change"), STOPS, ids=[f"{program}: {case}" for case, program, _ in STOPS])
def test_what_stops_a_program_is_found_before(case: str, program: str, change: dict[str, str]) -> None:
    """By `settings` and by the doctor, in the words of the program, and each once."""
    variable = case.partition(",")[0]
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": KEY,
        "IDENTITYBUS_APPS": str(REPOSITORY / "config" / "apps.yaml")} | change
    with ThreadPoolExecutor() as pool:
        started = pool.submit(
            subprocess.run, [binary(f"identitybus-{program}")], env=clean_environment() | environment, capture_output=True,
            text=True, timeout=60)
        told = pool.submit(tool, "settings", "--set", "--json", environment=environment)
        as_program = pool.submit(tool, "settings", "--as", program, environment=environment)
        doctor = pool.submit(tool, "doctor", "--as", program, "--json", environment=environment)
    start = started.result()
    assert start.returncode == 78 and start.stderr.startswith(f"identitybus-{program}: {variable}: "), start
    words = start.stderr.removeprefix(f"identitybus-{program}: {variable}: ").rstrip("\n")
    rows = {row["name"]: row for row in map(json.loads, told.result().stdout.splitlines())}
    assert told.result().returncode == 78 and rows[variable]["problem"] == words, told.result()
    assert as_program.result().returncode == 78 and f"{variable}: {words}\n" in as_program.result().stderr
    findings = [json.loads(line) for line in doctor.result().stdout.splitlines()]
    assert [(f["level"], f["subject"], f["message"]) for f in findings if f["id"] == "config.settings"] == [
        ("fail", variable, f"{variable} {words}")], findings
    said = [start.stderr, *(text for answer in (told, as_program, doctor) for text in (
        answer.result().stdout, answer.result().stderr))]
    assert not any("hush" in text for text in said)


@pytest.mark.parametrize("text", [None, "apps: [{id: a, colour: red}]"])
def test_an_apps_file_that_stops_a_program_is_found_before(text: str | None, tmp_path: Path) -> None:
    apps = tmp_path / "apps.yaml"
    if text:
        apps.write_text(text)
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": KEY, "IDENTITYBUS_APPS": str(apps)}
    start = subprocess.run(
        [binary("identitybus-link")], env=clean_environment() | environment, capture_output=True, text=True, timeout=60)
    assert start.returncode == 78, start
    words = start.stderr.splitlines()[-1].removeprefix("identitybus-link: ")
    assert words.startswith(str(apps)), start
    for arguments in ((), ("--as", "link"), ("--as", "gateway")):
        answer = tool("settings", *arguments, environment=environment)
        assert answer.returncode == 78 and f"IDENTITYBUS_APPS: {words}\n" in answer.stderr, answer
    assert tool("settings", "--as", "identitybus", environment=environment).returncode == 0


def is_found_before(certificate: Path, key: Path, words: str) -> None:
    """By a start of the gateway, and by who asks before."""
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": KEY,
        "IDENTITYBUS_APPS": str(REPOSITORY / "config" / "apps.yaml"), "GATEWAY_TLS_CERTIFICATE": str(certificate),
        "GATEWAY_TLS_KEY": str(key)}
    start = subprocess.run(
        [binary("identitybus-gateway")], env=clean_environment() | environment, capture_output=True, text=True, timeout=60)
    assert (start.returncode, start.stderr) == (78, f"identitybus-gateway: {words}"), start
    answer = tool("settings", environment=environment)
    assert answer.returncode == 78 and words in answer.stderr, answer


@pytest.mark.parametrize("variable", ["GATEWAY_TLS_CERTIFICATE", "GATEWAY_TLS_KEY"])
@pytest.mark.parametrize(("what", "words"), [
    ("nothing", "{file} cannot be read: no such file or directory"), ("folder", "{file} cannot be read: is a directory"),
    ("other", "{file} holds no {kind} in PEM form")])
def test_a_file_of_the_gateway_that_is_none_is_found_before(variable: str, what: str, words: str, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path / "authority").issue("a.example")
    (file := tmp_path / "folder").mkdir()
    if what != "folder":
        file = tmp_path / what
    if what == "other":
        file.write_bytes(b"\xff no PEM")
    is_certificate = variable == "GATEWAY_TLS_CERTIFICATE"
    said = words.format(file=file, kind="certificate" if is_certificate else "private key")
    is_found_before(file if is_certificate else certificate, key if is_certificate else file, f"{variable}: {said}\n")


def test_a_key_of_another_certificate_is_found_before(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    (certificate, _), (_, key) = authority.issue("a.example"), authority.issue("b.example")
    is_found_before(certificate, key, f"GATEWAY_TLS_KEY: {key} is not the key of GATEWAY_TLS_CERTIFICATE\n")


def test_a_certificate_that_is_none_for_tls_is_found_before(tmp_path: Path) -> None:
    """With its own key, of DSA."""
    certificate, key = tmp_path / "a.pem", tmp_path / "a.key"
    for arguments in (("dsaparam", "-genkey", "-noout", "-out", key, "1024"),
                      ("req", "-x509", "-key", key, "-days", "2", "-subj", "/CN=a.example", "-out", certificate)):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
    is_found_before(certificate, key, f"GATEWAY_TLS_CERTIFICATE: {certificate} cannot be used for TLS "
                    "(failedToLoadCertificate); one with an RSA or ECDSA key can\n")


def test_a_key_in_the_place_of_its_file_is_not_shown() -> None:
    environment = {"GATEWAY_TLS_KEY": "-----BEGIN PRIVATE KEY-----\nhush-hush\n", "GATEWAY_TLS_CERTIFICATE": "/none"}
    environment |= {"KAFKA_SSL_KEY_LOCATION": environment["GATEWAY_TLS_KEY"], "KAFKA_SECURITY_PROTOCOL": "SSL"}
    for arguments in ((), ("--json",), ("--as", "gateway")):
        answer = tool("settings", *arguments, environment=environment)
        assert answer.returncode == 78 and "hush" not in answer.stdout + answer.stderr
    answer = subprocess.run(
        [binary("identitybus-gateway")], env=clean_environment() | environment | {
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": KEY}, capture_output=True, text=True)
    assert answer.returncode == 78 and "hush" not in answer.stderr and "KAFKA_SSL_KEY_LOCATION" in answer.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_start_tells_what_nothing_reads(program: str, tmp_path: Path) -> None:
    """It goes on; here it ends by its apps file, which is read right after."""
    environment = clean_environment() | {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2,
        "IDENTITYBUS_APPS": str(tmp_path / "none"), "BATCHSIZE": "hush-hush", "GATEWAY_PORT": "0",
        "IDENTITYBUS_EVENTS_KEYS": "hush-hush", "IDENTITYBUS_EVENTS_KEYS_FILE": "/none"}
    answer = subprocess.run(
        [binary(f"identitybus-{program}")], env=environment, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 78 and "hush" not in answer.stderr, answer
    lines = [json.loads(line) for line in answer.stderr.splitlines() if line.startswith("{")]
    told = [(line["event"], line["level"], line["message"]) for line in lines if line["event"].startswith("settings.")]
    assert ("settings.unknown", "warning", "BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?") in told
    assert ("settings.twice", "warning",
            "IDENTITYBUS_EVENTS_KEYS and IDENTITYBUS_EVENTS_KEYS_FILE are both set. Keep one of them.") in told
    assert len(told) == 2


def test_services_end_with_64_for_a_wrong_command_line_only() -> None:
    for program in PROGRAMS:
        answer = subprocess.run(
            [binary(f"identitybus-{program}"), "--port", "1"], env=clean_environment(), capture_output=True, text=True,
            timeout=60)
        assert answer.returncode == 64 and "--port 1" in answer.stderr and answer.stdout == "", answer
        answer = subprocess.run(
            [binary(f"identitybus-{program}")], env=clean_environment(), capture_output=True, text=True, timeout=60)
        assert answer.returncode == 78 and "KAFKA_BOOTSTRAP_SERVERS: must name" in answer.stderr, answer
