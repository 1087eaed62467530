"""Say of a text what was considered, what won, and why the rest lost."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.core.engines import Candidate, DetectionOptions, Span
from app.engines.pii.analyzer import Analyzer
from app.engines.pii.labels import CUSTOM, RULES, thresholds
from app.engines.pii.lists import folded, is_allowed
from app.engines.pii.searching import Finding
from app.engines.pii.spans import handles

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
    left = {
        found
        for found in analyzer.candidates(text, wider)
        if _place(found) not in known and not any(_same(span, found) for span in spans)
    }
    candidates = [_judged(text, found, spans, asked, options) for found in asked]
    candidates += [_candidate(found, won=False, reason=_left_out(found, options)) for found in left]
    candidates += [_carried(span) for span in spans if not any(_within(span, found) for found in asked)]
    return spans, sorted(candidates, key=_order)


def _place(found: Finding) -> tuple[int, int, str, str]:
    return found.start, found.end, found.label, found.recognizer


def _order(candidate: Candidate) -> tuple[int, bool, int, str]:
    return candidate.span.start, not candidate.won, -candidate.span.end, candidate.recognizer


def _same(span: Span, found: Finding) -> bool:
    return span.label == found.label and _within(span, found)


def _within(span: Span, found: Finding) -> bool:
    return found.start < span.end and span.start < found.end


def _judged(
    text: str, found: Finding, spans: Sequence[Span], asked: Iterable[Finding], options: DetectionOptions
) -> Candidate:
    """Return what became of a candidate that ``options`` ask for."""
    span = Span(found.start, found.end, found.label, found.score)
    if found.label != CUSTOM and is_allowed(text, span, folded(options.allow_list)):
        return _candidate(found, won=False, reason="on the allow list")
    winners = [one for one in spans if _within(one, found)]
    if not winners:
        inside = any(start < found.end and found.start < end for start, end in handles(text))
        return _candidate(
            found, won=False, reason="a handle stands there" if inside else "nothing was left of it"
        )
    best = max(winners, key=lambda one: min(one.end, found.end) - max(one.start, found.start))
    if best.label != found.label:
        return _candidate(
            found, won=False, reason=f"{best.label} at {best.start} to {best.end} {_stronger(best, span)}"
        )
    rivals = sum(1 for one in asked if one != found and _within(best, one))
    if (best.start, best.end) != (found.start, found.end):
        return _candidate(found, won=True, reason=f"part of the finding at {best.start} to {best.end}")
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
    return f"score {found.score:.2f} is below {least:.2f}"


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
