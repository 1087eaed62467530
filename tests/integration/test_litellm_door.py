"""LiteLLM's guardrail door: its calls as the proxy sends them, and the answers that it acts upon."""

import json
from typing import Any
from uuid import uuid4

import pytest

from app.core.access import Role
from tests.integration.rest_app import Rest, open_rest

PATH = "/integrations/litellm/beta/litellm_basic_guardrail_api"
MAIL = "jane@example.org"
USER = ("invoker", "restorer")


@pytest.fixture
async def rest(sqlite_database_url: str) -> Any:
    async with open_rest(sqlite_database_url) as opened:
        yield opened


def call(kind: str, texts: list[str], *, trace: str, **members: Any) -> dict[str, Any]:
    """Return a body with the members that litellm 1.109.1 sends, nulls too."""
    return {
        "input_type": kind,
        "litellm_call_id": uuid4().hex,
        "litellm_trace_id": trace,
        "structured_messages": None,
        "images": None,
        "tools": None,
        "texts": texts,
        "request_data": {"user_api_key_alias": "helpdesk", "user_api_key_user_id": "u1"},
        "request_headers": {"content-type": "application/json", "authorization": "[present]"},
        "litellm_version": "1.109.1",
        "additional_provider_specific_params": {},
        "tool_calls": None,
        "model": "gpt-4o",
        **members,
    }


async def ask(rest: Rest, body: Any, *roles: str) -> Any:
    key = await rest.key(*(Role(role) for role in roles or USER))
    answer = await rest.http.post(PATH, json=body, headers={"x-api-key": key})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_call_goes_out_with_handles_and_comes_back_with_originals(rest: Rest) -> None:
    trace = uuid4().hex
    hidden = await ask(rest, call("request", [f"Mail {MAIL}", "Be brief."], trace=trace))
    assert hidden == {"action": "GUARDRAIL_INTERVENED", "texts": ["Mail [EMAIL_1]", "Be brief."]}
    shown = await ask(rest, call("response", ["I wrote to [EMAIL_1]."], trace=trace))
    assert (shown["action"], shown["texts"]) == ("GUARDRAIL_INTERVENED", [f"I wrote to {MAIL}."])


async def test_nothing_to_do_is_none_and_brings_no_texts(rest: Rest) -> None:
    trace = uuid4().hex
    for kind in ("request", "response"):
        assert await ask(rest, call(kind, ["Hello there."], trace=trace)) == {"action": "NONE"}


