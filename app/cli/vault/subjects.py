"""``sluice subjects``: find and erase a person's values on the host, and print signed receipts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from app.cli.terminal import FAILED, USAGE, confirm, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.services.vault.erasure_orders import ErasureOrder
    from app.services.vault.subjects import SubjectTotals, SubjectValue
    from app.store.vault.erasure_jobs import StoredErasureJob

commands = typer.Typer(
    help="Find and erase a person's values, and print signed receipts. These commands never show originals.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Reason = Annotated[str, typer.Option(help="Why: 3 to 500 characters, which are on record. No value in it.")]
Values = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="File with one value a line; - is standard input. A value on the command line would stay in the shell's "
        "history.",
    ),
]
Type = Annotated[str | None, typer.Option("--type", help="Only values masked as this type, such as PERSON.")]
Variants = Annotated[
    bool,
    typer.Option(
        "--variants", help="Also other spellings: case, spacing, accents, formats of phone and card numbers."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command(
    epilog="""Examples:

\b
  sluice subjects search - --reason "Request 2026-114" < values.txt
  sluice subjects search values.txt --variants --reason "Request 2026-114" --json"""
)
def search(
    values: Values,
    reason: Reason,
    tenant: Tenant = "default",
    label: Type = None,
    *,
    variants: Variants = False,
    json: Json = False,
) -> None:
    """Say which live scopes of a tenant have the values, how many, and from when."""
    from app.assembly import Services
    from app.cli.host import caller_for, on_host
    from app.services.vault.subjects import SubjectPage, SubjectRequest, SubjectService

    wanted = SubjectRequest(_values(values, label), reason, variants)

    async def work(host: Services) -> SubjectPage:
        return await SubjectService.over(host.vault).search(caller_for(tenant), wanted, limit=1000)

    page = on_host(work)
    rows = [
        (group.place.scope, group.place.label, group.count, group.first, group.last) for group in page.items
    ]
    head = ("scope", "type", "count", "first", "last")
    if json:
        items = [dict(zip(head, row, strict=True)) for row in rows]
        show_json({**_described(page.totals), "items": items, "more": page.next is not None})
        return
    show_table([name.upper() for name in head], rows)
    _tell(page.totals)
    if page.next is not None:
        note("These are the first 1,000 rows; REST has pages (POST /api/v1/subjects/search).")


@commands.command(
    epilog="""Examples:

\b
  sluice subjects erase values.txt --variants --preview --reason "Request 2026-114"
  sluice subjects erase values.txt --variants --yes --reason "Request 2026-114" > receipt.txt
  sluice subjects erase --scope talk-1 --scope talk-2 --reason "Request 2026-115"

A tenant is erased with sluice tenants erase."""
)
def erase(
    reason: Reason,
    values: Values = None,
    tenant: Tenant = "default",
    label: Type = None,
    scope: Annotated[list[str] | None, typer.Option(help="Erase this scope; may be repeated.")] = None,
    *,
    variants: Variants = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what would be erased.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Erase values in every scope of a tenant, or scopes, permanently, and print the signed receipt.

    What is interrupted goes on with the service, or is ordered again.
    """
    from app.assembly import Services
    from app.cli.host import caller_for, on_host
    from app.services.vault.erasure_jobs import ErasureJobs
    from app.services.vault.erasure_orders import ErasureOrder, ErasureOrders

    if (values is None) == (not scope):
        fail("Name what to erase: a FILE of values, - for standard input, or --scope NAME.", USAGE)
    named = None if values is None else _values(values, label)
    order = ErasureOrder(reason, named, scope or None, variants=variants)
    caller = caller_for(tenant)
    if preview:
        seen = on_host(
            lambda host: ErasureOrders.over(host.vault, host.tenant_erasure).preview(caller, order)
        )
        show_json(_described(seen))
        return
    if named is not None and str(values) == "-" and not yes:
        fail("This cannot be undone: look with --preview, then confirm with --yes.", USAGE)
    confirm(f"Erase {_named(order)} of tenant {tenant}?", yes=yes)

    async def work(host: Services) -> "StoredErasureJob":
        orders = ErasureOrders.over(host.vault, host.tenant_erasure)
        job = await orders.order(caller, order)
        note(f"Erasure {job.id}: {job.total} to erase.")
        await ErasureJobs.over(host.vault, host.tenant_erasure).finish(job.tenant, job.id)
        return await orders.get(caller, job.id)

    _print_receipt(on_host(work))


@commands.command(
    epilog="Example:\n\n\b\n  sluice subjects receipt 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 > receipt.txt"
)
def receipt(
    erasure: Annotated[UUID, typer.Argument(metavar="ID", help="Id of an erasure.")],
    tenant: Tenant = "default",
) -> None:
    """Print the signed receipt of an erasure; deploy/verify_receipt.py checks it without Sluice.

    Exit code 1: the erasure is not done yet. Receipts of erased tenants are those of the tenant system.
    """
    from app.cli.host import caller_for, on_host
    from app.services.vault.erasure_orders import ErasureOrders

    _print_receipt(
        on_host(
            lambda host: ErasureOrders.over(host.vault, host.tenant_erasure).get(caller_for(tenant), erasure)
        )
    )


def _values(file: Path | None, label: str | None) -> "list[SubjectValue]":
    """Return the values of a file, one a line, or end the command."""
    from app.services.vault.subjects import SubjectValue

    try:
        text = sys.stdin.read() if str(file) == "-" or file is None else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        fail(f"{file} cannot be read as text in UTF-8.", USAGE)
    lines = [line.strip() for line in text.splitlines()]
    values = [SubjectValue(line, label) for line in lines if line]
    if not values:
        fail("There is no value to look for: write one a line.", USAGE)
    return values


def _named(order: "ErasureOrder") -> str:
    if order.scopes is not None:
        return f"{len(set(order.scopes))} scopes"
    return f"{len(order.values or ())} values{' and their variants' if order.variants else ''}"


def _print_receipt(job: "StoredErasureJob") -> None:
    if job.receipt is None:
        fail(f"Erasure {job.id} is not done: {job.done} of {job.total}. The service goes on with it.", FAILED)
    print(job.receipt, end="")


def _described(totals: "SubjectTotals") -> dict[str, object]:
    return {
        "total": totals.entries,
        "scopes": totals.scopes,
        "counts": totals.counts,
        "by_value": totals.by_value,
        "indexed": totals.indexed,
        "unreadable": totals.unreadable,
    }


def _tell(totals: "SubjectTotals") -> None:
    note(f"{totals.entries} values in {totals.scopes} scopes.")
    if not totals.indexed:
        note("Not every value is in the index yet, so the others were opened one by one.")
    if totals.unreadable:
        note(f"{totals.unreadable} values could not be opened, and so not compared.")
