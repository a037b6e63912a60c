# SPDX-License-Identifier: Apache-2.0
"""The console's pages in Chromium (docs/console.md): each case of the demo, what keeps people out (WCAG 2.2 AA), the keyboard,
and that nothing of a producer runs or breaks anything. Every page is watched: no message on the browser's console, no
report of the content policy, no request to another place."""

import json
import os
import re
import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
SUPPORT, ADMIN, DESK = "demo-support", "demo-admin", "support-desk"
PRIVACY, MASKED = "demo-privacy", "demo-trainee"
# Markup, a bidirectional override, and what ends an attribute. Control characters no service takes.
EVIL = "<img src=x onerror=alert(1)>\u202e\u200b\"'"
# What is recorded before any script of the page runs.
WATCH = "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))"


@contextmanager
def opened(
    browser: Browser, address: str, key: str | None = SUPPORT, width: int = 1440, scheme: str = "light"
) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    said: list[str] = []
    page.add_init_script(WATCH)
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url)
            if not request.url.startswith((address.removesuffix("/console"), "data:")) else None)
    page.goto(address)
    if key:
        page.get_by_role("button", name=f"Sign in as {key}").click()
        expect(page.get_by_role("heading", name="Who is it about?")).to_be_visible()
    yield page
    # An answer that is no 200 is the browser's own message, and a refusal is no fault.
    assert [line for line in said if "Failed to load resource" not in line] == []
    context.close()


def look(page: Page, id: str) -> None:
    page.get_by_role("searchbox").first.fill(id)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")


def act(page: Page, **fields: str) -> None:
    """Fills in what is asked for, looks at the preview, and carries it out."""
    for name, text in {"author": "kim", "reason": "a case", **fields}.items():
        page.locator(f"#f-{name}").fill(text)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("This would happen")).to_be_visible()
    page.get_by_role("button", name="Carry it out").click()
    expect(page.get_by_role("heading", name="It is done")).to_be_visible()


# Each case of the demo


def test_two_people_in_one_profile_are_taken_apart(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "ivan@mail.example")
        expect(page.locator(".findings .warn")).to_contain_text("the app said email ivan@mail.example")
        expect(page.locator(".findings .warn")).to_contain_text("then ivans-phone came to it")
        page.get_by_role("link", name="Take them apart").click()
        expect(page.get_by_label("email ivan@mail.example")).to_be_checked()
        page.get_by_label("device_application_stamp stamp-8").check()
        act(page)
        look(page, "ivan@mail.example")
        expect(page.get_by_text("is kept apart from").first).to_be_visible()
        expect(page.get_by_text("people taken apart by support")).to_be_visible()
        expect(page.get_by_text("by kim: a case")).to_be_visible()


def test_a_tablet_takes_over_from_a_stolen_phone(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "ada")
        expect(page.get_by_text("Active on install adas-phone")).to_be_visible()
        page.get_by_role("row", name="adas-tablet").get_by_role("link", name="Make active").click()
        act(page)
        look(page, "ada")
        expect(page.get_by_text("Active on install adas-tablet")).to_be_visible()
    with opened(browser, address, ADMIN) as page:
        page.goto(f"{address}#/do/set-install-status?installId=adas-phone&status=disabled")
        act(page)


def test_a_mistyped_external_id_is_changed(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "lindas-phone")
        page.get_by_role("link", name="Change external id").click()
        act(page, newExternalId="linda")
        look(page, "linda")
        expect(page.get_by_role("heading", level=1)).to_have_text("linda")
        expect(page.get_by_text("has the external id linda in place of lnida")).to_be_visible()
        # Only tried: another person may have the old one when support ends the hold, which is a minute old at least.
        look(page, "ada")
        page.get_by_role("link", name="Change external id").first.click()
        for name, text in {"newExternalId": "lnida", "author": "kim", "reason": "a case"}.items():
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("heading", name="It cannot be done")).to_be_visible()
        expect(page.get_by_text("EXTERNAL_ID_TAKEN")).to_be_visible()
        page.get_by_label("Held for another").select_option("the hold ends")
        deadline = time.monotonic() + 75
        while time.monotonic() < deadline:
            page.get_by_role("button", name="Preview").click()
            expect(page.get_by_role("heading", name=re.compile("It cannot be done|This would happen"))).to_be_visible()
            if page.get_by_role("heading", name="This would happen").is_visible():
                break
            time.sleep(2)
        expect(page.get_by_role("heading", name="This would happen")).to_be_visible()


