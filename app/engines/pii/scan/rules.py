"""Run a recognizer where an expression hits: its real pattern and validator, with the same result as its own search."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from presidio_analyzer import EntityRecognizer, Pattern, PatternRecognizer
from presidio_analyzer.predefined_recognizers import IbanRecognizer

from app.engines.pii.recognizers import patterns as exact
from app.engines.pii.recognizers.patterns import ExactPatterns, ScanTimeoutError, compiled

Raw = tuple[int, int, float, int, str, float, bool, str]
"""A finding before context: start, end, score, index of the recognizer, pattern, base score, whether it is only digits,
type. A plain tuple, because there are thousands in a text."""

Windows = list[tuple[int, int]]

_MOST_VERDICTS: Final = 50_000
_MOST_CHARACTERS: Final = 2_000_000


@dataclass(slots=True)
class Verdicts:
    """Cache the verdicts of validators: only in the memory of this process, and at most a few megabytes."""

    _of: dict[int, dict[str, float]] = field(default_factory=dict)
    _count: int = 0
    _characters: int = 0

    def of(self, rule: int) -> dict[str, float]:
        """Return the verdicts of one rule; call it again for each text."""
        return self._of.setdefault(rule, {})

    def keep(self, rule: int, text: str, verdict: float) -> None:
        """Store one verdict; if there are too many, all earlier ones are dropped."""
        self._count += 1
        self._characters += len(text)
        if self._count > _MOST_VERDICTS or self._characters > _MOST_CHARACTERS:
            for verdicts in self._of.values():
                verdicts.clear()
            self._count, self._characters = 1, len(text)
        self._of[rule][text] = verdict


class ScanRule(Protocol):
    """One pattern of one recognizer."""

    owner: int
    name: str
    pattern: str
    flags: int

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add findings that begin in ``windows`` to ``raw``, the same as in a search of the whole text.

        ``margin``: how many characters after a window the pattern may have to read. ``timed``: it may take long.
        """


@runtime_checkable
class Windowed(Protocol):
    """A recognizer with its own search that does not need the whole text.

    ``shape`` is a regular expression for everything it considers: a finding and all that affects it lie in a run of the
    characters of ``shape``, plus two characters on either side. Each such run contains a match of ``core``.
    """

    shape: str
    core: str
    supported_entities: list[str]

    def within(self, text: str, low: int, high: int) -> Iterable[tuple[int, int, float]]:
        """Return start, end and score of the findings in ``text[low:high]``; may read the adjacent text."""


class WindowRule:
    """Run the search of a `Windowed` recognizer."""

    def __init__(self, owner: int, recognizer: Windowed) -> None:
        self.owner = owner
        self.name = recognizer.supported_entities[0]
        self.pattern = recognizer.shape
        self.core = recognizer.core
        self.flags = exact.FLAGS
        self._within = recognizer.within

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add the findings in ``windows``."""
        del margin, timed
        for low, high in windows:
            for start, end, score in self._within(text, low, high):
                raw.append((start, end, score, self.owner, self.name, score, False, self.name))


class PatternRule:
    """Run a pattern with the validators of its recognizer."""

    def __init__(
        self, owner: int, recognizer: PatternRecognizer, pattern: Pattern, verdicts: Verdicts
    ) -> None:
        self.owner = owner
        self.name: str = pattern.name
        self.pattern: str = pattern.regex
        self.flags: int = recognizer.global_regex_flags or 0
        self._recognizer: Any = recognizer
        self._score = pattern.score
        self._entity = recognizer.supported_entities[0]
        self._verdicts = verdicts
        self._validates = _has_validators(recognizer)
        self._value = "(?P<value>" in pattern.regex and isinstance(recognizer, ExactPatterns)
        self._search: Any = None

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add the findings that begin in ``windows``."""
        verdicts = self._verdicts.of(id(self))
        group = "value" if self._value else 0
        for match in self.matches(text, windows, margin, timed=timed):
            start, end = match.span(group)
            if start == end:
                continue
            value = text[start:end]
            score = self._score
            if self._validates:
                verdict = verdicts.get(value)
                if verdict is None:
                    verdict = self._verdict(value)
                    self._verdicts.keep(id(self), value, verdict)
                score = verdict
            if score > 0:
                raw.append(
                    (start, end, score, self.owner, self.name, self._score, value.isdigit(), self._entity)
                )

    def matches(self, text: str, windows: Windows, margin: int, *, timed: bool) -> Iterable[Any]:
        """Yield the matches that begin in ``windows``; raise ScanTimeoutError rather than skip a match."""
        if self._search is None:
            self._search = compiled(self.pattern, self.flags).finditer
        search, size = self._search, len(text)
        limits = {"timeout": exact.time_limit(size)} if timed else {}
        try:
            last = 0
            for low, high in windows:
                if high - low == 1:
                    if low >= last and (
                        match := compiled(self.pattern, self.flags).match(text, low, **limits)
                    ):
                        last = match.end()
                        yield match
                    continue
                for match in search(text, low, min(size, high + margin), **limits):
                    if match.start() >= high:
                        break
                    if match.end() > high and high + margin < size:
                        # The window may have cut off the match: search on without a limit.
                        yield from self._unlimited(text, match.start(), high)
                        break
                    yield match
        except TimeoutError:
            raise ScanTimeoutError(self._recognizer.name) from None

    def _unlimited(self, text: str, low: int, high: int) -> Iterable[Any]:
        for match in self._search(text, low, timeout=exact.time_limit(len(text))):
            if match.start() >= high:
                break
            yield match

    def _verdict(self, value: str) -> float:
        """Return the score that the recognizer gives to ``value``; 0 if it rejects the value."""
        valid = self._recognizer.validate_result(value)
        score = self._score if valid is None else float(valid)
        return 0.0 if self._recognizer.invalidate_result(value) else score


