# SPDX-License-Identifier: Apache-2.0
"""Random commands for the chaos runs.

Installs and external ids come in families; nothing of one family meets another. All commands of an ordinary family have
one Kafka key: their order is the topic's, so there is one right answer to each (oracle.py). The commands of a contended
family stand anywhere: of them only invariants are known.
"""

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Callable

from . import commands as c
from .bus import Bus
from .commands import OTHER, PHONE, TABLET, Command
from .secrets import Headers, signature
from .waiting import Deadline


@dataclass
class Sent:
    """A record on the topic. A poisoned one has no command, or one that must be answered with `notice`."""

    command: Command | None
    family: int
    value: bytes | None
    headers: Headers
    key: bytes
    poison: str | None = None
    notice: str | None = None
    partition: int = -1
    offset: int = -1

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.offset


@dataclass
class Family:
    number: int
    app: str
    is_contended: bool
    installs: list[str] = field(default_factory=list)
    external_ids: list[str] = field(default_factory=list)
    sent: list[Command] = field(default_factory=list)
    creators: list[str] = field(default_factory=list)


class Workload:
    """Sends commands on a thread of its own."""

    OPERATIONS = {
        "register": 18, "request": 38, "establish": 10, "detach": 8, "status": 6, "query": 8, "erase": 4, "repeat": 5,
        "poison": 1, "late": 1, "foreign": 1,
    }

    def __init__(
        self, bus: Bus, seed: int, count: int | None = None, rate: float | None = None, max_unanswered: int = 2000
    ) -> None:
        """- count: how many, or until it is stopped. - rate: a second; otherwise as fast as they are answered."""
        self._max_unanswered = max_unanswered
        self.bus = bus
        self.count = count
        self.rate = rate
        self.sent: list[Sent] = []
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._families: list[Family] = []
        self._problem: BaseException | None = None
        self._handed = 0
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)

    def start(self) -> "Workload":
        self._thread.start()
        return self

    def finish(self, timeout: float) -> None:
        """Waits until everything is sent; ends a workload without a count."""
        if self.count is None:
            self._stop.set()
        deadline = Deadline(timeout)
        while self._thread.is_alive() and deadline.left:
            self._thread.join(0.1)
        self._stop.set()
        if self._problem:
            raise self._problem
        assert not self._thread.is_alive(), f"{deadline}: only {self._handed} commands were sent"

    @property
    def is_sending(self) -> bool:
        return self._thread.is_alive()

    @property
    def answered(self) -> int:
        return self.bus.collector.answered

    # The thread

    def _run(self) -> None:
        try:
            started = time.monotonic()
            while not self._stop.is_set() and (self.count is None or self._handed < self.count):
                if self._must_wait(time.monotonic() - started):
                    self.bus.poll(0.01)
                    continue
                self._step(self._family())
            self.bus.flush(120)
        except BaseException as problem:
            self._problem = problem

    def _must_wait(self, elapsed: float) -> bool:
        if self.rate is not None and self._handed > elapsed * self.rate:
            return True
        return self._handed - self.answered > self._max_unanswered

    def _family(self) -> Family:
        """Mostly one of the younger families, so that each gets its share of commands at about one time."""
        if not self._families or self._random.random() < 0.05:
            number = len(self._families)
            app = self._random.choice(["demo", "demo", "demo", "other"])
            family = Family(number, app, self._random.random() < 0.15)
            family.external_ids = [f"ext-{number}-{index}" for index in range(1 if family.is_contended else 4)]
            self._families.append(family)
        return self._random.choice(self._families[-200:])

    def _step(self, family: Family) -> None:
        if family.is_contended:
            return self._send(family, self._contended(family))
        kind = self._random.choices(list(self.OPERATIONS), list(self.OPERATIONS.values()))[0]
        make: Callable[[Family], Command | None] = getattr(self, "_" + kind)
        command = make(family)
        if command is not None:
            self._send(family, command)

    def _send(self, family: Family, command: Command, poison: str | None = None, **changes: object) -> None:
        key = f"family-{family.number}"
        if family.is_contended:
            key += f"/{self._random.random()}"
        value, headers = self.bus.signed(command, self._random.choice(["structured", "structured", "binary"]))
        sent = Sent(command, family.number, value, headers, key.encode(), poison)
        for name, change in changes.items():
            setattr(sent, name, change)
        self._hand_over(sent)
        if poison is None:
            family.sent.append(command)

    def _hand_over(self, sent: Sent) -> None:
        def delivered(partition: int, offset: int) -> None:
            sent.partition, sent.offset = partition, offset

        self.sent.append(sent)
        self._handed += 1
        self.bus.produce(sent.value, sent.headers, sent.key, delivered)

    # Commands

    def _id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def _install(self, family: Family, new: float = 0.2) -> str:
        if not family.installs or self._random.random() < new:
            family.installs.append(f"install-{family.number}-{len(family.installs)}")
        return self._random.choice(family.installs)

    def _device(self) -> dict[str, str]:
        return self._random.choice([PHONE, PHONE, TABLET, OTHER])

    def _external_id(self, family: Family) -> str:
        return self._random.choice(family.external_ids)

    def _contended(self, family: Family) -> Command:
        """Every install is used once; whatever the order, all of this succeeds for one person."""
        if family.sent and self._random.random() < 0.1:
            return self._random.choice(family.sent)
        install = f"install-{family.number}-{len(family.sent)}"
        return c.establish(install, family.external_ids[0], PHONE, app=family.app).but(id=self._id())

    def _register(self, family: Family) -> Command:
        user = self._random.choice(["none", "none", "new"])
        command = c.register(self._install(family, 0.6), self._device(), user, family.app).but(id=self._id())
        family.creators.append(command.id)
        return command

    def _request(self, family: Family) -> Command:
        command = c.request(self._install(family, 0.02), self._external_id(family), family.app).but(id=self._id())
        family.creators.append(command.id)
        return command

    def _establish(self, family: Family) -> Command:
        command = c.establish(self._install(family), self._external_id(family), self._device(), app=family.app)
        command = command.but(id=self._id())
        family.creators.append(command.id)
        return command

    def _detach(self, family: Family) -> Command:
        return c.detach(self._install(family, 0.02), family.app).but(id=self._id())

    def _status(self, family: Family) -> Command:
        status = self._random.choice(["disabled", "enabled", "enabled", "deleted"])
        return c.set_status(self._install(family, 0.02), status, family.app).but(id=self._id())

    def _query(self, family: Family) -> Command:
        return c.query(self._install(family, 0.02), family.app).but(id=self._id())

    def _erase(self, family: Family) -> Command | None:
        """A person that is known by now from a reply."""
        self._random.shuffle(family.creators)
        for creator in family.creators[:5]:
            if replies := self.bus.collector.replies.get(creator):
                if user := replies[0].data.get("result", {}).get("userId"):
                    return c.erase(user, family.app).but(id=self._id())
        return None

    def _repeat(self, family: Family) -> Command | None:
        return self._random.choice(family.sent) if family.sent else None

    def _late(self, family: Family) -> Command:
        return self._request(family).but(attributes={"expirytime": "2020-01-01T00:00:00Z"})

    def _foreign(self, family: Family) -> Command:
        """Another app's key holder tries an install of this family."""
        app = "other" if family.app == "demo" else "demo"
        return c.request(self._install(family, 0), f"foreign-{family.number}", app).but(id=self._id())

    def _poison(self, family: Family) -> None:
        key = f"family-{family.number}".encode()
        command = c.query("i", family.app).but(id=self._id())
        kind = self._random.choice(["not json", "tombstone", "forged", "unknown type"])
        if kind == "not json":
            return self._hand_over(Sent(None, family.number, b"{" + self._id().encode(), [], key, "NOT_JSON"))
        if kind == "tombstone":
            return self._hand_over(Sent(None, family.number, None, [], key, "EMPTY_VALUE"))
        if kind == "unknown type":
            command = command.but(type="link.unheard-of")
            return self._send(family, command, "UNKNOWN_TYPE", notice="UNKNOWN_TYPE")
        value, headers = command.structured()
        headers.append(("signature", signature("internal", self.bus.commands, headers, value, b"a guess at it")))
        return self._send(
            family, command, "SIGNATURE_INVALID", value=value, headers=headers, notice="UNAUTHENTICATED")
