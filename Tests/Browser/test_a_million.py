# SPDX-License-Identifier: Apache-2.0
"""How soon the page of a person is there among many (docs/console.md): CONSOLE_PEOPLE=1000000 says among how many users and as
many profiles. Left out without it. With SQLite, or in a new database of TEST_DATABASE_URL's server."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from identitybus_testkit.databases import PostgresServer
from identitybus_testkit.places import REPOSITORY, binary
from identitybus_testkit.up import Up

PEOPLE = int(os.environ.get("CONSOLE_PEOPLE", "0"))
pytestmark = pytest.mark.skipif(not PEOPLE, reason="CONSOLE_PEOPLE says how many")
THEN = "2024-03-01T00:00:00Z"
LOOKED_AT = 100
LOGINS = 10
KEY = "demo-support.demo-secret-demo-support"
# From the change of the address to the first frame that shows the whole page.
OPEN = """(id) => new Promise((done) => {
  const main = document.getElementById("main");
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (!main.textContent.includes("How it came to be so")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  }).observe(main, {childList: true, subtree: true});
  location.hash = `#/person/${id}`;
})"""


def write(path: Path) -> None:
    """Everybody has an install, a profile with two identities, and a device."""
    with path.open("w") as file:
        for number in range(PEOPLE):
            file.write(
                f'{{"mpid":"{10**15 + number}","identities":{{"customerid":"c-{number}","email":"c-{number}@mail.example"}},'
                f'"firstSeen":"{THEN}","lastSeen":"{THEN}","devices":[{{"deviceId":"d-{number}","isCurrent":true,'
                f'"firstSeen":"{THEN}","lastSeen":"{THEN}"}}]}}\n')
        for number in range(PEOPLE):
            file.write(
                f'{{"userId":"abc{number:021x}","externalId":"c-{number}","createdAt":"{THEN}","installs":[{{"installId":'
                f'"i-{number}","device":{{"kind":"phone","platform":"ios"}},"isActive":true}}]}}\n')


def bring(up: Up) -> None:
    path = up.data.parent / "people.jsonl"
    write(path)
    environment = up.environment | {"KAFKA_BOOTSTRAP_SERVERS": (up.data / "bootstrap").read_text().strip()}
    environment.pop("DATABASE_URL", None)
    answer = subprocess.run(
        [binary("identitybus"), "import", path, "--app=demo", "--key-id=demo-import", "--no-events", "--json"],
        env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-2000:]


def log_in(up: Up, people: list[int]) -> None:
    """So that there is something to be told of those who are looked at."""
    api = (up.data / "gateway").read_text().strip()
    for _ in range(LOGINS):
        for number in people:
            identities = {"customerid": f"c-{number}", "email": f"c-{number}@mail.example", "device_application_stamp": f"s-{number}"}
            body = {"environment": "development", "known_identities": identities}
            urlopen(Request(f"{api}/v1/login", json.dumps(body).encode(), {"x-mp-key": "demo-sdk", "Content-Type": "application/json"}))


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Up]:
    url = os.environ.get("TEST_DATABASE_URL")
    with closing(PostgresServer(url, None)) if url else nullcontext() as server:
        up = Up(tmp_path / "data", REPOSITORY / "config" / "apps.yaml", "")
        up.environment |= {"CONSOLE": "yes", "GATEWAY_ADMIN_PORT": "0"}
        if server:
            up.environment |= server.new_database().environment()
        try:
            up.start().wait_ready()
            bring(up)
            yield up
        finally:
            up.close()


def test_the_page_of_a_person_among_a_million(browser: Browser, crowd: Up) -> None:
    people = [number * (PEOPLE // LOOKED_AT) for number in range(LOOKED_AT)]
    log_in(crowd, people)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{(crowd.data / 'admin').read_text().strip()}/console")
    page.get_by_label("API key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Who is it about?")).to_be_visible()
    took = []
    for number in people:
        took.append(page.evaluate(OPEN, f"c-{number}@mail.example"))
        assert page.get_by_text("Active on install").count() == 1
        page.evaluate("location.hash = '#/do'")
        expect(page.get_by_role("heading", name="Do", exact=True)).to_be_visible()
    took.sort()
    p50, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
    print(f"\n{PEOPLE} people, the page of {len(took)} of them: p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {took[-1]:.0f} ms")
    assert p95 < 300
