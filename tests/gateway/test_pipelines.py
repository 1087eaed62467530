"""Pipelines of the tenant in the gateway's policy: their steps do what they do elsewhere, with their limits."""

import json
from typing import Any
from uuid import uuid4

import openai
import pytest

from tests.gateway.test_chat import PLANTED, TEXT, TOOLS, assert_nothing_arrived
from tests.gateway.test_scopes import FIRST, chat, messages, responses

REDACTION = [{"name": "pii_redaction"}, {"name": "secret_redaction"}]
RESTORATION = {"name": "pii_restoration"}
SECRET = "AKIA" + "Z7QXN4JPLM2WRT5K"
LEAKS = f"{TEXT} The aws_access_key_id={SECRET}"


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


def pipeline(gateway: Any, *steps: Any) -> str:
    """Store a pipeline of the tenant and return its name."""
    name = f"ours_{uuid4().hex[:8]}"
    made = gateway.http.put(f"/api/v1/pipelines/{name}", json={"steps": list(steps)})
    assert made.status_code in {200, 201}, made.text
    return name


def refusal(gateway: Any, entry: Any) -> dict[str, Any]:
    """Return why a policy with this entry is refused."""
    version = gateway.http.get("/api/v1/policies").json()["version"]
    policy = {"gateway": {"pipelines": [entry]}}
    answer = gateway.http.put(f"/api/v1/policies?expected_version={version}", json=policy)
    assert answer.status_code == 422, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", [chat, responses, messages])
def test_restoration_in_a_pipeline_of_the_tenant_restores_as_it_does_by_its_name(
    gateway, conversation, ask, stream
):
    # A stream is not held for it, which this refusal of held streams shows.
    entry = {"inbound": [{"name": pipeline(gateway, RESTORATION)}], "streams": "refuse"}
    gateway.put_policy(gateway={"pipelines": [entry]})
    said, _ = ask(gateway, gateway.key, None, (FIRST, TEXT), stream=stream, headers=conversation)
    assert said == f"You said: {TEXT}"
    # A caller who may not restore gets handles, and no refusal.
    reader = gateway.new_key("invoker")
    said, _ = ask(gateway, reader, None, (FIRST, TEXT), stream=stream)
    assert "[PERSON_" in said and PLANTED[0] not in said
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("stream", [False, True])
def test_a_pipeline_that_restores_and_checks_does_both(gateway, conversation, stream):
    checked = pipeline(gateway, RESTORATION, {"name": "secret_redaction", "arguments": {"mode": "block"}})
    entry = {"outbound": [{"name": "pii_redaction"}], "inbound": [{"name": checked}]}
    gateway.put_policy(gateway={"pipelines": [entry]})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        chat(gateway, gateway.key, None, (FIRST, LEAKS), stream=stream, headers=conversation)
    assert SECRET not in str(refused.value)
    said, _ = chat(gateway, gateway.key, None, (FIRST, TEXT), stream=stream, headers=conversation)
    assert said == f"You said: {TEXT}"


def test_arguments_of_a_restoration_hold_wherever_they_stand(gateway, conversation):
    at = f"https://crm.example/{PLANTED[1]}"
    member = {"name": "pii_restoration", "arguments": {"positions": "all"}}

    def said(**policy: Any) -> str:
        gateway.put_policy(**policy)
        turns: Any = [{"role": "user", "content": f"{TEXT} Open {at}"}]
        client = gateway.openai(default_headers=conversation).chat.completions
        return str(client.create(model="gpt-5-mini", messages=turns).choices[0].message.content)

    assert at not in said()  # originals go to no address
    direct = {"inbound": [member]}
    inside = {"inbound": [{"name": pipeline(gateway, member)}]}
    named = pipeline(gateway, RESTORATION)
    outside = {"inbound": [{"name": named, "arguments": {"pii_restoration": member["arguments"]}}]}
    for entry in (direct, inside, outside):
        assert at in said(gateway={"pipelines": [entry]}), entry
    assert at in said(fixed_arguments={"pii_restoration": member["arguments"]})
    assert at in said(default_arguments={"pii_restoration": member["arguments"]})


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_that_the_restoration_names_gets_originals(gateway, conversation, stream):
    rules: Any = [{"tool": "other", "restore": True}]

    def arguments(*inbound: Any) -> str:
        gateway.put_policy(gateway={"pipelines": [{"inbound": list(inbound)}], "toolArguments": rules})
        turns: Any = [{"role": "user", "content": "Who was it again? Note it."}]
        asked: Any = {"model": "gpt-5-mini", "messages": turns, "tools": TOOLS}

        async def calls(request, value):
            from tests.gateway.provider import _ANSWERS

            value["messages"] = [{"role": "user", "content": handle}]
            return await _ANSWERS[request.method, request.path](gateway.provider, request, value)

        gateway.provider.answer = calls
        client = gateway.openai(default_headers=conversation).chat.completions
        if stream:
            with client.stream(**asked) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.create(**asked).choices[0].message
        return str(json.loads(message.tool_calls[0].function.arguments)["text"])

    gateway.put_policy()
    client = gateway.openai(default_headers=conversation).chat.completions
    client.create(model="gpt-5-mini", messages=[{"role": "user", "content": TEXT}])
    handle = "[PERSON_1]"
    # The original stands in an earlier request, not in this one.
    assert arguments(RESTORATION) == handle
    assert arguments({**RESTORATION, "arguments": {"tools": ["note"]}}) == PLANTED[0]


