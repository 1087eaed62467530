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
_LINE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Position:
    """Where a database stands; ``line`` names its history, which a backup of it shares."""

    line: str
    epoch: int
    erasures: int
    step: int


async def find_position(tx: AsyncConnection) -> Position | None:
    """Return the position, or None where this database has never had a mark."""
    value = (await tx.execute(_row())).scalar_one_or_none()
    return None if value is None else await _position(tx, value["line"], value["step"])


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
    changed = {"line": value["line"], "step": max(value["step"], above) + 1}
    await tx.execute(update(installation).where(installation.c.name == _ROW).values(value=changed))
    return await _position(tx, value["line"], changed["step"])


async def _position(tx: AsyncConnection, line: str, step: int) -> Position:
    epoch = select(installation.c.value).where(installation.c.name == "restore_epoch")
    erasures = await tx.execute(select(func.count()).select_from(erasure))
    return Position(
        line, int((await tx.execute(epoch)).scalar_one_or_none() or 0), erasures.scalar_one(), step
    )


def _row() -> Select[Any]:
    return select(installation.c.value).where(installation.c.name == _ROW)
