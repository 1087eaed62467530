"""What the client does when the service refuses, is away, or breaks off in the middle."""

import json
import socket

import pytest

from sluice_client import (
    AsyncSluice,
    ClientTimeoutError,
    ProtocolError,
    RateLimitedError,
    Sluice,
    SluiceError,
    UnreachableError,
)
from tests.e2e.scripted import CUT, answer, scripted

RESULT = answer(200, json.dumps({"content": [{"type": "text", "text": "x"}], "metadata": {"scope": "s"}}))
BUSY = answer(429, json.dumps({"code": "rate_limited", "detail": "Too many."}), "Retry-After: 0")
DOWN = answer(503, json.dumps({"code": "store_unavailable", "detail": "No database."}), "Retry-After: 0")


def test_a_refusal_before_the_work_is_tried_again() -> None:
    with scripted([BUSY, RESULT]) as script, Sluice(script.url) as sluice:
        assert sluice.redact("x").text == "x"
    assert len(script.requests) == 2
    assert script.requests[0] == script.requests[1]


def test_attempts_end() -> None:
    with (
        scripted([BUSY, BUSY, BUSY]) as script,
        Sluice(script.url) as sluice,
        pytest.raises(RateLimitedError) as caught,
    ):
        sluice.redact("x")
    assert caught.value.retry_after == 0
    assert len(script.requests) == 3


def test_a_redaction_without_scope_is_never_sent_twice_once_it_may_have_arrived() -> None:
    with (
        scripted([CUT, RESULT]) as script,
        Sluice(script.url) as sluice,
        pytest.raises(UnreachableError) as caught,
    ):
        sluice.redact("x")
    assert caught.value.sent
    assert len(script.requests) == 1


@pytest.mark.parametrize("first", [CUT, DOWN], ids=["lost", "store away"])
def test_a_redaction_into_a_named_scope_is_sent_again(first: bytes) -> None:
    with scripted([first, RESULT]) as script, Sluice(script.url) as sluice:
        assert sluice.redact("x", scope="s").scope == "s"
    assert len(script.requests) == 2


async def test_the_asynchronous_client_repeats_by_the_same_rules() -> None:
    with scripted([BUSY, CUT, RESULT]) as script:
        async with AsyncSluice(script.url) as sluice:
            assert (await sluice.restore("x", scope="s")).text == "x"
    assert len(script.requests) == 3


def test_a_service_that_is_not_there_is_said_to_be_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Sluice(f"http://127.0.0.1:{port}", retries=1) as sluice, pytest.raises(UnreachableError) as caught:
        sluice.redact("x")
    assert not caught.value.sent
    assert str(port) in caught.value.message


def test_an_answer_that_does_not_come_ends_at_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Sluice(url, timeout=0.3) as sluice, pytest.raises(ClientTimeoutError):
            sluice.redact("x")


def test_another_service_at_the_address_is_recognised() -> None:
    page = answer(200, "<html>Welcome</html>")
    with (
        scripted([page]) as script,
        Sluice(script.url) as sluice,
        pytest.raises(ProtocolError, match="Sluice"),
    ):
        sluice.list_middleware()


def test_a_stream_that_is_cut_short_is_an_error_and_no_end() -> None:
    line = json.dumps({"text": "Hello"}) + "\n"
    cut = answer(200, line)
    with scripted([cut]) as script, Sluice(script.url) as sluice:
        stream = sluice.restore_stream(["Hello"], scope="s")
        assert next(stream) == "Hello"
        with pytest.raises(UnreachableError):
            next(stream)


def test_a_refused_stream_raises_the_error_of_its_code() -> None:
    refusal = answer(403, json.dumps({"code": "forbidden", "detail": "Not you.", "request_id": "r-1"}))
    with scripted([refusal]) as script, Sluice(script.url) as sluice, pytest.raises(SluiceError) as caught:
        list(sluice.restore_stream(["a"] * 100, scope="s"))
    assert (caught.value.code, caught.value.request_id) == ("forbidden", "r-1")
