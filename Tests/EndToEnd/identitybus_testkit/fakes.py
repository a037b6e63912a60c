# SPDX-License-Identifier: Apache-2.0
"""Listeners that stand in for a Kafka that does not let a service in: silent ones, ones that speak TLS or do not, and one
that knows as much of Kafka's protocol as it takes to refuse somebody."""

import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path
from typing import Callable

Talk = Callable[[socket.socket], None]


class FakeBroker:
    """Accepts connections and talks to each in a thread of its own, until it is closed."""

    def __init__(self, talk: Talk, port: int = 0) -> None:
        self._talk = talk
        self._listener = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = []
        self.servers = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name="fake broker", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), name="fake connection", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            self._talk(client)
        except (OSError, EOFError):
            pass
        finally:
            client.close()

    def close(self) -> None:
        # Who waits for the next connection would still be given one; and it may be closed already.
        for end in (self._listener, *self._open):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._listener.close()


def silent(client: socket.socket) -> None:
    while client.recv(65_536):
        pass


def shut(client: socket.socket) -> None:
    """As a load balancer does that has nobody behind it."""


def shut_unread(client: socket.socket) -> None:
    """The same, when the client has spoken already: what is not read resets the connection."""
    client.recv(1, socket.MSG_PEEK)


def plain(client: socket.socket) -> None:
    client.recv(65_536)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def closing(client: socket.socket) -> None:
    """As Kafka on a port without TLS meets a TLS handshake."""
    client.recv(65_536)


def tls(
    certificate: Path, key: Path, clients: Path | None = None, newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    inside: Talk | None = None
) -> Talk:
    """clients: the authority whose certificates clients have to have. inside: what is said over it; else nothing is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.maximum_version = newest
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)

    def talk(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as session:
            if inside:
                inside(session)
            while session.recv(65_536):
                pass

    return talk


# Kafka's protocol


def _read(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = client.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


class Refusing:
    """Answers what a client asks before it is let in: which requests are known (ApiVersions), which SASL mechanisms are
    (SaslHandshake), whether the password is right (SaslAuthenticate), and which topics it may see (Metadata)."""

    _VERSIONS, _HANDSHAKE, _AUTHENTICATE, _METADATA = 18, 17, 36, 3
    _UNSUPPORTED_VERSION, _UNSUPPORTED_MECHANISM, _AUTHENTICATION_FAILED, _TOPIC_AUTHORIZATION_FAILED = 35, 33, 58, 29
    _ILLEGAL_SASL_STATE = 34

    def __init__(
        self, mechanisms: list[str] | None = None, sasl: bool | None = None, advertised: int | None = None
    ) -> None:
        """sasl: whether the port asks for it (then whoever does not sign in is cut off), or knows nothing of it.
        advertised: the port that it tells clients, if it is another one."""
        self.mechanisms = mechanisms or []
        self.sasl = sasl
        self.advertised = advertised
        #: What clients have signed in with, as they sent it.
        self.attempts: list[bytes] = []

    def __call__(self, client: socket.socket) -> None:
        port = client.getsockname()[1]
        while True:
            request = _read(client, struct.unpack(">i", _read(client, 4))[0])
            kind, version, correlation = struct.unpack(">hhi", request[:8])
            length = struct.unpack(">h", request[8:10])[0]
            body = self._answer(kind, version, request[10 + max(0, length):], port)
            if body is None:
                return
            answer = struct.pack(">i", correlation) + body
            client.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, kind: int, version: int, request: bytes, port: int) -> bytes | None:
        if kind == self._VERSIONS:
            error = 0 if version == 0 else self._UNSUPPORTED_VERSION
            known = [(self._VERSIONS, 0, 0), (self._HANDSHAKE, 0, 1), (self._AUTHENTICATE, 0, 0), (self._METADATA, 1, 2)]
            return struct.pack(">hi", error, len(known)) + b"".join(struct.pack(">hhh", *one) for one in known)
        if kind == self._HANDSHAKE:
            wanted = request[2:2 + struct.unpack(">h", request[:2])[0]].decode()
            error = 0 if wanted in self.mechanisms else self._UNSUPPORTED_MECHANISM
            if self.sasl is False:
                error = self._ILLEGAL_SASL_STATE
            return struct.pack(">hi", error, len(self.mechanisms)) + b"".join(map(_text, self.mechanisms))
        if kind == self._AUTHENTICATE:
            self.attempts.append(request[4:])
            return struct.pack(">h", self._AUTHENTICATION_FAILED) + _text("Authentication failed") + struct.pack(">i", 0)
        if kind == self._METADATA and self.sasl is None:
            return self._metadata(version, request, port)
        return None

    def _metadata(self, version: int, request: bytes, port: int) -> bytes:
        (count,), rest, names = struct.unpack(">i", request[:4]), request[4:], []
        for _ in range(max(0, count)):
            (length,) = struct.unpack(">h", rest[:2])
            names.append(rest[2:2 + length].decode())
            rest = rest[2 + length:]
        brokers = struct.pack(">ii", 1, 1) + _text("127.0.0.1") + struct.pack(">ih", self.advertised or port, -1)
        topics = b"".join(
            struct.pack(">h", self._TOPIC_AUTHORIZATION_FAILED) + _text(name) + struct.pack(">bi", 0, 0) for name in names)
        cluster = _text("a-fake-cluster") if version > 1 else b""
        return brokers + cluster + struct.pack(">i", 1) + struct.pack(">i", len(names)) + topics


# Certificates


class Authority:
    """A certificate authority of the tests."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.certificate, self._key = folder / "ca.pem", folder / "ca.key"
        self._openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority of the tests",
            "-keyout", self._key, "-out", self.certificate)

    def issue(self, host: str, ends: str = "400101000000Z") -> tuple[Path, Path]:
        """A certificate for a host and its key, the same ones for whoever asks again. `ends`: as `openssl ca` takes it."""
        name = f"{host}-{ends}"
        request, certificate, key = (self._folder / f"{name}.{kind}" for kind in ("csr", "pem", "key"))
        if certificate.exists():
            return certificate, key
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", key, "-out", request)
        names = f"IP:{host}" if host[0].isdigit() else f"DNS:{host}"
        settings = self._folder / f"{name}.cnf"
        settings.write_text(f"""
[ca]
default_ca = own
[own]
database = {self._folder}/{name}.index
new_certs_dir = {self._folder}
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = san
[any]
commonName = supplied
[san]
subjectAltName = {names}
""")
        (self._folder / f"{name}.index").touch()
        self._openssl(
            "ca", "-batch", "-notext", "-config", settings, "-cert", self.certificate, "-keyfile", self._key,
            "-in", request, "-out", certificate, "-startdate", "190101000000Z", "-enddate", ends)
        return certificate, key

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
