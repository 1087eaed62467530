"""Turn failures of both databases into errors without SQL, parameters or content."""

import logging
import sqlite3
from typing import Final

from asyncpg import InterfaceError, PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.core.errors import StoreUnavailableError

FAILURES: Final = (SQLAlchemyError, sqlite3.Error, PostgresError, InterfaceError, OSError, TimeoutError)
"""What the drivers raise; whoever speaks to one raises ``failure_of`` it instead."""

_RETRIED = frozenset({"23505", "40001", "40P01", "55P03"})
_REFUSALS = frozenset({"22", "23", "42", "44"})
"""Classes of SQL states: data, constraints, rights, and checks of views and policies."""

log = logging.getLogger("sluice.store")


class ContentionError(StoreUnavailableError):
    """Two writers conflicted; nothing was stored, and the same work may be tried again at once."""


class StatementRefusedError(StoreUnavailableError):
    """The database works, but refused this statement: a part of it may be stored by itself."""


def failure_of(error: Exception) -> StoreUnavailableError:
    """Return what a failure of the database is to callers, without SQL, parameters or content; log its kind."""
    state = str(getattr(getattr(error, "orig", None) or error, "sqlstate", None) or "")
    log.warning("database failed: %s %s", type(getattr(error, "orig", None) or error).__name__, state)
    if state in _RETRIED or _is_unique_violation(error):
        return ContentionError("Two writers met; try again.", retry_after_s=1.0)
    # The driver refuses a parameter, which it cannot send, with a ValueError.
    if state[:2] in _REFUSALS or isinstance(error, ValueError):
        return StatementRefusedError("The database refused a statement.", retry_after_s=1.0)
    message = (
        "The database is busy." if isinstance(error, PoolTimeoutError) else "The database does not answer."
    )
    return StoreUnavailableError(message, retry_after_s=1.0)


def _is_unique_violation(error: BaseException) -> bool:
    name = getattr(getattr(error, "orig", None) or error, "sqlite_errorname", None)
    return name in {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_BUSY"}
