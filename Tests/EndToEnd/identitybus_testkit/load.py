# SPDX-License-Identifier: Apache-2.0
"""Requests at a steady rate over many kept connections. Latency counts from when a request was due, so that a server
that stalls cannot hide it."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Load:
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000

    def __str__(self) -> str:
        return (
            f"{len(self.latencies)} in {self.seconds:.1f} s ({len(self.latencies) / self.seconds:.0f}/s), "
            f"p50 {self.percentile(0.5):.1f} ms, p99 {self.percentile(0.99):.1f} ms, "
            f"max {self.percentile(1):.1f} ms, {dict(self.statuses)}")


def run(host: str, port: int, request: Callable[[int], bytes], *, connections: int, rate: float, seconds: float) -> Load:
    """`request`: the bytes of a request, by the number of its connection."""
    load = Load()

    async def client(number: int, start: float) -> None:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as problem:
            load.statuses[type(problem).__name__] += 1
            return
        content = request(number)
        interval = connections / rate
        due = start + interval * number / connections
        while due < start + seconds:
            await asyncio.sleep(max(0, due - time.monotonic()))
            try:
                writer.write(content)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                load.statuses[head.split(b" ", 2)[1].decode()] += 1
            except (OSError, asyncio.IncompleteReadError) as problem:
                load.statuses[type(problem).__name__] += 1
                return
            load.latencies.append(time.monotonic() - due)
            due += interval
        writer.close()

    async def everything() -> None:
        start = time.monotonic() + 0.5
        await asyncio.gather(*(client(number, start) for number in range(connections)))
        load.seconds = time.monotonic() - start

    asyncio.run(everything())
    return load
