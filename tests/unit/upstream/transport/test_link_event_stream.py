"""Lines and events, however the bytes are cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.upstream.transport.event_stream import Events, Lines, Oversize, ServerSentEvent

STREAM = (
    b': hello\n\nid: 1\nretry: 1500\ndata:\n\nevent: message\ndata: {"a":\ndata: 1}\nid: 2\n\n'
    b"data:no space\r\n\r\nevent: endpoint\rdata: /post\r\rid: 3\n\nother: x\n\n"
)
EVENTS = [
    ServerSentEvent("message", b"", "1", 1.5),
    ServerSentEvent("message", b'{"a":\n1}', "2", None),
    ServerSentEvent("message", b"no space", None, None),
    ServerSentEvent("endpoint", b"/post", None, None),
    ServerSentEvent("message", b"", "3", None),
]


def cut(data, places):
    edges = sorted({0, *(place % (len(data) + 1) for place in places), len(data)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.integers(0, 10_000)))
def test_events_are_the_same_however_the_stream_is_cut(places):
    parser = Events(1000)
    assert [event for chunk in cut(STREAM, places) for event in parser.feed(chunk)] == EVENTS


@given(st.lists(st.integers(0, 10_000)))
def test_lines_are_the_same_however_the_stream_is_cut(places):
    lines = Lines(1000)
    data = b"one\ntwo\r\n\nthree\rfour\n"
    found = [line for chunk in cut(data, places) for line in lines.feed(chunk)]
    assert found == [b"one", b"two", b"", b"three", b"four"]


@given(st.lists(st.integers(0, 10_000)))
def test_a_line_that_is_too_long_is_told_once_and_the_next_is_whole(places):
    lines = Lines(100)
    data = b"a" * 100 + b"\n" + b"b" * 101 + b"\n" + b"c" * 5000 + b"\nshort\n"
    found = [line for chunk in cut(data, places) for line in lines.feed(chunk)]
    assert found[0] == b"a" * 100
    assert [type(line) for line in found[1:3]] == [Oversize, Oversize]
    assert found[1].head == b"b" * 101 and found[2].head.startswith(b"c" * 101)
    assert found[3:] == [b"short"]


@given(st.lists(st.integers(0, 10_000)))
def test_an_event_that_is_too_large_is_told_once_and_the_next_is_whole(places):
    parser = Events(100)
    data = (
        b"data: " + b"a" * 100 + b"\n\ndata: " + b"b" * 60 + b"\ndata: " + b"b" * 60 + b"\n\n"
        b"data: " + b"c" * 9000 + b"\n\ndata: end\n\n"
    )
    found = [event for chunk in cut(data, places) for event in parser.feed(chunk)]
    assert found[0] == ServerSentEvent("message", b"a" * 100)
    assert [type(event) for event in found[1:3]] == [Oversize, Oversize]
    assert found[3:] == [ServerSentEvent("message", b"end")]


def test_what_is_too_long_is_told_before_its_end_has_come_and_is_not_kept():
    lines = Lines(1000)
    found = [line for _ in range(100) for line in lines.feed(b"x" * 1000)]
    assert len(found) == 1 and isinstance(found[0], Oversize)
    assert sum(map(len, lines._parts)) == 0
