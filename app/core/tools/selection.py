"""Choose the tools that a conversation needs: rank them, cut where relevance ends, but do not end with none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.contracts.engines import EngineReport, ToolCandidate, ToolRanker, ToolRanking
from app.core.tools.requests import ToolRequest

SESSION: Final = "session"
"""Member of tool_filter's metadata: whether the session's tool lists follow the choice; absent if not requested."""

_SCORE_DIGITS: Final = 4
_CANDIDATES_PER_TOOL: Final = 4
_MIN_CANDIDATES: Final = 100


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """The limits of a choice.

    At most ``max_tools`` tools are chosen for their relevance: none with a score below ``min_score``, none after the
    score drops below ``gap`` times the previous one (0: no drop ends the choice), and none whose definition would
    exceed ``max_tokens`` in total. ``pinned`` and used tools are added. If nothing is relevant and nothing is pinned
    or used, the best ``max_tools`` are chosen anyway, unless ``allow_empty``.
    """

    max_tools: int
    min_score: float
    gap: float
    max_tokens: int | None = None
    pinned: tuple[str, ...] = ()
    allow_empty: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """``relevant`` tools with their scores, best first; ``chosen`` are these, then the pinned and used ones."""

    relevant: tuple[tuple[str, float], ...]
    chosen: tuple[str, ...]
    unknown_pinned: tuple[str, ...]
    total: int
    report: EngineReport


async def selected(
    ranker: ToolRanker,
    request: ToolRequest,
    tools: Sequence[ToolCandidate],
    limits: SelectionLimits,
    tokens: Callable[[int], int] = lambda _position: 0,
) -> Selection:
    """Choose among ``tools``, whose names are distinct; ``tokens`` returns the cost of the definition at a position."""
    pinned_or_used = dict.fromkeys((*limits.pinned, *request.used))
    names = (
        {tool.name: position for position, tool in enumerate(tools) if tool.name in pinned_or_used}
        if pinned_or_used
        else {}
    )
    always = [name for name in pinned_or_used if name in names]
    unknown = tuple(name for name in dict.fromkeys(limits.pinned) if name not in names)
    ranking = await ranker.rank(request.texts, tools)
    order, scores = _rank_candidates(ranking, request.weights, len(tools), limits.max_tools)
    budget = None if limits.max_tokens is None else _TokenBudget(limits.max_tokens, tokens)
    for name in always:
        if budget is not None:
            budget.try_spend(names[name])
    relevant = _relevant(order, scores, limits, budget, {names[name] for name in always})
    if not relevant and not always and not limits.allow_empty:
        relevant = order[: limits.max_tools]
    scored = tuple((tools[position].name, round(scores[position], _SCORE_DIGITS)) for position in relevant)
    chosen = tuple(dict.fromkeys([*(name for name, _ in scored), *always]))
    return Selection(scored, chosen, unknown, len(tools), ranking.report)


@dataclass(slots=True)
class _TokenBudget:
    """The remaining tokens of a budget."""

    remaining: int
    tokens: Callable[[int], int]

    def try_spend(self, position: int) -> bool:
        """Deduct the cost of a definition and return True, or return False if the budget is too small."""
        cost = self.tokens(position)
        if cost > self.remaining:
            return False
        self.remaining -= cost
        return True


def _relevant(
    order: Sequence[int],
    scores: Mapping[int, float],
    limits: SelectionLimits,
    budget: _TokenBudget | None,
    always: set[int],
) -> list[int]:
    positions: list[int] = []
    previous = 0.0
    for position in order:
        score = scores[position]
        if len(positions) >= limits.max_tools or score < limits.min_score or score < previous * limits.gap:
            break
        previous = score
        # A definition that does not fit leaves room for smaller ones after it; pinned ones are already deducted.
        if budget is None or position in always or budget.try_spend(position):
            positions.append(position)
    return positions


def _rank_candidates(
    ranking: ToolRanking, weights: Sequence[float], count: int, max_tools: int
) -> tuple[list[int], Mapping[int, float]]:
    """Return the best positions and their scores: each text adds, by its weight, a part of what is missing to 1.

    Only the best of each text are considered, many more than ``max_tools``, since the rest of thousands would only
    take time. Equal scores keep the engine's order for the request itself.
    """
    if not ranking.order:
        return list(range(count)), dict.fromkeys(range(count), 0.0)
    candidate_count = _CANDIDATES_PER_TOOL * max_tools + _MIN_CANDIDATES
    candidates = dict.fromkeys(position for order in ranking.order for position in order[:candidate_count])
    scores = dict.fromkeys(candidates, 0.0)
    for row, weight in zip(ranking.scores, weights, strict=True):
        for position, score in scores.items():
            scores[position] = score + weight * row[position] * (1 - score)
    return sorted(candidates, key=lambda position: -scores[position]), scores
