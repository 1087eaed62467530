"""The record verifies after all that happens to one in years: new keys, restarts, other replicas and purges."""

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.services.access.access import HOST
from app.services.audit.counts import AuditCounts
from app.services.audit.log_access import AuditLogService
from app.services.audit.log_keys import LogKeyService
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from tests.conftest import PATIENT
from tests.integration.access_setup import Clock, replica_on
from tests.integration.sealing import seal_all
from tests.integration.test_audit_retention import DAY_S, KEEP, Kept

AUDITOR_OF_ALL = Caller(SYSTEM_TENANT, "0000000f", frozenset({Role.AUDITOR}))


async def test_all_holds_after_a_purge_new_keys_and_a_restart_on_two_replicas(own_database_url: str) -> None:
    """Two processes write and seal, one of them starts in between; what was kept of the past still verifies."""
    clock = Clock()
    clock.advance(-100 * DAY_S)
    async with (
        Database(own_database_url, patience=PATIENT) as database,
        replica_on(database, clock) as replica,
    ):
        kept = Kept(replica)
        await replica.tenants.create(HOST, kept.tenant)
        await check(kept, own_database_url)


async def check(kept: Kept, url: str) -> None:
    audit, events, anchors = kept.replica.audit, 0, list[str]()
    await kept.keep(**KEEP)
    for made in (7, 5):
        async with (
            Database(
                kept.replica.database.url.render_as_string(hide_password=False), patience=PATIENT
            ) as own,
            replica_on(own, kept.replica.clock) as other,
        ):
            await other.audit.record(*(kept.event(number) for number in range(made)))
            await kept.record(made, seal=False)
            await seal_all(other.audit)
            await AuditCounts(other.audit).count()
        events += 2 * made
        anchors.append((await AuditLogService(audit).checkpoint(AUDITOR_OF_ALL)).note)
        await LogKeyService.over(audit).renew()
        await kept.record(1, days=31)
    gone = await kept.purged()
    assert gone > events, "with what the tenant's own administration left"
    await AuditCounts(audit).count()
    result = await LogVerifier(audit).verify(anchors=anchors)
    assert [made for made in result.findings if made.tenant in {None, kept.tenant}] == []
    assert ((await kept.verify()).pruned, result.anchors, len(result.keys) > 2) == (gone, 2, True)
    await kept.record(2)
    await kept.delete_by_hand("action = 'middleware.invoke'")
    assert {made.kind for made in (await kept.verify()).findings} == {"missing"}
