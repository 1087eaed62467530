"""The scan: one pass for all expressions, then windows, then the real patterns, then the words nearby."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


class Found(NamedTuple):
    """A finding after context; ``owner`` is the place of its recognizer, ``word`` the one that raised its score."""

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
    """The recognizers that a kind of request wants: the place of each with the least score of its findings.

    ``demanding``: those that find nothing where none of their context words is in the text.
    """

    least: Mapping[int, float]
    demanding: frozenset[int] = frozenset()


class ScanOnce:
    """All recognizers over a text at once; not for use by two threads at once."""

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
            matcher, self.plan.expressions, self.plan.first_word, self.plan.reaches, serialized
        )
        self._weighing = weighing
        self._tokenizer = tokenizer
        self._supports = [weighing.support(each) for each in self.recognizers]

    def search(
        self, text: str, chosen: WantedRecognizers, artifacts: Callable[[], Any] | None = None
    ) -> list[Found]:
        """Return the findings of the chosen recognizers, without those that lie in an equal or better one.

        ``artifacts`` makes what recognizers with a search of their own are given beside the text.
        """
        seen = image(text)
        hits = self.matcher.hits(seen)
        spoken = self.plan.spoken(hits)
        active = frozenset(chosen.least)
        if spoken is not None:
            active -= chosen.demanding - spoken
        raw: list[Raw] = []
        for unit, ends in self._hit(hits, seen):
            rules = [rule for rule in unit.rules if rule.owner in active]
            if rules:
                windows, margin = windows_of(unit.probe, ends, seen, self.matcher.grain)
                for rule in rules:
                    rule.run(text, windows, margin, raw, timed=unit.timed or ends is None)
        for owner in self.plan.custom:
            if owner in active:
                raw += self._asked(owner, text, artifacts)
        return self._weighed(text, seen, raw, chosen, spoken) if raw else []

    def _hit(self, hits: Hits | None, seen: bytes) -> Iterator[tuple[Unit, list[int] | None]]:
        """Yield what has to run, in the order of the plan, with its hits; None: over the whole text."""
        if hits is None:
            yield from ((unit, None) for unit in self.plan.units)
        else:
            yield from (
                (self.plan.units[number], ends)
                for number, ends in sorted(self.plan.by_unit(hits, self.matcher.grain, seen).items())
            )
        if self.plan.whole.rules:
            yield self.plan.whole, None

    def _asked(self, owner: int, text: str, artifacts: Callable[[], Any] | None) -> Iterator[Raw]:
        """Yield the findings of a recognizer that searches by itself."""
        recognizer = self.recognizers[owner]
        given: Any = artifacts() if artifacts else None
        for result in recognizer.analyze(text, recognizer.supported_entities, given) or ():
            yield result.start, result.end, result.score, owner, "", result.score, False, result.entity_type

    def _weighed(
        self, text: str, seen: bytes, raw: list[Raw], chosen: WantedRecognizers, spoken: frozenset[int] | None
    ) -> list[Found]:
        weighing = self._weighing
        around = Surroundings(text, seen, self._tokenizer, weighing)
        found: list[Found] = []
        for start, end, first, owner, pattern, base, bare, entity in self._distinct(raw):
            score, support, word = first, self._supports[owner], ""
            if support is not None:
                if spoken is None or owner in spoken:
                    word = support(around.near(start))
                score = weighing.weighed(entity, score, word, bare=bare)
            if score >= chosen.least[owner]:
                found.append(Found(start, end, score, entity, owner, pattern, base, word))
        return uncovered(found, _ENTITY)

    def _distinct(self, raw: list[Raw]) -> list[Raw]:
        """Return ``raw``, less what lies inside another finding of a recognizer that leaves such out."""
        distinct = self.plan.distinct
        kept = [one for one in raw if one[3] not in distinct]
        others = sorted((one for one in raw if one[3] in distinct), key=itemgetter(3))
        for _, group in groupby(others, itemgetter(3)):
            mine = list(group)
            kept += mine if len(mine) == 1 else uncovered(mine, itemgetter(7))
        return kept


def uncovered(found: list[Any], entity: Callable[[Any], str]) -> list[Any]:
    """Return what does not lie inside an equal or better finding of its type, as Presidio's ``remove_duplicates``.

    Each begins with start, end and score.
    """
    found.sort(key=lambda one: (entity(one), one[0], -one[1], -one[2]))
    kept: list[Any] = []
    near: list[Any] = []
    last = None
    for one in found:
        start, end, score = one[0], one[1], one[2]
        if entity(one) != last:
            last, near = entity(one), []
        if not score:
            continue
        if near:
            near = [other for other in near if other[1] >= start]
            if any(other[0] <= start and end <= other[1] and score <= other[2] for other in near):
                continue
        kept.append(one)
        near.append(one)
    return kept
