"""Answer what a server asks of its client: each question in its own task, so that it never delays other messages."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from app.core.background import BackgroundTasks
from app.core.errors import ServiceError
from app.core.upstream import UpstreamError
from app.upstream.transport.options import RequestSink

MAX_OPEN: Final = 64
"""Most questions of one server that may wait for an answer at once."""

Message = dict[str, Any]


class ServerQuestions:
    """The open questions of one server; ``send`` delivers an answer."""

    def __init__(self, send: Callable[[Message], Awaitable[None]], tasks: BackgroundTasks) -> None:
        self._send = send
        self._tasks = tasks
        self._open: dict[str | int, asyncio.Task[None]] = {}

    def accept(self, message: Message, ask: RequestSink | None) -> asyncio.Task[None] | None:
        """Answer a server's request through ``ask``; a ping is answered in any case."""
        number = message["id"]
        if not isinstance(number, str | int) or number in self._open:
            return None
        task = self._tasks.start(self._answer(number, message, ask if len(self._open) < MAX_OPEN else None))
        self._open[number] = task
        task.add_done_callback(lambda _: self._open.pop(number, None))
        return task

    def cancel(self, number: object) -> None:
        """Cancel a question that the server withdrew; it expects no answer."""
        if isinstance(number, str | int) and number in self._open:
            self._open[number].cancel()

    async def _answer(self, number: str | int, message: Message, ask: RequestSink | None) -> None:
        outcome = await _outcome(message.get("method"), message.get("params", {}), ask)
        await self._send({"jsonrpc": "2.0", "id": number, **outcome})


async def _outcome(method: object, params: object, ask: RequestSink | None) -> Message:
    if method == "ping":
        return {"result": {}}
    if ask is None:
        return _error(METHOD_NOT_FOUND, "This client does not support that here.")
    if not isinstance(method, str) or not isinstance(params, Mapping):
        return _error(INVALID_PARAMS, "The parameters are not an object.")
    return await _call_sink(ask, method, params)


async def _call_sink(ask: RequestSink, method: str, params: Mapping[str, Any]) -> Message:
    try:
        return {"result": dict(await ask(method, params))}
    except UpstreamError as error:
        data = {} if error.data is None else {"data": error.data}
        return {"error": {"code": error.code, "message": error.message, **data}}
    except ServiceError as error:
        return _error(INTERNAL_ERROR, error.message)
    except Exception:  # noqa: BLE001 - whatever the fault, the server must get an answer
        return _error(INTERNAL_ERROR, "The client could not answer.")


def _error(code: int, words: str) -> Message:
    return {"error": {"code": code, "message": words}}
