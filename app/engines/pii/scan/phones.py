"""Presidio's phone numbers: candidates looked for once and not once a region, each judged once."""

import re
from collections.abc import Iterator
from typing import Any, Final

import phonenumbers
from phonenumbers import phonenumbermatcher
from presidio_analyzer.predefined_recognizers import PhoneRecognizer

from app.engines.pii.scan.rules import Raw, Windows

SHAPE: Final[str] = phonenumbermatcher._PATTERN.pattern  # noqa: SLF001 - what the library itself looks for
_BETWEEN: Final = r"(?:[^\w\n]|[x\u30fc]){0,8}"
CORE: Final = rf"\d{_BETWEEN}\d{_BETWEEN}\d{_BETWEEN}\d"
"""Any number has four digits, and between two of them no more than what the library takes for punctuation: two letters
are among it."""

_SECOND: Final[Any] = vars(phonenumbermatcher)["_SECOND_NUMBER_START_PATTERN"]
_NEVER: Final = 1 << 60
_FOLLOWING: Final = 4
_MOST_KNOWN: Final = 20_000
_NONE: Final = (-1, -1)


class PhoneRule:
    """Google's matcher for each region, on candidates that all regions share.

    Presidio's own loop gives up a text after 65,535 candidates that are no number; here there is no such limit.
    """

    def __init__(self, owner: int, recognizer: PhoneRecognizer) -> None:
        self.owner = owner
        self.name = recognizer.supported_entities[0]
        self.pattern = SHAPE
        self.flags = int(re.IGNORECASE)
        self._entity = recognizer.supported_entities[0]
        self._recognizer = recognizer
        self._known: dict[tuple[str, str, str, str], tuple[int, int]] = {}

    def run(self, text: str, windows: Windows, margin: int, found: list[Raw], *, timed: bool) -> None:
        """Add the phone numbers in ``windows``."""
        del margin, timed
        score = self._recognizer.SCORE
        for low, high in windows:
            candidates: dict[int, tuple[int, str] | None] = {}
            for region in self._recognizer.supported_regions:
                for start, end in self._numbers(text, low, high, region, candidates):
                    found.append((start, end, score, self.owner, region, score, False, self._entity))

    def _numbers(
        self, text: str, low: int, high: int, region: str, candidates: dict[int, tuple[int, str] | None]
    ) -> Iterator[tuple[int, int]]:
        place = low
        while (candidate := _candidate(text, place, high, candidates)) is not None:
            start, what = candidate
            first, last = self._number(text, start, what, region)
            if first < 0:
                place = start + len(what)
            else:
                yield start + first, start + last
                place = start + last

    def _number(self, text: str, start: int, what: str, region: str) -> tuple[int, int]:
        """Return where in a candidate a number of ``region`` lies; it depends on the characters beside it too."""
        before = text[max(0, start - 1) : start]
        after = text[start + len(what) : start + len(what) + _FOLLOWING]
        key = (region, what, before, after)
        known = self._known.get(key)
        if known is None:
            matcher: Any = phonenumbers.PhoneNumberMatcher(
                before + what + after, region, leniency=self._recognizer.leniency or 0, max_tries=_NEVER
            )
            match = matcher._extract_match(what, len(before))  # noqa: SLF001 - the judge without the search
            known = _NONE if match is None else (match.start - len(before), match.end - len(before))
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known


def _candidate(
    text: str, place: int, high: int, known: dict[int, tuple[int, str] | None]
) -> tuple[int, str] | None:
    """Return the first candidate from ``place`` on, as the library cuts it out."""
    if place in known:
        return known[place]
    match = phonenumbermatcher._PATTERN.search(text, place, high)  # noqa: SLF001
    found = None
    if match:
        what = match.group()
        second = _SECOND.search(what)
        found = match.start(), what[: second.start()] if second else what
    known[place] = found
    return found
