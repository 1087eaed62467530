"""The word lists that ship inside the weights as hashes: names of Faker's locales, places, companies, common words."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

from app.engines.pii.names.spelling import lowered
from app.engines.pii.names.words import GAZETTEER_KINDS, Gazetteer
from app.engines.pii.training.examples import Example, plain_words
from app.engines.pii.training.lists import entries, templates
from app.engines.pii.training.people import LOCALE_WEIGHTS, ROMANISED, first_names, last_names
from app.engines.pii.training.places import cities

_WORD = re.compile(r"[^\W\d_]+")
_LOWER = re.compile(r"(?<![\w.])[a-z]{2,}(?![\w.(=])")
_SEEN_TWICE = 2
_SHORTEST_OTHER = 4
"""Letters of a name of other lists; shorter ones are words of some language."""


def _words(names: Iterable[str]) -> set[str]:
    return {word for name in names for word in _WORD.findall(lowered(name))} - set(entries("too common"))


def build_gazetteer(
    prose: Sequence[Example],
    others: tuple[Iterable[str], ...] = ((), (), ()),
    foreign: Iterable[Example] = (),
) -> Gazetteer:
    """Return the lists; `prose` is text without names, its small-letter words count as common ones.

    `others` are first names, last names and towns of other lists; of these, words that the texts `foreign` spell in
    small letters are left out.
    """
    lists: dict[str, set[str]] = defaultdict(set)
    for locale in LOCALE_WEIGHTS:
        lists["f"] |= _words(first_names(locale))
        lists["l"] |= _words(last_names(locale))
        lists["c"] |= _words(cities(locale))
    for kind in ROMANISED:
        lists["f"] |= _words(entries(f"{kind} first"))
        if kind != "everyday":
            lists["l"] |= _words(entries(f"{kind} last"))
    for title in ("cities", "countries", "states"):
        lists["c"] |= _words(entries(title))
    lists["o"] = _words(entries("companies"))
    lists["s"] = _words((*entries("industries"), *entries("company suffixes")))
    lists["d"] = _words((*entries("street names"), *entries("street kinds")))
    lists["w"] = _common_words(prose)
    plain = lists["w"] | plain_words(foreign)
    for kind, names in zip("flc", others, strict=True):
        lists[kind] |= {word for word in _words(names) - plain if len(word) >= _SHORTEST_OTHER}
    bits: dict[int, int] = defaultdict(int)
    for kind, words in lists.items():
        for word in words:
            bits[crc32(word.encode())] |= 1 << GAZETTEER_KINDS.index(kind)
    return Gazetteer(bits)


def _common_words(prose: Sequence[Example]) -> set[str]:
    counts = Counter(word for example in prose for word in _LOWER.findall(example.text))
    counts.update(word for line in templates("nothing") for word in 2 * _LOWER.findall(line))
    return {word for word, count in counts.items() if count >= _SEEN_TWICE}