@pytest.mark.parametrize(("id", "key", "words", "rule"), [
    ("maries-phone", DESK, "InvalidAuthToken", "V28"),
    ("lars-phone", SUPPORT, "NO_LINKING_IN_PROGRESS", None),
    ("coras-tablet", SUPPORT, "AUTH_CODE_USED", "U4"),
    ("ottos-phone", SUPPORT, "INSTALL_LINKED_TO_OTHER_USER", "L8"),
])
def test_a_refusal_explains_the_case(
    browser: Browser, address: str, id: str, key: str, words: str, rule: str | None
) -> None:
    with opened(browser, address, key) as page:
        look(page, id)
        page.get_by_role("button", name=re.compile("^Refusals")).click()
        entry = page.locator(".entry.bad").first
        expect(entry.locator(".outcome")).to_contain_text(f"refused, {words}")
        if rule:
            expect(entry.locator(".rule")).to_have_text(f"rule {rule}")
        entry.get_by_text("Details").click()
        entry.locator("dd a").first.click()
        expect(page.get_by_text("Command", exact=True)).to_be_visible()
        expect(page.locator(".notice.bad")).to_contain_text(words)
        page.go_back()
        expect(page.get_by_text("What stands out")).to_be_visible()


def test_who_was_erased_is_back_as_somebody_new(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "joan")
        expect(page.get_by_text("What was erased cannot come back").first).to_be_visible()
        expect(page.get_by_text("Active on install joans-phone")).to_be_visible()


def test_a_dead_letter_tells_of_a_key_that_has_ended(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "doras-phone")
        expect(page.get_by_role("row", name="doras-phone")).to_contain_text("active")
        expect(page.get_by_text("no external id")).to_be_visible()
        look(page, "dora")
        expect(page.get_by_role("heading", name="No service of this app knows this id")).to_be_visible()
        page.get_by_role("link", name="dead letter", exact=True).click()
        expect(page.get_by_role("row", name="KEY_EXPIRED")).to_contain_text("link")
        these = "--service link --reason KEY_EXPIRED --app demo"
        expect(page.get_by_text(f"identitybus dlq replay {these} --dry-run", exact=True)).to_be_visible()
        expect(page.get_by_text(f'identitybus dlq replay {these} --reason-text "WHY"', exact=True)).to_be_visible()
        expect(page.get_by_text(re.compile(r"^identitybus dlq show link/\d+@\d+$"))).to_be_visible()


def test_a_restriction_ends(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "rita@mail.example")
        page.get_by_role("link", name="End the restriction").click()
        act(page)
        look(page, "rita@mail.example")
        expect(page.get_by_text("may be used again")).to_be_visible()


def test_a_disabled_install_is_enabled(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "dirks-phone")
        expect(page.get_by_text("is disabled and not active").first).to_be_visible()
    with opened(browser, address, ADMIN) as page:
        page.goto(f"{address}#/do/set-install-status?installId=dirks-phone&status=enabled")
        act(page)


def test_who_uses_a_shared_tablet(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "family-tablet")
        expect(page.get_by_role("heading", level=1)).to_have_text("theo")


