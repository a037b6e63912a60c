# SPDX-License-Identifier: Apache-2.0
"""What holds of every command of `identitybus`, of new ones too: the list is the parser's own (docs/command-line.md)."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.secrets import leaks
from identitybus_testkit.up import tool

STATUSES = {
    int(line.split("|")[1]) for line in (REPOSITORY / "docs" / "command-line.md").read_text().splitlines()
    if re.match(r"\| \d+ \|", line)}
APPS = REPOSITORY / "config" / "apps.yaml"


def commands() -> dict[str, list[dict[str, Any]]]:
    """The commands that do something, such as `send`, and their arguments."""
    found: dict[str, list[dict[str, Any]]] = {}

    def look(command: dict[str, Any], path: str) -> None:
        below = [one for one in command.get("subcommands", []) if one["commandName"] != "help"]
        for one in below:
            look(one, f'{path} {one["commandName"]}'.strip())
        if not below:
            found[path] = command.get("arguments", [])

    look(json.loads(tool("--experimental-dump-help", environment={}).stdout)["command"], "")
    return found


COMMANDS = commands()
# What stands for an argument that has to be given; `x` for others.
VALUES = {"app": "demo", "key-id": "demo-backend", "for": "gateway", "question": "ready", "letter": "link/0@0"}
# What makes a good line of a command, beside what has to be given.
GOOD = {
    "send": ["link.query", "--app", "demo", "--key-id", "internal", "--data", '{"installId":"nobody"}', "--wait", "30"],
    "import": ["/dev/null", "--app", "demo", "--key-id", "demo-import"],
    "watch": ["--from-beginning", "--until", "now"],
    "token": ["--app", "support", "--user-id", "ada"],
    "verify-token": ["--app", "support", "--user-id", "ada", "A" * 43],
    "check-config": [str(APPS)],
    "rekey": ["--app", "demo", "--dry-run"],
}
# They run until Ctrl-C, or for minutes.
ENDLESS = {"up", "chaos"}


def names(argument: dict[str, Any]) -> list[str]:
    return [name["name"] for name in argument.get("names", [])]


def required(command: str) -> list[str]:
    line: list[str] = []
    for argument in COMMANDS[command]:
        if argument["isOptional"]:
            continue
        name = (names(argument) or [argument["valueName"]])[0]
        value = VALUES.get(name) or (argument.get("allValues") or ["x"])[0]
        line += [value] if argument["kind"] == "positional" else [f"--{name}", value]
    return line


def has(command: str, option: str) -> bool:
    return any(option in names(argument) for argument in COMMANDS[command])


def run(
    command: str, *arguments: str, environment: dict[str, str], patience: float = 20, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """To its end, which is Ctrl-C where it has none of its own."""
    process = subprocess.Popen(
        [binary("identitybus"), *command.split(), *arguments], env=clean_environment() | environment, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, said = process.communicate(timeout=3 if command in ENDLESS else patience)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        output, said = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, output.decode(), said.decode())


# Most of its time a command waits. So all are begun together, when the first of them is asked for.
POOL = ThreadPoolExecutor(2 * len(os.sched_getaffinity(0)))
Answer = subprocess.CompletedProcess[str]


def together(commands: list[str], ask: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """Of each command its answer."""
    begun = {command: POOL.submit(ask, command) for command in commands}
    return lambda command: begun[command].result()


# What they are asked for is a secret.
SECRET = {"derive-keys", "salts"}


def follows_the_rules(command: str, answer: subprocess.CompletedProcess[str]) -> None:
    assert answer.returncode in STATUSES and answer.returncode != 1, answer
    assert "\x1b" not in answer.stdout + answer.stderr, answer
    assert not leaks(((answer.stdout if command not in SECRET else "") + answer.stderr).encode()), answer
    for line in answer.stdout.splitlines():
        assert isinstance(json.loads(line), dict), line
    assert "rdkafka" not in answer.stderr and "Error Domain" not in answer.stderr, answer
    if answer.returncode in (0, 130) or answer.stdout:
        return
    # What is wrong and where, and below that what to do.
    lines = answer.stderr.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("identitybus: ")), None)
    assert start is not None, answer
    problem = lines[start:]
    assert len(problem) > 1, f"nothing says what to do: {answer.stderr}"
    isUsage = any(line.startswith("Usage: ") for line in problem)
    assert isUsage and answer.returncode == 64 or all(line.startswith(" " * 13) for line in problem[1:]), answer.stderr


def test_the_page_has_every_command_and_no_other() -> None:
    assert len(COMMANDS) > 13 and ENDLESS | set(GOOD) <= set(COMMANDS)
    told = {tuple(text.split()) for text in re.findall(
        r"^\| \[?`([a-z -]+)`(?:\]\(#[a-z-]+\))? \|", (REPOSITORY / "docs" / "command-line.md").read_text(), re.MULTILINE)}
    assert told == {tuple(command.split()) for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_the_same_twice(command: str) -> None:
    first, second = (tool(*command.split(), "--help", environment={}) for _ in range(2))
    assert first.returncode == 0 and first.stdout == second.stdout and not first.stderr
    assert f"USAGE: identitybus {command}" in first.stdout and "OVERVIEW: " in first.stdout
    assert "\x1b" not in first.stdout
    for argument in COMMANDS[command]:
        assert argument.get("abstract") or not argument["shouldDisplay"], f'{argument["valueName"]} is not explained'


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_line_is_refused(command: str) -> None:
    answer = run(command, "--no-such-option", *required(command), environment={})
    assert (answer.returncode, answer.stdout) == (64, ""), answer
    assert answer.stderr.startswith("identitybus: Unknown option '--no-such-option'") and "Usage: " in answer.stderr
    assert f"See 'identitybus {command} --help'" in answer.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json(command: str) -> None:
    assert has(command, "json"), f"{command} has no --json"


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answer]:
    """No broker, no store, no key, no deployment in the folder, which DATA_DIR names."""
    empty = tmp_path_factory.mktemp("empty")

    def ask(command: str) -> Answer:
        (folder := empty / command.replace(" ", "-")).mkdir()
        answer = run(command, "--json", *required(command), folder=folder, environment={
            "IDENTITYBUS_APPS": str(APPS), "DATA_DIR": str(folder / "data")})
        assert not (folder / ".identitybus").exists(), "DATA_DIR is not what it works in"
        return answer

    return together(list(COMMANDS), ask)


@pytest.mark.parametrize("command", COMMANDS)
def test_where_nothing_is(command: str, nothing: Callable[[str], Answer]) -> None:
    answer = nothing(command)
    follows_the_rules(command, answer)
    # Where a folder is told, it is this one.
    assert ".identitybus" not in answer.stderr.replace("`identitybus up`", ""), answer
    if command in {"salts", "rekey", "migrate"}:
        assert answer.returncode == 78 and re.search(r"no store.* in \S+/data, and DATABASE_URL is not set\.", answer.stderr), answer


@pytest.fixture(scope="module")
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answer]:
    """Nobody answers at the addresses of the environment."""
    empty = tmp_path_factory.mktemp("empty")

    def ask(command: str) -> Answer:
        return run(
            command, "--json", *(GOOD.get(command) or required(command)), folder=empty, environment={
                "IDENTITYBUS_APPS": str(APPS), "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "HTTP_PORT": "1",
                "DATABASE_URL": "postgresql://me:a-password@127.0.0.1:1/x",
                "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2})

    return together(sorted(set(COMMANDS) - {"up"}), ask)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"up"}))
def test_where_nobody_answers(command: str, nobody: Callable[[str], Answer]) -> None:
    answer = nobody(command)
    follows_the_rules(command, answer)
    assert "a-password" not in answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def well(deployment: Deployment) -> Callable[[str], Answer]:
    """All is there. DATA_DIR, or DATABASE_URL, says where the stores are."""
    environment = deployment.environment() | {"IDENTITYBUS_APPS": str(APPS)}
    return together(sorted(set(COMMANDS) - ENDLESS), lambda command: run(
        command, "--json", *(GOOD.get(command) or required(command)), environment=environment))


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - ENDLESS))
def test_where_all_is_well(command: str, well: Callable[[str], Answer]) -> None:
    answer = well(command)
    follows_the_rules(command, answer)
    if command in {"salts", "settings", "check-config", "token", "derive-keys"}:
        assert answer.returncode == 0, answer


# What all of a kind have


def test_an_option_is_there_where_it_is_used() -> None:
    kafka = {command for command in COMMANDS if has(command, "bootstrap-servers")}
    assert {command for command in COMMANDS if has(command, "debug-kafka")} == kafka - {"up"} | {"chaos"}
    assert "explain" in kafka and kafka & {"rekey", "salts", "migrate", "sign", "token", "verify-token", "settings"} == set()
    assert {command for command in COMMANDS if has(command, "data-dir")} >= {
        "up", "probe", "explain", "rekey", "salts", "migrate", "doctor", "sign", "send"}
    assert {command for command in COMMANDS if has(command, "apps")} & {"salts", "migrate", "probe"} == set()


def test_texts_name_only_options_that_there_are() -> None:
    known = {name for command in COMMANDS for argument in COMMANDS[command] for name in names(argument)}
    for command in COMMANDS:
        own = set(re.findall(r"--([a-z][a-z-]+)", tool(*command.split(), "--help", environment={}).stdout))
        assert own <= known, command


@pytest.mark.parametrize(("line", "path"), [
    (("dlq", "replay"), "dlq replay"), (("dlq", "dismiss"), "dlq dismiss"), (("dlq", "show"), "dlq show"),
    (("dlq", "replay", "--all", "--no-questions"), "dlq replay"), (("dlq", "edit", "--no-such"), "dlq edit"),
    (("send",), "send"), (("probe",), "probe"), (("watch", "--since", "1m", "--from-beginning"), "watch"),
])
def test_a_hint_names_the_whole_command(line: tuple[str, ...], path: str) -> None:
    answer = tool(*line, environment={})
    assert (answer.returncode, answer.stdout) == (64, ""), answer
    assert f"See 'identitybus {path} --help'" in answer.stderr and f"Usage: identitybus {path} " in answer.stderr


def test_data_dir_is_the_folder_unless_one_is_given(tmp_path: Path) -> None:
    named, given = tmp_path / "named", tmp_path / "given"
    (named / "health").parent.mkdir()
    (named / "health").write_text("link http://127.0.0.1:1\n")
    environment = {"DATA_DIR": str(named)}
    answer = tool("probe", "live", "--service", "link", environment=environment)
    assert answer.returncode == 69 and "http://127.0.0.1:1 does not answer" in answer.stderr
    answer = tool("probe", "live", "--service", "link", "--data-dir", given, environment=environment)
    assert answer.returncode == 69 and f"{given}/health does not say where link is" in answer.stderr
    answer = tool("salts", "--data-dir", given, environment=environment)
    assert answer.returncode == 78 and f"in {given}, and DATABASE_URL is not set" in answer.stderr


DEBUGGED = {
    "send": [*GOOD["send"], "--force"], "watch": GOOD["watch"], "doctor": [], "topics": [], "dlq list": [],
    "dlq show": ["link/0@0"]}


@pytest.mark.parametrize("command", DEBUGGED)
def test_librdkafka_speaks_when_it_is_asked_to(command: str) -> None:
    """On standard error, without the password. Otherwise `follows_the_rules` sees that it is silent."""
    answer = run(command, "--json", "--debug-kafka", *DEBUGGED[command], environment={
        "IDENTITYBUS_APPS": str(APPS), "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": "a-password",
        "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef" * 2})
    assert re.search(r"^librdkafka  debug  \w+  .*127\.0\.0\.1:1", answer.stderr, re.MULTILINE), answer.stderr[:3000]
    assert "a-password" not in answer.stderr and "\x1b" not in answer.stderr
    for line in answer.stdout.splitlines():
        assert isinstance(json.loads(line), dict), line


SECRETS = sorted(
    json.loads(line)["file"] for line in tool("settings", "--json", environment={}).stdout.splitlines()
    if json.loads(line).get("file"))
READERS = [
    ("settings",), ("doctor",), ("salts",), ("derive-keys", "--for", "gateway"), ("sign", "--topic", "x", "--app", "demo",
     "--key-id", "internal"), ("watch", "--until", "now", "--from-beginning"), ("migrate",), ("explain", "x", "--app", "demo")]


@pytest.mark.parametrize("variable", SECRETS)
def test_a_secret_in_the_place_of_its_path_is_not_shown(variable: str, tmp_path: Path) -> None:
    kinds = ["hunter2-hunter2-hunter2-hunter2-x", "/hunter2/hunter2", "postgresql://me:hunter2@h/x"]
    assert len(SECRETS) >= 2 * len(kinds)
    secret = kinds[SECRETS.index(variable) % len(kinds)]
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_APPS": str(APPS), "DATA_DIR": str(tmp_path), variable: secret}

    def ask(program: tuple[str, ...]) -> str:
        answer = subprocess.run(
            [binary(program[0]), *program[1:]], env=clean_environment() | environment, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60)
        return (answer.stdout + answer.stderr).decode()

    programs: list[tuple[str, ...]] = [("identitybus", *line) for line in READERS]
    if variable not in {"IDENTITYBUS_EVENTS_KEYS_FILE", "IDENTITYBUS_GATEWAY_KEYS_FILE"}:
        programs.append(("identitybus-verification",))
    if variable in {"IDENTITYBUS_GATEWAY_KEYS_FILE", "IDENTITYBUS_INTERNAL_KEY_FILE"}:
        programs.append(("identitybus-gateway",))
    said = list(POOL.map(ask, programs))
    assert all("hunter2" not in text for text in said), said
    assert f"names a file that is not there, in {'/' if secret.startswith('/') else 'the working folder'}: " in said[0]


# --version


def test_the_version_is_that_of_the_build() -> None:
    answer = tool("--version", "--json", environment={})
    assert answer.returncode == 0 and answer.stderr == ""
    told = json.loads(answer.stdout)
    version = (REPOSITORY / "VERSION").read_text().strip()
    assert told["program"] == "identitybus" and told["version"] == version
    for name in ("swift", "librdkafka", "libpq", "sqlite"):
        assert re.fullmatch(r"\d+(\.\d+)+", told[name]), name
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True)
    if told["commit"] == "unknown":
        assert told["date"] is None
    elif commit.returncode == 0:
        known = subprocess.run(["git", "cat-file", "-t", told["commit"]], cwd=REPOSITORY, capture_output=True, text=True)
        assert known.stdout == "commit\n", "the build names a commit that the repository does not have"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", told["date"])
    line = tool("--version", environment={}).stdout
    short = told["commit"][:7] if told["commit"] != "unknown" else "commit unknown"
    assert line.startswith(f"identitybus {version} ({short}") and line.endswith(f', SQLite {told["sqlite"]}\n')
    for program in ("link", "gateway"):
        own = subprocess.run(
            [binary(f"identitybus-{program}"), "--version", "--json"], env=clean_environment(), capture_output=True,
            text=True)
        assert json.loads(own.stdout) == told | {"program": f"identitybus-{program}"}


def test_a_commit_that_the_build_did_not_know_is_the_environment_s(tmp_path: Path) -> None:
    """An image is built without a repository. Nothing is made up."""
    record = REPOSITORY / "Shared" / "BuildRecord" / "record.sh"
    tree = tmp_path / "tree"
    shutil.copytree(record.parent, tree / "Shared" / "BuildRecord")

    def recorded() -> dict[str, str]:
        subprocess.run(["sh", record, tree, tmp_path / "out"], check=True)
        return dict(re.findall(r"static let (\w+)[^=]*= (.*)", (tmp_path / "out" / "Commit.swift").read_text()))

    assert recorded() == {"id": '""', "day": '""', "isModified": "false"}
    written = (tmp_path / "out" / "Commit.swift").stat().st_mtime_ns
    recorded()
    assert (tmp_path / "out" / "Commit.swift").stat().st_mtime_ns == written, "it would be compiled again"
    (tree / "Shared" / "BuildRecord" / "archive.txt").write_text("0123456789012345678901234567890123456789 2030-01-31\n")
    assert recorded() == {"id": f'"{"0123456789" * 4}"', "day": '"2030-01-31"', "isModified": "false"}
    git = ("git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--date=2029-05-06T00:00:00Z"], check=True, env=clean_environment() | {
        "GIT_COMMITTER_DATE": "2029-05-06T00:00:00Z"})
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert recorded() == {"id": f'"{commit}"', "day": '"2029-05-06"', "isModified": "false"}
    (tree / "Shared" / "BuildRecord" / "archive.txt").write_text("x\n")
    assert recorded()["isModified"] == "true"


# Completions


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_can_be_read_by_their_shell(shell: str, tmp_path: Path) -> None:
    script = tool("--generate-completion-script", shell, environment={})
    assert script.returncode == 0 and not script.stderr
    assert all(command.split()[0] in script.stdout for command in COMMANDS)
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / "completion"
    path.write_text(script.stdout)
    subprocess.run([shell, "--no-execute" if shell == "fish" else "-n", path], check=True)
    if shell == "bash":
        look = f"source {path}; COMP_WORDS=(identitybus pro); COMP_CWORD=1; _identitybus identitybus pro identitybus; echo ${{COMPREPLY[@]}}"
        found = subprocess.run(["bash", "-c", look], capture_output=True, text=True, env=clean_environment())
        assert found.stdout.split() == ["probe"], found


# probe


class Health(BaseHTTPRequestHandler):
    status = 200
    checks: list[dict[str, Any]] = []
    own: dict[str, Any] = {"identitybus": "link"}

    def do_GET(self) -> None:
        body = json.dumps({"status": "ok", "checks": self.checks} | self.own).encode()
        self.send_response(self.status if self.path == "/readyz" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def health() -> Iterator[tuple[type[Health], str]]:
    kind = type("Mine", (Health,), {})
    server = HTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield kind, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def probe(*arguments: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """As health checks run it, with time for a machine that does much else: the server may be a thread of this process."""
    return tool("probe", *arguments, "--timeout", "60", environment=environment or {})


def test_probe_tells_what_fails(health: tuple[type[Health], str], tmp_path: Path) -> None:
    kind, address = health
    for where in (("ready", address), ("ready", address.replace("127.0.0.1", "localhost")), ("live", address)):
        answer = probe(*where)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{where[0]}\n", ""), answer
    port = address.rpartition(":")[2]
    assert probe("ready", environment={"HTTP_PORT": port, "HTTP_HOST": "0.0.0.0"}).stdout == "ready\n"
    (tmp_path / "health").write_text(f"user http://127.0.0.1:1\nlink {address}\n")
    folder = ("--data-dir", str(tmp_path))
    assert probe("ready", "--service", "link", *folder).returncode == 0
    kind.status = 503
    kind.checks = [
        {"name": "database", "ok": True},
        {"name": "broker", "ok": False, "detail": "Kafka at k:9092: connection refused", "since": "2030-01-31T00:00:00Z"},
        {"name": "group", "ok": False, "detail": "no share\x1b[31m", "because": ["broker"]}]
    answer = probe("ready", "--service", "link", *folder)
    assert (answer.returncode, answer.stderr) == (3, "") and answer.stdout.splitlines() == [
        "not ready", "  broker  Kafka at k:9092: connection refused (since 2030-01-31T00:00:00Z)",
        "  group   no share\\u001b[31m (because of broker)"], answer
    answer = probe("ready", address, "--json")
    assert answer.returncode == 3 and json.loads(answer.stdout)["checks"][1]["name"] == "broker"
    assert probe("live", address).returncode == 0


@pytest.mark.parametrize("own", [{}, {"identitybus": None}, {"identitybus": True}, {"service": "link"}])
def test_probe_believes_only_programs_of_ours(health: tuple[type[Health], str], own: dict[str, Any]) -> None:
    kind, address = health
    kind.own = own
    for kind.status in (200, 503):
        for question in ("live", "ready"):
            answer = probe(question, address, "--json")
            assert (answer.returncode, answer.stdout) == (69, ""), answer
            assert f"{address} answers, but is no health server of IdentityBus." in answer.stderr and "HTTP_PORT" in answer.stderr


def test_probe_tells_one_service_from_another(health: tuple[type[Health], str], tmp_path: Path) -> None:
    _, address = health
    (tmp_path / "health").write_text(f"user {address}\n")
    answer = probe("live", "--service", "user", "--data-dir", tmp_path)
    assert (answer.returncode, answer.stdout) == (69, "")
    assert f"{address} answers, but is link, and not user." in answer.stderr


def test_probe_where_nobody_answers(tmp_path: Path) -> None:
    cases = [
        (("ready", "http://127.0.0.1:1"), 69, "http://127.0.0.1:1 does not answer: connection refused."),
        (("ready", "http://nosuch.invalid:1"), 69, "http://nosuch.invalid:1 does not answer: name or service not known."),
        (("ready", "127.0.0.1:8080"), 64, "such as http://127.0.0.1:8080"),
        (("ready",), 78, "nobody is named."),
        (("ready", "--service", "link", "--data-dir", str(tmp_path)), 69, "does not say where link is."),
        (("ready", "--service", "lnik", "--data-dir", str(tmp_path)), 64, "there is no service lnik."),
        (("redy",), 64, "The value 'redy' is invalid"),
        (("ready", "http://127.0.0.1:1", "--service", "link"), 64, "Give an address or --service, not both"),
    ]
    for arguments, status, words in cases:
        answer = tool("probe", *arguments, environment={})
        assert (answer.returncode, answer.stdout) == (status, "") and words in answer.stderr, answer


def test_probe_asks_a_service_that_runs(deployment: Deployment) -> None:
    [service] = [one for one in deployment.services if one.name == "link"]
    assert probe("ready", f"http://127.0.0.1:{service.port}").stdout == "ready\n"
    assert probe("live", f"http://127.0.0.1:{service.port}", "--json").returncode == 0
