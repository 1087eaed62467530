"""Read and parse the bodies of requests whose caller is known: counted, timed, in their turn, off the event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.types import Message, Receive

from app.core.access import Caller, Role
from app.core.deadlines import WaitLimit
from app.core.errors import DeadlineExceededError, ForbiddenError, ServiceError, TooLargeError
from app.core.strictjson import loads
from app.edge.budget import SMALL_BODY, ByteBudget, Holding
from app.edge.facts import RequestFacts
from app.edge.limits import ClientGoneError, EdgeLimits, Headers, Refused, RouteLimits, check_type

_JSON: Final = frozenset({"application/json"})
_PARSED_AT_ONCE: Final = 128 * 1024
"""Up to this size parsing takes a few milliseconds at most, whatever the shape."""

_LINGER_S: Final = 2.0
_NOBODY: Final = Caller("", "", frozenset())
_USERS: Final = frozenset({Role.INVOKER, Role.RESTORER})


@dataclass(frozen=True, slots=True)
class Bodies:
    """Reads what requests bring; ``budget`` bounds what is held at once, ``parsers`` parse what is large."""

    limits: EdgeLimits
    budget: ByteBudget
    parsers: ThreadPoolExecutor = field(repr=False)

    @classmethod
    def within(cls, limits: EdgeLimits) -> "Bodies":
        """Return a reader within ``limits``."""
        # One thread by default: parsing keeps the interpreter's lock, so that several would only take it in turns
        # among themselves and let the event loop wait for all of them.
        parsers = ThreadPoolExecutor(limits.parsers, thread_name_prefix="sluice-parser")
        return cls(limits, ByteBudget(limits.in_flight), parsers)

    def holding(self, caller: Caller | None) -> Holding:
        """Return what a request of ``caller`` holds: nothing yet."""
        return self.budget.holding(caller or _NOBODY)

    async def json(self, receive: Receive, headers: Headers, facts: RequestFacts, holding: Holding) -> bytes:
        """Return the whole body; its value is in ``facts``, where there is a body."""
        largest = _largest(facts, self.limits)
        if headers.content_length > largest:
            raise Refused(_too_large(largest, self.limits), linger=headers.announces_body)
        if headers.announces_body:
            check_type(headers, _JSON)
        announced = headers.content_length or (SMALL_BODY if headers.announces_body else 0)
        if announced:
            await self._hold(holding, announced)
        body = await self._timed(receive, largest, holding)
        holding.shrink(len(body))
        if not body:
            return body
        check_type(headers, _JSON)
        facts.body, facts.bytes_in = body, len(body)
        parse = partial(loads, body, max_depth=self.limits.max_depth)
        if len(body) <= _PARSED_AT_ONCE:
            facts.json = parse()
        else:
            facts.json = await asyncio.get_running_loop().run_in_executor(self.parsers, parse)
        return body

    async def streamed(
        self, receive: Receive, headers: Headers, route: RouteLimits, holding: Holding
    ) -> Receive:
        """Return where a body is to be read piece by piece; it is held at once where the route collects it."""
        check_type(headers, route.streamed)
        most = min(route.most or self.limits.max_body_bytes, self.limits.max_body_bytes)
        if headers.content_length > most:
            raise Refused(_larger_than(most), linger=True)
        if route.whole:
            await self._hold(holding, headers.content_length or most)
        return counted(receive, self.limits, most)

    async def _timed(self, receive: Receive, largest: int, holding: Holding) -> bytes:
        """Read the body; the time that it waits for its turn is not the client's."""
        chunks: list[bytes] = []
        total = 0
        until = asyncio.get_running_loop().time() + self.limits.body_timeout_s
        while True:
            try:
                with WaitLimit(until):
                    message = await receive()
            except TimeoutError:
                raise Refused(too_slow(), HTTPStatus.REQUEST_TIMEOUT) from None
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunk = message.get("body", b"")
            total += len(chunk)
            if total > largest:
                raise Refused(_too_large(largest, self.limits), linger=True)
            if total > holding.size:  # a body of unknown length has turned out to be a large one
                waited = asyncio.get_running_loop().time()
                await self._hold(holding, largest)
                until += asyncio.get_running_loop().time() - waited
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def _hold(self, holding: Holding, size: int) -> None:
        try:
            await holding.grow(size, self.limits.turn_timeout_s)
        except ServiceError as error:
            raise Refused(error, linger=True) from None


def counted(receive: Receive, limits: EdgeLimits, most: int) -> Receive:
    """Return ``receive`` for a streamed body; it raises where a body is larger than ``most`` or pauses too long."""
    total = 0

    async def next_piece() -> Message:
        nonlocal total
        try:
            async with asyncio.timeout(limits.stream_idle_s):
                message = await receive()
        except TimeoutError:
            raise too_slow() from None
        total += len(message.get("body", b""))
        if total > most:
            raise _larger_than(most)
        return message

    return next_piece


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives ``body`` once and then what the server has to say."""
    pending = [body]

    async def again() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return again


async def linger(receive: Receive) -> None:
    """Take and drop what the client still sends, for a moment, so that it can read why it was refused."""
    try:
        async with asyncio.timeout(_LINGER_S):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
    except TimeoutError:
        return


def too_slow() -> DeadlineExceededError:
    """Return the refusal of a body that does not arrive in time."""
    return DeadlineExceededError("The body did not arrive in time.")


def _largest(facts: RequestFacts, limits: EdgeLimits) -> int:
    """Return how large a body may be: at an MCP endpoint only callers who may use something send large ones."""
    if facts.is_mcp and facts.caller is not None and facts.caller.roles.isdisjoint(_USERS):
        return min(SMALL_BODY, limits.max_body_bytes)
    return limits.max_body_bytes


def _too_large(largest: int, limits: EdgeLimits) -> ServiceError:
    if largest == limits.max_body_bytes:
        return _larger_than(largest)
    return ForbiddenError(
        f"A message of more than {largest} bytes needs the role invoker or restorer.",
        details={"required": sorted(_USERS), "maximum": largest},
    )


def _larger_than(maximum: int) -> TooLargeError:
    return TooLargeError(
        f"The body is larger than {maximum} bytes.", details={"limit": "body_bytes", "maximum": maximum}
    )
