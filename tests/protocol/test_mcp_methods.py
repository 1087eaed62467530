"""middleware/list and middleware/invoke over HTTP, on both revisions."""

import asyncio
import json

from app.core.errors import InternalError, InvalidArgumentsError
from tests.protocol.mcp_harness import Invoke, Result, build
from tests.protocol.mcp_wire import MODERN, client, connected
from tests.protocol.requirements import covers


@covers("CM-LIST", "CM-PHASE")
async def test_a_list_names_each_middleware_with_its_schema_and_phase(wire):
    reply = await wire.call("middleware/list")

    first = reply.result["middleware"][0]
    assert first["name"] == "pii_redaction"
    assert first["title"]
    assert first["description"]
    assert first["inputSchema"]["type"] == "object"
    assert first["_meta"] == {"dev.sluice/phase": "outbound"}


@covers("CM-INVOKE")
async def test_an_invocation_answers_the_content_and_only_metadata_that_there_is(wire):
    plain = await wire.invoke({"type": "text", "text": "x"})
    noted = await wire.invoke({"type": "text", "text": "x"}, arguments={"timezone": "UTC"})

    assert plain.result["content"] == [{"type": "text", "text": "x"}]
    assert "metadata" not in plain.result
    assert noted.result["metadata"] == {"arguments": {"timezone": "UTC"}}


@covers("CM-EXACT")
async def test_numbers_key_order_and_null_survive_both_ways(wire):
    item = '{"type":"tool_use","z":null,"a":123456789012345678901234567890,"f":0.1,"g":-1.5e300,"m":1.0,"e":"\\u00e9"}'
    body = wire.body("middleware/invoke", {"name": "timestamp_injector", "context": ["@"]})
    raw = json.dumps(body).replace('"@"', item)
    headers = {**wire.headers("middleware/invoke"), "content-type": "application/json"}

    response = await wire.http.post(wire.url, content=raw, headers=headers)

    content = json.loads(response.text)["result"]["content"][0]
    assert content == json.loads(item)
    assert list(content) == list(json.loads(item))
    assert "123456789012345678901234567890" in response.text
    assert type(content["m"]) is float


@covers("CM-EXACT")
async def test_numbers_survive_in_a_stream_too(wire):
    reply = await wire.invoke({"n": 10**29 + 1, "z": None}, meta={"progressToken": "t"})

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers.get_list("x-accel-buffering") == ["no"]
    assert reply.result["content"] == [{"n": 10**29 + 1, "z": None}]


@covers("CM-UNKNOWN")
async def test_an_unknown_middleware_is_a_fault_of_the_name(wire):
    reply = await wire.invoke(name="no_such_thing")

    assert reply.error["code"] == -32602
    assert reply.error["data"]["pointer"] == "/name"
    assert "no_such_thing" not in reply.error["message"]


async def test_wrong_params_are_pointed_at_and_not_quoted(wire):
    canary = "canary-4711"

    reply = await wire.call("middleware/invoke", name="timestamp_injector", context={"text": canary})

    assert reply.error["code"] == -32602
    assert reply.error["data"]["pointer"] == "/context"
    assert canary not in reply.text


@covers("CM-ARGUMENTS")
async def test_wrong_arguments_keep_the_pointer_of_the_service(revision):
    async def refuse(*_):
        raise InvalidArgumentsError("There is no such argument.", details={"pointer": "/arguments/zone"})

    async with connected(build(invoke=Invoke(script=refuse)), revision) as wire:
        reply = await wire.invoke(arguments={"zone": "UTC"})

    assert reply.error["code"] == -32602
    assert reply.error["data"]["pointer"] == "/arguments/zone"


