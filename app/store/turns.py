"""Turns of the thread that an SQLite connection lives in: what is done in one turn waits for no other thread."""

import logging
import sqlite3
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from app.store.failures import FAILURES

log = logging.getLogger("sluice.store")
T = TypeVar("T")


class Turn(Protocol):
    """Runs a function in the thread of an SQLite connection, in one turn, and returns what it returns."""

    async def __call__(self, work: Callable[[sqlite3.Connection], T], /) -> T:
        """Raise what ``work`` raises."""
        ...


def turns_of(driver: Any) -> Turn:
    """Return how to run functions in the thread of a connection of aiosqlite."""

    async def turn(work: Callable[[sqlite3.Connection], T]) -> T:
        # It has no public way to run more than one statement in a turn.
        done: T = await driver._execute(work, driver._conn)  # noqa: SLF001
        return done

    return turn


async def rolled_back(turn: Turn) -> bool:
    """Return whether what a writer began was rolled back."""
    try:
        await turn(sqlite3.Connection.rollback)
    except FAILURES as second:
        log.warning("rollback failed: %s", type(second).__name__)
        return False
    return True
