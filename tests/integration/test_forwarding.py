"""Calls and reads on their way to a server: refusals, the record, limits, time, links."""

import asyncio
from typing import Any

import pytest

from app.core.access import Role
from app.core.catalog.primitives import Member, PrimitiveKind
from app.core.catalog.servers import MCPServerSettings
from app.core.contracts.policy import Grant, Limits
from app.core.errors import (
    DeadlineExceededError,
    ForbiddenError,
    InvalidArgumentsError,
    OverloadedError,
    RateLimitedError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.upstream import Hooks, UpstreamError
from tests.catalogs import primitive, tool
from tests.integration.forwarding_setup import Desk, desk_on


@pytest.fixture
async def desk(database: Any, tenant: str) -> Any:
    async with desk_on(database, tenant) as opened:
        opened.offer(
            tool("files", "read"),
            primitive(PrimitiveKind.PROMPT, "files", "greet"),
            primitive(PrimitiveKind.RESOURCE, "files", "file:///a"),
            primitive(PrimitiveKind.RESOURCE, "files", "memo://x", name="sluice://files/memo://x"),
            primitive(PrimitiveKind.RESOURCE, "mail", "memo://x", name="sluice://mail/memo://x"),
            primitive(PrimitiveKind.TEMPLATE, "mail", "mail://{id}"),
        )
        yield opened


def summary(events: list[Any]) -> list[tuple[str, str | None]]:
    return [(event.outcome, event.error_code) for event in events]


async def test_a_call_reaches_its_server_under_its_own_name_and_the_result_comes_back_whole(
    desk: Desk,
) -> None:
    result = {
        "content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav", "new": {"a": 10**30}}],
        "structuredContent": {"n": 10**30},
        "_meta": {"vendor/x": None},
        "unheard": [1],
    }

    async def answer(*_: Any) -> dict[str, Any]:
        return result

    server = desk.server("files", answer=answer)
    made = await desk.call("files__read", {"path": "a", "n": 10**30}, more={"unheardOf": 1})

    assert made == result
    assert server.calls == [
        ("tools/call", {"name": "read", "arguments": {"path": "a", "n": 10**30}, "unheardOf": 1})
    ]


async def test_a_call_is_on_record_before_it_leaves_and_when_it_returned(desk: Desk) -> None:
    seen: list[list[tuple[str, str | None]]] = []

    async def answer(*_: Any) -> dict[str, Any]:
        seen.append(summary(await desk.events("tool.call")))
        return {"content": [{"type": "text", "text": "secret canary-4711"}]}

    desk.server("files", answer=answer)
    await desk.call("files__read", {"path": "canary-4711"})
    events = await desk.events("tool.call")

    assert seen == [[("sent", None)]]
    assert summary(events) == [("sent", None), ("ok", None)]
    sent, returned = events
    assert dict(returned.details) == {"server": "files", "tool": "files__read"}
    assert sent.in_hmac == returned.in_hmac and len(sent.in_hmac or "") == 64
    assert (sent.out_hmac, sent.bytes_out) == (None, 0)
    assert returned.out_hmac and returned.bytes_out > 20 and returned.bytes_in > 10
    assert "canary" not in str(events)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (UpstreamUnavailableError("It is down."), "upstream_unavailable"),
        (DeadlineExceededError("Too slow."), "deadline_exceeded"),
        (TooLargeError("Too much."), "too_large"),
        (UpstreamError(-32000, "canary-4711", {"x": 1}), "upstream_error"),
        (KeyError("canary-4711"), "internal_error"),
    ],
)
async def test_what_goes_wrong_behind_is_passed_on_and_on_record(
    desk: Desk, raised: Exception, code: str
) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        raise raised

    desk.server("files", answer=answer)
    with pytest.raises(type(raised)) as refusal:
        await desk.call("files__read")
    events = await desk.events("tool.call")

    assert refusal.value is raised
    assert summary(events) == [("sent", None), ("failed", code)]
    assert "canary" not in str(events)


