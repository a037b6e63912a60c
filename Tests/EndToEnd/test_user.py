# SPDX-License-Identifier: Apache-2.0
"""User creation and restoration, sentence by sentence of docs/seeds.md 001 and 002, through the processes of the user and
the link service over Kafka, on both stores. Every test uses its own installs and external ids."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET, CONFIGURATION
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import OTHER, PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.secrets import digest
from identitybus_testkit.standin import StandIn, erased
from identitybus_testkit.tokens import claims
from identitybus_testkit.waiting import until

Reply = dict[str, Any]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def users(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Iterator[Deployment]:
    """A user and a link process, on each engine in turn, ready; a sync service that does all that it is asked."""
    deployment = make_deployment(request.param, services=("user", "link"))
    for name in ("user", "link"):
        deployment.service(name).start()
    for service in deployment.services:
        service.wait_ready()
    deployment.broker.ensure([f"{deployment.prefix}identity.sync.commands.v1"])
    sync = StandIn(deployment.broker, deployment.prefix, "sync", lambda _: [erased()])
    yield deployment
    sync.close()


@pytest.fixture
def bus(users: Deployment) -> Bus:
    return users.bus


def succeeded(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    assert "reason" not in reply, reply
    return reply["result"]


def rejected(reply: Reply, reason: str) -> None:
    assert (reply["status"], reply.get("reason")) == ("rejected", reason), reply
    assert reply["message"], "a rejection says why"
    assert "result" not in reply, reply


def code_for(bus: Bus, external_id: str, app: str = "demo") -> str:
    return succeeded(bus.ask(c.request_code(external_id, app)))["authenticationCode"]


def created(bus: Bus, external_id: str, device: dict[str, str] = PHONE) -> tuple[str, dict[str, Any]]:
    """A new install with the user of the external id on it."""
    install = fresh("install")
    return install, succeeded(bus.settle(c.create(install, device, authCode=code_for(bus, external_id))))


def created_unlinked(bus: Bus) -> tuple[str, dict[str, Any]]:
    install = fresh("install")
    return install, succeeded(bus.settle(c.create(install, appSecret=APP_SECRET, linking="none")))


def current(bus: Bus, install: str) -> dict[str, Any]:
    return succeeded(bus.ask(c.get(install)))


def remote_enabled(bus: Bus, install: str, expected: bool) -> None:
    """What another install did reaches the user service as an event."""
    until(lambda: current(bus, install)["isRemoteEnabled"] is expected, 30, f"isRemoteEnabled {expected} on {install}")


def told(bus: Bus, install: str, kind: str, timeout: float = 30) -> dict[str, Any]:
    """The one event of this kind about the install that the user service publishes."""
    def found() -> list[dict[str, Any]]:
        records = [record for records in list(bus.collector.events.values()) for record in records]
        # One that stands there twice has one id.
        return list({
            record.envelope["id"]: record.data for record in records
            if record.envelope["type"] == f"identity.user.{kind}.v1" and record.data["installId"] == install
        }.values())

    until(found, timeout, f"an event user.{kind} about {install}")
    assert len(found()) == 1
    return found()[0]


# Authentication codes


def test_seed_001_requesting_a_code_returns_a_short_lived_authentication_code(bus: Bus) -> None:
    """U2, U3, U6. 128 hex characters, milliseconds and Z, about ten minutes."""
    external_id = fresh("ext")
    command = c.request_code(external_id)
    result = succeeded(bus.ask(command))
    assert re.fullmatch(r"[0-9a-f]{128}", result["authenticationCode"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", result["expiresAt"])
    left = datetime.fromisoformat(result["expiresAt"]) - datetime.now(timezone.utc)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
    [(kind, data)] = bus.events(command.id, 1)
    assert kind == "auth-code-issued"
    assert data == {"externalId": external_id, "expiresAt": result["expiresAt"]}, "no code inside"


@pytest.mark.parametrize("signer", ["demo-sdk", "demo-admin"])
def test_seed_001_the_code_request_is_authenticated_using_an_api_key_of_the_server(bus: Bus, signer: str) -> None:
    """U1."""
    rejected(bus.ask(c.request_code(fresh("ext"), signer=signer)), "INSUFFICIENT_SCOPE")


def test_user_tokens_are_rejected_where_an_api_key_is_required(bus: Bus) -> None:
    """U1, U42."""
    command = c.request_code(fresh("ext"), signer="internal").but(
        attributes={"authtype": "app_user", "authid": "5a18fc4b0962209e0000000d"})
    rejected(bus.ask(command), "USER_TOKEN_NOT_ALLOWED")


@pytest.mark.parametrize("external_id", ["null", " anna", "0000", "x" * 751, ""])
def test_an_external_id_that_names_nobody_gets_no_code(bus: Bus, external_id: str) -> None:
    """U11."""
    rejected(bus.ask(c.request_code(external_id)), "INVALID_REQUEST")


def test_an_app_without_linking_gives_no_codes(bus: Bus) -> None:
    """U11."""
    rejected(bus.ask(c.request_code(fresh("ext"), app="unlinked")), "USERLINKING_NOT_CONFIGURED")


def test_the_same_request_again_gets_the_same_code_and_another_one_another(bus: Bus) -> None:
    command = c.request_code(fresh("ext"))
    first = succeeded(bus.ask(command))
    bus.send(command)
    assert [record.data["result"] for record in bus.reply_records(command.id, 2)] == [first, first]
    assert succeeded(bus.ask(command.again()))["authenticationCode"] != first["authenticationCode"]


# Creating


def test_seed_001_creating_responds_with_a_user_identifier_and_an_sdk_configuration(bus: Bus) -> None:
    """U13, U24."""
    install, external_id = fresh("install"), fresh("ext")
    command = c.create(install, authCode=code_for(bus, external_id), sdkVersion="6.2.0", appVersion="1.0")
    bus.send(command)
    first, last = bus.reply_records(command.id, 2)
    assert first.data == {
        "commandId": command.id, "commandType": "identity.user.create.v1",
        "commandDigest": digest("identity.user.create.v1", command.data), "status": "pending",
        "result": {"installId": install, "awaiting": "platform"}}
    assert first.envelope["id"] != last.envelope["id"]
    result = succeeded(last.data)
    assert re.fullmatch(r"[0-9a-f]{24}", result["userId"])
    assert (result["installId"], result["isLinked"], result["isRemoteEnabled"]) == (install, True, True)
    assert result["configuration"] == CONFIGURATION
    assert told(bus, install, "created") == {
        "installId": install, "userId": result["userId"], "isLinked": True, "isRemoteEnabled": True}
    # The link service says the same.
    found = succeeded(bus.ask(c.query(install)))
    assert (found["userId"], found["externalId"], found["isActive"]) == (result["userId"], external_id, True)


def test_the_token_is_the_users_and_valid_for_several_days_and_refreshable(bus: Bus) -> None:
    """U37."""
    install, result = created(bus, fresh("ext"))
    token = result["token"]
    found = claims(token["tokenId"])
    assert (found["sub"], found["aud"], found["install"]) == (result["userId"], "demo", install)
    expiry = datetime.fromisoformat(token["expiryDate"])
    assert expiry.timestamp() == found["exp"]
    assert timedelta(days=6) < expiry - datetime.now(timezone.utc) <= timedelta(days=7)
    time.sleep(1.1)
    assert current(bus, install)["token"]["expiryDate"] > token["expiryDate"], "user.get refreshes it"


def test_a_user_token_opens_the_installs_of_its_user_only(bus: Bus) -> None:
    """U38."""
    install, result = created(bus, fresh("ext"))
    other, _ = created(bus, fresh("ext"))
    by_user = lambda command: command.but(
        signer="internal", attributes={"authtype": "app_user", "authid": result["userId"]})
    assert succeeded(bus.ask(by_user(c.get(install))))["userId"] == result["userId"]
    for command in (c.get(other), c.reset(other), c.link(other, linking="linker"), c.confirm(other), c.get("unknown")):
        rejected(bus.ask(by_user(command)), "USER_TOKEN_NOT_ALLOWED")
    assert succeeded(bus.settle(by_user(c.reset(install)))) == {"installId": install}


def by(command: Command, kind: str, id: str) -> Command:
    """What the gateway sends for who shows a token."""
    return command.but(signer="internal", attributes={"authtype": kind, "authid": id})


def life(answer: dict[str, Any]) -> str:
    return str(claims(answer["installToken"]["tokenId"], "install+jwt")["creation"])


def test_an_install_token_opens_its_install_and_ends_with_a_reset(bus: Bus) -> None:
    """U40, U42."""
    external_id = fresh("ext")
    install, result = created(bus, external_id)
    other, others = created(bus, external_id)
    token = claims(result["installToken"]["tokenId"], "install+jwt")
    assert (token["aud"], token["install"]) == ("demo", install) and "sub" not in token
    assert succeeded(bus.ask(by(c.get(install), "app_install", life(result))))["userId"] == result["userId"]
    for command in (c.get(other), c.reset(other), c.link(other, linking="linker"), c.confirm(other), c.get("unknown")):
        rejected(bus.ask(by(command, "app_install", life(result))), "USER_TOKEN_NOT_ALLOWED")
    creation = c.create(fresh("install"), appSecret=APP_SECRET, linking="none")
    rejected(bus.ask(by(creation, "app_install", life(others))), "USER_TOKEN_NOT_ALLOWED")
    rejected(bus.ask(by(c.request_code(external_id), "app_install", life(result))), "USER_TOKEN_NOT_ALLOWED")
    assert succeeded(bus.settle(by(c.reset(install), "app_install", life(result)))) == {"installId": install}
    # Another person's life on the same phone is not opened by what is left of the one before.
    next_user = succeeded(bus.settle(c.create(install, authCode=code_for(bus, fresh("ext")))))
    assert next_user["userId"] != result["userId"] and life(next_user) != life(result)
    for command in (c.get(install), c.reset(install), c.confirm(install), c.link(install, linking="linker")):
        rejected(bus.ask(by(command, "app_install", life(result))), "USER_TOKEN_NOT_ALLOWED")
        rejected(bus.ask(by(command, "app_user", result["userId"])), "USER_TOKEN_NOT_ALLOWED")
    assert succeeded(bus.ask(by(c.get(install), "app_install", life(next_user))))["userId"] == next_user["userId"]


def test_the_tokens_of_an_erased_user_open_nothing(bus: Bus) -> None:
    """U40."""
    install, result = created(bus, fresh("ext"))
    assert bus.ask(c.erase(result["userId"]))["status"] in ("pending", "succeeded")
    until(lambda: bus.ask(c.get(install)).get("reason") == "NO_USER", 30, "the user is gone")
    for kind, id in [("app_install", life(result)), ("app_user", result["userId"])]:
        for command in (c.get(install), c.reset(install), c.confirm(install)):
            rejected(bus.ask(by(command, kind, id)), "USER_TOKEN_NOT_ALLOWED")


def test_an_app_may_close_its_installs_to_its_keys(bus: Bus) -> None:
    """U43."""
    install = fresh("install")
    code = code_for(bus, fresh("ext"), app="guarded")
    result = succeeded(bus.settle(c.create(install, app="guarded", authCode=code)))
    for command in (
        c.get(install, "guarded"), c.reset(install, "guarded"), c.confirm(install, app="guarded"),
        c.link(install, "guarded", linking="linker"), c.get("unknown", "guarded"),
    ):
        rejected(bus.ask(command), "USER_TOKEN_REQUIRED")
        assert bus.ask(by(command.again(), "api_key", "guarded-sdk"))["reason"] == "USER_TOKEN_REQUIRED"
    assert succeeded(bus.ask(by(c.get(install, "guarded"), "app_user", result["userId"])))
    assert succeeded(bus.settle(by(c.reset(install, "guarded"), "app_install", life(result))))
    assert succeeded(bus.settle(c.create(install, app="guarded", authCode=code_for(bus, fresh("ext"), "guarded"))))


# One user at a time


def test_seed_001_only_one_user_on_the_device_at_a_time(bus: Bus) -> None:
    """U12."""
    install, result = created(bus, fresh("ext"))
    rejected(bus.ask(c.create(install, authCode=code_for(bus, fresh("ext")))), "USER_ALREADY_EXISTS")
    rejected(bus.ask(c.create(install, appSecret=APP_SECRET, linking="none")), "USER_ALREADY_EXISTS")
    assert current(bus, install)["userId"] == result["userId"]


def test_seed_001_reset_removes_the_user_from_the_device_before_creating_a_new_one(bus: Bus) -> None:
    """U29."""
    install, first = created(bus, fresh("ext"))
    assert succeeded(bus.settle(c.reset(install))) == {"installId": install}
    assert told(bus, install, "reset") == {"installId": install, "userId": first["userId"]}
    rejected(bus.ask(c.get(install)), "NO_USER")
    second = succeeded(bus.settle(c.create(install, authCode=code_for(bus, fresh("ext")))))
    assert second["userId"] != first["userId"]


def test_reset_where_there_is_no_user_succeeds(bus: Bus) -> None:
    """U30, F12. A reset may come before anything else."""
    install = fresh("install")
    assert succeeded(bus.settle(c.reset(install))) == {"installId": install}


# Restoring


def test_seed_001_an_external_id_already_linked_restores_the_existing_user(bus: Bus) -> None:
    """U14."""
    external_id = fresh("ext")
    _, first = created(bus, external_id)
    second, restored = created(bus, external_id)
    assert restored["userId"] == first["userId"]
    assert told(bus, second, "restored") == {
        "installId": second, "userId": first["userId"], "isRemoteEnabled": True}


def test_seed_001_reinstalling_or_resetting_on_the_same_device_restores_too(bus: Bus) -> None:
    """U14, U29."""
    external_id = fresh("ext")
    install, first = created(bus, external_id)
    succeeded(bus.settle(c.reset(install)))
    again = succeeded(bus.settle(c.create(install, authCode=code_for(bus, external_id))))
    assert (again["userId"], again["isRemoteEnabled"]) == (first["userId"], True)


def test_seed_001_restoring_deactivates_any_other_instance(bus: Bus) -> None:
    """U15, U31."""
    external_id = fresh("ext")
    first, result = created(bus, external_id)
    _, _ = created(bus, external_id)
    remote_enabled(bus, first, False)
    assert told(bus, first, "deactivated") == {
        "installId": first, "userId": result["userId"], "cause": "superseded"}


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [(PHONE, TABLET, False), (PHONE, PHONE, True), (TABLET, PHONE, True), (TABLET, TABLET, True), (OTHER, TABLET, True)],
    ids=lambda value: value["kind"] if isinstance(value, dict) else str(value))
def test_seed_001_a_phone_is_preferred_to_a_tablet(
    bus: Bus, old: dict[str, str], new: dict[str, str], moves: bool
) -> None:
    """U16."""
    external_id = fresh("ext")
    first, one = created(bus, external_id, old)
    second, two = created(bus, external_id, new)
    assert two["userId"] == one["userId"]
    assert two["isRemoteEnabled"] is moves
    remote_enabled(bus, first, not moves)
    assert current(bus, second)["isRemoteEnabled"] is moves


# With a linker


def begin_linker(bus: Bus, install: str, app: str = "demo") -> Command:
    """Steps 1 and 2: the linker is invoked with the install id."""
    command = c.create(install, app=app, appSecret=APP_SECRET, linking="linker")
    reply = bus.ask(command)
    assert reply["status"] == "pending"
    assert reply["result"].pop("installToken").keys() == {"tokenId", "expiryDate"}
    assert reply["result"] == {"installId": install, "awaiting": "linker"}
    succeeded(bus.ask(c.query(install, app)))
    return command


def test_seed_002_linker_success_is_confirmed_with_the_platform(bus: Bus) -> None:
    """U17, U18."""
    install, external_id = fresh("install"), fresh("ext")
    creation = begin_linker(bus, install)
    rejected(bus.ask(c.get(install)), "USER_CREATION_IN_PROGRESS")
    linked = succeeded(bus.ask(c.request(install, external_id)))
    confirmed = succeeded(bus.settle(c.confirm(install)))
    assert succeeded(bus.final(creation.id)) == confirmed
    assert (confirmed["userId"], confirmed["isLinked"], confirmed["isRemoteEnabled"]) == (linked["userId"], True, True)
    assert told(bus, install, "created")["userId"] == linked["userId"]
    assert succeeded(bus.ask(c.confirm(install)))["userId"] == linked["userId"], "confirming again changes nothing"


def test_seed_002_the_linker_restores_an_existing_user_too(bus: Bus) -> None:
    """U14, U17."""
    external_id = fresh("ext")
    first, result = created(bus, external_id)
    install = fresh("install")
    creation = begin_linker(bus, install)
    succeeded(bus.ask(c.request(install, external_id)))
    bus.send(c.confirm(install))
    assert succeeded(bus.final(creation.id))["userId"] == result["userId"]
    assert told(bus, install, "restored")["userId"] == result["userId"]
    remote_enabled(bus, first, False)


def test_seed_002_the_apps_word_alone_links_nobody(bus: Bus) -> None:
    """U18, U19. The platform's own record decides: the app says success, the backend never linked."""
    install = fresh("install")
    creation = begin_linker(bus, install)
    confirmation = c.confirm(install)
    rejected(bus.settle(confirmation), "APP_SIDE_LINKING_FAILED")
    rejected(bus.final(creation.id), "APP_SIDE_LINKING_FAILED")
    rejected(bus.ask(c.get(install)), "NO_USER")
    assert told(bus, install, "creation-failed") == {"installId": install, "reason": "APP_SIDE_LINKING_FAILED"}


