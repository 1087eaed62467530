"""The messages between the pool and its workers: length-prefixed marshal frames, which allow lone surrogates.

Questions, each with ``ask`` and ``within``, the seconds after which a worker without an answer ends itself:

* ``scan``: ``runs`` (lists of adjacent texts that are also scanned as one; most are lists of one), ``names`` from
  other texts of the context, ``options``. Answer: ``texts``, for each text a dictionary of its own findings
  (``spans``), the findings including names found elsewhere (``carried``, None: the same), the ``names`` that matter in
  it (``relevant``, as positions) and ``evidence`` of its language; ``names``, those of the question and new ones, in
  the order of the positions.
* ``carry``: ``texts``, their ``spans``, ``names``, ``options``. Answer: ``texts``, each ``carried`` and ``relevant``.
* ``explain``: ``text``, ``options``. Answer: ``spans``, ``candidates``, ``evidence``.
* ``operate``: ``mode``, ``items``, ``key``. Answer: ``texts``.

A failure is answered by ``error``, its type; ``where``, its places in the code; ``slow``, the name of the recognizer
whose pattern took too long, if that is the error.
"""

import marshal
import struct
from dataclasses import asdict
from typing import Any, BinaryIO

from app.core.contracts.engines import Candidate, DetectionOptions, Span

HEADER = struct.Struct(">I")
WORKER_PID = struct.Struct(">I")
"""The process id of a worker that a zygote has forked; 0 if it has already ended."""

TOO_SLOW = "ScanTimeoutError"
"""The error caused by a text; by name, because its class only exists where the engine is loaded."""

_VERSION = 4

Frame = dict[str, Any]
RawSpan = tuple[int, int, str, float]


def packed(frame: Frame) -> bytes:
    """Return ``frame`` as bytes, prefixed with their length."""
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
    """Return ``options`` as values that fit in a frame."""
    return {
        "strict": options.strict,
        "language": options.language,
        "names": options.names,
        "entities": None if options.entities is None else sorted(options.entities),
        "exclude": sorted(options.exclude),
        "allow_list": tuple(options.allow_list),
        "deny_list": tuple(options.deny_list),
    }


def options_from(raw: Frame) -> DetectionOptions:
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


def raw_spans(spans: list[Span]) -> list[RawSpan]:
    """Return the spans of a text as plain tuples."""
    return [(span.start, span.end, span.label, span.score) for span in spans]


def spans_from(raw: list[RawSpan]) -> list[Span]:
    """Return the spans that `raw_spans` wrote."""
    return [Span(*span) for span in raw]


def raw_candidate(candidate: Candidate) -> Frame:
    """Return a candidate as values that fit in a frame."""
    return asdict(candidate)


def candidate_from(raw: Frame) -> Candidate:
    """Return the candidate that `raw_candidate` wrote."""
    return Candidate(**{**raw, "span": Span(**raw["span"])})
