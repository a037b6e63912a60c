# SPDX-License-Identifier: Apache-2.0
"""Support gives and takes external ids, and people are erased, while the sync service stands still or has read nothing
of it: whoever is meant goes, whoever is not stays, and each keeps their profile. On both stores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.platform import wait_until_quiet
from identitybus_testkit.waiting import until
from test_support import APP, Person, helped, repair, result, support


class World:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.bus = deployment, deployment.bus

    def quiet(self) -> None:
        wait_until_quiet(self.deployment)

    @contextmanager
    def sync_stands_still(self, is_behind: bool) -> Iterator[None]:
        """Until the end; or else it reads everything at once."""
        [sync] = [one for one in self.deployment.services if one.name == "sync"]
        if is_behind:
            sync.pause()
        try:
            yield
        finally:
            sync.resume()

    def people(self, count: int = 1) -> list[Person]:
        """Linked people, of whom the sync service has heard."""
        people = [Person(self.bus) for _ in range(count)]
        self.quiet()
        return people

    def login(self, external_id: str) -> str:
        reply = self.bus.settle(c.sync("login", fresh("device"), {"customerid": external_id}, APP, "helped-sdk"))
        return str(result(reply)["mpid"])

    def rename(self, user: str, new: str) -> None:
        result(self.bus.ask(repair("link.change-external-id", new, userId=user, newExternalId=new)))

    def unlink(self, user: str) -> None:
        result(self.bus.ask(repair("link.unlink-user", user, userId=user)))

    def begin_to_erase(self, user: str) -> Command:
        command = c.erase(user, APP).but(signer="helped-backend")
        self.bus.send(command)
        return command

    def gone(self, command: Command) -> tuple[set[str], set[str]]:
        """The users and the profiles that a certificate names."""
        certificate = result(self.bus.final(command.id, 60))
        assert certificate["completedAt"], certificate
        return set(certificate["subject"]["userIds"]), set(certificate["subject"]["mpids"])

    def is_erased(self, user: str) -> bool:
        return bool(result(self.bus.ask(support("link.get-user", user, userId=user)))["isErased"])

    def profile(self, mpid: str) -> dict[str, Any]:
        return result(self.bus.ask(support("sync.get-profile", mpid, mpid=mpid)))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> World:
    deployment = make_deployment(request.param, services=SERVICES)
    apps.write(deployment.apps_file, [helped(), *apps.apps()])
    for service in [deployment.service(name).start() for name in SERVICES]:
        service.wait_ready()
    return World(deployment)


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_another_profile_had_by_the_new_external_id_goes_along(world: World, is_behind: bool) -> None:
    """S122, S121. The person had logged in by the new external id before support gave it to them."""
    [person] = world.people()
    new = fresh("ext")
    mine, other = world.login(person.external_id), world.login(new)
    assert mine != other
    with world.sync_stands_still(is_behind):
        world.rename(person.user, new)
        if not is_behind:
            world.quiet()
            assert world.profile(mine)["identities"] == {"customerid": [new]}
        erasure = world.begin_to_erase(person.user)
    assert world.gone(erasure) == ({person.user}, {mine, other})
    world.quiet()
    assert all(world.profile(mpid)["isErased"] for mpid in (mine, other))


@pytest.mark.parametrize("is_behind", [False, True])
def test_whoever_is_renamed_back_has_the_profile(world: World, is_behind: bool) -> None:
    """S118, S122. By mistake, and while an app still logs the person in by the external id of before."""
    [person] = world.people()
    mine, wrong = world.login(person.external_id), fresh("ext")
    with world.sync_stands_still(is_behind):
        world.rename(person.user, wrong)
        if not is_behind:
            world.quiet()
            assert world.login(person.external_id) != mine
        world.rename(person.user, person.external_id)
    world.quiet()
    profile = world.profile(mine)
    assert profile["identities"] == {"customerid": [person.external_id]} and profile["userId"] == person.user
    assert world.login(person.external_id) == mine


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("how", ["unlinked", "erased"])
def test_an_external_id_that_was_anothers_brings_nobody_else_along(world: World, how: str, is_behind: bool) -> None:
    """S119, S122. It is taken off somebody, and given to somebody else at once."""
    before, after = world.people(2)
    theirs, mine = world.login(before.external_id), world.login(after.external_id)
    erasure = None
    with world.sync_stands_still(is_behind):
        if how == "unlinked":
            world.unlink(before.user)
        else:
            erasure = world.begin_to_erase(before.user)
            until(lambda: world.is_erased(before.user), 30, "the link service to erase")
        if not is_behind:
            world.quiet()
        world.rename(after.user, before.external_id)
    world.quiet()
    profile = world.profile(mine)
    assert profile["identities"] == {"customerid": [before.external_id]} and profile["userId"] == after.user
    assert world.login(before.external_id) == mine
    if erasure:
        assert world.gone(erasure) == ({before.user}, {theirs})
        assert world.gone(world.begin_to_erase(after.user)) == ({after.user}, {mine})
    else:
        # What was marked by mistake is of whoever the external id is of.
        assert world.gone(world.begin_to_erase(before.user)) == ({before.user}, set())
        assert world.gone(world.begin_to_erase(after.user)) == ({after.user}, {mine, theirs})


@pytest.mark.parametrize("is_behind", [False, True])
def test_whom_the_link_service_spares_is_in_no_certificate(world: World, is_behind: bool) -> None:
    """S55, L79. The profile is erased whose external id somebody was linked with by mistake."""
    [person] = world.people()
    external_id = person.external_id
    mistaken, profile = person.user, world.login(external_id)
    with world.sync_stands_still(is_behind):
        world.unlink(mistaken)
        owner = person.comes(fresh("phone"), c.PHONE)["userId"]
        if not is_behind:
            world.quiet()
        erasure = Command("sync.erase-profile", {"mpid": profile}, profile, app=APP, signer="helped-backend")
        world.bus.send(erasure)
    users, mpids = world.gone(erasure)
    assert mpids == {profile}
    # Whether it has heard of the owner yet is open. Who went is in the certificate, and nobody else.
    assert users == ({owner} if world.is_erased(owner) else set()) and (users or is_behind)
    assert not world.is_erased(mistaken)
    # What comes of them later is read.
    new = fresh("ext")
    world.rename(mistaken, new)
    world.quiet()
    person.external_id = new
    found = person.profile()
    assert found and found["userId"] == mistaken, found