def test_seed_002_failure_of_the_linker_fails_the_creation_and_a_retry_is_allowed(bus: Bus) -> None:
    """U18, U19."""
    install, external_id = fresh("install"), fresh("ext")
    creation = begin_linker(bus, install)
    rejected(bus.settle(c.confirm(install, success=False)), "APP_SIDE_LINKING_FAILED")
    rejected(bus.final(creation.id), "APP_SIDE_LINKING_FAILED")
    again = begin_linker(bus, install)
    succeeded(bus.ask(c.request(install, external_id)))
    succeeded(bus.settle(c.confirm(install)))
    assert succeeded(bus.final(again.id))["isLinked"]


def test_a_failed_linker_leaves_nothing_half_linked(bus: Bus) -> None:
    """U19. The backend linked, the app says that it failed."""
    install = fresh("install")
    begin_linker(bus, install)
    succeeded(bus.ask(c.request(install, fresh("ext"))))
    rejected(bus.settle(c.confirm(install, success=False)), "APP_SIDE_LINKING_FAILED")
    assert "userId" not in succeeded(bus.ask(c.query(install)))


# Unlinked users


def test_seed_002_a_nil_linker_creates_an_unlinked_user(bus: Bus) -> None:
    """U22."""
    install, result = created_unlinked(bus)
    assert (result["isLinked"], result["isRemoteEnabled"]) == (False, True)
    assert told(bus, install, "created")["isLinked"] is False
    assert "externalId" not in succeeded(bus.ask(c.query(install)))


