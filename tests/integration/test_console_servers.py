"""Servers in the console: from the first listing to an approval, a change with both its forms, a pause."""

import html
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import Response

from app.core.access import Caller, Role
from app.services.access.access import HOST
from app.services.access.traffic import Traffic
from app.services.catalog.catalogs import CatalogService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.group_trees import GroupTrees
from app.services.catalog.listing import ListingService
from app.services.previews.catalogs import ClientCatalogs
from app.services.servers.server_admin import ServerService
from app.services.servers.upstreams import UpstreamService
from app.store.changes import Changes
from tests.integration.console_app import Browser, Console, open_console, text_of
from tests.integration.serving_setup import LOOPBACK, forget_servers
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/servers/alpha"
HOSTILE = "Echoes </pre><script>alert(1)</script> {{7*7}}"
PICK = re.compile(r'name="(pick-\d+)" value="([^"]+)"')


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_console(database_url))
        database, audit = opened.rest.vault.database, opened.rest.vault.audit
        changes = await stack.enter_async_context(Changes(database).running())
        upstreams = UpstreamService(database, audit, LOOPBACK)
        changes.subscribe(upstreams.changed)
        servers, state = ServerService(database, audit, upstreams), opened.rest.app.state
        routes = state.route_services
        catalogs = CatalogService(
            upstreams, GroupTrees(database), routes.concerns, DescriptionService(database, audit)
        )
        listing = ListingService(catalogs, routes.policies, audit, Traffic())
        seen = ClientCatalogs(routes.access, listing, routes.concerns)
        state.console_services = replace(state.console_services, servers=servers, client_catalogs=seen)
        state.route_services = replace(routes, servers=servers, upstreams=upstreams, client_catalogs=seen)
        await stack.enter_async_context(upstreams.running())
        stack.push_async_callback(forget_servers, database_url, opened.rest.tenant)
        yield opened


@pytest.fixture
def script() -> ScriptedServer:
    made = ScriptedServer("alpha")
    made.tools["echo"]["description"] = HOSTILE
    return made


@pytest.fixture
def url(script: ScriptedServer) -> Iterator[str]:
    with serving_http(script) as served:
        yield served


async def added(console: Console, url: str) -> None:
    body = {"name": "alpha", "settings": {"url": url, "headers": {"X-Key": "c4nary-Sesame"}}}
    answer = await console.rest.call("POST", "/api/v1/servers", body, roles=[Role.OPERATOR])
    assert answer.status_code == 201, answer.text


def picks(page: Response) -> dict[str, str]:
    """Return the fields that approve definitions, by the definitions' names."""
    fields = [(field, html.unescape(value)) for field, value in PICK.findall(page.text)]
    return {json.loads(value)[1]: f"{field} {value}" for field, value in fields}


async def listed_now(browser: Browser) -> Response:
    await browser.open(PAGE)
    browser.shown = await browser.send(f"{PAGE}/test")
    assert browser.shown.status_code == 200, text_of(browser.shown)
    return browser.shown


async def approved(browser: Browser, pick: str) -> Response:
    field, _, value = pick.partition(" ")
    return await browser.send(f"{PAGE}/approve", {field: value})


async def test_a_definition_is_approved_in_the_form_that_was_shown(
    console: Console, script: ScriptedServer, url: str
) -> None:
    await added(console, url)
    async with console.browsing(Role.OPERATOR) as browser:
        home = await browser.open("/console/")
        assert "nothing of it is served until it is approved" in text_of(home)
        listed = await browser.open("/console/servers")
        assert "pending" in text_of(listed)
        assert "Not listed yet" in text_of(await browser.open(PAGE))
        page = await listed_now(browser)
        assert {"echo", "add"} <= picks(page).keys()
        assert "<script>alert" not in page.text
        assert "c4nary" not in page.text
        assert "alert(1)" in html.unescape(page.text)
        stale = picks(page)["add"]
        answer = await approved(browser, picks(page)["echo"])
        assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
        page = await listed_now(browser)
        assert "echo" not in picks(page)
        assert "What changed" not in page.text
        script.tools["echo"]["description"] = "Echoes, and more."
        script.tools["add"]["description"] = "Adds, and more."
        page = await listed_now(browser)
        assert "echo" in picks(page)
        assert all(
            each in html.unescape(page.text) for each in (HOSTILE, "Echoes, and more.", "What changed")
        )
        refused = await approved(browser, stale)
        assert refused.status_code == 409
        assert (await approved(browser, picks(page)["echo"])).status_code == 303
        assert "echo" not in picks(await listed_now(browser))


