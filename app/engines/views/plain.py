"""The plain view of a text that was dressed up to hide something.

Invisible characters are gone, full-width and styled letters, digits of other scripts, dashes, blanks and letters that
only look Latin become plain. Text in plain ASCII has no view, and honest text of any language hardly any.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

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
from app.engines.views.mapping import Change, View, respelled

PLAIN: Final = "plain"

_MARKS: Final = 17
"""More marks than any honest letter carries."""
_FOLDED: Final = 4_096
_ACCENTED: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_HANGING: Final = re.compile(
    "[\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u061c\u064b-\u065f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0"
    "\U000e0000-\U000e0fff]+"
)
_LIKE: Final = "".join(sorted(LOOKALIKES.keys() | LIKE_DIGITS.keys()))
_SIMILAR: Final = re.compile(f"[{_LIKE}]")
_WORD: Final = re.compile(r"\w+")
_NAMED: Final = re.compile(r"[@\d]")
_EXACTLY: Final = f"[{''.join(sorted(EXACT))}]"
_ALL_ALIKE: Final = re.compile(
    rf"(?:(?<=[A-Za-z0-9,;:.] )|(?<=['\"(\[<])|\A){_EXACTLY}{{2,64}}+(?:[ .@\-']{_EXACTLY}{{1,64}}+){{0,8}}+"
    r"(?=['\")\]>.,;:!?]|\Z| \W{0,2}[A-Za-z0-9])"
)


def plain_view(text: str, below: View | None = None) -> View | None:
    """Return the view of ``text``, or None where it would be the text itself."""
    if text.isascii():
        return None
    present = "".join(sorted(character for character in set(text) if not character.isascii()))
    single = {
        character: folded(character)
        for character in present
        if folded(character) != character or is_mark(character)
    }
    changes = {change.start: change for change in _alike(text, present, single)}
    if single:
        changes.update((change.start, change) for change in _single(text, single))
    if not changes:
        return None
    return respelled(text, (changes[start] for start in sorted(changes)), below, _HANGING)


def _single(text: str, single: dict[str, str]) -> Iterator[Change]:
    """Yield the characters that stand for plain ones by themselves."""
    for match in _any_of("".join(single)).finditer(text):
        place, character = match.start(), match.group()
        if is_invisible(character):
            yield Change(place, place + 1, "", PLAIN)
        elif is_mark(character):
            if _marks_plain_letter(text, place):
                yield Change(place, place + 1, "", PLAIN)
        elif single[character].isalnum() or single[character] == "@" or _separates(text, place):
            yield Change(place, place + 1, single[character], PLAIN)


@lru_cache(maxsize=256)
def _any_of(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]")


@lru_cache(maxsize=256)
def _mixed_tokens(digits_and_letters: str) -> re.Pattern[str]:
    """Return a pattern for the runs without blanks that hold a plain letter or digit, or one in another style."""
    plain = f"0-9A-Za-z@+{re.escape(digits_and_letters)}"
    return re.compile(rf"(?<!\S)[^\s{plain}]*+[{plain}]\S*+")


def _separates(text: str, place: int) -> bool:
    """Say whether a dash, dot or blank of another kind stands in a number or a plain word, as in a disguise."""
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
    """Say whether the mark at ``place`` stands on an ASCII letter or digit, as in Latin script and in disguise."""
    for before in range(place - 1, max(-1, place - _MARKS), -1):
        character = text[before]
        if not is_mark(character) and not (character > "\x7f" and is_invisible(character)):
            return character.isascii() or folded(character).isascii() or character in LOOKALIKES
    return place >= _MARKS


def _alike(text: str, present: str, single: dict[str, str]) -> Iterator[Change]:
    """Yield the letters that only look Latin, and in numbers and addresses the accented ones too."""
    similar = _SIMILAR.search(present) is not None
    if not similar and not _ACCENTED.search(present):
        return
    styled = "".join(character for character, plain in single.items() if plain.isalnum())
    for token in _mixed_tokens(styled).finditer(text):
        spelled = token.group()
        if not spelled.isascii() and (_NAMED.search(spelled) or (similar and _SIMILAR.search(spelled))):
            yield from _in_token(text, *token.span(), single)
    if similar:
        for word in _ALL_ALIKE.finditer(text):
            places = (place for place in range(*word.span()) if not text[place].isascii())
            yield from (Change(place, place + 1, LOOKALIKES[text[place]], PLAIN) for place in places)


def _in_token(text: str, start: int, end: int, single: dict[str, str]) -> Iterator[Change]:
    """Yield the changes in a run without blanks that holds plain letters or digits."""
    token = text[start:end]
    identifies = _NAMED.search(token) is not None
    for word in _WORD.finditer(text, start, end):
        spelled = word.group()
        if spelled.isascii():
            continue
        low, high = word.span()
        foreign = [one for one in spelled if not is_latin(one) and one not in single]
        if all(one in LOOKALIKES or one in LIKE_DIGITS for one in foreign):
            table = LIKE_DIGITS if _is_number(text, low, high) else LOOKALIKES
        else:
            table = {}
        for place in range(low, high):
            one = text[place]
            plain = table.get(one, unaccented(one) if identifies and one > "\x7f" and is_latin(one) else one)
            if plain != one and one not in single:
                yield Change(place, place + 1, plain, PLAIN)


def _is_number(text: str, low: int, high: int) -> bool:
    """Say whether a word, look-alikes read as digits, is a number or a part of one."""
    if not all(one.isdigit() or one in LIKE_DIGITS for one in text[low:high]):
        return False
    around = text[max(0, low - 2) : high + 2]
    return any(unicodedata.digit(one, None) is not None for one in around)
