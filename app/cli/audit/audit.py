"""``sluice audit``: read the audit log of a tenant on this host, and verify it."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import UUID

import typer

from app.cli.audit import kept, sinks
from app.cli.audit.archive import EPILOG as ARCHIVE_EPILOG
from app.cli.audit.archive import archive as archive_months
from app.cli.audit.archive import chosen
from app.cli.audit.files import checkpoints_of, public_keys, size_of
from app.cli.streamed_output import once, write
from app.cli.terminal import FAILED, note, show_json, show_lines, show_table
from app.cli.times import moment
from app.core.audit import AUDIT_FILTERS

if TYPE_CHECKING:
    from app.assembly import Services
    from app.core.transparency.notes import VerifierKey
    from app.services.audit.audit import AuditQuery
    from app.services.audit.findings import Verification

commands = typer.Typer(
    help="Read the audit log: who did what, and how it ended. It never holds content. Reading it is recorded too.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ExportFormat(StrEnum):
    """Output formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Since = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events at or after this time.")
]
Until = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events before this time.")
]
Archive = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE", help="Archive to read beside the database: a folder, or s3://bucket/folder."
    ),
]
_KINDS: Final = {
    "time": datetime | None,
    "word": str | None,
    "outcome": Literal["ok", "refused", "failed", "sent"] | None,
    "user": str | None,
}


