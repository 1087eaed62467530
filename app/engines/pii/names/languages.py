# ruff: noqa: RUF001 - apostrophes as they occur in texts
"""Detect the language of a text, and warn the caller if the name tagger does not support it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.engines.pii.names.language_words import ENDINGS, LETTERS, WORDS

LANGUAGE = "en"
"""The language under which Presidio keeps every recognizer."""

SUPPORTED: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "no", "da", "id", "ro")
"""The languages that the name taggers were trained for (docs/names.md and docs/judgement.md have their figures)."""

_LETTER = re.compile(r"[^\W\d_]{2,}|(?<!['’])[^\W\d_]|[^\W\d_sS]")
"""A word. An s behind an apostrophe is an English possessive, and a word in Czech."""

_SAMPLE: Final = 600
"""Characters at the start of a text, and as many at its end, from which its language is detected."""
_LEAST_LETTERS: Final = 20
_DEGRADED: Final = (
    "names, places and organizations may be missed; everything else is found in every language."
)
_CODE: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

LATIN: Final = tuple(WORDS)
"""Languages in Latin letters that are told apart by their common words."""


def _weights() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the languages of each common word, each with its share of one vote."""
    codes: dict[str, list[str]] = {}
    for code, words in WORDS.items():
        for word in words.split():
            codes.setdefault(word, []).append(code)
    return {
        word: tuple((code, 1 / len(word_codes)) for code in word_codes) for word, word_codes in codes.items()
    }


_WEIGHTS: Final = _weights()


_SCRIPTS: Final = {
    "ru": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "ar": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "ko": "\u1100-\u11ff\uac00-\ud7af",
    "ja": "\u3040-\u30ff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff",
}
_ENDING_VOTE: Final = 0.5
_LEAST_WORD: Final = 5


def _endings() -> dict[str, tuple[tuple[str, float], ...]]:
    codes: dict[str, set[str]] = {}
    for code, endings in ENDINGS.items():
        for ending in endings.split():
            codes.setdefault(ending, set()).add(code)
    return {
        ending: tuple((code, _ENDING_VOTE / len(own)) for code in sorted(own))
        for ending, own in codes.items()
    }


_ENDINGS: Final = _endings()
_OWN: Final = {code: re.compile(f"[{letters}]") for code, letters in LETTERS.items()}
_HINTS: Final = {**_OWN, "pt": re.compile("[ãõ]")}
"""Letters that Vietnamese has, too, and that say enough where no word says more."""

