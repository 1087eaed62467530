"""Messages through the door with Anthropic's own client: whole, streamed, with tools, thinking and citations."""

import json
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from aiohttp import web

from tests.gateway.provider import events, named
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived

TOOLS: Any = [
    {
        "name": "note",
        "description": "Note a text.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
]


def asked(**members: Any) -> Any:
    return {
        "model": "claude-x",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": TEXT}],
        **members,
    }


def test_a_message_comes_back_with_originals(gateway, conversation):
    client = gateway.anthropic(default_headers=conversation)
    raw = client.messages.with_raw_response.create(**asked(system="Be brief."))
    answer = raw.parse()
    assert answer.content[0].text == f"You said: {TEXT}"
    assert answer.usage.output_tokens == 7 and answer._request_id == "req_of_the_provider"
    assert raw.headers["anthropic-ratelimit-requests-remaining"] == "99"
    assert_nothing_arrived(gateway)
    sent = gateway.provider.last
    assert sent.path == "/a/v1/messages" and sent.headers["x-api-key"].startswith("sk-of-the-provider")
    assert "Be brief." in json.dumps(sent.json["system"])


@pytest.mark.parametrize("pieces", [1, 4, 1000])
def test_a_stream_with_a_tool_comes_back_with_originals(gateway, conversation, pieces):
    gateway.provider.pieces = pieces
    client = gateway.anthropic(default_headers=conversation)
    texts, kinds = "", set()
    with client.messages.stream(**asked(tools=TOOLS)) as stream:
        for event in stream:
            kinds.add(event.type)
            if event.type == "text":
                texts += event.text
        final = stream.get_final_message()
    assert texts == f"You said: {TEXT}"
    assert final.content[0].text == texts
    assert final.content[1].input == {"text": TEXT, "number": 1}
    assert final.stop_reason == "tool_use" and final.usage.output_tokens == 7
    assert_nothing_arrived(gateway)


def test_results_of_tools_are_hidden_and_the_history_stays(gateway, conversation):
    client = gateway.anthropic(default_headers=conversation)
    messages: list[Any] = [{"role": "user", "content": TEXT}]
    for _ in range(3):
        answer = client.messages.create(**asked(messages=messages, tools=TOOLS))
        messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"Noted {PLANTED[0]}."}
            for block in answer.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results or TEXT})
    assert_nothing_arrived(gateway)
    bodies = [request.json["messages"] for request in gateway.provider.arrived]
    for earlier, later in pairwise(bodies):
        assert later[: len(earlier)] == earlier


def test_signed_thinking_goes_back_as_the_provider_signed_it(gateway, conversation):
    signed: list[Any] = []

    async def thinks(request, value):
        person = value["messages"][0]["content"].split(" ", 2)[2].partition(",")[0]
        block = {"type": "thinking", "thinking": f"The user is {person}.", "signature": "c2lnbmF0dXJl"}
        signed.append(block)
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x"}
        head |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not value.get("stream"):
            content = [block, {"type": "text", "text": f"Hello {person}"}]
            return web.json_response({**head, "content": content, "stop_reason": "end_turn"})
        lines = [
            named("message_start", message={**head, "content": [], "stop_reason": None}),
            named("content_block_start", index=0, content_block={**block, "thinking": "", "signature": ""}),
            *(
                named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": part})
                for part in gateway.provider.parts(block["thinking"])
            ),
            named(
                "content_block_delta",
                index=0,
                delta={"type": "signature_delta", "signature": block["signature"]},
            ),
            named("content_block_stop", index=0),
            named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1}),
            named("message_stop"),
        ]
        return await events(gateway.provider, request, lines)

    gateway.provider.answer = thinks
    client = gateway.anthropic(default_headers=conversation)
    thinking = {"type": "enabled", "budget_tokens": 1024}
    for stream in (False, True):
        if stream:
            with client.messages.stream(**asked(thinking=thinking)) as arriving:
                answer = arriving.get_final_message()
        else:
            answer = client.messages.create(**asked(thinking=thinking))
        block = answer.content[0].model_dump()
        assert PLANTED[0] in block["thinking"]
        history = [*asked()["messages"], {"role": "assistant", "content": [block]}]
        history.append({"role": "user", "content": "Go on."})
        client.messages.create(**asked(messages=history, thinking=thinking))
        assert gateway.provider.last.json["messages"][1]["content"][0] == signed[0]
    assert_nothing_arrived(gateway)


def test_signed_thinking_that_nobody_keeps_is_refused_by_name(gateway, conversation):
    block = {"type": "thinking", "thinking": f"It is {PLANTED[0]}.", "signature": "b3RoZXI="}
    history = [*asked()["messages"], {"role": "assistant", "content": [block]}]
    history.append({"role": "user", "content": "Go on."})
    with pytest.raises(anthropic.APIStatusError) as refused:
        gateway.anthropic(default_headers=conversation).messages.create(**asked(messages=history))
    assert refused.value.status_code < 500 and "signed reasoning" in str(refused.value)
    assert not gateway.provider.arrived


def test_tokens_are_counted_on_what_would_be_sent(gateway, conversation):
    client = gateway.anthropic(default_headers=conversation)
    counted = client.messages.count_tokens(model="claude-x", messages=asked()["messages"])
    assert counted.input_tokens == 42
    assert gateway.provider.last.path == "/a/v1/messages/count_tokens"
    assert_nothing_arrived(gateway)


def test_models_are_listed(gateway):
    assert [model.id for model in gateway.anthropic().models.list()] == ["claude-x"]


def test_a_user_of_the_application_is_a_digest(gateway, conversation):
    client = gateway.anthropic(default_headers=conversation)
    for _ in range(2):
        client.messages.create(**asked(metadata={"user_id": PLANTED[1]}))
    users = {request.json["metadata"]["user_id"] for request in gateway.provider.arrived}
    assert len(users) == 1 and PLANTED[1] not in json.dumps(list(users))
