"""Lists of tools narrowed to a conversation: by the request's own _meta, or by a session's last tool_filter."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.protocol.wire.notifications import StreamNotification
from tests.protocol.aggregated_service import aggregated
from tests.protocol.concerned_service import HANDLE, WARNINGS, Concerned, Host, names_of
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, Reply
from tests.protocol.requirements import covers
from tests.protocol.test_mcp_streams import Stream, getting, listening
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

ASKED = "dev.sluice/toolFilter"
pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = {
    "send_email": "Send an e-mail to one or more recipients.",
    "search_calendar": "Search the events of a calendar.",
    "convert_currency": "Convert an amount of money from one currency to another.",
    "weather_forecast": "Tell the weather of the next days at a place.",
}
CHANGED = "notifications/tools/list_changed"
MAIL = {"query": "write an e-mail to the team", "maxTools": 1}


@contextlib.asynccontextmanager
async def filtering(folder: Path, *, more: int = 0) -> AsyncIterator[Concerned]:
    script = ScriptedServer("office")
    script.tools.clear()
    for name, described in TOOLS.items():
        script.add_tool(name)
        script.tools[name]["description"] = described
    for number in range(more):
        script.add_tool(f"note_{number:03}")
    with serving_http(script) as url:
        async with aggregated(folder, {"office": {"url": url, "namespace": False}}) as (mcp_url, app):
            yield Concerned(mcp_url, app, script)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory) -> AsyncIterator[Concerned]:
    async with filtering(tmp_path_factory.mktemp("lists")) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def service(shared: Concerned) -> AsyncIterator[Concerned]:
    """Yield the service that the module shares; afterwards there is no policy."""
    yield shared
    await shared.policy()


@pytest_asyncio.fixture(loop_scope="module")
async def host(service: Concerned, revision: str) -> AsyncIterator[Host]:
    async with service.host(revision) as found:
        yield found


async def filtered(host: Host, text: str, **arguments: Any) -> Reply:
    """Invoke tool_filter, keeping the handle of the answer, and return its metadata."""
    reply = await host.call(
        "middleware/invoke",
        name="tool_filter",
        arguments=arguments,
        context=[{"type": "text", "text": text}],
    )
    if "result" in reply.message:
        host.handle = reply.result.get("_meta", {}).get(HANDLE) or host.handle
    return reply


async def told(stream: Stream) -> set[str]:
    """Return the next notification, and those that come with a change of a session."""
    found = {(await stream.message())["method"]}
    if found != {"notifications/groups/list_changed"}:
        found |= {(await stream.message())["method"] for _ in range(2)}
    return found


async def call_of(host: Host, name: str) -> Reply:
    return await host.call("tools/call", name=name, arguments={})


# The request's own _meta


@covers("TF-LIST")
async def test_a_request_s_own_filter_narrows_that_answer_and_no_other(host):
    reply = await host.call("tools/list", {ASKED: MAIL})
    assert names_of(reply) == ["send_email"]
    told = reply.result["_meta"][ASKED]
    assert told["relevantTools"][0]["name"] == "send_email" and told["total"] == len(TOOLS)
    assert 0 < told["relevantTools"][0]["score"] <= 1
    if host.wire.modern:
        assert (reply.result["cacheScope"], reply.result["ttlMs"]) == ("private", 0)
    assert await host.names() == sorted(TOOLS, key=list(TOOLS).index)
    assert ASKED not in (await host.call("tools/list")).result.get("_meta", {})


@covers("TF-LIST")
async def test_what_is_left_out_of_a_list_can_be_called_all_the_same(host):
    assert await host.names(**{ASKED: MAIL}) == ["send_email"]
    assert "result" in (await call_of(host, "weather_forecast")).message


@covers("TF-LIST")
async def test_a_whole_conversation_may_be_given_and_tools_in_use_stay(host):
    conversation = [
        {"role": "user", "content": "will it rain in Oslo tomorrow?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "weather_forecast", "input": {}}],
        },
        {"role": "user", "content": "then send an e-mail to the team about it"},
    ]
    asked = {"context": conversation, "maxTools": 1, "pinned": ["convert_currency"]}
    found = await host.names(**{ASKED: asked})
    assert set(found) == {"send_email", "weather_forecast", "convert_currency"}


async def test_a_filter_that_cannot_be_read_is_refused_where_its_fault_is(host):
    faults: list[tuple[Any, str]] = [
        ({}, ""),
        ("mail", ""),
        ({"query": "a", "context": []}, ""),
        ({"query": 1}, "/query"),
        ({"query": "a", "maxTools": 0}, "/maxTools"),
        ({"query": "a", "minScore": 2}, "/minScore"),
        ({"query": "a", "pinned": [1]}, "/pinned/0"),
        ({"query": "a", "more": 1}, "/more"),
        ({"context": {}}, "/context"),
    ]
    for asked, pointer in faults:
        reply = await host.call("tools/list", {ASKED: asked})
        assert reply.error["code"] == -32602
        assert reply.error["data"]["pointer"] == f"/_meta/dev.sluice~1toolFilter{pointer}"


@covers("TF-CURSOR")
async def test_a_cursor_holds_for_the_choice_it_was_given_for_and_for_no_other(tmp_path, revision):
    async with filtering(tmp_path, more=260) as service, service.host(revision) as host:
        asked = {ASKED: {"query": "note", "maxTools": 255}}
        for _ in range(20):
            first = await host.call("tools/list", asked)
            rest = await host.call("tools/list", asked, cursor=first.result["nextCursor"])
            if "result" in rest.message:
                break
            # On a busy machine words choose until every tool has its vector; the choice changes once.
        assert len(set(names_of(first) + names_of(rest))) == 255
        for other in ({ASKED: {"query": "note", "maxTools": 254}}, {}):
            reply = await host.call("tools/list", other, cursor=first.result["nextCursor"])
            assert reply.error["code"] == -32602
            assert reply.error["data"]["pointer"] == "/cursor"


async def test_other_lists_are_not_narrowed(host):
    everything = (await host.call("resources/list")).result["resources"]
    assert (await host.call("resources/list", {ASKED: MAIL})).result["resources"] == everything


# A session


@covers("TF-SESSION")
async def test_a_session_s_lists_follow_its_last_tool_filter_until_that_is_cleared(host):
    reply = await filtered(host, "convert 5 dollars to euros", maxTools=1, applyToSession=True)
    assert reply.result["metadata"]["session"] == "narrowed"
    assert reply.result["metadata"]["suggestedToolSet"] == ["convert_currency"]
    assert await host.names() == ["convert_currency"]
    assert await host.names(**{ASKED: MAIL}) == ["send_email"]  # what the request says goes before
    assert "result" in (await call_of(host, "send_email")).message
    cleared = await filtered(host, "x", clearSession=True)
    assert cleared.result["metadata"]["session"] == "cleared"
    assert len(await host.names()) == len(TOOLS)
    assert (await filtered(host, "x", clearSession=True)).result["metadata"]["session"] == "cleared"


@covers("TF-SESSION")
async def test_other_sessions_of_the_same_key_see_everything(service, host, revision):
    await filtered(host, "convert dollars", maxTools=1, applyToSession=True)
    async with service.host(revision) as other:
        assert len(await other.names()) == len(TOOLS)
    assert await host.names() == ["convert_currency"]


@covers("TF-SESSION")
async def test_the_stream_of_that_session_hears_of_it_and_no_other_stream(service):
    both = service.host(HANDSHAKE), service.host(HANDSHAKE)
    async with both[0] as host, both[1] as other, getting(host.wire) as heard, getting(other.wire) as beside:
        await filtered(host, "convert dollars", maxTools=1, applyToSession=True)
        assert CHANGED in await told(heard)
        service.app.state.mcp.publish(StreamNotification("notifications/groups/list_changed"))
        assert await told(beside) == {"notifications/groups/list_changed"}  # and nothing before that
        assert await other.names() != await host.names() == ["convert_currency"]


@covers("TF-SESSION")
async def test_the_stream_behind_a_handle_hears_of_it(service):
    async with service.host(MODERN) as host:
        await filtered(host, "convert dollars", maxTools=1, applyToSession=True)
        async with listening(host.wire, meta={HANDLE: host.handle}, toolsListChanged=True) as heard:
            assert (await heard.message())["method"].endswith("acknowledged")
            await filtered(host, "write a mail", maxTools=1, applyToSession=True)
            assert (await heard.message())["method"] == CHANGED
        assert await host.names() == ["send_email"]


async def test_nothing_is_remembered_where_nobody_asked(host):
    reply = await filtered(host, "convert dollars", maxTools=1)
    assert "session" not in reply.result["metadata"]
    assert HANDLE not in reply.result.get("_meta", {})
    assert len(await host.names()) == len(TOOLS)


async def test_both_wishes_at_once_are_refused(host):
    reply = await filtered(host, "x", applyToSession=True, clearSession=True)
    assert reply.error["code"] == -32602


async def test_a_choice_of_which_nothing_is_left_narrows_no_more(service, host):
    await filtered(host, "convert", availableTools=["gone"], applyToSession=True)
    assert len(await host.names()) == len(TOOLS)


# The tenant's policy


async def test_an_operator_may_switch_narrowing_off(service, host):
    await service.policy(tool_listing={"mode": "off"})
    reply = await host.call("tools/list", {ASKED: MAIL})
    assert len(names_of(reply)) == len(TOOLS)
    assert reply.result["_meta"][WARNINGS] == [{"name": ASKED, "reason": "off"}]
    asked = await filtered(host, "convert dollars", maxTools=1, applyToSession=True)
    assert asked.result["metadata"]["session"] == "unchanged"
    assert len(await host.names()) == len(TOOLS)


async def test_an_operator_says_what_is_always_listed_and_how_many_where_nothing_is_said(service, host):
    await service.policy(tool_listing={"pinned": ["weather_forecast"], "max_tools": 1})
    asked = {ASKED: {"query": "write an e-mail to the team"}}
    assert set(await host.names(**asked)) == {"send_email", "weather_forecast"}
    await service.policy(tool_listing={"always_servers": ["office"], "max_tools": 1})
    assert len(await host.names(**asked)) == len(TOOLS)
    await service.policy(tool_listing={"min_score": 1.0})
    assert 0 < len(await host.names(**asked)) <= len(TOOLS)
