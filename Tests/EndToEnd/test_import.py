# SPDX-License-Identifier: Apache-2.0
"""`identitybus import`: users and profiles of another system, and how their devices get in afterwards, with both engines."""

import csv
import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.apps import APP_SECRET
from identitybus_testkit.commands import PHONE, TABLET, Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.places import binary, clean_environment
from identitybus_testkit.service import Service
from identitybus_testkit.waiting import until

Reply = dict[str, Any]
THEN = "2024-03-01T00:00:00Z"


class Import:
    """Files, and the command that reads them."""

    def __init__(self, deployment: Deployment, services: dict[str, Service], folder: Path) -> None:
        self.deployment, self.services, self.folder = deployment, services, folder

    def file(self, name: str, elements: list[Any]) -> Path:
        path = self.folder / f"{fresh('file')}-{name}"
        path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in elements))
        return path

    def arguments(self, path: Path | str, *options: str, app: str = "demo") -> list[str]:
        return [binary("identitybus"), "import", str(path), f"--app={app}", f"--key-id={app}-import", "--json", *options]

    @property
    def environment(self) -> dict[str, str]:
        environment = clean_environment() | self.deployment.environment()
        environment.pop("DATABASE_URL", None)
        return environment

    def run(self, path: Path | str, *options: str, app: str = "demo", input: str | None = None,
            status: int | None = 0) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            self.arguments(path, *options, app=app), env=self.environment, capture_output=True, text=True, timeout=300,
            input=input)
        if status is not None:
            assert answer.returncode == status, answer
        return answer

    def counts(self, path: Path | str, *options: str, **more: Any) -> dict[str, dict[str, int]]:
        return dict(json.loads(self.run(path, *options, **more).stdout))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def importing(request: pytest.FixtureRequest, make_deployment: Callable[..., Deployment]) -> Import:
    names = ("link", "user", "sync", "verification")
    deployment = make_deployment(request.param, services=names)
    services = {name: deployment.service(name).start() for name in names}
    for service in services.values():
        service.wait_ready()
    folder = deployment.directory / "files"
    folder.mkdir()
    return Import(deployment, services, folder)


def user_id() -> str:
    return f"{random.getrandbits(96):024x}"


def mpid() -> str:
    return str(random.choice((-1, 1)) * random.randrange(1, 1 << 62))


def user(external_id: str | None = None, *installs: str, device: dict[str, str] = PHONE, **more: Any) -> dict[str, Any]:
    element: dict[str, Any] = {"userId": user_id(), "createdAt": THEN, **more}
    if external_id:
        element["externalId"] = external_id
    if installs:
        element["installs"] = [{"installId": one, "device": device} for one in installs]
    return element


def profile(identities: dict[str, Any] | None = None, *devices: str, **more: Any) -> dict[str, Any]:
    return {
        "mpid": mpid(), "identities": identities or {}, "firstSeen": THEN, "lastSeen": THEN,
        "devices": [{"deviceId": one, "isCurrent": True, "firstSeen": THEN, "lastSeen": THEN} for one in devices], **more}


def tally(created: int = 0, same: int = 0, changed: int = 0, refused: int = 0) -> dict[str, int]:
    return {"created": created, "same": same, "changed": changed, "refused": refused}


def succeeded(reply: Reply) -> dict[str, Any]:
    assert reply["status"] == "succeeded", reply
    return dict(reply["result"])


def get_user(importing: Import, app: str = "demo", **whom: str) -> Reply:
    command = Command("link.get-user", whom, next(iter(whom.values())), app=app, signer="internal")
    return importing.deployment.bus.ask(command)


def get_profile(importing: Import, mpid: str, app: str = "demo") -> Reply:
    return importing.deployment.bus.ask(Command("sync.get-profile", {"mpid": mpid}, mpid, app=app, signer="internal"))


def told(importing: Import, subject: str, type: str = "") -> list[dict[str, Any]]:
    """The events about it so far."""
    collector = importing.deployment.bus.collector
    collector.catch_up()
    records = [record for records in list(collector.events.values()) for record in list(records)]
    return [record.data for record in records
            if record.envelope.get("subject") == subject and type in record.envelope["type"]]


# What is brought


