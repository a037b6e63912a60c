# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring: rules and dashboard name what there is, each alert has its heading in the runbook, and promtool finds
nothing wrong. Whether alerts fire is seen by test_alerts.py."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from identitybus_testkit import commands as c
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.fakes import Authority
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.monitoring import FOLDER, ONLY_WHEN_WRONG, metrics_of, queries, rules
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.waiting import until

EXPRESSIONS = [rule["expr"] for rule in rules()] + queries()
NAMES = set().union(*map(metrics_of, EXPRESSIONS))
PROMTOOL = shutil.which("promtool")


def headings() -> set[str]:
    lines = (REPOSITORY / "docs" / "runbook.md").read_text().splitlines()
    return {line.removeprefix("### ").strip() for line in lines if line.startswith("### ")}


def test_monitoring_each_alert_has_its_heading_and_each_heading_its_alert() -> None:
    assert headings() == {rule["alert"] for rule in rules()}
    for rule in rules():
        notes = rule["annotations"]
        assert notes["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert set(notes) == {"summary", "description", "runbook_url"} and all(notes.values()), rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]


def test_monitoring_each_alert_has_unit_tests_that_it_fires_and_that_it_does_not() -> None:
    cases = [case for test in yaml.safe_load((FOLDER / "alerts_test.yaml").read_text())["tests"]
             for case in test["alert_rule_test"]]
    for fires in (True, False):
        assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) == fires} == headings()


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there (Debian: prometheus)")
@pytest.mark.parametrize("what", [
    ("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml"), ("check", "config", "prometheus.yaml")],
    ids=lambda what: " ".join(what[:2]))
def test_monitoring_promtool(what: tuple[str, ...]) -> None:
    answer = subprocess.run([PROMTOOL or "", *what], cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there (Debian: prometheus)")
def test_monitoring_the_dashboards_queries_can_be_read() -> None:
    asked = [query.replace("$service", ".*").replace("$__rate_interval", "1m") for query in queries()]
    recorded = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(asked)]
    text = yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]})
    answer = subprocess.run(
        [PROMTOOL or "", "check", "rules", "/dev/stdin"], input=text, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_monitoring_the_dashboard_has_a_title_and_a_place_for_each_panel() -> None:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"] and (panel["type"] == "row" or panel["targets"]), panel
        place = panel["gridPos"]
        squares = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                   for y in range(place["y"], place["y"] + place["h"])}
        assert not squares & taken and max(x for x, _ in squares) < 24, panel["title"]
        taken |= squares


def test_monitoring_names_stand_on_the_pages() -> None:
    told: set[str] = set()
    for page in ("operations.md", "gateway.md"):
        told |= set(re.findall(r"`((?:identity|kafka|gateway|process|verification|log)_\w+)", (REPOSITORY / "docs" / page).read_text()))
    missing = {name for name in NAMES - told if not name.startswith("process_")}
    assert not missing
    assert "`process_*`" in (REPOSITORY / "docs" / "operations.md").read_text()
    assert ONLY_WHEN_WRONG <= told


def test_monitoring_names_and_labels_are_those_of_processes(
    make_deployment: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    services = [deployment.process(name).start() for name in SERVICES]
    certificate, key = Authority(tmp_path / "authority").issue("127.0.0.1")
    services.append(deployment.gateway(GATEWAY_TLS_CERTIFICATE=str(certificate), GATEWAY_TLS_KEY=str(key)).start())
    gateway = deployment.gateway().start()
    for service in (*services, gateway):
        service.wait_ready()
    deployment.bus.ask(c.register(fresh("install")))
    deployment.bus.ask(c.Command("link.get-user", {"installId": fresh("install")}, fresh("x"), signer="demo-support"))
    assert gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend").status == 200
    labels: dict[str, set[str]] = {}

    def look() -> set[str]:
        for service in (*services, gateway):
            for line in service.get("/metrics")[1].splitlines():
                if match := re.match(r"(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$", line):
                    labels.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
        return NAMES - set(labels) - ONLY_WHEN_WRONG

    until(lambda: not look(), 30, lambda: f"the metrics {look()}", 0.5)
    # Of the target: job, component, instance.
    target = {"job", "component", "instance", "le"}
    for expression in EXPRESSIONS:
        for metric, chosen in re.findall(r"\b(\w+)\{([^}]*)\}", expression):
            if metric in labels:
                assert set(re.findall(r'(\w+)(?:=~|!=|=)"', chosen)) <= labels[metric] | target, expression
        names = metrics_of(expression)
        if names and names <= set(labels):
            known = set().union(*(labels[name] for name in names)) | target
            assert {name for group in re.findall(r"by \(([^)]*)\)", expression)
                    for name in re.split(r",\s*", group)} <= known, expression
