"""Writers that race for handles, and the check that finds every way in which a race can go wrong."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import text

from app.core.access import Caller
from app.core.content.handles import Handle
from app.core.errors import StoreUnavailableError
from app.store.database import Database
from tests.factories import Vault

LABELS = ("PERSON", "EMAIL", "SSN")

Place = tuple[str, Handle]
Named = tuple[str, str, str]


@dataclass
class Acknowledged:
    """What the writers were told: the handle of each value, and every contradiction between two answers."""

    handles: dict[Named, Handle] = field(default_factory=dict)
    values: dict[Place, Named] = field(default_factory=dict)
    contradictions: int = 0
    writes: int = 0
    refused: int = 0

    def note(self, scope: str, label: str, value: str, handle: Handle) -> None:
        """Take one answer."""
        named = (scope, label, value)
        if self.handles.setdefault(named, handle) != handle:
            self.contradictions += 1
        if self.values.setdefault((scope, handle), named) != named:
            self.contradictions += 1


async def race(
    vaults: Sequence[Vault],
    caller: Caller,
    *,
    writers: int,
    seconds: float,
    scopes: int = 6,
    values: int = 400,
) -> Acknowledged:
    """Let ``writers`` spread over ``vaults`` store overlapping values for a while."""
    told = Acknowledged()
    end = time.monotonic() + seconds

    async def write(number: int) -> None:
        chance, vault = random.Random(number), vaults[number % len(vaults)]
        while time.monotonic() < end:
            scope = f"race {chance.randrange(scopes)}"
            wanted = [(chance.choice(LABELS), f"value {chance.randrange(values)}") for _ in range(5)]
            receipt = None
            with suppress(StoreUnavailableError):
                receipt = await vault.store(caller, scope, *wanted)
            if receipt is None:
                told.refused += 1
                continue
            told.writes += 1
            for (label, value), handle in zip(wanted, receipt.handles, strict=True):
                told.note(scope, label, value, handle)

    await asyncio.gather(*(write(number) for number in range(writers)))
    return told


async def faults(database: Database, vault: Vault, caller: Caller, told: Acknowledged) -> dict[str, int]:
    """Return what went wrong: contradictions, duplicates in the table, lost or changed acknowledgements."""
    async with database.transaction(caller.tenant, write=False) as tx:
        query = (
            "SELECT count(*) FROM (SELECT 1 FROM entry WHERE tenant = :t GROUP BY scope, type, {0} "
            "HAVING count(*) > 1) AS twice"
        )
        ordinals = (await tx.execute(text(query.format("ordinal")), {"t": caller.tenant})).scalar_one()
        lookups = (await tx.execute(text(query.format("lookup")), {"t": caller.tenant})).scalar_one()
        rows = await tx.execute(text("SELECT count(*) FROM entry WHERE tenant = :t"), {"t": caller.tenant})
        stored = rows.scalar_one()
    wrong = 0
    for scope in {scope for scope, _, _ in told.handles}:
        own = {handle: value for (name, _, value), handle in told.handles.items() if name == scope}
        found = await vault.service.read(caller, scope, own)
        wrong += sum(found[handle].text != value if handle in found else 1 for handle, value in own.items())
    found_faults = {
        "contradictions": told.contradictions,
        "duplicate ordinals": ordinals,
        "duplicate values": lookups,
        "lost or wrong": wrong,
        "rows nobody was told of": stored - len(told.handles) if not told.refused else 0,
    }
    return {name: count for name, count in found_faults.items() if count}
