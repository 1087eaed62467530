"""A policy keeps the names of end users sealed in the record: opened by two roles with a reason, and by nobody else."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import text

from app.cli import host
from app.cli.audit.kept import show_end_user
from app.cli.host import caller_for
from app.cli.target import CommandTarget
from app.core.access import SYSTEM_TENANT, Role
from app.core.archive import ArchivedRow
from app.core.errors import InternalError
from app.engines.archive.columns import batch_of
from app.engines.cipher import RecordKeys, SealBrokenError
from app.services.access.access import HOST
from app.services.audit.keeping import KeptContent
from app.services.audit.log_access import AuditLogService
from app.services.audit.sinks.ocsf import ocsf
from app.store.audit.audit import RecordedEvent, find_event
from app.store.audit.log import LogLeaf
from tests.factories import as_owner
from tests.integration.sealing import seal_all
from tests.protocol.mcp_wire import REVISIONS, client
from tests.protocol.test_tenant_keys import NEW, OLD, Doors, serving

ZOE, LEO = "zoe.kowalczyk@example.org", "Łukasz von der 北"
CONTEXT = [{"type": "text", "text": "Nothing of note."}]
WHY = "Request 2026-114"
DOORS = 1 + len(REVISIONS)
READ = 2
"""The activity of OCSF."""


async def keep(doors: Doors, tenant: str, **members: bool) -> None:
    """Give the tenant, whose policy nobody has changed yet, a policy with these members."""
    await doors.rest("PUT", "/policies?expected_version=0", members, tenant=tenant)


async def call_as(doors: Doors, tenant: str, user: str, name: str = "timestamp_injector") -> list[UUID]:
    """Invoke a middleware for an end user at each door; return the events, by REST and by each revision."""
    before = {event.id for event in await doors.events(tenant)}
    headers = {"x-sluice-user": user.encode()}
    sent = {"authorization": f"Bearer {doors.keys[tenant]}", **headers}
    async with httpx2.AsyncClient(headers=sent, timeout=60) as http:
        url = doors.url.replace("/mcp", f"/api/v1/middleware/{name}/invoke")
        assert (await http.post(url, json={"context": CONTEXT})).status_code == 200
    for revision in REVISIONS:
        async with client(doors.url, revision, doors.keys[tenant]) as wire:
            await wire.call("middleware/invoke", headers=headers, name=name, context=CONTEXT, arguments={})
    events = [event for event in await doors.events(tenant) if event.id not in before]
    assert len(events) == DOORS
    return [event.id for event in reversed(events)]


async def open_name(
    doors: Doors, tenant: str, event: UUID, *roles: Role, reason: str = WHY
) -> httpx2.Response:
    """Ask for the name under a key with these roles."""
    made = await doors.services.access.create_key(HOST, list(roles), tenant=tenant, override_unions=True)
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {made.key}"}, timeout=60) as http:
        url = doors.url.replace("/mcp", f"/api/v1/audit/events/{event}/end-user")
        return await http.post(url, json={"reason": reason})


async def stored_event(doors: Doors, tenant: str, event: UUID) -> RecordedEvent:
    async with doors.database.transaction(tenant, write=False) as tx:
        stored = await find_event(tx, tenant, event)
    assert stored is not None
    return stored


async def test_names_are_kept_where_the_policy_says_so_and_opened_by_two_roles_with_a_reason(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(own_database_url) as doors:
        for tenant in (NEW, OLD):
            unkept = await call_as(doors, tenant, ZOE)
            await keep(doors, tenant, audit_end_users=True, audit_content=True)
            kept = await call_as(doors, tenant, ZOE)
            await call_as(doors, tenant, LEO)
            [mixed, *_] = await call_as(doors, tenant, LEO, "audit_logging")
            both = (Role.AUDITOR, Role.RESTORER)
            for event in kept:
                answer = await open_name(doors, tenant, event, *both)
                assert answer.json() == {"id": str(event), "end_user": ZOE}
            assert (await open_name(doors, tenant, mixed, *both)).json()["end_user"] == LEO
            assert b"Nothing of note." in await doors.opened(tenant, mixed)
            for roles, reason, event, status in (
                ((Role.AUDITOR,), WHY, kept[0], 403),
                ((Role.RESTORER,), WHY, kept[0], 403),
                (both, " ", kept[0], 422),
                (both, WHY, unkept[0], 404),
            ):
                answer = await open_name(doors, tenant, event, *roles, reason=reason)
                assert (answer.status_code, ZOE in answer.text) == (status, False), answer.text
            assert "keeps the name of an end user" in answer.text
            looks = await doors.rest("GET", "/audit/events?action=audit.end_user", tenant=tenant)
            said = [(look["outcome"], look["details"].get("reason")) for look in looks["items"]]
            assert said == [("refused", WHY), *[("refused", None)] * 3, *[("ok", WHY)] * (DOORS + 1)]
            page = await doors.rest("GET", "/audit/events?action=middleware.invoke", tenant=tenant)
            shown = {item["id"]: (item["end_user_kept"], item["content_kept"]) for item in page["items"]}
            assert {shown[str(event)] for event in unkept} == {(False, False)}
            assert {shown[str(event)] for event in kept} == {(True, False)}
            assert shown[str(mixed)] == (True, True)
            await command_prints(doors, tenant, kept[0], monkeypatch)
            assert capsys.readouterr().out == f"{ZOE}\n"


async def command_prints(doors: Doors, tenant: str, event: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command of the host with the objects of the service that runs already."""
    loop = asyncio.get_running_loop()

    def on_host(work: Callable[[Any], Any], **_: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work(doors.services), loop).result()

    monkeypatch.setattr(host, "on_host", on_host)
    here = CommandTarget(None, None, 60, tenant)
    await asyncio.to_thread(show_end_user, here, event, WHY)


