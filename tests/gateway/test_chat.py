"""Chat completions through the door with OpenAI's own client: handles at the provider, originals at the caller."""

import json
import time
from itertools import pairwise
from typing import Any

import openai
import pytest
from aiohttp import web

from tests.gateway.conftest import Gateway
from tests.gateway.provider import chat_chunk, data, events, said

PLANTED = ("Ottilie Brandstätter", "ottilie.brandstaetter@example.org", "DE89370400440532013000")
TEXT = f"I am {PLANTED[0]}, write to {PLANTED[1]}; my account is {PLANTED[2]}."
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "note",
            "description": "Note a text.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
    }
]


def assert_nothing_arrived(gateway: Gateway) -> None:
    everything = gateway.provider.everything()
    assert gateway.provider.arrived
    for value in PLANTED:
        for spelled in (value, json.dumps(value)[1:-1]):
            assert spelled.encode() not in everything
    assert gateway.key.encode() not in everything


def test_an_answer_comes_back_with_originals(gateway, conversation):
    client = gateway.openai(default_headers=conversation)
    raw = client.chat.completions.with_raw_response.create(
        model="gpt-5-mini", messages=[{"role": "user", "content": TEXT}]
    )
    answer = raw.parse()
    assert answer.choices[0].message.content == f"You said: {TEXT}"
    assert answer.usage is not None and answer.usage.total_tokens == 18
    assert answer._request_id == "req_of_the_provider"
    assert raw.headers["x-ratelimit-remaining-requests"] == "99"
    assert raw.headers["x-sluice-scope"] == conversation["X-Sluice-Scope"]
    assert raw.headers["x-sluice-unscanned"] == "0"
    assert_nothing_arrived(gateway)
    sent = gateway.provider.last
    assert "[PERSON_" in sent.json["messages"][-1]["content"]
    assert sent.headers["Authorization"] == "Bearer sk-of-the-provider-0123456789"


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_stream_comes_back_with_originals(gateway, conversation, pieces):
    gateway.provider.pieces = pieces
    client = gateway.openai(default_headers=conversation)
    stream = client.chat.completions.create(
        model="gpt-5-mini",
        messages=[{"role": "user", "content": TEXT}],
        stream=True,
        stream_options={"include_usage": True},
        n=2,
    )
    texts, usage = ["", ""], None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == [f"You said: {TEXT}"] * 2
    assert usage is not None and usage.total_tokens == 18
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_tools_keeps_its_handles(gateway, conversation, stream):
    client = gateway.openai(default_headers=conversation)
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for turn in range(5):
        messages.append({"role": "user", "content": f"{turn}: {TEXT}"})
        with client.chat.completions.stream(model="fast", messages=messages, tools=TOOLS) as events:
            answer = events.get_final_completion() if stream else None
        if answer is None:
            answer = client.chat.completions.create(model="fast", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        calls = message.tool_calls or []
        assert [json.loads(call.function.arguments) for call in calls] == [
            {"text": f"{turn}: {TEXT}", "number": number} for number in range(2)
        ]
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        noted = f"Noted {PLANTED[0]}."
        messages += [{"role": "tool", "tool_call_id": call.id, "content": noted} for call in calls]
        answer = client.chat.completions.create(model="fast", messages=messages, tools=TOOLS)
        assert answer.choices[0].message.content == f"You said: Noted {PLANTED[0]}."
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
    assert_nothing_arrived(gateway)
    assert {request.json["model"] for request in gateway.provider.arrived} == {"gpt-5-mini"}
    # What was sent stays as it was: the provider's cache of the conversation holds.
    bodies = [request.json["messages"] for request in gateway.provider.arrived]
    for earlier, later in pairwise(bodies):
        assert later[: len(earlier)] == earlier


def test_without_the_role_restorer_handles_stay(gateway, conversation):
    client = gateway.openai(gateway.new_key("invoker"), default_headers=conversation)
    answer = client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": TEXT}])
    text = answer.choices[0].message.content or ""
    assert "[PERSON_" in text and not any(value in text for value in PLANTED)


def test_a_handle_that_no_scope_gave_stays_a_literal(gateway, conversation):
    client = gateway.openai(default_headers=conversation)
    said = f"{PLANTED[0]} typed [EMAIL_77] and [PERSON_99]."
    answer = client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": said}])
    assert answer.choices[0].message.content == f"You said: {said}"


def test_what_happened_is_on_record_without_content(gateway, conversation):
    client = gateway.openai(default_headers=conversation)
    client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": TEXT}])
    sent, restored, ended = (
        gateway.events(f"gateway.{action}")[0] for action in ("request", "restore", "answer")
    )
    assert sent["outcome"] == "sent" and sent["counts"]["PERSON"] >= 1
    assert sent["details"]["provider"] == "main" and sent["details"]["model"] == "gpt-5-mini"
    assert restored["outcome"] == "ok"
    assert ended["details"]["status"] == 200 and ended["counts"]["PERSON"] >= 1
    assert ended["details"]["completion_tokens"] == 7 and ended["details"]["first_byte_us"] > 0
    told = json.dumps([sent, restored, ended])
    assert not any(value in told for value in PLANTED)


def test_a_model_that_nobody_has_is_refused_in_the_providers_shape(gateway):
    with pytest.raises(openai.NotFoundError) as refused:
        gateway.openai().chat.completions.create(model="llama", messages=[{"role": "user", "content": TEXT}])
    assert refused.value.code == "sluice_not_found"
    assert not gateway.provider.arrived


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_left_out_of_an_answer_is_on_record(gateway, conversation, stream):
    async def probable(request, value):
        text = said(value)
        tokens = {
            "content": [{"token": "I", "logprob": -0.1, "bytes": [73], "top_logprobs": []}],
            "refusal": None,
        }
        if value.get("stream"):
            chunk = chat_chunk({"content": text}, finish="stop")
            chunk["choices"][0]["logprobs"] = tokens
            return await events(gateway.provider, request, [data(chunk), "data: [DONE]\n\n"])
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": tokens}
        return web.json_response({"id": "c", "object": "chat.completion", "choices": [choice]})

    gateway.provider.answer = probable
    for text, dropped in ((TEXT, 1), ("Hello there.", None)):
        before = gateway.events("gateway.answer")[0]["id"]
        body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}], "stream": stream}
        answer = gateway.post("/openai/v1/chat/completions", body, headers=conversation)
        assert (b"-0.1" in answer.content) is (dropped is None)
        until = time.monotonic() + 20  # the event is stored after the client has heard the end
        while (ended := gateway.events("gateway.answer")[0])["id"] == before and time.monotonic() < until:
            time.sleep(0.05)
        assert ended["id"] != before and ended["details"].get("logprobs_dropped") == dropped
