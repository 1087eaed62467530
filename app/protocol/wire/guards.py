"""What surrounds every handler: errors become ours, requests can be cancelled, sessions begin."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from app.core.errors import InternalError, ServiceError
from app.core.upstream import UpstreamError
from app.protocol.wire.errors import REQUEST_CANCELLED, as_mcp_error, internal_error, params_error
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.protocol.wire.primitives import Method

_RESOURCE_NOT_FOUND = -32002

Step = Callable[[Context, CallNext], Awaitable[HandlerResult]]
"""What stands around a handler: it calls the rest of the chain, or answers instead."""


class Cancellable(Protocol):
    """Work that can be ended from outside."""

    def cancel(self) -> None:
        """End the work."""
        ...


class Running:
    """The requests of handshake sessions that run in this process, so that they can be cancelled."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, int | str], Cancellable] = {}

    def cancel(self, session_id: str, request_id: int | str) -> None:
        """Stop that request if it runs here; one that is unknown or finished is ignored, as the protocol says."""
        scope = self._scopes.get((session_id, request_id))
        if scope is not None:
            scope.cancel()

    def begin(self, session_id: str, request_id: int | str, work: "Cancellable") -> None:
        """Let ``cancel`` end this work; ``end`` belongs to it."""
        self._scopes[session_id, request_id] = work

    def end(self, session_id: str, request_id: int | str, work: "Cancellable") -> None:
        """Forget what ``begin`` was told, unless a client has used the id of a request twice."""
        if self._scopes.get((session_id, request_id)) is work:
            del self._scopes[session_id, request_id]

    @contextmanager
    def track(self, session_id: str, request_id: int | str) -> Iterator[anyio.CancelScope]:
        """Run the body so that ``cancel`` can end it."""
        with anyio.CancelScope() as scope:
            self.begin(session_id, request_id, scope)
            try:
                yield scope
            finally:
                self.end(session_id, request_id, scope)


@dataclass(frozen=True, slots=True)
class ErrorGuard:
    """The outermost middleware of the SDK's server: nothing but our own words leaves a failing handler.

    ``around`` are the steps that stand around single methods, the outermost first; all other methods go straight to
    their handlers.
    """

    running: Running
    around: Mapping[str, Sequence[Step]]

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Run the rest of the chain; answer its failures from the one table of errors."""
        exchange = exchange_of(ctx)
        for step in reversed(self.around.get(ctx.method, ())):
            call_next = partial(_stepped, step, call_next)
        failure: ServiceError
        try:
            return await self._cancellable(ctx, exchange, call_next)
        except InternalError as error:
            failure = internal_error(error, exchange.info.request_id)
        except ServiceError as error:
            failure = error
        except ValidationError as error:
            failure = params_error(error, ctx.params)
        except UpstreamError as error:
            # The server's own words. Code -32002 is one of the handshake revision's drafts, which the modern forbids.
            code = INVALID_PARAMS if error.code == _RESOURCE_NOT_FOUND else error.code
            raise MCPError(code, error.message, error.data) from None
        except MCPError as error:
            raise _with_request_id(error, exchange) from None
        except Exception as error:  # noqa: BLE001 - the last net before the wire
            failure = internal_error(error, exchange.info.request_id)
        exchange.failure = failure
        exchange.facts.fail(failure)
        raise as_mcp_error(failure, exchange.info.request_id)

    async def _cancellable(self, context: Context, exchange: Exchange, call_next: CallNext) -> HandlerResult:
        if exchange.session_id is None or context.request_id is None:
            return await call_next(context)
        with self.running.track(exchange.session_id, context.request_id):
            return await call_next(context)
        raise _cancelled()


def _cancelled() -> MCPError:
    return MCPError(REQUEST_CANCELLED, "The client cancelled this request.")


def cancelled_by_client(exchange: Exchange) -> MCPError:
    """Return what answers a request that its client cancelled."""
    return _with_request_id(_cancelled(), exchange)


async def _stepped(step: Step, call_next: CallNext, context: Context) -> HandlerResult:
    return await step(context, call_next)


def guarded(method: Method) -> Method:
    """Return ``method`` so that a wrong model made by its own code counts as a bug, not as the client's fault.

    A plain result of the modern revision gets its ``resultType`` here: the SDK wants it before it adds it.
    """

    async def handle(context: Context, params: Any) -> HandlerResult:
        try:
            result = await method.handle(context, params)
        except ValidationError as error:
            raise internal_error(error, exchange_of(context).info.request_id) from None
        if (
            isinstance(result, dict)
            and not method.raw
            and context.protocol_version in MODERN_PROTOCOL_VERSIONS
        ):
            return {"resultType": "complete", **result}
        return result

    return replace(method, handle=handle)


def _with_request_id(error: MCPError, exchange: Exchange) -> MCPError:
    """Add the request id to an error of the protocol itself, unless its data has a form of its own."""
    request_id = exchange.info.request_id
    if error.code == INTERNAL_ERROR:
        exchange.failure = InternalError(error.message)
        return as_mcp_error(InternalError(error.message, details={"errorId": request_id}), request_id)
    if error.data is None or error.data == "":
        return MCPError(error.code, error.message, {"requestId": request_id})
    if error.code == METHOD_NOT_FOUND:
        return MCPError(error.code, error.message, {"method": error.data, "requestId": request_id})
    if isinstance(error.data, dict):
        return MCPError(error.code, error.message, {**error.data, "requestId": request_id})
    return error
