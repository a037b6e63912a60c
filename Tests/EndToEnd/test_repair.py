# SPDX-License-Identifier: Apache-2.0
"""Two people who became one profile by mistake are taken apart by support, and stay so (docs/sync.md "Repair"): through
the sync and the verification service as they run, on both stores."""

from typing import Any

import pytest

from identitybus_testkit import apps
from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.verification import (
    VerificationDeployment, get_session, login, verification_app, verification_apps)

APP = "repaired"


def repaired() -> dict[str, Any]:
    app = verification_app(APP, "off")
    app["keys"] += [apps.key(f"{APP}-support", "support"), apps.key(f"{APP}-eraser", "user.delete")]
    app["sync"] = apps.worked("conversion")
    return app


@pytest.fixture(scope="module")
def deployment(verification_deployment: VerificationDeployment) -> VerificationDeployment:
    apps.write(verification_deployment.apps_file, [repaired(), *verification_apps()])
    verification_deployment.start()
    return verification_deployment


def result(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return dict(reply["result"])


def refusal(reply: dict[str, Any]) -> str:
    assert reply["status"] == "rejected", reply
    return str(reply["reason"])


def repair(kind: str, mpid: str, signer: str = f"{APP}-support", **data: Any) -> Command:
    return Command(
        f"sync.{kind}", {"mpid": mpid, "author": "kim@support", "reason": "case 4711", **data}, mpid, app=APP,
        signer=signer)


class Merged:
    """Anna's profile, to which Bob's phone said his e-mail. Both are logged in on their phones."""

    def __init__(self, deployment: VerificationDeployment) -> None:
        self.sync, self.verification = deployment.sync, deployment.verification
        self.anna, self.email = fresh("anna"), f"{fresh('bob')}@mail.example"
        self.phones = {name: (fresh(f"{name}-phone"), fresh(f"{name}-stamp")) for name in ("anna", "bob")}
        for device, stamp in self.phones.values():
            self.move("identify", device, device_application_stamp=stamp)
        first = self.logs_in("anna", userId=self.anna)
        self.mpid = self.logs_in("bob", userId=self.anna, userEmail=self.email)
        assert first == self.mpid

    def move(self, operation: str, device: str, **identities: str) -> dict[str, Any]:
        return result(self.sync.ask(c.sync(operation, device, identities, APP)))

    def logs_in(self, name: str, **who: str) -> str:
        """On their phone, by the verification service."""
        return str(result(self.verification.settle(login(self.phones[name][0], APP, **who)))["mpid"])

    @property
    def bobs(self) -> list[dict[str, str]]:
        return [{"type": "email", "value": self.email},
                {"type": "device_application_stamp", "value": self.phones["bob"][1]}]

    def detached(self) -> str:
        return str(result(self.sync.ask(repair("detach", self.mpid, identities=self.bobs)))["newMPID"])

    def profile(self, mpid: str) -> dict[str, Any]:
        return result(self.sync.ask(
            Command("sync.get-profile", {"mpid": mpid}, mpid, app=APP, signer=f"{APP}-support")))

    def session(self, name: str) -> dict[str, Any]:
        return result(self.verification.ask(get_session(self.phones[name][0], APP)))


@pytest.fixture
def merged(deployment: VerificationDeployment) -> Merged:
    return Merged(deployment)


def test_what_would_be_done_is_told_and_then_done(merged: Merged) -> None:
    """S126, S131, S134, V77."""
    (annas, _), (bobs, _) = merged.phones["anna"], merged.phones["bob"]
    detach = repair("detach", merged.mpid, identities=merged.bobs)
    reply = merged.sync.ask(detach.but(attributes={"dryrun": "true"}))
    tried = result(reply)
    assert reply["dryRun"] and len(merged.profile(merged.mpid)["devices"]) == 2
    assert merged.session("bob")["mpid"] == merged.mpid and not merged.profile(merged.mpid)["barriers"]
    done = result(merged.sync.ask(detach))
    assert done == tried
    bob = done["newMPID"]
    assert [(one["deviceId"], one["mpid"], one["endsSession"]) for one in done["devices"]] == [
        (bobs, bob, True), (annas, merged.mpid, False)]
    assert {one["nextLogin"]["mpid"] for one in done["devices"]} == {merged.mpid}
    assert merged.verification.wait_sessions(bobs, 2) == [
        f"login unchecked {merged.mpid}", f"ended detached anonymous {merged.mpid}"]
    assert "mpid" not in merged.session("bob") and merged.session("anna")["mpid"] == merged.mpid
    # The next login of each finds its own.
    assert merged.logs_in("bob", userEmail=merged.email) == bob
    assert merged.logs_in("anna", userId=merged.anna) == merged.mpid
    assert merged.session("bob")["mpid"] == bob


def test_nothing_brings_them_together_but_allow(merged: Merged) -> None:
    """S128, S129, S132."""
    bob = merged.detached()
    # The app still says both. Nobody is locked out.
    both = merged.move("login", merged.phones["bob"][0], customerid=merged.anna, email=merged.email)
    assert (both["mpid"], both["barred"]) == (merged.mpid, ["email"])
    assert merged.sync.wait_told(merged.mpid, "merge-barred")["types"] == ["email"]
    give = c.modify(merged.mpid, c.change("email", None, merged.email), app=APP)
    assert refusal(merged.sync.ask(give)) == "MERGE_BARRED"
    alias = c.alias(bob, merged.mpid, app=APP)
    assert refusal(merged.sync.ask(alias)) == "MERGE_BARRED"
    barriers = merged.profile(bob)["barriers"]
    assert {one["identity"]["type"]: one["mpid"] for one in barriers} == {
        "email": merged.mpid, "device_application_stamp": merged.mpid, "customerid": bob}
    allowed = result(merged.sync.ask(repair("allow", bob, otherMPID=merged.mpid)))["allowed"]
    assert allowed == barriers and not merged.profile(merged.mpid)["barriers"]
    assert result(merged.sync.ask(c.modify(merged.mpid, c.change("email", None, merged.email), app=APP)))
    assert merged.profile(merged.mpid)["identities"]["email"] == [merged.email]


def test_whoever_is_erased_leaves_no_barrier(merged: Merged) -> None:
    """S132."""
    bob = merged.detached()
    erase = Command("sync.erase-profile", {"mpid": bob, "persons": "none"}, bob, app=APP, signer=f"{APP}-eraser")
    merged.sync.settle(erase)
    assert not merged.profile(merged.mpid)["barriers"]
    assert "barred" not in merged.move("login", fresh("device"), customerid=merged.anna, email=merged.email)


@pytest.mark.parametrize("signer", ["sdk", "backend", "eraser"])
def test_it_needs_the_scope(merged: Merged, signer: str) -> None:
    for command in (repair("detach", merged.mpid, f"{APP}-{signer}", identities=merged.bobs),
                    repair("allow", merged.mpid, f"{APP}-{signer}", otherMPID="42")):
        assert refusal(merged.sync.ask(command)) == "INSUFFICIENT_SCOPE"
    assert len(merged.profile(merged.mpid)["identities"]) == 3
