"""The servers that an aggregator connects to, by name: the ``mcpServers`` of a configuration file."""

import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from app.core.catalog.servers import SERVER_NAME, MCPServerSettings

__all__ = ["HOST_MEMBERS", "MCPServerSettings", "ServerRegistry"]

HOST_MEMBERS: Final = frozenset(
    {
        "alwaysAllow",
        "autoApprove",
        "disabled",
        "disabledTools",
        "enabled",
        "gallery",
        "icon",
        "timeout",
        "trust",
    }
)
"""Members that MCP hosts write beside a server's settings for their own use."""


class ServerRegistry:
    """Settings of servers by name; ``filter_servers`` returns a smaller registry with the named servers only.

    >>> registry = ServerRegistry.from_dict({"time": {"command": "mcp-server-time"}})
    >>> registry.list_servers()
    ['time']
    """

    def __init__(self, servers: dict[str, MCPServerSettings]) -> None:
        for name in servers:
            if SERVER_NAME.fullmatch(name) is None:
                raise ValueError(
                    f"{name!r} is no name for a server: letters, digits, '.', '_' and '-', 64 characters at most"
                )
        self.registry = servers

    @classmethod
    def from_dict(cls, config: Mapping[str, Mapping[str, Any] | MCPServerSettings]) -> "ServerRegistry":
        """Read the value of ``mcpServers``; wrong settings raise ValueError (pydantic's ValidationError).

        Members that hosts keep there for their own use (``HOST_MEMBERS``) are ignored.
        """
        return cls(
            {name: MCPServerSettings.model_validate(_ours(settings)) for name, settings in config.items()}
        )

    @classmethod
    def from_config(cls, path: Path | str) -> "ServerRegistry":
        """Read a JSON file in the format of MCP hosts; members beside ``mcpServers`` are ignored.

        Raises FileNotFoundError where there is no such file, KeyError where it has no ``mcpServers``, ValueError where
        it is not JSON, names a server twice or has wrong settings.
        """
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"Config file not found: {path}")
        config = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
        if not isinstance(config, dict) or "mcpServers" not in config:
            raise KeyError("Config file must have a 'mcpServers' section")
        if not isinstance(config["mcpServers"], dict):
            # The file is wrong, not what the caller passed.
            raise ValueError("'mcpServers' must map names to settings")  # noqa: TRY004
        return cls.from_dict(config["mcpServers"])

    def save_config(self, path: Path | str) -> None:
        """Write the file that ``from_config`` reads; only its owner may read it, as it may contain credentials."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        servers = {
            name: settings.model_dump(mode="json", exclude_none=True, exclude_defaults=True, by_alias=True)
            | {"type": settings.type}
            for name, settings in self.registry.items()
        }
        text = json.dumps({"mcpServers": servers}, indent=2, ensure_ascii=False)
        written = path.with_name(f".{path.name}.new")
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        written.replace(path)

    def filter_servers(self, server_names: Iterable[str]) -> "ServerRegistry":
        """Return a registry of these servers only, in the order of this one; unknown names are a ValueError."""
        wanted = list(server_names)
        missing = [name for name in wanted if name not in self.registry]
        if missing:
            raise ValueError(f"Servers not found: {', '.join(missing)}")
        return ServerRegistry(
            {name: settings for name, settings in self.registry.items() if name in set(wanted)}
        )

    def list_servers(self) -> list[str]:
        """Return the names, in the order of the file."""
        return list(self.registry)

    def get_server_info(self, server_name: str) -> str:
        """Return a readable line: how the server is reached and what it is for."""
        if server_name not in self.registry:
            return f"Server '{server_name}' not found"
        settings = self.registry[server_name]
        how = settings.url or ""
        if settings.type == "stdio":
            how = " ".join([settings.command or "", *settings.args])
        purpose = f" - {settings.description}" if settings.description else ""
        return f"{server_name}: {settings.type}: {how}{purpose}"

    @asynccontextmanager
    async def get_client(self, server_name: str) -> AsyncIterator[Client]:
        """Connect the SDK's own client to one server, without any filter; an unknown name raises ValueError.

        Enter and leave it in one task.
        """
        if server_name not in self.registry:
            raise ValueError(f"Server '{server_name}' not found in registry")
        settings = self.registry[server_name]
        if settings.auth is not None:
            raise ValueError(f"Server '{server_name}' needs tokens, which only the service gets")
        if settings.type == "stdio":
            command = StdioServerParameters(
                command=settings.command or "", args=settings.args, env=settings.env, cwd=settings.cwd
            )
            async with Client(command, read_timeout_seconds=settings.timeout_s) as client:
                yield client
            return
        url = settings.url or ""
        if settings.type == "sse":
            async with _client(sse_client(url, headers=settings.headers), settings) as client:
                yield client
            return
        timeout = httpx2.Timeout(30, read=300)
        async with (
            httpx2.AsyncClient(headers=settings.headers, timeout=timeout) as http,
            _client(streamable_http_client(url, http_client=http), settings) as client,
        ):
            yield client


def _client(transport: Any, settings: MCPServerSettings) -> AbstractAsyncContextManager[Client]:
    return Client(transport, read_timeout_seconds=settings.timeout_s)


def _ours(settings: Mapping[str, Any] | MCPServerSettings) -> Any:
    if not isinstance(settings, Mapping):
        return settings
    return {name: value for name, value in settings.items() if name not in HOST_MEMBERS}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("the file names a member twice in one object")
    return members