def test_users_and_profiles_of_one_file(importing: Import) -> None:
    anna, bert = fresh("anna"), fresh("bert")
    users = [user(anna, fresh("install")), user(None, fresh("install")), user(bert)]
    stamp = fresh("stamp")
    profiles = [profile({"customerid": anna, "email": f"{anna}@mail"}, fresh("device"), name="Anna"),
                profile({"device_application_stamp": [stamp]}, fresh("device"))]
    path = importing.file("people.jsonl", profiles + users)
    assert importing.counts(path) == {"users": tally(3), "profiles": tally(2)}
    told = succeeded(get_user(importing, externalId=anna))
    assert (told["userId"], told["createdAt"]) == (users[0]["userId"], "2024-03-01T00:00:00.000Z")
    [install] = told["installs"]
    assert install["installId"] == users[0]["installs"][0]["installId"] and install["isActive"]
    here = succeeded(get_profile(importing, profiles[0]["mpid"]))
    assert here["identities"] == {"customerid": [anna], "email": [f"{anna}@mail"]} and here["name"] == "Anna"
    assert here["firstSeen"] == here["lastSeen"] == "2024-03-01T00:00:00.000Z"
    assert [one["deviceId"] for one in here["devices"]] == [profiles[0]["devices"][0]["deviceId"]]
    # The same again, and by standard input.
    assert importing.counts(path) == {"users": tally(same=3), "profiles": tally(same=2)}
    assert importing.counts("-", input=path.read_text()) == {"users": tally(same=3), "profiles": tally(same=2)}


def test_csv(importing: Import) -> None:
    anna, bert = user_id(), user_id()
    phone, tablet, name = fresh("phone"), fresh("tablet"), fresh('an "odd", name\nof two lines')
    path = importing.folder / f"{fresh('users')}.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["userId", "externalId", "installId", "kind", "platform", "isActive"])
        rows.writerow([anna, name.replace("\n", " "), phone, "phone", "ios", "true"])
        rows.writerow([anna, "", tablet, "tablet", "ios", ""])
        rows.writerow([bert, fresh("bert"), "", "", "", ""])
        rows.writerow([user_id(), name.replace("\n", " "), "", "", "", ""])
    errors = importing.folder / f"{fresh('errors')}.csv"
    counts = json.loads(importing.run(path, f"--errors={errors}", status=3).stdout)
    assert counts == {"users": tally(2, refused=1)}
    told = succeeded(get_user(importing, userId=anna))
    assert {one["installId"]: one["isActive"] for one in told["installs"]} == {phone: True, tablet: False}
    with errors.open(newline="") as file:
        header, row = list(csv.reader(file))
    assert header[-1] == "importError" and row[-1] == "EXTERNAL_ID_TAKEN" and row[1] == name.replace("\n", " ")
    # Mended, and fed again.
    errors.write_text(errors.read_text().replace('an ""odd""', "another").replace("\r", ""))
    assert importing.counts(errors) == {"users": tally(1)}

    five, device = mpid(), fresh("device")
    path = importing.folder / f"{fresh('profiles')}.csv"
    path.write_text(
        "mpid,firstSeen,lastSeen,email,other,deviceId,isCurrent\n"
        f"{five},{THEN},{THEN},{fresh('a')}@mail,one,{device},true\n{five},,,,two,,\n")
    assert importing.counts(path) == {"profiles": tally(1)}
    here = succeeded(get_profile(importing, five))
    assert here["identities"]["other"] == ["one", "two"] and here["devices"][0]["isCurrent"]
    path.write_text("mpid,firstseen\n1,2\n")
    assert "Did you mean firstSeen?" in importing.run(path, status=64).stderr


