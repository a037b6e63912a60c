# SPDX-License-Identifier: Apache-2.0
"""Compares what stands twice: the pages in docs with the code, the tests and the golden files.

    scripts/lib/check_docs.py

- Rules (L5, U12, S3, V7 on the services' pages, F9 on vendors.md) are defined once, and every one that is cited exists.
- Every member and type of a golden file stands on its service's page; the README's replies have the members of today.
- Links, files and tests that a page names exist. So do files that comments name: nothing outside the repository is cited.
- Members, types and tests that pages name in code style exist.
- Settings: every environment variable that the code reads has one row of a table, with its default and range. Variables,
  reasons, metrics and commands of `identitybus` that pages name are the code's, and the code's stand on a page.
- Every service has its page, and the command line knows it. The README's picture has who talks to whom (check_picture.py).
- Functions, files and types are small (check_limits.py).
- Modules import only from floors below their own (CONTRIBUTING.md), and packages are used where dependencies.md says.

Every rule of a service is cited by its code and by a test, every fact of a vendor by anything.
Every fault is one line, file:line: what is wrong. The exit status says whether there was one.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

sys.dont_write_bytecode = True

import check_limits
import check_names
import check_picture
from pages import CODE, DOCS, ROOT, TESTS, fault, faults, files, is_test, page_lines, read, words

RULE_PAGES = {"L": "link", "U": "user", "S": "sync", "V": "verification", "F": "vendors"}
RULE = re.compile(r"(?<![\w+./-])([LUSVF]\d{1,3}[a-z]?)(?: to ([LUSVF]\d{1,3}[a-z]?))?(?![\w/-])")
DEFINITION = re.compile(r"^(?:- \*\*|\| )([LUSVF]\d{1,3}[a-z]?)(?:\*\*| \|)")
# What was written before the rules had numbers, and pages of others that are not here.
OUTSIDE = re.compile(r"\bseeds? 00\d|\bfacts [A-D]\d|\b[Tt]ables? [A-D]\d|\brows? of A\d|\bpeers?'? bug", re.ASCII)
PAGE = re.compile(r"(?<![\w@.:/-])((?:[\w-]+/)*[\w-]+\.md)\b")
PLACE = re.compile(r"(?<![\w./<-])((?:Services|Shared|Tests|Benchmarks|docs|scripts|config|\.ci)/[\w./-]*\w)"
                   r"(?![\w<*{]|/[<*{])")
MODULES = {
    "swift-argument-parser": {"ArgumentParser"}, "swift-configuration": {"Configuration"}, "swift-crypto": {"Crypto"},
    "swift-log": {"Logging"}, "swift-metrics": {"CoreMetrics", "Metrics"}, "GRDB.swift": {"GRDB", "GRDBSQLite"},
    "hummingbird": {"Hummingbird", "HummingbirdCore", "HummingbirdTLS"}, "jwt-kit": {"JWTKit"}, "Yams": {"Yams"},
    "swift-service-lifecycle": {"ServiceLifecycle", "UnixSignals"},
}
SWIFT_FILES = {"Package.swift"} | {
    path.name for folder in ("Services", "Shared", "Tests", "Benchmarks") for path in files(folder, ".swift")}


# Rules


def defined_rules() -> dict[str, tuple[Path, int]]:
    rules: dict[str, tuple[Path, int]] = {}
    for letter, name in RULE_PAGES.items():
        page = ROOT / "docs" / f"{name}.md"
        for number, line in page_lines(page):
            match = DEFINITION.match(line)
            if not match:
                continue
            rule = match[1]
            if rule[0] != letter:
                fault(page, number, f"{rule} is a rule of another page")
            elif rule in rules:
                fault(page, number, f"{rule} is defined twice")
            else:
                rules[rule] = (page, number)
    return rules


def cited_in(text: str, order: list[str]) -> Iterator[str]:
    if text.startswith("\0"):  # a text of the code: only what it begins with
        match = re.match(r"\0([LUSVF]\d{1,3}[a-z]?)(?=[ ,:]|$)", text)
        if match and match[1] in order:
            yield match[1]
        return
    for match in RULE.finditer(re.sub(r"`[^`]*`", "", text)):
        first, last = match[1], match[2]
        if last and first in order and last in order:
            yield from order[order.index(first):order.index(last) + 1]
        else:
            yield from filter(None, (first, last))


def check_rules(rules: dict[str, tuple[Path, int]]) -> None:
    order = list(rules)
    cited: dict[str, set[str]] = {rule: set() for rule in rules}
    for kind, paths in (("code", CODE), ("a test", TESTS), ("a page", DOCS)):
        for path in paths:
            for number, text in read(path):
                defines = DEFINITION.match(text) if kind == "a page" else None
                for rule in cited_in(text, order):
                    if rule not in cited:
                        fault(path, number, f"there is no rule {rule} on docs/{RULE_PAGES[rule[0]]}.md")
                    elif not defines or defines[1] != rule:
                        cited[rule].add(kind)
    for rule, kinds in cited.items():
        missing = {"code", "a test"} - kinds if rule[0] != "F" else ({"anything"} if not kinds else set())
        for kind in sorted(missing):
            fault(*rules[rule], f"{rule} is not cited by {kind}")


# Golden files


def members(value: object, below: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name != "configuration":  # whatever the app wants
                yield from members(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner, below)


def check_members() -> None:
    golden = {path: json.loads(path.read_text()) for path in files("Tests/ContractsTests/Golden", ".json")}
    results: dict[str, set[str]] = {}
    contracts = words(ROOT / "docs" / "contracts.md") | words(ROOT / "docs" / "reference.md")
    for path, envelope in golden.items():
        data, kind = envelope["data"], envelope["type"]
        general = set(envelope) - {"data"}
        if kind == "identity.reply.v1":
            kind = data["commandType"]
            general |= set(data)
            data = data.get("result", {})
            results.setdefault(kind, set()).update(data)
        for name in sorted(general - contracts):
            fault(path, 1, f"docs/contracts.md and reference.md do not have the member {name}")
        page = ROOT / "docs" / f"{kind.split('.')[1]}.md"
        if not page.exists():  # what every service tells
            page = ROOT / "docs" / "contracts.md"
        short = kind.removeprefix("identity.").removesuffix(".v1")
        lines = [text for text in page.read_text().splitlines() if short in text]
        if not lines:
            fault(path, 1, f"{page.relative_to(ROOT)} does not have the type {short}")
        # A form that several pages share stands on the one that the type's own line links to.
        linked = {name for text in lines for name in re.findall(r"\]\((\w+)\.md#", text)}
        linked |= {"reference"} if "contracts" in linked else set()
        described = words(page).union(*(words(ROOT / "docs" / f"{name}.md") for name in linked))
        for name in sorted(set(members(data)) - described):
            fault(path, 1, f"{page.relative_to(ROOT)} does not have the member {name}")
    readme = ROOT / "README.md"
    for number, line in enumerate(readme.read_text().splitlines(), 1):
        if not line.startswith('{"specversion"'):
            continue
        reply = json.loads(line)["data"]
        shown, real = set(reply["result"]), results.get(reply["commandType"], set())
        if shown != real or "commandDigest" not in reply:
            fault(readme, number, f"the reply has {sorted(shown)}; the golden files have {sorted(real)}, and a commandDigest")


# Links and names


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    return {slug(line.lstrip("#").strip()) for _, line in page_lines(page) if line.startswith("#")}


def check_links() -> None:
    for page in DOCS:
        for number, line in page_lines(page):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"\w+:", target):
                    continue
                place, _, anchor = unquote(target).partition("#")
                file = (page.parent / place).resolve() if place else page
                if not file.exists():
                    fault(page, number, f"{place} does not exist")
                elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                    fault(page, number, f"{place or page.name} has no heading #{anchor}")
            for name in re.findall(r"`([\w+]+\.swift)`", line):
                if name not in SWIFT_FILES:
                    fault(page, number, f"there is no file {name}")


def check_outside(paths: list[Path]) -> None:
    for path in paths:
        for number, text in read(path):
            if text.startswith("\0") or path.name == "seeds.md":
                continue
            for match in OUTSIDE.finditer(text):
                fault(path, number, f"“{match[0]}” is outside the repository: cite a rule of docs")
            for name in PAGE.findall(text):
                if path.suffix != ".md" or "/" in name:
                    places = (ROOT / name, ROOT / "docs" / name, path.parent / name)
                    page = next((place for place in places if place.exists()), None)
                    if not page:
                        fault(path, number, f"{name} is not in the repository")
                    for heading in re.findall(rf'{re.escape(name)}\)?,? "([^"]+)"', text) if page else ():
                        if slug(heading) not in anchors(page):
                            fault(path, number, f"{name} has no heading “{heading}”")
            for name in PLACE.findall(text):
                if not any(ROOT.glob(f"{name}*" if text[text.index(name) + len(name):].startswith("…") else name)):
                    fault(path, number, f"{name} does not exist")


def check_tests_named() -> None:
    """Tables whose last column says `shown by`, `test` or `tested` name files of tests, or functions in them."""
    for page in DOCS:
        column = False
        for number, line in page_lines(page):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                column = False
            elif cells[-1] in ("shown by", "test", "tested by"):
                column = True
            elif column:
                for name in re.findall(r"`([A-Za-z]\w+)`", cells[-1]):
                    if not is_test(name) and not name.isupper():
                        fault(page, number, f"there is no test {name}")


# Modules and packages


def check_services() -> None:
    """Every service has a page, and the command line knows it."""
    known = ROOT / "Services" / "CLI" / "Supervision" / "Services.swift"
    for folder in sorted(path for path in (ROOT / "Services").iterdir() if path.is_dir() and path.name != "CLI"):
        if not (ROOT / "docs" / f"{folder.name.lower()}.md").exists():
            fault(folder, 1, f"docs/{folder.name.lower()}.md does not exist")
        for path in folder.glob("*.swift"):
            for name in re.findall(r"struct (\w+): CommandService\b", path.read_text()):
                if f"{name}.self" not in known.read_text():
                    fault(path, 1, f"{name} is not in {known.relative_to(ROOT)}: is it in `services` of Package.swift?")


def imports() -> dict[str, dict[str, tuple[Path, int]]]:
    """What each folder of Shared and Services imports, and where first."""
    found: dict[str, dict[str, tuple[Path, int]]] = {}
    for path in CODE:
        module = found.setdefault(path.relative_to(ROOT).parts[1], {})
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"(?:@\w+ )?(?:public |package |internal |private )?import (?:\w+ )?(\w+)", line)
            if match:
                module.setdefault(match[1], (path, number))
    return found


def check_floors(found: dict[str, dict[str, tuple[Path, int]]]) -> None:
    page = ROOT / "CONTRIBUTING.md"
    floors: dict[str, int] = {}
    for number, line in page_lines(page):
        if match := re.match(r"\| (\d) \| ([\w, ]+) \|", line):
            floors |= {name: int(match[1]) for name in match[2].split(", ")}
    services = floors.pop("every folder of Services but CLI", 99)
    for folder in sorted({path.relative_to(ROOT).parts[1] for path in files("Services", ".swift")} - set(floors)):
        floors[folder] = services
    for module in sorted(set(found) - set(floors)):
        fault(page, 1, f"the module {module} is on no floor")
    for module in sorted(set(floors) - set(found)):
        fault(page, 1, f"there is no module {module}")
    for module, seen in found.items():
        for other, (path, number) in seen.items():
            if other != module and other in floors and floors[other] >= floors.get(module, 99):
                fault(path, number, f"{module} must not import {other}: see the floors in CONTRIBUTING.md")


def check_packages(found: dict[str, dict[str, tuple[Path, int]]]) -> None:
    page = ROOT / "docs" / "dependencies.md"
    for number, line in page_lines(page):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        package = re.sub(r" \(.*\)", "", cells[0])
        if package in MODULES and len(cells) > 1:
            real = {module for module, seen in found.items() if MODULES[package] & set(seen)}
            if real != set(cells[1].split(", ")):
                fault(page, number, f"{package} is used by {', '.join(sorted(real)) or 'nothing'}")


def main() -> int:
    check_rules(defined_rules())
    check_members()
    check_links()
    check_outside(DOCS + CODE + TESTS)
    check_tests_named()
    check_names.check_all()
    check_picture.check_picture()
    check_services()
    found = imports()
    check_floors(found)
    check_packages(found)
    check_limits.check_limits()
    print("\n".join(dict.fromkeys(faults)), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
