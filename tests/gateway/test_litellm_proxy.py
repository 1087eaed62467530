"""The real LiteLLM proxy with Sluice as its guardrail, in front of the fake provider."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

import openai
import pytest

from tests.benchmarks.speed.processes import free_port
from tests.gateway.conftest import Gateway
from tests.outside.litellm_proxy import MASTER_KEY, guardrail, litellm_proxy

pytestmark = pytest.mark.outside

PLANTED = ("Ottilie Brandstätter", "ottilie.brandstaetter@example.org", "DE89370400440532013000")
TEXT = f"I am {PLANTED[0]}, write to {PLANTED[1]}; my account is {PLANTED[2]}."
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "note", "description": f"As {PLANTED[1]} asked.", "parameters": NOTE},
    }
]
MODEL = "gpt-5-mini"


@dataclass(frozen=True)
class Behind:
    """LiteLLM's proxy, and what stands behind it."""

    url: str
    gateway: Gateway

    def client(self, session: str | None = None) -> openai.OpenAI:
        headers = {"x-litellm-session-id": session} if session else {}
        client = openai.OpenAI(
            base_url=self.url, api_key=MASTER_KEY, max_retries=0, default_headers=headers, timeout=60
        )
        return self.gateway.clients.enter_context(client)

    def said(self, session: str, text: str = TEXT, **members: Any) -> Any:
        messages: Any = [{"role": "user", "content": text}]
        return self.client(session).chat.completions.create(model=MODEL, messages=messages, **members)

    def assert_nothing_arrived(self, *values: str) -> None:
        everything = self.gateway.provider.everything()
        assert self.gateway.provider.arrived
        for value in values or PLANTED:
            for spelled in (value, json.dumps(value)[1:-1]):
                assert spelled.encode() not in everything


@pytest.fixture(scope="module")
def proxy(shared: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the proxy: the guardrail of the docs for every call, and others that a call names."""
    base = f"{shared.service.url}/integrations/litellm"
    down = f"http://127.0.0.1:{free_port()}/integrations/litellm"
    guardrails = [
        guardrail("sluice", base, shared.key),
        guardrail("down", down, shared.key, default_on=False),
        guardrail("down-open", down, shared.key, default_on=False, unreachable_fallback="fail_open"),
        guardrail("wrong-key", base, "slc_00000000_" + "x" * 43, default_on=False),
    ]
    folder = tmp_path_factory.mktemp("litellm")
    with litellm_proxy(folder, f"{shared.provider.url}/v1", guardrails) as url:
        yield url


@pytest.fixture
def behind(proxy: str, gateway: Gateway) -> Behind:
    return Behind(proxy, gateway)


@pytest.fixture
def session() -> str:
    return uuid4().hex


@contextmanager
def policy(gateway: Gateway, **members: Any) -> Iterator[None]:
    """Let a policy hold for a block."""
    gateway.put_policy(**members)
    try:
        yield
    finally:
        gateway.put_policy()


def streamed(stream: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def test_a_whole_answer_comes_back_with_originals(behind, session):
    answer = behind.said(session)
    assert answer.choices[0].message.content == f"You said: {TEXT}"
    behind.assert_nothing_arrived()
    assert "[PERSON_" in behind.gateway.provider.last.json["messages"][-1]["content"]


def test_without_a_session_the_id_of_the_call_is_enough(behind):
    answer = behind.said("")
    assert answer.choices[0].message.content == f"You said: {TEXT}"
    behind.assert_nothing_arrived()


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_stream_comes_back_with_originals(behind, session, pieces):
    behind.gateway.provider.pieces = pieces
    assert streamed(behind.said(session, stream=True)) == f"You said: {TEXT}"
    behind.assert_nothing_arrived()


@pytest.mark.parametrize("stream", [False, True])
def test_ten_turns_meet_the_same_handles_and_only_new_texts_are_scanned(behind, session, stream):
    client, messages = behind.client(session), []
    mails = [f"reader.{number}.{session[:6]}@example.org" for number in range(10)]
    for number, mail in enumerate(mails):
        text = f"I am {PLANTED[0]}. Entry {number} is of {mail}."
        messages.append({"role": "user", "content": text})
        answer = client.chat.completions.create(model=MODEL, messages=messages, stream=stream)
        said = streamed(answer) if stream else answer.choices[0].message.content
        assert said == f"You said: {text}"
        messages.append({"role": "assistant", "content": said})
    behind.assert_nothing_arrived(PLANTED[0], *mails)
    sent = [request.json["messages"] for request in behind.gateway.provider.arrived]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))
    checks = behind.gateway.events("guardrail.check")[:10]
    # Of each turn that is a new question and the answer before it, however long the conversation is.
    assert max(event["counts"].get("EMAIL", 0) for event in checks) <= 2, [e["counts"] for e in checks]
    assert len(checks) == 10


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_of_tools_reach_the_model_as_handles(behind, session, stream):
    """The proxy takes no changed arguments in answers: they come with handles, which go back as they are."""
    client = behind.client(session)
    messages: Any = [{"role": "user", "content": TEXT}]
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS, stream=stream)
    if stream:
        arguments = ""
        for chunk in answer:
            for called in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                if called.index == 0:
                    arguments += called.function.arguments or ""
    else:
        arguments = answer.choices[0].message.tool_calls[0].function.arguments
    assert "[PERSON_1]" in json.loads(arguments)["text"]
    behind.assert_nothing_arrived()

    function = {"name": "note", "arguments": json.dumps({"text": TEXT})}
    messages += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": f"Noted for {PLANTED[0]}."},
        {"role": "user", "content": f"Thank you, says {PLANTED[0]}."},
    ]
    answer = client.chat.completions.create(model=MODEL, messages=messages)
    assert answer.choices[0].message.content == f"You said: Thank you, says {PLANTED[0]}."
    behind.assert_nothing_arrived()
    last = behind.gateway.provider.last.json["messages"]
    assert json.loads(last[1]["tool_calls"][0]["function"]["arguments"])["text"] == last[0]["content"]
    assert "[PERSON_1]" in last[2]["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_policy_blocks_is_refused_and_reaches_nobody(behind, session, stream):
    with (
        policy(behind.gateway, default_arguments={"pii_redaction": {"mode": "block"}}),
        pytest.raises(openai.APIError) as refused,
    ):
        streamed(behind.said(session, stream=stream)) if stream else behind.said(session)
    assert "sluice" in str(refused.value)
    assert not any(value in str(refused.value) for value in PLANTED)
    assert behind.gateway.provider.arrived == []


@pytest.mark.parametrize("name", ["down", "wrong-key"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_sluice_that_does_not_answer_lets_nothing_through(behind, session, name, stream):
    with pytest.raises(openai.APIError):
        streamed(behind.said(session, stream=True, extra_body={"guardrails": [name]})) if stream else (
            behind.said(session, extra_body={"guardrails": [name]})
        )
    assert behind.gateway.provider.arrived == []


def test_failing_open_is_the_proxys_own_setting(behind, session):
    """The negative control: the same guardrail lets the call go where its configuration says so."""
    answer = behind.said(session, "Hello.", extra_body={"guardrails": ["down-open"]})
    assert answer.choices[0].message.content == "You said: Hello."


def test_another_session_gets_nothing_restored(behind, session):
    behind.said(session)
    answer = behind.said(uuid4().hex, "Who is [PERSON_1]?")
    assert answer.choices[0].message.content == "You said: Who is [PERSON_1]?"
