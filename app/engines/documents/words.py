"""Split texts and queries into the words that documents are ranked by."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from app.core.catalog.search_words import has_pieces, plain_text, search_words, spaced_words, truncated
from app.engines.grounding.stemming import stem

MOST_WORDS: Final = 48
"""Most different words of a query that are looked up, with their truncated forms: the first ones."""

_SHORT: Final = 2
_STOP_WORDS: Final = frozenset(
    search_words(
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


def stems_of(text: str) -> list[str]:
    """Return the stems of the words of ``text``, in order, with repetitions."""
    return [stem(word) for word in search_words(text)]


class StemFinder:
    """Counts given stems in texts; each different word is checked once, and stemmed only if it begins like a stem."""

    def __init__(self, stems: Iterable[str]) -> None:
        self._stems = frozenset(stems)
        # Porter's rules change at most the last letter of a stem (happy and happier: happi).
        self._begins = tuple(
            {known_stem[:-1] if len(known_stem) > _SHORT else known_stem for known_stem in self._stems}
        )
        self._pieces = [known_stem for known_stem in self._stems if has_pieces(known_stem)]
        self._seen: dict[str, tuple[str, ...]] = {}

    def counts(self, text: str) -> Counter[str]:
        """Return how often each of the stems occurs in ``text``."""
        counts: Counter[str] = Counter()
        if not text or not self._begins:
            return counts
        seen, plain = self._seen, plain_text(text)
        if not plain.isascii():
            # Cutting a long text into pieces takes three times as long as looking for some.
            counts.update({piece: times for piece in self._pieces if (times := plain.count(piece))})
        for word, times in Counter(spaced_words(plain)).items():
            if word not in seen:
                seen[word] = self._wanted_stems(word)
            for wanted_stem in seen[word]:
                counts[wanted_stem] += times
        return counts

    def _wanted_stems(self, word: str) -> tuple[str, ...]:
        if word.isascii():
            return (stem(word),) if word.startswith(self._begins) and stem(word) in self._stems else ()
        return tuple(form for form in {word, truncated(word)} if form in self._stems)


def rarest_words(matches: Mapping[str, int], most: int) -> list[str]:
    """Return the ``most`` rarest words that any chunk has, and their truncated forms, rarest first."""
    by_rarity = sorted((word for word in matches if matches[word]), key=lambda word: matches[word])
    forms = {form for word in by_rarity[:most] for form in (word, truncated(word))}
    return [word for word in by_rarity if word in forms]


@lru_cache(maxsize=1024)
def asked_words(question: str) -> tuple[str, ...]:
    """Return the different words of a query without stop words, one for each stem; all words where none is left.

    Words that are indexed truncated besides are followed by their truncated forms.
    """
    word_by_stem: dict[str, str] = {}
    query_words = search_words(question, asked=True)
    for word in [word for word in query_words if word not in _STOP_WORDS] or query_words:
        word_by_stem.setdefault(stem(word), word)
    words = tuple(word_by_stem.values())[:MOST_WORDS]
    return tuple(dict.fromkeys((*words, *map(truncated, words))))
