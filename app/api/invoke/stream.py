"""Streaming restoration: restore text while it is generated, delaying only an incomplete handle."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.auth import CallerDep, InfoDep, ServicesDep, limits_of, new_router
from app.api.records import EVENTS, LINES, read_records, written
from app.core.access import Role
from app.core.errors import DeadlineExceededError, InvalidArgumentsError, InvalidRequestError, ServiceError
from app.edge.facts import facts_of
from app.edge.limits import RouteLimits, needs, takes
from app.edge.problems import internal_error, log_cause, problem, problem_response

_MIDDLEWARE: Final = "pii_restoration"
_STREAM_TYPES: Final = frozenset({"application/x-ndjson", "text/event-stream"})
_RECORD: Final = {
    "type": "string",
    "description": 'JSON objects, one per line or event: first, optionally, `{"arguments": {...}}`, then '
    '`{"text": "..."}` for each piece of text.',
}
_ANSWER: Final = {
    "type": "string",
    "description": "Records, one per line or event; `x-events` names the schema of each. An event without a name "
    "is a `message`.",
    "x-events": {
        "message": ["#/components/schemas/RestoredText", "#/components/schemas/RestoredEnd"],
        "error": ["#/components/schemas/RestoredError"],
    },
}
_LINES_EXAMPLE: Final = (
    '{"arguments":{"redactions":{"PERSON_1":"Jane"}}}\n{"text":"Hello [PER"}\n{"text":"SON_1]!"}\n'
)
_EVENTS_EXAMPLE: Final = (
    'data: {"arguments":{"redactions":{"PERSON_1":"Jane"}}}\n\ndata: {"text":"Hello [PERSON_1]!"}\n\n'
)

router = new_router("/middleware", "middleware", invokes=True)


async def _stream_slot(caller: CallerDep, services: ServicesDep) -> AsyncIterator[None]:
    """Count the stream as open until its answer is complete."""
    limits = await limits_of(services, caller)
    async with services.streams.turn(caller.tenant, limits, math.inf):
        yield


@router.post(
    "/pii_restoration/stream",
    summary="Restore a text while it arrives",
    response_class=Response,
    responses={
        200: {
            "description": 'Records `{"text": ...}` as text is restored, then one with `done` and the metadata of the '
            'restoration; a failure ends the stream with a record `{"error": {...}}` with the members of a '
            "problem document.",
            "content": {
                LINES: {"schema": _ANSWER, "example": '{"text":"Hello "}\n{"text":"Jane!"}\n{"done":true}\n'},
                EVENTS: {
                    "schema": _ANSWER,
                    "example": 'data: {"text":"Hello Jane!"}\n\ndata: {"done":true}\n\n',
                },
            },
        }
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                LINES: {"schema": _RECORD, "examples": {"lines": {"value": _LINES_EXAMPLE}}},
                EVENTS: {"schema": _RECORD, "examples": {"events": {"value": _EVENTS_EXAMPLE}}},
            },
        }
    },
)
@needs(Role.INVOKER, Role.RESTORER, action="middleware.restore_stream")
@takes(RouteLimits(streamed=_STREAM_TYPES))
async def restore_stream(
    request: Request,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    _: Annotated[None, Depends(_stream_slot)],
) -> Response:
    """Send NDJSON or server-sent events and receive either, chosen by `Accept` (default: the format sent)."""
    facts = facts_of(request.scope)
    facts.middleware = _MIDDLEWARE
    sent = request.headers["content-type"].partition(";")[0].strip().lower()
    kind = _wanted(request.headers.get("accept", "*/*"), sent)
    if kind is None:
        error = InvalidRequestError(
            "The response can only be application/x-ndjson or text/event-stream: accept one of them."
        )
        return problem_response(error, facts.request_id, status=406)
    records = read_records(request.stream(), sent)
    try:
        first = await anext(records, None)
    except DeadlineExceededError as error:
        return problem_response(error, facts.request_id, status=408)
    arguments = _arguments(first)
    accepted = asyncio.Event()
    texts = _texts(records, first if arguments is None else None, accepted)
    metadata: dict[str, int] = {}
    source = services.invoke.restore_stream(caller, arguments or {}, texts, info, metadata.update)
    return _Restored(source, await _begun(source, accepted), kind, metadata)


class _Restored(Response):
    """Sends the restored pieces while the body of the request is still being read."""

    def __init__(
        self,
        source: AsyncIterator[str],
        first: "asyncio.Future[str | None]",
        kind: str,
        metadata: Mapping[str, int],
    ) -> None:
        super().__init__(media_type=kind, headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._source = source
        self._first = first
        self._kind = kind
        self._metadata = metadata
        """Complete once ``source`` has ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send one record per piece, then one for the outcome."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            piece = await self._first
            while piece is not None:
                await self._send(send, {"text": piece})
                piece = await _next(self._source)
            last: dict[str, Any] = {"done": True, "metadata": dict(self._metadata)}
        except ClientDisconnect:
            return
        except ServiceError as error:
            last = _failed(scope, error)
        except Exception as error:  # noqa: BLE001 - the response has begun: only its last record can report it
            failure = internal_error()
            failure.__cause__ = error
            last = _failed(scope, failure)
        finally:
            await self._stop()
        await self._send(send, last, more=False)

    async def _send(self, send: Send, record: dict[str, Any], *, more: bool = True) -> None:
        body = written(record, self._kind)
        await send({"type": "http.response.body", "body": body, "more_body": more})

    async def _stop(self) -> None:
        """End the restoration, even if nobody reads on."""
        self._first.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._first
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()


