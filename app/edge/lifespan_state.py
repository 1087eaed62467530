"""What the guard asks and hands requests to, once the process has started, and until it goes out of service."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from starlette.requests import Request
from starlette.types import ASGIApp

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.edge.facts import RequestFacts

SERVED: Final = "served"
"""Under which the state of the lifespan holds ``Served``."""


class CallerGate(Protocol):
    """Says who asks, before a body is read."""

    async def authenticate(self, bearer: str | None, address: str | None) -> Caller:
        """Return who presents this key from this address, or raise UnauthenticatedError."""
        ...

    async def acting(self, caller: Caller, names: Sequence[bytes], request: RequestInfo) -> Caller:
        """Return the caller, for the end user whom the values of X-Sluice-User name, or raise what refuses them."""
        ...

    async def refuse(
        self, caller: Caller, roles: Collection[Role], action: str, request: RequestInfo
    ) -> None:
        """Raise ForbiddenError, on record as ``action``: the caller has none of ``roles``."""
        ...


class ToldResources(Protocol):
    """What clients are told of tokens for this service."""

    def metadata(self, path: str) -> dict[str, Any] | None:
        """Return the metadata of the resource that has a path, None where there is none."""
        ...

    def challenged(
        self,
        status: int,
        headers: Sequence[tuple[bytes, bytes]],
        facts: RequestFacts,
        sent: Sequence[tuple[bytes, bytes]],
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer, with the challenge that tells a client which token to get."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """Without a ``gate`` everybody may send a body.

    ``mcp`` serves the MCP endpoints, ``invoke`` the paths below ``INVOKE_PREFIX`` and ``doors`` those of surfaces by
    their prefix, before the routes of the application are tried; where there is none, the routes serve these too.
    ``gates`` stand in the place of ``gate`` for surfaces whose credential is no key, by their prefix. ``resources`` is
    what clients that need a token are told now, None: nothing.
    """

    gate: CallerGate | None = None
    mcp: ASGIApp | None = None
    invoke: ASGIApp | None = None
    gates: Mapping[str, CallerGate] = field(default_factory=dict)
    doors: Mapping[str, ASGIApp] = field(default_factory=dict)
    resources: Callable[[], ToldResources | None] = lambda: None


def resources_of(request: Request) -> ToldResources | None:
    """Return what clients are told of tokens by the process that serves a request."""
    served: Served = request.scope.get("state", {}).get(SERVED, Served())
    return served.resources()


class Drain:
    """Whether this process still takes new requests, and how many it is busy with."""

    def __init__(self) -> None:
        self.draining = False
        self.running = 0
        self._listeners: list[Callable[[], object]] = []

    def subscribe(self, listener: Callable[[], object]) -> None:
        """Call ``listener`` once, when the process goes out of service; it may be called from a signal handler."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Refuse new requests from now on; those that run may end, and the listeners end what never would."""
        self.draining = True
        for tell in self._listeners:
            tell()
