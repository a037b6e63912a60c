# SPDX-License-Identifier: Apache-2.0
"""Repeats measurements, interleaved, and makes tables of them. scripts/bench runs it when all is built.

Every measurement is a run of identitybus-bench: a deployment of its own, one line of JSON. A round has every measurement
once, so that what the machine does meanwhile meets all of them alike; a table has the median of the rounds and, in
brackets, the lowest and the highest.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import counts
import tables

HERE = Path(__file__).resolve().parent
ENGINES = ["sqlite", "postgresql"]
#: Commands a second at which the latency is measured, beside half of what can be drained.
RATES = {"link": 500, "user": 100, "sync": 500, "login": 200}

Run = dict[str, Any]


class Runner:
    """Measures and keeps what was measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.runs: list[Run] = []
        self.is_valid = True
        self.round = 0
        self.out = options.out or options.work.parent / f"{options.command}.jsonl"
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text("")
        self.environment = dict(os.environ)
        self.broker_pid = process_listening(os.environ.get("KAFKA_BOOTSTRAP_SERVERS"))

    def measure(
        self, title: str, subject: str, mode: str, engine: str, *arguments: object,
        environment: dict[str, str] | None = None, binaries: Path | None = None,
        judge: Callable[[], list[str]] = list,
    ) -> Run:
        """One measurement.

        :param title: what the measurement is called in the tables; those with one title are rounds of the same.
        :param binaries: the services' folder, if it is another one.
        :param judge: says afterwards what makes the measurement worthless.
        """
        command = [
            str((binaries or self.options.binaries) / "identitybus-bench"), subject, mode, "--engine", engine,
            "--binaries", str(binaries or self.options.binaries), "--folder", str(self.options.work),
            *(str(argument) for argument in arguments),
        ]
        if engine == "postgresql":
            command += ["--database-url", self.options.database_url]
            if self.options.postgres_pid:
                command += ["--postgres-pid", str(self.options.postgres_pid)]
        if self.broker_pid:
            command += ["--broker-pid", str(self.broker_pid)]
        start = time.monotonic()
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, env=self.environment | (environment or {}))
        try:
            run: Run = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            sys.exit(f"scripts/bench: {shlex.join(command)} ended with status {done.returncode} and said nothing")
        if not run["problems"]:
            run["problems"] = judge()
        run |= {"title": title, "round": self.round, "took": round(time.monotonic() - start, 1)}
        self.keep(run)
        return run

    def keep(self, run: Run) -> None:
        self.runs.append(run)
        with self.out.open("a") as file:
            file.write(json.dumps(run, sort_keys=True) + "\n")
        first = ", ".join(tables.cell([number["value"]], number["unit"]) for number in run["numbers"][:1])
        print(f"round {self.round + 1}, {run['title']}, {run['engine']}: {first} ({run['took']} s)", file=sys.stderr)
        for problem in run["problems"]:
            self.is_valid = False
            print(f"!   worth nothing: {problem}", file=sys.stderr)

    def rounds(self) -> Iterator[int]:
        for self.round in range(self.options.runs):
            yield self.round

    def engines(self) -> list[str]:
        """In turns the one first and the other."""
        wanted = [self.options.engine] if self.options.engine else ENGINES
        return wanted if self.round % 2 == 0 else wanted[::-1]

    def half(self, title: str, engine: str) -> int:
        """Half of what was drained in the first round: the same rate in all rounds."""
        rate = next(value(run, "drained") for run in self.runs if (run["title"], run["engine"]) == (title, engine))
        return max(1, int(rate / 2))

    def commands(self, default: int) -> int:
        return self.options.commands or default


def value(run: Run, name: str) -> float:
    return next((number["value"] for number in run["numbers"] if number["name"] == name), 0.0)


