# SPDX-License-Identifier: Apache-2.0
"""`identitybus export`: one person's document, and nothing of others, with both engines."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.verification import login
from identitybus_testkit.waiting import until

APP = "fromlinks"


class Family:
    """Two people who share a tablet, and have each a phone."""

    def __init__(self, deployment: Deployment, services: dict[str, Service]) -> None:
        self.deployment, self.services = deployment, services
        self.tablet, self.stamp = fresh("tablet"), fresh("stamp")
        self.people = {name: Person(self, name) for name in ("anna", "bob")}

    def export(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() | self.deployment.environment()
        environment.pop("DATABASE_URL", None)
        return subprocess.run(
            [binary("identitybus"), "export", f"--app={APP}", "--json", *arguments], env=environment, capture_output=True, text=True,
            timeout=60)

    def document(self, *arguments: str) -> dict[str, Any]:
        answer = self.export(*arguments)
        assert answer.returncode == 0, answer.stderr
        return dict(json.loads(answer.stdout))


class Person:
    def __init__(self, family: Family, name: str) -> None:
        bus = family.deployment.bus
        self.install, self.customer, self.device = fresh(f"{name}-install"), fresh(name), fresh(f"{name}-phone")
        self.email = f"{fresh(name)}@mail.example"
        bus.ask(c.register(self.install, app=APP))
        self.user = bus.ask(c.request(self.install, self.customer, app=APP))["result"]["userId"]
        marked = "SELECT mpid FROM profiles WHERE user_id = ?"
        until(
            lambda: family.deployment.database.execute(marked, [self.user], service="sync"), 20, "the profile of the link")
        who = {"customerid": self.customer, "email": self.email}
        for device, stamp in ((self.device, fresh("stamp")), (family.tablet, family.stamp)):
            self.mpid = bus.ask(c.sync("login", device, who | {"device_application_stamp": stamp}, APP))["result"]["mpid"]

    @property
    def names(self) -> set[str]:
        return {self.install, self.customer, self.device, self.email, self.user, self.mpid}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def family(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Family:
    names = ("link", "user", "sync", "verification")
    deployment = make_deployment(request.param, services=names)
    services = {name: deployment.service(name).start() for name in names}
    for service in services.values():
        service.wait_ready()
    return Family(deployment, services)


@pytest.mark.parametrize("name", ["anna", "bob"])
@pytest.mark.parametrize("by", ["user", "customer", "mpid"])
def test_all_of_one_person_and_nothing_of_the_other(family: Family, name: str, by: str) -> None:
    person = family.people[name]
    (other,) = (one for one in family.people if one != name)
    option = {"user": "--user-id", "customer": "--external-id", "mpid": "--mpid"}[by]
    document = family.document(f"{option}={getattr(person, by)}")
    text = json.dumps(document)
    # The tablet has the one who came last.
    for one in person.names | ({family.tablet} if name == "bob" else set()):
        assert one in text, f"{one} is missing: {text}"
    for one in family.people[other].names:
        assert one not in text, f"{one} of {other} is in {name}'s document"
    assert [user["userId"] for user in document["users"]] == [person.user]
    assert [profile["mpid"] for profile in document["profiles"]] == [person.mpid]


def test_sessions_are_those_of_the_person(family: Family) -> None:
    anna, bob = family.people["anna"], family.people["bob"]
    for person in (anna, bob):
        reply = family.deployment.bus.ask(login(family.tablet, APP, userId=person.customer))
        assert reply["status"] in ("pending", "succeeded"), reply
    until(
        lambda: family.document(f"--mpid={bob.mpid}")["sessions"], 20, lambda: family.export(f"--mpid={bob.mpid}").stdout)
    (session,) = family.document(f"--mpid={bob.mpid}")["sessions"]
    assert (session["deviceId"], session["mpid"]) == (family.tablet, bob.mpid)
    assert not family.document(f"--mpid={anna.mpid}")["sessions"]


def test_for_people_it_is_the_same_document(family: Family) -> None:
    bob = family.people["bob"]
    line = family.document(f"--mpid={bob.mpid}")
    environment = clean_environment() | family.deployment.environment()
    shown = subprocess.run(
        [binary("identitybus"), "export", f"--app={APP}", f"--mpid={bob.mpid}"], env=environment, capture_output=True,
        text=True, timeout=60)
    assert shown.returncode == 0 and shown.stdout.count("\n") > 20
    assert json.loads(shown.stdout) | {"exportedAt": ""} == line | {"exportedAt": ""}


def test_nobody(family: Family) -> None:
    for arguments in (["--user-id=nobody"], ["--external-id=nobody"], ["--mpid=1"]):
        answer = family.export(*arguments)
        assert (answer.returncode, answer.stdout) == (3, ""), answer
    for arguments in ([], ["--mpid=x"], ["--mpid=1", "--user-id=u"]):
        answer = family.export(*arguments)
        assert (answer.returncode, answer.stdout) == (64, ""), answer
    anna = family.people["anna"]
    answer = family.export(f"--mpid={anna.mpid}", f"--key-id={APP}-backend")
    assert answer.returncode == 3 and "INSUFFICIENT_SCOPE" in answer.stderr and not answer.stdout


def test_a_document_is_whole_or_not_there(family: Family) -> None:
    assert family.services["verification"].stop() == 0
    anna = family.people["anna"]
    answer = family.export(f"--mpid={anna.mpid}", "--wait=3")
    assert answer.returncode == 4 and "from: verification" in answer.stderr and not answer.stdout
    family.services["verification"].start().wait_ready()
