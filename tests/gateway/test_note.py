"""What the model is told of handles: it names none, and no caller hears of it."""

from typing import Any

import pytest
from aiohttp import web

from app.core.content.handles import find_handles
from tests.gateway.model import Model
from tests.gateway.provider import chat_chunk, data, events, named
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived

UNRESTORED = {"pipelines": [{"inbound": []}]}


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


def quoted(value: Any) -> str:
    """Return the note of a request, which is the first text of it."""
    if "messages" not in value:
        return value["instructions"]
    return value["system"][0]["text"] if "system" in value else value["messages"][0]["content"]


def chat(gateway: Any, headers: Any, *, stream: bool) -> str:
    asked: Any = [{"role": "user", "content": TEXT}]
    client = gateway.openai(default_headers=headers).chat.completions
    answer = client.create(model="gpt-5-mini", messages=asked, stream=stream)
    if stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in answer)
    return answer.choices[0].message.content


def claude(gateway: Any, headers: Any, *, stream: bool) -> str:
    asked: Any = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": TEXT}]}
    client = gateway.anthropic(default_headers=headers).messages
    if not stream:
        return client.create(**asked).content[0].text
    with client.stream(**asked) as parts:
        return "".join(parts.text_stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", [chat, claude])
def test_a_model_that_quotes_the_note_quotes_nobody(gateway, conversation, ask, stream):
    notes = []

    async def quotes(request, value):
        notes.append(text := quoted(value))
        parts = gateway.provider.parts(text)
        if request.path.startswith("/a/"):
            head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "usage": {}}
            if not value.get("stream"):
                return web.json_response({**head, "content": [{"type": "text", "text": text}]})
            deltas = [
                named("content_block_delta", index=0, delta={"type": "text_delta", "text": part})
                for part in parts
            ]
            begin = [named("message_start", message={**head, "content": []})]
            begin.append(named("content_block_start", index=0, content_block={"type": "text", "text": ""}))
            end = [named("content_block_stop", index=0), named("message_stop")]
            return await events(gateway.provider, request, [*begin, *deltas, *end])
        if not value.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return web.json_response({"id": "c", "object": "chat.completion", "choices": [choice]})
        lines = [data(chat_chunk({"content": part})) for part in parts]
        return await events(
            gateway.provider, request, [*lines, data(chat_chunk({}, finish="stop")), "data: [DONE]\n\n"]
        )

    ask(gateway, conversation, stream=False)  # now the conversation has handles
    gateway.provider.answer = quotes
    assert ask(gateway, conversation, stream=stream) == notes[0]
    assert len(notes[0]) > 100 and not any(letter.isdigit() for letter in notes[0])
    assert not list(find_handles(notes[0]))
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("policy", [{}, UNRESTORED])
@pytest.mark.parametrize("instructions", [None, "Be brief."])
def test_no_answer_repeats_the_note(gateway, conversation, policy, instructions):
    gateway.put_policy(gateway=policy)
    model = gateway.provider.answer = Model(gateway.provider)
    client = gateway.openai(default_headers=conversation).responses
    asked: Any = {"model": "gpt-5-mini", "input": TEXT}
    if instructions is not None:
        asked["instructions"] = instructions
    assert client.create(**asked).instructions == instructions
    assert gateway.provider.last.json["instructions"] != instructions  # the model was told
    heard = [
        event.response.instructions
        for event in client.create(**asked, stream=True)
        if hasattr(event, "response")
    ]
    assert heard == [instructions] * 3
    assert not model.refused
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("policy", [UNRESTORED, {"mode": "observe"}])
def test_a_conversation_goes_on_where_nothing_is_restored(gateway, policy, stream):
    gateway.put_policy(gateway=policy)
    model = gateway.provider.answer = Model(gateway.provider)
    client = gateway.openai().responses

    def said(text: str, before: str | None) -> Any:
        asked: Any = {"model": "gpt-5-mini", "input": text, "previous_response_id": before}
        if not stream:
            return client.create(**asked)
        return list(client.create(**asked, stream=True))[-1].response

    first = said(TEXT, None)
    second = said(f"Once more: {PLANTED[0]}.", first.id)
    assert not model.refused and second.previous_response_id == first.id
    assert (PLANTED[0] in second.output_text) is ("mode" in policy)
    gateway.await_answer(lambda event: event["details"].get("output_tokens") == 7)


@pytest.mark.parametrize("stream", [False, True])
def test_signed_reasoning_goes_back_where_nothing_is_restored(gateway, conversation, stream):
    gateway.put_policy(gateway=UNRESTORED)
    model = gateway.provider.answer = Model(gateway.provider)
    client = gateway.anthropic(default_headers=conversation).messages
    asked: Any = {
        "model": "claude-x",
        "max_tokens": 2000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    messages: list[Any] = []
    for text in (TEXT, "And then?"):
        messages.append({"role": "user", "content": text})
        if stream:
            with client.stream(**asked, messages=messages) as parts:
                answer = parts.get_final_message()
        else:
            answer = client.create(**asked, messages=messages)
        assert answer.content[0].type == "thinking"
        messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
    assert not model.refused
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize(
    ("marks", "own"),
    [
        ([], {"type": "ephemeral"}),
        (["5m"], {"type": "ephemeral", "ttl": "5m"}),
        (["1h", "5m", "5m"], {"type": "ephemeral", "ttl": "1h"}),
        (["1h", "5m", "5m", "5m"], None),
    ],
)
def test_the_note_takes_no_breakpoint_that_the_provider_would_refuse(gateway, conversation, marks, own):
    kept = [{"cache_control": {"type": "ephemeral", "ttl": mark}} for mark in marks]
    system: Any = [
        {"type": "text", "text": f"Rule {number}.", **mark} for number, mark in enumerate(kept[:2])
    ]
    content: Any = [
        {"type": "text", "text": f"Word {number}.", **mark} for number, mark in enumerate(kept[2:])
    ]
    content.append({"type": "text", "text": TEXT})
    gateway.anthropic(default_headers=conversation).messages.create(
        model="claude-x", max_tokens=9, system=system, messages=[{"role": "user", "content": content}]
    )
    sent = gateway.provider.last.json
    assert sent["system"][0].get("cache_control") == own
    assert [block.get("cache_control") for block in sent["system"][1:]] == [
        mark["cache_control"] for mark in kept[:2]
    ]
    assert_nothing_arrived(gateway)
