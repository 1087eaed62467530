"""What the pool and its workers say to each other: length-prefixed marshal frames, also for lone surrogates."""

import marshal
import struct
from typing import Any, BinaryIO

from app.core.engines import DetectionOptions, Span

HEADER = struct.Struct(">I")
_VERSION = 4

Frame = dict[str, Any]
RawSpan = tuple[int, int, str, float]


def packed(frame: Frame) -> bytes:
    """Return ``frame`` as bytes behind their length."""
    body = marshal.dumps(frame, _VERSION)
    return HEADER.pack(len(body)) + body


def unpacked(body: bytes) -> Frame:
    """Return the frame in ``body``; both ends are our own processes, so marshal is safe here."""
    frame: Frame = marshal.loads(body)  # noqa: S302
    return frame


def read(stream: BinaryIO) -> Frame | None:
    """Return the next frame of a blocking stream, or None at its end."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (size,) = HEADER.unpack(header)
    body = stream.read(size)
    return unpacked(body) if len(body) == size else None


def write(stream: BinaryIO, frame: Frame) -> None:
    """Write ``frame`` to a blocking stream."""
    stream.write(packed(frame))
    stream.flush()


def raw_options(options: DetectionOptions) -> Frame:
    """Return ``options`` as a frame can hold them."""
    return {
        "strict": options.strict,
        "language": options.language,
        "names": options.names,
        "entities": None if options.entities is None else sorted(options.entities),
        "exclude": sorted(options.exclude),
        "allow_list": tuple(options.allow_list),
        "deny_list": tuple(options.deny_list),
    }


def given_options(raw: Frame) -> DetectionOptions:
    """Return the options that `raw_options` wrote."""
    return DetectionOptions(
        strict=raw["strict"],
        language=raw["language"],
        names=raw["names"],
        entities=None if raw["entities"] is None else frozenset(raw["entities"]),
        exclude=frozenset(raw["exclude"]),
        allow_list=raw["allow_list"],
        deny_list=raw["deny_list"],
    )


def raw_spans(found: list[list[Span]]) -> list[list[RawSpan]]:
    """Return the spans of each text as plain tuples."""
    return [[(s.start, s.end, s.label, s.score) for s in spans] for spans in found]


def given_spans(raw: list[list[RawSpan]]) -> list[list[Span]]:
    """Return the spans that `raw_spans` wrote."""
    return [[Span(*span) for span in spans] for spans in raw]
