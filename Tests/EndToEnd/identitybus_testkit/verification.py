# SPDX-License-Identifier: Apache-2.0
"""A deployment of the verification and sync services, its apps, and tokens as a backend makes them."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

from . import apps
from .broker import Broker, topics_of
from .bus import Bus, Collector
from .commands import Command
from .databases import Database
from .deployment import Deployment
from .secrets import SECRET_PREFIX
from .service import Service


def secret(key_id: str, app: str = "enforced") -> str:
    """A verification key's secret, another one in each app; the prefix makes it findable where it must not be."""
    return f"{SECRET_PREFIX}of-{app}-{key_id}"


def code(text: str, key_id: str = "k1", app: str = "enforced") -> bytes:
    return hmac.new(secret(key_id, app).encode(), text.encode(), hashlib.sha256).digest()


def token(text: str, key_id: str = "k1", app: str = "enforced") -> str:
    return base64.b64encode(code(text, key_id, app)).decode()


def identity_token(
    identities: list[dict[str, Any]], age: float = 0, key_id: str = "jwt", alg: str = "HS256", app: str = "enforced"
) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    text = part({"alg": alg, "typ": "JWT"}) + "." + part({"identities": identities, "iat": int(time.time() - age)})
    signature = hmac.new(secret(key_id, app).encode(), text.encode(), hashlib.sha256).digest()
    return text + "." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


def keys(*ids: str, app: str = "enforced") -> list[dict[str, str]]:
    return [{"id": key_id, "secret": secret(key_id, app)} for key_id in ids]


def verification_app(app: str, mode: str, fields: str = "vendor", **more: Any) -> dict[str, Any]:
    section = {
        "mode": mode, "signedFields": fields, "keys": keys("k1", "k2", app=app),
        "identityTokenSecret": secret("jwt", app),
    } | more
    return {
        "id": app, "sync": {"strategy": "userIdThenEmail"},
        "verification": {name: value for name, value in section.items() if value is not None},
        "keys": [
            apps.key(f"{app}-sdk", "sdk", "identity.sync"), apps.key(f"{app}-backend", "verification.check"),
            apps.key(f"{app}-admin", "admin"),
        ],
    }


def verification_apps() -> list[dict[str, Any]]:
    return [
        verification_app("enforced", "enforce"), verification_app("reported", "report"),
        verification_app("unchecked", "off"), verification_app("delimited", "enforce", "delimited"),
        verification_app("byid", "enforce", "userId"), verification_app("bymail", "enforce", "email"),
        verification_app("private", "enforce", fullPrivacy=True),
        verification_app("clearing", "enforce", clearAnonymousUserOnLogin=True),
        verification_app("reportedbyid", "report", "userId"),
    ]