async def test_a_kept_name_leaves_by_no_other_way_and_ends_with_its_tenant(own_database_url: str) -> None:
    async with serving(own_database_url) as doors:
        kept = {}
        for tenant in (NEW, OLD):
            await keep(doors, tenant, audit_end_users=True)
            kept[tenant], *_ = await call_as(doors, tenant, ZOE)
            async with doors.database.connection() as tx:
                rows = (await tx.execute(text("SELECT * FROM audit_event"))).all()
            stored = await stored_event(doors, tenant, kept[tenant])
            assert stored.event.sealed is not None
            leaf = LogLeaf(tenant, 0, kept[tenant], stored.event.at)
            archived = batch_of([ArchivedRow(0, b"", 3, stored.event, stored.number)])
            for shown in (
                *(str(row) for row in rows),
                str(ocsf(leaf, stored)),
                str(archived.to_pylist()),
                str(await doors.rest("GET", "/audit/events", tenant=tenant)),
            ):
                assert "kowalczyk" not in shown
                assert stored.event.sealed.hex() not in shown
            await doors.erase(tenant)
        await seal_all(doors.services.audit)
        result = await AuditLogService(doors.services.audit).verify(caller_for(SYSTEM_TENANT), None)
        assert result.findings == []
        opening = KeptContent(doors.services.audit)
        with pytest.raises(InternalError, match="or its tenant is erased"):
            await opening.end_user(caller_for(NEW), kept[NEW], WHY)
        shared, opens = RecordKeys(doors.services.audit.keys._root), {}
        for tenant, event in kept.items():
            sealed = (await stored_event(doors, tenant, event)).event.sealed
            assert sealed is not None
            try:
                opens[tenant] = shared.open(tenant, b"end user", sealed[5:]) == ZOE.encode()
            except SealBrokenError:
                opens[tenant] = False
        assert opens == {NEW: False, OLD: True}, "an older tenant's is from before, as the docs say"


async def test_a_name_that_was_moved_to_another_event_or_changed_is_found(own_database_url: str) -> None:
    async with serving(own_database_url) as doors:
        await keep(doors, NEW, audit_end_users=True)
        zoe, *_ = await call_as(doors, NEW, ZOE)
        leo, *_ = await call_as(doors, NEW, LEO)
        both = (Role.AUDITOR, Role.RESTORER)
        await seal_all(doors.services.audit)
        sealed = (await stored_event(doors, NEW, leo)).event.sealed
        await as_owner(
            doors.database,
            "UPDATE audit_event SET sealed = :sealed WHERE id = :id",
            sealed=sealed,
            id=zoe.hex if doors.database.embedded else zoe,
        )
        answer = await open_name(doors, NEW, zoe, *both)
        assert (answer.status_code, LEO in answer.text) == (500, False)
        assert (await open_name(doors, NEW, leo, *both)).json()["end_user"] == LEO
        looks = await doors.rest("GET", "/audit/events?action=audit.end_user", tenant=NEW)
        assert [look["outcome"] for look in looks["items"]] == ["ok", "failed"]
        for look in looks["items"]:
            event = await stored_event(doors, NEW, UUID(look["id"]))
            shown = ocsf(LogLeaf(NEW, 0, event.event.id, event.event.at), event)
            assert shown["activity_id"] == READ
        result = await AuditLogService(doors.services.audit).verify(caller_for(SYSTEM_TENANT), NEW)
        assert [finding.kind for finding in result.findings] == ["changed"]
