"""The Python client against a running service, in every dialect."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sluice_client import (
    AsyncSluice,
    InvalidArgumentsError,
    NotFoundError,
    Sluice,
    SluiceError,
    UnauthenticatedError,
)
from tests.e2e.running import Service

DIALECTS: dict[str, dict[str, Any]] = {
    "rest": {"transport": "rest"},
    "modern": {"transport": "mcp", "revision": "2026-07-28"},
    "handshake": {"transport": "mcp", "revision": "2025-11-25"},
}
NUMBER = 123456789012345678901234567890


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> dict[str, Any]:
    return DIALECTS[request.param]


@pytest.fixture
def sluice(service: Service, dialect: dict[str, Any]) -> Iterator[Sluice]:
    with Sluice(service.url, service.key, **dialect) as client:
        yield client


def test_what_was_redacted_is_restored(sluice: Sluice, scope: str) -> None:
    safe = sluice.redact("My name is John Doe and my SSN is 123-45-6789", scope=scope)

    assert safe.text == "My name is [PERSON_1] and my SSN is [SSN_1]"
    assert [one.handle for one in safe.redactions] == ["PERSON_1", "SSN_1"]
    restored = sluice.restore(safe.content, scope=safe.scope)
    assert restored.text == "My name is John Doe and my SSN is 123-45-6789"
    assert restored.unresolved == 0


def test_a_redaction_without_scope_names_the_one_it_made(sluice: Sluice) -> None:
    safe = sluice.redact("I am John Doe.")

    assert sluice.restore(safe.text, scope=safe.scope).text == "I am John Doe."


def test_a_conversation_comes_back_in_its_shape_with_every_digit(sluice: Sluice, scope: str) -> None:
    conversation = [
        {"role": "user", "content": "I am John Doe."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"n": NUMBER, "who": "John Doe"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": "ok", "_meta": None}],
        },
    ]
    safe = sluice.redact(conversation, scope=scope)

    assert safe.content[0] == {"role": "user", "content": "I am [PERSON_1]."}
    assert safe.content[1]["input"] == {"n": NUMBER, "who": "[PERSON_1]"}
    assert sluice.restore(safe.content, scope=scope, positions="all").content == conversation


def test_the_middlewares_are_listed_with_their_schemas(sluice: Sluice) -> None:
    listed = {one.name: one for one in sluice.list_middleware()}

    assert listed["pii_redaction"].phase == "outbound"
    assert listed["pii_restoration"].phase == "inbound"
    assert "scope" in listed["pii_redaction"].input_schema["properties"]


def test_a_wrong_argument_is_an_error_with_code_place_and_id(sluice: Sluice) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        sluice.redact("x", agressiveness="strict")

    assert caught.value.details["pointer"].startswith("/arguments")
    assert caught.value.request_id


def test_an_unknown_middleware_is_an_error(sluice: Sluice) -> None:
    with pytest.raises((NotFoundError, InvalidArgumentsError)):
        sluice.invoke("nonsense", "x")


def test_a_wrong_key_is_refused(service: Service, dialect: dict[str, Any]) -> None:
    stranger = Sluice(service.url, "slc_00000000_" + "x" * 43, **dialect)
    with stranger, pytest.raises(UnauthenticatedError):
        stranger.redact("x")


def test_progress_is_told_over_mcp(service: Service) -> None:
    told: list[tuple[float, float | None]] = []
    with Sluice(service.url, service.key, transport="mcp") as sluice:
        sluice.invoke("timestamp_injector", "x", progress=lambda done, whole: told.append((done, whole)))

    assert told
    assert told == sorted(told)


def test_the_service_is_ready(sluice: Sluice) -> None:
    assert sluice.health().ready


def test_a_session_that_has_ended_is_replaced_without_the_caller_noticing(service: Service) -> None:
    with Sluice(service.url, service.key, **DIALECTS["handshake"]) as sluice:
        sluice.list_middleware()
        first = sluice._dialect.session
        sluice._dialect.session = "0" * 40
        assert sluice.list_middleware()
        assert sluice._dialect.session not in {first, "0" * 40}


def test_one_client_serves_many_threads(service: Service, dialect: dict[str, Any], scope: str) -> None:
    answers: list[str] = []
    with Sluice(service.url, service.key, **dialect) as sluice:
        threads = [
            threading.Thread(target=lambda: answers.append(sluice.redact("I am John Doe.", scope=scope).text))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert answers == ["I am [PERSON_1]."] * 6


async def test_the_asynchronous_client_does_the_same(
    service: Service, dialect: dict[str, Any], scope: str
) -> None:
    async with AsyncSluice(service.url, service.key, **dialect) as sluice:
        redacted = await asyncio.gather(*(sluice.redact("I am John Doe.", scope=scope) for _ in range(6)))
        restored = await sluice.restore(redacted[0].content, scope=scope)
        with pytest.raises(SluiceError):
            await sluice.invoke("nonsense", "x")

    assert {one.text for one in redacted} == {"I am [PERSON_1]."}
    assert restored.text == "I am John Doe."


def test_a_stream_is_restored_while_it_is_still_being_made(service: Service, scope: str) -> None:
    arrived: list[str] = []
    made_when_first_arrived: list[int] = []
    made = 0

    def model() -> Iterator[str]:
        nonlocal made
        for piece in ["Hello ", "[PER", "SON_1]", "! ", "Bye."]:
            made += 1
            yield piece
            time.sleep(0.15)

    with Sluice(service.url, service.key) as sluice:
        sluice.redact("I am John Doe.", scope=scope)
        for piece in sluice.restore_stream(model(), scope=scope):
            arrived.append(piece)
            made_when_first_arrived.append(made)

    assert "".join(arrived) == "Hello John Doe! Bye."
    assert "[PER" not in arrived
    assert made_when_first_arrived[0] < 5


async def test_the_asynchronous_stream_is_restored_too(service: Service, scope: str) -> None:
    async def model() -> AsyncIterator[str]:
        for piece in "Hello [PERSON_1]!":
            yield piece

    async with AsyncSluice(service.url, service.key) as sluice:
        await sluice.redact("I am John Doe.", scope=scope)
        arrived = [piece async for piece in sluice.restore_stream(model(), scope=scope)]

    assert "".join(arrived) == "Hello John Doe!"


def test_a_stream_may_be_left_early(service: Service, scope: str) -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "word "
            time.sleep(0.01)

    with Sluice(service.url, service.key) as sluice:
        stream = sluice.restore_stream(endless(), redactions={"PERSON_1": "Jane"}, scope=scope)
        assert next(stream).startswith("word")
        stream.close()
        assert sluice.health().ready


def test_a_fault_of_the_model_reaches_the_reader_of_the_stream(service: Service, scope: str) -> None:
    def broken() -> Iterator[str]:
        yield "Hello"
        raise ZeroDivisionError

    with Sluice(service.url, service.key) as sluice, pytest.raises(ZeroDivisionError):
        list(sluice.restore_stream(broken(), scope=scope))


def test_a_stream_with_wrong_arguments_is_refused_like_any_call(service: Service, scope: str) -> None:
    with Sluice(service.url, service.key) as sluice, pytest.raises(InvalidArgumentsError):
        list(sluice.restore_stream(["x"], scope=scope, nonsense=True))
