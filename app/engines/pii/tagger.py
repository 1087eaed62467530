"""Find people, places, organizations and addresses with a small convolutional network that needs only numpy.

All that is known of a word by itself is computed once and cached: a vector, and how likely a name is at it and
around it. That gate, a few sums a token, says where the convolutions are worth their time; they look at the
neighbours there, and Viterbi reads the best sequence of BILOU tags. The recipe that trains the weights
is in `app/engines/pii/training`.
Set `OPENBLAS_NUM_THREADS=1`: the matrices are small, more threads only cost time and never change a span.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from threading import Lock
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from app.engines.pii.decoding import LABELS, TAGS, Floats, TaggedSpan, decoded, joined_addresses
from app.engines.pii.words import TOKEN, Gazetteer, body, features, normal_word

__all__ = ["LABELS", "TAGS", "TaggedSpan", "Tagger"]

_CACHED_TOKENS = 24_576
_WINDOW = 2_048
_CHUNK = 16_384
_CERTAINLY_NOTHING = 0.9

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """Compute the vector of a word from the embeddings of its features and the table of frequent words."""

    embedding: npt.NDArray[np.int8]
    scales: Floats
    keys: npt.NDArray[np.uint32]
    table: npt.NDArray[np.int8]
    table_scales: Floats
    hidden: Floats
    hidden_bias: Floats
    mixing: Floats
    gazetteer: Gazetteer

    def vectors(self, words: Sequence[str]) -> Floats:
        """Return one row a word."""
        found = features([normal_word(word) for word in words], self.gazetteer)
        total = self._sums(found.whole, found.whole_sizes)
        total += self._sums(found.grams, found.gram_sizes)
        total += self._sums(found.listed, found.listed_sizes)
        sizes = found.whole_sizes + found.gram_sizes + found.listed_sizes
        x = np.concatenate(
            [total / np.sqrt(sizes)[:, None], self._known(found.keys)], axis=1, dtype=np.float32
        )
        mixed: Floats = x + np.maximum(x @ self.hidden + self.hidden_bias, 0) @ self.mixing
        return mixed

    def _sums(self, rows: npt.NDArray[np.int64], sizes: Places) -> Floats:
        sums = np.zeros((len(sizes), self.embedding.shape[1]), np.float32)
        some = np.flatnonzero(sizes)
        if len(some):
            starts = (np.cumsum(sizes) - sizes)[some]
            values = self.embedding[rows] * self.scales[rows, None]
            sums[some] = np.add.reduceat(values, starts)
        return sums

    def _known(self, wanted: npt.NDArray[np.uint32]) -> Floats:
        """Return the table's vectors, zeros for words that it does not hold."""
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        scales = np.where(self.keys[places] == wanted, self.table_scales[places], np.float32(0))
        known: Floats = self.table[places].astype(np.float32) * scales[:, None]
        return known


class _Entries:
    """Hold what is cached of tokens. Rows are only ever added, so readers need no lock."""

    def __init__(self, width: int, taps: int) -> None:
        self.rows: dict[str, int] = {}
        self.vectors = np.zeros((512, width), np.float32)
        self.gates = np.zeros((512, taps), np.float32)
        self.sizes = np.zeros((512, 2), np.int32)

    def add(self, tokens: list[str], vectors: Floats, gates: Floats) -> None:
        """Add tokens; `sizes` are the characters of each, without and with the blanks behind."""
        known, count = len(self.rows), len(self.rows) + len(tokens)
        while count > len(self.vectors):
            self.gates = np.concatenate([self.gates, np.zeros_like(self.gates)])
            self.sizes = np.concatenate([self.sizes, np.zeros_like(self.sizes)])
            self.vectors = np.concatenate([self.vectors, np.zeros_like(self.vectors)])
        self.vectors[known:count] = vectors
        self.gates[known:count] = gates
        self.sizes[known:count, 0] = [len(body(token)) for token in tokens]
        self.sizes[known:count, 1] = list(map(len, tokens))
        self.rows.update(zip(tokens, range(known, count), strict=True))


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

    def __call__(self, x: Floats, at: Places) -> Floats:
        """Return the rectified convolution at the places `at`, none nearer to an end than `reach`."""
        count, width, channels = self.taps.shape
        around = np.add.outer(at, np.arange(count) * self.dilation - self.reach)
        rows = np.take(x, around.ravel(), axis=0).reshape(len(at), count * width)
        y: Floats = rows @ self.taps.reshape(count * width, channels)
        y += self.bias
        np.maximum(y, 0, out=y)
        return y


