"""Say of a text what was considered, what won, and why the rest lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.core.engines import Candidate, DetectionOptions, Span
from app.engines.pii.analyzer import Analyzer
from app.engines.pii.labels import CUSTOM, RULES, thresholds
from app.engines.pii.lists import AllowList
from app.engines.pii.searching import Finding
from app.engines.pii.spans import handles, touched

CARRIED = "NamesCarriedOn"
"""Stands for the recognizer where a name found elsewhere in the text is mentioned again."""


def explain(analyzer: Analyzer, text: str, options: DetectionOptions) -> tuple[list[Span], list[Candidate]]:
    """Return the findings in ``text``, and all candidates for one in the order of the text.

    Candidates that ``options`` leave out on their own (a type that only *strict* takes, a score too low) are looked for
    as well, so that a user sees what another setting would find.
    """
    spans = analyzer.analyze(text, options)
    asked = set(analyzer.candidates(text, options))
    wider = replace(options, strict=True, entities=None, exclude=frozenset())
    known = set(map(_place, asked))
    winners = _Winners(spans, asked)
    left = {
        found
        for found in analyzer.candidates(text, wider)
        if _place(found) not in known and not any(span.label == found.label for span in winners.of(found))
    }
    allowed, own = AllowList(options.allow_list), handles(text)
    candidates = [_judged(text, found, winners, allowed, own) for found in asked]
    candidates += [_candidate(found, won=False, reason=_left_out(found, options)) for found in left]
    candidates += [_carried(span) for span in spans if not winners.rivals(span)]
    return spans, sorted(candidates, key=_order)


class _Winners:
    """The findings, sorted and free of overlaps, with the candidates that each stands for."""

    def __init__(self, spans: Sequence[Span], asked: Iterable[Finding]) -> None:
        self._spans = spans
        self._places = [(span.start, span.end) for span in spans]
        self._rivals = Counter(span.start for found in asked for span in self.of(found))

    def of(self, found: Finding) -> Sequence[Span]:
        """Return the findings that share a character with a candidate."""
        return self._spans[slice(*touched(self._places, found.start, found.end))]

    def rivals(self, span: Span) -> int:
        """Return how many candidates share a character with a finding."""
        return self._rivals[span.start]


def _place(found: Finding) -> tuple[int, int, str, str]:
    return found.start, found.end, found.label, found.recognizer


def _order(candidate: Candidate) -> tuple[int, bool, int, str]:
    return candidate.span.start, not candidate.won, -candidate.span.end, candidate.recognizer


def _judged(
    text: str, found: Finding, winners: _Winners, allowed: AllowList, own: Sequence[tuple[int, int]]
) -> Candidate:
    """Return what became of a candidate that was asked for; ``own`` is where handles stand."""
    span = Span(found.start, found.end, found.label, found.score)
    if found.label != CUSTOM and allowed.holds(text, span):
        return _candidate(found, won=False, reason="on the allow list")
    met = winners.of(found)
    if not met:
        first, last = touched(own, found.start, found.end)
        reason = "a handle stands there" if first < last else "nothing was left of it"
        return _candidate(found, won=False, reason=reason)
    best = max(met, key=lambda one: min(one.end, found.end) - max(one.start, found.start))
    if best.label != found.label:
        return _candidate(
            found, won=False, reason=f"{best.label} at {best.start} to {best.end} {_stronger(best, span)}"
        )
    if (best.start, best.end) != (found.start, found.end):
        return _candidate(found, won=True, reason=f"part of the finding at {best.start} to {best.end}")
    rivals = winners.rivals(best) - 1
    others = f"; it outweighs {rivals} other{'s' if rivals > 1 else ''}" if rivals else ""
    return _candidate(found, won=True, reason=f"score {found.score:.2f} is enough{others}")


def _stronger(best: Span, span: Span) -> str:
    """Return what makes ``best`` win over ``span``."""
    if best.end - best.start != span.end - span.start:
        return "is longer" if best.end - best.start > span.end - span.start else "comes before names"
    return "has the higher score" if best.score > span.score else "comes first in the order of types"


def _left_out(found: Finding, options: DetectionOptions) -> str:
    """Return why ``options`` do not ask for a candidate."""
    rule = RULES.get(found.entity)
    if found.label in options.exclude:
        return "its type is excluded"
    if options.entities is not None and found.label not in options.entities:
        return "its type was not asked for"
    least = thresholds(options).get(found.entity)
    if least is None:
        return "only strict takes this type, or a caller who names it"
    if rule is not None and rule.context != "no" and not found.context:
        return "no word of its context stands nearby"
    if found.score < least:
        return f"score {found.score:.2f} is below {least:.2f}"
    return "only where lower scores count, as in strict, are these words taken for one name"


def _candidate(found: Finding, *, won: bool, reason: str) -> Candidate:
    return Candidate(
        span=Span(found.start, found.end, found.label, round(found.score, 4)),
        entity=found.entity or found.label,
        recognizer=found.recognizer,
        pattern=found.pattern,
        base=round(found.base or found.score, 4),
        context=found.context,
        view=found.view,
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
        reason="a name found elsewhere in this text is mentioned here",
    )
