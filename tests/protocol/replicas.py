"""Two replicas with a server behind them, and the streams that clients keep open."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
from fastapi import FastAPI

from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, Wire, client
from tests.protocol.test_mcp_streams import getting, listening
from tests.upstreams.scripted import ScriptedServer

ALL = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "groupsListChanged": True,
}


@dataclass
class Replicas:
    """Where changes are made and where streams are open: two processes' worth, or one on SQLite."""

    one: str
    two: str
    apps: list[FastAPI]
    script: ScriptedServer

    async def rest(self, method: str, path: str, body: Any = None) -> Any:
        """Change something on the replica where no stream is open."""
        headers = {"authorization": f"Bearer {KEY}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            url = self.one.removesuffix("/mcp") + f"/api/v1{path}"
            response = await http.request(method, url, json=body)
        assert response.is_success, response.text
        return response.json() if response.text else None


@contextlib.asynccontextmanager
async def keyed(url: str, revision: str) -> AsyncIterator[Wire]:
    async with client(url, revision, None) as wire:
        wire.http.headers["authorization"] = f"Bearer {KEY}"
        if revision == HANDSHAKE:
            await wire.open()
        yield wire


@contextlib.asynccontextmanager
async def streaming(url: str, revision: str, **kinds: Any) -> AsyncIterator[Any]:
    """Open the stream of a client: GET, or ``subscriptions/listen``."""
    async with keyed(url, revision) as wire:
        opened = getting(wire) if revision == HANDSHAKE else listening(wire, **(kinds or ALL))
        async with opened as stream:
            if revision == HANDSHAKE:
                await stream.line()
            else:
                acknowledged = await stream.message()
                assert acknowledged["params"]["notifications"] == (kinds or ALL)
            yield stream


async def methods_of(stream: Any, count: int) -> set[str]:
    return {(await stream.message())["method"] for _ in range(count)}


def changed(*lists: str) -> set[str]:
    return {f"notifications/{name}/list_changed" for name in lists}
