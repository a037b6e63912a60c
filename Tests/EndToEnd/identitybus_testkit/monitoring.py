# SPDX-License-Identifier: Apache-2.0
"""What deploy/monitoring has, and a Prometheus (Debian's) that scrapes processes under test with it."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from .places import REPOSITORY
from .ports import free_port
from .service import Service
from .waiting import until

FOLDER = REPOSITORY / "deploy" / "monitoring"
# They count what goes wrong, so a process that is well does not have them.
ONLY_WHEN_WRONG = {
    "identity_log_gap_records_total", "gateway_reply_timeouts_total", "gateway_full_total", "gateway_unauthorized_total",
    "gateway_throttled_total", "identity_database_waits_total", "identity_conflicts_total", "identity_fenced_total"}
# An hour becomes a minute. What is seen at once may wait for less.
_SHORTER = {
    "for: 1m": "for: 2s", "for: 2m": "for: 4s", "for: 5m": "for: 6s", "for: 10m": "for: 6s", "[10m]": "[15s]",
    "[5m]": "[30s]", "offset 5m": "offset 30s", "[15m]": "[60s]", "[1h]": "[60s]", "offset 1h": "offset 60s",
    "_seconds) > 60": "_seconds) > 5"}


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return group["rules"]


def queries() -> list[str]:
    """Those of the dashboard."""
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def metrics_of(expression: str) -> set[str]:
    """The names of our metrics in a query, without the endings of a histogram's series."""
    bare = re.sub(r'"[^"]*"|by \([^)]*\)', "", expression)
    names = re.findall(r"\b(?:identity|kafka|gateway|process|verification|log)_[a-z_]+", bare)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


class Prometheus:
    """With the rules of alerts.yaml, all of whose times are made shorter. Scrapes once a second."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._targets: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"http://127.0.0.1:{free_port()}"
        # Every alert that has fired since `forget`, with its labels.
        self.fired: dict[str, list[dict[str, str]]] = {}

    @staticmethod
    def program() -> str | None:
        return shutil.which("prometheus")

    def start(self) -> "Prometheus":
        text = (FOLDER / "alerts.yaml").read_text()
        for long, short in _SHORTER.items():
            assert long in text, f"{long} is not in alerts.yaml any more"
            text = text.replace(long, short)
        (self._directory / "alerts.yaml").write_text(text)
        self._write()
        (self._directory / "prometheus.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [{"job_name": "identitybus", "file_sd_configs": [
                {"files": ["targets.json"], "refresh_interval": "1s"}]}]}))
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self.program() or "", f"--config.file={self._directory}/prometheus.yaml",
                 f"--storage.tsdb.path={self._directory}/data", f"--web.listen-address={self.address.partition('//')[2]}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._is_ready, 30, lambda: (self._directory / "log").read_text())
        return self

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def watch(self, service: Service) -> None:
        """Scrapes a process that has a fixed port."""
        self._targets[f"127.0.0.1:{service.environment['HTTP_PORT']}"] = service.name
        self._write()

    def leave(self, service: Service) -> None:
        self._targets.pop(f"127.0.0.1:{service.environment['HTTP_PORT']}")
        self._write()

    def _write(self) -> None:
        part = self._directory / "targets.part"
        part.write_text(json.dumps(
            [{"targets": [target], "labels": {"component": name}} for target, name in self._targets.items()]))
        part.replace(self._directory / "targets.json")

    def ask(self, path: str, **query: str) -> Any:
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self.ask("query", query=expression)["result"])

    def firing(self) -> set[str]:
        """The names of the alerts that fire now; they are kept in `fired`."""
        alerts = [alert["labels"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"]
        for labels in alerts:
            known = self.fired.setdefault(labels["alertname"], [])
            if labels not in known:
                known.append(labels)
        return {labels["alertname"] for labels in alerts}

    def forget(self) -> None:
        self.fired = {}
