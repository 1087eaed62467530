"""Build the MCP surface: the SDK's server, our methods on it, and the front that stands before both."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_args

from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types import (
    SERVER_INFO_META_KEY,
    NotificationParams,
    SetLevelRequestParams,
    SubscriptionsListenRequestParams,
)
from mcp_types.methods import CacheableMethod
from starlette.types import ASGIApp

from app.core.access import Caller
from app.core.events import Changed
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.protocol.methods.concerns import CONCERNS, ConcernMethods, initial, note_initialized
from app.protocol.methods.groups import GroupMethods
from app.protocol.methods.interceptors import ALONE, INTERCEPTORS, INVOKES, InterceptorMethods
from app.protocol.methods.middleware import INVOKE, MiddlewareMethods
from app.protocol.methods.ordinary import OrdinaryInvoke
from app.protocol.methods.subscriptions import Listen
from app.protocol.wire.callbacks import ClientCallbacks
from app.protocol.wire.capabilities import (
    CONTEXT_MIDDLEWARE,
    GROUPS,
    Capabilities,
    FeatureSource,
    InstructionSource,
)
from app.protocol.wire.direct import Direct
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.protocol.wire.front import Front, ServesGroup
from app.protocol.wire.guards import ErrorGuard, Running, Step, guarded
from app.protocol.wire.notifications import RESOURCE_UPDATED, Notifications, StreamNotification, list_changes
from app.protocol.wire.primitives import Method, Primitives
from app.protocol.wire.process_sessions import ProcessSessions, roots_changed
from app.protocol.wire.raw_results import RawResults
from app.protocol.wire.sdk_transports import CallsBack, SdkTransports
from app.protocol.wire.sessions import ENDPOINT, VirtualSessions
from app.services.access.credentials import POLICY_CHANGED, Authenticator
from app.services.access.sessions import DEFAULT_IDLE_S, SESSION_CHANGED, SessionService
from app.services.access.traffic import Traffic
from app.services.catalog.concerns import ConcernService
from app.services.catalog.group_views import GroupViews
from app.services.forward.subscriptions import SubscriptionService
from app.services.invoke.interceptors import InterceptorService
from app.services.invoke.invoke import InvokeService

NAME = "sluice"
_CHECK_S = 30.0
_SESSION_LISTS = ("tool", "prompt", "resource")
_INSTRUCTIONS = (
    "Context middleware: middleware/list names the transformations, middleware/invoke applies one."
)


@dataclass(frozen=True, slots=True)
class Mcp:
    """The surface: ``app`` goes to ``Route("/mcp", ...)``, ``run`` into the lifespan."""

    app: ASGIApp
    transports: SdkTransports
    notifications: Notifications
    callbacks: ClientCallbacks
    process_sessions: ProcessSessions

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while the body runs; once per process."""
        async with self.transports.run():
            try:
                yield
            finally:
                self.notifications.close()
                await self.callbacks.close()

    def publish(self, notification: StreamNotification) -> None:
        """Tell the clients whose streams are open in this process."""
        self.notifications.publish(notification)

    def changed(self, changed: Changed) -> None:
        """Tell the streams of a session, or of a tenant with another policy, that other lists are seen now."""
        if changed.kind == SESSION_CHANGED:
            for notification in list_changes(changed.tenant, _SESSION_LISTS, session=changed.name):
                self.publish(notification)
        elif changed.kind == POLICY_CHANGED:
            for notification in list_changes(changed.tenant, (*_SESSION_LISTS, "group")):
                self.publish(notification)

    def lists_changed(self, tenant: str, changed: frozenset[str]) -> None:
        """Tell a tenant's streams which lists are others now: names of ``Catalog.fingerprints``."""
        for notification in list_changes(tenant, changed):
            self.publish(notification)

    def server_told(self, tenant: str, server: str, method: str, params: Mapping[str, Any]) -> None:
        """Pass on to those who follow a resource that its server says was updated."""
        uri = params.get("uri")
        if method == RESOURCE_UPDATED and isinstance(uri, str):
            self.publish(StreamNotification(method, dict(params), tenant, source=(server, uri)))

    def client_told(self, tenant: str, server: str, params: Mapping[str, Any], own: Hashable) -> None:
        """Pass on what a server says was updated on a client's own connections, to that client's streams."""
        uri = params.get("uri")
        if isinstance(uri, str):
            source = (server, uri)
            self.publish(StreamNotification(RESOURCE_UPDATED, dict(params), tenant, source=source, own=own))

    def drain(self) -> None:
        """End the open streams, which otherwise keep a stopping server waiting; call it at SIGTERM."""
        self.notifications.close()


