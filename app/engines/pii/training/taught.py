"""Lessons of the accurate tagger: what it makes of texts, sureness included, for the fast one to learn from.

A file holds one JSON object a line: `text`, `src`, `spans` (start, end, label, score) and `chars`, a list of pieces
(start, end, and the probabilities of nothing, person, location, organization, address); what no piece covers is
surely nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.engines.pii.training.examples import Example

KINDS = 5
_SURE = 0.02

Soft = npt.NDArray[np.float32]
Piece = tuple[int, int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Hold a text with the teacher's spans and its probabilities for the pieces where there may be a name."""

    example: Example
    pieces: tuple[Piece, ...]

    def soft(self, starts: Sequence[int], ends: Sequence[int]) -> Soft:
        """Return the teacher's probabilities for tokens; a token of several pieces is as the one most like a name."""
        rows = np.zeros((len(starts), KINDS), np.float32)
        rows[:, 0] = 1
        token = 0
        for start, end, probabilities in self.pieces:
            while token < len(starts) and ends[token] <= start:
                token += 1
            place = token
            while place < len(starts) and starts[place] < end:
                if probabilities[0] < rows[place, 0]:
                    rows[place] = probabilities
                place += 1
        return rows


def read_lessons(paths: Sequence[Path]) -> dict[str, Lesson]:
    """Return the lessons of the files by their text."""
    lessons = {}
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                stored = json.loads(line)
                spans = tuple((start, end, label) for start, end, label, _ in stored["spans"])
                pieces = tuple(
                    (piece[0], piece[1], tuple(piece[2:]))
                    for piece in sorted(stored.get("chars", ()))
                    if piece[2] < 1 - _SURE
                )
                example = Example(stored["text"], spans, f"taught {stored.get('src', '')}")
                lessons[stored["text"]] = Lesson(example, pieces)
    return lessons
