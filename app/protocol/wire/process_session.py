"""One session that is bound to this process, because its client can be asked: sampling, elicitation, roots."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.session import ServerSession
from mcp_types import INTERNAL_ERROR

from app.core.access import Caller
from app.core.upstream import UpstreamError
from app.protocol.wire.asking import ask_over, notify_over
from app.services.forward.client_connections import SessionConnections

EndSession = Callable[[Caller, str], Awaitable[None]]
"""End the SDK's session of that id, from this side."""


class ProcessSession:
    """One such session: the SDK's, which carries messages, and its companion row, which remembers."""

    def __init__(
        self,
        bound_id: str,
        caller: Caller,
        session_id: str,
        session: ServerSession,
        capabilities: Mapping[str, Any],
        group: str | None,
        end_of_sdk: EndSession,
    ) -> None:
        self.id = bound_id
        self.end_of_sdk = end_of_sdk
        self.group = group
        self.caller = caller
        self.session_id = session_id
        self.session = session
        self.capabilities = capabilities
        self.links: SessionConnections | None = None
        self.streams = 0
        self.task: asyncio.Task[None] | None = None

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
