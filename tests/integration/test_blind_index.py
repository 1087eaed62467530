"""A value is found in every scope of its tenant by one look-up, also what an older release has stored."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import select, text

from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.engines.cipher import KeyKeeper
from app.services.vault.blind_index import blind_digest
from app.store.database import Database
from app.store.tables import entry
from tests.factories import Vault, as_owner, caller_of, open_vault
from tests.integration.rest_app import open_rest

CANONICAL = VaultOptions(canonical=True)


@pytest.fixture
async def vault(database: Database) -> AsyncIterator[Vault]:
    async with open_vault(database) as opened:
        await opened.service.index.fill()  # what other tests of this database left
        yield opened


async def fill(vault: Vault, tenant: str, scopes: int) -> None:
    """Store Ada in each scope: as she is, spelled inside JSON, or canonical, by turns."""
    caller = caller_of(tenant)
    for number in range(scopes):
        ada: str | tuple[str, Original] = "Ada"
        if number % 3 == 1:
            ada = ("CUSTOM", Original("Ada", "\\u0041da", 1))
        options = CANONICAL if number % 3 == 2 else None
        name = "ADA " if number % 3 == 2 else ada
        await vault.store(caller, f"talk {number}", "Adam", name, options=options)


async def forget(vault: Vault, tenant: str) -> None:
    """Leave the entries of a tenant as an older release stored them."""
    await as_owner(
        vault.database,
        "UPDATE entry SET blind = NULL, blind_normal = NULL WHERE tenant = :tenant",
        tenant=tenant,
    )


async def without_digest(vault: Vault, tenant: str) -> int:
    async with vault.database.transaction(tenant, write=False) as tx:
        query = text("SELECT count(*) FROM entry WHERE tenant = :tenant AND blind IS NULL")
        return int((await tx.execute(query, {"tenant": tenant})).scalar_one())


async def entries(vault: Vault, tenant: str) -> list[Any]:
    query = select(entry).where(entry.c.tenant == tenant).order_by(*entry.primary_key)
    async with vault.database.transaction(tenant, write=False) as tx:
        return list((await tx.execute(query)).all())


def locked_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no data key be opened: who finds a value then has found it without."""

    def refuse(*_given: Any) -> None:
        raise AssertionError("A data key was opened.")

    monkeypatch.setattr(KeyKeeper, "open", refuse)


