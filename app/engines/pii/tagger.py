"""Find people, places, organizations and addresses with a small convolutional network that needs only numpy.

Words become sums of hashed sub-word embeddings, cached per word; a few narrow convolutions look at the
neighbours; Viterbi reads the best sequence of BILOU tags. The recipe that trains the weights is in
`app/engines/pii/training`.
Set `OPENBLAS_NUM_THREADS=1`: the matrices are small, more threads only cost time and never change a span.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice, pairwise
from threading import Lock
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from app.engines.pii.words import MAX_WORD, TOKEN, Gazetteer, hashed, normal_word, word_features

LABELS = ("PERSON", "LOCATION", "ORGANIZATION", "ADDRESS")
TAGS = ("O", *(f"{position}-{label}" for label in LABELS for position in "BILU"))
_CACHE_WORDS = 32_768
_WINDOW = 1_024
_LONGEST_RUN = 1_024
_CERTAINLY_NOTHING = 0.9
_EDGE = " \t\r\n\"'\u201c\u201d\u2018\u2019`,;:!?()[]{}<>|*#=/\\_"
_POSSESSIVE = re.compile(r"['\u2019][sS]$")
_ADDRESS_GAP = re.compile(r"[\s,;.\-\u2013]{0,4}")
_ADDRESS_TAIL = re.compile(
    r"[ ,\n]{1,4}(?:[A-Z]{2}\b(?:[ ,]{1,3}\d{4,6}(?:-\d{4})?\b)?|\d{4,6}(?:-\d{3,4})?\b"
    r"|(?:[A-Z]{1,2}\d[A-Z\d]? ?)?\d[A-Z]{2}\b)"
)
_TAIL_REACH = 24
_CODE_REST = 4

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """Hold one finding: character offsets, a label of `LABELS`, and how sure it is (0 to 1)."""

    start: int
    end: int
    label: str
    score: float


class _Words:
    """Keep the vectors of recent words; a full table is emptied between two windows, never within one."""

    def __init__(self, embedding: npt.NDArray[np.int8], scales: Floats, gazetteer: Gazetteer) -> None:
        self._embedding = embedding
        self._scales = scales
        self._gazetteer = gazetteer
        self._rows: dict[str, int] = {}
        self._vectors = np.zeros((1_024, embedding.shape[1]), np.float32)
        self._lock = Lock()

    def vectors(self, words: Sequence[str]) -> Floats:
        """Return one row a word; `words` is one window."""
        with self._lock:
            if len(self._rows) + len(words) > _CACHE_WORDS:
                self._rows.clear()
            if new := [word for word in dict.fromkeys(words) if word not in self._rows]:
                self._add(new)
            found: Floats = self._vectors[[self._rows[word] for word in words]]
            return found

    def _add(self, words: list[str]) -> None:
        hashes: list[int] = []
        starts: list[int] = []
        for word in words:
            starts.append(len(hashes))
            surface, listed = word_features(normal_word(word), self._gazetteer)
            hashes += hashed(surface)
            hashes += hashed(listed)
        rows = self._embedding[hashes].astype(np.float32) * self._scales[hashes][:, None]
        sizes = np.diff([*starts, len(hashes)]).astype(np.float32)
        known = len(self._rows)
        while known + len(words) > len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._vectors[known : known + len(words)] = np.add.reduceat(rows, starts) / np.sqrt(sizes)[:, None]
        self._rows.update(zip(words, range(known, known + len(words)), strict=True))


@dataclass(frozen=True, slots=True)
class _Layer:
    """Hold one convolution: a matrix for each neighbour, the distance between neighbours, a bias."""

    taps: Floats
    dilation: int
    bias: Floats

    @property
    def reach(self) -> int:
        """Return how many tokens to each side it looks at."""
        return self.dilation * (len(self.taps) // 2)

    def __call__(self, x: Floats) -> Floats:
        """Return the rectified convolution of the rows of `x`, zeros beyond both ends."""
        count, width = x.shape
        padded = np.zeros((count + 2 * self.reach, width), np.float32)
        padded[self.reach : self.reach + count] = x
        y: Floats = padded[:count] @ self.taps[0]
        for index in range(1, len(self.taps)):
            y += padded[index * self.dilation : index * self.dilation + count] @ self.taps[index]
        y += self.bias
        np.maximum(y, 0, out=y)
        return y


@dataclass(frozen=True, slots=True)
class _Window:
    """Hold consecutive tokens: those from `first` to `last` are judged; the text before them ends at `before`."""

    offsets: list[tuple[int, int]]
    first: int
    last: int
    before: int


@dataclass(frozen=True, slots=True)
class _Hot:
    """Hold the tokens that may be part of a name: their positions among all tokens, tag probabilities, offsets."""

    positions: npt.NDArray[np.intp]
    probabilities: Floats
    offsets: list[tuple[int, int]]


class Tagger:
    """Tag names in text; safe to share between threads, deterministic, linear in the length of the text."""

    def __init__(self, weights: IO[bytes]) -> None:
        with np.load(weights, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        gazetteer = Gazetteer.from_arrays(arrays["gazetteer_keys"], arrays["gazetteer_bits"])
        self._words = _Words(arrays["embedding"], arrays["scales"].astype(np.float32), gazetteer)
        self._spaced: Floats = arrays["spaced"].astype(np.float32)
        self._layers = [
            _Layer(arrays[f"taps{i}"].astype(np.float32), int(d), arrays[f"bias{i}"].astype(np.float32))
            for i, d in enumerate(arrays["dilations"])
        ]
        self._out: Floats = arrays["out"].astype(np.float32)
        self._out_bias: Floats = arrays["out_bias"].astype(np.float32)
        self._reach = sum(layer.reach for layer in self._layers)

    @classmethod
    def embedded(cls) -> Self:
        """Load the weights that ship inside the package."""
        with resources.files("app.engines.pii").joinpath("weights", "tagger.npz").open("rb") as weights:
            return cls(weights)

    def __call__(self, text: str, threshold: float = 0.5) -> list[TaggedSpan]:
        """Return the findings of at least `threshold`, sorted, without overlap.

        The threshold also moves the balance between a name and nothing, so a low one finds more.
        """
        found: list[TaggedSpan] = []
        hot = self._hot(text)
        for first, last in _runs(hot.positions):
            spans = _read(hot.probabilities[first:last], hot.offsets[first:last], threshold)
            found.extend(trimmed for span in spans if (trimmed := _trimmed(text, span)) is not None)
        return _joined_addresses(text, found)

    def _hot(self, text: str) -> _Hot:
        """Return the tokens that may be part of a name; the others are forgotten window by window."""
        positions = [np.empty(0, np.intp)]
        rows = [np.empty((0, len(TAGS)), np.float32)]
        offsets: list[tuple[int, int]] = []
        begin = 0
        for window in _windows(text, self._reach):
            core = self._probabilities(text, window)[window.first : window.last]
            hot = np.flatnonzero(core[:, 0] < _CERTAINLY_NOTHING)
            positions.append(hot + begin)
            rows.append(core[hot])
            offsets += [window.offsets[window.first + index] for index in hot.tolist()]
            begin += len(core)
        return _Hot(np.concatenate(positions), np.concatenate(rows), offsets)

    def _probabilities(self, text: str, window: _Window) -> Floats:
        spaced = np.empty(len(window.offsets), np.float32)
        before = window.before
        for index, (start, end) in enumerate(window.offsets):
            spaced[index] = start > before
            before = end
        x = self._words.vectors([text[start : min(end, start + MAX_WORD)] for start, end in window.offsets])
        x += spaced[:, None] * self._spaced
        for index, layer in enumerate(self._layers):
            y = layer(x)
            x = y + x if index else y
        logits: Floats = x @ self._out + self._out_bias
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits


def _windows(text: str, reach: int) -> Iterator[_Window]:
    """Yield the tokens in windows whose neighbours to each side are the ones that the layers look at."""
    tokens = (match.span() for match in TOKEN.finditer(text))
    held: list[tuple[int, int]] = []
    first = before = 0
    while chunk := list(islice(tokens, _WINDOW)):
        held += chunk
        last = len(held) - reach
        if last <= first:
            continue
        yield _Window(held, first, last, before)
        keep = max(0, last - reach)
        before = held[keep - 1][1] if keep else before
        first = last - keep
        held = held[keep:]
    if first < len(held):
        yield _Window(held, first, len(held), before)


def _runs(positions: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return where runs of consecutive positions begin and end, none longer than `_LONGEST_RUN`."""
    edges = [0, *(np.flatnonzero(np.diff(positions) > 1) + 1).tolist(), len(positions)]
    return [
        (begin, min(begin + _LONGEST_RUN, end))
        for start, end in pairwise(edges)
        for begin in range(start, end, _LONGEST_RUN)
    ]


