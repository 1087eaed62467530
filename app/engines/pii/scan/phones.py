"""Find Presidio's phone numbers: search candidates once instead of once per region, and check each once."""

import re
from collections.abc import Iterator
from typing import Any, Final

import phonenumbers
from phonenumbers import phonenumbermatcher
from presidio_analyzer.predefined_recognizers import PhoneRecognizer

from app.engines.pii.scan.rules import Raw, Windows

SHAPE: Final[str] = phonenumbermatcher._PATTERN.pattern  # noqa: SLF001 - the pattern that the library itself uses
_BETWEEN: Final = r"(?:[^\w\n]|[x\u30fc]){0,8}"
CORE: Final = rf"\d{_BETWEEN}\d{_BETWEEN}\d{_BETWEEN}\d"
"""Every number has four digits, with only what the library regards as punctuation between them, which includes two
letters."""

_SECOND: Final[Any] = vars(phonenumbermatcher)["_SECOND_NUMBER_START_PATTERN"]
_NEVER: Final = 1 << 60
_FOLLOWING: Final = 4
_MAX_CACHED: Final = 20_000
_NONE: Final = (-1, -1)


class PhoneRule:
    """Run Google's matcher for each region on candidates that all regions share.

    Presidio's own loop gives up on a text after 65,535 candidates that are not numbers; here there is no such limit.
    """

    def __init__(self, owner: int, recognizer: PhoneRecognizer) -> None:
        self.owner = owner
        self.name = recognizer.supported_entities[0]
        self.pattern = SHAPE
        self.flags = int(re.IGNORECASE)
        self._entity = recognizer.supported_entities[0]
        self._recognizer = recognizer
        self._cache: dict[tuple[str, str, str, str], tuple[int, int]] = {}

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add the phone numbers in ``windows``."""
        del margin, timed
        score = self._recognizer.SCORE
        for low, high in windows:
            candidates: dict[int, tuple[int, str] | None] = {}
            for region in self._recognizer.supported_regions:
                for start, end in self._numbers(text, low, high, region, candidates):
                    raw.append((start, end, score, self.owner, region, score, False, self._entity))

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

    def _number(self, text: str, start: int, candidate: str, region: str) -> tuple[int, int]:
        """Return the place of a number of ``region`` in a candidate; it also depends on the adjacent characters."""
        before = text[max(0, start - 1) : start]
        after = text[start + len(candidate) : start + len(candidate) + _FOLLOWING]
        key = (region, candidate, before, after)
        span = self._cache.get(key)
        if span is None:
            matcher: Any = phonenumbers.PhoneNumberMatcher(
                before + candidate + after, region, leniency=self._recognizer.leniency or 0, max_tries=_NEVER
            )
            match = matcher._extract_match(candidate, len(before))  # noqa: SLF001 - the check without the search
            span = _NONE if match is None else (match.start - len(before), match.end - len(before))
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = span
        return span


def _candidate(
    text: str, place: int, high: int, cached: dict[int, tuple[int, str] | None]
) -> tuple[int, str] | None:
    """Return the first candidate from ``place`` on, delimited as in the library."""
    if place in cached:
        return cached[place]
    match = phonenumbermatcher._PATTERN.search(text, place, high)  # noqa: SLF001
    candidate = None
    if match:
        value = match.group()
        second = _SECOND.search(value)
        candidate = match.start(), value[: second.start()] if second else value
    cached[place] = candidate
    return candidate
