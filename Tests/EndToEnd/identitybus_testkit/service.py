# SPDX-License-Identifier: Apache-2.0
"""A service process under test."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from .broker import SERVICES
from .databases import least_rights
from .places import binary, clean_environment
from .secrets import leaks
from .waiting import until


class Service:
    """One process of a service; started again it appends to the same log."""

    def __init__(self, name: str, environment: dict[str, str], log: Path) -> None:
        self.name = name
        self.environment = environment
        self.log = log
        # Of another build than the one under test.
        self.program: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        # Since the last start; 0 when it was not looked for yet.
        self._port = 0

    def start(self) -> "Service":
        assert not self.is_running
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._port = 0
        environment = self.environment
        if self.name in SERVICES and self.program is None:
            environment = least_rights(self.name, environment)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.program or binary(f"identitybus-{self.name}")], env=clean_environment() | environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the service was never started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # Signals

    def stop(self, timeout: float = 40) -> int:
        """SIGTERM. Returns the exit status."""
        self.process.terminate()
        return self.wait(timeout)

    def wait(self, timeout: float) -> int:
        process = self.process
        until(lambda: process.poll() is not None, timeout, lambda: f"{self.name} to end\n{self.tail()}")
        return process.returncode

    def kill(self) -> None:
        if self.is_running:
            self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Returns when it stands still: on a busy machine some threads go on for a while."""
        os.kill(self.process.pid, signal.SIGSTOP)
        which = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        until(lambda: os.waitid(os.P_PID, self.process.pid, which), 30, f"{self.name} to stand still", 0.002)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    # What it says

    @property
    def text(self) -> str:
        """The log since the last start, without a line that is being written."""
        if not self.log.exists():
            return ""
        lines, end, _ = self.log.read_bytes()[self._log_start:].rpartition(b"\n")
        return (lines + end).decode(errors="replace")

    def lines(self, *parts: str) -> list[str]:
        """The log lines since the last start that contain all `parts`."""
        return [line for line in self.text.splitlines() if all(part in line for part in parts)]

    def tail(self, count: int = 30) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return f"--- {self.log.name}, last lines\n" + "\n".join(line[:500] for line in lines[-count:])

    @property
    def port(self) -> int:
        def bound() -> int:
            assert self.is_running, f"{self.name} has ended with {self.process.returncode}\n{self.tail()}"
            for line in self.lines("health server is up"):
                return int(json.loads(line)["fields"]["port"])
            return 0

        self._port = self._port or until(bound, 60, lambda: f"the health server's port\n{self.tail()}")
        return self._port

    def get(self, path: str, timeout: float = 30) -> tuple[int, str]:
        """Whatever it answers, no secret stands in it."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        assert not leaks(text), f"{self.name} tells {leaks(text)} in {path}"
        return status, text.decode()

    @property
    def is_ready(self) -> bool:
        try:
            return self.get("/readyz", timeout=5)[0] == 200
        except OSError:
            return False

    def wait_ready(self, timeout: float = 60) -> "Service":
        def ready() -> bool:
            assert self.is_running, f"{self.name} has ended with {self.process.returncode}\n{self.tail()}"
            return self.is_ready

        until(ready, timeout, lambda: f"{self.name} ready\n{self.tail()}", 0.1)
        return self

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; 0 when it is not there."""
        _, text = self.get("/metrics")
        values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for value in values)

    def failed_checks(self) -> dict[str, str]:
        """The checks of /readyz that fail, and what they say; empty when it is ready."""
        status, text = self.get("/readyz")
        checks = [] if status == 200 else json.loads(text)["checks"]
        return {check["name"]: check.get("detail", "") for check in checks if not check["ok"]}

    def owned(self) -> dict[str, set[int]]:
        """The partitions that it was given since the last start and that were not taken away again, by topic."""
        owned: dict[str, set[int]] = {}
        for line in self.lines('"message":"partitions '):
            entry = json.loads(line)
            for topic, numbers in re.findall(r"(\S+)\[([\d,]+)\]", entry["fields"]["partitions"]):
                partitions = {int(number) for number in numbers.split(",")}
                if entry["message"] == "partitions assigned":
                    owned.setdefault(topic, set()).update(partitions)
                elif entry["message"] in ("partitions revoked", "partitions lost"):
                    owned.get(topic, set()).difference_update(partitions)
        return owned

    def wakes(self) -> int:
        """How often its threads have gone to sleep, and so been woken, up to now. Threads that have ended do not count."""
        status = "".join(path.read_text() for path in Path(f"/proc/{self.process.pid}/task").glob("*/status"))
        return sum(int(number) for number in re.findall(r"^voluntary_ctxt_switches:\s+(\d+)$", status, re.MULTILINE))

    def complaints(self) -> list[str]:
        """Lines of level warning and above."""
        return [line for line in self.text.splitlines() if json.loads(line)["level"] in ("warning", "error", "critical")]

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
