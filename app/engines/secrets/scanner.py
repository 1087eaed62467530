"""The embedded scanner: one pass for keywords, then only the rules they trigger, each in a bounded window."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import Any, Final

from app.core.contracts.engines import EngineReport, SecretFindings, SecretOptions, Span
from app.core.offload import off_loop
from app.engines.secrets.commands import COMMANDS
from app.engines.secrets.loose import LOOSE
from app.engines.secrets.rules import FORMATS
from app.engines.secrets.said import TOLD, typed
from app.engines.secrets.seeds import SEED_PHRASES, seed_spots
from app.engines.secrets.spotting import FormatFinder, SecretRule, Spot
from app.engines.secrets.structures import STRUCTURES
from app.engines.secrets.views import BETWEEN, changed_parts, is_decoded, is_joined, places_of_views, views

NAME: Final = "embedded-secrets"
PASSWORD: Final = "SECRET_PASSWORD"  # noqa: S105 - a label
_GUESSED: Final = 0.6
"""The score of a finding that depends on a name alone."""


class RuleScanner:
    """Finds credentials by rules alone; it never sends anything anywhere to test whether a key works."""

    def __init__(self) -> None:
        self._rules: tuple[SecretRule, ...] = (
            *(SecretRule(form.provider, form.gate, FormatFinder(form)) for form in FORMATS),
            *LOOSE,
            *STRUCTURES,
            *COMMANDS,
            *TOLD,
            SEED_PHRASES,
        )
        self._automaton: Any = None
        self._lock = Lock()

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        """Scan each text, off the event loop where they are long."""
        spans = await off_loop(sum(map(len, texts)), self._scan, texts, options)
        return SecretFindings(spans, self.report)

    @cached_property
    def report(self) -> EngineReport:
        """Return the report of this engine; the version is a digest of the rules."""
        formats = [f"{form.provider} {form.template} {form.name} {form.keyword}" for form in FORMATS]
        gates = [f"{rule.provider} {rule.gate}" for rule in self._rules]
        return EngineReport(
            NAME, hashlib.sha256("\n".join(sorted(formats + gates)).encode()).hexdigest()[:12]
        )

    def providers(self) -> frozenset[str]:
        """Return every provider that a rule knows."""
        return frozenset(rule.provider for rule in self._rules)

    def _scan(self, texts: Sequence[str], options: SecretOptions) -> list[list[Span]]:
        allowed = frozenset(options.allow_list)
        wanted = _wanted(self._rules, options.providers, options.entropy)
        spots = self._spots_of(texts, wanted)
        for place in places_of_views(texts):
            spots[place] += self._spots_of_views(texts[place], wanted, allowed)
        return [
            self._spans(text, spots_of_text, allowed) if spots_of_text else []
            for text, spots_of_text in zip(texts, spots, strict=True)
        ]

    @staticmethod
    def _spans(text: str, spots: Iterable[Spot], allowed: frozenset[str]) -> list[Span]:
        return [
            Span(spot.start, spot.end, spot.label, spot.score)
            for spot in merged(spots)
            if text[spot.start : spot.end] not in allowed
        ]

    def _spots_of_views(
        self, text: str, wanted: frozenset[int] | None, allowed: frozenset[str]
    ) -> Iterator[Spot]:
        """Yield what the views of ``text`` show, at its place in the text."""
        for view in views(text):
            parts = changed_parts(view)
            spots_of_parts = self._spots_of([view.text[low:high] for low, high in parts], wanted)
            for (low, _), spots in zip(parts, spots_of_parts, strict=True):
                for spot in spots:
                    start, end = low + spot.start, low + spot.end
                    if spot.score <= _GUESSED and is_decoded(view, start, end):
                        continue
                    if spot.label == PASSWORD and is_joined(view, start, end):
                        continue
                    if view.text[start:end] not in allowed:
                        yield Spot(*view.original_span(start, end), spot.label, spot.score)

    def _spots_of(self, texts: Sequence[str], wanted: frozenset[int] | None) -> list[list[Spot]]:
        """Return the findings in each of ``texts``; one search for keywords serves all of them."""
        # Use one byte for each character, so that offsets stay right; credentials are always ASCII.
        together = typed(BETWEEN.join(texts)).encode("ascii", "replace")
        spots: list[list[Spot]] = [[] for _ in texts]
        rules, number, begin, end, data = self._rules, -1, 0, -1, b""
        done: dict[int, int] = {}
        for last, (length, triggered) in self._gate().iter(together.lower().decode("ascii")):
            if last >= end:
                while last >= end:
                    number += 1
                    begin, end = end + 1, end + 1 + len(texts[number])
                data, done = together[begin:end], {}
            at = last + 1 - length - begin
            for rule in triggered:
                if (wanted is not None and rule not in wanted) or at < done.get(rule, 0):
                    continue
                spot = rules[rule].find(data, at)
                if spot is not None:
                    spots[number].append(spot)
                    done[rule] = spot.end
        if wanted is None or len(rules) - 1 in wanted:
            _add_seeds(together, texts, spots)
        return spots

    def _gate(self) -> Any:
        if self._automaton is None:
            with self._lock:
                if self._automaton is None:
                    self._automaton = _automaton(self._rules)
        return self._automaton


def _add_seeds(together: bytes, texts: Sequence[str], spots: list[list[Spot]]) -> None:
    """Add the seed phrases of ``together``, which holds ``texts`` one after the other."""
    begins: list[int] = []
    for spot in seed_spots(together):
        if not begins:
            begins = list(accumulate((len(text) + len(BETWEEN) for text in texts), initial=0))
        number = bisect_right(begins, spot.start) - 1
        begin = begins[number]
        spots[number].append(Spot(spot.start - begin, spot.end - begin, spot.label, spot.score))


def _automaton(rules: Iterable[SecretRule]) -> Any:
    import ahocorasick  # noqa: PLC0415 - loaded on the first scan, so start-up does not pay for it

    by_keyword: dict[str, list[int]] = {}
    for number, rule in enumerate(rules):
        by_keyword.setdefault(rule.gate, []).append(number)
    automaton = ahocorasick.Automaton()
    for keyword, numbers in by_keyword.items():
        automaton.add_word(keyword, (len(keyword), tuple(numbers)))
    automaton.make_automaton()
    return automaton


def _wanted(
    rules: tuple[SecretRule, ...], providers: frozenset[str] | None, entropy: bool
) -> frozenset[int] | None:
    if providers is None and entropy:
        return None
    return frozenset(
        number
        for number, rule in enumerate(rules)
        if (providers is None or rule.provider in providers) and (entropy or not rule.entropy)
    )


def merged(spots: Iterable[Spot]) -> list[Spot]:
    """Merge every chain of overlapping spots into one, with the label of its surest, then longest member."""
    chains: list[tuple[Spot, Spot]] = []
    for spot in sorted(spots, key=lambda spot: (spot.start, -spot.end)):
        if chains and spot.start < chains[-1][0].end:
            whole, best = chains[-1]
            surer = max(best, spot, key=lambda spot: (spot.score, spot.end - spot.start))
            chains[-1] = Spot(whole.start, max(whole.end, spot.end), "", 0.0), surer
        else:
            chains.append((spot, spot))
    return [Spot(whole.start, whole.end, best.label, best.score) for whole, best in chains]
