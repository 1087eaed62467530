"""How many bytes of bodies this process holds at once: of one key, of one tenant, of all; who comes too many waits."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from app.core.access import Caller
from app.core.errors import OverloadedError

MIB: Final = 1024 * 1024
SMALL_BODY: Final = 64 * 1024
"""Bodies up to this size never wait: a part of each limit is kept for them."""

_RESERVED: Final = 8
_MOST_WAITING: Final = 256
_TOTAL: Final = ""


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """The bytes of bodies held at once; a body larger than a limit is held while nothing else counts against it."""

    total: int = 128 * MIB
    tenant: int = 64 * MIB
    key: int = 32 * MIB


@dataclass(slots=True, eq=False)
class _Waiting:
    lanes: tuple[str, ...]
    size: int
    turn: "asyncio.Future[None]"


class ByteBudget:
    """Counts the bytes that requests hold, and lets large bodies wait for their turn, the first come first.

    A key or a tenant that holds all it may delays nobody else. Without limits reached nothing ever waits.
    """

    def __init__(self, limits: ByteLimits | None = None) -> None:
        limits = limits or ByteLimits()
        self._most = (limits.total, limits.tenant, limits.key)
        self._held: dict[str, int] = {}
        self._queue: deque[_Waiting] = deque()
        self._waiting: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Return how many bytes are held now."""
        return self._held.get(_TOTAL, 0)

    @property
    def waiting(self) -> int:
        """Return how many bodies wait for their turn."""
        return len(self._queue)

    def holding(self, caller: Caller) -> "Holding":
        """Return what a request of ``caller`` holds: nothing yet."""
        return Holding(self, (_TOTAL, f"tenant {caller.tenant}", f"key {caller.key_id}"))

    def take(self, lanes: tuple[str, ...], size: int) -> None:
        """Count ``size`` bytes of a small body, or raise OverloadedError."""
        sizes = self._held
        for lane, most in zip(lanes, self._most, strict=True):
            already = sizes.get(lane, 0)
            if already and already + size > most:
                raise _overloaded()
        self._count(lanes, size)

    async def wait(self, lanes: tuple[str, ...], size: int, timeout_s: float) -> None:
        """Wait until ``size`` bytes of a large body fit, at most ``timeout_s``; or raise OverloadedError."""
        if self._waiting[lanes[1]] >= _MOST_WAITING:
            raise _overloaded()
        waiting = _Waiting(lanes, size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._waiting[lanes[1]] += 1
        self._pass_on()
        try:
            async with asyncio.timeout(timeout_s):
                await waiting.turn
        except BaseException as error:
            self._withdraw(waiting)
            if isinstance(error, TimeoutError):
                raise _overloaded() from None
            raise

    def give_back(self, lanes: tuple[str, ...], size: int) -> None:
        """Take ``size`` bytes out of the count, and let those go on that fit now."""
        sizes = self._held
        for lane in lanes:
            left = sizes[lane] - size
            if left:
                sizes[lane] = left
            else:
                del sizes[lane]
        if self._queue:
            self._pass_on()

    def _withdraw(self, waiting: _Waiting) -> None:
        """Forget a body whose request has ended; its turn may have come in the same moment."""
        if waiting in self._queue:
            self._queue.remove(waiting)
            self._left_queue(waiting)
            self._pass_on()
        else:
            self.give_back(waiting.lanes, waiting.size)

    def _pass_on(self) -> None:
        blocked: set[str] = set()
        for waiting in list(self._queue):
            if waiting.turn.done() or not blocked.isdisjoint(waiting.lanes):
                continue  # done: its request has ended, and takes it out of the queue by itself
            full = self._full_lanes(waiting.lanes, waiting.size)
            if full:
                blocked |= full
                if _TOTAL in blocked:
                    return
                continue
            self._queue.remove(waiting)
            self._left_queue(waiting)
            self._count(waiting.lanes, waiting.size)
            waiting.turn.set_result(None)

    def _left_queue(self, waiting: _Waiting) -> None:
        tenant = waiting.lanes[1]
        self._waiting[tenant] -= 1
        if not self._waiting[tenant]:
            del self._waiting[tenant]

    def _full_lanes(self, lanes: tuple[str, ...], size: int) -> set[str]:
        """Return the lanes in which a large body does not fit: it leaves the part that is kept for small ones."""
        full = set()
        for lane, most in zip(lanes, self._most, strict=True):
            already = self._held.get(lane, 0)
            if already and already + size > most - most // _RESERVED:
                full.add(lane)
        return full

    def _count(self, lanes: tuple[str, ...], size: int) -> None:
        sizes = self._held
        for lane in lanes:
            sizes[lane] = sizes.get(lane, 0) + size


@dataclass(slots=True)
class Holding:
    """The bytes that one request holds; give them back with ``release`` when it has ended."""

    budget: ByteBudget
    lanes: tuple[str, ...]
    size: int = field(default=0, init=False)

    async def grow(self, size: int, timeout_s: float) -> None:
        """Hold ``size`` bytes in all; a large body waits for its turn, at most ``timeout_s``."""
        more = size - self.size
        if more <= 0:
            return
        if size <= SMALL_BODY:
            self.budget.take(self.lanes, more)
        else:
            await self.budget.wait(self.lanes, more, timeout_s)
        self.size = size

    def shrink(self, size: int) -> None:
        """Hold no more than ``size`` bytes."""
        if size < self.size:
            self.budget.give_back(self.lanes, self.size - size)
            self.size = size

    def release(self) -> None:
        """Hold nothing more."""
        self.shrink(0)


def _overloaded() -> OverloadedError:
    return OverloadedError(
        "Too many bytes of requests are in flight; nothing was done, try again shortly.",
        details={"limit": "bytes_in_flight"},
        retry_after_s=1.0,
    )
