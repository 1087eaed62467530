"""What the tenant's policy says of requests to providers: observe, routes, tools, notes, what cannot be scanned."""

import json
from typing import Any

import anthropic
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
    sent = gateway.events("gateway.request")[0]
    assert sent["details"]["provider"] == "local"
    assert list(sent["counts"].values()) == [1], (
        "the request was read twice, and what is in it is counted once"
    )
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
    # Of this conversation no other test has stored an original, which would be hidden all the same.
    text = "Nobody hides ada.king@example.org here."
    assert asked(gateway, text).choices[0].message.content == f"You said: {text}"
    assert gateway.provider.last.json["messages"][-1]["content"] == text


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


def test_the_pipeline_is_that_of_where_the_request_goes(gateway):
    gateway.put_provider("local", models=["small-*", "gpt-*"], order=500)
    routes = [{"when": {"types": ["payment"]}, "provider": "local", "model": "small-1"}]
    plain = {"providers": ["local"], "outbound": [{"name": "secret_redaction"}]}
    gateway.put_policy(gateway={"routes": routes, "pipelines": [plain]})
    assert CARD in asked(gateway, f"Bill {CARD}.").choices[0].message.content
    # The operator's own model may read it; the one that was asked for may not.
    assert CARD in gateway.provider.last.json["messages"][-1]["content"]
    asked(gateway, f"Write to {PLANTED[1]}.")
    assert gateway.provider.last.json["model"] == "gpt-5-mini"
    assert PLANTED[1] not in json.dumps(gateway.provider.last.json, ensure_ascii=False)

    strict = {"providers": ["local"], "outbound": [{"name": "pii_redaction", "arguments": {"mode": "block"}}]}
    gateway.put_policy(gateway={"routes": routes, "pipelines": [strict]})
    arrived = len(gateway.provider.arrived)
    with pytest.raises(openai.PermissionDeniedError):
        asked(gateway, f"Bill {CARD}, please.")
    assert len(gateway.provider.arrived) == arrived
    assert asked(gateway, "Hello there.").choices


def test_the_checks_of_answers_are_those_of_where_the_request_goes(gateway):
    gateway.put_provider("local", models=["small-*", "gpt-*"], order=500)
    routes = [{"when": {"types": ["payment"]}, "provider": "local", "model": "small-1"}]
    inbound = [{"name": "pii_restoration"}, {"name": "secret_redaction"}]
    checked = {"providers": ["local"], "inbound": inbound, "streams": "refuse"}
    gateway.put_policy(gateway={"routes": routes, "pipelines": [checked]})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        asked(gateway, f"Debit {CARD}.", stream=True)
    assert "stream false" in str(refused.value) and not gateway.provider.arrived
    assert list(asked(gateway, "Hello there.", stream=True))


INSULT = "You are a worthless piece of garbage and everybody hates you, you stupid idiot. I will kill you."


@pytest.mark.parametrize("stream", [False, True])
def test_content_moderation_refuses_in_the_providers_shape(gateway, stream):
    moderation = {"name": "content_moderation", "arguments": {"action": "block", "level": "regulated"}}
    outbound = [moderation, {"name": "pii_redaction"}]
    gateway.put_policy(gateway={"pipelines": [{"outbound": outbound}]})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        asked(gateway, INSULT, stream=stream)
    assert refused.value.code == "sluice_blocked_by_policy"
    assert refused.value.body["type"] == "permission_error"
    claude: Any = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": INSULT}]}
    with pytest.raises(anthropic.PermissionDeniedError) as refused_there:
        gateway.anthropic().messages.create(**claude, stream=stream)
    assert refused_there.value.body["error"]["type"] == "permission_error"
    assert refused_there.value.body["error"]["code"] == "sluice_blocked_by_policy"
    for error in (refused, refused_there):
        assert "garbage" not in str(error.value)
    assert not gateway.provider.arrived
    assert "garbage" not in json.dumps(gateway.events("gateway.request")[0])
    assert asked(gateway, "Where can I read about garbage collection in Python?").choices


def test_streams_have_a_limit_of_their_own(gateway):
    gateway.put_policy(limits={"in_flight": 1}, gateway={"inFlight": 2})
    gateway.provider.pause_s = 0.2
    running = [asked(gateway, "Hello there.", stream=True) for _ in range(2)]
    assert [next(iter(stream)).choices[0].index for stream in running] == [0, 0]
    with pytest.raises(openai.InternalServerError) as refused:
        asked(gateway, "Hello there.")
    assert refused.value.status_code == 503 and refused.value.code == "sluice_overloaded"
    for stream in running:
        stream.close()
