"""Subscriptions to resources: which streams get which updates, on whichever replica stream and server are."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from app.core.access import Caller
from app.core.background import BackgroundTasks
from app.core.catalog.naming import qualified
from app.core.client_features import NO_FEATURES, ClientFeatures
from app.core.errors import NotFoundError, OverloadedError, ServiceError
from app.core.events import Changed
from app.core.upstream import UpstreamError
from app.services.access.credentials import POLICY_CHANGED
from app.services.access.sessions import SessionService, session_key
from app.services.catalog.catalogs import CatalogService
from app.services.catalog.listing import ListingService
from app.services.forward.forwarding import ForwardService
from app.services.servers.upstreams import UpstreamService
from app.store.changes import EVERYTHING, Changes, announce
from app.store.database import Database

SUBSCRIPTIONS_CHANGED: Final = "subscriptions"
"""A session's subscriptions changed; the name is the digest of its id."""

_PREFERENCE: Final = "subscriptions"
_MAX_PER_SESSION = 256

log = logging.getLogger("sluice.subscriptions")

Resolve = Callable[[Caller, str | None, str, ClientFeatures], Awaitable[tuple[str, str] | None]]
"""Return (server, its own URI) of a resource that the caller may read at the endpoint of a group, or None."""


def subscribed(preferences: Mapping[str, Any]) -> list[str]:
    """Return the URIs that a session follows."""
    return list(preferences.get(_PREFERENCE, ()))


class OwnConnections(Protocol):
    """A client's own connections to servers, which tell only this client what was updated."""

    @property
    def source(self) -> Hashable:
        """Return what identifies these connections in the updates that they report."""

    @property
    def features(self) -> ClientFeatures:
        """Return what the client can be asked for."""

    async def follow(self, server: str, uri: str) -> bool:
        """Subscribe at a server; return False where the connection that all clients share does it."""

    async def unfollow(self, server: str, uri: str) -> None:
        """End such a subscription."""


class Watch:
    """What one open stream follows: exposed URIs, each with the server and the server's own URI.

    ``group`` is the group whose endpoint the stream is at, None at the endpoint that serves everything. ``own`` are the
    client's own connections: a server with sessions tells each of them about its own session.
    """

    def __init__(self, caller: Caller, group: str | None = None, own: OwnConnections | None = None) -> None:
        self.caller = caller
        self.group = group
        self.own = own
        self.followed_alone: set[tuple[str, str]] = set()
        self.wanted: frozenset[str] = frozenset()
        self.followed: dict[str, tuple[str, str]] = {}
        self.turn = asyncio.Lock()

    def shown(self, server: str, uri: str, source: Hashable = None) -> list[str]:
        """Return the exposed URIs of a resource that its server reports as updated; empty if it is not followed.

        A server may name a part of a resource that was subscribed to. ``source`` are the own connections on which it
        reports: what is followed there is not heard a second time on the shared connection, nor the other way round.
        """
        if source is not None and (self.own is None or self.own.source != source):
            return []
        exposed_uris = []
        for exposed, (of_server, own) in self.followed.items():
            alone = (of_server, own) in self.followed_alone
            if alone is not (source is not None):
                continue
            if of_server == server and (uri == own or uri.startswith(f"{own.rstrip('/')}/")):
                exposed_uris.append(
                    exposed if uri == own else qualified(server, uri) if exposed != own else uri
                )
        return exposed_uris


