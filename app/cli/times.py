"""Times and durations as people type them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,9})([smhdw])")


def duration(text: str) -> timedelta:
    """Return a duration such as 90s, 15m, 24h, 30d or 2w."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter("write a duration like 90s, 15m, 24h, 30d or 2w")
    try:
        return timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    except OverflowError:
        raise typer.BadParameter("that is longer than 2.7 million years") from None


def moment(text: str) -> datetime:
    """Return a time; a date means midnight, a time without a zone is UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write a time like 2026-11-20 or 2026-11-20T14:00:00Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def moment_ahead(text: str) -> datetime:
    """Return a future time, written as a time or as a duration from now."""
    if _DURATION.fullmatch(text.strip().lower()):
        try:
            return datetime.now(UTC) + duration(text)
        except OverflowError:
            raise typer.BadParameter("that is too far ahead") from None
    return moment(text)
