"""Read one text as `pii_redaction` reads it in a context: JSON by its values, each behind the name of its member."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.core.content.context import Context
from app.core.content.leaves import Leaf
from app.core.contracts.engines import (
    Candidate,
    Detection,
    DetectionOptions,
    Detector,
    Explainer,
    Explanation,
    Span,
)
from app.core.redaction.member_names import NamedTexts, personal_frame
from app.core.redaction.plan import extended

_PLACE: Final = re.compile(r"\bat (\d+) to (\d+)\b")
"""Offsets in the reason of a candidate."""


class TextReading:
    """The texts that a detector gets for one text, and the way back to offsets in it."""

    def __init__(self, text: str) -> None:
        self._leaves = Context.parse([{"type": "text", "text": text}]).leaves
        self._named_texts = NamedTexts(self._leaves, personal_frame)

    @property
    def texts(self) -> list[str]:
        """Return the texts to scan; one that is empty if there is nothing to scan."""
        return self._named_texts.texts or [""]

    def spans(self, findings: Sequence[Sequence[Span]]) -> list[Span]:
        """Return what was found in `texts` as `pii_redaction` replaces it, in the order of the text."""
        if not self._leaves:
            return []
        values = zip(self._leaves, self._named_texts.spans_in_values(findings), strict=True)
        whole = (_raw(leaf, span) for leaf, spans in values for span in extended(leaf, spans))
        return sorted(whole, key=lambda span: span.start)

    def candidates(self, candidates: Sequence[Sequence[Candidate]]) -> list[Candidate]:
        """Return the candidates in `texts` that touch a value, in the order of the text."""
        moved: list[Candidate] = []
        if not self._leaves:
            return moved
        for number, of_text in enumerate(candidates):
            for place in self._named_texts.joined_places(number):
                for candidate in of_text:
                    span = self._moved(number, place, candidate.span)
                    if span is not None:
                        reason = self._reason(number, place, candidate)
                        moved.append(replace(candidate, span=span, reason=reason))
        return sorted(moved, key=lambda candidate: candidate.span.start)

    def _moved(self, number: int, place: int, span: Span) -> Span | None:
        leaf = self._leaves[place]
        if number != place:
            return _raw(leaf, Span(0, len(leaf.text), span.label, span.score))
        in_value = self._named_texts.span_in_value(number, span)
        return None if in_value is None else _raw(leaf, in_value)

    def _reason(self, number: int, at: int, candidate: Candidate) -> str:
        """Return the reason with offsets in the text instead of those in the scanned text."""

        def moved(place: re.Match[str]) -> str:
            span = self._moved(number, at, Span(int(place[1]), int(place[2]), "", 0))
            return "in the name of the member" if span is None else f"at {span.start} to {span.end}"

        return _PLACE.sub(moved, candidate.reason)


def _raw(leaf: Leaf, span: Span) -> Span:
    start, end = leaf.raw_range(span.start, span.end)
    return replace(span, start=start, end=end)


async def found_in(
    detector: Detector, text: str, options: DetectionOptions, *, tenant: str = ""
) -> tuple[list[Span], Detection]:
    """Return what `pii_redaction` would replace or report in ``text``, and the whole answer of the detector."""
    reading = TextReading(text)
    detection = await detector.detect(reading.texts, options, tenant=tenant)
    return reading.spans(detection.spans), detection


async def explained(
    explainer: Explainer, text: str, options: DetectionOptions, *, tenant: str = ""
) -> Explanation:
    """Explain what `pii_redaction` would replace or report in ``text``."""
    reading = TextReading(text)
    parts = await explainer.explain(reading.texts, options, tenant=tenant)
    return replace(
        parts[0],
        spans=reading.spans([part.spans for part in parts]),
        candidates=reading.candidates([part.candidates for part in parts]),
    )