@pytest.mark.parametrize("code", [-32020, -32022])
async def test_what_a_server_says_of_its_connection_is_not_passed_on(desk: Desk, code: int) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        raise UpstreamError(code, "Unsupported protocol version", {"supported": ["1999-01-01"]})

    desk.server("files", answer=answer)
    with pytest.raises(UpstreamUnavailableError):
        await desk.call("files__read")


async def test_a_result_that_says_it_is_an_error_is_a_failed_call(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        return {"isError": True, "content": []}

    desk.server("files", answer=answer)
    assert (await desk.call("files__read"))["isError"] is True

    assert summary(await desk.events("tool.call")) == [("sent", None), ("failed", "tool_error")]


async def test_unknown_and_forbidden_tools_look_the_same_and_reach_no_server(desk: Desk) -> None:
    server = desk.server("files")
    errors = []
    with pytest.raises(InvalidArgumentsError) as refusal:
        await desk.call("files__nothing")
    errors.append((refusal.value.message, refusal.value.details))
    await desk.allow(grants=[Grant(members=[Member(kind=PrimitiveKind.TOOL, name="mail__*")])])
    with pytest.raises(InvalidArgumentsError) as refusal:
        await desk.call("files__read")
    errors.append((refusal.value.message, refusal.value.details))

    assert errors[0] == errors[1]
    assert server.calls == []
    assert summary(await desk.events("tool.call")) == [("refused", "invalid_arguments")] * 2


async def test_without_the_role_nothing_is_called(desk: Desk) -> None:
    server = desk.server("files")
    with pytest.raises(ForbiddenError):
        await desk.call("files__read", caller=desk.caller(Role.OPERATOR))

    assert server.calls == []
    assert summary(await desk.events("tool.call")) == [("refused", "forbidden")]


async def test_checks_come_in_order_existence_disclosure_arguments_limits(desk: Desk) -> None:
    desk.server("files")
    await desk.allow(limits=Limits(requests_per_second=0.001, burst=1, max_depth=2))
    deep = {"a": {"b": {"c": {}}}}
    asked = []

    async def gate(_view: Any, primitive: Any) -> dict[str, Any]:
        asked.append(primitive.name)
        return {"isError": True, "content": []}

    with pytest.raises(InvalidArgumentsError):
        await desk.call("files__nothing", deep, gate=gate)  # takes the only token
    with pytest.raises(TooLargeError):
        await desk.call("files__read", deep)
    with pytest.raises(RateLimitedError):
        await desk.call("files__read", {})
    with pytest.raises(InvalidArgumentsError):
        await desk.call("files__nothing", {})  # unknown stays unknown; the flood is not recorded
    assert asked == []

    assert summary(await desk.events("tool.call")) == [
        ("refused", "invalid_arguments"),
        ("refused", "too_large"),
    ]


async def test_the_gate_answers_in_place_of_a_call(desk: Desk) -> None:
    server = desk.server("files")

    async def gate(_view: Any, _primitive: Any) -> dict[str, Any]:
        return {"isError": True, "content": [{"type": "text", "text": "Read first."}]}

    await desk.allow(limits=Limits(requests_per_second=0.001, burst=1))
    made = await desk.call("files__read", {}, gate=gate)
    with pytest.raises(RateLimitedError):
        await desk.call("files__read", {})

    assert made["content"][0]["text"] == "Read first."
    assert server.calls == []
    assert summary(await desk.events("tool.call")) == [("refused", "description_required")]


async def test_our_own_and_the_connection_s_members_of_meta_stay_here(desk: Desk) -> None:
    server = desk.server("files")
    meta = {
        "dev.sluice/groups": ["x"],
        "progressToken": "t",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/related-task": {"taskId": "1"},
        "vendor/trace": "kept",
    }
    await desk.call("files__read", {}, more={"_meta": meta, "task": {"ttl": 5}})
    await desk.call("files__read", {}, more={"_meta": {"progressToken": 1}})

    sent = server.calls[0][1]
    assert sent["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": "1"}, "vendor/trace": "kept"}
    assert sent["task"] == {"ttl": 5}
    assert "_meta" not in server.calls[1][1]


