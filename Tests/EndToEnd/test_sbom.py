# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom: what is built in and what stands beside, each once. Its form is compared with the schema by check_deploy."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from identitybus_testkit.places import REPOSITORY

PINS = {"originHash": "x", "version": 3, "pins": [
    {"identity": "swift-log", "kind": "remoteSourceControl", "location": "https://example.com/apple/swift-log.git",
     "state": {"revision": "a" * 40, "version": "1.6.3"}},
    {"identity": "grdb.swift", "kind": "remoteSourceControl", "location": "https://example.com/groue/GRDB.swift",
     "state": {"revision": "b" * 40, "version": "7.10.0"}}]}


def sbom(*arguments: str | Path, status: int = 0) -> Any:
    answer = subprocess.run(
        [REPOSITORY / "scripts" / "sbom", *arguments], capture_output=True, text=True, timeout=60,
        env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": "0"})
    assert answer.returncode == status, answer
    return json.loads(answer.stdout) if status == 0 else answer.stderr


def test_sbom_has_each_dependency_once(tmp_path: Path) -> None:
    resolved, packages = tmp_path / "Package.resolved", tmp_path / "packages.tsv"
    resolved.write_text(json.dumps(PINS))
    packages.write_text("libpq5\t15.18-0+deb12u1\tamd64\nlibstdc++6\t12.2.0-14\tamd64\n")
    made = sbom("--resolved", resolved, "--packages", packages)
    assert {one["purl"]: (one["name"], one["version"]) for one in made["components"]} == {
        "pkg:deb/debian/libpq5@15.18-0%2Bdeb12u1?arch=amd64": ("libpq5", "15.18-0+deb12u1"),
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64": ("libstdc++6", "12.2.0-14"),
        "pkg:swift/example.com/apple/swift-log@1.6.3": ("swift-log", "1.6.3"),
        "pkg:swift/example.com/groue/GRDB.swift@7.10.0": ("GRDB.swift", "7.10.0")}
    assert len(made["components"]) == 4
    root = made["metadata"]["component"]
    assert root["version"] == (REPOSITORY / "VERSION").read_text().strip()
    [needs] = made["dependencies"]
    assert needs["ref"] == root["bom-ref"] and needs["dependsOn"] == sorted(one["bom-ref"] for one in made["components"])
    assert made["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"
    assert made == sbom("--resolved", resolved, "--packages", packages)


def test_sbom_names_every_package_of_the_package_and_the_image(tmp_path: Path) -> None:
    """Of this build, where there is one, and of this machine."""
    resolved = REPOSITORY / "Package.resolved"
    if not resolved.exists():
        resolved = tmp_path / "Package.resolved"
        resolved.write_text(json.dumps(PINS))
    names = {one["name"].lower() for one in sbom("--resolved", resolved)["components"]}
    [installed] = re.findall(r"librdkafka1 [^\n\\]*|ca-certificates [^\n\\]*", (REPOSITORY / "Dockerfile").read_text())
    assert set(installed.split()) <= names and "libssl3" in names
    pins = [Path(pin["location"].removesuffix(".git")).name.lower() for pin in json.loads(resolved.read_text())["pins"]]
    assert set(pins) <= names


def test_sbom_says_what_is_missing(tmp_path: Path) -> None:
    assert "No such file" in sbom("--resolved", tmp_path / "nothing", "--packages", tmp_path / "nothing", status=1)
