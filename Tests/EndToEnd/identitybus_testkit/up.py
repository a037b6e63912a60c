# SPDX-License-Identifier: Apache-2.0
"""`identitybus up` as a person starts it, and the other commands of the tool."""

import os
import re
import signal
import subprocess
from pathlib import Path

from .broker import Broker, kafka_environment
from .places import binary, clean_environment
from .secrets import INTERNAL_KEY
from .waiting import until


class Up:
    """A whole deployment: broker (unless the environment names one), services, SQLite."""

    def __init__(self, data: Path, apps_file: Path, prefix: str) -> None:
        self.data = data
        self.log = data.parent / f"{data.name}-up.log"
        self.environment = clean_environment() | kafka_environment() | {
            "TOPIC_PREFIX": prefix, "IDENTITYBUS_APPS": str(apps_file), "IDENTITYBUS_INTERNAL_KEY": INTERNAL_KEY}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> "Up":
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [binary("identitybus"), "up", "--data-dir", self.data, *arguments], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def text(self) -> str:
        return self.log.read_text()

    def wait_ready(self) -> Broker:
        """Returns its broker."""

        def ready() -> bool:
            assert self.process.poll() is None, f"up has ended\n{self.text}"
            return re.search("^ready", self.text, re.MULTILINE) is not None

        until(ready, 60, lambda: f"up ready\n{self.text}\n{self.service_log}")
        servers = (self.data / "bootstrap").read_text().strip()
        return Broker(servers, None if os.environ.get("KAFKA_BOOTSTRAP_SERVERS") else self.process)

    @property
    def service_log(self) -> str:
        path = self.data / "logs" / "link.log"
        return path.read_text() if path.exists() else ""

    @property
    def children(self) -> dict[str, int]:
        """The process ids of the services and the gateway by name, of those that run."""
        found: dict[str, int] = {}
        pids: list[str] = []
        for path in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            try:
                pids += path.read_text().split()
            except OSError:  # the thread has ended meanwhile
                continue
        for pid in pids:
            try:
                program = Path(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()).name
            except OSError:  # it has ended meanwhile
                continue
            if program.startswith("identitybus-"):
                found[program.removeprefix("identitybus-")] = int(pid)
        return found

    @property
    def child(self) -> int:
        """The link service's process id."""
        return self.children.get("link", 0)

    @property
    def health(self) -> dict[str, str]:
        """Where each child serves its health, as `up` has written it."""
        path = self.data / "health"
        return dict(line.split(" ") for line in path.read_text().splitlines()) if path.exists() else {}

    def wait(self, timeout: float) -> int:
        until(lambda: self.process.poll() is not None, timeout, lambda: f"up to end\n{self.text}")
        return self.process.returncode

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait(40)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if servers := os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
            Broker(servers).delete_all(self.environment["TOPIC_PREFIX"])


def tool(*arguments: str | Path, environment: dict[str, str], input: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Runs `identitybus` with arguments to its end."""
    answer = subprocess.run(
        [binary("identitybus"), *arguments], env=clean_environment() | environment, input=input, capture_output=True,
        timeout=120)
    return subprocess.CompletedProcess(
        answer.args, answer.returncode, answer.stdout.decode(), answer.stderr.decode())
