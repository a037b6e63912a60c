# SPDX-License-Identifier: Apache-2.0
"""Link requests, rule by rule of docs/link.md (row 5 of its first table is L5), through a real process over Kafka, on
both stores. Every test uses its own installs and external ids."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit import inbox
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import OTHER, PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.standin import StandIn, erased, rejected as refusal
from identitybus_testkit.waiting import until

Reply = dict[str, Any]


@pytest.fixture
def bus(link: Deployment) -> Bus:
    return link.bus


@pytest.fixture(scope="module")
def others(link: Deployment) -> Iterator[dict[str, StandIn]]:
    """The user and the sync service do all that they are asked."""
    topics = [f"{link.prefix}identity.{name}.commands.v1" for name in ("user", "sync")]
    link.broker.ensure(topics)
    found = {name: StandIn(link.broker, link.prefix, name, lambda _: [erased()]) for name in ("user", "sync")}
    yield found
    for one in found.values():
        one.close()


def asked_about(user: str, service: StandIn) -> list[dict[str, Any]]:
    """The commands. What is not answered within 5 s is sent again, with the same id."""
    envelopes = [one.envelope for one in list(service.commands) if one.data.get("userId") == user]
    return list({envelope["id"]: envelope for envelope in envelopes}.values())


def succeeded(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    assert "reason" not in reply, reply
    return without_version(reply["result"])


def without_version(data: dict[str, Any]) -> dict[str, Any]:
    """L34. The oracle of the chaos tests knows what the versions must be."""
    assert data.get("version", 0) >= 0
    return {name: value for name, value in data.items() if name != "version"}


def events(bus: Bus, command_id: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Without `linkedAt` too, which every `linked` has: since when it is so."""
    found = []
    for kind, data in bus.events(command_id, count):
        linked_at = data.get("linkedAt")
        assert (linked_at is not None) == (kind == "linked"), (kind, data)
        found.append((kind, {name: value for name, value in without_version(data).items() if name != "linkedAt"}))
    return found


def rejected(reply: Reply, reason: str) -> None:
    assert (reply["status"], reply.get("reason")) == ("rejected", reason), reply
    assert reply["message"], "a rejection says why"
    assert "result" not in reply, reply


def refused(bus: Bus, command: Command, reason: str) -> None:
    """L16. The command is rejected and one `refused` event says so."""
    rejected(bus.ask(command), reason)
    expected = {"installId": command.data["installId"], "reason": reason}
    assert events(bus, command.id, 1) == [("refused", expected)]


def new_install(bus: Bus, device: dict[str, str] = PHONE, user: str = "none", app: str = "demo") -> str:
    install = fresh("install")
    succeeded(bus.ask(c.register(install, device, user, app)))
    return install


def new_person(bus: Bus, device: dict[str, str] = PHONE) -> tuple[str, str, str]:
    """An install, the external id it is linked to, and the person."""
    install, external_id = new_install(bus, device), fresh("ext")
    return install, external_id, succeeded(bus.ask(c.request(install, external_id)))["userId"]


def state(bus: Bus, install: str) -> dict[str, Any]:
    return succeeded(bus.ask(c.query(install)))


# Rows 1 to 4


@pytest.mark.parametrize(
    ("signer", "reason"),
    [
        (None, "SIGNATURE_MISSING"), ("demo-nokey", "KEY_UNKNOWN"), ("demo-revoked", "KEY_REVOKED"),
        ("demo-expired", "KEY_EXPIRED"),
    ])
def test_row_1_no_unknown_revoked_or_expired_key_is_unauthenticated(bus: Bus, signer: str | None, reason: str) -> None:
    """L1."""
    install = new_install(bus)
    command = c.request(install, fresh("ext"), signer=signer or "demo-backend")
    value, headers = bus.signed(command)
    place = bus.put(value, headers if signer else headers[:-1], command.key)
    rejected(bus.reply(command.id), "UNAUTHENTICATED")
    letter = bus.dead_letter(place)
    assert (letter.header("dlq_reason"), letter.header("dlq_step")) == (reason.encode(), b"authenticate")
    assert events(bus, command.id, 0) == []
    assert "userId" not in state(bus, install)


@pytest.mark.parametrize("signer", ["demo-sdk", "demo-admin"])
def test_row_2_a_key_without_user_link_has_insufficient_scope(bus: Bus, signer: str) -> None:
    """L2."""
    command = c.request(new_install(bus), fresh("ext"), signer=signer)
    rejected(bus.ask(command), "INSUFFICIENT_SCOPE")
    assert events(bus, command.id, 0) == []


@pytest.mark.parametrize(
    "command",
    [
        c.register("i", PHONE), c.establish("i", "e"), c.query("i"), c.detach("i"), c.set_status("i", "disabled"),
        c.erase("u"),
    ],
    ids=lambda command: command.type)
