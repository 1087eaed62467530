"""The first page: what passes through, what was masked or refused, and what waits for a decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated, Final, NamedTuple

from fastapi import Query
from starlette.responses import Response

from app.console.charts import StackedBars
from app.console.clients import setups
from app.console.page_streams import following
from app.console.pages.servers import described
from app.console.rendering import written
from app.console.services import ConsoleServices
from app.console.visits import Visit, VisitDep, new_pages
from app.core.access import Role
from app.core.audit import AuditEvent
from app.services.audit.activity import ActivityFeed
from app.services.audit.audit import AuditQuery
from app.services.audit.counts import AuditCounts, CountPage, Dimension

DAYS: Final = 14
_RECENT: Final = 500
_MOST_LISTED: Final = 100
_CALLS: Final = frozenset(
    {
        "middleware.invoke",
        "middleware.restore_stream",
        "gateway.request",
        "tool.call",
        "pii.explain",
    }
)
"""Actions that bring content; the rest of the record is about administration."""
_OUTCOMES: Final = ("ok", "refused", "failed")
_BY: Final[Sequence[Dimension]] = ("day", "action", "outcome")
_HALF, _MOST = 0.5, 0.95

router = new_pages()


class Decision(NamedTuple):
    """Something that waits for this person: what, why, and where it is decided."""

    title: str
    text: str
    address: str


class FindingType(NamedTuple):
    """How often a type was found, and its share of the most frequent one, in per cent."""

    name: str
    number: int
    share: float


@dataclass(frozen=True, slots=True)
class Activity:
    """What the record says of the last days; ``recent`` are the newest calls that findings and times are taken of."""

    chart: StackedBars
    today: Mapping[str, int]
    total: Mapping[str, int]
    findings: Sequence[FindingType]
    masked: int
    degraded: int
    median_ms: float | None
    slow_ms: float | None
    recent: int
    counted: int
    sealed: int


@dataclass(frozen=True, slots=True)
class ActivityReader:
    """Reads the activity of a tenant for all who watch its overview."""

    services: ConsoleServices
    tenant: str

    async def mark(self) -> str:
        """Return how many events are counted."""
        return str(await ActivityFeed(self.services.audit).counted(self.tenant))

    async def content(self) -> str:
        """Return the part of the page that changes."""
        now = datetime.now(UTC)
        recent = await ActivityFeed(self.services.audit).read(
            self.tenant, _BY, first=_first_day(now), since=now - timedelta(days=1), most=_RECENT
        )
        activity = activity_of(recent.sums, recent.events, now)
        return written("activity.html", {"activity": activity, "lag": self.services.lag, "days": DAYS})


@router.get("/console/overview/live")
async def follow_overview(
    visit: VisitDep, mark: Annotated[str, Query(pattern=r"^\d{1,19}$")] = "0"
) -> Response:
    """Send what is new on the overview, while the session lives; that somebody watches is on record."""
    await ActivityFeed(visit.services.audit).admit(visit.caller, visit.info)
    reader = partial(ActivityReader, visit.services, visit.caller.tenant)
    return following(visit, "overview", mark, (Role.AUDITOR,), reader)


@router.get("/console/")
async def show_overview(visit: VisitDep) -> Response:
    """Show the overview, each part of it to those who may read what it is made of."""
    version, policy = await visit.services.policies.get(visit.caller.tenant)
    allowed = policy.allowed_middlewares
    servers = await _servers(visit) if visit.may(Role.OPERATOR) else None
    activity = await _activity(visit) if visit.may(Role.AUDITOR) else None
    return visit.page(
        "overview.html",
        {
            "activity": activity,
            "servers": servers,
            "decisions": [*_of_servers(servers or ()), *await _of_keys(visit)],
            "is_masking": allowed is None or "pii_redaction" in allowed,
            "policy_version": version,
            "setups": setups(visit.base),
            "lag": visit.services.lag,
            "days": DAYS,
        },
    )


async def _activity(visit: Visit) -> Activity:
    services, now = visit.services, datetime.now(UTC)
    sums = await AuditCounts(services.audit).counts(visit.caller, _BY, visit.info, since=_first_day(now))
    page = await services.audit.query(
        visit.caller, AuditQuery(since=now - timedelta(days=1)), visit.info, limit=_RECENT
    )
    return activity_of(sums, page.items, now)


def activity_of(sums: CountPage, events: Sequence[AuditEvent], now: datetime) -> Activity:
    """Return the activity that sums of days and the newest events show."""
    by_day: dict[str, Counter[str]] = {}
    for row in sums.items:
        day, action, outcome = row.values
        if action in _CALLS and outcome in _OUTCOMES:
            by_day.setdefault(day, Counter())[outcome] += row.events
    days = [_first_day(now) + timedelta(days=number) for number in range(DAYS)]
    rows = [(day.isoformat(), by_day.get(day.isoformat(), Counter()), _day_address(day)) for day in days]
    calls = [event for event in events if event.action in _CALLS]
    times = sorted(event.duration_us / 1000 for event in calls if event.outcome == "ok")
    types = Counter[str]()
    for event in calls:
        # Counts of other kinds, such as of restored handles, are written small.
        types.update({name: number for name, number in event.counts.items() if name.isupper()})
    return Activity(
        chart=StackedBars.of(_OUTCOMES, rows),
        today=by_day.get(now.date().isoformat(), Counter()),
        total=sum((numbers for _, numbers, _ in rows), Counter[str]()),
        findings=_types(types),
        masked=types.total(),
        degraded=sum(_is_degraded(event) for event in calls),
        median_ms=_quantile(times, _HALF),
        slow_ms=_quantile(times, _MOST),
        recent=len(calls),
        counted=sums.counted,
        sealed=sums.sealed,
    )


async def _servers(visit: Visit) -> Sequence[Mapping[str, object]]:
    listed = await visit.services.servers.list(visit.caller, visit.info, limit=_MOST_LISTED)
    return [described(visit, record) for record in listed]


def _of_servers(servers: Sequence[Mapping[str, object]]) -> list[Decision]:
    decisions = []
    for server in servers:
        address = f"/console/servers/{server['name']}"
        if server["state"] == "pending":
            decisions.append(
                Decision(
                    f"Server {server['name']}",
                    "It is new: nothing of it is served until it is approved.",
                    address,
                )
            )
        elif server["waiting"]:
            text = f"{server['waiting']} of its definitions are new or changed, and wait for an approval."
            decisions.append(Decision(f"Server {server['name']}", text, address))
    return decisions


async def _of_keys(visit: Visit) -> list[Decision]:
    if not visit.may(Role.KEY_CUSTODIAN):
        return []
    keys = await visit.services.access.list_keys(visit.caller, None, visit.info, limit=_MOST_LISTED)
    return [
        Decision(
            f"Key {info.name or info.id}",
            f"It waits for the role {', '.join(sorted(info.pending_roles))}: another key custodian approves it.",
            "/console/access",
        )
        for info in keys
        if info.pending_roles and info.revoked is None
    ]


def _types(numbers: Counter[str]) -> list[FindingType]:
    most = max(numbers.values(), default=1)
    return [
        FindingType(name.lower(), number, round(100 * number / most, 1))
        for name, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))[:10]
    ]


def _is_degraded(event: AuditEvent) -> bool:
    return bool(event.details.get("degraded"))


def _quantile(times: Sequence[float], share: float) -> float | None:
    return times[min(len(times) - 1, int(share * len(times)))] if times else None


def _first_day(now: datetime) -> date:
    return now.date() - timedelta(days=DAYS - 1)


def _day_address(day: date) -> str:
    return f"/console/audit?from={day}&to={day}"