async def test_a_call_may_take_as_long_as_its_server_allows_but_no_longer_than_the_request(
    desk: Desk,
) -> None:
    server = desk.server("files", settings=MCPServerSettings(url="http://127.0.0.1:9/mcp", timeout_s=5))
    await desk.call("files__read")
    await desk.call("files__read", left_s=2.0)
    with pytest.raises(DeadlineExceededError):
        await desk.call("files__read", left_s=-1.0)

    assert server.timeouts[0] == 5
    assert 1.0 < (server.timeouts[1] or 0) <= 2.0
    assert len(server.calls) == 2


async def test_a_server_that_is_not_there_is_unavailable_and_the_call_counts_as_refused(desk: Desk) -> None:
    with pytest.raises(UpstreamUnavailableError):
        await desk.call("files__read")

    assert summary(await desk.events("tool.call")) == [("refused", "upstream_unavailable")]


async def test_calls_that_wait_hold_no_slot_and_fill_only_the_share_of_their_server(desk: Desk) -> None:
    release = asyncio.Event()

    async def hang(*_: Any) -> dict[str, Any]:
        await release.wait()
        return {"content": []}

    desk.server("files", answer=hang)
    desk.server("mail")
    desk.offer(tool("files", "read"), tool("mail", "send"))
    await desk.allow(limits=Limits(in_flight=12))
    waiting = [asyncio.create_task(desk.call("files__read")) for _ in range(12)]
    while len(desk.servers[desk.tenant, "files"].calls) < 12:
        await asyncio.sleep(0.01)
    with pytest.raises(OverloadedError):
        await desk.call("files__read")
    assert await desk.call("mail__send")
    assert desk.traffic.running == 0

    release.set()
    await asyncio.gather(*waiting)
    assert await desk.call("files__read")


async def test_prompts_are_read_from_their_server_and_recorded_once(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}], "more": 1}

    server = desk.server("files", answer=answer)
    params = {"name": "files__greet", "arguments": {"who": "x"}}
    made = await desk.forwarding.get_prompt(desk.asked(params=params))

    assert made["more"] == 1
    assert server.calls == [("prompts/get", {"name": "greet", "arguments": {"who": "x"}})]
    events = await desk.events("prompt.get")
    assert summary(events) == [("ok", None)]
    assert dict(events[0].details) == {"server": "files", "prompt": "files__greet"}
    assert events[0].bytes_in == len('{"who":"x"}')
    with pytest.raises(InvalidArgumentsError):
        await desk.forwarding.get_prompt(desk.asked(params={"name": "greet"}))


async def read(desk: Desk, uri: str, **options: Any) -> Any:
    return await desk.forwarding.read_resource(desk.asked(params={"uri": uri}, **options))


async def test_resources_are_read_by_either_spelling_and_through_templates(desk: Desk) -> None:
    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        return {"contents": [{"uri": params["uri"], "text": "x"}, {"uri": "other://", "text": "y"}]}

    for name in ("files", "mail"):
        desk.server(name, answer=answer)

    assert (await read(desk, "file:///a"))["contents"][0]["uri"] == "file:///a"
    assert (await read(desk, "sluice://files/file:///a"))["contents"][0]["uri"] == "sluice://files/file:///a"
    made = await read(desk, "sluice://mail/memo://x")
    assert [one["uri"] for one in made["contents"]] == ["sluice://mail/memo://x", "other://"]
    assert (await read(desk, "mail://7"))["contents"][0]["uri"] == "mail://7"
    asked = {
        name: [params["uri"] for _, params in desk.servers[desk.tenant, name].calls]
        for name in ("files", "mail")
    }
    assert asked == {"files": ["file:///a", "file:///a"], "mail": ["memo://x", "mail://7"]}
    for unknown in ("memo://x", "file:///b", "sluice://nobody/file:///a", "sluice://mail/file:///a", ""):
        with pytest.raises(InvalidArgumentsError):
            await read(desk, unknown)


