"""Names of members tell as much as values: handles for the model, originals for the caller's tools."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.conversations import values_in
from tests.gateway.provider import chat_chunk, data, events, named

MAIL, OTHER, PERSON = "ada.berg@kunde.example.de", "ole.lund@kunde.example.de", "Ottilie Brandstätter"
ARGUMENTS: dict[str, Any] = {
    "orders": {MAIL: {"count": 3, OTHER: None}},
    "rate": 1.5,
    "note": f"for {PERSON}",
}
RESULT = json.dumps({OTHER: {"open": 2}, PERSON: [1]}, ensure_ascii=False)
TEXT = json.dumps(ARGUMENTS)


@dataclass(frozen=True)
class Family:
    """A request with a call and its result, and how the model calls the same again.

    ``seen`` finds the arguments in a request that the provider got, ``whole`` and ``streamed`` answer with them, and
    ``got`` and ``joined`` find them in what the client got.
    """

    path: str
    request: dict[str, Any]
    seen: Callable[[Any], Any]
    whole: Callable[[Any], Any]
    streamed: Callable[[Any], list[str]]
    got: Callable[[Any], Any]
    joined: Callable[[list[Any]], str]


def cut(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def function_call(text: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "find", "arguments": text}}


def call_item(text: str) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": "c", "name": "find", "arguments": text}


def tool_use(value: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "find", "input": value}


CHAT = Family(
    "/openai/v1/chat/completions",
    {
        "model": "gpt-5-mini",
        "metadata": {MAIL: "owner"},
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": [function_call(TEXT)]},
            {"role": "tool", "tool_call_id": "c", "content": RESULT},
        ],
    },
    lambda value: next(each for each in value["messages"] if "tool_calls" in each)["tool_calls"][0][
        "function"
    ]["arguments"],
    lambda text: {
        "id": "x",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [function_call(text)]},
            }
        ],
    },
    lambda text: [
        data(chat_chunk({"tool_calls": [{"index": 0, **function_call("")}]})),
        *(
            data(chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}))
            for part in cut(text)
        ),
        data(chat_chunk({}, finish="tool_calls")),
    ],
    lambda answer: answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
    lambda chunks: "".join(
        call["function"]["arguments"]
        for chunk in chunks
        for call in chunk["choices"][0]["delta"].get("tool_calls", ())
    ),
)
_PLACE = {"output_index": 0, "item_id": "fc"}
RESPONSES = Family(
    "/openai/v1/responses",
    {
        "model": "gpt-5-mini",
        "metadata": {MAIL: "owner"},
        "input": [call_item(TEXT), {"type": "function_call_output", "call_id": "c", "output": RESULT}],
    },
    lambda value: value["input"][0]["arguments"],
    lambda text: {"id": "resp_n", "object": "response", "status": "completed", "output": [call_item(text)]},
    lambda text: [
        named("response.output_item.added", output_index=0, item=call_item("")),
        *(named("response.function_call_arguments.delta", **_PLACE, delta=part) for part in cut(text)),
        named("response.function_call_arguments.done", **_PLACE, arguments=text),
        named("response.output_item.done", output_index=0, item=call_item(text)),
        named("response.completed", response={"id": "resp_n", "output": [call_item(text)]}),
    ],
    lambda answer: answer["output"][0]["arguments"],
    lambda chunks: "".join(
        chunk["delta"] for chunk in chunks if chunk["type"] == "response.function_call_arguments.delta"
    ),
)
MESSAGES = Family(
    "/anthropic/v1/messages",
    {
        "model": "claude-x",
        "max_tokens": 9,
        "messages": [
            {"role": "assistant", "content": [tool_use(ARGUMENTS)]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": RESULT}]},
        ],
    },
    lambda value: value["messages"][0]["content"][0]["input"],
    lambda value: {"id": "m", "type": "message", "role": "assistant", "content": [tool_use(value)]},
    lambda value: [
        named("message_start", message={"id": "m", "type": "message", "role": "assistant", "content": []}),
        named("content_block_start", index=0, content_block=tool_use({})),
        *(
            named("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": part})
            for part in cut(json.dumps(value))
        ),
        named("content_block_stop", index=0),
        named("message_stop"),
    ],
    lambda answer: json.dumps(answer["content"][0]["input"]),
    lambda chunks: "".join(chunk["delta"]["partial_json"] for chunk in chunks if "delta" in chunk),
)
FAMILIES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_names_of_members_have_handles_at_the_model_and_originals_at_the_callers_tool(
    gateway, conversation, name, stream
):
    family = FAMILIES[name]

    async def calls_again(request: Any, value: Any) -> web.StreamResponse:
        arguments = family.seen(value)
        if stream:
            return await events(gateway.provider, request, family.streamed(arguments))
        return web.json_response(family.whole(arguments))

    def asked() -> Any:
        answer = gateway.post(family.path, {**family.request, "stream": stream}, headers=conversation)
        assert answer.status_code == 200, answer.text
        if not stream:
            return json.loads(family.got(answer.json()))
        lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
        if name == "responses":  # what is repeated whole agrees with what was streamed
            assert json.loads(chunks[-1]["response"]["output"][0]["arguments"]) == ARGUMENTS
        return json.loads(family.joined(chunks))

    gateway.provider.answer = calls_again
    assert asked() == asked() == ARGUMENTS
    assert not values_in(gateway.provider.arrived, [MAIL, OTHER, PERSON])
    first, second = (each.json for each in gateway.provider.arrived)
    assert first == second


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tool_that_gets_no_originals_gets_none_in_names_either(gateway, conversation, name):
    family = FAMILIES[name]

    async def calls_again(_request: Any, value: Any) -> web.StreamResponse:
        return web.json_response(family.whole(family.seen(value)))

    gateway.provider.answer = calls_again
    gateway.put_policy(gateway={"toolArguments": [{"tool": "find", "restore": False}]})
    answer = gateway.post(family.path, family.request, headers=conversation)
    seen = family.seen(gateway.provider.last.json)
    assert json.loads(family.got(answer.json())) == (seen if isinstance(seen, dict) else json.loads(seen))
    assert not any(value in answer.text for value in (MAIL, OTHER, PERSON))
