"""Start here: one application with every surface, wired by hand."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

import app
from app.api.auth import OPEN_STREAMS, RouteServices
from app.api.surface import OPENAPI_PATH, SURFACES, install_rest, own_ways, rest_routers
from app.assembly import Services, opened, utc_now
from app.console.services import ConsoleServices
from app.console.surface import CONSOLE, console_routers
from app.core.access import Caller, Role
from app.edge.budget import ByteLimits
from app.edge.guard import EdgeGuard, GuardedApp
from app.edge.health import Readiness, in_turn
from app.edge.lifespan_state import SERVED, Drain, Served, resources_of
from app.edge.limits import DeclaredLimits, EdgeLimits
from app.edge.logs import configure_logging
from app.edge.observability import Metrics
from app.edge.protected_resources import resource_router
from app.edge.tracing import tracer_to
from app.identity_wiring import protected_resources, sign_ins
from app.places_wiring import mark_store
from app.protocol.methods.aggregated import AggregatedPrimitives
from app.protocol.methods.interceptors import OLDEST_PROTOCOL
from app.protocol.methods.shaping import Shaping
from app.protocol.methods.tasks import TaskMethods
from app.protocol.server import Mcp, McpParts, build_mcp
from app.protocol.wire.callbacks import ClientCallbacks
from app.protocol.wire.errors import WIRE_ERRORS
from app.protocol.wire.primitives import Primitives
from app.services.access.bootstrap import bootstrap
from app.services.access.console_sessions import ConsoleSessions
from app.services.access.traffic import Traffic
from app.services.catalog.group_views import GroupViews
from app.services.catalog.server_instructions import ServerInstructions
from app.services.declare.declaration_files import read_file
from app.services.documents.trials import SearchTrials
from app.services.invoke.explaining import ExplainService
from app.services.invoke.interceptors import InterceptorService
from app.services.previews.catalogs import ClientCatalogs
from app.services.vault.replay import refuse_vanished
from app.settings import ConfigurationError, Settings
from app.store import migrate

FILE_ACTOR = "file"
"""Who acts, in the record, when the declarative file of this process is applied at its start."""

log = logging.getLogger("sluice.start")

DESCRIPTION = (
    "Context middleware for MCP: what goes to a language model, and what comes from one, passes here."
)


def create_app(
    settings: Settings,
    *,
    primitives: Primitives | None = None,
    now: Callable[[], datetime] = utc_now,
    ordinary: bool = True,
) -> FastAPI:
    """Return the application; its lifespan builds the services and starts their tasks.

    ``app.state.first_key`` is the API key that this start made up, or None; ``app.state.drain`` takes the process
    out of service. ``primitives`` and ``now`` are for tests; so is ``ordinary``: off, every
    invocation takes the general way, to compare the two.
    """
    configure_logging(settings.telemetry.log_level, settings.telemetry.log_format)
    drain, metrics = Drain(), Metrics()
    readiness = Readiness(drain)
    try:
        tracer = tracer_to(settings.telemetry.otlp_endpoint, app.__version__)
    except ModuleNotFoundError:
        # Said here and not by the import: the sentence names the setting that asks for it.
        sentence = (
            "SLUICE_TELEMETRY__OTLP_ENDPOINT is set, but the extra otel is not installed: "
            "pip install 'sluice-mcp[otel]', or unset the variable."
        )
        raise ConfigurationError([sentence]) from None

    @asynccontextmanager
    async def lifespan(service: FastAPI) -> AsyncIterator[dict[str, Any]]:
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(
                refuse_vanished,
                settings.database.sqlite_file,
                settings.database.owner_url,
                mark_store(settings),
            )
            services = await stack.enter_async_context(_opened(settings, now, metrics))
            await stack.enter_async_context(services.keyring.running())
            await _refuse_lonely_mark(services)
            await services.replay.recover()
            await stack.enter_async_context(services.replay.marks.running())
            first_key = settings.auth.bootstrap_key
            service.state.first_key = await bootstrap(
                services.access, first_key.get_secret_value() if first_key else None, settings.environment
            )
            service.state.services = services
            service.state.route_services = routes = _services(services)
            service.state.console_services = console = _console(services, routes)
            readiness.begin(_checks(services), partial(services.keyring.late, services.outlets.lag.late))
            await stack.enter_async_context(_watched(metrics, services))
            mcp = _mcp(services, primitives, ordinary=ordinary)
            stack.callback(services.changes.subscribe(mcp.changed))
            services.catalogs.subscribe(mcp.lists_changed)
            services.upstreams.subscribe_notifications(mcp.server_told)
            services.dedicated.subscribe_updates(mcp.client_told)
            service.state.mcp = mcp
            # Called from a signal handler: open notification streams would hold up the end until they are cut.
            loop = asyncio.get_running_loop()
            drain.subscribe(partial(loop.call_soon_threadsafe, _end_streams, mcp, console))
            stack.push_async_callback(services.detector.close)
            if settings.detection.warm:
                await services.detector.start()
            await stack.enter_async_context(services.background.running())
            await stack.enter_async_context(services.ingestion.running())
            await _declare(services)
            await stack.enter_async_context(services.upstreams.running())
            await stack.enter_async_context(mcp.run())
            if tracer is not None:
                stack.callback(tracer.shutdown)
            invoke, doors = own_ways(routes, partial(FastAPI.__call__, service), ordinary=ordinary)
            yield {
                SERVED: Served(
                    *(routes.authenticator, mcp.app, invoke, {CONSOLE.prefix: console.sessions}, doors),
                    partial(protected_resources, settings, routes.authenticator),
                )
            }

    routers = (
        *rest_routers(readiness, metrics if settings.telemetry.metrics else None),
        resource_router(resources_of),
        *console_routers(),
    )

    def guarded(application: ASGIApp, own: Sequence[BaseRoute]) -> EdgeGuard:
        return EdgeGuard(
            application,
            limits=_edge(settings),
            routes=DeclaredLimits.of([*chain.from_iterable(router.routes for router in routers), *own]),
            drain=drain,
            metrics=metrics,
            tracer=tracer,
            rpc_codes={code: row.code for code, row in WIRE_ERRORS.items()},
            surfaces=(*SURFACES, CONSOLE),
            logger=structlog.get_logger("sluice").bind(),
        )

    service = GuardedApp(
        guarded,
        title="Sluice",
        version=app.__version__,
        description=DESCRIPTION,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    service.state.drain = drain
    service.state.first_key = None
    install_rest(service, routers)
    return service


def _opened(
    settings: Settings, now: Callable[[], datetime], metrics: Metrics
) -> AbstractAsyncContextManager[Services]:
    return opened(
        settings,
        now=now,
        observe=metrics.invocation,
        observe_engine=metrics.engine,
        observe_finding=metrics.finding,
    )


def _watched(metrics: Metrics, services: Services) -> AbstractAsyncContextManager[None]:
    """Show in the metrics what the services count."""
    metrics.watch_servers(services.upstreams.counts)
    metrics.watch_detection(services.detector.counts)
    lag = services.outlets.lag
    metrics.watch_log(lambda: lag.sealing_s, lag.anchoring_s, lambda: services.retention.deleted)
    metrics.watch_sinks(lag.delivering_s, services.outlets.counts())
    metrics.watch_custodian(lambda: services.keyring.silent_s)
    if services.outlets.archive is not None:
        metrics.watch_archive(lambda: lag.archiving_s, lambda: lag.archive_failed)
    if (rates := services.rates) is not None:
        metrics.watch_rates(lambda: rates.processes)
    return metrics.shown_elsewhere()


async def _refuse_lonely_mark(services: Services) -> None:
    """Raise ``ConfigurationError`` where several hosts serve in production and each would keep a mark of its own."""
    settings = services.settings
    if settings.environment != "production" or settings.vault.mark is not None:
        return
    others = await services.keyring.other_hosts()
    if others:
        hosts = ", ".join(others)
        fault = f"{hosts} serves from this database too: let SLUICE_VAULT__MARK name a place that all hosts share."
        raise ConfigurationError([fault])


async def _declare(services: Services) -> None:
    """Apply the declarative file of this process, if it has one."""
    section = services.settings.upstreams
    if section.config is None:
        return
    file = await asyncio.to_thread(read_file, section.config)
    caller = Caller(section.tenant, FILE_ACTOR, frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN}))
    plan = await services.declarations.apply(caller, file)
    for warning in plan.warnings:
        log.warning("%s", warning)


def _edge(settings: Settings) -> EdgeLimits:
    http = settings.http
    return EdgeLimits(
        allowed_hosts=http.allowed_hosts,
        allowed_origins=http.allowed_origins,
        max_body_bytes=http.max_body_bytes,
        body_timeout_s=http.body_timeout_s,
        turn_timeout_s=http.turn_timeout_s,
        in_flight=ByteLimits(http.max_bytes_in_flight, http.max_tenant_bytes, http.max_key_bytes),
        parsers=http.parsers,
    )


def _end_streams(mcp: Mcp, console: ConsoleServices) -> None:
    mcp.drain()
    console.live.close()


def _services(services: Services) -> RouteServices:
    return RouteServices(
        authenticator=services.access.authenticator,
        access=services.access,
        issuers=services.issuers,
        tenants=services.tenants,
        tenant_erasure=services.tenant_erasure,
        invoke=services.invoke,
        policies=services.policies,
        pipelines=services.pipelines,
        groups=services.groups,
        concerns=services.concerns,
        upstreams=services.upstreams,
        servers=services.servers,
        grants=services.users.grants,
        providers=services.providers,
        client_catalogs=ClientCatalogs(services.access, services.listing, services.concerns),
        gateway=services.gateway,
        vault=services.vault,
        audit=services.audit,
        descriptions=services.descriptions,
        collections=services.collections,
        ingestion=services.ingestion,
        trials=SearchTrials(
            services.registry.get("document_retrieval").engines.retriever,
            services.access.authenticator,
            services.audit,
        ),
        explaining=ExplainService(
            services.registry, services.policies, services.audit, services.invoke.traffic, services.detector
        ),
        streams=Traffic(slots=OPEN_STREAMS, rates=services.rates, name="streams"),
        requests=Traffic(rates=services.rates, name="rest"),
    )


def _console(services: Services, routes: RouteServices) -> ConsoleServices:
    return ConsoleServices(
        sessions=ConsoleSessions(
            *(services.sessions, routes.authenticator, services.audit),
            people=sign_ins(services.settings, routes.authenticator, services.sessions),
        ),
        access=routes.access,
        issuers=routes.issuers,
        audit=routes.audit,
        policies=routes.policies,
        pipelines=routes.pipelines,
        servers=routes.servers,
        providers=routes.providers,
        client_catalogs=routes.client_catalogs,
        grants=routes.grants,
        invoke=routes.invoke,
        explaining=routes.explaining,
        vault=routes.vault,
        tenant_erasure=routes.tenant_erasure,
        collections=routes.collections,
        ingestion=routes.ingestion,
        trials=routes.trials,
        lag=services.outlets.lag,
        version=app.__version__,
        requests=routes.requests,
    )


def _mcp(services: Services, primitives: Primitives | None, *, ordinary: bool) -> Mcp:
    http = services.settings.http
    # Processes behind one socket share its requests: the answer to a question could reach any of them.
    alone = http.workers == 1
    callbacks = ClientCallbacks(services.dedicated if alone else None)
    groups = GroupViews(services.groups, services.listing, services.invoke)
    parts = McpParts(
        invoke=services.invoke,
        authenticator=services.access.authenticator,
        sessions=services.sessions,
        concerns=services.concerns,
        version=app.__version__,
        allowed_hosts=http.allowed_hosts,
        allowed_origins=http.allowed_origins,
        max_body_bytes=http.max_body_bytes,
        primitives=primitives,
        callbacks=callbacks,
        groups=groups,
        interceptors=InterceptorService(services.invoke, app.__version__, OLDEST_PROTOCOL),
        session_idle_s=services.settings.sessions.idle_s,
        ordinary=ordinary,
        requests=Traffic(rates=services.rates, name="mcp"),
    )
    if primitives is not None:
        return build_mcp(parts)
    aggregated, serves = _aggregated(services, callbacks, groups), services.dedicated.serves
    return build_mcp(
        replace(
            parts,
            primitives=aggregated,
            expect=aggregated.expect,
            opening=(aggregated.tasks.advertise,) if aggregated.tasks is not None else (),
            subscriptions=services.subscriptions,
            instructions=ServerInstructions(services.listing, services.upstreams).of,
            calls_back=lambda tenant: alone and serves(tenant),
        )
    )


def _aggregated(services: Services, callbacks: ClientCallbacks, groups: GroupViews) -> AggregatedPrimitives:
    """Return what the servers behind this one offer, as callers may see it."""
    shaping = Shaping(
        listing=services.listing,
        groups=groups,
        concerns=services.concerns,
        disclosure=services.disclosure,
        tools=services.tool_lists,
    )
    tasks = TaskMethods(
        listing=services.listing,
        forwarding=services.forwarding,
        callbacks=callbacks,
        shaping=shaping,
        upstreams=services.upstreams,
    )
    return AggregatedPrimitives(
        listing=services.listing,
        forwarding=services.forwarding,
        callbacks=callbacks,
        shaping=shaping,
        subscriptions=services.subscriptions,
        tasks=tasks,
    )


def _checks(services: Services) -> dict[str, Callable[[], Awaitable[Any]]]:
    newest = migrate.head()

    async def schema() -> bool:
        # Through the connections that serve: another one would create a file that was deleted.
        return await services.database.revision() == newest

    async def detector() -> bool:
        # A detector that waits for its first call is as it should be.
        return services.detector.ready or not services.settings.detection.warm

    async def upstreams() -> bool:
        return services.upstreams.ready

    stored = in_turn({"database": services.database.ping, "keys": services.keyring.check, "schema": schema})
    return {
        "database": stored["database"],
        "keys": stored["keys"],
        "mark": services.replay.marks.ready,
        "schema": stored["schema"],
        "detector": detector,
        "upstreams": upstreams,
    }
