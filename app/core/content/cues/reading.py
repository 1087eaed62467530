# ruff: noqa: RUF001 - letters of other alphabets are meant
"""Find words of many languages that say what a value is, in texts and in names of members.

Where a language writes no blanks, a word may stand anywhere; in alphabets only as a word, with the endings and the
articles of its language.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from typing import Final, NamedTuple

from app.core.content.cues.words import WORDS

OTHER_WORDS: Final = frozenset(
    {
        *("alder", "buletin", "cod client", "cod pin", "hasta no", "no tel", "parola", "police no", "roden"),
        *("sandi", "so may", "so serial", "so the", "ma pin", "ma otp", "varsta"),
    }
)
"""Words that mean something else in a text of plain ASCII, in English or as names."""

_LETTERS: Final = (range(0x41, 0x700), range(0x1E00, 0x2000))
"""Letters whose case and accents say nothing here: Latin, Greek, Cyrillic, Hebrew, Arabic."""
_SINGLE: Final = {
    **dict.fromkeys("_-\u00a0\u2009\u202f\u3000", " "),
    **dict(zip("đłøıœæßیکىةۀ", "dloioasيكيهه", strict=True)),
}
_UNBROKEN: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
"""Scripts that write no blanks between words, or glue particles to them."""
_PARTED: Final = re.compile(r"(?<=[A-Z])(?=[^\x00-\x7f])|(?<=[^\x00-\x7f])(?=[A-Z])")
_LATIN: Final = re.compile(r"[a-z]")
_ARABIC: Final = re.compile("[\u0600-\u06ff]")
_HEBREW: Final = re.compile("[\u0590-\u05ff]")
_PREFIXES: Final = re.compile("[وفبكل]?(?:ال)?|لل|[הבלומשכ]{1,2}")
"""Articles and prepositions that Arabic and Hebrew write before a word without a blank."""
_ENDING: Final = 3
_STEM: Final = 4
"""Letters that a word needs so that up to three more may follow as its ending."""
_EXACT: Final = 4
"""A Latin word of so few letters is another one without its accents."""
_SHORT: Final = frozenset({"puh", "cccd", "cmnd", "npwp", "bhxh", "bhyt", "mssv", "gplx"})
"""Short words, most of them initials, that have no other meaning in plain ASCII, and no endings."""
_LEAST_PLAIN: Final = 5
_LEAST_PARTED: Final = 4
"""Letters that a word, and one of several parts, needs to count in a text of plain ASCII."""
_BEHIND: Final = re.compile(
    r"\.?"
    r"(?: ?(?:ของ(?:ฉัน|ผม|ดิฉัน|เขา|เธอ|คุณ|เรา)|של[ייךוהנםכ]{1,2}|من|او|شما)(?![^\W\d]))?"
    r"(?: cua (?:toi|anh|chi|em|ban|ong|ba))?"
    r"(?: ?(?:号码|號碼|番号|番號)(?=[\s:：=是为為はが\d]))?"
    r"(?: ?(?:是|为|為|係|は|が|는|은|이|가|คือ|: là)(?=[\s:：=+(\"'“「\dA-Za-z])"
    r"| (?:la|adalah|yaitu|هو|هي|است|הוא|היא|है|είναι|е|є|je|jest|este|on|er|ar)(?=[\s:]))?"
)
"""Text that belongs to a word, in the form of `plain_letters`: the dot of an abbreviation, *my*, *is*."""


class Cue(NamedTuple):
    """A word of `WORDS` at ``[start, end)`` of a text, with what belongs to it, and its English words."""

    start: int
    end: int
    english: str


@cache
def plain_letters() -> dict[int, int]:
    """Return the code points that are read as another one, for words and texts alike, by what they are read as."""
    table = {ord(character): ord(plain) for character, plain in _SINGLE.items()}
    for code in (code for letters in _LETTERS for code in letters):
        lower = chr(code).lower()
        if len(lower) == 1:
            plain = unicodedata.normalize("NFD", lower)[0] if lower.isalpha() else lower
            table.setdefault(code, table.get(ord(plain), ord(plain)))
    return {code: plain for code, plain in table.items() if code != plain}


@cache
def cue_words() -> Mapping[str, str]:
    """Return the words of `WORDS` as `plain_letters` writes them, with their English words."""
    return {
        form.translate(plain_letters()): english
        for english, lines in WORDS.items()
        for line in lines
        for word in line.split(", ")
        for form in _forms(word)
    }


@cache
def plain_words() -> tuple[str, ...]:
    """Return the words of `cue_words` that are also looked for in texts of plain ASCII."""
    return tuple(
        word
        for word in cue_words()
        if word.isascii()
        and word not in OTHER_WORDS
        and (
            word in _SHORT or sum(map(str.isalpha, word)) >= (_LEAST_PARTED if " " in word else _LEAST_PLAIN)
        )
    )


@cache
def _lengths() -> Mapping[str, tuple[int, ...]]:
    """Return the lengths of the words that begin with the same two letters."""
    lengths: dict[str, set[int]] = {}
    for word in cue_words():
        lengths.setdefault(word[:2], set()).add(len(word))
    return {beginning: tuple(sorted(numbers)) for beginning, numbers in lengths.items()}


def cues_at(text: str, plain: str, places: Iterable[tuple[int, int]]) -> list[Cue]:
    """Return the cues among ``places``, where ``plain`` has a word of `cue_words`; of those that overlap, the longest.

    ``plain`` is ``text`` in the form of `plain_letters`.
    """
    cues: list[Cue] = []
    for start, end in sorted(set(places), key=lambda place: (place[0], -place[1])):
        if cues and start < cues[-1].end:
            continue
        last = _end(text, plain, start, end)
        if last:
            cues.append(Cue(start, last, cue_words()[plain[start:end]]))
    return cues


@lru_cache(maxsize=16_384)
def in_english(name: str) -> str:
    """Return ``name``, lower-case words, with English words for those of `WORDS`; ``name`` itself if it has none."""
    plain = name.translate(plain_letters())
    words = cue_words()
    lengths = _lengths()
    places = (
        (start, start + length)
        for start in range(len(plain))
        for length in lengths.get(plain[start : start + 2], ())
        if plain[start : start + length] in words
    )
    pieces: list[str] = []
    done = 0
    for cue in cues_at(name, plain, places):
        pieces += (name[done : cue.start], " ", cue.english, " ")
        done = cue.end
    return " ".join("".join((*pieces, name[done:])).split()) if pieces else name


def _forms(word: str) -> Iterator[str]:
    """Yield how a word is written: with and without Arabic articles, with blanks between ideographs, as one word."""
    if _ARABIC.match(word) and " " in word:
        first, *others = word.split(" ")
        for articles in product(("", "ال"), repeat=len(others)):
            yield " ".join((first, *map("".join, zip(articles, others, strict=True))))
    else:
        yield word
    if " " in word and not word[0].isascii() and not _LATIN.match(word.translate(plain_letters())):
        yield word.replace(" ", "")
    if "A" <= max(word[0], word[-1], key=str.isascii) <= "Z":
        # The glued view parts Latin letters from others.
        yield _PARTED.sub(" ", word)
    if len(word) == len("姓名") and _UNBROKEN.match(word):
        yield " ".join(word)
    if word.endswith("ー"):
        # Before a digit, a long vowel is read as a dash.
        yield word[:-1] + "-"


def _end(text: str, plain: str, start: int, end: int) -> int:
    """Return where a word and what belongs to it ends; 0 if it is only a part of another word."""
    word = plain[start:end]
    if not _UNBROKEN.match(word):
        if not _begins(plain, start):
            return 0
        if _LATIN.match(word) and len(word) <= _EXACT and _lost_accents(text[start:end], word):
            return 0
        ending = end
        has_endings = len(word.rsplit(" ", 1)[-1]) >= _STEM and word not in _SHORT
        longest = end + (_ENDING if has_endings else 0)
        while ending < len(plain) and _continues(plain[ending]) and not _UNBROKEN.match(plain[ending]):
            ending += 1
            if ending > longest:
                return 0
        end = ending
    behind = _BEHIND.match(plain, end)
    return behind.end() if behind else end


def _begins(plain: str, start: int) -> bool:
    """Return whether a word begins at ``start``, perhaps behind an article."""
    low = start
    while low > 0 and start - low <= _ENDING and _continues(plain[low - 1]):
        low -= 1
    before = plain[low:start]
    if before and _UNBROKEN.match(before[-1]):
        return True
    return not before or (
        (_ARABIC if _ARABIC.match(before) else _HEBREW).match(plain, start) is not None
        and _PREFIXES.fullmatch(before) is not None
    )


@cache
def _accented() -> Mapping[str, frozenset[str]]:
    """Return the spellings of short Latin words by their form without accents."""
    spellings: dict[str, set[str]] = {}
    for lines in WORDS.values():
        for word in (word for line in lines for word in line.split(", ") if len(word) <= _EXACT):
            spellings.setdefault(word.translate(plain_letters()), set()).add(word.lower())
    return {plain: frozenset(words) for plain, words in spellings.items()}


def _lost_accents(written: str, plain: str) -> bool:
    return unicodedata.normalize("NFC", written.lower()) not in _accented().get(plain, frozenset())


@lru_cache(maxsize=16_384)
def _continues(character: str) -> bool:
    """Return whether a word goes on with this character."""
    return character.isalpha() or unicodedata.category(character).startswith("M")
