# SPDX-License-Identifier: Apache-2.0
"""`identitybus explain`: from any id to all others, beside running services, on both engines."""

import subprocess

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import change, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until


class Story:
    """One person of the app `fromlinks`: linked, logged in on a device, with a changed e-mail."""

    def __init__(self, deployment: Deployment, link: Service) -> None:
        self.deployment, self.link = deployment, link
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
        environment = clean_environment() | self.deployment.database.environment()
        environment["IDENTITYBUS_APPS"] = str(self.deployment.apps_file)
        folder = environment.pop("DATA_DIR", "/nowhere")
        return subprocess.run(
            [binary("identitybus"), "explain", f"--data-dir={folder}", f"--app={app}", *more, "--", id],
            env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def story(sync: Deployment) -> Story:
    return Story(sync, sync.service("link").start().wait_ready())


@pytest.mark.parametrize("name", ["install", "customer", "user", "mpid", "email", "device"])
def test_from_any_id_to_all_others(story: Story, name: str) -> None:
    answer = story.explain(getattr(story, name))
    assert answer.returncode == 0, answer.stderr
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
    assert story.explain(story.mpid, "demo").returncode == 3, "apps do not see each other"
    assert story.explain(story.mpid, "nope").returncode == 64, "there is no such app"
    assert story.explain("").returncode == 64
    limited = story.explain(story.mpid, "fromlinks", "--limit=1").stdout
    assert "(1 command," in limited and "sync.modify" in limited


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


def test_what_is_carried_over_is_told_once(story: Story) -> None:
    """It stands in two generations of the inbox until the older one goes."""
    before = story.explain(story.user).stdout
    assert "link.request  succeeded" in before
    assert story.link.stop() == 0
    story.deployment.database.execute("INSERT INTO inbox_0 SELECT * FROM inbox_1", service="link")
    assert story.explain(story.user).stdout == before
    story.link.start().wait_ready()
