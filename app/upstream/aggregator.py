"""Present many MCP servers as one: their tools under one set of names, called through one object."""

import asyncio
import logging
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self, overload

from mcp_types import CallToolResult, ListToolsResult, Tool
from pydantic import ValidationError

from app.core.catalog.naming import exposed, split_name
from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.catalog.servers import SEPARATOR, MCPServerSettings
from app.core.catalog.tool_filter import ExposedTools
from app.core.errors import NotFoundError, UpstreamUnavailableError
from app.upstream.connection import Connection
from app.upstream.connection_options import AggregatorOptions
from app.upstream.registry import ServerRegistry
from app.upstream.session_connections import LinkBudget

__all__ = ["AggregatorOptions", "LinkBudget", "MCPAggregator", "UnknownToolError"]

Filters = Mapping[str, Sequence[str] | None]
Aliases = Mapping[str, str | Mapping[str, str]]

log = logging.getLogger("sluice.upstream")


class UnknownToolError(NotFoundError, ValueError):
    """No exposed tool has that name: unknown, filtered out, hidden by another one, or its server was never listed."""


class MCPAggregator:
    """Lists and calls the tools of all servers of a registry as ``server__tool``.

    Used as an async context manager, it keeps its connections open and they reconnect by themselves. Otherwise each
    ``list_tools`` and ``call_tool`` opens connections for that one request and closes them.

    ``tool_filter`` maps servers to the tools to expose, by the server's own names: None, or no entry, is all, ``[]`` is
    none, ``["get"]`` only these, ``["-delete"]`` all but these; a mixture of signs is a ValueError. ``aliases`` maps
    a name of your choice to ``server__tool``, or a server to a mapping of such names to its own ones; an alias replaces
    the name. ``server_names`` is deprecated: use ``registry.filter_servers``.
    """

    def __init__(
        self,
        registry: ServerRegistry,
        server_names: list[str] | None = None,
        tool_filter: Filters | None = None,
        separator: str = SEPARATOR,
        *,
        aliases: Aliases | None = None,
        options: AggregatorOptions | None = None,
    ) -> None:
        if server_names is not None:
            warnings.warn(
                "server_names is deprecated; use registry.filter_servers()", DeprecationWarning, stacklevel=2
            )
        if not separator:
            raise ValueError("the separator between server and tool cannot be empty")
        self.registry = registry.filter_servers(server_names) if server_names else registry
        self.separator = separator
        self.connections: dict[str, Connection] = {}
        """By name, in alphabetical order, while the aggregator is entered."""

        chosen = options or AggregatorOptions()
        self._options = replace(chosen, on_change=self._changed)
        self._on_change = chosen.on_change
        self._entered = False
        self._turn = asyncio.Lock()
        self._tools: dict[str, Offer] | None = None
        self._configure(tool_filter or {}, aliases or {})

    @property
    def server_names(self) -> list[str]:
        """Names of the aggregated servers, in the order of the registry."""
        return self.registry.list_servers()

    async def __aenter__(self) -> Self:
        """Start connecting to every server; call ``settled`` to wait for all of them."""
        if self._entered:
            raise RuntimeError("the aggregator is already entered")
        self._entered = True
        await self._reconcile(self.registry)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        self._entered = False
        async with self._turn:
            await asyncio.gather(*(connection.stop() for connection in self.connections.values()))
            self.connections.clear()
            self._tools = None

    async def settled(self) -> None:
        """Return once every server was listed, failed or ran out of time."""
        await asyncio.gather(*(connection.settled() for connection in list(self.connections.values())))

    @overload
    async def list_tools(self, return_server_mapping: Literal[False] = False) -> ListToolsResult: ...

    @overload
    async def list_tools(self, return_server_mapping: Literal[True]) -> dict[str, list[Tool]]: ...

    async def list_tools(
        self, return_server_mapping: bool = False
    ) -> ListToolsResult | dict[str, list[Tool]]:
        """Return the exposed tools under their exposed names, or by server under the servers' own names.

        A server that does not answer is left out and logged; a server with no exposed tool has no entry.
        """
        if not self._entered:
            async with self._temporary(self.registry.list_servers()) as inner:
                return await inner.list_tools(return_server_mapping)  # type: ignore[call-overload, no-any-return]
        await self.settled()
        exposed_tools = self._exposed()
        if not return_server_mapping:
            return ListToolsResult(tools=_tools((name, offer) for name, offer in exposed_tools.items()))
        by_server: dict[str, dict[str, Offer]] = {}
        for offer in exposed_tools.values():
            by_server.setdefault(offer.server, {})[offer.own_name] = offer
        return {server: _tools(offers.items()) for server, offers in by_server.items()}

    async def call_tool(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, server_name: str | None = None
    ) -> CallToolResult:
        """Call a tool by its exposed name, or by the server's own name together with ``server_name``.

        The tool's result is returned whole, ``is_error`` and its text included. Raises UnknownToolError for a tool
        that is not exposed (without contacting the server), UpstreamUnavailableError and DeadlineExceededError where
        the server does not answer, TooLargeError, and UpstreamError for its own JSON-RPC errors. Nothing is sent twice.
        """
        candidates = self._candidates(tool_name, server_name)
        if not self._entered:
            async with self._temporary(candidates) as inner:
                return await inner.call_tool(tool_name, arguments, server_name)
        connections = [self.connections[name] for name in candidates if name in self.connections]
        await asyncio.gather(*(connection.settled() for connection in connections))
        offer = self._find(tool_name, server_name)
        if offer is None:
            for connection in connections:
                if connection.status.generation == 0:
                    raise connection.unavailable()
            raise _unknown(tool_name, server_name)
        raw = await self.connections[offer.server].request(
            "tools/call", {"name": offer.own_name, "arguments": dict(arguments or {})}
        )
        try:
            return CallToolResult.model_validate(raw)
        except ValidationError:
            fault = f"Server {offer.server!r} broke the protocol in its answer to tools/call."
        raise UpstreamUnavailableError(fault, details={"server": offer.server})

    def offers(self) -> Sequence[Offer]:
        """Return what all servers offer, ordered by server name, then in the server's order; tools after the filter."""
        return [
            offer
            for name, connection in self.connections.items()
            for offer in connection.offers
            if offer.kind is not PrimitiveKind.TOOL or self._filter_of(name).allows(offer.own_name)
        ]

    async def update(self, registry: ServerRegistry, tool_filter: Filters, aliases: Aliases) -> None:
        """Switch to this configuration; connections whose settings stay the same are kept."""
        self._configure(tool_filter, aliases)
        self.registry = registry
        if self._entered:
            await self._reconcile(registry)

    def _configure(self, tool_filter: Filters, aliases: Aliases) -> None:
        self._filters = {server: _parsed(server, names) for server, names in tool_filter.items()}
        self._aliases = aliases
        self.tool_filter = dict(tool_filter)
        self._tools = None

    def _filter_of(self, server: str) -> ExposedTools:
        return self._filters.get(server) or ExposedTools()

    async def _reconcile(self, registry: ServerRegistry) -> None:
        """Start, replace and stop connections, all servers at once; close a server before opening it again."""
        async with self._turn:
            wanted = registry.registry
            gone = [name for name in self.connections if name not in wanted]
            new = [
                name
                for name, settings in wanted.items()
                if name not in self.connections or self.connections[name].settings != settings
            ]
            await asyncio.gather(
                *(self._close(name) for name in gone), *(self._replace(name, wanted[name]) for name in new)
            )
            self._tools = None

    async def _close(self, name: str) -> None:
        await self.connections[name].stop()
        del self.connections[name]

    async def _replace(self, name: str, settings: MCPServerSettings) -> None:
        if name in self.connections:
            await self.connections[name].stop()
        if self._entered:
            connection = Connection(name, settings, self._options)
            self.connections = dict(sorted({**self.connections, name: connection}.items()))
            connection.start()

    def _changed(self, server: str) -> None:
        self._tools = None
        self._on_change(server)

    def _temporary(self, servers: Collection[str]) -> "MCPAggregator":
        return MCPAggregator(
            self.registry.filter_servers(servers),
            tool_filter=self.tool_filter,
            separator=self.separator,
            aliases=self._own_aliases(),
            options=self._options,
        )

    def _own_aliases(self) -> dict[str, dict[str, str]]:
        """Return, by server, exposed names with the server's own names; an alias for no server here is left out."""
        names: dict[str, dict[str, str]] = {}
        for key, value in self._aliases.items():
            if isinstance(value, str):
                named = split_name(value, self.registry.registry, self.separator)
                if named is not None:
                    names.setdefault(named[0], {})[key] = named[1]
            elif key in self.registry.registry:
                names.setdefault(key, {}).update(value)
        return names

    def _exposed(self) -> dict[str, Offer]:
        if self._tools is None:
            naming = exposed(
                # A program that uses the aggregator answers no questions of servers.
                [
                    offer
                    for offer in self.offers()
                    if offer.kind is PrimitiveKind.TOOL and offer.listed_to is None
                ],
                namespaced={name: settings.namespace for name, settings in self.registry.registry.items()},
                aliases=self._own_aliases(),
                separator=self.separator,
            )
            self._tools = {name: offer for offer, name in naming.names}
        return self._tools

    def _find(self, tool_name: str, server_name: str | None) -> Offer | None:
        if server_name is None:
            return self._exposed().get(tool_name)
        return next(
            (
                offer
                for offer in self._exposed().values()
                if offer.server == server_name and offer.own_name == tool_name
            ),
            None,
        )

    def _candidates(self, tool_name: str, server_name: str | None) -> list[str]:
        """Return the servers that may have the tool; raise UnknownToolError where the name alone rules out all."""
        servers = self.registry.registry
        if server_name is not None:
            if server_name not in servers or not self._filter_of(server_name).allows(tool_name):
                raise _unknown(tool_name, server_name)
            return [server_name]
        own_names = {
            server: own[tool_name] for server, own in self._own_aliases().items() if tool_name in own
        } or {name: tool_name for name, settings in servers.items() if not settings.namespace}
        named = split_name(tool_name, servers, self.separator)
        if named is not None:
            own_names.setdefault(*named)
        allowed = [server for server, own in own_names.items() if self._filter_of(server).allows(own)]
        if not allowed:
            raise _unknown(tool_name, None)
        return sorted(allowed)


def _parsed(server: str, names: Sequence[str] | None) -> ExposedTools:
    try:
        return ExposedTools.parse(names)
    except ValueError as error:
        raise ValueError(f"tool_filter of {server!r}: {error}") from None


def _tools(named: Iterable[tuple[str, Offer]]) -> list[Tool]:
    tools = []
    for name, offer in named:
        try:
            tools.append(Tool.model_validate({**offer.definition, "name": name}))
        except ValidationError:
            log.warning("server %s: left out a tool whose definition is not valid", offer.server)
    return tools


def _unknown(tool_name: str, server_name: str | None) -> UnknownToolError:
    where = f" of server {server_name!r}" if server_name is not None else ""
    return UnknownToolError(f"There is no tool {tool_name!r}{where}, or it is not exposed.")