def test_seed_002_an_unlinked_user_can_be_linked_later_with_an_auth_code(bus: Bus) -> None:
    """U25, U26."""
    install, result = created_unlinked(bus)
    linked = succeeded(bus.settle(c.link(install, authCode=code_for(bus, fresh("ext")))))
    assert (linked["userId"], linked["isLinked"]) == (result["userId"], True)
    assert told(bus, install, "linked") == {"installId": install, "userId": result["userId"]}
    rejected(bus.ask(c.link(install, authCode=code_for(bus, fresh("ext")))), "USER_ALREADY_LINKED")


def test_seed_002_an_unlinked_user_can_be_linked_later_with_a_linker(bus: Bus) -> None:
    """U25."""
    install, result = created_unlinked(bus)
    command = c.link(install, linking="linker")
    assert bus.ask(command)["result"]["awaiting"] == "linker"
    succeeded(bus.ask(c.request(install, fresh("ext"))))
    succeeded(bus.settle(c.confirm(install)))
    linked = succeeded(bus.final(command.id))
    assert (linked["userId"], linked["isLinked"]) == (result["userId"], True)


def test_seed_002_a_failed_linker_leaves_the_user_unlinked_and_may_be_tried_again(bus: Bus) -> None:
    """U27."""
    install, result = created_unlinked(bus)
    for success in (False, True):
        command = c.link(install, linking="linker")
        bus.ask(command)
        rejected(bus.settle(c.confirm(install, success)), "APP_SIDE_LINKING_FAILED")
        rejected(bus.final(command.id), "APP_SIDE_LINKING_FAILED")
        now = current(bus, install)
        assert (now["userId"], now["isLinked"]) == (result["userId"], False)


