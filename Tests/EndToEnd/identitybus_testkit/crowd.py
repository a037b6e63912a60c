# SPDX-License-Identifier: Apache-2.0
"""Many clients at a steady rate behind a load balancer of several gateways. Each keeps its connection, and repeats a request
under its `Idempotency-Key` until there is an answer, as gateway.md asks for ("Retries")."""

import asyncio
import http.client
import json
import random
import ssl
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable

from .commands import fresh
from .gateway import Gateway
from .http import bearer
from .waiting import until

Told = tuple[int, bytes, str]


@dataclass
class Request:
    """Something that one client wants, and what it was told."""

    kind: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    key: str = field(default_factory=lambda: fresh("key"))
    # Status, body and X-Request-Id.
    told: Told | None = None
    seconds: float = 0

    def bytes(self) -> bytes:
        body = json.dumps(self.body).encode()
        lines = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)),
                 "Idempotency-Key": self.key, **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body


def asked_with(key: str, kind: str, path: str, **body: Any) -> Request:
    return Request(kind, path, body, bearer(key))


class Balancer:
    """Knows which gateways are ready, as a cluster does: it looks at each of them now and then. Their ports are fixed."""

    EVERY = 0.2

    def __init__(self, gateways: list[Gateway], tls: ssl.SSLContext | None = None) -> None:
        """tls: whom clients trust, where the gateways have certificates for 127.0.0.1."""
        self.doors: list[int] = []
        self.tls = tls
        self._ports = [
            (gateway.environment["HTTP_PORT"], int(gateway.environment["GATEWAY_PORT"])) for gateway in gateways]
        self._stop = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="balancer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(self.EVERY):
            self._look()

    def _look(self) -> None:
        self.doors = [door for health, door in self._ports if self._is_ready(health)]

    @staticmethod
    def _is_ready(health: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):  # it says that it is not, or is not there
            return False


class Crowd:
    """`make` gives the next request, or none any more."""

    def __init__(self, balancer: Balancer, make: Callable[[int], Request | None], rate: float, clients: int) -> None:
        self.done: list[Request] = []
        self.statuses: Counter[str] = Counter()
        self.problems: list[str] = []
        self.seconds = 0.0
        self._balancer, self._make, self._rate, self._clients = balancer, make, rate, clients
        self._count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._everybody()), name="crowd", daemon=True)

    def start(self) -> "Crowd":
        self._thread.start()
        return self

    def finish(self, timeout: float = 120) -> None:
        """Begins nothing more, and waits for what was begun."""
        self._stop.set()
        self.join(timeout)

    def join(self, timeout: float = 300) -> None:
        """Until `make` gives none any more, and all are answered."""
        until(lambda: not self._thread.is_alive(), timeout, lambda: f"the answers: {self}")
        assert not self.problems, (self.problems[:3], str(self))

    def wait(self, more: int, timeout: float = 60) -> None:
        goal = len(self.done) + more
        until(lambda: len(self.done) >= goal or self.problems, timeout, lambda: f"{goal} answers: {self}")
        assert not self.problems, (self.problems[:3], str(self))

    def __str__(self) -> str:
        slowest = sorted(request.seconds for request in self.done) or [0.0]
        middle, most = slowest[len(slowest) // 2], slowest[-1]
        return (
            f"{len(self.done)} requests in {self.seconds:.0f} s: {len(self.done) / max(self.seconds, 0.1):.0f}/s of "
            f"{self._rate:.0f}/s; from when each was due p50 {middle * 1000:.0f} ms, max {most:.1f} s; {dict(self.statuses)}")

    async def _everybody(self) -> None:
        began = time.monotonic()
        await asyncio.gather(*(self._client(number, began) for number in range(self._clients)))
        self.seconds = time.monotonic() - began

    async def _client(self, number: int, began: float) -> None:
        interval = self._clients / self._rate
        due = began + interval * number / self._clients
        client = _Client(self._balancer, self.statuses)
        try:
            while not self._stop.is_set() and not self.problems:
                await asyncio.sleep(max(0, min(due - time.monotonic(), 1)))
                if time.monotonic() < due:
                    continue
                self._count += 1
                request = self._make(self._count)
                if request is None:
                    return
                request.told = await client.ask(request)
                request.seconds = time.monotonic() - due
                self.done.append(request)
                self.seconds = time.monotonic() - began
                due += interval
        except Exception as problem:  # whoever waits sees it
            self.problems.append(repr(problem))
        finally:
            client.hang_up()


class _Client:
    """One connection, which it keeps as long as it is there."""

    PATIENCE = 120.0

    def __init__(self, balancer: Balancer, statuses: Counter[str]) -> None:
        self._balancer, self._statuses = balancer, statuses
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    async def ask(self, request: Request) -> Told:
        content, gives_up, last = request.bytes(), time.monotonic() + self.PATIENCE, ""
        while time.monotonic() < gives_up:
            try:
                status, headers, body = await self._once(content)
            except (OSError, asyncio.IncompleteReadError) as problem:
                is_cut = isinstance(problem, asyncio.IncompleteReadError) and problem.partial
                what = "not connected" if self._streams is None else "answer cut" if is_cut else "connection ended"
                self._statuses[what] += 1
                self.hang_up()
                await asyncio.sleep(0.05)
                last = repr(problem)
                continue
            self._statuses[str(status)] += 1
            if status != 503:
                assert status < 500, (status, headers, body, request)
                return status, body, headers.get("x-request-id", "")
            assert headers.get("retry-after", "").isdigit(), (headers, body, request)
            last = f"503 {body!r}"
            await asyncio.sleep(float(headers["retry-after"]))
        raise AssertionError(f"no answer in {self.PATIENCE} s, at last {last}: {request}")

    async def _once(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
        if self._streams is not None and self._streams[0].at_eof():
            self.hang_up()  # closed while nothing was asked
        if self._streams is None:
            if not self._balancer.doors:
                raise ConnectionRefusedError("no gateway is ready")
            self._streams = await asyncio.open_connection(
                "127.0.0.1", random.choice(self._balancer.doors), ssl=self._balancer.tls)
        reader, writer = self._streams
        writer.write(content)
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection", "").lower() == "close":
            self.hang_up()
        return int(head.split(" ")[1]), headers, body


def again(balancer: Balancer, requests: list[Request], clients: int, rate: float) -> list[Told | None]:
    """Sends all of them once more, through whichever gateway. - Returns: what each was told now."""
    copies = [Request(one.kind, one.path, one.body, one.headers, one.key) for one in requests]
    left = iter(copies)
    Crowd(balancer, lambda _: next(left, None), rate, clients).start().join()
    return [copy.told for copy in copies]
