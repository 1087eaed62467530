"""Choosing the tools that a conversation needs: ranked, cut where relevance ends, never none by accident."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.contracts.engines import EngineReport, ToolCandidate, ToolRanker, ToolRanking
from app.core.tools.requests import ToolRequest

SESSION: Final = "session"
"""The member of tool_filter's metadata that says whether the session's lists follow; absent where nobody asked."""

_DIGITS: Final = 4
_MARGIN: Final = 4
_LEAST: Final = 100


@dataclass(frozen=True, slots=True)
class SelectionLimits:
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
    wanted: SelectionLimits,
    tokens: Callable[[int], int] = lambda _position: 0,
) -> Selection:
    """Choose among ``tools``, whose names are distinct; ``tokens`` says what the definition at a position costs."""
    kept = dict.fromkeys((*wanted.pinned, *request.used))
    names = {tool.name: position for position, tool in enumerate(tools) if tool.name in kept} if kept else {}
    always = [name for name in kept if name in names]
    unknown = tuple(name for name in dict.fromkeys(wanted.pinned) if name not in names)
    ranking = await ranker.rank(request.texts, tools)
    order, scores = _ordered(ranking, request.weights, len(tools), wanted.max_tools)
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
    order: Sequence[int],
    scores: Mapping[int, float],
    wanted: SelectionLimits,
    purse: _Purse | None,
    always: set[int],
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


def _ordered(
    ranking: ToolRanking, weights: Sequence[float], count: int, wanted: int
) -> tuple[list[int], Mapping[int, float]]:
    """Return the best positions and their scores: each text closes a part, by its weight, of what is missing to 1.

    Looked at are the best of each text, many more than wanted: of thousands the rest would only take time. Equal
    ones stand as the engine ranked them for the request itself.
    """
    if not ranking.order:
        return list(range(count)), dict.fromkeys(range(count), 0.0)
    looked_at = _MARGIN * wanted + _LEAST
    found = dict.fromkeys(position for order in ranking.order for position in order[:looked_at])
    scores = dict.fromkeys(found, 0.0)
    for row, weight in zip(ranking.scores, weights, strict=True):
        for position, held in scores.items():
            scores[position] = held + weight * row[position] * (1 - held)
    return sorted(found, key=lambda position: -scores[position]), scores
