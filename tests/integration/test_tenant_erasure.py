"""An erased tenant has nothing left but its name and its record; nobody else loses anything."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.events import Changed
from app.core.ids import uuid7
from app.services.access.access import HOST
from app.services.access.credentials import TENANT_CHANGED
from app.services.audit.audit import AuditQuery
from app.services.vault.erasure import VAULT_CHANGED, ErasureReceipt
from app.services.vault.mark import MarkKeeper
from app.services.vault.replay import ReplayService
from app.services.vault.tenant_erasure import SETTLED_S, TenantErasure
from app.store.changes import Changes
from app.store.database import Database
from app.store.insertion import insert_absent
from app.store.schema import metadata
from app.store.vault.mark_files import MarkFolder
from tests.factories import PATIENT, as_owner, caller_of, erasure_sink, open_vault
from tests.integration.rest_app import Rest, open_rest
from tests.integration.test_rls import PRIMITIVES, row_of

STAY = {
    "audit_event",
    "erasure",
    "erasure_job",
    "log_leaf",
    "log_head",
    "log_entry",
    "log_writer",
    "log_count",
    "log_counted",
    "directory_key",
    "directory_tenant",
}
"""Tables that may still name an erased tenant: its record, the proof of it, and receipts."""


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def system(rest: Rest, method: str, tenant: str, body: Any = None) -> Any:
    """Send a request about a tenant as an operator of the tenant system."""
    path = f"/api/v1/tenants/{tenant}"
    return await rest.call(method, path, body, roles=["operator"], tenant=SYSTEM_TENANT)


async def settle(rest: Rest, tenant: str) -> None:
    """Give a tenant something in every table, through the doors where a few requests do."""
    database = rest.vault.database
    if tenant != rest.tenant:
        made = {"name": tenant}
        await rest.call("POST", "/api/v1/tenants", made, roles=["operator"], tenant=SYSTEM_TENANT)

    async def call(method: str, path: str, body: Any, *roles: str) -> None:
        answer = await rest.call(method, f"/api/v1/{path}", body, roles=roles, tenant=tenant)
        assert answer.status_code in {200, 201}, answer.text

    for scope in ("talk-1", "talk-2"):
        body = {"context": ["Jane Smith"], "arguments": {"scope": scope}}
        await call("POST", "middleware/pii_redaction/invoke", body, "invoker")
    await call("PUT", "policies?expected_version=0", {"scope_ttl_s": 60}, "operator")
    await call("PUT", "collections/notes", {}, "operator")
    await call("POST", "collections/notes/documents", {"external_id": "a", "text": "words"}, "operator")
    async with database.transaction(tenant) as tx:
        for name in (*PRIMITIVES, "session", "gateway_binding", "gateway_signed"):
            await insert_absent(tx, metadata.tables[name], complete(name, tenant))


def complete(name: str, tenant: str) -> dict[str, Any]:
    row = row_of(metadata.tables[name], tenant)
    times = {key: datetime(2030, 1, 1, tzinfo=UTC) for key in ("last_seen",) if key in row}
    return {**row, **times, **({"data": {}} if "data" in row else {})}


async def counts(rest: Rest, tenant: str) -> dict[str, int]:
    """Return the rows that name a tenant, by table, of every table that the database itself lists."""
    database = rest.vault.database
    listed = (
        "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
        "WHERE m.type = 'table' AND c.name = 'tenant'"
        if database.embedded
        else "SELECT c.table_name FROM information_schema.columns c WHERE c.column_name = 'tenant' "
        "AND c.table_schema = 'public' AND c.table_name NOT LIKE 'audit_event_%'"
    )
    found = {}
    async with database.connection() as tx:
        for name in sorted((await tx.execute(text(listed))).scalars().all()):
            query = text(f"SELECT count(*) FROM {name} WHERE tenant = :tenant")  # noqa: S608 - the database's own names
            found[str(name)] = int((await tx.execute(query, {"tenant": tenant})).scalar_one())
    return {name: count for name, count in found.items() if count}


async def test_nothing_is_left_of_a_tenant_but_its_name_and_its_record(rest: Rest) -> None:
    neighbour = f"{rest.tenant}-x"
    for name in (rest.tenant, neighbour):
        await settle(rest, name)
    before, beside = await counts(rest, rest.tenant), await counts(rest, neighbour)
    assert len(before) > 15
    assert set(before) - STAY == set(beside) - STAY
    assert (await system(rest, "PATCH", rest.tenant, {"disabled": True})).status_code == 200
    ordered = await system(rest, "DELETE", rest.tenant)
    assert ordered.status_code == 202
    assert ordered.json()["erased"] is not None
    assert ordered.json()["emptied"] is None
    deleted = await rest.services.tenant_erasure.empty()
    left = await counts(rest, rest.tenant)
    assert set(left) <= STAY
    assert left["audit_event"] > before["audit_event"]
    # The search index goes with the chunks that it refers to.
    assert deleted == {name: before[name] for name in set(before) - STAY - {"document_search"}}
    assert {name: count for name, count in (await counts(rest, neighbour)).items() if name not in STAY} == {
        name: count for name, count in beside.items() if name not in STAY
    }
    again = {"name": rest.tenant}
    taken = await rest.call("POST", "/api/v1/tenants", again, roles=["operator"], tenant=SYSTEM_TENANT)
    assert taken.status_code == 409


async def test_only_a_disabled_tenant_is_erased_and_for_ever(rest: Rest) -> None:
    assert (await system(rest, "DELETE", "never-was")).status_code == 404
    assert (await system(rest, "DELETE", SYSTEM_TENANT)).status_code == 409
    refused = await system(rest, "DELETE", rest.tenant)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert (await system(rest, "PATCH", rest.tenant, {"disabled": True})).status_code == 200
    first = (await system(rest, "DELETE", rest.tenant)).json()
    assert (await system(rest, "DELETE", rest.tenant)).json() == first
    enabled = await system(rest, "PATCH", rest.tenant, {"disabled": False})
    assert (enabled.status_code, enabled.json()["code"]) == (409, "conflict")
    query = "/api/v1/audit/events?limit=1000&action=tenant.erase&outcome=ok"
    page = await rest.call("GET", query, roles=["auditor"], tenant=SYSTEM_TENANT)
    named = [event["details"]["tenant"] for event in page.json()["items"]]
    assert named.count(rest.tenant) == 1


async def test_every_process_hears_of_an_erasure_and_drops_what_it_keeps_of_the_tenant(rest: Rest) -> None:
    assert (await system(rest, "PATCH", rest.tenant, {"disabled": True})).status_code == 200
    changes, arrived = Changes(rest.vault.database), asyncio.Queue[Changed]()
    changes.subscribe(arrived.put_nowait)
    async with changes.running():
        assert (await system(rest, "DELETE", rest.tenant)).status_code == 202
        missing = {Changed(TENANT_CHANGED, rest.tenant), Changed(VAULT_CHANGED, rest.tenant)}
        async with asyncio.timeout(20):
            while missing:
                missing.discard(await arrived.get())


async def test_what_was_stored_by_a_request_under_way_is_deleted_too(rest: Rest) -> None:
    await settle(rest, rest.tenant)
    await system(rest, "PATCH", rest.tenant, {"disabled": True})
    await system(rest, "DELETE", rest.tenant)
    access = rest.services.access
    later = replace(access, now=lambda: datetime.now(UTC) + timedelta(seconds=SETTLED_S + 1))
    now, then = (
        TenantErasure(replace(rest.services.tenants, access=clock), erasure_sink(None))
        for clock in (access, later)
    )
    await now.empty()
    async with rest.vault.database.transaction(rest.tenant) as tx:
        await insert_absent(tx, metadata.tables["session"], complete("session", rest.tenant))
    assert await now.empty() == {"session": 1}
    assert await now.empty() == {}
    assert (await system(rest, "GET", rest.tenant)).json()["emptied"] is None
    assert await then.empty() == {}
    assert (await system(rest, "GET", rest.tenant)).json()["emptied"] is not None


async def test_the_order_is_noted_outside_the_database_before_it_holds(rest: Rest, tmp_path: Path) -> None:
    file = tmp_path / "erasures.jsonl"
    erasure = TenantErasure(rest.services.tenants, erasure_sink(file))
    (tmp_path / "file").write_text("")
    broken = TenantErasure(rest.services.tenants, erasure_sink(tmp_path / "file" / "erasures.jsonl"))
    await system(rest, "PATCH", rest.tenant, {"disabled": True})
    operator = await rest.services.authenticator.authenticate(
        await rest.key("operator", tenant=SYSTEM_TENANT), None
    )
    with pytest.raises(Exception, match="nothing was erased"):
        await broken.erase(operator, rest.tenant)
    assert (await system(rest, "GET", rest.tenant)).json()["erased"] is None
    await erasure.erase(operator, rest.tenant)
    line = json.loads(file.read_text())
    assert (line["tenant"], line["kind"], line["actor"]) == (rest.tenant, "tenant", operator.key_id)


async def test_the_database_refuses_to_empty_a_tenant_that_is_not_erased(postgres_database_url: str) -> None:
    async with (
        open_rest(postgres_database_url) as rest,
        Database(postgres_database_url, patience=PATIENT) as database,
    ):
        await settle(rest, rest.tenant)
        before = await counts(rest, rest.tenant)
        tables = ("api_key", "policy", "scope", "server", "pipeline", "provider", "document_chunk")

        async def delete() -> int:
            async with database.system_transaction() as tx:
                query = "DELETE FROM {} WHERE tenant = :tenant"
                return sum(
                    [
                        (await tx.execute(text(query.format(name)), {"tenant": rest.tenant})).rowcount
                        for name in reversed(tables)
                    ]
                )

        assert await delete() == 0
        assert await counts(rest, rest.tenant) == before
        # The control: with the moment of the erasure the same statements delete.
        await as_owner(database, "UPDATE tenant SET erased = now() WHERE id = :tenant", tenant=rest.tenant)
        assert await delete() >= len(tables)
        async with database.system_transaction() as tx:
            with pytest.raises(DBAPIError, match="permission denied"):
                await tx.execute(text("DELETE FROM audit_event"))


async def test_a_tenant_that_came_back_with_a_backup_is_erased_again(rest: Rest, tmp_path: Path) -> None:
    await settle(rest, rest.tenant)
    receipt = ErasureReceipt(uuid7(), "tenant", datetime.now(UTC), "0516edb4", None, {})
    file = tmp_path / "erasures.jsonl"
    # The database is that of the backup: the line outside is all that is left of the erasure.
    await erasure_sink(file).append(rest.tenant, receipt, [])
    database, vault = rest.vault.database, rest.vault
    marks = MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address)
    replay = ReplayService(database, vault.audit, vault.custodian, marks, [file])
    try:
        done = await replay.replay(HOST, [file])
        assert done.repeated == 1
        auditor = Caller(SYSTEM_TENANT, "00000000", frozenset({Role.AUDITOR}))
        begun = await vault.audit.query(auditor, AuditQuery(action="vault.restore_epoch", since=receipt.at))
        assert {"epoch": done.epoch} in [dict(event.details) for event in begun.items]
        seen = (await system(rest, "GET", rest.tenant)).json()
        assert datetime.fromisoformat(seen["erased"]) == receipt.at
        assert seen["disabled"] is not None
        await rest.services.tenant_erasure.empty()
        assert set(await counts(rest, rest.tenant)) <= STAY
        assert (await replay.replay(HOST, [file])).repeated == 0
    finally:
        # The replay raised the epoch of a database that other tests share: their handles count from 1.
        await as_owner(database, "DELETE FROM installation WHERE name = 'restore_epoch'")


async def test_the_erasure_of_a_scope_is_repeated_whatever_others_keep_under_its_name(
    rest: Rest, tmp_path: Path
) -> None:
    mine, theirs = caller_of(rest.tenant), caller_of(f"{rest.tenant}-x")
    database, vault, file = rest.vault.database, rest.vault, tmp_path / "erasures.jsonl"
    marks = MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address)
    replay = ReplayService(database, vault.audit, vault.custodian, marks, [file])
    async with open_vault(database, now=lambda: datetime.now(UTC) + timedelta(days=1)) as tomorrow:
        old = await vault.store(mine, "talk", "Ada")
        new = await tomorrow.store(theirs, "talk", "Bob")
        own = await tomorrow.store(mine, "later", "Eve")
        for caller, name in ((mine, "talk"), (mine, "later"), (theirs, "talk")):
            erased = ErasureReceipt(uuid7(), "scope", datetime.now(UTC), "0516edb4", name, {"PERSON": 1})
            await erasure_sink(file).append(caller.tenant, erased, [])
        try:
            assert (await replay.replay(HOST, [file])).repeated == 3
            assert await vault.texts(mine, "talk", old.handles) == [None]
            assert await tomorrow.texts(theirs, "talk", new.handles) == ["Bob"], "made after it"
            assert await tomorrow.texts(mine, "later", own.handles) == ["Eve"], "made after it"
        finally:
            await as_owner(database, "DELETE FROM installation WHERE name = 'restore_epoch'")
