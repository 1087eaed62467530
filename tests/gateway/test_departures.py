"""Who is too late and who leaves, at every door: the provider's request ends with it, and the record says so."""

import asyncio
import http.client
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests.gateway.test_chat import assert_nothing_arrived
from tests.gateway.test_faults import BEGINNINGS, streamed
from tests.gateway.test_faults_everywhere import assert_refused, kind_of, whole

LONG_S = 120
"""Longer than a test waits for anything."""


def wait_until(holds: Callable[[], Any]) -> None:
    until = time.monotonic() + 40
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


async def never(_request: Any, _value: Any) -> None:
    await asyncio.sleep(LONG_S)


async def begins(request: Any, _value: Any) -> web.StreamResponse:
    """Send the beginning of a stream, and then nothing more."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    (path,) = [path for path in BEGINNINGS if path.endswith(request.path.removeprefix("/a"))]
    await answer.write("".join(BEGINNINGS[path]).encode())
    await asyncio.sleep(LONG_S)
    return answer


async def half(request: Any, _value: Any) -> web.StreamResponse:
    """Send half of a whole answer, and then nothing more."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await answer.write(b'{"id": "half", "object": ')
    await asyncio.sleep(LONG_S)
    return answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_provider_whose_first_byte_is_late_is_named_and_let_go(gateway, path, stream):
    gateway.put_provider("late", models=["late-*"], limits={"firstByteS": 0.2}, **kind_of(path))
    gateway.provider.answer = never
    answer = gateway.post(path, whole(path, model="late-1", stream=stream))
    assert_refused(answer, path, 504, "sluice_deadline_exceeded")
    assert "late" in answer.json()["error"]["message"]
    wait_until(lambda: gateway.provider.left == 1)
    assert len(gateway.provider.arrived) == 1  # nothing is sent again
    assert gateway.events("gateway.answer")[0]["error_code"] == "deadline_exceeded"


@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_whole_answer_that_halts_is_refused_and_let_go(gateway, path):
    gateway.put_provider("halted", models=["halted-*"], limits={"idleS": 0.2}, **kind_of(path))
    gateway.provider.answer = half
    answer = gateway.post(path, whole(path, model="halted-1"))
    assert_refused(answer, path, 504, "sluice_deadline_exceeded")
    assert "half" not in answer.text
    wait_until(lambda: gateway.provider.left == 1)


@pytest.mark.parametrize("answers", [never, half, begins])
@pytest.mark.parametrize("path", BEGINNINGS)
def test_a_client_that_leaves_takes_the_providers_request_along(gateway, path, answers):
    gateway.provider.answer = answers
    service = urlsplit(gateway.service.url)
    body = streamed(path) if answers is begins else whole(path)
    headers = {"authorization": f"Bearer {gateway.key}", "content-type": "application/json"}
    client = http.client.HTTPConnection(service.hostname or "", service.port, timeout=50)
    client.request("POST", path, json.dumps(body), headers)
    if answers is begins:
        answer = client.getresponse()
        assert answer.status == 200 and answer.read1(10)
        assert answer.headers["x-accel-buffering"] == "no"
        answer.close()
    wait_until(lambda: gateway.provider.arrived)
    before = [event["id"] for event in gateway.events("gateway.answer")]
    assert not gateway.provider.left
    client.close()
    wait_until(lambda: gateway.provider.left == 1)
    gateway.await_answer(lambda event: event["id"] not in before)
    newest = gateway.events("gateway.answer")[0]
    assert (newest["error_code"], newest["outcome"]) == ("client_gone", "failed")
    assert len(gateway.provider.arrived) == 1
    assert_nothing_arrived(gateway)
