"""Try a user's pattern on texts that are made to slow it down, before it ever meets somebody else's."""

from collections.abc import Iterator
from typing import Final

import regex  # type: ignore[import-untyped]

from app.engines.pii.scan.bytesets import ASCII
from app.engines.pii.scan.shapes import (
    NOTHING_AT_ALL,
    Chars,
    Choice,
    NotDerivableError,
    PatternReading,
    Repeat,
    Sequence,
    Shape,
    width,
)

FLAGS: Final = regex.DOTALL | regex.MULTILINE | regex.IGNORECASE
"""As patterns run in the detection processes; asking there would load all of Presidio here."""

_LENGTH: Final = 2_000
_LIMIT_S: Final = 2.0
"""CPU time for so short a text; one pass takes microseconds, and one from each of its places less than a second."""

_MANY: Final = 16
_PREFERRED: Final = ("a1 -._@", "1a -._@", " -a1", "-._ a1", "._-@ a1")
"""Characters to draw where a set leaves the choice: one set's favourite should be in the next one too."""

_NOTHING_GOES_ON: Final = "\x00"
_SHOWN: Final = 12


def slow_text(pattern: str) -> str | None:
    """Return how a short text begins over which ``pattern`` takes too long, or None where none was found."""
    search = regex.compile(pattern, FLAGS)
    for text in sorted(set(_texts(pattern))):
        try:
            for _ in search.finditer(text, timeout=_LIMIT_S):
                pass
        except TimeoutError:
            return text[:_SHOWN]
    return None


def _texts(pattern: str) -> Iterator[str]:
    """Yield texts in which each part of a pattern that may be repeated is, and nothing that could follow follows.

    A whole match stands at the end: a pattern may give up at once where one of its letters is nowhere in the text.
    """
    try:
        shape = PatternReading(pattern, FLAGS).shape
    except NotDerivableError:
        shape = NOTHING_AT_ALL
    yield from (
        character * _LENGTH + _NOTHING_GOES_ON + _drawn(shape, character) for character in _PREFERRED[0]
    )
    for preferred in _PREFERRED:
        whole = _drawn(shape, preferred)
        for before, unit in _repeated(shape, preferred, ""):
            times = max(1, _LENGTH // len(unit))
            yield before + unit * times + _NOTHING_GOES_ON + whole


def _repeated(shape: Shape, preferred: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield what can be repeated often in a match, with what stands before it."""
    match shape:
        case Sequence(items):
            for item in items:
                yield from _repeated(item, preferred, before)
                before += _drawn(item, preferred)
        case Choice(branches):
            for branch in branches:
                yield from _repeated(branch, preferred, before)
        case Repeat(item, _, most):
            if most >= _MANY:
                branches = item.branches if isinstance(item, Choice) else (item,)
                yield from ((before, unit) for branch in branches if (unit := _drawn(branch, preferred)))
            yield from _repeated(item, preferred, before)
        case _:
            pass


def _drawn(shape: Shape, preferred: str) -> str:
    """Return a short match."""
    match shape:
        case Chars(found):
            mask = found.must & ASCII or found.may & ASCII
            choice = (character for character in preferred if mask >> ord(character) & 1)
            return next(choice, chr((mask & -mask).bit_length() - 1) if mask else "\u00e9")
        case Sequence(items):
            return "".join(_drawn(item, preferred) for item in items)
        case Choice(branches):
            return _drawn(min(branches, key=width), preferred)
        case Repeat(item, least, _):
            return _drawn(item, preferred) * min(max(1, least), _LENGTH)
        case _:
            return ""
