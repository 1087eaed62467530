"""Roots of clients: told to no server unless an operator allows it, never to a command; answers stay one client's."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root

from tests.protocol.aggregated_service import OnlyHandshake, OnlyModern, aggregated, serving_era
from tests.protocol.answering import answering
from tests.protocol.mcp_service import KEY
from tests.protocol.test_mcp_callbacks import ALICE, behind, modern
from tests.upstreams.npm import npm_servers
from tests.upstreams.scripted import ScriptedServer, elicit, text
from tests.upstreams.warm import warm_settings

ASKS = {"resultType": "input_required", "inputRequests": {"where": {"method": "roots/list", "params": {}}}}
TOLD = {"where": {"roots": [{"uri": "file:///etc", "name": "etc"}]}}


def noting() -> ScriptedServer:
    """Return a server with a tool that tells what its client declared."""
    script = ScriptedServer()
    script.add_tool("declared", declared)
    return script


async def declared(context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    capabilities = context.session.client_capabilities
    return text(" ".join(sorted(capabilities.model_dump(exclude_none=True))) if capabilities else "")


def said(reply: Any) -> str:
    return str(reply.result["content"][0]["text"])


@pytest.mark.parametrize("era", [OnlyHandshake, OnlyModern])
async def test_a_server_hears_of_no_roots_and_of_everything_else_that_a_client_declares(tmp_path, era):
    capabilities = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
    async with (
        behind(tmp_path, noting(), era) as (url, _),
        answering(url, ALICE, capabilities) as handshake,
        modern(url, capabilities) as call,
    ):
        replies = [await handshake.tool("alpha__declared"), await call("alpha__declared")]

    assert [said(reply) for reply in replies] == ["elicitation sampling"] * 2


async def test_a_question_for_roots_is_refused_and_every_other_one_is_carried(tmp_path):
    async with behind(tmp_path, ScriptedServer(), OnlyHandshake) as (url, _), answering(url, ALICE) as caller:
        refused = await caller.tool("alpha__roots")
        await caller.wire.notify("notifications/roots/list_changed")
        sampled = await caller.tool("alpha__sample", ask="Capital of France?")

    assert refused.error["code"] == -32601
    assert said(sampled) == "model said Paris"
    assert [asked["method"] for asked in caller.asked] == ["sampling/createMessage"]


async def test_a_modern_server_neither_asks_for_roots_nor_gets_them_unasked(tmp_path):
    script = ScriptedServer()
    script.verbatim["tools/call:echo"] = ASKS
    async with (
        behind(tmp_path, script, OnlyModern) as (url, _),
        modern(url, {"roots": {}}) as call,
        answering(url, ALICE) as handshake,
    ):
        asked = [await call("alpha__echo"), await handshake.tool("alpha__echo")]
        before = len(script.calls)
        unasked = await call("alpha__add", inputResponses=TOLD)

    assert [reply.error["code"] for reply in asked] == [-32021, -32021]
    assert asked[0].error["data"] == {"requiredCapabilities": {"roots": {}}}
    assert "`roots`" in asked[0].error["message"]
    assert handshake.asked == []
    assert (unasked.error["code"], unasked.error["data"]["pointer"]) == (-32602, "/inputResponses")
    assert "/etc" not in unasked.text
    assert len(script.calls) == before


async def test_a_server_that_may_have_roots_gets_them_in_every_way(tmp_path):
    script = noting()
    script.verbatim["tools/call:echo"] = ASKS
    with serving_era(script, OnlyHandshake) as old, serving_era(script, OnlyModern) as new:
        servers = {"old": {"url": old, "roots": True}, "new": {"url": new, "roots": True}}
        async with (
            aggregated(tmp_path, servers) as (url, _),
            answering(url, ALICE) as handshake,
            modern(url, {"roots": {}}) as call,
        ):
            rooted = await handshake.tool("old__roots")
            asked = await call("new__echo")
            declarations = [await handshake.tool("old__declared"), await call("new__declared")]
            answered = await call("new__declared", inputResponses=TOLD)

    assert said(rooted) == "file:///home/ada"
    assert asked.result["inputRequests"] == ASKS["inputRequests"]
    assert [said(reply) for reply in declarations] == ["elicitation roots sampling", "roots"]
    assert answered.status == 200


async def test_no_client_opens_a_folder_of_the_host_to_a_file_server_that_runs_as_a_command(tmp_path):
    shared, secret = tmp_path / "shared", tmp_path / "keys"
    for folder in (shared, secret):
        folder.mkdir()
        (folder / "file.txt").write_text(f"of {folder.name}")
    servers = {"files": npm_servers(shared)["filesystem"]}

    async def rooted(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=f"file://{secret}")])

    async with (
        aggregated(tmp_path, servers) as (url, _),
        httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=20) as http,
        Client(
            streamable_http_client(url, http_client=http), mode="legacy", list_roots_callback=rooted
        ) as client,
    ):
        for _ in range(8):  # a server asks for roots at its start, and takes what it is told a little later
            allowed, refused = [
                await client.call_tool("files__read_text_file", {"path": str(folder / "file.txt")})
                for folder in (shared, secret)
            ]
            await asyncio.sleep(0.1)

    assert allowed.content[0].text == "of shared"
    assert refused.is_error
    assert "of keys" not in str(refused)


async def test_a_command_asks_the_client_everything_but_its_roots(tmp_path):
    async with (
        aggregated(tmp_path, {"alpha": warm_settings()}) as (url, _),
        answering(url, ALICE) as caller,
    ):
        replies = [await caller.tool(f"alpha__{name}") for name in ("roots", "elicit")]

    assert replies[0].error["code"] == -32601
    assert said(replies[1]) == 'accept {"name": "Ada"}'
    assert [asked["method"] for asked in caller.asked] == ["elicitation/create"]


async def remembering(context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask who the client is, once in a connection, as servers do that keep what they learned."""
    known = context.script.__dict__.setdefault("known", {})
    connection = id(context.session._connection)
    if connection not in known:
        known[connection] = (await elicit(context, arguments))["content"][0]["text"]
    return text(known[connection])


async def test_what_one_client_answered_is_never_used_for_another_of_the_same_key(tmp_path: Path):
    script = ScriptedServer()
    script.add_tool("remembering", remembering)
    kept: list[Any] = []  # what holds the connections, so that no two have the same id
    heard = []
    async with behind(tmp_path, script, OnlyHandshake) as (url, app):
        pool = app.state.services.dedicated.pool
        for name in ("Ada", "Grace", "Lin"):
            async with modern(url, {"elicitation": {}}) as call:
                asked = (await call("alpha__remembering")).result
                kept.extend(script._sessions.values())
                ((key, _),) = asked["inputRequests"].items()
                answer = {"action": "accept", "content": {"name": name}}
                done = await call(
                    "alpha__remembering", requestState=asked["requestState"], inputResponses={key: answer}
                )
                heard.append(said(done))
                async with asyncio.timeout(10):
                    while pool._open:
                        await asyncio.sleep(0.01)
        for _ in range(2):  # a connection over which nobody was asked anything serves the next call, too
            async with modern(url, {"elicitation": {}}) as call:
                await call("alpha__echo")
        assert len(pool._open) == len(pool._idle) == 1

    assert heard == [f'accept {{"name": "{name}"}}' for name in ("Ada", "Grace", "Lin")]
