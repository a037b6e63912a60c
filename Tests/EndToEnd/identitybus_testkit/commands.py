# SPDX-License-Identifier: Apache-2.0
"""Commands as a producer writes them by hand."""

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from .secrets import Headers

PHONE = {"kind": "phone", "platform": "ios", "model": "iPhone15,2", "osVersion": "18.1"}
TABLET = {"kind": "tablet", "platform": "android"}
OTHER = {"kind": "other", "platform": "linux"}


@dataclass(frozen=True)
class Command:
    """A command and the key that signs it. `attributes` adds to the envelope's, or replaces them; `to_own_topic`: it is sent
    to the commands topic that its app has for itself."""

    type: str
    data: Any
    subject: str
    app: str = "demo"
    signer: str = "demo-backend"
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    source: str = "e2e"
    attributes: dict[str, Any] = field(default_factory=dict)
    to_own_topic: bool = False

    @property
    def full_type(self) -> str:
        return f"identity.{self.type}.v1"

    @property
    def service(self) -> str:
        return self.type.split(".")[0]

    @property
    def key(self) -> bytes:
        return f"{self.app}/{self.subject}".encode()

    def envelope(self) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            "specversion": "1.0", "id": self.id, "source": self.source, "type": self.full_type, "appid": self.app,
            "datacontenttype": "application/json", "data": self.data, **self.attributes,
        }
        return {name: value for name, value in envelope.items() if value is not ...}

    def structured(self) -> tuple[bytes, Headers]:
        value = json.dumps(self.envelope(), ensure_ascii=False).encode()
        return value, [("content-type", b"application/cloudevents+json")]

    def binary(self) -> tuple[bytes, Headers]:
        envelope = self.envelope()
        value = json.dumps(envelope.pop("data"), ensure_ascii=False, indent=1).encode()
        headers = [("content-type", envelope.pop("datacontenttype").encode())]
        return value, headers + [(f"ce_{name}", text.encode()) for name, text in envelope.items()]

    def but(self, **changes: Any) -> "Command":
        return replace(self, **changes)

    def again(self) -> "Command":
        """The same wish as a new command."""
        return replace(self, id=str(uuid.uuid4()))


def fresh(kind: str) -> str:
    """An id that no other test uses."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def _internal(type: str, subject: str, data: dict[str, Any], app: str) -> Command:
    return Command(type, data, subject, app=app, signer="internal")


def request(install: str, external_id: Any, app: str = "demo", signer: str | None = None) -> Command:
    data = {"installId": install, "externalId": external_id}
    return Command("link.request", data, str(external_id), app=app, signer=signer or f"{app}-backend")


def register(install: str, device: dict[str, str] = PHONE, user: str = "none", app: str = "demo") -> Command:
    return _internal("link.register-install", install, {"installId": install, "device": device, "user": user}, app)


def establish(
    install: str, external_id: str, device: dict[str, str] = PHONE, mode: str = "create", app: str = "demo"
) -> Command:
    data = {"installId": install, "device": device, "externalId": external_id, "mode": mode}
    return _internal("link.establish", external_id, data, app)


def query(install: str, app: str = "demo") -> Command:
    return _internal("link.query", install, {"installId": install}, app)


def detach(install: str, app: str = "demo", cause: str = "reset") -> Command:
    return _internal("link.detach-install", install, {"installId": install, "cause": cause}, app)


def set_status(install: str, status: str, app: str = "demo") -> Command:
    return Command(
        "link.set-install-status", {"installId": install, "status": status}, install, app=app, signer=f"{app}-admin")


def erase(user_id: str, app: str = "demo") -> Command:
    return Command("link.erase-user", {"userId": user_id}, user_id, app=app, signer=f"{app}-backend")


def forget(service: str, app: str = "demo", **data: Any) -> Command:
    """What the services ask of each other when a person is erased."""
    subject = str(data.get("externalId") or data.get("userId") or "nobody")
    return _internal(f"{service}.forget", subject, data, app)


# The user service


def request_code(external_id: str, app: str = "demo", signer: str | None = None) -> Command:
    return Command(
        "user.request-auth-code", {"externalId": external_id}, external_id, app=app, signer=signer or f"{app}-backend")


def _sdk(type: str, install: str, data: dict[str, Any], app: str) -> Command:
    return Command(type, {"installId": install, **data}, install, app=app, signer=f"{app}-sdk", source=install)


def create(install: str, device: dict[str, str] = PHONE, app: str = "demo", **data: Any) -> Command:
    return _sdk("user.create", install, {"device": device, **data}, app)


def link(install: str, app: str = "demo", **data: Any) -> Command:
    return _sdk("user.link", install, data, app)


def confirm(install: str, success: bool = True, app: str = "demo", **data: Any) -> Command:
    return _sdk("user.confirm-link", install, {"success": success, **data}, app)


def reset(install: str, app: str = "demo") -> Command:
    return _sdk("user.reset", install, {}, app)


def get(install: str, app: str = "demo") -> Command:
    return _sdk("user.get", install, {}, app)


# Sync


def sync(
    operation: str, device: str, identities: Any, app: str = "demo", signer: str | None = None, **more: Any
) -> Command:
    """identify, login, logout or search."""
    data = {"deviceId": device, "knownIdentities": identities, "environment": "development", **more}
    return Command(f"sync.{operation}", data, device, app=app, signer=signer or f"{app}-sdk")


def modify(mpid: Any, *changes: dict[str, Any], app: str = "demo", **more: Any) -> Command:
    return Command(
        "sync.modify", {"mpid": mpid, "changes": list(changes), **more}, str(mpid), app=app, signer=f"{app}-sdk")


def change(identity_type: str, old: str | None, new: str | None) -> dict[str, Any]:
    return {"identityType": identity_type, "oldValue": old, "newValue": new}


def alias(source: Any, destination: Any, app: str = "demo", **more: Any) -> Command:
    data = {"sourceMPID": source, "destinationMPID": destination, **more}
    return Command("sync.alias", data, str(destination), app=app, signer=f"{app}-sdk")


def get_users(device: str, app: str = "demo") -> Command:
    return Command("sync.get-users", {"deviceId": device}, device, app=app, signer=f"{app}-sdk")
