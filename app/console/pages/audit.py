"""The record: filter it, page through it, and see one event with the proof that nobody has changed it."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Query
from starlette.responses import Response, StreamingResponse

from app.console.charts import StackedBars
from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages
from app.core.access import Role
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.edge.limits import needs, takes
from app.services.audit.audit import AuditQuery
from app.services.audit.counts import AuditCounts
from app.services.audit.event_anchors import EventAnchors
from app.services.audit.export import described
from app.services.audit.log_access import AuditLogService

PAGE: Final = 50
DAYS: Final = 30
SPANS: Final = (7, 30, 92)
"""How many days the chart can show; the last is the most."""
VIEWS: Final = {
    "Originals given back": "middleware=pii_restoration",
    "Originals revealed": "action=vault.reveal",
    "Refused": "outcome=refused",
    "Conversations erased": "action=vault.erase_scope",
    "Policies changed": "action=policy.put",
    "Tools approved": "action=servers.approve",
    "Keys made": "action=key.create",
}
"""Questions that auditors ask first, and the filters that answer them."""
_MOST_ACTIONS: Final = 12
_MOST_FINDINGS: Final = 100
_FEW_DAYS: Final = 2
_EARLIEST: Final = date(2000, 1, 1)
_OUTCOMES: Final = ("ok", "sent", "refused", "failed")
_FILES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}

Text = Annotated[str | None, Query(max_length=500)]
Day = Annotated[str | None, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]

router = new_pages()


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a page's address, by the names of its form; what is left empty filters nothing."""

    values: Mapping[str, str]
    query: AuditQuery

    def address(self, **more: str | None) -> str:
        """Return the query of an address with these filters and ``more``."""
        return urlencode({name: value for name, value in {**self.values, **more}.items() if value})


class AuditNumbers(NamedTuple):
    """What is counted: a chart, the most frequent actions with their numbers and addresses, all actions, and spans."""

    chart: StackedBars
    frequent: Sequence[tuple[str, int, str]]
    actions: Sequence[str]
    spans: Sequence[tuple[str, str]]


async def filters_of(
    first: Annotated[Day, Query(alias="from")] = None,
    last: Annotated[Day, Query(alias="to")] = None,
    outcome: Literal["ok", "refused", "failed", "sent", ""] | None = None,
    action: Text = None,
    actor: Text = None,
    middleware: Text = None,
    scope: Text = None,
    user: Text = None,
    request_id: Text = None,
) -> Filters:
    """Return the filters of a page's address."""
    texts: dict[str, Any] = {
        "outcome": outcome,
        "action": action,
        "actor": actor,
        "middleware": middleware,
        "scope": scope,
        "user": user,
        "request_id": request_id,
    }
    values = {name: value or "" for name, value in {"from": first, "to": last, **texts}.items()}
    query = AuditQuery(
        since=_day(first),
        until=_day(last, days=1),
        **{name: value for name, value in texts.items() if value},
    )
    return Filters(values, query)


FiltersDep = Annotated[Filters, Depends(filters_of)]


