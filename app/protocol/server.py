"""Build the MCP surface: the SDK's server, our methods on it, and the front that stands before both."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, get_args

from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types import SetLevelRequestParams, SubscriptionsListenRequestParams
from mcp_types.methods import CacheableMethod
from starlette.types import ASGIApp

from app.core.access import Caller
from app.protocol.capabilities import CONTEXT_MIDDLEWARE, Capabilities
from app.protocol.direct import Direct
from app.protocol.exchange import Context, exchange_of
from app.protocol.front import Front
from app.protocol.guards import Guard, Running, guarded
from app.protocol.legs import Legs
from app.protocol.middleware import MiddlewareMethods
from app.protocol.notifications import Listen, Notifications, Told
from app.protocol.primitives import Method, Primitives
from app.protocol.sessions import VirtualSessions
from app.services.access import AccessService
from app.services.invoke import InvokeService
from app.services.sessions import SessionService

NAME = "sluice"
_INSTRUCTIONS = (
    "Context middleware: middleware/list names the transformations, middleware/invoke applies one."
)


@dataclass(frozen=True, slots=True)
class Mcp:
    """The surface: ``app`` goes to ``Route("/mcp", ...)``, ``run`` into the lifespan."""

    app: ASGIApp
    legs: Legs
    notifications: Notifications

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while the body runs; once per process."""
        async with self.legs.run():
            try:
                yield
            finally:
                self.notifications.close()

    def publish(self, told: Told) -> None:
        """Tell the clients whose streams are open in this process."""
        self.notifications.publish(told)

    def drain(self) -> None:
        """End the open streams, which otherwise keep a stopping server waiting; call it at SIGTERM."""
        self.notifications.close()


def build_mcp(
    *,
    invoke: InvokeService,
    access: AccessService,
    sessions: SessionService,
    version: str,
    allowed_hosts: Iterable[str],
    allowed_origins: Iterable[str],
    max_body_bytes: int,
    anonymous: Caller | None = None,
    primitives: Primitives | None = None,
    traced: bool = False,
    page_size: int = 50,
    ping_s: float = 15.0,
    deadline_s: float = 60.0,
    direct: bool = True,
) -> Mcp:
    """Wire the surface; ``anonymous`` switches authentication off, ``traced`` switches the SDK's spans on.

    ``direct`` off sends our own methods through the SDK's transports too, for tests that compare the two.
    """
    notifications = Notifications()
    virtual = VirtualSessions(sessions, notifications, ping_s)
    running = Running()
    methods = dict(MiddlewareMethods(invoke, page_size).methods())
    ours = frozenset(methods) if direct else frozenset[str]()
    if primitives is not None:
        methods |= primitives.methods()
    server = _server(methods, virtual, running, version=version, traced=traced)
    # Without this every tools/call of the modern revision would run the whole tools/list first.
    server.get_tool_input_schema = primitives.tool_input_schema if primitives else lambda _: None
    calls_back = primitives is not None and primitives.calls_back
    legs = Legs(server, calls_back=calls_back, max_body_bytes=max_body_bytes)
    security = TransportSecurityMiddleware(
        TransportSecuritySettings(
            allowed_hosts=_any_port(allowed_hosts), allowed_origins=_any_port(allowed_origins)
        )
    )
    front = Front(
        access, virtual, legs, Direct(server, ours), running, security, anonymous, deadline_s, 4 * ping_s
    )
    return Mcp(front, legs, notifications)


def _server(
    methods: dict[str, Method], sessions: VirtualSessions, running: Running, *, version: str, traced: bool
) -> Server[Any]:
    server: Server[Any] = Server(
        NAME,
        version=version,
        title="Sluice",
        instructions=_INSTRUCTIONS,
        cache_hints={method: CacheHint(0, "private") for method in get_args(CacheableMethod)},
    )
    if not traced:  # the SDK's spans cost a tenth of a request even where nothing collects them
        server.middleware.clear()
    server.middleware += [Guard(running), Capabilities((CONTEXT_MIDDLEWARE,)), _begins_sessions(sessions)]
    listen = Listen(sessions.notifications, frozenset(methods))
    methods = {
        **methods,
        "subscriptions/listen": Method(SubscriptionsListenRequestParams, listen),
    }
    if "logging/setLevel" in methods:
        methods["logging/setLevel"] = _remembered(methods["logging/setLevel"], sessions)
    for name, method in methods.items():
        safe = guarded(method)
        server.add_request_handler(name, safe.params, safe.handle)
    return server


def _begins_sessions(sessions: VirtualSessions) -> Any:
    """Return the middleware that begins a virtual session once ``initialize`` succeeded."""

    async def begin(context: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(context)
        exchange = exchange_of(context)
        if context.method == "initialize" and exchange.begins and isinstance(result, dict):
            exchange.session_id = await sessions.begin(exchange.caller, result["protocolVersion"])
        return result

    return begin


def _remembered(method: Method, sessions: VirtualSessions) -> Method:
    """Return ``logging/setLevel`` so that the virtual session knows the level in every replica."""

    async def handle(context: Context, params: SetLevelRequestParams) -> HandlerResult:
        result = await method.handle(context, params)
        exchange = exchange_of(context)
        if exchange.session_id is not None:
            await sessions.set_log_level(exchange.caller, exchange.session_id, params.level)
        return result

    return replace(method, handle=handle)


def _any_port(names: Iterable[str]) -> list[str]:
    """Return ``names`` in the SDK's form, where a name without a port needs a second entry for any port."""
    patterns: list[str] = []
    for name in names:
        patterns.append(name)
        host = name.rpartition("//")[2]
        if ":" not in host.rpartition("]")[2]:
            patterns.append(f"{name}:*")
    return patterns
