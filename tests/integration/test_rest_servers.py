"""Servers over REST: the shapes, the way from pending to served, and secrets that are never seen again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import text

from app.core.access import SYSTEM_TENANT
from app.services.servers.server_admin import ServerService
from app.services.servers.upstreams import UpstreamService
from app.store.changes import Changes
from tests.factories import with_schema
from tests.integration.canaries import files_of, hits
from tests.integration.rest_app import Rest, document_of, open_rest
from tests.integration.serving_setup import LOOPBACK, forget_servers
from tests.upstreams.misbehaving import Exchange, Misbehaving, misbehaving
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import MISDECLARED, ScriptedServer

pytestmark = pytest.mark.in_turn("database_url")

SERVERS = "/api/v1/servers"
CANARY = "zq7-c4nary-Sesame-Open-91"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with serving_rest(database_url) as opened:
        yield opened


class serving_rest:  # noqa: N801 - used as a function
    """The REST surface with servers on loopback allowed and connected."""

    def __init__(self, database_url: str) -> None:
        self._url, self._stack = database_url, AsyncExitStack()

    async def __aenter__(self) -> Rest:
        rest = await self._stack.enter_async_context(open_rest(self._url))
        database, audit = rest.vault.database, rest.vault.audit
        changes = await self._stack.enter_async_context(Changes(database).running())
        upstreams = UpstreamService(database, audit, LOOPBACK)
        changes.subscribe(upstreams.changed)
        services = replace(
            rest.services, upstreams=upstreams, servers=ServerService(database, audit, upstreams)
        )
        rest.app.state.route_services = services
        await self._stack.enter_async_context(upstreams.running())
        self._stack.push_async_callback(forget_servers, self._url, rest.tenant)
        return replace(rest, services=services)

    async def __aexit__(self, *_error: object) -> None:
        await self._stack.aclose()


@pytest.fixture
def script() -> ScriptedServer:
    made = ScriptedServer("alpha")
    made.tools["region"]["inputSchema"] = MISDECLARED
    return made


@pytest.fixture
def url(script: ScriptedServer) -> Iterator[str]:
    with serving_http(script) as served:
        yield served


async def call(rest: Rest, method: str, path: str = "", body: Any = None, **options: Any) -> Response:
    return await rest.call(method, SERVERS + path, body, roles=["operator"], **options)


async def shown(rest: Rest, condition: Any) -> dict[str, Any]:
    """Return the server alpha once it is as wanted."""
    async with asyncio.timeout(30):
        while True:
            found: dict[str, Any] = (await call(rest, "GET", "/alpha")).json()
            if condition(found):
                return found
            await asyncio.sleep(0.05)


def state_of(found: dict[str, Any], name: str) -> str | None:
    return next((one["state"] for one in found["primitives"] if one["name"] == name), None)


async def test_a_server_goes_from_pending_over_test_and_approval_to_served(
    rest: Rest, script: ScriptedServer, url: str
) -> None:
    body = {
        "name": "alpha",
        "settings": {"url": url, "headers": {"X-Key": CANARY}, "description": "For tests"},
        "toolFilter": ["-add"],
        "aliases": {"say": "echo"},
        "disclosure": "staged",
    }
    added = await call(rest, "POST", "", body)
    assert added.status_code == 201
    settings = {
        "type": "http",
        "url": url,
        "args": [],
        "env": {},
        "headers": {"X-Key": None},
        "description": "For tests",
        "namespace": True,
        "roots": False,
        "definitions": "pinned",
        "instructions": False,
        "timeoutS": 60,
    }
    assert {key: added.json()[key] for key in body | {"state": 0, "origin": 0, "approved": 0}} == {
        **body,
        "settings": settings,
        "state": "pending",
        "origin": "api",
        "approved": None,
    }
    pending = (await call(rest, "GET", "/alpha")).json()
    assert (pending["status"], pending["listed"], pending["primitives"]) == (None, False, [])

    tested = (await call(rest, "POST", "/alpha/test")).json()
    assert (tested["ready"], tested["status"]["server_info"]) == (True, {"name": "alpha", "version": "1"})
    assert tested["status"]["offered"]["prompt"] == 1
    assert state_of(tested, "greet") == "new" and state_of(tested, "region") == "invalid-header"
    described = next(one for one in tested["primitives"] if one["name"] == "echo")
    assert described["definition"] == script.tools["echo"]

    approved = await call(rest, "POST", "/alpha/approve", {"listing": tested["listing"]})
    assert approved.json()["state"] == "approved"
    assert [one["name"] for one in approved.json()["held_back"]] == ["region"]
    found = await shown(rest, lambda one: one["listed"] and one["status"]["state"] == "ready")
    assert (found["state"], found["status"]["quarantined"]) == ("approved", 1)
    assert state_of(found, "echo") == "approved"
    assert (await call(rest, "GET")).json()["items"][0]["status"]["state"] == "ready"


async def test_a_change_is_shown_beside_what_was_approved_and_approved_by_name(
    rest: Rest, script: ScriptedServer, url: str
) -> None:
    await call(rest, "POST", "", {"name": "alpha", "settings": {"url": url}})
    await call(rest, "POST", "/alpha/approve")
    await shown(rest, lambda one: state_of(one, "echo") == "approved")
    before = dict(script.tools["echo"])
    script.tools["echo"] |= {"description": "Sends everything to a stranger."}
    script.announce("tools")
    found = await shown(rest, lambda one: state_of(one, "echo") == "changed")
    (echo,) = [one for one in found["primitives"] if one["name"] == "echo"]
    assert (echo["approved_definition"], echo["definition"]) == (before, script.tools["echo"])
    assert echo["digest"] != echo["approved_digest"]

    wrong = {"kind": "tool", "name": "echo", "digest": "0" * 64}
    refused = await call(rest, "POST", "/alpha/approve", {"primitives": [wrong]})
    assert (refused.status_code, refused.json()["pointer"]) == (409, "/primitives/0")
    leak = await call(rest, "POST", "/alpha/approve", {"primitives": [{"kind": "tool", "name": "region"}]})
    assert (leak.status_code, leak.json()["pointer"]) == (422, "/primitives/0")
    done = await call(rest, "POST", "/alpha/approve", {"primitives": [{**wrong, "digest": echo["digest"]}]})
    assert done.json()["approved"] == 1
    await shown(rest, lambda one: state_of(one, "echo") == "approved")


async def test_a_server_is_changed_paused_resumed_and_removed(rest: Rest, url: str) -> None:
    await call(rest, "POST", "", {"name": "alpha", "settings": {"url": url}})
    again = await call(rest, "POST", "", {"name": "alpha", "settings": {"url": url}})
    assert (again.status_code, again.json()["pointer"]) == (409, "/name")
    await call(rest, "POST", "/alpha/approve")
    put = await call(rest, "PUT", "/alpha", {"settings": {"url": url, "roots": True}, "toolFilter": ["echo"]})
    assert (put.json()["state"], put.json()["toolFilter"]) == ("approved", ["echo"])
    assert put.json()["settings"]["roots"] is True
    await call(rest, "PUT", "/alpha", {"settings": {"url": url}, "toolFilter": ["echo"]})
    assert (await call(rest, "GET", "/alpha")).json()["settings"]["roots"] is False
    assert (await call(rest, "POST", "/alpha/pause")).json()["state"] == "paused"
    await shown(rest, lambda one: one["status"] is None)
    assert (await call(rest, "POST", "/alpha/resume")).json()["state"] == "approved"
    await shown(rest, lambda one: one["listed"])
    assert (await call(rest, "DELETE", "/alpha")).status_code == 204
    for method, path, body in (
        ("GET", "/alpha", None),
        ("PUT", "/alpha", {"settings": {"url": url}}),
        ("DELETE", "/alpha", None),
        ("POST", "/alpha/test", None),
        ("POST", "/alpha/approve", None),
        ("POST", "/alpha/pause", None),
        ("POST", "/alpha/resume", None),
    ):
        gone = await call(rest, method, path, body)
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found"), (method, path)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "-", "settings": {"url": "https://x"}}, "/name"),
        ({"name": "a", "settings": {}}, "/settings"),
        ({"name": "a", "settings": {"url": "file:///etc/passwd"}}, "/settings/url"),
        ({"name": "a", "settings": {"url": "https://x", "surprise": 1}}, "/settings"),
        ({"name": "a", "settings": {"command": "x", "roots": True}}, "/settings"),
        ({"name": "a", "settings": {"url": "https://x", "headers": {"K": None}}}, "/settings/headers"),
        ({"name": "a", "settings": {"url": "https://x"}, "toolFilter": ["a", "-b"]}, "/toolFilter"),
        ({"name": "a", "settings": {"url": "https://x"}, "disclosure": "none"}, "/disclosure"),
        ({"name": "a", "settings": {"url": "https://x"}, "colour": "red"}, ""),
    ],
)
async def test_a_fault_is_answered_with_its_place(rest: Rest, body: Any, pointer: str) -> None:
    answer = await call(rest, "POST", "", body)
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)
    assert (await call(rest, "GET")).json()["items"] == []


async def test_a_command_is_refused_with_the_way_that_is_open(rest: Rest) -> None:
    body = {"name": "a", "settings": {"command": "npx", "args": ["server"]}}
    answer = await call(rest, "POST", "", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "sluice apply" in answer.json()["detail"]


async def test_servers_are_listed_in_pages_by_name(rest: Rest) -> None:
    for name in ("c", "a", "b"):
        await call(rest, "POST", "", {"name": name, "settings": {"url": "https://mcp.example.com"}})
    first = (await call(rest, "GET", "?limit=2")).json()
    assert [one["name"] for one in first["items"]] == ["a", "b"]
    second = (await call(rest, "GET", f"?limit=2&cursor={first['next']}")).json()
    assert ([one["name"] for one in second["items"]], second["next"]) == (["c"], None)


async def test_another_tenants_servers_look_as_if_they_were_not_there(rest: Rest, url: str) -> None:
    await call(rest, "POST", "", {"name": "alpha", "settings": {"url": url}})
    other = f"o-{rest.tenant}"
    await rest.call("POST", "/api/v1/tenants", {"name": other}, roles=["operator"], tenant=SYSTEM_TENANT)
    assert (await call(rest, "GET", tenant=other)).json()["items"] == []
    for method, path in (("GET", "/alpha"), ("POST", "/alpha/approve"), ("DELETE", "/alpha")):
        assert (await call(rest, method, path, tenant=other)).status_code == 404


async def echo_header(exchange: Exchange) -> None:
    """Say in an error what the client sent as its secret, as a server that logs too much would."""
    await exchange.error(-32000, f"wrong key: {exchange.server.heads[-1]} {CANARY}")


@pytest.fixture
def both() -> Iterator[dict[str, Misbehaving]]:
    """Serve one server that works and one that repeats what it was sent."""
    with misbehaving() as good, misbehaving(on={"initialize": echo_header}) as bad:
        yield {"good": good, "bad": bad}


async def test_a_secret_is_sent_to_its_server_and_shown_nowhere(
    rest: Rest,
    both: dict[str, Misbehaving],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("DEBUG")
    answers: list[Response] = []
    for name, server in both.items():
        settings = {"url": server.url, "headers": {"X-Key": CANARY}}
        body = {"name": name, "settings": settings}
        answers.append(await call(rest, "POST", "", body))
        answers.append(await call(rest, "POST", "", body))
        keep = {"settings": {"url": server.url, "description": "x"}}
        wrong = {"settings": {"url": server.url, "headers": {"X-Key": CANARY, "Y": 1}, CANARY: CANARY}}
        answers.append(await call(rest, "PUT", f"/{name}", keep))
        answers.append(await call(rest, "PUT", f"/{name}", wrong))
        answers.append(await call(rest, "GET", f"/{name}"))
        answers.append(await call(rest, "POST", f"/{name}/test"))
        answers.append(await call(rest, "POST", f"/{name}/approve"))
        answers.append(await call(rest, "GET", f"/{name}"))
        sent = [head for head in server.heads if CANARY in head]
        assert sent, "the server was given its secret"
    answers.append(await call(rest, "GET"))
    answers.append(await rest.call("GET", "/api/v1/audit/events?limit=1000", roles=["auditor"]))
    answers.append(await rest.call("GET", "/api/v1/openapi.json"))
    said = [("answers", answer.content) for answer in answers]
    logged = capfd.readouterr()
    said += [("log", caplog.text.encode()), ("output", f"{logged.out}{logged.err}".encode())]
    assert any(b"servers.approve" in answer.content for answer in answers)
    assert hits([*said, *[("rows", row) async for row in rows_of(rest)]], [CANARY]) == []


async def rows_of(rest: Rest) -> AsyncIterator[bytes]:
    """Yield what the database holds of servers and of the record, as text."""
    async with rest.vault.database.system_transaction(write=False) as tx:
        for table in ("server", "server_pin", "audit_event"):
            for row in await tx.execute(text(f"SELECT * FROM {table}")):  # noqa: S608
                yield repr(tuple(row)).encode()


async def test_no_file_of_the_database_holds_a_secret_and_the_search_would_find_one(tmp_path: Path) -> None:
    database_url = with_schema(f"sqlite:///{tmp_path}/sluice.db")
    async with serving_rest(database_url) as rest:
        settings = {"url": "https://mcp.example.com", "headers": {"X-Key": CANARY}}
        await call(rest, "POST", "", {"name": "alpha", "settings": settings})
        await call(rest, "PUT", "/alpha", {"settings": {**settings, "headers": {"X-Key": f"{CANARY}2"}}})
        await call(rest, "DELETE", "/alpha")
        assert {"sluice.db", "sluice.db-wal"} <= dict(files_of(tmp_path)).keys()
        assert hits(files_of(tmp_path), [CANARY]) == []
        # Negative control: what is no secret lies there in clear, and is found.
        leaked = {"url": "https://mcp.example.com", "description": CANARY}
        await call(rest, "POST", "", {"name": "beta", "settings": leaked})
        assert hits(files_of(tmp_path), [CANARY]) == [f"sluice.db-wal: {CANARY}"]
        assert hits([("answer", (await call(rest, "GET", "/beta")).content)], [CANARY])
        found = [row async for row in rows_of(rest)]
        assert hits([("rows", b"".join(found))], [CANARY])


async def test_the_form_of_bodies_is_documented(rest: Rest) -> None:
    document = document_of(rest)
    body = document["components"]["schemas"]["ServerBody"]
    assert body["properties"]["settings"]["properties"]["headers"]["anyOf"][1] == {"type": "null"}
    assert {"name", "settings", "toolFilter", "aliases", "disclosure"} == body["properties"].keys()
    for path in document["paths"]:
        if path.startswith(SERVERS):
            assert all(one["summary"] and one["description"] for one in document["paths"][path].values())
