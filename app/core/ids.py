"""Identifiers that sort by time of creation."""

import secrets
import threading
import time
from uuid import UUID

_RANDOM_BITS = 74
_STEP_BITS = 32
_LOW_BITS = 62


class _Clock:
    """Remember the last identifier, so that the next one is greater even if the system clock stands still."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millis = 0
        self._random = 0

    def advance(self) -> tuple[int, int]:
        """Return the next pair of milliseconds and 74 random bits, greater than every pair before it."""
        now = time.time_ns() // 1_000_000
        with self._lock:
            if now > self._millis:
                self._millis, self._random = now, secrets.randbits(_RANDOM_BITS)
            else:
                self._random += 1 + secrets.randbits(_STEP_BITS)
                if self._random >> _RANDOM_BITS:
                    self._millis, self._random = self._millis + 1, secrets.randbits(_RANDOM_BITS)
            return self._millis, self._random


_clock = _Clock()


def uuid7() -> UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7), strictly greater than those before it in this process.

    Within one millisecond the random part grows by a random step (section 6.2, method 2).
    """
    millis, random = _clock.advance()
    high, low = random >> _LOW_BITS, random & ((1 << _LOW_BITS) - 1)
    return UUID(int=millis << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)
