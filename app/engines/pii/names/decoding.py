"""Turn the tag probabilities of tokens into spans: find the best legal sequence, trim spans, join addresses."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.engines.pii.names.words import MAX_WORD

LABELS = ("PERSON", "LOCATION", "ORGANIZATION", "ADDRESS")
TAGS = ("O", *(f"{position}-{label}" for label in LABELS for position in "BILU"))

_LONGEST_RUN = 1_024
_EDGE = " \t\r\n\"'\u201c\u201d\u2018\u2019`,;:!?()[]{}<>|*#=/\\_"
_POSSESSIVE = re.compile(r"['\u2019][sS]$")
_ADDRESS_GAP = re.compile(r"[\s,;.\-\u2013]{0,4}")
_ADDRESS_TAIL = re.compile(
    r"[ ,\n]{1,4}(?:[A-Z]{2}\b(?:[ ,]{1,3}\d{4,6}(?:-\d{4})?\b)?|\d{4,6}(?:-\d{3,4})?\b"
    r"|(?:[A-Z]{1,2}\d[A-Z\d]? ?)?\d[A-Z]{2}\b)"
)
_CODE = re.compile(r"(?=[a-zA-Z]*\d)[a-zA-Z\d]+")
_TAIL_REACH = 24
_CODE_REST = 4


Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """One finding: character offsets, a label of `LABELS`, and a score from 0 to 1.

    The score says how likely the words are a name of any kind, ``share`` how much of it is the label's, from 0 to 1.
    """

    start: int
    end: int
    label: str
    score: float
    share: float = 1.0


def decoded(
    positions: npt.NDArray[np.intp],
    probabilities: Floats,
    offsets: Sequence[tuple[int, int]],
    text: str,
    threshold: float,
) -> list[TaggedSpan]:
    """Return the spans of at least `threshold`, trimmed.

    `positions` are the positions among all tokens of those that may be part of a name; `probabilities` has a row and
    `offsets` an entry for each of them.
    """
    limit = min(max(threshold, 0.01), 0.99)
    # The threshold shifts the log-odds of the tag O (no name).
    scores = np.log(probabilities + 1e-9)
    scores[:, 0] += math.log(limit / (1 - limit))
    best = scores.argmax(axis=1)
    named = np.concatenate([[0], np.cumsum(best > 0)]).tolist()
    tags, sureness = best.tolist(), (1 - probabilities[:, 0]).tolist()
    findings: list[TaggedSpan] = []
    for first, last in _runs(positions):
        if named[first] == named[last]:
            continue
        legal = _legal(tags[first:last], scores[first:last])
        spans = _spans(legal, offsets[first:last], sureness[first:last], probabilities[first:last])
        findings += [
            trimmed
            for span in spans
            if span.score >= threshold and (trimmed := _trimmed(text, span)) is not None
        ]
    return findings


def _runs(positions: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the start and end of runs of consecutive positions, none longer than `_LONGEST_RUN`."""
    edges = [0, *((positions[1:] - positions[:-1] > 1).nonzero()[0] + 1).tolist(), len(positions)]
    return [
        (begin, min(begin + _LONGEST_RUN, end))
        for start, end in pairwise(edges)
        for begin in range(start, end, _LONGEST_RUN)
    ]


_FIRST = tuple(range(1, len(TAGS), 4))
"""The tag B of each label; I, L and U follow it."""
_CONTINUING = (1, 2)
_IMPOSSIBLE = -1e9
_FOLLOWS = [
    [
        after[0] in "OBU" if before[0] in "OLU" else after[0] in "IL" and before[2:] == after[2:]
        for after in TAGS
    ]
    for before in TAGS
]


def _legal(tags: list[int], scores: Floats) -> list[int]:
    """Return the best legal sequence of tags, given the best tag of each token; these mostly are legal already."""
    ends = [0, *tags, 0]
    if all(_FOLLOWS[before][after] for before, after in pairwise(ends)):
        return tags
    return _viterbi(scores.tolist())


