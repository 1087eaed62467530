"""``sluice audit archive``: write closed months of the record to files that prove themselves."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.terminal import FAILED, USAGE, fail, note, show_lines, show_table

if TYPE_CHECKING:
    from app.core.archive import EventArchive

EPILOG: Final = """Examples:

\b
  sluice audit archive --to /mnt/archive
  sluice audit archive --to s3://bucket/folder --month 2026-10 --json"""


def archive(
    to: Annotated[str, typer.Option("--to", help="Folder, or s3://bucket/folder.", show_default=False)],
    month: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM", help="Last month to write [default: the last one that is over]."),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Name of one tenant [default: all of them].")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per file.")] = False,
) -> None:
    """Write each month that is over, and is not there yet, as Parquet files with their proofs.

    Nothing that is there is replaced. deploy/verify_archive.py verifies the files anywhere. Ends with 1 where the
    events of a tenant could not be written.
    """
    from app.cli.host import on_host
    from app.services.audit.archive.archiving import ArchiveService

    place = opened_archive(to, "--to")
    done = on_host(lambda host: ArchiveService(host.audit, place).run(tenant, month))
    if json:
        show_lines(part._asdict() for part in done.written)
    elif done.written:
        show_table(
            ("TENANT", "MONTH", "PART", "EVENTS", "SHA-256"),
            [(part.tenant, part.month, part.part, part.events, part.sha256) for part in done.written],
        )
    else:
        note(f"Nothing to write: the archive ({place.name}) has every month that is over.")
    for name, reason in done.failures.items():
        note(f"Not written for {name}: {reason}")
    if done.failures:
        raise typer.Exit(FAILED)


def chosen(address: str | None) -> "EventArchive | None":
    """Return the archive that the option --archive names, if it does."""
    return opened_archive(address, "--archive") if address is not None else None


def opened_archive(address: str, option: str) -> "EventArchive":
    """Return the archive at an address, or end the command with what is wrong with ``option``."""
    try:
        from app.engines.archive.choosing import archive_at

        return archive_at(address)
    except ModuleNotFoundError:
        fail(
            f"{option} needs the extra archive, which is not installed: pip install 'sluice-mcp[archive]'.",
            USAGE,
        )
    except ValueError as error:
        fail(f"{option}: {error}.", USAGE)