@dataclass(frozen=True, slots=True)
class _Gate:
    """Say where a name is likely enough to look closer: a convolution of few units, its products cached by word."""

    taps: Floats
    bias: Floats
    out: Floats
    out_bias: float

    @property
    def reach(self) -> int:
        """Return how many tokens to each side it looks at."""
        return int(self.taps.shape[1]) // len(self.bias) // 2

    def __call__(self, products: Floats) -> Places:
        """Return the places of likely names among tokens whose words times `taps` are given."""
        count, units = len(products), len(self.bias)
        sums = np.empty((count + 2 * self.reach, units), np.float32)
        sums[:] = self.bias
        for tap in range(2 * self.reach + 1):
            first = 2 * self.reach - tap
            sums[first : first + count] += products[:, tap * units : (tap + 1) * units]
        sums = sums[self.reach : self.reach + count]
        np.maximum(sums, 0, out=sums)
        return np.flatnonzero(sums @ self.out > -self.out_bias)


@dataclass(frozen=True, slots=True)
class _Window:
    """Hold consecutive tokens, of which those from `first` to `last` are judged; `start` is where they begin."""

    tokens: list[str]
    first: int
    last: int
    start: int


class Tagger:
    """Tag names in text; safe to share between threads, deterministic, linear in the length of the text."""

    def __init__(self, weights: IO[bytes]) -> None:
        with np.load(weights, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        single = {name: a.astype(np.float32) for name, a in arrays.items() if a.dtype == np.float16}
        self._lexicon = _Lexicon(
            arrays["embedding"],
            single["scales"],
            arrays["table_keys"],
            arrays["table"],
            single["table_scales"],
            single["hidden"],
            single["hidden_bias"],
            single["mixing"],
            Gazetteer.from_arrays(arrays["gazetteer_keys"], arrays["gazetteer_bits"]),
        )
        self._blank = single["blank"]
        self._gate = _Gate(
            single["gate"], single["gate_bias"], single["gate_out"], float(single["gate_out_bias"])
        )
        self._layers = [
            _Layer(single[f"taps{i}"], int(d), single[f"bias{i}"]) for i, d in enumerate(arrays["dilations"])
        ]
        self._out, self._out_bias = single["out"], single["out_bias"]
        self._reach = sum(layer.reach for layer in self._layers)
        self._entries = _Entries(len(self._blank), self._gate.taps.shape[1])
        self._lock = Lock()

    @classmethod
    def embedded(cls) -> Self:
        """Load the weights that ship inside the package."""
        with resources.files("app.engines.pii").joinpath("weights", "tagger.npz").open("rb") as weights:
            return cls(weights)

    def __call__(self, text: str, threshold: float = 0.5) -> list[TaggedSpan]:
        """Return the findings of at least `threshold`, sorted, without overlap.

        The threshold also moves the balance between a name and nothing, so a low one finds more.
        """
        positions, rows, offsets = [np.empty(0, np.intp)], [np.empty((0, len(TAGS)), np.float32)], []
        begin = 0
        for window in _windows(text, self._reach + self._gate.reach):
            hot, probabilities, where = self._hot(window)
            positions.append(hot + begin - window.first)
            rows.append(probabilities)
            offsets += where
            begin += window.last - window.first
        found = decoded(np.concatenate(positions), np.concatenate(rows), offsets, text, threshold)
        return joined_addresses(text, found)

    def _hot(self, window: _Window) -> tuple[Places, Floats, list[tuple[int, int]]]:
        """Return the places of the tokens that may be part of a name, their tag probabilities, and their offsets."""
        entries, rows = self._look_up(window.tokens)
        likely = self._gate(entries.gates[rows])
        likely = likely[(likely >= window.first) & (likely < window.last)]
        if not len(likely):
            return likely, np.empty((0, len(TAGS)), np.float32), []
        probabilities = self._probabilities(entries.vectors, rows, likely)
        hot = np.flatnonzero(probabilities[:, 0] < _CERTAINLY_NOTHING)
        places = likely[hot]
        sizes = entries.sizes[rows]
        starts = (np.cumsum(sizes[:, 1]) - sizes[:, 1])[places] + window.start
        ends = starts + sizes[places, 0]
        return places, probabilities[hot], list(zip(starts.tolist(), ends.tolist(), strict=True))

    def _probabilities(self, vectors: Floats, rows: Places, at: Places) -> Floats:
        """Return the tag probabilities of the tokens `at`; each layer works only where the next one looks."""
        edge = max(layer.reach for layer in self._layers)
        beyond = self._reach
        near = _near(at, beyond, len(rows))
        x = np.zeros((len(rows) + 2 * edge, vectors.shape[1]), np.float32)
        x[near + edge] = vectors[rows[near]]
        for index, layer in enumerate(self._layers):
            beyond -= layer.reach
            near = _near(at, beyond, len(rows)) + edge
            y = layer(x, near)
            if index:
                y += x[near]
            x = np.zeros((len(x), y.shape[1]), np.float32)
            x[near] = y
        logits: Floats = y @ self._out + self._out_bias
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits

    def _look_up(self, tokens: list[str]) -> tuple[_Entries, Places]:
        """Return the cache and the rows of tokens in it. A full cache is replaced, so rows in use stay right."""
        entries = self._entries
        try:
            return entries, np.fromiter(map(entries.rows.__getitem__, tokens), np.intp, len(tokens))
        except KeyError:
            with self._lock:
                entries = self._entries
                new = [token for token in dict.fromkeys(tokens) if token not in entries.rows]
                if len(entries.rows) + len(new) > _CACHED_TOKENS:
                    entries = self._entries = _Entries(len(self._blank), self._gate.taps.shape[1])
                    new = list(dict.fromkeys(tokens))
                self._learn(entries, new)
        return entries, np.fromiter(map(entries.rows.__getitem__, tokens), np.intp, len(tokens))

    def _learn(self, entries: _Entries, tokens: list[str]) -> None:
        bodies = [body(token) for token in tokens]
        distinct = {word: place for place, word in enumerate(dict.fromkeys(bodies))}
        vectors = self._lexicon.vectors(list(distinct))[[distinct[word] for word in bodies]]
        followed = [len(token) > len(word) for token, word in zip(tokens, bodies, strict=True)]
        vectors[followed] += self._blank
        entries.add(tokens, vectors, vectors @ self._gate.taps)


def _near(places: Places, reach: int, count: int) -> Places:
    """Return all places at most `reach` away, from 0 to `count`."""
    if not reach:
        return places
    mask = np.zeros(count + 2 * reach, bool)
    mask[np.add.outer(places, np.arange(2 * reach + 1)).ravel()] = True
    return np.flatnonzero(mask[reach : reach + count])


def _tokens(text: str) -> Iterator[list[str]]:
    """Yield the tokens of a text, a bounded number at a time."""
    start = 0
    while start < len(text):
        stop = start + _CHUNK
        tokens = TOKEN.findall(text, start, stop)
        if stop < len(text):
            # The last two may be cut, or depend on what follows.
            del tokens[-2:]
        start += sum(map(len, tokens))
        yield tokens


def _windows(text: str, margin: int) -> Iterator[_Window]:
    """Yield the tokens in windows whose neighbours to each side are the ones that the network looks at."""
    held: list[str] = []
    first = start = 0
    for chunk in _tokens(text):
        held += chunk
        while len(held) - first >= _WINDOW + margin:
            last = first + _WINDOW
            yield _Window(held[: last + margin], first, last, start)
            gone = max(0, last - margin)
            start += sum(map(len, held[:gone]))
            held, first = held[gone:], last - gone
    if first < len(held):
        yield _Window(held, first, len(held), start)
