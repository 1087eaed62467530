"""Search a text for what the recognizers and the tagger find, before lists, overlaps and names carried on."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from app.core.engines import DetectionOptions
from app.engines.pii.labels import NAME_LABELS, RULES, thresholds
from app.engines.pii.nlp import LANGUAGE, EmbeddedNlpEngine, NameTagger, PhraseContextEnhancer
from app.engines.pii.recognizers import build_registry

CHUNK = 8_192
"""Characters that Presidio sees at once; keeps every quadratic corner of a pattern small."""

OVERLAP = 512
"""Characters that two chunks share; longer than anything found but names of files, which still are covered whole."""

_CUT = 256
_LONGEST_WORD = 4_096
_UNBROKEN = re.compile(r"\A[^\s\"'`<>{}()\[\],;]+")


class Finding(NamedTuple):
    """What one recognizer found, and why: offsets ``[start, end)``, the label, the score after context words.

    ``entity`` is Presidio's type, ``base`` the score before context, ``context`` the words that changed it,
    ``pattern`` the name of the pattern where there is one, ``view`` how the text was read (``text``, ``plain``,
    ``base64`` ...).
    """

    start: int
    end: int
    label: str
    score: float
    entity: str = ""
    recognizer: str = ""
    pattern: str = ""
    base: float = 0.0
    context: str = ""
    view: str = "text"


class Search:
    """Presidio with our recognizers over parts of a text; not for use by two threads at once."""

    def __init__(self, tagger: NameTagger | None = None) -> None:
        self._nlp = EmbeddedNlpEngine(tagger)
        self._nlp.load()
        self._engine = _Engine(
            registry=build_registry(),
            nlp_engine=self._nlp,
            supported_languages=[LANGUAGE],
            context_aware_enhancer=PhraseContextEnhancer(),
        )

    def findings(
        self, text: str, options: DetectionOptions, windows: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Finding]:
        """Yield what ``options`` ask for in ``text``, or in its ``windows`` alone; in any order, overlaps and all."""
        least = thresholds(options)
        for low, high in windows if windows is not None else [(0, len(text))]:
            yield from self._chunked(text, least, options, low, high)

    def _chunked(
        self, text: str, least: dict[str, float], options: DetectionOptions, low: int, high: int
    ) -> Iterator[Finding]:
        entities = sorted(least)
        names = [least[label] for label in NAME_LABELS if label in least]
        for start, end in chunks(text, low, high):
            chunk = text[start:end]
            artifacts = self._nlp.tagged(chunk, min(names) if names else None)
            artifacts.demands_context = not options.strict
            if not entities:
                continue
            for result in self._engine.analyze(chunk, LANGUAGE, entities, nlp_artifacts=artifacts):
                if result.score >= least[result.entity_type]:
                    found = Finding(
                        start + result.start,
                        start + result.end,
                        RULES[result.entity_type].label,
                        result.score,
                        result.entity_type,
                        result.recognition_metadata[RecognizerResult.RECOGNIZER_NAME_KEY],
                    )
                    yield _beyond_cut(
                        text, found, start if start > low else None, end if end < high else None
                    )


class _Engine(AnalyzerEngine):
    """Presidio's engine without the loop over every recognizer per result, which none of ours needs."""

    def _enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: NlpArtifacts,
        recognizers: list[EntityRecognizer],
        context: list[str] | None = None,
    ) -> list[RecognizerResult]:
        enhanced: list[RecognizerResult] = self.context_aware_enhancer.enhance_using_context(
            text, raw_results, nlp_artifacts, recognizers, context
        )
        return enhanced


def chunks(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield parts of ``text[low:high]`` that overlap, cut at white space where some is near."""
    start = low
    while high - start > CHUNK:
        end = _cut(text, start + CHUNK - _CUT, start + CHUNK)
        yield start, end
        start = _cut(text, end - OVERLAP, end - OVERLAP + _CUT)
    if start < high:
        yield start, high


def _beyond_cut(text: str, found: Finding, start: int | None, end: int | None) -> Finding:
    """Return ``found``, extended over the rest of its word where it touches a cut that went through the word."""
    low, high = found.start, found.end
    if low == start:
        before = _UNBROKEN.search(text[max(0, low - _LONGEST_WORD) : low][::-1])
        low -= before.end() if before else 0
    if high == end:
        after = _UNBROKEN.search(text[high : high + _LONGEST_WORD])
        high += after.end() if after else 0
    return found._replace(start=low, end=high, score=round(float(found.score), 4))


def _cut(text: str, low: int, high: int) -> int:
    """Return the last offset in ``(low, high]`` that follows white space, or ``high`` where there is none."""
    for place in range(high, low, -1):
        if text[place - 1].isspace():
            return place
    return high
