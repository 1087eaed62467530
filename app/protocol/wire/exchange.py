"""One HTTP request to /mcp on its way through the room: who asks, under which id, in which session."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request
from starlette.types import Receive, Scope

from app.core.access import Caller
from app.core.errors import ServiceError
from app.core.request import RequestInfo
from app.edge.facts import RequestFacts
from app.protocol.wire.process_session import EndSession, ProcessSession
from app.services.access.sessions import Session, SessionService

SCOPE_KEY: Final = "sluice.mcp"

Context = ServerRequestContext[Any, Request]

# One value of a routing header; anything else is refused rather than interpreted.
_BEARER = re.compile(r"[Bb]earer +([A-Za-z0-9._~+/=-]+) *")


@dataclass(slots=True)
class Exchange:
    """What the front knows of one request, and what the handlers tell the front.

    ``begins`` marks an ``initialize`` that shall begin a virtual session; ``session_id`` is the virtual session
    of a handshake client, found by the front or begun by the handler, and ``session`` what it was when the request
    came. ``binds`` is set for an ``initialize`` that shall begin a process session, and ends what the SDK keeps of it;
    ``process_session`` is that session afterwards. ``handles`` are the sessions that a modern request named, by the
    name in its ``_meta``; ``sessions`` keeps them all. ``facts`` is the record of the HTTP request.
    ``failure`` is the error that was answered, from which the front takes the HTTP status.
    ``spliced`` names a member of the result and has its elements as JSON; ``written`` is a result with its JSON;
    ``encoded`` is the JSON of the result that goes out, where one of the two made it known.
    """

    caller: Caller
    info: RequestInfo
    sessions: SessionService
    facts: RequestFacts
    begins: bool = False
    session_id: str | None = None
    session: Session | None = None
    binds: EndSession | None = None
    process_session: ProcessSession | None = None
    handles: dict[str, Session] = field(default_factory=dict)
    failure: ServiceError | None = None
    spliced: tuple[str, list[bytes]] | None = None
    written: tuple[Mapping[str, Any], bytes] | None = None
    encoded: bytes | None = None

    @property
    def group(self) -> str | None:
        """Return the group whose endpoint this is, None at the others."""
        return self.facts.group


def exchange_of(context: Context) -> Exchange:
    """Return the exchange that a handler's request belongs to."""
    request = cast("Request", context.request)
    return cast("Exchange", request.scope[SCOPE_KEY])


class Fields(dict[str, str]):
    """The headers of a request by lower-case name, the first where one came twice; ``repeated`` names those.

    The white space around a value is no part of it (RFC 9110, section 5.5), but the server leaves it there.
    """

    __slots__ = ("repeated",)

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        pairs = [(name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in raw]
        super().__init__(reversed(pairs))
        self.repeated: set[str] = set()
        if len(self) < len(pairs):
            names = [name for name, _ in pairs]
            self.repeated = {name for name in names if names.count(name) > 1}


def bearer_of(headers: Fields) -> str | None:
    """Return the bearer token, or None where there is none or more than one credential."""
    if "authorization" in headers.repeated:
        return None
    match = _BEARER.fullmatch(headers.get("authorization", ""))
    return match[1] if match else None


def with_headers(scope: Scope, **values: str) -> Scope:
    """Return a copy of ``scope`` with each header set to exactly one value (``_`` stands for ``-``)."""
    changed = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in values.items()}
    kept = [(name, value) for name, value in scope["headers"] if name not in changed]
    return {**scope, "headers": [*kept, *changed.items()]}


async def read_body(receive: Receive) -> bytes | None:
    """Return the whole body, or None where the client went away; the edge guard bounds its size and time."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)