@covers("CM-FAILURE")
async def test_a_bug_shows_an_error_id_and_nothing_else(revision, caplog):
    async def crash(*_):
        raise RuntimeError("canary-4711")

    async def wrapped(*_):
        raise InternalError("The service failed.") from RuntimeError("canary-4711")

    invoke = Invoke(script=crash)
    async with connected(build(invoke=invoke), revision) as wire:
        for invoke.script in (crash, wrapped):
            reply = await wire.invoke("canary-4711")
            assert reply.error["code"] == -32603
            assert reply.error["data"]["errorId"] in caplog.text
            assert "canary-4711" not in reply.text
    assert "RuntimeError" in caplog.text
    assert "canary-4711" not in caplog.text


@covers("CM-PAGES")
async def test_pages_follow_one_another_without_gaps(revision):
    names = [f"m{n:02}" for n in range(7)]
    async with connected(build(invoke=Invoke(names), page_size=3), revision) as wire:
        seen, cursor = [], None
        while cursor is not None or not seen:
            reply = await wire.call("middleware/list", **({"cursor": cursor} if cursor else {}))
            assert len(reply.result["middleware"]) <= 3
            seen += [found["name"] for found in reply.result["middleware"]]
            cursor = reply.result.get("nextCursor")

    assert seen == names


@covers("CM-CURSOR")
async def test_a_stale_or_invented_cursor_is_refused(revision):
    invoke = Invoke([f"m{n:02}" for n in range(7)])
    async with connected(build(invoke=invoke, page_size=3), revision) as wire:
        cursor = (await wire.call("middleware/list")).result["nextCursor"]
        invoke.names.append("later")
        for wrong in (cursor, "", "x", "3", "é", cursor[:-1], "A" * 16):
            reply = await wire.call("middleware/list", cursor=wrong)
            assert reply.error["code"] == -32602, wrong
            assert reply.error["data"]["pointer"] == "/cursor"


@covers("PROGRESS-TOKEN")
async def test_progress_comes_as_events_before_the_result_and_only_increases(revision):
    async def stumbling(caller, name, arguments, items, request, progress):
        for step in (1, 2, 2, 1, 3):
            await progress(step, 3)
        return Result(items)

    async with connected(build(invoke=Invoke(script=stumbling)), revision) as wire:
        for token in ("token", 7):
            reply = await wire.invoke("x", meta={"progressToken": token})
            told = [message["params"] for message in reply.notifications]
            assert [one["progress"] for one in told] == [1, 2, 3]
            assert {one["progressToken"] for one in told} == {token}
            assert {one["total"] for one in told} == {3}
            assert reply.result["content"] == ["x"]


async def test_a_client_that_takes_no_events_gets_json_without_progress(wire):
    accept = {"accept": "application/json"}

    reply = await wire.invoke("x", meta={"progressToken": "t"}, headers=accept)

    assert reply.headers["content-type"] == "application/json"
    assert reply.result["content"] == ["x"]


@covers("RPC-UNKNOWN-METHOD")
async def test_an_unknown_method_is_not_found(wire):
    reply = await wire.call("middleware/destroy")

    assert reply.error["code"] == -32601
    assert reply.status == (404 if wire.modern else 200)


@covers("MO-STATELESS", "MO-CACHE", "MO-RESULT-TYPE")
async def test_modern_results_say_their_type_and_lists_how_long_they_hold():
    async with connected(build(), MODERN) as wire, client(wire.url, MODERN) as other:
        first = await wire.call("middleware/list")
        await other.invoke("x")
        again = await other.call("middleware/list")

    assert first.result == again.result
    assert first.result["resultType"] == "complete"
    assert (first.result["ttlMs"], first.result["cacheScope"]) == (0, "private")
    assert "mcp-session-id" not in first.headers


async def test_requests_of_one_client_run_side_by_side(revision):
    inside = asyncio.Barrier(3)

    async def meet(caller, name, arguments, items, request, progress):
        async with asyncio.timeout(5):
            await inside.wait()
        return Result(items)

    async with connected(build(invoke=Invoke(script=meet)), revision) as wire:
        replies = await asyncio.gather(*(wire.invoke(n) for n in range(3)))

    assert [reply.result["content"] for reply in replies] == [[0], [1], [2]]