def test_seed_002_an_unlinked_user_cannot_be_linked_to_an_existing_app_user(bus: Bus) -> None:
    """U7, U26."""
    external_id = fresh("ext")
    _, existing = created(bus, external_id)
    install, own = created_unlinked(bus)
    code = code_for(bus, external_id)
    rejected(bus.settle(c.link(install, authCode=code)), "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON")
    assert current(bus, install)["userId"] == own["userId"]
    succeeded(bus.settle(c.reset(install)))
    # The rejection did not burn the code.
    assert succeeded(bus.settle(c.create(install, authCode=code)))["userId"] == existing["userId"]


def test_commands_that_need_a_user_say_that_there_is_none(bus: Bus) -> None:
    """U50."""
    for command in (c.get, c.confirm):
        rejected(bus.ask(command(fresh("install"))), "NO_USER")
    rejected(bus.ask(c.link(fresh("install"), linking="linker")), "NO_USER")


# Codes that are not accepted: nothing is changed


def test_a_code_works_once(bus: Bus) -> None:
    """U4, U8."""
    external_id = fresh("ext")
    code = code_for(bus, external_id)
    first = fresh("install")
    result = succeeded(bus.settle(c.create(first, authCode=code)))
    second = fresh("install")
    rejected(bus.ask(c.create(second, authCode=code)), "AUTH_CODE_USED")
    rejected(bus.ask(c.get(second)), "NO_USER")
    assert told(bus, second, "creation-failed")["reason"] == "AUTH_CODE_USED"
    # The same install repeating the same create gets the same answer.
    again = succeeded(bus.ask(c.create(first, authCode=code)))
    assert {**again, "token": None, "installToken": None} == {**result, "token": None, "installToken": None}
    succeeded(bus.settle(c.reset(first)))
    rejected(bus.ask(c.create(first, authCode=code)), "AUTH_CODE_USED")


