# SPDX-License-Identifier: Apache-2.0
"""Requests of data subjects as privacy tools send them (docs/gateway.md "Data subjects"): through the gateway and all services
as they run."""

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from identitybus_testkit import apps
from identitybus_testkit.clock import Clock
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.gateway import SERVICES, Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, basic, bearer
from identitybus_testkit.waiting import until

DOCUMENT = json.loads((Path(__file__).resolve().parents[2] / "docs" / "openapi.json").read_text())
DAY = 86_400


def app(name: str, hours: int) -> dict[str, Any]:
    return {
        "id": name,
        "keys": [
            apps.key(f"{name}-privacy", "user.delete", "support"), apps.key(f"{name}-reader", "support"),
            apps.key(f"{name}-admin", "user.delete", "admin"), apps.key(f"{name}-backend", "user.link", "user.delete"),
            apps.key(f"{name}-sdk", "sdk", "identity.sync"),
        ],
        # Families share an e-mail.
        "sync": {**apps.worked("conversion"), "uniqueIdentities": ["customerid"], "fromLinks": True},
        "dsr": {"delayHours": hours},
    }


class Office:
    def __init__(self, deployment: GatewayDeployment) -> None:
        apps.write(deployment.apps_file, [app("now", 0), app("later", 72)])
        self.deployment = deployment
        self.clock = Clock(deployment.directory)
        services = [deployment.process(name, **self.clock.environment).start() for name in SERVICES]
        gateways = [deployment.gateway().start() for _ in range(2)]
        for service in services + gateways:
            service.wait_ready()
        # Nothing is kept in a gateway: what one is told another answers.
        self.api, self.other = (gateway.client for gateway in gateways if isinstance(gateway, Gateway))

    def send(self, method: str, path: str, body: Any = None, key: str = "now-privacy", other: bool = False) -> Answer:
        return (self.other if other else self.api).send(method, path, body, basic(key))

    def file(self, kind: str, identities: Any = None, key: str = "now-privacy", **more: Any) -> tuple[str, Answer]:
        id_ = str(more.pop("id", uuid.uuid4()))
        body = {
            "regulation": "gdpr", "subject_request_id": id_, "subject_request_type": kind,
            "submitted_time": "2026-10-02T15:00:00Z", "api_version": "3.0", **more}
        if identities is not None:
            body["subject_identities"] = {
                type_: {"value": value, "encoding": "raw"} for type_, value in identities.items()}
        return id_, self.send("POST", "/v3/requests", body, key)

    def status(self, id_: str, key: str = "now-privacy") -> dict[str, Any]:
        answer = self.send("GET", f"/v3/requests/{id_}", key=key, other=True)
        assert answer.status == 200, answer.body
        valid("SubjectRequestStatus", answer.json)
        return dict(answer.json)

    def wait(self, id_: str, status: str, key: str = "now-privacy") -> dict[str, Any]:
        until(lambda: self.status(id_, key)["request_status"] == status, 60, lambda: f"{status}: {self.status(id_, key)}")
        return self.status(id_, key)

    def kept(self, id_: str) -> tuple[bytes, bool]:
        """What the sync service keeps of it, and whether that names anybody."""
        [(record, is_open)] = self.deployment.database.execute(
            "SELECT record, is_open FROM subject_requests WHERE request_id = ?", (id_,), service="sync")
        return bytes(record), bool(is_open)

    def logs_in(self, app_: str = "now", **identities: str) -> str:
        body = {"environment": "production", "known_identities": identities}
        answer = self.api.send("POST", "/v1/login", body, basic(f"{app_}-sdk"))
        assert answer.status == 200, answer.body
        return str(answer.json["mpid"])

    def signs_up(self, external_id: str) -> dict[str, Any]:
        code = self.api.post("/users/auth-code", {"external_id": external_id}, "now-backend").json
        body = {"installId": fresh("install"), "device": PHONE, "authCode": code["authentication_code"]}
        answer = self.api.post("/sdk/v1/users", body, "now-sdk")
        assert answer.status == 200, answer.body
        return dict(answer.json)


