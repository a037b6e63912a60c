# SPDX-License-Identifier: Apache-2.0
"""Verification through the running verification and sync services: who is let in, and as whom."""

import time
from typing import Any, Callable

import pytest

from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.verification import (
    ServiceBus, VerificationDeployment, check, forget, get_session, identity_token, login, login_identity, logout, token, usage,
    vouched)


@pytest.fixture(scope="module")
def deployment(verification_deployment: VerificationDeployment) -> VerificationDeployment:
    verification_deployment.start()
    return verification_deployment


@pytest.fixture
def bus(deployment: VerificationDeployment) -> ServiceBus:
    return deployment.verification


def result(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return reply["result"]


def rejected(reply: dict[str, Any]) -> str:
    assert reply["status"] == "rejected", reply
    if reply["reason"] in ("AuthTokenNotProvided", "InvalidAuthToken"):
        assert reply["result"] == {"state": "unverified", "mayFileIssues": False}
    return reply["reason"]


# What a login comes to


def test_off_lets_everybody_in(bus: ServiceBus) -> None:
    """V23."""
    for data in ({}, {"userAuthToken": "rubbish"}):
        device, user = fresh("device"), fresh("user")
        answer = result(bus.settle(login(device, "unchecked", userId=user, **data)))
        assert answer.pop("mpid").lstrip("-").isdigit()
        assert answer == {"state": "unchecked", "mayFileIssues": True}
        assert len(bus.wait_sessions(device, 1)) == 1
        assert [short for short, _ in bus.told(device)] == ["session-changed"]


@pytest.mark.parametrize("app", ["unchecked", "reported", "enforced"])
def test_anonymous_users_may_always_file_issues(bus: ServiceBus, app: str) -> None:
    """V1, V7, V22, V75."""
    device = fresh("device")
    answer = result(bus.settle(login(device, app)))
    mpid = answer.pop("mpid")
    assert answer == {"state": "anonymous", "mayFileIssues": True, "anonymousReason": "noIdentifier"}
    assert result(bus.settle(login(device, app)))["mpid"] == mpid
    assert bus.wait_sessions(device, 1) == ["login anonymous"]


@pytest.mark.parametrize("key_id", ["k1", "k2"])
def test_a_token_of_any_live_key_passes(bus: ServiceBus, key_id: str) -> None:
    """V26, V33, V56."""
    device, user = fresh("device"), fresh("user")
    command = vouched(device, user, key_id=key_id)
    assert bus.ask(command)["status"] == "pending"
    answer = result(bus.final(command))
    mpid = answer.pop("mpid")
    assert answer == {"state": "verified", "mayFileIssues": True, "keyId": key_id}
    assert bus.wait_sessions(device, 1) == [f"login verified {mpid}"]
    assert bus.told(device)[0] == ("verified", {"deviceId": device, "method": "authToken", "keyId": key_id})


@pytest.mark.parametrize(
    ("given", "reason"),
    [({}, "AuthTokenNotProvided"), ({"userAuthToken": ""}, "AuthTokenNotProvided"),
     ({"userAuthToken": "x"}, "InvalidAuthToken"), ({"userAuthToken": token("somebody else")}, "InvalidAuthToken"),
     ({"userAuthToken": token("user", "k3")}, "InvalidAuthToken"), ({"userAuthToken": "A" * 100_000}, "InvalidAuthToken")])
def test_enforce_refuses_and_report_observes(bus: ServiceBus, given: dict[str, str], reason: str) -> None:
    """V25, V27, V28, V29."""
    device = fresh("device")
    refused = bus.ask(login(device, userId="user", **given))
    assert rejected(refused) == reason
    assert refused["result"] == {"state": "unverified", "mayFileIssues": False}
    assert bus.wait_sessions(device, 1) == ["refusal unverified!"]
    assert bus.told(device)[0] == ("failed", {"deviceId": device, "method": "authToken", "reason": reason})

    device = fresh("device")
    answer = result(bus.settle(login(device, "reported", userId="user", **given)))
    assert (answer["state"], answer["mayFileIssues"]) == ("unverified", True)
    assert bus.wait_sessions(device, 1) == [f"login unverified {answer['mpid']}"]
    assert bus.told(device)[0] == (
        "unverified-observed", {"deviceId": device, "method": "authToken", "reason": reason})


@pytest.mark.parametrize(
    ("data", "reason"),
    [({"userId": " u"}, "userIdOuterWhiteSpace"), ({"userId": "u" * 751}, "userIdTooLong"),
     ({"userId": "u", "userEmail": "rubbish"}, "userEmailInvalid"), ({"userEmail": " a@b.io"}, "userEmailOuterWhiteSpace")])
def test_identifiers_that_are_not_valid_are_nobodys(bus: ServiceBus, data: dict[str, str], reason: str) -> None:
    """V3."""
    answer = result(bus.settle(login(fresh("device"), **data)))
    del answer["mpid"]
    assert answer == {"state": "anonymous", "mayFileIssues": True, "anonymousReason": reason}


def test_full_privacy(deployment: VerificationDeployment, bus: ServiceBus) -> None:
    """V5, V15."""
    device, user = fresh("device"), fresh("user")
    command = vouched(device, user, "private", userEmail=f"{user}@example.com", userName="Anna")
    assert result(bus.settle(command))["state"] == "verified"
    users = Command("sync.get-users", {"deviceId": device}, device, app="private", signer="internal")
    known = result(deployment.sync.ask(users))["users"]
    assert [user["identities"] for user in known if user["isLoggedIn"]] == [{"customerid": [user]}]
    assert all("name" not in user for user in known)
    private = login(fresh("device"), "private", userEmail="a@b.io", userAuthToken=token("a@b.io", app="private"))
    assert result(bus.settle(private))["anonymousReason"] == "fullPrivacyWithoutUserId"


@pytest.mark.parametrize(
    ("data", "reason"),
    [({"userId": 7}, "INVALID_REQUEST"), ({"userEmail": ["a@b.io"]}, "INVALID_REQUEST"), ({"deviceId": ""}, "INVALID_REQUEST"),
     ({"deviceId": "d" * 256}, "INVALID_REQUEST"), ({"userAuthToken": True}, "INVALID_REQUEST")])
def test_bad_input_has_a_reason(bus: ServiceBus, data: dict[str, Any], reason: str) -> None:
    command = login(fresh("device"), userId="u")
    assert rejected(bus.ask(command.but(data=command.data | data))) == reason


# Signed fields


def test_the_concatenation_attack(bus: ServiceBus) -> None:
    """V11, V12, V13, V14.

    Somebody owns the address victim123a@evil.io. Under `vendor` its token is also that of another pair."""
    stolen = token("victim123a@evil.io")
    pair = {"userId": "victim123", "userEmail": "a@evil.io"}
    assert result(bus.settle(login(fresh("device"), userAuthToken=stolen, **pair)))["state"] == "verified"
    for app in ("byid", "bymail", "delimited"):
        wrong = login(fresh("device"), app, userAuthToken=token("victim123a@evil.io", app=app), **pair)
        assert rejected(bus.ask(wrong)) == "InvalidAuthToken"
    for app, text in (("byid", "victim123"), ("bymail", "a@evil.io"), ("delimited", "victim123\na@evil.io")):
        right = login(fresh("device"), app, userAuthToken=token(text, app=app), **pair)
        assert result(bus.settle(right))["state"] == "verified"
    whole = [{"identifier": "email", "value": "victim123a@evil.io"}]
    answer = result(bus.settle(login_identity(fresh("device"), identity_token(whole))))
    assert answer["state"] == "verified"


def test_what_is_not_signed_is_not_used(deployment: VerificationDeployment, bus: ServiceBus) -> None:
    """V16."""
    victim, mallory = fresh("victim"), fresh("mallory")
    mail = f"{victim}@example.com"
    first = result(bus.settle(login(fresh("device"), "byid", userId=victim, userAuthToken=token(victim, app="byid"))))
    device = fresh("device")
    second = result(
        bus.settle(
            login(device, "byid", userId=mallory, userEmail=mail, userAuthToken=token(mallory, app="byid"))))
    assert first["mpid"] != second["mpid"]
    users = Command("sync.get-users", {"deviceId": device}, device, app="byid", signer="internal")
    known = result(deployment.sync.ask(users))["users"]
    assert [user["identities"] for user in known if user["isLoggedIn"]] == [{"customerid": [mallory]}]


@pytest.mark.parametrize("given", [{}, {"userAuthToken": "x"}, "right"])
def test_report_takes_everybody_for_whom_off_takes_them(
    deployment: VerificationDeployment, bus: ServiceBus, given: dict[str, str] | str
) -> None:
    """V24, V30.

    A right token that covers the user id alone takes nothing away from the login: a missing one would not either."""
    device, user = fresh("device"), fresh("user")
    app, address = "reportedbyid", f"{user}@example.com"
    shown = {"userAuthToken": token(user, app=app)} if given == "right" else given
    assert isinstance(shown, dict)
    answer = result(bus.settle(login(device, app, userId=user, userEmail=address, **shown)))
    assert answer["state"] == ("verified" if given == "right" else "unverified")
    assert logged_in(deployment, device, app) == [{"customerid": [user], "email": [address]}]


def logged_in(deployment: VerificationDeployment, device: str, app: str = "enforced") -> list[dict[str, list[str]]]:
    """The identities of the users that the sync service has as logged in on the device."""
    users = Command("sync.get-users", {"deviceId": device}, device, app=app, signer="internal")
    return [user["identities"] for user in result(deployment.sync.ask(users))["users"] if user["isLoggedIn"]]


@pytest.mark.parametrize("app", ["enforced", "byid", "bymail", "delimited", "private"])
def test_enforce_sends_nobody_on_without_a_voucher(deployment: VerificationDeployment, bus: ServiceBus, app: str) -> None:
    """V29. On the sync service's side: a login that is refused, in whatever way, does not reach it."""
    device, user = fresh("device"), fresh("user")
    pair = {"userId": user, "userEmail": f"{user}@example.com"}
    identities = [{"identifier": "uid", "value": user}]
    for refused in (
        login(device, app, **pair), login(device, app, userAuthToken="x", **pair),
        login(device, app, userAuthToken=token("somebody else", app=app), **pair),
        login_identity(device, identity_token(identities, age=90_000, app=app), app),
        login_identity(device, "x.y.z", app),
    ):
        assert bus.ask(refused)["status"] == "rejected"
    assert logged_in(deployment, device, app) == []
    assert not [data for records in list(deployment.sync.collector.events.values()) for record in records
                if device in str(data := record.data)]


# Identity tokens


@pytest.mark.parametrize(
    ("identity", "reason"),
    [("x", "INVALID_IDENTITY_TOKEN"), ("a.b.c", "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "uid", "value": "u"}], alg="none"), "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "uid", "value": "u"}], alg="RS256"), "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "uid", "value": "u"}], age=25 * 3600), "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "uid", "value": "u"}], age=-25 * 3600), "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "uid", "value": "u"}], key_id="k1"), "INVALID_IDENTITY_TOKEN"),
     (identity_token([{"identifier": "email", "value": "a@b.io"}] * 31), "IDENTITIES_SIZE_LIMIT_EXCEEDED"),
     (identity_token([{"identifier": "shoe", "value": "42"}]), "IDENTITIES_DATA_INVALID"),
     (identity_token([{"identifier": "steam_id", "value": "42"}]), "UID_OR_EMAIL_IS_MANDATORY"),
     ("A" * 100_000, "INVALID_IDENTITY_TOKEN")])
