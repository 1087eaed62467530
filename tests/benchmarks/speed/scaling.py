"""What more replicas, and a connection pooler, do to the calls of one database."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

from app.core.access import ApiKey
from tests.benchmarks.speed.database_processes import server_process, spent
from tests.benchmarks.speed.processes import Measured, postgres, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.wire import drive, lift_limits, rest
from tests.outside.debian import program
from tests.outside.pooling import pooled

REPLICAS = (1, 2, 4)
HEAD = ("calls/s", "p50 ms", "p99 ms", "service CPU µs", "database CPU µs")
CALLS = ("timestamp_injector", "pii_redaction")
_ONE_DETECTOR = {"SLUICE_DETECTION__WORKERS": "1"}


def replicas(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of one, two and four services on one PostgreSQL."""
    rows: list[tuple[object, ...]] = []
    with postgres(folder) as url:
        for count in REPLICAS:
            key = str(ApiKey.generate())
            with ExitStack() as stack:
                servers = [
                    stack.enter_context(sluice(folder, url, key, **_ONE_DETECTOR)) for _ in range(count)
                ]
                rows += [(count, name, *figures) for name, figures in _measured(servers, url, sizes)]
    yield table(
        "Replicas on one PostgreSQL",
        ("replicas", "call", *HEAD),
        rows,
        f"{sizes.clients} clients over REST, spread evenly; each replica is a process with one detector. A redaction "
        "has a new value. Clients, replicas and database share the cores of the machine, so calls a second stop "
        "growing where those are used up: what a call costs says whether replicas get in each other's way.",
    )


def pooler(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of the same calls with PgBouncer in between, where that is installed."""
    if program("pgbouncer") is None:
        return
    rows: list[tuple[object, ...]] = []
    with postgres(folder) as url, pooled(url, 20) as through:
        ways = {
            "none": (url, {}),
            "PgBouncer, transaction mode": (through, {"SLUICE_DATABASE__DIRECT_URL": url}),
        }
        for way, (address, settings) in ways.items():
            with sluice(folder, address, **_ONE_DETECTOR, **settings) as server:
                rows += [(way, name, *figures) for name, figures in _measured([server], url, sizes)]
    yield table(
        "A connection pooler before PostgreSQL",
        ("pooler", "call", *HEAD),
        rows,
        f"{sizes.clients} clients over REST, one replica with ten connections, 20 of the pooler to the server. The "
        "pooler's own CPU is in neither column.",
    )


def _measured(
    servers: Sequence[Measured], url: str, sizes: Sizes
) -> Iterator[tuple[str, tuple[float, float, float, float, float]]]:
    for name in CALLS:
        yield name, asyncio.run(_crowd(servers, url, name, sizes))


async def _crowd(
    servers: Sequence[Measured], url: str, name: str, sizes: Sizes
) -> tuple[float, float, float, float, float]:
    """Return calls a second, p50 and p99 in ms, CPU a call of the services and of the database in µs."""
    database = await server_process(url)
    await lift_limits(servers[0])
    each = max(sizes.clients // len(servers), 1)
    await _sent(servers, name, "warm", each, each)
    own, theirs, begin = _used(servers), _spent(database), time.perf_counter()
    took = await _sent(servers, name, "call", sizes.calls // len(servers), each)
    seconds = time.perf_counter() - begin
    calls = len(took)
    return (
        calls / seconds,
        percentile(took, 0.5) * 1e3,
        percentile(took, 0.99) * 1e3,
        (_used(servers) - own) / calls * 1e6,
        (_spent(database) - theirs) / calls * 1e6,
    )


async def _sent(servers: Sequence[Measured], name: str, part: str, count: int, clients: int) -> list[float]:
    """Send ``count`` requests to each server at once; return the seconds that each took."""
    laps = await asyncio.gather(
        *(
            drive(server, [_call(server, name, f"{part}{place}x{i}") for i in range(count)], clients)
            for place, server in enumerate(servers)
        )
    )
    return [seconds for lap in laps for seconds in lap]


def _call(server: Measured, name: str, value: str) -> bytes:
    text = f"Please answer {name[:3]}{value}@example.com before noon."
    arguments = {"scope": f"talk-{value[-2:]}"} if name == "pii_redaction" else {}
    return rest(server, name, [{"type": "text", "text": text}], **arguments)


def _used(servers: Sequence[Measured]) -> float:
    return sum(server.cpu_s() for server in servers)


def _spent(database: psutil.Process | None) -> float:
    return spent(database)
