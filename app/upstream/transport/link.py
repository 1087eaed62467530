"""Open a connection to an MCP server over the transport that its settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from app.core.catalog.servers import MCPServerSettings
from app.upstream.transport.options import LinkOptions, ServerLink
from app.upstream.transport.sse import open_sse
from app.upstream.transport.stdio import open_stdio
from app.upstream.transport.streamable import open_http

__all__ = ["LinkOptions", "ServerLink", "open_link"]

_OPENERS: Final = {"http": open_http, "stdio": open_stdio, "sse": open_sse}


@asynccontextmanager
async def open_link(
    name: str, settings: MCPServerSettings, options: LinkOptions
) -> AsyncIterator[ServerLink]:
    """Connect to the server ``name`` and agree on a revision within ``connect_timeout_s``; enter and leave in one task.

    Raises UpstreamUnavailableError where it cannot be reached or does not speak MCP, UpstreamError where it refuses,
    InvalidArgumentsError where its address is not allowed, DeadlineExceededError where it is too slow.
    """
    async with _OPENERS[settings.type](name, settings, options) as link:
        yield link