def test_unknown_and_foreign_codes_are_invalid_and_tell_nothing_more(bus: Bus) -> None:
    """U5, U9."""
    foreign = code_for(bus, fresh("ext"), app="other")
    used = code_for(bus, fresh("ext"))
    succeeded(bus.settle(c.create(fresh("install"), authCode=used)))
    replies = [
        bus.ask(c.create(fresh("install"), authCode=code)) for code in ("0" * 128, "x", foreign, foreign.upper(), used)]
    assert [reply["reason"] for reply in replies] == ["AUTH_CODE_INVALID"] * 4 + ["AUTH_CODE_USED"]
    assert len({reply["message"] for reply in replies}) == 1, "one generic message outwards"
    install = fresh("install")
    assert succeeded(bus.settle(c.create(install, app="other", authCode=foreign)))["installId"] == install


def test_an_expired_code_is_refused(bus: Bus) -> None:
    """U3."""
    code = code_for(bus, fresh("ext"), app="hasty")
    time.sleep(8.2)
    rejected(bus.ask(c.create(fresh("install"), app="hasty", authCode=code)), "AUTH_CODE_EXPIRED")


def test_codes_of_one_external_id_are_limited(bus: Bus) -> None:
    """U10."""
    external_id = fresh("ext")
    # At once, so that no code is over before the last is asked for.
    requests = [c.request_code(external_id, app="hasty") for _ in range(4)]
    bus.send_all(requests)
    *replies, last = [bus.reply(request.id) for request in requests]
    for reply in replies:
        succeeded(reply)
    rejected(last, "AUTH_CODE_LIMIT_REACHED")
    code_for(bus, fresh("ext"), app="hasty")
    time.sleep(8.2)
    code_for(bus, external_id, app="hasty")


