"""Build the services from the settings: for the server, and for commands on the host."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from app.core.contracts.engines import Engines
from app.core.contracts.registry import Registry
from app.core.events import Changed
from app.custody_wiring import key_ring
from app.engine_wiring import (
    chosen_engines,
    discovered_registry,
    document_indexes,
    finding_types,
    pool_detector,
    remote_options,
)
from app.engines.cipher import KeyKeeper
from app.engines.deferred import DeferredInjectionDetector, DeferredModerator
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from app.engines.grounding.packages import read_index
from app.engines.moderation.terms import Re2TermMatcher
from app.engines.pii.processes.pool import PoolDetector
from app.engines.resilience import Observer, unobserved
from app.engines.secrets.scanner import RuleScanner
from app.identity_wiring import authenticator, issuer_service, upstream_tokens, user_connections
from app.places_wiring import (
    anchors,
    archive,
    checked_database,
    description_files,
    erasure_place,
    mark_store,
    remote_middlewares,
    replay_service,
    shard_directory,
    shared_rates,
    sinks,
    upstream_rules,
)
from app.services.access.access import AccessService
from app.services.access.identity.issuers import IssuerService
from app.services.access.identity.policy_checks import trusted_issuers
from app.services.access.policies import PolicyService, argument_check
from app.services.access.sessions import SessionService
from app.services.access.shared_rates import SharedRates
from app.services.access.tenant_keys import TenantKeys
from app.services.access.tenants import TenantService
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.audit.canonical import event_code
from app.services.audit.finding_counts import FindingCounter
from app.services.audit.retention import RetentionService
from app.services.audit.sinks.delivery import Outlets
from app.services.background import Background, housekeeping
from app.services.caching import ShortMemory
from app.services.catalog.catalogs import CatalogService
from app.services.catalog.concerns import ConcernService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.disclosure import DisclosureService
from app.services.catalog.group_trees import GroupTrees
from app.services.catalog.groups import GroupService
from app.services.catalog.listing import ListingService
from app.services.catalog.tool_lists import ToolListService
from app.services.declare.declarations import DeclarationService
from app.services.documents.collections import CollectionService
from app.services.documents.indexing import DocumentIndexing
from app.services.documents.ingestion import IngestionService
from app.services.documents.preparation import DocumentWords
from app.services.documents.retrieval import RetrievalService
from app.services.documents.vectors import DocumentVectors
from app.services.forward.client_connections import ClientConnections
from app.services.forward.forwarding import ForwardService
from app.services.forward.subscriptions import SubscriptionService, resolving
from app.services.forward.user_connections import UserConnections
from app.services.gateway.doors import GatewayService
from app.services.gateway.providers import ProviderService
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipelines import PipelineService
from app.services.servers.server_admin import ServerService
from app.services.servers.upstreams import UpstreamService
from app.services.vault.erasure import ErasureSink
from app.services.vault.erasure_jobs import ErasureJobs
from app.services.vault.keyring import KeyringService
from app.services.vault.mark import MarkKeeper
from app.services.vault.replay import ReplayService
from app.services.vault.tenant_erasure import TenantErasure
from app.services.vault.tombstones import TombstoneService
from app.services.vault.vault import VaultService
from app.settings import ConfigurationError, Settings
from app.store import migrate
from app.store.audit.writer import GroupWriter
from app.store.changes import Changes
from app.store.database import Database
from app.store.replicas import reading
from app.upstream.link_probe import NetworkProbe
from app.upstream.providers.client import ProviderClient


@dataclass(frozen=True, slots=True)
class Services:
    """Every long-lived object of one process."""

    settings: Settings
    database: Database
    changes: Changes
    keyring: KeyringService
    audit: AuditService
    access: AccessService
    issuers: IssuerService
    tenants: TenantService
    tenant_erasure: TenantErasure
    policies: PolicyService
    pipelines: PipelineService
    groups: GroupService
    concerns: ConcernService
    upstreams: UpstreamService
    servers: ServerService
    providers: ProviderService
    gateway: GatewayService
    declarations: DeclarationService
    descriptions: DescriptionService
    disclosure: DisclosureService
    vault: VaultService
    replay: ReplayService
    sessions: SessionService
    detector: PoolDetector
    registry: Registry
    invoke: InvokeService
    rates: SharedRates | None
    catalogs: CatalogService
    listing: ListingService
    tool_lists: ToolListService
    forwarding: ForwardService
    dedicated: ClientConnections
    users: UserConnections
    subscriptions: SubscriptionService
    retrieval: RetrievalService
    collections: CollectionService
    indexing: DocumentIndexing | None
    ingestion: IngestionService
    outlets: Outlets
    retention: RetentionService
    background: Background


utc_now: Final = partial(datetime.now, UTC)
"""Returns the present moment."""


async def bring_forward(settings: Settings) -> None:
    """Migrate the database where the service does that by itself, else refuse a schema of another release."""
    url = settings.database.owner_url
    if await asyncio.to_thread(migrate.is_head, url):
        return
    ours = settings.database.sqlite_file is not None or settings.environment == "development"
    if settings.database.migrate == "never" or not ours:
        raise ConfigurationError(
            ["The database's schema is not this release's: run `sluice db upgrade` first."]
        )
    await asyncio.to_thread(migrate.upgrade, url)


@asynccontextmanager
async def opened(
    settings: Settings,
    *,
    now: Callable[[], datetime] = utc_now,
    observe: Callable[[str, str, float], None] = lambda _name, _outcome, _seconds: None,
    observe_engine: Observer = unobserved,
    observe_finding: Callable[[str, int], None] = lambda _type, _number: None,
) -> AsyncIterator[Services]:
    """Build every object, from the database upwards; close them in the reverse order.

    ``observe`` is told the middleware, the outcome and the seconds of each invocation, ``observe_engine`` what became
    of each call to an engine elsewhere, ``observe_finding`` the type and number of findings of a call on record.
    """
    provider = key_ring(settings)
    await bring_forward(settings)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(checked_database(settings))
        keyring = KeyringService(database, provider)
        keys = await keyring.start()
        changes = await stack.enter_async_context(Changes(database).running())
        tenant_keys = TenantKeys.over(database, provider, keys)
        custodian = KeyKeeper(provider)
        writer = await stack.enter_async_context(GroupWriter(database, custodian, partial(event_code, keys)))
        detector = pool_detector(settings.detection)
        audit = AuditService(
            *(database, writer, keys),
            observe=FindingCounter(finding_types(detector), observe_finding),
            reads=await stack.enter_async_context(reading(database, settings.database.replica)),
        )
        outlets = Outlets.over(audit, anchors(settings), sinks(settings), archive(settings))
        retention = RetentionService(audit, now, archive=outlets.archive)
        access = AccessService(
            *(database, audit),
            await stack.enter_async_context(authenticator(settings, database, audit, changes)),
            directory=await stack.enter_async_context(shard_directory(settings)),
            tenant_keys=tenant_keys,
        )
        chosen, encoder, embedder, tool_ranker = chosen_engines(settings, observe_engine, stack)
        indexes = document_indexes(settings, database, embedder, observe_engine, stack)
        retrieval = RetrievalService(
            database, embedder, indexes.side, indexes.search, indexes.compared_most, reads=audit.reads
        )
        registry = discovered_registry(
            Engines(
                detector=detector,
                now=now,
                embedder=embedder,
                tools=tool_ranker,
                moderator=chosen.moderator(
                    remote_options(settings.engines.moderator), DeferredModerator(encoder)
                ),
                terms=Re2TermMatcher(),
                injection=chosen.injection(
                    remote_options(settings.engines.injection), DeferredInjectionDetector()
                ),
                grounding=chosen.grounding(remote_options(settings.engines.grounding), LexicalJudge()),
                answers=RuleChecker(partial(read_index, settings.grounding.packages)),
                links=NetworkProbe() if settings.grounding.check_urls else None,
                secrets=chosen.secrets(remote_options(settings.engines.secrets), RuleScanner()),
                retriever=chosen.retriever(remote_options(settings.engines.retriever), retrieval),
            ),
            settings,
        )
        policies = PolicyService(
            *(database, audit, argument_check(registry), access.authority),
            issuers=trusted_issuers(access.authenticator),
        )
        pipelines = PipelineService(database, audit, registry.middlewares, argument_check(registry), now)
        trees = GroupTrees(database)
        concerns = ConcernService(database, audit, policies, now)
        upstreams = UpstreamService(
            *(database, audit, upstream_rules(settings)), now=now, tokens=upstream_tokens(settings)
        )
        providers = ProviderService(
            database=database,
            audit=audit,
            client=await stack.enter_async_context(aclosing(ProviderClient())),
            networks=upstreams.rules.allowed_networks,
            now=now,
        )
        descriptions = DescriptionService(
            database=database,
            audit=audit,
            files=description_files(settings),
            files_of=settings.upstreams.tenant,
            publish=changes.tell,
        )
        traffic = Traffic(
            slots=settings.traffic.max_concurrency,
            rates=await stack.enter_async_context(shared_rates(settings, audit)),
        )
        disclosure = DisclosureService(
            database, audit, descriptions, reads=Traffic(rates=traffic.rates, name="reads")
        )
        marks = MarkKeeper(database, mark_store(settings), database.address)
        vault = VaultService(
            *(database, writer, custodian, audit, ErasureSink(erasure_place(settings))),
            settings.vault.default_ttl_s,
            policies=policies,
            marks=marks,
        )
        tenant_erasure = TenantErasure(TenantService(access), vault.sink, marks)
        sessions = SessionService(database, idle_s=settings.sessions.idle_s)
        users = await stack.enter_async_context(
            aclosing(user_connections(settings, upstreams, audit, sessions, access.authenticator))
        )
        _follow(
            changes,
            (
                *(access.authenticator, policies, pipelines, trees, concerns),
                *(upstreams, descriptions, retrieval, providers, tenant_keys, users.grants),
            ),
            *(access.authenticator.memory, policies.memory, pipelines.memory, trees.memory),
            *(descriptions.memory, concerns.tables, concerns.preferred, providers.memory),
            *(tenant_keys.memory, access.authenticator.keeping),
        )
        await stack.enter_async_context(descriptions.watching())
        catalogs = CatalogService(upstreams, trees, concerns, descriptions, tuple(registry.middlewares))
        _keep_current(catalogs, changes, upstreams)
        if database.embedded:
            await stack.enter_async_context(catalogs.watching())
        listing = ListingService(catalogs, policies, audit, traffic)
        invoke = InvokeService(
            registry=registry,
            policies=policies,
            vault=vault,
            audit=audit,
            masker=detector,
            traffic=traffic,
            observe=observe,
            visible_tools=listing.visible_tools,
            pipelines=pipelines,
            remotes=await stack.enter_async_context(remote_middlewares(settings).running()),
        )
        forwarding = ForwardService(
            *(listing, invoke, traffic, audit, upstreams.connection), user_links=users.links
        )
        subscriptions = SubscriptionService(database, sessions, upstreams, resolving(listing, forwarding))
        stack.push_async_callback(subscriptions.close)
        subscriptions.follow(catalogs, changes)
        ingestion = IngestionService(database, audit, embedder, now)
        servers = ServerService(database, audit, upstreams, now)
        yield Services(
            settings=settings,
            database=database,
            changes=changes,
            keyring=keyring,
            audit=audit,
            access=access,
            issuers=issuer_service(settings, access),
            tenants=tenant_erasure.tenants,
            tenant_erasure=tenant_erasure,
            policies=policies,
            pipelines=pipelines,
            descriptions=descriptions,
            disclosure=disclosure,
            groups=GroupService(database, audit, trees, registry.middlewares, now=now, catalog=catalogs.get),
            concerns=concerns,
            upstreams=upstreams,
            servers=servers,
            providers=providers,
            gateway=GatewayService.over(invoke, providers, now, subscribe=changes.subscribe),
            declarations=DeclarationService(database, audit, servers, pipelines, policies, providers, now),
            vault=vault,
            replay=replay_service(settings, vault, marks),
            sessions=sessions,
            detector=detector,
            registry=registry,
            invoke=invoke,
            rates=traffic.rates,
            catalogs=catalogs,
            listing=listing,
            tool_lists=ToolListService(tool_ranker, listing),
            forwarding=forwarding,
            dedicated=ClientConnections(upstreams),
            users=users,
            subscriptions=subscriptions,
            retrieval=retrieval,
            collections=CollectionService(database, audit, now, indexes.indexing or indexes.side),
            indexing=indexes.indexing,
            ingestion=ingestion,
            outlets=outlets,
            retention=retention,
            background=Background(
                database,
                [
                    *housekeeping(
                        purge_scopes=vault.purge_expired,
                        index_values=vault.index.fill,
                        empty_tenants=tenant_erasure.empty,
                        run_erasures=ErasureJobs.over(vault, tenant_erasure).run,
                        purge_every_s=settings.vault.purge_interval_s,
                        sessions=sessions,
                        access=access,
                        purge_disclosures=disclosure.purge_expired,
                        purge_ingestions=ingestion.purge,
                        embed_documents=DocumentVectors(database, embedder).embed_missing,
                        prepare_documents=DocumentWords(database).prepare_stored,
                        outlets=outlets,
                        purge_events=retention.run,
                        purge_tombstones=TombstoneService(database, now).purge,
                    ),
                    *indexes.jobs,
                ],
            ),
        )


class _Follower(Protocol):
    def changed(self, changed: Changed) -> None: ...


def _keep_current(catalogs: CatalogService, changes: Changes, upstreams: UpstreamService) -> None:
    """Tell the catalogs what changes, here and at the servers behind."""
    upstreams.subscribe(catalogs.mark_stale)
    changes.subscribe(catalogs.changed)


def _follow(changes: Changes, followers: Iterable[_Follower], *memories: ShortMemory[Any, Any]) -> None:
    """Tell what changes, and let the memories keep the rest for as long as all of it is told."""
    for follower in followers:
        changes.subscribe(follower.changed)
    for memory in memories:
        memory.follow(changes.heard)