async def test_a_server_is_paused_and_resumed(console: Console, url: str) -> None:
    await added(console, url)
    async with console.browsing(Role.OPERATOR) as browser:
        await browser.open(PAGE)
        assert (await browser.send(f"{PAGE}/pause")).status_code == 303
        assert "Resume" in text_of(await browser.open(PAGE))
        assert (await browser.send(f"{PAGE}/resume")).status_code == 303
        assert "Pause" in text_of(await browser.open(PAGE))
        nothing = await browser.send(f"{PAGE}/approve")
        assert (nothing.status_code, "Pick at least one" in text_of(nothing)) == (422, True)
        for wrong in ("[]", "x", '["nose","echo","0"]', "{}"):
            answer = await browser.send(f"{PAGE}/approve", {"pick-1": wrong})
            assert answer.status_code == 422, wrong
        assert (await browser.open("/console/servers/beta")).status_code == 404


async def test_only_operators_see_servers(console: Console, url: str) -> None:
    await added(console, url)
    async with console.browsing(Role.AUDITOR) as browser:
        home = await browser.open("/console/")
        assert "alpha" not in home.text
        for path in ("/console/servers", PAGE):
            assert (await browser.open(path)).status_code == 403
        await browser.open("/console/")
        for act in ("test", "approve", "pause", "resume"):
            assert (await browser.send(f"{PAGE}/{act}")).status_code == 403, act


async def test_a_server_is_trusted_only_where_that_is_meant_and_keeps_its_approvals_and_secrets(
    console: Console, url: str
) -> None:
    await added(console, url)
    async with console.browsing(Role.OPERATOR) as browser:
        page = await listed_now(browser)
        await approved(browser, picks(page)["echo"])
        await browser.open(PAGE)
        for form in ({"definitions": "trusted"}, {"definitions": "nose", "sure": "on"}, {}):
            assert (await browser.send(f"{PAGE}/trust", form)).status_code == 422, form
        assert "trusted: its changes" not in text_of(await browser.open(PAGE))
        trusted = await browser.send(f"{PAGE}/trust", {"definitions": "trusted", "sure": "on"})
        assert (trusted.status_code, trusted.headers["location"]) == (303, PAGE)
        shown = text_of(await browser.open(PAGE))
        assert "trusted: its changes" in shown
        assert "pending" not in shown.split("What it offers")[0]
        back = await browser.send(f"{PAGE}/trust", {"definitions": "pinned"})
        assert back.status_code == 303
        assert "trusted: its changes" not in text_of(await browser.open(PAGE))
    kept = await console.rest.call("GET", "/api/v1/servers/alpha", roles=[Role.OPERATOR])
    assert kept.json()["settings"]["headers"] == {"X-Key": None}
    operator = Caller(console.rest.tenant, "0123abcd", frozenset({Role.OPERATOR}))
    detail = await console.rest.app.state.route_services.servers.get(operator, "alpha")
    assert "c4nary-Sesame" in str(detail.record.entry.settings.model_dump(mode="json")["headers"])
    async with console.browsing(Role.AUDITOR) as browser:
        await browser.open("/console/")
        assert (await browser.send(f"{PAGE}/trust", {"definitions": "pinned"})).status_code == 403


async def served(console: Console, url: str) -> None:
    """Add the server and approve all that it offers, then wait for nothing: the catalog is built when it is read."""
    await added(console, url)
    async with console.browsing(Role.OPERATOR) as browser:
        page = await listed_now(browser)
        fields = dict(pick.split(" ", 1) for pick in picks(page).values())
        assert (await browser.send(f"{PAGE}/approve", fields)).status_code == 303


