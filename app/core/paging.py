"""Pages of lists: a query asks for one row more than a page shows, and that row says whether another page follows."""

from collections.abc import Callable, Sequence
from typing import TypeVar

R = TypeVar("R")


def page_of(rows: Sequence[R], limit: int, cursor: Callable[[R], str]) -> tuple[list[R], str | None]:
    """Return the page in ``rows``, up to ``limit`` + 1 of them, and the cursor of the next page (None: no more)."""
    page = list(rows[:limit])
    return page, cursor(page[-1]) if len(rows) > limit else None
