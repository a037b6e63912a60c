# SPDX-License-Identifier: Apache-2.0
"""What nobody uses goes by itself (docs/sync.md "Retention"): through all services as they run, whose clock the test sets."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit.clock import Clock
from identitybus_testkit.commands import PHONE, fresh
from identitybus_testkit.gateway import SERVICES, GatewayDeployment
from identitybus_testkit.http import Answer, basic
from identitybus_testkit.tokens import shown
from identitybus_testkit.waiting import until

DAY = 86_400
APP = "kept"


def kept() -> dict[str, Any]:
    return {
        "id": APP,
        "keys": [
            apps.key("kept-backend", "user.link", "user.delete", "verification.check"),
            apps.key("kept-sdk", "sdk", "identity.sync"), apps.key("kept-support", "support"),
        ],
        "sdk": {"appSecret": apps.APP_SECRET, "tokenLifetimeSeconds": 7 * DAY, "tokenGraceSeconds": 7 * DAY},
        "sync": {**apps.worked("conversion"), "fromLinks": True},
        "verification": {"mode": "off"},
        "retention": {
            "anonymousDays": 14, "orphanDays": 14, "deviceDays": 20, "sessionDays": 14, "unlinkedDays": 14},
    }


class Home:
    def __init__(self, deployment: GatewayDeployment) -> None:
        apps.write(deployment.apps_file, [kept()])
        self.deployment = deployment
        self.clock = Clock(deployment.directory)
        self.services = {name: deployment.process(name, **self.clock.environment).start() for name in SERVICES}
        gateway = deployment.gateway(GATEWAY_ADMIN_PORT="0")
        gateway.start().wait_ready()
        self.api, self.admin = gateway.client, gateway.admin
        for service in self.services.values():
            service.wait_ready()

    def moves(self, call: str, **identities: str) -> str:
        body = {"environment": "production", "known_identities": identities}
        answer = self.api.send("POST", f"/v1/{call}", body, basic("kept-sdk"))
        assert answer.status == 200, answer.body
        return str(answer.json["mpid"])

    def profile(self, mpid: str) -> Answer:
        return self.admin.get(f"/admin/v1/profiles/{mpid}", "kept-support")

    def signs_up(self) -> dict[str, Any]:
        body = {"installId": fresh("install"), "device": PHONE, "appSecret": apps.APP_SECRET, "linking": "none"}
        answer = self.api.post("/sdk/v1/users", body, "kept-sdk")
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def user(self, user: str) -> Answer:
        return self.admin.get(f"/admin/v1/users/{user}", "kept-support")

    def reads(self, user: dict[str, Any]) -> Answer:
        return self.api.send("GET", f"/sdk/v1/installs/{user['installId']}", None, shown(user["token"]["tokenId"]))

    def has(self, mpid: str) -> bool:
        """Not asked over HTTP: what the gateway sends expires by the clock of everybody else."""
        rows = self.deployment.database.execute(
            "SELECT 1 FROM profiles WHERE mpid = ?", (int(mpid),), service="sync")
        return bool(rows)

    def expired(self, what: str) -> int:
        total = 0
        for service in self.services.values():
            for line in service.get("/metrics")[1].splitlines():
                if line.startswith("identity_expired_total") and f'what="{what}"' in line:
                    total += int(float(line.rsplit(" ", 1)[1]))
        return total


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, make_deployment: Callable[..., GatewayDeployment]) -> Iterator[Home]:
    yield Home(make_deployment(request.param, services=tuple(SERVICES), kind=GatewayDeployment))


def test_what_nobody_uses_goes_and_nobody_else(home: Home) -> None:
    """S202 to S206, V200, U200, L200."""
    # Nobody's any more: the device has another anonymous user by now.
    device = fresh("device")
    left = home.moves("identify", device_application_stamp=device)
    present = home.moves("logout", device_application_stamp=device)
    assert left != present
    anna, phone = fresh("anna"), fresh("phone")
    known = home.moves("login", customerid=anna, device_application_stamp=phone)
    unlinked, linked = home.signs_up(), home.signs_up()
    link = home.api.post(f"/v2/users/{linked['installId']}/link", {"external_id": fresh("kim")}, "kept-backend")
    assert link.status == 200, link.body
    for user in (unlinked, linked):
        assert home.reads(user).status == 200
    answer = home.api.post("/v1/verification/login", {"deviceId": fresh("session")}, "kept-sdk")
    assert answer.status == 200 and answer.json["state"] == "anonymous", answer.body

    # A clock that is two weeks ahead takes nobody, though by it most days would be over.
    home.clock.set(14 * DAY + 60)
    until(lambda: all(walked(home, name) for name in ("sync", "user", "verification")), 60, "all were looked at")
    assert [home.expired(what) for what in ("profile", "device", "session", "user")] == [0, 0, 0, 0]
    assert home.has(left) and home.has(present)

    home.clock.set(30 * DAY)
    until(lambda: not home.has(left), 60, "the profile goes that is on no device")
    until(lambda: home.expired("session") == 1 and home.expired("user") == 1, 60, "the session and the user go")
    assert home.expired("device") == 0 and home.has(present)
    home.clock.set(60 * DAY)
    until(lambda: home.expired("device") >= 1, 60, "the devices go")
    # Who was on a device goes the next time.
    home.clock.set(60 * DAY + 7200)
    until(lambda: not home.has(present), 60, "the user of the device goes")

    home.clock.set(0)
    assert home.profile(left).status == home.profile(present).status == 404
    assert home.user(unlinked["userId"]).status == 404
    assert home.reads(unlinked).status in (403, 404) and home.reads(linked).status == 200
    assert home.profile(known).json["isLoggedIn"] is True
    assert [one["deviceId"] for one in home.profile(known).json["devices"]] != []
    assert home.user(linked["userId"]).status == 200
    assert home.moves("login", customerid=anna, device_application_stamp=phone) == known


def walked(home: Home, service: str) -> bool:
    """Whether it has come to the end by the clock of now."""
    rows = home.deployment.database.execute("SELECT pass, ask_at FROM retention_walks", service=service)
    ahead = (time.time() + 14 * DAY) * 1000
    return bool(rows) and all(row[0] >= 1 and row[1] > ahead for row in rows)


def test_days_below_the_inboxs_are_refused(make_deployment: Callable[..., GatewayDeployment]) -> None:
    """S201."""
    deployment = make_deployment("sqlite", services=("sync", "link"), kind=GatewayDeployment)
    short = kept()
    short["retention"] = {"anonymousDays": 13}
    apps.write(deployment.apps_file, [short])
    service = deployment.process("sync").start()
    assert service.wait(60) == 78, service.tail()
    assert "anonymousDays: is shorter than JOURNAL_RETENTION_HOURS, 336" in service.text
    again = deployment.process("sync", JOURNAL_RETENTION_HOURS="312").start().wait_ready()
    assert again.stop() == 0