# Bad input: a named reason each, and nothing changed


def bad(**changes: Any) -> dict[str, Any]:
    data = {"installId": "install", "device": PHONE, "authCode": "0" * 128, **changes}
    return {name: value for name, value in data.items() if value is not ...}


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (bad(device=...), "device"), (bad(device={"kind": "fridge", "platform": "x"}), "device.kind"),
        (bad(device={"kind": "phone"}), "platform"), (bad(device="phone"), "device"), (bad(installId=...), "installId"),
        (bad(installId=""), "installId"), (bad(installId="x" * 256), "installId"), (bad(installId=7), "installId"),
        (bad(authCode=...), "authCode"), (bad(authCode=7), "authCode"), (bad(appSecret="x" * 9), "authCode"),
        (bad(authCode=..., appSecret="x" * 9), "linking"), (bad(authCode=..., linking="none"), "appSecret"),
        (bad(authCode=..., appSecret="x" * 9, linking="maybe"), "linking"), (bad(appVersion="\n"), "appVersion"),
        ("create", "data"), (None, "data"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value)[:40])
def test_a_create_of_the_wrong_form_is_an_invalid_request(bus: Bus, data: Any, part: str) -> None:
    install = data.get("installId") if isinstance(data, dict) else None
    reply = bus.ask(Command("user.create", data, str(install), signer="demo-sdk"))
    rejected(reply, "INVALID_REQUEST")
    assert part in reply["message"]


