"""Whole events from any chunks, with every byte of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import TooLargeError
from app.core.gateway.sse import EventReader, written_event
from tests.unit.core.gateway import recorded


def read(raw, *cuts):
    reader = EventReader()
    events = [
        event for i, j in zip([0, *cuts], [*cuts, len(raw)], strict=True) for event in reader.feed(raw[i:j])
    ]
    rest = reader.rest()
    return [*events, *([rest] if rest else [])]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_the_same_wherever_they_are_cut(end):
    raw = recorded.MESSAGE_STREAM[:4_000].replace(b"\n", end)
    whole = read(raw)
    assert len(whole) > 10 and whole[0].name == "message_start"
    for cut in range(1, len(raw)):
        assert read(raw, cut) == whole
    assert read(raw, *range(1, len(raw))) == whole


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"data: a", b"data", b"event: x", b": c", b"", b"id: 1", "data: é🙂".encode()]),
        max_size=9,
    ),
    st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=9, max_size=9),
    st.data(),
)
def test_every_byte_is_kept(lines, ends, data):
    raw = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    cuts = (
        sorted(data.draw(st.sets(st.integers(1, max(1, len(raw) - 1)), max_size=6))) if len(raw) > 1 else []
    )
    events = read(raw, *cuts)
    assert b"".join(event.raw for event in events) == raw
    assert events == read(raw)


def test_a_large_event_comes_in_many_chunks():
    raw = b"data: " + b"x" * 3_000_000 + b"\n\ndata: y\n\n"
    reader = EventReader()
    events = [event for place in range(0, len(raw), 500) for event in reader.feed(raw[place : place + 500])]
    assert [len(event.data) for event in events] == [3_000_000, 1]


def test_data_of_several_lines_is_one_text():
    (event,) = read(b'event: e\ndata: {\ndata:  "a":1}\n: note\n\n')
    assert (event.name, event.data) == ("e", '{\n "a":1}')
    assert event.with_data('{"a":2}') == b'event: e\ndata: {"a":2}\n: note\n\n'


def test_comments_have_no_data():
    (event,) = read(b": ping\n\n")
    assert event.data is None
    assert read(b"data: \xff\n\n")[0].data is None


def test_an_event_that_is_too_large_is_refused():
    reader = EventReader(maximum=10)
    with pytest.raises(TooLargeError):
        list(reader.feed(b"data: 12345678901234567890"))
    assert [event.data for event in reader.feed(b"data: 1\n\n")] == ["1"]


def test_an_event_of_our_own_is_read_again():
    assert [
        (event.name, event.data) for event in read(written_event("{}", "error") + written_event("[]"))
    ] == [
        ("error", "{}"),
        ("message", "[]"),
    ]
