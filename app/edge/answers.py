"""The answer of one request on its way out: the headers that every answer has, and what the logs say of it."""

from typing import Final

from starlette.types import Message, Send

from app.edge.facts import RequestFacts
from app.edge.lifespan_state import Drain, Served
from app.edge.surfaces import RawHeaders

_ID: Final = b"x-request-id"
_CLIENT_ID: Final = b"x-client-request-id"
_OWN_ID: Final = b"x-sluice-request-id"
_SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_SECURITY_NAMES: Final = frozenset(name for name, _ in _SECURITY_HEADERS)
_CHALLENGED: Final = frozenset({401, 403})
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")
"""Tells nginx to pass each event on as it comes, which it would keep where it compresses answers."""
_EVENTS: Final = b"text/event-stream"


class Answer:
    """Passes the answer on, adds the headers that every answer has, and remembers what logs want to know.

    ``sent`` are the headers of the request. Set ``closing`` where the connection is to end with the answer.
    """

    __slots__ = ("_drain", "_facts", "_send", "_sent", "_served", "bytes_out", "closing", "status")

    def __init__(
        self,
        send: Send,
        facts: RequestFacts,
        drain: Drain,
        sent: RawHeaders,
        served: Served,
    ) -> None:
        self._send, self._sent = send, sent
        self._facts, self._served = facts, served
        self._drain = drain
        self.closing = False
        self.status = 0
        self.bytes_out = 0

    @property
    def started(self) -> bool:
        """Return whether a head was sent."""
        return self.status != 0

    async def send(self, message: Message) -> None:
        """Pass one message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            resources = self._served.resources() if self.status in _CHALLENGED else None
            if resources is not None:
                headers = resources.challenged(self.status, headers, self._facts, self._sent)
            message = {**message, "headers": self._completed(headers)}
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self._send(message)

    def _completed(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        present = {name.lower(): value for name, value in headers}
        if present.keys().isdisjoint(_SECURITY_NAMES):
            headers += _SECURITY_HEADERS
        else:
            headers += [pair for pair in _SECURITY_HEADERS if pair[0] not in present]
        if present.get(b"content-type", b"").lower().startswith(_EVENTS):
            headers = [pair for pair in headers if pair[0].lower() != _UNBUFFERED[0]] + [_UNBUFFERED]
        facts = self._facts
        # A provider's own id of the request keeps its header, by which its clients know it.
        name = _OWN_ID if _ID in present else _ID
        headers.append((name, facts.request_id.encode()))
        if facts.client_request_id is not None:
            name = _OWN_ID if _CLIENT_ID in present else _CLIENT_ID
            headers.append((name, facts.client_request_id.encode()))
        if (self.closing or self._drain.draining) and b"connection" not in present:
            headers.append((b"connection", b"close"))
        return headers
