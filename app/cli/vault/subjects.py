"""``sluice subjects``: find and erase a person's values, on the host or at a service, and print signed receipts."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import FAILED, USAGE, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.api.vault.erasures import ErasureJobAnswer, ErasurePreviewAnswer
    from app.api.vault.subjects import SubjectSearchAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.services.vault.erasure_orders import ErasureOrder
    from app.services.vault.subjects import SubjectValue

_SEARCH: Final = "/api/v1/subjects/search"
_ERASURES: Final = "/api/v1/erasures"
_MOST_ROWS: Final = 1000
_PAUSE_S: Final = 0.5
_WAIT_S: Final = 600.0

commands = typer.Typer(
    help="Find and erase a person's values, and print signed receipts. These commands never show originals.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
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
@placed()
def search(
    target: CommandTarget,
    values: Values,
    reason: Reason,
    label: Type = None,
    *,
    variants: Variants = False,
    json: Json = False,
) -> None:
    """Say which live scopes of a tenant have the values, how many, and from when."""
    from app.api.vault.subjects import SubjectSearchAnswer, search_answer
    from app.cli.host import caller_for
    from app.services.vault.subjects import SubjectRequest, SubjectService

    wanted = SubjectRequest(_values(values, label), reason, variants)
    body = {"values": _sent(wanted.values), "variants": variants, "reason": reason}

    async def here(host: "Services") -> "SubjectSearchAnswer":
        caller = caller_for(target.here)
        return search_answer(await SubjectService.over(host.vault).search(caller, wanted, limit=_MOST_ROWS))

    page = target.do(
        here,
        lambda service: SubjectSearchAnswer.model_validate(
            service.ask("POST", _SEARCH, body, limit=_MOST_ROWS)
        ),
    )
    head = ("scope", "type", "count", "first", "last")
    if json:
        items = [{name: getattr(group, name) for name in head} for group in page.items]
        show_json({**_totals(page), "items": items, "more": page.next is not None})
        return
    rows = [[getattr(group, name) for name in head] for group in page.items]
    show_table([name.upper() for name in head], rows)
    _tell(page)
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
@placed()
def erase(
    target: CommandTarget,
    reason: Reason,
    values: Values = None,
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
    from app.services.vault.erasure_orders import ErasureOrder

    if (values is None) == (not scope):
        fail("Name what to erase: a FILE of values, - for standard input, or --scope NAME.", USAGE)
    named = None if values is None else _values(values, label)
    order = ErasureOrder(reason, named, scope or None, variants=variants)
    if preview:
        _preview(target, order)
        return
    if named is not None and str(values) == "-" and not yes:
        fail("This cannot be undone: look with --preview, then confirm with --yes.", USAGE)
    target.confirm(f"Erase {_named(order)}{target.of_tenant}?", yes=yes)
    _order(target, order)


def _preview(target: CommandTarget, order: "ErasureOrder") -> None:
    from app.api.vault.erasures import ErasurePreviewAnswer, preview_answer
    from app.cli.host import caller_for
    from app.services.vault.erasure_orders import ErasureOrders

    async def here(host: "Services") -> "ErasurePreviewAnswer":
        orders = ErasureOrders.over(host.vault, host.tenant_erasure)
        return preview_answer(await orders.preview(caller_for(target.here), order))

    body = {**_body(order), "preview": True}
    previewed = target.do(
        here, lambda service: ErasurePreviewAnswer.model_validate(service.ask("POST", _ERASURES, body))
    )
    show_json(previewed.model_dump())


def _order(target: CommandTarget, order: "ErasureOrder") -> None:
    """Give an order, wait until it is done, and print its receipt."""
    from app.api.vault.erasures import ErasureJobAnswer, ErasureOrderAnswer
    from app.cli.host import caller_for
    from app.services.vault.erasure_jobs import ErasureJobs
    from app.services.vault.erasure_orders import ErasureOrders

    async def here(host: "Services") -> "ErasureJobAnswer":
        orders = ErasureOrders.over(host.vault, host.tenant_erasure)
        job = await orders.order(caller_for(target.here), order)
        note(f"Erasure {job.id}: {job.total} to erase.")
        await ErasureJobs.over(host.vault, host.tenant_erasure).finish(job.tenant, job.id)
        return ErasureJobAnswer.model_validate(await orders.get(caller_for(target.here), job.id))

    def there(service: "ServiceCalls") -> "ErasureJobAnswer":
        job = ErasureOrderAnswer.model_validate(service.ask("POST", _ERASURES, _body(order)))
        note(f"Erasure {job.id}: {job.total} to erase.")
        until = time.monotonic() + _WAIT_S
        while True:
            state = _job(service, job.id)
            if state.receipt is not None or time.monotonic() > until:
                return state
            time.sleep(_PAUSE_S)

    _print_receipt(target.do(here, there))


@commands.command(
    epilog="Example:\n\n\b\n  sluice subjects receipt 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 > receipt.txt"
)
@placed()
def receipt(
    target: CommandTarget,
    erasure: Annotated[UUID, typer.Argument(metavar="ID", help="Id of an erasure.")],
) -> None:
    """Print the signed receipt of an erasure; deploy/verify_receipt.py checks it without Sluice.

    Exit code 1: the erasure is not done yet. Receipts of erased tenants are those of the tenant system.
    """
    from app.api.vault.erasures import ErasureJobAnswer
    from app.cli.host import caller_for
    from app.services.vault.erasure_orders import ErasureOrders

    async def here(host: "Services") -> "ErasureJobAnswer":
        orders = ErasureOrders.over(host.vault, host.tenant_erasure)
        return ErasureJobAnswer.model_validate(await orders.get(caller_for(target.here), erasure))

    _print_receipt(target.do(here, lambda service: _job(service, erasure)))


def _job(service: "ServiceCalls", erasure: UUID) -> "ErasureJobAnswer":
    from app.api.vault.erasures import ErasureJobAnswer

    return ErasureJobAnswer.model_validate(service.ask("GET", f"{_ERASURES}/{erasure}"))


def _sent(values: "Sequence[SubjectValue]") -> list[dict[str, Any]]:
    return [{"value": each.value, "type": each.type} for each in values]


def _body(order: "ErasureOrder") -> dict[str, Any]:
    """Return an order as the route takes it."""
    values = None if order.values is None else _sent(order.values)
    scopes = None if order.scopes is None else list(order.scopes)
    return {"values": values, "scopes": scopes, "variants": order.variants, "reason": order.reason}


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


def _print_receipt(job: "ErasureJobAnswer") -> None:
    if job.receipt is None:
        fail(f"Erasure {job.id} is not done: {job.done} of {job.total}. The service goes on with it.", FAILED)
    print(job.receipt, end="")


def _totals(page: "SubjectSearchAnswer") -> dict[str, object]:
    return {
        "total": sum(page.counts.values()),
        "scopes": page.scopes,
        "counts": page.counts,
        "by_value": page.by_value,
        "indexed": page.indexed,
        "unreadable": page.unreadable,
    }


def _tell(page: "SubjectSearchAnswer") -> None:
    note(f"{sum(page.counts.values())} values in {page.scopes} scopes.")
    if not page.indexed:
        note("Not every value is in the index yet, so the others were opened one by one.")
    if page.unreadable:
        note(f"{page.unreadable} values could not be opened, and so not compared.")
