# SPDX-License-Identifier: Apache-2.0
"""Waiting for conditions, always with a deadline."""

import time
from typing import Callable, TypeVar

Value = TypeVar("Value")


def until(
    condition: Callable[[], Value], timeout: float, what: str | Callable[[], str], interval: float = 0.05
) -> Value:
    """The first true value of `condition`; fails with `what` when none comes in time."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout:.0f} s: {text}")
        time.sleep(interval)
