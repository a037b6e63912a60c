# SPDX-License-Identifier: Apache-2.0
"""A page with the vendor's web SDK: the published bundle itself, or the requests that it makes."""

import json
import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .http import Answer, Client
from .places import REPOSITORY

# Debian puts jsdom (its package node-jsdom) here.
MODULES = "/usr/share/nodejs"
ORIGIN = "https://shop.example"
# What the SDK's callback gets for answers other than 200, 202 and 400, and for what it does not send.
REFUSED, NOT_SENT = -1, -4


@dataclass(frozen=True)
class Said:
    """What a call came to. `status`: of the gateway's answer, None if nothing was sent. `code`: what the callback got.
    `mpid`: of the answer."""

    status: int | None
    code: int
    mpid: str | None


class Page(Protocol):
    """A page on a device of its own. Identities are named as the vendor names them."""

    device: str
    # Whom the SDK takes for the user.
    mpid: str | None
    is_logged_in: bool

    def start(self, **identities: str) -> Said: ...

    def call(self, name: str, **identities: str) -> Said:
        """`identify`, `login`, `logout`, `modify` or `search`."""
        ...

    def alias(self, source: str, destination: str) -> Said: ...

    def close(self) -> None: ...


class SDKPage:
    """The bundle in jsdom, over TLS: the SDK knows nothing else."""

    def __init__(self, bundle: Path, https: str, key: str, device: str = "") -> None:
        self.key, self.https, self.device = key, https, device
        self.mpid: str | None = None
        self.is_logged_in = False
        node = shutil.which("node")
        assert node is not None, "the web SDK needs Node.js and jsdom (on Debian nodejs and node-jsdom)"
        paths = [path for path in (os.environ.get("NODE_PATH"), MODULES) if path]
        self.node = subprocess.Popen(
            [node, REPOSITORY / "Tests" / "EndToEnd" / "web_sdk.js", bundle], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"NODE_PATH": ":".join(paths), "NODE_NO_WARNINGS": "1"}, text=True)

    def start(self, **identities: str) -> Said:
        return self._ask(
            call="start", host=self.https.removeprefix("https://"), key=self.key, deviceId=self.device,
            identities=identities or None)

    def call(self, name: str, **identities: str) -> Said:
        return self._ask(call=name, identities=identities)

    def alias(self, source: str, destination: str) -> Said:
        return self._ask(call="alias", source=source, destination=destination)

    def _ask(self, **call: Any) -> Said:
        assert self.node.stdin and self.node.stdout
        self.node.stdin.write(json.dumps(call) + "\n")
        self.node.stdin.flush()
        line = self.node.stdout.readline()
        assert line, f"the page has ended: {self.node.wait()}"
        said = json.loads(line)
        self.device, self.mpid, self.is_logged_in = said["device"], said["mpid"], said["isLoggedIn"]
        sent = [request for request in said["wire"] if is_identity(request["path"])]
        assert len(sent) <= 1, sent
        body = json.loads(sent[0]["text"]) if sent and sent[0]["text"] else {}
        return Said(sent[0]["status"] if sent else None, said["code"], body.get("mpid"))

    def close(self) -> None:
        assert self.node.stdin
        self.node.stdin.close()
        if self.node.wait(30) != 0:
            raise AssertionError(f"the page ended with {self.node.returncode}")


def is_identity(path: str) -> bool:
    return path.endswith(("/identify", "/login", "/logout", "/modify", "/search", "/Alias"))


class FormPage:
    """What the SDK sends and makes of the answers, written from its requests."""

    def __init__(self, client: Client, key: str, device: str = "") -> None:
        self.client, self.key = client, key
        self.device = device or str(uuid.uuid4())
        self.mpid: str | None = None
        self.is_logged_in = False

    def start(self, **identities: str) -> Said:
        return self.call("identify", **identities)

    def call(self, name: str, **identities: str) -> Said:
        if name == "search":
            return self._said(self._send("/v1/search", self._base() | {"known_identities": identities}), name)
        if name == "modify":
            changes = [{"old_value": None, "new_value": value, "identity_type": kind} for kind, value in identities.items()]
            return self._said(self._send(f"/v1/{self.mpid}/modify", self._base() | {"identity_changes": changes}), name)
        known = {"known_identities": identities | {"device_application_stamp": self.device}}
        said = self._said(self._send(f"/v1/{name}", self._base() | {"context": None, "previous_mpid": self.mpid} | known), name)
        if said.status == 200:
            self.mpid = said.mpid
        return said

    def alias(self, source: str, destination: str) -> Said:
        body = self._base() | {"request_type": "alias", "api_key": self.key, "data": {
            "source_mpid": source, "destination_mpid": destination, "start_unixtime_ms": 1795251794133,
            "end_unixtime_ms": 1795251795133, "scope": "device", "device_application_stamp": self.device}}
        return self._said(self._send(f"/v1/identity/{self.key}/Alias", body, None), "alias")

    def _base(self) -> dict[str, Any]:
        return {
            "client_sdk": {"platform": "web", "sdk_vendor": "mparticle", "sdk_version": "2.71.2"},
            "environment": "development", "request_id": str(uuid.uuid4()), "request_timestamp_ms": 1795251794133}

    def _send(self, path: str, body: dict[str, Any], header: str | None = "x-mp-key") -> Answer:
        """Browsers ask first."""
        leave = self.client.send("OPTIONS", path, headers={
            "Origin": ORIGIN, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ",".join(filter(None, ["content-type", header]))})
        assert leave.status == 204 and leave.headers["Access-Control-Allow-Origin"] == "*"
        answer = self.client.send("POST", path, body, {"Origin": ORIGIN} | ({header: self.key} if header else {}))
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        return answer

    def _said(self, answer: Answer, name: str) -> Said:
        body = answer.json if answer.body else {}
        if answer.status == 200 and name != "search":
            self.is_logged_in = body["is_logged_in"]
        # A search's callback gets the status, whatever it is.
        code = answer.status if name == "search" or answer.status in (200, 202, 400) else REFUSED
        return Said(answer.status, code, body.get("mpid"))

    def close(self) -> None:
        pass
