# SPDX-License-Identifier: Apache-2.0
"""Connections that ask for much at once, and read: each asks again for every answer that it gets, and a closed one comes
back. In a process of their own, beside a test that measures."""

import selectors
import socket
import subprocess
import sys


class Pipeliners:
    """They ask for as long as the block takes."""

    ADDRESS = "127.0.0.3"

    def __init__(self, port: int, path: str, count: int, outstanding: int) -> None:
        self._arguments = [str(port), path, str(count), str(outstanding)]

    def __enter__(self) -> "Pipeliners":
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._arguments], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout and self._process.stdout.readline() == "all are there\n"
        return self

    def __exit__(self, *_: object) -> None:
        is_running = self._process.poll() is None
        self._process.kill()
        self._process.wait()
        assert is_running, "they went on until now"


def ask(port: int, path: str, count: int, outstanding: int) -> None:
    one = f"GET {path} HTTP/1.1\r\nHost: l\r\n\r\n".encode()
    selector = selectors.DefaultSelector()

    def add() -> None:
        connection = socket.create_connection(("127.0.0.1", port), 60, source_address=(Pipeliners.ADDRESS, 0))
        selector.register(connection, selectors.EVENT_READ)
        connection.setblocking(False)
        say(connection, one * outstanding)

    def say(connection: socket.socket, data: bytes) -> None:
        try:
            connection.send(data)
        except OSError:
            pass  # closed by now, or it asks for less from now on

    for _ in range(count):
        add()
    print("all are there", flush=True)
    while True:
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            try:
                data = key.fileobj.recv(1 << 20)
            except OSError:
                data = b""
            if data:
                say(key.fileobj, one * data.count(b"HTTP/1.1 "))
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                add()


if __name__ == "__main__":
    ask(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
