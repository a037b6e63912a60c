# SPDX-License-Identifier: Apache-2.0
"""What a page with the vendor's web SDK may do: the tables of docs/verification.md (V59, V60), row by row.

Each test runs with the requests that the SDK makes, and with the SDK itself where WEB_SDK names its bundle
(dist/mparticle.js of a release; Node.js and jsdom carry it out)."""

import base64
import hashlib
import hmac
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.gateway import Gateway, GatewayDeployment
from identitybus_testkit.http import Answer, Client, basic
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.secrets import SECRET_PREFIX
from identitybus_testkit.verification import ServiceBus
from identitybus_testkit.waiting import until
from identitybus_testkit.web_sdk import NOT_SENT, REFUSED, FormPage, Page, Said, SDKPage

BUNDLE = os.environ.get("WEB_SDK")
# All calls with the key's id alone, as a page shows it.
ALL_CALLS = {"gateway": {"keyOnly": ["identify", "login", "logout", "modify", "search", "alias"]}}
BY_ID_ONLY = apps.worked("conversion") | {"loginIdentities": ["customerid"], "uniqueIdentities": ["customerid"]}
TOKENS = BY_ID_ONLY | {"uniqueIdentities": ["customerid", "push_token"]}
STRATEGIES: dict[str, dict[str, object]] = {
    "default": {"strategy": "default"}, "userIdThenEmail": {"strategy": "userIdThenEmail"},
    "conversion": apps.worked("conversion")}
PERSONS = ("customerid", "email", "mobile_number", "other")


def enforcing(app: str, sync: dict[str, object]) -> dict[str, Any]:
    """An app whose pages may make all calls."""
    made: dict[str, Any] = apps.enforcing(app, sync) | ALL_CALLS
    return made | {"keys": [*made["keys"], apps.key(f"{app}-desk", "verification.check")]}


def moving(app: str, mode: str) -> dict[str, Any]:
    """An app that does not enforce yet. Its logins may name an e-mail, which logs nobody in."""
    made = enforcing(app, BY_ID_ONLY)
    return made | {"verification": made["verification"] | {"mode": mode, "signedFields": "vendor"}}


def all_apps(now: str = "") -> list[dict[str, object]]:
    """`now`: the mode of those that move."""
    return [
        *[enforcing(name, sync) for name, sync in [*STRATEGIES.items(), ("tokens", TOKENS)]],
        *[moving(f"from-{mode}", now or mode) for mode in ("off", "report")],
        apps.sync_app("all", apps.worked("conversion")) | ALL_CALLS,
        apps.sync_app("some", apps.worked("conversion")) | {"gateway": {"keyOnly": True}}]


@dataclass
class World:
    """An app, as its pages, its backend and other people's programs see it."""

    deployment: GatewayDeployment
    gateway: Gateway
    tls: Gateway | None
    app: str = ""
    pages: list[Page] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.gateway.client

    def page(self, device: str = "") -> Page:
        key = f"{self.app}-sdk"
        if self.tls is None:
            page: Page = FormPage(self.client, key, device)
        else:
            assert BUNDLE is not None
            page = SDKPage(Path(BUNDLE), self.tls.address, key, device)
        self.pages.append(page)
        return page

    def backend(self, call: str, **identities: str) -> Answer:
        body = {"environment": "development", "known_identities": identities}
        return self.client.send("POST", f"/v1/{call}", body, basic(f"{self.app}-backend"))

    def modify(self, mpid: str, kind: str, key: str = "sdk", value: str = "") -> int:
        change = {"identity_type": kind, "old_value": None, "new_value": value or fresh("value")}
        headers = {"x-mp-key": f"{self.app}-sdk"} if key == "sdk" else basic(f"{self.app}-{key}")
        body = {"environment": "development", "identity_changes": [change]}
        return self.client.send("POST", f"/v1/{mpid}/modify", body, headers).status

    def log_in(self, device: str, person: str, email: str = "", token: bool = True) -> Any:
        """`verification.login` with the key from the app."""
        secret = f"{SECRET_PREFIX}of-{self.app}-k1-with-32-bytes".encode()
        code = base64.b64encode(hmac.new(secret, (person + email).encode(), hashlib.sha256).digest()).decode()
        body = {"deviceId": device, "userId": person} | ({"userEmail": email} if email else {}) | (
            {"userAuthToken": code} if token else {})
        answer = self.client.post("/v1/verification/login", body, f"{self.app}-sdk")
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def session(self, device: str) -> Any:
        """As the app's backend sees it (V50)."""
        answer = self.client.get(f"/v1/verification/sessions/{device}", f"{self.app}-desk")
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def asked(self, device: str, signer: str) -> Any:
        """The reply to `sync.get-users`, over Kafka."""
        bus = ServiceBus(self.deployment.broker, self.deployment.prefix, "sync")
        try:
            return bus.settle(Command("sync.get-users", {"deviceId": device}, device, self.app, signer))
        finally:
            bus.close()

    def is_unknown(self, **identities: str) -> bool:
        return self.backend("search", **identities).status == 404


