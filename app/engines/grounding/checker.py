"""Run all rule-based checks over an answer, and return its statements."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from app.core.content.handles import find_handles
from app.core.contracts.grounding import AnswerFinding, CheckOptions, SourcePlace, Statements
from app.core.offload import off_loop
from app.engines.grounding.code import check_code
from app.engines.grounding.contradictions.finding import check_contradictions
from app.engines.grounding.fences import Layout, blanked
from app.engines.grounding.handles import check_handles
from app.engines.grounding.links import check_links, links_in
from app.engines.grounding.names import check_names
from app.engines.grounding.numbers import check_numbers
from app.engines.grounding.packages import check_packages, indexed
from app.engines.grounding.quotes import check_quotes
from app.engines.grounding.sources import Sources
from app.engines.grounding.statements import nearest_of, statements_of

Index = Mapping[str, frozenset[str]]


def no_packages() -> Index:
    """Return no index."""
    return {}


class RuleChecker:
    """Checks answers by rule; ``packages`` returns the operator's indexes and is called on first use."""

    def __init__(self, packages: Callable[[], Index] = no_packages) -> None:
        self._read_packages = packages

    @cached_property
    def _packages(self) -> dict[str, frozenset[str]]:
        return indexed(self._read_packages())

    async def statements(self, answers: Sequence[str]) -> Sequence[Statements]:
        """Return what each of ``answers`` states."""
        return await off_loop(_WEIGHT * _size(answers), lambda: [statements_of(answer) for answer in answers])

    def links(self, answer: str) -> Sequence[tuple[int, int]]:
        """Return the start and end of each link of ``answer``."""
        return [(link.start, link.end) for link in links_in(answer)]

    async def nearest(self, sentences: Sequence[str], sources: Sequence[str]) -> Sequence[SourcePlace | None]:
        """Return the place of the sources that is nearest to each of ``sentences``."""
        return await off_loop(_WEIGHT * _size(sentences, sources), nearest_of, sentences, sources)

    async def check(
        self, answers: Sequence[str], sources: Sequence[str], options: CheckOptions
    ) -> Sequence[Sequence[AnswerFinding]]:
        """Return the findings in each of ``answers``, in the order of the text."""
        return await off_loop(_WEIGHT * _size(answers, sources), self._check, answers, sources, options)

    def _check(
        self, answers: Sequence[str], texts: Sequence[str], options: CheckOptions
    ) -> list[list[AnswerFinding]]:
        sources = Sources(texts)
        packages = {**self._packages, **indexed(options.packages)} if "packages" in options.checks else {}
        checks = [
            check for name, check in _CHECKS.items() if name in options.checks and (texts or name in _ALONE)
        ]
        made = []
        for answer in answers:
            task = _Task(answer, sources)
            findings = [finding for check in checks for finding in check(task, packages)]
            made.append(sorted(findings, key=lambda finding: (finding.start, finding.end, finding.kind)))
        return made


class _Task:
    """One answer and the common sources, with the views of it that several checks need."""

    def __init__(self, answer: str, sources: Sources) -> None:
        self.answer = answer
        self.layout = Layout.of(answer)
        self.sources = sources

    @cached_property
    def prose(self) -> str:
        """Return the answer with code, links and handles blanked out; offsets stay the same."""
        spans = [(link.start, link.end) for link in links_in(self.answer)]
        spans += [(handle.start, handle.end) for handle in find_handles(self.answer)]
        return blanked(self.layout.masked, sorted(spans))

    @cached_property
    def statements(self) -> Statements:
        """Return what the answer states."""
        return statements_of(self.answer)


_CHECKS: Final[dict[str, Callable[[_Task, Index], Iterator[AnswerFinding]]]] = {
    "urls": lambda task, _: check_links(task.answer, task.sources.links, task.sources.may_search),
    "code": lambda task, _: check_code(task.answer, task.layout.blocks),
    "packages": lambda task, packages: check_packages(task.layout, packages, lambda: task.sources.words),
    "quotes": lambda task, _: check_quotes(task.layout.masked, task.sources),
    "numbers": lambda task, _: check_numbers(task.prose, task.sources.quantities),
    "names": lambda task, _: check_names(task.prose, task.sources),
    "contradictions": lambda task, _: check_contradictions(
        task.prose, task.statements.sentences, task.sources.sentences
    ),
    "handles": lambda task, _: check_handles(task.answer, task.sources),
}
_ALONE: Final = frozenset({"code", "packages"})
"""Checks that need no sources."""

_WEIGHT: Final = 4
"""Checking takes this many times as long as the scans that `off_loop` was measured with."""


def _size(*texts: Sequence[str]) -> int:
    return sum(len(text) for some in texts for text in some)
