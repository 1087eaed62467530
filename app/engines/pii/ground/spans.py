"""Process findings after the search: trim them, cut them around handles, merge overlaps without a leak."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from app.core.contracts.engines import Span
from app.engines.pii.ground.labels import CUSTOM, NAME_LABELS, OPAQUE, RANK
from app.engines.pii.ground.named_values import MEMBER

HANDLE = re.compile(r"\[[A-Z][A-Z0-9_]{1,30}_[1-9][0-9]{0,8}(?:~[a-z2-7]{4})?\]")
"""Text that already looks like a handle; redaction treats it as one, so it is not a finding."""

_OTHER_NAMES = {"SSN": ("social security",), "SIN": ("social insurance",), "TFN": ("tax file",)}
_PARTS_OF_ADDRESSES = frozenset({"POSTCODE", "DATE", "OPAQUE"})
_WORD = re.compile(r"\w+")
_UNBROKEN = re.compile(r"[^\s\"'`<>{}()\[\],;]*+")
_LONG_RUN = 4096


def opaque_runs(text: str) -> list[tuple[int, int]]:
    """Return the runs of 4,096 and more characters without a break: too long to be words, long enough to hide data.

    Base64 is left out: text inside it is decoded and scanned, and other content (an image) hides nothing readable.
    """
    if len(text) < _LONG_RUN:
        return []
    from app.engines.views.encoded import is_settled  # noqa: PLC0415 - numpy: only where texts are scanned

    runs: list[tuple[int, int]] = []
    place = _LONG_RUN - 1
    # A run this long includes one of the characters looked at, wherever it begins.
    while place < len(text):
        end = _UNBROKEN.match(text, place).end()  # type: ignore[union-attr]  # it also matches nothing
        if end > place:
            before = text[place - _LONG_RUN + 1 : place][::-1]
            start = place - _UNBROKEN.match(before).end()  # type: ignore[union-attr]
            if end - start >= _LONG_RUN and not is_settled(text[start:end]):
                runs.append((start, end))
        place = end + _LONG_RUN
    return runs


def handles(text: str) -> list[tuple[int, int]]:
    """Return where ``text`` contains handles."""
    return [match.span() for match in HANDLE.finditer(text)] if "[" in text else []


def blanked(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return ``text`` with blanks instead of the characters in ``places``."""
    pieces: list[str] = []
    done = 0
    for start, end in places:
        pieces += (text[done:start], " " * (end - start))
        done = end
    return "".join((*pieces, text[done:]))


def without(spans: Iterable[Span], places: Sequence[tuple[int, int]]) -> list[Span]:
    """Return ``spans`` without the characters in ``places``, which are sorted; a span around a place splits in two."""
    if not places:
        return list(spans)
    kept: list[Span] = []
    for span in spans:
        start = span.start
        for low, high in _touched(places, span):
            if low > start:
                kept.append(Span(start, low, span.label, span.score))
            start = max(start, high)
        if start < span.end:
            kept.append(Span(start, span.end, span.label, span.score))
    return kept


def touched(places: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Return the index range of the ``places``, sorted and free of overlaps, that share a character with a span."""
    first = bisect_right(places, (start, 0))
    if first and places[first - 1][1] > start:
        first -= 1
    return first, max(first, bisect_left(places, (end, 0)))


def _touched(places: Sequence[tuple[int, int]], span: Span) -> Sequence[tuple[int, int]]:
    return places[slice(*touched(places, span.start, span.end))]


def trimmed(text: str, span: Span) -> Span | None:
    """Return ``span`` without white space at its ends, or None if nothing is left."""
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if (start, end) == (span.start, span.end):
        return span if start < end else None
    return Span(start, end, span.label, span.score) if start < end else None


def resolved(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, free of overlaps, covering every character that ``spans`` cover.

    A name gives way to a pattern inside or across it; only an address keeps its post code. Otherwise the longest span
    wins, then the higher score, then the fixed order of labels. The rest of a partial overlap joins the winner.
    """
    unique = {(s.start, s.end, s.label): s for s in sorted(spans, key=attrgetter("score"))}
    patterns = [span for span in unique.values() if span.label not in NAME_LABELS]
    names = [span for span in unique.values() if span.label in NAME_LABELS]
    merged = _merged([*patterns, *_around(text, names, _merged(patterns))])
    return [kept for span in merged if (kept := trimmed(text, span)) is not None]


def of_named_type(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return ``spans`` without those of another type at the same place where a member's own name tells the type.

    ``"ssn": "412689937"`` is a social security number, even though the check digit of another country's fits.
    """
    kept = list(spans)
    frame = MEMBER.match(text) if len(kept) > 1 else None
    if frame is None:
        return kept
    name = f" {frame[1].lower()} "
    own = {(span.start, span.end): span.label for span in kept if _is_named(span.label, name)}
    return [span for span in kept if own.get((span.start, span.end), span.label) in (span.label, CUSTOM)]


def _is_named(label: str, name: str) -> bool:
    words = (label.lower().replace("_", " "), *_OTHER_NAMES.get(label, ()))
    return any(f" {word} " in name for word in words)


def _around(text: str, names: list[Span], patterns: list[Span]) -> list[Span]:
    """Return the parts of names outside the ``patterns``, which are sorted and free of overlaps."""
    places = [(pattern.start, pattern.end) for pattern in patterns]
    labels = {pattern.start: pattern.label for pattern in patterns}
    left: list[Span] = []
    for name in names:
        cuts = _touched(places, name)
        whole = any(low <= name.start and high >= name.end for low, high in cuts)
        inside = all(
            low >= name.start and high <= name.end and labels[low] in _PARTS_OF_ADDRESSES
            for low, high in cuts
        )
        if whole:
            continue
        if not cuts or (name.label == "ADDRESS" and inside):
            left.append(name)
        else:
            pieces = (_bare(text, piece) for piece in without([name], cuts))
            left += [piece for piece in pieces if _is_worth_hiding(text, piece)]
    return left


def _bare(text: str, piece: Span) -> Span:
    """Return a piece without the punctuation at its ends."""
    start, end = piece.start, piece.end
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return Span(start, end, piece.label, piece.score)


def _is_worth_hiding(text: str, piece: Span) -> bool:
    """Return whether a piece of a name is worth hiding: it has letters, or for an address two words or a number."""
    words = [word for word in _WORD.findall(text[piece.start : piece.end]) if word not in ("and", "or")]
    if piece.label == "ADDRESS":
        return len(words) > 1 or any(word.isdigit() for word in words)
    return bool(words)


def _strength(span: Span) -> tuple[bool, int, float, int]:
    return (span.label != OPAQUE, span.end - span.start, span.score, -RANK.get(span.label, len(RANK)))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans with every overlapping chain merged into one, labelled by its strongest member."""
    merged: list[Span] = []
    strongest: list[Span] = []
    for span in sorted(spans, key=attrgetter("start")):
        if merged and span.start < merged[-1].end:
            best = max(strongest[-1], span, key=_strength)
            strongest[-1] = best
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end), best.label, best.score)
        else:
            merged.append(span)
            strongest.append(span)
    return merged