def test_files_of_other_programs(importing: Import) -> None:
    """A quote too many costs one line, and no other person's; a byte order mark costs none."""
    people = [str(mpid()) for _ in range(4)]
    path = importing.folder / f"{fresh('tools')}.csv"
    path.write_text(
        "\ufeffmpid,firstSeen,lastSeen,customerid,name\r\n"
        f'{people[0]},{THEN},{THEN},{fresh("a")},5" tall\r\n{people[1]},{THEN},{THEN},{fresh("b")},"open\r\n'
        f'{people[2]},{THEN},{THEN},{fresh("c")},an "odd" name\r\n{people[3]},{THEN},{THEN},{fresh("d")},"a ""b"""\r\n')
    errors = importing.folder / f"{fresh('errors')}.csv"
    assert json.loads(importing.run(path, f"--errors={errors}", status=3).stdout) == {
        "profiles": tally(3), "lines": tally(0, refused=1)}
    assert "cell 5 has a quote that does not end" in errors.read_text()
    names = [succeeded(get_profile(importing, people[place]))["name"] for place in (0, 2, 3)]
    assert names == ['5" tall', 'an "odd" name', 'a "b"']
    path.write_text("mpid,firstSeen,lastSeen,email,email\n")
    assert "the column email twice" in importing.run(path, status=64).stderr
    path.write_text("mpid;firstSeen;lastSeen\n")
    assert "separated by" in importing.run(path, status=64).stderr
    path = importing.file("mark.jsonl", ["\ufeff" + json.dumps(user(fresh("e")))])
    assert importing.counts(path) == {"users": tally(1)}
    path = importing.file("bad.jsonl", [user(fresh("f")) | {"installs": [{"installId": fresh("i"), "device": 7}]}])
    assert "line 1: invalid: installs[0]" in importing.run(path, status=3).stderr


def test_what_is_refused_is_mended_and_fed_again(importing: Import) -> None:
    anna = fresh("anna")
    elements: list[Any] = [
        user(anna), user(anna), {"userId": "no"}, "not json", {"neither": 1}, user(fresh("bert"), externalID="x"),
        profile({"email": "null"}), user(fresh("carl")),
    ]
    path, errors = importing.file("some.jsonl", elements), importing.folder / fresh("errors")
    answer = importing.run(path, f"--errors={errors}", status=3)
    assert json.loads(answer.stdout) == {
        "lines": tally(refused=2), "profiles": tally(refused=1), "users": tally(2, refused=3)}
    lines = [json.loads(line) for line in errors.read_text().splitlines()]
    reasons = [line["importError"] for line in lines]
    assert [reason.split()[0] for reason in reasons] == [
        "EXTERNAL_ID_TAKEN", "invalid:", "invalid:", "invalid:", "invalid:", "VALUE_NAMES_NOBODY"], reasons
    assert lines[2]["importLine"] == "not json" and lines[0] | {"importError": ""} == elements[1] | {"importError": ""}
    shown = importing.run(path, status=3).stderr
    assert "line 2: EXTERNAL_ID_TAKEN" in shown and anna not in shown
    lines[0]["externalId"] = fresh("anne")
    del lines[4]["externalID"]
    mended = importing.file("mended.jsonl", [lines[0], lines[4]])
    assert importing.counts(mended) == {"users": tally(2)}


def test_a_dry_run_does_nothing(importing: Import) -> None:
    anna = user(fresh("anna"), fresh("install"))
    person = profile({"email": f"{fresh('a')}@mail"}, fresh("device"))
    path = importing.file("dry.jsonl", [person, anna])
    reads = {name: len(importing.services[name].lines('"person.read"', '"demo-import"')) for name in ("link", "sync")}
    for count in (1, 2):
        assert importing.counts(path, "--dry-run") == {"users": tally(1), "profiles": tally(1)}
        # Whether somebody is known was told, and to whom stands in the log.
        for name, before in reads.items():
            assert len(importing.services[name].lines('"person.read"', '"demo-import"')) == before + count
    assert get_user(importing, userId=anna["userId"])["reason"] == "USER_NOT_FOUND"
    assert importing.counts(path) == {"users": tally(1), "profiles": tally(1)}


def test_upsert_adds_and_moves_nothing(importing: Import) -> None:
    anna = user(fresh("anna"), fresh("install"))
    person = profile({"customerid": anna["externalId"]}, fresh("device"))
    importing.counts(importing.file("first.jsonl", [person, anna]))
    more = anna | {"installs": anna["installs"] + [{"installId": fresh("tablet"), "device": TABLET, "isActive": True}]}
    richer = person | {"identities": {"customerid": anna["externalId"], "email": f"{fresh('a')}@mail"}}
    path = importing.file("more.jsonl", [richer, more])
    assert json.loads(importing.run(path, status=3).stdout) == {"users": tally(refused=1), "profiles": tally(refused=1)}
    assert importing.counts(path, "--upsert") == {"users": tally(changed=1), "profiles": tally(changed=1)}
    assert importing.counts(path, "--upsert") == {"users": tally(same=1), "profiles": tally(same=1)}
    installs = succeeded(get_user(importing, userId=anna["userId"]))["installs"]
    assert {one["installId"]: one["isActive"] for one in installs} == {
        more["installs"][0]["installId"]: True, more["installs"][1]["installId"]: False}


