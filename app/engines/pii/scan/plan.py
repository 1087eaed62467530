"""Plan the expressions of one pass: for every pattern of every recognizer, and for their context words."""

import logging
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from presidio_analyzer import EntityRecognizer, PatternRecognizer
from presidio_analyzer.predefined_recognizers import PhoneRecognizer

from app.engines.pii.recognizers.patterns import FLAGS, ExactPatterns
from app.engines.pii.scan import phones
from app.engines.pii.scan.bytesets import exactly
from app.engines.pii.scan.derived import Question, probes_of
from app.engines.pii.scan.digits import REACHES, reach_of
from app.engines.pii.scan.matchers import Hits
from app.engines.pii.scan.rules import ScanRule, Verdicts, Windowed, WindowRule, rules_of
from app.engines.pii.scan.superset import Probe
from app.engines.pii.scan.weighing import Weighing

_ESCAPED = re.compile(rb"\\x..")
_BETWEEN = re.compile(rb"\(\?-i:[^)]*\)")
_PARTS: Final = 4
"""Into how many parts the expressions of recognizers that need a context word are divided, by their recognizers."""
_log = logging.getLogger(__name__)


Opening = tuple[Callable[[bytes, int], Any], Callable[[bytes, int], Any]]
"""Two checks of whether a match can begin at an offset: in the image, and in the lower-case image behind its edge."""


@dataclass
class Unit:
    """A probe and the rules that run in its windows; without a probe, they run over the whole text."""

    probe: Probe | None
    rules: list[ScanRule] = field(default_factory=list)

    @cached_property
    def begins(self) -> Opening | None:
        """Return how to check the beginning of a match; None where a hit is not at the beginning."""
        if self.probe is None or not self.probe.begins:
            return None
        return _fits(self.probe.borders), _opens(self.probe.opening)

    @property
    def timed(self) -> bool:
        """Return whether a pattern may take long here."""
        return self.probe is None or not self.probe.tame


