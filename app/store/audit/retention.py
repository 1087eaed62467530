"""Delete what the record need not keep any more: whose turn it is, what statements say, and the deletion in batches.

On PostgreSQL one function deletes (see the migration ``audit_retention``), which checks all that it is told. SQLite has
no roles, so the same checks are made here.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import func, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import OUTCOME_OK
from app.core.transparency.runs import PositionRuns
from app.store.access.policies import find_policy
from app.store.audit.audit import RecordedEvent, recorded
from app.store.audit.log import last_entry, newest_checkpoint
from app.store.audit.tables import log_entry, log_leaf
from app.store.bulk import fetch
from app.store.tables import audit_event, policy

PURGE: Final = "audit.purge"
"""The action of the events that say which events of their tenant's log are deleted."""
PRUNED: Final = "pruned"
"""The detail of such an event that has their positions, as runs: ``0-499,501-999``."""

_PURGE: Final = text("SELECT sluice_purge_audit(:tenant, :until, :most)")
# The columns of an event stand in front of its position.
_POSITION: Final = -1
_VICTIMS: Final = """
SELECT l.position, l.event, l.at
FROM json_each(?) AS run CROSS JOIN log_leaf l
JOIN audit_event e ON e.tenant = l.tenant AND e.id = l.event AND e.at = l.at
WHERE l.tenant = ? AND l.position BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
AND e.at <= ? AND (e.scope_ref IS NULL OR e.scope_ref NOT IN (SELECT value FROM json_each(?)))
LIMIT ?"""


class Statement(NamedTuple):
    """An event that says what is deleted, and its position in the log (None: it is not sealed yet)."""

    recorded: RecordedEvent
    position: int | None

    @property
    def pruned(self) -> PositionRuns:
        """Return the positions that it names, all below its own; none where it cannot be read."""
        try:
            runs = PositionRuns.parse(str(self.recorded.event.details.get(PRUNED, "")))
        except ValueError:
            return PositionRuns()
        return runs if self.position is None else runs.below(self.position)


async def list_retentions(tx: AsyncConnection) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the tenants whose policy lets events be deleted, each with the policy's member ``retention``."""
    newest = select(policy.c.tenant, func.max(policy.c.version)).group_by(policy.c.tenant)
    query = select(policy.c.tenant, policy.c.document["retention"]).where(
        tuple_(policy.c.tenant, policy.c.version).in_(newest),
        policy.c.document[("retention", "audit_days")].as_integer().is_not(None),
    )
    return [(row[0], row[1]) for row in await tx.execute(query.order_by(policy.c.tenant))]


async def list_statements(tx: AsyncConnection, tenant: str, *, limit: int = 8) -> Sequence[Statement]:
    """Return the newest statements of a tenant, the last one that was made first."""
    query = (
        select(audit_event, log_leaf.c.position)
        .outerjoin(
            log_leaf, (log_leaf.c.tenant == audit_event.c.tenant) & (log_leaf.c.event == audit_event.c.id)
        )
        .where(
            audit_event.c.tenant == tenant,
            audit_event.c.action == PURGE,
            audit_event.c.outcome == OUTCOME_OK,
        )
        .order_by(audit_event.c.id.desc())
        .limit(limit)
    )
    return [Statement(recorded(row), row[_POSITION]) for row in await tx.execute(query)]


async def signed_size(tx: AsyncConnection, tenant: str) -> int:
    """Return how many events of a tenant's log a checkpoint covers."""
    checkpoint = await newest_checkpoint(tx)
    entry = await last_entry(tx, tenant, checkpoint.size) if checkpoint is not None else None
    return entry.size if entry is not None else 0


async def aged_size(tx: AsyncConnection, tenant: str, before: datetime, *, within: int | None = None) -> int:
    """Return how many events the newest head has that was logged by ``before``.

    With ``within``, look at no head behind the first one of that many events.
    """
    query = select(log_entry.c.size).where(log_entry.c.tenant == tenant, log_entry.c.at <= before)
    if within is not None:
        first = select(func.min(log_entry.c.size)).where(
            log_entry.c.tenant == tenant, log_entry.c.size >= within
        )
        query = query.where(log_entry.c.size <= first.scalar_subquery())
    size: int | None = (
        await tx.execute(query.order_by(log_entry.c.size.desc()).limit(1))
    ).scalar_one_or_none()
    return size or 0


async def list_positions(
    tx: AsyncConnection,
    tenant: str,
    before: datetime,
    held_scopes: Collection[str],
    *,
    behind: int,
    limit: int,
) -> list[int]:
    """Return positions from ``behind`` on of stored events that are old enough and not held, in order."""
    aged = await aged_size(tx, tenant, before)
    same = (
        (audit_event.c.tenant == log_leaf.c.tenant)
        & (audit_event.c.id == log_leaf.c.event)
        & (audit_event.c.at == log_leaf.c.at)
    )
    query = select(log_leaf.c.position).join(audit_event, same)
    query = query.where(
        log_leaf.c.tenant == tenant, log_leaf.c.position >= behind, log_leaf.c.position < aged
    )
    free = or_(audit_event.c.scope_ref.is_(None), audit_event.c.scope_ref.not_in(held_scopes))
    query = query.where(audit_event.c.at <= before, free).order_by(log_leaf.c.position).limit(limit)
    return list((await tx.execute(query)).scalars())


async def purge_events(tx: AsyncConnection, tenant: str, until: datetime, now: datetime, *, most: int) -> int:
    """Delete at most ``most`` events that a sealed statement names, from no later than ``until``; return how many.

    Events that are younger than the policy's days, not sealed, or held are left, whatever ``until`` is. PostgreSQL
    goes by its own clock, not by ``now``.
    """
    if tx.dialect.name == "postgresql":
        values = {"tenant": tenant, "until": until, "most": most}
        return int((await tx.execute(_PURGE, values)).scalar_one())
    stored = await find_policy(tx, tenant)
    rules = stored.document.get("retention") or {} if stored is not None else {}
    if rules.get("audit_days") is None or rules.get("hold"):
        return 0
    before = min(until, now - timedelta(hours=24 * max(rules["audit_days"], 1)))
    size = await signed_size(tx, tenant)
    sealed = [
        statement
        for statement in await list_statements(tx, tenant)
        if statement.position is not None and statement.position < size
    ]
    if not sealed:
        return 0
    stated = sealed[0].pruned
    runs = list(stated.below(await aged_size(tx, tenant, before, within=stated.end)))
    asked = (json.dumps(runs), tenant, before, json.dumps(rules.get("held_scopes") or []), most)
    victims = await fetch(tx, _VICTIMS, asked)
    positions = [row[0] for row in victims]
    events = [row[1] for row in victims]
    await _remove(tx, tenant, positions, events)
    return len(victims)


async def _remove(tx: AsyncConnection, tenant: str, positions: Sequence[int], events: Sequence[str]) -> None:
    gone = "(SELECT value FROM json_each(:values))"
    await tx.execute(
        text(f"DELETE FROM audit_event WHERE tenant = :tenant AND id IN {gone}"),  # noqa: S608 - our own words
        {"tenant": tenant, "values": json.dumps(events)},
    )
    await tx.execute(
        text(f"DELETE FROM log_leaf WHERE tenant = :tenant AND position IN {gone}"),  # noqa: S608 - our own words
        {"tenant": tenant, "values": json.dumps(positions)},
    )