def _with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` an option for each filter of the audit log instead of its parameter ``filters``."""

    @wraps(command, assigned=("__name__", "__doc__"))
    def receive(**values: Any) -> None:
        from app.services.audit.audit import AuditQuery

        command(filters=AuditQuery(**{each.name: values.pop(each.name) for each in AUDIT_FILTERS}), **values)

    options = []
    for each in AUDIT_FILTERS:
        option = typer.Option(help=each.help)
        if each.kind == "time":
            option.parser, option.metavar = moment, "TIME"
        options.append(
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[_KINDS[each.kind], option],
            )
        )
    parameters = dict(signature(command).parameters)
    tenant = parameters.pop("tenant")
    parameters.pop("filters")
    # Typer reads the options from the signature.
    vars(receive)["__signature__"] = Signature([tenant, *options, *parameters.values()])
    return receive


@commands.command(
    epilog="""Examples:

\b
  sluice audit query --since 2026-11-20 --outcome refused
  sluice audit query --request-id 0193b2f0-... --json"""
)
@_with_filters
def query(
    tenant: Tenant = "default",
    *,
    filters: "AuditQuery",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of events to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor that the previous page printed.")] = None,
    archive: Archive = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show events, newest first."""
    from app.cli.host import caller_for, on_host
    from app.services.audit.export import described

    beside = chosen(archive)
    page = on_host(
        lambda host: host.audit.query(caller_for(tenant), filters, limit=limit, cursor=cursor, archive=beside)
    )
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
@_with_filters
def export(
    tenant: Tenant = "default",
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

    beside = chosen(archive)

    async def pieces(host: "Services") -> AsyncIterator[bytes]:
        return await host.audit.export(caller_for(tenant), filters, form.value, archive=beside)

    write(pieces, output)


@commands.command(
    epilog="""Examples:

\b
  sluice audit verify
  sluice audit verify --tenant acme --since 2026-11-01 --anchor checkpoint.txt --key KEY""",
)
def verify(
    tenant: Annotated[str | None, typer.Option(help="Name of one tenant [default: all of them].")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="Compare only events at or after this time."),
    ] = None,
    anchor: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with a checkpoint that was kept elsewhere, or with all of an anchor; may be repeated."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="Public key to trust, as sluice audit key showed it once; may be repeated [default: those in the "
            "database, which its owner could have replaced]."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Processes that compare events [default: one for each processor, and one for few events].",
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Recompute the whole log and name everything that was changed, removed, added, moved or set back.

    Ends with 0 where all holds, with 1 where something does not.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    anchors = [note for file in anchor or [] for note in checkpoints_of(file)]
    trusted = public_keys(key) if key else None
    caller = caller_for(SYSTEM_TENANT)
    result = on_host(
        lambda host: AuditLogService(host.audit).verify(
            caller, tenant, since=since, anchors=anchors, trusted=trusted, processes=processes
        )
    )
    _show_verification(result, as_json=json)
    if not result.holds:
        raise typer.Exit(FAILED)


@commands.command(
    epilog="""Example:

\b
  sluice audit checkpoint --output checkpoint.txt
  sluice audit checkpoint --continues checkpoint.txt --output grown.txt"""
)
def checkpoint(
    continues: Annotated[
        Path | None,
        typer.Option(
            help="File with an earlier checkpoint: print a proof that the log only grew since, then the newest one."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="New file to write [default: standard output].")] = None,
) -> None:
    """Print the newest signed checkpoint: kept out of reach of the database's owner, it proves the past later."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    caller = caller_for(SYSTEM_TENANT)
    old = size_of(continues) if continues is not None else None

    async def pieces(host: "Services") -> AsyncIterator[bytes]:
        log = AuditLogService(host.audit)
        note = (await log.checkpoint(caller)).note if old is None else await log.growth(caller, old)
        return once(note.encode())

    write(pieces, output)


@commands.command(
    epilog="""Examples:

\b
  sluice audit prove --tenant acme --since 2026-11-01 --output november.jsonl
  sluice audit prove 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 > event.jsonl
  python verify_audit.py event.jsonl --key KEY"""
)
def prove(
    events: Annotated[
        list[UUID] | None, typer.Argument(metavar="[EVENT]...", help="Ids of events [default: all].")
    ] = None,
    tenant: Tenant = "default",
    since: Since = None,
    until: Until = None,
    output: Annotated[Path | None, typer.Option(help="New file to write [default: standard output].")] = None,
) -> None:
    """Write events with proofs that they are in the signed log; deploy/verify_audit.py checks them anywhere."""
    from app.cli.host import caller_for
    from app.services.audit.log_access import AuditLogService

    async def pieces(host: "Services") -> AsyncIterator[bytes]:
        log = AuditLogService(host.audit)
        return await log.prove(caller_for(tenant), tenant, events or None, since=since, until=until)

    write(pieces, output)


commands.command("content", epilog=kept.CONTENT_EPILOG)(kept.show_content)
commands.command("end-user", epilog=kept.END_USER_EPILOG)(kept.show_end_user)


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


@commands.command(
    "key",
    epilog="""Examples:

\b
  sluice audit key > audit-key.txt
  sluice audit key --renew""",
)
def show_key(
    *,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make a new key first; it signs from the next checkpoint on.")
    ] = False,
) -> None:
    """Show the public keys that sign the log's checkpoints, oldest first: the last one signs now."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    caller = caller_for(SYSTEM_TENANT)

    async def shown(host: "Services") -> "Sequence[tuple[VerifierKey, datetime]]":
        log = AuditLogService(host.audit)
        if renew:
            await log.renew_key(caller)
        return await log.keys(caller)

    for public, _made in on_host(shown):
        print(public)


def _show_verification(result: "Verification", *, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        keys = [str(public) for public in result.keys]
        show_json({"holds": result.holds, **asdict(result), "keys": keys})
        return
    if result.findings:
        rows = [(finding.kind, finding.tenant, finding.place, finding.meaning) for finding in result.findings]
        show_table(("FINDING", "TENANT", "PLACE", "MEANING"), rows)
    if result.unnumbered:
        note(f"{result.unnumbered} events are from before events were numbered; they were sealed as found.")
    if result.waiting or result.unsigned:
        waiting = f"{result.waiting} events wait for the sealer, and {result.unsigned} heads of tenants for a signature"
        note(f"{waiting}: a running service does both within ten seconds.")
    for tenant in result.keyless:
        note(f"The tenant {tenant} is erased: the digests in its events have no key any more.")
    pruned = f" ({result.pruned} more were pruned)" if result.pruned else ""
    note(
        f"{result.events} events{pruned} of {result.tenants} tenants, {result.checkpoints} checkpoints and "
        f"{result.anchors} anchors: {'all hold' if result.holds else f'{len(result.findings)} findings'}."
    )
