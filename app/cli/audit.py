"""``sluice audit``: read the record of a tenant on this host."""

from collections.abc import AsyncIterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import fail, note, show_lines, show_table
from app.cli.times import moment

if TYPE_CHECKING:
    from app.assembly import Services
    from app.services.audit.audit import AuditQuery

commands = typer.Typer(
    help="Read the record: who did what and how it ended; never content. Reading is itself recorded.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ExportFormat(StrEnum):
    """Forms of an export."""

    JSONL = "jsonl"
    CSV = "csv"


class Ended(StrEnum):
    """How an act ended."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    SENT = "sent"


Tenant = Annotated[str, typer.Option(help="Whose record.")]
Since = Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="Not before.")]
Until = Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="Before.")]
Actor = Annotated[str | None, typer.Option(help="Id of an API key, or cli.")]
Middleware = Annotated[str | None, typer.Option(help="Name of a middleware.")]
Action = Annotated[str | None, typer.Option(help="Such as middleware.invoke.")]
Outcome = Annotated[Ended | None, typer.Option(help="How it ended.")]
Scope = Annotated[str | None, typer.Option(help="A vault scope, by name.")]
Request = Annotated[str | None, typer.Option("--request-id", help="The id that an answer carried.")]


@commands.command(
    epilog="""Examples:

\b
  sluice audit query --since 2026-11-20 --outcome refused
  sluice audit query --request-id 0193b2f0-... --json"""
)
def query(
    tenant: Tenant = "default",
    since: Since = None,
    until: Until = None,
    actor: Actor = None,
    middleware: Middleware = None,
    action: Action = None,
    outcome: Outcome = None,
    scope: Scope = None,
    request_id: Request = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Events to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the page before ended.")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Show events, newest first."""
    from app.cli.host import caller_for, on_host
    from app.services.audit.export import described

    asked = _asked(since, until, actor, middleware, action, outcome, scope, request_id)
    page = on_host(lambda host: host.audit.query(caller_for(tenant), asked, limit=limit, cursor=cursor))
    if json:
        show_lines(described(event) for event in page.items)
    else:
        head = ("AT", "ACTOR", "ACTION", "MIDDLEWARE", "OUTCOME", "ERROR", "COUNTS", "REQUEST")
        show_table(
            head,
            [
                (
                    one.at,
                    one.actor,
                    one.action,
                    one.middleware,
                    one.outcome,
                    one.error_code,
                    " ".join(f"{name}={count}" for name, count in sorted(one.counts.items())),
                    one.request_id,
                )
                for one in page.items
            ],
        )
    if page.next:
        note(f"There are more: --cursor {page.next}")


@commands.command(
    epilog="""Examples:

\b
  sluice audit export --since 2026-11-01 --until 2026-12-01 > november.jsonl
  sluice audit export --format csv --output november.csv"""
)
def export(
    tenant: Tenant = "default",
    since: Since = None,
    until: Until = None,
    actor: Actor = None,
    middleware: Middleware = None,
    action: Action = None,
    outcome: Outcome = None,
    scope: Scope = None,
    request_id: Request = None,
    form: Annotated[ExportFormat, typer.Option("--format", help="Of the file.")] = ExportFormat.JSONL,
    output: Annotated[Path | None, typer.Option(help="File to make; else standard output.")] = None,
) -> None:
    """Write all events that match, newest first, as JSON lines or CSV."""
    import sys

    from app.cli.host import caller_for, on_host

    asked = _asked(since, until, actor, middleware, action, outcome, scope, request_id)

    async def pieces(host: "Services") -> AsyncIterator[bytes]:
        return await host.audit.export(caller_for(tenant), asked, form.value)

    async def write(host: "Services") -> None:
        found = await pieces(host)
        if output is None:
            async for piece in found:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        try:
            with output.open("xb") as file:
                async for piece in found:
                    file.write(piece)
        except FileExistsError:
            fail(f"{output} exists already: choose another name.")
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror}.")

    on_host(write)


def _asked(
    since: datetime | None,
    until: datetime | None,
    actor: str | None,
    middleware: str | None,
    action: str | None,
    outcome: Ended | None,
    scope: str | None,
    request_id: str | None,
) -> "AuditQuery":
    from app.services.audit.audit import AuditQuery

    return AuditQuery(
        since=since,
        until=until,
        actor=actor,
        middleware=middleware,
        action=action,
        outcome=outcome.value if outcome else None,
        scope=scope,
        request_id=request_id,
    )
