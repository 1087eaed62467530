"""Server-sent events, and the answer that an event stream ends with."""

import json

import pytest

from sluice_client.errors import ProtocolError
from sluice_client.events import EventParser, StreamEvent
from sluice_client.exchange import EventedAnswer, is_event_stream
from sluice_client.wire import WireCall


def events(text: str) -> list[StreamEvent]:
    parser = EventParser()
    found = [parser.line(line) for line in text.split("\n")]
    return [event for event in found if event is not None]


def test_an_event_ends_with_an_empty_line() -> None:
    assert events("data: a\n\ndata: b\n\n") == [StreamEvent("message", "a"), StreamEvent("message", "b")]


def test_several_data_lines_are_one_text() -> None:
    assert events("event: note\ndata: a\ndata:b\n\n") == [StreamEvent("note", "a\nb")]


def test_comments_and_unknown_fields_are_passed_over() -> None:
    assert events(": keep-alive\nid: 7\nretry: 10\n\ndata: a\n\n") == [StreamEvent("message", "a")]


def test_an_event_that_is_cut_off_is_none() -> None:
    assert events("data: a") == []


def test_progress_is_told_and_the_answer_is_found() -> None:
    told: list[tuple[float, float | None]] = []
    call = WireCall("POST", "/mcp", lambda _: None, progress=lambda done, whole: told.append((done, whole)))
    stream = EventedAnswer(call, 200, {})
    progress = {"method": "notifications/progress", "params": {"progress": 1, "total": 3}}
    result = {"jsonrpc": "2.0", "id": 1, "result": {}}

    assert stream.line(f"data: {json.dumps(progress)}") is None
    assert stream.line("") is None
    assert stream.line(f"data: {json.dumps(result)}") is None
    answer = stream.line("")

    assert told == [(1, 3)]
    assert answer is not None
    assert answer.json() == result


def test_an_event_that_is_not_json_is_refused() -> None:
    stream = EventedAnswer(WireCall("POST", "/mcp", lambda _: None), 200, {})
    stream.line("data: {")

    with pytest.raises(ProtocolError):
        stream.line("")


def test_an_event_stream_is_known_by_its_type() -> None:
    assert is_event_stream({"content-type": "text/event-stream; charset=utf-8"})
    assert not is_event_stream({"content-type": "application/json"})
