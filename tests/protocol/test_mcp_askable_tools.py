"""Tools that a server lists only to clients that it can ask: who sees them, who may call them, who approves them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from app.core.access import DEFAULT_TENANT
from tests.protocol.aggregated_service import OnlyHandshake, OnlyModern, aggregated, serving_era
from tests.protocol.answering import EVERYTHING, answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, PREFIX, REVISIONS, client
from tests.upstreams.npm import everything_over_http
from tests.upstreams.scripted import ScriptedServer, sample

FOR_ALL = {"ev__echo", "ev__get-sum", "ev__toggle-subscriber-updates"}
OF_FEATURE = {
    "sampling": {"ev__trigger-sampling-request"},
    "elicitation": {"ev__trigger-elicitation-request"},
    "url": {"ev__trigger-url-elicitation"},
    "roots": {"ev__get-roots-list"},
}
"""As the server's own documentation says (docs/features.md of @modelcontextprotocol/server-everything)."""

CONDITIONAL = set().union(*OF_FEATURE.values())
DECLARED = {
    "sampling": {"sampling": {}},
    "elicitation": {"elicitation": {}},
    "url": {"elicitation": {"url": {}}},
    "roots": {"roots": {"listChanged": True}},
}


class Caller:
    """A client of either revision with capabilities: its lists of tools, and its calls."""

    def __init__(self, wire: Any, capabilities: dict[str, Any]) -> None:
        self.wire = wire
        self.capabilities = capabilities

    async def call(self, method: str, **params: Any) -> Any:
        meta = {f"{PREFIX}clientCapabilities": self.capabilities} if self.wire.modern else None
        headers = {"mcp-name": params["name"]} if self.wire.modern and "name" in params else None
        reply = await self.wire.call(method, meta, headers, **params)
        return reply.message

    async def tools(self) -> set[str]:
        return {tool["name"] for tool in (await self.call("tools/list"))["result"]["tools"]}

    async def sees(self, *names: str) -> set[str]:
        """Wait until these tools are listed: what only such clients see is approved a little later."""
        async with asyncio.timeout(20):
            while not (tools := await self.tools()).issuperset(names):
                await asyncio.sleep(0.05)
        return tools


@contextlib.asynccontextmanager
async def calling(url: str, revision: str, capabilities: dict[str, Any]) -> AsyncIterator[Caller]:
    async with client(url, revision, None) as wire:
        wire.http.headers["authorization"] = f"Bearer {KEY}"
        if revision == HANDSHAKE:
            await wire.open(capabilities)
        yield Caller(wire, capabilities)


@pytest.fixture(scope="module")
def everything():
    with everything_over_http() as entry:
        yield entry


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_sees_the_tools_that_the_server_lists_to_such_clients(tmp_path, everything, revision):
    async with aggregated(tmp_path, {"ev": {**everything, "roots": True}}) as (url, _):
        async with calling(url, revision, {}) as plain:
            tools = await plain.tools()
            assert tools >= FOR_ALL
            assert not tools & CONDITIONAL

        for feature, capabilities in DECLARED.items():
            async with calling(url, revision, capabilities) as caller:
                tools = await caller.sees(*OF_FEATURE[feature])
                others = {name for other, names in OF_FEATURE.items() if other != feature for name in names}
                assert not tools & (others - {"ev__trigger-elicitation-request"}), feature
                assert tools >= FOR_ALL

        async with calling(url, revision, EVERYTHING) as caller:
            assert await caller.sees(*CONDITIONAL) >= FOR_ALL


