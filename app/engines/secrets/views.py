"""Plain views of a text in which a credential was dressed up, with a map back to the offsets of the original.

Escapes of JSON and of URLs are read, invisible characters are gone, full-width and styled letters become plain.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.engines.pii.view import folded

_ESCAPE: Final = re.compile(r"\\u00[2-7][0-9A-Fa-f]|\\x[2-7][0-9A-Fa-f]|%[2-7][0-9A-Fa-f]|\\/|&amp;")
_DRESSED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uff01-\uff5e\uffa0\u2010-\u2015\u2212\U0001d400-\U0001d7ff\U000e0000-\U000e01ef]"
)


@dataclass(frozen=True, slots=True)
class SecretView:
    """The plain text and, for every change, the offset behind it in the view and in the original."""

    text: str
    starts: list[int]
    sources: list[int]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return what the characters ``[start, end)`` of the view stand for, escapes whole."""
        first = self._source(start)
        last = self._source(end - 1)
        following = bisect_right(self.starts, end) - 1
        stop = self.sources[following] if self.starts[following] == end else last + 1
        return first, stop

    def _source(self, offset: int) -> int:
        place = bisect_right(self.starts, offset) - 1
        return self.sources[place] + offset - self.starts[place]


def plain_views(text: str) -> Iterator[SecretView]:
    """Yield the view of ``text``, unless it would be the text itself."""
    escaped = "\\" in text or "%" in text or "&amp;" in text
    changes = list(_ESCAPE.finditer(text)) if escaped else []
    if not text.isascii():
        changes += _DRESSED.finditer(text)
        changes.sort(key=re.Match.start)
    if changes:
        yield _view(text, changes)


def _view(text: str, changes: list[re.Match[str]]) -> SecretView:
    pieces: list[str] = []
    starts, sources = [0], [0]
    done = length = 0
    for change in changes:
        plain = _plain(change[0])
        pieces += (text[done : change.start()], plain)
        length += change.start() - done
        if plain:
            starts.append(length)
            sources.append(change.start())
            length += len(plain)
        starts.append(length)
        sources.append(change.end())
        done = change.end()
    pieces.append(text[done:])
    return SecretView("".join(pieces), starts, sources)


def _plain(written: str) -> str:
    if written == "&amp;":
        return "&"
    if written[0] in "\\%":
        return "/" if written == "\\/" else chr(int(written[-2:], 16))
    return folded(written)