async def _nobody(_caller: Caller, _request: RequestInfo) -> None:
    """Expect nothing of a provider that is not asked for schemas by caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpParts:
    """What the surface is built from; ``traced`` switches the SDK's spans on.

    ``calls_back`` says of a tenant whether anything it uses may ask its clients; where nothing can, no session is bound
    to this process. ``expect`` is told who calls a tool before the SDK looks at the call; ``opening`` stands around
    ``initialize``. ``direct`` off sends our own methods through the SDK's transports too, to compare the two;
    ``ordinary`` off, every ``middleware/invoke`` through the front.
    ``page_size`` is that of our own lists; a stream that is silent is pinged every ``ping_s`` seconds, and a request of
    ours ends after ``deadline_s``.
    """

    invoke: InvokeService
    authenticator: Authenticator
    sessions: SessionService
    version: str
    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    max_body_bytes: int
    primitives: Primitives | None = None
    expect: Callable[[Caller, RequestInfo], Awaitable[None]] = _nobody
    opening: Sequence[Step] = ()
    callbacks: ClientCallbacks = field(default_factory=ClientCallbacks)
    subscriptions: SubscriptionService | None = None
    concerns: ConcernService | None = None
    groups: GroupViews | None = None
    interceptors: InterceptorService | None = None
    instructions: InstructionSource | None = None
    calls_back: CallsBack = lambda _tenant: True
    traced: bool = False
    direct: bool = True
    ordinary: bool = True
    page_size: int = 50
    ping_s: float = 15.0
    deadline_s: float = 60.0
    session_idle_s: float = DEFAULT_IDLE_S
    requests: Traffic = field(default_factory=Traffic)
    """Counts what is no invocation."""


def build_mcp(parts: McpParts) -> Mcp:
    """Wire the surface."""
    primitives, notifications, running = parts.primitives, Notifications(), Running()
    virtual = VirtualSessions(parts.sessions, notifications, parts.ping_s, parts.subscriptions)
    process_sessions = ProcessSessions(
        virtual, parts.callbacks.dedicated, check_s=min(_CHECK_S, parts.session_idle_s / 4)
    )
    own = _own_methods(parts)
    served = {**own.methods, **(primitives.methods() if primitives is not None else {})}
    raw = frozenset(name for name, method in served.items() if method.raw)
    server = _server(parts, served, virtual, process_sessions, running, own.capabilities)
    asks = parts.calls_back if primitives is not None and primitives.calls_back else _never
    transports = SdkTransports(
        server, calls_back=asks, max_body_bytes=parts.max_body_bytes, idle_s=parts.session_idle_s
    )
    front = Front(
        authenticator=parts.authenticator,
        sessions=virtual,
        process_sessions=process_sessions,
        transports=transports,
        direct=Direct(server, frozenset(own.methods) | raw if parts.direct else frozenset()),
        running=running,
        security=_security(parts.allowed_hosts, parts.allowed_origins),
        deadline_s=parts.deadline_s,
        recheck_s=2 * parts.ping_s,
        counted=frozenset({INVOKE, *INVOKES}) | raw,
        forwarded=raw,
        expect=parts.expect,
        serves_group=own.serves_group,
        initialized=partial(note_initialized, parts.sessions),
        alone=ALONE,
        requests=parts.requests,
    )
    ordinary = OrdinaryInvoke(
        general=front,
        invoke=parts.invoke,
        sessions=parts.sessions,
        running=running,
        hosts=frozenset(_any_port(parts.allowed_hosts)),
        deadline_s=parts.deadline_s,
        stamp=dumps({SERVER_INFO_META_KEY: server.server_info_stamp}),
        asked=process_sessions.carries_questions,
    )
    app: ASGIApp = ordinary if parts.ordinary else front
    return Mcp(app, transports, notifications, parts.callbacks, process_sessions)


@dataclass(frozen=True, slots=True)
class _OwnMethods:
    """Our own methods, what is said of them, and whether the group of an endpoint is there."""

    methods: dict[str, Method]
    capabilities: Capabilities
    serves_group: ServesGroup


def _own_methods(parts: McpParts) -> _OwnMethods:
    methods = dict(MiddlewareMethods(parts.invoke, parts.page_size, parts.groups).methods())
    features, sources = [CONTEXT_MIDDLEWARE], list[FeatureSource]()
    serves_group: ServesGroup = _no_group
    if parts.groups is not None:
        grouping = GroupMethods(parts.groups, parts.page_size)
        methods |= grouping.methods()
        features.append(GROUPS)
        serves_group = grouping.serves
    if parts.concerns is not None:
        concern_methods = ConcernMethods(parts.concerns)
        methods |= concern_methods.methods()
        sources.append(concern_methods.feature)
    if parts.interceptors is not None:
        methods |= InterceptorMethods(parts.interceptors, parts.groups).methods()
        features.append(INTERCEPTORS)
    capabilities = Capabilities(tuple(features), tuple(sources), (INTERCEPTORS,))
    if parts.instructions is not None:
        capabilities = replace(capabilities, instructions=parts.instructions)
    return _OwnMethods(methods, capabilities, serves_group)


def _security(hosts: Iterable[str], origins: Iterable[str]) -> TransportSecurityMiddleware:
    return TransportSecurityMiddleware(
        TransportSecuritySettings(allowed_hosts=_any_port(hosts), allowed_origins=_any_port(origins))
    )


def _never(_tenant: str) -> bool:
    return False


async def _no_group(_exchange: Exchange) -> bool:
    return False


class _Announcing(Server[Any]):
    """Says in the handshake too that lists may change, which the SDK's transports have no way to be told."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what ``initialize`` answers."""
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or changing, experimental_capabilities, extensions
        )


