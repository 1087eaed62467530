"""Real servers behind a connection: over HTTP in both revisions, as a child process, over legacy SSE."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from app.core.catalog.servers import MCPServerSettings
from app.upstream.aggregator import AggregatorOptions
from app.upstream.transport.link import open_link
from tests.upstreams.running import serving_http, serving_sse
from tests.upstreams.scripted import ScriptedServer
from tests.upstreams.warm import warm_settings

REACHES = ["http modern", "http handshake", "sse", "stdio"]
CUT_STREAMS = "ignore:Unclosed <MemoryObject:ResourceWarning"
"""The SDK's server leaves streams to the collector where a connection is cut: a filter for tests that cut some."""

REVISIONS = {
    "http modern": "2026-07-28",
    "http handshake": "2025-11-25",
    "sse": "2025-11-25",
    "stdio": None,  # what the two sides agree on
}


@dataclass
class Reached:
    """A running server; ``script`` is None where it is a child process."""

    settings: MCPServerSettings
    script: ScriptedServer | None
    reach: str


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def leftovers() -> Iterator[None]:
    """Collect, quietly, the streams that the SDK's server leaves open where a connection was cut."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextmanager
def serving(reach: str, name: str = "scripted", *, port: int = 0, **more: Any) -> Iterator[Reached]:
    script = ScriptedServer(name)
    if reach == "stdio":
        yield Reached(MCPServerSettings(**warm_settings(name), **more), None, reach)
    elif reach == "sse":
        with leftovers(), serving_sse(script, port=port) as url:
            yield Reached(MCPServerSettings(type="sse", url=url, **more), script, reach)
    else:
        with leftovers(), serving_http(script, port=port) as url:
            yield Reached(MCPServerSettings(url=url, **more), script, reach)


def options(reach: str = "", **more: Any) -> AggregatorOptions:
    """Return options that speak the revision of the reach."""

    def opener(name: str, settings: MCPServerSettings, given: Any) -> Any:
        forced = replace(given, revision="handshake") if reach == "http handshake" else given
        return open_link(name, settings, forced)

    return AggregatorOptions(**{"connect_timeout_s": 20, "opener": opener, **more})


async def until(condition: Any, seconds: float = 60) -> None:
    """Wait until ``condition()`` holds; the bound only catches hangs."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
