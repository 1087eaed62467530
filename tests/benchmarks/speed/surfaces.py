"""What one call costs the server: a bare handler, REST, MCP modern, MCP handshake, in interleaved rounds."""

import asyncio
import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.speed.processes import Measured, bare, sluice
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.wire import drive, handshaken, lift_limits, modern, open_session, request, rest

NAME = "timestamp_injector"
CONTEXT = [
    {
        "type": "text",
        "text": "Summarize the notes of the last three meetings and list what is still open. " * 4,
    }
]
CLIENTS = 32


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of CPU time per request."""
    with bare() as floor, sluice(folder) as service:
        figures = asyncio.run(measured(floor, service, sizes))
    lowest = figures["bare Starlette handler"]
    rows = [(name, cpu, f"{cpu / lowest:.1f}x") for name, cpu in figures.items()]
    yield table(
        "CPU time of the server per `middleware/invoke` of `timestamp_injector`",
        ("over", "µs", "of bare"),
        rows,
        f"300 bytes of text, {CLIENTS} connections, SQLite; all but the first authenticate, apply the policy and store "
        "an audit event before they answer. All processes of the server; the client is another.",
    )


async def measured(floor: Measured, service: Measured, sizes: Sizes) -> dict[str, float]:
    """Return the median over the rounds of µs per request."""
    await lift_limits(service)
    session = await open_session(service)
    cases = {
        "bare Starlette handler": (floor, request(floor, "/", {"arguments": {}, "context": CONTEXT})),
        "REST": (service, rest(service, NAME, CONTEXT)),
        "MCP modern": (service, modern(service, NAME, CONTEXT)),
        "MCP handshake": (service, handshaken(service, session, NAME, CONTEXT)),
    }
    found: dict[str, list[float]] = {name: [] for name in cases}
    for server, data in cases.values():
        await drive(server, [data] * (sizes.calls // 10), CLIENTS)
    for _ in range(sizes.rounds):
        for name, (server, data) in cases.items():
            before = server.cpu_s()
            await drive(server, [data] * sizes.calls, CLIENTS)
            found[name].append((server.cpu_s() - before) / sizes.calls * 1e6)
    # A smoke run may be shorter than the clock's tick.
    return {name: max(statistics.median(values), 1.0) for name, values in found.items()}
