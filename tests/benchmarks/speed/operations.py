"""What each operation of the vault and the record costs when ten and a hundred times as many scopes are kept."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from uuid import uuid4

from pydantic import SecretStr

from app.assembly import Services, opened
from app.core.access import Caller, Role
from app.core.content.handles import Handle
from app.settings import DatabaseSettings, KeysSettings, Settings
from tests.benchmarks.speed.batches import record_event, write_value
from tests.benchmarks.speed.finding import CALLER as ERASER
from tests.benchmarks.speed.finding import fill_scopes, run_as_owner, value_of
from tests.benchmarks.speed.growth import timed
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes

PARTS = (100, 10, 1)
INVOKER = Caller(ERASER.tenant, "0000000b", frozenset({Role.INVOKER, Role.RESTORER}))

Operation = Callable[[], Awaitable[object]]


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the time of each operation by the number of scopes."""
    rows = []
    with postgres(folder) as url:
        for name, address in (("SQLite", f"sqlite:///{folder}/operations.db"), ("PostgreSQL", url)):
            measured = asyncio.run(_measured(address, sizes, folder))
            rows += [(name, operation, *cells) for operation, cells in measured.items()]
    yield table(
        "Operations as scopes grow, ms",
        ("database", "operation", *(f"{sizes.scopes // part:,} scopes" for part in PARTS)),
        rows,
        "p50 / p95 of one after the other in the service's process, without HTTP, each with its event of the record "
        "before it returns (a read has none). The scopes are of one tenant; data keys of old scopes are opened anew.",
    )


async def _measured(url: str, sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
    cells: dict[str, list[str]] = {}
    async with opened(settings) as services:
        have = 0
        for part in PARTS:
            await fill_scopes(services, have, sizes.scopes // part)
            have = sizes.scopes // part
            await run_as_owner(url, "ANALYZE")
            for name, operation in operations(services, have).items():
                cells.setdefault(name, []).append(await timed(sizes, operation))
    return cells


def operations(services: Services, scopes: int) -> dict[str, Operation]:
    """Return what is measured; values that are found and read are others than those that are erased."""
    sought, erasable = cycle(range(scopes // 5, scopes * 2 // 5)), iter(range(scopes * 2 // 5, scopes))

    async def place() -> tuple[str, Handle]:
        page = await services.vault.erasures.find_value(ERASER, value_of(next(sought)))
        (found,) = page.items
        return found.scope, Handle(found.label, found.ordinal)

    async def restored() -> object:
        scope, handle = await place()
        return await services.vault.read(INVOKER, scope, [handle])

    async def added() -> object:
        scope, _ = await place()
        return await write_value(services, INVOKER, scope, f"{uuid4().hex}@example.com")

    async def began() -> object:
        return await write_value(services, INVOKER, uuid4().hex, "first@example.com")

    async def erased() -> object:
        return await services.vault.erase_value(ERASER, value_of(next(erasable)))

    return {
        "store an event": lambda: record_event(services, INVOKER, ""),
        "find a value": place,
        "find a value, restore its handle": restored,
        "find a value, store another in its scope": added,
        "store a value in a new scope": began,
        "erase a value": erased,
    }
