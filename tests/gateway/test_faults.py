"""What goes wrong at a door: the provider, the client, the credentials, the body."""

import asyncio
import gzip
import json
import time

import anthropic
import httpx2
import openai
import pytest
from aiohttp import web

from tests.gateway.provider import chat_chunk, data, named, zipped
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived

CHAT = "/openai/v1/chat/completions"


def asked(**members):
    return {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}], **members}


def test_a_provider_that_is_down(gateway):
    gateway.put_provider("down", baseUrl="http://127.0.0.1:9/v1", models=["down-*"])
    with pytest.raises(openai.InternalServerError) as failed:
        gateway.openai().chat.completions.create(model="down-1", messages=[{"role": "user", "content": TEXT}])
    assert failed.value.status_code == 502 and failed.value.code == "sluice_upstream_unavailable"


def test_a_provider_that_is_slow(gateway):
    gateway.put_provider("slow", models=["slow-*"], limits={"firstByteS": 0.2})

    async def wait(_request, _value):
        await asyncio.sleep(5)

    gateway.provider.answer = wait
    with pytest.raises(openai.InternalServerError) as failed:
        gateway.openai().chat.completions.create(model="slow-1", messages=[{"role": "user", "content": TEXT}])
    assert failed.value.status_code == 504 and failed.value.code == "sluice_deadline_exceeded"


def test_a_refusal_of_the_provider_passes_as_it_came(gateway):
    body = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit"}}

    async def limited(_request, _value):
        headers = {"retry-after": "7", "x-request-id": "req_1", "x-ratelimit-reset-requests": "7s"}
        return web.json_response(body, status=429, headers=headers)

    gateway.provider.answer = limited
    answer = gateway.post(CHAT, asked())
    assert answer.status_code == 429 and answer.json() == body
    assert answer.headers["retry-after"] == "7" and answer.headers["x-request-id"] == "req_1"
    assert answer.headers["x-ratelimit-reset-requests"] == "7s"


def test_a_stream_that_is_cut_in_an_event_ends_as_an_error(gateway):
    async def cut(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(data(chat_chunk({"content": "Hello [PER"})).encode())
        await answer.write(data(chat_chunk({"content": "SON_1], more"})).encode()[:40])
        request.transport.abort()
        return answer

    gateway.provider.answer = cut
    chunks = gateway.openai().chat.completions.create(**asked(), stream=True)
    assert next(iter(chunks)).choices[0].delta.content == "Hello "
    with pytest.raises(openai.APIError):
        list(chunks)
    gateway.await_answer(lambda event: event["error_code"] == "upstream_unavailable")


def test_events_that_are_no_json_pass_and_do_not_end_the_stream(gateway):
    async def malformed(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b": comment\n\ndata: {not json\n\nevent: odd\ndata\n\n")
        await answer.write(data(chat_chunk({"content": "after"})).encode() + b"data: [DONE]\n\n")
        return answer

    gateway.provider.answer = malformed
    answer = gateway.post(CHAT, asked(stream=True))
    assert answer.status_code == 200
    assert b'"content":"after"' in answer.content.replace(b'": "', b'":"')
    assert answer.content.endswith(b"data: [DONE]\n\n")


def test_an_answer_in_gzip_is_restored_all_the_same(gateway):
    async def packed(_request, value):
        text = value["messages"][-1]["content"]
        message = {"role": "assistant", "content": text}
        return zipped({"id": "c", "choices": [{"index": 0, "message": message}], "object": "chat.completion"})

    gateway.provider.answer = packed
    answer = gateway.post(CHAT, asked())
    assert answer.json()["choices"][0]["message"]["content"] == TEXT


def test_a_client_that_leaves_ends_the_providers_request(gateway):
    gateway.provider.pause_s = 0.05
    with gateway.http.stream("POST", CHAT, json=asked(stream=True)) as answer:
        next(answer.iter_bytes())
    until = time.monotonic() + 5
    while not gateway.provider.left and time.monotonic() < until:
        time.sleep(0.05)
    assert gateway.provider.left == 1


def test_the_first_text_does_not_wait_for_the_last(gateway):
    gateway.provider.pause_s = 0.05
    started = time.monotonic()
    with gateway.http.stream("POST", CHAT, json=asked(stream=True)) as answer:
        assert answer.headers["x-accel-buffering"] == "no"
        arrivals = [time.monotonic() - started for _ in answer.iter_bytes()]
    assert arrivals[-1] - arrivals[0] > 0.5


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": "Bearer {key}", "x-api-key": "{key}"}, 400, "sluice_invalid_request"),
        ({"authorization": "Bearer {key}", "x-sluice-key": "{key}"}, 400, "sluice_invalid_request"),
        ({"authorization": "Bearer sk-something"}, 401, "sluice_unauthenticated"),
        ({}, 401, "sluice_unauthenticated"),
        ({"x-api-key": "{key}"}, 200, None),
        ({"x-sluice-key": "{key}", "authorization": "Bearer sk-of-the-caller"}, 200, None),
    ],
)
def test_credentials(gateway, headers, status, code):
    sent = {name: value.format(key=gateway.key) for name, value in headers.items()}
    answer = httpx2.post(gateway.service.url + CHAT, json=asked(), headers=sent, trust_env=False)
    assert answer.status_code == status, answer.text
    if code is not None:
        assert answer.json()["error"]["code"] == code
        assert not gateway.provider.arrived
    else:
        assert b"sk-of-the-caller" not in gateway.provider.everything()
        assert_nothing_arrived(gateway)


