# SPDX-License-Identifier: Apache-2.0
"""An attacker's day in one app for each strategy, mode and `signedFields` that the loader takes: with the key from the
app and with every key of another app, against a person who is verified. What an app does not enforce is open, plainly.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.verification import (
    ServiceBus, VerificationDeployment, get_session, login, token, verification_app, vouched)

FIELDS = ["userId", "delimited", "vendor", "email"]
STRATEGIES = {
    "default": FIELDS[:3], "conversion": FIELDS, "link": FIELDS, "isolation": FIELDS, "userIdThenEmail": FIELDS,
    # Has no known users, so nobody can be verified.
    "bestMatch": [],
}


@dataclass
class Shop:
    """An app, and a person of it with a device. The attacker has a device that shares the advertising id with it."""

    app: str
    strategy: str
    mode: str
    fields: str
    user: str = field(default_factory=lambda: fresh("anna"))
    device: str = field(default_factory=lambda: fresh("device"))
    evil: str = field(default_factory=lambda: fresh("evil"))
    shared: str = field(default_factory=lambda: fresh("idfv"))
    mpid: str = ""

    @property
    def email(self) -> str:
        return f"{self.user}@example.com"

    def verified(self, device: str, user: str | None = None, **unsigned: str) -> Command:
        """A genuine login, with what the app's backend signs."""
        user = user or self.user
        email = f"{user}@example.com"
        named, message = {
            "userId": ({"userId": user}, user), "email": ({"userEmail": email}, email),
            "delimited": ({"userId": user, "userEmail": email}, f"{user}\n{email}"),
            "vendor": ({"userId": user, "userEmail": email}, user + email),
        }[self.fields]
        return login(device, self.app, userAuthToken=token(message, "k1", self.app), **(unsigned | named))

    def by_sdk(self, operation: str, device: str, **identities: str) -> Command:
        """With the key that every copy of the app has."""
        return c.sync(operation, device, identities, self.app, signer=f"{self.app}-sdk")


def shops() -> list[Shop]:
    found = []
    for strategy, signed in STRATEGIES.items():
        found.append(Shop(f"{strategy}-off", strategy, "off", "userId"))
        found += [
            Shop(f"{strategy}-{mode}-{one}", strategy, mode, one) for mode in ("report", "enforce") for one in signed]
    return found


def section(shop: Shop) -> dict[str, Any]:
    app = verification_app(shop.app, shop.mode, shop.fields) | {"sync": {"strategy": shop.strategy}}
    # What a deployment has beside the SDK's and the backend's keys: the word of this one counts.
    app["keys"].append(apps.key(f"{shop.app}-vouching", "identity.sync", "identity.vouch", "user.delete"))
    return app


@dataclass
class World:
    verification: ServiceBus
    sync: ServiceBus
    shops: list[Shop]

    def ask(self, commands: dict[str, Command]) -> dict[str, dict[str, Any]]:
        """One for each app, all at once: the final replies."""
        for command in commands.values():
            self.bus(command).send(command)
        return {app: self.bus(command).final(command) for app, command in commands.items()}

    def bus(self, command: Command) -> ServiceBus:
        return self.sync if command.type.startswith("sync.") else self.verification

    def each(self, make: Callable[[Shop], Command], modes: tuple[str, ...] = ("enforce",)) -> dict[str, dict[str, Any]]:
        return self.ask({shop.app: make(shop) for shop in self.shops if shop.mode in modes})

    def refused(self, reason: str, make: Callable[[Shop], Command], modes: tuple[str, ...] = ("enforce",)) -> None:
        for app, reply in self.each(make, modes).items():
            assert (reply["status"], reply.get("reason")) == ("rejected", reason), (app, reply)


@pytest.fixture(scope="module")
def world(make_deployment: Callable[..., VerificationDeployment]) -> World:
    """The attacker is first; then the person starts the app and logs in."""
    everywhere = shops()
    deployment = make_deployment(kind=VerificationDeployment)
    apps.write(deployment.apps_file, [section(shop) for shop in everywhere] + [
        verification_app("thief", "enforce", "userId") | {"keys": [
            apps.key("thief-sdk", "sdk", "identity.sync"), apps.key("thief-admin", "admin"),
            apps.key("thief-vouching", "identity.sync", "identity.vouch", "user.delete", "verification.check")]}])
    deployment.start()
    world = World(deployment.verification, deployment.sync, everywhere)
    prepare(world)
    return world


