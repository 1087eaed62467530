"""Give the memory of large bodies back to the system: the C library would keep what was freed for itself."""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

LARGE_BYTES: Final = 1024 * 1024
"""Requests and answers from this size on leave memory that is worth giving back."""

_MOST_UNCOLLECTED_BYTES: Final = 64 * 1024 * 1024
_QUIET_S: Final = 1.0
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_OWN_MAPPING_BYTES: Final = 256 * 1024
_ARENAS: Final = 2


def _of_c_library(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, None where it has none (musl, macOS)."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
    return function


def tune_allocator() -> None:
    """Let large blocks have mappings of their own, and few arenas: call it once, at the start of a process.

    glibc raises its threshold for mappings with each large block that is freed, and makes eight arenas for each core;
    both keep what threads freed for good.
    """
    set_option = _of_c_library("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        set_option(_M_ARENA_MAX, _ARENAS)


@dataclass(slots=True)
class FreedMemory:
    """Frees what large bodies left in cycles; asks the C library for what it keeps, a moment after the last of them.

    The collector of cycles counts objects, and a large text is one: it would come by after thousands of requests, or
    never. A body ends in a cycle where a frame that held it also holds the exception that left it.
    """

    quiet_s: float = _QUIET_S
    trim: Callable[..., int] | None = field(default_factory=lambda: _of_c_library("malloc_trim"))
    collect: Callable[[], int] = gc.collect
    _uncollected: int = 0
    _timer: asyncio.TimerHandle | None = None

    def ended(self, size: int) -> None:
        """Take note that a request of ``size`` bytes, of its body and its answer, has ended.

        Small ones need not be reported: the collector counts their objects sooner than their bytes add up.
        """
        self._uncollected += size
        # Where requests never cease there is no quiet moment.
        if self._uncollected >= _MOST_UNCOLLECTED_BYTES:
            self._collect()
        if size < LARGE_BYTES:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self.quiet_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._collect()
        if self.trim is not None:
            # In a thread: it takes as long as there is memory to give back, without the interpreter's lock.
            asyncio.get_running_loop().run_in_executor(None, self.trim, 0)

    def _collect(self) -> None:
        self._uncollected = 0
        self.collect()