def test_events_name_the_import_or_are_not_there(importing: Import) -> None:
    install, device = fresh("install"), fresh("device")
    elements = [profile({}, device), user(fresh("anna"), install)]
    importing.counts(importing.file("loud.jsonl", elements))

    causes = {event["cause"] for subject in (install, device) for event in told(importing, subject)}
    assert causes == {"import"}
    quiet = fresh("install")
    importing.counts(importing.file("quiet.jsonl", [user(fresh("anna"), quiet)]), "--no-events")
    assert told(importing, quiet) == []


# How a device gets in afterwards


def test_a_linked_user_comes_back_by_a_code(importing: Import) -> None:
    bus = importing.deployment.bus
    anna, install, other = fresh("anna"), fresh("install"), fresh("install")
    element = user(anna, install)
    importing.counts(importing.file("anna.jsonl", [element]))
    for one in (install, other):
        code = succeeded(bus.ask(c.request_code(anna)))["authenticationCode"]
        result = succeeded(bus.settle(c.create(one, authCode=code)))
        assert result["userId"] == element["userId"] and result["isRemoteEnabled"] and result["isLinked"]
        assert len(told(importing, one, "user.restored")) == 1
    assert len(told(importing, install, "user.deactivated")) == 1
    assert {one["installId"]: one["isActive"] for one in succeeded(get_user(importing, userId=element["userId"]))["installs"]} == {
        install: False, other: True}


def test_an_unlinked_user_is_given_to_one_creation(importing: Import) -> None:
    bus = importing.deployment.bus
    install = fresh("install")
    element = user(None, install)
    importing.counts(importing.file("nobody.jsonl", [element]))
    result = succeeded(bus.settle(c.create(install, appSecret=APP_SECRET, linking="none")))
    assert result["userId"] == element["userId"] and result["isRemoteEnabled"] and not result["isLinked"]
    assert len(told(importing, install, "user.restored")) == 1
    # Once: after a reset it is somebody new.
    succeeded(bus.settle(c.reset(install)))
    again = succeeded(bus.settle(c.create(install, appSecret=APP_SECRET, linking="none")))
    assert again["userId"] != element["userId"]


def test_by_a_code_an_unlinked_user_is_a_leftover(importing: Import) -> None:
    bus = importing.deployment.bus
    install, anna = fresh("install"), fresh("anna")
    element = user(None, install)
    importing.counts(importing.file("leftover.jsonl", [element]))
    code = succeeded(bus.ask(c.request_code(anna)))["authenticationCode"]
    result = succeeded(bus.settle(c.create(install, authCode=code)))
    assert result["userId"] != element["userId"] and result["isLinked"]


def test_an_sdk_goes_on_with_its_old_mpid(importing: Import) -> None:
    bus = importing.deployment.bus
    stamp, device = fresh("stamp"), fresh("device")
    anonymous = profile({"device_application_stamp": stamp}, device)
    importing.counts(importing.file("sdk.jsonl", [anonymous]))
    identities = {"device_application_stamp": stamp}
    result = succeeded(bus.ask(c.sync("identify", device, identities, previousMPID=anonymous["mpid"])))
    assert (result["mpid"], result["previousMPID"], result["previousMismatch"]) == (anonymous["mpid"],) * 2 + (False,)
    login = succeeded(bus.ask(c.sync("login", device, identities | {"customerid": fresh("anna")})))
    assert login["mpid"] == anonymous["mpid"] and login["rule"] == "converted"


# With links