def prepare(world: World) -> None:
    everyone = ("off", "report", "enforce")
    # Whoever is named before they are there does not become what the attacker made.
    world.refused("VERIFICATION_REQUIRED", lambda shop: shop.by_sdk("identify", shop.evil, email=shop.email))
    for who in ("evil", "device"):
        for app, reply in world.each(lambda shop: shop.by_sdk(
                "identify", getattr(shop, who), device_application_stamp=getattr(shop, who), ios_idfv=shop.shared),
                everyone).items():
            assert reply["status"] == "succeeded", (app, reply)
    for app, reply in world.each(lambda shop: shop.verified(shop.device), ("report", "enforce")).items():
        assert reply["status"] == "succeeded" and reply["result"]["state"] == "verified", (app, reply)
        next(shop for shop in world.shops if shop.app == app).mpid = reply["result"]["mpid"]


@pytest.fixture(autouse=True)
def nobody_else_is_found(world: World) -> Iterator[None]:
    """Whatever was tried where it is enforced: the person's verified login finds the person, and the attacker's device
    never has them."""
    yield
    new = {shop.app: fresh("new") for shop in world.shops}
    for app, reply in world.each(lambda shop: shop.verified(new[shop.app])).items():
        shop = next(one for one in world.shops if one.app == app)
        assert reply["result"]["state"] == "verified" and reply["result"]["mpid"] == shop.mpid, (app, reply)
    seen = world.each(lambda shop: c.get_users(shop.evil, shop.app).but(signer=f"{shop.app}-vouching"))
    for app, reply in seen.items():
        shop = next(one for one in world.shops if one.app == app)
        assert shop.mpid not in [user["mpid"] for user in reply["result"]["users"]], (app, reply)


def test_every_strategy_and_mode_is_attacked(world: World) -> None:
    """S77, S78: the others are refused by the loader (SyncSettingsTests)."""
    assert {(shop.strategy, shop.mode) for shop in world.shops} == {
        (strategy, mode) for strategy in STRATEGIES for mode in ("off", "report", "enforce")
        if mode == "off" or strategy != "bestMatch"}


@pytest.mark.parametrize("operation", ["identify", "login", "search"])
@pytest.mark.parametrize("kind", ["customerid", "email", "mobile_number", "other"])
def test_the_key_from_the_app_names_nobody(world: World, operation: str, kind: str) -> None:
    """S48."""
    value = lambda shop: shop.user if kind == "customerid" else shop.email
    world.refused("VERIFICATION_REQUIRED", lambda shop: shop.by_sdk(
        operation, shop.evil, **{kind: value(shop), "device_application_stamp": shop.device}))


def test_the_key_from_the_app_finds_nobody_by_a_device(world: World) -> None:
    """S6, S72."""
    for operation in ("identify", "login", "logout"):
        replies = world.each(lambda shop: shop.by_sdk(
            operation, shop.evil, device_application_stamp=shop.device, ios_idfv=shop.shared))
        for app, reply in replies.items():
            shop = next(one for one in world.shops if one.app == app)
            assert reply["result"]["mpid"] != shop.mpid and not reply["result"]["isLoggedIn"], (app, reply)
    # S75: what it may not name, a logout passes over.
    replies = world.each(lambda shop: shop.by_sdk(
        "logout", shop.evil, customerid=shop.user, email=shop.email, device_application_stamp=shop.evil))
    for app, reply in replies.items():
        shop = next(one for one in world.shops if one.app == app)
        assert reply["result"]["mpid"] != shop.mpid and not reply["result"]["isLoggedIn"], (app, reply)


def test_the_key_from_the_app_changes_and_reads_nobody(world: World) -> None:
    """S71."""
    mine = world.each(lambda shop: shop.by_sdk("identify", shop.evil, device_application_stamp=shop.evil))
    own = {app: reply["result"]["mpid"] for app, reply in mine.items()}
    changes: list[Callable[[Shop], Command]] = [
        lambda shop: c.modify(shop.mpid, c.change("email", shop.email, "thief@evil.example"), app=shop.app),
        lambda shop: c.modify(shop.mpid, c.change("push_token", None, shop.evil), app=shop.app),
        lambda shop: c.modify(own[shop.app], c.change("email", None, shop.email), app=shop.app),
        lambda shop: c.modify(own[shop.app], c.change("other", None, shop.email), app=shop.app),
        lambda shop: c.get_users(shop.device, shop.app), lambda shop: c.get_users(shop.evil, shop.app)]
    for make in changes:
        world.refused("VERIFICATION_REQUIRED", lambda shop: make(shop).but(signer=f"{shop.app}-sdk"))
    for make in (lambda shop: c.alias(shop.mpid, own[shop.app], app=shop.app),
                 lambda shop: c.alias(own[shop.app], shop.mpid, app=shop.app)):
        for app, reply in world.each(lambda shop: make(shop).but(signer=f"{shop.app}-sdk")).items():
            assert reply["reason"] in ("VERIFICATION_REQUIRED", "ALIASING_NOT_PROVISIONED"), (app, reply)


