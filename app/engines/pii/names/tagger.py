"""Find people, places, organizations and addresses with a small convolutional network that needs only numpy.

Everything that depends on a single word is computed once and cached: a vector, and the word's contribution to the gate.
The gate, a few sums per token, selects the places where a name is likely; only there the convolutions combine the
neighbouring tokens, and Viterbi finds the best sequence of BILOU tags. The recipe that trains the weights
is in `app/engines/pii/training`.
Set `OPENBLAS_NUM_THREADS=1`: the matrices are small, so more threads only cost time; they never change a span.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import repeat
from threading import Lock
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from app.engines.pii.names.companies import people_apart
from app.engines.pii.names.decoding import LABELS, TAGS, Floats, TaggedSpan, decoded, joined_addresses
from app.engines.pii.names.words import TOKEN, Gazetteer, WordFeatures, body, feature_word, features

__all__ = ["LABELS", "TAGS", "TaggedSpan", "Tagger"]

ENGLISH = "tagger.npz"
"""Weights for English, and for texts whose language is not known."""
WORLD = "tagger-world.npz"
"""The same, trained further on eleven more languages, which it knows better, at the cost of some English."""
_CACHED_TOKENS = 24_576
_WINDOW = 4_096
_CHUNK = 16_384
_BLOCK = 256
"""Words whose features are summed at once; limits the memory for padding."""
_CERTAINLY_NO_NAME = 0.9

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
        """Return one row for each of one or more normal words."""
        word_features = features(words, self.gazetteer)
        sizes = word_features.whole_sizes + word_features.gram_sizes + word_features.listed_sizes
        total = self._sums(word_features) / np.sqrt(sizes)[:, None]
        x = np.concatenate([total, self._table_vectors(word_features.keys)], axis=1, dtype=np.float32)
        mixed: Floats = x + np.maximum(x @ self.hidden + self.hidden_bias, 0) @ self.mixing
        return mixed

    def _sums(self, word_features: WordFeatures) -> Floats:
        """Return the sums of the embeddings of each word's features; each sum is a product with the scales."""
        parts = [
            (word_features.whole, word_features.whole_sizes),
            (word_features.grams, word_features.gram_sizes),
            (word_features.listed, word_features.listed_sizes),
        ]
        count = len(word_features.keys)
        width = sum(int(sizes.max()) for _, sizes in parts)
        rows, scales = np.zeros((count, width), np.int64), np.zeros((count, width), np.float32)
        first = 0
        for features_of, sizes in parts:
            columns = slice(first, first := first + int(sizes.max()))
            taken = np.arange(columns.stop - columns.start) < sizes[:, None]
            rows[:, columns][taken] = features_of
            scales[:, columns][taken] = self.scales[features_of]
        sums = np.empty((count, 1, self.embedding.shape[1]), np.float32)
        for start in range(0, count, _BLOCK):
            block = slice(start, start + _BLOCK)
            embedded = np.take(self.embedding, rows[block], axis=0).astype(np.float32)
            np.matmul(scales[block, None], embedded, out=sums[block])
        return sums[:, 0]

    def _table_vectors(self, keys: npt.NDArray[np.uint32]) -> Floats:
        """Return the table's vectors; zeros for words that are not in it."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        scales = np.where(self.keys[places] == keys, self.table_scales[places], np.float32(0))
        vectors: Floats = self.table[places].astype(np.float32) * scales[:, None]
        return vectors


class _Entries:
    """The cache of tokens. Rows are only added and never change, so readers need no lock.

    A word has two rows, the second for occurrences followed by blanks, but one vector.
    """

    def __init__(self, width: int, taps: int) -> None:
        self.rows: dict[str, int] = {}
        self.vectors = np.empty((_CACHED_TOKENS, width), np.float32)
        self.gates = np.empty((2 * _CACHED_TOKENS, taps), np.float32)
        self._words = 0

    def find(self, tokens: Sequence[str]) -> Places:
        """Return the rows of tokens; -1 for tokens that are not cached."""
        return np.fromiter(map(self.rows.get, tokens, repeat(-1)), np.intp, len(tokens))

    def has_room(self, count: int) -> bool:
        """Return whether ``count`` new tokens and the words that represent them can be added."""
        return len(self.rows) + 2 * count <= _CACHED_TOKENS

    def add(self, words: Sequence[str], vectors: Floats, gates: Floats) -> None:
        """Add words; `gates` has two rows per word."""
        previous, count = self._words, self._words + len(words)
        self.vectors[previous:count] = vectors
        self.gates[2 * previous : 2 * count] = gates
        self.rows.update(zip(words, range(2 * previous, 2 * count, 2), strict=True))
        self._words = count


@dataclass(frozen=True, slots=True)
class _Layer:
    """One convolution: a matrix for each neighbour, the distance between neighbours, a bias."""

    taps: Floats
    dilation: int
    bias: Floats

    @property
    def reach(self) -> int:
        """Return the number of tokens on each side that it reads."""
        return self.dilation * (len(self.taps) // 2)

    def around(self, at: Places) -> Places:
        """Return the places it reads for each of the places `at`, shifted by `reach` so that none is below 0."""
        return np.add.outer(at, np.arange(len(self.taps)) * self.dilation)

    def __call__(self, x: Floats, around: Places) -> Floats:
        """Return the rectified convolution of the rows of `x` that each row of `around` lists, and a row of zeros."""
        count, width, channels = self.taps.shape
        with_zeros = np.zeros((len(around) + 1, channels), np.float32)
        y = with_zeros[:-1]
        if len(x) < len(around):
            # Rows that many places read are multiplied only once for each relative position.
            products = (x @ self.taps.transpose(1, 0, 2).reshape(width, -1)).reshape(-1, channels)
            for tap in range(count):
                y += np.take(products, around[:, tap] * count + tap, axis=0)
        else:
            rows = np.take(x, around.ravel(), axis=0).reshape(len(around), count * width)
            np.matmul(rows, self.taps.reshape(count * width, channels), out=y)
        y += self.bias
        np.maximum(y, 0, out=y)
        return with_zeros


@dataclass(frozen=True, slots=True)
class _Gate:
    """Select places where a name is likely: a convolution with few units, whose products are cached by word."""

    taps: Floats
    bias: Floats
    out: Floats
    out_bias: float

    @property
    def reach(self) -> int:
        """Return the number of tokens on each side that it reads."""
        return int(self.taps.shape[1]) // len(self.bias) // 2

    def __call__(self, products: Floats) -> Places:
        """Return the places of likely names; `products` are the tokens' word vectors times `taps`."""
        count, units, reach = len(products), len(self.bias), self.reach
        sums = np.empty((count + 2 * reach, units), np.float32)
        sums[:] = self.bias
        for tap in range(2 * reach + 1):
            first = 2 * reach - tap
            sums[first : first + count] += products[:, tap * units : (tap + 1) * units]
        sums = sums[reach : reach + count]
        np.maximum(sums, 0, out=sums)
        return (sums @ self.out > -self.out_bias).nonzero()[0]


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive tokens that begin at offset `start`; those from `first` to `last` are tagged, others are context."""

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
        self._margin = sum(layer.reach for layer in self._layers) + self._gate.reach
        self._entries = _Entries(len(self._blank), self._gate.taps.shape[1])
        self._lock = Lock()

    @classmethod
    def embedded(cls, file: str = ENGLISH) -> Self:
        """Load weights that ship inside the package: ``ENGLISH``, or ``WORLD``."""
        with resources.files("app.engines.pii").joinpath("weights", file).open("rb") as weights:
            return cls(weights)

    def kinds(self, word: str) -> str:
        """Return the letters of `GAZETTEER_KINDS` for the lists that hold a word in small letters."""
        return self._lexicon.gazetteer.kinds(word)

    def __call__(self, text: str, threshold: float = 0.5) -> list[TaggedSpan]:
        """Return the findings of at least `threshold`, sorted, without overlap.

        The threshold also shifts the balance between a name and no name, so a low threshold finds more.
        """
        positions, rows, offsets = [np.empty(0, np.intp)], [np.empty((0, len(TAGS)), np.float32)], []
        begin = 0
        for window in _windows(text, self._margin):
            hot, probabilities, where = self._hot(window)
            positions.append(hot + begin - window.first)
            rows.append(probabilities)
            offsets += where
            begin += window.last - window.first
        if not offsets:
            return []
        spans = decoded(np.concatenate(positions), np.concatenate(rows), offsets, text, threshold)
        return people_apart(text, joined_addresses(text, spans), self._lexicon.gazetteer)

    def _hot(self, window: _Window) -> tuple[Places, Floats, list[tuple[int, int]]]:
        """Return the places of the tokens that may be part of a name, their tag probabilities, and their offsets."""
        entries, rows = self._look_up(window.tokens)
        likely = self._gate(entries.gates[rows])
        likely = likely[(likely >= window.first) & (likely < window.last)]
        if not len(likely):
            return likely, np.empty((0, len(TAGS)), np.float32), []
        probabilities = self._probabilities(entries, rows, likely)
        hot = (probabilities[:, 0] < _CERTAINLY_NO_NAME).nonzero()[0]
        places = likely[hot]
        sizes = np.fromiter(map(len, window.tokens), np.intp, len(window.tokens))
        starts = (np.cumsum(sizes) - sizes)[places] + window.start
        offsets = [
            (start, start + len(body(window.tokens[place])))
            for start, place in zip(starts.tolist(), places.tolist(), strict=True)
        ]
        return places, probabilities[hot], offsets

    def _probabilities(self, entries: _Entries, rows: Places, at: Places) -> Floats:
        """Return the tag probabilities of the tokens `at`; each layer computes only the places that the next reads."""
        wanted = [at]
        for layer in reversed(self._layers):
            wanted.insert(0, _inside(layer.around(wanted[0]), layer.reach, len(rows)))
        x, places = self._distinct(entries, rows[wanted[0]])
        for index, layer in enumerate(self._layers):
            # Places beyond the text refer to the last row of x, which is zeros.
            row_at = np.full(len(rows) + 2 * layer.reach, len(x) - 1)
            row_at[wanted[index] + layer.reach] = places
            around = row_at[layer.around(wanted[index + 1])]
            y = layer(x, around)
            if index:
                y[:-1] += x[around[:, len(layer.taps) // 2]]
            x, places = y, np.arange(len(around))
        logits: Floats = x[:-1] @ self._out + self._out_bias
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits

    def _distinct(self, entries: _Entries, rows: Places) -> tuple[Floats, Places]:
        """Return the vectors of distinct tokens and a row of zeros, and the index among these of each of `rows`."""
        distinct, places = np.unique(rows, return_inverse=True)
        x = np.zeros((len(distinct) + 1, len(self._blank)), np.float32)
        x[:-1] = entries.vectors[distinct // 2]
        x[:-1][distinct % 2 == 1] += self._blank
        return x, places

    def _look_up(self, tokens: list[str]) -> tuple[_Entries, Places]:
        """Return the cache and the rows of tokens in it. A full cache is replaced, so rows in use stay valid."""
        entries = self._entries
        rows = entries.find(tokens)
        unknown = (rows < 0).nonzero()[0]
        if len(unknown):
            new = [tokens[place] for place in unknown.tolist()]
            with self._lock:
                if not entries.has_room(len(new)):
                    entries = self._entries = _Entries(len(self._blank), self._gate.taps.shape[1])
                    new, unknown = tokens, np.arange(len(tokens))
                self._learn(entries, new)
            rows[unknown] = entries.find(new)
        return entries, rows

    def _learn(self, entries: _Entries, tokens: Iterable[str]) -> None:
        """Add tokens to the cache; tokens that the network cannot distinguish share an entry."""
        shapes = {token: (feature_word(word := body(token)), len(token) > len(word)) for token in tokens}
        new = [
            word for word in dict.fromkeys(word for word, _ in shapes.values()) if word not in entries.rows
        ]
        if new:
            vectors = self._lexicon.vectors(new)
            with_blank = np.stack([vectors, vectors + self._blank], axis=1).reshape(2 * len(new), -1)
            entries.add(new, vectors, with_blank @ self._gate.taps)
        rows = entries.rows
        rows.update({token: rows[word] + followed for token, (word, followed) in shapes.items()})


def _inside(places: Places, reach: int, count: int) -> Places:
    """Return the distinct `places`, after subtracting `reach`, from 0 to below `count`."""
    mask = np.zeros(count + 2 * reach, bool)
    mask[places.ravel()] = True
    return mask[reach : reach + count].nonzero()[0]


def _tokens(text: str) -> Iterator[list[str]]:
    """Yield the tokens of a text, a bounded number at a time."""
    start = 0
    while start < len(text):
        stop = start + _CHUNK
        tokens = TOKEN.findall(text, start, stop)
        if stop < len(text):
            # The last two tokens may be cut, or depend on the text that follows.
            del tokens[-2:]
        start += sum(map(len, tokens))
        yield tokens


def _windows(text: str, margin: int) -> Iterator[_Window]:
    """Yield the tokens in windows, with as many tokens of context on each side as the network reads."""
    tokens: list[str] = []
    first = start = 0
    for chunk in _tokens(text):
        tokens += chunk
        while len(tokens) - first >= _WINDOW + margin:
            last = first + _WINDOW
            yield _Window(tokens[: last + margin], first, last, start)
            dropped = max(0, last - margin)
            start += sum(map(len, tokens[:dropped]))
            tokens, first = tokens[dropped:], last - dropped
    if first < len(tokens):
        yield _Window(tokens, first, len(tokens), start)