_OPENING = [index for index, tag in enumerate(TAGS) if tag[0] in "OBU"]
_CLOSING = [index for index, tag in enumerate(TAGS) if tag[0] in "OLU"]
# An inner or last tag follows the first or an inner tag of the same label.
_INNER = [(1 + 4 * n + place, 1 + 4 * n, 2 + 4 * n) for n in range(len(LABELS)) for place in (1, 2)]
_IMPOSSIBLE = -1e9
_FOLLOWS = [
    [
        after[0] in "OBU" if before[0] in "OLU" else after[0] in "IL" and before[2:] == after[2:]
        for after in TAGS
    ]
    for before in TAGS
]


def _best_tags(scores: Floats) -> list[int]:
    """Return the best legal sequence of tags; mostly the best tag of each token already is one."""
    tags: list[int] = scores.argmax(axis=1).tolist()
    ends = [0, *tags, 0]
    if all(_FOLLOWS[before][after] for before, after in pairwise(ends)):
        return tags
    return _viterbi(scores.tolist())


def _viterbi(scores: list[list[float]]) -> list[int]:
    """Return the best legal sequence of tags for rows of log-probabilities."""
    best = [_IMPOSSIBLE] * len(TAGS)
    for tag in _OPENING:
        best[tag] = scores[0][tag]
    came_from: list[list[int]] = []
    for row in scores[1:]:
        closed = max(_CLOSING, key=best.__getitem__)
        following = [0.0] * len(TAGS)
        source = [closed] * len(TAGS)
        for tag in _OPENING:
            following[tag] = best[closed] + row[tag]
        for tag, first, inner in _INNER:
            source[tag] = first if best[first] >= best[inner] else inner
            following[tag] = best[source[tag]] + row[tag]
        best = following
        came_from.append(source)
    path = [max(_CLOSING, key=best.__getitem__)]
    for source in reversed(came_from):
        path.append(source[path[-1]])
    return path[::-1]


