"""Make the plain view of a text whose characters may disguise something.

Invisible characters are removed; full-width and styled letters, digits of other scripts, dashes, blanks and letters
that only look Latin become plain. Text in plain ASCII has no view, and normal text of any language hardly any.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from app.engines.views.codes import codes_of, strangers
from app.engines.views.confusables import (
    EXACT,
    LIKE_DIGITS,
    LOOKALIKES,
    folded,
    is_invisible,
    is_latin,
    is_mark,
    unaccented,
)
from app.engines.views.mapping import Substitution, TextView, respelled

PLAIN: Final = "plain"

_MARKS: Final = 17
"""More marks than any normal letter carries."""
_FOLDED: Final = 4_096
_ACCENTED: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_HANGING: Final = re.compile(
    "[\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u061c\u064b-\u065f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0"
    "\U000e0000-\U000e0fff]+"
)
_LIKE: Final = "".join(sorted(LOOKALIKES.keys() | LIKE_DIGITS.keys()))
_SIMILAR: Final = re.compile(f"[{_LIKE}]")
_BLANK, _NAMING, _ALIKE, _PLAIN_ONE, _FOREIGN = 1, 2, 4, 8, 16
"""Roles of a character in its token; it may have several of them."""
_WORD: Final = re.compile(r"\w+")
_NAMED: Final = re.compile(r"[@\d]")
_EXACTLY: Final = f"[{''.join(sorted(EXACT))}]"
_ALL_ALIKE: Final = re.compile(
    rf"{_EXACTLY}(?:(?<=[A-Za-z0-9,;:.] .)|(?<=['\"(\[<].)|(?<=\A.)){_EXACTLY}{{1,63}}+"
    rf"(?:[ .@\-']{_EXACTLY}{{1,64}}+){{0,8}}+(?=['\")\]>.,;:!?]|\Z| \W{{0,2}}[A-Za-z0-9])"
)


def plain_view(text: str, below: TextView | None = None) -> TextView | None:
    """Return the view of ``text``, or None where it equals the text."""
    if text.isascii():
        return None
    codes = codes_of(text)
    present = strangers(codes)
    single = {
        character: folded(character)
        for character in present
        if folded(character) != character or is_mark(character)
    }
    changes = {change.start: change for change in _alike(text, codes, present, single)}
    if single:
        changes.update((change.start, change) for change in _single(text, single))
    if not changes:
        return None
    return respelled(text, (changes[start] for start in sorted(changes)), below, _HANGING)


def _single(text: str, single: dict[str, str]) -> Iterator[Substitution]:
    """Yield the characters that stand for plain ones by themselves."""
    for match in _any_of("".join(single)).finditer(text):
        place, character = match.start(), match.group()
        if is_invisible(character):
            yield Substitution(place, place + 1, "", PLAIN)
        elif is_mark(character):
            if _marks_plain_letter(text, place):
                yield Substitution(place, place + 1, "", PLAIN)
        elif single[character].isalnum() or single[character] == "@" or _separates(text, place):
            yield Substitution(place, place + 1, single[character], PLAIN)


@lru_cache(maxsize=256)
def _any_of(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]")


@lru_cache(maxsize=16_384)
def _kind(character: str) -> int:
    """Return the roles of a character in its token."""
    plain = folded(character)
    changes = plain != character or is_mark(character)
    bits = (
        (_BLANK, character.isspace()),
        (_NAMING, character == "@" or character.isdecimal()),
        (_ALIKE, character in LOOKALIKES or character in LIKE_DIGITS),
        (_PLAIN_ONE, character in "@+" or (plain.isalnum() and (changes or character.isascii()))),
        (_FOREIGN, not character.isascii()),
    )
    return sum(bit for bit, is_so in bits if is_so)


_ASCII_KINDS: Final = [_kind(chr(code)) for code in range(128)]


def _mixed_tokens(codes: npt.NDArray[np.uint32], present: str, *, similar: bool) -> list[tuple[int, int]]:
    """Return the runs without blanks that contain a non-ASCII character, a plain one, and a sign of disguise.

    Such a sign is a digit or an ``@`` or, where ``similar`` is true, a look-alike.
    """
    table = np.zeros(max(128, int(codes.max()) + 1), np.uint8)
    table[:128] = _ASCII_KINDS
    table[codes_of(present)] = [_kind(character) for character in present]
    kinds = table.take(codes)
    blanks = np.flatnonzero(kinds & _BLANK)
    begins = np.concatenate(([0], blanks + 1))
    begins = begins[begins < len(codes)]
    kinds_in_token = np.bitwise_or.reduceat(kinds, begins)
    ends = np.concatenate((blanks, [len(codes)]))[: len(begins)]
    wanted = _NAMING | _ALIKE if similar else _NAMING
    mixed = (
        (kinds_in_token & _FOREIGN > 0) & (kinds_in_token & _PLAIN_ONE > 0) & (kinds_in_token & wanted > 0)
    )
    return list(zip(begins[mixed].tolist(), ends[mixed].tolist(), strict=True))


def _separates(text: str, place: int) -> bool:
    """Return whether an unusual dash, dot or blank is inside a number or a plain word, as in a disguise."""
    before, after = text[max(0, place - 2) : place].rstrip(), text[place + 1 : place + 3].lstrip()
    last, first = folded(before[-1:]) if before else "", folded(after[:1]) if after else ""
    if last[-1:].isdigit() or first[:1].isdigit():
        return True
    if (
        text[place] in "—―⸺⸻─━¯‾"
        or text[place - 1 : place].isspace()
        or text[place + 1 : place + 2].isspace()
    ):
        return False
    return _is_word(before[-1:]) and _is_word(after[:1])


def _is_word(character: str) -> bool:
    plain = folded(character) if character else ""
    return plain.isalnum() and (is_latin(plain[0]) or plain in LOOKALIKES)


def _marks_plain_letter(text: str, place: int) -> bool:
    """Return whether the mark at ``place`` is on an ASCII letter or digit, as in Latin script and in a disguise."""
    for before in range(place - 1, max(-1, place - _MARKS), -1):
        character = text[before]
        if not is_mark(character) and not (character > "\x7f" and is_invisible(character)):
            return character.isascii() or folded(character).isascii() or character in LOOKALIKES
    return place >= _MARKS


def _alike(
    text: str, codes: npt.NDArray[np.uint32], present: str, single: dict[str, str]
) -> Iterator[Substitution]:
    """Yield the letters that only look Latin and, in numbers and addresses, accented letters."""
    similar = _SIMILAR.search(present) is not None
    if not similar and not _ACCENTED.search(present):
        return
    for start, end in _mixed_tokens(codes, present, similar=similar):
        yield from _in_token(text, start, end, single)
    if similar:
        for word in _ALL_ALIKE.finditer(text):
            places = (place for place in range(*word.span()) if not text[place].isascii())
            yield from (Substitution(place, place + 1, LOOKALIKES[text[place]], PLAIN) for place in places)


def _in_token(text: str, start: int, end: int, single: dict[str, str]) -> Iterator[Substitution]:
    """Yield the changes in a run without blanks that contains plain letters or digits."""
    token = text[start:end]
    identifies = _NAMED.search(token) is not None
    for word in _WORD.finditer(text, start, end):
        spelled = word.group()
        if spelled.isascii():
            continue
        low, high = word.span()
        foreign = [char for char in spelled if not is_latin(char) and char not in single]
        if all(char in LOOKALIKES or char in LIKE_DIGITS for char in foreign):
            table = LIKE_DIGITS if _is_number(text, low, high) else LOOKALIKES
        else:
            table = {}
        for place in range(low, high):
            char = text[place]
            plain = table.get(
                char, unaccented(char) if identifies and char > "\x7f" and is_latin(char) else char
            )
            if plain != char and char not in single:
                yield Substitution(place, place + 1, plain, PLAIN)


def _is_number(text: str, low: int, high: int) -> bool:
    """Return whether a word, with look-alikes read as digits, is a number or part of one."""
    if not all(char.isdigit() or char in LIKE_DIGITS for char in text[low:high]):
        return False
    around = text[max(0, low - 2) : high + 2]
    return any(unicodedata.digit(char, None) is not None for char in around)