def test_profiles_come_before_users_where_links_mark_them(importing: Import) -> None:
    anna = fresh("anna")
    person, linked = profile({"customerid": anna}), user(anna, fresh("install"))
    wrong = importing.file("wrong.jsonl", [linked, person])
    answer = importing.run(wrong, app="fromlinks", status=64)
    assert "line 2" in answer.stderr and "Nothing was sent" in answer.stderr
    assert get_user(importing, app="fromlinks", externalId=anna)["reason"] == "USER_NOT_FOUND"
    assert importing.counts(importing.file("right.jsonl", [person, linked]), app="fromlinks") == {
        "users": tally(1), "profiles": tally(1)}
    until(lambda: succeeded(get_profile(importing, person["mpid"], "fromlinks")).get("userId") == linked["userId"], 20,
          "the mark")
    answer = importing.run("-", app="fromlinks", input=wrong.read_text(), status=64)
    assert "fromLinks" in answer.stderr


def test_a_user_without_installs_marks_the_profile_at_the_first_link(importing: Import) -> None:
    """L155. As the linking vendor's export has them."""
    bus, anna, install = importing.deployment.bus, fresh("anna"), fresh("install")
    person, linked = profile({"customerid": anna}), user(anna)
    importing.counts(importing.file("anna.jsonl", [person, linked]), app="fromlinks")
    assert "userId" not in succeeded(get_profile(importing, person["mpid"], "fromlinks"))
    code = succeeded(bus.ask(c.request_code(anna, app="fromlinks")))["authenticationCode"]
    assert succeeded(bus.settle(c.create(install, app="fromlinks", authCode=code)))["userId"] == linked["userId"]
    until(lambda: succeeded(get_profile(importing, person["mpid"], "fromlinks")).get("userId") == linked["userId"], 20,
          "the mark")


# Erasure


def test_after_an_erasure_nobody_comes_back(importing: Import) -> None:
    bus = importing.deployment.bus
    anna, install = fresh("anna"), fresh("install")
    person, linked = profile({"customerid": anna}, fresh("device")), user(anna, install)
    path = importing.file("anna.jsonl", [person, linked])
    importing.counts(path)
    assert bus.settle(c.erase(linked["userId"]))["status"] == "succeeded"
    erase = Command("sync.erase-profile", {"mpid": person["mpid"]}, person["mpid"], signer="internal")
    assert bus.settle(erase)["status"] == "succeeded"
    for options in ([], ["--upsert"]):
        errors = importing.folder / fresh("errors")
        importing.run(path, *options, f"--errors={errors}", status=3)
        reasons = [json.loads(line)["importError"] for line in errors.read_text().splitlines()]
        assert reasons == ["PROFILE_ERASED", "USER_ERASED"]
    # Nor under another id on what was hers.
    other = user(fresh("bert"), install)
    errors = importing.folder / fresh("errors")
    importing.run(importing.file("bert.jsonl", [other]), f"--errors={errors}", status=3)
    assert "INSTALL_TAKEN" in errors.read_text()


# Stopped and continued


