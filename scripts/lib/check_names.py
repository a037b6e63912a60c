# SPDX-License-Identifier: Apache-2.0
"""Compares the names on pages with those of the code, both ways: members, tables, types, tests, reasons, environment
variables, members of the apps file, metrics, events of the log, commands of `identitybus`. Run by check_docs.py."""

import re
from pathlib import Path

from pages import CODE, DOCS, ROOT, TESTS, fault, files, is_test, literals, page_lines, ticked, words

CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")  # a variable of the environment, or a reason
# Pages of what the product says and reads name only what is in the product; others also what tests and scripts have.
STRICT = {"contracts", "link", "user", "sync", "verification", "gateway", "operations", "vendors", "README"}
FOREIGN = {"CLUSTER_ID", "return_matches", "SdkStatus"}  # names of others


def check_names() -> None:
    """What looks like a name of the code (`commandDigest`, `set_aside`, `ID_REUSED`) is one."""
    def found(*paths: Path) -> set[str]:
        return {
            name for path in paths if path.is_file() for name in [path.stem, *re.findall(r"\w+", path.read_text())]}

    product = found(*CODE, ROOT / "config" / "apps.yaml")
    rest = found(
        *TESTS, *(path for path in (ROOT / "scripts").rglob("*") if path.suffix != ".pyc"),
        *files("Benchmarks", ".swift", ".py", ".c"),
        *(ROOT / "docs" / "model").iterdir(), *files("deploy", ".yaml"), ROOT / "docker-compose.yml", ROOT / "Dockerfile",
        ROOT / "Package.swift")
    for page in DOCS:
        for number, code in ticked(page):
            for name in re.findall(r"(?<![\w$])[A-Za-z]\w*(?![\w*])", re.sub(r"(?:Tests|docs)/\S+", "", code)):
                if not re.search("[a-z][A-Z]|[A-Za-z]_[A-Za-z]", name) or name in FOREIGN:
                    continue
                if product & {name, re.sub("_(?:total|seconds)$", "", name)}:
                    continue
                if page.stem in STRICT and page.parent.name != "model" or name not in rest and not is_test(name):
                    fault(page, number, f"{name} is not in the code")


def check_capitals() -> None:
    """Every reason and variable of the code stands on a page; librdkafka's settings are its own."""
    told = FOREIGN | set(re.findall(r"\w+", (ROOT / "docs" / "openapi.json").read_text()))
    told |= {name for page in DOCS for name in words(page)}
    for path, number, text in literals():
        if CAPITALS.fullmatch(text) and not re.match("KAFKA_(?:CONSUMER|PRODUCER)_", text):
            if text not in told and text.removesuffix("_FILE") not in told:
                fault(path, number, f"{text} stands on no page of docs")


def check_variables() -> None:
    """Every variable has one row in a table that begins with `variable`, and stands in the list of settings; the code reads
    no other. What the rows say is compared by Tests/EndToEnd/test_settings.py."""
    rows: dict[str, tuple[Path, int]] = {}
    for page in DOCS:
        is_table = False
        for number, line in page_lines(page):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            is_table = line.startswith("|") and (is_table or cells[0] == "variable")
            for name in re.findall(r"`([A-Z_*]+)`", cells[0]) if is_table else ():
                if name in rows:
                    fault(page, number, f"{name} has a row on {rows[name][0].name} already")
                rows[name] = (page, number)
    path = ROOT / "Shared" / "Runtime" / "Configuration" / "SettingsList.swift"
    source = path.read_text()
    listed = {match[1]: match.start() for match in re.finditer(r'Setting\(\s*"([A-Z_*]+)"', source)}
    for name, start in listed.items():
        if name not in rows:
            fault(path, source[:start].count("\n") + 1, f"{name} has no row in a table of variables")
    for name in sorted(set(rows) - set(listed)):
        fault(*rows[name], f"{name} is no setting of {path.name}")
    check_readers(listed)


