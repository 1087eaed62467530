"""Find personal data in texts: Presidio over chunks, a plain view against disguise, lists, names carried on."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from app.core.engines import DetectionOptions, Span
from app.engines.pii.labels import CUSTOM, NAME_LABELS, OPAQUE, RULES, thresholds
from app.engines.pii.names import mentions, person_names
from app.engines.pii.nlp import LANGUAGE, EmbeddedNlpEngine, NameTagger, PhraseContextEnhancer
from app.engines.pii.recognizers import build_registry
from app.engines.pii.recognizers_secret import long_secrets
from app.engines.pii.spans import blanked, handles, opaque_runs, resolved, trimmed, without
from app.engines.pii.view import plain_view

CHUNK = 8_192
"""Characters that Presidio sees at once; keeps every quadratic corner of a pattern small."""

OVERLAP = 512
"""Characters that two chunks share; longer than anything found but names of files, which still are covered whole."""

_CUT = 256
_LONGEST_WORD = 4_096
_UNBROKEN = re.compile(r"\A[^\s\"'`<>{}()\[\],;]+")
_CARRIED = 0.5
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_OTHER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_DEGRADED = "names, places and organizations may be missed; everything else is found in every language."
_FOREIGN_LEAST = 20
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


class Analyzer:
    """Presidio with our recognizers; not for use by two threads at once."""

    def __init__(self, tagger: NameTagger | None = None) -> None:
        self._nlp = EmbeddedNlpEngine(tagger)
        self._nlp.load()
        self._engine = _Engine(
            registry=build_registry(),
            nlp_engine=self._nlp,
            supported_languages=[LANGUAGE],
            context_aware_enhancer=PhraseContextEnhancer(),
        )

    def analyze(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in one text: sorted, free of overlaps."""
        return self.analyze_all([text], options)[0]

    def analyze_all(self, texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
        """Return the findings in each text of one context; a name found in one is found in all."""
        found = [self.scan(text, options) for text in texts]
        return self.carry(texts, found, self.names(texts, found), options)

    def scan(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in ``text`` alone."""
        least = thresholds(options)
        own = handles(text)
        seen = blanked(text, own) if own else text
        spans = list(self._chunked(seen, least, options, 0, len(seen)))
        view = plain_view(seen)
        if view is not None:
            for low, high in view.windows():
                for span in self._chunked(view.text, least, options, low, high):
                    start, end = view.original_span(span.start, span.end)
                    spans.append(Span(start, end, span.label, span.score))
        if OPAQUE in least:
            spans += [Span(start, end, OPAQUE, 1.0) for start, end in opaque_runs(seen)]
        if "SECRET" in least:
            spans += [Span(start, end, "SECRET", 1.0) for start, end in long_secrets(seen)]
        allowed = _folded(options.allow_list)
        kept = [span for span in spans if not _is_allowed(text, span, allowed)] if allowed else spans
        kept += _denied(seen, options.deny_list)
        if view is not None:
            kept += [
                Span(*view.original_span(s.start, s.end), CUSTOM, 1.0)
                for s in _denied(view.text, options.deny_list)
            ]
        return resolved(text, without(kept, own))

    @staticmethod
    def names(texts: Sequence[str], found: Sequence[Sequence[Span]]) -> list[str]:
        """Return the names of people found in ``texts``, sorted."""
        return sorted(set().union(*map(person_names, texts, found)))

    @staticmethod
    def carry(
        texts: Sequence[str], found: Sequence[Sequence[Span]], names: Sequence[str], options: DetectionOptions
    ) -> list[list[Span]]:
        """Return ``found`` with the other mentions of ``names``."""
        if not names or "PERSON" not in thresholds(options):
            return [list(spans) for spans in found]
        allowed = _folded(options.allow_list)
        carried: list[list[Span]] = []
        for text, spans in zip(texts, found, strict=True):
            taken = sorted([*((span.start, span.end) for span in spans), *handles(text)])
            new = [span for span in mentions(text, names, _CARRIED) if not _is_allowed(text, span, allowed)]
            carried.append(resolved(text, [*spans, *_outside(new, taken)]) if new else list(spans))
        return carried

    def _chunked(
        self, text: str, least: dict[str, float], options: DetectionOptions, low: int, high: int
    ) -> Iterator[Span]:
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
                    span = Span(
                        start + result.start,
                        start + result.end,
                        RULES[result.entity_type].label,
                        result.score,
                    )
                    yield _beyond_cut(text, span, start if start > low else None, end if end < high else None)


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


def _beyond_cut(text: str, span: Span, start: int | None, end: int | None) -> Span:
    """Return ``span``, extended over the rest of its word where it touches a cut that went through the word."""
    low, high = span.start, span.end
    if low == start:
        before = _UNBROKEN.search(text[max(0, low - _LONGEST_WORD) : low][::-1])
        low -= before.end() if before else 0
    if high == end:
        after = _UNBROKEN.search(text[high : high + _LONGEST_WORD])
        high += after.end() if after else 0
    return Span(low, high, span.label, round(float(span.score), 4))


def _cut(text: str, low: int, high: int) -> int:
    """Return the last offset in ``(low, high]`` that follows white space, or ``high`` where there is none."""
    for place in range(high, low, -1):
        if text[place - 1].isspace():
            return place
    return high


def warnings_for(texts: Sequence[str], language: str) -> list[str]:
    """Return what a caller must know about the languages of ``texts``; never holds content."""
    code = language.lower()
    if code != "auto":
        if not _CODE.fullmatch(language):
            return [f"The language is no code; {_DEGRADED}"]
        return [] if re.split("[-_]", code)[0] == LANGUAGE else [f"No name tagger for '{code}': {_DEGRADED}"]
    latin = other = 0
    for text in texts:
        if not text.isascii():
            latin += len(_LATIN.findall(text))
            other += len(_OTHER.findall(text))
    if other >= _FOREIGN_LEAST and other * 4 > latin:
        return [f"Part of the text is in a script that the name tagger does not know: {_DEGRADED}"]
    return []


def _outside(spans: Sequence[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans that touch nothing in ``taken``; both are sorted."""
    free: list[Span] = []
    place = 0
    for span in spans:
        while place < len(taken) and taken[place][1] <= span.start:
            place += 1
        if place == len(taken) or taken[place][0] >= span.end:
            free.append(span)
    return free


def _folded(items: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(item.casefold().split()) for item in items)


def _is_allowed(text: str, span: Span, allowed: frozenset[str]) -> bool:
    kept = trimmed(text, span)
    return kept is not None and " ".join(text[kept.start : kept.end].casefold().split()) in allowed


def _denied(text: str, items: tuple[str, ...]) -> list[Span]:
    pattern = _deny_pattern(items)
    return [Span(*match.span(), CUSTOM, 1.0) for match in pattern.finditer(text)] if pattern else []


@lru_cache(maxsize=64)
def _deny_pattern(items: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return one pattern for a deny list: letter case aside, whole words, any white space between them."""
    spellings = sorted({" ".join(item.split()) for item in items} - {""}, key=lambda item: (-len(item), item))
    if not spellings:
        return None
    alternatives = (
        ("(?<!\\w)" if item[0].isalnum() else "")
        + r"\s{1,8}".join(map(re.escape, item.split()))
        + ("(?!\\w)" if item[-1].isalnum() else "")
        for item in spellings
    )
    return re.compile("|".join(alternatives), re.IGNORECASE)