def test_identity_tokens_that_do_not_pass(bus: ServiceBus, identity: str, reason: str) -> None:
    """V17, V18, V19, V20."""
    device = fresh("device")
    assert rejected(bus.ask(login_identity(device, identity))) == reason
    assert bus.wait_sessions(device, 1) == ["refusal unverified!"]


def test_an_identity_token_logs_in(bus: ServiceBus) -> None:
    """V19."""
    user = fresh("user")
    identities = [{"identifier": "uid", "value": user}, {"identifier": "email", "value": f"{user}@example.com"}]
    answer = result(bus.settle(login_identity(fresh("device"), identity_token(identities))))
    assert answer["state"] == "verified" and "keyId" not in answer
    # The same person by the other way.
    assert result(bus.settle(vouched(fresh("device"), user)))["mpid"] == answer["mpid"]
    empty = result(bus.settle(login_identity(fresh("device"), "")))
    assert empty["state"] == "anonymous"


def test_a_token_over_the_message_limit(bus: ServiceBus) -> None:
    """1 MiB: not even the envelope is read; it is set aside with its reason."""
    place = bus.send(login_identity(fresh("device"), "A" * (1 << 20)))
    assert bus.dead_letter(place).header("dlq_reason") == b"TOO_LARGE"


# Check and usage