def process_listening(servers: str | None) -> int | None:
    """The process that listens on the port of the first server, where that is on this machine."""
    if not servers or shutil.which("ss") is None:
        return None
    port = servers.split(",")[0].rpartition(":")[2]
    found = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], stdout=subprocess.PIPE, text=True, check=False).stdout
    _, _, rest = found.partition("pid=")
    return int(rest.split(",")[0]) if rest else None


# What each command measures


def services(runner: Runner, subjects: dict[str, int], *, floor: bool = False) -> None:
    """Drains, the latency at the usual rate and at half of what is drained."""
    options = runner.options
    for _ in runner.rounds():
        for engine in runner.engines():
            for subject, commands in subjects.items():
                size = ["--commands", runner.commands(commands)]
                if floor:
                    size += ["--floor", options.floor]
                runner.measure(f"{subject}, drained", subject, "drain", engine, *size)
                if subject not in RATES:
                    continue
                for rate in (options.rate or RATES[subject], runner.half(f"{subject}, drained", engine)):
                    latency(runner, subject, engine, rate)


def latency(runner: Runner, subject: str, engine: str, rate: int) -> None:
    """At a rate: the usual one, or half of what is drained."""
    usual = runner.options.rate or RATES[subject]
    name = f"{rate}/s" if rate == usual else "half of what is drained"
    runner.measure(
        f"{subject}, latency at {name}", subject, "latency", engine, "--rate", rate, "--seconds",
        runner.options.seconds)


def link(runner: Runner) -> None:
    services(runner, {"link": 60_000}, floor=True)
    for _ in runner.rounds():
        runner.measure("link, single parts", "link", "parts", "sqlite")


def user(runner: Runner) -> None:
    services(runner, {"user": 10_000})
    runner.round = 0
    for engine in runner.engines():
        runner.measure("user, what creating and resetting leaves", "user", "growth", engine)


def sync(runner: Runner) -> None:
    options = runner.options
    for _ in runner.rounds():
        for engine in runner.engines():
            for profiles in (1000, options.profiles):
                runner.measure(
                    f"sync, drained, {profiles:,} profiles", "sync", "drain", engine, "--profiles", profiles,
                    "--commands", runner.commands(60_000))
            rates = (options.rate or RATES["sync"], runner.half("sync, drained, 1,000 profiles", engine))
            for name, rate in zip((f"{rates[0]}/s", "half of what is drained"), rates, strict=True):
                runner.measure(
                    f"sync, latency at {name}", "sync", "latency", engine, "--rate", rate, "--seconds", options.seconds,
                    "--profiles", min(10_000, options.profiles))


def verification(runner: Runner) -> None:
    services(runner, {"check": 30_000, "login": 20_000})
    for _ in runner.rounds():
        runner.measure("check, a token alone", "check", "parts", "sqlite")


def gateway(runner: Runner) -> None:
    options = runner.options
    for number in runner.rounds():
        for engine in runner.engines():
            runner.measure(
                "gateway, latency", "gateway", "latency", engine, "--rate", options.rate or 1000,
                "--seconds", options.seconds, "--connections", options.connections,
                *(["--http-first"] if number % 2 else []))


def steady(runner: Runner) -> None:
    """A store that has run for weeks: as much is forgotten as is decided."""
    options = runner.options
    name = f"link, {options.remembered:,} decisions remembered"
    parts = {
        f"{name}, {options.seconds} s": (
            "latency", "--rate", options.rate or 1500, "--seconds", options.seconds),
        f"{name}, drained": ("drain", "--commands", runner.commands(60_000)),
    }
    for _ in runner.rounds():
        for engine in runner.engines():
            for name, (mode, *arguments) in parts.items():
                if (options.only or "") in name:
                    runner.measure(
                        name, "link", mode, engine, *arguments, "--remembered", options.remembered,
                        environment={"JOURNAL_RETENTION_HOURS": "24"})


