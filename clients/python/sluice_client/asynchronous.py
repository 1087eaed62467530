"""The client for asynchronous code (asyncio); safe to share between tasks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from sluice_client import operations
from sluice_client.duplex import restored_stream
from sluice_client.errors import SluiceError
from sluice_client.exchange import EventedAnswer, client_settings, is_event_stream, unreachable
from sluice_client.mcp import MODERN, Revision, SessionLostError
from sluice_client.operations import Transport
from sluice_client.results import (
    ContextLike,
    Health,
    InvokeResult,
    Json,
    MiddlewareInfo,
    RedactResult,
    RestoreResult,
)
from sluice_client.wire import Options, Progress, Steps, WireAnswer, WireCall, pause_before_retry

T = TypeVar("T")


class AsyncSluice:
    """Call a Sluice service from asyncio.

    ``url`` is its address without a path (``http://127.0.0.1:8000``), ``key`` an API key. ``transport`` is
    ``rest`` or ``mcp``, ``revision`` that of MCP. ``timeout`` bounds one attempt in seconds. Use it as an
    asynchronous context manager, or call ``aclose()``.

    A request is sent again (at most ``retries`` times) only where that is safe: no byte of it was sent, the
    service said that it did not start (429, or 503 with ``Retry-After``), or doing it twice does no harm: lists,
    health, restoration, and redaction into a named scope.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        transport: Transport = "rest",
        revision: Revision = MODERN,
        timeout: float = 60.0,
        retries: int = 2,
    ) -> None:
        self._options = Options(url.rstrip("/"), key, timeout=timeout, retries=retries)
        self._dialect = operations.dialect_for(transport, revision)
        self._http = httpx2.AsyncClient(**client_settings(self._options))
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session, if any, and close all connections."""
        try:
            await self._drive(self._dialect.closing())
        except SluiceError:
            pass  # the service forgets idle sessions by itself
        finally:
            await self._http.aclose()

    async def list_middleware(self) -> list[MiddlewareInfo]:
        """Return the middlewares that this key may invoke."""
        return await self._run(lambda: operations.list_middleware(self._dialect))

    async def invoke(
        self,
        name: str,
        context: ContextLike,
        arguments: Mapping[str, Json] | None = None,
        *,
        repeatable: bool = False,
        progress: Progress | None = None,
    ) -> InvokeResult:
        """Run the middleware ``name`` on ``context``.

        ``repeatable`` allows to send it again after the connection was lost on the way. ``progress`` is called
        while the service works, over MCP only.
        """
        return await self._run(
            lambda: operations.invoke(
                self._dialect, name, context, arguments or {}, repeatable=repeatable, progress=progress
            )
        )

    async def redact(
        self, context: ContextLike, *, progress: Progress | None = None, **arguments: Json
    ) -> RedactResult:
        """Replace personal data with handles; ``arguments`` are those of ``pii_redaction``, such as ``scope``."""
        return await self._run(lambda: operations.redact(self._dialect, context, arguments, progress))

    async def restore(
        self,
        context: ContextLike,
        *,
        scope: str | None = None,
        progress: Progress | None = None,
        **arguments: Json,
    ) -> RestoreResult:
        """Restore the originals of ``scope``; ``arguments`` are those of ``pii_restoration``."""
        values = arguments if scope is None else {"scope": scope, **arguments}
        return await self._run(lambda: operations.restore(self._dialect, context, values, progress))

    def restore_stream(
        self, chunks: AsyncIterable[str], *, scope: str, **arguments: Json
    ) -> AsyncGenerator[str, None]:
        """Restore a text while it arrives, over the REST stream route; only an incomplete handle is delayed."""
        return restored_stream(self._options, chunks, {"scope": scope, **arguments})

    async def health(self) -> Health:
        """Return whether the service is ready."""
        return await self._drive(operations.health())

    async def _run(self, operation: Callable[[], Steps[T]]) -> T:
        await self._open(None)
        session = self._dialect.session
        try:
            return await self._drive(operation())
        except SessionLostError:
            await self._open(session)
            return await self._drive(operation())

    async def _open(self, lost: str | None) -> None:
        async with self._opening:
            await self._drive(self._dialect.opening(lost))

    async def _drive(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(await self._answered(call))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _answered(self, call: WireCall) -> WireAnswer:
        attempt = 0
        while True:
            try:
                return await self._once(call)
            except SluiceError as error:
                pause = pause_before_retry(error, call, attempt, self._options)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def _once(self, call: WireCall) -> WireAnswer:
        try:
            async with self._http.stream(
                call.method, call.path, headers=dict(call.headers), content=call.body
            ) as response:
                answer = await self._read(call, response)
        except httpx2.TransportError as fault:
            raise unreachable(fault, self._options) from None
        error = call.failure(answer)
        if error is not None:
            raise error
        return answer

    async def _read(self, call: WireCall, response: httpx2.Response) -> WireAnswer:
        if not is_event_stream(response.headers):
            return WireAnswer(response.status_code, response.headers, await response.aread())
        events = EventedAnswer(call, response.status_code, response.headers)
        async for line in response.aiter_lines():
            answer = events.line(line)
            if answer is not None:
                return answer
        raise events.cut()