def test_an_ordinary_change_of_an_email_is_no_warning(browser: Browser, address: str, api: str) -> None:
    with opened(browser, address) as page:
        names = {"customerid": "emma", "email": "emma@mail.example", "device_application_stamp": "stamp-emma"}
        headers = {"x-mp-key": "demo-sdk", "Content-Type": "application/json"}

        def sent(path: str, body: dict[str, object]) -> dict[str, object]:
            with urlopen(Request(f"{api}{path}", json.dumps(body).encode(), headers)) as answer:
                return dict(json.load(answer))

        mpid = sent("/v1/login", {"environment": "development", "known_identities": names})["mpid"]
        change = {"identity_type": "email", "old_value": names["email"], "new_value": "emma@home.example"}
        sent(f"/v1/{mpid}/modify", {"environment": "development", "identity_changes": [change]})
        sent("/v1/login", {"environment": "development", "known_identities": names | {"email": "emma@home.example"}})
        look(page, "emma")
        expect(page.locator(".findings .calm")).to_contain_text("the app said email emma@home.example")
        expect(page.locator(".findings .warn")).to_have_count(0)


@pytest.mark.parametrize("key", [SUPPORT, MASKED])
def test_the_page_of_a_command_names_its_trace(browser: Browser, address: str, api: str, key: str) -> None:
    with opened(browser, address, key) as page:
        trace = uuid.uuid4().hex
        body = {"environment": "development", "known_identities": {"device_application_stamp": f"stamp-{trace}"}}
        headers = {"x-mp-key": "demo-sdk", "Content-Type": "application/json", "traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        with urlopen(Request(f"{api}/v1/identify", json.dumps(body).encode(), headers)) as answer:
            id = answer.headers["X-Request-Id"]
        page.goto(f"{address}#/command/{id}")
        expect(page.get_by_role("heading", name="identify, decided by sync")).to_be_visible()
        expect(page.locator("dt", has_text="trace").locator("+ dd")).to_have_text(trace)


# Whoever may, erases; whoever is masked, sees less


def test_a_person_is_erased_after_a_preview(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "petra.zorn")
        expect(page.get_by_role("link", name="Change external id")).to_be_visible()
        expect(page.get_by_role("link", name="Erase")).to_have_count(0)
        page.goto(f"{address}#/do/erase-user?userId=1")
        expect(page.get_by_text("it lacks user.delete")).to_be_visible()
    with opened(browser, address, PRIVACY) as page:
        look(page, "petra.zorn")
        page.get_by_role("link", name="Erase").click()
        for name, text in {"author": "kim", "reason": "request 12"}.items():
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_text("This would happen")).to_be_visible()
        expect(page.get_by_text(re.compile("^user [0-9a-f]{24} is erased; by kim: request 12$"))).to_be_visible()
        expect(page.get_by_text("link: persons 1, installs 1")).to_be_visible()
        expect(page.get_by_text("This was done before")).to_have_count(0)
        expect(page.get_by_text("profiles of others with the same external id")).to_be_visible()
        expect(page.get_by_text("copies in back-ups")).to_be_visible()
        # What was tried is gone when the form changes, and cannot be carried out.
        page.locator("#f-reason").fill("request 13")
        expect(page.get_by_role("button", name="Carry it out")).to_have_count(0)
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("button", name="Carry it out").click()
        expect(page.get_by_role("heading", name="It is done")).to_be_visible()
        expect(page.get_by_text("link: persons 1, installs 1")).to_be_visible()
        expect(page.get_by_text("This was done before")).to_have_count(0)
        page.get_by_role("link", name="See the person as it is now").click()
        expect(page.get_by_text("What was erased cannot come back").first).to_be_visible()
        expect(page.get_by_text(re.compile("is erased; by kim: request 13$"))).to_be_visible()
        expect(page.get_by_text("demo-privacy").first).to_be_visible()
        # Who comes second is told so.
        page.get_by_role("row").get_by_text(re.compile("^[0-9a-f]{24}$")).first.wait_for()
        user = page.get_by_role("row").get_by_text(re.compile("^[0-9a-f]{24}$")).first.inner_text()
        page.goto(f"{address}#/do/erase-user?userId={user}")
        for name, text in {"author": "eva", "reason": "request 14"}.items():
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_text("This was done before, on")).to_be_visible()


