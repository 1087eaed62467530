"""Options of the connections of an aggregator."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from app.core.catalog.servers import MCPServerSettings
from app.core.errors import UpstreamUnavailableError
from app.core.upstream import Authorization
from app.upstream.session_connections import LinkBudget
from app.upstream.transport.link import open_link
from app.upstream.transport.options import LinkOptions, ServerLink

log = logging.getLogger("sluice.upstream")

Opener = Callable[[str, MCPServerSettings, LinkOptions], AbstractAsyncContextManager[ServerLink]]


def _any_network(_server: str) -> tuple[str, ...] | None:
    """Trust the host's settings: any address except those of cloud metadata."""
    return None


def _no_tokens(server: str, settings: MCPServerSettings) -> Authorization | None:
    """Refuse servers that need tokens: only the service gets some."""
    if settings.auth is not None:
        raise UpstreamUnavailableError(
            f"Server {server!r} needs tokens, which only the service gets.", details={"server": server}
        )
    return None


def _ignore_change(_server: str) -> None:
    """Ignore changes: the lists are read when they are needed."""


def _ignore_notification(_server: str, _method: str, _params: Mapping[str, Any]) -> None:
    """Ignore notifications that belong to no request."""


def tell(listener: Callable[..., None], server: str, *what: Any) -> None:
    """Call a listener, whose bug must not end the connection."""
    try:
        listener(server, *what)
    except Exception as error:  # noqa: BLE001 - see above
        log.error("a listener to server %s failed: %s", server, type(error).__name__)  # noqa: TRY400


@dataclass(frozen=True, slots=True)
class AggregatorOptions:
    """Limits of the connections of one aggregator, and its listeners.

    ``on_change(server)`` is called after a change of the server's offers or status;
    ``on_notification(server, method, params)`` receives what belongs to no request
    (``notifications/resources/updated`` with the server's own URI, log messages), except list_changed, which the
    connection handles itself. ``allowed_networks(server)``: see ``LinkOptions``. ``authorize(server, settings)``
    returns the tokens of the shared connection. All aggregators of a process should share one ``dedicated`` budget.
    """

    connect_timeout_s: float = 10.0
    max_result_bytes: int = 8 * 1024 * 1024
    allowed_networks: Callable[[str], tuple[str, ...] | None] = _any_network
    authorize: Callable[[str, MCPServerSettings], Authorization | None] = _no_tokens
    on_change: Callable[[str], None] = _ignore_change
    on_notification: Callable[[str, str, Mapping[str, Any]], None] = _ignore_notification
    dedicated: LinkBudget = field(default_factory=lambda: LinkBudget(256))
    opener: Opener = open_link