@pytest.mark.parametrize("revision", REVISIONS)
async def test_who_sees_such_a_tool_may_call_it_and_for_others_it_does_not_exist(tmp_path, revision):
    script = ScriptedServer()
    script.add_tool("wants", sample)
    script.needs["wants"] = "sampling"
    with serving_era(script, OnlyHandshake) as upstream:
        async with aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, _):
            async with calling(url, revision, {"elicitation": {}}) as other:
                assert "alpha__wants" not in await other.tools()
                async with calling(url, revision, {"sampling": {}}) as caller:
                    await caller.sees("alpha__wants")
                refused = await other.call("tools/call", name="alpha__wants", arguments={})
                assert refused["error"]["code"] == -32602
                assert ("tools/call", "wants") not in script.calls

            if revision == MODERN:
                async with calling(url, revision, {"sampling": {}}) as caller:
                    asked = (await caller.call("tools/call", name="alpha__wants", arguments={}))["result"]
                    assert [one["method"] for one in asked["inputRequests"].values()] == [
                        "sampling/createMessage"
                    ]
            else:
                async with answering(url, str(KEY), {"sampling": {}}) as session:
                    called = await session.tool("alpha__wants")
                    assert called.result["content"][0]["text"] == "model said Paris"
            assert ("tools/call", "wants") in script.calls


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("era", [None, OnlyHandshake, OnlyModern])
async def test_such_a_tool_is_pinned_and_its_change_is_held_back(tmp_path, era, revision):
    script = ScriptedServer()
    script.needs["echo"] = script.needs["late"] = "sampling"
    with serving_era(script, era) as upstream:
        async with aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, app):
            async with calling(url, revision, {"sampling": {}}) as caller:
                await caller.sees("alpha__echo")

                script.tools["echo"]["description"] = "Does more than was approved."
                script.add_tool("late")
                script.tools["add"]["title"] = "Changed, so that the server is listed again."
                script.announce("tools")
                async with asyncio.timeout(20):
                    while "alpha__echo" in await caller.tools() or len(states(app)) < 3:
                        await asyncio.sleep(0.05)
                assert states(app) == {"add": "changed", "echo": "changed", "late": "new"}

                await approve(url, "alpha")
                async with asyncio.timeout(20):
                    while not {"alpha__echo", "alpha__late"} <= await caller.tools():
                        await asyncio.sleep(0.05)
            async with calling(url, revision, {}) as plain:
                assert not {"alpha__echo", "alpha__late"} & await plain.tools()


async def test_an_approval_over_rest_covers_such_tools_before_any_client_came(tmp_path):
    script = ScriptedServer()
    script.needs["echo"] = "sampling"
    with serving_era(script) as upstream:
        networks = ("127.0.0.0/8",)
        async with (
            aggregated(tmp_path, {"beta": {"url": upstream}}, allowed_networks=networks) as (url, app),
            rest(url) as http,
        ):
            entry = {"name": "alpha", "settings": {"url": upstream}}
            assert (await http.post("servers", json=entry)).status_code == 201
            assert (await http.post("servers/alpha/approve")).status_code == 200
            async with asyncio.timeout(20):
                while not states(app, "approved"):
                    await asyncio.sleep(0.05)
            async with calling(url, HANDSHAKE, {"sampling": {}}) as caller:
                assert "alpha__echo" in await caller.tools()
            shown = (await http.get("servers/alpha")).json()
            assert "echo" in states(app, "approved")
            assert "gone" not in str(shown)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_groups_and_grants_hold_for_such_tools(tmp_path, revision):
    script = ScriptedServer()
    script.needs["echo"] = script.needs["add"] = "sampling"
    group = {"name": "asking", "members": [{"kind": "tool", "name": "alpha__echo"}]}
    with serving_era(script) as upstream:
        async with aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, _), rest(url) as http:
            assert (await http.put("groups/asking", json=group)).is_success
            grants = [{"members": [], "groups": ["asking"]}]
            assert (await http.put("policies?expected_version=0", json={"grants": grants})).is_success
            async with calling(url, revision, {"sampling": {}}) as caller:
                assert await caller.sees("alpha__echo") == {"alpha__echo"}
                denied = await caller.call("tools/call", name="alpha__add", arguments={"a": 1, "b": 2})
                assert denied["error"]["code"] == -32602
            async with calling(url, revision, {}) as plain:
                assert await plain.tools() == set()


def states(app: Any, *wanted: str) -> dict[str, str]:
    """Return the tools of alpha that are not approved, or those in the wanted states."""
    reviews = app.state.services.upstreams.reviews(DEFAULT_TENANT, "alpha")
    return {
        one.name: one.state.value
        for one in reviews
        if one.kind == "tool" and (one.state.value in wanted if wanted else one.state.value != "approved")
    }


@contextlib.asynccontextmanager
async def rest(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"authorization": f"Bearer {KEY}"}
    base = url.removesuffix("/mcp") + "/api/v1/"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30) as http:
        yield http


async def approve(url: str, server: str) -> None:
    async with rest(url) as http:
        answer = await http.post(f"servers/{server}/approve")
        assert answer.is_success, answer.text
