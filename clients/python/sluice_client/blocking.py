"""The blocking client: every call waits for its result; safe to share between threads."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx2

from sluice_client import operations
from sluice_client.admin import Audit, Erasures, Keys, Policies, Subjects
from sluice_client.arguments import RedactArguments, RestoreArguments, address, credential, trust
from sluice_client.duplex import restored_stream
from sluice_client.errors import SluiceError
from sluice_client.event_streams import Event, restored_events
from sluice_client.exchange import EventedAnswer, client_settings, is_event_stream, unreachable
from sluice_client.families import SHAPES, Family
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
from sluice_client.threads import iterate
from sluice_client.wire import Options, Progress, Steps, WireAnswer, WireCall, pause_before_retry

T = TypeVar("T")


class Sluice:
    """Call a Sluice service.

    ``url`` is its address without a path, ``key`` an API key; without them the variables ``SLUICE_URL`` (else
    ``http://127.0.0.1:8000``) and ``SLUICE_API_KEY`` say both. ``verify`` is as in httpx2: False, a file of
    certificate authorities or a context. ``http_client`` sends the requests instead of a client of our own and stays
    open; streams open connections of their own. ``transport`` is
    ``rest`` or ``mcp``, ``revision`` that of MCP. ``timeout`` bounds one attempt in seconds. Use it as a context
    manager, or call ``close()``.

    A request is sent again (at most ``retries`` times) only where that is safe: no byte of it was sent, the
    service said that it did not start (429, or 503 with ``Retry-After``), or doing it twice does no harm: lists,
    health, restoration, and redaction into a named scope.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        transport: Transport = "rest",
        revision: Revision = MODERN,
        timeout: float = 60.0,
        retries: int = 2,
        verify: bool | str | ssl.SSLContext = True,
        http_client: httpx2.Client | None = None,
    ) -> None:
        self._options = Options(
            address(url), credential(key), timeout=timeout, retries=retries, trust=trust(verify)
        )
        self._dialect = operations.dialect_for(transport, revision)
        self._http = http_client or httpx2.Client(**client_settings(self._options))
        self._owns_http = http_client is None
        self.keys = Keys(self._drive, self._drive)
        self.policies = Policies(self._drive, self._drive)
        self.audit = Audit(self._drive, self._drive, self._drive)
        self.subjects = Subjects(self._drive)
        self.erasures = Erasures(self._drive)
        self._opening = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session, if any, and close all connections."""
        try:
            self._drive(self._dialect.closing())
        except SluiceError:
            pass  # the service forgets idle sessions by itself
        finally:
            if self._owns_http:
                self._http.close()

    def list_middleware(self) -> list[MiddlewareInfo]:
        """Return the middlewares that this key may invoke."""
        return self._run(lambda: operations.list_middleware(self._dialect))

    def invoke(
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
        return self._run(
            lambda: operations.invoke(
                self._dialect, name, context, arguments or {}, repeatable=repeatable, progress=progress
            )
        )

    def redact(
        self, context: ContextLike, *, progress: Progress | None = None, **arguments: Unpack[RedactArguments]
    ) -> RedactResult:
        """Replace personal data with handles; ``arguments`` are those of ``pii_redaction``, such as ``scope``."""
        return self._run(lambda: operations.redact(self._dialect, context, arguments, progress))

    def restore(
        self,
        context: ContextLike,
        *,
        scope: str | None = None,
        progress: Progress | None = None,
        **arguments: Unpack[RestoreArguments],
    ) -> RestoreResult:
        """Restore the originals of ``scope``; ``arguments`` are those of ``pii_restoration``."""
        values = {**arguments} if scope is None else {"scope": scope, **arguments}
        return self._run(lambda: operations.restore(self._dialect, context, values, progress))

    def restore_stream(
        self, chunks: Iterable[str], *, scope: str, **arguments: Unpack[RestoreArguments]
    ) -> Generator[str, None, None]:
        """Restore a text while it arrives, over the REST stream route; only an incomplete handle is delayed.

        ``chunks`` is read in another thread, so that output does not wait for the next input.
        """
        values = {"scope": scope, **arguments}
        return iterate(chunks, lambda source: restored_stream(self._options, source, values))

    def restore_events(
        self, events: Iterable[Event], *, family: Family, scope: str, tools: Sequence[str] = ()
    ) -> Generator[Event, None, None]:
        """Restore the events of a model's stream, of one family, as JSON.

        Texts come as they arrive, each channel for itself. The arguments of ``tools`` come whole, when the call is
        complete; other arguments keep their handles. ``events`` is read in another thread.
        """
        stream = partial(restored_stream, self._options, arguments={"scope": scope})

        async def whole(tool: str, arguments: str) -> str:
            call = {"type": "function_call", "call_id": "call", "name": tool, "arguments": arguments}
            restored = await asyncio.to_thread(self.restore, [call], scope=scope, tools=[tool])
            return str(restored.content[0]["arguments"])

        return iterate(events, lambda source: restored_events(source, SHAPES[family](tools), stream, whole))

    def health(self) -> Health:
        """Return whether the service is ready."""
        return self._drive(operations.health())

    def _run(self, operation: Callable[[], Steps[T]]) -> T:
        self._open(None)
        session = self._dialect.session
        try:
            return self._drive(operation())
        except SessionLostError:
            self._open(session)
            return self._drive(operation())

    def _open(self, lost: str | None) -> None:
        with self._opening:
            self._drive(self._dialect.opening(lost))

    def _drive(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(self._answered(call))
        except StopIteration as end:
            result: T = end.value
            return result

    def _answered(self, call: WireCall) -> WireAnswer:
        attempt = 0
        while True:
            try:
                return self._once(call)
            except SluiceError as error:
                pause = pause_before_retry(error, call, attempt, self._options)
                if pause is None:
                    raise
            time.sleep(pause)
            attempt += 1

    def _once(self, call: WireCall) -> WireAnswer:
        try:
            with self._http.stream(
                call.method,
                f"{self._options.url}{call.path}",
                headers={**self._options.headers, **call.headers},
                content=call.body,
                timeout=httpx2.Timeout(self._options.timeout, connect=self._options.connect_timeout),
            ) as response:
                answer = self._read(call, response)
        except httpx2.TransportError as fault:
            raise unreachable(fault, self._options) from None
        error = call.failure(answer)
        if error is not None:
            raise error
        return answer

    def _read(self, call: WireCall, response: httpx2.Response) -> WireAnswer:
        if not is_event_stream(response.headers):
            return WireAnswer(response.status_code, response.headers, response.read())
        events = EventedAnswer(call, response.status_code, response.headers)
        for line in response.iter_lines():
            answer = events.line(line)
            if answer is not None:
                return answer
        raise events.cut()
