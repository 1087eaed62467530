"""Questions as results of type input_required, between sides of both revisions."""

import asyncio
from typing import Any

import pytest

from tests.protocol.aggregated_service import OnlyHandshake, OnlyModern
from tests.protocol.answering import ACCEPTED, EVERYTHING, SAMPLED, answering
from tests.protocol.test_mcp_callbacks import ALICE, behind, modern, second_key
from tests.upstreams.scripted import ScriptedServer, elicit, text

SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5}


def wanting() -> ScriptedServer:
    script = ScriptedServer()
    script.add_tool("wants", wants_input)
    return script


async def wants_input(context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask in the way of the modern revision: twice, with a state in between."""
    params = context.params
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}}
    if "inputResponses" not in params:
        return {
            "resultType": "input_required",
            "inputRequests": {"who": question},
            "requestState": "first",
        }
    if params.get("requestState") == "first":
        return {
            "resultType": "input_required",
            "inputRequests": {"model": {"method": "sampling/createMessage", "params": SAMPLING}},
            "requestState": "second " + params["inputResponses"]["who"]["content"]["name"],
        }
    said = params["inputResponses"]["model"]["content"]["text"]
    return {"resultType": "complete", **text(f"{params['requestState']} {said}")}


async def test_a_question_in_a_call_of_a_modern_client_becomes_a_result_and_the_answer_continues_it(tmp_path):
    capabilities = {"elicitation": {}, "sampling": {}}
    script = ScriptedServer()
    async with behind(tmp_path, script, OnlyHandshake) as (url, _), modern(url, capabilities) as call:
        asked = (await call("alpha__elicit")).result
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        state = asked["requestState"]
        again = (await call("alpha__elicit", requestState=state, inputResponses={})).result
        assert again["inputRequests"] == asked["inputRequests"]
        assert again["requestState"] != state
        done = await call("alpha__elicit", requestState=again["requestState"], inputResponses={key: ACCEPTED})
        used = await call("alpha__elicit", requestState=state, inputResponses={key: ACCEPTED})

    assert done.result["content"][0]["text"] == 'accept {"name": "Ada"}'
    assert done.result["resultType"] == "complete"
    assert used.error["code"] == -32602
    assert script.calls == [("tools/call", "elicit")]


async def test_a_waiting_call_is_its_callers_alone_and_stays_the_call_it_was(tmp_path):
    async with (
        behind(tmp_path, ScriptedServer(), OnlyHandshake) as (url, app),
        modern(url, {"elicitation": {}}) as call,
        modern(url, {"elicitation": {}}, await second_key(app)) as stranger,
    ):
        asked = (await call("alpha__elicit")).result
        answers = {"requestState": asked["requestState"], "inputResponses": {"question-1": ACCEPTED}}
        stolen = await stranger("alpha__elicit", **answers)
        other = await call("alpha__sample", **answers)
        done = await call("alpha__elicit", **answers)

    assert stolen.error["code"] == other.error["code"] == -32602
    assert done.result["content"][0]["text"] == 'accept {"name": "Ada"}'


async def test_waiting_calls_are_given_up_when_the_process_stops(tmp_path):
    script = ScriptedServer()
    async with behind(tmp_path, script, OnlyHandshake) as (url, app):
        async with modern(url, {"elicitation": {}}) as call:
            await call("alpha__elicit")
        parking = app.state.mcp.callbacks.parking
        assert parking.count == 1
    assert parking.count == 0


async def test_a_modern_client_that_declared_nothing_is_not_asked(tmp_path):
    async with behind(tmp_path, ScriptedServer(), OnlyHandshake) as (url, _), modern(url, {}) as call:
        reply = await call("alpha__elicit")

    assert "error" in reply.message or reply.result["isError"]


async def test_results_that_want_input_become_questions_to_a_client_of_the_handshake_revision(tmp_path):
    async with behind(tmp_path, wanting(), OnlyModern) as (url, _), answering(url, ALICE) as caller:
        reply = await caller.tool("alpha__wants")

    assert reply.result["content"][0]["text"] == "second Ada Paris"
    assert "resultType" not in reply.result
    assert [one["method"] for one in caller.asked] == ["elicitation/create", "sampling/createMessage"]


async def test_a_client_that_cannot_be_asked_is_told_what_it_would_need(tmp_path):
    async with (
        behind(tmp_path, wanting(), OnlyModern) as (url, _),
        answering(url, ALICE, {"roots": {}}) as partly,
        answering(url, ALICE, {}) as not_at_all,
    ):
        replies = [await one.tool("alpha__wants") for one in (partly, not_at_all)]

    for reply in replies:
        assert reply.error["code"] == -32021
        assert reply.error["data"]["requiredCapabilities"] == {"elicitation": {}}
        assert "elicitation/create" in reply.error["message"]


async def test_results_that_want_input_pass_whole_between_modern_sides(tmp_path):
    async with behind(tmp_path, wanting()) as (url, _), modern(url, dict(EVERYTHING)) as call:
        first = (await call("alpha__wants")).result
        state = first["requestState"]
        second = (await call("alpha__wants", requestState=state, inputResponses={"who": ACCEPTED})).result
        third = await call(
            "alpha__wants", requestState=second["requestState"], inputResponses={"model": SAMPLED}
        )

    # A state goes back to the server as it was, and tells the client nothing.
    assert "first" not in first["requestState"] and "Ada" not in second["requestState"]
    assert first["inputRequests"]["who"]["params"]["message"] == "Who?"
    assert third.result["content"][0]["text"] == "second Ada Paris"


async def test_connections_of_modern_calls_are_used_again_and_bounded_for_each_key(tmp_path):
    script = ScriptedServer()
    async with (
        behind(tmp_path, script, OnlyHandshake) as (url, app),
        modern(url, {"elicitation": {}}) as call,
    ):
        pool = app.state.services.dedicated.pool
        pool.most_of_one = 2
        for _ in range(3):
            await call("alpha__echo")
        assert len(pool._open) == len(pool._idle) == 1
        first = (await call("alpha__elicit")).result
        second = (await call("alpha__elicit")).result
        refused = await call("alpha__echo")
        for asked in (first, second):
            answers = {"question-1": ACCEPTED}
            done = await call("alpha__elicit", requestState=asked["requestState"], inputResponses=answers)
            assert done.result["content"][0]["text"] == 'accept {"name": "Ada"}'
        assert (await call("alpha__echo")).status == 200
        assert len(pool._idle) == 1  # those over which a client answered ended with their calls

    assert refused.error["code"] == 5030
    assert not pool._open


async def test_a_state_that_imitates_ours_is_sealed_like_any_other(tmp_path):
    script = ScriptedServer()
    script.verbatim["tools/call:echo"] = {
        "resultType": "input_required",
        "requestState": "dev.sluice/waiting.x",
    }
    async with behind(tmp_path, script, OnlyModern) as (url, _), modern(url, {"elicitation": {}}) as call:
        state = (await call("alpha__echo")).result["requestState"]
        moved = await call("alpha__add", requestState=state)

    assert "waiting" not in state
    assert moved.error["code"] == -32602


async def test_a_call_that_waited_too_long_is_given_up_and_says_so(tmp_path):
    script, ended = ScriptedServer(), asyncio.Event()

    async def noting(context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return await elicit(context, arguments)
        finally:
            ended.set()

    script.add_tool("elicit", noting)
    async with (
        behind(tmp_path, script, OnlyHandshake) as (url, app),
        modern(url, {"elicitation": {}}) as call,
    ):
        parking = app.state.mcp.callbacks.parking
        parking.wait_s = 0.05
        asked = (await call("alpha__elicit")).result
        async with asyncio.timeout(10):
            while parking.count or not ended.is_set():
                await asyncio.sleep(0.02)
        late = await call(
            "alpha__elicit",
            requestState=asked["requestState"],
            inputResponses={"question-1": ACCEPTED},
        )

    assert late.error["code"] == -32602
    assert late.error["data"]["pointer"] == "/requestState"
    assert "from the start" in late.error["message"]


async def test_a_modern_server_that_asks_what_the_client_did_not_declare_reaches_no_client(tmp_path):
    async with behind(tmp_path, wanting(), OnlyModern) as (url, _):
        for capabilities in ({}, {"sampling": {}}):
            async with modern(url, capabilities) as call:
                reply = await call("alpha__wants")
            assert (reply.error["code"], reply.error["data"]["requiredCapabilities"]) == (
                -32021,
                {"elicitation": {}},
            )


@pytest.mark.parametrize(
    "odd",
    [
        {"inputRequests": {"q": {"method": "tools/call", "params": {}}}},
        {"inputRequests": {"q": "ask"}},
        {"inputRequests": {"q": {"method": "elicitation/create", "params": "who"}}},
    ],
)
async def test_a_modern_server_that_asks_in_no_known_way_reaches_no_client(tmp_path, odd):
    script = ScriptedServer()
    script.verbatim["tools/call:echo"] = {"resultType": "input_required", **odd}
    async with behind(tmp_path, script, OnlyModern) as (url, _), modern(url, {"elicitation": {}}) as call:
        reply = await call("alpha__echo")

    assert reply.error["code"] == -32603
