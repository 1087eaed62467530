"""What a statement has in another unit, amount or house than the sentence it follows, told from the words alone."""

from collections.abc import Iterator, Mapping
from typing import Final

from app.engines.grounding.contradictions.reading import Sentence, lemma_of

_DIMENSIONS: Final = tuple(
    frozenset(map(lemma_of, row.split()))
    for row in (
        "second minute hour day week month year decade century",
        "millimetre millimeter centimetre centimeter metre meter kilometre mile foot feet inch yard mm cm",
        "milligram gram kilogram tonne ton pound ounce mg kg",
        "millilitre milliliter litre liter gallon pint barrel",
        "hectare acre",
        "watt kilowatt megawatt gigawatt kw mw gw",
        "kilobyte megabyte gigabyte terabyte kb mb gb tb",
        "celsius fahrenheit kelvin",
    )
)
_UNITS: Final = {unit: number for number, units in enumerate(_DIMENSIONS) for unit in units}
_SPELLED: Final = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_NUMBER_WORDS: Final = frozenset(_SPELLED.split())
_UNIT_REACH: Final = 2
_AMOUNTS: Final = {
    **dict.fromkeys(("all", "every", "each", "everybody", "everyone"), "all"),
    **dict.fromkeys(("some", "several", "many"), "some"),
    **dict.fromkeys(("few", "minority", "handful"), "few"),
    **dict.fromkeys(("most", "majority"), "most"),
}
_PARTS: Final = {"half": "half", "third": "third", "quarter": "quarter"}
"""Amounts only before *of* and the like: "the third ship" counts nothing."""
_OF: Final = frozenset(("of", "the", "all", "its", "their"))
_AMOUNT_REACH: Final = 6
_HOUSE_WORDS: Final = (
    "foods bank clinic institute foundation group capital systems labs laboratories university college academy "
    "school hospital museum airlines airways energy steel shipping motors records press partners trust council "
    "ministry party church club hotel logistics rail marine holdings insurance pharma software studios theatre "
    "orchestra gallery library brewery media telecom consulting industries technologies union association society"
)
_HOUSES: Final = frozenset(_HOUSE_WORDS.split())
_LONGEST_NAME: Final = 4
_NO_NAMES_WORDS: Final = (
    "police staff people women men children rain snow water research management inflation personnel everyone "
    "somebody someone nobody more less today yesterday tomorrow later earlier here there now then"
)
_AUXILIARIES: Final = frozenset("is was has had will would can could may might must did does".split())  # noqa: SIM905
_NO_NAMES: Final = frozenset(_NO_NAMES_WORDS.split())
"""What begins a sentence without an article and is no name, beside plurals."""


def has_other_unit(said: Sentence, source: Sentence) -> bool:
    """Return whether the same number stands before another unit of the same kind, and nowhere before this one."""
    mine, theirs = set(_measures(said)), set(_measures(source))
    return any(
        number == other and unit != there and _UNITS[unit] == _UNITS[there]
        for number, unit in mine - theirs
        for other, there in theirs - mine
    )


def _measures(sentence: Sentence) -> Iterator[tuple[str, str]]:
    words = sentence.words
    for place, word in enumerate(words):
        if not (word.text[0].isdigit() or word.low in _NUMBER_WORDS):
            continue
        for after in words[place + 1 : place + 1 + _UNIT_REACH]:
            if after.lemma in _UNITS:
                yield word.low.replace(",", ""), after.lemma
                break


def amounts(sentence: Sentence) -> Iterator[tuple[int, str]]:
    """Yield each word that a word of amount stands before, without numbers between, and the kind of the amount."""
    words, content = sentence.words, set(sentence.content)
    for place, word in enumerate(words):
        follows = words[place + 1].low if place + 1 < len(words) else ""
        kind = _AMOUNTS.get(word.low) or (_PARTS.get(word.low) if follows in _OF else None)
        if kind is None:
            continue
        for at in range(place + 1, min(place + _AMOUNT_REACH, len(words))):
            if at in content and not words[at].text[0].isdigit() and words[at].low not in _AMOUNTS:
                yield at, kind
                break


def has_other_house(said: Sentence, source: Sentence) -> bool:
    """Return whether an organization's name differs from one of the source in a word before its kind.

    *Orion Foods* is not *Kepler Foods*; a name that either side has elsewhere is none of those exchanged.
    """
    mine, theirs = set(_houses(said)), set(_houses(source))
    return any(
        len(name) == len(other) and name[-1] == other[-1] and set(name[:-1]).isdisjoint(source.lemmas)
        for name in mine - theirs
        for other in theirs - mine
        if set(other[:-1]).isdisjoint(said.lemmas)
    )


def _houses(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    for start, end in sentence.names:
        words = sentence.words[start:end]
        if 1 < len(words) <= _LONGEST_NAME and words[-1].low in _HOUSES:
            yield tuple(word.lemma for word in words)


def has_other_subject(said: Sentence, source: Sentence, like: Mapping[int, int]) -> bool:
    """Return whether both begin with a name, of one word on at least one side, another one, and go on alike.

    ``like`` has the place in the source of each word of the statement that the source has. English has no subject of
    one word in the singular without an article but names, and few others; abbreviations may stand for the other name.
    """
    mine, theirs = _subject(said), _subject(source)
    if mine is None or theirs is None or min(mine[1] - mine[0], theirs[1] - theirs[0]) > 1:
        return False
    if not (_new(said, mine, source) and _new(source, theirs, said)):
        return False
    rest = [place for place in said.content if place >= mine[1]]
    after = [place for place in source.content if place >= theirs[1]]
    return bool(rest and after) and all(place in like for place in rest) and like[rest[0]] == after[0]


def _new(sentence: Sentence, run: tuple[int, int], other: Sentence) -> bool:
    return {word.lemma for word in sentence.words[slice(*run)]}.isdisjoint(other.lemmas)


def _subject(sentence: Sentence) -> tuple[int, int] | None:
    """Return the places of the name that the sentence begins with, its article aside."""
    run = next(iter(sentence.names), None)
    if run is None or run[0] > 1 or (run[0] == 1 and sentence.words[0].low != "the"):
        return None
    words = sentence.words[slice(*run)]
    goes_on = run[1] in sentence.content or (
        run[1] < len(sentence.words) and sentence.words[run[1]].low in _AUXILIARIES
    )
    # *Tell* in "Tell me" is no name; an abbreviation may stand for any.
    if not goes_on or any(word.text.isupper() for word in words):
        return None
    plain = words[0].low.endswith(("s", "ing", "ly")) or words[0].low in _NO_NAMES
    return None if run == (0, 1) and plain else run
