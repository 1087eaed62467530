"""Contracts for rule-based checks of answers: links, code, packages, quotes, numbers, names and contradictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Severity = Literal["low", "medium", "high"]

RULES: Final = ("urls", "code", "packages", "quotes", "numbers", "names", "handles", "contradictions")
"""The checks that need no model, in the order in which overlapping findings are resolved."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in the sources: the index of the source, and the offsets ``[start, end)`` in its text."""

    source: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """Something in an answer that its sources do not support.

    ``kind`` is ``url``, ``code``, ``package``, ``quote``, ``number``, ``name``, ``handle`` or
    ``contradiction``; ``[start, end)`` are
    offsets in the answer. ``score`` is the likelihood that it is invented, 0..1. ``place`` is the place in the sources
    it was compared with, ``fix`` a replacement that needs no human judgement. ``message`` never includes content.
    """

    kind: str
    start: int
    end: int
    severity: Severity
    score: float
    message: str
    place: SourcePlace | None = None
    fix: str | None = None
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to check; ``packages`` are existing names by index (``pypi``, ``npm``), in addition to the operator's."""

    checks: frozenset[str] = frozenset(RULES)
    packages: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statements:
    """What an answer states: the offsets ``[start, end)`` of its sentences.

    ``prose`` is its text with code blanked out but with questions and remarks; None if it is only code and courtesies.
    """

    sentences: Sequence[tuple[int, int]]
    prose: str | None


class AnswerChecker(Protocol):
    """Check answers by rule; ``sources`` are all texts that count as known."""

    async def statements(self, answers: Sequence[str]) -> Sequence[Statements]:
        """Return the statements of each answer, without code, questions, headings and courtesies."""

    def links(self, answer: str) -> Sequence[tuple[int, int]]:
        """Return the offsets ``[start, end)`` of the links in ``answer``."""

    async def nearest(self, sentences: Sequence[str], sources: Sequence[str]) -> Sequence[SourcePlace | None]:
        """Return for each of ``sentences`` the place of the nearest sentence in the sources, None without one."""

    async def check(
        self, answers: Sequence[str], sources: Sequence[str], options: CheckOptions
    ) -> Sequence[Sequence[AnswerFinding]]:
        """Return the findings of each of ``answers``, in the order of the text."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """The result of a probe: whether something answers at a URL; ``reachable`` is None if that is unknown."""

    url: str
    reachable: bool | None


class LinkProbe(Protocol):
    """Probe URLs over the network, as far as the operator allows."""

    async def probe(self, urls: Sequence[str]) -> Sequence[LinkState]:
        """Return the state of each URL; ``reachable`` is None if a probe is not allowed or not answered in time."""
