"""What is due once a transaction is committed: changes to announce, and objects to tell."""

from collections.abc import Callable, Hashable
from typing import Final, Protocol, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.events import Changed

ANNOUNCED: Final = "sluice_announced"
AFTERWARDS: Final = "sluice_afterwards"
"""Names under which a connection's ``info`` keeps both until ``Database`` has committed."""

S = TypeVar("S", bound="ActsOnceStored")


class ActsOnceStored(Protocol):
    """Something that waits for the end of a transaction."""

    def stored(self) -> None:
        """Do what is due once the transaction is committed."""


def note_announcement(tx: AsyncConnection, changed: Changed) -> None:
    """Keep ``changed`` until ``tx`` is committed; listeners in this process are called then."""
    tx.info.setdefault(ANNOUNCED, []).append(changed)


def once_stored(tx: AsyncConnection, key: Hashable, make: Callable[[], S]) -> S:
    """Return what ``make`` made for ``key`` in this transaction.

    Its ``stored`` is called when the transaction is known to be committed, and not where that failed or is in doubt.
    """
    shared: dict[Hashable, S] = tx.info.setdefault(AFTERWARDS, {})
    if key not in shared:
        shared[key] = make()
    return shared[key]
