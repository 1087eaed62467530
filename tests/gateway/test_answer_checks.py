"""Checks of answers that a policy names: nothing of an answer is passed on before they have seen it whole."""

import json
from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from tests.gateway.provider import chat_chunk, data, events
from tests.gateway.test_chat import PLANTED, TEXT, TOOLS, assert_nothing_arrived
from tests.gateway.test_policy import INSULT
from tests.gateway.test_scopes import FIRST, chat, messages, responses

SECRET = "AKIA" + "Z7QXN4JPLM2WRT5K"
LEAKS = f"{TEXT} The aws_access_key_id={SECRET}"
RESTORES: dict[str, Any] = {"name": "pii_restoration"}
REFUSED = (openai.PermissionDeniedError, anthropic.PermissionDeniedError)


def put(gateway: Any, *inbound: Any, **more: Any) -> None:
    """Let the model have secrets, which it repeats, and check its answers."""
    entry = {"outbound": [{"name": "pii_redaction"}], "inbound": [RESTORES, *inbound], **more}
    gateway.put_policy(gateway={"pipelines": [entry]})


def secrets(**arguments: Any) -> dict[str, Any]:
    return {"name": "secret_redaction", "arguments": arguments}


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_what_a_check_refuses_is_refused_before_its_first_character(gateway, conversation, ask, stream):
    put(gateway, secrets(mode="block"))
    with pytest.raises(REFUSED) as refused:
        ask(gateway, gateway.key, None, (FIRST, LEAKS), stream=stream, headers=conversation)
    assert "sluice_blocked_by_policy" in json.dumps(refused.value.body)
    assert SECRET not in str(refused.value) and PLANTED[0] not in str(refused.value)
    gateway.await_answer(lambda event: event["error_code"] == "blocked_by_policy")
    said, _ = ask(gateway, gateway.key, None, (FIRST, TEXT), stream=stream, headers=conversation)
    assert said == f"You said: {TEXT}"
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("pieces", [1, 7, 1000])
@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_what_a_check_changes_is_changed_in_streams_as_in_whole_answers(gateway, conversation, ask, pieces):
    gateway.provider.pieces = pieces
    put(gateway, secrets())
    whole, streamed = (
        ask(gateway, gateway.key, None, (FIRST, LEAKS), stream=stream, headers=conversation)[0]
        for stream in (False, True)
    )
    assert whole == streamed
    assert whole.startswith(f"You said: {TEXT} The aws_access_key_id=[") and SECRET not in whole


def test_a_changed_stream_agrees_with_itself(gateway, conversation):
    put(gateway, secrets())
    client = gateway.openai(default_headers=conversation)
    heard = list(client.responses.create(model="gpt-5-mini", input=LEAKS, stream=True))
    assert SECRET not in "".join(event.model_dump_json() for event in heard)
    text = "".join(event.delta for event in heard if event.type == "response.output_text.delta")
    [done] = [event.text for event in heard if event.type == "response.output_text.done"]
    assert text == done == heard[-1].response.output_text and PLANTED[0] in text


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_of_tools_are_checked_and_stay_json(gateway, conversation, stream):
    put(gateway, secrets())
    client = gateway.openai(default_headers=conversation).chat.completions
    asked: Any = {
        "model": "gpt-5-mini",
        "messages": [{"role": "user", "content": f'"{LEAKS}"'}],
        "tools": TOOLS,
    }
    if stream:
        with client.stream(**asked) as parts:
            answer = parts.get_final_completion()
    else:
        answer = client.create(**asked)
    for number, call in enumerate(answer.choices[0].message.tool_calls):
        arguments = json.loads(call.function.arguments)
        assert arguments["number"] == number and arguments["text"].startswith(f'"{TEXT} The aws_access')
        assert SECRET not in arguments["text"]


def test_a_policy_may_refuse_streams_instead(gateway, conversation):
    put(gateway, secrets(mode="block"), streams="refuse")
    with pytest.raises(openai.PermissionDeniedError) as refused:
        chat(gateway, gateway.key, None, (FIRST, TEXT), stream=True, headers=conversation)
    assert refused.value.code == "sluice_blocked_by_policy" and "stream false" in str(refused.value)
    assert not gateway.provider.arrived
    assert chat(gateway, gateway.key, None, (FIRST, TEXT), headers=conversation)[0] == f"You said: {TEXT}"
    # Where nothing is checked, streams stay.
    gateway.put_policy(gateway={"pipelines": [{"streams": "refuse"}]})
    assert chat(gateway, gateway.key, None, (FIRST, TEXT), stream=True, headers=conversation)[0]


