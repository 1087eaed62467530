"""Pictures of curves, as SVG that needs nothing else: lines in a square of shares, with a legend."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_SIDE: Final = 300
_LEFT: Final = 60
_TOP: Final = 20
_LEGEND: Final = 250
_COLOURS: Final = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b1fa2", "#8d6e00", "#5d4037")
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_MOST: Final = 200
"""Most points of a line; more cannot be seen."""

Points = Sequence[tuple[float, float]]


class Picture(NamedTuple):
    """A section of the page, and the file that it shows."""

    section: str
    file: str
    svg: str


def picture(file: str, title: str, axes: tuple[str, str], lines: Mapping[str, Points], note: str) -> Picture:
    """Return the section ``title`` with ``lines``, each points (x, y) between 0 and 1."""
    across, up = axes
    section = f"### {title}\n\n![{up} over {across.lower()}]({file})\n\n{note}"
    return Picture(section, file, _svg(title, axes, lines))


def found_and_flagged(harmful: Sequence[float], harmless: Sequence[float]) -> list[tuple[float, float]]:
    """Return, for every threshold, the shares of ``harmless`` and of ``harmful`` whose score reaches it."""
    bad, good = np.sort(np.asarray(harmful)), np.sort(np.asarray(harmless))
    marks = np.unique(np.concatenate([bad, good]))[::-1]
    points = [(_reaching(good, mark), _reaching(bad, mark)) for mark in marks]
    step = max(1, len(points) // _MOST)
    return [(0.0, 0.0), *points[::step], points[-1]]


def _reaching(ordered: NDArray[np.float64], mark: float) -> float:
    return float(len(ordered) - np.searchsorted(ordered, mark)) / max(1, len(ordered))


def _svg(title: str, axes: tuple[str, str], lines: Mapping[str, Points]) -> str:
    width, height = _LEFT + _SIDE + 20 + _LEGEND, _TOP + _SIDE + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for tick in _TICKS:
        x, y = _place(tick, tick)
        parts += [
            f'<path d="M{x} {_TOP}V{_TOP + _SIDE}M{_LEFT} {y}H{_LEFT + _SIDE}" stroke="#ddd"/>',
            f'<text x="{x}" y="{_TOP + _SIDE + 16}" text-anchor="middle">{tick:g}</text>',
            f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>',
        ]
    across, up = axes
    parts += [
        f'<text x="{_LEFT + _SIDE // 2}" y="{height - 12}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(16 {_TOP + _SIDE // 2}) rotate(-90)" text-anchor="middle">{escape(up)}</text>',
    ]
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = "L".join("{} {}".format(*_place(x, y)) for x, y in points)
        row = _TOP + 12 + 20 * number
        parts += [
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<path d="M{_LEFT + _SIDE + 20} {row - 4}h18" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{_LEFT + _SIDE + 44}" y="{row}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _place(x: float, y: float) -> tuple[float, float]:
    return round(_LEFT + _SIDE * x, 1), round(_TOP + _SIDE * (1 - y), 1)
