"""Queries on how far this database has come, as compared with its mark outside."""

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.tables import installation
from app.store.vault.tables import erasure

_ROW = "mark"
_SUM = "erasures"
"""How many receipts the row of the mark has counted; the previous release does not write it."""
_LINE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Position:
    """Where a database stands; ``line`` names its history, which a backup of it shares."""

    line: str
    epoch: int
    erasures: int
    step: int


async def find_position(tx: AsyncConnection) -> Position | None:
    """Return the position, or None where this database has never had a mark.

    It takes as long as counting the receipts since the last step; after a step of the previous release, all of them.
    """
    # In one statement, since another process may count these receipts meanwhile.
    query = select(installation.c.value, _uncounted().scalar_subquery()).where(installation.c.name == _ROW)
    row = (await tx.execute(query)).one_or_none()
    if row is None:
        return None
    value, uncounted = row
    erasures = value[_SUM] + uncounted if _SUM in value else await _number(tx, _receipts())
    return Position(value["line"], await _epoch(tx), erasures, value["step"])


async def find_step(tx: AsyncConnection) -> tuple[str, int] | None:
    """Return the line and the step alone, which is cheap; None where this database has never had a mark."""
    value = (await tx.execute(_row())).scalar_one_or_none()
    return None if value is None else (str(value["line"]), int(value["step"]))


async def advance_position(tx: AsyncConnection, *, line: str | None = None, above: int = 0) -> Position:
    """Go one step on, and ``above`` that step at least; return the position that this transaction commits.

    The first step begins a line: ``line``, or a new one.
    """
    first = {"line": line or secrets.token_hex(_LINE_BYTES), "step": 0}
    await insert_absent(tx, installation, {"name": _ROW, "value": first})
    value = (await tx.execute(_row().with_for_update())).scalar_one()
    counting = update(erasure).where(~erasure.c.counted).values(counted=True)
    erasures = (await tx.execute(counting)).rowcount
    if _SUM in value:
        erasures += value[_SUM]
    else:
        erasures = await _number(tx, _receipts().where(erasure.c.counted))
    changed = {"line": value["line"], "step": max(value["step"], above) + 1, _SUM: erasures}
    await tx.execute(update(installation).where(installation.c.name == _ROW).values(value=changed))
    return Position(changed["line"], await _epoch(tx), erasures, changed["step"])


async def _epoch(tx: AsyncConnection) -> int:
    return await _number(tx, select(installation.c.value).where(installation.c.name == "restore_epoch"))


async def _number(tx: AsyncConnection, query: Select[Any]) -> int:
    """Return the only number of a query; 0 where it has no row."""
    return int((await tx.execute(query)).scalar_one_or_none() or 0)


def _receipts() -> Select[Any]:
    return select(func.count()).select_from(erasure)


def _uncounted() -> Select[Any]:
    return _receipts().where(~erasure.c.counted)


def _row() -> Select[Any]:
    return select(installation.c.value).where(installation.c.name == _ROW)