def test_row_2_the_scope_of_every_other_command_is_needed_too(bus: Bus, command: Command) -> None:
    """L2."""
    rejected(bus.ask(command.again().but(signer="demo-sdk")), "INSUFFICIENT_SCOPE")


def test_row_2_a_user_token_is_rejected(bus: Bus) -> None:
    """L2."""
    command = c.request(new_install(bus), fresh("ext"), signer="internal").but(
        attributes={"authtype": "app_user", "authid": "5a18fc4b0962209e0000000d"})
    rejected(bus.ask(command), "USER_TOKEN_NOT_ALLOWED")
    assert events(bus, command.id, 0) == []


def test_row_2_the_gateway_speaks_for_an_api_key_with_that_keys_scopes(bus: Bus) -> None:
    install, external_id = new_install(bus), fresh("ext")
    spoken = lambda key: c.request(install, external_id, signer="internal").but(
        attributes={"authtype": "api_key", "authid": key})
    rejected(bus.ask(spoken("demo-sdk")), "INSUFFICIENT_SCOPE")
    rejected(bus.ask(spoken("demo-expired")), "UNAUTHENTICATED")
    rejected(bus.ask(spoken("other-backend")), "UNAUTHENTICATED")
    succeeded(bus.ask(spoken("demo-backend")))


def test_row_2_authtype_under_an_api_key_is_not_believed(bus: Bus) -> None:
    """Contracts: authtype and authid are believed only under the internal key; here they would add nothing, and they
    must not take the key's own scope away either."""
    command = c.request(new_install(bus), fresh("ext")).but(
        attributes={"authtype": "api_key", "authid": "demo-admin"})
    succeeded(bus.ask(command))
    command = c.set_status(new_install(bus), "disabled").but(
        signer="demo-backend", attributes={"authtype": "api_key", "authid": "demo-admin"})
    rejected(bus.ask(command), "INSUFFICIENT_SCOPE")


@pytest.mark.parametrize(
    "data",
    [
        {}, {"installId": "i"}, {"externalId": "e"}, {"installId": "i", "externalId": ""},
        {"installId": "i", "externalId": None}, {"installId": "i", "externalId": 7},
        {"installId": "i", "externalId": ["e"]}, {"installId": "", "externalId": "e"},
        {"installId": 7, "externalId": "e"}, {"installId": "i" * 256, "externalId": "e"}, None, [], "text", 7,
    ],
    ids=lambda data: str(data)[:40])
def test_row_3_a_missing_empty_or_wrong_member_is_an_invalid_request(bus: Bus, data: Any) -> None:
    """L3."""
    command = c.request("i", "e").but(data=data)
    rejected(bus.ask(command), "INVALID_REQUEST")


def test_row_3_extra_members_are_ignored(bus: Bus) -> None:
    command = c.request(new_install(bus), fresh("ext"))
    succeeded(bus.ask(command.but(data=command.data | {"extra": {"deep": [1, 2]}})))


def test_row_4_an_app_with_linking_off(bus: Bus) -> None:
    """L4."""
    install = new_install(bus, app="unlinked")
    refused(bus, c.request(install, fresh("ext"), app="unlinked"), "USERLINKING_NOT_CONFIGURED")
    refused(bus, c.establish(install, fresh("ext"), app="unlinked"), "USERLINKING_NOT_CONFIGURED")


# Rows 5 to 11


def test_row_5_an_unknown_install(bus: Bus) -> None:
    """L5."""
    refused(bus, c.request(fresh("install"), fresh("ext")), "INSTALL_NOT_FOUND")


def test_row_6_an_install_of_another_app(bus: Bus) -> None:
    """L6."""
    install = new_install(bus, app="other")
    refused(bus, c.request(install, fresh("ext")), "INSTALL_DOES_NOT_BELONG_TO_APP")
    for command in (c.query(install), c.detach(install)):
        rejected(bus.ask(command), "INSTALL_DOES_NOT_BELONG_TO_APP")
    rejected(bus.ask(c.set_status(install, "disabled")), "INSTALL_NOT_FOUND")


def test_two_apps_use_one_install_id(bus: Bus) -> None:
    """L47. Staging and production on one phone: each has an install and a person of its own."""
    install, external_id = fresh("install"), fresh("ext")
    there = succeeded(bus.ask(c.establish(install, external_id, app="other")))
    here = succeeded(bus.ask(c.establish(install, external_id)))
    assert here["personCreated"] and there["personCreated"] and here["userId"] != there["userId"]
    succeeded(bus.ask(c.set_status(install, "deleted")))
    assert succeeded(bus.ask(c.query(install, app="other")))["isActive"] is True


def test_what_is_erased_in_one_app_is_unknown_to_another(bus: Bus, others: dict[str, StandIn]) -> None:
    """L5, L6, L47."""
    install, _, user = new_person(bus)
    rejected(bus.ask(c.query(install, app="other")), "INSTALL_DOES_NOT_BELONG_TO_APP")
    bus.settle(c.erase(user))
    rejected(bus.ask(c.query(install, app="other")), "INSTALL_NOT_FOUND")