class ServiceBus(Bus):
    """The topics of a service other than link."""

    def __init__(self, broker: Broker, prefix: str, service: str) -> None:
        super().__init__(broker, prefix)
        self.service = service
        self.commands = f"{prefix}identity.{service}.commands.v1"

    @property
    def collector(self) -> Collector:
        if self._collector is None:
            name = f"{self.prefix}identity.{self.service}"
            self._collector = Collector(
                self.broker, [f"{self.prefix}identity.replies.v1"], [f"{name}.events.v1"], [f"{name}.dlq.v1"])
        return self._collector

    def final(self, command: Command, timeout: float = 30) -> dict[str, Any]:
        """The reply that is not `pending`."""
        found = self.collector.replies
        return self.collector.wait(
            lambda: next((r.data for r in found[command.id] if r.data["status"] != "pending"), None), timeout,
            lambda: f"the final reply to {command.id}; there are {[r.value for r in found[command.id]]}")

    def settle(self, command: Command, timeout: float = 30) -> dict[str, Any]:
        """Sends the command and returns its final reply."""
        self.send(command)
        return self.final(command, timeout)

    def told(self, subject: str) -> list[tuple[str, dict[str, Any]]]:
        """What was said of a subject: (short type, data), in order, each once."""
        seen: dict[str, tuple[int, str, dict[str, Any]]] = {}
        for records in list(self.collector.events.values()):
            for record in records:
                envelope = record.envelope
                if envelope.get("subject") == subject:
                    short = envelope["type"].removeprefix(f"identity.{self.service}.").removesuffix(".v1")
                    seen.setdefault(envelope["id"], (record.offset, short, record.data))
        return [(short, data) for _, short, data in sorted(seen.values(), key=lambda entry: entry[0])]

    def wait_told(self, subject: str, kind: str, timeout: float = 30) -> dict[str, Any]:
        """The last event of a kind about a subject, once there is one: an answer may be read before its events."""
        return self.collector.wait(
            lambda: next((data for short, data in reversed(self.told(subject)) if short == kind), None), timeout,
            lambda: f"{kind} of {subject}: {self.told(subject)}")

    def sessions(self, device: str) -> list[str]:
        """The session's changes in short: `login verified 7`."""
        changes = [data for short, data in self.told(device) if short == "session-changed"]
        return [
            " ".join(
                part for part in (
                    data["cause"], data.get("reason"), data["state"] + ("" if data["mayFileIssues"] else "!"),
                    data.get("mpid")) if part)
            for data in changes]

    def wait_sessions(self, device: str, count: int, timeout: float = 30) -> list[str]:
        return self.collector.wait(
            lambda: found if len(found := self.sessions(device)) >= count else None, timeout,
            lambda: f"{count} session changes of {device}: {self.sessions(device)}")


class VerificationDeployment(Deployment):
    def __init__(self, broker: Broker, directory: Path, database: Database, prefix: str | None = None,
                 names: tuple[str, ...] = ("link",)) -> None:
        super().__init__(broker, directory, database, prefix, names)
        broker.make_known([self.prefix + name for name in topics_of("verification", "sync")])
        apps.write(self.apps_file, verification_apps())
        self.verification = ServiceBus(broker, self.prefix, "verification")
        self.sync = ServiceBus(broker, self.prefix, "sync")
        self.buses += [self.verification, self.sync]

    def process(self, name: str, **more: str) -> Service:
        """A service, not started."""
        service = Service(name, self.environment() | more, self.directory / f"{name}-{len(self.services)}.log")
        self.services.append(service)
        return service

    def start(self) -> tuple[Service, Service]:
        """Both services, ready."""
        both = self.process("verification").start(), self.process("sync").start()
        return both[0].wait_ready(), both[1].wait_ready()


# Commands


def login(device: str, app: str = "enforced", **data: Any) -> Command:
    return Command("verification.login", {"deviceId": device, **data}, device, app=app, signer=f"{app}-sdk")


def vouched(device: str, user: str, app: str = "enforced", key_id: str = "k1", **data: Any) -> Command:
    """A login by user id with the right token."""
    return login(device, app, userId=user, userAuthToken=token(user, key_id, app), **data)


def login_identity(device: str, identity: str, app: str = "enforced", **data: Any) -> Command:
    content = {"deviceId": device, "identityToken": identity, **data}
    return Command("verification.login-identity", content, device, app=app, signer=f"{app}-sdk")


def logout(device: str, app: str = "enforced") -> Command:
    return Command("verification.logout", {"deviceId": device}, device, app=app, signer=f"{app}-sdk")


def check(app: str = "enforced", **data: Any) -> Command:
    subject = data.get("userId") or data.get("userEmail") or ""
    return Command("verification.check", data, subject, app=app, signer=f"{app}-backend")


def get_session(device: str, app: str = "enforced") -> Command:
    return Command("verification.get-session", {"deviceId": device}, device, app=app, signer=f"{app}-backend")


def forget(mpids: list[str], app: str = "enforced") -> Command:
    """As the sync service sends it when it erases profiles."""
    return Command(
        "verification.forget", {"mpids": mpids}, (mpids or ["nobody"])[0], app=app, signer="internal")


def usage(app: str = "enforced") -> Command:
    return Command("verification.usage", {}, "usage", app=app, signer=f"{app}-admin")