def _viterbi(scores: list[list[float]]) -> list[int]:
    """Return the best legal sequence of tags for rows of log-probabilities."""
    # A tag that begins a name or stands alone depends only on the best sequence that has ended before; a tag inside a
    # name depends only on whether that name has just begun.
    closed, ended = 0.0, 0
    opened, within = [_IMPOSSIBLE] * len(LABELS), list(_FIRST)
    came_from = []
    for row in scores:
        came_from.append((ended, within.copy()))
        highest, ended = closed + row[0], 0
        for label, first in enumerate(_FIRST):
            begun, inner = closed + row[first], opened[label] + row[first + 1]
            last, alone = opened[label] + row[first + 2], closed + row[first + 3]
            if last > highest:
                highest, ended = last, first + 2
            if alone > highest:
                highest, ended = alone, first + 3
            opened[label], within[label] = (begun, first) if begun >= inner else (inner, first + 1)
        closed = highest
    path = [ended]
    for before, inside in came_from[:0:-1]:
        label, position = divmod(path[-1] - 1, 4)
        path.append(inside[label] if position in _CONTINUING else before)
    return path[::-1]


def _spans(
    tags: list[int], offsets: Sequence[tuple[int, int]], sureness: list[float], probabilities: Floats
) -> list[TaggedSpan]:
    """Return the spans of a legal sequence of tags; score and share are the means over the tokens."""
    spans: list[TaggedSpan] = []
    first = 0
    for index, tag in enumerate(tags):
        if TAGS[tag][0] in "BU":
            first = index
        if TAGS[tag][0] in "LU":
            score = sum(sureness[first : index + 1]) / (index + 1 - first)
            column = (tag - 1) // 4 * 4 + 1
            own = float(probabilities[first : index + 1, column : column + 4].sum()) / (index + 1 - first)
            share = min(1.0, own / score) if score else 0.0
            spans.append(TaggedSpan(offsets[first][0], offsets[index][1], TAGS[tag][2:], score, share))
    return spans


def _trimmed(text: str, span: TaggedSpan) -> TaggedSpan | None:
    """Return the span without a possessive and enclosing punctuation; None if nothing is left."""
    start, end = span.start, span.end
    if _POSSESSIVE.search(text, max(start, end - 2), end):
        end -= 2
    while start < end and text[start] in _EDGE:
        start += 1
    while start < end and text[end - 1] in _EDGE:
        end -= 1
    if start == end or not any(c.isalnum() for c in text[start : min(end, start + MAX_WORD)]):
        return None
    return replace(span, start=start, end=end)


def joined_addresses(text: str, spans: list[TaggedSpan]) -> list[TaggedSpan]:
    """Return the spans with each address joined to the city, state or post code that follows it."""
    joined: list[TaggedSpan] = []
    for candidate in spans:
        last = joined[-1] if joined else None
        span = candidate if last is None or candidate.start >= last.end else _rest(text, candidate, last.end)
        if span is None:
            continue
        if last is not None and _continues(text, last, span):
            joined.pop()
            span = TaggedSpan(last.start, span.end, "ADDRESS", max(last.score, span.score))
        joined.append(_with_tail(text, span) if span.label == "ADDRESS" else span)
    return [span for span in joined if not _is_code(text, span)]


def _is_code(text: str, span: TaggedSpan) -> bool:
    """Return whether a supposed address is one run of letters and digits, as in a digest."""
    return span.label == "ADDRESS" and _CODE.fullmatch(text, span.start, span.end) is not None


def _with_tail(text: str, span: TaggedSpan) -> TaggedSpan:
    """Extend an address by the rest of a post code at its end, and by a state or post code that follows."""
    end = span.end
    while end < min(len(text), span.end + _CODE_REST) and text[end].isalnum():
        end += 1
    tail = _ADDRESS_TAIL.match(text, end, end + _TAIL_REACH)
    return TaggedSpan(span.start, tail.end() if tail else end, "ADDRESS", span.score)


def _rest(text: str, span: TaggedSpan, start: int) -> TaggedSpan | None:
    return _trimmed(text, TaggedSpan(start, span.end, span.label, span.score)) if start < span.end else None


def _continues(text: str, last: TaggedSpan, span: TaggedSpan) -> bool:
    if last.label != "ADDRESS" or span.label not in ("ADDRESS", "LOCATION"):
        return False
    return _ADDRESS_GAP.fullmatch(text, last.end, span.start) is not None