def test_a_stream_larger_than_what_is_held_is_refused(gateway, conversation):
    put(gateway, secrets(mode="block"))

    async def floods(request, _value):
        lines = [data(chat_chunk({"content": "All is well. " * 5_000}))] * 140
        return await events(gateway.provider, request, [*lines, "data: [DONE]\n\n"])

    gateway.provider.answer = floods
    with pytest.raises(openai.PermissionDeniedError) as refused:
        chat(gateway, gateway.key, None, (FIRST, TEXT), stream=True, headers=conversation)
    assert "larger than what is held" in str(refused.value)


def test_a_stream_that_nobody_asked_for_is_checked_too(gateway, conversation):
    put(gateway, secrets(mode="block"))

    async def streams(request, _value):
        lines = [data(chat_chunk({"content": LEAKS})), data(chat_chunk({}, finish="stop"))]
        return await events(gateway.provider, request, [*lines, "data: [DONE]\n\n"])

    gateway.provider.answer = streams
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}]}
    answer = gateway.post("/openai/v1/chat/completions", body, headers=conversation)
    assert answer.status_code == 403 and SECRET not in answer.text


@pytest.mark.parametrize("models", [["*"], ["gpt-*"]])
def test_a_stored_answer_is_checked_when_it_is_fetched(gateway, conversation, models):
    kept: dict[str, Any] = {}

    async def stores(request, value):
        if request.method == "GET":
            part = {"type": "output_text", "text": kept["text"], "annotations": []}
            message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
            return web.json_response({**kept["head"], "status": "completed", "output": [message]})
        kept["text"] = value["input"]
        kept["head"] = {"id": f"resp_{conversation['X-Sluice-Scope']}", "object": "response", "created_at": 1}
        kept["head"]["model"] = "gpt-5-mini-2026-01-01"
        return web.json_response({**kept["head"], "status": "queued", "output": []})

    gateway.provider.answer = stores
    put(gateway, secrets(mode="block"), models=models)
    client = gateway.openai(default_headers=conversation).responses
    for text, passes in ((TEXT, True), (LEAKS, False)):
        made = client.create(model="gpt-5-mini", input=text, background=True)
        if passes:
            assert client.retrieve(made.id).output_text == text
        else:
            with pytest.raises(openai.PermissionDeniedError):
                client.retrieve(made.id)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", [chat, messages])
def test_an_answer_is_compared_with_the_conversation_before_it(gateway, conversation, ask, stream):
    put(gateway, {"name": "hallucination_detection"})
    facts = f"Our guide is at https://docs.acme.dev/guide. The team of {PLANTED[0]} has 14 engineers."
    answered = {"text": "The team has 14 engineers."}

    async def tells(request, value):
        from tests.gateway.provider import _ANSWERS

        value["messages"] = [{"role": "user", "content": answered["text"]}]
        return await _ANSWERS[request.method, request.path](gateway.provider, request, value)

    gateway.provider.answer = tells

    def said() -> str:
        return ask(gateway, gateway.key, None, (FIRST, facts), stream=stream, headers=conversation)[0]

    assert said() == "You said: The team has 14 engineers."
    answered["text"] = "The team has 41 engineers. See https://docs.acme.dev/other."
    noted = said()
    assert noted.startswith(f"You said: {answered['text']}") and len(noted) > len(answered["text"]) + 20


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("action", ["block", "annotate"])
def test_moderation_of_answers_blocks_or_only_counts(gateway, conversation, stream, action):
    arguments = {"action": action, "level": "regulated"}
    put(gateway, {"name": "content_moderation", "arguments": arguments})
    if action == "block":
        with pytest.raises(openai.PermissionDeniedError) as refused:
            chat(gateway, gateway.key, None, (FIRST, INSULT), stream=stream, headers=conversation)
        assert "garbage" not in str(refused.value)
    else:  # a warning is for a model, and nobody's answer
        said = chat(gateway, gateway.key, None, (FIRST, INSULT), stream=stream, headers=conversation)[0]
        assert said == f"You said: {INSULT}"
