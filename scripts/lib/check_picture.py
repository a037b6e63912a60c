# SPDX-License-Identifier: Apache-2.0
"""Checks the README's Mermaid picture: that it is of the few forms that every renderer draws, and that the services in
it talk to each other as their code says. Run by check_docs.py."""

import re
from pathlib import Path

from pages import ROOT, fault

README = ROOT / "README.md"
NODE = r'(?P<{0}>[a-z]\w*)(?:\(\["[^"\[\]]+"\]\))?'
EDGE = re.compile(NODE.format("start") + r' -- "(?P<label>[A-Za-z, ]+)" --> ' + NODE.format("end") + "$")
# Names that Mermaid reads as something else.
RESERVED = {"end", "graph", "flowchart", "subgraph", "style", "class", "click", "default", "direction", "href", "call"}


def lines() -> list[tuple[int, str]]:
    """The picture's lines with their numbers in the README."""
    found: list[tuple[int, str]] = []
    inside = False
    for number, line in enumerate(README.read_text().splitlines(), 1):
        if inside and line == "```":
            return found
        if inside:
            found.append((number, line.strip()))
        inside = inside or line == "```mermaid"
    return found


def in_code() -> set[tuple[str, str, str]]:
    """Who sends what to whom: replies are listed by the service that sent the command, events by the reader."""
    talk: set[tuple[str, str, str]] = set()
    for path in sorted((ROOT / "Services").glob("*/*Service.swift")):
        source = path.read_text()
        name = re.search(r'static let name = "(\w+)"', source)
        if not name:
            continue
        for asked in re.findall(r"\.reply\(from: \[([^\]]*)\]", source):
            talk |= {(name[1], "commands", other) for other in re.findall(r'"(\w+)"', asked)}
        talk |= {(other, "events", name[1]) for other in re.findall(r'\.event\(\w+\.self, of: "(\w+)"', source)}
    return talk


def check_picture(readme: Path = README) -> None:
    picture = lines()
    if not picture or picture[0][1] != "flowchart LR":
        fault(readme, 1, "there is no Mermaid picture that begins with flowchart LR")
        return
    talk: set[tuple[str, str, str]] = set()
    depth = 0
    for number, line in picture[1:]:
        edge = EDGE.match(line)
        if re.fullmatch(r"subgraph [a-z]\w*", line):
            depth += 1
        elif line == "end" and depth:
            depth -= 1
        elif not edge:
            fault(readme, number, f"not an arrow that every renderer draws: {line}")
        elif RESERVED & {edge["start"], edge["end"]}:
            fault(readme, number, "Mermaid reads one of these names as something else")
        elif depth:
            talk |= {(edge["start"], what, edge["end"]) for what in edge["label"].split(", ")}
    if depth:
        fault(readme, picture[-1][0], "a subgraph has no end")
    for one in sorted(talk ^ in_code()):
        fault(readme, picture[0][0], f"{one[0]} → {one[1]} → {one[2]} is {'only' if one in talk else 'not'} in the picture")