class ScanPlan:
    """The expressions to search so that every recognizer finds everything that it would find by itself."""

    def __init__(self, recognizers: Sequence[EntityRecognizer], weighing: Weighing) -> None:
        self._verdicts = Verdicts()
        self.custom: list[int] = []
        self.distinct: set[int] = set()
        """The recognizers that drop findings inside another one of theirs, before context is considered."""
        self.whole = Unit(None)
        self.undivided: list[str] = []
        """The names of rules that run over the whole text because nothing could be derived from them."""
        units: dict[Probe, Unit] = {}
        rules = [
            rule for owner, recognizer in enumerate(recognizers) for rule in self._rules(owner, recognizer)
        ]
        probes = probes_of([question_of(rule, recognizers[rule.owner]) for rule in rules])
        for rule, probe in zip(rules, probes, strict=True):
            if isinstance(probe, Probe):
                units.setdefault(probe, Unit(probe)).rules.append(rule)
            else:
                self.whole.rules.append(rule)
                owner_of_rule: Any = recognizers[rule.owner]
                self._undivided(f"{owner_of_rule.name}: {rule.name}", probe)
        self.units = list(units.values())
        by_expression: dict[bytes, list[int]] = {}
        for number, probe in enumerate(units):
            for expression in probe.expressions:
                by_expression.setdefault(expression, []).append(number)
        self.expressions = list(by_expression)
        self.units_of = list(by_expression.values())
        """For each expression, the indexes of its units."""
        self._sizes = [
            len(_ESCAPED.sub(b".", _BETWEEN.sub(b".", expression))) for expression in self.expressions
        ]
        self.first_word = len(self.expressions)
        self._always: set[int] = set()
        """The recognizers with a context phrase that is in every text."""
        self._phrases: dict[int, list[tuple[int, list[int]]]] = {}
        self._words(recognizers, weighing)
        self.reaches = self._reaches(recognizers)
        """For each expression, how far from a digit it has to be searched; 0: everywhere."""
        self.demanding = frozenset(
            owner for owner, recognizer in enumerate(recognizers) if weighing.demands(recognizer)
        )
        """The recognizers whose findings count only near one of their context words."""
        self.parts, self._owners_of_parts = self._divided()

    def _reaches(self, recognizers: Sequence[EntityRecognizer]) -> list[int]:
        nearest = [_from_digit(unit, recognizers) for unit in self.units]
        arounds = [[nearest[unit] for unit in units] for units in self.units_of]
        return [
            *(
                reach_of(expression, max(around) if all(around) else 0)
                for expression, around in zip(self.expressions, arounds, strict=False)
            ),
            *(0 for _ in self.expressions[self.first_word :]),
        ]

    def _divided(self) -> tuple[list[int], list[set[int]]]:
        """Return for each expression that is no word its part of the scan, and the recognizers of parts from 1 on.

        Those of a part other than 0 belong to ``demanding`` recognizers alone: as long as nobody speaks of what these
        find, their part need not be searched. The few that are not searched close to digits are no gain there.
        """
        among = {owner: place for place, owner in enumerate(sorted(self.demanding))}
        parts: list[int] = []
        owners_of_parts: list[set[int]] = [set() for _ in range(_PARTS)]
        for units, reach in zip(self.units_of, self.reaches, strict=False):
            owners = {rule.owner for unit in units for rule in self.units[unit].rules}
            part = 0
            if owners <= self.demanding and reach == REACHES[0]:
                part = 1 + among[min(owners)] * _PARTS // len(among)
                owners_of_parts[part - 1] |= owners
            parts.append(part)
        return parts, owners_of_parts

    def by_unit(self, hits: Hits, grain: int, seen: bytes) -> Hits:
        """Return the hits of each unit in the image ``seen``: their ends, or the starts of matches in the text."""
        hits_of_units: Hits = {}
        small = seen.lower()
        for number, ends in hits.items():
            for unit in self.units_of[number]:
                mine = ends
                if grain == 1 and (begins := self.units[unit].begins) is not None:
                    size, (fits, opens) = self._sizes[number] + 1, begins
                    mine = [
                        begin for end in ends if fits(seen, begin := end - size) and opens(small, begin + 1)
                    ]
                    if not mine:
                        continue
                hits_of_units[unit] = hits_of_units[unit] + mine if unit in hits_of_units else mine
        return hits_of_units

    def needed(self, active: AbstractSet[int]) -> list[int]:
        """Return the parts in which one of the ``active`` recognizers finds something."""
        parts = enumerate(self._owners_of_parts, 1)
        return [0, *(part for part, owners in parts if not owners.isdisjoint(active))]

    def spoken(self, hits: Hits | None) -> frozenset[int] | None:
        """Return the recognizers with a context word or phrase among the ``hits`` of words; None: any recognizer."""
        if hits is None:
            return None
        owners = set(self._always)
        for number in hits:
            for owner, others in self._phrases.get(number, ()):
                if owner not in owners and all(other in hits for other in others):
                    owners.add(owner)
        return frozenset(owners)

    def _rules(self, owner: int, recognizer: Any) -> Sequence[ScanRule]:
        rules: Sequence[ScanRule] | None
        if isinstance(recognizer, Windowed):
            rules = [WindowRule(owner, recognizer)]
        elif type(recognizer).analyze is PhoneRecognizer.analyze:
            rules = [phones.PhoneRule(owner, recognizer)]
        else:
            rules = rules_of(owner, recognizer, self._verdicts)
        if rules is None:
            self.custom.append(owner)
            self._undivided(recognizer.name, "it has its own search")
            return ()
        if isinstance(recognizer, PhoneRecognizer | PatternRecognizer) and not isinstance(
            recognizer, ExactPatterns
        ):
            self.distinct.add(owner)
        return rules

    def _undivided(self, name: str, why: str) -> None:
        self.undivided.append(name)
        _log.warning("%s runs over the whole of each text: %s", name, why)

    def _words(self, recognizers: Sequence[EntityRecognizer], weighing: Weighing) -> None:
        """Add an expression for each context word, and record the recognizers in whose phrases it occurs."""
        numbers: dict[bytes, int] = {}
        for owner, recognizer in enumerate(recognizers):
            for phrase in recognizer.context or ():
                places = [
                    numbers.setdefault(expression, self.first_word + len(numbers))
                    for expression in weighing.expressions(phrase)
                ]
                if places:
                    self._phrases.setdefault(places[0], []).append((owner, places[1:]))
                else:
                    self._always.add(owner)
        self.expressions += numbers


def _from_digit(unit: Unit, recognizers: Sequence[EntityRecognizer]) -> int:
    """Return the maximum distance of a digit from the end of a hit with a finding; 0 if it is unknown."""
    probe, owners = unit.probe, [recognizers[rule.owner] for rule in unit.rules]
    if probe is None or probe.left or probe.right:
        return 0
    if not all(isinstance(owner, ExactPatterns) and owner.needs_digit for owner in owners):
        return 0
    return max(probe.back, probe.fore) + 1


def question_of(rule: ScanRule, recognizer: EntityRecognizer) -> Question:
    """Return the question whose answer decides where a rule has to run."""
    if isinstance(rule, phones.PhoneRule):
        return Question(phones.SHAPE, re.IGNORECASE, phones.CORE, re.IGNORECASE, itself=False)
    if isinstance(rule, WindowRule):
        return Question(rule.pattern, rule.flags, rule.core, rule.flags, itself=False)
    gate = recognizer.gate if isinstance(recognizer, ExactPatterns) else None
    return Question(rule.pattern, rule.flags, gate.pattern if gate else None, FLAGS)


@lru_cache(maxsize=1024)
def _fits(borders: tuple[tuple[int, int], ...]) -> Callable[[bytes, int], Any]:
    """Return a function that checks in the image whether a match can begin at an offset of the text."""
    pairs = b"|".join(exactly(before) + exactly(after) for before, after in borders if before and after)
    return re.compile(pairs if pairs or not borders else rb"\Z.", re.DOTALL).match


@lru_cache(maxsize=1024)
def _opens(opening: str) -> Callable[[bytes, int], Any]:
    """Return a function that checks in the lower-case image whether a match can begin at an offset."""
    return re.compile(opening.encode("latin-1"), re.DOTALL).match