def test_a_key_of_the_caller_goes_to_a_provider_that_takes_it_and_nowhere_on_record(gateway):
    gateway.put_provider("theirs", models=["theirs-*"], callerKey=True, apiKey="")
    client = gateway.openai("sk-of-the-caller", default_headers={"X-Sluice-Key": gateway.key})
    client.chat.completions.create(model="theirs-1", messages=[{"role": "user", "content": "Hello."}])
    assert gateway.provider.last.headers["Authorization"] == "Bearer sk-of-the-caller"
    assert gateway.key.encode() not in gateway.provider.everything()


def test_a_key_without_the_role_is_refused_before_the_body(gateway):
    with pytest.raises(openai.PermissionDeniedError) as refused:
        gateway.openai(gateway.new_key("auditor")).chat.completions.create(**asked())
    assert refused.value.code == "sluice_forbidden"


def test_an_end_user_needs_the_role_delegate(gateway):
    client = gateway.openai(gateway.new_key("invoker"), default_headers={"X-Sluice-User": "user-1"})
    with pytest.raises(openai.PermissionDeniedError) as refused:
        client.chat.completions.create(**asked())
    assert refused.value.code == "sluice_forbidden"
    assert not gateway.provider.arrived
    client = gateway.openai(gateway.new_key("invoker", "delegate"), default_headers={"X-Sluice-User": "u1"})
    assert client.chat.completions.create(**asked()).choices
    assert b"x-sluice" not in gateway.provider.everything().lower()


def test_a_body_over_the_limit_is_refused_in_the_providers_shape(gateway):
    with pytest.raises(openai.APIStatusError) as refused:
        gateway.openai().chat.completions.create(
            model="gpt-5-mini", messages=[{"role": "user", "content": "x" * 9_000_000}]
        )
    assert refused.value.status_code == 413 and refused.value.code == "sluice_too_large"
    with pytest.raises(anthropic.APIStatusError) as refused_there:
        gateway.anthropic().messages.create(
            model="claude-x", max_tokens=1, messages=[{"role": "user", "content": "x" * 9_000_000}]
        )
    assert refused_there.value.status_code == 413
    assert "sluice" in json.dumps(refused_there.value.body)