def test_killed_and_continued(importing: Import) -> None:
    """The tool and both services are killed at any moment: everybody is there once, and each refusal is told once."""
    count = int(os.environ.get("IMPORT_PEOPLE", "6000"))
    mark = fresh("crowd")
    people: list[Any] = []
    for number in range(count):
        name = f"{mark}-{number if number % 50 else number + 1}"  # each fiftieth has the next one's
        people.append(profile({"customerid": name}, f"{mark}-{number}"))
    for number in range(count):
        name = f"{mark}-{number if number % 50 else number + 1}"
        people.append(user(name, f"{mark}-{number}"))
    path = importing.file("crowd.jsonl", people)
    progress, errors = importing.folder / fresh("progress"), importing.folder / fresh("errors")
    options = [f"--resume={progress}", f"--errors={errors}"]
    kills = 0
    dice = random.Random(7)
    while True:
        tool = subprocess.Popen(
            importing.arguments(path, *options), env=importing.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        try:
            output, complaint = tool.communicate(timeout=dice.uniform(1, 3) if kills < 4 else 200)
            break
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.communicate()
            kills += 1
            service = importing.services[("link", "sync")[kills % 2]]
            service.kill()
            service.start().wait_ready()
    assert kills > 0 and tool.returncode == 3, (kills, complaint)
    refused = len(range(0, count, 50))
    assert json.loads(output) == {
        "users": tally(count - refused, refused=refused), "profiles": tally(count - refused, refused=refused)}
    lines = [json.loads(line) for line in errors.read_text().splitlines()]
    assert len(lines) == 2 * refused and {line["importError"] for line in lines} == {
        "EXTERNAL_ID_TAKEN", "IDENTITY_TAKEN customerid"}
    ids = [line.get("userId", line.get("mpid")) for line in lines]
    assert len(set(ids)) == len(ids)
    database = importing.deployment.database
    [(users,)] = database.execute("SELECT count(*) FROM persons WHERE external_id LIKE ?", [f"{mark}-%"], service="link")
    [(devices,)] = database.execute("SELECT count(*) FROM devices WHERE device_id LIKE ?", [f"{mark}-%"], service="sync")
    assert (users, devices) == (count - refused, count - refused)
    again = importing.run(path, *options, status=3)
    assert "sent before" in again.stderr and json.loads(again.stdout) == json.loads(output)


def test_others_do_not_wait(importing: Import) -> None:
    """While an import runs, another app's commands are answered as always."""
    mark = fresh("crowd")
    path = importing.file("crowd.jsonl", [user(f"{mark}-{number}", f"{mark}-{number}") for number in range(4000)])
    tool = subprocess.Popen(
        importing.arguments(path), env=importing.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    times: list[float] = []
    while tool.poll() is None:
        start = time.monotonic()
        importing.deployment.bus.ask(c.query(fresh("nobody"), app="other"))
        times.append(time.monotonic() - start)
    assert tool.returncode == 0, tool.communicate()
    assert times and sorted(times)[-1] < 5, times


def test_a_resume_file_is_of_one_import(importing: Import) -> None:
    progress = importing.folder / fresh("progress")
    first, second = importing.file("one.jsonl", [user(fresh("a"))]), importing.file("two.jsonl", [user(fresh("b"))])
    assert importing.counts(first, f"--resume={progress}") == {"users": tally(1)}
    assert "is not what" in importing.run(second, f"--resume={progress}", status=64).stderr
    assert "another --app, --upsert" in importing.run(first, f"--resume={progress}", "--upsert", status=64).stderr
    # What comes after what was read is new.
    with first.open("a") as file:
        file.write(json.dumps(user(fresh("c"))) + "\n")
    assert importing.counts(first, f"--resume={progress}") == {"users": tally(2)}


def test_a_file_that_has_changed_is_refused(importing: Import) -> None:
    """However far behind its beginning: what comes in before where the import was would never be sent."""
    progress, mark = importing.folder / fresh("progress"), fresh("night")
    people = [user(f"{mark}-{number}") for number in range(1500)]
    path = importing.file("nightly.jsonl", people)
    assert importing.counts(path, f"--resume={progress}") == {"users": tally(1500)}
    path.write_text("".join(json.dumps(one) + "\n" for one in people[:1400] + [user(f"{mark}-late")] + people[1400:]))
    answer = importing.run(path, f"--resume={progress}", status=64)
    assert "it has changed" in answer.stderr and "begins anew" in answer.stderr
    with path.open() as file:
        assert subprocess.run(
            importing.arguments("-", f"--resume={progress}"), env=importing.environment, stdin=file, capture_output=True,
            timeout=60).returncode == 64
    assert importing.counts(path) == {"users": tally(1, same=1500)}


def test_nothing_is_sent_before_the_resume_file_is_there(importing: Import) -> None:
    """The ids of the lists stand in it: without it they would be sent again as others."""
    path = importing.file("one.jsonl", [user(fresh("a")) for _ in range(300)])
    assert "cannot be written" in importing.run(path, "--resume=/nowhere/progress", status=None).stderr
    assert importing.counts(path) == {"users": tally(300)}


def test_refused_as_a_whole(importing: Import) -> None:
    path = importing.file("one.jsonl", [user(fresh("a"))])
    arguments = [
        "--key-id=demo-sdk" if str(one).startswith("--key-id") else one for one in importing.arguments(path)]
    answer = subprocess.run(arguments, env=importing.environment, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 3 and "INSUFFICIENT_SCOPE" in answer.stderr and "scope `import`" in answer.stderr
    assert "files of their own" in importing.run(path, f"--errors={path}", status=64).stderr
    assert importing.run("/nowhere/file", status=64).stderr.startswith("identitybus: /nowhere/file")
