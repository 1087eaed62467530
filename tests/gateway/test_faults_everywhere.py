"""What goes wrong at every door in the same way: the form of the error is that of the door's family."""

import base64
import json

import httpx2
import pytest
from aiohttp import web

from tests.gateway.provider import zipped
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived
from tests.gateway.test_faults import BEGINNINGS, streamed

LIMITED = {"retry-after": "7", "x-request-id": "req_1", "request-id": "req_1"}


def whole(path, **members):
    return {**streamed(path), "stream": False, **members}


def kind_of(path):
    return {"kind": "anthropic"} if path.startswith("/anthropic") else {}


def assert_refused(answer, path, status, code):
    assert answer.status_code == status, answer.text
    value = answer.json()
    assert value["error"]["code"] == code
    assert value.get("type") == ("error" if path.startswith("/anthropic") else None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_provider_that_is_down_is_named_and_not_asked_again(gateway, path, stream):
    gateway.put_provider("broken", baseUrl="http://127.0.0.1:9", models=["broken-*"], **kind_of(path))
    answer = gateway.post(path, whole(path, model="broken-1", stream=stream))
    assert_refused(answer, path, 502, "sluice_upstream_unavailable")
    assert "broken" in answer.json()["error"]["message"] and not gateway.provider.arrived


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_refusal_of_the_provider_passes_as_it_came_from_every_family(gateway, path, stream):
    body = b'{"error": {"message": "Slow down.",  "code": "rate_limit"}}'

    async def limited(_request, _value):
        return web.Response(body=body, status=429, headers=LIMITED, content_type="application/json")

    gateway.provider.answer = limited
    answer = gateway.post(path, whole(path, stream=stream))
    assert (answer.status_code, answer.content) == (429, body)
    assert answer.headers["retry-after"] == "7" and len(gateway.provider.arrived) == 1
    own = "request-id" if path.startswith("/anthropic") else "x-request-id"
    assert answer.headers[own] == "req_1"


@pytest.mark.parametrize("value", ["hello", {"a": 1}, None])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_conversation_of_no_known_form_is_the_providers_to_refuse(gateway, path, value):
    async def refuses(_request, _value):
        return web.json_response({"error": {"message": "No list."}}, status=400)

    gateway.provider.answer = refuses
    member = "input" if path.endswith("/responses") else "messages"
    answer = gateway.post(path, whole(path, **{member: value}))
    assert (answer.status_code, answer.json()) == (400, {"error": {"message": "No list."}})
    assert gateway.provider.last.json[member] == value


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_whole_answer_in_gzip_is_restored_in_every_family(gateway, conversation, path):
    said = "Dear [PERSON_1]."
    answers = {
        "completions": {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]},
        "responses": {
            "id": "resp_gzip",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": said, "annotations": []}],
                }
            ],
        },
        "messages": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": said}]},
    }

    async def packed(_request, _value):
        return zipped(answers[path.rpartition("/")[2]])

    gateway.provider.answer = packed
    answer = gateway.post(path, whole(path), headers=conversation)
    assert f"Dear {PLANTED[0]}." in json.dumps(answer.json(), ensure_ascii=False)
    assert "content-encoding" not in answer.headers
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("path", BEGINNINGS)
def test_who_may_not_ask_is_refused_in_every_family(gateway, path):
    def ask(**headers):
        return httpx2.post(
            gateway.service.url + path, json=whole(path), headers=headers, trust_env=False, timeout=30
        )

    bearer = f"Bearer {gateway.key}"
    twice = ask(**{"authorization": bearer, "x-api-key": gateway.key})
    assert_refused(twice, path, 400, "sluice_invalid_request")
    assert_refused(ask(authorization="Bearer sk-unknown"), path, 401, "sluice_unauthenticated")
    reader = f"Bearer {gateway.new_key('auditor')}"
    assert_refused(ask(authorization=reader), path, 403, "sluice_forbidden")
    invoker = f"Bearer {gateway.new_key('invoker')}"
    assert_refused(
        ask(**{"authorization": invoker, "x-sluice-user": "user-1"}), path, 403, "sluice_forbidden"
    )
    assert not gateway.provider.arrived


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_body_over_the_limit_is_refused_in_every_family(gateway, path, stream):
    body = whole(path, stream=stream)
    member = "instructions" if path.endswith("/responses") else "metadata"
    large = gateway.post(path, {**body, member: "x " * (4 * 2**20)})
    assert_refused(large, path, 413, "sluice_too_large")
    assert not gateway.provider.arrived


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_value_as_long_as_a_file_is_hidden_and_comes_back(gateway, conversation, path):
    packed = base64.b64encode(f"{TEXT} ".encode() * 3_000).decode()
    body = whole(path)
    if "input" in body:
        body["input"] = packed
    else:
        body["messages"] = [{"role": "user", "content": packed}]
    for _ in range(2):  # the second request meets it as one that the conversation knows
        answer = gateway.post(path, body, headers=conversation)
        assert answer.status_code == 200 and packed in answer.text
    assert all(packed[:200].encode() not in request.body for request in gateway.provider.arrived)
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("path", BEGINNINGS)
def test_what_only_the_way_here_may_say_passes_from_no_door(gateway, path):
    headers = {"cookie": "session=1", "x-forwarded-user": PLANTED[1], "x-sluice-debug": "1", "x-own": TEXT}
    headers = {name: value.encode() for name, value in headers.items()}
    assert gateway.post(path, whole(path), headers=headers).status_code == 200
    sent = {name.lower() for name in gateway.provider.last.headers}
    assert not sent & headers.keys()
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_handle_that_nobody_gave_stays_a_literal_in_every_family(gateway, conversation, path):
    literal = "[PERSON_77] and [PERSON_9]"
    body = whole(path)
    if "input" in body:
        body["input"] = literal
    else:
        body["messages"] = [{"role": "user", "content": literal}]

    def texts(value):
        return json.dumps(value, ensure_ascii=False)

    answer = gateway.post(path, body, headers=conversation)
    assert answer.status_code == 200
    # What the model got is a handle for the literal; what the caller gets back is the literal.
    assert literal not in texts(gateway.provider.last.json)
    assert "PERSON_77" in texts(answer.json())