def facts(runner: Runner) -> None:
    """What is known of an id, in a store of millions of decisions. The store is made anew in each round."""
    options = runner.options
    for _ in runner.rounds():
        for engine in runner.engines():
            runner.measure(
                "link, facts", "link", "facts", engine, "--commands", runner.commands(3_000_000),
                "--rate", options.rate or 20, "--seconds", options.seconds)


def profile(runner: Runner) -> None:
    subject = runner.options.subject or "link"
    for _ in runner.rounds():
        for engine in runner.engines():
            runner.measure(
                f"{subject}, profile", subject, "profile", engine, "--commands", runner.commands(20_000))


# Beside others


@dataclass
class Contender:
    """Who does the work in a comparison; without more, our services as they are shipped."""

    engine: str
    #: In contenders/, what runs instead of the services.
    program: str | None = None
    #: Which part of the commands it is given: who is slow would take hours with all of them.
    part: int = 1
    #: Of the services, with PostgreSQL.
    loops: int | None = None
    #: The folder of another build's services.
    binaries: Path | None = None
    has_floor: bool = False


# What others do as well, and an oracle looks at.
JUDGED = ["link", "user"]


def contenders(subject: str, before: Path | None) -> tuple[int, dict[str, Contender]]:
    """How many commands, and who gets them.

    :param before: the folder of the executables of an earlier state, which competes then.
    """
    ours = {
        # What is measured alone leaves the disk busy: one of two that are compared must not have it before it.
        "IdentityBus, PostgreSQL": Contender("postgresql", has_floor=subject == "link" and before is None),
        "IdentityBus, PostgreSQL, two loops": Contender("postgresql", loops=2),
        "IdentityBus, SQLite": Contender("sqlite"),
    }
    if before is not None:
        ours["before, PostgreSQL"] = Contender("postgresql", binaries=before)
        ours["before, SQLite"] = Contender("sqlite", binaries=before)
    if subject not in JUDGED:
        del ours["IdentityBus, PostgreSQL, two loops"]
        return {"sync": 60_000, "login": 20_000, "check": 30_000}[subject], ours
    if subject == "link":
        return 30_000, ours | {
            "Python, batched": Contender("postgresql", "link_batched.py"),
            "Python, one by one": Contender("postgresql", "link_each.py", part=15),
        }
    return 10_000, ours | {
        "DBOS": Contender("postgresql", "user_dbos.py", part=10),
        "Temporal, development server": Contender("postgresql", "user_temporal.py", part=50),
    }


def compare(runner: Runner) -> None:
    """The same commands, broker, PostgreSQL and durability; batches of one size; in turns.

    Others do what link and user do; sync, login and check have nobody beside them but an earlier state.
    """
    options = runner.options
    subjects = [options.subject] if options.subject else JUDGED
    for _ in runner.rounds():
        for subject in subjects:
            commands, found = contenders(subject, options.before)
            names = [name for name in found if not options.only or options.only in name]
            # Who comes first changes with every round.
            turn = runner.round % max(1, len(names))
            for name in names[turn:] + names[:turn]:
                contend(runner, subject, name, found[name], runner.commands(commands))


