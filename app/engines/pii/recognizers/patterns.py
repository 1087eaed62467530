"""The base of every pattern recognizer: Presidio's matching, but a timeout raises instead of skipping a pattern."""

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
"""CPU time limit of one pattern on a short text, which takes milliseconds: only a hostile text exceeds it.

Other work of the process at that time counts too, and a garbage collection may take a second.
"""

_LEAST_PACE = 250_000
"""The minimum pace of a pattern on a long text, in characters per second."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int) -> Any:
    """Return the pattern, compiled on first use."""
    return regex.compile(pattern, flags=flags)


def time_limit(size: int) -> float:
    """Return the CPU seconds that one pattern may take on a text of ``size`` characters."""
    return TIMEOUT_S + size / _LEAST_PACE


class ScanTimeoutError(Exception):
    """A pattern did not end in time, so the text counts as not scanned; holds only the name of the recognizer."""


class ExactPatterns(PatternRecognizer):
    """Match patterns as Presidio does, with three differences.

    A timeout raises. A named group ``value`` narrows the finding to the group. The search is skipped if there can be
    no finding, because the text has no digit or none of the context words that the entity needs.
    """

    name: str
    patterns: list[Pattern]
    needs_digit = True
    gate: re.Pattern[str] | None = None
    """A pattern that every finding contains and that is cheap to search; None if it would be no cheaper."""

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
        """Return the findings in ``text``; raise ScanTimeoutError if a pattern takes too long."""
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
        """Return whether this recognizer cannot find anything in the text of ``artifacts``."""
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
        """Return a finding of this recognizer; ``bare`` marks one that consists of digits."""
        metadata: dict[str, Any] = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
            "bare": bare,
        }
        why = AnalysisExplanation(self.name, score)
        return RecognizerResult(self.supported_entities[0], start, end, score, why, metadata)

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        start, end = match.span("value") if "value" in match.re.groupindex else match.span()
        value = match.string[start:end]
        if not value:
            return
        score = pattern.score
        valid = self.validate_result(value)
        if valid is not None:
            score = self.MAX_SCORE if valid else self.MIN_SCORE
        if self.invalidate_result(value):
            score = self.MIN_SCORE
        if score > self.MIN_SCORE:
            results.append(self.result(start, end, score, bare=value.isdigit()))

    def _phrases(self) -> list[frozenset[str]]:
        phrases: list[frozenset[str]] | None = self.__dict__.get("_known_phrases")
        if phrases is None:
            phrases = [frozenset(spelled) for phrase in self.context if (spelled := context_words(phrase))]
            self.__dict__["_known_phrases"] = phrases
        return phrases
