"""Calls that wait for their client: resumed by their caller, for the same request, once, within bounds."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.errors import InvalidArgumentsError, OverloadedError
from app.core.upstream import UpstreamError
from app.protocol.wire.exchange import SCOPE_KEY
from app.protocol.wire.parking import STATE_PREFIX, Parked, Parking, continues

CALLER = Caller("acme", "0000000a", frozenset({Role.INVOKER}))
CALL = {"name": "t", "arguments": {"a": 1}}

pytestmark = pytest.mark.timeout(20)


def context_of(caller: Caller = CALLER, method: str = "tools/call") -> Any:
    request = SimpleNamespace(scope={SCOPE_KEY: SimpleNamespace(caller=caller)})
    return SimpleNamespace(request=request, method=method)


async def asks_once(parked: Parked) -> dict[str, Any]:
    said = await parked.ask("elicitation/create", {"message": "Who?"})
    return {"content": said["content"]}


def answers(state: Any, content: str = "me", key: str = "question-1", **change: Any) -> dict[str, Any]:
    return {
        **CALL,
        "requestState": state["requestState"],
        "inputResponses": {key: {"content": content}},
        "_meta": {"progressToken": 2},
        **change,
    }


async def test_a_question_is_a_result_and_its_answer_goes_on_with_the_call() -> None:
    parking = Parking()
    asked = await parking.run(context_of(), CALL, asks_once)
    assert asked["inputRequests"] == {
        "question-1": {"method": "elicitation/create", "params": {"message": "Who?"}}
    }
    assert continues(answers(asked))
    assert parking.count == 1
    assert await parking.run(context_of(), answers(asked), asks_once) == {"content": "me"}
    assert parking.count == 0
    with pytest.raises(InvalidArgumentsError):
        await parking.run(context_of(), answers(asked), asks_once)


async def test_a_question_that_the_server_gave_up_is_not_asked_again() -> None:
    gave_up, resumed = asyncio.Event(), asyncio.Event()

    async def gives_up(parked: Parked) -> dict[str, Any]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await parked.ask("elicitation/create", {"message": "Who?"})
        gave_up.set()
        await resumed.wait()
        return {"content": "nobody"}

    parking = Parking()
    asked = await parking.run(context_of(), CALL, gives_up)
    await gave_up.wait()
    going_on = asyncio.create_task(parking.run(context_of(), answers(asked), gives_up))
    await asyncio.wait([going_on], timeout=0.05)
    assert not going_on.done(), "there is no question to answer"
    resumed.set()
    assert await going_on == {"content": "nobody"}


@pytest.mark.parametrize(
    ("caller", "method", "change"),
    [
        (Caller("acme", "0000000b", CALLER.roles), "tools/call", {}),
        (Caller("other", "0000000a", CALLER.roles), "tools/call", {}),
        (CALLER, "prompts/get", {}),
        (CALLER, "tools/call", {"arguments": {"a": 2}}),
        (CALLER, "tools/call", {"name": "u"}),
        (CALLER, "tools/call", {"more": 1}),
    ],
)
async def test_nobody_else_and_no_other_request_goes_on_with_it_and_it_waits_on(
    caller: Caller, method: str, change: dict[str, Any]
) -> None:
    parking = Parking()
    asked = await parking.run(context_of(), CALL, asks_once)
    with pytest.raises(InvalidArgumentsError):
        await parking.run(context_of(caller, method), answers(asked, **change), asks_once)
    assert parking.count == 1
    assert (await parking.run(context_of(), answers(asked), asks_once))["content"] == "me"


async def test_a_question_without_an_answer_is_asked_again_under_another_state() -> None:
    async def asks_two(parked: Parked) -> dict[str, Any]:
        said = await asyncio.gather(parked.ask("roots/list", {}), parked.ask("roots/list", {}))
        return {"content": [one["content"] for one in said]}

    parking = Parking()
    asked = await parking.run(context_of(), CALL, asks_two)
    assert set(asked["inputRequests"]) == {"question-1", "question-2"}
    again = await parking.run(context_of(), answers(asked, "one"), asks_two)
    assert set(again["inputRequests"]) == {"question-2"}
    assert again["requestState"] != asked["requestState"]
    odd = answers(again, key="question-2", inputResponses={"question-2": "no object"})
    third = await parking.run(context_of(), odd, asks_two)
    made = await parking.run(context_of(), answers(third, "two", "question-2"), asks_two)
    assert made == {"content": ["one", "two"]}


async def test_a_caller_has_at_most_32_calls_waiting_and_others_still_have_room() -> None:
    parking = Parking()
    for number in range(32):
        await parking.run(context_of(), {**CALL, "arguments": {"n": number}}, asks_once)
    with pytest.raises(OverloadedError):
        await parking.run(context_of(), CALL, asks_once)
    other = Caller("acme", "0000000b", CALLER.roles)
    await parking.run(context_of(other), CALL, asks_once)
    assert parking.count == 33
    await parking.close()
    assert parking.count == 0


async def test_a_call_asks_its_client_at_most_64_times() -> None:
    async def asks_on(parked: Parked) -> dict[str, Any]:
        for _ in range(100):
            await parked.ask("roots/list", {})
        return {}

    parking = Parking()
    asked = await parking.run(context_of(), CALL, asks_on)
    for number in range(1, 64):
        asked = await parking.run(context_of(), answers(asked, key=f"question-{number}"), asks_on)
    with pytest.raises(UpstreamError):
        await parking.run(context_of(), answers(asked, key="question-64"), asks_on)
    assert parking.count == 0


async def test_a_call_that_nobody_answers_in_time_is_given_up() -> None:
    ended = asyncio.Event()

    async def asks_and_notes(parked: Parked) -> dict[str, Any]:
        try:
            return dict(await parked.ask("roots/list", {}))
        finally:
            ended.set()

    parking = Parking(wait_s=0.01)
    asked = await parking.run(context_of(), CALL, asks_and_notes)
    await ended.wait()
    assert parking.count == 0
    with pytest.raises(InvalidArgumentsError):
        await parking.run(context_of(), answers(asked), asks_and_notes)


async def test_a_call_that_asks_nothing_is_answered_at_once_and_one_that_fails_fails() -> None:
    async def done(_parked: Parked) -> dict[str, Any]:
        return {"content": []}

    async def fails(_parked: Parked) -> dict[str, Any]:
        raise UpstreamError(-1, "No.")

    parking = Parking()
    assert await parking.run(context_of(), CALL, done) == {"content": []}
    with pytest.raises(UpstreamError):
        await parking.run(context_of(), CALL, fails)
    assert not continues({**CALL, "requestState": "theirs"})
    assert not continues({**CALL, "requestState": 7})
    assert continues({"requestState": STATE_PREFIX})
