"""Opening a connection to an MCP server over the transport that its settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.core.errors import UpstreamUnavailableError
from app.core.servers import MCPServerSettings
from app.upstream.options import Link, LinkOptions

__all__ = ["Link", "LinkOptions", "open_link"]


@asynccontextmanager
async def open_link(name: str, settings: MCPServerSettings, options: LinkOptions) -> AsyncIterator[Link]:
    """Connect to the server ``name`` and agree on a revision within ``connect_timeout_s``; enter and leave in one task.

    Raises UpstreamUnavailableError where it cannot be reached or does not speak MCP, UpstreamError where it refuses,
    InvalidArgumentsError where its address is not allowed.
    """
    raise UpstreamUnavailableError(
        f"Server {name!r} cannot be reached yet: {settings.type}, {options.revision}."
    )
    yield