async def _begun(source: AsyncIterator[str], accepted: asyncio.Event) -> "asyncio.Future[str | None]":
    """Run until the service requests text, or raise its refusal: only then is status 200 certain."""
    first = asyncio.ensure_future(_next(source))
    requested = asyncio.ensure_future(accepted.wait())
    try:
        await asyncio.wait({first, requested}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        requested.cancel()
    if first.done():
        first.result()
    return first


async def _next(source: AsyncIterator[str]) -> str | None:
    return await anext(source, None)


async def _texts(
    records: AsyncIterator[dict[str, Any]], first: dict[str, Any] | None, accepted: asyncio.Event
) -> AsyncIterator[str]:
    """Yield the texts of the records; the first read means that the request was accepted."""
    accepted.set()
    if first is not None:
        yield _text(first)
    async for record in records:
        yield _text(record)


def _text(record: dict[str, Any]) -> str:
    text = record.get("text")
    if not isinstance(text, str) or len(record) != 1:
        raise InvalidArgumentsError(
            'Each record after the first must be {"text": "..."}.', details={"pointer": "/text"}
        )
    return text


def _arguments(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the arguments of the first record, None if it is already text."""
    if record is None:
        return {}
    if "arguments" not in record:
        _text(record)
        return None
    arguments = record["arguments"]
    if not isinstance(arguments, dict) or len(record) != 1:
        raise InvalidArgumentsError(
            'The first record must be {"arguments": {...}} or {"text": "..."}.',
            details={"pointer": "/arguments"},
        )
    return arguments


def _wanted(accept: str, sent: str) -> str | None:
    """Return the type of the response, None if the client accepts neither."""
    accepted = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    if sent in accepted or not accepted.isdisjoint({"*/*", f"{sent.partition('/')[0]}/*"}):
        return sent
    other = EVENTS if sent == LINES else LINES
    return other if not accepted.isdisjoint({other, f"{other.partition('/')[0]}/*"}) else None


def _failed(scope: Scope, error: ServiceError) -> dict[str, Any]:
    facts = facts_of(scope)
    facts.error_code = error.code
    log_cause(error, facts.request_id)
    return {"error": problem(error, facts.request_id)}
