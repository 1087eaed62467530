# ruff: noqa: RUF001 - this is the place where look-alikes are told apart
"""A plain view of a text that was dressed up to hide something, with a map back to the offsets of the original.

Invisible characters are gone, full-width and styled letters, digits of other scripts, dashes, blanks and letters that
only look Latin become plain. Text in plain ASCII has no view.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_BLANK = re.compile(r"\s")
_STYLES = ("<wide>", "<narrow>", "<font>", "<small>", "<circle>", "<super>", "<sub>")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\u2800")
_PUNCTUATION = {
    **dict.fromkeys("‐‑‒–—―−⁃﹣－˗➖⸺⸻〜～", "-"),
    **dict.fromkeys("。．｡․∙⋅·", "."),
    **dict.fromkeys("⁄∕⧸", "/"),
    **dict.fromkeys("：꞉∶", ":"),
    **dict.fromkeys("＠﹫", "@"),
    **dict.fromkeys("＿", "_"),
}
_LOOKALIKES = dict(
    zip(
        "АВЕЅІЈКМНОРСТХУҮԌԚԜаеоорсхуіѕјһԁԛԝүոΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορνικτυχγıɑɡɩʟʏցօѵѡⅼⅽⅾⅿⅰⅴⅹⅠⅤⅩⅬⅭⅮⅯՕՏԼ",
        "ABESIJKMHOPCTXYYGQWaeoopcxyisjhdqwynABEZHIKMNOPTYXaopviktuxyiagiLYgovwlcdmivxIVXLCDMOSL",
        strict=True,
    )
)
_REACH = 240
"""Characters around a change that are scanned again: more than the context words of a finding need."""

_BATCH = 64
_MARKS = 17
"""More marks than any honest letter carries."""


@dataclass(frozen=True, slots=True)
class View:
    """The plain text and, for every change, where it happened in the view and in the original."""

    text: str
    starts: list[int]
    """Offsets in the view from which on `sources` holds; both sorted."""
    sources: list[int]
    changes: list[int]
    """Offsets in the view at which something was changed."""
    original: str

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the original that the characters ``[start, end)`` of the view stand for."""
        stop = self._source(end - 1) + 1
        while stop < len(self.original) and _hangs_on(self.original[stop]):
            stop += 1
        return self._source(start), stop

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the parts of the view that differ from the original, with enough around them."""
        low, high = -1, -1
        for change in self.changes:
            if change - _REACH > high:
                if high >= 0:
                    yield self._whole_words(low, high)
                low = max(0, change - _REACH)
            high = min(len(self.text), change + _REACH)
        if high >= 0:
            yield self._whole_words(low, high)

    def _source(self, offset: int) -> int:
        place = bisect_right(self.starts, offset) - 1
        following = self.starts[place + 1] if place + 1 < len(self.starts) else len(self.text)
        limit = self.sources[place + 1] if place + 1 < len(self.sources) else len(self.original)
        source = self.sources[place] + offset - self.starts[place]
        return min(source, limit - 1) if offset < following else source

    def _whole_words(self, low: int, high: int) -> tuple[int, int]:
        """Widen a part to white space, if some is near."""
        before = [match.end() for match in _BLANK.finditer(self.text, max(0, low - _BATCH), low)]
        after = _BLANK.search(self.text, high, min(len(self.text), high + _BATCH))
        return (before[0] if before else max(0, low - _BATCH)), (after.start() if after else high)


def _hangs_on(character: str) -> bool:
    """Say whether a character belongs to the one before it: a mark, or nothing visible."""
    return not character.isascii() and (unicodedata.combining(character) != 0 or folded(character) == "")


@lru_cache(maxsize=8192)
def folded(character: str) -> str:
    """Return what a character stands for when taken alone: nothing, itself, or plain characters."""
    if character in _PUNCTUATION:
        return _PUNCTUATION[character]
    if _is_invisible(character):
        return ""
    by_category = {"Zs": " ", "Pd": "-"}.get(unicodedata.category(character))
    if by_category is not None:
        return by_category
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    if unicodedata.decomposition(character).startswith(_STYLES):
        plain = unicodedata.normalize("NFKC", character)
        return plain if plain.isascii() else character
    return character


def _is_invisible(character: str) -> bool:
    selects_variant = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return selects_variant or character in _FILLERS or unicodedata.category(character) == "Cf"


def plain_view(text: str) -> View | None:
    """Return the view of ``text``, or None where it would be the text itself."""
    if text.isascii():
        return None
    pieces: list[str] = []
    starts, sources, changes = [0], [0], []
    done = length = 0
    for match in _NON_ASCII.finditer(text):
        position = match.start()
        plain = _replacement(text, position)
        if plain == text[position]:
            continue
        pieces += (text[done:position], plain)
        length += position - done
        changes.append(length)
        starts.append(length)
        sources.append(position)
        length += len(plain)
        starts.append(length)
        sources.append(position + 1)
        done = position + 1
    if not changes:
        return None
    pieces.append(text[done:])
    return View("".join(pieces), starts, sources, changes, text)


def _replacement(text: str, position: int) -> str:
    """Return the plain characters for the one at ``position``; marks and look-alikes depend on what is around."""
    character = text[position]
    if unicodedata.combining(character):
        return "" if _marks_plain_letter(text, position) else character
    if character in _LOOKALIKES:
        return _LOOKALIKES[character] if _beside_ascii(text, position) else character
    return folded(character)


def _marks_plain_letter(text: str, position: int) -> bool:
    """Say whether the mark at ``position`` stands on an ASCII letter or digit, as in Latin script and in disguise."""
    for before in range(position - 1, max(-1, position - _MARKS), -1):
        if not unicodedata.combining(text[before]) and folded(text[before]) != "":
            return text[before].isascii() or folded(text[before]).isascii()
    return position >= _MARKS


def _beside_ascii(text: str, position: int) -> bool:
    """Say whether the word around ``position`` also holds plain letters or digits, so that it mixes scripts."""
    for step in (-1, 1):
        place = position + step
        while 0 <= place < len(text) and abs(place - position) <= _BATCH and not text[place].isspace():
            if text[place].isascii() and text[place].isalnum():
                return True
            place += step
    return False
