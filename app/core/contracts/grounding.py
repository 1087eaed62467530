"""What is found in an answer by rule: links, code, packages, quotes, numbers, names and handles without support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Severity = Literal["low", "medium", "high"]

RULES: Final = ("urls", "code", "packages", "quotes", "numbers", "names", "handles")
"""The checks that need no model, in the order in which their findings are told apart."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where something stands in the sources: which of them, and the offsets ``[start, end)`` in its text."""

    source: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """Something in an answer that its sources do not bear out.

    ``kind`` is ``url``, ``code``, ``package``, ``quote``, ``number``, ``name`` or ``handle``; ``[start, end)`` are
    offsets in the answer. ``score`` is how likely it is made up, 0..1. ``place`` is what it was held against, ``fix``
    what may stand there instead without a human's judgement. ``message`` never holds content.
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
    """What to check; ``packages`` are the names that exist, by index (``pypi``, ``npm``), beside the operator's."""

    checks: frozenset[str] = frozenset(RULES)
    packages: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statements:
    """What an answer states: the offsets of its sentences.

    ``prose`` is its text with code blanked out, questions and remarks included; None where it is code and courtesies.
    """

    sentences: Sequence[tuple[int, int]]
    prose: str | None


class AnswerChecker(Protocol):
    """Checks what can be checked by rule; ``sources`` are all texts that count as known."""

    async def statements(self, answers: Sequence[str]) -> Sequence[Statements]:
        """Return what each of ``answers`` states: no code, no questions, no headings, no courtesies."""

    def links(self, answer: str) -> Sequence[tuple[int, int]]:
        """Return where the links of ``answer`` stand."""

    async def nearest(self, sentences: Sequence[str], sources: Sequence[str]) -> Sequence[SourcePlace | None]:
        """Return for each of ``sentences`` which sentence of the sources is nearest to it."""

    async def check(
        self, answers: Sequence[str], sources: Sequence[str], options: CheckOptions
    ) -> Sequence[Sequence[AnswerFinding]]:
        """Return the findings of each of ``answers``, in the order of the text."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """What a probe saw: whether something answers at a URL; ``reachable`` None: it could not be told."""

    url: str
    reachable: bool | None


class LinkProbe(Protocol):
    """Asks the network whether something answers, as far as the operator allows."""

    async def probe(self, urls: Sequence[str]) -> Sequence[LinkState]:
        """Return the state of each URL; what may not be asked, or is not answered in time, is None."""