_UKRAINIAN: Final = re.compile("[іїєґІЇЄҐ]")
_OF_SCRIPT: Final = {code: re.compile(f"[{ranges}]") for code, ranges in _SCRIPTS.items()}
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_NON_LATIN: Final = re.compile(r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")

_LETTER_VOTE: Final = 0.5
_MOST_LETTERS: Final = 6

_DISTINCT: Final = 4
"""Different common words of a language that a text must contain to count as that language."""
_DISTINCT_IF_FAR: Final = 2
"""The same where the next language has less than half of its votes."""
_SHARE: Final = 0.2
"""Votes for each word in small letters: prose has twice as many, code hardly any."""
_LEAST_VOTES: Final = 3.0
_CERTAIN: Final = 4.0
"""Votes at which one common word is enough where the next language is far."""
_MARGIN: Final = 1.25
_FAR: Final = 2.0
_LEANING: Final = 1.5
_LEANING_MARGIN: Final = 1.5
_DISTINCT_IF_NEAR: Final = 3
"""The same where no letter is a language's own and its votes are merely the most."""
_LEAST_SMALL: Final = 3
"""Words in small letters that a text needs to be a sentence rather than a value."""
_SIBLINGS: Final = {"da", "no", "sv"}
"""Languages that share most of their common words: the one ahead is taken, however close."""


def language_of(text: str) -> str | None:
    """Return the code of the language of ``text``, or None if it is short, mixed, or not prose."""
    code, sure = _language(text)
    return code if sure else None


def leaning_of(text: str) -> str | None:
    """Return the language that ``text`` looks like most, even where `language_of` does not commit itself."""
    return _language(text)[0]


def nearest_of(text: str) -> str | None:
    """Return the Latin-script language that a sentence is nearest to, however little says so; None for other texts.

    It serves where a wrong language does less harm than none: `leaning_of` is surer. Letters of words with a capital
    say nothing: they may be names.
    """
    words = _LETTER.findall(_sample(text))
    small = [word for word in words if word.islower()]
    if len(small) < _LEAST_SMALL:
        return None
    votes, common = _votes(words)
    joined = " ".join(small)
    own = {code: len(letters.findall(joined)) for code, letters in _HINTS.items()}
    for code, count in own.items():
        votes[code] = votes.get(code, 0.0) + _LETTER_VOTE * min(count, _MOST_LETTERS)
    best = max(votes, key=lambda code: votes[code], default="")
    distinct = sum(len(word) > 1 for word, _ in common.get(best, ()))
    near = own.get(best) or distinct >= _DISTINCT_IF_NEAR
    return best if near and votes[best] >= _FAR * votes.get("en", 0.0) else None


def _sample(text: str) -> str:
    return text if len(text) <= 2 * _SAMPLE else text[:_SAMPLE] + " " + text[-_SAMPLE:]


def _language(text: str) -> tuple[str | None, bool]:
    """Return the language that a text looks like most, if any, and whether that is sure."""
    sample = _sample(text)
    if not sample.isascii():
        scripts = Counter({code: len(letters.findall(sample)) for code, letters in _OF_SCRIPT.items()})
        other = len(_NON_LATIN.findall(sample))
        if other >= _LEAST_LETTERS and other * 4 > len(_LATIN.findall(sample)):
            return _by_script(sample, scripts), True
    return _by_words(_LETTER.findall(sample), "" if sample.isascii() else sample)


def _by_script(sample: str, scripts: Counter[str]) -> str:
    code, count = scripts.most_common(1)[0]
    if code == "ru" and _UKRAINIAN.search(sample):
        return "uk"
    # Japanese mixes kana with Chinese characters.
    if code == "zh" and scripts["ja"] * 10 > count:
        return "ja"
    return code if count else "und"


def _by_words(words: Sequence[str], sample: str) -> tuple[str | None, bool]:
    """Vote by common words, by the ends of others, and by the letters of ``sample`` (empty if it is ASCII).

    Capitalized words may be names (Los Angeles), and single letters may be anything.
    """
    if sum(map(len, words)) < _LEAST_LETTERS:
        return None, False
    votes, common = _votes(words)
    if not common:
        return None, False
    for code, letters in _OWN.items() if sample else ():
        if code in votes:
            votes[code] += _LETTER_VOTE * min(len(letters.findall(sample)), _MOST_LETTERS)
    best, second = (*sorted(votes, key=lambda code: -votes[code])[:2], "")[:2]
    lead = votes[best] / votes[second] if second else _FAR
    distinct = sum(len(word) > 1 for word, _ in common.get(best, ()))
    support = max(votes[best], sum(count for _, count in common.get(best, ())))
    leaning = best if lead >= _LEANING_MARGIN and votes[best] >= _LEANING else None
    if support < max(_LEAST_VOTES, _SHARE * sum(word[0].islower() for word in words)):
        return leaning, False
    least = (1 if votes[best] >= _CERTAIN else _DISTINCT_IF_FAR) if lead >= _FAR else _DISTINCT
    sure = distinct >= least and (lead >= _MARGIN or {best, second} <= _SIBLINGS)
    return (best if sure else leaning), sure


def _votes(words: Iterable[str]) -> tuple[dict[str, float], dict[str, list[tuple[str, int]]]]:
    """Return the votes of words for each language, and its common words among them with their numbers."""
    votes: dict[str, float] = {}
    common: dict[str, list[tuple[str, int]]] = {}
    for word, count in Counter(words).items():
        for code, weight in _WEIGHTS.get(word, ()):
            votes[code] = votes.get(code, 0.0) + weight * count
            common.setdefault(code, []).append((word, count))
        if len(word) >= _LEAST_WORD:
            for code, weight in _ENDINGS.get(word[-3:], ()) or _ENDINGS.get(word[-4:], ()):
                votes[code] = votes.get(code, 0.0) + weight * count
    return votes, common


def warnings_for(texts: Sequence[str], language: str) -> list[str]:
    """Return the warnings about the languages of ``texts``; they never hold content."""
    return warnings((evidence(text, language) for text in texts), language)


def evidence(text: str, language: str) -> dict[str, int]:
    """Return the facts about a text that `warnings` needs: its length in characters, by the code of its language.

    It is cached with the findings, so it must depend only on the text and the language, and hold no content.
    """
    if language.lower() != "auto" or len(text) < _LEAST_LETTERS:
        return {}
    code = language_of(text)
    return {} if code is None else {code: len(text)}


def detected(evidence_of_texts: Iterable[Mapping[str, int]], language: str) -> str:
    """Return the language of most of the text, from the `evidence` of all texts; ``und`` if there is none."""
    if language.lower() != "auto":
        return language.lower()
    total: Counter[str] = Counter()
    for counts in evidence_of_texts:
        total.update(counts)
    return total.most_common(1)[0][0] if total else "und"


def warnings(evidence_of_texts: Iterable[Mapping[str, int]], language: str) -> list[str]:
    """Return the warnings for a caller, from the `evidence` of all texts; runs in the server, so imports stay light."""
    code = language.lower()
    if code != "auto":
        if not _CODE.fullmatch(language):
            return [f"The language is not a language code; {_DEGRADED}"]
        return [] if re.split("[-_]", code)[0] in SUPPORTED else [f"No name tagger for '{code}': {_DEGRADED}"]
    unsupported = sorted(
        {language_code for counts in evidence_of_texts for language_code in counts} - set(SUPPORTED)
    )
    if not unsupported:
        return []
    names = (
        ", ".join(f"'{language_code}'" for language_code in unsupported if language_code != "und")
        or "an unknown script"
    )
    return [f"Part of the text is in {names}, which the name tagger does not know: {_DEGRADED}"]
