"""Insert a row unless its key is taken, on either engine."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection


async def insert_absent(tx: AsyncConnection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert one row and return True; return False and change nothing where a unique key is taken."""
    insert = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    done = await tx.execute(insert(table).values(**values).on_conflict_do_nothing())
    return bool(done.rowcount)
