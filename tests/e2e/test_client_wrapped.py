"""The real clients of OpenAI and Anthropic, wrapped: the provider sees handles, the application originals."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from sluice_client import AsyncSluice, NotCoveredError, Sluice, wrap
from tests.e2e.fake_provider import Provider, provider
from tests.e2e.running import Service

QUESTION = "Write to John Doe and Jane Smith."
PLANTED = ("John Doe", "Jane Smith", "Erika Mustermann")
SAID = "Dear John Doe and Jane Smith, all is well."
MAIL = {"to": ["John Doe", "Jane Smith"], "n": 1}
TOOL = {
    "type": "function",
    "function": {"name": "mail", "description": "Sends mail, not to Erika Mustermann."},
}
CLAUDE_TOOL = {"name": "mail", "description": "Not to Erika Mustermann.", "input_schema": {"type": "object"}}


@pytest.fixture(scope="module")
def fake() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def sluice(service: Service) -> Iterator[Sluice]:
    with Sluice(service.url, service.key) as client:
        yield client


@pytest.fixture
def chat(fake: Provider, sluice: Sluice, scope: str) -> Iterator[Any]:
    """Return a wrapped OpenAI client whose scope knows John Doe as PERSON_1 and Jane Smith as PERSON_2."""
    sluice.redact(QUESTION, scope=scope)
    fake.bodies.clear()
    with openai.OpenAI(base_url=f"{fake.url}/v1", api_key="k", max_retries=0) as client:
        yield wrap(client, sluice, scope=scope, tools=["mail"])


@pytest.fixture
def claude(fake: Provider, sluice: Sluice, scope: str) -> Iterator[Any]:
    sluice.redact(QUESTION, scope=scope)
    fake.bodies.clear()
    with anthropic.Anthropic(base_url=fake.url, api_key="k", max_retries=0) as client:
        yield wrap(client, sluice, scope=scope, tools=["mail"])


def users(text: str = QUESTION) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def test_the_provider_is_told_values_without_the_wrapping(fake: Provider) -> None:
    fake.bodies.clear()
    with openai.OpenAI(base_url=f"{fake.url}/v1", api_key="k") as client:
        client.chat.completions.create(model="gpt-x", messages=users())
    assert fake.was_sent("John Doe")


def test_a_chat_completion_is_restored_whole_and_its_history_is_redacted_again(
    chat: Any, fake: Provider
) -> None:
    answer = chat.chat.completions.create(model="gpt-x", messages=users(), user="Erika Mustermann")
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    assert answer.choices[0].message.content == SAID
    following = chat.chat.completions.create(
        model="gpt-x", messages=[*users(), answer.choices[0].message, *users("And to John Doe?")]
    )
    assert following.usage.total_tokens == 3
    assert not fake.was_sent(*PLANTED)
    first, second = (json.loads(body)["messages"] for body in fake.bodies)
    assert second[0] == first[0], "the same turn is the same text again"


def test_tools_get_originals_only_where_they_are_named(
    chat: Any, fake: Provider, sluice: Sluice, scope: str
) -> None:
    answer = chat.chat.completions.create(model="gpt-x", messages=users(), tools=[TOOL])
    assert json.loads(answer.choices[0].message.tool_calls[0].function.arguments)["to"][:2] == MAIL["to"]
    with openai.OpenAI(base_url=f"{fake.url}/v1", api_key="k") as client:
        other = wrap(client, sluice, scope=scope).chat.completions.create(
            model="gpt-x", messages=users(), tools=[TOOL]
        )
    assert json.loads(other.choices[0].message.tool_calls[0].function.arguments)["to"][0] == "[PERSON_1]"
    assert not fake.was_sent(*PLANTED)


def test_a_streamed_chat_is_restored_in_every_channel(chat: Any, fake: Provider) -> None:
    texts: dict[int, str] = {0: "", 1: ""}
    calls: dict[int, str] = {0: "", 1: ""}
    finished, usage = [], None
    with chat.chat.completions.create(
        model="gpt-x",
        messages=users(),
        tools=[{"type": "function", "function": {"name": "mail"}}],
        stream=True,
    ) as stream:
        for chunk in stream:
            assert isinstance(chunk, openai.types.chat.ChatCompletionChunk)
            usage = chunk.usage or usage
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    calls[call.index] += call.function.arguments or ""
                if choice.finish_reason:
                    finished.append(choice.index)
                    assert texts[choice.index] == SAID, "nothing is missing when a choice ends"
    assert texts == {0: SAID, 1: SAID}
    assert json.loads(calls[0]) == MAIL
    assert json.loads(calls[1])["to"] == ["[PERSON_1]", "[PERSON_2]"], "this tool was not named"
    assert finished == [0, 1]
    assert usage.total_tokens == 3
    assert not fake.was_sent(*PLANTED)


def test_a_response_is_restored_whole_and_streamed(chat: Any, fake: Provider) -> None:
    tools = [{"type": "function", "name": "mail", "parameters": {"type": "object"}}]
    call = {"model": "gpt-x", "input": QUESTION, "instructions": "Never to Erika Mustermann.", "tools": tools}
    whole = chat.responses.create(**call)
    assert "John Doe and Jane Smith" in whole.output_text
    assert json.loads(whole.output[1].arguments)["to"][:2] == MAIL["to"]
    del call["instructions"]
    text, arguments, ends = "", "", {}
    for event in chat.responses.create(**call, stream=True):
        text += event.delta if event.type == "response.output_text.delta" else ""
        arguments += event.delta if event.type == "response.function_call_arguments.delta" else ""
        ends[event.type] = event
    assert text == SAID == ends["response.output_text.done"].text
    assert ends["response.completed"].response.output_text == SAID
    assert json.loads(arguments) == MAIL
    assert ends["response.function_call_arguments.done"].arguments == arguments
    assert not fake.was_sent(*PLANTED)


def test_a_message_is_restored_and_signed_reasoning_stays_as_it_is(claude: Any, fake: Provider) -> None:
    call = {"model": "claude-x", "max_tokens": 100, "messages": users(), "tools": [CLAUDE_TOOL]}
    answer = claude.messages.create(**call, system="Never to Erika Mustermann.")
    thinking, text, use = answer.content
    assert "John Doe and Jane Smith" in text.text
    assert use.input["to"][:2] == MAIL["to"]
    assert "[PERSON_1]" in thinking.thinking
    assert thinking.signature == "c2lnbmVk"
    history = [*users(), {"role": "assistant", "content": answer.content[:2]}, *users("Thanks.")]
    claude.messages.create(**{**call, "messages": history})
    sent = json.loads(fake.bodies[-1])["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": thinking.thinking, "signature": "c2lnbmVk"}
    assert claude.messages.count_tokens(model="claude-x", messages=users()).input_tokens == 7
    assert not fake.was_sent(*PLANTED)


def test_a_streamed_message_is_restored(claude: Any, fake: Provider) -> None:
    tools = [{"name": "mail", "input_schema": {"type": "object"}}]
    text = arguments = ""
    kinds = []
    for event in claude.messages.create(
        model="claude-x", max_tokens=9, messages=users(), tools=tools, stream=True
    ):
        kinds.append(event.type)
        if event.type == "content_block_delta":
            text += getattr(event.delta, "text", "")
            arguments += getattr(event.delta, "partial_json", "")
    assert (text, json.loads(arguments)) == (SAID, MAIL)
    assert kinds[:2] == ["message_start", "content_block_start"] or kinds[1] == "ping"
    assert kinds[-1] == "message_stop"
    assert not fake.was_sent(*PLANTED)


async def test_asynchronous_clients_are_wrapped_too(service: Service, fake: Provider, scope: str) -> None:
    fake.bodies.clear()
    async with (
        AsyncSluice(service.url, service.key) as sluice,
        openai.AsyncOpenAI(base_url=f"{fake.url}/v1", api_key="k") as client,
        anthropic.AsyncAnthropic(base_url=fake.url, api_key="k") as other,
    ):
        model = wrap(client, sluice, scope=scope)
        answer = await model.chat.completions.create(model="gpt-x", messages=users())
        assert answer.choices[0].message.content == SAID
        text = ""
        async for chunk in await model.chat.completions.create(model="gpt-x", messages=users(), stream=True):
            text += (
                chunk.choices[0].delta.content or "" if chunk.choices and not chunk.choices[0].index else ""
            )
        assert text == SAID
        claude = wrap(other, sluice, scope=scope)
        events = await claude.messages.create(model="c", max_tokens=9, messages=users(), stream=True)
        async with events:
            text = "".join([getattr(getattr(event, "delta", None), "text", "") async for event in events])
        assert text == SAID
        assert (await model.embeddings.create(model="e", input=QUESTION)).data[0].embedding == [0.1, 0.2]
    assert not fake.was_sent(*PLANTED)


def test_what_is_not_covered_is_refused_by_name(chat: Any, claude: Any, fake: Provider) -> None:
    for call in (
        lambda: chat.images.generate,
        lambda: chat.chat.completions.parse,
        lambda: claude.messages.stream,
    ):
        with pytest.raises(NotCoveredError, match="not covered"):
            call()
    assert not fake.bodies


def test_nothing_is_sent_where_redaction_fails(fake: Provider) -> None:
    fake.bodies.clear()
    with openai.OpenAI(base_url=f"{fake.url}/v1", api_key="k") as client:
        model = wrap(client, Sluice("http://127.0.0.1:1", "slc_x", retries=0))
        with pytest.raises(Exception, match="No service answers"):
            model.chat.completions.create(model="gpt-x", messages=users())
    assert not fake.bodies