@pytest.mark.parametrize("secret", ["wrong-secret", APP_SECRET + "x", APP_SECRET[:-1], "\u00e9"])
@pytest.mark.parametrize("linking", ["linker", "none"])
def test_a_wrong_app_secret_is_refused(bus: Bus, secret: str, linking: str) -> None:
    """U23."""
    install = fresh("install")
    rejected(bus.ask(c.create(install, appSecret=secret, linking=linking)), "APP_SECRET_INVALID")
    rejected(bus.ask(c.get(install)), "NO_USER")
    rejected(bus.ask(c.query(install)), "INSTALL_NOT_FOUND")


def test_an_app_without_an_app_secret_takes_none(bus: Bus) -> None:
    """U23."""
    rejected(
        bus.ask(c.create(fresh("install"), app="other", appSecret=APP_SECRET, linking="none")), "APP_SECRET_INVALID")


def test_two_apps_on_one_device_use_one_install_id(bus: Bus) -> None:
    """U30, L47. Each has a user of its own there, and a reset is about one of them."""
    install, here = created(bus, fresh("ext"))
    assert succeeded(bus.settle(c.reset(install, app="other"))) == {"installId": install}, "nobody is there"
    there = succeeded(bus.settle(c.create(install, app="other", authCode=code_for(bus, fresh("ext"), app="other"))))
    assert there["userId"] != here["userId"]
    succeeded(bus.settle(c.reset(install, app="other")))
    assert current(bus, install)["userId"] == here["userId"]


# What happens outside of the SDK's own commands


def test_the_platform_disables_an_install(bus: Bus) -> None:
    """U31, U65."""
    install, result = created_unlinked(bus)
    succeeded(bus.ask(c.set_status(install, "disabled")))
    remote_enabled(bus, install, False)
    assert told(bus, install, "deactivated") == {
        "installId": install, "userId": result["userId"], "cause": "disabled"}
    rejected(bus.ask(c.link(install, authCode=code_for(bus, fresh("ext")))), "USER_DISABLED_REMOTELY")
    succeeded(bus.ask(c.set_status(install, "enabled")))
    remote_enabled(bus, install, True)
    assert told(bus, install, "activated") == {"installId": install, "userId": result["userId"]}


def test_a_lost_phone_keeps_no_tablet_out(bus: Bus) -> None:
    """U31."""
    external_id = fresh("ext")
    phone, result = created(bus, external_id, PHONE)
    tablet, waiting = created(bus, external_id, TABLET)
    assert waiting["isRemoteEnabled"] is False
    succeeded(bus.ask(c.set_status(phone, "disabled")))
    assert current(bus, tablet)["isRemoteEnabled"] is False, "nothing is promoted"
    succeeded(bus.ask(c.request(tablet, external_id)))
    remote_enabled(bus, tablet, True)
    assert told(bus, tablet, "activated") == {"installId": tablet, "userId": result["userId"]}


