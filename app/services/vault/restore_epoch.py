"""Begin a new epoch of ordinals after the database was restored from a backup."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

from app.store.audit.audit import Transaction
from app.store.database import Database
from app.store.vault.vault import advance_restore_epoch, find_highest_ordinal, lift_scopes

BATCH = 2000
"""Scopes per transaction, so that any number of scopes stays within the time limit of statements."""


async def begin_epoch(
    database: Database, note: Callable[[Transaction, int], Awaitable[None]], *, above: int = 0
) -> int:
    """Make all ordinals jump and return the new epoch; ``note`` records it in the transaction that begins it.

    ``above`` is the last epoch that is known outside the database.

    If it is interrupted, run it again: skipped ordinals do no harm.
    """
    highest, bounds = 0, list[tuple[str, str] | None]([None])
    while True:
        async with database.system_transaction(write=False) as tx:
            ordinal, last = await find_highest_ordinal(tx, after=bounds[-1], limit=BATCH)
        if last is None:
            break
        highest = max(highest, ordinal)
        bounds.append(last)
    async with database.system_transaction() as tx:
        epoch = await advance_restore_epoch(tx, highest, above)
        await note(tx, epoch)
    for after, end in pairwise(bounds):
        if end is not None:
            async with database.system_transaction() as tx:
                await lift_scopes(tx, epoch, after=after, last=end)
    return epoch