@pytest.fixture(scope="module")
def gateway(gateway_deployment: GatewayDeployment) -> Gateway:
    deployment = gateway_deployment
    apps.write(deployment.apps_file, all_apps())
    services = [deployment.process(name).start() for name in ("sync", "verification")]
    for service in services:
        service.wait_ready()
    gateway = deployment.gateway().start().wait_ready()
    assert isinstance(gateway, Gateway)
    return gateway


@pytest.fixture(scope="module")
def over_tls(gateway_deployment: GatewayDeployment, gateway: Gateway, directory: Path) -> Gateway:
    certificate, key = directory / "web-certificate.pem", directory / "web-key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    over_tls = gateway_deployment.gateway(GATEWAY_TLS_CERTIFICATE=str(certificate), GATEWAY_TLS_KEY=str(key))
    over_tls.start().wait_ready()
    return over_tls


def gateway_of_sdks(request: pytest.FixtureRequest) -> Gateway | None:
    """With the parameter `sdk`; skipped where there is no bundle."""
    if request.param == "requests":
        return None
    if not BUNDLE:
        pytest.skip("WEB_SDK does not name the web SDK's bundle")
    gateway = request.getfixturevalue("over_tls")
    assert isinstance(gateway, Gateway)
    return gateway


@pytest.fixture(params=["requests", "sdk"])
def world(
    request: pytest.FixtureRequest, gateway_deployment: GatewayDeployment, gateway: Gateway
) -> Iterator[World]:
    world = World(gateway_deployment, gateway, gateway_of_sdks(request))
    yield world
    for page in world.pages:
        page.close()


# What an unmodified SDK may do in an app that enforces (V59)

Row = Callable[[World], None]
ROWS: dict[str, Row] = {}


def row(name: str) -> Callable[[Row], Row]:
    """Of the table, by its first cell."""

    def add(test: Row) -> Row:
        ROWS[name] = test
        return test

    return add


def is_refused(said: Said, page: Page, mpid: str | None) -> None:
    """The page stays with its user."""
    assert (said.status, said.code, said.mpid) == (403, REFUSED, None)
    assert (page.mpid, page.is_logged_in) == (mpid, False)


@row("`identify` at the start of the app")
def identifies(world: World) -> None:
    person, page = fresh("person"), world.page()
    first = page.start()
    assert (first.status, first.code, page.mpid, page.is_logged_in) == (200, 200, first.mpid, False)
    assert world.page(page.device).start().mpid == first.mpid
    known = world.log_in(page.device, person)["mpid"]
    again = world.page(page.device)
    assert again.start().status == 200 and again.mpid != known and not again.is_logged_in
    # The app logs in again.
    assert world.log_in(page.device, person)["mpid"] == known
    for word in PERSONS:
        stranger, value = world.page(), f"{fresh('stranger')}@x.io"
        is_refused(stranger.start(**{word: value}), stranger, None)
        assert world.is_unknown(**{word: value})
        assert stranger.call("identify").status == 200 and stranger.mpid and not stranger.is_logged_in


@row("`login`")
def logs_in(world: World) -> None:
    page = world.page()
    anonymous = page.start().mpid
    assert page.call("login").mpid == anonymous
    for word in PERSONS:
        value = f"{fresh('person')}@x.io"
        is_refused(page.call("login", **{word: value}), page, anonymous)
        assert world.is_unknown(**{word: value})


@row("`logout`")
def logs_out(world: World) -> None:
    person, page, named = fresh("person"), world.page(), world.page()
    stays = []
    for each, identities in ((page, {}), (named, {"customerid": person, "other": f"{person}-other"})):
        anonymous = each.start().mpid
        out = each.call("logout", **identities)
        assert (out.status, out.code, each.mpid, each.is_logged_in) == (200, 200, out.mpid, False)
        stays.append(out.mpid == anonymous)
    assert stays[0] == stays[1], "as the strategy says, and the same"
    assert world.is_unknown(customerid=person) and world.is_unknown(other=f"{person}-other")
    # Also a person who is logged in can be logged out.
    known = world.log_in(page.device, person)["mpid"]
    assert page.call("logout", customerid=person).mpid != known and not page.is_logged_in