@pytest.mark.parametrize(("status", "reason"), [("deleted", "INSTALL_DELETED"), ("disabled", "INSTALL_DISABLED")])
def test_row_7_a_deleted_or_disabled_install(bus: Bus, status: str, reason: str) -> None:
    """L7."""
    install = new_install(bus)
    succeeded(bus.ask(c.set_status(install, status)))
    refused(bus, c.request(install, fresh("ext")), reason)


def test_row_7_comes_before_row_8_and_9(bus: Bus) -> None:
    """L7, L8, L9."""
    install, external_id, _ = new_person(bus)
    succeeded(bus.ask(c.set_status(install, "disabled")))
    refused(bus, c.request(install, external_id), "INSTALL_DISABLED")
    refused(bus, c.request(install, fresh("ext")), "INSTALL_DISABLED")


def test_row_8_an_install_linked_to_another_external_id(bus: Bus) -> None:
    """L8."""
    install, external_id, user = new_person(bus)
    refused(bus, c.request(install, fresh("ext")), "INSTALL_LINKED_TO_OTHER_USER")
    _, known, _ = new_person(bus)
    refused(bus, c.request(install, known), "INSTALL_LINKED_TO_OTHER_USER")
    found = state(bus, install)
    assert (found["externalId"], found["userId"], found["isActive"]) == (external_id, user, True)


def test_row_9_the_same_link_again_is_the_same_person(bus: Bus) -> None:
    """L9."""
    install, external_id, user = new_person(bus)
    again = c.request(install, external_id)
    result = succeeded(bus.ask(again))
    assert result == {"userId": user, "installId": install, "isActive": True, "personCreated": False}
    assert events(bus, again.id, 0) == []


def test_row_10_an_install_deactivated_since(bus: Bus) -> None:
    """L10."""
    old, external_id, user = new_person(bus)
    new = new_install(bus)
    succeeded(bus.ask(c.request(new, external_id)))
    refused(bus, c.request(old, external_id), "INSTALL_DEACTIVATED")
    refused(bus, c.request(old, fresh("ext")), "INSTALL_LINKED_TO_OTHER_USER")
    assert state(bus, new) == {
        "installId": new, "appId": "demo", "userId": user, "externalId": external_id, "status": "enabled",
        "isActive": True, "isUsersFirst": False}


def test_row_11_two_active_installs_already_found(link: Deployment) -> None:
    """L11. Nothing in the product leads there, so the store is broken by hand."""
    bus = link.bus
    first, external_id, user = new_person(bus)
    second, third = new_install(bus), new_install(bus)
    succeeded(bus.ask(c.request(second, external_id)))
    service = link.services[0]
    assert service.stop() == 0
    link.database.execute("UPDATE installs SET activity = 'active' WHERE install_id = ?", [first])
    service.start().wait_ready()
    refused(bus, c.request(third, external_id), "MULTIPLE_INSTALLS_ACTIVE")
    assert state(bus, first)["isActive"] and state(bus, second)["isActive"]
    # Detaching one of the two mends it.
    succeeded(bus.ask(c.detach(first)))
    assert succeeded(bus.ask(c.request(third, external_id)))["userId"] == user


# Rows 12 to 15, and the three outcomes of a request (docs/seeds.md)


def test_row_12_seed_000_an_unknown_external_id_makes_a_new_person(bus: Bus) -> None:
    """L12, L20."""
    install, external_id = new_install(bus), fresh("ext")
    command = c.request(install, external_id)
    result = succeeded(bus.ask(command))
    user = result.pop("userId")
    assert re.fullmatch("[0-9a-f]{24}", user)
    assert result == {"installId": install, "isActive": True, "personCreated": True}
    assert events(bus, command.id, 1) == [("linked", {
        "installId": install, "externalId": external_id, "userId": user, "personCreated": True,
        "activeInstallId": install, "deactivatedInstallIds": []})]
    reply = bus.reply_records(command.id)[0]
    assert reply.key == command.key, "the reply has the command's key"
    assert (reply.envelope["correlationid"], reply.envelope["causationid"]) == (command.id, command.id)
    event = bus.collector.events[command.id][0]
    assert event.key == f"demo/{install}".encode() == event.envelope["partitionkey"].encode()
    assert event.envelope["subject"] == install


def test_row_13_seed_000_a_known_external_id_is_the_existing_person_and_moves_to_the_new_install(bus: Bus) -> None:
    """L13, L21."""
    old, external_id, user = new_person(bus)
    new = new_install(bus)
    command = c.request(new, external_id)
    result = succeeded(bus.ask(command))
    assert result == {"userId": user, "installId": new, "isActive": True, "personCreated": False}
    assert events(bus, command.id, 2) == [
        ("install-status-changed", {
            "installId": old, "status": "enabled", "isActive": False, "userId": user, "isLinked": True,
            "cause": "superseded", "inactiveBecause": "superseded"}),
        ("linked", {
            "installId": new, "externalId": external_id, "userId": user, "personCreated": False,
            "activeInstallId": new, "deactivatedInstallIds": [old]}),
    ]
    assert (state(bus, old)["isActive"], state(bus, new)["isActive"]) == (False, True)


