"""Pages of a list ordered by a key: the rows after a place, and no more of them than requested."""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

Q = TypeVar("Q", bound=Select[Any])


def paged(
    query: Q,
    *key: ColumnElement[Any],
    behind: Any = None,
    limit: int | None = None,
    newest_first: bool = False,
) -> Q:
    """Order ``query`` by ``key`` and limit it to the rows after the key ``behind`` (None: from the start).

    ``behind`` is a tuple where the key has several columns. ``newest_first`` reverses the order.
    """
    query = query.order_by(*(column.desc() for column in key) if newest_first else key)
    if behind is not None:
        place = tuple_(*key) if len(key) > 1 else key[0]
        query = query.where(place < behind if newest_first else place > behind)
    return query if limit is None else query.limit(limit)


def by_code_point(tx: AsyncConnection, column: ColumnElement[str]) -> ColumnElement[str]:
    """Return ``column`` with the order of Python's strings; databases order text by their own rules."""
    return column.collate("C" if tx.dialect.name == "postgresql" else "BINARY")
