"""What is remembered from one request to the next: in a session, or behind a handle that requests carry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.errors import InvalidArgumentsError, NotFoundError
from app.protocol.wire.capabilities import VENDOR
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.services.access.sessions import Session

SESSION_META: Final = f"{VENDOR}session"
DISCLOSURE_META: Final = f"{VENDOR}disclosure"
_FALLBACK: Final[Mapping[str, str]] = {DISCLOSURE_META: SESSION_META}


@dataclass(slots=True)
class SessionState:
    """The memory of one session of the handshake revision, or behind one handle of the modern one.

    A handle is a session of the caller's own with the modern revision; a request that brings none gets one as
    soon as there is something to remember.
    """

    exchange: Exchange
    name: str
    modern_revision: str | None
    session: Session | None

    @property
    def preferences(self) -> Mapping[str, Any]:
        """Return what is remembered, by name."""
        return self.session.preferences if self.session is not None else {}

    @property
    def handle(self) -> str | None:
        """Return what a modern client sends back in ``_meta`` to be remembered; None for handshake sessions."""
        return self.session.id if self.session is not None and self.modern_revision else None

    async def remember(self, preferences: Mapping[str, Any], *, publish: bool = False) -> None:
        """Merge ``preferences`` into what is remembered; None removes a name."""
        await self.revise(lambda stored: {**stored, **preferences}, publish=publish)

    async def revise(
        self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], *, publish: bool = False
    ) -> None:
        """Replace what is remembered by what ``change`` makes of it, one change after the other.

        ``publish`` sends list_changed for tools, prompts and resources to the streams of this session, in every
        process.
        """
        sessions, caller = self.exchange.sessions, self.exchange.caller
        if self.session is not None:
            session = await sessions.revise(caller, self.session.id, change, publish=publish)
        elif self.modern_revision is not None:
            data = {name: value for name, value in change({}).items() if value is not None}
            session = await sessions.start(caller, self.modern_revision, data)
        else:
            raise NotFoundError("There is no session to remember this in; begin with initialize.")
        self.session = session
        if self.modern_revision is None:
            self.exchange.session = session
        else:
            self.exchange.handles[self.name] = session


async def state_of(context: Context, name: str = SESSION_META) -> SessionState:
    """Return what this request's session remembers; read once for each request.

    ``name`` is where a modern request carries its handle. Under DISCLOSURE_META a request without that handle is
    known by the one under SESSION_META. A handle that is unknown, expired or another caller's is refused.
    """
    exchange = exchange_of(context)
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return SessionState(exchange, name, None, exchange.session)
    meta = _meta_of(context)
    if name not in meta:
        name = _FALLBACK.get(name, name)
    if name in meta and name not in exchange.handles:
        exchange.handles[name] = await _resumed(exchange, name, meta[name])
    return SessionState(exchange, name, context.protocol_version, exchange.handles.get(name))


async def _resumed(exchange: Exchange, name: str, handle: Any) -> Session:
    if isinstance(handle, str):
        try:
            session = await exchange.sessions.resume(exchange.caller, handle)
        except NotFoundError:
            session = None
        if session is not None and session.revision in MODERN_PROTOCOL_VERSIONS:
            return session
    raise InvalidArgumentsError(
        "There is nothing behind this handle; leave it out, and use the one that the next answer brings.",
        details={"pointer": f"/_meta/{name.replace('/', '~1')}"},
    )


def _meta_of(context: Context) -> Mapping[str, Any]:
    meta = (context.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}