@pytest.mark.parametrize("proof", [None, "of-nobodys-making", "of-another-app"])
def test_who_cannot_prove_it_is_not_the_person(world: World, proof: str | None) -> None:
    """V25, V27, V28."""
    made = {None: {}, "of-nobodys-making": {"userAuthToken": "AAAA"}, "of-another-app": {
        "userAuthToken": token("anna", "k1", "thief")}}[proof]
    attempt = lambda shop: login(shop.evil, shop.app, userId=shop.user, userEmail=shop.email, **made)
    world.refused("InvalidAuthToken" if proof else "AuthTokenNotProvided", attempt)
    for app, reply in world.each(attempt, ("report",)).items():
        assert reply["result"]["state"] == "unverified", (app, reply)


def test_another_person_stays_another_person(world: World) -> None:
    """V16: a genuine login with somebody else's unsigned field, on the device of each."""
    mallory = {shop.app: fresh("mallory") for shop in world.shops}
    for where in ("evil", "device"):
        replies = world.each(lambda shop: shop.verified(
            getattr(shop, where), mallory[shop.app], userId=shop.user, userEmail=shop.email, userName="Anna"))
        for app, reply in replies.items():
            shop = next(one for one in world.shops if one.app == app)
            assert reply["result"]["state"] == "verified" and reply["result"]["mpid"] != shop.mpid, (app, reply)
    left = world.each(lambda shop: shop.by_sdk("logout", shop.evil, device_application_stamp=shop.evil))
    assert {reply["status"] for reply in left.values()} == {"succeeded"}, left


@pytest.mark.parametrize("signer", ["thief-sdk", "thief-admin", "thief-vouching"])
def test_another_apps_keys_open_nothing_in_any_mode(world: World, signer: str) -> None:
    everyone = ("off", "report", "enforce")
    tried: list[Callable[[Shop], Command]] = [
        lambda shop: c.sync("login", shop.evil, {"customerid": shop.user}, shop.app),
        lambda shop: c.get_users(shop.device, shop.app),
        lambda shop: Command("sync.erase-profile", {"identities": {"customerid": shop.user}}, shop.user, shop.app),
        lambda shop: vouched(shop.evil, shop.user, shop.app), lambda shop: get_session(shop.device, shop.app)]
    for make in tried:
        world.refused("UNAUTHENTICATED", lambda shop: make(shop).but(signer=signer), everyone)


def test_the_key_from_the_app_has_no_other_rights_in_any_mode(world: World) -> None:
    everyone = ("off", "report", "enforce")
    tried: list[Callable[[Shop], Command]] = [
        lambda shop: Command("sync.erase-profile", {"identities": {"customerid": shop.user}}, shop.user, shop.app),
        lambda shop: get_session(shop.device, shop.app),
        lambda shop: Command("verification.usage", {}, "usage", shop.app)]
    for make in tried:
        world.refused("INSUFFICIENT_SCOPE", lambda shop: make(shop).but(signer=f"{shop.app}-sdk"), everyone)


def test_what_is_not_enforced_is_open(world: World) -> None:
    """V59's table: a device's word counts there, as the strategy says; but it names nobody to others (S76)."""
    open_modes = ("off", "report")
    replies = world.each(lambda shop: shop.by_sdk("login", shop.evil, customerid=shop.user).but(data={
        "deviceId": shop.evil, "knownIdentities": {"customerid": shop.user, "email": shop.email},
        "name": "Mallory", "clearAnonymousUser": True}), open_modes)
    for app, reply in replies.items():
        shop = next(one for one in world.shops if one.app == app)
        assert reply["result"]["isLoggedIn"] == (shop.strategy != "bestMatch"), (app, reply)
        if shop.mode == "report":
            assert reply["result"]["mpid"] == shop.mpid, (app, reply)
    seen = world.each(lambda shop: c.get_users(shop.evil, shop.app).but(signer=f"{shop.app}-sdk"), open_modes)
    for app, reply in seen.items():
        assert all("name" not in user for user in reply["result"]["users"]), (app, reply)
