"""``sluice audit counts``: how many events there are, without reading them."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from app.cli.target import CommandTarget
from app.cli.terminal import note, show_json, show_table
from app.cli.times import moment

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls

EPILOG: Final = """Examples:

\b
  sluice audit counts
  sluice audit counts --by action --by outcome --since 2026-11-01 --json"""


class CountedBy(StrEnum):
    """By what events are counted."""

    DAY = "day"
    ACTION = "action"
    OUTCOME = "outcome"
    ACTOR = "actor"


By = Annotated[
    list[CountedBy] | None,
    typer.Option(help="By what; may be repeated [default: day]."),
]


class EventCounts(NamedTuple):
    """Sums by what was asked for: they are of the first ``counted`` of the ``sealed`` events."""

    items: list[dict[str, Any]]
    counted: int
    sealed: int


def show_counts(
    target: CommandTarget,
    by: By = None,
    since: Annotated[
        datetime | None, typer.Option(parser=moment, metavar="DAY", help="First day (UTC).")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(parser=moment, metavar="DAY", help="The day behind the last (UTC).")
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count the events of the audit log by day, action, outcome or actor. Counting is on record, too."""
    from app.cli.host import caller_for
    from app.services.audit.counts import AuditCounts, Dimension

    dimensions: list[Dimension] = [each.value for each in dict.fromkeys(by or [CountedBy.DAY])]
    first, behind = since.date() if since else None, until.date() if until else None

    async def here(host: "Services") -> EventCounts:
        page = await AuditCounts(host.audit).counts(
            caller_for(target.here), dimensions, since=first, until=behind
        )
        items = [
            {**dict(zip(dimensions, row.values, strict=True)), "events": row.events} for row in page.items
        ]
        return EventCounts(items, page.counted, page.sealed)

    def there(service: "ServiceCalls") -> EventCounts:
        page = service.ask("GET", "/api/v1/audit/counts", by=dimensions, since=first, until=behind)
        return EventCounts(page["items"], page["counted"], page["sealed"])

    counts = target.do(here, there)
    if json:
        show_json(counts._asdict())
        return
    names = [*dimensions, "events"]
    show_table([name.upper() for name in names], [[item[name] for name in names] for item in counts.items])
    if counts.counted < counts.sealed:
        note(f"{counts.sealed - counts.counted} events are not counted yet; a running service does it soon.")
