# SPDX-License-Identifier: Apache-2.0
"""The right person on a device, and on the right device: what goes wrong between a creation, a link request that comes
late, and an election, through the processes of the user and the link service over Kafka."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET
from identitybus_testkit.bus import Bus
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.waiting import until

Reply = dict[str, Any]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def users(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Iterator[Deployment]:
    deployment = make_deployment(request.param, services=("user", "link"))
    for name in ("user", "link"):
        deployment.service(name).start()
    for service in deployment.services:
        service.wait_ready()
    yield deployment


@pytest.fixture
def bus(users: Deployment) -> Bus:
    return users.bus


def succeeded(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return reply["result"]


def rejected(reply: Reply, reason: str) -> None:
    assert (reply["status"], reply.get("reason")) == ("rejected", reason), reply


def code_for(bus: Bus, external_id: str) -> str:
    return succeeded(bus.ask(c.request_code(external_id)))["authenticationCode"]


def created(bus: Bus, external_id: str, device: dict[str, str] = PHONE) -> tuple[str, dict[str, Any]]:
    install = fresh("install")
    return install, succeeded(bus.settle(c.create(install, device, authCode=code_for(bus, external_id))))


def current(bus: Bus, install: str) -> dict[str, Any]:
    return succeeded(bus.ask(c.get(install)))


def linkers_turn(bus: Bus, install: str) -> Command:
    """Begins a creation by the app's linker, and waits for its turn."""
    command = c.create(install, appSecret=APP_SECRET, linking="linker")
    assert bus.ask(command)["result"]["awaiting"] == "linker"
    return command


def becomes(bus: Bus, install: str, because: str | None) -> None:
    """What another install did reaches the user service as an event."""
    def found() -> bool:
        user = current(bus, install)
        return user["isRemoteEnabled"] is (because is None) and user.get("inactiveBecause") == because

    until(found, 30, f"{install} inactive because {because}")


def made(command: Command, seconds: float) -> Command:
    then = datetime.now(UTC) - timedelta(seconds=seconds)
    return command.but(attributes={**command.attributes, "time": then.isoformat(timespec="milliseconds")})


def test_a_late_link_is_not_the_next_persons(bus: Bus) -> None:
    """L46. Carol was there before; her backend's request is decided when somebody else has the device."""
    install, carol = fresh("install"), fresh("carol")
    first = succeeded(bus.settle(c.create(install, appSecret=APP_SECRET, linking="none")))
    request = made(c.request(install, carol), 30)
    succeeded(bus.settle(c.reset(install)))
    second = succeeded(bus.settle(c.create(install, appSecret=APP_SECRET, linking="none")))
    assert second["userId"] != first["userId"]
    rejected(bus.ask(request), "NO_LINKING_IN_PROGRESS")
    assert current(bus, install)["isLinked"] is False


def test_an_app_that_names_whom_it_linked_gets_nobody_else(bus: Bus) -> None:
    """U72, U77. Gil's request lands in Hana's turn, within what clocks may differ by: her device does not get his user, and
    his own phone stays the active one."""
    gil, hana = fresh("gil"), fresh("hana")
    phone, _ = created(bus, gil)
    shared = fresh("shared")
    begun = linkers_turn(bus, shared)
    succeeded(bus.ask(c.request(shared, gil)))
    becomes(bus, phone, "superseded")
    rejected(bus.settle(c.confirm(shared, externalId=hana)), "APP_SIDE_LINKING_FAILED")
    rejected(bus.final(begun.id), "APP_SIDE_LINKING_FAILED")
    becomes(bus, phone, None)
    rejected(bus.ask(c.get(shared)), "NO_USER")


@pytest.mark.parametrize("end", ["confirmed as a failure", "reset"])
def test_a_creation_that_comes_to_nothing_leaves_the_phone_active(bus: Bus, end: str) -> None:
    """U77, L50. The backend had linked already."""
    alice = fresh("alice")
    phone, _ = created(bus, alice)
    other = fresh("install")
    linkers_turn(bus, other)
    succeeded(bus.ask(c.request(other, alice)))
    becomes(bus, phone, "superseded")
    if end == "reset":
        succeeded(bus.settle(c.reset(other)))
    else:
        rejected(bus.settle(c.confirm(other, success=False)), "APP_SIDE_LINKING_FAILED")
    becomes(bus, phone, None)


def test_a_creation_by_code_that_is_reset_at_once_leaves_the_phone_active(bus: Bus) -> None:
    """U61, U77."""
    alice = fresh("alice")
    phone, _ = created(bus, alice)
    other = fresh("install")
    creation, reset = c.create(other, authCode=code_for(bus, alice)), c.reset(other)
    bus.send(creation)
    bus.send(reset)
    succeeded(bus.final(reset.id))
    reply = bus.final(creation.id)
    if reply["status"] == "succeeded":
        pytest.skip("the creation had ended before the reset came")
    becomes(bus, phone, None)


def test_a_lost_phone_does_not_come_back(bus: Bus) -> None:
    """L49."""
    dave = fresh("dave")
    lost, _ = created(bus, dave)
    succeeded(bus.ask(c.set_status(lost, "disabled")))
    becomes(bus, lost, "disabled")
    new, _ = created(bus, dave)
    succeeded(bus.settle(c.reset(new)))
    succeeded(bus.ask(c.set_status(lost, "enabled")))
    becomes(bus, lost, "superseded")


def test_a_tablet_becomes_active_by_a_code_of_its_own(bus: Bus) -> None:
    """U76, U79, L53. The phone is gone, and no backend sends a link request."""
    vera, other = fresh("vera"), fresh("other")
    phone, _ = created(bus, vera)
    tablet, user = created(bus, vera, TABLET)
    assert user["inactiveBecause"] == "waitsForPhone"
    succeeded(bus.settle(c.reset(phone)))
    rejected(bus.settle(c.create(tablet, TABLET, authCode=code_for(bus, other))), "USER_ALREADY_EXISTS")
    code = code_for(bus, vera)
    active = succeeded(bus.settle(c.create(tablet, TABLET, authCode=code)))
    assert (active["userId"], active["isRemoteEnabled"]) == (user["userId"], True)
    assert "inactiveBecause" not in active
    # The code is used up.
    rejected(bus.settle(c.create(fresh("install"), authCode=code)), "AUTH_CODE_USED")
    # A superseded phone comes back in the same way.
    third, _ = created(bus, vera)
    becomes(bus, tablet, "superseded")
    back = succeeded(bus.settle(c.create(tablet, TABLET, authCode=code_for(bus, vera))))
    assert back["inactiveBecause"] == "waitsForPhone", "a tablet never takes over from a phone"
    assert current(bus, third)["isRemoteEnabled"] is True


def test_nobody_inherits_what_an_earlier_life_left(bus: Bus) -> None:
    """U21, L54. The link service has an unlinked user on the install of whom the user service knows nothing."""
    for creation in ("by code", "unlinked"):
        install = fresh("install")
        left = succeeded(bus.ask(c.register(install, user="new")))["userId"]
        command = (
            c.create(install, authCode=code_for(bus, fresh("ext"))) if creation == "by code"
            else c.create(install, appSecret=APP_SECRET, linking="none"))
        assert succeeded(bus.settle(command))["userId"] != left