def contend(runner: Runner, subject: str, name: str, contender: Contender, commands: int) -> None:
    """One of them, looked at by the oracle."""
    options = runner.options
    dump = Path(tempfile.mkdtemp(dir=options.work))
    arguments: list[object] = ["--commands", commands // contender.part]
    if subject in JUDGED:
        arguments += ["--dump", dump]
    if contender.program:
        python = make_contenders(options.work)
        arguments += ["--instead", f"{python} {HERE / 'contenders' / contender.program}"]
    if contender.has_floor:
        arguments += ["--floor", options.floor]
    environment = {"BATCH_SIZE": str(options.batch)}
    if contender.loops:
        environment["LOOPS"] = str(contender.loops)
    runner.measure(
        f"{subject}: {name}", subject, "drain", contender.engine, *arguments, environment=environment,
        binaries=contender.binaries,
        judge=lambda: oracle(subject, dump) if subject in JUDGED else [])
    shutil.rmtree(dump, ignore_errors=True)


def summary(runner: Runner) -> None:
    """What the first table of docs/performance.md has, in twenty minutes.

    Link beside others in as many rounds as are asked for, everything else once.
    """
    options = runner.options
    options.subject = "link"
    compare(runner)
    runner.round = 0
    for engine in runner.engines():
        for rate in (RATES["link"], runner.half(f"link: IdentityBus, {tables.NAMES[engine]}", engine)):
            latency(runner, "link", engine, rate)
        runner.measure("user, drained", "user", "drain", engine, "--commands", runner.commands(10_000))
        runner.measure("login, drained", "login", "drain", engine, "--commands", runner.commands(20_000))
        runner.measure(
            f"sync, drained, {options.profiles:,} profiles", "sync", "drain", engine, "--profiles", options.profiles,
            "--commands", runner.commands(60_000))


def oracle(subject: str, dump: Path) -> list[str]:
    """What the oracle finds in what a run left."""
    program = HERE / "contenders" / "oracle.py"
    done = subprocess.run(
        [sys.executable, program, subject, dump], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    return ["the oracle: " + line for line in done.stdout.splitlines()] if done.returncode else []


def make_contenders(work: Path) -> Path:
    """The contenders' Python packages, in a folder of their own; made anew when the list has changed."""
    wanted, folder = HERE / "contenders" / "requirements.txt", work.parent / "contenders"
    python, kept = folder / "bin" / "python", folder / "requirements.txt"
    if not kept.exists() or kept.read_text() != wanted.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", wanted],
            check=True)
        shutil.copy(wanted, kept)
    return python


COMMANDS: dict[str, Callable[[Runner], None]] = {
    "link": link, "user": user, "sync": sync, "verification": verification, "gateway": gateway, "steady": steady,
    "facts": facts, "profile": profile, "compare": compare, "summary": summary,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("command", choices=[*COMMANDS, "counts", "report"])
    parser.add_argument("subject", nargs="?", help="what is compared, counted or profiled; of report: a file")
    parser.add_argument("--runs", type=int, default=5, help="rounds")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--commands", type=int, help="how many are drained")
    parser.add_argument("--rate", type=int, help="commands a second for the latency")
    parser.add_argument("--seconds", type=int, default=20, help="how long the latency is measured")
    parser.add_argument("--profiles", type=int, default=1_000_000, help="stored before sync is drained, beside 1,000")
    parser.add_argument("--remembered", type=int, default=10_000_000, help="of steady: decisions in the store")
    parser.add_argument("--connections", type=int, default=200, help="of gateway")
    parser.add_argument("--batch", type=int, default=500, help="of compare and summary: records in a transaction")
    parser.add_argument("--only", help="of compare, summary and steady: what has this in its name")
    parser.add_argument(
        "--before", type=Path, help="of compare and summary: the executables of an earlier state, which competes then")
    parser.add_argument("--update", action="store_true", help="of counts: what is counted is right from now on")
    parser.add_argument("--debug", action="store_true", help="of counts: a debug build, and blocks of the heap only")
    parser.add_argument("--out", type=Path, help="the file for the raw output, such as docs/performance/link.jsonl")
    parser.add_argument("--binaries", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--floor", help=argparse.SUPPRESS)
    parser.add_argument("--counts", help=argparse.SUPPRESS)
    parser.add_argument("--database-url", help=argparse.SUPPRESS)
    parser.add_argument("--postgres-pid", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command == "report":
        tables.report(Path(options.subject))
        return
    runner = Runner(options)
    if options.command == "counts":
        sys.exit(0 if counts.run(runner.measure, options) else 1)
    COMMANDS[options.command](runner)
    tables.report(runner.out)
    print(f"raw output: {runner.out}", file=sys.stderr)
    sys.exit(0 if runner.is_valid else 1)


if __name__ == "__main__":
    main()
