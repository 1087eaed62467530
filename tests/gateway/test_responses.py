"""Responses and what stands beside them, with OpenAI's own client."""

from typing import Any

import openai
import pytest

from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived


def test_a_response_comes_back_with_originals(gateway, conversation):
    client = gateway.openai(default_headers=conversation)
    answer = client.responses.create(model="gpt-5-mini", input=TEXT, instructions="Be brief.")
    assert answer.output_text == f"You said: {TEXT}"
    assert answer.usage is not None and answer.usage.total_tokens == 18
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("pieces", [1, 5, 1000])
def test_a_streamed_response_agrees_with_itself(gateway, conversation, pieces):
    gateway.provider.pieces = pieces
    client = gateway.openai(default_headers=conversation)
    text, done, whole = "", "", None
    for event in client.responses.create(model="gpt-5-mini", input=TEXT, stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
        elif event.type == "response.output_text.done":
            done = event.text
        elif event.type == "response.completed":
            whole = event.response
    assert text == done == f"You said: {TEXT}"
    assert whole is not None and whole.output_text == text
    assert_nothing_arrived(gateway)


def test_a_conversation_goes_on_by_the_id_of_the_response_before(gateway):
    client = gateway.openai()
    first = client.responses.create(model="gpt-5-mini", input=TEXT)
    second = client.responses.create(
        model="gpt-5-mini", input=f"Once more: {PLANTED[0]}.", previous_response_id=first.id
    )
    assert second.output_text == f"You said: Once more: {PLANTED[0]}."
    sent = [request.json["input"] for request in gateway.provider.arrived]
    handle = sent[0].split(" ", 2)[2].partition(",")[0]
    assert handle.startswith("[PERSON_") and handle in sent[1]
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("stolen", [False, True])
def test_an_id_that_nobody_gave_this_caller_is_refused(gateway, conversation, stolen):
    first = gateway.openai().responses.create(model="gpt-5-mini", input=TEXT)
    key, name = (gateway.new_key("invoker"), first.id) if stolen else (None, "resp_invented")
    arrived = len(gateway.provider.arrived)
    for headers in ({}, conversation):
        with pytest.raises(openai.NotFoundError) as refused:
            gateway.openai(key, default_headers=headers).responses.create(
                model="gpt-5-mini", input="And?", previous_response_id=name
            )
        assert refused.value.code == "sluice_not_found"
    assert len(gateway.provider.arrived) == arrived


@pytest.mark.parametrize(
    "wrapped", [lambda name: [name], lambda name: {"id": [name]}, lambda name: {"ids": name}]
)
@pytest.mark.parametrize("member", ["previous_response_id", "conversation"])
def test_an_id_in_a_form_that_no_api_has_is_refused_and_not_passed_on(gateway, conversation, member, wrapped):
    first = gateway.openai().responses.create(model="gpt-5-mini", input=TEXT)
    arrived = len(gateway.provider.arrived)
    body = {"model": "gpt-5-mini", "input": "And?", member: wrapped(first.id)}
    refused = gateway.post("/openai/v1/responses", body, headers=conversation)
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "sluice_invalid_request"
    assert first.id not in refused.text and len(gateway.provider.arrived) == arrived
    body[member] = None
    assert gateway.post("/openai/v1/responses", body, headers=conversation).status_code == 200


def test_embeddings_are_made_of_handles(gateway, conversation):
    client = gateway.openai(default_headers=conversation)
    answer = client.embeddings.create(
        model="text-embedding-3", input=[TEXT, "Hello."], encoding_format="float"
    )
    assert [entry.embedding for entry in answer.data] == [[0.5, 0.25]] * 2
    gateway.await_answer(lambda event: event["details"].get("prompt_tokens") == 3)
    assert_nothing_arrived(gateway)


def test_models_are_those_of_the_providers_entry(gateway):
    names = [model.id for model in gateway.openai().models.list()]
    assert names == ["gpt-5-mini", "fast"]


def test_two_users_with_the_same_first_message_share_nothing(gateway):
    def asked(key: str, text: str) -> str:
        messages: Any = [{"role": "user", "content": "Hello, who am I?"}, {"role": "user", "content": text}]
        answer = gateway.openai(key).chat.completions.create(
            model="gpt-5-mini", messages=messages, prompt_cache_key="one-for-all"
        )
        return answer.choices[0].message.content or ""

    asked(gateway.key, TEXT)
    handles = [f"[{label}_{number}]" for label in ("PERSON", "EMAIL", "IBAN") for number in range(1, 6)]
    theirs = asked(gateway.new_key("invoker"), " ".join(handles))
    assert not any(value in theirs for value in PLANTED)
    # Nor does their own key tell more than stands in the request.
    mine = asked(gateway.key, " ".join(handles))
    assert mine == f"You said: {' '.join(handles)}"