@row("`search`")
def searches(world: World) -> None:
    person, page = fresh("person"), world.page()
    anonymous = page.start().mpid
    found = page.call("search", device_application_stamp=page.device)
    assert (found.status, found.code, found.mpid) == ((404, 404, None) if world.app == "default" else (200, 200, anonymous))
    known = world.log_in(page.device, person)["mpid"]
    # Who is logged in there is nobody's business.
    assert page.call("search", device_application_stamp=page.device).mpid != known
    for word in PERSONS:
        refused = page.call("search", **{word: person if word == "customerid" else f"{person}@x.io"})
        assert (refused.status, refused.code, refused.mpid) == (403, 403, None)


@row("`modify` of an anonymous profile")
def modifies_an_anonymous_profile(world: World) -> None:
    page = world.page()
    anonymous = page.start().mpid
    assert anonymous
    assert world.modify(anonymous, "push_token") == 200
    if isinstance(page, SDKPage):
        unsent = page.call("modify", push_token=fresh("value"))
        assert (unsent.status, unsent.code) == (None, NOT_SENT), "this SDK knows no identities of a device there"
    for word in PERSONS:
        value = f"{fresh('person')}@x.io"
        is_refused(page.call("modify", **{word: value}), page, anonymous)
        assert world.is_unknown(**{word: value})


@row("`modify` of a known profile")
def modifies_a_known_profile(world: World) -> None:
    person, page = fresh("person"), world.page()
    anonymous = page.start().mpid
    known = world.log_in(page.device, person)["mpid"]
    for word in ("push_token", *PERSONS):
        assert world.modify(known, word, value=f"{fresh('mine')}@x.io") == 403
    # The page's own user became the person, so this is of a known profile too.
    if known == anonymous:
        value = f"{fresh('mine')}@x.io"
        is_refused(page.call("modify", email=value), page, known)
        assert world.is_unknown(email=value)


@row("`alias`")
def aliases(world: World) -> None:
    page, other, named, known = (world.page() for _ in range(4))
    mpids = [str(each.start().mpid) for each in (page, other, named, known)]
    mine, source = mpids[:2]
    allowed = (202, 202) if world.app != "userIdThenEmail" else (403, REFUSED)
    said = page.alias(source, mine)
    assert (said.status, said.code) == allowed
    assert world.modify(mpids[2], "other", "backend") == 200
    person = world.log_in(known.device, fresh("person"))["mpid"]
    for foreign in (mpids[2], person):
        for pair in ((foreign, mine), (mine, foreign)):
            is_refused(page.alias(*pair), page, mine)


@row("`verification.login` with a right token")
def is_logged_in(world: World) -> None:
    person, page = fresh("person"), world.page()
    page.start()
    session = world.log_in(page.device, person)
    assert session["state"] == "verified" and session["mpid"]
    assert world.backend("search", customerid=person).json["mpid"] == session["mpid"]
    # The SDK knows nothing of it; the backend asks.
    assert not page.is_logged_in and world.session(page.device)["mpid"] == session["mpid"]


@row("`get-users` (over Kafka)")
def asks_who_is_there(world: World) -> None:
    page = world.page()
    page.start()
    world.log_in(page.device, fresh("person"))
    assert world.asked(page.device, f"{world.app}-sdk")["reason"] == "VERIFICATION_REQUIRED"
    assert world.asked(page.device, f"{world.app}-backend")["status"] == "succeeded"


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_row(world: World, strategy: str, name: str) -> None:
    """V59."""
    world.app = strategy
    ROWS[name](world)


def test_every_row_of_the_page_has_a_test() -> None:
    """V59."""
    text = (REPOSITORY / "docs" / "verification.md").read_text()
    table = text[text.index("| call | with identities of a device only |"):]
    rows = table[:table.index("\n\n")].splitlines()[2:]
    assert [re.split(r" *\| *", line)[1] for line in rows] == list(ROWS)


def test_a_value_is_not_taken_from_a_person(world: World) -> None:
    """V59, S71."""
    world.app, value = "tokens", fresh("token")
    page = world.page()
    anonymous = str(page.start().mpid)
    known = world.log_in(fresh("device"), fresh("person"))["mpid"]
    assert world.modify(known, "push_token", "backend", value) == 200
    assert world.modify(anonymous, "push_token", value=value) == 403
    assert world.modify(anonymous, "push_token", value=fresh("token")) == 200


# In apps that do not enforce


def test_the_sdk_runs_unchanged(world: World) -> None:
    """F22, F42, F44. All of it where the app names all calls; where it says `true`, all but what docs/gateway.md says."""
    for app in ("all", "some"):
        world.app = app
        person, page, other = fresh("person"), world.page(), world.page()
        mail = f"{person}@example.com"
        page.start(), other.start()
        assert not page.is_logged_in
        known = str(page.call("login", customerid=person).mpid)
        assert page.mpid == known and page.is_logged_in
        calls = [page.call("modify", email=mail), page.call("search", customerid=person), page.alias(str(other.mpid), known)]
        if app == "all":
            assert [(said.status, said.code) for said in calls] == [(200, 200), (200, 200), (202, 202)]
            assert calls[0].mpid == calls[1].mpid == known
        else:
            assert [(said.status, said.code) for said in calls] == [(401, REFUSED), (401, 401), (401, REFUSED)]
        assert page.call("logout").status == 200 and not page.is_logged_in


