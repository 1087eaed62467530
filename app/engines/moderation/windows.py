"""Cutting a text into windows that are judged by themselves: a bad sentence must not drown in a long document."""

import re
import unicodedata
from collections.abc import Iterator

LONGEST = 320
"""Characters of a window: a few sentences, about as long as the texts that the classifiers learned from."""

_ENDS = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\"')\]]*\s+|\n+")


def windows(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the windows of ``text``: whole sentences as far as they fit, without the blanks around."""
    found: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        if found and end - found[-1][0] <= LONGEST and "\n\n" not in text[found[-1][1] : start]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences and lines; those that are longer than a window in parts that end between words."""
    start = 0
    for stop, following in [*(match.span() for match in _ENDS.finditer(text)), (len(text), len(text))]:
        while stop - start > LONGEST:
            cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
            cut = start + LONGEST if cut < 0 else cut
            yield from _stripped(text, start, cut)
            start = cut
        yield from _stripped(text, start, stop)
        start = following


def _stripped(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    piece = text[start:stop]
    begin = start + len(piece) - len(piece.lstrip())
    end = start + len(piece.rstrip())
    if begin < end:
        yield begin, end


def plain(text: str) -> str:
    """Return ``text`` without disguises: compatibility forms made plain, invisible characters and accents dropped."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if unicodedata.category(char) not in {"Cf", "Mn"})
