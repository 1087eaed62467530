"""What a batch of many tenants costs beside a batch of one: CPU of service and database a call, and round trips."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiosqlite
import asyncpg
import psutil
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, Pool, event, make_url

from app.assembly import Services, opened
from app.core.access import Caller, Role
from app.core.audit import AuditEvent
from app.core.content.handles import Original
from app.core.contracts.middleware import VaultOptions
from app.services.vault.vault import VaultReceipt, VaultWrite
from app.settings import DatabaseSettings, KeysSettings, Settings
from tests.benchmarks.speed.database_processes import server_process, spent
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes

BATCH = 64
TENANTS = (1, 8, BATCH)

Call = Callable[[Services, Caller, str], Awaitable[object]]


@dataclass(frozen=True)
class Cost:
    """CPU of one call in microseconds: of this process and of the database's."""

    service: float
    database: float


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the cost of batches by the number of their tenants, and the round trips of a call that is alone."""
    costs, trips = asyncio.run(_measured(f"sqlite:///{folder}/batches.db", sizes, folder))
    rows = [("SQLite", *row) for row in costs]
    alone = [("SQLite", *trips)]
    with postgres(folder) as url:
        costs, trips = asyncio.run(_measured(url, sizes, folder))
        quiet, hot = asyncio.run(_beside_a_hot_scope(url, sizes, folder))
    rows += [("PostgreSQL", *row) for row in costs]
    alone.append(("PostgreSQL", *trips))
    yield table(
        f"Batches of {BATCH} calls by the number of tenants",
        ("database", "call", "tenants", "service CPU µs", "database CPU µs", "to one tenant"),
        rows,
        "CPU a call, median of the rounds; on SQLite the database is part of the service. Each call is of another "
        "scope. Last column: service and database together, to a batch of one tenant.",
    )
    yield table(
        "Round trips of a call that is alone",
        ("database", "event", "known value", "new value", "new value in a new scope"),
        alone,
        "BEGIN and COMMIT included. On SQLite: turns of the connection's thread.",
    )

    yield table(
        "Writes of eight tenants beside a scope that another process locks",
        ("scope", "p50 ms", "p99 ms"),
        [("free", *quiet), ("locked half of the time, written to all the time", *hot)],
        "PostgreSQL; a new value a write, one after the other for each tenant; the locked scope is of a ninth tenant.",
    )


async def _beside_a_hot_scope(
    url: str, sizes: Sizes, folder: Path
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return p50 and p99 of other tenants' writes in milliseconds, without and with the hot scope, interleaved."""
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
    took: dict[bool, list[float]] = {False: [], True: []}
    async with opened(settings) as services:
        for lap in range(sizes.rounds * 2):
            stop = asyncio.Event()
            tasks = [asyncio.create_task(_heat(services, stop))]
            if lap % 2:
                tasks.append(asyncio.create_task(_lock(url, stop)))
            try:
                each = max(sizes.writes // (8 * 2 * sizes.rounds * 2), 2)
                laps = await asyncio.gather(*(_times(services, number, each) for number in range(8)))
            finally:
                stop.set()
                await asyncio.gather(*tasks)
            took[bool(lap % 2)] += [seconds for times in laps for seconds in times]
    return _quantiles(took[False]), _quantiles(took[True])


async def _times(services: Services, number: int, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        await _new(services, _caller(f"quiet-{number}"), "talk")
        seconds.append(time.perf_counter() - begin)
    return seconds


async def _heat(services: Services, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await _new(services, _caller("hot"), "talk")


async def _lock(url: str, stop: asyncio.Event) -> None:
    """Lock the hot scope for 50 ms, again and again, as another process would that writes to it."""
    connection = await asyncpg.connect(make_url(url).render_as_string(hide_password=False))
    try:
        while not stop.is_set():
            async with connection.transaction():
                await connection.execute("SELECT FROM scope WHERE tenant = 'hot' AND id = 'talk' FOR UPDATE")
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
    finally:
        await connection.close()


def _quantiles(seconds: list[float]) -> tuple[float, float]:
    return percentile(seconds, 0.5) * 1000, percentile(seconds, 0.99) * 1000


async def _measured(url: str, sizes: Sizes, folder: Path) -> tuple[list[tuple[object, ...]], list[int]]:
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
    rounds = max(sizes.writes // (BATCH * 6), 2)
    with _counted() as trips:
        async with opened(settings) as services:
            server = await server_process(url)
            rows = []
            for name, call in (("event", record_event), ("known value", _known), ("new value", _new)):
                found = {count: await _cost(services, call, count, rounds, server) for count in TENANTS}
                base = found[1].service + found[1].database
                rows += [
                    (name, count, cost.service, cost.database, (cost.service + cost.database) / base)
                    for count, cost in found.items()
                ]
            return rows, await _alone(services, trips)


async def _cost(
    services: Services, call: Call, tenants: int, rounds: int, server: psutil.Process | None
) -> Cost:
    callers = [_caller(f"bench-{number % tenants}") for number in range(BATCH)]
    scopes = [f"{tenants}-{number}" for number in range(BATCH)]
    own, theirs = [], []
    for lap in range(rounds + 2):
        begin, cpu = spent(server), time.process_time()
        await asyncio.gather(
            *(call(services, caller, scope) for caller, scope in zip(callers, scopes, strict=True))
        )
        if lap >= 2:  # the first two warm caches and plans
            own.append((time.process_time() - cpu) / BATCH * 1e6)
            theirs.append((spent(server) - begin) / BATCH * 1e6)
    # The database's processes count in steps of 10 ms, so only the sum of all rounds means something.
    return Cost(statistics.median(own), statistics.fmean(theirs))


async def _alone(services: Services, trips: list[int]) -> list[int]:
    """Return the round trips of an event, a known value, a new value, and a new value in a new scope."""
    caller, counts = _caller("bench-0"), []
    for call in (record_event, _known, _new, _first):
        for _ in range(3):  # the last counts: statements are prepared and keys are opened
            trips[0] = 0
            await call(services, caller, "alone")
            await asyncio.sleep(0.01)  # asyncpg tells its listeners a little later
        counts.append(trips[0])
    return counts


async def record_event(services: Services, caller: Caller, _scope: str) -> object:
    services.audit.keys.admit(caller.tenant, None)
    return await services.audit.record(event_of(services, caller, 0))


async def _known(services: Services, caller: Caller, scope: str) -> object:
    return await write_value(services, caller, scope, "known@example.com")


async def _new(services: Services, caller: Caller, scope: str) -> object:
    return await write_value(services, caller, scope, f"{uuid4().hex}@example.com")


async def _first(services: Services, caller: Caller, _scope: str) -> object:
    return await write_value(services, caller, uuid4().hex, "first@example.com")


async def write_value(services: Services, caller: Caller, scope: str, value: str) -> VaultReceipt:
    def events(receipt: VaultReceipt) -> list[AuditEvent]:
        return [event_of(services, caller, len(receipt.handles))]

    services.audit.keys.admit(caller.tenant, None)  # a tenant without a row has no key of its own
    write = VaultWrite(scope, [("EMAIL", Original(value))], VaultOptions(), events)
    return await services.vault.commit(caller, write)


def event_of(services: Services, caller: Caller, handles: int) -> AuditEvent:
    return services.audit.new_event(
        caller,
        "middleware.invoke",
        "ok",
        None,
        middleware="pii_redaction",
        in_hmac=services.audit.digest(caller.tenant, b"in"),
        out_hmac=services.audit.digest(caller.tenant, b"out"),
        counts={"EMAIL": handles} if handles else {},
    )


def _caller(tenant: str) -> Caller:
    return Caller(tenant, "00000000", frozenset({Role.INVOKER, Role.RESTORER}))


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Count what this process asks a database: statements on PostgreSQL, turns of the thread on SQLite."""
    trips = [0]
    execute = aiosqlite.Connection._execute

    def count(*_given: object) -> None:
        trips[0] += 1

    async def counted(connection: aiosqlite.Connection, *given: Any, **named: Any) -> Any:
        count()
        return await execute(connection, *given, **named)

    def connected(_connection: object, record: Any) -> None:
        if isinstance(record.driver_connection, asyncpg.Connection):
            # This is BEGIN, COMMIT and what is asked past SQLAlchemy; the other listener counts its own statements.
            record.driver_connection.add_query_logger(count)

    def executed(connection: Connection, *_given: object) -> None:
        if connection.dialect.name == "postgresql":
            count()

    event.listen(Pool, "connect", connected)
    event.listen(Engine, "before_cursor_execute", executed)
    aiosqlite.Connection._execute = counted  # type: ignore[method-assign]
    try:
        yield trips
    finally:
        aiosqlite.Connection._execute = execute  # type: ignore[method-assign]
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Pool, "connect", connected)
