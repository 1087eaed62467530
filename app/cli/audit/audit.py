"""``sluice audit``: read the audit log of a tenant, on this host or at a service, and verify it."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from app.cli.audit import counts, kept, proofs, sinks
from app.cli.audit.archive import EPILOG as ARCHIVE_EPILOG
from app.cli.audit.archive import archive as archive_months
from app.cli.audit.archive import chosen
from app.cli.audit.filters import Archive, filter_query, with_filters
from app.cli.streamed_output import write
from app.cli.target import CommandTarget, placed
from app.cli.terminal import note, show_lines, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.services.audit.audit import AuditQuery

ARCHIVE_THERE: Final = "A service reads no archive: leave out --archive, or read it on the host."

commands = typer.Typer(
    help="Read the audit log: who did what, and how it ended. It never holds content. Reading it is recorded too.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ExportFormat(StrEnum):
    """Output formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


class EventPage(NamedTuple):
    """Events as objects of JSON, the cursor of the next page, and since when was searched."""

    items: list[dict[str, Any]]
    next: str | None
    since: datetime


@commands.command(
    epilog="""Examples:

\b
  sluice audit query --since 2026-11-20 --outcome refused
  sluice audit query --request-id 0193b2f0-... --json"""
)
@placed()
@with_filters
def query(
    target: CommandTarget,
    *,
    filters: "AuditQuery",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of events to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor that the previous page printed.")] = None,
    archive: Archive = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show events, newest first."""
    from app.cli.host import caller_for
    from app.services.audit.export import described

    target.refuse(ARCHIVE_THERE, archive)
    beside = chosen(archive)

    async def here(host: "Services") -> EventPage:
        page = await host.audit.query(
            caller_for(target.here), filters, limit=limit, cursor=cursor, archive=beside
        )
        return EventPage([described(event) for event in page.items], page.next, page.since)

    def there(service: "ServiceCalls") -> EventPage:
        asked = {**filter_query(filters), "limit": limit, "cursor": cursor}
        page = service.ask("GET", "/api/v1/audit/events", **asked)
        return EventPage(page["items"], page["next"], datetime.fromisoformat(page["since"]))

    page = target.do(here, there)
    if json:
        show_lines(page.items)
    else:
        head = ("AT", "ACTOR", "ACTION", "MIDDLEWARE", "OUTCOME", "ERROR", "COUNTS", "REQUEST")
        show_table(head, [_row(event) for event in page.items])
    if filters.since is None:
        note(f"Searched since {page.since:%Y-%m-%d %H:%M} UTC. Give --since to look further back.")
    if page.next:
        note(f"There are more events. Continue with --cursor {page.next}")


@commands.command(
    epilog="""Examples:

\b
  sluice audit export --since 2026-11-01 --until 2026-12-01 > november.jsonl
  sluice audit export --format csv --output november.csv"""
)
@placed()
@with_filters
def export(
    target: CommandTarget,
    *,
    filters: "AuditQuery",
    form: Annotated[
        ExportFormat, typer.Option("--format", help="Output format of the file.")
    ] = ExportFormat.JSONL,
    archive: Archive = None,
    output: Annotated[Path | None, typer.Option(help="New file to write [default: standard output].")] = None,
) -> None:
    """Export all matching events, newest first, as JSON Lines or CSV."""
    from app.cli.host import caller_for

    target.refuse(ARCHIVE_THERE, archive)
    beside = chosen(archive)

    async def here(host: "Services") -> AsyncIterator[bytes]:
        return await host.audit.export(caller_for(target.here), filters, form.value, archive=beside)

    def there(service: "ServiceCalls") -> Iterator[bytes]:
        return service.pieces("/api/v1/audit/export", format=form.value, **filter_query(filters))

    write(target, here, there, output)


def _row(event: Mapping[str, Any]) -> tuple[object, ...]:
    """Return an event as the table shows it."""
    return (
        datetime.fromisoformat(event["at"]),
        *(event["actor"], event["action"], event["middleware"], event["outcome"], event["error_code"]),
        " ".join(f"{name}={count}" for name, count in sorted((event["counts"] or {}).items())),
        event["request_id"],
    )


for _name, _command, _epilog in proofs.COMMANDS:
    commands.command(_name, epilog=_epilog)(placed()(_command))
commands.command("counts", epilog=counts.EPILOG)(placed()(counts.show_counts))
commands.command("content", epilog=kept.CONTENT_EPILOG)(placed()(kept.show_content))
commands.command("end-user", epilog=kept.END_USER_EPILOG)(placed()(kept.show_end_user))


@commands.command(
    epilog="""Examples:

\b
  sluice audit purge
  sluice audit purge --tenant acme --json""",
)
def purge(
    tenant: Annotated[str | None, typer.Option(help="Name of one tenant [default: all of them].")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per tenant.")] = False,
) -> None:
    """Delete events that the tenants' policies no longer keep, as a running service does by itself.

    What is due is stated in the record first, and deleted by a later run, once that statement is sealed.
    """
    from app.cli.host import on_host

    done = on_host(lambda host: host.retention.purge(tenant))
    if json:
        show_lines(each._asdict() for each in done)
    else:
        show_table(("TENANT", "DELETED", "STATED"), [each[:3] for each in done])
    for each in filter(attrgetter("waits"), done):
        note(f"Events of {each.tenant} wait: the archive does not have them yet (sluice audit archive).")


commands.command("archive", epilog=ARCHIVE_EPILOG)(archive_months)
commands.command("sinks", epilog=sinks.EPILOG)(sinks.sinks)


commands.command("key", epilog=proofs.KEY_EPILOG)(placed("none")(proofs.show_keys))
