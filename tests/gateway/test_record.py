"""What one request leaves on record: each event before what it tells of, none with content, and no more of them."""

import asyncio
import json
import time
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web

from tests.gateway.provider import chat_chunk, data
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived
from tests.gateway.test_faults import BEGINNINGS, CHAT, streamed
from tests.gateway.test_policy import INSULT

REDACTION = [{"name": "pii_redaction"}, {"name": "secret_redaction"}]
RESTORATION = {"name": "pii_restoration"}
CARD = "4111 1111 1111 1111"


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


def id_of(answer: Any) -> str:
    """Return our id of a request, which stands elsewhere where the provider's has its name."""
    return str(answer.headers.get("x-sluice-request-id") or answer.headers["x-request-id"])


def events_of(gateway: Any, answer: Any, number: int) -> list[dict[str, Any]]:
    """Return all events of one request, oldest first, once there are ``number`` of them: the last comes after it."""
    request_id, until = id_of(answer), time.monotonic() + 20
    while True:
        listed = gateway.http.get("/api/v1/audit/events", params={"limit": 50}).json()["items"]
        own = [event for event in reversed(listed) if event["request_id"] == request_id]
        if len(own) >= number or time.monotonic() > until:
            break
        time.sleep(0.05)
    text = json.dumps(own, ensure_ascii=False)
    assert not any(value in text for value in (*PLANTED, "[PERSON", CARD, "garbage"))
    return own


def actions(events: list[dict[str, Any]]) -> list[str]:
    return [event["action"].removeprefix("gateway.") for event in events]


