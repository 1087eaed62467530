"""State of a connection to a server, described without the server's own text."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import ServiceError
from app.core.upstream import UpstreamError

State = Literal["connecting", "ready", "failed", "stopped"]

FIRST_DELAY_S: Final = 0.1
LONGEST_DELAY_S: Final = 30.0
STABLE_S: Final = 60.0
"""After a connection of this length, the next failure counts as the first one again."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What operators see of a connection; ``error`` is our own sentence and never the server's text.

    A server may be ready and have an error: one of its lists could not be read, and the former one is kept. What the
    server declared of itself stays while it is down. ``generation`` counts the connections made so far.
    """

    state: State = "stopped"
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    error: str | None = None
    protocol_version: str | None = None
    server_info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None
    offered: Mapping[PrimitiveKind, int] = field(default_factory=dict)
    generation: int = 0


def explained(server: str, error: BaseException) -> str:
    """Return what is wrong with a server, without any of its own text."""
    if isinstance(error, ServiceError):
        return error.message
    if isinstance(error, UpstreamError):
        return f"Server {server!r} refused the connection with JSON-RPC error {error.code}."
    if isinstance(error, TimeoutError):
        return f"Server {server!r} timed out."
    if isinstance(error, OSError):
        return f"Server {server!r} does not answer."
    return f"The connection to server {server!r} broke ({type(error).__name__})."


def delay_s(failures: int) -> float:
    """Return how long to wait after so many failures in a row: a doubling pause, of which up to half is random."""
    full = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 20))
    return full * random.uniform(0.5, 1)  # noqa: S311 - spreads reconnects, no secret