@pytest.mark.parametrize("part", ["outbound", "inbound"])
def test_a_step_that_fails_is_skipped_where_its_pipeline_says_so(gateway, conversation, part):
    def put(**limits: Any) -> None:
        steps = [{"name": "nowhere__check", **limits}]
        usual = REDACTION if part == "outbound" else []
        entry = {part: [*usual, {"name": pipeline(gateway, *steps)}]}
        gateway.put_policy(gateway={"pipelines": [entry]})

    def ask() -> Any:
        body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}]}
        return gateway.post("/openai/v1/chat/completions", body, headers=conversation)

    put()
    failed = ask()
    assert failed.status_code >= 400 and failed.json()["error"]["code"].startswith("sluice_")
    assert len(gateway.provider.arrived) == (part == "inbound")
    put(on_error="skip")
    assert ask().status_code == 200
    assert_nothing_arrived(gateway)


def test_a_filter_that_fails_may_be_skipped(gateway, conversation):
    narrow = {"name": "tool_filter", "arguments": {"maxTools": 1}, "timeout_ms": 1, "on_error": "skip"}
    gateway.put_policy(
        gateway={"pipelines": [{"outbound": [{"name": pipeline(gateway, *REDACTION, narrow)}]}]}
    )
    turns: Any = [{"role": "user", "content": TEXT}]
    client = gateway.openai(default_headers=conversation).chat.completions
    assert client.create(model="gpt-5-mini", messages=turns, tools=TOOLS).choices
    assert_nothing_arrived(gateway)


def test_a_step_has_the_time_that_its_pipeline_gives_it(gateway, conversation):
    hurried = pipeline(gateway, {"name": "pii_redaction", "timeout_ms": 1})
    gateway.put_policy(gateway={"pipelines": [{"outbound": [{"name": hurried}]}]})
    # No machine reads that much in a millisecond.
    text = " ".join(f"Person {number} wrote to office{number}@example.org." for number in range(4_000))
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
    late = gateway.post("/openai/v1/chat/completions", body, headers=conversation)
    assert (late.status_code, late.json()["error"]["code"]) == (504, "sluice_deadline_exceeded")
    assert not gateway.provider.arrived


def test_what_a_policy_cannot_mean_is_refused_by_name_when_it_is_set(gateway):
    remote = {"name": "nowhere__check"}
    refused = refusal(gateway, {"inbound": [RESTORATION, remote]})
    assert (
        refused["pointer"] == "/gateway/pipelines/0/inbound/1/name" and "another server" in refused["detail"]
    )
    mixed = pipeline(gateway, remote, RESTORATION)
    assert (
        refusal(gateway, {"inbound": [{"name": mixed}]})["pointer"] == "/gateway/pipelines/0/inbound/0/name"
    )
    for source in ({"scope": "of-another"}, {"redactions": {"PERSON_1": "Eve"}}):
        step = {**RESTORATION, "arguments": source}
        for each in (step, {"name": pipeline(gateway, step)}):
            refused = refusal(gateway, {"inbound": [each]})
            assert refused["pointer"] == "/gateway/pipelines/0/inbound/0/arguments", refused
    masked = pipeline(gateway, {"name": "pii_redaction", "arguments": {"mode": "mask"}})
    for arguments, place in (
        ({"pii_redaction": {"mode": "handles"}}, "pii_redaction"),
        ({"secret_redaction": {}}, "secret_redaction"),
        ({"scope": "of-another"}, "scope"),
    ):
        refused = refusal(gateway, {"outbound": [{"name": masked, "arguments": arguments}]})
        assert refused["pointer"] == f"/gateway/pipelines/0/outbound/0/arguments/{place}", refused
    # Without restoration nothing keeps answers from another server.
    gateway.put_policy(gateway={"pipelines": [{"inbound": [remote]}]})


def test_a_pipeline_that_changes_after_the_policy_cannot_get_around_it(gateway, conversation):
    name = pipeline(gateway, RESTORATION)
    gateway.put_policy(gateway={"pipelines": [{"inbound": [{"name": name}]}]})
    changed = gateway.http.put(
        f"/api/v1/pipelines/{name}", json={"steps": [{"name": "nowhere__c"}, RESTORATION]}
    )
    assert changed.status_code == 200, changed.text
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}]}
    refused = gateway.post("/openai/v1/chat/completions", body, headers=conversation)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "sluice_blocked_by_policy")
    assert gateway.http.delete(f"/api/v1/pipelines/{name}").status_code in {200, 204}
    gone = gateway.post("/openai/v1/chat/completions", body, headers=conversation)
    assert gone.status_code == 404 and name in gone.json()["error"]["message"]
    assert not gateway.provider.arrived