def test_row_5_and_6_seed_000_an_install_not_of_this_app_is_404_or_403(bus: Bus) -> None:
    """L5, L6."""
    refused(bus, c.request(fresh("install"), fresh("ext")), "INSTALL_NOT_FOUND")
    refused(bus, c.request(new_install(bus, app="other"), fresh("ext")), "INSTALL_DOES_NOT_BELONG_TO_APP")


def test_rows_12_and_13_one_external_id_in_two_apps_is_two_people(bus: Bus) -> None:
    """L18."""
    external_id = fresh("ext")
    here = succeeded(bus.ask(c.request(new_install(bus), external_id)))
    there = succeeded(bus.ask(c.request(new_install(bus, app="other"), external_id, app="other")))
    assert here["userId"] != there["userId"] and here["personCreated"] and there["personCreated"]


def test_row_14_an_unlinked_person_keeps_its_id(bus: Bus) -> None:
    """L14, L29."""
    install = new_install(bus, user="new")
    user, external_id = state(bus, install)["userId"], fresh("ext")
    command = c.request(install, external_id)
    result = succeeded(bus.ask(command))
    assert result == {"userId": user, "installId": install, "isActive": True, "personCreated": False}
    assert [kind for kind, _ in events(bus, command.id, 1)] == ["linked"]


def test_row_15_an_unlinked_person_and_an_external_id_known_elsewhere(bus: Bus) -> None:
    """L15."""
    _, external_id, _ = new_person(bus)
    install = new_install(bus, user="new")
    refused(bus, c.request(install, external_id), "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON")
    # The device must reset and begin anew; then the same request restores.
    succeeded(bus.ask(c.detach(install)))
    succeeded(bus.ask(c.register(install)))
    assert not succeeded(bus.ask(c.request(install, external_id)))["personCreated"]


# Which install is active


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        (PHONE, PHONE, True), (PHONE, TABLET, False), (PHONE, OTHER, True), (TABLET, PHONE, True),
        (TABLET, TABLET, True), (TABLET, OTHER, True), (OTHER, PHONE, True), (OTHER, TABLET, True),
        (OTHER, OTHER, True),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "")
def test_active_install_election(bus: Bus, old: dict[str, str], new: dict[str, str], moves: bool) -> None:
    """L21, L22."""
    first, external_id, user = new_person(bus, old)
    second = new_install(bus, new)
    command = c.request(second, external_id)
    assert succeeded(bus.ask(command)) == {
        "userId": user, "installId": second, "isActive": moves, "personCreated": False}
    linked = next(data for kind, data in events(bus, command.id, 2 if moves else 1) if kind == "linked")
    assert linked["activeInstallId"] == (second if moves else first)
    assert linked["deactivatedInstallIds"] == ([first] if moves else [])
    assert (state(bus, first)["isActive"], state(bus, second)["isActive"]) == (not moves, moves)


def test_a_standby_tablet_asks_again_and_stays_standby_until_the_phone_goes(bus: Bus) -> None:
    """L9, L9a, L24."""
    phone, external_id, user = new_person(bus, PHONE)
    tablet = new_install(bus, TABLET)
    for _ in range(2):
        assert succeeded(bus.ask(c.request(tablet, external_id)))["isActive"] is False
    succeeded(bus.ask(c.detach(phone)))
    assert state(bus, tablet)["isActive"] is False, "nothing is promoted"
    assert succeeded(bus.ask(c.request(tablet, external_id))) == {
        "userId": user, "installId": tablet, "isActive": True, "personCreated": False}


def test_a_standby_tablet_does_not_wait_for_a_tablet(bus: Bus) -> None:
    """L9a, L21."""
    phone, external_id, user = new_person(bus, PHONE)
    first = new_install(bus, TABLET)
    assert succeeded(bus.ask(c.request(first, external_id)))["isActive"] is False
    succeeded(bus.ask(c.detach(phone)))
    second = new_install(bus, TABLET)
    assert succeeded(bus.ask(c.request(second, external_id)))["isActive"] is True
    assert succeeded(bus.ask(c.request(first, external_id))) == {
        "userId": user, "installId": first, "isActive": True, "personCreated": False}
    assert state(bus, second)["isActive"] is False


@pytest.mark.parametrize("status", ["disabled", "deleted"])
def test_a_phone_that_the_platform_took_away_keeps_no_tablet_out(bus: Bus, status: str) -> None:
    """L23, L25. The phone is lost; its owner goes on with the tablet."""
    phone, external_id, user = new_person(bus, PHONE)
    succeeded(bus.ask(c.set_status(phone, status)))
    tablet = new_install(bus, TABLET)
    assert succeeded(bus.ask(c.request(tablet, external_id))) == {
        "userId": user, "installId": tablet, "isActive": True, "personCreated": False}
    if status == "disabled":  # found again: the tablet has the person now
        assert succeeded(bus.ask(c.set_status(phone, "enabled")))["isActive"] is False
        refused(bus, c.request(phone, external_id), "INSTALL_DEACTIVATED")


