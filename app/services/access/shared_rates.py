"""Rates of tenants over all processes: each leases tokens in the background and decides on its own lease.

No call waits for the network. Where the place of the buckets is gone, each process counts by itself until it is back.

A process that meets a tenant takes its share of the burst on credit (the burst over the number of processes) and lets
the bucket be charged for it, below zero if need be; later it holds at most that share of leased tokens. So all
processes together admit in any ``t`` seconds at most ``burst + rate * t`` and the shares once more: another burst, or
one request for each process where the burst is smaller than their number. What is charged is paid back by waiting.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import gethostname
from typing import Any, Final

from app.core.access import SYSTEM_TENANT, Caller
from app.core.audit import OUTCOME_OK
from app.core.background import BackgroundTasks, meanwhile
from app.core.contracts.leases import Lease, LeaseRequest, TokenBuckets
from app.core.contracts.policy import Limits
from app.services.access.shared_caps import SharedCaps
from app.services.audit.audit import AuditService

TIMEOUT_S: Final = 0.4
"""Time limit of one exchange; with the pause between two it is less than a second until a silent place is noticed."""
_EVERY_S: Final = 0.25
_RETRY_S: Final = 1.0
_PACE_S: Final = 0.01
"""The least pause between two exchanges: a flood of refused calls must not become a flood of questions."""
_IDLE_S: Final = 1.0
_MOST: Final = 256
"""Buckets in one exchange."""
_MIN_RETRY_AFTER_S: Final = 0.05

_log = logging.getLogger("sluice.limits")


_COUNTER: Final = Caller(SYSTEM_TENANT, "limits", frozenset())


def recorded(audit: AuditService) -> Callable[[bool], Coroutine[Any, Any, None]]:
    """Return what puts on record, for operators of the tenant `system`, that this process counts otherwise now."""

    async def record(together: bool) -> None:
        details = {"together": together, "host": gethostname(), "process": os.getpid()}
        await audit.record(audit.new_event(_COUNTER, "limits.count", OUTCOME_OK, None, details=details))

    return record


@dataclass(slots=True)
class _Account:
    """What this process may spend of one bucket.

    ``owed`` tokens of it were taken on credit. ``full_at`` is when the bucket would be full again if nobody spent.
    """

    bucket: str
    tokens: float
    owed: float
    rate: float
    burst: int
    refilled_at: float
    used_at: float
    full_at: float
    ask_at: float = 0.0

    def refill(self, now: float) -> None:
        """Add what the time since the last refill brings, where this process counts by itself."""
        grown = self.tokens + max(0.0, now - self.refilled_at) * self.rate
        self.tokens = min(float(self.burst), grown)
        self.refilled_at = now
        self.full_at = now + (self.burst - self.tokens) / self.rate

    def pause(self, now: float, *, shared: bool) -> float:
        """Return the seconds until there may be a token."""
        level = self.burst - max(0.0, self.full_at - now) * self.rate if shared else self.tokens
        return max(_MIN_RETRY_AFTER_S, (1 - level) / self.rate)


class SharedRates:
    """Tokens of all tenants: ``take`` decides at once, ``running`` keeps the leases, ``caps`` what may be in flight.

    ``changed`` is told whenever the processes begin to count together (True) or each by itself (False).
    """

    def __init__(
        self,
        buckets: TokenBuckets,
        changed: Callable[[bool], Coroutine[Any, Any, None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._buckets = buckets
        self._changed = changed
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self._hungry: dict[str, _Account] = {}
        self._wake = asyncio.Event()
        self._tasks = BackgroundTasks()
        self._together: bool | None = None
        self._processes = 1
        self._swept_at = clock()
        self.caps = SharedCaps(buckets, self._wake.set, clock)

    @property
    def processes(self) -> int:
        """Return how many processes count together now; 0 where this one counts by itself."""
        return self._processes if self._together else 0

    def take(self, bucket: str, limits: Limits) -> float:
        """Take one token and return 0, or return the seconds after which to try again."""
        now = self._clock()
        account = self._accounts.get(bucket)
        if account is None:
            account = self._opened(bucket, limits, now)
        account.rate, account.burst, account.used_at = limits.requests_per_second, limits.burst, now
        shared = self._together is True
        if not shared:
            account.refill(now)
        pause = 0.0
        if account.tokens >= 1:
            account.tokens -= 1
        else:
            pause = account.pause(now, shared=shared)
        if shared and account.tokens < self._share(account) / 2 and bucket not in self._hungry:
            self._ask(account)
        return pause

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ask once, so that the first call knows who else is there, then keep the leases while the body runs."""
        await self.exchange()
        try:
            async with meanwhile(self._run(), name="limits"):
                yield
        finally:
            await self._tasks.close()
            await self._buckets.leave()

    async def exchange(self) -> None:
        """Ask for what is wanted now, in one round trip; never raises."""
        self._wake.clear()
        now = self._clock()
        accounts, requests = [], []
        for account in [*self._due(now), *self._idle(now)][:_MOST]:
            request = self._request(account, now)
            if request is not None:
                accounts.append(account)
                requests.append(request)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                self._processes, leases = await self._buckets.lease(requests)
                await self.caps.renew(self._processes)
        except Exception as error:  # noqa: BLE001 - whatever it is, this process counts by itself
            self._count(together=False, reason=type(error).__name__)
            return
        for account, request, lease in zip(accounts, requests, leases, strict=True):
            self._settle(account, request, lease)
        self._count(together=True)

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._wake.wait()
            await self.exchange()
            await asyncio.sleep(_PACE_S)

    def _pause(self) -> float:
        """Return how long to wait for new wants before the next exchange."""
        if not self._together:
            return _RETRY_S
        first = min((account.ask_at for account in self._hungry.values()), default=math.inf)
        return max(0.0, min(_EVERY_S, first - self._clock()))

    def _opened(self, bucket: str, limits: Limits, now: float) -> _Account:
        """Return the account of a bucket that this process has not used lately: its share, on credit."""
        rate, burst = limits.requests_per_second, limits.burst
        account = _Account(bucket, float(burst), 0.0, rate, burst, now, now, now)
        if self._together:
            account.tokens = account.owed = self._share(account)
            self._ask(account)
        self._accounts[bucket] = account
        return account

    def _ask(self, account: _Account) -> None:
        self._hungry[account.bucket] = account
        self._wake.set()

    def _share(self, account: _Account) -> float:
        """Return how many tokens one process may hold."""
        return float(max(1, account.burst // self._processes))

    def _due(self, now: float) -> list[_Account]:
        return [account for account in self._hungry.values() if account.ask_at <= now]

    def _idle(self, now: float) -> list[_Account]:
        """Return accounts that nobody used for a while, once a second; forget those of full buckets."""
        if now - self._swept_at < _IDLE_S:
            return []
        self._swept_at = now
        self._forget(now)
        return [
            account
            for account in self._accounts.values()
            if now - account.used_at >= _IDLE_S and account.tokens >= 2  # noqa: PLR2004 - more than it keeps
        ]

    def _forget(self, now: float) -> None:
        """Drop accounts whose buckets are full again: they are as if new."""
        for bucket, account in list(self._accounts.items()):
            if now - account.used_at >= _IDLE_S and now >= account.full_at and not account.owed:
                del self._accounts[bucket]
                self._hungry.pop(bucket, None)

    def _request(self, account: _Account, now: float) -> LeaseRequest | None:
        if not self._together:
            return None
        idle = now - account.used_at >= _IDLE_S
        # What is not used, others may have; one token stays, so that a lone call is served at once.
        wanted = float(int((1 if idle else self._share(account)) - account.tokens))
        if wanted < 0:
            account.tokens += wanted
        return LeaseRequest(account.bucket, account.rate, account.burst, account.owed, wanted)

    def _settle(self, account: _Account, request: LeaseRequest, lease: Lease) -> None:
        now = self._clock()
        account.owed -= request.owed
        account.tokens += max(0.0, lease.granted)
        account.full_at = now + (account.burst - lease.level) / account.rate
        if account.tokens >= 1:
            self._hungry.pop(account.bucket, None)
        else:
            account.ask_at = now + min(_EVERY_S, account.pause(now, shared=True))

    def _count(self, *, together: bool, reason: str = "") -> None:
        """Note whether the processes count together; where that changes, say so and begin anew."""
        if together is self._together:
            return
        before, now = self._together, self._clock()
        self._together = together
        self._hungry = dict(self._accounts) if together else {}
        if not together:
            self.caps.apart()
        for account in self._accounts.values():
            account.refilled_at = now
            if together:
                # What this process allowed itself meanwhile is charged up to its share.
                account.tokens = account.owed = min(account.tokens, self._share(account))
                account.full_at, account.ask_at = now + account.burst / account.rate, 0.0
        if together:
            _log.info("limits are counted over all processes")
        else:
            _log.warning("limits are counted per process: the shared place does not answer (%s)", reason)
        if before is not None or not together:
            self._tasks.start(self._changed(together), name="limits changed")