def check_readers(listed: dict[str, int]) -> None:
    """What the code reads is listed, and what is listed is read: by its name, or by the constant that holds it."""
    path = ROOT / "Shared" / "Runtime" / "Configuration" / "SettingsList.swift"
    source = path.read_text()
    constants = dict(re.findall(r'static let (\w+) = Setting\(\s*"([A-Z_]+)"', source))
    read: set[str] = set()
    for other in CODE:
        if other == path:
            continue
        text = other.read_text()
        read |= {constants[name] for name in re.findall(r"\.(\w+)\b", text) if name in constants}
        read |= set(re.findall(r'"([A-Z_]+)"', text))
        for match in re.finditer(
                r'(?:(?:text|secret|choice|tellParent)\(|environment\[|set\[|getenv\(|Variable = |ariable: )\s*"([A-Z_]+)"', text):
            name = match[1] if match[1] in listed else match[1].removesuffix("_FILE")
            if name not in listed and not any(name.startswith(family[:-1]) for family in listed if family.endswith("*")):
                fault(other, text[:match.start()].count("\n") + 1, f"{name} is not in {path.name}")
    for name in sorted(set(listed) - read):
        if not name.endswith("*"):
            fault(path, source[:listed[name]].count("\n") + 1, f"nothing reads {name}")


def check_apps_file() -> None:
    """Every member stands in a page's "Settings in the apps file", on the gateway's page or in the demo file."""
    told = set(re.findall(r"\w+", (ROOT / "config" / "apps.yaml").read_text())) | words(ROOT / "docs" / "gateway.md")
    for page in DOCS:
        section = page.read_text().partition("\n## Settings in the apps file\n")[2].partition("\n## ")[0]
        told.update(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section))))
    for path in files("Shared/Apps", ".swift"):
        source = path.read_text()
        for block in re.finditer(r"enum CodingKeys[^{]*\{([^}]*)\}", source):
            for member in re.findall(r"\w+", re.sub(r"\bcase\b", "", block[1])):
                if member not in told:
                    fault(path, source[:block.start()].count("\n") + 1, f"the member {member} stands on no page of docs")


def check_metrics() -> None:
    form = re.compile(r"(?:identity|kafka|gateway|process|log|metrics)_[a-z_]*[a-z]")
    code: dict[str, tuple[Path, int]] = {}
    for path, number, text in literals():
        measures = "Metrics" in path.parts or re.search("import (?:Core)?Metrics", path.read_text())
        if measures and form.fullmatch(text):
            code.setdefault(re.sub("_(?:total|seconds)$", "", text), (path, number))
    told = set()
    for page in DOCS:
        in_table = False
        for number, line in page_lines(page):
            in_table = line.startswith("| metric |") or in_table and line.startswith("|")
            for text in re.findall(r"`([^`]+)`", line.split(" | ")[0] if in_table else line):
                name = re.sub(r"(?:_seconds)?(?:_total)?(?:\{.*\})?$", "", text)
                if name in code:
                    told.add(name)
                elif form.fullmatch(name) and (in_table or name != text):
                    fault(page, number, f"there is no metric {text}")
    for name, place in code.items():
        if name not in told and not name.startswith("process_"):
            fault(*place, f"the metric {name} stands on no page of docs")


def check_events() -> None:
    """What the log's lines are called stands on the page of operations."""
    told = {code for _, code in ticked(ROOT / "docs" / "operations.md")}
    for path in CODE:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r'"?event"?: "([a-z]+(?:[.-][a-z]+)+)"', line):
                if name not in told:
                    fault(path, number, f"the event {name} is not in docs/operations.md")


def check_commands() -> None:
    commands = {
        name for path in files("Services/CLI", ".swift")
        for name in re.findall(r'commandName: "([^"]+)"', path.read_text())}
    call = re.compile(r"(?:(?<=\$ )|(?<=/)|(?<=^    )|(?<=… )|(?<=[^|] `)|(?<=exec link ))identitybus ([a-z][a-z-]*)")
    for path in DOCS + [ROOT / "docker-compose.yml"]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in call.findall(line):
                if name not in commands:
                    fault(path, number, f"there is no command identitybus {name}")


def check_all() -> None:
    check_names()
    check_capitals()
    check_variables()
    check_apps_file()
    check_metrics()
    check_events()
    check_commands()