# From off or report to enforce (V60)


@dataclass
class Before:
    """What the pages of an app did while it did not enforce."""

    world: World
    person: str
    page: Page
    known: str
    mail: str
    with_mail: list[tuple[Page, str]]
    unvouched: str


@pytest.fixture(scope="module", params=["requests", "sdk"])
def moved(
    request: pytest.FixtureRequest, gateway_deployment: GatewayDeployment, gateway: Gateway
) -> Iterator[dict[str, Before]]:
    """The apps do things without enforcing, then they enforce."""
    tls = gateway_of_sdks(request)
    apps.write(gateway_deployment.apps_file, all_apps())
    found = {}
    for mode in ("off", "report"):
        world = World(gateway_deployment, gateway, tls, f"from-{mode}")
        waits_for(world, 200)
        found[mode] = begin(world, mode)
    apps.write(gateway_deployment.apps_file, all_apps("enforce"))
    for before in found.values():
        waits_for(before.world, 403)
        # The services read the file each at its own time.
        until(lambda world=before.world: refuses_without_token(world), 40, "verification enforces")
    yield found
    for before in found.values():
        for page in before.world.pages:
            page.close()


def refuses_without_token(world: World) -> bool:
    """Whether a login without a token is refused."""
    body = {"deviceId": fresh("device"), "userId": fresh("probe")}
    return world.client.post("/v1/verification/login", body, f"{world.app}-sdk").status == 401


def waits_for(world: World, status: int) -> None:
    """For this answer to a page that names a person: until the services read the apps file."""

    def comes() -> bool:
        return FormPage(world.client, f"{world.app}-sdk").call("identify", customerid=fresh("probe")).status == status

    until(comes, 40, f"{status} in {world.app}")


def begin(world: World, mode: str) -> Before:
    person, mail = fresh("person"), f"{fresh('mail')}@x.io"
    page = world.page()
    page.start()
    known = page.call("login", customerid=person).mpid
    assert page.is_logged_in and known
    with_mail = []
    for each in range(2):
        other = world.page()
        anonymous = other.start(email=f"{each}-{mail}").mpid
        assert anonymous and not other.is_logged_in
        with_mail.append((other, anonymous))
    device = fresh("device")
    session = world.log_in(device, fresh("unvouched"), token=False)
    assert session["state"] == {"off": "unchecked", "report": "unverified"}[mode]
    return Before(world, person, page, known, mail, with_mail, device)


@pytest.mark.parametrize("mode", ["off", "report"])
class TestMoving:
    """V60. In the order of its sentences."""

    def test_people_stay_who_they_are(self, moved: dict[str, Before], mode: str) -> None:
        before = moved[mode]
        world = before.world
        assert world.backend("search", customerid=before.person).json["mpid"] == before.known
        assert world.log_in(fresh("device"), before.person)["mpid"] == before.known

    def test_users_stay_until_the_next_call(self, moved: dict[str, Before], mode: str) -> None:
        before = moved[mode]
        world, page = before.world, before.page
        users = world.asked(page.device, f"{world.app}-backend")["result"]["users"]
        assert [user["mpid"] for user in users if user["isCurrent"]] == [before.known]
        refused = page.call("login", customerid=before.person)
        assert (refused.status, refused.code, page.mpid) == (403, REFUSED, before.known)
        assert page.call("identify").status == 200 and page.mpid != before.known and not page.is_logged_in

    def test_anonymous_profiles_are_found_by_devices_only(self, moved: dict[str, Before], mode: str) -> None:
        before = moved[mode]
        for each, (page, anonymous) in enumerate(before.with_mail):
            assert before.world.is_unknown(email=f"{each}-{before.mail}")
            assert before.world.page(page.device).start().mpid == anonymous

    def test_an_anonymous_profile_with_an_email_waits_for_its_email(self, moved: dict[str, Before], mode: str) -> None:
        before = moved[mode]
        (first, mine), (second, not_mine) = before.with_mail
        assert before.world.log_in(first.device, fresh("person"), f"0-{before.mail}")["mpid"] == mine
        assert before.world.log_in(second.device, fresh("person"))["mpid"] != not_mine

    def test_sessions_that_nobody_vouched_for_end(self, moved: dict[str, Before], mode: str) -> None:
        before = moved[mode]
        session = before.world.session(before.unvouched)
        assert (session["state"], session["mayFileIssues"]) == ("unverified", False)
