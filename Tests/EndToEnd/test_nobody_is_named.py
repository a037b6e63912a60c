# SPDX-License-Identifier: Apache-2.0
"""operations.md, "Traces", "Metrics" and "Log": who reads these learns of nobody. On topics of twelve partitions people of six
apps, and who helps them, do over Kafka and over HTTP everything that can be done; then every id that they were given is looked
for in all that was sent to the collector, in the metrics and in the logs of all five programs. The metrics are few all the same."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps, story
from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.collector import SpanCollector
from identitybus_testkit.commands import PHONE, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, basic, bearer
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.service import Service
from identitybus_testkit.story import APP, PLAIN, Story, command, recorded_app
from identitybus_testkit.verification import identity_token, token
from identitybus_testkit.waiting import until

pytestmark = pytest.mark.slow

APPS = (APP, PLAIN, "third", "fourth", "fifth", "sixth")
# Members of answers and events whose values lead to somebody.
NAMING = re.compile(r"(?i).*(?:user|install|external|device|token)_?id|.*mpid|authentication_?code")


@dataclass
class Names:
    """Every id that somebody was given, by whoever chose it."""

    all: set[str] = field(default_factory=set)

    def fresh(self, kind: str) -> str:
        self.all.add(name := fresh(kind))
        return name

    def uuid(self) -> str:
        self.all.add(name := str(uuid.uuid4()))
        return name

    def read(self, value: Any) -> None:
        """What the platform itself has given."""
        if isinstance(value, list):
            for one in value:
                self.read(one)
        elif isinstance(value, dict):
            for name, one in value.items():
                if NAMING.fullmatch(name) and isinstance(one, (str, int)) and len(str(one)) > 9:
                    self.all.add(str(one))
                self.read(one)

    def found_in(self, data: bytes) -> set[str]:
        return {name for name in self.all if name.encode() in data}


class Tour:
    """All operations of the API and of the admin port, by people of one app. What it has called, by path template."""

    def __init__(self, gateway: Gateway, app: str, names: Names) -> None:
        self.ports = {"openapi.json": gateway.client, "openapi-admin.json": gateway.admin}
        self.app, self.names = app, names
        self.called: set[tuple[str, str]] = set()
        self.problems: list[tuple[str, str, int, bytes]] = []

    def call(self, method: str, path: str, body: Any = None, /, headers: dict[str, str] | None = None, query: str = "",
             **ids: str) -> Any:
        is_admin = path.startswith(("/admin", "/userprofile"))
        client = self.ports["openapi-admin.json" if is_admin else "openapi.json"]
        shown = headers or (basic if re.match(r"/v1/(?!verification|profiles)", path) else bearer)(f"{self.app}-all")
        answer: Answer = client.send(method, path.format(**ids) + query, body, shown)
        # A call that is not understood, or not let in, shows nothing.
        if answer.status >= 500 or answer.status in (400, 401, 403):
            self.problems.append((method, path, answer.status, answer.body))
        self.called.add((method, path))
        said = json.loads(answer.body) if answer.body.startswith((b"{", b"[")) else None
        self.names.read(said)
        return said

    def play(self, all: bool) -> None:
        self._links()
        self._profiles()
        if all:
            self._sessions()
            self._support()
            self._erasures()

    def _code(self, external_id: str) -> str:
        return str(self.call("POST", "/users/auth-code", {"external_id": external_id})["authentication_code"])

    def _links(self) -> None:
        fresh = self.names.fresh
        self.external_id, self.install = fresh("ext"), fresh("install")
        user = self.call("POST", "/sdk/v1/users", {
            "installId": self.install, "device": PHONE, "authCode": self._code(self.external_id)})
        self.user = str(user["userId"])
        own = {"Authorization": f"Bearer {user['token']['tokenId']}"}
        self.call("GET", "/sdk/v1/installs/{install_id}", headers=own, install_id=self.install)
        self.call("POST", "/sdk/v1/installs/{install_id}/link", {"linking": "linker"}, headers=own, install_id=self.install)
        self.call("POST", "/sdk/v1/installs/{install_id}/confirm-link", {"success": True}, headers=own,
                  install_id=self.install)
        self.call("POST", "/v2/users/{install_id}/link", {"external_id": self.external_id}, install_id=self.install)
        self.call("POST", "/v2/users/{install_id}/link", {"external_id": self.external_id}, install_id=fresh("install"))
        other = fresh("install")
        user = self.call("POST", "/sdk/v1/users", {
            "installId": other, "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "none"})
        own = {"Authorization": f"Bearer {user['token']['tokenId']}"}
        self.call("POST", "/sdk/v1/installs/{install_id}/reset", headers=own, install_id=other)

    def _identities(self, **identities: str) -> dict[str, Any]:
        return {"environment": "production", "known_identities": identities}

    def _profiles(self) -> None:
        fresh = self.names.fresh
        self.device, self.mail = fresh("device"), f"{fresh('mail')}@example.org"
        stamp = {"device_application_stamp": self.device}
        self.call("POST", "/v1/identify", self._identities(**stamp))
        other = self._identities(device_application_stamp=fresh("device"), ios_idfv=fresh("vendor"))
        anonymous = str(self.call("POST", "/v1/identify", other)["mpid"])
        known = self._identities(customerid=self.external_id, email=self.mail, **stamp)
        self.mpid = str(self.call("POST", "/v1/login", known)["mpid"])
        self.call("POST", "/v1/search", self._identities(email=self.mail))
        self.call("POST", "/v1/search", self._identities(email=f"{fresh('mail')}@example.org"))
        self.call("POST", "/v1/{mpid}/modify", {"environment": "production", "identity_changes": [
            {"identity_type": "other", "old_value": None, "new_value": fresh("other")}]}, mpid=self.mpid)
        self.call("POST", "/v1/identity/{api_key}/alias", {
            "request_id": self.names.uuid(), "request_type": "alias", "environment": "production",
            "api_key": f"{self.app}-all", "data": {
                "source_mpid": anonymous, "destination_mpid": self.mpid, "scope": "mpid"}}, api_key=f"{self.app}-all")
        self.call("POST", "/v3/JS/{api_key}/events", {"mpid": self.mpid, "das": self.device}, api_key=f"{self.app}-all")
        self.call("POST", "/v1/logout", self._identities(**stamp))

    def _sessions(self) -> None:
        device, name = self.device, self.external_id
        proof = {"userId": name, "userAuthToken": token(name, app=self.app)}
        self.call("POST", "/v1/verification/login", {"deviceId": device, **proof})
        self.call("POST", "/v1/verification/login-identity", {"deviceId": self.names.fresh("device"), "identityToken":
                  identity_token([{"identifier": "uid", "value": name}], app=self.app)})
        self.call("POST", "/v1/verification/check", proof)
        self.call("GET", "/v1/verification/sessions/{device_id}", device_id=device)
        self.call("GET", "/admin/v1/sessions/{device_id}", device_id=device)
        self.call("POST", "/v1/verification/logout", {"deviceId": device})

    def _support(self) -> None:
        by = {"author": self.names.fresh("kim"), "reason": f"the case of {self.names.fresh('reason')}"}
        new = self.names.fresh("renamed")
        self.call("GET", "/admin/v1/key")
        self.call("GET", "/admin/v1/status")
        self.call("GET", "/admin/v1/dead-letters")
        self.call("GET", "/admin/v1/users/{user_id}", user_id=self.user)
        self.call("GET", "/admin/v1/profiles/{mpid}", mpid=self.mpid)
        self.call("GET", "/admin/v1/facts/{id}", id=self.install)
        self.call("POST", "/admin/v1/users/resolve", {"externalId": self.external_id})
        self.call("POST", "/admin/v1/users/resolve", {"externalId": self.names.fresh("nobody")})
        self.call("POST", "/admin/v1/profiles/resolve", {"identity": {"type": "email", "value": self.mail}})
        self.call("POST", "/admin/v1/facts/resolve", {"id": self.mail})
        self.call("POST", "/admin/v1/people/resolve", {"id": self.external_id})
        place = {"org_id": "1", "account_id": "2", "workspace_id": "3"}
        self.call("GET", "/userprofile/v1/{org_id}/{account_id}/{workspace_id}/{mpid}", query="?fields=user_identities",
                  mpid=self.mpid, **place)
        self.call("POST", "/userprofile/v1/resolve/{org_id}/{account_id}/{workspace_id}", {
            "environment_type": "production", "identity": {"type": "customer_id", "value": self.external_id}},
            query="?fields=user_identities", **place)
        for dry in ("?dryRun=true", ""):
            self.call("POST", "/admin/v1/link/make-active", {"installId": self.install, **by}, query=dry)
            self.call("POST", "/admin/v1/link/set-install-status", {"installId": self.install, "status": "disabled", **by},
                      query=dry)
            self.call("POST", "/admin/v1/link/change-external-id", {
                "externalId": self.external_id, "newExternalId": new, **by}, query=dry)
            self.call("POST", "/admin/v1/link/unlink-user", {"userId": self.user, **by}, query=dry)
            self.call("POST", "/admin/v1/sync/restrict", {"mpid": self.mpid, "isRestricted": True, **by}, query=dry)
            moved = self.call("POST", "/admin/v1/sync/detach", {
                "mpid": self.mpid, "identities": [{"type": "email", "value": self.mail}], **by}, query=dry)
        self.call("POST", "/admin/v1/sync/allow", {"mpid": self.mpid, "otherMPID": str(moved["newMPID"]), **by})
        self.call("POST", "/admin/v1/sync/restrict", {"mpid": self.mpid, "isRestricted": False, **by})

    def _erasures(self) -> None:
        request = self.names.uuid()
        filed = {
            "regulation": "gdpr", "subject_request_id": request, "subject_request_type": "access",
            "submitted_time": "2026-10-02T15:00:00Z", "api_version": "3.0", "group_id": self.names.fresh("group"),
            "subject_identities": {"email": {"value": self.mail, "encoding": "raw"},
                                   "controller_customer_id": {"value": self.external_id, "encoding": "raw"}}}
        self.call("POST", "/v3/requests", filed)
        self.call("GET", "/v3/requests/{request_id}", request_id=request)
        self.call("GET", "/v3/requests", query=f"?group_id={filed['group_id']}")
        self.call("GET", "/v3/requests/{request_id}/results", request_id=request)
        self.call("DELETE", "/v3/requests/{request_id}", request_id=request)
        self.call("GET", "/v3/discovery")
        self.call("GET", "/openapi.json")
        self.call("DELETE", "/v1/profiles/{mpid}", mpid=self.mpid)
        self.call("GET", "/v1/profiles/{mpid}/erasure", mpid=self.mpid)
        why = {"author": self.names.fresh("kim"), "reason": "asked"}
        self.call("POST", "/admin/v1/link/erase-user", {"userId": self.user, **why})
        self.call("GET", "/admin/v1/users/{user_id}/erasure", user_id=self.user)
        self.call("GET", "/users/{user_id}/erasure", user_id=self.user)
        self.call("DELETE", "/users/{user_id}", user_id=self.user)


def operations() -> set[tuple[str, str]]:
    documents = [json.loads((REPOSITORY / "docs" / name).read_text()) for name in ("openapi.json", "openapi-admin.json")]
    return {(method.upper(), path) for document in documents for path, methods in document["paths"].items()
            for method, operation in methods.items() if isinstance(operation, dict) and "operationId" in operation}


@dataclass
class Used:
    deployment: GatewayDeployment
    services: list[Service]
    collector: SpanCollector
    names: Names
    called: set[tuple[str, str]]


def crowd(app: str, names: Names) -> list[Command]:
    """On every partition of two services, and what is not taken."""
    made = []
    for _ in range(40):
        install, device = names.fresh("install"), names.fresh("device")
        made.append(command("link.register-install", {"installId": install, "device": PHONE, "user": "new"}, app))
        made.append(command("sync.identify", {"deviceId": device, "knownIdentities": {"ios_idfv": device}}, app))
    install = names.fresh("install")
    # A producer who makes an id of a command of a person's, and one who has no key.
    made.append(command("link.query", {"installId": install}, app).but(id=f"query-of-{install}"))
    made.append(command("link.request", {"installId": install, "externalId": names.fresh("ext")}, app).but(
        signer="nobody-known", id=f"request-of-{install}"))
    made.append(command("link.get-user", {"externalId": names.fresh("ext")}, app))
    made.append(command("sync.search", {"deviceId": names.fresh("d"), "knownIdentities": {"email": names.fresh("x")}}, app))
    return made


@pytest.fixture(scope="module")
def used(directory: Path, open_deployment: Callable[..., AbstractContextManager[Deployment]]) -> Iterator[Used]:
    prefix = f"e2e-{uuid.uuid4().hex[:8]}."
    broker = Broker.for_tests(directory / f"broker-{uuid.uuid4().hex[:8]}", prefix, partitions=12)
    collector, names = SpanCollector(), Names()
    try:
        with open_deployment("sqlite", broker, prefix, services=SERVICES, kind=GatewayDeployment) as deployment:
            assert isinstance(deployment, GatewayDeployment)
            apps.write(deployment.apps_file, [recorded_app(app) for app in APPS])
            more = collector.environment | {"OTEL_SEMCONV_STABILITY_OPT_IN": "http,messaging"}
            services = [deployment.process(name, ALIAS_DELAY="0", **more).start() for name in SERVICES]
            gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0", **more)
            services.append(gateway.start())
            for service in services:
                service.wait_ready()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(story, "fresh", names.fresh)
                people = Story(deployment)
                for part in (people.users, people.links, people.profiles, people.sessions, people.attributes):
                    part()
            called: set[tuple[str, str]] = set()
            for app in APPS:
                deployment.bus.send_all(crowd(app, names))
                tour = Tour(gateway, app, names)
                tour.play(all=app in (APP, PLAIN))
                assert not tour.problems, tour.problems
                called |= tour.called
            deployment.bus.put(b"no envelope", [], names.fresh("key").encode())
            heard = deployment.bus.collector
            for records in (*heard.replies.values(), *heard.events.values()):
                for record in records:
                    names.read(record.data)
            until(lambda: all(service.metric("kafka_consumer_lag") == 0 for service in services[:-1]), 30, "all is decided")
            yield Used(deployment, services, collector, names, called)
    finally:
        collector.close()
        broker.close()


def test_everything_is_done(used: Used) -> None:
    """By the documents of both ports, and by each kind of id."""
    assert operations() - used.called == set()
    kinds = {name.partition("-")[0] for name in used.names.all}
    assert {"ext", "install", "device", "mail", "renamed", "ada", "phone", "carl", "eve"} <= kinds
    assert any(re.fullmatch(r"[0-9a-f]{24}", name) for name in used.names.all), "a user id"
    assert any(re.fullmatch(r"-?\d{15,}", name) for name in used.names.all), "an MPID"


def test_no_span_names_anybody(used: Used) -> None:
    """Looked for in what was sent, byte for byte, and in each attribute."""
    until(lambda: {span.service for span in used.collector.spans} == {f"identitybus-{s.name}" for s in used.services}, 10,
          "spans of all")
    assert not used.names.found_in(b"\n".join(used.collector.bodies))
    said = {str(value) for span in used.collector.spans for value in (span.name, *span.attributes.values())}
    assert not said & used.names.all


def test_no_metric_names_anybody(used: Used) -> None:
    for service in used.services:
        assert not used.names.found_in(service.get("/metrics")[1].encode()), service.name


def test_no_line_of_the_log_names_anybody(used: Used) -> None:
    for service in used.services:
        found = used.names.found_in(service.text.encode())
        assert not found, (service.name, [line for name in sorted(found)[:3] for line in service.lines(name)[:2]])


def test_the_metrics_are_few(used: Used) -> None:
    """With six apps on twelve partitions, and every operation of the gateway in use. Those under OpenTelemetry's names, which
    nobody has who does not ask for them, are not counted."""
    for service in used.services:
        samples = [line for line in service.get("/metrics")[1].splitlines() if not line.startswith("#")]
        ours = [line for line in samples if not line.startswith(("http_", "messaging_"))]
        print(f"\n{service.name}: {len(ours)} series, {len(samples)} with OpenTelemetry's names")
        assert len(ours) <= 1000, service.name
        partitions = {name for line in samples for name in re.findall(r'^kafka_consumer_lag.*partition="(\d+)"', line)}
        seen = {name for line in samples for name in re.findall(r'^identity_app_commands_total.*app="(\w+)"', line)}
        assert service.name == "gateway" or (len(partitions), seen) == (12, set(APPS)), (service.name, partitions, seen)
