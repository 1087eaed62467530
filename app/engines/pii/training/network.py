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

from app.engines.pii.names.tagger import LABELS, TAGS
from app.engines.pii.names.words import ROWS, TOKEN, Gazetteer, body, features, normal_word
from app.engines.pii.training.examples import Example
from app.engines.pii.training.lists import happens
from app.engines.pii.training.taught import KINDS, Lesson, Soft
from app.engines.pii.training.vectors import Table

FEATURE_WIDTH = 64
HIDDEN = 256
CHANNELS = 128
LAYERS = ((3, 1), (3, 2), (5, 2))
"""Of each convolution: how many neighbours, how far apart."""
GATE_TAPS = 5
GATE_UNITS = 12
GATE_WEIGHT = 0.5
NAME_WEIGHT = 4.0
"""How much worse it is for the gate to lose a token of a name than to let another one through."""

SOFT_WEIGHT = 1.0
"""How much the teacher's probabilities count beside the labels."""

IGNORED = -100
_GAP = max(GATE_TAPS // 2, *(taps // 2 * dilation for taps, dilation in LAYERS))
_LONGEST = 600
_SURE_FEATURES = 2
_RARE = 4

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Hold a text as word numbers, whether a blank follows each token, tag numbers (`IGNORED`: no lesson).

    `soft` is what the teacher says, None where it said nothing.
    """

    words: list[int]
    followed: list[float]
    tags: list[int]
    soft: Soft | None = None


@dataclass(slots=True)
class Vocabulary:
    """Number the words of the training text and keep their feature rows and their place in the table."""

    gazetteer: Gazetteer
    table: Table
    numbers: dict[str, int] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    whole: list[Rows] = field(default_factory=list)
    grams: list[Rows] = field(default_factory=list)
    listed: list[Rows] = field(default_factory=list)
    known: list[int] = field(default_factory=list)

    def number(self, word: str) -> int:
        """Return the number of a word, a new one when it is new."""
        number = self.numbers.setdefault(word, len(self.numbers))
        self.counts[number] += 1
        return number

    def encode(self, example: Example, lesson: Lesson | None = None) -> Encoded:
        """Return the example in numbers."""
        tokens = TOKEN.findall(example.text)[:_LONGEST]
        bodies = [body(token) for token in tokens]
        sizes = np.array([len(token) for token in tokens], np.intp)
        starts = (np.cumsum(sizes) - sizes).tolist()
        tags = [0] * len(tokens)
        for start, end, label in example.spans:
            inside = [
                i
                for i, (at, word) in enumerate(zip(starts, bodies, strict=True))
                if at < end and start < at + len(word)
            ]
            while inside and bodies[inside[0]].isspace():
                inside.pop(0)
            _write_tags(tags, inside, label)
        followed = [float(len(token) > len(word)) for token, word in zip(tokens, bodies, strict=True)]
        ends = [start + len(word) for start, word in zip(starts, bodies, strict=True)]
        soft = lesson.soft(starts, ends) if lesson else None
        return Encoded([self.number(normal_word(word)) for word in bodies], followed, tags, soft)

    def describe(self) -> None:
        """Compute the features of all words numbered so far."""
        words = list(self.numbers)
        found = features(words, self.gazetteer)
        self.whole = np.split(found.whole, np.cumsum(found.whole_sizes)[:-1])
        self.grams = np.split(found.grams, np.cumsum(found.gram_sizes)[:-1])
        self.listed = np.split(found.listed, np.cumsum(found.listed_sizes)[:-1])
        self.known = [self.table.place(key) for key in found.keys.tolist()]

    def blurred(self, word: int, chance: random.Random) -> tuple[Rows, int]:
        """Return the rows of a word and its place in the table.

        Now and then without the whole word, its vector or the lists, so that pieces and neighbours count too.
        """
        whole, grams, listed, known = self.whole[word], self.grams[word], self.listed[word], self.known[word]
        if not len(grams):
            return whole, known
        if happens(chance, 0.4 if self.counts[word] < _RARE else 0.15):
            whole = whole[_SURE_FEATURES:]
            if happens(chance, 0.35):
                grams = np.array([row for row in grams if happens(chance, 0.7)], np.int64)
        if happens(chance, 0.15):
            known = 0
        return np.concatenate([whole, grams] if happens(chance, 0.2) else [whole, grams, listed]), known


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
    known: Any
    words: Any
    followed: Any
    present: Any
    tags: Any
    taught: Any
    soft: Any


def batch(texts: Sequence[Encoded], vocabulary: Vocabulary, chance: random.Random) -> Batch:
    """Return the texts as tensors, features blurred."""
    words: list[int] = []
    followed: list[float] = []
    present: list[float] = []
    tags: list[int] = []
    for text in texts:
        words += text.words + [0] * _GAP
        followed += text.followed + [0.0] * _GAP
        present += [1.0] * len(text.words) + [0.0] * _GAP
        tags += text.tags + [IGNORED] * _GAP
    starts = np.cumsum([0, *(len(text.words) + _GAP for text in texts)])
    soft = np.zeros((len(words), KINDS), np.float32)
    taught = np.zeros(len(words), bool)
    for start, text in zip(starts.tolist(), texts, strict=False):
        if text.soft is not None:
            soft[start : start + len(text.soft)] = text.soft
            taught[start : start + len(text.soft)] = True
    distinct, places = np.unique(np.array(words), return_inverse=True)
    blurred = [vocabulary.blurred(int(word), chance) for word in distinct]
    sizes = np.array([len(rows) for rows, _ in blurred])
    return Batch(
        rows=torch.as_tensor(np.concatenate([rows for rows, _ in blurred])),
        offsets=torch.as_tensor(np.cumsum(sizes) - sizes),
        sizes=torch.as_tensor(sizes).float()[:, None],
        known=torch.as_tensor(np.array([known for _, known in blurred])),
        words=torch.as_tensor(places),
        followed=torch.as_tensor(np.array(followed, np.float32))[:, None],
        present=torch.as_tensor(np.array(present, np.float32))[:, None],
        tags=torch.as_tensor(np.array(tags)),
        taught=torch.as_tensor(taught),
        soft=torch.as_tensor(soft),
    )


class Network:
    """Compute tag scores for a batch; `parameters` are plain tensors, so they can be averaged and stored by name."""

    parameters: dict[str, Any]
    half: bool = False
    """Whether products are made of 16-bit numbers while training."""

    def __init__(self, seed: int, table: Table, parameters: dict[str, Any] | None = None) -> None:
        torch.manual_seed(seed)
        self.table = torch.as_tensor(table.vectors)
        if parameters:
            self.parameters = parameters
            return
        width = FEATURE_WIDTH + table.vectors.shape[1]
        self.parameters = {
            "embedding": torch.randn(ROWS, FEATURE_WIDTH) * 0.25,
            "hidden": torch.randn(width, HIDDEN) * (2 / width) ** 0.5,
            "hidden_bias": torch.zeros(HIDDEN),
            "mixing": torch.randn(HIDDEN, width) * 0.3 * (1 / HIDDEN) ** 0.5,
            "blank": torch.zeros(width),
            "gate": torch.randn(width, GATE_TAPS * GATE_UNITS) * 0.1,
            "gate_bias": torch.zeros(GATE_UNITS),
            "gate_out": torch.randn(GATE_UNITS) * 0.3,
            "gate_out_bias": torch.zeros(1),
            "out": torch.randn(CHANNELS, len(TAGS)) / CHANNELS**0.5,
            "out_bias": torch.zeros(len(TAGS)),
        }
        for index, (taps, _) in enumerate(LAYERS):
            self.parameters[f"taps{index}"] = (
                torch.randn(taps, width, CHANNELS) * 0.7 * (2 / (taps * width)) ** 0.5
            )
            self.parameters[f"bias{index}"] = torch.zeros(CHANNELS)
            width = CHANNELS
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def scores(self, given: Batch, dropout: float = 0.25) -> tuple[Any, Any]:
        """Return one row of tag scores a token, and one score of the gate."""
        p = self.parameters
        drop = torch.nn.functional.dropout
        sums = torch.nn.functional.embedding_bag(given.rows, p["embedding"], given.offsets, mode="sum")
        word = torch.cat([sums / given.sizes.sqrt(), self.table[given.known]], dim=1)
        word = word + torch.relu(drop(word, dropout / 2) @ p["hidden"] + p["hidden_bias"]) @ p["mixing"]
        x = (word[given.words] + given.followed * p["blank"]) * given.present
        gate = torch.relu(p["gate_bias"] + _shifted(x @ p["gate"])) @ p["gate_out"] + p["gate_out_bias"]
        x = drop(x, dropout)
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
        return x @ p["out"] + p["out_bias"], gate


def _shifted(gates: Any) -> Any:
    """Return for each token the sum of what its neighbours say of it, each in the columns of its distance."""
    side = GATE_TAPS // 2
    padded = torch.nn.functional.pad(gates, (0, 0, side, side))
    columns = padded.split(GATE_UNITS, dim=1)
    return sum(column[tap : tap + len(gates)] for tap, column in enumerate(columns))


def loss(scores: Any, gate: Any, given: Batch) -> Any:
    """Return what training makes small: mistaken tags, and a gate that loses names or lets everything through."""
    tags = given.tags
    mistakes = torch.nn.functional.cross_entropy(scores, tags, ignore_index=IGNORED, label_smoothing=0.02)
    judged = tags != IGNORED
    named = (tags[judged] > 0).float()
    lost = torch.nn.functional.binary_cross_entropy_with_logits(
        gate[judged], named, pos_weight=torch.tensor(NAME_WEIGHT)
    )
    total = mistakes + GATE_WEIGHT * lost
    if given.taught.any():
        logs = scores[given.taught].log_softmax(dim=1)
        kinds = [
            logs[:, :1],
            *(logs[:, 1 + 4 * n : 5 + 4 * n].logsumexp(1, keepdim=True) for n in range(len(LABELS))),
        ]
        unlike = -(given.soft[given.taught] * torch.cat(kinds, dim=1)).sum()
        total = total + SOFT_WEIGHT * unlike / len(scores)
    return total


def store(
    path: Path, parameters: dict[str, Any], table: Table, gazetteer: Gazetteer, gate_shift: float
) -> None:
    """Write the weights that `Tagger` reads: embedding and table in 8 bits with a scale a row, the rest in 16.

    `gate_shift` is added to the gate, which is open above 0.
    """
    arrays = {name: value.detach().numpy() for name, value in parameters.items()}
    arrays["gate_out_bias"] = arrays["gate_out_bias"][0] + np.float32(gate_shift)
    keys = sorted(gazetteer.bits)
    embedding, scales = _in_8_bits(arrays.pop("embedding"))
    vectors, table_scales = _in_8_bits(table.vectors[1:])
    np.savez(
        path,
        embedding=embedding,
        scales=scales,
        table=vectors,
        table_scales=table_scales,
        table_keys=table.keys,
        dilations=np.array([dilation for _, dilation in LAYERS], np.uint8),
        gazetteer_keys=np.array(keys, np.uint32),
        gazetteer_bits=np.array([gazetteer.bits[key] for key in keys], np.uint8),
        **{name: value.astype(np.float16) for name, value in arrays.items()},
    )


def restore(path: Path) -> tuple[dict[str, Any], Table]:
    """Return the parameters and the table of stored weights, to go on from."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {
            name: stored[name].astype(np.float32) for name in stored.files if stored[name].dtype != np.uint8
        }
        keys = stored["table_keys"]
    vectors = arrays.pop("table") * arrays.pop("table_scales")[:, None]
    arrays["embedding"] *= arrays.pop("scales")[:, None]
    for name in ("table_keys", "gazetteer_keys"):
        arrays.pop(name)
    arrays["gate_out_bias"] = arrays["gate_out_bias"].reshape(1)
    table = Table(keys, np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors]))
    return {name: torch.as_tensor(array).requires_grad_() for name, array in arrays.items()}, table


def _in_8_bits(values: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    scales = np.abs(values).max(axis=1) / 127 + 1e-7
    return np.round(values / scales[:, None]).astype(np.int8), scales.astype(np.float16)
