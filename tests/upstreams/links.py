"""Opening links in tests, and what they were told and asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.core.catalog.servers import MCPServerSettings
from app.core.upstream import Hooks
from app.upstream.transport.link import LinkOptions, ServerLink, open_link

MIB = 1024 * 1024
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "forty-two"}}
ANSWERS = {
    "sampling/createMessage": SAMPLED,
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}
CALLED_BACK = {"sampling": {}, "elicitation": {}, "roots": {}}


@dataclass
class Client:
    """The client behind a request: it notes what it is told and answers what it is asked."""

    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=lambda: dict(ANSWERS))

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append((method, params))

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((method, params))
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def hooks(self, **more: Any) -> Hooks:
        return Hooks(**{"notify": self.notify, "ask": self.ask, **more})


@dataclass
class Unasked:
    """What a link heard outside any request."""

    heard: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __call__(self, method: str, params: Mapping[str, Any]) -> None:
        self.heard.append((method, params))

    def methods(self) -> list[str]:
        return [method for method, _ in self.heard]


def options(**more: Any) -> LinkOptions:
    """Return options that may reach loopback, as settings of the host may, and tell roots."""
    return LinkOptions(
        **{
            "connect_timeout_s": 20.0,
            "max_result_bytes": MIB,
            "allowed_networks": None,
            "roots": True,
            **more,
        }
    )


@asynccontextmanager
async def linked(settings: Mapping[str, Any] | str, **more: Any) -> AsyncIterator[ServerLink]:
    """Open a link to a url or an entry of ``mcpServers``."""
    entry = {"url": settings} if isinstance(settings, str) else dict(settings)
    async with open_link("fixture", MCPServerSettings(**entry), options(**more)) as link:
        yield link


async def call(link: ServerLink, tool: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Call a tool."""
    params = {"name": tool, "arguments": arguments or {}}
    return await link.request("tools/call", params, **{"timeout_s": 20.0, **more})


async def until(condition: Any, seconds: float = 20) -> None:
    """Wait until something is so; the bound only catches what hangs."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
