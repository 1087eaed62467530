"""Metrics of all workers of one host: each keeps its numbers in files of one folder, and any of them shows the sums.

A worker has a place, a number that the one that replaces it takes over: counters go on, and the folder never grows.
"""

import os
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, values
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where the library looks for the folder."""


def share(folder: Path, place: int) -> None:
    """Keep all metrics that this process makes from now on in ``folder``."""
    os.environ[_FOLDER] = str(folder)
    # The library would name files by process ids, of which there are ever new ones.
    values.ValueClass = values.MultiProcessValue(lambda: place)  # type: ignore[no-untyped-call]


def shared_folder() -> Path | None:
    """Return the folder in which this process keeps its metrics, None where it keeps them to itself."""
    folder = os.environ.get(_FOLDER)
    return Path(folder) if folder and values.ValueClass is not values.MutexValue else None


def retire(folder: Path, place: int) -> None:
    """Forget what only a live worker has, such as its memory; what it counted stays."""
    mark_process_dead(place, str(folder))  # type: ignore[no-untyped-call]


def summed(folder: Path) -> bytes:
    """Return the metrics of all workers in Prometheus' text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    return generate_latest(registry)
