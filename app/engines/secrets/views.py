"""Make plain views of a text in which a credential may be disguised, mapped to the offsets of the original.

Escapes of JSON, URLs and HTML and base64 are decoded, invisible characters are removed, and full-width and styled
letters become plain.
"""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.engines.secrets.spotting import compiled
from app.engines.views.confusables import folded

_ESCAPE: Final = re.compile(
    r"\\u00[2-7][0-9A-Fa-f]|\\x[2-7][0-9A-Fa-f]|%[2-7][0-9A-Fa-f]|\\/|&amp;|&#(?:x[2-7][0-9A-Fa-f]|\d{2,3});"
)
_DRESSED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uff01-\uff5e\uffa0\u2010-\u2015\u2212\U0001d400-\U0001d7ff\U000e0000-\U000e01ef]"
)


_ENCODED: Final = r"[A-Za-z0-9+/_-]{24,}={0,2}"
_PRINTED: Final = re.compile(rb"[\t\n\r -~]+")


@dataclass(frozen=True, slots=True)
class SecretView:
    """The plain text and, for every change, the offset after it in the view and in the original."""

    text: str
    starts: list[int]
    sources: list[int]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the original offsets of the characters ``[start, end)`` of the view, with whole escapes."""
        first = self._source(start)
        last = self._source(end - 1)
        following = bisect_right(self.starts, end) - 1
        stop = self.sources[following] if self.starts[following] == end else last + 1
        return first, stop

    def _source(self, offset: int) -> int:
        place = bisect_right(self.starts, offset) - 1
        return self.sources[place] + offset - self.starts[place]


def plain_views(text: str) -> Iterator[SecretView]:
    """Yield the view of ``text``, unless it equals the text."""
    escaped = "\\" in text or "%" in text or "&amp;" in text or "&#" in text
    changes = list(_ESCAPE.finditer(text)) if escaped else []
    if not text.isascii():
        changes += _DRESSED.finditer(text)
        changes.sort(key=re.Match.start)
    if changes:
        yield _view(text, changes)


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and decoded text of base64 that contains plain text; random bytes of keys are skipped."""
    for match in compiled(_ENCODED).finditer(text.encode("ascii", "replace")):
        run = match[0].decode("ascii").rstrip("=").translate(_STANDARD)
        # A single character after the groups of four encodes nothing: drop it.
        try:
            decoded = base64.b64decode(run[: len(run) - (len(run) % 4 == 1)] + "=" * (-len(run) % 4))
        except binascii.Error:
            continue
        if _PRINTED.fullmatch(decoded):
            yield match.start(), match.end(), decoded.decode("ascii")


_STANDARD: Final = str.maketrans("-_", "+/")


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
    if written.startswith("&#"):
        number = int(written[3:-1], 16) if written[2] == "x" else int(written[2:-1])
        return chr(number)
    if written[0] in "\\%":
        return "/" if written == "\\/" else chr(int(written[-2:], 16))
    return folded(written)