async def test_the_record_of_a_read_names_the_template_and_not_what_was_filled_in(desk: Desk) -> None:
    desk.server("mail")
    await read(desk, "mail://jane.smith")
    events = await desk.events("resource.read")

    assert dict(events[0].details) == {"server": "mail", "template": "mail://{id}"}
    assert "jane" not in str(events)


async def test_links_in_results_can_be_read_by_whom_they_were_given_and_by_nobody_else(desk: Desk) -> None:
    async def answer(method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        if method == "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "linked"}]}
        link = {"type": "resource_link", "uri": "made://1", "name": "made"}
        return {"content": [link, {"type": "resource", "resource": {"uri": "made://2", "text": ""}}]}

    desk.server("files", answer=answer)
    with pytest.raises(InvalidArgumentsError):
        await read(desk, "made://1")
    await desk.call("files__read")

    for uri in ("made://1", "made://2", "sluice://files/made://1"):
        assert (await read(desk, uri))["contents"][0] == {"uri": uri, "text": "linked"}
    with pytest.raises(InvalidArgumentsError):
        await read(desk, "made://1", caller=desk.caller(key="0000000b"))
    with pytest.raises(InvalidArgumentsError):
        await read(desk, "sluice://mail/made://1")
    await desk.allow(grants=[Grant(members=[Member(kind=PrimitiveKind.TEMPLATE, name="*")])])
    with pytest.raises(InvalidArgumentsError):
        await read(desk, "made://1")


async def test_a_server_cannot_say_in_meta_what_only_this_server_says_there(desk: Desk) -> None:
    said = {
        "dev.sluice/scope": "theirs",
        "dev.sluice/session": "theirs",
        "io.modelcontextprotocol/groups": ["theirs"],
        "io.modelcontextprotocol/subscriptionId": 1,
        "io.modelcontextprotocol/related-task": {"taskId": "1"},
        "vendor/x": 1,
    }

    async def answer(*_: Any) -> dict[str, Any]:
        return {"content": [], "_meta": said}

    desk.server("files", answer=answer)
    made = await desk.call("files__read")

    assert made["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": "1"}, "vendor/x": 1}


async def complete(desk: Desk, ref: dict[str, Any]) -> Any:
    params = {"ref": ref, "argument": {"name": "who", "value": "p"}}
    return await desk.forwarding.complete(desk.asked(params=params))


async def test_completion_asks_the_server_of_the_prompt_or_template(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        return {"completion": {"values": ["paris"]}}

    files, mail = desk.server("files", answer=answer), desk.server("mail", answer=answer)
    assert await complete(desk, {"type": "ref/prompt", "name": "files__greet"}) == {
        "completion": {"values": ["paris"]}
    }
    await complete(desk, {"type": "ref/resource", "uri": "mail://{id}"})

    assert files.calls[0][1]["ref"] == {"type": "ref/prompt", "name": "greet"}
    assert mail.calls[0][1]["ref"] == {"type": "ref/resource", "uri": "mail://{id}"}
    for ref in ({"type": "ref/prompt", "name": "greet"}, {"type": "ref/resource", "uri": "x://{y}"}):
        with pytest.raises(InvalidArgumentsError):
            await complete(desk, ref)


async def test_a_server_without_completion_suggests_nothing(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        raise UpstreamError(-32601, "Method not found")

    desk.server("files", answer=answer)
    made = await complete(desk, {"type": "ref/prompt", "name": "files__greet"})

    assert made == {"completion": {"values": [], "hasMore": False}}
