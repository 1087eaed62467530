"""Rate and concurrency limits of tenants, and the order of waiting requests when the service is full.

Three limits in this order: a token bucket per tenant (rate), a maximum of the tenant's requests in flight, and a
fixed number of slots for the whole process. A request that gets no slot waits in a short queue of its tenant;
free slots go round robin over the waiting tenants, so that a noisy tenant delays only itself.
Slots are counted per process. So are rates and requests in flight, unless ``SharedRates`` counts them over all.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from app.core.contracts.policy import Limits
from app.core.errors import DeadlineExceededError, OverloadedError, RateLimitedError
from app.services.access.shared_rates import SharedRates

_REMEMBERED_TENANTS = 4096
_MIN_RETRY_AFTER_S = 0.01
_OVERLOAD_RETRY_AFTER_S = 1.0


@dataclass(slots=True, eq=False)
class _Lane:
    """The state of one tenant in this process."""

    tokens: float
    refilled_at: float
    full_at: float
    in_flight: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def take(self, now: float, limits: Limits) -> float:
        """Take one token and return 0, or return the seconds until a token is available."""
        grown = self.tokens + max(0.0, now - self.refilled_at) * limits.requests_per_second
        self.tokens = min(float(limits.burst), grown)
        pause = 0.0
        if self.tokens >= 1:
            self.tokens -= 1
        else:
            pause = max(_MIN_RETRY_AFTER_S, (1 - self.tokens) / limits.requests_per_second)
        self.refilled_at = now
        self.full_at = now + (limits.burst - self.tokens) / limits.requests_per_second
        return pause


class Admission:
    """One admitted or refused request; use it once, with ``async with``."""

    __slots__ = ("_lane", "_limits", "_tenant", "_traffic", "_until")

    def __init__(self, traffic: "Traffic", tenant: str, limits: Limits, until: float | None = None) -> None:
        self._traffic = traffic
        self._until = until
        self._tenant = tenant
        self._limits = limits
        self._lane: _Lane | None = None

    async def __aenter__(self) -> Self:
        """Wait for a slot, or raise RateLimitedError, OverloadedError or DeadlineExceededError."""
        self._lane = await self._traffic.enter(self._tenant, self._limits, self._until)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the slot to the next waiting request."""
        if self._lane is not None:
            self._traffic.leave(self._lane)
            self._lane = None


