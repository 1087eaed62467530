"""Records of a stream: any chunking gives the same, both formats, faults are refused."""

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.records import EVENTS, LINES, read_records, written
from app.core.errors import InvalidArgumentsError, InvalidRequestError


async def cut(body: bytes, sizes: list[int]) -> AsyncIterator[bytes]:
    start = 0
    for size in sizes:
        yield body[start : start + size]
        start += size
    yield body[start:]


async def read(body: bytes, kind: str, sizes: list[int] | None = None) -> list[object]:
    return [record async for record in read_records(cut(body, sizes or []), kind)]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    st.lists(st.integers(0, 9)),
)
async def test_any_chunking_gives_the_same_records(texts: list[str], sizes: list[int]) -> None:
    records = [{"text": text} for text in texts]
    for kind in (LINES, EVENTS):
        body = b"".join(written(record, kind) for record in records)
        assert await read(body, kind, sizes) == records


async def test_events_may_have_comments_names_several_lines_and_crlf() -> None:
    body = b': hello\r\nevent: piece\r\nid: 1\r\ndata: {"text":\r\ndata:"a"}\r\n\r\n\n\ndata: {"text":"b"}'
    assert await read(body, EVENTS) == [{"text": "a"}, {"text": "b"}]


async def test_empty_lines_and_a_missing_last_line_end_are_fine() -> None:
    assert await read(b'\n{"text":"a"}\r\n\n{"text":"b"}', LINES) == [{"text": "a"}, {"text": "b"}]
    assert await read(b"", LINES) == []


@pytest.mark.parametrize("line", [b"[1]", b'"Jane"', b"1", b"null"])
async def test_a_record_that_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidArgumentsError):
        await read(line, LINES)


@pytest.mark.parametrize("line", [b"{", b'{"text":"\\ud83d"}', b'{"a":1,"a":1}', b"\xff"])
async def test_a_record_that_is_not_strict_json_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        await read(b"data: " + line, EVENTS)


def test_an_error_is_an_event_of_that_name() -> None:
    assert written({"error": {"code": "x"}}, EVENTS).startswith(b"event: error\ndata: {")
    assert json.loads(written({"error": {"code": "x"}}, LINES)) == {"error": {"code": "x"}}
