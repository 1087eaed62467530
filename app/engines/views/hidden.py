"""Decode text that no reader sees as stored: shown from right to left, or written in invisible characters."""

import re
from collections.abc import Iterator
from typing import Final

from app.engines.views.codes import codes_of, strangers
from app.engines.views.mapping import Substitution, TextView, respelled

_OVERRIDDEN: Final = re.compile("[\u202e\u202b\u2067]([^\u202a-\u202e\u2066-\u2069\n\r\u2029]+)")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{2,}")
_UNSEEN: Final = re.compile("[\u202e\u202b\u2067\ufe00-\ufe0f\U000e0020-\U000e01ef]")
_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def hidden_views(text: str) -> Iterator[TextView]:
    """Yield the readings of a text that is not ASCII in which hidden text is visible."""
    if not _UNSEEN.search(strangers(codes_of(text))):
        return
    backwards = [
        Substitution(*run.span(1), run[1][::-1], "reversed", backwards=True)
        for run in _OVERRIDDEN.finditer(text)
        # Text that is written from right to left needs the mark, and is not disguised by it.
        if run.group()[0] == "\u202e" or run[1].isascii()
    ]
    if backwards:
        yield respelled(text, backwards)
    unseen = sorted([*_tags(text), *_selectors(text)])
    if unseen:
        yield respelled(text, unseen)


def _tags(text: str) -> Iterator[Substitution]:
    for run in _TAGS.finditer(text):
        for place in range(*run.span()):
            yield Substitution(place, place + 1, chr(ord(text[place]) - 0xE0000), "tags")


def _selectors(text: str) -> Iterator[Substitution]:
    """Yield bytes that were hidden as variation selectors, one each; the run is one change."""
    for run in _SELECTORS.finditer(text):
        data = bytes(_byte(character) for character in run.group())
        if data.isascii() and data.decode().isprintable():
            for place, value in zip(range(*run.span()), data.decode(), strict=True):
                yield Substitution(place, place + 1, value, "selectors")


def _byte(selector: str) -> int:
    return ord(selector) - 0xFE00 if selector <= "\ufe0f" else ord(selector) - 0xE0100 + 16
