"""What a connection requires of the transport below it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol

from app.core.upstream import UpstreamError
from app.upstream.transport.faults import Faults

PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
COURTESY_S: Final = 2.0
"""Longest time for a message that the server can do without."""

Message = dict[str, Any]


class Wire(Protocol):
    """Carries JSON-RPC messages to one server and sorts what comes back by the request it belongs to."""

    closed: asyncio.Event

    def agreed(self, version: str, *, modern: bool) -> None:
        """Take note of the revision agreed on."""

    def messages(
        self, number: int, body: bytes, headers: Mapping[str, str], *, streaming: bool = False
    ) -> AsyncGenerator[Message, None]:
        """Send a request and yield the messages that belong to it, its answer last; raises where none can come.

        ``streaming``: the request stays open for notifications (``subscriptions/listen``).
        """

    async def send(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no answer: a notification, or our answer to the server's question."""


def is_answer(message: Message, number: int) -> bool:
    """Return whether the message ends request ``number``."""
    return message.get("id") == number and "method" not in message


def result_of(message: Message, faults: Faults) -> dict[str, Any]:
    """Return an answer's result unchanged, or raise the server's error as UpstreamError."""
    result = message.get("result")
    if isinstance(result, dict) and "error" not in message:
        return result
    error = message.get("error")
    if isinstance(error, dict) and "result" not in message:
        code, words = error.get("code"), error.get("message")
        if isinstance(code, int) and isinstance(words, str):
            raise UpstreamError(code, words, error.get("data"))
    raise faults.broken()
