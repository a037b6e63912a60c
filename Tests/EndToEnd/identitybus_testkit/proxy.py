# SPDX-License-Identifier: Apache-2.0
"""A network between a service and its database, which can be made to fail."""

import random
import socket
import threading
import time
from urllib.parse import urlsplit, urlunsplit

from .databases import PostgreSQL

# As the text of a request stands in the protocol: between the name of a statement, which is empty, and its end.
COMMIT = b"\0COMMIT\0"


class Proxy:
    """Hands on what comes, in both directions, as long as nothing else is said."""

    def __init__(self, host: str, port: int, listens_on: int = 0) -> None:
        self.target = (host, port)
        # How long each piece takes, in each direction.
        self.latency = 0.0
        # New connections are accepted and closed.
        self.refuses = False
        # Cuts a connection at this share of the COMMITs: half of them before the request arrives, half when the answer
        # is on its way.
        self.lost_commits = 0.0
        self.chance = random.Random(0)
        # How many COMMITs did not arrive, and how many answers to one.
        self.lost_requests = self.lost_answers = 0
        self._open = {"requests": threading.Event(), "answers": threading.Event()}
        for direction in self._open.values():
            direction.set()
        self._connections: set[_Connection] = set()
        self._listener = socket.create_server(("127.0.0.1", listens_on))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def stall(self, *directions: str) -> None:
        """From now on nothing is handed on of `requests`, `answers` or both. Nobody is told, and nothing is lost."""
        for direction in directions:
            self._open[direction].clear()

    def resume(self) -> None:
        for direction in self._open.values():
            direction.set()

    def cut(self) -> None:
        """Ends all connections."""
        for connection in list(self._connections):
            connection.close()

    def close(self) -> None:
        self._listener.close()
        self.refuses = True
        self.resume()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(self.target, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            connection = _Connection(self, client, server)
            self._connections.add(connection)
            connection.start()

    def wait(self, direction: str) -> None:
        time.sleep(self.latency)
        self._open[direction].wait()

    def ended(self, connection: "_Connection") -> None:
        self._connections.discard(connection)


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self._is_answer_lost = False
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for carry in (self._carry_requests, self._carry_answers):
            threading.Thread(target=carry, name="proxy connection", daemon=True).start()

    def close(self) -> None:
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.proxy.ended(self)

    def _carry_requests(self) -> None:
        try:
            while data := self.client.recv(65_536):
                self.proxy.wait("requests")
                if COMMIT in data and self.proxy.chance.random() < self.proxy.lost_commits:
                    if self.proxy.chance.random() < 0.5:
                        self.proxy.lost_requests += 1
                        break
                    self._is_answer_lost = True
                self.server.sendall(data)
        except OSError:
            pass
        self.close()

    def _carry_answers(self) -> None:
        try:
            while data := self.server.recv(65_536):
                if self._is_answer_lost:
                    self.proxy.lost_answers += 1
                    break
                self.proxy.wait("answers")
                self.client.sendall(data)
        except OSError:
            pass
        self.close()


class ProxiedPostgreSQL(PostgreSQL):
    """A database that services reach through a proxy, and the tests directly."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        self.proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)

    def environment(self) -> dict[str, str]:
        url = super().environment()["DATABASE_URL"]
        parts = urlsplit(url)
        place = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{self.proxy.port}"
        return {"DATABASE_URL": urlunsplit(parts._replace(netloc=place))}
