# SPDX-License-Identifier: Apache-2.0
"""Identity sync through a real process over Kafka, on both stores: the vendor's worked tables (F35) and
the rules of docs/sync.md. Every test uses its own devices and identities."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import Command, change, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.waiting import until

Reply = dict[str, Any]


@pytest.fixture
def bus(sync: Deployment) -> Bus:
    return sync.bus


def succeeded(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    assert "reason" not in reply, reply
    return reply["result"]


def rejected(reply: Reply, reason: str) -> str:
    assert (reply["status"], reply.get("reason")) == ("rejected", reason), reply
    assert reply["message"], "a rejection says why"
    assert "result" not in reply, reply
    return reply["message"]


class Person:
    """Names of one test, and its app."""

    def __init__(self, bus: Bus, app: str) -> None:
        self.bus, self.app = bus, app
        self.mark = fresh("")
        self.device = fresh("device")

    def values(self, identities: dict[str, str | None]) -> dict[str, str | None]:
        return {name: value + self.mark if value else value for name, value in identities.items()}

    def ask(self, operation: str, device: str | None = None, **identities: str | None) -> dict[str, Any]:
        command = c.sync(operation, device or self.device, self.values(identities), self.app)
        return succeeded(self.bus.ask(command))

    def modify(self, mpid: str, identity_type: str, old: str | None, new: str | None) -> dict[str, Any]:
        mark = lambda value: value + self.mark if value else value
        return succeeded(self.bus.ask(c.modify(mpid, change(identity_type, mark(old), mark(new)), app=self.app)))

    def users(self, device: str | None = None) -> list[dict[str, Any]]:
        return succeeded(self.bus.ask(c.get_users(device or self.device, self.app)))["users"]

    def identities(self, mpid: str, device: str | None = None) -> dict[str, list[str]]:
        user = next(user for user in self.users(device) if user["mpid"] == mpid)
        return {name: [value.removesuffix(self.mark) for value in values]
                for name, values in user["identities"].items()}


# Login and immutable identities


def test_login_id_example_a_known_profile_is_protected(bus: Bus) -> None:
    """S6."""
    p = Person(bus, "demo")
    p1 = p.ask("login", customerid="h.jekyll.85", email="ed.hyde", ios_idfv="1234")
    p2 = p.ask("identify", device=fresh("d"), email="h.jekyll.md")
    assert p.ask("identify", device=fresh("d"), email="ed.hyde")["mpid"] == p1["mpid"]
    assert p.ask("identify", device=fresh("d"), email="h.jekyll.md", ios_idfv="5678")["mpid"] == p2["mpid"]
    device = fresh("d")
    p3 = p.ask("identify", device=device, ios_idfv="1234")
    assert p3["mpid"] not in (p1["mpid"], p2["mpid"]) and not p3["isLoggedIn"]
    assert p.identities(p3["mpid"], device) == {"ios_idfv": ["1234"]}


def test_immutable_example(bus: Bus) -> None:
    """S7, S37."""
    p = Person(bus, "immutable")
    p1 = p.ask("login", customerid="h.jekyll.85", email="ed.hyde")
    p.ask("identify", device=fresh("d"), email="h.jekyll.md")
    search = lambda **ids: bus.ask(c.sync("search", p.device, p.values(ids), "immutable"))
    assert succeeded(search(customerid="h.jekyll.85"))["mpid"] == p1["mpid"]
    rejected(search(email="h.jekyll.md"), "NOT_FOUND_ERROR")
    rejected(search(customerid="9101"), "NOT_FOUND_ERROR")
    rejected(
        bus.ask(c.modify(p1["mpid"], change("customerid", None, "x" + p.mark), app="immutable")), "VALIDATION_ERROR")


# The strategies


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        ("demo", [None, 1, None, None, 1, 1, None, 1]),
        ("linked", [None, None, None, None, 2, 2, None, 2]),
        ("isolated", [None, None, 1, None, 2, 2, None, 2]),
    ])
def test_worked_flow(bus: Bus, app: str, expected: list[int | None]) -> None:
    """S23, S24, S25, S32, S33, S36."""
    p = Person(bus, app)
    person = {"customerid": "ABC123", "email": "ed.hyde", "ios_idfv": "9876"}
    feed, roku = fresh("feed"), fresh("roku")
    results = [
        p.ask("identify", ios_idfv="9876"),
        p.ask("login", **person),
        p.ask("logout", ios_idfv="9876"),
        p.ask("identify", device=feed, email="h.jekyll.md"),
        p.ask("login", **person),
    ]
    known = results[1]["mpid"]
    results.append(p.modify(known, "email", "ed.hyde", "h.jekyll.md"))
    results += [
        p.ask("identify", device=roku, roku_aid="8765"),
        p.ask("login", device=roku, customerid="ABC123", email="h.jekyll.md", roku_aid="8765"),
    ]
    mpids: list[str] = []
    for step, (result, earlier) in enumerate(zip(results, expected), 1):
        if earlier is None:
            assert result["mpid"] not in mpids, f"step {step} makes a new profile"
        else:
            assert result["mpid"] == mpids[earlier - 1], f"step {step}"
        mpids.append(result["mpid"])
    assert [result["isLoggedIn"] for result in results] == [False, True, False, True, True, True, False, True]
    assert results[5]["changeResults"] == [
        {"identityType": "email", "modifiedMPID": known}, {"identityType": "email", "modifiedMPID": mpids[3]}]
    assert p.identities(known, roku) == {
        "customerid": ["ABC123"], "email": ["h.jekyll.md"], "ios_idfv": ["9876"], "roku_aid": ["8765"]}
    # The orphan is never returned again, and cannot be brought back.
    assert p.identities(mpids[3], feed) == {}
    rejected(bus.ask(c.modify(mpids[3], change("email", None, "e" + p.mark), app=app)), "NOT_FOUND_ERROR")


def test_best_match_flow(bus: Bus) -> None:
    """S5, S26, S31."""
    p = Person(bus, "best")
    first = p.ask("identify", ios_idfv="9876")["mpid"]
    assert p.ask("identify", email="ed.hyde", ios_idfv="9876")["mpid"] == first
    p.modify(first, "email", "ed.hyde", "h.jekyll.md")
    assert p.ask("identify", email="poole", ios_idfv="9876")["mpid"] == first
    assert p.identities(first) == {"ios_idfv": ["9876"], "email": ["h.jekyll.md", "poole"]}
    other = fresh("device")
    assert p.ask("identify", device=other, android_uuid="8765")["mpid"] != first
    assert p.ask("identify", device=other, android_uuid="8765", email="poole")["mpid"] == first
    assert p.identities(first, other)["android_uuid"] == ["8765"]
    assert p.ask("logout", ios_idfv="9876")["mpid"] == first


# The reply and the current user


def test_current_user_events_previous_user_and_users_in_order(bus: Bus) -> None:
    """S11, S13, S15, S16, S19, S86."""
    p = Person(bus, "demo")
    first = c.sync("identify", p.device, p.values({"ios_idfv": "1"}), context="kept")
    anonymous = succeeded(bus.ask(first))
    assert "previousMPID" not in anonymous and anonymous["context"] == "kept"
    assert [event for event, _ in bus.events(first.id, 2)] == ["current-user-changed", "profile-created"]
    login = c.sync("login", p.device, p.values({"customerid": "a", "ios_idfv": "1"}), previousMPID=5)
    known = succeeded(bus.ask(login))
    assert known["mpid"] == anonymous["mpid"] == known["previousMPID"] and known["rule"] == "converted"
    assert known["previousMismatch"] is True and known["isLoggedIn"] and not known["isEphemeral"]
    assert known["matchedIdentities"] == p.values({"customerid": "a"})
    events = dict(bus.events(login.id, 2))
    assert known["move"] > anonymous["move"]
    assert events["current-user-changed"] == {
        "deviceId": p.device, "previousMPID": known["mpid"], "mpid": known["mpid"], "cause": "login",
        "rule": "converted", "isLoggedIn": True, "isEphemeral": False, "move": known["move"]}
    logout = c.sync("logout", p.device, p.values({"ios_idfv": "1"}), previousMPID=known["mpid"])
    out = succeeded(bus.ask(logout))
    assert out["previousMismatch"] is False and out["previousMPID"] == known["mpid"] != out["mpid"]
    users = p.users()
    assert [(user["mpid"], user["isCurrent"]) for user in users] == [(out["mpid"], True), (known["mpid"], False)]
    assert users[1]["firstSeen"] <= users[1]["lastSeen"] <= users[0]["lastSeen"]
    # Nothing changes when nothing changes.
    again = c.sync("identify", p.device, p.values({"ios_idfv": "1"}))
    assert succeeded(bus.ask(again))["mpid"] == out["mpid"]
    assert bus.events(again.id, 0) == []


def test_the_same_command_again_gives_the_same_reply_and_moves_nothing(bus: Bus) -> None:
    """S14."""
    p = Person(bus, "demo")
    commands = [
        c.sync("identify", p.device, p.values({"ios_idfv": "1"})),
        c.sync("login", p.device, p.values({"customerid": "a", "ios_idfv": "1"})),
        c.sync("logout", p.device, p.values({"ios_idfv": "1"})),
    ]
    first = [bus.ask(command) for command in commands]
    before = p.users()
    for _ in range(2):
        for command, reply in zip(commands, first):
            bus.send(command)
    for command, reply in zip(commands, first):
        records = bus.reply_records(command.id, 3)
        assert all(record.data == reply for record in records)
        assert len({record.envelope["id"] for record in records}) == 1
    assert p.users() == before


def test_mpids_are_read_exactly_as_numbers_and_strings(bus: Bus) -> None:
    """S1."""
    p = Person(bus, "demo")
    mpid = p.ask("identify", ios_idfv="1")["mpid"]
    assert isinstance(mpid, str) and int(mpid) != 0 and -(2**63) <= int(mpid) < 2**63
    for form in (mpid, int(mpid)):
        reply = succeeded(bus.ask(c.modify(form, change("other", None, "o" + p.mark))))
        assert reply["mpid"] == mpid
        identify = c.sync("identify", p.device, p.values({"ios_idfv": "1"}), previousMPID=form)
        assert succeeded(bus.ask(identify))["previousMismatch"] is False


# Modify, search


def test_modify_is_for_known_mpids(bus: Bus) -> None:
    """S33."""
    rejected(bus.ask(c.modify("1234567", change("email", None, fresh("e")))), "NOT_FOUND_ERROR")
    other = Person(bus, "linked").ask("identify", ios_idfv="1")["mpid"]
    rejected(bus.ask(c.modify(other, change("email", None, fresh("e")), app="demo")), "NOT_FOUND_ERROR")


def test_a_stale_old_value_is_no_error(bus: Bus) -> None:
    """S34, S35."""
    p = Person(bus, "demo")
    mpid = p.ask("login", customerid="a", email="real")["mpid"]
    p.modify(mpid, "email", "never-was", "new")
    assert p.identities(mpid) == {"customerid": ["a"], "email": ["new"]}
    p.modify(mpid, "email", None, None)
    assert p.identities(mpid) == {"customerid": ["a"]}


def test_search_changes_nothing_but_buckets(bus: Bus, sync: Deployment) -> None:
    """S45."""
    p = Person(bus, "demo")
    p.ask("login", customerid="a", ios_idfv="1")
    rows = lambda: [sync.database.execute(f"SELECT {what} ORDER BY 1, 2, 3", service="sync") for what in (
        "* FROM profiles", "* FROM aliases", "app, type, value, holders FROM identities",
        "app, device_id, current_mpid, anonymous_mpid, users FROM devices")]
    before = rows()
    for identities in ({"customerid": "a"}, {"customerid": "nobody"}, {"ios_idfv": "1"}):
        command = c.sync("search", p.device, p.values(identities))
        bus.ask(command)
        assert bus.events(command.id, 0) == []
    assert rows() == before


# Alias


def wait_for_event(bus: Bus, kind: str, match: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        for records in list(bus.collector.events.values()):
            for record in records:
                if record.envelope["type"] == f"identity.sync.{kind}.v1" and match(record.data):
                    return record.data
        return None

    return until(found, 30, lambda: f"a {kind} event")


def test_alias_is_applied_once_and_carries_first_seen_over(bus: Bus) -> None:
    """S39, S40, S43, S44."""
    p = Person(bus, "linked")
    source = p.ask("identify", ios_idfv="1")["mpid"]
    since = p.users()[0]["firstSeen"]
    time.sleep(0.05)
    known = p.ask("login", customerid="a", ios_idfv="1")["mpid"]
    assert known != source
    result = succeeded(bus.ask(c.alias(int(source), known, app="linked")))
    assert result["isScheduled"]
    event = wait_for_event(bus, "aliased", lambda data: data["aliasId"] == result["aliasId"])
    assert (event["sourceMPID"], event["destinationMPID"], event["scope"]) == (source, known, "device")
    users = p.users()
    assert users[0]["mpid"] == known and users[0]["firstSeen"] == since == event["firstSeen"]
    # Dropped silently: 202 outwards, an event inwards.
    for pair, rule in (
        ((source, known), "source-was-source-before"), ((known, source), "source-was-destination-before"),
    ):
        command = c.alias(*pair, app="linked")
        assert succeeded(bus.ask(command))["isScheduled"] is False
        assert [(kind, data["rule"]) for kind, data in bus.events(command.id, 1)] == [("alias-dropped", rule)]
    time.sleep(2.5)  # two more rounds of the due scan
    applied = [record for records in bus.collector.events.values() for record in records
               if record.data.get("aliasId") == result["aliasId"]]
    assert len({record.envelope["id"] for record in applied}) == 1


def test_alias_validation(bus: Bus) -> None:
    """S39, S41, S42."""
    p = Person(bus, "linked")
    mpid = p.ask("identify", ios_idfv="1")["mpid"]
    other = p.ask("login", customerid="a")["mpid"]
    now = int(time.time() * 1000)
    day = 86_400_000
    ask = lambda *pair, **more: bus.ask(c.alias(*pair, app="linked", **more))
    rejected(ask(mpid, mpid), "ALIAS_ERROR")
    rejected(ask(mpid, 12345), "ALIAS_ERROR")
    rejected(ask(12345, mpid), "ALIAS_ERROR")
    rejected(ask(mpid, other, startUnixtimeMs=now, endUnixtimeMs=now - 1), "ALIAS_ERROR")
    rejected(ask(mpid, other, startUnixtimeMs=now - 91 * day), "ALIAS_ERROR")
    rejected(ask(mpid, 0), "INVALID_REQUEST")
    rejected(ask(mpid, other, scope="everywhere"), "INVALID_REQUEST")
    # A clock that is ahead: the window ends now.
    assert succeeded(ask(mpid, other, endUnixtimeMs=now + day))["isScheduled"]
    for app, may_alias in {  # default, conversion, link; isolation, bestMatch, userIdThenEmail
            "other": True, "demo": True, "linked": True, "isolated": False, "best": False, "support": False}.items():
        q = Person(bus, app)
        one, two = q.ask("identify", ios_idfv="1")["mpid"], q.ask("identify", device=fresh("d"), ios_idfv="2")["mpid"]
        answer = bus.ask(c.alias(one, two, app=app))
        if may_alias:
            assert succeeded(answer)["isScheduled"], app
        else:
            rejected(answer, "ALIASING_NOT_PROVISIONED")


# Links


def test_links_make_their_mark_when_the_app_asks_for_it(sync: Deployment) -> None:
    """S46."""
    sync.service(name="link").start().wait_ready()
    links = sync.bus
    for app, is_marked in (("fromlinks", True), ("linked", False)):
        external_id, install = fresh("ext"), fresh("install")
        succeeded(links.ask(c.register(install, app=app)))
        user = succeeded(links.ask(c.request(install, external_id, app=app)))["userId"]
        marked = lambda: sync.database.execute("SELECT mpid FROM profiles WHERE user_id = ?", [user], service="sync")
        if is_marked:
            until(marked, 20, lambda: "the profile of the link")
            login = c.sync("login", fresh("d"), {"customerid": external_id}, app)
            assert succeeded(sync.bus.ask(login))["mpid"] == str(marked()[0][0])
        else:
            time.sleep(1)
            assert marked() == []


# Bad input


@pytest.mark.parametrize(
    ("identities", "more", "reason"),
    [
        ({}, {}, "LOOKUP_ERROR"), ({"email": None}, {}, "LOOKUP_ERROR"), ({"e-mail": "x"}, {}, "VALIDATION_ERROR"),
        ({"email": 5}, {}, "INVALID_REQUEST"), ({"email": ["x"]}, {}, "INVALID_REQUEST"),
        ({"email": "x" * 751}, {}, "INVALID_REQUEST"), ({"email": ""}, {}, "INVALID_REQUEST"),
        ("text", {}, "INVALID_REQUEST"), (None, {}, "INVALID_REQUEST"),
        ({"email": "x"}, {"previousMPID": "garbage"}, "INVALID_REQUEST"),
        ({"email": "x"}, {"previousMPID": 2**63}, "INVALID_REQUEST"),
        ({"email": "x"}, {"previousMPID": 1.5}, "INVALID_REQUEST"),
        ({"email": "x"}, {"environment": "staging"}, "INVALID_REQUEST"),
        ({"email": "x"}, {"deviceId": ""}, "INVALID_REQUEST"),
    ])
@pytest.mark.parametrize("operation", ["identify", "login", "logout", "search"])
def test_bad_input_has_a_named_reason(
    bus: Bus, operation: str, identities: Any, more: dict[str, Any], reason: str
) -> None:
    """S3, S4."""
    command = c.sync(operation, fresh("device"), identities, **more)
    if operation == "logout" and reason == "LOOKUP_ERROR":
        assert not succeeded(bus.ask(command))["isLoggedIn"], "its device is named"
        return
    rejected(bus.ask(command), reason)
    assert bus.events(command.id, 0) == []


@pytest.mark.parametrize(
    "data",
    [
        {"mpid": 0, "changes": []}, {"mpid": "0", "changes": []}, {"mpid": 2**63, "changes": []},
        {"mpid": -(2**63) - 1, "changes": []}, {"mpid": "", "changes": []}, {"mpid": None, "changes": []},
        {"mpid": True, "changes": []}, {"mpid": "1"}, {"mpid": "1", "changes": [{"newValue": "x"}]},
        {"mpid": "1", "changes": [{"identityType": "email", "newValue": 7}]},
        {"mpid": "1", "changes": [{"identityType": "email", "newValue": "x" * 751}]},
    ])
def test_bad_modifies_have_a_named_reason(bus: Bus, data: dict[str, Any]) -> None:
    """S1, S4."""
    rejected(bus.ask(c.Command("sync.modify", data, "1", signer="demo-sdk")), "INVALID_REQUEST")


def test_what_is_tolerated(bus: Bus) -> None:
    """S3, S11."""
    p = Person(bus, "demo")
    for more in (
        {"previousMPID": 0}, {"previousMPID": None}, {"previousMPID": "0"},
        {"requestTimestampMs": 0}, {"requestTimestampMs": 2**62}, {"requestTimestampMs": -1},
        {"context": None}, {"requestId": None}, {"clientSdk": {"platform": "web"}},
    ):
        result = succeeded(bus.ask(c.sync("identify", p.device, p.values({"ios_idfv": "1", "email": None}), **more)))
        assert "previousMismatch" not in result
    longest = "\u00e9" * 750
    assert succeeded(bus.ask(c.sync("identify", fresh("d"), {"other": longest})))


def test_scopes(bus: Bus) -> None:
    rejected(bus.ask(c.sync("identify", fresh("d"), {"email": "x"}, signer="demo-backend")), "INSUFFICIENT_SCOPE")
    due = c.Command("sync.apply-alias", {"aliasId": "a", "destinationMPID": "1"}, "1", signer="demo-sdk")
    rejected(bus.ask(due), "INSUFFICIENT_SCOPE")


def test_a_hot_key_is_throttled_and_recovers(bus: Bus) -> None:
    """S65."""
    p = Person(bus, "throttled")
    command = lambda: c.sync("identify", p.device, p.values({"ios_idfv": "1"}), "throttled")
    commands = [command() for _ in range(8)]
    bus.send_all(commands)
    replies = [bus.reply(command.id) for command in commands]
    assert [reply["status"] for reply in replies[:3]] == ["succeeded"] * 3
    throttled = [reply for reply in replies if reply["status"] == "rejected"]
    assert throttled, "eight at once are more than three"
    assert all("limit: device" in rejected(reply, "THROTTLED") for reply in throttled)
    succeeded(bus.ask(c.sync("identify", fresh("d"), p.values({"ios_idfv": "1"}), "throttled")))
    time.sleep(1.2)
    succeeded(bus.ask(command()))


def test_searches_are_throttled_too(bus: Bus) -> None:
    """S66."""
    device = fresh("d")
    searches = [c.sync("search", device, {"email": fresh("e")}, "throttled") for _ in range(8)]
    bus.send_all(searches)
    reasons = [bus.reply(search.id)["reason"] for search in searches]
    assert reasons[:3] == ["NOT_FOUND_ERROR"] * 3 and "THROTTLED" in reasons[3:]


# Values that name nobody

ZERO = "00000000-0000-0000-0000-000000000000"


def test_devices_without_consent_are_not_one_device(bus: Bus, sync: Deployment) -> None:
    """S49, S52."""
    p = Person(bus, "other")
    mpids = [
        succeeded(bus.ask(c.sync("identify", fresh("d"), {"ios_idfa": ZERO, "ios_idfv": fresh("v")}, "other")))["mpid"]
        for _ in range(2)]
    assert len(set(mpids)) == 2
    rejected(bus.ask(c.sync("identify", p.device, {"ios_idfa": ZERO}, "other")), "LOOKUP_ERROR")
    assert sync.services[0].metric("identity_ignored_values_total") >= 3


@pytest.mark.parametrize("value", ["null", "(NULL)", "undefined", " ", "0", "ffffffff-ffff-ffff-ffff-ffffffffffff"])
def test_a_login_identity_that_names_nobody_is_refused(bus: Bus, value: str) -> None:
    """S18, S49, S51."""
    p = Person(bus, "demo")
    for operation in ("identify", "login", "search"):
        rejected(bus.ask(c.sync(operation, p.device, {"customerid": value})), "VALIDATION_ERROR")
    mpid = p.ask("identify", ios_idfv="1")["mpid"]
    rejected(bus.ask(c.modify(mpid, change("customerid", None, value))), "VALIDATION_ERROR")
    # A logout looks at no login identity.
    succeeded(bus.ask(c.sync("logout", p.device, p.values({"ios_idfv": "1"}) | {"customerid": value})))


# The lower rank


@pytest.mark.parametrize(("app", "joins"), [("demo", False), ("joining", True)])
def test_somebodys_email_takes_nobody_over(bus: Bus, app: str, joins: bool) -> None:
    """S9, S10."""
    p = Person(bus, app)
    owner = p.ask("login", customerid="owner", email="e")["mpid"]
    other = p.ask("login", device=fresh("d"), customerid="other", email="e")
    assert (other["mpid"] == owner) == joins
    assert other["rule"] == ("matched" if joins else "created-for-other-login")
    if not joins:
        assert p.identities(owner) == {"customerid": ["owner"], "email": ["e"]}


# Who may say who is who


def test_an_enforced_app_believes_no_sdk_key(bus: Bus) -> None:
    """S47, S48."""
    person, backend = Person(bus, "enforcing"), {"signer": "enforcing-backend"}
    login = lambda operation, device, **more: c.sync(
        operation, device, person.values({"customerid": "victim"}), "enforcing", **more)
    victim = succeeded(bus.ask(login("login", fresh("d"), **backend)))["mpid"]
    assert succeeded(bus.ask(login("login", fresh("d"), signer="internal")))["mpid"] == victim
    for operation in ("identify", "login", "search"):
        for signer in ("enforcing-sdk", "enforcing-voucher"):
            reason = "VERIFICATION_REQUIRED" if signer == "enforcing-sdk" else "INSUFFICIENT_SCOPE"
            command = login(operation, person.device, signer=signer)
            rejected(bus.ask(command), reason)
            assert bus.events(command.id, 0) == []
    assert succeeded(bus.ask(login("search", person.device, **backend)))["mpid"] == victim
    anonymous = person.ask("identify", device_application_stamp="das")["mpid"]
    for mpid in (victim, anonymous):
        rejected(
            bus.ask(c.modify(mpid, change("email", None, "mine" + person.mark), app="enforcing")),
            "VERIFICATION_REQUIRED")
    for pair in ((victim, anonymous), (anonymous, victim)):
        rejected(bus.ask(c.alias(*pair, app="enforcing")), "VERIFICATION_REQUIRED")
    # A device's own identities are its own business.
    person.modify(anonymous, "push_token", None, "t")
    assert person.ask("logout", customerid="victim", device_application_stamp="das")["mpid"] != victim


@pytest.mark.parametrize("app", ["enforcing", "enforcing-default"])
def test_what_a_device_says_beforehand_leads_nobody_to_it(bus: Bus, app: str) -> None:
    """S48, S71 to S74. An attacker's device cannot become the person who is verified later: neither by her e-mail nor by an
    advertising id that both have."""
    person, evil, hers, shared = Person(bus, app), fresh("evil"), fresh("hers"), fresh("idfa")
    mail = person.values({"email": "anna"})
    for operation in ("identify", "login"):
        for word in (mail, {"mobile_number": "1"}, {"other": "o"}):
            rejected(bus.ask(c.sync(operation, evil, word | {"device_application_stamp": evil}, app)),
                     "VERIFICATION_REQUIRED")
    for device in (evil, hers):
        succeeded(bus.ask(c.sync("identify", device, {"ios_idfv": shared}, app)))
    login = c.sync("login", hers, person.values({"customerid": "anna"}) | mail | {"ios_idfv": shared}, app,
                   signer="internal")
    anna = succeeded(bus.ask(login))
    assert anna["isLoggedIn"]
    rejected(bus.ask(c.get_users(evil, app)), "VERIFICATION_REQUIRED")
    users = succeeded(bus.ask(c.get_users(evil, app).but(signer="internal")))["users"]
    assert anna["mpid"] not in [user["mpid"] for user in users]
    for kind in ("push_token", "email"):
        rejected(bus.ask(c.modify(anna["mpid"], change(kind, None, "mine"), app=app)), "VERIFICATION_REQUIRED")
    again = login.again().but(data=login.data | {"deviceId": fresh("new")})
    assert succeeded(bus.ask(again))["mpid"] == anna["mpid"]


# What is removed is gone


def test_a_removed_value_leaves_no_text(bus: Bus, sync: Deployment) -> None:
    """S67."""
    p = Person(bus, "demo")
    mpid = p.ask("login", customerid="a", email="removed")["mpid"]
    p.modify(mpid, "email", None, None)
    assert not [row for row in sync.database.execute("SELECT value FROM identities", service="sync")
                if row[0] == "removed" + p.mark]


def test_a_modify_tells_the_devices_whose_user_it_makes_known(bus: Bus) -> None:
    """S38."""
    p = Person(bus, "demo")
    mpid = p.ask("identify", ios_idfv="1")["mpid"]
    command = c.modify(mpid, change("customerid", None, "a" + p.mark))
    succeeded(bus.ask(command))
    events = dict(bus.events(command.id, 2))
    assert events["current-user-changed"].pop("move") > 0
    assert events["current-user-changed"] == {
        "deviceId": p.device, "previousMPID": mpid, "mpid": mpid, "cause": "modify", "rule": "named",
        "isLoggedIn": True, "isEphemeral": False}


# The strategy of the verification service


def test_user_id_then_email(bus: Bus) -> None:
    """S12, S27, S28, S29."""
    p = Person(bus, "support")
    anonymous = p.ask("identify", device_application_stamp="das")["mpid"]
    ed = p.ask("login", customerid="Ed", email="Ed@X.io", device_application_stamp="das")["mpid"]
    assert ed != anonymous
    assert p.ask("logout", device_application_stamp="das")["mpid"] == anonymous
    assert p.ask("login", email="ED@x.IO")["mpid"] == ed, "an e-mail has no case"
    assert p.ask("login", customerid="ed")["mpid"] != ed, "a user id has"
    assert p.ask("login", customerid="Ed", email="new@x.io")["mpid"] == ed
    assert p.identities(ed)["email"] == ["new@x.io"]
    taken = p.ask("login", customerid="Jo", email="new@x.io")["mpid"]
    assert taken != ed, "an e-mail match with another user id is somebody new"
    assert p.ask("login", email="new@x.io")["mpid"] == ed, "several have it: the oldest"


def test_a_service_may_drop_the_anonymous_user_and_log_out_without_identities(bus: Bus) -> None:
    """S18, S20, S21."""
    p = Person(bus, "support")
    internal = lambda operation, ids, **more: succeeded(
        bus.ask(c.sync(operation, p.device, p.values(ids), "support", signer="internal", **more)))
    anonymous = internal("logout", {})["mpid"]
    assert internal("logout", {})["mpid"] == anonymous, "the device's anonymous user"
    internal("login", {"customerid": "a"}, name="Anna", clearAnonymousUser=True)
    users = p.users()
    assert [(user.get("name"), user["isLoggedIn"]) for user in users] == [("Anna", True)]
    assert internal("logout", {})["mpid"] != anonymous
    # What nobody vouched for finds nobody and changes nothing.
    mail = internal("login", {"customerid": "b", "email": "mine@x.io"}, vouchedFor=["customerid"])
    assert p.identities(mail["mpid"]) == {"customerid": ["b"]}
    rejected(
        bus.ask(c.sync("login", p.device, {"email": "x"}, "support", signer="internal", vouchedFor=["customerid"])),
        "LOOKUP_ERROR")
