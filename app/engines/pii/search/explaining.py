"""Say of a text what was considered, what won, and why the rest lost."""

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
"""Stands for the recognizer where a name found elsewhere in the text is mentioned again."""


_MOST_NEAR = 1_000
"""A text full of numbers is full of what they could be; the best of that are enough."""

_WORDS_SHOWN = 3


def explain(analyzer: Analyzer, text: str, options: DetectionOptions) -> tuple[list[Span], list[Candidate]]:
    """Return the findings in ``text``, and all candidates for one in the order of the text.

    Candidates that ``options`` leave out on their own (a type that only *strict* takes, a score too low, no word of a
    context nearby) are looked for as well, so that a user sees what another setting or another text would find.
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
    known |= set(map(_place, left))
    near = [
        found
        for found in analyzer.considered(text, options)
        if _place(found) not in known and not winners.hide(found)
    ]
    left.update(sorted(near, key=lambda found: (not found.context, -found.score))[:_MOST_NEAR])
    allowed, own = AllowList(options.allow_list), handles(text)
    least = thresholds(options)
    candidates = [_judged(text, found, winners, allowed, own) for found in asked]
    candidates += [_left_out(text, found, options, analyzer.context_words(found)) for found in left]
    candidates = [replace(one, threshold=least.get(one.entity)) for one in candidates]
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

    def hide(self, found: Finding) -> bool:
        """Say whether a candidate lies inside a finding, whatever that is taken for."""
        return any(span.start <= found.start and span.end >= found.end for span in self.of(found))

    def rivals(self, span: Span) -> int:
        """Return how many candidates share a character with a finding."""
        return self._rivals[span.start]


def _place(found: Finding) -> tuple[int, int, str, str]:
    return found.start, found.end, found.label, found.recognizer


def _order(candidate: Candidate) -> tuple[int, bool, int, float, str]:
    span = candidate.span
    return span.start, not candidate.won, -span.end, -span.score, candidate.recognizer


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


def _left_out(text: str, found: Finding, options: DetectionOptions, words: Sequence[str]) -> Candidate:
    """Return what became of a candidate that ``options`` do not ask for; ``words`` would have raised its score."""
    missing = () if found.context else tuple(words)
    candidate = _candidate(found, won=False, reason=_why_left_out(text, found, options, missing))
    return replace(candidate, missing=missing)


def _why_left_out(text: str, found: Finding, options: DetectionOptions, missing: Sequence[str]) -> str:
    """Return why ``options`` do not ask for a candidate."""
    if found.label in options.exclude:
        return "its type is excluded"
    if options.entities is not None and found.label not in options.entities:
        return "its type was not asked for"
    least = thresholds(options).get(found.entity)
    if least is None:
        return "only strict takes this type, or a caller who names it"
    return _too_weak(text, found, least, missing)


def _too_weak(text: str, found: Finding, least: float, missing: Sequence[str]) -> str:
    """Return why a candidate of a type that is asked for does not count."""
    if not found.score:
        return "its check digit or its form is wrong"
    such = f", such as {', '.join(missing[:_WORDS_SHOWN])}" if missing else ""
    if _lacks_context(text, found):
        return f"no word of its context stands nearby{such}"
    if found.score < least:
        raised = f"; a word of its context nearby would raise it{such}" if missing else ""
        return f"score {found.score:.2f} is below {least:.2f}{raised}"
    return "only where lower scores count, as in strict, are these words taken for one name"


def _lacks_context(text: str, found: Finding) -> bool:
    """Say whether a candidate counts only beside a word of its context, and stands beside none."""
    rule = RULES.get(found.entity)
    if rule is None or found.context:
        return False
    bare = rule.context == "bare" and text[found.start : found.end].isdigit()
    return bare or rule.context == "yes"


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
