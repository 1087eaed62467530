"""``sluice audit``: read the audit log of a tenant on this host."""

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
    help="Read the audit log: who did what, and how it ended. It never holds content. Reading it is recorded too.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ExportFormat(StrEnum):
    """Output formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


class Ended(StrEnum):
    """Outcomes of an action."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    SENT = "sent"


Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Since = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events at or after this time.")
]
Until = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events before this time.")
]
Actor = Annotated[str | None, typer.Option(help="Id of the API key that acted, or cli.")]
Middleware = Annotated[str | None, typer.Option(help="Name of a middleware.")]
Action = Annotated[str | None, typer.Option(help="Name of an action, such as middleware.invoke.")]
Outcome = Annotated[Ended | None, typer.Option(help="Outcome of the action.")]
Scope = Annotated[str | None, typer.Option(help="Name of a vault scope.")]
Request = Annotated[str | None, typer.Option("--request-id", help="Request id that a response carried.")]
ClientRequest = Annotated[
    str | None, typer.Option("--client-request-id", help="Request id that the client sent.")
]


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
    client_request_id: ClientRequest = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of events to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor that the previous page printed.")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show events, newest first."""
    from app.cli.host import caller_for, on_host
    from app.services.audit.export import described

    filters = _filters(since, until, actor, middleware, action, outcome, scope, request_id, client_request_id)
    page = on_host(lambda host: host.audit.query(caller_for(tenant), filters, limit=limit, cursor=cursor))
    if json:
        show_lines(described(event) for event in page.items)
    else:
        head = ("AT", "ACTOR", "ACTION", "MIDDLEWARE", "OUTCOME", "ERROR", "COUNTS", "REQUEST")
        show_table(
            head,
            [
                (
                    event.at,
                    event.actor,
                    event.action,
                    event.middleware,
                    event.outcome,
                    event.error_code,
                    " ".join(f"{name}={count}" for name, count in sorted(event.counts.items())),
                    event.request_id,
                )
                for event in page.items
            ],
        )
    if page.next:
        note(f"There are more events. Continue with --cursor {page.next}")


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
    client_request_id: ClientRequest = None,
    form: Annotated[
        ExportFormat, typer.Option("--format", help="Output format of the file.")
    ] = ExportFormat.JSONL,
    output: Annotated[Path | None, typer.Option(help="New file to write [default: standard output].")] = None,
) -> None:
    """Export all matching events, newest first, as JSON Lines or CSV."""
    import sys

    from app.cli.host import caller_for, on_host

    filters = _filters(since, until, actor, middleware, action, outcome, scope, request_id, client_request_id)

    async def open_export(host: "Services") -> AsyncIterator[bytes]:
        return await host.audit.export(caller_for(tenant), filters, form.value)

    async def write(host: "Services") -> None:
        pieces = await open_export(host)
        if output is None:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        try:
            with output.open("xb") as file:
                async for piece in pieces:
                    file.write(piece)
        except FileExistsError:
            fail(f"{output} already exists: choose another name.")
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror}.")

    on_host(write)


def _filters(
    since: datetime | None,
    until: datetime | None,
    actor: str | None,
    middleware: str | None,
    action: str | None,
    outcome: Ended | None,
    scope: str | None,
    request_id: str | None,
    client_request_id: str | None,
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
        client_request_id=client_request_id,
    )
