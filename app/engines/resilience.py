"""Call an engine on another server without depending on it: time limit, circuit breaker, fallback, shadow mode."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic, TypeVar

from app.core.background import BackgroundTasks
from app.core.contracts.engines import (
    ChunkProposals,
    Embeddings,
    EngineReport,
    Grounding,
    InjectionJudgement,
    Moderation,
    Retrieval,
    SecretFindings,
    ToolRanking,
)
from app.core.deadlines import remaining_s
from app.core.errors import UpstreamUnavailableError

_log = logging.getLogger(__name__)
_SHARE = 0.5
"""The share of the remaining time that a remote engine may use; the rest is left for the fallback."""
_IMPATIENT = "the caller had no more time"

R = TypeVar(
    "R",
    Embeddings,
    ToolRanking,
    Moderation,
    InjectionJudgement,
    SecretFindings,
    Retrieval,
    Grounding,
    ChunkProposals,
)


class RemoteEngineError(Exception):
    """A remote engine gave no usable answer; ``reason`` is our own wording, never the other side's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Observer = Callable[[str, str], None]
"""Receives capability and outcome: served, fallback, refused, agreed, differed, shadow_failed or shadow_dropped."""


def unobserved(_capability: str, _outcome: str) -> None:
    """Count nothing."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How far a remote engine is trusted.

    ``timeout_s`` limits one call; after ``failures`` in a row no call is made for ``cool_down_s``, then one call tries.
    ``fallback`` lets the embedded engine serve instead. In ``shadow`` the embedded engine always serves and the remote
    one is called as well, at most ``shadows`` at once, to count how often they agree.
    """

    timeout_s: float = 5.0
    failures: int = 5
    cool_down_s: float = 30.0
    fallback: bool = True
    shadow: bool = False
    shadows: int = 4


class State(Enum):
    """State of a circuit: CLOSED lets calls through, OPEN lets none, HALF_OPEN lets one try."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Circuit breaker: stops calls to an engine that keeps failing; all methods run on one event loop."""

    def __init__(
        self, failures: int, cool_down_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._cool_down_s = cool_down_s
        self._clock = clock
        self._failures = 0
        self._opened = 0.0
        self.state = State.CLOSED

    def admits(self) -> bool:
        """Return whether a call may be made; the first one after the pause is the probe."""
        if self.state is State.OPEN and self._clock() - self._opened >= self._cool_down_s:
            self.state = State.HALF_OPEN
            return True
        return self.state is State.CLOSED

    def succeeded(self) -> None:
        """Record an answer, which closes the circuit."""
        self._failures = 0
        self.state = State.CLOSED

    def failed(self) -> bool:
        """Record a failure; return whether it opened the circuit."""
        self._failures += 1
        if self.state is State.CLOSED and self._failures < self._limit:
            return False
        opened = self.state is not State.OPEN
        self.state = State.OPEN
        self._opened = self._clock()
        return opened

    def abandoned(self) -> None:
        """Record that the caller left: this proves nothing, but the circuit must not wait for that probe."""
        if self.state is State.HALF_OPEN:
            self.state = State.OPEN


@dataclass(slots=True)
class EngineFallback(Generic[R]):
    """Calls the remote engine for one capability, and the embedded one where that fails.

    ``agree(expected, result)`` decides whether two results are equivalent, for shadow mode.
    """

    capability: str
    rules: Rules
    agree: Callable[[R, R], bool]
    observe: Observer = unobserved
    clock: Callable[[], float] = time.monotonic
    breaker: Breaker = field(init=False)
    _shadows: BackgroundTasks = field(init=False, default_factory=BackgroundTasks)

    def __post_init__(self) -> None:
        self.breaker = Breaker(self.rules.failures, self.rules.cool_down_s, self.clock)

    async def call(
        self, remote: Callable[[], Awaitable[R]], embedded: Callable[[], Awaitable[R]], *, parts: int = 1
    ) -> R:
        """Return the result of ``remote``, or of ``embedded`` with its report marked as degraded.

        ``parts`` is the number of requests that ``remote`` makes in sequence; the time limit applies to each.
        """
        if self.rules.shadow:
            result = await embedded()
            self._compare(remote, result, parts)
            return result
        if self.breaker.admits():
            try:
                result = await self._call_remote(remote, parts)
            except RemoteEngineError as error:
                self._note(error)
            else:
                self.observe(self.capability, "served")
                return result
        if not self.rules.fallback:
            self.observe(self.capability, "refused")
            raise UpstreamUnavailableError(
                "The configured engine does not answer, and the settings allow no other; try again later.",
                details={"capability": self.capability},
                retry_after_s=self.rules.cool_down_s,
            )
        self.observe(self.capability, "fallback")
        return degraded(await embedded())

    async def close(self) -> None:
        """End the calls that still run in the background."""
        await self._shadows.close()

    async def _call_remote(self, remote: Callable[[], Awaitable[R]], parts: int) -> R:
        """Await ``remote`` within its limit and its share of the caller's time."""
        left = remaining_s()
        whole = self.rules.timeout_s * parts
        limit = whole if left is None else min(whole, left * _SHARE)
        answered = False
        try:
            async with asyncio.timeout(limit):
                result = await remote()
            answered = True
        except TimeoutError:
            answered = True
            raise RemoteEngineError("timeout" if limit == whole else _IMPATIENT) from None
        except RemoteEngineError:
            answered = True
            raise
        finally:
            if not answered:
                self.breaker.abandoned()
        self.breaker.succeeded()
        return result

    def _note(self, error: RemoteEngineError) -> None:
        if error.reason == _IMPATIENT:
            # One tenant's short deadlines must not take the engine away from the others.
            self.breaker.abandoned()
            return
        opened = self.breaker.failed()
        _log.warning("the engine for %s failed: %s", self.capability, error.reason)
        if opened:
            _log.warning(
                "the engine for %s is not asked again for %g s", self.capability, self.rules.cool_down_s
            )

    def _compare(self, remote: Callable[[], Awaitable[R]], expected: R, parts: int) -> None:
        """Call ``remote`` in the background, if there is capacity, and count whether it agrees."""
        if len(self._shadows) >= self.rules.shadows:
            self.observe(self.capability, "shadow_dropped")
            return
        if self.breaker.admits():
            self._shadows.start(self._shadowed(remote, expected, parts))

    async def _shadowed(self, remote: Callable[[], Awaitable[R]], expected: R, parts: int) -> None:
        try:
            async with asyncio.timeout(self.rules.timeout_s * parts):
                result = await remote()
        except (RemoteEngineError, TimeoutError) as error:
            self._note(error if isinstance(error, RemoteEngineError) else RemoteEngineError("timeout"))
            self.observe(self.capability, "shadow_failed")
            return
        except asyncio.CancelledError:
            self.breaker.abandoned()
            raise
        self.breaker.succeeded()
        self.observe(self.capability, "agreed" if self.agree(expected, result) else "differed")


def degraded(result: R) -> R:
    """Return ``result`` with a report that marks it as degraded."""
    report: EngineReport = replace(result.report, degraded=True)
    return replace(result, report=report)