@dataclass(eq=False, slots=True)
class SubscriptionService:
    """Keeps upstream subscriptions for the streams of this process; subscribe ``changed`` to announced changes."""

    database: Database
    sessions: SessionService
    upstreams: UpstreamService
    resolve: Resolve
    _watches: set[Watch] = field(default_factory=set)
    _sessions: dict[str, tuple[str, Watch]] = field(default_factory=dict)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def subscribe(
        self,
        caller: Caller,
        session_id: str,
        uri: str,
        group: str | None = None,
        features: ClientFeatures = NO_FEATURES,
    ) -> None:
        """Subscribe the session to updates of ``uri``, on whichever replica its stream is."""
        if await self.resolve(caller, group, uri, features) is None:
            raise NotFoundError("There is no such resource.", details={"pointer": "/uri"})

        def added(preferences: Mapping[str, Any]) -> Mapping[str, Any]:
            uris = [*dict.fromkeys([*subscribed(preferences), uri])]
            if len(uris) > _MAX_PER_SESSION:
                raise OverloadedError(
                    f"One session follows at most {_MAX_PER_SESSION} resources; unsubscribe from some first."
                )
            return {**preferences, _PREFERENCE: uris}

        await self._revise(caller, session_id, added)

    async def unsubscribe(self, caller: Caller, session_id: str, uri: str) -> None:
        """Unsubscribe the session; a URI that it does not follow is not an error."""

        def removed(preferences: Mapping[str, Any]) -> Mapping[str, Any]:
            return {
                **preferences,
                _PREFERENCE: [followed for followed in subscribed(preferences) if followed != uri] or None,
            }

        await self._revise(caller, session_id, removed)

    @asynccontextmanager
    async def watching(
        self,
        caller: Caller,
        uris: Iterable[str] = (),
        group: str | None = None,
        own: OwnConnections | None = None,
    ) -> AsyncIterator[Watch]:
        """Follow ``uris`` for one stream while the body runs."""
        watch = Watch(caller, group, own)
        self._watches.add(watch)
        try:
            # Not awaited, here and at the end, so that a slow server delays no stream.
            self._start(self._follow(watch, uris))
            yield watch
        finally:
            self._watches.discard(watch)
            self._start(self._follow(watch, ()))

    @asynccontextmanager
    async def watching_session(
        self,
        caller: Caller,
        session_id: str,
        group: str | None = None,
        own: OwnConnections | None = None,
    ) -> AsyncIterator[Watch]:
        """Follow what a session of the handshake revision follows, now and later, while the body runs."""
        digest = session_key(session_id)
        async with self.watching(caller, group=group, own=own) as watch:
            self._sessions[digest] = session_id, watch
            try:
                self._start(self._follow_session(session_id, watch))
                yield watch
            finally:
                if self._sessions.get(digest) == (session_id, watch):
                    del self._sessions[digest]

    def follow(self, catalogs: CatalogService, changes: Changes) -> None:
        """Hear of what changes: the catalogs, the servers, and what other processes announce."""
        catalogs.subscribe(lambda tenant, _changed: self.refresh(tenant))
        self.upstreams.subscribe(self.refresh)
        changes.subscribe(self.changed)

    def changed(self, changed: Changed) -> None:
        """Take note of an announced change."""
        if changed.kind == SUBSCRIPTIONS_CHANGED:
            if (session := self._sessions.get(changed.name or "")) is not None:
                self._start(self._follow_session(*session))
        elif changed.kind == EVERYTHING:
            for session in list(self._sessions.values()):
                self._start(self._follow_session(*session))
        elif changed.kind == POLICY_CHANGED:
            self.refresh(changed.tenant)

    def refresh(self, tenant: str | None) -> None:
        """Check again what the streams of a tenant may follow, after its catalog or its policy changed."""
        for watch in list(self._watches):
            if watch.wanted and tenant in (None, watch.caller.tenant):
                self._start(self._follow(watch, watch.wanted))

    async def close(self) -> None:
        """Cancel all work under way."""
        await self._tasks.close()

    async def _revise(
        self, caller: Caller, session_id: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        await self.sessions.revise(caller, session_id, change)
        changed = Changed(SUBSCRIPTIONS_CHANGED, caller.tenant, session_key(session_id))
        async with self.database.transaction(caller.tenant) as tx:
            await announce(tx, changed)

    async def _follow_session(self, session_id: str, watch: Watch) -> None:
        session = await self.sessions.resume(watch.caller, session_id)
        await self._follow(watch, subscribed(session.preferences))

    async def _follow(self, watch: Watch, uris: Iterable[str]) -> None:
        """Set the upstream subscriptions of a stream to those of ``uris`` that its caller may read."""
        async with watch.turn:
            watch.wanted = frozenset(uris) if watch in self._watches else frozenset()
            targets: dict[str, tuple[str, str]] = {}
            for uri in sorted(watch.wanted):
                features = watch.own.features if watch.own is not None else NO_FEATURES
                target = await self.resolve(watch.caller, watch.group, uri, features)
                if target is not None:
                    targets[uri] = target
            before, watch.followed = set(watch.followed.values()), targets
            after = set(targets.values())
            for server, own in sorted(after - before):
                if not await self._subscribed(watch, server, own):
                    after.discard((server, own))  # retried when something changes at the server
            watch.followed = {uri: target for uri, target in targets.items() if target in after}
            for server, own in before - after:
                if watch.own is not None and (server, own) in watch.followed_alone:
                    watch.followed_alone.discard((server, own))
                    await watch.own.unfollow(server, own)
                else:
                    await self._upstream(watch.caller.tenant, server, own, follow=False)

    async def _subscribed(self, watch: Watch, server: str, uri: str) -> bool:
        """Subscribe on the client's own connection where that matters, else on the shared one."""
        if watch.own is not None:
            try:
                if await watch.own.follow(server, uri):
                    watch.followed_alone.add((server, uri))
                    return True
            except (ServiceError, UpstreamError):
                log.info("a client's own subscription at server %s could not be made", server)
        return await self._upstream(watch.caller.tenant, server, uri, follow=True)

    async def _upstream(self, tenant: str, server: str, uri: str, *, follow: bool) -> bool:
        """Subscribe or unsubscribe at a server; return whether that worked."""
        aggregator = self.upstreams.aggregator(tenant)
        connection = aggregator.connections.get(server) if aggregator is not None else None
        if connection is None:
            return False
        try:
            await (connection.subscribe(uri) if follow else connection.unsubscribe(uri))
        except (ServiceError, UpstreamError):
            log.info("a subscription at server %s was refused or could not be made", server)
            return False
        return True

    def _start(self, work: Any) -> None:
        self._tasks.start(self._log_failure(work))

    async def _log_failure(self, work: Awaitable[None]) -> None:
        try:
            await work
        except ServiceError as error:
            log.info("a stream's subscriptions could not be looked up: %s", error.code)


def resolving(listing: ListingService, forwarding: ForwardService) -> Resolve:
    """Return a function that finds the resources that a caller may read, at any server."""

    async def resolve(
        caller: Caller, group: str | None, uri: str, features: ClientFeatures
    ) -> tuple[str, str] | None:
        view = await listing.view(caller, group=group, features=features)
        location = forwarding.located(view, caller, uri)
        return (location.server, location.uri) if location is not None else None

    return resolve