def test_headers_that_must_not_pass(gateway):
    headers = {
        "cookie": "session=1",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-user": PLANTED[1],
        "x-sluice-debug": "1",
        "proxy-authorization": "Basic eA==",
        "x-own-header": PLANTED[1],
        "openai-organization": "org-1",
    }
    assert gateway.post(CHAT, asked(), headers=headers).status_code == 200
    sent = {name.lower() for name in gateway.provider.last.headers}
    assert not sent & {"cookie", "x-forwarded-for", "x-forwarded-user", "x-sluice-debug", "x-own-header"}
    assert "proxy-authorization" not in sent
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/openai/v1/images/generations"),
        ("POST", "/openai/v1/audio/speech"),
        ("POST", "/openai/v1/files"),
        ("POST", "/openai/v1/batches"),
        ("GET", "/openai/v1/realtime"),
        ("PUT", CHAT),
        ("POST", "/openai/v1/nothing"),
        ("POST", "/anthropic/v1/messages/batches"),
        ("POST", "/anthropic/v1/files"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(gateway, method, path):
    headers = {"authorization": f"Bearer {gateway.key}"}
    answer = gateway.http.request(method, path, headers=headers, json={} if method != "GET" else None)
    assert answer.status_code in {404, 405, 501}, answer.text
    assert "sluice" in answer.text and "error" in answer.json()
    assert not gateway.provider.arrived


def test_a_websocket_on_responses_is_told_to_use_http(gateway):
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    headers |= {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "authorization": f"Bearer {gateway.key}"}
    answer = gateway.http.get("/openai/v1/responses", headers=headers)
    assert answer.status_code == 426 and "sluice" in answer.text


HALF = "Dear [PERSON_1], and [PER"
AT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
BEGINNINGS = {
    CHAT: [data(chat_chunk({"content": HALF}))],
    "/openai/v1/responses": [
        named("response.created", sequence_number=0, response={"id": "resp_half", "output": []}),
        named("response.output_text.delta", sequence_number=1, delta=HALF, **AT),
    ],
    "/anthropic/v1/messages": [
        named("message_start", message={"id": "msg_half", "type": "message", "content": []}),
        named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        named("content_block_delta", index=0, delta={"type": "text_delta", "text": HALF}),
    ],
}


def streamed(path):
    body = asked(stream=True, max_tokens=9)
    if path.startswith("/anthropic"):
        return {**body, "model": "claude-x"}
    return {"model": "gpt-5-mini", "input": TEXT, "stream": True} if path.endswith("/responses") else body


def read(content):
    """Return the data of a stream's events, and all texts in them."""
    events = [json.loads(line[6:]) for line in content.decode().splitlines() if line.startswith("data: {")]
    texts = []
    for event in events:
        delta = event.get("delta", "")
        texts.append(delta if isinstance(delta, str) else delta.get("text", ""))
        texts += [choice["delta"].get("content", "") for choice in event.get("choices", [])]
    return events, "".join(texts)


@pytest.mark.parametrize("path", BEGINNINGS)
@pytest.mark.parametrize("fault", ["aborts", "ends", "stalls"])
def test_a_stream_that_dies_ends_as_its_family_ends(gateway, conversation, path, fault):
    kind = {"kind": "anthropic"} if path.startswith("/anthropic") else {}
    gateway.put_provider("halting", models=["halt-*"], limits={"idleS": 0.5}, **kind)

    async def dies(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write("".join(BEGINNINGS[path]).encode())
        if fault == "stalls":
            await asyncio.sleep(5)
        if fault == "aborts":
            await answer.write(b'data: {"type": "half of an eve')
            await asyncio.sleep(0.1)
            request.transport.abort()
        return answer

    gateway.provider.answer = dies
    answer = gateway.post(path, {**streamed(path), "model": "halt-1"}, headers=conversation)
    events, text = read(answer.content)
    # What came is passed on, also what was held back for its end, and then that it is not whole.
    assert answer.status_code == 200 and text == f"Dear {PLANTED[0]}, and [PER"
    last = events[-1]
    error = last if path.endswith("/responses") else last["error"]
    assert error["code"] == "sluice_upstream_interrupted"
    assert len(gateway.provider.arrived) == 1  # nothing is sent again
    assert last.get("type") == (None if path == CHAT else "error")
    assert last.get("sequence_number") == (2 if path.endswith("/responses") else None)
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("path", BEGINNINGS)
def test_an_answer_that_is_no_json_is_refused_and_not_shown(gateway, conversation, path):
    async def garbles(_request, _value):
        return web.Response(body=b'{"content": "half of [PERS', content_type="application/json")

    gateway.provider.answer = garbles
    answer = gateway.post(path, {**streamed(path), "stream": False}, headers=conversation)
    assert answer.status_code == 502 and "half of" not in answer.text
    assert answer.json()["error"]["code"] == "sluice_upstream_unavailable"


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_stream_in_gzip_is_restored_all_the_same(gateway, conversation, path):
    packed = gzip.compress("".join(BEGINNINGS[path]).encode())

    async def packs(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Content-Encoding": "gzip"})
        await answer.prepare(request)
        for start in range(0, len(packed), 7):
            await answer.write(packed[start : start + 7])
        return answer

    gateway.provider.answer = packs
    _, text = read(gateway.post(path, streamed(path), headers=conversation).content)
    assert text == f"Dear {PLANTED[0]}, and [PER"


@pytest.mark.parametrize("path", BEGINNINGS)
def test_odd_events_pass_in_every_family(gateway, conversation, path):
    odd = (
        b': comment\n\ndata: {not json\n\ndata: [1, 2]\n\nevent: odd\ndata\n\ndata: "\xff"\n\ndata: null\n\n'
    )

    async def malformed(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(odd + "".join(BEGINNINGS[path]).encode())
        return answer

    gateway.provider.answer = malformed
    answer = gateway.post(path, streamed(path), headers=conversation)
    assert answer.content.startswith(odd) and PLANTED[0] in answer.content.decode(errors="replace")
