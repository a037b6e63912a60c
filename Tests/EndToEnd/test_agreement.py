# SPDX-License-Identifier: Apache-2.0
"""The help desk's session and the identity of a device, through the running services: when nothing is under way, they
say the same of who uses a device."""

from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.verification import (
    ServiceBus, VerificationDeployment, get_session, login, logout, vouched)

APP = "enforced"


@pytest.fixture(scope="module")
def deployment(verification_deployment: VerificationDeployment) -> VerificationDeployment:
    verification_deployment.start()
    return verification_deployment


@pytest.fixture
def bus(deployment: VerificationDeployment) -> ServiceBus:
    return deployment.verification


@pytest.fixture
def sync(deployment: VerificationDeployment) -> ServiceBus:
    return deployment.sync


def result(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return reply["result"]


def move(sync: ServiceBus, operation: str, device: str, signer: str | None = None, **identities: str) -> dict[str, Any]:
    return result(sync.ask(c.sync(operation, device, identities, APP, signer=signer)))


def signed_in(bus: ServiceBus, sync: ServiceBus) -> tuple[str, str, str]:
    """:returns: the device, its stamp and the user who is on it."""
    device, stamp = fresh("device"), fresh("stamp")
    move(sync, "identify", device, device_application_stamp=stamp)
    return device, stamp, result(bus.settle(vouched(device, fresh("user"))))["mpid"]


def agree(bus: ServiceBus, sync: ServiceBus, device: str) -> dict[str, Any]:
    session = result(bus.ask(get_session(device)))
    users = result(sync.ask(c.get_users(device, APP).but(signer="internal")))["users"]
    current = next((user for user in users if user["isCurrent"]), None)
    sync.collector.catch_up()
    told = [data for kind, data in sync.told(device) if kind.startswith("current-user-")]
    last = max(told, key=lambda event: event["move"])
    assert current is not None and last["mpid"] == current["mpid"] and last["isLoggedIn"] == current["isLoggedIn"]
    if "mpid" in session:
        assert session["mpid"] == current["mpid"] and current["isLoggedIn"]
    return session


@pytest.mark.parametrize("how", ["logout", "logout without identities", "identify", "another's login"])
def test_a_session_ends_with_its_user(bus: ServiceBus, sync: ServiceBus, how: str) -> None:
    """V71, V72, V76. Nobody asks the verification service."""
    device, stamp, anna = signed_in(bus, sync)
    assert agree(bus, sync, device)["state"] == "verified"
    match how:
        case "logout": move(sync, "logout", device, device_application_stamp=stamp)
        case "logout without identities": move(sync, "logout", device)
        case "identify": move(sync, "identify", device, device_application_stamp=stamp)
        case _: move(sync, "login", device, "internal", customerid=fresh("user"))
    assert bus.wait_sessions(device, 2) == [f"login verified {anna}", f"ended userChanged anonymous {anna}"]
    session = agree(bus, sync, device)
    assert session["state"] == "anonymous" and "mpid" not in session
    assert session["hasLogin"] == (how == "another's login")


def test_a_session_ends_when_its_user_is_known_no_longer(bus: ServiceBus, sync: ServiceBus) -> None:
    """V72."""
    device, user = fresh("device"), fresh("user")
    anna = result(bus.settle(vouched(device, user)))["mpid"]
    command = c.modify(anna, c.change("customerid", user, None), c.change("other", None, "o"), app=APP)
    result(sync.ask(command.but(signer="internal")))
    assert bus.wait_sessions(device, 2)[1] == f"ended userChanged anonymous {anna}"


def test_a_device_without_a_session_gets_none(
    deployment: VerificationDeployment, bus: ServiceBus, sync: ServiceBus
) -> None:
    """V71."""
    device, follower = fresh("device"), fresh("device")
    move(sync, "identify", device, device_application_stamp=fresh("stamp"))
    # Whoever is moved after it has been read of, so has it.
    for _ in range(3):
        signed_in(bus, sync)
    anna = result(bus.settle(vouched(follower, fresh("user"))))["mpid"]
    move(sync, "logout", follower)
    assert bus.wait_sessions(follower, 2)[1] == f"ended userChanged anonymous {anna}"
    rows = deployment.database.execute("SELECT device_id FROM sessions", service="verification")
    assert device not in str(rows)


def test_an_anonymous_user_is_the_devices(bus: ServiceBus, sync: ServiceBus) -> None:
    """V75, S88, S89. Before the first login, and after the logout."""
    device, stamp = fresh("device"), fresh("stamp")
    nobody = move(sync, "identify", device, device_application_stamp=stamp)["mpid"]
    assert result(bus.settle(login(device)))["mpid"] == nobody
    assert result(bus.settle(logout(device)))["mpid"] == nobody
    result(bus.settle(vouched(device, fresh("user"))))
    assert result(bus.settle(logout(device)))["mpid"] == nobody
    assert result(bus.settle(login(device)))["mpid"] == nobody
    agree(bus, sync, device)


def test_how_far_sessions_are_behind_is_measured(deployment: VerificationDeployment) -> None:
    verification = next(one for one in deployment.services if one.name == "verification")
    assert verification.metric("verification_session_lag_seconds_count") > 0