def test_check(bus: ServiceBus) -> None:
    """V51."""
    for app in ("enforced", "reported", "unchecked"):
        good = check(app, userId="anna", userAuthToken=token("anna", "k2", app))
        assert result(bus.ask(good)) == {"state": "verified", "mayFileIssues": True, "keyId": "k2"}
        wrong = check(app, userId="anna", userAuthToken=token("berta", app=app))
        assert rejected(bus.ask(wrong)) == "InvalidAuthToken"
    nobody = check(userId="anna", userAuthToken=token("anna")).but(data={"userAuthToken": "x"})
    assert rejected(bus.ask(nobody)) == "INVALID_REQUEST"
    without_scope = check(userId="anna", userAuthToken=token("anna")).but(signer="enforced-sdk")
    assert rejected(bus.ask(without_scope)) == "INSUFFICIENT_SCOPE"


def counts(bus: ServiceBus, app: str) -> dict[tuple[str, str], int]:
    found = result(bus.ask(usage(app)))["counts"]
    return {(count["method"], count.get("keyId") or count.get("reason") or "passed"): count["count"] for count in found}


def test_report_counts_what_enforce_refuses(bus: ServiceBus) -> None:
    """V25, V52. The same traffic to both: the counters grow alike, and report refuses nobody."""
    user = fresh("user")
    jwt = [{"identifier": "uid", "value": user}]
    traffic: list[Callable[[str], Command]] = [
        lambda app: login(fresh("device"), app, userId=user),
        lambda app: login(fresh("device"), app, userId=user, userAuthToken="x"),
        lambda app: vouched(fresh("device"), user, app),
        lambda app: vouched(fresh("device"), user, app, key_id="k2"),
        lambda app: vouched(fresh("device"), user, app, key_id="k2"),
        lambda app: login_identity(fresh("device"), identity_token(jwt, age=90_000, app=app), app),
        lambda app: login_identity(fresh("device"), identity_token(jwt, app=app), app),
    ]
    grown = {}
    for app in ("enforced", "reported"):
        before = counts(bus, app)
        commands = [make(app) for make in traffic * 3]
        bus.send_all(commands)
        answers = [bus.final(command) for command in commands]
        refused = [answer["reason"] for answer in answers if answer["status"] == "rejected"]
        assert sorted(refused) == sorted(
            ["AuthTokenNotProvided", "InvalidAuthToken", "INVALID_IDENTITY_TOKEN"] * 3 if app == "enforced" else [])
        after = counts(bus, app)
        grown[app] = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    assert grown["enforced"] == grown["reported"]
    assert grown["enforced"] == {
        ("authToken", "AuthTokenNotProvided"): 3, ("authToken", "InvalidAuthToken"): 3, ("authToken", "k1"): 3,
        ("authToken", "k2"): 6, ("identityToken", "INVALID_IDENTITY_TOKEN"): 3, ("identityToken", "passed"): 3}


