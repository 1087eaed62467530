"""What an audited vault write costs, without HTTP and detection: allocate, seal, store, record, commit."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from app.assembly import Services, opened
from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.content.handles import Original
from app.core.contracts.middleware import VaultOptions
from app.services.vault.vault import VaultReceipt, VaultWrite
from app.settings import DatabaseSettings, KeysSettings, Settings
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes

CALLER = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.INVOKER, Role.RESTORER}))


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of CPU time per write on both databases."""
    rows = [("SQLite", *asyncio.run(writes(f"sqlite:///{folder}/writes.db", sizes, folder)))]
    with postgres(folder) as url:
        rows.append(("PostgreSQL", *asyncio.run(writes(url, sizes, folder))))
    yield table(
        f"Audited vault writes, {sizes.clients} at once",
        ("database", "CPU µs a write", "writes/s"),
        rows,
        "One new value and one audit event a write, durable before it returns; CPU of the service's process (for "
        "PostgreSQL without the database).",
    )


async def writes(url: str, sizes: Sizes, folder: Path) -> tuple[float, float]:
    """Return CPU µs a write and writes a second."""
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
    async with opened(settings) as services:
        await burst(services, sizes.clients, range(-sizes.clients * 4, 0))
        begin, cpu = time.perf_counter(), time.process_time()
        await burst(services, sizes.clients, range(sizes.writes))
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - begin
    return cpu / sizes.writes * 1e6, sizes.writes / seconds


async def burst(services: Services, clients: int, numbers: range) -> None:
    """Write one value for each number, ``clients`` at once, each client in a scope of its own."""
    services.audit.keys.admit(DEFAULT_TENANT, None)  # a tenant without a row has no key of its own
    waiting = iter(numbers)

    async def client(name: str) -> None:
        for i in waiting:

            def events(receipt: VaultReceipt) -> list[object]:
                return [
                    services.audit.new_event(
                        CALLER,
                        "middleware.invoke",
                        "ok",
                        None,
                        middleware="pii_redaction",
                        in_hmac=services.audit.digest(DEFAULT_TENANT, b"in"),
                        out_hmac=services.audit.digest(DEFAULT_TENANT, b"out"),
                        counts={"EMAIL": len(receipt.handles)},
                    )
                ]

            value = [("EMAIL", Original(f"customer{i}@example.com"))]
            await services.vault.commit(CALLER, VaultWrite(name, value, VaultOptions(), events))

    await asyncio.gather(*(client(f"bench-{os.getpid()}-{n}") for n in range(clients)))
