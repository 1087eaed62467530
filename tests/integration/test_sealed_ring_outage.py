"""What callers notice while the custodian of the key ring does not answer: scopes that exist go on, none begins."""

from pathlib import Path

import pytest

from app.core.content.handles import Handle
from app.core.errors import StoreUnavailableError
from app.engines.custody.sealed_ring import SealedRingFile, seal_ring
from app.services.vault.keyring import KeyringService
from app.store.database import Database
from tests.factories import PATIENT, caller_of, open_vault, random_ring
from tests.unit.engines.test_sealed_ring import Safe


async def test_scopes_go_on_and_none_begins(own_database_url: str, tmp_path: Path) -> None:
    path, safe, caller, moment = tmp_path / "keyring.json", Safe(), caller_of("acme"), [0.0]
    seal_ring(path, random_ring(), safe)
    provider = SealedRingFile(path, safe, 60, clock=lambda: moment[0])
    async with (
        Database(own_database_url, patience=PATIENT) as database,
        open_vault(database, ring=provider) as vault,  # type: ignore[arg-type]
    ):
        keyring = KeyringService(database, provider)
        await vault.store(caller, "talk", "Ada")
        assert not keyring.late()
        safe.shut = True
        provider.renew()
        moment[0] = 30.0
        with pytest.raises(StoreUnavailableError, match="custodian of the key ring does not answer"):
            await vault.store(caller, "begun now", "Bob")
        assert (await vault.store(caller, "talk", "Bob")).handles == [Handle("PERSON", 2)]
        vault.service.key_keeper.forget("acme", "talk")
        assert (await vault.store(caller, "talk", "Eve")).handles == [Handle("PERSON", 3)]
        await keyring.check()
        assert [line for line in keyring.late() if "30 s" in line]
        moment[0] = 61.0
        vault.service.key_keeper.forget("acme", "talk")
        with pytest.raises(StoreUnavailableError, match="custodian of the key ring does not answer"):
            await vault.store(caller, "talk", "Zoe")
        with pytest.raises(Exception, match="not opened any more"):
            await keyring.check()
        safe.shut = False
        provider.renew()
        assert (await vault.store(caller, "begun now", "Bob")).handles == [Handle("PERSON", 1)]
        assert (keyring.late(), keyring.silent_s) == ((), 0)
