# SPDX-License-Identifier: Apache-2.0
"""What noise cannot touch: blocks taken from the heap and instructions run for one more command.

Each service drains a topic twice, the second time with more commands; the difference is what the commands take, and
whatever happens once is gone. Counted in the services' own executables, all threads, with SQLite and the embedded
broker: blocks by Benchmarks/counts.c, instructions by valgrind's cachegrind. counts.json holds what is right; more
than that by 5 % fails. Instructions depend on the C library's and the processor's ways to copy and hash: a baseline is
good for one image and kind of machine.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).with_name("counts.json")
#: Subject of the benchmark, and the command that it is known by.
COMMANDS = {
    "link": "link.request", "user": "user.create", "sync": "sync.identify", "login": "verification.login",
    "check": "verification.check",
}
ALLOWED = 1.05
#: Commands in the topic, the first and the second time. Of sagas fewer: each is several commands.
SIZES = {"link": (500, 2000), "sync": (500, 2000), "check": (500, 2000), "user": (200, 800), "login": (200, 800)}
#: What a service does whether there are commands or not is kept low: under valgrind, time is long.
QUIET = {
    "BATCH_SIZE": "250", "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "2000", "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "10000",
    "KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "60000",
}


def run(measure: Callable[..., dict[str, Any]], options: argparse.Namespace) -> bool:
    """:returns: whether nothing takes more than it may."""
    found = {
        name: count(measure, subject, options)
        for subject, name in COMMANDS.items() if options.subject in (None, subject)
    }
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    is_right = True
    print("| for one command | counted | baseline | |\n|---|---|---|---|")
    for name, counted in found.items():
        for what, value in counted.items():
            right = known.get(name, {}).get(what)
            verdict = ""
            if right is None:
                verdict, is_right = "no baseline", False
            elif value > right * ALLOWED:
                verdict, is_right = f"{value / right - 1:+.1%}: too many", False
            elif value < right / ALLOWED:
                verdict = f"{value / right - 1:+.1%}: lower the baseline (scripts/bench counts --update)"
            print(f"| {name}, {what} | {value:,.0f} | {'' if right is None else f'{right:,.0f}'} | {verdict} |")
    if options.update:
        BASELINE.write_text(json.dumps(known | found, indent=2) + "\n")
        return True
    return is_right


def count(measure: Callable[..., dict[str, Any]], subject: str, options: argparse.Namespace) -> dict[str, int]:
    """What one command more takes."""
    # Valgrind gives up on the debug information of Swift's executables.
    stripped: Path = options.work / "stripped"
    if not stripped.exists():
        stripped.mkdir()
        for service in ("link", "user", "sync", "verification"):
            name = f"identitybus-{service}"
            subprocess.run(["strip", "-g", "-o", stripped / name, options.binaries / name], check=True)
    wrapper = (
        f"/usr/bin/env LD_PRELOAD={options.counts} ALLOCATIONS={options.work}/allocations valgrind --tool=cachegrind "
        f"--cache-sim=no --cachegrind-out-file=/dev/null --log-file={options.work}/valgrind.%p")
    totals = []
    sizes = SIZES[subject]
    for size in sizes:
        measured = measure(
            f"{subject}, {size:,} commands", subject, "drain", "sqlite", "--commands", size, "--wrapper", wrapper,
            environment=QUIET, binaries=stripped)
        if measured["problems"]:
            raise SystemExit(1)
        totals.append(totals_of(options.work))
    return {name: round((totals[1][name] - totals[0][name]) / (sizes[1] - sizes[0])) for name in totals[0]}


def totals_of(work: Path) -> dict[str, int]:
    """What the processes told at their end, which is forgotten then."""
    file = work / "allocations"
    blocks = sum(int(line.split()[-1]) for line in file.read_text().splitlines())
    file.unlink()
    instructions = 0
    for log in work.glob("valgrind.*"):
        found = re.findall(r"I\s+refs:\s+([\d,]+)", log.read_text())
        instructions += sum(int(text.replace(",", "")) for text in found)
        log.unlink()
    return {"allocations": blocks, "instructions": instructions}
