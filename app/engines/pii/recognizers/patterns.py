"""The base of every pattern recognizer: Presidio's matching, but a time-out raises instead of skipping a pattern."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]
from presidio_analyzer import AnalysisExplanation, Pattern, PatternRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from app.engines.pii.ground.labels import RULES
from app.engines.pii.names.nlp import LANGUAGE, EmbeddedArtifacts, context_words

FLAGS = regex.DOTALL | regex.MULTILINE | regex.IGNORECASE
TIMEOUT_S = 3.0
"""CPU time of one pattern on a short text, which takes milliseconds: only a hostile text gets here.

What else the process does meanwhile counts too, and to collect its garbage may take a second.
"""

_LEAST_PACE = 250_000
"""Characters a second that a pattern may take on a long text."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int) -> Any:
    """Return the pattern, compiled at its first use."""
    return regex.compile(pattern, flags=flags)


def time_limit(size: int) -> float:
    """Return the CPU seconds that one pattern may take on a text of ``size`` characters."""
    return TIMEOUT_S + size / _LEAST_PACE


class ScanTimeoutError(Exception):
    """A pattern did not end in time, so the text counts as not scanned; it holds the recognizer's name alone."""


class ExactPatterns(PatternRecognizer):
    """Match patterns as Presidio does, apart from three things.

    A time-out raises. A named group ``value`` narrows the finding to the group. Where nothing can be found, because
    the text holds no digit or none of the context words that the entity needs, nothing is searched.
    """

    name: str
    patterns: list[Pattern]
    needs_digit = True
    gate: re.Pattern[str] | None = None
    """What every finding holds, cheap to look for; None where that is no cheaper than the search."""

    def __init__(
        self,
        entity: str,
        patterns: Iterable[tuple[str, float]],
        context: Iterable[str] = (),
        flags: int = FLAGS,
    ) -> None:
        super().__init__(
            supported_entity=entity,
            name=type(self).__name__,
            supported_language=LANGUAGE,
            patterns=[
                Pattern(f"{entity} {place}", text, score) for place, (text, score) in enumerate(patterns, 1)
            ],
            context=list(context),
            global_regex_flags=flags,
        )

    def analyze(
        self,
        text: str,
        entities: list[str],
        nlp_artifacts: NlpArtifacts | None = None,
        regex_flags: int | None = None,
    ) -> list[RecognizerResult]:
        """Return the findings in ``text``; raise ScanTimeoutError where a pattern takes too long."""
        del entities
        if self.idle(nlp_artifacts) or (self.gate is not None and not self.gate.search(text)):
            return []
        windows = [(0, len(text))]
        if self.needs_digit and isinstance(nlp_artifacts, EmbeddedArtifacts):
            windows = nlp_artifacts.digit_windows
        results: list[RecognizerResult] = []
        limit = time_limit(len(text))
        try:
            for pattern in self.patterns:
                finditer = compiled(pattern.regex, regex_flags or self.global_regex_flags).finditer
                for low, high in windows:
                    for match in finditer(text, low, high, timeout=limit):
                        self._add(results, match, pattern)
        except TimeoutError:
            raise ScanTimeoutError(self.name) from None
        return results

    def idle(self, artifacts: NlpArtifacts | None) -> bool:
        """Say whether this recognizer cannot find anything in the text of ``artifacts``."""
        if not isinstance(artifacts, EmbeddedArtifacts):
            return False
        if self.needs_digit and not artifacts.digit_windows:
            return True
        return (
            artifacts.demands_context
            and RULES[self.supported_entities[0]].context == "yes"
            and not any(phrase <= artifacts.vocabulary for phrase in self._phrases())
        )

    def result(self, start: int, end: int, score: float, *, bare: bool = False) -> RecognizerResult:
        """Return a finding of this recognizer; ``bare`` marks one that is nothing but digits."""
        metadata: dict[str, Any] = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
            "bare": bare,
        }
        why = AnalysisExplanation(self.name, score)
        return RecognizerResult(self.supported_entities[0], start, end, score, why, metadata)

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        start, end = match.span("value") if "value" in match.re.groupindex else match.span()
        found = match.string[start:end]
        if not found:
            return
        score = pattern.score
        valid = self.validate_result(found)
        if valid is not None:
            score = self.MAX_SCORE if valid else self.MIN_SCORE
        if self.invalidate_result(found):
            score = self.MIN_SCORE
        if score > self.MIN_SCORE:
            results.append(self.result(start, end, score, bare=found.isdigit()))

    def _phrases(self) -> list[frozenset[str]]:
        known: list[frozenset[str]] | None = self.__dict__.get("_known_phrases")
        if known is None:
            known = [frozenset(spelled) for phrase in self.context if (spelled := context_words(phrase))]
            self.__dict__["_known_phrases"] = known
        return known