# As whom. The tokens are right throughout (`vendor`).


def enter(bus: ServiceBus, user: str | None, mail: str | None) -> str:
    identifiers = {name: value for name, value in (("userId", user), ("userEmail", mail)) if value}
    text = (user or "") + (mail or "")
    return result(bus.settle(login(fresh("device"), userAuthToken=token(text), **identifiers)))["mpid"]


def mail() -> str:
    return f"{fresh('mail')}@example.com"


NOBODY = None
# Who logged in before (user id, e-mail), in order; who logs in now; who that is: one of those before by number, somebody
# new, or nobody; and who then holds the e-mail that is given, if that is to be seen.
WHO = {
    "neither": ([], ("", ""), NOBODY, None),
    "invalid user id": ([("anna", "a")], (" anna", "a"), NOBODY, None),
    "user id of 751 characters": ([("anna", "a")], ("u" * 751, "a"), NOBODY, None),
    "valid user id, invalid e-mail": ([("anna", "a")], ("anna", "no e-mail"), NOBODY, None),
    "user id found, no e-mail": ([("anna", "a")], ("anna", ""), 0, None),
    "user id unknown, no e-mail": ([("anna", "a")], ("bert", ""), "new", None),
    "user id found, e-mail new": ([("anna", "a")], ("anna", "b"), 0, 0),
    "user id found, e-mail of another": ([("anna", "a"), ("bert", "b")], ("anna", "b"), 0, 0),
    "user id unknown, e-mail without user id": ([("", "a")], ("anna", "a"), 0, 0),
    "user id unknown, e-mail with another user id": ([("anna", "a")], ("bert", "a"), "new", 0),
    "user id unknown, e-mail with and without user id": ([("", "b"), ("bert", "c"), ("bert", "b")], ("carl", "b"), 0, 0),
    "neither known": ([("anna", "a")], ("bert", "b"), "new", "new"),
    "no user id, one has the e-mail": ([("anna", "a")], ("", "a"), 0, 0),
    "no user id, one without user id has the e-mail": ([("", "a")], ("", "a"), 0, 0),
    "no user id, several have the e-mail": ([("anna", "a"), ("bert", "a")], ("", "a"), 0, 0),
    "no user id, e-mail unknown": ([("anna", "a")], ("", "b"), "new", "new"),
}


