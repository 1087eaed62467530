"""Agree with a server on a revision: the modern one where it answers ``server/discover``, else the handshake."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_types import SERVER_INFO_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from app.core.errors import ServiceError
from app.core.upstream import UpstreamError
from app.upstream.transport.envelope import CLIENT_INFO
from app.upstream.transport.faults import Faults
from app.upstream.transport.options import LinkOptions

DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"
_DISCOVER_S: Final = 5.0

Ask = Callable[[str, Mapping[str, Any], str | None, float], Awaitable[dict[str, Any]]]
"""``ask(method, params, version, timeout_s)``: one request that speaks ``version``."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a server declared about itself when the connection began."""

    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    server_info: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None


class Negotiation:
    """One attempt to agree. ``lost()`` distinguishes a lost connection from a server that supports less."""

    def __init__(self, ask: Ask, lost: Callable[[], bool], faults: Faults, options: LinkOptions) -> None:
        self._ask = ask
        self._lost = lost
        self._faults = faults
        self._options = options

    async def agreed(self) -> Agreement:
        """Return the agreement; raises UpstreamError where the server supports only revisions that we do not."""
        if self._options.revision == "handshake":
            return await self._initialized()
        agreement, mutual = await self._discovered(LATEST_MODERN_VERSION)
        if agreement is None and mutual is not None:
            agreement, _ = await self._discovered(mutual)
        if agreement is not None:
            return agreement
        try:
            return await self._initialized()
        except UpstreamError as error:
            # A server that was slow to start may have accepted the first probe after all.
            mutual = _mutual(_supported(error))
            if mutual is None:
                raise
            agreement, _ = await self._discovered(mutual)
            if agreement is None:
                raise
            return agreement

    async def _discovered(self, version: str) -> tuple[Agreement | None, str | None]:
        """Return the agreement on this revision, or None and the modern revision that the server names instead.

        As in the SDK's client, any answer that does not show a modern server counts as that of an older one.
        """
        limit = min(_DISCOVER_S, self._options.connect_timeout_s / 2)
        try:
            result = await self._ask(DISCOVER, {}, version, limit)
        except UpstreamError as error:
            supported = _supported(error)
            if (
                supported
                and _mutual(supported) is None
                and not set(supported) & set(HANDSHAKE_PROTOCOL_VERSIONS)
            ):
                raise
            return None, _mutual(supported)
        except ServiceError:
            if self._lost():
                raise
            return None, None
        agreed = _mutual(result.get("supportedVersions"))
        if agreed is None:
            return None, None
        meta = result.get("_meta")
        info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
        return _agreement(agreed, result, info), None

    async def _initialized(self) -> Agreement:
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": self._options.capabilities,
            "clientInfo": CLIENT_INFO,
        }
        result = await self._ask(INITIALIZE, params, None, self._options.connect_timeout_s)
        version = result.get("protocolVersion")
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise self._faults.broken("speaks no revision of MCP that is supported here")
        return _agreement(version, result, result.get("serverInfo"))


def _agreement(version: str, result: Mapping[str, Any], info: object) -> Agreement:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Agreement(
        version,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )


def _supported(error: UpstreamError) -> list[Any] | None:
    """Return the revisions that the error says the server supports."""
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(error.data, Mapping):
        return None
    supported = error.data.get("supported")
    return supported if isinstance(supported, list) else None


def _mutual(supported: object) -> str | None:
    """Return the newest modern revision that both sides know."""
    if not isinstance(supported, list):
        return None
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in supported), None)
