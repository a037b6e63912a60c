# SPDX-License-Identifier: Apache-2.0
"""`identitybus check-config`: what it finds in the files of the folder `apps`, each of which says in its first lines what
that is, and that a service accepts the same ones."""

import functools
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from identitybus_testkit.places import REPOSITORY, binary, clean_environment
from identitybus_testkit.up import tool
from identitybus_testkit.waiting import until

FILES = sorted((Path(__file__).parent / "apps").glob("*.yaml"))
DEMO = REPOSITORY / "config" / "apps.yaml"
SECRET = "0123456789abcdef0123456789abcdef"


def expected(path: Path) -> list[str]:
    return [line.removeprefix("# expect: ") for line in path.read_text().splitlines() if line.startswith("# expect: ")]


@functools.cache
def checked() -> dict[Path, tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]]:
    """What is said of each file, without and with --json. All are asked at once."""
    with ThreadPoolExecutor() as pool:
        said = [[pool.submit(tool, "check-config", path, *json_, environment={}) for json_ in ((), ("--json",))]
                for path in (*FILES, DEMO)]
    return {path: (plain.result(), lines.result()) for path, (plain, lines) in zip((*FILES, DEMO), said)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_everything_is_found_in_its_place(path: Path) -> None:
    wanted = expected(path)
    answer, as_json = checked()[path]
    isRefused = any(" error " in line for line in wanted)
    assert (answer.returncode, answer.stderr) == (78 if isRefused else 0, ""), answer
    found = [re.sub(" +", " ", line.removeprefix(f"{path}:"), count=1) for line in answer.stdout.splitlines()[:-1]]
    found = [re.sub(r"^(\S+ \w+) +", r"\1 ", line) for line in found]
    assert len(found) == len(wanted) and all(map(str.startswith, found, wanted)), (found, wanted)
    assert SECRET not in answer.stdout
    last = answer.stdout.splitlines()[-1]
    assert last.endswith("services would refuse this file and keep the one before") if isRefused else ": fine" in last
    lines = [json.loads(line) for line in as_json.stdout.splitlines()]
    told = [f'{line["line"]}:{line["column"]} {line["level"]} {line["message"]}' for line in lines[:-1]]
    assert told == found
    assert lines[-1]["accepted"] is not isRefused and lines[-1]["errors"] == sum(" error " in line for line in wanted)


def starts(program: str, path: Path, folder: Path) -> bool:
    """Whether it goes on beyond its apps file: it then serves health, and waits for Kafka."""
    service = subprocess.Popen(
        [binary(f"identitybus-{program}")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=clean_environment() | {
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": SECRET, "IDENTITYBUS_APPS": str(path),
            "DATA_DIR": str(folder / path.stem), "DRAIN_TIMEOUT_SECONDS": "0"})
    try:
        assert service.stderr is not None
        for line in service.stderr:
            if '"health.bound"' in line:
                return True
            if line.startswith(f"identitybus-{program}: "):
                assert str(path) in line and service.wait(30) == 78, line
                return False
        raise AssertionError(f"{path}: neither accepted nor refused")
    finally:
        service.kill()
        service.wait()


# The gateway opens no secret that vouches for logins, so it takes each for a good one.
WITHOUT = {"gateway": ["--without-secret-files"]}


@pytest.mark.parametrize("program", ["link", "gateway"])
def test_programs_accept_what_it_accepts(program: str, tmp_path: Path) -> None:
    files = [*FILES, DEMO]
    assert len(files) > 23

    def look(path: Path) -> tuple[bool, bool]:
        accepted, answer = starts(program, path, tmp_path), checked()[path][0]
        if program in WITHOUT and path.stem == "verification_secret_file":
            answer = tool("check-config", path, *WITHOUT[program], environment={})
        return accepted, answer.returncode == 0

    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(files, pool.map(look, files)))
    assert [path.stem for path, (accepted, fine) in found.items() if accepted != fine] == []
    assert {fine for _, fine in found.values()} == {True, False}


def test_a_running_gateway_keeps_the_file_before(tmp_path: Path) -> None:
    """What a service would refuse, by what only services use too; and the internal key, of which it has only derived ones."""
    apps, port = tmp_path / "apps.yaml", tmp_path / "port"
    fine = (Path(__file__).parent / "apps" / "fine.yaml").read_text()
    apps.write_text(fine)
    keys = json.loads(tool(
        "derive-keys", "--for", "gateway", "--json", environment={"IDENTITYBUS_INTERNAL_KEY": SECRET}).stdout)
    gateway = subprocess.Popen(
        [binary("identitybus-gateway")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=clean_environment() | {
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", keys["variable"]: keys["value"], "IDENTITYBUS_APPS": str(apps),
            "IDENTITYBUS_HEALTH_FILE": str(port), "DRAIN_TIMEOUT_SECONDS": "0"})

    def refusal() -> str:
        """What is wrong with the file as it is now; empty when it is in force."""
        told = tool("probe", "ready", port.read_text().strip(), "--json", "--timeout", "20", environment={})
        [check] = [check for check in json.loads(told.stdout)["checks"] if check["name"] == "apps"]
        return "" if check["ok"] else str(check["detail"])

    try:
        until(lambda: port.exists() and not refusal(), 30, "the gateway")
        for broken, words in (
            ((Path(__file__).parent / "apps" / "verification_secrets.yaml").read_text(), "verification"),
            (fine.replace(f"{SECRET}-1", SECRET), "has the internal key as its secret"),
        ):
            assert broken != fine
            apps.write_text(broken)
            until(lambda: words in refusal(), 30, f"a refusal with {words}")
        apps.write_text(fine)
        until(lambda: not refusal(), 30, "the file that is fine")
    finally:
        gateway.kill()
        gateway.wait()


def test_the_demo_file_has_its_warnings() -> None:
    answer, _ = checked()[DEMO]
    assert answer.returncode == 0 and answer.stdout.endswith(f"{DEMO}: fine, 3 warnings\n"), answer
    assert tool("check-config", environment={"IDENTITYBUS_APPS": str(DEMO)}).stdout == answer.stdout


def test_settings_decide_as_in_a_service(tmp_path: Path) -> None:
    weak = Path(__file__).parent / "apps" / "weak_secrets.yaml"
    answer = tool("check-config", weak, environment={"IDENTITYBUS_WEAK_SECRETS": "warn"})
    assert answer.returncode == 0 and answer.stdout.count("  warn  ") == 2, answer
    fine = Path(__file__).parent / "apps" / "fine.yaml"
    answer = tool("check-config", fine, environment={"IDENTITYBUS_INTERNAL_KEY": f"{SECRET}-1"})
    assert answer.returncode == 78 and "has the internal key as its secret" in answer.stdout
    files = Path(__file__).parent / "apps" / "secret_files.yaml"
    assert tool("check-config", files, "--without-secret-files", environment={}).returncode == 0
    (tmp_path / "key").write_text(f"{SECRET}\n")
    beside = tmp_path / "apps.yaml"
    beside.write_text(files.read_text().replace("nowhere/key", "key"))
    assert tool("check-config", beside, environment={}).returncode == 0


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "no such file or directory"), (tmp_path, "is a directory")):
        for arguments, way in (
            ((path,), "Name the apps file"), ((DEMO, "--against", path), "--against names the file that is in force"),
        ):
            answer = tool("check-config", *arguments, environment={})
            assert answer.returncode == 78 and way in answer.stderr, answer
            assert f"identitybus: {path} cannot be read: {words}." in answer.stderr
            assert "refuse" not in answer.stdout


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    """As some editors save it."""
    path = tmp_path / "apps.yaml"
    path.write_bytes("# Läden\napps:\n  - id: café\n".encode() + "  - id: café\n".encode("latin-1"))
    words = "is not UTF-8 from here on; save it as UTF-8"
    answer = tool("check-config", path, environment={})
    assert (answer.returncode, answer.stderr) == (78, ""), answer
    assert answer.stdout == (
        f"{path}:4:12  error  {words}\n1 error: services would refuse this file and keep the one before\n")
    finding, last = (json.loads(line) for line in tool("check-config", path, "--json", environment={}).stdout.splitlines())
    assert finding == {"file": str(path), "line": 4, "column": 12, "level": "error", "message": words}
    assert (last["accepted"], last["errors"]) == (False, 1)
    against = tool("check-config", DEMO, "--against", path, environment={})
    assert against.returncode == 78 and f"{path}:4:12" in against.stdout and "cannot be compared with" in against.stderr
    start = tool("settings", environment={
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": SECRET, "IDENTITYBUS_APPS": str(path)})
    assert start.returncode == 78, start
    assert "cannot be read: it is not UTF-8 from line 4, column 12 on; save it as UTF-8\n" in start.stderr, start


OLD = f"""
apps:
  - id: shop
    replies: identity.replies.shop
    keys:
      - {{ id: shop-old, secret: {SECRET}-1, scopes: [user.link] }}
      - {{ id: shop-both, secret: {SECRET}-2, scopes: [user.link, support] }}
      - {{ id: shop-sdk, secret: {SECRET}-3, scopes: [sdk] }}
    verification:
      mode: report
      signedFields: delimited
      keys: [{{ id: v1, secret: {SECRET}-4 }}]
    gateway:
      limits: {{ keyPerSecond: 10 }}
    sdk: {{ tokenSecret: {SECRET}-5 }}
  - id: gone
"""
NEW = f"""
apps:
  - id: shop
    replies: identity.replies.till
    keys:
      - {{ id: shop-both, secret: {SECRET}-2, scopes: [user.link, user.delete], revoked: true }}
      - {{ id: shop-sdk, secret: {SECRET}-6, scopes: [sdk], expires: 2020-01-01 }}
      - {{ id: shop-new, secret: {SECRET}-7, scopes: [identity.sync] }}
    verification:
      mode: enforce
      signedFields: userId
      keys: [{{ id: v2, secret: {SECRET}-8 }}]
    gateway:
      limits: {{ keyPerSecond: 20 }}
    sdk: {{ tokenSecret: {SECRET}-9 }}
    sync: {{ strategy: userIdThenEmail }}
    linking: {{ holdDays: 10 }}
  - id: acme
    replies: identity.replies.acme
    ownCommandsTopics: true
    keys: [{{ id: acme-1, secret: {SECRET}-a, scopes: [sdk] }}]
"""
CHANGES = [
    ("acme", "new app (1 key)", "creates topics p.identity.replies.acme, p.identity.link.commands.v1.acme"),
    ("gone", "app gone", "its commands become dead letters"),
    ("shop", "key shop-both loses support", "such commands under it are refused"),
    ("shop", "key shop-both may user.delete", "such commands under it are taken"),
    ("shop", "key shop-both is revoked", "commands waiting under it become dead letters"),
    ("shop", "new key shop-new", "may identity.sync"),
    ("shop", "key shop-old ends now", "commands waiting under it become dead letters"),
    ("shop", "key shop-sdk has another secret", "what was signed with the one before becomes a dead letter"),
    ("shop", "key shop-sdk ends 2020-01-01T00:00:00.000Z", "that is over"),
    ("shop", "replies p.identity.replies.shop -> p.identity.replies.till", "creates topic p.identity.replies.till"),
    ("shop", "sdk.tokenSecret is another one", "user tokens of before are refused"),
    ("shop", "verification.mode report -> enforce", "logins without a token are refused from then on"),
    ("shop", "verification.signedFields delimited -> userId", "tokens that are signed otherwise are refused"),
    ("shop", "verification.key v1 ends now", "tokens made with it are refused"),
    ("shop", "verification.new key v2", "tokens made with it pass"),
    ("shop", "linking.holdDays 30 -> 10", "for external ids that are changed from then on"),
    ("shop", "sync.strategy default -> userIdThenEmail", "decides from then on"),
    ("shop", "gateway.limits.keyPerSecond 10 -> 20", "more under one key gets 429"),
]


def test_what_a_change_would_do(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(OLD)
    new.write_text(NEW)
    answer = tool("check-config", new, "--against", old, "--json", environment={"TOPIC_PREFIX": "p."})
    assert answer.returncode == 0 and answer.stderr == "", answer
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    changes = [(line["app"], line["change"], line["meaning"]) for line in lines if "change" in line]
    for app, what, meaning in CHANGES:
        assert [change for change in changes if change[:2] == (app, what) and change[2].startswith(meaning)], (
            app, what, meaning, changes)
    rest = {what for _, what, _ in changes} - {what for _, what, _ in CHANGES}
    assert all(what.startswith("sync.") for what in rest), rest
    shown = tool("check-config", new, "--against", old, environment={"TOPIC_PREFIX": "p."})
    assert "What would change within 10 s, without a restart:\n  acme  new app (1 key)  " in shown.stdout
    assert SECRET not in shown.stdout + answer.stdout
    assert tool("check-config", new, "--against", new, environment={}).stdout.endswith("fine, and says the same\n")
    bad = Path(__file__).parent / "apps" / "no_apps.yaml"
    answer = tool("check-config", new, "--against", bad, environment={})
    assert answer.returncode == 78 and "cannot be compared with" in answer.stderr and f"{bad}:2:7" in answer.stdout
