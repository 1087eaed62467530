"""Shared by both drivers: turn transport faults into errors, and find the response in an event stream."""

import json
from collections.abc import Mapping

import httpx2

from sluice_client.errors import ClientTimeoutError, ProtocolError, UnreachableError
from sluice_client.events import EventParser
from sluice_client.results import Json
from sluice_client.wire import EVENTS_TYPE, Options, WireAnswer, WireCall

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def client_settings(options: Options) -> dict[str, Json]:
    """Return the arguments of an httpx2 client; the environment's proxies must not see contexts."""
    return {
        "verify": True if options.trust is None else options.trust,
        "trust_env": False,
    }


def unreachable(fault: httpx2.TransportError, options: Options) -> UnreachableError:
    """Return the error for a transport fault; it never repeats the library's message."""
    if isinstance(fault, NOT_SENT):
        return UnreachableError(f"No service answers at {options.url}.", sent=False)
    if isinstance(fault, httpx2.TimeoutException):
        return ClientTimeoutError(f"No answer came within {options.timeout:g} s.", sent=True)
    return UnreachableError("The connection was lost before the answer came.", sent=True)


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Return whether the response is a stream of server-sent events."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == EVENTS_TYPE


class EventedAnswer:
    """Find the response in an event stream and report progress meanwhile."""

    def __init__(self, call: WireCall, status: int, headers: Mapping[str, str]) -> None:
        self._call = call
        self._status = status
        self._headers = headers
        self._parser = EventParser()

    def line(self, line: str) -> WireAnswer | None:
        """Take one line; return the response once it is complete."""
        event = self._parser.line(line)
        if event is None or not event.data:
            return None
        try:
            message = json.loads(event.data)
        except ValueError:
            raise ProtocolError("An event of the answer is not JSON.") from None
        if "result" in message or "error" in message:
            return WireAnswer(self._status, self._headers, event.data.encode())
        if message.get("method") == "notifications/progress" and self._call.progress is not None:
            params = message.get("params", {})
            self._call.progress(params.get("progress", 0), params.get("total"))
        return None

    def cut(self) -> UnreachableError:
        """Return the error for a stream that ended without an answer."""
        return UnreachableError("The connection was lost before the answer came.", sent=True)
