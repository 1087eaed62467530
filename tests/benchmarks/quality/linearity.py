"""How detection time grows with hostile texts: twice the length must take about twice the time, up to a megabyte."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.core.contracts.engines import DetectionOptions
from tests.benchmarks.speed.detection import built
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.hostile_texts import HOSTILE

LENGTHS = (250_000, 500_000, 1_000_000)
SHOWN = 12


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the slowest texts, and the worst growth of all."""
    analyzer = built()
    lengths = (1_000, 2_000) if sizes is SMOKE else LENGTHS
    analyzer.scan(" ".join(HOSTILE[name](200) for name in HOSTILE), DetectionOptions())
    rows: list[tuple[str, ...]] = []
    worst = 0.0
    for name in list(HOSTILE)[: 3 if sizes is SMOKE else None]:
        took = [spent(analyzer, HOSTILE[name](length)) for length in lengths]
        growth = max(after / before for before, after in itertools.pairwise(took))
        worst = max(worst, growth)
        rows.append((repr(name), *(f"{seconds:.2f}" for seconds in took), f"{growth:.2f}"))
    rows.sort(key=lambda row: -float(row[-2]))
    yield table(
        f"Hostile texts of up to {lengths[-1] // 1000:,} KB, s of CPU",
        ("unit that is repeated", *(f"{length // 1000} KB" for length in lengths), "growth when doubled"),
        rows[:SHOWN],
        f"The {min(SHOWN, len(rows))} slowest of {len(rows)}; patterns and names, *standard*. "
        f"Worst growth of all: {worst:.2f} (linear is 2).",
    )


def spent(analyzer: Any, text: str) -> float:
    """Return the CPU seconds of one scan, the best of three."""
    took = []
    for _ in range(3):
        begin = time.process_time()
        analyzer.scan(text, DetectionOptions())
        took.append(time.process_time() - begin)
    return max(min(took), 1e-6)
