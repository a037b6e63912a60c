# SPDX-License-Identifier: Apache-2.0
"""Tables (Markdown) and plots (SVG) of what scripts/bench measured."""

import json
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

Run = dict[str, Any]
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
#: Of its processes: those for connections, and the others.
POSTGRESQL = ("PostgreSQL's backends", "PostgreSQL's others")
#: What PostgreSQL's processes use is nothing where there is no PostgreSQL.
EMPTY = "PostgreSQL's"


def report(path: Path) -> None:
    """Prints a table for each kind of measurement; of a comparison draws plots beside the file."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    good = [run for run in runs if not run["problems"]]
    print(machine(runs))
    contended = [run for run in runs if ": " in run["title"]]
    for subject in dict.fromkeys(run["subject"] for run in contended):
        of_subject = [run for run in contended if run["subject"] == subject]
        compared(of_subject)
        plot([run for run in of_subject if run in good], path.with_name(f"{path.stem}-{subject}.svg"))
    runs = [run for run in runs if run not in contended]
    for title in dict.fromkeys(run["title"] for run in runs):
        measured([run for run in good if run["title"] == title], title)
        bad = [run for run in runs if run["title"] == title and run["problems"]]
        for run in bad:
            print(f"Round {run['round'] + 1} on {run['engine']} does not count: {problem(run)}\n")


def problem(run: Run) -> str:
    """The first line of the first."""
    return str(run["problems"][0]).splitlines()[0].replace("|", "/")


def machine(runs: list[Run]) -> str:
    kinds = dict.fromkeys(
        f"{run['machine']['cores']} cores of {run['machine']['cpu']}, Linux {run['machine']['kernel']}" for run in runs)
    loads = [float(run["machine"]["load"]) for run in runs]
    rounds = max((run["round"] for run in runs), default=-1) + 1
    text = f"Machine: {'; '.join(kinds)}. {rounds} rounds; load before a measurement {min(loads)} to {max(loads)}.\n"
    for engine, setting in dict.fromkeys(
        (run["engine"], run["setting"]["durability"]) for run in runs if "durability" in run["setting"]):
        text += f"\n{engine}: {setting}.\n"
    brokers = dict.fromkeys(run["setting"]["broker"] for run in runs if "broker" in run["setting"])
    return text + (f"\nBroker: {'; '.join(brokers)}.\n" if brokers else "")


def measured(runs: list[Run], title: str) -> None:
    """A column for each engine, a row for each number."""
    engines = [engine for engine in ("sqlite", "postgresql") if any(run["engine"] == engine for run in runs)]
    settings = dict.fromkeys(
        f"{name} {run['setting'][name]}" for run in runs
        for name in ("commands", "rate", "seconds", "batch", "partitions", "connections", "remembered")
        if name in run["setting"])
    print(f"**{title}** ({', '.join(settings)})\n" if settings else f"**{title}**\n")
    rows = [["", *engines]]
    loops = [next((run["setting"]["loops"] for run in runs if run["engine"] == engine and "loops" in run["setting"]), "")
             for engine in engines]
    if any(loops):
        rows.append(["loops", *loops])
    for name in dict.fromkeys(number["name"] for run in runs for number in run["numbers"]):
        cells = []
        for engine in engines:
            found = [number for run in runs if run["engine"] == engine for number in run["numbers"]
                     if number["name"] == name]
            hidden = EMPTY in name and engine == "sqlite"
            cells.append(cell([number["value"] for number in found], found[0]["unit"]) if found and not hidden else "")
        if any(cells):
            rows.append([name, *cells])
    print(markdown(rows))


def compared(runs: list[Run]) -> None:
    """A row for each contender."""
    rows = [[
        "", "drained", "CPU for 1,000", "of PostgreSQL", "of the broker", "peak memory", "loops", "commands",
        "rounds that count",
    ]]
    for name, found in grouped(runs).items():
        good = [run for run in found if not run["problems"]]
        counted = f"{len(good)} of {len(found)}"
        if not good:
            rows.append([name, *[""] * 7, f"{counted}: {problem(found[0])}"])
            continue
        rows.append([
            name, cell(values(good, "drained"), "/s"), cell(cpu(good), "s"),
            cell(cpu(good, POSTGRESQL), "s") if good[0]["engine"] == "postgresql" else "",
            cell(cpu(good, ("broker",)), "s"),
            cell([sum(number["value"] for number in run["numbers"] if number["name"].startswith("peak memory"))
                  for run in good], "MiB"),
            good[0]["setting"].get("loops", ""), good[0]["setting"]["commands"], counted,
        ])
    for name, rates in floors(runs).items():
        costs = values([run for run in runs if not run["problems"]], f"{name}: CPU for 1,000")
        rows.append([f"C, {name}", cell(rates, "/s"), cell(costs, "s"), *[""] * 5, "decides nothing"])
    print(markdown(rows))


def grouped(runs: list[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run["title"]):
        groups.setdefault(run["title"].partition(": ")[2], []).append(run)
    return groups


def floors(runs: list[Run]) -> dict[str, list[float]]:
    """What the C program did beside IdentityBus on PostgreSQL."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if run["engine"] != "postgresql" or run["problems"]:
            continue
        for number in run["numbers"]:
            if number["name"].startswith("alone, ") and "CPU" not in number["name"] and "store:" not in number["name"]:
                found.setdefault(number["name"], []).append(number["value"])
    return found


