"""What a declared server lists first is approved under the settings that it was listed with, and no others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.client_features import ALL_FEATURES
from app.services.servers.first_listing import pin_askable, pin_first
from app.services.servers.server_records import pins_of
from app.store.database import Database
from app.store.servers import SERVERS, StoredServer
from tests.integration.access_setup import Replica, replica_on

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ECHO = Offer(PrimitiveKind.TOOL, "alpha", "echo", {"name": "echo", "inputSchema": {"type": "object"}})
ASKS = Offer(
    *(PrimitiveKind.TOOL, "alpha", "asks", {"name": "asks", "inputSchema": {"type": "object"}}),
    listed_to=frozenset({ALL_FEATURES}),
)


async def names(replica: Replica, tenant: str) -> set[str]:
    async with replica.database.transaction(tenant, write=False) as tx:
        return {pin.name for pin in await pins_of(tx, tenant, "alpha")}


@pytest.mark.parametrize("meanwhile", ["changed", "removed", "nothing"])
async def test_a_listing_under_settings_that_no_longer_hold_approves_nothing(
    sqlite_database_url: str, tenant: str, meanwhile: str
) -> None:
    database = Database(sqlite_database_url)
    row = StoredServer(
        *(tenant, "alpha", {}, None, NOW, "file", NOW),
        *("file", "approved", None),
    )
    try:
        async with replica_on(database) as replica:
            async with database.transaction(tenant) as tx:
                await SERVERS.add(tx, row)
            if meanwhile == "nothing":
                assert await pin_first(database, replica.audit, row, [ECHO], NOW)
                assert not await pin_first(database, replica.audit, row, [ECHO], NOW), "once"
                await pin_askable(database, replica.audit, row, [ECHO, ASKS], NOW)
                assert await names(replica, tenant) == {"echo", "asks"}
                return
            async with database.transaction(tenant) as tx:
                if meanwhile == "removed":
                    await SERVERS.remove(tx, tenant, "alpha")
                else:
                    await SERVERS.update(tx, replace(row, updated=NOW + timedelta(seconds=1)))
            assert not await pin_first(database, replica.audit, row, [ECHO], NOW)
            await pin_askable(database, replica.audit, row, [ECHO, ASKS], NOW)
            assert await names(replica, tenant) == set()
            assert await replica.events(tenant, action="servers.approve") == []
    finally:
        await database.close()