def test_a_masked_key_finds_and_sees_no_value(browser: Browser, address: str) -> None:
    with opened(browser, address, MASKED) as page:
        look(page, "rita@mail.example")
        expect(page.get_by_role("heading", level=1)).to_have_text("rita")
        expect(page.get_by_role("cell").filter(has_text="r•••@m•••").first).to_be_visible()
        page.get_by_role("button", name=re.compile("^All decisions")).click()
        for summary in page.locator("main summary").all():
            summary.click()
        # The lines for a shell say what was typed; nothing else does.
        told = page.locator("main").inner_text().replace("--key-id demo-trainee rita@mail.example", "")
        assert "rita@mail" not in told.replace('{"id":"rita@mail.example"}', "")
        expect(page.get_by_role("link", name="Take apart")).to_have_count(0)
        look(page, "r•••@m•••")
        expect(page.get_by_text("No service of this app knows this id")).to_be_visible()


def test_what_looks_alike_when_masked_is_drawn_apart(browser: Browser, address: str, api: str) -> None:
    with opened(browser, address, MASKED) as page:
        body = {"environment": "development", "known_identities": {"customerid": "nina", "other": "q-one", "other2": "q-two"}}
        urlopen(Request(f"{api}/v1/login", json.dumps(body).encode(), {"x-mp-key": "demo-sdk", "Content-Type": "application/json"}))
        look(page, "nina")
        expect(page.locator(".node.identity .name")).to_have_text(["nina", "q•••", "q••• (2)"])


# How it is


def test_now_follows_by_itself(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.get_by_role("link", name="Now", exact=True).click()
        for service in ("gateway", "link", "user", "sync", "verification"):
            expect(page.get_by_role("row", name=re.compile(f"^{service} ready"))).to_be_visible(timeout=30_000)


def test_now_says_who_is_not_heard_of(browser: Browser, address: str) -> None:
    """A service without any replica, and none at all."""
    with opened(browser, address) as page:
        def without(route: Route) -> None:
            answer = route.fetch()
            told = answer.json()
            told["replicas"] = [one for one in told["replicas"] if one["service"] != "sync"]
            route.fulfill(response=answer, json=told)

        page.route(re.compile("/admin/v1/status$"), without)
        # The next answer never comes.
        page.route(re.compile(r"/admin/v1/status\?"), lambda route: None)
        page.get_by_role("link", name="Now", exact=True).click()
        expect(page.get_by_text("Nothing is heard of: sync.")).to_be_visible(timeout=30_000)
        expect(page.locator(".tile").filter(has_text="ready")).to_contain_text("4 of 5")


def test_a_conflict_is_a_sentence(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}#/do/change-external-id?userId=000000000000000000000000&newExternalId=x&author=kim&reason=r")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("heading", name="It cannot be done")).to_be_visible()
        expect(page.get_by_text("User was not found")).to_be_visible()


def test_an_empty_answer_says_why_it_is_empty(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        look(page, "nobody-at-all")
        expect(page.get_by_text("It was never seen")).to_be_visible()


def test_a_key_without_the_scope_sees_that_and_nothing_else(browser: Browser, address: str) -> None:
    with opened(browser, address, ADMIN) as page:
        expect(page.locator("main")).to_contain_text("lacks the scope support")
        expect(page.get_by_role("searchbox")).not_to_be_visible()
        page.goto(f"{address}#/person/ada")
        expect(page.get_by_role("heading", level=1)).to_have_text("Person")
        expect(page.locator("main")).to_contain_text("lacks the scope support")
        assert "adas-phone" not in page.content()


def test_a_wrong_key_is_told_so(browser: Browser, address: str) -> None:
    with opened(browser, address, None) as page:
        page.get_by_label("API key").fill("demo-support.wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not check out")
        assert page.evaluate("document.cookie + localStorage.length + sessionStorage.length") == "00"


def test_an_act_without_an_answer_is_not_called_undone(browser: Browser, address: str) -> None:
    """The same act can be asked for again: it is done once."""
    with opened(browser, address, ADMIN) as page:
        page.goto(f"{address}#/do/set-install-status?installId=joans-phone&status=disabled")

        lost: list[int] = []

        def lose(route: Route) -> None:
            answer = route.fetch()
            lost.append(answer.status)
            if len(lost) > 1:
                return route.fulfill(response=answer)
            route.fulfill(status=504, content_type="application/problem+json", body='{"title":"Gateway Timeout","status":504}')

        page.route(re.compile("/set-install-status$"), lose)
        for name, text in {"author": "kim", "reason": "a case"}.items():
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_text("This would happen")).to_be_visible()
        page.get_by_role("button", name="Carry it out").click()
        expect(page.get_by_role("heading", name="It is not known whether it was done")).to_be_visible()
        page.get_by_role("button", name="Ask again for the same").click()
        expect(page.get_by_role("heading", name="It is done")).to_be_visible()
        expect(page.get_by_text("Nothing else changes")).not_to_be_visible()
        page.goto(f"{address}#/do/set-install-status?installId=joans-phone&status=enabled")
        act(page)


def test_only_what_stands_in_the_form_is_carried_out(browser: Browser, address: str) -> None:
    """A preview that comes late is one of what was there before."""
    with opened(browser, address) as page:
        page.goto(f"{address}#/do/make-active?installId=adas-phone")
        held: list[Route] = []
        page.route(re.compile(r"/make-active\?dryRun=true$"), lambda route: held.append(route))
        for name, text in {"author": "kim", "reason": "a case"}.items():
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_text("Trying it in all services")).to_be_visible()
        page.locator("#f-reason").fill("another case")
        assert len(held) == 1
        held[0].continue_()
        expect(page.get_by_role("button", name="Preview")).to_be_enabled()
        expect(page.get_by_text("This would happen")).to_have_count(0)
        expect(page.get_by_role("button", name="Carry it out")).to_have_count(0)