def asked(path: str, *, stream: bool, text: str = TEXT, **more: Any) -> dict[str, Any]:
    body = {**streamed(path), "stream": stream, **more}
    if "input" in body:
        return {**body, "input": text}
    return {**body, "messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_turn_leaves_three_events_and_one_without_originals_two(gateway, conversation, path, stream):
    events = events_of(gateway, gateway.post(path, asked(path, stream=stream), headers=conversation), 3)
    assert actions(events) == ["request", "restore", "answer"]
    sent, released, ended = events
    assert sent["outcome"] == "sent" and sent["counts"]["PERSON"] >= 1
    assert sent["bytes_in"] == len(gateway.provider.last.body), "what is on record is what left"
    told = sent["details"]
    assert [told["step_1"], told["step_1_outcome"], told["step_2"]] == [
        "pii_redaction",
        "ok",
        "secret_redaction",
    ]
    assert released["details"]["stage"] == "started" and not released["counts"]
    assert ended["counts"]["PERSON"] >= 1 and ended["details"]["status"] == 200
    plain = gateway.post(path, asked(path, stream=stream, text="Hello there."), headers=conversation)
    assert actions(events_of(gateway, plain, 2)) == ["request", "answer"]
    assert_nothing_arrived(gateway)


def test_stable_scopes_routes_filters_and_pipelines_add_no_event(gateway, conversation):
    name = f"ours_{uuid4().hex[:8]}"
    steps = [*REDACTION, {"name": "tool_filter", "arguments": {"maxTools": 1}}]
    assert gateway.http.put(f"/api/v1/pipelines/{name}", json={"steps": steps}).status_code == 200
    gateway.put_policy(
        gateway={
            "stableScope": True,
            "routes": [{"when": {"types": ["health"]}, "refuse": True}],
            "pipelines": [{"outbound": [{"name": "timestamp_injector"}, {"name": name}]}],
        }
    )
    tools = [{"type": "function", "function": {"name": name}} for name in ("find", "send")]
    turns = [{"role": "system", "content": f"Help {PLANTED[1]}."}, {"role": "user", "content": TEXT}]
    body = {"model": "gpt-5-mini", "messages": turns, "tools": tools, "tool_choice": "none"}
    events = events_of(gateway, gateway.post(CHAT, body, headers=conversation), 3)
    assert actions(events) == ["request", "restore", "answer"]
    told = events[0]["details"]
    ran = [told[f"step_{number}"] for number in range(1, 9) if f"step_{number}" in told]
    # Once for system and tools, once for the messages, and the filter; what the route was chosen by is not told twice.
    assert ran == [*["timestamp_injector", "pii_redaction", "secret_redaction"] * 2, "tool_filter"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_checks_of_an_answer_are_on_record_with_its_release(gateway, conversation, path, stream):
    check = {"name": "content_moderation", "arguments": {"action": "annotate", "level": "regulated"}}

    def had(text: str, number: int, *inbound: Any) -> list[dict[str, Any]]:
        gateway.put_policy(gateway={"pipelines": [{"inbound": list(inbound)}]})
        body = asked(path, stream=stream, text=text)
        return events_of(gateway, gateway.post(path, body, headers=conversation), number)

    events = had(TEXT, 3, RESTORATION, check)
    assert actions(events) == ["request", "restore", "answer"]
    assert events[1]["details"]["step_1"] == "content_moderation"
    assert not any(name.startswith("step_") for name in events[2]["details"])
    assert actions(had("Hello there.", 3, RESTORATION, check)) == ["request", "check", "answer"]
    assert actions(had(TEXT, 3, check)) == ["request", "check", "answer"]
    check["arguments"] = {"action": "block", "level": "regulated"}
    refused = had(INSULT, 2, RESTORATION, check)
    assert actions(refused) == ["request", "answer"]
    assert refused[1]["error_code"] == "blocked_by_policy" and refused[1]["outcome"] == "failed"
    assert refused[1]["details"]["step_1_outcome"] == "blocked_by_policy" and refused[1]["counts"]


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_request_that_is_refused_leaves_one_event_that_says_why(gateway, conversation, path):
    moderation = {"name": "content_moderation", "arguments": {"action": "block", "level": "regulated"}}
    gateway.put_policy(gateway={"pipelines": [{"outbound": [*REDACTION, moderation]}]})
    [refused] = events_of(gateway, gateway.post(path, asked(path, stream=False, text=INSULT)), 1)
    assert (refused["action"], refused["outcome"]) == ("gateway.request", "refused")
    assert refused["error_code"] == "blocked_by_policy" and refused["details"]["severity"]
    assert refused["details"]["step_3_outcome"] == "blocked_by_policy" and refused["counts"]
    gateway.put_policy(gateway={"routes": [{"when": {"types": ["payment"]}, "refuse": True}]})
    [refused] = events_of(gateway, gateway.post(path, asked(path, stream=False, text=f"Charge {CARD}.")), 1)
    assert refused["outcome"] == "refused" and refused["counts"]["CARD"] == 1
    assert not gateway.provider.arrived


def test_each_event_is_there_before_what_it_tells_of(gateway, conversation):
    seen: dict[str, Any] = {}
    handle, text = "[PERSON_1]", f"I am {PLANTED[0]}."

    async def tells(request, _value):
        listed = gateway.events("gateway.request")
        seen["sent"] = listed[0]["request_id"]
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(data(chat_chunk({"content": f"You are {handle}, and "})).encode())
        while "released" not in seen:
            await asyncio.sleep(0.01)
        await answer.write(data(chat_chunk({}, finish="stop")).encode() + b"data: [DONE]\n\n")
        return answer

    gateway.provider.answer = tells
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}], "stream": True}
    with gateway.http.stream("POST", CHAT, json=body, headers=conversation) as answer:
        request_id = id_of(answer)
        try:
            came = b""
            for part in answer.iter_bytes():
                came += part
                if PLANTED[0].encode() in came and "released" not in seen:
                    restored = [event["request_id"] for event in gateway.events("gateway.restore")]
                    seen["released"] = request_id in restored
        finally:
            seen.setdefault("released", False)
    assert seen == {"sent": request_id, "released": True}
    assert_nothing_arrived(gateway)
