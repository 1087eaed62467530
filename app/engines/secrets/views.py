"""Read a text as it is read for personal data, and over its line breaks, so that no spelling hides a credential."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from app.engines.views.mapping import Substitution, TextView, respelled

_PART: Final = r"[A-Za-z0-9_.\-/+=]"
_BREAK: Final = re.compile(rf"(?<=[A-Za-z0-9_.\-/+= \t\\\r])(?:\n|\\n)[ \t>#|*]{{0,8}}(?={_PART})")
"""A line break, real or written; behind it there may be the margin of a quotation or a comment."""
_LINES: Final = rf"{_PART}[ \t]{{0,2}}\\?\r?\n[ \t>#|*]{{0,8}}{_PART}"
"""The gate before broken lines; a written break opens others."""
_BROKEN: Final = (
    rf"[0-9]{_PART}*(?:[ \t]{{0,2}}\\?\r?|\\r)(?:\n|\\n)[ \t>#|*]{{0,8}}{_PART}"
    rf"|(?:\n|\\n)[ \t>#|*]{{0,8}}{_PART}*[0-9]"
)
"""The gate before a break with a digit in what is before or behind it."""
BETWEEN: Final = "\v"
"""Parts texts that are read together: no gate and no rule has it in a pattern."""
_BEFORE_BREAK: Final = re.compile(r"(?:[ \t]{0,2}\\?\r?|\\r)\Z")
_RUN: Final = re.compile(rf"{_PART}{{0,64}}+")
_REACH: Final = 64
_DIGIT: Final = re.compile("[0-9]")
_LETTER: Final = re.compile("[A-Za-z]")
_AROUND: Final = 512
"""Characters around a change that belong to the same credential, or to the name beside it."""
_LONG: Final = "-----BEGIN"
_LONGEST: Final = 16_384
"""Characters of the longest credential of many lines, which opens with `_LONG`."""
_LEAST: Final = 16
"""Characters of the shortest credential that has a form of its own."""
_ENCODINGS: Final = frozenset({"base64", "hex"})


def places_of_views(texts: Sequence[str]) -> set[int]:
    """Return the places of those of ``texts`` that may have views; one quick pass over all of them together."""
    from app.engines.views import gates, reading  # noqa: PLC0415 - only where texts are scanned

    together = BETWEEN.join(texts)
    data, gate = together.encode("ascii", "replace"), f"{reading.DISGUISED}|{_LINES}"
    places = set() if together.isascii() else {n for n, text in enumerate(texts) if not text.isascii()}
    ends = list(accumulate(len(text) + len(BETWEEN) for text in texts))
    hit = gates.place(data, gate)
    while hit >= 0:
        # A gate may open with the character before what it is for.
        last = min(bisect_right(ends, hit + 1), len(texts) - 1)
        places |= {bisect_right(ends, hit), last}
        # So the search goes on with what parts the next text from this one.
        hit = gates.place(data, gate, ends[last] - len(BETWEEN))
    return places


def views(text: str) -> Iterator[TextView]:
    """Yield every other reading of ``text``: without disguises, decoded, and with broken lines joined."""
    from app.engines.views.reading import disguises  # noqa: PLC0415 - only where texts are scanned

    decoded = disguises(text)
    yield from decoded
    if (joined := _joined(text, [(0, len(text))])) is not None:
        yield joined
    if decoded and (joined := _joined(decoded[-1].text, changed_parts(decoded[-1]), decoded[-1])) is not None:
        yield joined


def changed_parts(view: TextView) -> list[tuple[int, int]]:
    """Return the parts of a view that may show a credential that the text below does not, with what is around them."""
    parts: list[tuple[int, int]] = []
    for start, end, _ in view.changed:
        low, high = start - _AROUND, end + _AROUND
        if parts and low <= parts[-1][1]:
            parts[-1] = (parts[-1][0], high)
        else:
            parts.append((low, high))
    text = view.text
    return [_whole(text, max(0, low), min(len(text), high)) for low, high in parts]


def _whole(text: str, low: int, high: int) -> tuple[int, int]:
    """Extend a part of a text to whole lines, and to all of a key that begins in it."""
    low = max(text.rfind("\n", max(0, low - _AROUND), low) + 1, low - _AROUND, 0)
    if text.find(_LONG, low, high) >= 0:
        high = min(len(text), high + _LONGEST)
    return low, high


def is_decoded(view: TextView, start: int, end: int) -> bool:
    """Return whether a part of a view was encoded as a whole, in which a name beside a value proves little."""
    return not _ENCODINGS.isdisjoint(view.way(start, end).split("+"))


def is_joined(view: TextView, start: int, end: int) -> bool:
    """Return whether a part of a view was on two lines, as no password is."""
    return "lines" in view.way(start, end).split("+")


def _joined(text: str, parts: Sequence[tuple[int, int]], below: TextView | None = None) -> TextView | None:
    """Return ``text`` without the line breaks of its ``parts`` inside what may be a credential; None without any."""
    if "\n" not in text and "\\n" not in text:
        return None
    breaks = [
        change
        for low, high in parts
        for line in _breaks(text, low, high)
        if (change := _without(text, line)) is not None
    ]
    return respelled(text, breaks, below) if breaks else None


def _breaks(text: str, low: int, high: int) -> Iterator[re.Match[str]]:
    """Yield the breaks of a part of ``text`` that have a digit beside them, which every credential over a break has."""
    from app.engines.views import gates  # noqa: PLC0415 - only where texts are scanned

    data, end = text[low:high].encode("ascii", "replace"), 0
    while (place := gates.place(data, _BROKEN, end)) >= 0:
        line = _BREAK.search(text, low + place, high)
        if line is None:
            return
        yield line
        end = line.end() - low


def _without(text: str, line: re.Match[str]) -> Substitution | None:
    """Return the removal of a break if the letters and digits on both sides of it are long enough together."""
    after = _run(text[line.end() : line.end() + _REACH])
    edge = _BEFORE_BREAK.search(text, max(0, line.start() - 4), line.start())
    start = line.start() if edge is None else edge.start()
    before = _run(text[max(0, start - _REACH) : start][::-1])
    run = before + after
    holds = len(run) >= _LEAST and _DIGIT.search(run) and _LETTER.search(run)
    return Substitution(start, line.end(), "", "lines") if before and holds else None


def _run(text: str) -> str:
    match = _RUN.match(text)
    return match.group() if match else ""