async def test_a_value_is_erased_everywhere_without_opening_a_scope(
    vault: Vault, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(vault, tenant, 6)
    with monkeypatch.context() as patched:
        locked_keys(patched)
        receipt = await vault.service.erase_value(caller_of(tenant), "Ada")
    assert receipt.counts == {"PERSON": 4, "CUSTOM": 2}
    for number in range(6):
        label = "CUSTOM" if number % 3 == 1 else "PERSON"
        gone = Handle(label, 1 if number % 3 == 1 else 2)
        texts = await vault.texts(caller_of(tenant), f"talk {number}", [Handle("PERSON", 1), gone])
        assert texts == ["Adam", None]


async def test_what_an_older_release_stored_is_erased_before_the_index_is_filled(
    vault: Vault, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(vault, tenant, 3)
    await forget(vault, tenant)
    await vault.store(caller_of(tenant), "talk 0", ("EMAIL", "Ada"))
    await vault.store(caller_of(tenant), "new talk", "Ada")
    with monkeypatch.context() as patched:
        locked_keys(patched)
        with pytest.raises(AssertionError, match="was opened"):
            await vault.service.erase_value(caller_of(tenant), "Ada")
    receipt = await vault.service.erase_value(caller_of(tenant), "Ada")
    assert receipt.counts == {"PERSON": 3, "CUSTOM": 1, "EMAIL": 1}


async def test_the_index_is_filled_with_progress_and_once(
    vault: Vault, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(vault, tenant, 6)
    stored = await entries(vault, tenant)
    await forget(vault, tenant)
    assert await without_digest(vault, tenant) == 12
    monkeypatch.setattr("app.services.vault.blind_index._FILLED", 5)
    progress: list[tuple[int, int]] = []
    assert await vault.service.index.fill(lambda *counts: progress.append(counts)) == 12
    assert progress == [(5, 12), (10, 12), (12, 12)]
    assert await entries(vault, tenant) == stored
    assert await vault.service.index.fill() == 0


async def test_an_entry_that_cannot_be_opened_stops_no_other(vault: Vault, tenant: str) -> None:
    await fill(vault, tenant, 3)
    await forget(vault, tenant)
    await as_owner(
        vault.database,
        "UPDATE entry SET ciphertext = lookup WHERE tenant = :tenant AND scope = 'talk 0' AND ordinal = 1",
        tenant=tenant,
    )
    assert await vault.service.index.fill() == 5
    assert await without_digest(vault, tenant) == 1
    assert (await vault.service.erase_value(caller_of(tenant), "Ada")).counts == {"PERSON": 2, "CUSTOM": 1}
    await as_owner(vault.database, "DELETE FROM entry WHERE tenant = :tenant", tenant=tenant)


async def test_digests_tell_nothing_across_tenants_or_without_the_key(vault: Vault, tenant: str) -> None:
    for name in (tenant, f"{tenant}-x"):
        await vault.store(caller_of(name), "talk", "Ada")
        await vault.store(caller_of(name), "other talk", "Ada")
    digests: dict[str, set[bytes]] = {}
    for name in (tenant, f"{tenant}-x"):
        async with vault.database.transaction(name, write=False) as tx:
            rows = await tx.execute(select(entry.c.blind).where(entry.c.tenant == name))
            digests[name] = set(rows.scalars())
    first, second = digests.values()
    assert len(first) == len(second) == 1  # the same in each scope: so it is found
    assert first != second
    plain = {hashlib.sha256(text.encode()).digest()[:16] for text in ("Ada", "ada", "xAda", "cada")}
    assert not plain & (first | second)
    keys = vault.audit.keys
    exact = blind_digest(keys, tenant, "ada", canonical=False)
    assert exact != blind_digest(keys, tenant, "ada", canonical=True)
    assert blind_digest(keys, tenant, "Ada", canonical=False) in first


async def test_an_erased_value_leaves_no_digest(vault: Vault, tenant: str) -> None:
    await vault.store(caller_of(tenant), "talk", "Ada", "Bob")
    await vault.service.erase_value(caller_of(tenant), "Ada")
    await vault.store(caller_of(tenant), "whole talk", "Ada")
    await vault.service.erase_scope(caller_of(tenant), "whole talk")
    async with vault.database.transaction(tenant, write=False) as tx:
        rows = await tx.execute(select(entry.c.blind).where(entry.c.tenant == tenant))
        (left,) = rows.scalars().all()
    assert left == blind_digest(vault.audit.keys, tenant, "Bob", canonical=False)


async def test_a_value_is_found_page_by_page_also_while_the_index_is_filled(database_url: str) -> None:
    async with open_rest(database_url) as rest:
        for number in range(5):
            await rest.invoke(
                "pii_redaction",
                ["Write to jane@example.com and joe@example.com"],
                {"scope": f"talk-{number}"},
            )
        async with rest.vault.database.transaction(rest.tenant, write=False) as tx:
            query = text("SELECT count(*) FROM entry WHERE tenant = :tenant AND blind IS NULL")
            assert (await tx.execute(query, {"tenant": rest.tenant})).scalar_one() == 0
        await as_owner(
            rest.vault.database,
            "UPDATE entry SET blind = NULL, blind_normal = NULL "
            "WHERE tenant = :tenant AND scope IN ('talk-1', 'talk-3')",
            tenant=rest.tenant,
        )
        path, body = "/api/v1/vault/occurrences", {"value": "joe@example.com"}
        items: list[dict[str, str]] = []
        query_: dict[str, Any] = {"limit": 2}
        while True:
            answer = await rest.call("POST", path, body, roles=["eraser"], params=query_)
            assert answer.status_code == 200
            items += answer.json()["items"]
            if answer.json()["next"] is None:
                break
            query_["cursor"] = answer.json()["next"]
        assert items == [{"scope": f"talk-{number}", "handle": "EMAIL_2"} for number in range(5)]
        stranger = await rest.call("POST", path, {"value": "jo@example.com"}, roles=["eraser"])
        assert stranger.json() == {"items": [], "next": None}
        events = await rest.call("GET", "/api/v1/audit/events?action=vault.find_value", roles=["auditor"])
        assert "joe@" not in events.text
        assert [event["details"]["returned"] for event in events.json()["items"]] == [0, 1, 2, 2]
        broken = await rest.call("POST", path, body, roles=["eraser"], params={"cursor": "x"})
        assert broken.json()["code"] == "invalid_arguments"
