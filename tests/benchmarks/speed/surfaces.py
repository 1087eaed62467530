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
    with bare() as floor, bare(folder / "lines") as durable, logged(folder) as service:
        figures = asyncio.run(measured(floor, durable, service, sizes))
    lowest = [every for every, _ in figures["bare Starlette handler"]]
    rows = [
        (
            name,
            *(
                cell
                for (every, loop), bare_us in zip(pairs, lowest, strict=True)
                for cell in (every, f"{every / bare_us:.1f}x", f"{loop / bare_us:.1f}x")
            ),
        )
        for name, pairs in figures.items()
    ]
    heads = [head for clients in CLIENTS for head in (f"µs, {clients} at once", "of bare", "loop, of bare")]
    yield table(
        "CPU time of the server per `middleware/invoke` of `timestamp_injector`",
        ("over", *heads),
        rows,
        "300 bytes of text, 1 and 32 connections, SQLite, a line of the access log for each request; all but the "
        "handlers authenticate, apply the policy and store an audit event before they answer. The second handler waits "
        "until a line of its own is on the disk, as they wait for the event. All threads and processes of the server, "
        "the database's too; the client is another. Loop: the thread of the event loop alone, where all is done but "
        "SQLite's own work.",
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


async def measured(
    floor: Measured, durable: Measured, service: Measured, sizes: Sizes
) -> dict[str, list[tuple[float, float]]]:
    """Return the medians over the rounds of µs per request, for each number of clients: all, and the loop's thread."""
    await lift_limits(service)
    session = await open_session(service)
    plain = {"arguments": {}, "context": CONTEXT}
    cases = {
        "bare Starlette handler": (floor, request(floor, "/", plain)),
        "the same, a line on disk": (durable, request(durable, "/", plain)),
        "REST": (service, rest(service, NAME, CONTEXT)),
        "MCP modern": (service, modern(service, NAME, CONTEXT)),
        "MCP handshake": (service, handshaken(service, session, NAME, CONTEXT)),
    }
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for clients in CLIENTS:
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for server, data in cases.values():
            await drive(server, [data] * (sizes.calls // 10), clients)
        for _ in range(sizes.rounds):
            for name, (server, data) in cases.items():
                before = server.cpu_s(), server.loop_s()
                await drive(server, [data] * sizes.calls, clients)
                after = server.cpu_s(), server.loop_s()
                every, loop = (
                    (end - begin) / sizes.calls * 1e6 for begin, end in zip(before, after, strict=True)
                )
                spent[name].append((every, loop))
        for name, pairs in spent.items():
            # A smoke run may be shorter than the clock's tick.
            every, loop = (max(statistics.median(values), 1.0) for values in zip(*pairs, strict=True))
            figures[name].append((every, loop))
    return figures