def test_one_signs_in_at_a_time(browser: Browser, address: str) -> None:
    """Else the one's page would stand there with the other one's key."""
    with opened(browser, address, None) as page:
        held: list[Route] = []
        page.route(re.compile("/admin/v1/key$"), lambda route: held.append(route))
        page.get_by_role("button", name=f"Sign in as {SUPPORT}").click()
        expect(page.get_by_role("button", name=f"Sign in as {MASKED}")).to_be_disabled()
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_disabled()
        page.locator("#key").press("Enter")
        assert len(held) == 1
        held[0].continue_()
        expect(page.get_by_text(f"The key {SUPPORT}")).to_be_visible()


def test_a_key_that_ends_signs_out(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.route(re.compile("/admin/v1/people/resolve$"), lambda route: route.fulfill(
            status=401, content_type="application/problem+json", body='{"detail":"The API key has expired.","status":401}'))
        page.get_by_role("searchbox").first.fill("ada")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_line_is_copied_and_said_to_be(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        look(page, "ada")
        page.get_by_text("The same from a shell").click()
        button = page.get_by_role("button", name="Copy the line for the command line")
        button.click()
        expect(button).to_have_text("Copied")
        expect(page.get_by_role("status")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith("identitybus explain --app demo")
        page.context.clear_permissions()


def test_nothing_of_whoever_was_here_stays(browser: Browser, address: str) -> None:
    """Also behind the link that skips to the page."""
    with opened(browser, address) as page:
        page.goto(f"{address}#/do/make-active?installId=adas-phone")
        page.locator("#f-author").fill("Kim the first")
        page.locator("#f-reason").fill("a case")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("button", name="Preview")).to_be_enabled()
        page.get_by_role("link", name="Skip to the page").focus()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.locator("nav")).not_to_be_visible()
        page.get_by_role("button", name=f"Sign in as {SUPPORT}").click()
        expect(page.locator("#f-author")).to_have_value("")


def test_a_key_with_a_character_that_no_key_has(browser: Browser, address: str) -> None:
    with opened(browser, address, None) as page:
        page.get_by_label("API key").fill("demo-support.\u201csecret\u201d")
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_text("No key has such characters")).to_be_visible()


