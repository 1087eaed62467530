"""Cursors over a list that is held in memory: opaque, bound to the list they were made for."""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import TypeVar

from app.core.errors import InvalidArgumentsError

T = TypeVar("T")

_DIGEST_BYTES = 9


def page(
    items: Sequence[T], names: Sequence[str], cursor: str | None, size: int
) -> tuple[Sequence[T], str | None]:
    """Return one page of ``items`` and the cursor of the next; ``names`` identify the items, in order.

    A cursor of another list (the list changed meanwhile, or it is somebody else's) is an
    InvalidArgumentsError, as is one that we never made: skipping or repeating items silently would be worse.
    """
    return page_of(items, hashlib.sha256("\0".join(names).encode()).digest(), cursor, size)


def page_of(
    items: Sequence[T], fingerprint: bytes, cursor: str | None, size: int
) -> tuple[Sequence[T], str | None]:
    """Return one page of ``items`` and the cursor of the next, which holds for lists of that fingerprint."""
    digest = fingerprint[:_DIGEST_BYTES]
    start = 0 if cursor is None else _start_of(cursor, digest)
    if cursor is not None and not 0 < start < len(items):
        raise _stale()
    end = start + size
    following = None if end >= len(items) else _cursor(digest, end)
    return items[start:end], following


def _cursor(digest: bytes, start: int) -> str:
    return base64.urlsafe_b64encode(digest + start.to_bytes(3, "big")).decode()


def _start_of(cursor: str, digest: bytes) -> int:
    try:
        raw = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _stale() from None
    if len(raw) != _DIGEST_BYTES + 3 or raw[:_DIGEST_BYTES] != digest:
        raise _stale()
    return int.from_bytes(raw[_DIGEST_BYTES:], "big")


def _stale() -> InvalidArgumentsError:
    return InvalidArgumentsError(
        "The cursor is not valid, or the list changed since it was given; start again without a cursor.",
        details={"pointer": "/cursor"},
    )
