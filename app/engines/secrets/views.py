"""Read a text as it is read for personal data, and over its line breaks, so that no spelling hides a credential."""

import re
from collections.abc import Iterator
from typing import Final

from app.engines.views.mapping import Substitution, TextView, respelled

_PART: Final = r"[A-Za-z0-9_.\-/+=]"
_BREAK: Final = re.compile(rf"(?:\n|\\n)[ \t>#|*]{{0,8}}(?={_PART})")
"""A line break, real or written; behind it there may be the margin of a quotation or a comment."""
_BEFORE_BREAK: Final = re.compile(r"(?:[ \t]{0,2}\\?\r?|\\r)\Z")
_RUN: Final = re.compile(rf"{_PART}{{0,64}}+")
_REACH: Final = 64
_LEAST: Final = 16
"""Characters of the shortest credential that has a form of its own."""
_ENCODINGS: Final = frozenset({"base64", "hex"})


def views(text: str) -> Iterator[TextView]:
    """Yield every other reading of ``text``: without disguises, decoded, and with broken lines joined."""
    from app.engines.views.reading import readings  # noqa: PLC0415 - numpy: only where texts are scanned

    decoded = readings(text).views
    yield from decoded
    for below in (None, *decoded[-1:]):
        joined = _joined(text if below is None else below.text, below)
        if joined is not None:
            yield joined


def is_decoded(view: TextView, start: int, end: int) -> bool:
    """Return whether a part of a view was encoded as a whole, in which a name beside a value proves little."""
    return not _ENCODINGS.isdisjoint(view.way(start, end).split("+"))


def _joined(text: str, below: TextView | None) -> TextView | None:
    """Return ``text`` without the line breaks inside what may be a credential; None where there are none."""
    if "\n" not in text and "\\n" not in text:
        return None
    breaks = [change for line in _BREAK.finditer(text) if (change := _without(text, line)) is not None]
    return respelled(text, breaks, below) if breaks else None


def _without(text: str, line: re.Match[str]) -> Substitution | None:
    """Return the removal of a break if the letters and digits on both sides of it are long enough together."""
    edge = _BEFORE_BREAK.search(text, max(0, line.start() - 4), line.start())
    start = line.start() if edge is None else edge.start()
    before, after = (
        _run(text[max(0, start - _REACH) : start][::-1]),
        _run(text[line.end() : line.end() + _REACH]),
    )
    run = before + after
    holds = len(run) >= _LEAST and any(map(str.isdigit, run)) and any(map(str.isalpha, run))
    return Substitution(start, line.end(), "", "lines") if before and holds else None


def _run(text: str) -> str:
    match = _RUN.match(text)
    return match.group() if match else ""
