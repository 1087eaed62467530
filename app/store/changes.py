"""Publish and receive changes: NOTIFY and LISTEN on PostgreSQL, inside the process on SQLite."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.background import meanwhile
from app.core.errors import StoreUnavailableError
from app.core.events import Changed
from app.store.afterwards import note_announcement
from app.store.database import Database
from app.store.dialects import (
    IDENTITY,
    TCP_USER_TIMEOUT_MS,
    UnsafeDatabaseError,
    identity_of,
    limit_silence,
    settle,
)

CHANNEL = "sluice_changed"
EVERYTHING = "all"
"""The kind of a ``Changed`` that stands for every change missed while the connection was down."""

_PROBE_S = 2.0
_PROBE_WAIT_S = 2.0
_TRUSTED_S = 5.0
"""How long a probe counts: as long as what was read counts where nothing is announced."""
_RETRY_S = 0.5

log = logging.getLogger("sluice.store")


async def announce(tx: AsyncConnection, changed: Changed) -> None:
    """Publish ``changed`` to every process once ``tx`` is committed, and to none when it is rolled back."""
    if tx.dialect.name == "postgresql":
        await tx.exec_driver_sql("SELECT pg_notify($1, $2)", (CHANNEL, json.dumps(asdict(changed))))
    else:
        note_announcement(tx, changed)


class Changes:
    """Receives the changes that all processes publish, this one included, and passes them to subscribers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._trusted_until = 0.0
        self._missed = False
        self._subscribers: list[Callable[[Changed], None]] = []
        if database.embedded:
            database.hear(self._publish)

    def subscribe(self, subscriber: Callable[[Changed], None]) -> Callable[[], None]:
        """Call ``subscriber`` for each change; the returned function ends that."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._subscribers.remove(subscriber)

        return unsubscribe

    def tell(self, changed: Changed) -> None:
        """Publish a change that concerns this process alone, such as a file of its host."""
        self._publish(changed)

    def heard(self) -> bool:
        """Return whether subscribers are told every change: what they keep need not be read again.

        False on SQLite, where commands on the host change the file without a word.
        """
        return time.monotonic() < self._trusted_until

    async def listen(self) -> AsyncGenerator[Changed, None]:
        """Yield changes from now on, until the iterator is closed."""
        arrived: asyncio.Queue[Changed] = asyncio.Queue()
        unsubscribe = self.subscribe(arrived.put_nowait)
        try:
            while True:
                yield await arrived.get()
        finally:
            unsubscribe()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Changes"]:
        """Keep PostgreSQL's listening connection open inside the block; it listens before this yields."""
        if self._database.embedded:
            yield self
            return
        ready = asyncio.Event()
        async with meanwhile(self._keep_listening(ready), name="changes"):
            try:
                async with asyncio.timeout(self._database.patience.connect_s):
                    await ready.wait()
            except TimeoutError:
                self._missed = True
            yield self

    async def _keep_listening(self, ready: asyncio.Event) -> None:
        while True:
            try:
                await self._listen_on_connection(ready)
            except (
                *(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError),
                UnsafeDatabaseError,
            ) as error:
                log.warning("listening failed: %s", type(error).__name__)
            self._missed = True
            await asyncio.sleep(_RETRY_S)

    async def _listen_on_connection(self, ready: asyncio.Event) -> None:
        connection = await self._connect()
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _connection: gone.set())
        try:
            await connection.add_listener(CHANNEL, self._on_payload)
            if self._missed:
                self._publish(Changed(EVERYTHING))
            ready.set()
            await self._probe(connection)
            while not gone.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PROBE_S):
                        await gone.wait()
                if not gone.is_set():
                    await self._probe(connection)
        finally:
            self._trusted_until = 0.0
            connection.terminate()

    async def _probe(self, connection: Any) -> None:
        """Trust the connection for a while if it lives and leads where requests go.

        After a failover it could still lead to the former server, where nobody announces anything.
        """
        started = time.monotonic()
        here = await connection.fetchrow(IDENTITY, timeout=_PROBE_WAIT_S)
        try:
            async with self._database.connection() as tx:
                there = await identity_of(tx)
        except StoreUnavailableError:
            return  # what is kept is read again soon, or refused
        if tuple(here) != there:
            raise UnsafeDatabaseError("The listening connection leads to another server.")
        self._trusted_until = started + _TRUSTED_S

    async def _connect(self) -> Any:
        arguments, options = self._database.driver_arguments()
        connection = await asyncpg.connect(
            *arguments,
            **options,
            timeout=self._database.patience.connect_s,
            server_settings={"application_name": "sluice-changes"},
        )
        limit_silence(connection)
        await settle(connection, {"tcp_user_timeout": str(TCP_USER_TIMEOUT_MS)})
        return connection

    def _on_payload(self, _connection: Any, _process: int, _channel: str, payload: str) -> None:
        try:
            read = json.loads(payload)
            changed = Changed(read["kind"], read.get("tenant"), read.get("name"))
        except (ValueError, KeyError, TypeError):
            changed = Changed(EVERYTHING)
        self._publish(changed)

    def _publish(self, changed: Changed) -> None:
        for subscriber in list(self._subscribers):
            subscriber(changed)
