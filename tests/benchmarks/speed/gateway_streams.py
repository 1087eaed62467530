"""Many streams at once through one process: what it costs to open and to serve them, memory, and who waits."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from tests.benchmarks.speed.gateway_client import Streamed, Through, stream
from tests.benchmarks.speed.processes import Measured
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes

PAUSE_S = 0.1


@dataclass
class _Opening:
    """Counts streams that have begun, until all have; ``cpu_s`` and ``at`` are those of that moment."""

    server: Measured
    width: int
    begun: int = 0
    cpu_s: float = field(default=0.0, init=False)
    at: float = field(default=0.0, init=False)

    def note(self) -> None:
        self.begun += 1
        if self.begun == self.width:
            self.cpu_s, self.at = self.server.cpu_s(), time.monotonic()


async def table_of(cases: Mapping[str, Through], sizes: Sizes) -> str:
    """Return the table of many streams that run at once."""
    width, events = (1_000, 20) if sizes.rounds > 1 else (8, 5)
    return table(
        f"{width:,} streams at once on one process",
        (
            *("through", "refused", "idle MiB", "above it", "s to open all", "CPU ms to open one"),
            *(
                f"CPU ms for its {events} events",
                "s to the name p50",
                "slowest",
                "s to the end p50",
                "slowest",
            ),
        ),
        [(name, *await _measured(through, width, events)) for name, through in cases.items()],
        f"Every stream waits until all are open, then has {events} events in {events * PAUSE_S:.1f} s. The CPU of its "
        "events includes the records before the first restored name and at the end. Seconds count from when all are "
        "open. Memory of all processes of the server together; client, provider and server share the cores.",
    )


async def _measured(through: Through, width: int, events: int) -> tuple[float | str, ...]:
    server = through.server
    idle, done = sum(server.rss_mib()), asyncio.Event()
    peak = [idle]
    sampling = asyncio.create_task(_sampled(server, peak, done))
    opening = _Opening(server, width)
    before, begin = server.cpu_s(), time.monotonic()
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        text = f"gate={width} events={events} pause={PAUSE_S}"
        jobs = [stream(session, through, f"{text} Number {number}.", opening.note) for number in range(width)]
        ended = await asyncio.gather(*jobs, return_exceptions=True)
    done.set()
    await sampling
    streams = [each for each in ended if isinstance(each, Streamed)]
    if not streams:
        return width, idle, max(peak) - idle, *("none ended",) * 7
    if not opening.at:  # some were refused
        opening.at, opening.cpu_s = min(each.first for each in streams), server.cpu_s()
    names = [each.first - opening.at for each in streams]
    ends = [each.end - opening.at for each in streams]
    return (
        *(width - len(streams), idle, max(peak) - idle, opening.at - begin),
        (opening.cpu_s - before) / width * 1000,
        (server.cpu_s() - opening.cpu_s) / len(streams) * 1000,
        *(percentile(names, 0.5), max(names), percentile(ends, 0.5), max(ends)),
    )


async def _sampled(server: Measured, peak: list[float], done: asyncio.Event) -> None:
    while not done.is_set():
        peak.append(sum(server.rss_mib()))
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), 0.2)
