"""Detect the language of a text, and warn the caller if the name tagger does not support it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

LANGUAGE = "en"
"""The language under which Presidio keeps every recognizer."""

SUPPORTED: Final = ("en", "de", "fr", "es", "it", "pt")
"""The languages in which the name taggers find people with an F1 of at least 0.74 (docs/names.md)."""

_LETTER = re.compile(r"[^\W\d_]+")
_SAMPLE: Final = 600
"""Characters at the start of a text, and as many at its end, from which its language is detected."""
_LEAST_LETTERS: Final = 20
_DEGRADED: Final = (
    "names, places and organizations may be missed; everything else is found in every language."
)
_CODE: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

_WORDS: Final = {
    "en": "the and of to in is that for it with was on are this you be have not as at from by or we they which will",
    "de": "der die das und ist nicht ich sie wir ein eine zu den mit von für auf auch sich dem des wird bitte sind ihr",
    "fr": "le la les et est des une un du dans pour que qui pas vous nous je avec sur ce cette sont être mais au aux",
    "es": "el la los las y es de que en un una por con para no se su del como pero más está al lo son muy hola usted",
    "it": "il la di che è e un una per non sono con del della dei delle gli nel si ho anche come ma alla questo più",
    "pt": "o a os as e é de que em um uma para com não por se do da dos das no na mais como mas foi ao você são está",
    "nl": "de het een en van is dat niet ik op te met voor zijn je aan er maar ook als bij naar wij deze heeft wordt",
    "sv": "och att det som en är på för av med den inte jag till har ett om vi kan från var",
    "da": "og at det som en er på for af med den ikke jeg til har et om vi kan fra var hvad",
    "no": "og at det som en er på for av med den ikke jeg til har et om vi kan fra var hva",
    "pl": "i w na nie się z że do jest to jak o po co ale dla przez są od czy przy",
    "cs": "a se v na že je s z do o to jako pro ale po jsem jsou by při také",
    "ro": "și în nu la de un o cu pe că este sunt din pentru mai care dar am",
    "tr": "ve bir bu için ile da de çok ne gibi daha ama olarak değil var kadar sonra",
    "fi": "ja on ei se että oli hän mutta ole kun joka tai niin myös sen olen kanssa",
    "hu": "a az és hogy nem is egy van meg de ezt csak már kell volt vagy mint",
    "id": "yang dan di ini itu dengan untuk dari tidak dalam pada akan adalah saya ke ada",
    "vi": "và của là có không cho được một những người trong với các này đã để tôi",
}


def _weights() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the languages of each common word, each with its share of one vote."""
    codes: dict[str, list[str]] = {}
    for code, words in _WORDS.items():
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
_UKRAINIAN: Final = re.compile("[іїєґІЇЄҐ]")
_OF_SCRIPT: Final = {code: re.compile(f"[{ranges}]") for code, ranges in _SCRIPTS.items()}
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_NON_LATIN: Final = re.compile(r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")

_DISTINCT: Final = 4
"""Different common words of a language that a text must contain to count as that language."""
_SHARE: Final = 0.2
"""The share of words that must be common words of the language: prose has twice as many, code hardly any."""
_MARGIN: Final = 1.5


def language_of(text: str) -> str | None:
    """Return the code of the language of ``text``, or None if it is short, mixed, or not prose."""
    sample = text if len(text) <= 2 * _SAMPLE else text[:_SAMPLE] + " " + text[-_SAMPLE:]
    if not sample.isascii():
        scripts = Counter({code: len(letters.findall(sample)) for code, letters in _OF_SCRIPT.items()})
        other = len(_NON_LATIN.findall(sample))
        if other >= _LEAST_LETTERS and other * 4 > len(_LATIN.findall(sample)):
            return _by_script(sample, scripts)
    return _by_words(_LETTER.findall(sample))


def _by_script(sample: str, scripts: Counter[str]) -> str:
    code, count = scripts.most_common(1)[0]
    if code == "ru" and _UKRAINIAN.search(sample):
        return "uk"
    # Japanese mixes kana with Chinese characters.
    if code == "zh" and scripts["ja"] * 10 > count:
        return "ja"
    return code if count else "und"


def _by_words(words: Sequence[str]) -> str | None:
    """Vote by common words; capitalized words may be names (Los Angeles), and single letters may be anything."""
    if sum(map(len, words)) < _LEAST_LETTERS:
        return None
    votes: dict[str, float] = {}
    hits: dict[str, list[tuple[str, int]]] = {}
    for word, count in Counter(words).items():
        for code, weight in _WEIGHTS.get(word, ()):
            votes[code] = votes.get(code, 0.0) + weight * count
            hits.setdefault(code, []).append((word, count))
    if not votes:
        return None
    best, *others = sorted(votes, key=lambda code: -votes[code])
    clear = not others or votes[best] >= _MARGIN * votes[others[0]]
    distinct = sum(len(word) > 1 for word, _ in hits[best])
    share = sum(count for _, count in hits[best]) / len(words)
    return best if clear and distinct >= _DISTINCT and share >= _SHARE else None


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
