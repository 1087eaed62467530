"""Answers and events in which a member has another type than any API says, through the doors."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.test_chat import PLANTED, assert_nothing_arrived
from tests.gateway.test_cut_streams import STREAMS, body
from tests.sampling import examples
from tests.unit.core.gateway import malformed, recorded
from tests.unit.core.gateway.test_answers import CHAT, MESSAGE

ANSWERS: dict[str, tuple[str, Any]] = {
    "chat": ("/openai/v1/chat/completions", CHAT),
    "responses": (
        "/openai/v1/responses",
        recorded.events_of(recorded.RESPONSE_STREAM)[-1]["response"],
    ),
    "messages": ("/anthropic/v1/messages", MESSAGE),
}


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Iterator[None]:
    yield
    gateway.put_policy()


def told(path: str) -> Any:
    """Return a request whose name gets the handle that the recorded answers hold."""
    return {**body(path), "stream": False}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_with_an_odd_member_is_passed_on_to_its_end(gateway, conversation, name):
    path, raw = STREAMS[name]
    current = b""

    async def replays(_request, _value):
        return web.Response(body=current, content_type="text/event-stream")

    gateway.provider.answer = replays
    for start, end, current in malformed.streams(f"door of {name}", raw, examples(300, 8)):
        answer = gateway.post(path, body(path), headers=conversation)
        assert answer.status_code == 200 and answer.content, current[start:end]
        original = json.dumps(PLANTED[0], ensure_ascii=False)[1:-1]
        assert original in answer.text, current[start:end]
    assert gateway.events("gateway.answer")[0]["details"]["status"] == 200
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_with_an_odd_member_is_restored_or_refused_by_name(
    gateway, conversation, name, checked
):
    path, whole = ANSWERS[name]
    current: Any = None

    async def replays(_request, _value):
        return web.json_response(current)

    gateway.provider.answer = replays
    if checked:
        judge = {"name": "secret_redaction", "arguments": {"mode": "block"}}
        gateway.put_policy(gateway={"pipelines": [{"inbound": [{"name": "pii_restoration"}, judge]}]})
    for current in malformed.bodies(f"door of {name}", whole, examples(300, 8)):
        answer = gateway.post(path, told(path), headers=conversation)
        if checked and answer.status_code in {400, 403, 502}:
            assert answer.json()["error"]["code"].startswith("sluice_")
            continue
        assert answer.status_code == 200, (current, answer.text)
        assert PLANTED[0] in json.dumps(answer.json(), ensure_ascii=False), current
    assert_nothing_arrived(gateway)


def test_a_strict_check_refuses_what_it_does_not_know_and_does_not_blame_the_provider(gateway, conversation):
    path, whole = ANSWERS["messages"]
    block = {"type": "hologram", "caption": "new"}

    async def replays(_request, _value):
        return web.json_response({**whole, "content": [{"type": "text", "text": "All is well."}, block]})

    def asked(**arguments: Any) -> Any:
        judge = {"name": "secret_redaction", "arguments": arguments}
        gateway.put_policy(gateway={"pipelines": [{"inbound": [judge]}]})
        return gateway.post(path, told(path), headers=conversation)

    gateway.provider.answer = replays
    usual = asked()
    assert usual.status_code == 200, usual.text
    assert usual.json()["content"][-1] == block
    answer = asked(strict=True)
    assert answer.status_code == 400 and block["caption"] not in answer.text
    assert answer.json()["error"]["code"] == "sluice_invalid_arguments"


def test_checks_blame_the_provider_for_an_answer_that_they_cannot_read(gateway, conversation):
    gateway.put_policy(
        gateway={"pipelines": [{"inbound": [{"name": "secret_redaction", "arguments": {"mode": "block"}}]}]}
    )
    path, whole = ANSWERS["chat"]

    async def replays(_request, _value):
        return web.json_response(malformed.with_member(whole, ("choices", 0, "message", "role"), 7))

    gateway.provider.answer = replays
    answer = gateway.post(path, told(path), headers=conversation)
    assert answer.status_code == 502 and PLANTED[0] not in answer.text
    assert answer.json()["error"]["code"] == "sluice_upstream_unavailable"