class Traffic:
    """Admits requests: ``async with traffic.admit(caller.tenant, limits): ...``.

    A request that is no invocation is only counted: ``traffic.count(caller.tenant)``. ``plain`` are the limits of
    those; no policy changes them, so that a policy can never lock out the operator who must correct it.

    ``slots`` is the number of requests that run at once, ``queue_per_tenant`` how many of one tenant may wait
    for a slot. Waiting has no time limit of its own: call ``admit`` within the request's deadline.

    With ``rates`` a tenant's rate holds over all processes, for all that have the same ``name``.
    """

    def __init__(
        self,
        *,
        slots: int = 256,
        queue_per_tenant: int = 64,
        plain: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        rates: SharedRates | None = None,
        name: str = "calls",
    ) -> None:
        self.rates = rates
        self._name = name
        self._slots = slots
        self._queue_per_tenant = queue_per_tenant
        self._plain = plain or Limits()
        self._clock = clock
        self._running = 0
        self._lanes: dict[str, _Lane] = {}
        self._turns: deque[_Lane] = deque()
        self._forwarded: dict[tuple[str, str], int] = {}

    @property
    def running(self) -> int:
        """Return how many admitted requests run now."""
        return self._running

    @property
    def waiting(self) -> int:
        """Return how many requests wait for a slot now."""
        return sum(len(lane.waiting) for lane in self._turns)

    def admit(self, tenant: str, limits: Limits) -> Admission:
        """Return the admission of one request of ``tenant``."""
        return Admission(self, tenant, limits)

    def turn(self, tenant: str, limits: Limits, until: float) -> Admission:
        """Return an admission that waits for its turn at most until ``until`` (the event loop's clock)."""
        return Admission(self, tenant, limits, until)

    async def count(self, tenant: str) -> None:
        """Take a token for a request that is no invocation, or raise RateLimitedError; it takes no slot."""
        async with self.admit(tenant, self._plain):
            pass

    def spend(self, tenant: str, limits: Limits) -> None:
        """Take a token for a request that needs nothing else, or raise RateLimitedError."""
        self._spend(tenant, limits)

    def forwarded(
        self, tenant: str, server: str, limits: Limits, *, in_flight: int | None = None
    ) -> "Forwarding":
        """Return what a request runs in that waits for a server behind this one: it takes a token but no slot.

        The maximum of requests in flight applies per server, so that a server that hangs blocks only its own requests;
        ``in_flight`` is another one than that of ``limits``.
        """
        return Forwarding(
            self, (tenant, server), limits, limits.in_flight if in_flight is None else in_flight
        )

    def enter_forwarded(self, place: tuple[str, str], limits: Limits, most: int) -> None:
        """Take a token and count a request of a tenant to a server; see ``forwarded``."""
        self._spend(place[0], limits)
        running = self._forwarded.get(place, 0)
        if running >= self._most(":".join(place), most, lambda: self._forwarded.get(place, 0)):
            raise self._overloaded("in_flight", most)
        self._forwarded[place] = running + 1

    def leave_forwarded(self, place: tuple[str, str]) -> None:
        """Count one request of a tenant to a server less."""
        left = self._forwarded[place] - 1
        if left:
            self._forwarded[place] = left
        else:
            del self._forwarded[place]

    def forwarded_by(self, tenant: str) -> Mapping[str, int]:
        """Return how many requests of a tenant wait for others in this process, by server."""
        return {server: number for (name, server), number in self._forwarded.items() if name == tenant}

    @asynccontextmanager
    async def slot(
        self, tenant: str, limits: Limits, until: float, *, queue: int | None = None
    ) -> AsyncIterator[None]:
        """Run the body in a slot: work within a request that has already taken its token.

        ``queue``: how many of the tenant may wait, instead of ``queue_per_tenant``.
        """
        lane = self._lane(tenant, self._clock(), limits)
        await self._occupy(lane, limits, until, queue)
        try:
            yield
        finally:
            self.leave(lane)

    async def enter(self, tenant: str, limits: Limits, until: float | None = None) -> _Lane:
        """Take a token and a slot; see ``admit`` and ``turn``."""
        lane = self._spend(tenant, limits)
        if lane.in_flight >= self._most(tenant, limits.in_flight, lambda: lane.in_flight):
            raise self._overloaded("in_flight", limits.in_flight)
        await self._occupy(lane, limits, until)
        return lane

    def leave(self, lane: _Lane) -> None:
        """Hand the slot to the next waiting tenant, or free it."""
        lane.in_flight -= 1
        self._pass_on()

    def _most(self, bucket: str, cap: int, running: Callable[[], int]) -> int:
        """Return how many this process may have in flight."""
        rates = self.rates
        return cap if rates is None else rates.caps.most(f"{self._name}:{bucket}", cap, running)

    def _spend(self, tenant: str, limits: Limits) -> _Lane:
        now = self._clock()
        lane = self._lane(tenant, now, limits)
        rates = self.rates
        pause = lane.take(now, limits) if rates is None else rates.take(f"{self._name}:{tenant}", limits)
        if pause:
            raise RateLimitedError(
                f"The tenant may send {limits.requests_per_second:g} requests per second; wait a moment.",
                details={"limit": "requests_per_second", "value": limits.requests_per_second},
                retry_after_s=pause,
            )
        return lane

    async def _occupy(
        self, lane: _Lane, limits: Limits, until: float | None, queue: int | None = None
    ) -> None:
        most = self._queue_per_tenant if queue is None else queue
        if self._running < self._slots:
            self._running += 1
            lane.in_flight += 1
            return
        if len(lane.waiting) >= most:
            raise self._overloaded("queue_per_tenant", most)
        try:
            async with asyncio.timeout_at(until):
                await self._wait(lane)
        except TimeoutError:
            raise _too_late(limits) from None

    async def _wait(self, lane: _Lane) -> None:
        """Wait for a slot that ``_pass_on`` hands over; the slot stays counted as running meanwhile."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not lane.waiting:
            self._turns.append(lane)
        lane.waiting.append(turn)
        lane.in_flight += 1
        try:
            await turn
        except asyncio.CancelledError:
            lane.in_flight -= 1
            if not turn.cancelled():  # the slot arrived together with the cancellation: it must not be lost
                self._pass_on()
            elif turn in lane.waiting:
                lane.waiting.remove(turn)
                if not lane.waiting:
                    self._turns.remove(lane)
            raise

    def _pass_on(self) -> None:
        while self._turns:
            lane = self._turns.popleft()
            turn = self._next(lane)
            if lane.waiting:
                self._turns.append(lane)
            if turn is not None:
                turn.set_result(None)
                return
        self._running -= 1

    @staticmethod
    def _next(lane: _Lane) -> asyncio.Future[None] | None:
        while lane.waiting:
            turn = lane.waiting.popleft()
            if not turn.done():
                return turn
        return None

    def _lane(self, tenant: str, now: float, limits: Limits) -> _Lane:
        lane = self._lanes.get(tenant)
        if lane is None:
            if len(self._lanes) >= _REMEMBERED_TENANTS:
                self._forget(now)
            lane = self._lanes[tenant] = _Lane(float(limits.burst), refilled_at=now, full_at=now)
        return lane

    def _forget(self, now: float) -> None:
        """Drop tenants whose state is as if new: nothing in flight and the bucket full again."""
        idle = [tenant for tenant, lane in self._lanes.items() if not lane.in_flight and now >= lane.full_at]
        for tenant in idle:
            del self._lanes[tenant]

    @staticmethod
    def _overloaded(limit: str, value: int) -> OverloadedError:
        return OverloadedError(
            "Too many requests of this tenant are in flight; nothing was done, try again shortly.",
            details={"limit": limit, "value": value},
            retry_after_s=_OVERLOAD_RETRY_AFTER_S,
        )


@dataclass(frozen=True, slots=True)
class Forwarding:
    """One request to a server behind this one; use it once, with ``with``.

    It is no generator: answers stream for minutes, and a suspended one takes several times as much for as long.
    """

    traffic: Traffic
    place: tuple[str, str]
    limits: Limits
    most: int

    def __enter__(self) -> None:
        """Raise RateLimitedError or OverloadedError, or count the request."""
        self.traffic.enter_forwarded(self.place, self.limits, self.most)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.traffic.leave_forwarded(self.place)


def _too_late(limits: Limits) -> DeadlineExceededError:
    return DeadlineExceededError(
        "The request waited for its turn until its time limit; nothing was done.",
        details={"deadline_ms": limits.deadline_ms},
    )
