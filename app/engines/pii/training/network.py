"""The trainable twin of the tagger: same tokens, same features, same layers, in torch."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from app.engines.pii.tagger import LABELS, TAGS
from app.engines.pii.training.examples import Example
from app.engines.pii.training.lists import happens
from app.engines.pii.words import (
    MAX_WORD,
    ROWS,
    TOKEN,
    Gazetteer,
    hashed,
    normal_word,
    word_features,
)

WIDTH = 64
CHANNELS = 96
LAYERS = ((5, 1), (5, 1), (5, 1))
"""Of each convolution: how many neighbours, how far apart."""

IGNORED = -100
_GAP = max(taps // 2 * dilation for taps, dilation in LAYERS)
_LONGEST = 600
_WHOLE_WORD_FEATURES = 2
_RARE = 4

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Hold a text as word numbers, whether a gap stands before each token, and tag numbers (`IGNORED`: no lesson)."""

    words: list[int]
    spaced: list[float]
    tags: list[int]


@dataclass(slots=True)
class Vocabulary:
    """Number the words of the training text and keep their feature rows: of the surface, and of the word lists."""

    gazetteer: Gazetteer
    numbers: dict[str, int] = field(default_factory=dict)
    surface: list[Rows] = field(default_factory=list)
    listed: list[Rows] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)

    def number(self, word: str) -> int:
        """Return the number of a word, a new one when it is new."""
        known = self.numbers.get(word)
        if known is None:
            known = self.numbers[word] = len(self.surface)
            surface, listed = word_features(word, self.gazetteer)
            self.surface.append(np.array(hashed(surface), np.int64))
            self.listed.append(np.array(hashed(listed), np.int64))
        self.counts[known] += 1
        return known

    def encode(self, example: Example) -> Encoded:
        """Return the example in numbers."""
        matches = list(TOKEN.finditer(example.text))[:_LONGEST]
        tags = [0] * len(matches)
        for start, end, label in example.spans:
            inside = [i for i, m in enumerate(matches) if m.start() < end and start < m.end()]
            while inside and matches[inside[0]][0].isspace():
                inside.pop(0)
            _write_tags(tags, inside, label)
        spaced = [float(m.start() > (matches[i - 1].end() if i else 0)) for i, m in enumerate(matches)]
        words = [self.number(normal_word(m[0][:MAX_WORD])) for m in matches]
        return Encoded(words, spaced, tags)

    def features(self, word: int) -> Rows:
        """Return the rows of a word."""
        return np.concatenate([self.surface[word], self.listed[word]])

    def blurred_features(self, word: int, chance: random.Random) -> Rows:
        """Return the rows of a word, now and then without the whole word or the lists, so that pieces count too."""
        surface, listed = self.surface[word], self.listed[word]
        if not len(listed):
            return surface
        if happens(chance, 0.35 if self.counts[word] < _RARE else 0.12):
            kept = surface[_WHOLE_WORD_FEATURES:]
            if happens(chance, 0.35):
                kept = np.array([row for row in surface if happens(chance, 0.7)] or surface, np.int64)
            surface = kept
        return surface if happens(chance, 0.2) else np.concatenate([surface, listed])


def _write_tags(tags: list[int], inside: list[int], label: str) -> None:
    if not inside:
        return
    if label not in LABELS:
        for index in inside:
            tags[index] = IGNORED
        return
    first = 1 + 4 * LABELS.index(label)
    if len(inside) == 1:
        tags[inside[0]] = first + 3
        return
    for index in inside:
        tags[index] = first + 1
    tags[inside[0]] = first
    tags[inside[-1]] = first + 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold several texts as one row of tokens with empty gaps between them."""

    rows: Any
    offsets: Any
    sizes: Any
    words: Any
    spaced: Any
    present: Any
    tags: Any


def batch(texts: Sequence[Encoded], vocabulary: Vocabulary, chance: random.Random) -> Batch:
    """Return the texts as tensors, features blurred."""
    words: list[int] = []
    spaced: list[float] = []
    present: list[float] = []
    tags: list[int] = []
    for text in texts:
        words += text.words + [0] * _GAP
        spaced += text.spaced + [0.0] * _GAP
        present += [1.0] * len(text.words) + [0.0] * _GAP
        tags += text.tags + [IGNORED] * _GAP
    distinct, places = np.unique(np.array(words), return_inverse=True)
    rows = [vocabulary.blurred_features(int(word), chance) for word in distinct]
    sizes = np.array([len(r) for r in rows])
    return Batch(
        rows=torch.as_tensor(np.concatenate(rows)),
        offsets=torch.as_tensor(np.concatenate([[0], np.cumsum(sizes)[:-1]])),
        sizes=torch.as_tensor(sizes).float()[:, None],
        words=torch.as_tensor(places),
        spaced=torch.as_tensor(np.array(spaced, np.float32))[:, None],
        present=torch.as_tensor(np.array(present, np.float32))[:, None],
        tags=torch.as_tensor(np.array(tags)),
    )


class Network:
    """Compute tag scores for a batch; `parameters` are plain tensors, so they can be averaged and stored by name."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.parameters: dict[str, Any] = {
            "embedding": torch.randn(ROWS, WIDTH) * 0.25,
            "spaced": torch.zeros(WIDTH),
            "out": torch.randn(CHANNELS, len(TAGS)) / CHANNELS**0.5,
            "out_bias": torch.zeros(len(TAGS)),
        }
        width = WIDTH
        for index, (taps, _) in enumerate(LAYERS):
            self.parameters[f"taps{index}"] = (
                torch.randn(taps, width, CHANNELS) * 0.7 * (2 / (taps * width)) ** 0.5
            )
            self.parameters[f"bias{index}"] = torch.zeros(CHANNELS)
            width = CHANNELS
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def scores(self, given: Batch, dropout: float = 0.2) -> Any:
        """Return one row of tag scores a token."""
        p = self.parameters
        drop = torch.nn.functional.dropout
        vectors = torch.nn.functional.embedding_bag(given.rows, p["embedding"], given.offsets, mode="sum")
        x = (vectors / given.sizes.sqrt())[given.words] + given.spaced * p["spaced"]
        x = drop(x, dropout) * given.present
        for index, (taps, dilation) in enumerate(LAYERS):
            reach = taps // 2 * dilation
            padded = torch.nn.functional.pad(x, (0, 0, reach, reach))
            y = p[f"bias{index}"]
            for tap in range(taps):
                y = y + padded[tap * dilation : tap * dilation + len(x)] @ p[f"taps{index}"][tap]
            y = torch.relu(y)
            x = (y + x if index else y) * given.present
            if index + 1 < len(LAYERS):
                x = drop(x, dropout)
        return x @ p["out"] + p["out_bias"]


def store(path: Path, parameters: dict[str, Any], gazetteer: Gazetteer) -> None:
    """Write the weights that `Tagger` reads: the embedding in 8 bits with a scale a row, the rest in 16."""
    arrays = {name: value.detach().numpy() for name, value in parameters.items()}
    embedding = arrays.pop("embedding")
    keys = sorted(gazetteer.bits)
    scales = np.abs(embedding).max(axis=1) / 127 + 1e-7
    np.savez_compressed(
        path,
        embedding=np.round(embedding / scales[:, None]).astype(np.int8),
        scales=scales.astype(np.float16),
        dilations=np.array([dilation for _, dilation in LAYERS], np.uint8),
        gazetteer_keys=np.array(keys, np.uint32),
        gazetteer_bits=np.array([gazetteer.bits[key] for key in keys], np.uint8),
        **{name: value.astype(np.float16) for name, value in arrays.items()},
    )
