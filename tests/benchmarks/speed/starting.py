"""How long a start takes until /readyz says ready."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from app.core.access import ApiKey
from tests.benchmarks.speed.processes import sluice
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of start times."""
    key, url = str(ApiKey.generate()), f"sqlite:///{folder}/starting.db"
    with sluice(folder, url, key) as server:
        first = server.ready_s
    later = []
    for _ in range(sizes.starts):
        with sluice(folder, url, key) as server:
            later.append(server.ready_s)
    yield table(
        "Start until `/readyz` answers 200",
        ("start", "s"),
        [
            ("first, with migration and keys", first),
            ("later, median", statistics.median(later)),
            ("later, longest", max(later)),
        ],
        "The detector is loaded and warm by then. SQLite.",
    )
