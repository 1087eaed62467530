"""Delete what an erased tenant had, in every table that holds rows of tenants."""

from sqlalchemy import Table, delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.schema import metadata

KEPT = frozenset(
    {
        # The record and its proof stay as long as the record is kept; receipts say what a restore must erase again.
        *("audit_event", "log_leaf", "log_head", "log_entry", "log_writer"),
        *("erasure", "erasure_job"),
        *("log_count", "log_counted"),
        # A name stays taken, and a key that is gone has no other place.
        *("directory_key", "directory_tenant"),
        # These say what indexes on other servers hold: the job that removes it there removes the rows.
        *("indexed_document", "indexed_part"),
    }
)


def emptied_tables() -> list[Table]:
    """Return the tables of an erased tenant's rows; one that refers to another comes before it."""
    return [
        table for table in reversed(metadata.sorted_tables) if "tenant" in table.c and table.name not in KEPT
    ]


async def remove_rows(tx: AsyncConnection, table: Table, tenant: str, *, limit: int) -> int:
    """Delete at most ``limit`` rows of a tenant (system transactions); return how many."""
    key = list(table.primary_key)
    some = select(*key).where(table.c.tenant == tenant).limit(limit)
    return (await tx.execute(delete(table).where(tuple_(*key).in_(some)))).rowcount