def test_two_concurrent_first_requests_for_one_unknown_external_id_make_one_person(bus: Bus) -> None:
    """L19."""
    for _ in range(5):
        external_id = fresh("ext")
        commands = [c.request(new_install(bus), external_id) for _ in range(4)]
        # Different keys, so that they may well stand in different partitions.
        bus.send_all([command.but(subject=fresh("key")) for command in commands])
        results = [succeeded(bus.reply(command.id)) for command in commands]
        assert len({result["userId"] for result in results}) == 1
        assert sum(result["personCreated"] for result in results) == 1
        active = [command.data["installId"] for command in commands if state(bus, command.data["installId"])["isActive"]]
        assert len(active) == 1


def test_external_ids_are_exact_bytes(bus: Bus) -> None:
    """L17."""
    base = fresh("Ext")
    variants = [base, base.lower(), base + "\u00e9", base + "e\u0301", base + " x", base + "\U0001f600"]
    users = {succeeded(bus.ask(c.request(new_install(bus), text)))["userId"] for text in variants}
    assert len(users) == len(variants)


# Detach, status, query, establish


def test_detach_takes_the_person_off_and_the_same_external_id_restores(bus: Bus) -> None:
    """L32, L35."""
    install, external_id, user = new_person(bus)
    command = c.detach(install)
    assert succeeded(bus.ask(command)) == {
        "installId": install, "appId": "demo", "status": "enabled", "isActive": False, "isUsersFirst": False}
    assert events(bus, command.id, 1) == [("install-detached", {"installId": install, "userId": user})]
    again = c.detach(install)
    succeeded(bus.ask(again))
    assert events(bus, again.id, 0) == []
    succeeded(bus.ask(c.register(install)))
    assert succeeded(bus.ask(c.request(install, external_id))) == {
        "userId": user, "installId": install, "isActive": True, "personCreated": False}


def test_row_7a_a_link_that_comes_behind_the_detach_changes_nothing(bus: Bus) -> None:
    """L7a, L27. The app's linker failed while its request was on its way: the person stays where it is."""
    phone, external_id, _ = new_person(bus)
    install = new_install(bus)
    succeeded(bus.ask(c.detach(install)))
    refused(bus, c.request(install, external_id), "NO_LINKING_IN_PROGRESS")
    assert "userId" not in state(bus, install)
    assert state(bus, phone)["isActive"] is True


def made(command: Command, seconds: float) -> Command:
    """The same, sent by a producer whose clock says that it was so many seconds ago."""
    then = datetime.now(UTC) - timedelta(seconds=seconds)
    return command.but(attributes={**command.attributes, "time": then.isoformat(timespec="milliseconds")})


@pytest.mark.parametrize("user", ["none", "new"])
def test_row_7a_a_request_from_before_the_turn_is_not_about_who_is_there_now(bus: Bus, user: str) -> None:
    """L7a, L45, L46. Carol's backend asked when she had the device; the request lay in the topic while the device was
    reset and somebody else began."""
    install, carol = new_install(bus, user=user), fresh("carol")
    succeeded(bus.ask(c.detach(install)))
    succeeded(bus.ask(c.register(install, user=user)))
    before = state(bus, install)
    late = made(c.request(install, carol), 60)
    refused(bus, late, "NO_LINKING_IN_PROGRESS")
    assert " s older than the turn" in bus.ask(late)["message"]
    assert state(bus, install) == before
    # Within what clocks may differ by.
    dora = succeeded(bus.ask(made(c.request(install, fresh("dora")), 3)))
    assert dora["isActive"] is True


def test_row_9_and_10_who_is_linked_is_answered_however_old_the_request_is(bus: Bus) -> None:
    """L46."""
    install, external_id, user = new_person(bus)
    assert succeeded(bus.ask(made(c.request(install, external_id), 3600)))["userId"] == user
    succeeded(bus.ask(c.request(new_install(bus), external_id)))
    refused(bus, made(c.request(install, external_id), 3600), "INSTALL_DEACTIVATED")


def test_late_requests_are_counted(link: Deployment, bus: Bus) -> None:
    """L48."""
    install = new_install(bus)
    refused(bus, made(c.request(install, fresh("ext")), 60), "NO_LINKING_IN_PROGRESS")
    service = link.services[0]
    until(lambda: "identity_late_links_total" in service.get("/metrics")[1], 30, "identity_late_links_total")


