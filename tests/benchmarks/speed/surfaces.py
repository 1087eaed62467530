"""What one call costs the server: a bare handler, REST, MCP modern, MCP handshake, in interleaved rounds."""

import asyncio
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
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
CLIENTS = (1, 32)
LOGS = {"SLUICE_TELEMETRY__LOG_LEVEL": "info", "SLUICE_TELEMETRY__LOG_FORMAT": "json"}


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of CPU time per request."""
    with bare() as floor, logged(folder) as service:
        figures = asyncio.run(measured(floor, service, sizes))
    lowest = figures["bare Starlette handler"]
    rows = [
        (name, *(cell for at, cpu in enumerate(every) for cell in (cpu, f"{cpu / lowest[at]:.1f}x")))
        for name, every in figures.items()
    ]
    heads = [head for clients in CLIENTS for head in (f"µs, {clients} at once", "of bare")]
    yield table(
        "CPU time of the server per `middleware/invoke` of `timestamp_injector`",
        ("over", *heads),
        rows,
        "300 bytes of text, 1 and 32 connections, SQLite, a line of the access log for each request; all but the first "
        "authenticate, apply the policy and store an audit event before they answer. All threads and processes of the "
        "server, the database's too; the client is another.",
    )


@contextmanager
def logged(folder: Path) -> Iterator[Measured]:
    """Run the service with its access log in a file."""
    log, own = os.open(folder / "access.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.dup(2)
    os.dup2(log, 2)  # the service writes where this process does
    try:
        with sluice(folder, **LOGS) as service:
            os.dup2(own, 2)
            yield service
    finally:
        os.dup2(own, 2)
        os.close(log)
        os.close(own)


async def measured(floor: Measured, service: Measured, sizes: Sizes) -> dict[str, list[float]]:
    """Return the median over the rounds of µs per request, for each number of clients."""
    await lift_limits(service)
    session = await open_session(service)
    cases = {
        "bare Starlette handler": (floor, request(floor, "/", {"arguments": {}, "context": CONTEXT})),
        "REST": (service, rest(service, NAME, CONTEXT)),
        "MCP modern": (service, modern(service, NAME, CONTEXT)),
        "MCP handshake": (service, handshaken(service, session, NAME, CONTEXT)),
    }
    figures: dict[str, list[float]] = {name: [] for name in cases}
    for clients in CLIENTS:
        spent: dict[str, list[float]] = {name: [] for name in cases}
        for server, data in cases.values():
            await drive(server, [data] * (sizes.calls // 10), clients)
        for _ in range(sizes.rounds):
            for name, (server, data) in cases.items():
                before = server.cpu_s()
                await drive(server, [data] * sizes.calls, clients)
                spent[name].append((server.cpu_s() - before) / sizes.calls * 1e6)
        for name, values in spent.items():
            # A smoke run may be shorter than the clock's tick.
            figures[name].append(max(statistics.median(values), 1.0))
    return figures
