"""Run a scan: one pass for all expressions, then windows, then the real patterns, then context words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from presidio_analyzer import EntityRecognizer

from app.engines.pii.scan.image import image
from app.engines.pii.scan.matchers import ExpressionMatcher, Hits, MatcherName, build
from app.engines.pii.scan.plan import ScanPlan, Unit
from app.engines.pii.scan.rules import Raw
from app.engines.pii.scan.surroundings import Surroundings, Tokenizer
from app.engines.pii.scan.weighing import Weighing
from app.engines.pii.scan.windows import windows_of

_ENTITY = attrgetter("entity")


class ScanFinding(NamedTuple):
    """A finding after context; ``owner`` is the index of its recognizer, ``word`` the word that raised its score."""

    start: int
    end: int
    score: float
    entity: str
    owner: int
    pattern: str
    base: float
    word: str


@dataclass(frozen=True, slots=True)
class WantedRecognizers:
    """The recognizers that a kind of request needs: the index of each with the minimum score of its findings.

    ``demanding``: those that find nothing unless one of their context words is in the text.
    """

    least: Mapping[int, float]
    demanding: frozenset[int] = frozenset()
    owners: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "owners", frozenset(self.least))


class ScanOnce:
    """Run all recognizers over a text at once; not safe for use by two threads at once."""

    def __init__(
        self,
        recognizers: Sequence[EntityRecognizer],
        weighing: Weighing,
        tokenizer: Tokenizer,
        matcher: MatcherName = "auto",
        serialized: bytes | None = None,
    ) -> None:
        self.recognizers = list(recognizers)
        self.plan = ScanPlan(self.recognizers, weighing)
        self.matcher: ExpressionMatcher = build(
            matcher,
            self.plan.expressions,
            self.plan.first_word,
            self.plan.reaches,
            self.plan.parts,
            serialized,
        )
        self._weighing = weighing
        self._tokenizer = tokenizer
        self._supports = [weighing.support(recognizer) for recognizer in self.recognizers]

    def search(
        self, text: str, chosen: WantedRecognizers, artifacts: Callable[[], Any] | None = None
    ) -> list[ScanFinding]:
        """Return the findings of the chosen recognizers, without those inside an equal or better one.

        ``artifacts`` creates the NLP artifacts for recognizers with their own search.
        """
        seen = image(text)
        spoken = self.plan.spoken(self.matcher.words(seen))
        active = chosen.owners
        if spoken is not None:
            active -= chosen.demanding - spoken
        hits = self.matcher.hits(seen, self.plan.needed(active))
        raw: list[Raw] = []
        for unit, ends in self._units_hit(hits, seen):
            rules = [rule for rule in unit.rules if rule.owner in active]
            if rules:
                windows, margin = windows_of(unit.probe, ends, seen, self.matcher.grain)
                for rule in rules:
                    rule.run(text, windows, margin, raw, timed=unit.timed or ends is None)
        for owner in self.plan.custom:
            if owner in active:
                raw += self._own_search(owner, text, artifacts)
        return self._weighed(text, seen, raw, chosen, spoken) if raw else []

    def _units_hit(self, hits: Hits | None, seen: bytes) -> Iterator[tuple[Unit, list[int] | None]]:
        """Yield the units to run, in the order of the plan, with their hits; None: over the whole text."""
        if hits is None:
            yield from ((unit, None) for unit in self.plan.units)
        else:
            yield from (
                (self.plan.units[number], ends)
                for number, ends in sorted(self.plan.by_unit(hits, self.matcher.grain, seen).items())
            )
        if self.plan.whole.rules:
            yield self.plan.whole, None

    def _own_search(self, owner: int, text: str, artifacts: Callable[[], Any] | None) -> Iterator[Raw]:
        """Yield the findings of a recognizer with its own search."""
        recognizer = self.recognizers[owner]
        nlp_artifacts: Any = artifacts() if artifacts else None
        for result in recognizer.analyze(text, recognizer.supported_entities, nlp_artifacts) or ():
            yield result.start, result.end, result.score, owner, "", result.score, False, result.entity_type

    def _weighed(
        self, text: str, seen: bytes, raw: list[Raw], chosen: WantedRecognizers, spoken: frozenset[int] | None
    ) -> list[ScanFinding]:
        weighing = self._weighing
        around = Surroundings(text, seen, self._tokenizer, weighing)
        findings: list[ScanFinding] = []
        for start, end, first, owner, pattern, base, bare, entity in self._distinct(raw):
            score, support, word = first, self._supports[owner], ""
            if support is not None:
                if spoken is None or owner in spoken:
                    word = support(around.near(start))
                score = weighing.weighed(entity, score, word, bare=bare)
            if score >= chosen.least[owner]:
                findings.append(ScanFinding(start, end, score, entity, owner, pattern, base, word))
        return uncovered(findings, _ENTITY)

    def _distinct(self, raw: list[Raw]) -> list[Raw]:
        """Return ``raw`` without findings inside another one, for recognizers that drop these."""
        distinct = self.plan.distinct
        kept = [finding for finding in raw if finding[3] not in distinct]
        others = sorted((finding for finding in raw if finding[3] in distinct), key=itemgetter(3))
        for _, group in groupby(others, itemgetter(3)):
            mine = list(group)
            kept += mine if len(mine) == 1 else uncovered(mine, itemgetter(7))
        return kept


def uncovered(findings: list[Any], entity: Callable[[Any], str]) -> list[Any]:
    """Return the findings not inside an equal or better one of their type, like Presidio's ``remove_duplicates``.

    Each finding begins with start, end and score.
    """
    findings.sort(key=lambda finding: (entity(finding), finding[0], -finding[1], -finding[2]))
    kept: list[Any] = []
    near: list[Any] = []
    last = None
    for finding in findings:
        start, end, score = finding[0], finding[1], finding[2]
        if entity(finding) != last:
            last, near = entity(finding), []
        if not score:
            continue
        if near:
            near = [other for other in near if other[1] >= start]
            if any(other[0] <= start and end <= other[1] and score <= other[2] for other in near):
                continue
        kept.append(finding)
        near.append(finding)
    return kept
