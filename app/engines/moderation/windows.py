"""Cut a text into windows that are judged separately, so that one bad sentence counts in a long document, too."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

from app.engines.views.reading import disguises

LONGEST = 320
"""Most characters of a window: a few sentences, about as long as the texts that the classifiers were trained on."""

_ENDS = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\"')\]]*\s+|\n+")


def judged_windows(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the windows of ``text`` that hold words: their offsets, and what is judged.

    So do those of its other readings, without disguises and decoded, where these differ from the text.
    """
    for start, end in windows(text):
        if any(map(str.isalpha, text[start:end])):
            yield (start, end), plain(text[start:end])
    for view in disguises(text):
        for start, end in windows(view.text):
            changed = bisect_left(view.changed, start, key=lambda change: change[1])
            if changed < len(view.changed) and view.changed[changed][0] <= end:
                yield view.original_span(start, end), plain(view.text[start:end])


def windows(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the windows of ``text``: whole sentences where they fit, without surrounding blanks."""
    offsets: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        if offsets and end - offsets[-1][0] <= LONGEST and "\n\n" not in text[offsets[-1][1] : start]:
            offsets[-1] = (offsets[-1][0], end)
        else:
            offsets.append((start, end))
    return offsets


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences and lines; those longer than a window in parts that end between words."""
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
    """Return ``text`` in plain form: compatibility forms normalised, invisible characters and accents dropped."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if unicodedata.category(char) not in {"Cf", "Mn"})
