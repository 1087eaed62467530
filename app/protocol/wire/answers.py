"""Plain ASGI answers of the front: JSON-RPC errors that the SDK never sees."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.types import Message, Send

from app.core.errors import ServiceError, TooLargeError
from app.protocol.wire.errors import WIRE_ERRORS, RefusedError, error_body, error_headers
from app.protocol.wire.exchange import Exchange


async def answer_failure(send: Send, error: ServiceError, request_id: str, message_id: Any = None) -> None:
    """Answer a request that never reached a handler; a bug is a 500 here."""
    status = WIRE_ERRORS[error.code].status
    if status == HTTPStatus.OK:
        status = (
            HTTPStatus.INTERNAL_SERVER_ERROR if error.code == "internal_error" else HTTPStatus.BAD_REQUEST
        )
    body = {"jsonrpc": "2.0", "id": message_id, "error": error_body(error, request_id)}
    await _answer(send, status, body, error_headers(error))


async def answer_refusal(send: Send, error: RefusedError, request_id: str, message_id: Any = None) -> None:
    """Answer a message that cannot be dispatched."""
    data = {"code": error.name, "requestId": request_id}
    body = {
        "jsonrpc": "2.0",
        "id": message_id,
        "error": {"code": error.code, "message": error.message, "data": data},
    }
    await _answer(send, error.status, body, error.headers)


async def answer_empty(send: Send, status: int) -> None:
    """Answer without a body."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def marked(send: Send, exchange: Exchange) -> Send:
    """Return a ``send`` that completes the SDK's answer: session id, status and headers of a failure.

    Answers of the stateless JSON leg start after the handler ended, so what the handler left is known then.
    """

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = _completed(message, exchange)
        await send(message)

    return complete


def _completed(message: Message, exchange: Exchange) -> Message:
    headers = [*message.get("headers", ())]
    status = message["status"]
    if exchange.session_id is not None:
        headers.append((b"mcp-session-id", exchange.session_id.encode()))
    if exchange.failure is not None:
        row = WIRE_ERRORS[exchange.failure.code]
        # What is wrong with a server's answer is no fault of the client's request, which HTTP would be about.
        theirs = exchange.failure.code == TooLargeError.code and "server" in exchange.failure.details
        status = row.status if status == HTTPStatus.OK and not theirs else status
        headers += [
            (name.encode(), value.encode()) for name, value in error_headers(exchange.failure).items()
        ]
    return {**message, "status": status, "headers": headers}


async def _answer(send: Send, status: int, body: Any, headers: Mapping[str, str]) -> None:
    payload = json.dumps(body, separators=(",", ":")).encode()
    fields = {"content-type": "application/json", "content-length": str(len(payload)), **headers}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": encoded})
    await send({"type": "http.response.body", "body": payload})
