"""Types that connect a client's request with the server behind this one that answers it."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class UpstreamError(Exception):
    """The server behind this one answered with a JSON-RPC error, which is passed on unchanged to the client.

    It is no ServiceError: the message is the server's own text, so only the code is logged or recorded.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"JSON-RPC error {code}")
        self.code = code
        self.message = message
        self.data = data


class Authorization(Protocol):
    """The tokens that one connection sends; each belongs to one user, or to this service itself."""

    @property
    def identity(self) -> Hashable:
        """Return what tells these tokens apart: no two users, servers or audiences have the same."""
        ...

    async def token(self) -> str:
        """Return a token that counts now, or raise a ServiceError that says why there is none."""
        ...

    async def renewed(self, refused: str) -> str | None:
        """Return another token in place of one that the server refused, None where there is none."""
        ...


class OwnLinks(Protocol):
    """Connections that serve only one client, so that a server's requests reach nobody else."""

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        hooks: "Hooks",
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result, over the client's own connection if the server may need one."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a server reaches the client of one request while it works.

    ``notify(method, params)`` sends notifications of this request to the client: ``notifications/progress`` (with the
    client's own token) and ``notifications/message``. ``ask(method, params)`` sends ``sampling/createMessage``,
    ``elicitation/create`` and ``roots/list`` to the client and returns its result, or raises UpstreamError.
    ``meta`` is merged into the request's ``_meta``. ``capabilities`` are those that the client declared; a server of
    the modern revision gets them with each request. ``links`` are the client's own connections; if set, requests go
    through them. ``guard`` wraps hooks so that they pass on nothing that a policy withholds, because a message that a
    server sends outside a request may also be about this one. ``owner`` identifies the client: if a server does not
    state to which request its logs belong, they are passed on only on connections that no other client uses.
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