@pytest.fixture
def scanned(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that the detector has got."""
    texts_scanned: list[str] = []
    detector = rest.services.invoke.registry.middlewares["pii_redaction"].engines.detector
    detect = type(detector).detect

    async def counting(self: Any, texts: Any, options: Any, **more: Any) -> Any:
        texts_scanned.extend(texts)
        return await detect(self, texts, options, **more)

    monkeypatch.setattr(type(detector), "detect", counting)
    return texts_scanned


async def test_only_new_texts_are_scanned(rest: Rest, scanned: list[str]) -> None:
    trace, texts = uuid4().hex, [f"Mail {MAIL}"]
    first = await ask(rest, call("request", texts, trace=trace))
    texts += ["I did.", "Thank you, Jane Smith"]
    second = await ask(rest, call("request", texts, trace=trace))
    assert second["texts"] == [*first["texts"], "I did.", "Thank you, [PERSON_1]"]
    assert scanned.count(f"Mail {MAIL}") == 1


async def test_only_new_messages_and_tools_are_scanned(rest: Rest, scanned: list[str]) -> None:
    trace = uuid4().hex
    function = {"name": "find", "arguments": json.dumps({"mail": MAIL})}
    row = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}
    tools = [{"type": "function", "function": {"name": "find", "description": f"As {MAIL} said."}}]
    answers = []
    for turn in range(3):
        texts = [f"Turn {each} of {MAIL}" for each in range(turn + 1)]
        rows = [{"role": "user", "content": text} for text in texts] + [row]
        body = call("request", texts, trace=trace, structured_messages=rows, tools=tools)
        answers.append(await ask(rest, body))
        assert MAIL not in json.dumps(answers[-1])
    assert [answer["structured_messages"][-1] for answer in answers[1:]] == [
        answers[0]["structured_messages"][-1]
    ] * 2
    assert scanned and len(scanned) == len(set(scanned))


async def test_a_call_without_anything_new_is_on_record(rest: Rest) -> None:
    body = call("request", [f"Mail {MAIL}"], trace=uuid4().hex)
    assert await ask(rest, body) == await ask(rest, body)
    answer = await rest.call("GET", "/api/v1/audit/events", roles=["auditor"])
    checks = [event for event in answer.json()["items"] if event["action"] == "guardrail.check"]
    assert [event["counts"].get("unchanged") for event in checks] == [1, None]


@pytest.mark.parametrize("end", ["erasure of the value", "erasure of the scope", "expiry"])
async def test_a_scope_that_has_ended_takes_what_was_seen_along(rest: Rest, end: str) -> None:
    body = call("request", [f"Mail {MAIL}"], trace=uuid4().hex)
    said = {**body, "input_type": "response"}
    first = await ask(rest, body)
    listed = await rest.call("GET", "/api/v1/vault/scopes", roles=["operator"])
    path = f"/api/v1/vault/scopes/{listed.json()['items'][0]['id']}"
    if end == "erasure of the value":
        done = await rest.call("POST", "/api/v1/vault/erasures", {"value": MAIL}, roles=["eraser"])
    elif end == "erasure of the scope":
        done = await rest.call("DELETE", path, roles=["eraser"])
    else:
        past = {"expires": "2020-01-01T00:00:00Z"}
        done = await rest.call("PATCH", path, past, roles=["eraser"])
    assert done.status_code < 300, done.text
    gone = {**said, "texts": first["texts"]}
    assert (await ask(rest, gone)).get("texts", gone["texts"]) == gone["texts"]

    again = await ask(rest, body)
    assert MAIL not in again["texts"][0]
    # A handle that was remembered would have no original any more.
    assert (await ask(rest, {**said, "texts": again["texts"]}))["texts"] == [f"Mail {MAIL}"]


async def test_a_text_that_grows_begins_with_what_went_out(rest: Rest) -> None:
    trace = uuid4().hex
    await ask(rest, call("request", [f"I am Jane Smith, {MAIL}"], trace=trace))
    whole = "Dear [PERSON_1], your address is [EMAIL_1]; reply."
    out = ""
    for end in range(1, len(whole) + 1):
        answer = await ask(rest, call("response", [whole[:end]], trace=trace))
        text = answer.get("texts", [whole[:end]])[0]
        certain = text[: len(text) - answer.get("stream_holdback_chars", [0])[0]]
        assert certain.startswith(out)
        out = certain
    assert text == f"Dear Jane Smith, your address is {MAIL}; reply."


async def test_an_original_comes_back_as_it_was_written(rest: Rest) -> None:
    name, trace = 'Jo "Q" O\\Neil', uuid4().hex
    policy = {"default_arguments": {"pii_redaction": {"deny_list": [name]}}}
    assert (await rest.put_policy(policy)).status_code == 200
    hidden = await ask(rest, call("request", [f"Ask {name}."], trace=trace))
    assert hidden["texts"] == ["Ask [CUSTOM_1]."]
    shown = await ask(rest, call("response", ["I asked [CUSTOM_1]."], trace=trace))
    assert shown["texts"] == [f"I asked {name}."]


async def test_arguments_of_tools_are_hidden_in_the_messages(rest: Rest) -> None:
    function = {"name": "find", "arguments": json.dumps({"mail": MAIL})}
    rows = [
        {"role": "user", "content": "Find her."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
    ]
    tools = [{"type": "function", "function": {"name": "find", "description": f"As {MAIL} said."}}]
    body = call("request", ["Find her."], trace=uuid4().hex, structured_messages=rows, tools=tools)
    answer = await ask(rest, body)
    assert answer["action"] == "GUARDRAIL_INTERVENED"
    assert MAIL not in json.dumps(answer)
    called = answer["structured_messages"][1]["tool_calls"][0]["function"]
    assert json.loads(called["arguments"]) == {"mail": "[EMAIL_1]"}
    assert answer["tools"][0]["function"]["description"] == "As [EMAIL_1] said."


@pytest.mark.parametrize("spelled", [MAIL, "j\\u0061ne@example.org"])
async def test_a_value_has_one_handle_however_arguments_spell_it(rest: Rest, spelled: str) -> None:
    function = {"name": "find", "arguments": f'{{"mail": "To {spelled}", "n": 1.50}}'}
    rows = [
        {"role": "user", "content": f"Mail {MAIL}"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]},
    ]
    body = call("request", [f"Mail {MAIL}"], trace=uuid4().hex, structured_messages=rows)
    first, second = (await ask(rest, body))["structured_messages"]
    assert first["content"] == "Mail [EMAIL_1]"
    arguments = json.loads(second["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"mail": "To [EMAIL_1]", "n": 1.5}


@pytest.mark.parametrize("arguments", ["\\u0061 is no JSON", '{"a": 1, "a": "\\u0062"}', ""])
async def test_arguments_that_are_no_plain_json_pass_as_they_are(rest: Rest, arguments: str) -> None:
    called = {"id": "c1", "function": {"name": "find", "arguments": arguments}}
    rows = [{"role": "assistant", "content": None, "tool_calls": [called]}]
    body = call("request", ["Hello."], trace=uuid4().hex, structured_messages=rows)
    assert await ask(rest, body) == {"action": "NONE"}


async def test_what_the_policy_blocks_is_blocked_with_a_reason_without_content(rest: Rest) -> None:
    policy = {"default_arguments": {"pii_redaction": {"mode": "block"}}}
    assert (await rest.put_policy(policy)).status_code == 200
    answer = await ask(rest, call("request", [f"Mail {MAIL}"], trace=uuid4().hex))
    assert answer["action"] == "BLOCKED" and MAIL not in answer["blocked_reason"]
    listed = await rest.call("GET", "/api/v1/audit/events?action=guardrail.check", roles=["auditor"])
    assert [(event["outcome"], event["error_code"]) for event in listed.json()["items"]] == [
        ("refused", "blocked_by_policy")
    ]


@pytest.mark.parametrize("foreign", ["key", "user", "trace"])
async def test_another_conversation_gets_nothing_restored(rest: Rest, foreign: str) -> None:
    trace = uuid4().hex
    await ask(rest, call("request", [f"Mail {MAIL}"], trace=trace))
    body = call("response", ["It is [EMAIL_1]."], trace=trace)
    if foreign == "user":
        body["request_data"]["user_api_key_end_user_id"] = "somebody else"
    if foreign == "trace":
        body["litellm_trace_id"] = uuid4().hex
    roles = (*USER, "auditor") if foreign == "key" else USER
    answer = await ask(rest, body, *roles)
    assert answer.get("texts", body["texts"]) == body["texts"]


async def test_a_key_without_restorer_restores_nothing(rest: Rest) -> None:
    trace = uuid4().hex
    await ask(rest, call("request", [f"Mail {MAIL}"], trace=trace), "invoker")
    answer = await ask(rest, call("response", ["It is [EMAIL_1]."], trace=trace), "invoker")
    assert answer.get("texts", ["It is [EMAIL_1]."]) == ["It is [EMAIL_1]."]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, {}, 401),
        ({"x-api-key": "sk-something"}, {}, 401),
        ({"x-api-key": "{auditor}"}, {}, 403),
        ({"x-api-key": "{invoker}", "authorization": "Bearer {invoker}"}, {}, 400),
        ({"x-api-key": "{invoker}"}, {"texts": ["x"]}, 422),
        ({"x-api-key": "{invoker}"}, {"input_type": "request", "texts": [1], "litellm_call_id": "c"}, 422),
        ({"x-api-key": "{invoker}"}, {"input_type": "request", "texts": ["x"]}, 422),
    ],
)
async def test_refusals_are_errors_so_that_the_proxy_fails_closed(
    rest: Rest, headers: dict[str, str], body: Any, status: int
) -> None:
    keys = {role: await rest.key(Role(role)) for role in ("auditor", "invoker")}
    sent = {name: value.format(**keys) for name, value in headers.items()}
    answer = await rest.http.post(PATH, json=body, headers=sent)
    assert answer.status_code == status
    assert answer.json()["code"]


async def test_restoring_is_on_record_first_and_without_content(rest: Rest) -> None:
    trace = uuid4().hex
    await ask(rest, call("request", [f"Mail {MAIL}"], trace=trace))
    await ask(rest, call("response", ["It is [EMAIL_1]."], trace=trace))
    answer = await rest.call("GET", "/api/v1/audit/events", roles=["auditor"])
    actions = [event["action"] for event in answer.json()["items"] if "guardrail" in event["action"]]
    assert actions == ["guardrail.restore", "guardrail.check"]
    assert MAIL not in answer.text and trace not in answer.text
