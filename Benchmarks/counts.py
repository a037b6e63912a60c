# SPDX-License-Identifier: Apache-2.0
"""What noise cannot touch: blocks taken from the heap and instructions run for one more command.

Each service drains a topic twice, the second time with more commands; the difference is what the commands take, and
whatever happens once is gone. Counted in the services' own executables, with SQLite and the embedded broker: blocks of the
loop's thread by Benchmarks/counts.c, instructions of all threads by valgrind's cachegrind. counts.json holds what is right; more
than that by 5 % fails, of a saga by 30 %. Instructions depend on the C library's and the processor's ways
to copy and hash: a baseline is good for one image and kind of machine.

Of a debug build (--debug) only blocks are counted. They are several times those of a release, and valgrind would take
minutes for what the optimiser leaves out anyway.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).with_name("counts.json")
#: Subject of the benchmark, and the command that it is known by.
COMMANDS = {
    "link": "link.request", "user": "user.create", "sync": "sync.identify", "login": "verification.login",
    "check": "verification.check",
}
ALLOWED = 1.05
#: A saga's batches are as large as its services' turns fall: on a machine that was busy with other work its commands took
#: 15 to 21 % more in a debug build, and in a release 16 % less.
ALLOWED_OF_SAGAS = {"user.create": 1.3, "verification.login": 1.3}
#: Commands in the topic, the first and the second time. Of sagas fewer: each is several commands.
SIZES = {"link": (500, 2000), "sync": (500, 2000), "check": (500, 2000), "user": (200, 800), "login": (200, 800)}
#: Without valgrind there is time for more, and how the batches fall matters less.
DEBUG_SIZES = SIZES | {"link": (1000, 6000), "sync": (1000, 6000), "check": (1000, 6000)}
#: What a service does whether there are commands or not is kept low.
QUIET = {"BATCH_SIZE": "250", "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "2000"}
#: Under valgrind, time is long. (The embedded broker makes the second member of a group wait for nearly a session.)
SLOW = QUIET | {
    "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "10000", "KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "60000",
}


def run(measure: Callable[..., dict[str, Any]], options: argparse.Namespace) -> bool:
    """:returns: whether nothing takes more than it may."""
    wanted = {subject: name for subject, name in COMMANDS.items() if options.subject in (None, subject)}
    # Services that are kept quiet wait for most of the time, all at once here; under valgrind they work.
    with ThreadPoolExecutor(len(wanted) if options.debug else 1) as jobs:
        counts = jobs.map(lambda subject: count(measure, subject, options), wanted)
        found = dict(zip(wanted.values(), counts))
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    is_right = True
    print("| for one command | counted | baseline | |\n|---|---|---|---|")
    for name, counted in found.items():
        allowed = ALLOWED_OF_SAGAS.get(name, ALLOWED)
        for what, value in counted.items():
            right = known.get(name, {}).get(what)
            verdict = ""
            if right is None:
                verdict, is_right = "no baseline", False
            elif value > right * allowed:
                verdict, is_right = f"{value / right - 1:+.1%}: too many", False
            elif value < right / allowed:
                verdict = f"{value / right - 1:+.1%}: lower the baseline (scripts/bench counts --update)"
            print(f"| {name}, {what} | {value:,.0f} | {'' if right is None else f'{right:,.0f}'} | {verdict} |")
    if options.update:
        for name, counted in found.items():
            known[name] = known.get(name, {}) | counted
        BASELINE.write_text(json.dumps(known, indent=2) + "\n")
        return True
    return is_right


def count(measure: Callable[..., dict[str, Any]], subject: str, options: argparse.Namespace) -> dict[str, int]:
    """What one command more takes."""
    work: Path = options.work / subject
    work.mkdir(exist_ok=True)
    wrapper = f"/usr/bin/env LD_PRELOAD={options.counts} ALLOCATIONS={work}/allocations"
    binaries: Path = options.binaries
    if not options.debug:
        wrapper += (
            f" valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "
            f"--log-file={work}/valgrind.%p")
        binaries = stripped(options)
    totals = []
    sizes = (DEBUG_SIZES if options.debug else SIZES)[subject]
    for size in sizes:
        measured = measure(
            f"{subject}, {size:,} commands", subject, "drain", "sqlite", "--commands", size, "--wrapper", wrapper,
            environment=QUIET if options.debug else SLOW, binaries=binaries)
        if measured["problems"]:
            raise SystemExit(1)
        totals.append(totals_of(work, options.debug))
    return {name: round((totals[1][name] - totals[0][name]) / (sizes[1] - sizes[0])) for name in totals[0]}


def stripped(options: argparse.Namespace) -> Path:
    """The services without their debug information, on which valgrind gives up."""
    folder: Path = options.work / "stripped"
    if not folder.exists():
        folder.mkdir()
        for service in ("link", "user", "sync", "verification"):
            name = f"identitybus-{service}"
            subprocess.run(["strip", "-g", "-o", folder / name, options.binaries / name], check=True)
        (folder / "identitybus-bench").symlink_to(options.binaries / "identitybus-bench")
    return folder


def totals_of(work: Path, is_debug: bool) -> dict[str, int]:
    """What the processes told at their end, which is forgotten then."""
    file = work / "allocations"
    blocks = sum(int(line.split()[-1]) for line in file.read_text().splitlines())
    file.unlink()
    if is_debug:
        return {"allocations, debug": blocks}
    instructions = 0
    for log in work.glob("valgrind.*"):
        found = re.findall(r"I\s+refs:\s+([\d,]+)", log.read_text())
        instructions += sum(int(text.replace(",", "")) for text in found)
        log.unlink()
    return {"allocations": blocks, "instructions": instructions}
