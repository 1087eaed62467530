"""What the tenant's policy says of requests to providers: observe, routes, tools, notes, what cannot be scanned."""

import json
from typing import Any

import openai
import pytest

from tests.gateway.test_chat import PLANTED, TEXT, TOOLS, assert_nothing_arrived

CARD = "4111 1111 1111 1111"


@pytest.fixture(autouse=True)
def _usual_policy(gateway):
    yield
    gateway.put_policy()


def asked(gateway: Any, text: str = TEXT, **members: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return gateway.openai().chat.completions.create(model="gpt-5-mini", messages=messages, **members)


@pytest.mark.parametrize("stream", [False, True])
def test_observing_changes_nothing_and_counts(gateway, stream):
    gateway.put_policy(gateway={"mode": "observe"})
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}], "stream": stream}
    answer = gateway.post("/openai/v1/chat/completions", body)
    assert answer.status_code == 200
    assert gateway.provider.last.json == body
    sent = gateway.events("gateway.request")[0]
    assert sent["details"]["observed"] is True and sent["counts"]["PERSON"] >= 1
    assert not any(value in json.dumps(sent) for value in PLANTED)


def test_a_route_leads_elsewhere_by_what_was_found(gateway):
    gateway.put_provider("local", models=["small-*", "gpt-*"], order=500)
    routes = [{"when": {"types": ["payment"]}, "provider": "local", "model": "small-1"}]
    gateway.put_policy(gateway={"routes": routes})
    assert CARD in asked(gateway, f"Charge {CARD}.").choices[0].message.content
    assert gateway.provider.last.json["model"] == "small-1"
    assert gateway.events("gateway.request")[0]["details"]["provider"] == "local"
    asked(gateway, "Hello there.")
    assert gateway.provider.last.json["model"] == "gpt-5-mini"


def test_a_route_refuses_by_what_was_found(gateway):
    gateway.put_policy(gateway={"routes": [{"when": {"types": ["payment"]}, "refuse": True}]})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        asked(gateway, f"Charge {CARD}.")
    assert refused.value.code == "sluice_blocked_by_policy" and CARD not in str(refused.value)
    assert not gateway.provider.arrived
    assert asked(gateway, "Hello there.").choices


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_gets_what_the_policy_says(gateway, stream):
    rules = [{"tool": "note", "types": ["EMAIL"], "restore": False}]
    gateway.put_policy(gateway={"toolArguments": rules})
    if stream:
        messages: Any = [{"role": "user", "content": TEXT}]
        client = gateway.openai().chat.completions
        with client.stream(model="gpt-5-mini", messages=messages, tools=TOOLS) as events:
            answer = events.get_final_completion()
    else:
        answer = asked(gateway, tools=TOOLS)
    text = json.loads(answer.choices[0].message.tool_calls[0].function.arguments)["text"]
    assert PLANTED[0] in text and "[EMAIL_" in text and PLANTED[1] not in text


def test_a_moderation_that_refuses_does_so_in_the_providers_shape(gateway):
    steps = [{"name": "pii_redaction", "arguments": {"mode": "block"}}]
    gateway.put_policy(gateway={"pipelines": [{"outbound": steps}]})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        asked(gateway)
    assert refused.value.code == "sluice_blocked_by_policy"
    assert not gateway.provider.arrived


def test_a_policy_may_name_no_middleware_at_all(gateway):
    gateway.put_policy(gateway={"pipelines": [{"outbound": [], "inbound": []}]})
    assert asked(gateway).choices[0].message.content == f"You said: {TEXT}"
    assert gateway.provider.last.json["messages"][-1]["content"] == TEXT


def test_the_note_is_constant_and_off_by_policy(gateway):
    asked(gateway, "Hello there.")
    asked(gateway)
    first, second = (request.json["messages"][0] for request in gateway.provider.arrived)
    assert first == second and first["role"] == "system"
    gateway.put_policy(gateway={"note": False})
    asked(gateway)
    assert len(gateway.provider.last.json["messages"]) == 1
    assert_nothing_arrived(gateway)


def test_what_cannot_be_scanned_is_counted_or_refused(gateway):
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": parts}]}
    answer = gateway.post("/openai/v1/chat/completions", body)
    assert answer.status_code == 200 and int(answer.headers["x-sluice-unscanned"]) >= 1
    gateway.put_policy(gateway={"unscanned": "block"})
    arrived = len(gateway.provider.arrived)
    refused = gateway.post("/openai/v1/chat/completions", body)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "sluice_unscannable_content"
    assert len(gateway.provider.arrived) == arrived


def test_answers_keep_handles_where_the_policy_does_not_restore(gateway):
    gateway.put_policy(gateway={"pipelines": [{"inbound": []}]})
    text = asked(gateway).choices[0].message.content
    assert "[PERSON_" in text and not any(value in text for value in PLANTED)


def test_a_check_of_answers_refuses_whole_ones_and_no_stream_escapes_it(gateway):
    inbound = [{"name": "secret_redaction", "arguments": {"mode": "block"}}, {"name": "pii_restoration"}]
    gateway.put_policy(gateway={"pipelines": [{"outbound": [{"name": "pii_redaction"}], "inbound": inbound}]})
    assert asked(gateway).choices[0].message.content == f"You said: {TEXT}"
    key = "AKIA" + "Z7QXN4JPLM2WRT5K"
    with pytest.raises(openai.PermissionDeniedError) as refused:
        asked(gateway, f"Repeat aws_access_key_id={key}")
    assert refused.value.code == "sluice_blocked_by_policy" and key not in str(refused.value)
    arrived = len(gateway.provider.arrived)
    with pytest.raises(openai.PermissionDeniedError):
        list(asked(gateway, stream=True))
    assert len(gateway.provider.arrived) == arrived
