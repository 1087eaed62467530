"""Whether a large redaction holds up anybody else: how fast ``/livez`` answers meanwhile."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.speed.processes import Measured, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import addresses, mail
from tests.benchmarks.speed.wire import Connection, drive, rest

PAUSE_S = 0.002


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of the answers of ``/livez`` while texts are redacted."""
    size = sizes.kilobytes * 1024
    dense = " paid, then ".join(addresses(size // 40))[:size]
    with sluice(folder) as server:
        rows = [
            (name, *asyncio.run(probed(server, text)))
            for name, text in {"support mail": mail(size, 77), "an address in every line": dense}.items()
        ]
    yield table(
        f"Answers of /livez while texts of {sizes.kilobytes} KB are redacted",
        ("text", "p50 ms", "p99 ms", "max ms", "one redaction ms"),
        rows,
        "Three redactions, one after the other, beside a probe every 2 ms; client and service share the cores.",
    )


async def probed(server: Measured, text: str) -> tuple[float, float, float, float]:
    """Return p50, p99 and maximum of the probes, and the mean time of a redaction, in milliseconds."""
    context = [{"type": "text", "text": text}]
    requests = [rest(server, "pii_redaction", context) for _ in range(3)]
    begin = time.perf_counter()
    redacting = asyncio.create_task(drive(server, requests, 1))
    probe = f"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    connection, took = await Connection.open(server), []
    while not redacting.done():
        sent = time.perf_counter()
        await connection.send(probe)
        took.append(time.perf_counter() - sent)
        await asyncio.sleep(PAUSE_S)
    connection.close()
    await redacting
    seconds = (time.perf_counter() - begin) / len(requests)
    return (*(percentile(took, part) * 1e3 for part in (0.5, 0.99)), max(took) * 1e3, seconds * 1e3)
