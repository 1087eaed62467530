"""Choosing the tools that a conversation needs: ranked, cut where relevance ends, never none by accident."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.engines import EngineReport, ToolCandidate, ToolRanker
from app.core.tool_requests import ToolRequest

SESSION: Final = "session"
"""The member of tool_filter's metadata that says whether the session's lists follow; absent where nobody asked."""

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """How far a choice goes.

    At most ``max_tools`` tools are chosen for their relevance, none below ``min_score``, none behind a fall of the
    score to less than ``gap`` of the tool before (0: no fall ends the choice), and none that takes the definitions
    beyond ``max_tokens``. ``pinned`` tools and those in use come on top of that. Where nothing is relevant and
    nothing pinned, the best ``max_tools`` are chosen all the same, unless ``allow_empty``.
    """

    max_tools: int
    min_score: float
    gap: float
    max_tokens: int | None = None
    pinned: tuple[str, ...] = ()
    allow_empty: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """``relevant`` tools with their scores, best first; ``chosen`` are those, then the pinned and used ones."""

    relevant: tuple[tuple[str, float], ...]
    chosen: tuple[str, ...]
    unknown_pinned: tuple[str, ...]
    total: int
    report: EngineReport


async def selected(
    ranker: ToolRanker,
    request: ToolRequest,
    tools: Sequence[ToolCandidate],
    wanted: Wanted,
    tokens: Callable[[int], int] = lambda _position: 0,
) -> Selection:
    """Choose among ``tools``, whose names are distinct; ``tokens`` says what the definition at a position costs."""
    names = {tool.name: position for position, tool in enumerate(tools)}
    always = [name for name in dict.fromkeys((*wanted.pinned, *request.used)) if name in names]
    unknown = tuple(name for name in dict.fromkeys(wanted.pinned) if name not in names)
    ranking = await ranker.rank(request.texts, tools)
    scores = _combined(ranking.scores, request.weights, len(tools))
    order = _order(scores, ranking.order)
    free = None if wanted.max_tokens is None else _Purse(wanted.max_tokens, tokens)
    for name in always:
        if free is not None:
            free.spend(names[name])
    relevant = _relevant(order, scores, wanted, free, {names[name] for name in always})
    if not relevant and not always and not wanted.allow_empty:
        relevant = order[: wanted.max_tools]
    shown = tuple((tools[one].name, round(scores[one], _DIGITS)) for one in relevant)
    chosen = tuple(dict.fromkeys([*(name for name, _ in shown), *always]))
    return Selection(shown, chosen, unknown, len(tools), ranking.report)


@dataclass(slots=True)
class _Purse:
    """What is left of a budget of tokens."""

    left: int
    tokens: Callable[[int], int]

    def spend(self, position: int) -> bool:
        """Pay for a definition; return False, and pay nothing, where that is too dear."""
        cost = self.tokens(position)
        if cost > self.left:
            return False
        self.left -= cost
        return True


def _relevant(
    order: Sequence[int], scores: Sequence[float], wanted: Wanted, purse: _Purse | None, always: set[int]
) -> list[int]:
    found: list[int] = []
    before = 0.0
    for position in order:
        score = scores[position]
        if len(found) >= wanted.max_tools or score < wanted.min_score or score < before * wanted.gap:
            break
        before = score
        # A definition that does not fit leaves room for smaller ones behind it; pinned ones are paid for already.
        if purse is None or position in always or purse.spend(position):
            found.append(position)
    return found


def _combined(scores: Sequence[Sequence[float]], weights: Sequence[float], count: int) -> list[float]:
    """Return one score for each tool: each text closes a part, by its weight, of what is missing to 1."""
    if not scores:
        return [0.0] * count
    total = list(scores[0])
    if len(scores) > 1:
        for row, weight in zip(scores[1:], weights[1:], strict=True):
            total = [held + weight * more * (1 - held) for held, more in zip(total, row, strict=True)]
    return total


def _order(scores: Sequence[float], orders: Sequence[Sequence[int]]) -> list[int]:
    """Return the positions by score; equal ones as the engine ranked them for the request itself."""
    first = orders[0] if orders else range(len(scores))
    return sorted(first, key=lambda position: -scores[position])
