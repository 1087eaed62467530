"""Word stems by M. F. Porter's algorithm of 1980, so that `jumping`, `jumped` and `jumps` count as one word."""

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 40
"""Longer runs of letters are not words (keys, base64) and are compared unchanged."""

_STEP2: Final = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize")),
    *(("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize")),
    *(("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful")),
    *(("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
_STEP3: Final = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", "")),
    ("ness", ""),
)
_STEP4: Final = (
    *(
        "ement",
        "ance",
        "ence",
        "able",
        "ible",
        "ment",
        "ant",
        "ent",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    ),
    *("ion", "al", "er", "ic", "ou"),
)
_VOWEL: Final = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_MEASURE: Final = re.compile(r"v+c+")


def _shape(word: str) -> str:
    """Return ``word`` with a v for each vowel and a c for each consonant; y is a vowel after a consonant."""
    shape: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == ["c"])
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(stem: str) -> int:
    return len(_MEASURE.findall(_shape(stem)))


def _ends_short(stem: str) -> bool:
    return _shape(stem).endswith("cvc") and stem[-1] not in "wxy"


def _replaced(word: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for ending, other in sorted(pairs, key=lambda pair: -len(pair[0])):
        if word.endswith(ending):
            stem = word[: -len(ending)]
            return stem + other if _measure(stem) else word
    return word


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and _VOWEL.search(stem):
            break
    else:
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if stem[-2:-1] == stem[-1:] and stem[-1] not in "aeioulsz":
        return stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _residual(word: str) -> str:
    for ending in _STEP4:
        if word.endswith(ending):
            stem = word[: -len(ending)]
            kept = _measure(stem) > 1 and (ending != "ion" or stem.endswith(("s", "t")))
            return stem if kept else word
    return word


def _final(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        count = _measure(stem)
        if count > 1 or (count == 1 and not _ends_short(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a word in lower case; anything but a plain English word is returned unchanged."""
    if len(word) <= 2 or len(word) > _LONGEST or not (word.isascii() and word.isalpha()):  # noqa: PLR2004
        return word
    word = _past(_plural(word))
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    return _final(_residual(_replaced(_replaced(word, _STEP2), _STEP3)))
