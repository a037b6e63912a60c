# SPDX-License-Identifier: Apache-2.0
"""A deployment with the people of the demo, and a browser."""

import os
import sys
from contextlib import closing, nullcontext
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "EndToEnd"))

from identitybus_testkit.databases import PostgresServer  # noqa: E402
from identitybus_testkit.places import REPOSITORY  # noqa: E402
from identitybus_testkit.up import Up  # noqa: E402
from identitybus_testkit.waiting import until  # noqa: E402


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`identitybus up --demo`, when everybody is there: with SQLite, or in a new database of TEST_DATABASE_URL's server."""
    url = os.environ.get("TEST_DATABASE_URL")
    with closing(PostgresServer(url, None)) if url else nullcontext() as server:
        up = Up(tmp_path_factory.mktemp("demo") / "data", REPOSITORY / "config" / "apps.yaml", "")
        if server:
            up.environment |= server.new_database().environment()
        try:
            up.start("--demo").wait_ready()

            def is_played() -> bool:
                assert up.process.poll() is None, f"up has ended\n{up.text}"
                return "\ndemo      done" in up.text

            until(is_played, 180, lambda: up.text)
            yield up
        finally:
            up.close()


def _address(up: Up, name: str) -> str:
    return next(line.split()[1] for line in up.text.splitlines() if line.startswith(name))


@pytest.fixture(scope="session")
def address(up: Up) -> str:
    """Of the console."""
    return _address(up, "console")


@pytest.fixture(scope="session")
def api(up: Up) -> str:
    """Of the gateway's first port."""
    return _address(up, "gateway")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()