def _read(probabilities: Floats, offsets: list[tuple[int, int]], threshold: float) -> Iterator[TaggedSpan]:
    """Yield the spans of one run of tokens; the threshold shifts the log-odds of being nothing."""
    limit = min(max(threshold, 0.01), 0.99)
    scores = np.log(probabilities + 1e-9)
    scores[:, 0] += math.log(limit / (1 - limit))
    sureness = (1 - probabilities[:, 0]).tolist()
    for span in _spans(_best_tags(scores), offsets, sureness):
        if span.score >= threshold:
            yield span


def _spans(tags: list[int], offsets: list[tuple[int, int]], sureness: list[float]) -> list[TaggedSpan]:
    """Return the spans that a legal sequence of tags names; the score is the mean over the tokens."""
    spans: list[TaggedSpan] = []
    first = 0
    for index, tag in enumerate(tags):
        if TAGS[tag][0] in "BU":
            first = index
        if TAGS[tag][0] in "LU":
            score = sum(sureness[first : index + 1]) / (index + 1 - first)
            spans.append(TaggedSpan(offsets[first][0], offsets[index][1], TAGS[tag][2:], score))
    return spans


def _trimmed(text: str, span: TaggedSpan) -> TaggedSpan | None:
    """Return the span without a possessive and enclosing punctuation; None when nothing is left."""
    start, end = span.start, span.end
    if _POSSESSIVE.search(text, max(start, end - 2), end):
        end -= 2
    while start < end and text[start] in _EDGE:
        start += 1
    while start < end and text[end - 1] in _EDGE:
        end -= 1
    if start == end or not any(c.isalnum() for c in text[start : min(end, start + MAX_WORD)]):
        return None
    return TaggedSpan(start, end, span.label, span.score)


def _joined_addresses(text: str, spans: list[TaggedSpan]) -> list[TaggedSpan]:
    """Return the spans with an address and the city, state or post code that follows it as one."""
    joined: list[TaggedSpan] = []
    for found in spans:
        last = joined[-1] if joined else None
        span = found if last is None or found.start >= last.end else _rest(text, found, last.end)
        if span is None:
            continue
        if last is not None and _continues(text, last, span):
            joined.pop()
            span = TaggedSpan(last.start, span.end, "ADDRESS", max(last.score, span.score))
        joined.append(_with_tail(text, span) if span.label == "ADDRESS" else span)
    return joined


def _with_tail(text: str, span: TaggedSpan) -> TaggedSpan:
    """Return the address with the rest of a post code it ends in, and with a state or post code that follows."""
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
