"""The contract of a connection to an MCP server, and the options to open it with."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from app.core.upstream import NO_HOOKS, Authorization, Hooks

NotificationSink = Callable[[str, Mapping[str, Any]], None]
RequestSink = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
SchemaOf = Callable[[str], Mapping[str, Any] | None]


def _dropped(_method: str, _params: Mapping[str, Any]) -> None:
    """Ignore the notification: for links whose owner does not follow changes."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How one connection is opened, and who receives messages that belong to no request of ours.

    ``capabilities`` are declared in ``initialize``; a server of the modern revision gets those of each request's hooks
    instead. ``on_request`` answers what a server asks outside a request, or raises UpstreamError. ``schema_of(tool)``
    returns the input schema of a tool, from which a modern request's ``Mcp-Param-*`` headers follow.
    ``allowed_networks``: None means that the settings come from the host (file, command line) and may name any address
    except those of cloud metadata; otherwise only public addresses and these networks are allowed. ``roots``: whether
    the server may learn the roots of clients; over stdio it never does. ``authorization`` gives the tokens that are
    sent over streamable HTTP instead of an Authorization header of the settings. ``listing_only``: calls go with the
    tokens of users, so this connection, which has none, carries no call.
    """

    connect_timeout_s: float
    max_result_bytes: int
    revision: Literal["auto", "handshake"] = "auto"
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    on_notification: NotificationSink = _dropped
    on_request: RequestSink | None = None
    schema_of: SchemaOf | None = None
    allowed_networks: tuple[str, ...] | None = ()
    roots: bool = False
    authorization: Authorization | None = None
    listing_only: bool = False


class ServerLink(Protocol):
    """One live connection to an MCP server, of either revision."""

    @property
    def protocol_version(self) -> str:
        """The revision agreed on."""

    @property
    def modern(self) -> bool:
        """Whether that revision knows no handshake and no session (2026-07-28 on)."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server declares that it can do, unknown members included."""

    @property
    def server_info(self) -> Mapping[str, Any]:
        """Name, version and more, in the server's own words; empty where a modern server sends nothing."""

    @property
    def instructions(self) -> str | None:
        """The server's advice to models."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        hooks: Hooks = NO_HOOKS,
        timeout_s: float,
    ) -> dict[str, Any]:
        """Return the server's result as it came: unknown members kept, integers exact; nothing is ever sent twice.

        Raises UpstreamError (the server's own JSON-RPC error), UpstreamUnavailableError (connection gone, refused
        or broken answer), DeadlineExceededError, TooLargeError (the rest of the answer is not read). Cancelling the
        task tells the server.
        """

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; does nothing in the modern revision over HTTP, which has none."""

    async def listen(self, uris: Collection[str]) -> None:
        """Follow ``notifications/resources/updated`` of these URIs and no others (modern; replaces the last set).

        Does nothing in the handshake revision, where ``resources/subscribe`` does this.
        """

    async def wait_closed(self) -> None:
        """Return when the connection can no longer be used."""
