"""Policies in the console: a field for each member, what a change widens and does to a sample, and versions."""

import html
import json
from collections.abc import AsyncIterator, Mapping

import pytest
from httpx2 import Response

from app.core.access import Role
from app.core.contracts.policy import Policy
from app.core.contracts.policy_members import members
from tests.integration.console_app import Browser, Console, fields_of, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/policies"
HOSTILE = "<img src=x onerror=alert(1)></textarea><script>alert(2)</script>{{7*7}}"
ARGUMENTS = "/default_arguments"
EXCLUDES = json.dumps({"pii_redaction": {"exclude": ["email"]}})


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def sent(browser: Browser, path: str, changes: Mapping[str, str] | None = None) -> Response:
    """Send the form of the page with some of its fields changed."""
    page = await browser.open(PAGE)
    browser.shown = await browser.send(path, {**fields_of(page), **(changes or {})})
    return browser.shown


async def test_every_member_of_the_model_has_a_field_with_its_meaning(console: Console) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        page = await browser.open(PAGE)
    fields, text = fields_of(page), text_of(page)
    document = Policy().model_dump(mode="json")
    for entry in members():
        pointer = "/" + entry.path.replace(".", "/")
        assert entry.meaning.replace("`", "").split()[-1].strip(".,;:") in text, entry.path
        # Members of the policy that hold others are sections; what those hold is a field, be it an object in JSON.
        is_section = isinstance(entry.default, dict) and entry.default and "." not in entry.path
        if "[]" in entry.path or "*" in entry.path or is_section or entry.path.count(".") > 1:
            continue
        assert pointer in fields, pointer
        value = document
        for step in entry.path.split("."):
            value = value[step]
        shown = fields[pointer]
        assert (json.loads(shown) if shown else None) == value, pointer


async def test_an_untouched_form_changes_nothing(console: Console) -> None:
    policy = {
        "limits": {"burst": 7, "requests_per_second": 0.5},
        "grants": [{"roles": ["invoker"], "groups": ["sales"]}],
        "retention": {"audit_days": 90},
        "default_arguments": {"pii_redaction": {"deny_list": [HOSTILE, "\u00e9"]}},
    }
    assert (await console.rest.put_policy(policy)).status_code == 200
    async with console.browsing(Role.OPERATOR) as browser:
        page = await sent(browser, f"{PAGE}/preview")
        assert "Nothing differs." in text_of(page)
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert HOSTILE in html.unescape(page.text)
        assert (await sent(browser, PAGE)).status_code == 303
    _, stored = await console.rest.services.policies.get(console.rest.tenant)
    assert stored == Policy.model_validate(policy)


async def test_a_change_that_widens_is_shown_on_a_sample_and_stored_only_when_it_is_meant(
    console: Console,
) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        changes = {ARGUMENTS: EXCLUDES, "sample": f"Mail jane@example.org {HOSTILE}"}
        page = await sent(browser, f"{PAGE}/preview", changes)
        text = text_of(page)
        assert page.status_code == 200
        assert f"{ARGUMENTS}/pii_redaction/exclude : an argument that may hide less" in text
        assert "1 email would no longer be found" in text
        assert "[EMAIL_1]" in text
        assert "<script>alert" not in page.text
        form = fields_of(page)
        assert form[ARGUMENTS] == EXCLUDES
        refused = await browser.send(PAGE, form)
        assert (refused.status_code, "tick that this is meant" in text_of(refused)) == (422, True)
        assert (await console.rest.services.policies.get(console.rest.tenant))[0] == 0
        assert (await browser.send(PAGE, {**form, "sure": "on"})).status_code == 303
    version, policy = await console.rest.services.policies.get(console.rest.tenant)
    assert (version, policy.default_arguments) == (1, json.loads(EXCLUDES))


async def test_a_change_that_narrows_is_stored_at_once_and_compared_afterwards(console: Console) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        page = await sent(browser, f"{PAGE}/preview", {"/limits/burst": "5", "sample": ""})
        assert "It widens nothing" in text_of(page)
        assert "Today" not in text_of(page)
        assert (await browser.send(PAGE, fields_of(page))).status_code == 303
        shown = await browser.open(f"{PAGE}/difference?before=0&after=1")
        assert "/limits/burst 300 5" in text_of(shown)
        again = await browser.open(f"{PAGE}/difference")
        assert "/limits/burst 300 5" in text_of(again)
        assert (await browser.open(f"{PAGE}/difference?before=9&after=1")).status_code == 404
        assert "Version 1 holds" in text_of(await browser.open(PAGE))


async def test_a_change_on_an_older_version_is_refused_with_what_was_typed(console: Console) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        form = fields_of(await browser.open(PAGE))
        assert (await console.rest.put_policy({"limits": {"burst": 9}})).status_code == 200
        late = await browser.send(PAGE, {**form, "/limits/in_flight": "3"})
        assert (late.status_code, "changed meanwhile" in text_of(late)) == (409, True)
        assert fields_of(late)["/limits/in_flight"] == "3"
    _, policy = await console.rest.services.policies.get(console.rest.tenant)
    assert (policy.limits.burst, policy.limits.in_flight) == (9, 64)


@pytest.mark.parametrize(
    ("pointer", "typed", "message"),
    [
        ("/limits/burst", "0", "wrong at /limits/burst"),
        ("/limits/burst", "", "wrong at /limits/burst"),
        ("/grants", "[{]", "wrong at /grants: it is not JSON"),
        ("/grants", '[{"nose": 1}]', "There is no such member"),
        ("/gateway/mode", '"ignore"', "a choice that there is not"),
        ("/allowed_middlewares", '["nose"]', "no middleware of that name"),
        ("door", "window", "a choice that there is not"),
        ("sample", "x" * 20_001, "1 to 20000 characters"),
        ("expected_version", "-1", "on which version"),
    ],
)
async def test_what_is_no_policy_is_pointed_at(
    console: Console, pointer: str, typed: str, message: str
) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        form = fields_of(await browser.open(PAGE))
        answer = await browser.send(f"{PAGE}/preview", {**form, pointer: typed})
        assert (answer.status_code, message.lower() in text_of(answer).lower()) == (422, True)


async def test_only_operators_see_policies(console: Console) -> None:
    async with console.browsing(Role.AUDITOR, Role.KEY_CUSTODIAN) as browser:
        assert PAGE not in (await browser.open("/console/")).text
        for path in (PAGE, f"{PAGE}/difference"):
            assert (await browser.open(path)).status_code == 403
        await browser.open("/console/")
        for path in (PAGE, f"{PAGE}/preview"):
            assert (await browser.send(path, {"expected_version": "0"})).status_code == 403
    assert (await console.rest.services.policies.get(console.rest.tenant))[0] == 0
