"""Caps on what a tenant has in flight over all processes: each holds room in the background and decides by what it has.

A process always has its share, the cap over the number of processes. More is held of what the others leave. So what
runs together is at most the cap and, while processes that had nothing begin to use their shares, less than twice that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.core.contracts.leases import HoldRequest, TokenBuckets

_RENEWED_S: Final = 1.0
_DENIED_S: Final = 0.25
_MOST: Final = 256
"""Caps in one exchange."""
_AHEAD: Final = 4


@dataclass(slots=True)
class _Cap:
    """What this process may have in flight of one tenant; ``running`` counts what it has."""

    bucket: str
    cap: int
    running: Callable[[], int]
    used_at: float
    granted: int = 0
    ask_at: float = 0.0


class SharedCaps:
    """Room for what runs: ``most`` answers at once, ``renew`` asks for more and keeps what is used.

    ``wake`` is called when there is something to ask for.
    """

    def __init__(self, buckets: TokenBuckets, wake: Callable[[], None], clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._wake = wake
        self._clock = clock
        self._caps: dict[str, _Cap] = {}
        self._hungry: dict[str, _Cap] = {}
        self._processes = 0
        self._renewed_at = clock()

    def most(self, bucket: str, cap: int, running: Callable[[], int]) -> int:
        """Return how many of a tenant may run in this process now."""
        now = self._clock()
        own = self._caps.get(bucket)
        if own is None:
            own = self._caps[bucket] = _Cap(bucket, cap, running, now)
        own.cap, own.running, own.used_at = cap, running, now
        if not self._processes:
            return cap
        most = max(self._share(cap), min(own.granted, cap))
        if most < cap and 2 * running() >= most and own.ask_at <= now and bucket not in self._hungry:
            self._hungry[bucket] = own
            self._wake()
        return most

    def apart(self) -> None:
        """Begin to count by this process alone."""
        self._processes = 0
        self._hungry.clear()
        for own in self._caps.values():
            own.granted = 0

    async def renew(self, processes: int) -> None:
        """Ask for what is wanted, and once a second for all that is used; raises what the place of the buckets does."""
        self._processes, now = processes, self._clock()
        wanting = list(self._hungry.values())[:_MOST]
        if now - self._renewed_at >= _RENEWED_S:
            self._renewed_at = now
            wanting = list(self._caps.values())
        for begin in range(0, len(wanting), _MOST):
            await self._ask(wanting[begin : begin + _MOST], now)

    async def _ask(self, wanting: list[_Cap], now: float) -> None:
        requests = [self._request(own) for own in wanting]
        for own, request, granted in zip(wanting, requests, await self._buckets.hold(requests), strict=True):
            own.granted = granted
            own.ask_at = now + _DENIED_S if granted < request.wanted else 0.0
            self._hungry.pop(own.bucket, None)
            if not request.running and now - own.used_at >= _RENEWED_S and not own.running():
                self._caps.pop(own.bucket, None)

    def _request(self, own: _Cap) -> HoldRequest:
        running = own.running()
        needs_more = own.bucket in self._hungry or running * 2 >= self._share(own.cap)
        wanted = min(own.cap, 2 * running + _AHEAD) if running and needs_more else 0
        return HoldRequest(own.bucket, own.cap, running, wanted)

    def _share(self, cap: int) -> int:
        return max(1, cap // self._processes)