def _server(
    parts: McpParts,
    methods: dict[str, Method],
    sessions: VirtualSessions,
    process_sessions: ProcessSessions,
    running: Running,
    capabilities: Capabilities,
) -> Server[Any]:
    primitives = parts.primitives
    server = _Announcing(
        NAME,
        version=parts.version,
        title="Sluice",
        instructions=_INSTRUCTIONS,
        cache_hints={method: CacheHint(0, "private") for method in get_args(CacheableMethod)},
        # Without this every tools/call of the modern revision would run the whole tools/list first.
        get_tool_input_schema=primitives.tool_input_schema if primitives else lambda _: None,
    )
    if not parts.traced:  # the SDK's spans cost a tenth of a request even where nothing collects them
        server.middleware.clear()
    raw = RawResults({name: guarded(method) for name, method in methods.items() if method.raw}, server)
    opening = (*parts.opening, capabilities, _begins_sessions(sessions, process_sessions))
    around: dict[str, Sequence[Step]] = dict.fromkeys(raw.methods, (raw,))
    around |= {"initialize": opening, "server/discover": (capabilities,)}
    server.middleware.append(ErrorGuard(running, around))
    dedicated = parts.callbacks.dedicated
    listen = Listen(sessions.notifications, frozenset(methods), sessions.subscriptions, dedicated)
    methods = {
        **methods,
        "subscriptions/listen": Method(SubscriptionsListenRequestParams, listen),
    }
    if "logging/setLevel" in methods:
        methods["logging/setLevel"] = _remembered(methods["logging/setLevel"], sessions)
    for name, method in methods.items():
        safe = guarded(method)
        server.add_request_handler(name, safe.params, safe.handle)
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, roots_changed)
    return server


def _begins_sessions(sessions: VirtualSessions, process_sessions: ProcessSessions) -> Any:
    """Return the middleware that begins a session once ``initialize`` succeeded, of either kind."""

    async def begin(context: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(context)
        exchange = exchange_of(context)
        if context.method == "initialize" and isinstance(result, dict):
            remembered = initial((context.params or {}).get(CONCERNS))
            if exchange.group is not None:
                remembered[ENDPOINT] = exchange.group
            if exchange.begins:
                revision = result["protocolVersion"]
                exchange.session = await sessions.begin(exchange.caller, revision, remembered)
                exchange.session_id = exchange.session.id
            elif exchange.binds is not None:
                await process_sessions.begin(context, result["protocolVersion"], remembered, exchange.binds)
        return result

    return begin


def _remembered(method: Method, sessions: VirtualSessions) -> Method:
    """Return ``logging/setLevel`` so that the virtual session knows the level in every replica."""

    async def handle(context: Context, params: SetLevelRequestParams) -> HandlerResult:
        result = await method.handle(context, params)
        exchange = exchange_of(context)
        if exchange.session_id is not None:
            await sessions.set_log_level(exchange.caller, exchange.session_id, params.level)
        if exchange.process_session is not None and exchange.process_session.links is not None:
            await exchange.process_session.links.set_level(params.level)
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