def values(runs: list[Run], name: str) -> list[float]:
    return [number["value"] for run in runs for number in run["numbers"] if number["name"] == name]


def cpu(runs: list[Run], whose: tuple[str, ...] | None = None) -> list[float]:
    """For 1,000 commands, of those around the services or, without names, of the processes that do the work."""
    return [
        sum(number["value"] for number in run["numbers"] if number["name"].startswith("CPU for 1,000: ")
            and number["name"].endswith(whose or (*POSTGRESQL, "broker")) == (whose is not None))
        for run in runs
    ]


def cell(found: list[float], unit: str) -> str:
    """The median, and in brackets the lowest and the highest."""
    if not found:
        return ""
    text = shown(median(found))
    if len(found) > 1 and shown(min(found)) != shown(max(found)):
        text += f" ({shown(min(found))} to {shown(max(found))})"
    return f"{text} {unit}".strip() if unit != "/s" else f"{text}/s" if "(" not in text else text.replace(" (", "/s (", 1)


def shown(number: float) -> str:
    if number == int(number) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


# Plots


def plot(runs: list[Run], path: Path) -> None:
    """Bars of what was drained and of what it cost, each with its range. What decides nothing would dwarf them."""
    groups = grouped(runs)
    if not groups:
        return
    parts = [
        ("commands/s", {name: values(found, "drained") for name, found in groups.items()}),
        ("seconds of CPU for 1,000 commands, PostgreSQL included",
         {name: [own + store for own, store in zip(cpu(found), cpu(found, POSTGRESQL), strict=True)]
          for name, found in groups.items()}),
    ]
    lines: list[str] = []
    y = 0
    for title, bars in parts:
        y += 30
        lines.append(f'<text x="10" y="{y}" font-weight="bold">{escape(title)}</text>')
        top = max(max(found) for found in bars.values() if found)
        for name, found in bars.items():
            if not found:
                continue
            y += 26
            scale = 330 / top
            middle = median(found)
            lines.append(f'<text x="300" y="{y}" text-anchor="end">{escape(name)}</text>')
            lines.append(f'<rect x="310" y="{y - 13}" width="{max(1, middle * scale):.1f}" height="17" fill="#4a7aa7"/>')
            lines.append(
                f'<path d="M{310 + min(found) * scale:.1f} {y - 4.5} H{310 + max(found) * scale:.1f}" stroke="#222"/>')
            lines.append(f'<text x="{318 + max(found) * scale:.1f}" y="{y}">{shown(middle)}</text>')
        y += 14
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {y + 10}" font-family="sans-serif" font-size="13">\n'
        f'<rect width="720" height="{y + 10}" fill="#fff"/>\n' + "\n".join(lines) + "\n</svg>\n")
    print(f"plot: {path}\n")
