"""Find values that are split over adjacent texts: the text around each border is also scanned as one."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from app.core.contracts.engines import Span
from app.engines.pii.ground.domains import COMMON_TOPS
from app.engines.pii.ground.labels import NAME_LABELS
from app.engines.pii.ground.spans import resolved

Scan = Callable[[str], list[Span]]

_REACH: Final = 256
"""Characters read on either side of a border; longer than any value that could be split there."""
_INITIALS: Final = 2
_MOST_WORDS: Final = 4
_LAST_LETTERS: Final = re.compile(r"[^\W\d_]+\Z")
_CAPITAL: Final = re.compile(r"\s[^\W\d_a-z]")
_INSIDE_A_VALUE: Final = re.compile(r"\w[._@/:=&?#%+~]\w")
"""Punctuation inside a value, which ordinary words do not have."""
_HOST_ENDS: Final = re.compile(rf"\.(?:{COMMON_TOPS})\Z", re.IGNORECASE)
_PART_OF_NAME: Final = 0.5
"""The score of a part of a name: too low for the part to be searched in other texts."""


def scan_run(texts: Sequence[str], scan: Scan) -> list[list[Span]]:
    """Return the findings in each of several adjacent texts: its own, and its parts of those that cross a border.

    A value inside a single text counts only if the scan of that text alone finds it.
    """
    own = [scan(text) for text in texts]
    if len(texts) == 1:
        return own
    run = _Run(texts, own)
    parts: list[list[Span]] = [[] for _ in texts]
    for low, high in run.windows():
        for separated in (False, True):
            text, offsets = run.excerpt(low, high, separated=separated)
            if separated and len(text) == high - low:
                continue
            for span in scan(text):
                for place, part in run.parts(span, low, offsets, separated=separated):
                    parts[place].append(part)
    return [
        resolved(text, [*findings, *new]) if new else findings
        for text, findings, new in zip(texts, own, parts, strict=True)
    ]


class _Run:
    """Adjacent texts joined into one, with the findings in each of them."""

    def __init__(self, texts: Sequence[str], own: Sequence[Sequence[Span]]) -> None:
        self._texts = texts
        self._own = own
        self._whole = "".join(texts)
        self._borders = list(accumulate(map(len, texts), initial=0))

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the parts of the whole around the borders; together they are no longer than the whole."""
        low, high = 0, 0
        for border in self._borders[1:-1]:
            if border - _REACH > high:
                if high:
                    yield low, high
                low = border - _REACH
            high = min(len(self._whole), border + _REACH)
        if high:
            yield low, high

    def excerpt(self, low: int, high: int, *, separated: bool) -> tuple[str, list[int]]:
        """Return ``whole[low:high]``, with blanks at borders inside words if ``separated``, and where they are."""
        if not separated:
            return self._whole[low:high], []
        cuts = [border for border in self._borders if low < border < high and self._joins_words(border)]
        edges = [low, *cuts, high]
        pieces = [self._whole[start:end] for start, end in pairwise(edges)]
        return " ".join(pieces), [cut - low + number for number, cut in enumerate(cuts)]

    def parts(
        self, span: Span, low: int, blanks: Sequence[int], *, separated: bool
    ) -> Iterator[tuple[int, Span]]:
        """Yield the part in each text of a finding in an excerpt, if it really crosses a border."""
        start = low + span.start - bisect_right(blanks, span.start)
        end = low + span.end - bisect_right(blanks, span.end - 1)
        places = range(bisect_right(self._borders, start) - 1, bisect_right(self._borders, end - 1))
        cut = [self._part(place, start, end) for place in places]
        cut = [(place, first, last) for place, first, last in cut if self._texts[place][first:last].strip()]
        is_name = span.label in NAME_LABELS
        if len(cut) == 1 or not (
            self._is_spread_name(cut, span.label) if separated else self._is_split(cut, span.label)
        ):
            return
        score = min(span.score, _PART_OF_NAME) if is_name else span.score
        for place, first, last in cut:
            if not (is_name and self._covers(place, first, last, NAME_LABELS)):
                yield place, Span(first, last, span.label, score)

    def _part(self, place: int, start: int, end: int) -> tuple[int, int, int]:
        """Return the part of ``whole[start:end]`` in a text, in its own offsets."""
        begin = self._borders[place]
        return place, max(0, start - begin), min(len(self._texts[place]), end - begin)

    def _joins_words(self, border: int) -> bool:
        return self._whole[border - 1].isalnum() and self._whole[border].isalnum()

    def _is_split(self, cut: Sequence[tuple[int, int, int]], label: str) -> bool:
        """Return whether a finding is more than one text's own finding that happens to run into the next text."""
        unknown = [part for part in cut if not self._covers(*part, {label})]
        if len(unknown) == len(cut):
            return True
        borders = [self._borders[place] for place, _, _ in cut[1:]]
        if label in NAME_LABELS:
            return all(self._goes_on(border, cut[-1]) for border in borders)
        if all(map(self._goes_on_in_digits, borders)):
            return True
        return bool(unknown) and all(
            self._is_of_value(part, label, is_last=part == cut[-1]) for part in unknown
        )

    def _is_of_value(self, part: tuple[int, int, int], label: str, *, is_last: bool) -> bool:
        """Return whether a part next to a complete value belongs to that value, rather than to another sentence.

        ``john@example.co|m`` and ``john@exam.pl|e.com``, but not ``john@example.com|and then``.
        """
        place, first, last = part
        text = self._texts[place][first:last]
        if text[:1].isspace() or text[-1:].isspace():
            return False
        if label == "EMAIL" and is_last:
            end = self._borders[place] + last
            return bool(
                _HOST_ENDS.search(self._whole, max(0, end - _REACH), end) or _INSIDE_A_VALUE.search(text)
            )
        return bool(_INSIDE_A_VALUE.search(text)) or any(map(str.isdigit, text))

    def _goes_on_in_digits(self, border: int) -> bool:
        before, after = self._whole[border - 2 : border].rstrip(), self._whole[border : border + 2].lstrip()
        return before[-1:].isdigit() and after[:1].isdigit()

    def _goes_on(self, border: int, last: tuple[int, int, int]) -> bool:
        """Return whether a name, one part of which was found, continues over a border: ``John| Doe``, ``J|ohn Doe``."""
        before, after = self._whole[border - 1], self._whole[border]
        if before.isspace() or after.isspace():
            return True
        cut = _LAST_LETTERS.search(self._whole, max(0, border - _REACH), border)
        place, first, end = last
        return (cut is not None and len(cut.group()) <= _INITIALS) or _CAPITAL.search(
            self._texts[place], first + 1, end
        ) is not None

    def _is_spread_name(self, cut: Sequence[tuple[int, int, int]], label: str) -> bool:
        """Return whether texts of words form a name; texts with numbers are the cells of a table.

        After a text that ends with a name, a word is part of the name if no other word follows: ``John| Doe, hello``,
        but not ``John| Next steps``.
        """
        if label not in NAME_LABELS or len(cut) > _MOST_WORDS:
            return False
        if not all(any(map(str.isalpha, self._texts[place][first:last])) for place, first, last in cut):
            return False
        place, _, last = cut[-1]
        has_name = any(self._covers(*part, NAME_LABELS) for part in cut)
        return not has_name or not self._texts[place][last : last + 2].strip(" ")[:1].isalnum()

    def _covers(self, place: int, first: int, last: int, labels: frozenset[str] | set[str]) -> bool:
        return any(
            span.start <= first and span.end >= last and span.label in labels for span in self._own[place]
        )
