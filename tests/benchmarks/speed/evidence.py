"""What the log over the record costs as it grows: writing, sealing, verifying all of it, and one event's proof.

``python -m tests.benchmarks.speed.evidence URL --keyring FILE --events 10000000`` fills a database of its own with as
many events, goes on where an earlier run stopped, and prints the row of the table; it takes hours for ten millions.
"""

import argparse
import asyncio
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from sqlalchemy import select, text

from app.assembly import Services, opened
from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.ids import uuid7
from app.core.request import RequestInfo
from app.services.audit.log_access import AuditLogService
from app.services.audit.sealer import LogSealer
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.audit.log import HEADS, list_heads
from app.store.audit.tables import log_leaf
from app.store.locks import only_here
from app.store.migrate import upgrade
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import percentile, table, written
from tests.benchmarks.speed.sizes import Sizes

TENANTS: Final = 5_000
TIMES: Final = (1, 10)
_BURST: Final = 12
"""Events of a tenant that come together: the calls of a conversation."""
_BURSTS: Final = 20
_SEALED_EACH: Final = 60_000
_PROOFS: Final = 40
_COLUMNS: Final = (
    "database",
    "events",
    "write, us of CPU",
    "seal, us of CPU",
    "verify all, s",
    "CPU s",
    "one proof, p50 / p95 ms",
    "KiB an event",
)
_NOTE: Final = (
    f"{TENANTS:,} tenants, one of which has a tenth; bursts of {_BURST} events of a tenant. Written by the service's "
    "writer, 240 a commit, and sealed by its sealer; CPU of this process. Verified by `sluice audit verify`, its CPU "
    "with its processes; of the database's processes nothing is counted. KiB with indexes and the log."
)


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table, at two sizes on both databases."""
    file = f"sqlite:///{folder}/evidence.db"
    upgrade(file)
    rows = [row(file, folder / "evidence-keys.json", sizes.events * times) for times in TIMES]
    with postgres(folder) as url:
        rows += [row(url, folder / "evidence-keys-postgres.json", sizes.events * times) for times in TIMES]
    yield table("The log over the record as it grows", _COLUMNS, rows, _NOTE)


def row(url: str, keyring: Path, events: int) -> tuple[object, ...]:
    """Fill the database up to so many events and return the row of the table."""
    settings = Settings(database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=keyring))
    write_us, seal_us, proofs = asyncio.run(_filled(settings, events))
    wall_s, cpu_s = _verified(url, keyring)
    took = f"{written(percentile(proofs, 0.5))} / {written(percentile(proofs, 0.95))}"
    kib = asyncio.run(_bytes(settings)) / events / 1024
    name = "SQLite" if url.startswith("sqlite") else "PostgreSQL"
    return name, events, write_us, seal_us, wall_s, cpu_s, took, kib


async def _filled(settings: Settings, events: int) -> tuple[float, float, list[float]]:
    """Write and seal until there are ``events``; return microseconds of CPU for each, and milliseconds of proofs."""
    write_s = seal_s = 0.0
    written_now = sealed_now = 0
    chance = random.Random(events)
    async with opened(settings) as services:
        have = await _count(services)
        while have + written_now < events:
            begin, end = time.process_time(), min(events - have - written_now, _SEALED_EACH)
            written_now += await _write(services, end, have + written_now, chance)
            write_s += time.process_time() - begin
            begin = time.process_time()
            sealed_now += await _seal(services)
            seal_s += time.process_time() - begin
            sys.stderr.write(f"\r{have + written_now:,} of {events:,}")
        proofs = await _proofs(services, chance)
    return write_s / max(1, written_now) * 1e6, seal_s / max(1, sealed_now) * 1e6, proofs


async def _write(services: Services, count: int, first: int, chance: random.Random) -> int:
    done = 0
    while done < count:
        bursts = []
        for _ in range(_BURSTS):
            size = min(_BURST, count - done)
            bursts.append(_burst(services, size, first + done, chance))
            done += size
        await asyncio.gather(*(services.audit.record(*burst) for burst in bursts if burst))
    return done


def _burst(services: Services, size: int, first: int, chance: random.Random) -> list[AuditEvent]:
    tenant = "large" if chance.random() < 0.1 else f"tenant-{chance.randrange(TENANTS)}"
    caller = Caller(tenant, f"key-{chance.randrange(30)}", frozenset({Role.INVOKER}), key_name="backend")
    services.audit.keys.admit(tenant, None)  # a tenant without a row has no key of its own
    digest = services.audit.digest(tenant, b"%d" % first)
    return [
        services.audit.new_event(
            caller,
            "middleware.invoke",
            OUTCOME_OK,
            RequestInfo(str(uuid7()), None, "127.0.0.1", math.inf),
            engines={"pii_redaction": "1.0"},
            middleware="pii_redaction",
            policy_version=1,
            scope_ref=digest,
            in_hmac=digest,
            out_hmac=digest,
            blocks=number + 1,
            bytes_in=400,
            bytes_out=420,
            counts={"PERSON": 2, "EMAIL": 1},
            duration_us=2_500,
            decision="change",
        )
        for number in range(size)
    ]


async def _seal(services: Services) -> int:
    total = 0
    while True:
        async with only_here(services.database, "sluice job seal-audit") as mine:
            count = await LogSealer.over(services.audit).seal() if mine else 0
        total += count
        if count == 0:
            return total


async def _count(services: Services) -> int:
    """Return how many events there are, by the sizes of their logs: counting rows takes longer than a statement may."""
    await _seal(services)
    async with services.database.system_transaction(write=False) as tx:
        return sum(head.size for log, head in (await list_heads(tx)).items() if log != HEADS)


async def _proofs(services: Services, chance: random.Random) -> list[float]:
    """Return the milliseconds that the proof of one event took, each of another tenant, ids looked up before."""
    async with services.database.system_transaction(write=False) as tx:
        heads = await list_heads(tx)
        tenants = sorted(heads.keys() - {HEADS, SYSTEM_TENANT})
        chosen = []
        for tenant in chance.sample(tenants, min(_PROOFS, len(tenants))):
            position = chance.randrange(heads[tenant].size)
            query = select(log_leaf.c.event).where(
                log_leaf.c.tenant == tenant, log_leaf.c.position == position
            )
            chosen.append((tenant, (await tx.execute(query)).scalar_one()))
    took = []
    for tenant, event in chosen:
        caller = Caller(tenant, "0000000a", frozenset({Role.AUDITOR}))
        begin = time.perf_counter()
        lines = await AuditLogService(services.audit).prove(caller, tenant, [event])
        size = sum([len(line) async for line in lines])
        took.append((time.perf_counter() - begin) * 1e3)
        if not size:
            raise RuntimeError("The proof is empty.")
    return took


def _verified(url: str, keyring: Path) -> tuple[float, float]:
    """Return the seconds that ``sluice audit verify`` takes, and its CPU seconds with its processes."""
    environment = {**os.environ, "SLUICE_DATABASE__URL": url, "SLUICE_KEYS__FILE": str(keyring)}
    begin, before = time.perf_counter(), os.times()
    subprocess.run(
        [sys.executable, "-m", "app", "audit", "verify"], env=environment, check=True, capture_output=True
    )
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return time.perf_counter() - begin, used


async def _bytes(settings: Settings) -> int:
    async with opened(settings) as services:
        address = services.database.url
        if address.get_backend_name() == "sqlite":
            return Path(str(address.database)).stat().st_size
        async with services.database.system_transaction(write=False) as tx:
            return int((await tx.execute(text("SELECT pg_database_size(current_database())"))).scalar_one())


def main() -> None:
    """Fill the database that the command line names and print its row."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed.evidence", description=__doc__)
    parser.add_argument("url", help="Of a database that exists; it is migrated.")
    parser.add_argument("--keyring", type=Path, required=True)
    parser.add_argument("--events", type=int, required=True)
    options = parser.parse_args()
    upgrade(options.url)
    print(
        table(
            "The log over the record as it grows",
            _COLUMNS,
            [row(options.url, options.keyring, options.events)],
            _NOTE,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