@router.get("/console/audit")
async def show_audit(
    visit: VisitDep, filters: FiltersDep, cursor: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Show a page of events, newest first, and how many there were on each of the last days."""
    visit.caller.require(Role.AUDITOR)
    numbers = await _counts(visit, filters)
    page = await visit.services.audit.query(
        visit.caller, filters.query, visit.info, limit=PAGE, cursor=cursor
    )
    return visit.page(
        "audit.html",
        {
            "events": page.items,
            "since": page.since,
            "filters": filters.values,
            "is_filtered": any(filters.values.values()),
            "numbers": numbers,
            "outcomes": _OUTCOMES,
            "views": VIEWS,
            "next": f"?{filters.address(cursor=page.next)}" if page.next else None,
            "first": f"?{filters.address()}" if cursor else None,
            "exports": {form: f"/console/audit/export?{filters.address(format=form)}" for form in _FILES},
        },
    )


@router.get("/console/audit/export")
async def export_audit(
    visit: VisitDep, filters: FiltersDep, form: Annotated[Literal["jsonl", "csv"], Query(alias="format")]
) -> Response:
    """Send the events of the filters as a file; the export is on record before its first line."""
    pieces = await visit.services.audit.export(visit.caller, filters.query, form, visit.info)
    headers = {"content-disposition": f'attachment; filename="audit.{form}"'}
    return StreamingResponse(pieces, media_type=_FILES[form], headers=headers)


@router.post("/console/audit/verify")
@takes(FORM)
@needs(Role.AUDITOR, action="audit.verify")
async def verify_log(visit: VisitDep, form: FormDep) -> Response:  # noqa: ARG001 - its token was checked
    """Verify the tenant's own log, and show what does not hold; on record, with its outcome."""
    result = await AuditLogService(visit.services.audit).verify_now(visit.caller, visit.info)
    shown = result.findings[:_MOST_FINDINGS]
    return visit.page("audit_verified.html", {"result": result, "findings": shown})


@router.get("/console/audit/events/{event_id}")
async def show_event(visit: VisitDep, event_id: UUID) -> Response:
    """Show one event, and where it stands in the sealed log."""
    event = await visit.services.audit.get(visit.caller, event_id, visit.info)
    proof = await _proof(visit, event_id)
    anchors = (
        await EventAnchors.of(visit.services.lag).keeping(visit.caller, proof["position"]) if proof else ()
    )
    return visit.page(
        "audit_event.html",
        {"event": event, "members": described(event), "proof": proof, "anchors": anchors},
    )


@router.get("/console/audit/events/{event_id}/proof")
async def send_proof(visit: VisitDep, event_id: UUID) -> Response:
    """Send the file that proves one event to somebody who does not trust this service."""
    log = AuditLogService(visit.services.audit)
    lines = await log.prove(visit.caller, visit.caller.tenant, [event_id], visit.info)
    headers = {"content-disposition": f'attachment; filename="proof-{event_id}.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


async def _counts(visit: Visit, filters: Filters) -> AuditNumbers:
    """Return the events of the days that are looked at: those of the filters that are counted, and all actions."""
    first, last = _days(filters.values["from"], filters.values["to"])
    sums = await AuditCounts(visit.services.audit).counts(
        visit.caller, ["day", "action", "outcome"], visit.info, since=first, until=last + timedelta(days=1)
    )
    by_day: dict[str, Counter[str]] = {}
    actions = Counter[str]()
    for row in sums.items:
        day, action, outcome = row.values
        if filters.values["outcome"] in ("", outcome):
            actions[action] += row.events
            if filters.values["action"] in ("", action):
                by_day.setdefault(day, Counter())[outcome] += row.events
    days = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
    rows = [(day, by_day.get(day, Counter()), _address(filters, day, day)) for day in days]
    spans = [
        (f"{span} days", _address(filters, (last - timedelta(days=span - 1)).isoformat(), last.isoformat()))
        for span in SPANS
    ]
    listed = [
        (action, number, f"/console/audit?{filters.address(action=action)}")
        for action, number in actions.most_common(_MOST_ACTIONS)
    ]
    return AuditNumbers(StackedBars.of(_OUTCOMES, rows), listed, sorted(actions), spans)


def _days(first: str, last: str) -> tuple[date, date]:
    """Return the first and the last day of the chart: those that are asked for, or around a day the days near it."""
    today = datetime.now(UTC).date()
    end = max(min(date.fromisoformat(last), today), _EARLIEST) if last else today
    begin = date.fromisoformat(first) if first else end - timedelta(days=DAYS - 1)
    if end - begin < timedelta(days=_FEW_DAYS):
        end = min(today, max(end, begin) + timedelta(days=DAYS // 2))
        begin = end - timedelta(days=DAYS - 1)
    return max(begin, end - timedelta(days=SPANS[-1] - 1)), end


def _address(filters: Filters, first: str, last: str) -> str:
    return f"/console/audit?{filters.address(**{'from': first, 'to': last})}"


async def _proof(visit: Visit, event_id: UUID) -> dict[str, Any] | None:
    """Return what the file of an event's proof says, None while no checkpoint has the event."""
    log = AuditLogService(visit.services.audit)
    try:
        lines = await log.prove(visit.caller, visit.caller.tenant, [event_id], visit.info)
    except NotFoundError:
        return None
    head, *rest = [json.loads(line) async for line in lines]
    if not rest:
        return None
    return {
        "position": rest[0]["position"],
        "size": head["size"],
        "siblings": rest[0]["proof"],
        "checkpoint": head["checkpoint"],
    }


def _day(text: str | None, *, days: int = 0) -> datetime | None:
    """Return the beginning of a day in UTC, or of one after it; None without one."""
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text) + timedelta(days=days), time(), UTC)
    except (ValueError, OverflowError):
        raise InvalidArgumentsError("A day is written as 2026-11-23.") from None