def test_nothing_of_a_producer_runs(browser: Browser, address: str, api: str) -> None:
    body = {"environment": "development", "known_identities": {"customerid": EVIL, "other": EVIL + "2"}}
    headers = {"x-mp-key": "demo-sdk", "Content-Type": "application/json"}
    with opened(browser, address) as page:
        urlopen(Request(f"{api}/v1/login", json.dumps(body).encode(), headers))
        look(page, EVIL)
        expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=alert(1)>\\u202e\\u200b")
        page.locator("details > summary").first.click()
        assert page.locator("main img").count() == 0


# For everybody

PAGES = {
    "sign-in": None, "home": "#/", "person": "#/person/ivan%40mail.example", "empty": "#/person/nobody-at-all",
    "refusals": "#/person/ottos-phone", "command": "#/person/ottos-phone", "masked": "#/person/rita%40mail.example", "now": "#/now", "letters": "#/letters", "acts": "#/do",
    "do": "#/do/make-active?installId=adas-tablet", "erase": "#/do/erase-user?author=kim&reason=r&userId=", "error": "#/do/allow?mpid=1&otherMPID=2&author=kim&reason=r",
}


def user_of(page: Page, address: str, external_id: str) -> str:
    page.goto(f"{address}#/person/{external_id}")
    return page.locator("tbody td .value").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_nobody_is_kept_out(browser: Browser, address: str, name: str, width: int, scheme: str) -> None:
    place = PAGES[name]
    key = {"erase": PRIVACY, "masked": MASKED}.get(name, SUPPORT) if place else None
    with opened(browser, address, key, width, scheme) as page:
        if place:
            page.goto(address + place + (user_of(page, address, "petra.weiss") if name == "erase" else ""))
            expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
        if name == "erase":
            page.get_by_role("button", name="Preview").click()
            expect(page.get_by_role("heading", name="What goes")).to_be_visible()
        if name in ("refusals", "command"):
            page.get_by_role("button", name=re.compile("^Refusals")).click()
            page.locator(".entry.bad").first.get_by_text("Details").click()
        if name == "command":
            page.locator(".entry.bad").first.locator("dd a").first.click()
            expect(page.get_by_text("Command", exact=True)).to_be_visible()
        if name == "now":
            expect(page.locator("tbody tr").first).to_be_visible(timeout=30_000)
        if name == "error":
            page.get_by_role("button", name="Preview").click()
            expect(page.get_by_role("heading", name="It cannot be done")).to_be_visible()
        found = Axe().run(page, options=RULES).response
        assert len(found["passes"]) > 10
        assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"{name}-{scheme}-{width}.png", full_page=True)


def test_by_keyboard_alone(browser: Browser, address: str) -> None:
    """From signing in to a refusal and its command, and to a preview, without a mouse."""
    with opened(browser, address, None) as page:
        page.locator("#key").focus()
        page.keyboard.type("demo-support.demo-secret-demo-support")
        page.keyboard.press("Enter")
        expect(page.get_by_role("searchbox").last).to_be_focused()
        page.keyboard.type("ottos-phone")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_be_focused()

        def tab_to(text: str) -> None:
            for _ in range(80):
                page.keyboard.press("Tab")
                if text in page.evaluate("document.activeElement.textContent"):
                    return
            raise AssertionError(f"no way to {text}")

        tab_to("Refusals")
        page.keyboard.press("Enter")
        tab_to("Details")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Command", exact=True)).to_be_visible()


def test_a_person_is_there_soon(browser: Browser, address: str) -> None:
    """The aim is 300 ms for 95 of 100, of the release build and with a million profiles; here it is looked at with a thousand."""
    with opened(browser, address) as page:
        took = []
        for number in range(20):
            started = time.monotonic()
            page.goto(f"{address}#/person/{'alma bela carl dina elsa'.split()[number % 5]}.{'adler bauer conrad dorn'.split()[number % 4]}")
            expect(page.get_by_text("What stands out")).to_be_visible()
            took.append(time.monotonic() - started)
            page.goto(f"{address}#/do")
            expect(page.get_by_role("heading", name="Do", exact=True)).to_be_visible()
        print(f"\na person: median {statistics.median(took) * 1000:.0f} ms, slowest {max(took) * 1000:.0f} ms")
        assert statistics.median(took) < 2
