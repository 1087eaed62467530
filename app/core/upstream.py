"""What crosses between a client's request and the server behind this one that answers it."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class UpstreamError(Exception):
    """The server behind this one answered with a JSON-RPC error, which goes on to the client as it is.

    No ServiceError: the words are the server's own, so nothing of it is logged or recorded but the code.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"JSON-RPC error {code}")
        self.code = code
        self.message = message
        self.data = data


class OwnLinks(Protocol):
    """Connections that serve one client alone, so that what a server asks reaches nobody else."""

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        hooks: "Hooks",
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result, over the client's own connection where the server may need one."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the client behind one request can be told and asked while its server works.

    ``notify(method, params)`` takes what belongs to this request: ``notifications/progress`` (with the client's own
    token) and ``notifications/message``. ``ask(method, params)`` carries ``sampling/createMessage``,
    ``elicitation/create`` and ``roots/list`` to the client and returns its result, or raises UpstreamError.
    ``meta`` is merged into the request's ``_meta``; ``capabilities`` are those the client declared, which a server
    of the modern revision is told with each request. ``links`` are the client's own connections: where they are
    given, requests go through them. ``guard`` makes hooks through which nothing passes that a policy withholds: what a
    server says outside a request may be about this one, too. ``owner`` stands for the client: where a server does not
    say to which request its logs belong, they are passed on only on connections that no other client uses.
    """

    notify: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None = None
    ask: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    progress_token: str | int | None = None
    log_level: str | None = None
    links: OwnLinks | None = None
    guard: "Callable[[Hooks], Hooks] | None" = None
    owner: Hashable = None


NO_HOOKS = Hooks()
