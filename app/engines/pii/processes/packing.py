"""Pack spans, offsets and counts into bytes for the cache."""

import marshal
import struct
from collections.abc import Iterable, Iterator, Mapping

from app.core.contracts.engines import Span

_SPAN = struct.Struct("<IIHd")
_RANGE = struct.Struct("<II")
_numbers: dict[str, int] = {}
_labels: list[str] = []


def packed_spans(spans: Iterable[tuple[int, int, str, float]]) -> bytes:
    """Pack spans, given as in frames, into bytes that are valid in this process only."""
    return b"".join([_SPAN.pack(start, end, _number(label), score) for start, end, label, score in spans])


def raw_spans(packed: bytes) -> list[tuple[int, int, str, float]]:
    """Return the spans that `packed_spans` wrote, as in frames."""
    return [(start, end, _labels[label], score) for start, end, label, score in _SPAN.iter_unpack(packed)]


def spans_from(packed: bytes) -> list[Span]:
    """Return the spans that `packed_spans` wrote."""
    return [Span(start, end, _labels[label], score) for start, end, label, score in _SPAN.iter_unpack(packed)]


def packed_ranges(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Pack offsets into bytes."""
    return b"".join([_RANGE.pack(start, end) for start, end in ranges])


def ranges_from(packed: bytes) -> Iterator[tuple[int, int]]:
    """Return the offsets that `packed_ranges` wrote."""
    return ((start, end) for start, end in _RANGE.iter_unpack(packed))


def packed_counts(counts: Mapping[str, int]) -> bytes:
    """Pack counts into bytes; no counts are no bytes."""
    return marshal.dumps(dict(counts)) if counts else b""


def counts_from(packed: bytes) -> dict[str, int]:
    """Return the counts that `packed_counts` wrote."""
    return marshal.loads(packed) if packed else {}  # noqa: S302 - written by this very process


def _number(label: str) -> int:
    """Return the number of a label in this process; there are few labels, however many texts."""
    number = _numbers.get(label)
    if number is None:
        number = _numbers[label] = len(_labels)
        _labels.append(label)
    return number
