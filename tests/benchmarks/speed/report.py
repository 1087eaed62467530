"""Tables in Markdown, as they stand in docs/figures.md."""

from collections.abc import Sequence
from typing import Any


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> str:
    """Return a titled table; numbers are written with three significant digits."""
    lines = [f"### {title}", "", f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    lines += [f"| {' | '.join(written(cell) for cell in row)} |" for row in rows]
    return "\n".join([*lines, *(["", note] if note else [])])


def written(cell: Any) -> str:
    """Return a cell: texts as they are, numbers without digits that mean nothing."""
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else str(cell)
    if cell >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.1f}" if cell >= 10 else f"{cell:.2f}"


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which ``part`` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