def test_a_failed_creation_gives_back_what_it_took(bus: Bus) -> None:
    """L50. Also to a disabled install, which waits to be enabled."""
    phone, external_id, user = new_person(bus)
    tablet = new_install(bus, OTHER)
    succeeded(bus.ask(c.request(tablet, external_id)))
    failure = c.detach(tablet, cause="creation-failed")
    succeeded(bus.ask(failure))
    assert events(bus, failure.id, 2) == [
        ("install-detached", {"installId": tablet, "userId": user}),
        ("install-status-changed", {
            "installId": phone, "status": "enabled", "isActive": True, "userId": user, "isLinked": True,
            "cause": "restored"}),
    ]
    succeeded(bus.ask(c.set_status(phone, "disabled")))
    succeeded(bus.ask(c.register(tablet, OTHER)))
    succeeded(bus.ask(c.request(tablet, external_id)))
    succeeded(bus.ask(c.detach(tablet, cause="creation-failed")))
    assert succeeded(bus.ask(c.set_status(phone, "enabled")))["isActive"] is True


def test_an_enabled_phone_does_not_come_back_behind_its_successor(bus: Bus) -> None:
    """L49. The successor was reset meanwhile, and nobody is promoted (L24)."""
    lost, external_id, _ = new_person(bus)
    succeeded(bus.ask(c.set_status(lost, "disabled")))
    new = new_install(bus)
    succeeded(bus.ask(c.request(new, external_id)))
    succeeded(bus.ask(c.detach(new)))
    found = succeeded(bus.ask(c.set_status(lost, "enabled")))
    assert (found["isActive"], found["inactiveBecause"]) == (False, "superseded")


def test_a_creation_elects_anew_and_takes_over_nobody(bus: Bus) -> None:
    """L53, L54."""
    old, external_id, user = new_person(bus)
    succeeded(bus.ask(c.request(new_install(bus), external_id)))
    assert succeeded(bus.ask(c.establish(old, external_id)))["isActive"] is True
    left = new_install(bus, user="new")
    refused(bus, c.establish(left, fresh("ext")), "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON")
    rejected(bus.ask(c.register(left, user="new")), "USER_ALREADY_EXISTS")


def test_detach_and_query_and_status_of_an_unknown_install(bus: Bus) -> None:
    """L33."""
    for command in (c.detach(fresh("i")), c.query(fresh("i")), c.set_status(fresh("i"), "deleted")):
        rejected(bus.ask(command), "INSTALL_NOT_FOUND")
        assert events(bus, command.id, 0) == []


def test_status_disabled_and_back(bus: Bus) -> None:
    """L25."""
    install, external_id, user = new_person(bus)
    for status in ("disabled", "enabled"):
        command = c.set_status(install, status)
        assert succeeded(bus.ask(command))["status"] == status
        assert events(bus, command.id, 1) == [("install-status-changed", {
            "installId": install, "status": status, "isActive": status == "enabled", "userId": user,
            "isLinked": True, "cause": "command",
            **({"inactiveBecause": "disabled"} if status == "disabled" else {})})]
        repeated = c.set_status(install, status)
        succeeded(bus.ask(repeated))
        assert events(bus, repeated.id, 0) == []
    assert succeeded(bus.ask(c.request(install, external_id)))["userId"] == user


def test_status_deleted_cannot_be_taken_back_and_nothing_is_promoted(bus: Bus) -> None:
    """L24, L26."""
    old, external_id, user = new_person(bus)
    new = new_install(bus)
    succeeded(bus.ask(c.request(new, external_id)))
    assert succeeded(bus.ask(c.set_status(new, "deleted")))["isActive"] is False
    rejected(bus.ask(c.set_status(new, "enabled")), "INSTALL_DELETED")
    succeeded(bus.ask(c.detach(new)))
    rejected(bus.ask(c.detach(new)), "INSTALL_DELETED")
    rejected(bus.ask(c.register(new)), "INSTALL_DELETED")
    assert state(bus, old)["isActive"] is False
    third = new_install(bus)
    assert succeeded(bus.ask(c.request(third, external_id)))["userId"] == user


@pytest.mark.parametrize("status", ["", "Enabled", "gone", None, 1])
def test_status_of_an_unknown_value_is_invalid(bus: Bus, status: Any) -> None:
    rejected(bus.ask(c.set_status("i", status)), "INVALID_REQUEST")


def test_register_again_and_with_another_device(bus: Bus) -> None:
    """L28."""
    install = fresh("install")
    first, same, other = c.register(install), c.register(install), c.register(install, TABLET)
    succeeded(bus.ask(first))
    succeeded(bus.ask(same))
    succeeded(bus.ask(other))
    assert events(bus, first.id, 1) == [("install-registered", {"installId": install, "device": PHONE})]
    assert events(bus, same.id, 0) == []
    assert events(bus, other.id, 1) == [("install-registered", {"installId": install, "device": TABLET})]


