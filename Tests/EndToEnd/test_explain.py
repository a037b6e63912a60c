# SPDX-License-Identifier: Apache-2.0
"""`identitybus explain`: from any id to all others, over Kafka, with both engines."""

import json
import subprocess
from collections.abc import Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import change, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until


class Story:
    """One person of the app `fromlinks`: linked, logged in on a device, with a changed e-mail."""

    def __init__(self, deployment: Deployment, services: dict[str, Service]) -> None:
        self.deployment, self.services = deployment, services
        bus = deployment.bus
        self.install, self.customer, self.device = fresh("install"), fresh("customer"), fresh("device")
        self.email, self.old_email = fresh("new@x.io"), fresh("old@x.io")
        app = "fromlinks"
        bus.ask(c.register(self.install, app=app))
        self.user = bus.ask(c.request(self.install, self.customer, app=app))["result"]["userId"]
        marked = "SELECT mpid FROM profiles WHERE user_id = ?"
        until(lambda: deployment.database.execute(marked, [self.user], service="sync"), 20, "the profile of the link")
        stamp = {"device_application_stamp": fresh("das")}
        bus.ask(c.sync("identify", self.device, stamp, app))
        login = {"customerid": self.customer, "email": self.old_email, **stamp}
        self.mpid = bus.ask(c.sync("login", self.device, login, app))["result"]["mpid"]
        bus.ask(c.modify(self.mpid, change("email", self.old_email, self.email), app=app))
        self.stranger = fresh("stranger")
        bus.ask(c.sync("login", fresh("device"), {"customerid": self.stranger}, app))

    def explain(self, id: str, app: str = "fromlinks", *more: str) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() | self.deployment.environment()
        environment.pop("DATABASE_URL", None)
        return subprocess.run(
            [binary("identitybus"), "explain", f"--app={app}", *more, "--", id], env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def story(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Story:
    names = ("link", "user", "sync", "verification")
    deployment = make_deployment(request.param, services=names)
    services = {name: deployment.service(name, ALIAS_DELAY="0").start() for name in names}
    for service in services.values():
        service.wait_ready()
    return Story(deployment, services)


@pytest.mark.parametrize("name", ["install", "customer", "user", "mpid", "email", "device"])
def test_from_any_id_to_all_others(story: Story, name: str) -> None:
    answer = story.explain(getattr(story, name))
    assert answer.returncode == 0, answer.stderr
    words = answer.stdout.split("HOW IT CAME TO BE")[1]
    for part in (
        "request to link an install with an external id\n", "login\n", "change of identities\n",
        f"install {story.install} belongs to user {story.user}, external id {story.customer}, who is new",
        f"device {story.device} went from another profile, ", f", to profile {story.mpid} (customerid {story.customer}), logged in",
        f"profile {story.mpid} has email {story.email}, and no longer has email {story.old_email}",
    ):
        assert part in words, f"{part} is missing\n{answer.stdout}"
    assert f"profile {story.mpid} was found by customerid {story.customer}" in words, answer.stdout
    assert "=" not in words and "heard of link.linked\n" in words, answer.stdout
    answer = story.explain(getattr(story, name), "fromlinks", "--verbose")
    now, history = answer.stdout.split("HOW IT CAME TO BE")
    for id in (story.install, story.customer, story.user, story.mpid, story.email, story.device):
        assert id in now, f"{id} is missing\n{answer.stdout}"
    for part in (
        "link.request  succeeded", "sync.login  succeeded", "sync.modify  succeeded", "rule=matched",
        "rule=created-for-link", "sync.current-user-changed", f"previousMPID=",
    ):
        assert part in history, f"{part} is missing\n{answer.stdout}"
    assert story.stranger not in answer.stdout
    times = [line.split()[0] for line in history.splitlines()[1:] if line.startswith("  2")]
    assert times == sorted(times)


def test_what_is_not_known(story: Story) -> None:
    assert story.explain("nobody").returncode == 3
    asked = story.deployment.bus.ask(c.Command(
        "link.get-user", {"externalId": "nobody"}, "nobody", app="fromlinks", signer="internal"))
    assert asked["reason"] == "USER_NOT_FOUND"
    assert story.explain("nobody").returncode == 3, "a question makes nobody known"
    assert story.explain(story.mpid, "demo").returncode == 3, "apps do not see each other"
    assert story.explain(story.mpid, "nope").returncode == 64, "there is no such app"
    assert story.explain("").returncode == 64
    limited = story.explain(story.mpid, "fromlinks", "--limit=1").stdout
    assert "(1 step," in limited and "change of identities" in limited


def test_what_others_wrote_does_not_steer_the_terminal(story: Story) -> None:
    """Bidirectional controls and line separators are letters of an id as far as the services care."""
    bus, install, nasty = story.deployment.bus, fresh("install"), fresh("a\u202eb\u2028c\u2066")
    bus.ask(c.register(install, app="fromlinks"))
    assert bus.ask(c.request(install, nasty, app="fromlinks"))["status"] == "succeeded"
    answer = story.explain(install)
    assert answer.returncode == 0 and "a\\u202eb\\u2028c\\u2066" in answer.stdout
    assert not set("\u202e\u2028\u2066") & set(answer.stdout)


@pytest.mark.parametrize("context", ["\x1b[2J\x1b]0;owned\x07", "a\nb", "\x9b31m"])
def test_a_context_that_would_is_refused(story: Story, context: str) -> None:
    """Over HTTP it is dropped, as other odd contexts are (gateway.md)."""
    identities = {"device_application_stamp": fresh("das")}
    answer = story.deployment.bus.ask(c.sync("identify", fresh("device"), identities, "fromlinks", context=context))
    assert answer["reason"] == "INVALID_REQUEST" and "context" in answer["message"]
    kept = story.deployment.bus.ask(c.sync("identify", fresh("device"), identities, "fromlinks", context="Ren\u00e9"))
    assert kept["result"]["context"] == "Ren\u00e9"


def test_a_command_that_was_answered_with_a_secret(story: Story) -> None:
    """Its answer stands sealed in the store; who it was for is found all the same."""
    asked = c.request_code(story.customer, app="fromlinks")
    code = story.deployment.bus.ask(asked)["result"]["authenticationCode"]
    for id, more in ((asked.id, ("--source", asked.source)), (story.customer, ())):
        words = story.explain(id, "fromlinks", *more)
        assert words.returncode == 0 and "request for a code\n" in words.stdout, words
        answer = story.explain(id, "fromlinks", *more, "--verbose")
        assert "user.request-auth-code  succeeded" in answer.stdout and "which is not shown" in answer.stdout
        assert code not in answer.stdout + words.stdout


def test_a_command_that_changed_nothing_is_found_by_its_source(story: Story) -> None:
    """With its outcome. Nothing else leads to it, so whoever does not say the source is told that it is missing."""
    stamp, app = {"customerid": story.customer}, "fromlinks"
    story.deployment.bus.ask(c.sync("login", story.device, stamp, app))
    for asked, words in (
        (c.register(story.install, app=app), "registration of an install"), (c.query(story.install, app), "question about an install"),
        (c.sync("login", story.device, stamp, app), "login"),
        (c.Command("link.get-user", {"userId": story.user}, story.user, app=app, signer="internal"), "question about a user"),
    ):
        assert story.deployment.bus.ask(asked)["status"] == "succeeded"
        told = story.explain(asked.id, app, "--source", asked.source)
        assert told.returncode == 0 and f"{words}: succeeded, nothing changed\n" in told.stdout, told
        assert "somebody else" not in told.stdout, told
        missing = story.explain(asked.id)
        assert missing.returncode == 3 and "give another one with --source" in missing.stderr, missing
        other = story.explain(asked.id, app, "--source", "another-backend")
        assert other.returncode == 3 and "It is no command of the source another-backend either" in other.stderr, other


def test_refusals_are_told(story: Story) -> None:
    install = fresh("never")
    refused = story.deployment.bus.ask(c.request(install, story.customer, app="fromlinks"))
    assert refused["reason"] == "INSTALL_NOT_FOUND"
    for id in (install, story.customer):
        wanted = "request to link an install with an external id: refused, INSTALL_NOT_FOUND: "
        assert wanted in story.explain(id).stdout
        assert "link.request  rejected INSTALL_NOT_FOUND" in story.explain(id, "fromlinks", "--verbose").stdout


def test_a_code_that_was_used_is_told_of_whose_it_was(story: Story) -> None:
    """Whoever tries it names nobody: the code does."""
    code = story.deployment.bus.ask(c.request_code(story.customer, app="fromlinks"))["result"]["authenticationCode"]
    first, second = fresh("first"), fresh("second")
    story.deployment.bus.settle(c.create(first, app="fromlinks", authCode=code))
    refused = story.deployment.bus.ask(c.create(second, app="fromlinks", authCode=code))
    assert refused["reason"] == "AUTH_CODE_USED"
    for id in (second, story.customer):
        assert "creation of a user: refused, AUTH_CODE_USED" in story.explain(id).stdout


def test_a_device_that_somebody_else_has_now(story: Story) -> None:
    """Whoever was there hears to whom it went, however long ago, and nothing of how they live."""
    bus, device = story.deployment.bus, fresh("device")
    before, after, elsewhere = fresh("before@x.io"), fresh("after@x.io"), fresh("elsewhere")
    gone = bus.ask(c.sync("login", device, {"email": before}, "fromlinks"))["result"]["mpid"]
    bus.ask(c.sync("login", elsewhere, {"email": after}, "fromlinks"))
    there = bus.ask(c.sync("login", device, {"email": after}, "fromlinks"))["result"]["mpid"]
    stamps = [fresh("stamp") for _ in range(120)]
    for stamp in stamps:
        bus.ask(c.sync("login", device, {"email": after, "device_application_stamp": stamp}, "fromlinks"))
    answer = story.explain(before).stdout
    assert f"sync: device {device} has current user {there}; seen there: {there}, {gone}\n" in answer
    assert f"device {device} went from profile {gone} (email {before}) to another profile, {there}, logged in\n" in answer
    assert after not in answer and elsewhere not in answer and not any(stamp in answer for stamp in stamps)


def test_a_device_leads_to_whoever_has_it_now(story: Story) -> None:
    device, people = fresh("device"), [fresh("guest@x.io") for _ in range(3)]
    for guest in people:
        story.deployment.bus.ask(c.sync("login", device, {"email": guest}, "fromlinks"))
    now = story.explain(device).stdout.split("HOW IT CAME TO BE")[0]
    assert people[2] in now and people[0] not in now and people[1] not in now


def test_who_has_a_device_hears_nothing_of_those_before(story: Story) -> None:
    """Nor of whoever was erased since: what was decided about the device stays as long as the inbox remembers it."""
    bus, device, phone = story.deployment.bus, fresh("tablet"), fresh("phone")
    before = {"customerid": fresh("before"), "email": fresh("before@x.io"), "device_application_stamp": device}
    gone = bus.ask(c.sync("login", device, before, "fromlinks"))["result"]["mpid"]
    for _ in range(60):
        bus.ask(c.sync("login", device, before, "fromlinks"))
    now = {"customerid": fresh("now"), "device_application_stamp": device}
    bus.ask(c.sync("login", phone, now, "fromlinks"))
    there = bus.ask(c.sync("login", device, now, "fromlinks"))["result"]["mpid"]
    answer = story.explain(now["customerid"]).stdout
    name = f"customerid {now['customerid']}"
    assert f"device {device} went from another profile, {gone}, to profile {there} ({name}), logged in\n" in answer
    assert f"device {phone} has profile {there}, logged in" in answer
    assert before["customerid"] not in answer and before["email"] not in answer
    # Whoever asks about the device is told what was decided about it, and not where else its people are.
    elsewhere = fresh("elsewhere")
    bus.ask(c.sync("login", elsewhere, {"customerid": before["customerid"]}, "fromlinks"))
    answer = story.explain(device, "fromlinks", "--limit", "1000").stdout
    assert before["customerid"] in answer and elsewhere not in answer and phone in answer


def test_whoever_had_the_external_id_before_is_somebody_else(story: Story) -> None:
    """Two people had each other's external id, and support put it right: neither's story has the other's logins."""
    bus, app = story.deployment.bus, "fromlinks"

    def repair(kind: str, **data: str) -> None:
        reply = bus.ask(c.Command(kind, {**data, "author": "lou", "reason": "swap"}, "x", app=app, signer="internal"))
        assert reply["status"] == "succeeded", reply

    people = []
    for name, wrong in (("ute", fresh("uwe-ext")), ("uwe", fresh("ute-ext"))):
        install, email, stamp = fresh(f"{name}-phone"), fresh(f"{name}@x.io"), fresh(f"{name}-stamp")
        bus.ask(c.register(install, app=app))
        bus.ask(c.request_code(wrong, app=app))
        user = bus.ask(c.request(install, wrong, app=app))["result"]["userId"]
        marked = "SELECT mpid FROM profiles WHERE user_id = ?"
        until(lambda user=user: story.deployment.database.execute(marked, [user], service="sync"), 20, "the profile")
        login = {"customerid": wrong, "email": email, "device_application_stamp": stamp}
        assert bus.ask(c.sync("login", install, login, app))["status"] == "succeeded"
        people.append((install, email, stamp, user, wrong))
    (utes, ute, _, user, former), (uwes, uwe, stamp, other, wanted) = people
    repair("link.unlink-user", userId=other)
    repair("link.change-external-id", userId=user, newExternalId=wanted)
    held = bus.ask(c.Command("link.change-external-id", {
        "userId": other, "newExternalId": former, "author": "lou", "reason": "swap"}, "x", app=app, signer="internal"))
    assert held["reason"] == "EXTERNAL_ID_TAKEN" and " is held until 2" in held["message"], held
    until(lambda: wanted in story.explain(ute).stdout.split("HOW")[0], 20, "the change in the profile")
    for id in (utes, user, ute):
        answer = story.explain(id).stdout
        assert ute in answer and wanted in answer, answer
        # What the change took from the other's profile is told with it (S142).
        joined = [line for line in answer.splitlines() if "counts as the same person" in line]
        rest = "\n".join(line for line in answer.splitlines() if line not in joined)
        assert joined and not any(theirs in rest for theirs in (uwes, uwe, stamp, other)), answer
    assert uwe in story.explain(wanted, "fromlinks", "--limit", "200").stdout, "the external id itself was asked about"


def test_what_a_device_goes_by_leads_to_nobody(story: Story) -> None:
    """The gateway's device ids are stamps too, and whoever was there has them."""
    bus, device = story.deployment.bus, fresh("hall")
    people = [fresh("guest") for _ in range(3)]
    for guest in people:
        bus.ask(c.sync("login", device, {"customerid": guest, "device_application_stamp": device}, "fromlinks"))
    now = story.explain(people[2]).stdout.split("HOW IT CAME TO BE")[0]
    assert f"device_application_stamp {device} is held by" in now
    assert people[0] not in now and people[1] not in now


def test_a_link_that_was_refused_leads_to_nobody_elses_install(story: Story) -> None:
    bus, install, owner, other = story.deployment.bus, fresh("install"), fresh("owner"), fresh("other")
    bus.ask(c.register(install, app="fromlinks"))
    bus.ask(c.request(install, owner, app="fromlinks"))
    assert bus.ask(c.request(install, other, app="fromlinks"))["reason"] == "INSTALL_LINKED_TO_OTHER_USER"
    answer = story.explain(other).stdout
    assert "refused, INSTALL_LINKED_TO_OTHER_USER" in answer and owner not in answer
    assert f"link: install {install}" not in answer


def test_what_is_left_out_is_said(story: Story) -> None:
    """The bound keeps an id that many share from dragging the whole store along."""
    bus, email = story.deployment.bus, fresh("everywhere@x.io")
    devices = [fresh("device") for _ in range(45)]
    for device in devices:
        bus.ask(c.sync("login", device, {"email": email}, "fromlinks"))
    answer = story.explain(email).stdout
    [line] = [line for line in answer.splitlines() if "Not asked about" in line]
    told = [json.loads(line) for line in story.explain(email, "fromlinks", "--json").stdout.splitlines()]
    left = [line["id"] for line in told if line["kind"] == "leftOut"]
    assert line.endswith(", ".join(sorted(left))) and 5 <= len(left) < 45 and set(left) <= set(devices)


def test_an_erasure_is_told_until_all_have_done_it(story: Story) -> None:
    bus, install, customer = story.deployment.bus, fresh("install"), fresh("customer")
    bus.ask(c.register(install))
    user = bus.ask(c.request(install, customer))["result"]["userId"]
    erased = bus.settle(c.erase(user))["result"]
    for id in (user, customer):
        wanted = f"link: user {user} is erased since {erased['erasedAt']}, in all services at {erased['completedAt']}\n"
        assert wanted in story.explain(id, "demo").stdout


def test_for_programs_and_for_engineers(story: Story) -> None:
    lines = [json.loads(line) for line in story.explain(story.mpid, "fromlinks", "--json").stdout.splitlines()]
    rows = [line["row"] for line in lines if line["kind"] == "row"]
    assert any(row["kind"] == "profile" and row["mpid"] == story.mpid for row in rows)
    decisions = [line["decision"] for line in lines if line["kind"] == "decision"]
    assert {fact["service"] for fact in decisions} >= {"link", "sync"}
    assert [fact["decidedAt"] for fact in decisions] == sorted(fact["decidedAt"] for fact in decisions)
    assert "sync.commands.v1/" in story.explain(story.mpid, "fromlinks", "--verbose").stdout


def test_who_may_ask(story: Story) -> None:
    """A key without the scope is refused, and nothing is told."""
    answer = story.explain(story.mpid, "fromlinks", "--key-id=fromlinks-backend")
    assert answer.returncode == 3 and "INSUFFICIENT_SCOPE" in answer.stderr and not answer.stdout


def test_a_service_that_does_not_answer_is_named(story: Story) -> None:
    assert story.services["verification"].stop() == 0
    answer = story.explain(story.mpid, "fromlinks", "--wait=3")
    assert answer.returncode == 4 and "from: verification" in answer.stderr
    assert story.email in answer.stdout
    story.services["verification"].start().wait_ready()
