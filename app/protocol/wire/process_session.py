"""One session that is bound to this process, because its client can be asked: sampling, elicitation, roots."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import Any

from mcp.server.session import ServerSession
from mcp_types import INTERNAL_ERROR

from app.core.access import Caller
from app.core.upstream import UpstreamError
from app.protocol.wire.asking import ask_over, notify_over
from app.services.forward.client_connections import ClientConnections, SessionConnections

EndSession = Callable[[Caller, str], Awaitable[None]]
"""End the SDK's session of that id, from this side."""


@dataclass(slots=True, eq=False)
class ProcessSession:
    """One such session: the SDK's, which carries messages, and its companion row, which remembers.

    ``id`` is the SDK's, ``session_id`` the row's. ``dedicated`` opens connections on which servers may ask this client;
    ``links`` are those connections. ``streams`` counts the client's open streams.
    """

    id: str
    caller: Caller
    session_id: str
    session: ServerSession
    capabilities: Mapping[str, Any]
    group: str | None
    end_of_sdk: EndSession
    dedicated: InitVar[ClientConnections | None]
    links: SessionConnections | None = field(init=False, default=None)
    streams: int = field(init=False, default=0)

    def __post_init__(self, dedicated: ClientConnections | None) -> None:
        if dedicated is not None:
            self.links = dedicated.of_session(self.caller.tenant, self.capabilities, self.ask, self.tell)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the client on its standing stream: what a server asks that belongs to no request."""
        if not self.streams:
            raise UpstreamError(INTERNAL_ERROR, "The client has no stream open on which it could be asked.")
        return await ask_over(self.session, self.capabilities, method, params, None)

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Note that its stream is open meanwhile: a session that only listens is in use."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client on its standing stream, if one is open."""
        await notify_over(self.session, method, params, None)
