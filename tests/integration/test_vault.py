"""The vault gives each value one handle, gives it back to its tenant only, and forgets when told."""

from datetime import UTC, datetime, timedelta

import pytest

from app.core.errors import InvalidArgumentsError
from app.core.handles import Handle, Original
from app.core.middleware import VaultOptions
from app.store.database import Database
from tests.factories import caller_of, open_vault


async def test_a_stored_value_comes_back_under_its_handle(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, None, "Ada", ("EMAIL", "ada@example.com"), "Ada", "Bob")
        assert [str(handle) for handle in receipt.handles] == ["[PERSON_1]", "[EMAIL_1]", "[PERSON_1]", "[PERSON_2]"]
        texts = await vault.texts(caller, receipt.scope, receipt.handles)
    assert texts == ["Ada", "ada@example.com", "Ada", "Bob"]