async def test_an_operator_sees_what_a_client_sees_and_what_keeps_the_rest_from_it(
    console: Console, url: str
) -> None:
    await served(console, url)
    rest, access = console.rest, console.rest.services.access
    made = await access.create_key(HOST, [Role.INVOKER], tenant=rest.tenant, name=HOSTILE)
    other = await access.create_key(HOST, [Role.INVOKER], tenant=rest.tenant, name="other")
    idle = await access.create_key(HOST, [Role.ERASER], tenant=rest.tenant, name="idle")
    tool = {"kind": "tool", "name": "alpha__echo", "server": "alpha"}
    group = {"name": "speech", "description": HOSTILE, "members": [tool]}
    assert (await rest.call("PUT", "/api/v1/groups/speech", group)).status_code in (200, 201)
    policy = {
        "grants": [{"keys": [made.key.id], "members": [{**tool, "name": "alpha__*"}]}],
        "disclosure": {"keys": {made.key.id: "staged"}},
    }
    assert (await rest.put_policy(policy)).status_code == 200

    async def over_rest(key_id: str, query: str = "") -> dict[str, Any]:
        path = f"/api/v1/clients/{key_id}/catalog{query}"
        answer = await rest.call("GET", path, roles=[Role.OPERATOR])
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    mine = await over_rest(made.key.id)
    tools = {row["name"]: row for row in mine["primitives"]}
    assert tools["alpha__echo"]["staged"]
    assert tools["alpha__echo"]["groups"] == ["speech"]
    assert mine["listed"] == len(tools) > 1
    narrowed = await over_rest(made.key.id, "?group=speech")
    assert [row["name"] for row in narrowed["primitives"]] == ["alpha__echo"]
    assert narrowed["withheld"] == mine["listed"] + mine["withheld"] - 1
    theirs = await over_rest(other.key.id)
    assert (theirs["primitives"], theirs["listed"]) == ([], 0)
    assert theirs["withheld"] == mine["listed"] + mine["withheld"]
    assert "neither the role invoker" in (await over_rest(idle.key.id))["refused"]
    missing = await rest.call("GET", "/api/v1/clients/ffffffff/catalog", roles=[Role.OPERATOR])
    assert missing.status_code == 404
    path = "/console/servers/clients/catalog"
    async with console.browsing(Role.OPERATOR) as browser:
        page = await browser.open(f"{path}?key={made.key.id}")
        assert f"{HOSTILE} sees {mine['listed']}" in text_of(page)
        assert "alpha__echo tool alpha short first speech" in text_of(page)
        assert "<script>alert" not in page.text
        assert "Nothing." in text_of(await browser.open(f"{path}?key={other.key.id}"))
        assert (await browser.open(f"{path}?key=ffffffff")).status_code == 422
    async with console.browsing(Role.AUDITOR) as browser:
        assert (await browser.open(path)).status_code == 403


async def test_a_concern_keeps_what_it_hides_out_of_the_lists_alone(console: Console, url: str) -> None:
    await served(console, url)
    rest = console.rest
    made = await rest.services.access.create_key(HOST, [Role.INVOKER], tenant=rest.tenant, name="client")
    region = {"name": "region", "description": "Where it runs", "values": ["eu", "us"], "default": "us"}
    assert (await rest.call("PUT", "/api/v1/concerns/region", region)).status_code in (200, 201)
    mapping = {"kind": "tool", "name": "alpha__echo", "concerns": {"region": "us"}}
    assert (await rest.call("PUT", "/api/v1/concern-mappings", mapping)).status_code in (200, 201)
    path = f"/api/v1/clients/{made.key.id}/catalog"
    free = (await rest.call("GET", path)).json()
    bound = (await rest.call("GET", f"{path}?concern=region%3Deu")).json()
    assert (free["filtered"], bound["filtered"]) == (0, 1)
    assert bound["configuration"] == {"region": "eu"}
    hidden = [row["name"] for row in bound["primitives"] if not row["listed"]]
    assert hidden == ["alpha__echo"]
    async with console.browsing(Role.OPERATOR) as browser:
        query = f"?key={made.key.id}&concerns=region%3Deu"
        page = await browser.open(f"/console/servers/clients/catalog{query}")
        assert "1 it may call, but a concern keeps them out of its lists." in text_of(page)
        wrong = await browser.open(f"/console/servers/clients/catalog?key={made.key.id}&concerns=region")
        assert (wrong.status_code, "name=value" in text_of(wrong)) == (422, True)
