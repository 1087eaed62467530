"""Draw the sample of mutants: shares by room, and the same choice for the same seed."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from tests.mutation.sites import Mutant, Site


def shares(lines: Mapping[str, int], size: int, least: float) -> dict[str, int]:
    """Divide ``size`` mutants among rooms by their lines of logic; none gets less than ``least`` of ``size``.

    A room never gets more mutants than it has lines, as a line gives one mutant at most.
    """
    floor = round(size * least)
    divided: dict[str, int] = {}
    for room in sorted(lines, key=lambda room: (lines[room], room)):  # smallest first: they take the least
        left = size - sum(divided.values())
        rest = sum(count for other, count in lines.items() if other not in divided)
        fair = round(left * lines[room] / rest) if rest else 0
        divided[room] = min(max(fair, floor), lines[room], left)
    return divided


def draw(sites: Sequence[Site], count: int, seed: int, make: Callable[[Site], Mutant | None]) -> list[Mutant]:
    """Return ``count`` mutants of one room, at most one of a line.

    Lines and the mutants of a line are ordered by a hash of the seed and their text, so a change elsewhere in the
    room, or a move of the module, leaves the choice of a line as it was.
    """
    by_line: dict[tuple[str, str, str, int], list[Site]] = defaultdict(list)
    for site in sites:
        by_line[str(site.path), site.function, site.text, site.repeat].append(site)
    chosen: list[Mutant] = []
    for _path, *line in sorted(by_line, key=lambda line: (order(seed, *line[1:]), line)):
        if len(chosen) == count:
            break
        here = by_line[_path, line[0], line[1], line[2]]
        chosen += first_mutant(here, seed, make)
    return chosen


def first_mutant(sites: Sequence[Site], seed: int, make: Callable[[Site], Mutant | None]) -> list[Mutant]:
    """Return the first mutant of a line that can be made, in the order of the seed, or nothing."""
    places: dict[str, int] = defaultdict(int)
    ranked = []
    for site in sites:
        places[site.operator] += 1
        ranked.append(
            (order(seed, site.function, site.text, site.repeat, site.operator, places[site.operator]), site)
        )
    for _rank, site in sorted(ranked, key=lambda pair: pair[0]):
        mutant = make(site)
        if mutant is not None:
            return [mutant]
    return []


def order(*parts: object) -> str:
    """Return a key that sorts things in an order that only their text and the seed decide."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