def test_establish_creates_restores_and_links_an_existing_user(bus: Bus) -> None:
    """L30, L31."""
    first, second, external_id = fresh("i"), fresh("i"), fresh("ext")
    created = succeeded(bus.ask(c.establish(first, external_id)))
    assert created["personCreated"] and created["isActive"]
    restored = succeeded(bus.ask(c.establish(second, external_id)))
    assert (restored["userId"], restored["personCreated"]) == (created["userId"], False)
    # L31: only to an external id that is new to the platform.
    unlinked = new_install(bus, user="new")
    refused(
        bus, c.establish(unlinked, external_id, mode="link-existing-user"),
        "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON")
    linked = succeeded(bus.ask(c.establish(unlinked, fresh("ext"), mode="link-existing-user")))
    assert linked["userId"] == state(bus, unlinked)["userId"]


# Erasure


def gone(installs: int) -> dict[str, Any]:
    """What the certificate counts of a person whom the others, stand-ins, know nothing of."""
    return {
        "link": {"persons": 1, "installs": installs}, "user": {"installs": 0, "codes": 0},
        "sync": {"profiles": 0, "identities": 0, "devices": 0, "aliases": 0}, "verification": {"sessions": 0}}


def test_erasure_removes_everything_and_the_external_id_is_free_for_a_new_person(
    bus: Bus, others: dict[str, StandIn]
) -> None:
    """L36, L37, L38, L42."""
    first, external_id, user = new_person(bus)
    second = new_install(bus)
    succeeded(bus.ask(c.request(second, external_id)))
    command = c.erase(user)
    assert bus.ask(command)["status"] == "pending"
    certificate = succeeded(bus.final(command.id))
    assert certificate["done"] == gone(installs=2) and certificate["subject"] == {"userIds": [user], "mpids": []}
    assert certificate["requestId"] == command.id and external_id not in str(certificate)
    assert [place["place"] for place in certificate["remains"]] == ["inbox", "topics", "deadLetters", "backups"]
    query = c.Command("link.get-erasure", {"userId": user}, user)
    assert succeeded(bus.ask(query)) == certificate
    assert events(bus, command.id, 1) == [("user-erased", {"userId": user})]
    asked = {name: [one["data"] for one in asked_about(user, service)] for name, service in others.items()}
    moments = [asked[name][0].pop("erasedAt") for name in ("user", "sync")]
    assert moments[0] == moments[1] and moments[0].endswith("Z"), "from then on the external id was free"
    assert asked == {
        "user": [{"userId": user, "externalId": external_id, "installIds": sorted([first, second])}],
        "sync": [{"userId": user, "externalId": external_id}]}
    assert succeeded(bus.ask(c.erase(user))) == certificate
    rejected(bus.ask(c.Command("link.get-erasure", {"userId": "0" * 24}, "x")), "USER_NOT_FOUND")
    for install in (first, second):
        refused(bus, c.request(install, external_id), "NO_LINKING_IN_PROGRESS")
        found = state(bus, install)
        assert found["status"] == "enabled"
        assert "userId" not in found and "externalId" not in found
    again = succeeded(bus.ask(c.request(new_install(bus), external_id)))
    assert again["personCreated"] and again["userId"] != user


def test_erasure_is_over_when_both_services_have_answered(link: Deployment, bus: Bus, others: dict[str, StandIn]) -> None:
    """L39, L40, L41."""
    _, external_id, user = new_person(bus)
    sync = others["sync"]

    def holding() -> int:
        """How many erasures have the external id yet."""
        records = link.database.execute("SELECT record FROM erasures")
        return sum(external_id.encode() in bytes(record) for record, in records)

    ready, sync.script = sync.script, lambda _: []
    try:
        commands = [c.erase(user), c.erase(user)]
        for command in commands:
            assert bus.ask(command)["status"] == "pending"
        assert holding() == 1
        [asked] = until(lambda: asked_about(user, sync), 10, "the question to sync")
        assert len(bus.collector.replies[commands[0].id]) == 1, "the user service alone is not enough"
        sync.answer(asked, refusal("UNKNOWN_TYPE"))
        for command in commands:
            reply = bus.final(command.id)
            rejected(reply, "SERVER_ERROR")
            assert "sync service answered UNKNOWN_TYPE" in reply["message"]
    finally:
        sync.script = ready
    assert succeeded(bus.settle(c.erase(user)))["done"] == gone(installs=1)
    assert sync.last["data"] == asked["data"], "asked again, with all it needs"
    assert holding() == 0


