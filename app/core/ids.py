"""Identifiers that sort by time of creation."""

import os
import threading
import time
from datetime import datetime
from uuid import UUID, SafeUUID

_RANDOM_BITS = 74
_STEP_BITS = 32
_LOW_BITS = 62
_TIMELESS_BITS = 80
_LAST_MILLIS = (1 << 48) - 1
_DRAWN_BYTES = 1024
_LOW = (1 << _LOW_BITS) - 1
_MARKS = 0x7 << 76 | 0b10 << 62
"""The version, and the variant."""


class _RandomBits:
    """Random bits of the system, drawn for many identifiers at once: each draw is a call of the system."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop what was drawn: a child of this process must not use the same bits."""
        self._drawn, self._position = b"", 0

    def next(self, bits: int) -> int:
        """Return ``bits`` random bits as a number."""
        size = (bits + 7) // 8
        start, end = self._position, self._position + size
        if end > len(self._drawn):
            self._drawn, start, end = os.urandom(_DRAWN_BYTES), 0, size
        self._position = end
        return int.from_bytes(self._drawn[start:end]) >> (8 * size - bits)


class _Clock:
    """Remember the last identifier, so that the next one is greater even if the system clock stands still."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millis = 0
        self._random = 0
        self._bits = _RandomBits()
        os.register_at_fork(after_in_child=self._bits.forget)

    def advance(self) -> tuple[int, int]:
        """Return the next pair of milliseconds and 74 random bits, greater than every pair before it."""
        now = time.time_ns() // 1_000_000
        with self._lock:
            if now > self._millis:
                self._millis, self._random = now, self._bits.next(_RANDOM_BITS)
            else:
                self._random += 1 + self._bits.next(_STEP_BITS)
                if self._random >> _RANDOM_BITS:
                    self._millis, self._random = self._millis + 1, self._bits.next(_RANDOM_BITS)
            return self._millis, self._random


_clock = _Clock()


def uuid7() -> UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7), strictly greater than those before it in this process.

    Within one millisecond the random part grows by a random step (section 6.2, method 2).
    """
    made = object.__new__(UUID)
    # What its initialiser does with a number, after it has asked five times what it was given.
    object.__setattr__(made, "int", _next())
    object.__setattr__(made, "is_safe", SafeUUID.unknown)
    return made


def uuid7_text() -> str:
    """Return the text of such a UUID, for where nothing needs the object."""
    digits = f"{_next():032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def lowest_uuid7(moment: datetime) -> UUID:
    """Return a UUID below all of version 7 that were made at ``moment``, and above those of a millisecond before."""
    millis = int(moment.timestamp() * 1000)
    return UUID(int=min(max(millis, 0), _LAST_MILLIS) << _TIMELESS_BITS)


def _next() -> int:
    millis, random = _clock.advance()
    return millis << _TIMELESS_BITS | (random >> _LOW_BITS) << 64 | random & _LOW | _MARKS
