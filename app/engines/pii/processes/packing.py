"""Spans and the like as bytes, for the cache."""

import marshal
import struct
from collections.abc import Iterable, Iterator, Mapping

from app.core.contracts.engines import Span

_SPAN = struct.Struct("<IIHd")
_RANGE = struct.Struct("<II")
_numbers: dict[str, int] = {}
_labels: list[str] = []


def packed_spans(spans: Iterable[tuple[int, int, str, float]]) -> bytes:
    """Return spans, as frames hold them, as bytes that count in this process only."""
    return b"".join([_SPAN.pack(start, end, _number(label), score) for start, end, label, score in spans])


def raw_spans(packed: bytes) -> list[tuple[int, int, str, float]]:
    """Return the spans that `packed_spans` wrote, as frames hold them."""
    return [(start, end, _labels[label], score) for start, end, label, score in _SPAN.iter_unpack(packed)]


def given_spans(packed: bytes) -> list[Span]:
    """Return the spans that `packed_spans` wrote."""
    return [Span(start, end, _labels[label], score) for start, end, label, score in _SPAN.iter_unpack(packed)]


def packed_ranges(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Return offsets as bytes."""
    return b"".join([_RANGE.pack(*one) for one in ranges])


def given_ranges(packed: bytes) -> Iterator[tuple[int, int]]:
    """Return the offsets that `packed_ranges` wrote."""
    return ((start, end) for start, end in _RANGE.iter_unpack(packed))


def packed_counts(counts: Mapping[str, int]) -> bytes:
    """Return counts as bytes; nothing for none."""
    return marshal.dumps(dict(counts)) if counts else b""


def given_counts(packed: bytes) -> dict[str, int]:
    """Return the counts that `packed_counts` wrote."""
    return marshal.loads(packed) if packed else {}  # noqa: S302 - written by this very process


def _number(label: str) -> int:
    """Return the number of a label in this process; labels are few, whatever the texts."""
    number = _numbers.get(label)
    if number is None:
        number = _numbers[label] = len(_labels)
        _labels.append(label)
    return number
