"""Probes use what is open: they are not authenticated and come from everywhere."""

from collections.abc import Mapping

from sqlalchemy import event

from app.edge.health import Check, Readiness, in_turn
from app.edge.lifespan_state import Drain
from app.services.vault.keyring import KeyringService
from app.store.database import Database
from tests.factories import PATIENT, TEST_RING
from tests.unit.edge.test_health import get


async def test_a_probe_uses_one_connection(database_url: str) -> None:
    async with Database(database_url, patience=PATIENT) as database:
        keyring = KeyringService(database, TEST_RING)
        await keyring.start()

        async def opened_by(turned: bool) -> int:
            await database._engine.dispose()
            opened: list[object] = []
            engine = database._engine.sync_engine
            event.listen(engine, "connect", lambda connection, _: opened.append(connection))
            checks: Mapping[str, Check] = {
                "database": database.ping,
                "keys": keyring.check,
                "schema": database.revision,
            }
            readiness = Readiness(Drain(), in_turn(checks) if turned else dict(checks), timeout_s=30)
            for _ in range(2):
                assert (await get("/readyz", readiness)).status_code == 200
            return len(opened)

        assert await opened_by(True) == 1
        assert await opened_by(False) > 1, "negative control: side by side they take several"
