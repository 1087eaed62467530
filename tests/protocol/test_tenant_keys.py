"""Digests of a tenant are made with a key of its own, and nobody can confirm a guess once the tenant is erased.

Whoever guesses has the database and the key ring, and works as docs/audit.md says, without a line of the product.
"""

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx2
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from sqlalchemy import text

from app.cli.audit.proofs import show_verification
from app.cli.host import caller_for
from app.core.access import SYSTEM_TENANT, Role
from app.core.errors import InternalError
from app.engines.cipher import RecordKeys, SealBrokenError
from app.services.access.access import HOST
from app.services.audit.audit import AuditQuery
from app.services.audit.keeping import KeptContent
from app.services.audit.log_access import AuditLogService
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import TEST_RING, as_owner
from tests.integration.sealing import seal_all
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, client

NAME, SECRET, SCOPE, USER = "secret_redaction", "kV9#tLq2Zw8!rXpe", "case-71", "grace"
CONTEXT = [{"type": "text", "text": f"The password is {SECRET} today."}]
CALLS = 1 + len(REVISIONS)
NEW, OLD = "acme", "older"


@dataclass(frozen=True)
class Doors:
    """A service with two tenants: one was made with this release, one is from before."""

    url: str
    services: Any
    database: Database
    keys: dict[str, str]

    async def rest(self, method: str, path: str, body: Any = None, *, tenant: str | None = None) -> Any:
        key = self.keys[tenant] if tenant else str(KEY)
        headers = {"authorization": f"Bearer {key}", **({"x-sluice-user": USER} if tenant else {})}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            url = self.url.replace("/mcp", f"/api/v1{path}")
            answer = await http.request(method, url, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def call_everywhere(self, tenant: str) -> None:
        """Store the secret in the scope for the user, through each door."""
        arguments = {"scope": SCOPE}
        body = {"context": CONTEXT, "arguments": arguments}
        await self.rest("POST", f"/middleware/{NAME}/invoke", body, tenant=tenant)
        for revision in REVISIONS:
            async with client(self.url, revision, self.keys[tenant]) as wire:
                headers = {"x-sluice-user": USER}
                call = await wire.call(
                    "middleware/invoke", headers=headers, name=NAME, context=CONTEXT, arguments=arguments
                )
                assert SECRET not in str(call.result)

    async def events(self, tenant: str, **asked: Any) -> list[Any]:
        query = AuditQuery(action="middleware.invoke", **asked)
        return (await self.services.audit.query(caller_for(tenant), query)).items

    async def found_by_value(self, tenant: str) -> int:
        body = {"values": [{"value": SECRET}], "reason": "Request 2026-114"}
        counts: dict[str, int] = (await self.rest("POST", "/subjects/search", body, tenant=tenant))["counts"]
        return sum(counts.values())

    async def keep(self, tenant: str) -> UUID:
        """Let an event keep content, and return its id."""
        await self.rest("PUT", "/policies?expected_version=0", {"audit_content": True}, tenant=tenant)
        await self.rest("POST", "/middleware/audit_logging/invoke", {"context": CONTEXT}, tenant=tenant)
        [kept] = [event for event in await self.events(tenant) if event.sealed is not None]
        opened: UUID = kept.id
        return opened

    async def opened(self, tenant: str, event: UUID) -> bytes:
        kept = KeptContent(self.services.audit)
        return await kept.open(caller_for(tenant), event, "Request 2026-114")

    async def erase(self, tenant: str) -> None:
        await self.rest("PATCH", f"/tenants/{tenant}", {"disabled": True})
        await self.rest("DELETE", f"/tenants/{tenant}")

    async def roots(self, tenant: str) -> list[bytes]:
        """Return every key that is kept anywhere and could be behind a digest of the tenant."""
        query = text("SELECT wrapped FROM tenant_key WHERE tenant IN (:tenant, :system)")
        async with self.database.connection() as tx:
            rows = (await tx.execute(query, {"tenant": tenant, "system": SYSTEM_TENANT})).scalars().all()
        return [aes_key_unwrap(TEST_RING.keys[1], bytes(wrapped)) for wrapped in rows]

    async def guesses(self, tenant: str, guess: str) -> set[str]:
        """Return the digests that a guess would have."""
        keys = [
            HKDF(SHA256(), 32, None, f"sluice audit digest\0{tenant}".encode()).derive(root)
            for root in await self.roots(tenant)
        ]
        return {hmac.digest(key, guess.encode(), "sha256").hex() for key in keys}

    async def blind_digests(self, tenant: str) -> set[str]:
        query = text("SELECT blind FROM entry WHERE tenant = :tenant AND blind IS NOT NULL")
        async with self.database.connection() as tx:
            rows = (await tx.execute(query, {"tenant": tenant})).scalars().all()
        return {bytes(blind).hex() for blind in rows}


@asynccontextmanager
async def serving(database_url: str) -> AsyncIterator[Doors]:
    """Serve a database that has both tenants, with a key of all roles in each."""
    async with service(database_url) as (url, app), Database(database_url, patience=PATIENT) as database:
        doors = Doors(url, app.state.services, database, {})
        await doors.rest("POST", "/tenants", {"name": NEW})
        await as_owner(
            database,
            "INSERT INTO tenant (id, created, created_by) VALUES (:id, :at, 'host')",
            id=OLD,
            at="2026-11-01 00:00:00.000000" if database.embedded else datetime.now(UTC),
        )
        for tenant in (NEW, OLD):
            made = await doors.services.access.create_key(
                HOST, list(Role), tenant=tenant, override_unions=True
            )
            doors.keys[tenant] = str(made.key)
        yield doors


async def test_an_erased_tenants_digests_confirm_no_guess_and_the_log_holds(
    own_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(own_database_url) as doors:
        for tenant in (NEW, OLD):
            await doors.call_everywhere(tenant)
            for asked in ({"scope": SCOPE}, {"user": USER}):
                assert len(await doors.events(tenant, **asked)) == CALLS, (tenant, asked)
            assert await doors.found_by_value(tenant) == 1
        seen = {tenant: await doors.events(tenant) for tenant in (NEW, OLD)}
        scopes = {tenant: {event.scope_ref for event in events} for tenant, events in seen.items()}
        users = {tenant: {event.on_behalf_of for event in events} for tenant, events in seen.items()}
        for tenant in (NEW, OLD):
            # As long as the key is there, whoever has the ring can confirm what was guessed, and nothing else.
            assert scopes[tenant] <= await doors.guesses(tenant, SCOPE)
            assert users[tenant] <= await doors.guesses(tenant, f"end user\0{USER}")
            assert not scopes[tenant] & await doors.guesses(tenant, "case-72")
        assert not await doors.blind_digests(NEW) & await doors.blind_digests(OLD)
        for tenant in (NEW, OLD):
            await doors.erase(tenant)
        assert not scopes[NEW] & await doors.guesses(NEW, SCOPE)
        assert not users[NEW] & await doors.guesses(NEW, f"end user\0{USER}")
        assert scopes[OLD] <= await doors.guesses(OLD, SCOPE), "it is from before, as the docs say"
        assert len(await doors.roots(NEW)) == 1, "the record's alone"
        for tenant, state, found in ((NEW, "destroyed", 0), (OLD, "shared", CALLS)):
            assert len(await doors.events(tenant, scope=SCOPE)) == found
            assert len(await doors.events(tenant)) == CALLS
            query = AuditQuery(action="tenant.erase", outcome="ok")
            [erased] = (await doors.services.audit.query(caller_for(tenant), query)).items
            assert erased.details["digest_key"] == state
        await doors.services.tenant_erasure.empty()
        await seal_all(doors.services.audit)
        result = await AuditLogService(doors.services.audit).verify(caller_for(SYSTEM_TENANT), None)
    assert (result.findings, result.keyless) == ([], [NEW])
    for as_json, words in (
        (False, f"The tenant {NEW} is erased: the digests"),
        (True, f'"keyless": [\n    "{NEW}"'),
    ):
        show_verification(result, as_json=as_json)
        shown = "".join(capsys.readouterr())
        assert words in shown
        assert OLD not in shown


async def test_kept_content_of_an_erased_tenant_is_opened_by_nobody(own_database_url: str) -> None:
    async with serving(own_database_url) as doors:
        kept = {tenant: await doors.keep(tenant) for tenant in (NEW, OLD)}
        for tenant, event in kept.items():
            assert SECRET.encode() in await doors.opened(tenant, event)
        shared = RecordKeys(doors.services.audit.keys._root)
        opens = {}
        for tenant, event in kept.items():
            await doors.erase(tenant)
            [stored] = [each for each in await doors.events(tenant) if each.id == event]
            try:
                opens[tenant] = SECRET.encode() in shared.open(tenant, b"content", stored.sealed)
            except SealBrokenError:
                opens[tenant] = False
        assert opens == {NEW: False, OLD: True}
        with pytest.raises(InternalError, match="or its tenant is erased"):
            await doors.opened(NEW, kept[NEW])
