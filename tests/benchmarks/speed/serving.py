"""Redaction as a caller feels it: how long, how much CPU, how many at once."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.speed.processes import Measured, postgres, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import mail
from tests.benchmarks.speed.wire import drive, lift_limits, modern, rest

NAME = "pii_redaction"
KIB = 1024
Make = Callable[..., bytes]


def redaction(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of one 4 KB redaction after the other, and the memory they leave."""
    with sluice(folder) as server:
        idle = server.rss_mib()
        rows = [
            (name, *asyncio.run(one_by_one(server, make, sizes, seed)))
            for seed, (name, make) in enumerate({"REST": rest, "MCP modern": modern}.items())
        ]
        after = server.rss_mib()
    yield table(
        "Redaction of a 4 KB text, one after the other",
        ("over", "p50 ms", "p99 ms", "CPU ms"),
        rows,
        "A different text and a new scope each time; detection, sealing, audit and answer. SQLite.",
    )
    yield table(
        "Memory, resident",
        ("", "server MiB", "detector and its parent MiB"),
        [("idle", idle[0], sum(idle[1:])), ("after the redactions", after[0], sum(after[1:]))],
        "Pages that processes share are counted in each.",
    )


async def one_by_one(server: Measured, make: Make, sizes: Sizes, seed: int) -> tuple[float, float, float]:
    """Return p50, p99 and CPU per redaction, in milliseconds."""
    await lift_limits(server)
    requests = texts(server, make, sizes.redactions, seed, 4 * KIB)
    await drive(server, texts(server, make, 3, seed + 7, 4 * KIB), 1)
    before = server.cpu_s()
    took = await drive(server, requests, 1)
    cpu = (server.cpu_s() - before) / len(took)
    return percentile(took, 0.5) * 1e3, percentile(took, 0.99) * 1e3, cpu * 1e3


def texts(server: Measured, make: Make, count: int, seed: int, size: int) -> list[bytes]:
    """Return requests with a text of their own each."""
    return [
        make(server, NAME, [{"type": "text", "text": mail(size, seed * 10_000 + i)}]) for i in range(count)
    ]


def clients(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of many clients at once, each call with a vault write, on both databases."""
    rows = []
    with ExitStack() as stack:
        for engine in ("SQLite", "PostgreSQL"):
            url = stack.enter_context(postgres(folder)) if engine == "PostgreSQL" else None
            server = stack.enter_context(sluice(folder, url))
            rows.append((engine, *asyncio.run(crowd(server, sizes))))
    yield table(
        f"{sizes.clients} clients at once, redaction of a short text with a new value in each",
        ("database", "calls/s", "p50 ms", "p99 ms", "CPU µs a call"),
        rows,
        "Over REST, one server process and one detector process on the machine that also runs the clients and the "
        "database; CPU of the service without the database.",
    )


async def crowd(server: Measured, sizes: Sizes) -> Sequence[float]:
    """Return calls a second, p50 and p99 (ms), CPU a call (µs)."""
    await lift_limits(server)

    def call(i: int) -> bytes:
        text = f"Please answer customer{i}@example.com before noon."
        return rest(server, NAME, [{"type": "text", "text": text}], scope=f"talk-{i % sizes.clients}")

    await drive(server, [call(-1 - i) for i in range(sizes.clients)], sizes.clients)
    count = sizes.calls
    before, begin = server.cpu_s(), time.perf_counter()
    took = await drive(server, [call(i) for i in range(count)], sizes.clients)
    seconds, cpu = time.perf_counter() - begin, server.cpu_s() - before
    return count / seconds, percentile(took, 0.5) * 1e3, percentile(took, 0.99) * 1e3, cpu / count * 1e6