class ExactRule(PatternRule):
    """Run a pattern of a recognizer of ours that creates findings from matches itself."""

    def __init__(self, owner: int, recognizer: ExactPatterns, pattern: Pattern, verdicts: Verdicts) -> None:
        super().__init__(owner, recognizer, pattern, verdicts)
        self._add: Callable[[list[Any], Any, Pattern], None] = recognizer._add  # noqa: SLF001 - the hook of subclasses
        self._whole = pattern

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add the findings that the recognizer creates from the matches that begin in ``windows``."""
        results: list[Any] = []
        for match in self.matches(text, windows, margin, timed=timed):
            self._add(results, match, self._whole)
        for result in results:
            bare = bool(result.recognition_metadata.get("bare"))
            raw.append(
                (
                    result.start,
                    result.end,
                    result.score,
                    self.owner,
                    self.name,
                    self._score,
                    bare,
                    self._entity,
                ),
            )


class IbanRule(PatternRule):
    """Run Presidio's IBAN pattern: find the longest part of each match with a valid checksum."""

    def run(self, text: str, windows: Windows, margin: int, raw: list[Raw], *, timed: bool) -> None:
        """Add the findings that begin in ``windows``."""
        verdicts = self._verdicts.of(id(self))
        for match in self.matches(text, windows, margin, timed=timed):
            start = match.start()
            for group in range(len(match.groups()), 0, -1):
                end = match.end(group) if match.end(group) > 0 else match.end()
                value = text[start:end]
                verdict = verdicts.get(value)
                if verdict is None:
                    valid = self._recognizer.validate_result(value) if value else False
                    verdict = self._score if valid is None else float(valid)
                    self._verdicts.keep(id(self), value, verdict)
                if verdict > 0:
                    raw.append((start, end, verdict, self.owner, self.name, self._score, False, self._entity))
                    break


def rules_of(owner: int, recognizer: Any, verdicts: Verdicts) -> list[PatternRule] | None:
    """Return the rules of a recognizer, or None if it does more than search its patterns."""
    kind: type[PatternRule]
    if isinstance(recognizer, ExactPatterns):
        if not _same(recognizer, ExactPatterns, "analyze"):
            return None
        kind = PatternRule if _same(recognizer, ExactPatterns, "_add") else ExactRule
    elif isinstance(recognizer, IbanRecognizer):
        if not _same(recognizer, IbanRecognizer, "analyze"):
            return None
        kind = IbanRule
    elif isinstance(recognizer, PatternRecognizer) and _same(recognizer, PatternRecognizer, "analyze"):
        kind = PatternRule
    else:
        return None
    return [kind(owner, recognizer, pattern, verdicts) for pattern in recognizer.patterns]


def _same(recognizer: EntityRecognizer, original: type, name: str) -> bool:
    """Return whether the recognizer does not override a method."""
    method = getattr(recognizer, name)
    return getattr(method, "__func__", method) is getattr(original, name)


def _has_validators(recognizer: PatternRecognizer) -> bool:
    return not all(
        _same(recognizer, PatternRecognizer, name) for name in ("validate_result", "invalidate_result")
    )
