# SPDX-License-Identifier: Apache-2.0
"""Waiting for conditions, always with a deadline.

A limit says how long something takes where threads find a core. Several tests share a few cores, and a host may lend
them to others, so time counts by what the machine has for whoever wants to run: with two threads for each core a second
is half of one. A quarter of it always counts, so that what hangs does fail. With E2E_REAL_TIME, on a machine that has nothing
else to do, seconds are those of the clock on the wall.
"""

import os
import threading
import time
from pathlib import Path
from typing import Callable, TypeVar

Value = TypeVar("Value")


class _Clock:
    LEAST = 1.0 if os.environ.get("E2E_REAL_TIME") else 0.25
    PERIOD = 0.2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cores = len(os.sched_getaffinity(0))
        self._ticks = self._read_ticks()
        self._looked = time.monotonic()
        self._passed, self._share = 0.0, 1.0
        threading.Thread(target=self._watch, name="clock", daemon=True).start()

    def now(self) -> float:
        with self._lock:
            return self._passed + (time.monotonic() - self._looked) * self._share

    def _watch(self) -> None:
        while True:
            time.sleep(self.PERIOD)
            share = self._look()
            with self._lock:
                now = time.monotonic()
                self._passed += (now - self._looked) * share
                self._looked, self._share = now, share

    def _look(self) -> float:
        before, self._ticks = self._ticks, self._read_ticks()
        spent = [after - before for after, before in zip(self._ticks, before)]
        lent = spent[7] / max(1, sum(spent))
        # But for this thread.
        wanted = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1
        return max(self.LEAST, min(1.0, self._cores / max(1, wanted)) * (1 - lent))

    @staticmethod
    def _read_ticks() -> list[int]:
        """Of all cores: user, nice, system, idle, iowait, irq, softirq, steal."""
        with open("/proc/stat") as file:
            return [int(word) for word in file.readline().split()[1:9]]


_clock = _Clock()


class Deadline:
    """So many seconds from now, as this module counts them."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._began = time.monotonic()
        self._end = _clock.now() + timeout

    @property
    def left(self) -> float:
        return max(0.0, self._end - _clock.now())

    def __str__(self) -> str:
        return f"not within {self.timeout:.0f} s, {time.monotonic() - self._began:.0f} s by the clock on the wall"


def until(
    condition: Callable[[], Value], timeout: float, what: str | Callable[[], str], interval: float = 0.05
) -> Value:
    """The first true value of `condition`; fails with `what` when none comes in time."""
    deadline = Deadline(timeout)
    while True:
        value = condition()
        if value:
            return value
        if not deadline.left:
            raise AssertionError(f"{deadline}: {what if isinstance(what, str) else what()}")
        time.sleep(interval)