def bring(deployment: VerificationDeployment, before: list[tuple[str | None, str | None]]) -> list[str]:
    """The same people as after these logins, from another system, the youngest first."""
    people: dict[str, dict[str, Any]] = {}
    for number, (user, address) in enumerate(before):
        person = people.setdefault(user or f"nobody-{number}", {
            "mpid": str(int.from_bytes(fresh("").encode()[-8:], "big")), "identities": {"customerid": user} if user else {},
            "firstSeen": f"2024-03-{number + 1:02}T00:00:00Z", "lastSeen": "2024-04-01T00:00:00Z"})
        if address:
            person["identities"]["email"] = address
    profiles = list(people.values())[::-1]
    command = Command("sync.import-profiles", {"profiles": profiles}, "list", app="enforced", signer="internal")
    outcomes = [one["outcome"] for one in result(deployment.sync.ask(command))["results"]]
    assert outcomes == ["created"] * len(people)
    return [people[user or f"nobody-{number}"]["mpid"] for number, (user, _) in enumerate(before)]


@pytest.mark.parametrize("origin", ["grown", "imported"])
@pytest.mark.parametrize("row", WHO)
def test_as_whom(bus: ServiceBus, deployment: VerificationDeployment, row: str, origin: str) -> None:
    """V2, V3, V6, S28, S29; S152 to S156: who was imported is as who has grown."""
    before, (user, address), expected, holder = WHO[row]
    mark = fresh("")

    def named(name: str) -> str | None:
        # What is too long or has an outer space must stay so.
        return f"{name}{mark}" if name else None

    def addressed(name: str) -> str | None:
        return (f"{name}{mark}@example.com" if len(name) == 1 else name) if name else None

    people = [(named(who), addressed(where)) for who, where in before]
    if origin == "imported":
        known = bring(deployment, people) if people else []
    else:
        known = [enter(bus, *one) for one in people]
    text = (named(user) or "") + (addressed(address) or "")
    given = {name: value for name, value in (("userId", named(user)), ("userEmail", addressed(address))) if value}
    answer = result(bus.settle(login(fresh("device"), userAuthToken=token(text), **given)))
    if expected is NOBODY:
        assert answer["state"] == "anonymous" and answer["mayFileIssues"], answer
        return
    assert answer["state"] == "verified"
    if expected == "new":
        assert answer["mpid"] not in known
    else:
        assert answer["mpid"] == known[expected]
    if holder is not None:
        found = enter(bus, None, addressed(address))
        assert found == (answer["mpid"] if holder == "new" else known[holder])


