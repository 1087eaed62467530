"""How much is measured: enough for figures that repeat, or just enough to see that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Counts of one run; ``rounds`` are interleaved and the median is reported."""

    rounds: int
    calls: int
    redactions: int
    clients: int
    writes: int
    restorations: int
    handles: int
    starts: int
    kilobytes: int
    tokens: int
    events: int
    chunks: int
    scopes: int


FULL = Sizes(
    rounds=5,
    calls=2_000,
    redactions=300,
    clients=32,
    writes=6_000,
    restorations=20,
    handles=1_000,
    starts=5,
    kilobytes=200,
    tokens=50_000,
    events=100_000,
    chunks=2_000,
    scopes=100_000,
)
SMOKE = Sizes(
    rounds=1,
    calls=20,
    redactions=3,
    clients=4,
    writes=40,
    restorations=1,
    handles=20,
    starts=1,
    kilobytes=4,
    tokens=200,
    events=20,
    chunks=5,
    scopes=1_000,
)