def test_an_erased_user_is_gone_from_its_installs(users: Deployment, bus: Bus) -> None:
    """U33, U34, U35."""
    external_id = fresh("ext")
    device = {**PHONE, "model": fresh("model")}
    install, result = created(bus, external_id, device)
    open_code = code_for(bus, external_id)
    command = c.erase(result["userId"])
    certificate = succeeded(bus.settle(command))
    assert certificate["subject"]["userIds"] == [result["userId"]] and certificate["done"]["link"]["installs"] == 1
    rejected(bus.ask(c.get(install)), "NO_USER")
    rejected(bus.ask(c.create(fresh("install"), authCode=open_code)), "AUTH_CODE_INVALID")
    for service, tables in {"link": ("installs", "persons", "erasures", "forward"),
                            "user": ("installations", "auth_codes", "users", "forward")}.items():
        rows = [row for table in tables for row in users.database.execute(f"SELECT * FROM {table}", service=service)]
        for secret in (external_id, device["model"]) + ((install,) if service == "user" else ()):
            assert secret not in str(rows), f"{service} keeps {secret}"
    assert told(bus, install, "deactivated") == {"installId": install, "cause": "erased"}
    # Signing up again, on the same phone too.
    again = succeeded(bus.settle(c.create(install, authCode=code_for(bus, external_id))))
    assert again["userId"] != result["userId"] and again["isRemoteEnabled"]


def test_a_link_by_the_backend_reaches_an_unlinked_user(bus: Bus) -> None:
    """U28."""
    install, result = created_unlinked(bus)
    succeeded(bus.ask(c.request(install, fresh("ext"))))
    until(lambda: current(bus, install)["isLinked"], 30, "the link")
    assert told(bus, install, "linked")["userId"] == result["userId"]


def test_a_linker_that_takes_too_long_expires_and_leaves_nothing_half_linked(bus: Bus) -> None:
    """U19, U20."""
    install, external_id = fresh("install"), fresh("ext")
    creation = begin_linker(bus, install, app="hasty")
    succeeded(bus.ask(c.request(install, external_id, app="hasty")))
    assert bus.final(creation.id)["status"] == "expired"
    rejected(bus.ask(c.confirm(install, app="hasty")), "NO_USER")
    assert "userId" not in succeeded(bus.ask(c.query(install, app="hasty")))
    assert told(bus, install, "creation-failed") == {"installId": install}


def test_a_link_that_comes_too_late_does_not_spoil_the_next_creation(bus: Bus) -> None:
    """U20. The backend links after the linker expired; the device's next user has another external id."""
    install = fresh("install")
    creation = begin_linker(bus, install, app="hasty")
    assert bus.final(creation.id)["status"] == "expired"
    external_id = fresh("ext")
    phone = fresh("install")
    owner = succeeded(bus.settle(c.create(phone, app="hasty", authCode=code_for(bus, external_id, app="hasty"))))
    rejected(bus.ask(c.request(install, external_id, app="hasty")), "NO_LINKING_IN_PROGRESS")
    still = succeeded(bus.ask(c.get(phone, app="hasty")))
    assert still["isRemoteEnabled"] is True, "the late link has not switched the real phone off"
    result = succeeded(bus.settle(c.create(install, app="hasty", authCode=code_for(bus, fresh("ext"), app="hasty"))))
    assert result["userId"] != owner["userId"]
    succeeded(bus.settle(c.reset(install, app="hasty")))
    rejected(bus.ask(c.request(install, fresh("ext"), app="hasty")), "NO_LINKING_IN_PROGRESS")
    unlinked = succeeded(bus.settle(c.create(install, app="hasty", appSecret=APP_SECRET, linking="none")))
    assert unlinked["isLinked"] is False


def test_what_an_earlier_life_left_does_not_spoil_the_next_linker(bus: Bus) -> None:
    """U21. A person is on the install that the user service knows nothing of."""
    install, external_id = fresh("install"), fresh("ext")
    succeeded(bus.ask(c.establish(install, fresh("ext"))))
    creation = begin_linker(bus, install)
    assert "userId" not in succeeded(bus.ask(c.query(install)))
    linked = succeeded(bus.ask(c.request(install, external_id)))
    succeeded(bus.settle(c.confirm(install)))
    assert succeeded(bus.final(creation.id))["userId"] == linked["userId"]


def test_the_expirytime_of_a_creation_ends_its_linker_sooner(bus: Bus) -> None:
    """U20."""
    install = fresh("install")
    expiry = (datetime.now(timezone.utc) + timedelta(seconds=10)).isoformat()
    command = c.create(install, appSecret=APP_SECRET, linking="linker").but(attributes={"expirytime": expiry})
    assert bus.ask(command)["status"] == "pending"
    assert bus.final(command.id)["status"] == "expired"