def test_by_user_id(bus: ServiceBus) -> None:
    """S27."""
    user = fresh("User")
    first = enter(bus, user, None)
    assert enter(bus, user, None) == first
    assert enter(bus, user.lower(), None) != first  # case-sensitive


def test_by_email(bus: ServiceBus) -> None:
    """S27."""
    address = mail()
    first = enter(bus, None, address)
    assert enter(bus, None, address) == first
    assert enter(bus, None, address.upper()) == first  # case-insensitive


def test_a_user_id_goes_before_an_email_and_takes_it(bus: ServiceBus) -> None:
    """S28."""
    user, address, other = fresh("user"), mail(), mail()
    first = enter(bus, user, address)
    assert enter(bus, user, other) == first
    assert enter(bus, None, other) == first


def test_an_email_without_user_id_gets_it(bus: ServiceBus) -> None:
    """S28."""
    user, address = fresh("user"), mail()
    first = enter(bus, None, address)
    assert enter(bus, user, address) == first
    assert enter(bus, user, None) == first


def test_an_email_with_another_user_id_makes_a_new_user(bus: ServiceBus) -> None:
    """S28, S29."""
    address = mail()
    first = enter(bus, fresh("user"), address)
    second = enter(bus, fresh("user"), address)
    assert second != first
    # Several have it: the oldest.
    assert enter(bus, None, address) == first


# Logging out and switching


def test_a_switch_tells_both_once_and_in_order(bus: ServiceBus) -> None:
    """V34."""
    device = fresh("device")
    anna = result(bus.settle(vouched(device, fresh("anna"))))["mpid"]
    command = vouched(device, fresh("berta"))
    bus.send(command)
    bus.send(command)  # a duplicate
    berta = result(bus.final(command))["mpid"]
    bus.send(command)  # and one that comes late
    last = logout(device)
    result(bus.settle(last))
    expected = [f"login verified {anna}", f"logout anonymous {anna}", f"login verified {berta}", f"logout anonymous {berta}"]
    assert bus.wait_sessions(device, 4) == expected
    finals = [record.data for record in bus.reply_records(command.id, 3)]
    assert all(final["result"]["mpid"] == berta for final in finals if final["status"] == "succeeded")


def test_the_same_user_again_tells_nothing(bus: ServiceBus) -> None:
    """V34."""
    device, user = fresh("device"), fresh("user")
    first = result(bus.settle(vouched(device, user)))
    assert result(bus.settle(vouched(device, user))) == first
    result(bus.settle(logout(device)))
    assert len(bus.wait_sessions(device, 2)) == 2


def test_two_logins_in_flight(bus: ServiceBus) -> None:
    """V37. The second is sent before the first is answered: both are, in order, and the later one stays."""
    device = fresh("device")
    commands = [vouched(device, fresh("user")) for _ in range(5)]
    bus.send_all(commands)
    people = [result(bus.final(command))["mpid"] for command in commands]
    assert len(set(people)) == 5
    expected = [f"login verified {people[0]}"]
    for before, after in zip(people, people[1:]):
        expected += [f"logout anonymous {before}", f"login verified {after}"]
    assert bus.wait_sessions(device, 9) == expected


def test_a_logout_overtakes_a_login(bus: ServiceBus) -> None:
    """V37."""
    device = fresh("device")
    commands = [vouched(device, fresh("user")), logout(device)]
    bus.send_all(commands)
    assert result(bus.final(commands[0]))["state"] == "verified"
    assert result(bus.final(commands[1]))["state"] == "anonymous"
    # Depending on who is faster the login was told and ended, or never told. It is not what stayed.
    last = result(bus.settle(vouched(device, fresh("user"))))["mpid"]
    sessions = bus.collector.wait(
        lambda: found if (found := bus.sessions(device)) and found[-1] == f"login verified {last}" else None, 30,
        lambda: f"the last login: {bus.sessions(device)}")
    assert sessions[-2].startswith("logout anonymous") and len(sessions) in (2, 3)


