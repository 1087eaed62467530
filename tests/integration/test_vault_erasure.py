"""Erasing a scope, a handle or a value destroys it, and says so inside and outside the database."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from app.core.access import Role
from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.core.errors import (
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    StoreUnavailableError,
)
from app.services.audit.audit import AuditQuery
from app.store.database import Database
from tests.factories import PATIENT, caller_of, open_vault, with_schema


async def test_an_erased_scope_is_gone_and_its_ordinals_stay_given(
    database: Database, tenant: str, tmp_path: Path
) -> None:
    caller, sink = caller_of(tenant), tmp_path / "out" / "erasures.jsonl"
    async with open_vault(database, sink=sink) as vault:
        receipt = await vault.store(caller, "talk", "Ada", "Bob", ("EMAIL", "a@b.c"))
        erased = await vault.service.erase_scope(caller, "talk")
        assert erased.counts == {"PERSON": 2, "EMAIL": 1}
        assert await vault.texts(caller, "talk", receipt.handles) == [None, None, None]
        with pytest.raises(NotFoundError):
            await vault.service.erase_scope(caller, "talk")
        again = await vault.store(caller, "talk", "Ada")
        assert again.handles == [Handle("PERSON", 3)]
        assert await vault.texts(caller, "talk", receipt.handles) == [None, None, None]
        async with database.transaction(tenant, write=False) as tx:
            query = text("SELECT kind, actor, scope FROM erasure WHERE tenant = :tenant")
            rows = (await tx.execute(query, {"tenant": tenant})).all()
        assert [tuple(row) for row in rows] == [("scope", caller.key_id, "talk")]
    line = json.loads(sink.read_text())
    assert (line["kind"], line["scope"], line["tenant"]) == ("scope", "talk", tenant)
    assert line["counts"] == {"PERSON": 2, "EMAIL": 1}
    assert sink.stat().st_mode & 0o777 == 0o600


async def test_the_data_key_of_an_erased_scope_is_destroyed(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        await vault.store(caller, "talk", "Ada")
        await vault.service.erase_scope(caller, "talk")
        async with database.transaction(tenant, write=False) as tx:
            query = text("SELECT state, dek_wrapped, kek_version FROM scope WHERE tenant = :tenant")
            row = (await tx.execute(query, {"tenant": tenant})).one()
    assert tuple(row) == ("erased", None, None)


async def test_an_erased_handle_stays_unresolved_and_its_value_gets_another(
    database: Database, tenant: str, tmp_path: Path
) -> None:
    caller, sink = caller_of(tenant), tmp_path / "erasures.jsonl"
    async with open_vault(database, sink=sink) as vault:
        await vault.store(caller, "talk", "Ada", "Bob")
        receipt = await vault.service.erase_handle(caller, "talk", Handle("PERSON", 2))
        assert receipt.counts == {"PERSON": 1}
        assert (await vault.store(caller, "talk", "Bob")).handles == [Handle("PERSON", 3)]
        texts = await vault.texts(caller, "talk", [Handle("PERSON", ordinal) for ordinal in (1, 2, 3)])
        assert texts == ["Ada", None, "Bob"]
        with pytest.raises(NotFoundError):
            await vault.service.erase_handle(caller, "talk", Handle("PERSON", 2))
    assert json.loads(sink.read_text())["erased"] == [["talk", "PERSON", 2]]
    assert "Bob" not in sink.read_text()


async def test_a_value_is_erased_from_every_scope_of_its_tenant_and_no_other(
    database: Database, tenant: str
) -> None:
    caller, stranger = caller_of(tenant), caller_of(f"{tenant}-x")
    spelled = Original("Ada", "\\u0041da", 1)
    async with open_vault(database) as vault:
        for number in range(5):
            await vault.store(caller, f"talk {number}", "Ada", ("CUSTOM", "Ada"), "Adam", ("PERSON", spelled))
        await vault.store(caller, "folded", "ADA", options=VaultOptions(canonical=True))
        kept = await vault.store(stranger, "talk 1", "Ada")
        receipt = await vault.service.erase_value(caller, "Ada")
        assert receipt.counts == {"PERSON": 11, "CUSTOM": 5}
        for number in range(5):
            handles = [Handle("PERSON", 1), Handle("CUSTOM", 1), Handle("PERSON", 2), Handle("PERSON", 3)]
            texts = await vault.texts(caller, f"talk {number}", handles)
            assert texts == [None, None, "Adam", None]
        assert await vault.texts(caller, "folded", [Handle("PERSON", 1)]) == [None]
        assert await vault.texts(stranger, "talk 1", kept.handles) == ["Ada"]
        assert (await vault.service.erase_value(caller, "Ada")).counts == {}
        with pytest.raises(InvalidArgumentsError) as empty:
            await vault.service.erase_value(caller, "")
        assert empty.value.details == {"pointer": "/value"}


async def test_erasing_needs_the_eraser_and_every_attempt_is_on_record(
    database: Database, tenant: str
) -> None:
    caller, restorer = caller_of(tenant), caller_of(tenant, Role.RESTORER, Role.INVOKER)
    async with open_vault(database) as vault:
        await vault.store(caller, "talk", "Ada", "Bob")
        for attempt in (
            vault.service.erase_scope(restorer, "talk"),
            vault.service.erase_handle(restorer, "talk", Handle("PERSON", 1)),
            vault.service.erase_value(restorer, "Ada"),
        ):
            with pytest.raises(ForbiddenError):
                await attempt
        await vault.service.erase_value(caller, "Ada")
        await vault.service.erase_handle(caller, "talk", Handle("PERSON", 2))
        await vault.service.erase_scope(caller, "talk")
        events = (await vault.audit.query(caller, AuditQuery())).items
        outcomes = [(event.action, event.outcome) for event in reversed(events) if "erase" in event.action]
        assert outcomes == [
            *((f"vault.erase_{kind}", "refused") for kind in ("scope", "handle", "value")),
            *((f"vault.erase_{kind}", "ok") for kind in ("value", "handle", "scope")),
        ]


async def test_an_erasure_that_cannot_be_noted_outside_does_not_happen(
    database: Database, tenant: str, tmp_path: Path
) -> None:
    caller = caller_of(tenant)
    (tmp_path / "file").write_text("")
    async with open_vault(database, sink=tmp_path / "file" / "erasures.jsonl") as vault:
        receipt = await vault.store(caller, "talk", "Ada")
        with pytest.raises(StoreUnavailableError, match="nothing was erased"):
            await vault.service.erase_scope(caller, "talk")
        assert await vault.texts(caller, "talk", receipt.handles) == ["Ada"]


async def test_erased_and_sealed_values_are_in_no_file_of_the_database(tmp_path: Path, tenant: str) -> None:
    url, caller = with_schema(f"sqlite:///{tmp_path}/var/sluice.db"), caller_of(tenant)
    database = Database(url, patience=PATIENT)
    canaries = [f"canary-{number}-\u00e9" for number in range(50)]
    async with open_vault(database) as vault:
        await vault.store(caller, "talk", *canaries)
        await vault.service.erase_value(caller, canaries[0])
        files = [path for path in (tmp_path / "var").iterdir() if path.name.startswith("sluice.db")]
        assert {path.name for path in files} >= {"sluice.db", "sluice.db-wal"}
        content = b"".join(path.read_bytes() for path in files)
        assert content.count(b"talk") > 0
        assert not any(canary.encode() in content for canary in canaries)
        assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    await database.close()
