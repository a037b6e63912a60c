# SPDX-License-Identifier: Apache-2.0
"""HTTP as a backend or an SDK speaks it: the standard library's client, and raw sockets for what it cannot do."""

import base64
import gzip
import hashlib
import hmac
import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .secrets import SECRET_PREFIX

RFC1123 = "Thu, 06 Nov 2025 19:37:01 GMT"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def text_of(self, member: str) -> str:
        return str(self.json[member])


class Client:
    """One connection for each request, unless `keep` is set."""

    def __init__(self, address: str, timeout: float = 60) -> None:
        self.address = address
        self.host, self.port = urlsplit(address).hostname or "", urlsplit(address).port or 0
        self.timeout = timeout

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """`body`: bytes as they are, anything else as JSON."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if content is not None else {}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            connection.request(method, path, content, sent | (headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any = None, key: str | None = None, **headers: str) -> Answer:
        """`key`: the id of the API key to show as a bearer. Header names with `_` for `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", path, body, (bearer(key) if key else {}) | more)

    def get(self, path: str, key: str | None = None) -> Answer:
        return self.send("GET", path, headers=bearer(key) if key else {})

    def raw(self, data: bytes, timeout: float = 30) -> bytes:
        """Sends bytes and reads until the other side closes."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            try:
                connection.sendall(data)
            except ConnectionError:
                pass  # told to go away before all was sent; the answer is there all the same
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass  # closed before all that was sent had been read
    return b"".join(parts)


def bearer(key: str, secret: str | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}.{secret or SECRET_PREFIX + key}"}


def basic(key: str, secret: str | None = None) -> dict[str, str]:
    pair = f"{key}:{secret or SECRET_PREFIX + key}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def signed(key: str, path: str, body: bytes, date: str = RFC1123, secret: str | None = None) -> dict[str, str]:
    """The identity vendor's signature, written from F23."""
    text = f"POST\n{date}\n{path}".encode() + body
    code = hmac.new((secret or SECRET_PREFIX + key).encode(), text, hashlib.sha256).hexdigest()
    return {"x-mp-key": key, "Date": date, "x-mp-signature": code}


def compressed(body: Any) -> bytes:
    return gzip.compress(body if isinstance(body, bytes) else json.dumps(body).encode())