@pytest.mark.parametrize(("app", "is_kept"), [("enforced", True), ("clearing", False)])
def test_the_anonymous_user(deployment: VerificationDeployment, bus: ServiceBus, app: str, is_kept: bool) -> None:
    """V40. After the logout the device has its anonymous user again, unless the login dropped it."""
    device = fresh("device")
    identify = Command(
        "sync.identify", {"deviceId": device, "knownIdentities": {"device_application_stamp": fresh("stamp")},
        "environment": "development"}, device, app=app, signer=f"{app}-sdk")
    anonymous = result(deployment.sync.ask(identify))["mpid"]
    assert result(bus.settle(vouched(device, fresh("user"), app)))["mpid"] != anonymous
    back = result(bus.settle(logout(device, app)))["mpid"]
    assert (back == anonymous) == is_kept


# Asking for a session


def test_get_session(bus: ServiceBus) -> None:
    """V50."""
    device = fresh("device")
    nobody = {"deviceId": device, "state": "anonymous", "mayFileIssues": True, "hasLogin": False}
    assert result(bus.ask(get_session(device))) == nobody
    bus.ask(login(device, userId="somebody"))
    assert result(bus.ask(get_session(device))) == nobody | {"state": "unverified", "mayFileIssues": False}
    mpid = result(bus.settle(vouched(device, fresh("user"))))["mpid"]
    session = result(bus.ask(get_session(device)))
    assert session.pop("verifiedAt") <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    assert session == {
        "deviceId": device, "state": "verified", "mayFileIssues": True, "hasLogin": True, "mpid": mpid, "keyId": "k1"}
    result(bus.settle(logout(device)))
    assert result(bus.ask(get_session(device))) == nobody
    assert rejected(bus.ask(get_session(device).but(signer="enforced-sdk"))) == "INSUFFICIENT_SCOPE"
    assert result(bus.ask(get_session(device, "reported")))["state"] == "anonymous", "apps do not see each other"


# Erasing


def test_an_erased_user_is_gone(deployment: VerificationDeployment, bus: ServiceBus) -> None:
    """V45, V53, V54, V55."""
    user, others = fresh("user"), [fresh("device") for _ in range(2)]
    address = f"{user}@Example.com"
    device, bystander = fresh("device"), fresh("device")
    both = {"userId": user, "userEmail": address, "userName": f"Name of {user}", "userAuthToken": token(user + address)}
    mpid = result(bus.settle(login(device, **both)))["mpid"]
    for other in others:
        assert result(bus.settle(login(other, **both)))["mpid"] == mpid
    stays = result(bus.settle(vouched(bystander, fresh("user"))))["mpid"]
    erasure = forget([mpid])
    assert result(bus.ask(erasure))["done"] == {"verification": {"sessions": 3}}
    for gone in (device, *others):
        assert result(bus.ask(get_session(gone)))["state"] == "anonymous"
        assert bus.wait_sessions(gone, 2)[-1] == f"ended erased anonymous {mpid}"
    bus.collector.wait(
        lambda: ("erased", {"mpids": [mpid]}) in bus.told(mpid), 30, lambda: f"the event: {bus.told(mpid)}")
    assert result(bus.ask(get_session(bystander)))["mpid"] == stays
    # Again, the same command and another one: there is nothing left to do.
    bus.send(erasure)
    assert result(bus.reply_records(erasure.id, 2)[-1].data)["done"] == {"verification": {"sessions": 3}}, "the first answer again"
    assert result(bus.ask(forget([mpid])))["done"] == {"verification": {"sessions": 0}}
    assert result(bus.ask(forget([])))["done"] == {"verification": {"sessions": 0}}
    # The sync service was not asked to erase anybody here: its answer with the erased user brings nobody back.
    assert rejected(bus.settle(login(device, **both))) == "PROFILE_ERASED"
    assert "mpid" not in result(bus.ask(get_session(device)))
    for table in ("sessions", "login_sagas", "people", "verification_counts"):
        rows = deployment.database.execute(f"SELECT * FROM {table}", service="verification")
        assert user.lower() not in str(rows).lower(), table


def test_only_services_forget(bus: ServiceBus) -> None:
    for signer in ("enforced-sdk", "enforced-backend", "enforced-admin"):
        assert rejected(bus.ask(forget(["7"]).but(signer=signer))) == "INSUFFICIENT_SCOPE"
