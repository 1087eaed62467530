"""Known words, so that a text in disguise can be told from one that reads well: those of the sentence encoder."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

_FILE: Final = "tokenizer.json"
_RUN: Final = re.compile(r"(.)\1+")
_LETTERS: Final = frozenset({"a", "i", "o"})
"""The only letters that are words by themselves."""
_SHORT: Final = frozenset(
    "ai am an as at be by do go he hi if in is it me my no of ok on or so to up us we".split()  # noqa: SIM905
)
"""The only words of two letters that are looked for where no blank parts them."""
_LONGEST: Final = 18
_MOST_LETTERS: Final = 2_000
"""Most letters that are parted into words; more is no message."""
_UNKNOWN: Final = 14.0
"""What a letter costs that belongs to no known word: more than the rarest word."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words in small letters and their ranks, frequent ones first; ``squeezed`` maps words without doubled letters."""

    ranks: Mapping[str, int]
    squeezed: Mapping[str, Sequence[str]]

    @staticmethod
    @lru_cache(maxsize=1)
    def shared() -> "Vocabulary":
        """Return the vocabulary of this process, read on first use."""
        text = files("app.engines.encoder").joinpath("weights", _FILE).read_text(encoding="utf-8")
        pieces: Mapping[str, int] = json.loads(text)["model"]["vocab"]
        words = [word for word in sorted(pieces, key=pieces.__getitem__) if word.isalpha()]
        words = [word for word in words if len(word) > 1 or word in _LETTERS]
        squeezed: dict[str, list[str]] = {}
        for word in words:
            squeezed.setdefault(_RUN.sub(r"\1", word), []).append(word)
        return Vocabulary({word: rank for rank, word in enumerate(words)}, squeezed)

    def knows(self, word: str) -> bool:
        """Return whether ``word`` is known, in any case and also with a common ending."""
        small = word.lower()
        return small in self.ranks or (small.endswith("s") and small[:-1] in self.ranks)

    def undoubled(self, word: str) -> str | None:
        """Return the known word that ``word`` is but for doubled letters, or None."""
        small = word.lower()
        for candidate in self.squeezed.get(_RUN.sub(r"\1", small), ()):
            if candidate != small and _is_doubled(candidate, small):
                return candidate
        return None

    def parted(self, letters: str) -> list[str] | None:
        """Return the known words that ``letters``, without blanks, are made of; None where most are unknown.

        The way with the most frequent and fewest words is taken, in time linear in the number of letters.
        """
        small = letters.lower()
        if not small.isalpha() or len(small) > _MOST_LETTERS:
            return None
        best = [0.0] * (len(small) + 1)
        begins = [0] * (len(small) + 1)
        for end in range(1, len(small) + 1):
            best[end], begins[end] = min(
                (best[begin] + self._cost(small[begin:end]), begin)
                for begin in range(max(0, end - _LONGEST), end)
            )
        words, end = [], len(small)
        while end:
            words.append(small[begins[end] : end])
            end = begins[end]
        letters_in_words = sum(len(word) for word in words if word in self.ranks)
        return words[::-1] if letters_in_words >= 0.9 * len(small) else None

    def _cost(self, word: str) -> float:
        rank = self.ranks.get(word)
        if rank is None or (len(word) == 2 and word not in _SHORT):  # noqa: PLR2004 - pieces of words
            return _UNKNOWN * len(word)
        return 3.0 + math.log(rank + 10.0)


def _is_doubled(word: str, written: str) -> bool:
    """Return whether ``written`` is ``word`` with some letters written more often."""
    runs, others = (re.finditer(r"(.)\1*", text) for text in (word, written))
    return all(len(run[0]) <= len(other[0]) for run, other in zip(runs, others, strict=True))
