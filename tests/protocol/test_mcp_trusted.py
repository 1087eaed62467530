"""Servers that an operator trusts: what they change is served at once, on record, except what could harm unseen."""

import asyncio
from typing import Any

import httpx2

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.services.audit.audit import AuditQuery
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import REVISIONS
from tests.protocol.passing_service import listed, opened
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

AUDITOR = Caller(DEFAULT_TENANT, "0000000e", frozenset({Role.AUDITOR}))
HARMLESS = {"type": "object", "properties": {"page": {"type": "integer"}}}
MARKED = {"type": "object", "properties": {"q": {"type": "string", "x-mcp-header": "Query"}}}


def offering() -> ScriptedServer:
    script = ScriptedServer()
    script.add_tool("pages", annotations={"readOnlyHint": True, "destructiveHint": False})
    return script


async def change(script: ScriptedServer) -> None:
    """Change a tool in every way, add tools, and announce it."""
    script.tools["echo"] |= {"description": "Now other words.", "inputSchema": HARMLESS}
    script.tools["pages"] = {**script.tools["pages"], "annotations": {"readOnlyHint": False}}
    script.tools["add"] = {**script.tools["add"], "inputSchema": MARKED}
    script.add_tool("late")
    script.add_tool("marked", schema=MARKED)
    script.add_tool("taken")
    await asyncio.to_thread(script.announce)


async def shown(url: str, revision: str, condition: Any) -> dict[str, Any]:
    """Return the tools by name once they are as wanted, or as they are after a while."""
    async with opened(url, revision) as wire:
        for _ in range(200):
            tools = {one["name"]: one for one in await listed(wire, "tools/list")}
            if condition(tools):
                break
            await asyncio.sleep(0.05)
        return tools


async def test_a_trusted_server_serves_its_changes_on_record_and_a_pinned_one_does_not(tmp_path):
    trusted, pinned, other = offering(), offering(), ScriptedServer()
    other.add_tool("taken")
    with serving_http(trusted) as one, serving_http(pinned) as two, serving_http(other) as three:
        servers = {
            "alpha": {"url": one, "definitions": "trusted", "namespace": False},
            "beta": {"url": two},
            "gamma": {"url": three},
        }
        declared = {"aliases": {"taken": "gamma__taken"}}
        async with aggregated(tmp_path, servers, declared=declared) as (url, app):
            await asyncio.gather(change(trusted), change(pinned))
            for revision in REVISIONS:
                tools = await shown(url, revision, lambda tools: "late" in tools)
                assert tools["echo"]["description"] == "Now other words."
                assert tools["echo"]["inputSchema"] == HARMLESS
                assert {"late", "taken", "refuse"} <= set(tools)
                assert {"pages", "add", "marked"}.isdisjoint(tools)
                assert {"beta__echo", "beta__late", "beta__pages"}.isdisjoint(tools)
                assert "beta__refuse" in tools
            async with opened(url, REVISIONS[0]) as wire:
                call = await wire.call("tools/call", name="taken", arguments={})
                assert other.calls[-1] == ("tools/call", "taken") and call.status == 200
            reviews = app.state.services.upstreams.reviews(DEFAULT_TENANT, "alpha")
            page = await app.state.services.audit.query(AUDITOR, AuditQuery(action="servers.trust"))

    states = {one.name: one.state.value for one in reviews if one.quarantined}
    assert states == {"pages": "changed", "add": "changed", "marked": "new", "taken": "new"}
    (event,) = page.items
    assert (event.actor, event.details["server"]) == ("trusted", "alpha")
    assert (event.details["changed"], event.details["new"], event.details["held_back"]) == (1, 1, 4)


async def test_only_operators_trust_a_server_and_that_is_on_record(tmp_path):
    script = offering()
    with serving_http(script) as upstream:
        async with aggregated(tmp_path, {"gamma": {"url": upstream}}) as (url, app):
            services, api = app.state.services, f"{url.removesuffix('/mcp')}/api/v1/servers"
            owner = await services.access.authenticator.authenticate(str(KEY), None)
            keys = {
                role: str((await services.access.create_key(owner, [role])).key)
                for role in (Role.INVOKER, Role.OPERATOR)
            }
            body = {"name": "far", "settings": {"url": "https://mcp.example.com", "definitions": "trusted"}}
            answers = {}
            async with httpx2.AsyncClient(trust_env=False) as http:
                for role, key in keys.items():
                    headers = {"authorization": f"Bearer {key}"}
                    answers[role] = await http.post(api, json=body, headers=headers)
                pinned = {"settings": {"url": "https://mcp.example.com", "definitions": "pinned"}}
                odd = {"settings": {"url": "https://mcp.example.com", "definitions": "believed"}}
                put = await http.put(f"{api}/far", json=pinned, headers=headers)
                refused = await http.put(f"{api}/far", json=odd, headers=headers)
            page = await services.audit.query(AUDITOR, AuditQuery(action="servers.put"))

    assert answers[Role.INVOKER].status_code == 403
    assert answers[Role.OPERATOR].json()["settings"]["definitions"] == "trusted"
    assert put.json()["settings"]["definitions"] == "pinned"
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/settings/definitions")
    assert [event.details["changed"] for event in page.items if event.outcome == "ok"] == ["definitions"]
