"""Bounds of a parser while it runs: it tells that it gets on, and stops at the longest text that is taken."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from app.core.errors import TooLargeError

LONGEST_TEXT: Final = 20_000_000
"""Most characters of a document; about forty times the longest novel."""

_listeners: list[Callable[[], None]] = []


def hear_progress(listener: Callable[[], None]) -> None:
    """Call ``listener`` for each part that a parser of this process has read."""
    _listeners.append(listener)


def bounded(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts of a text as they are read; raise TooLargeError where they are too long together."""
    length = 0
    for part in parts:
        length += len(part)
        if length > LONGEST_TEXT:
            raise too_long()
        for listener in _listeners:
            listener()
        yield part


def too_long() -> TooLargeError:
    """Return the error for a text that is too long."""
    return TooLargeError(
        "The document's text is too long; split it into several documents.", details={"limit": LONGEST_TEXT}
    )
