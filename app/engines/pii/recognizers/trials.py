"""Test a user's pattern on texts designed to slow it down, before it runs on other people's texts."""

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
"""The flags of patterns in the detection processes; importing them would load all of Presidio here."""

_LENGTH: Final = 2_000
_LIMIT_S: Final = 2.0
"""CPU time limit for so short a text; one pass takes microseconds, a pass from every place less than a second."""

_MANY: Final = 16
_PREFERRED: Final = ("a1 -._@", "1a -._@", " -a1", "-._ a1", "._-@ a1")
"""Characters to prefer from a set: the character drawn from one set should also be in the next set."""

_NO_CONTINUATION: Final = "\x00"
_SHOWN: Final = 12


def slow_text(pattern: str) -> str | None:
    """Return the beginning of a short text on which ``pattern`` takes too long, or None if none was found."""
    search = regex.compile(pattern, FLAGS)
    for text in sorted(set(_texts(pattern))):
        try:
            for _ in search.finditer(text, timeout=_LIMIT_S):
                pass
        except TimeoutError:
            return text[:_SHOWN]
    return None


def _texts(pattern: str) -> Iterator[str]:
    """Yield texts that repeat one repeatable part of a pattern, followed by something that cannot follow it.

    They end with a whole match: a pattern may give up at once if one of its characters is nowhere in the text.
    """
    try:
        shape = PatternReading(pattern, FLAGS).shape
    except NotDerivableError:
        shape = NOTHING_AT_ALL
    yield from (
        character * _LENGTH + _NO_CONTINUATION + _drawn(shape, character) for character in _PREFERRED[0]
    )
    for preferred in _PREFERRED:
        whole = _drawn(shape, preferred)
        for before, unit in _repeated(shape, preferred, ""):
            times = max(1, _LENGTH // len(unit))
            yield before + unit * times + _NO_CONTINUATION + whole


def _repeated(shape: Shape, preferred: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a match that may be repeated often, each with the text before it."""
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
        case Chars(chars):
            mask = chars.must & ASCII or chars.may & ASCII
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