def test_the_sync_service_has_a_person_forgotten(bus: Bus, others: dict[str, StandIn]) -> None:
    """L43."""
    install, external_id, user = new_person(bus)
    forget = c.forget("link", externalId=external_id)
    certificate = succeeded(bus.settle(forget))
    assert certificate["subject"]["userIds"] == [user]
    assert certificate["done"] == {"link": {"persons": 1, "installs": 1}, "user": {"installs": 0, "codes": 0}}
    assert events(bus, forget.id, 1) == [("user-erased", {"userId": user})]
    (asked,) = [one["data"] for one in asked_about(user, others["user"])]
    assert asked.pop("erasedAt").endswith("Z")
    assert asked == {"userId": user, "externalId": external_id, "installIds": [install]}
    assert succeeded(bus.ask(c.forget("link", userId="0" * 24, externalId=fresh("ext"))))["done"] == {
        "link": {"persons": 0, "installs": 0}, "user": {"installs": 0, "codes": 0}}
    rejected(bus.ask(c.forget("link")), "INVALID_REQUEST")
    rejected(bus.ask(c.forget("link", userId=user).but(signer="demo-backend")), "INSUFFICIENT_SCOPE")
    assert not asked_about(user, others["sync"]), "it is not asked for what it asks for"


def test_erasure_of_an_unknown_or_another_apps_person_is_not_found(bus: Bus) -> None:
    """L42."""
    _, _, user = new_person(bus)
    rejected(bus.ask(c.erase("0" * 24)), "USER_NOT_FOUND")
    rejected(bus.ask(c.erase(user, app="other")), "USER_NOT_FOUND")


def test_erasure_cannot_be_undone_by_a_replay_that_the_inbox_has_forgotten(
    link: Deployment, others: dict[str, StandIn]
) -> None:
    """L37, L62. The inbox's rows are deleted by hand, as they would go after weeks. Services say when they send."""
    bus = link.bus
    sent = {"time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    install, other, external_id = fresh("install"), fresh("install"), fresh("ext")
    history = [
        c.register(install), c.request(install, external_id), c.detach(install), c.register(other),
        c.request(other, external_id),
    ]
    history = [command.but(attributes={**command.attributes, **sent}) for command in history]
    user = [succeeded(bus.ask(command)) for command in history][1]["userId"]
    succeeded(bus.settle(c.erase(user)))
    service = link.services[0]
    assert service.stop() == 0
    inbox.forget(link.database, history)
    service.start().wait_ready()
    # `install` was free when the person went, so it may be registered; the person must not come back on it.
    replies = []
    for command in history:  # one after the other: they have different keys
        bus.send(command)
        replies.append(bus.reply_records(command.id, count=2)[1].data)
    rejected(replies[1], "USER_ERASED")
    rejected(replies[3], "INSTALL_DELETED")
    rejected(replies[4], "INSTALL_DELETED")
    # The same wishes as new commands: a new person, never the old one, also on the same install.
    for command in history:
        bus.ask(command.again().but(attributes={}))
    assert state(bus, other)["userId"] != user
    rows = link.database.execute("SELECT external_id, is_erased FROM persons WHERE user_id = ?", [user])
    assert [tuple(row) for row in rows] == [(None, 1)]
    rows = link.database.execute("SELECT install_id FROM installs WHERE user_id = ?", [user])
    assert rows == []


# Expiry and reply topics


def test_expirytime_in_the_past_is_answered_expired_and_changes_nothing(bus: Bus) -> None:
    install = new_install(bus)
    late = c.request(install, fresh("ext")).but(attributes={"expirytime": "2020-01-01T00:00:00Z"})
    reply = bus.ask(late)
    assert reply["status"] == "expired" and "result" not in reply
    assert events(bus, late.id, 0) == []
    assert "userId" not in state(bus, install)
    in_time = c.request(install, fresh("ext")).but(attributes={"expirytime": "2099-01-01T01:00:00.5+01:00"})
    succeeded(bus.ask(in_time))


@pytest.mark.parametrize("replyto", ["identity.link.commands.v1", "identity.repliesx", "identity.replies.", "a/b", "",
                                     "identity.replies.a b", "identity.replies." + "x" * 225])
def test_replyto_that_is_no_reply_topic_is_refused_and_answered_on_the_default_one(bus: Bus, replyto: str) -> None:
    command = c.query(fresh("install")).but(attributes={"replyto": replyto})
    bus.send(command)
    record = bus.reply_records(command.id)[0]
    rejected(record.data, "INVALID_REQUEST")
    assert record.topic == f"{bus.prefix}identity.replies.v1"


@pytest.mark.parametrize("with_prefix", [False, True])
def test_replyto_another_reply_topic(link: Deployment, make_deployment: Callable[..., Deployment], with_prefix: bool) -> None:
    name = f"identity.replies.{fresh('team')}"
    link.broker.create([link.prefix + name])
    listener = Bus(link.broker, link.prefix)
    listener.extra_replies = [link.prefix + name]
    command = c.query(new_install(link.bus)).but(attributes={"replyto": link.prefix * with_prefix + name})
    listener.send(command)
    record = listener.reply_records(command.id)[0]
    listener.close()
    assert record.topic == link.prefix + name
    succeeded(record.data)


def test_a_command_without_a_kafka_key_is_answered(bus: Bus) -> None:
    command = c.query(new_install(bus))
    bus.put(*bus.signed(command))
    record = bus.reply_records(command.id)[0]
    succeeded(record.data)
    assert record.key is None
