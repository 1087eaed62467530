"""Months in UTC, as the archive names them: ``2026-10``."""

from datetime import UTC, datetime, timedelta
from typing import Final

_LONGEST: Final = timedelta(days=31)
GRACE: Final = timedelta(hours=1)
"""A month is closed so long after its end: a sealer may still be storing heads with a time before it."""


def month_of(moment: datetime) -> str:
    """Return the month in which a moment lies."""
    return f"{moment.astimezone(UTC):%Y-%m}"


def beginning_of(month: str) -> datetime:
    """Return a month's first moment; raise ValueError for a text that names none."""
    return datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)


def following(month: str) -> str:
    """Return the month after ``month``."""
    return month_of(beginning_of(month) + _LONGEST)


def closed(moment: datetime) -> str:
    """Return the last month that is closed at a moment."""
    return preceding(moment - GRACE)


def closing(month: str) -> datetime:
    """Return the moment from which on a month is closed."""
    return beginning_of(following(month)) + GRACE


def preceding(moment: datetime) -> str:
    """Return the month before the one in which a moment lies."""
    return month_of(beginning_of(month_of(moment)) - timedelta(days=1))
