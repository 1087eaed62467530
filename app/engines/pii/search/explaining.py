"""Explain a scan: which candidates there were, which won, and why the others lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.core.contracts.engines import Candidate, DetectionOptions, Span
from app.engines.pii.ground.labels import CUSTOM, RULES, thresholds
from app.engines.pii.ground.lists import AllowList
from app.engines.pii.ground.spans import handles, touched
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.searching import Finding

CARRIED = "NamesCarriedOn"
"""The recognizer shown if a name that was found elsewhere in the text occurs again."""


_MAX_NEAR_MISSES = 1_000
"""Each number in a text can be a candidate of many types; the best of them are enough."""

_WORDS_SHOWN = 3


def explain_all(
    analyzer: Analyzer, texts: Sequence[str], options: DetectionOptions
) -> list[tuple[list[Span], list[Candidate]]]:
    """Return findings and candidates for each of ``texts``, in which names are carried as in a scan of them all."""
    findings = analyzer.analyze_all(texts, options)
    return [
        (spans, _candidates(analyzer, text, options, spans))
        for text, spans in zip(texts, findings, strict=True)
    ]


def explain(analyzer: Analyzer, text: str, options: DetectionOptions) -> tuple[list[Span], list[Candidate]]:
    """Return findings and candidates for one text; see `explain_all`."""
    return explain_all(analyzer, [text], options)[0]


def _candidates(
    analyzer: Analyzer, text: str, options: DetectionOptions, spans: list[Span]
) -> list[Candidate]:
    """Return all candidates in the order of the text, among them the findings ``spans``.

    This includes candidates that ``options`` leave out (a type that counts only in *strict* mode, too low a score, no
    context word nearby), so that a user sees what another setting or another text would find.
    """
    requested = set(analyzer.candidates(text, options))
    wider = replace(options, strict=True, entities=None, exclude=frozenset())
    places = set(map(_place, requested))
    winners = _Winners(spans, requested)
    left_out = {
        finding
        for finding in analyzer.candidates(text, wider)
        if _place(finding) not in places
        and not any(span.label == finding.label for span in winners.of(finding))
    }
    places |= set(map(_place, left_out))
    near_misses = [
        finding
        for finding in analyzer.considered(text, options)
        if _place(finding) not in places and not winners.hide(finding)
    ]
    left_out.update(
        sorted(near_misses, key=lambda finding: (not finding.context, -finding.score))[:_MAX_NEAR_MISSES]
    )
    allowed, handle_places = AllowList(options.allow_list), handles(text)
    least = thresholds(options)
    candidates = [_judged(text, finding, winners, allowed, handle_places) for finding in requested]
    candidates += [_left_out(text, finding, options, analyzer.context_words(finding)) for finding in left_out]
    candidates = [replace(candidate, threshold=least.get(candidate.entity)) for candidate in candidates]
    candidates += [_carried(span) for span in spans if not winners.rivals(span)]
    return sorted(candidates, key=_order)


class _Winners:
    """The findings, sorted and free of overlaps, with the number of candidates that overlap each."""

    def __init__(self, spans: Sequence[Span], candidates: Iterable[Finding]) -> None:
        self._spans = spans
        self._places = [(span.start, span.end) for span in spans]
        self._rivals = Counter(span.start for candidate in candidates for span in self.of(candidate))

    def of(self, candidate: Finding) -> Sequence[Span]:
        """Return the findings that share a character with a candidate."""
        return self._spans[slice(*touched(self._places, candidate.start, candidate.end))]

    def hide(self, candidate: Finding) -> bool:
        """Return whether a candidate lies inside a finding of any type."""
        return any(span.start <= candidate.start and span.end >= candidate.end for span in self.of(candidate))

    def rivals(self, span: Span) -> int:
        """Return how many candidates share a character with a finding."""
        return self._rivals[span.start]


def _place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.label, finding.recognizer


def _order(candidate: Candidate) -> tuple[int, bool, int, float, str]:
    span = candidate.span
    return span.start, not candidate.won, -span.end, -span.score, candidate.recognizer


def _judged(
    text: str, finding: Finding, winners: _Winners, allowed: AllowList, own: Sequence[tuple[int, int]]
) -> Candidate:
    """Return the outcome of a candidate of a requested type; ``own`` are the places of handles."""
    span = Span(finding.start, finding.end, finding.label, finding.score)
    if finding.label != CUSTOM and allowed.holds(text, span):
        return _candidate(finding, won=False, reason="on the allow list")
    overlapping = winners.of(finding)
    if not overlapping:
        first, last = touched(own, finding.start, finding.end)
        reason = "there is a handle in its place" if first < last else "nothing is left of it"
        return _candidate(finding, won=False, reason=reason)
    best = max(
        overlapping, key=lambda winner: min(winner.end, finding.end) - max(winner.start, finding.start)
    )
    if best.label != finding.label:
        return _candidate(
            finding, won=False, reason=f"{best.label} at {best.start} to {best.end} {_stronger(best, span)}"
        )
    if (best.start, best.end) != (finding.start, finding.end):
        return _candidate(finding, won=True, reason=f"part of the finding at {best.start} to {best.end}")
    rivals = winners.rivals(best) - 1
    others = f"; it outweighs {rivals} other{'s' if rivals > 1 else ''}" if rivals else ""
    return _candidate(finding, won=True, reason=f"score {finding.score:.2f} is enough{others}")


def _stronger(best: Span, span: Span) -> str:
    """Return why ``best`` wins over ``span``."""
    if best.end - best.start != span.end - span.start:
        return "is longer" if best.end - best.start > span.end - span.start else "comes before names"
    return "has the higher score" if best.score > span.score else "comes first in the order of types"


def _left_out(text: str, finding: Finding, options: DetectionOptions, words: Sequence[str]) -> Candidate:
    """Return the outcome of a candidate that ``options`` leave out; ``words`` would have raised its score."""
    missing = () if finding.context else tuple(words)
    candidate = _candidate(finding, won=False, reason=_why_left_out(text, finding, options, missing))
    return replace(candidate, missing=missing)


def _why_left_out(text: str, finding: Finding, options: DetectionOptions, missing: Sequence[str]) -> str:
    """Return why ``options`` leave out a candidate."""
    if finding.label in options.exclude:
        return "its type is excluded"
    if options.entities is not None and finding.label not in options.entities:
        return "its type was not requested"
    least = thresholds(options).get(finding.entity)
    if least is None:
        return "this type is found only in strict mode, or when the caller names it"
    return _too_weak(text, finding, least, missing)


def _too_weak(text: str, finding: Finding, least: float, missing: Sequence[str]) -> str:
    """Return why a candidate of a requested type does not count."""
    if not finding.score:
        return "its check digit or its format is wrong"
    such = f", such as {', '.join(missing[:_WORDS_SHOWN])}" if missing else ""
    if _lacks_context(text, finding):
        return f"no context word is nearby{such}"
    if finding.score < least:
        raised = f"; a context word nearby would raise it{such}" if missing else ""
        return f"score {finding.score:.2f} is below {least:.2f}{raised}"
    return "these words form one name only where lower scores count, as in strict mode"


def _lacks_context(text: str, finding: Finding) -> bool:
    """Return whether a candidate counts only near a context word, and has none nearby."""
    rule = RULES.get(finding.entity)
    if rule is None or finding.context:
        return False
    bare = rule.context == "bare" and text[finding.start : finding.end].isdigit()
    return bare or rule.context == "yes"


def _candidate(finding: Finding, *, won: bool, reason: str) -> Candidate:
    return Candidate(
        span=Span(finding.start, finding.end, finding.label, round(finding.score, 4)),
        entity=finding.entity or finding.label,
        recognizer=finding.recognizer,
        pattern=finding.pattern,
        base=round(finding.base or finding.score, 4),
        context=finding.context,
        view=finding.view,
        won=won,
        reason=reason,
    )


def _carried(span: Span) -> Candidate:
    return Candidate(
        span=span,
        entity=span.label,
        recognizer=CARRIED,
        pattern="",
        base=span.score,
        context="",
        view="text",
        won=True,
        reason="a name found elsewhere in this text occurs here",
    )