def valid(schema: str, instance: Any) -> None:
    jsonschema_rs.validate(
        {"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]}, instance)


def error(answer: Answer) -> tuple[int, str]:
    valid("PrivacyError", answer.json)
    assert answer.json["error"]["code"] == answer.status
    return answer.status, str(answer.json["error"]["errors"][0]["reason"])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, make_deployment: Callable[..., GatewayDeployment]) -> Iterator[Office]:
    yield Office(make_deployment(request.param, services=tuple(SERVICES), kind=GatewayDeployment))


def test_discovery(office: Office) -> None:
    for path in ("/v3/discovery", "/v2/discovery"):
        answer = office.api.get(path)
        assert answer.status == 200
        valid("Discovery", answer.json)
        types = {one["identity_type"] for one in answer.json["supported_identities"]}
        assert {"controller_customer_id", "email", "ios_vendor_id", "android_advertising_id"} <= types
        assert set(answer.json["supported_subject_request_types"]) == {"access", "erasure", "portability"}


def test_an_erasure(office: Office) -> None:
    """S211, S214, S215."""
    anna, device = fresh("anna"), fresh("device")
    user = office.signs_up(anna)
    mpid = office.logs_in(customerid=anna, device_application_stamp=device)
    id_, filed = office.file("erasure", {"controller_customer_id": anna}, group_id="batch-1")
    assert filed.status == 201, filed.body
    valid("SubjectRequestReceipt", filed.json)
    assert filed.json["controller_id"] == "now" and filed.headers["X-OpenDSR-Processor-Domain"]
    assert json.loads(base64.b64decode(filed.json["encoded_request"]))["subject_request_id"] == id_
    again = office.file("erasure", {"controller_customer_id": anna}, id=id_, group_id="batch-1")[1]
    assert again.status == 201 and again.json["received_time"] == filed.json["received_time"]
    assert error(office.file("erasure", {"controller_customer_id": "x"}, id=id_)[1]) == (400, "INVALID_REQUEST")
    done = office.wait(id_, "completed")
    [certificate] = done["extensions"]["identitybus"]["certificates"]
    assert certificate["subject"] == {"userIds": [user["userId"]], "mpids": [mpid]} and "completedAt" in certificate
    assert office.logs_in(customerid=anna, device_application_stamp=device) != mpid
    group = office.send("GET", "/v3/requests?group_id=batch-1").json
    assert [one["subject_request_id"] for one in group] == [id_]
    assert error(office.send("DELETE", f"/v3/requests/{id_}")) == (409, "REQUEST_STARTED")
    assert error(office.send("GET", f"/v3/requests/{id_}/results")) == (404, "NOT_FOUND_ERROR")
    for table in ("subject_requests",):
        rows = office.deployment.database.execute(f"SELECT record FROM {table}", service="sync")
        assert rows and all(anna.encode() not in bytes(record) for record, in rows)


def test_an_erasure_by_email_where_several_hold_it_is_never_completed(office: Office) -> None:
    """S214."""
    email = f"{fresh('family')}@mail.example"
    people = [
        office.logs_in(customerid=fresh("one"), email=email, device_application_stamp=fresh("device"))
        for _ in range(3)]
    assert len(set(people)) == 3
    id_, _ = office.file("erasure", {"email": email})
    told = office.wait(id_, "in_progress")["extensions"]["identitybus"]
    assert told["reason"] == "AMBIGUOUS_IDENTITY" and told["heldByOthers"] == 3 and "certificates" not in told
    # Two of them are named otherwise; the third still has the e-mail.
    for mpid in people[:2]:
        answer = office.api.send("DELETE", f"/v1/profiles/{mpid}", None, bearer("now-backend"))
        assert answer.status == 200 and answer.json["subject"]["mpids"] == [mpid], answer.body
        read = office.api.get(f"/v1/profiles/{mpid}/erasure", "now-backend")
        assert read.status == 200 and read.json["subject"] == answer.json["subject"]
    # It is looked at again each hour. The gateway's clock is another one: what it sends would be too late.
    office.clock.set(3700)
    try:
        until(lambda: b"completed" in office.kept(id_)[0], 60, lambda: f"it is completed: {office.kept(id_)}")
    finally:
        office.clock.set(0)
    done = office.wait(id_, "completed")
    # Also of those whom somebody else has erased meanwhile (S215).
    certificates = done["extensions"]["identitybus"]["certificates"]
    assert sorted(mpid for one in certificates for mpid in one["subject"]["mpids"]) == sorted(people)

    others = [
        office.logs_in(customerid=fresh("one"), email=email, device_application_stamp=fresh("device"))
        for _ in range(2)]
    every = {"identitybus": {"every_holder": True}}
    assert error(office.file("erasure", {"email": email}, extensions=every)[1]) == (403, "INSUFFICIENT_SCOPE")
    id_, filed = office.file("erasure", {"email": email}, key="now-admin", extensions=every)
    assert filed.status == 201, filed.body
    gone = office.wait(id_, "completed")["extensions"]["identitybus"]["certificates"]
    assert {mpid for one in gone for mpid in one["subject"]["mpids"]} == set(others)


def test_a_request_is_cancelled_in_time(office: Office) -> None:
    """S212."""
    anna = fresh("anna")
    mpid = office.logs_in("later", customerid=anna, device_application_stamp=fresh("device"))
    id_, filed = office.file("erasure", {"controller_customer_id": anna}, key="later-privacy")
    assert filed.status == 201
    assert office.status(id_, "later-privacy")["request_status"] == "pending"
    cancelled = office.send("DELETE", f"/v3/requests/{id_}", key="later-privacy")
    assert cancelled.status == 202
    valid("SubjectRequestCancelled", cancelled.json)
    assert office.status(id_, "later-privacy")["request_status"] == "cancelled"
    assert office.logs_in("later", customerid=anna, device_application_stamp=fresh("device")) == mpid


@pytest.mark.parametrize("kind", ["access", "portability"])
def test_what_is_held_of_a_person(office: Office, kind: str) -> None:
    """S216, S217."""
    anna, device = fresh("anna"), fresh("device")
    user = office.signs_up(anna)
    email = f"{anna}@mail.example"
    mpid = office.logs_in(customerid=anna, email=email, device_application_stamp=device)
    # Somebody else uses the same device.
    office.logs_in(customerid=fresh("bert"), device_application_stamp=device)
    office.logs_in(customerid=anna, device_application_stamp=device)
    id_, filed = office.file(kind, {"email": email})
    assert filed.status == 201, filed.body
    done = office.wait(id_, "completed")
    assert done["results_count"] == 1 and done["results_url"].endswith(f"/v3/requests/{id_}/results")
    path = done["results_url"].partition("://")[2].partition("/")[2]
    answer = office.send("GET", f"/{path}", key="now-reader")
    assert answer.status == 200, answer.body
    valid("SubjectExport", answer.json)
    [profile] = answer.json["profiles"]
    assert profile["mpid"] == mpid and profile["identities"]["email"] == [email]
    assert [one["userId"] for one in answer.json["users"]] == [user["userId"]]
    assert "bert" not in answer.body.decode()
    assert error(office.send("GET", f"/v3/requests/{id_}/results", key="now-admin")) == (403, "INSUFFICIENT_SCOPE")
    office.clock.set(8 * DAY)
    try:
        until(lambda: not office.kept(id_)[1], 60, "nothing of it is kept")
    finally:
        office.clock.set(0)
    assert error(office.send("GET", f"/v3/requests/{id_}/results")) == (410, "RESULTS_GONE")
    assert office.status(id_)["results_count"] == 1


def test_version_two(office: Office) -> None:
    """F62."""
    anna = fresh("anna")
    mpid = office.logs_in(customerid=anna, device_application_stamp=fresh("device"))
    id_ = str(uuid.uuid4())
    body = {
        "regulation": "ccpa", "subject_request_id": id_, "subject_request_type": "erasure", "api_version": "2.0",
        "submitted_time": "2026-10-02T15:00:00Z",
        "subject_identities": [
            {"identity_type": "controller_customer_id", "identity_value": anna, "identity_format": "raw"}]}
    assert office.send("POST", "/v2/requests", body).status == 201
    [certificate] = office.wait(id_, "completed")["extensions"]["identitybus"]["certificates"]
    assert certificate["subject"]["mpids"] == [mpid]


def test_what_is_refused(office: Office) -> None:
    right = {"controller_customer_id": "x"}
    assert error(office.file("erasure", right, status_callback_urls=["https://x.example"])[1])[0] == 400
    assert error(office.file("erasure", {"customerid": "x"})[1]) == (400, "INVALID_REQUEST")
    assert error(office.file("rectification", right)[1]) == (400, "INVALID_REQUEST")
    assert error(office.file("erasure", right, id="no-uuid")[1]) == (400, "INVALID_REQUEST")
    assert error(office.file("erasure", {"controller_customer_id": "null"})[1]) == (400, "VALIDATION_ERROR")
    assert error(office.file("erasure")[1]) == (400, "INVALID_REQUEST")
    vendors = {"opendsr.mparticle.com": {"subject_identities": {"mpid": {"value": "7", "encoding": "raw"}}}}
    assert error(office.file("erasure", right, extensions=vendors)[1]) == (400, "INVALID_REQUEST")
    assert error(office.file("access", right, key="now-backend")[1]) == (403, "INSUFFICIENT_SCOPE")
    assert error(office.file("erasure", right, key="now-sdk")[1]) == (403, "INSUFFICIENT_SCOPE")
    assert error(office.send("GET", f"/v3/requests/{uuid.uuid4()}")) == (404, "NOT_FOUND_ERROR")
    assert error(office.api.send("GET", f"/v3/requests/{uuid.uuid4()}"))[0] == 401
    digest = {"subject_identities": {"email": {"value": "0" * 64, "encoding": "sha256"}}}
    assert error(office.file("erasure", None, **digest)[1]) == (400, "INVALID_REQUEST")


def test_by_mpid(office: Office) -> None:
    """F63: an MPID stands alone, in the vendor's extension."""
    mpid = office.logs_in(customerid=fresh("anna"), device_application_stamp=fresh("device"))
    vendors = {"opendsr.mparticle.com": {"subject_identities": {"mpid": {"value": mpid, "encoding": "raw"}}}}
    id_, filed = office.file("erasure", None, extensions=vendors)
    assert filed.status == 201, filed.body
    [certificate] = office.wait(id_, "completed")["extensions"]["identitybus"]["certificates"]
    assert certificate["subject"]["mpids"] == [mpid]
