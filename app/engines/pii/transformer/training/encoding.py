"""Examples as word-pieces with features and tags, and batches of like lengths."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from app.engines.pii.names.decoding import LABELS
from app.engines.pii.training.examples import Example
from app.engines.pii.transformer.pieces import (
    CASELESS,
    FIRST,
    LAST,
    LETTER,
    LINE_BREAK,
    LOWER,
    MASK,
    UPPER,
    Cutter,
    PieceToken,
)

IGNORED = -100
LONGEST = 254
"""Word-pieces of a text at most; twice what the tagger reads at once, for names deep in a text."""
_BREAK = PieceToken(0, 0, False, (LINE_BREAK,), 0, 0)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Hold the tokens of a text and their tag numbers (`IGNORED`: no lesson)."""

    tokens: list[PieceToken]
    tags: list[int]

    @property
    def size(self) -> int:
        """Return the number of word-pieces."""
        return sum(len(token.ids) for token in self.tokens)


def encode(example: Example, cutter: Cutter) -> list[Encoded]:
    """Return the example, in several parts where it is longer than `LONGEST`."""
    tokens = list(cutter.tokens(example.text))
    tags = [0] * len(tokens)
    for start, end, label in example.spans:
        inside = [i for i, token in enumerate(tokens) if token.start < end and start < token.end]
        while inside and example.text[tokens[inside[0]].start].isspace():
            inside.pop(0)
        _write_tags(tags, inside, label)
    parts: list[Encoded] = []
    room = 0
    for token, tag in zip(tokens, tags, strict=True):
        if len(token.ids) > room:
            parts.append(Encoded([], []))
            room = LONGEST
        room -= len(token.ids)
        parts[-1].tokens.append(token)
        parts[-1].tags.append(tag)
    return parts


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


def joined(texts: Sequence[Encoded]) -> Encoded:
    """Return texts one after the other, a line each."""
    whole = Encoded([], [])
    for text in texts:
        if whole.tokens:
            whole.tokens.append(_BREAK)
            whole.tags.append(0)
        whole.tokens.extend(text.tokens)
        whole.tags.extend(text.tags)
    return whole


@dataclass(frozen=True, slots=True)
class Blur:
    """Say how often training hides something: a whole word, its lists, the case of all letters of a text."""

    word: float = 0.06
    lists: float = 0.2
    lower: float = 0.1
    upper: float = 0.03


NOTHING_HIDDEN = Blur(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold texts of like lengths as tensors."""

    ids: Any
    outlines: Any
    lists: Any
    mask: Any
    first: Any
    tags: Any


def batch(texts: Sequence[Encoded], chance: random.Random, blur: Blur) -> Batch:
    """Return the texts as tensors."""
    length = 2 + max(text.size for text in texts)
    ids = np.zeros((len(texts), length), np.int64)
    outlines = np.zeros_like(ids)
    lists = np.zeros_like(ids)
    mask = np.zeros((len(texts), length), bool)
    first: list[int] = []
    tags: list[int] = []
    for row, text in enumerate(texts):
        draw = chance.random()
        recase = LOWER if draw < blur.lower else UPPER if draw < blur.lower + blur.upper else None
        at = 1
        ids[row, 0] = FIRST
        for token, tag in zip(text.tokens, text.tags, strict=True):
            end = at + len(token.ids)
            seen = _recased(token.outline, recase)
            hidden = seen >= CASELESS and chance.random() < blur.word
            ids[row, at:end] = MASK if hidden else token.ids
            outlines[row, at:end] = 2 * seen + token.spaced
            known = token.lists and chance.random() >= blur.lists
            lists[row, at:end] = 2 * token.lists + (seen > LOWER) if known else 0
            first.append(row * length + at)
            tags.append(tag)
            at = end
        ids[row, at] = LAST
        mask[row, : at + 1] = True
    tensors = (
        torch.as_tensor(each) for each in (ids, outlines, lists, mask, np.array(first), np.array(tags))
    )
    return Batch(*tensors)


def _recased(outline: int, recase: int | None) -> int:
    if recase is None or outline < LOWER:
        return outline
    if recase == LOWER:
        return LOWER
    return LETTER if outline == LETTER else UPPER


def batches(texts: Sequence[Encoded], pieces: int, chance: random.Random) -> list[list[Encoded]]:
    """Return the texts in random batches of about ``pieces`` word-pieces with hardly any padding."""
    order = sorted(texts, key=lambda text: text.size + chance.random() * 4)
    found: list[list[Encoded]] = []
    for text in order:
        if not found or (len(found[-1]) + 1) * (text.size + 2) > pieces:
            found.append([])
        found[-1].append(text)
    chance.shuffle(found)
    return found


def packed(texts: Sequence[Encoded], share: float, chance: random.Random) -> list[Encoded]:
    """Return the texts in random order, about ``share`` of them joined with others to longer ones."""
    order = list(texts)
    chance.shuffle(order)
    alone = int(len(order) * (1 - share))
    found = order[:alone]
    group: list[Encoded] = []
    limit = chance.randint(40, LONGEST)
    for text in order[alone:]:
        if group and sum(each.size + 1 for each in group) + text.size > limit:
            found.append(joined(group))
            group = []
            limit = chance.randint(40, LONGEST)
        group.append(text)
    if group:
        found.append(joined(group))
    return found
