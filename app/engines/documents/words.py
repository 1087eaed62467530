"""The words of texts and of questions, as documents are ranked by them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from app.engines.grounding.stemming import stem

MOST_WORDS: Final = 48
"""Different words of a question that are looked up; the first ones count."""

_WORD: Final = re.compile(r"[^\W_]+")
_BETWEEN: Final = {code: " " for code in range(128) if not chr(code).isalnum()}
"""What stands between words of plain ASCII: to blank it and split there takes a quarter of the time of the pattern."""
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_SHORT: Final = 2
_STOP_WORDS: Final = frozenset(
    _WORD.findall(
        """
        a about after again all also am an and any are as at be because been before being below between both but by
        can could did do does doing down during each few for from further had has have having he her here hers him
        his how i if in into is it its itself just let me more most my no nor not of off on once only or other our
        ours out over own please s same she should so some such t than that the their theirs them then there these
        they this those through to too under until up very was we were what when where which while who whom why will
        with would you your yours tell know find show give
        """
    )
)


def words_of(text: str) -> list[str]:
    """Return the words of ``text`` in lower case and without accents, in order, with repetitions."""
    lowered = text.lower()
    return lowered.translate(_BETWEEN).split() if lowered.isascii() else _WORD.findall(_plain(lowered))


def stems_of(text: str) -> list[str]:
    """Return the stems of the words of ``text``, in order, with repetitions."""
    return [stem(word) for word in words_of(text)]


def count_words(*texts: str) -> int:
    """Return how long ``texts`` are together, in words between spaces: what lengths are compared by."""
    return sum(len(text.split()) for text in texts)


class StemFinder:
    """Counts given stems in texts; each different word is looked at once, and stemmed if it begins like one of them."""

    def __init__(self, stems: Iterable[str]) -> None:
        self._stems = frozenset(stems)
        # Porter's rules change the last letter of a stem at most (happy and happier: happi).
        self._begins = tuple({one[:-1] if len(one) > _SHORT else one for one in self._stems})
        self._seen: dict[str, str | None] = {}

    def counts(self, text: str) -> Counter[str]:
        """Return how often each of the stems is in ``text``."""
        found: Counter[str] = Counter()
        if not text or not self._begins:
            return found
        seen = self._seen
        for word, times in Counter(words_of(text)).items():
            if word not in seen:
                seen[word] = self._meant(word)
            one = seen[word]
            if one is not None:
                found[one] += times
        return found

    def _meant(self, word: str) -> str | None:
        if not word.startswith(self._begins):
            return None
        one = stem(word)
        return one if one in self._stems else None


@lru_cache(maxsize=1024)
def asked_words(question: str) -> tuple[str, ...]:
    """Return the different words of a question that say something, one for each stem; all where none does."""
    found: dict[str, str] = {}
    said = words_of(question)
    for word in [word for word in said if word not in _STOP_WORDS] or said:
        found.setdefault(stem(word), word)
    return tuple(found.values())[:MOST_WORDS]


def _plain(text: str) -> str:
    return _ACCENT.sub("", unicodedata.normalize("NFKD", text))
