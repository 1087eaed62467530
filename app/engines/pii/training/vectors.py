"""The table of word vectors: what the shared sentence encoder makes of each word by itself, in fewer numbers.

It knows more words than the labelled text holds, so a name or a product that was never labelled resembles those
that were.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engines.encoder.model import TOKENIZER, WEIGHTS, Model
from app.engines.pii.names.words import key_of

WIDTH = 64
_SEEN = 3
_LONGEST = 30
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019](?![sS](?!\w))[^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a vector a word: row 0 is that of unknown words, row `n + 1` that of the word with the key `keys[n]`."""

    keys: npt.NDArray[np.uint32]
    vectors: npt.NDArray[np.float32]

    def place(self, key: int) -> int:
        """Return the row of a word."""
        found = int(np.searchsorted(self.keys, np.uint32(key)))
        return found + 1 if found < len(self.keys) and self.keys[found] == key else 0


def build_table(texts: Iterable[str]) -> Table:
    """Return the table of the encoder's own words and of those that the texts hold at least three times."""
    counts = Counter(word.lower() for text in texts for word in _WORD.findall(text))
    vocabulary = json.loads((WEIGHTS / TOKENIZER).read_text(encoding="utf-8"))["model"]["vocab"]
    words = {word for word in vocabulary if len(word) > 1 and _WORD.fullmatch(word)}
    words |= {word for word, count in counts.items() if count >= _SEEN and len(word) < _LONGEST}
    by_key = {key_of(word): word for word in sorted(words)}
    keys = sorted(by_key)
    vectors = np.zeros((len(keys), 384), np.float32)
    for places, rows in Model().batches([by_key[key] for key in keys]):
        for place, row in zip(places, rows, strict=True):
            vectors[place] = np.frombuffer(row, "<f4")
    return Table(
        np.array(keys, np.uint32), np.concatenate([np.zeros((1, WIDTH), np.float32), _narrowed(vectors)])
    )


def _narrowed(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the first principal components, in units that suit the network."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    # The sign of an axis is arbitrary: fixed, so that the table can be made again.
    axes = axes[:, ::-1][:, :WIDTH] * np.sign(axes[:, ::-1][:, :WIDTH].sum(axis=0))
    narrowed: npt.NDArray[np.float32] = centred @ axes
    narrowed *= 0.5 / narrowed.std()
    return narrowed
