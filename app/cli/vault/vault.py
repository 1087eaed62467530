"""``sluice vault``: manage scopes, erasure and keys of the vault, on the host or at a service."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import USAGE, fail, note, show_json, show_lines, show_table
from app.cli.times import moment_ahead
from app.cli.vault import rings

if TYPE_CHECKING:
    from app.api.fields import Page
    from app.api.vault.vault import ReceiptAnswer, ScopeAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.content.handles import Handle

commands = typer.Typer(
    help="Manage the vault: scopes, expiry, erasure, keys. These commands never show originals.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_SCOPES = "/api/v1/vault/scopes"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]
Scope = Annotated[str, typer.Argument(help="Name of a scope.")]


@commands.command(epilog="Examples:\n\n\b\n  sluice vault scopes\n  sluice vault scopes --tenant acme --json")
@placed()
def scopes(
    target: CommandTarget,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of scopes to show.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Cursor that the previous page printed.")] = None,
    *,
    json: Json = False,
) -> None:
    """List live scopes with the number of handles of each type."""
    from app.api.fields import Page
    from app.api.vault.vault import ScopeAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "Page[ScopeAnswer]":
        listed = await host.vault.list_scopes(caller_for(target.here), limit=limit, cursor=cursor)
        return Page(items=[ScopeAnswer.model_validate(scope) for scope in listed.items], next=listed.next)

    def there(service: "ServiceCalls") -> "Page[ScopeAnswer]":
        answered = service.ask("GET", _SCOPES, limit=limit, cursor=cursor)
        return Page[ScopeAnswer].model_validate(answered)

    page = target.do(here, there)
    if json:
        show_lines(_described(scope) for scope in page.items)
    else:
        show_table(
            ("SCOPE", "CREATED", "EXPIRES", "HANDLES"),
            [
                (scope.id, scope.created, scope.expires or "never", _counted(scope.counts))
                for scope in page.items
            ],
        )
    if page.next:
        note(f"There are more scopes. Continue with --cursor '{page.next}'")


@commands.command(epilog="Example:\n\n\b\n  sluice vault show talk-1")
@placed()
def show(target: CommandTarget, scope: Scope) -> None:
    """Show a scope: when it was created, when it expires, and its number of handles."""
    from app.api.vault.vault import ScopeAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "ScopeAnswer":
        return ScopeAnswer.model_validate(await host.vault.get_scope(caller_for(target.here), scope))

    show_json(
        _described(
            target.do(here, lambda service: ScopeAnswer.model_validate(service.ask("GET", _path(scope))))
        )
    )


@commands.command(
    epilog="Examples:\n\n\b\n  sluice vault expire talk-1 7d\n  sluice vault expire talk-1 never"
)
@placed()
def expire(
    target: CommandTarget,
    scope: Scope,
    when: Annotated[str, typer.Argument(metavar="TIME", help="New expiry: 7d, 2027-01-31, or never.")],
) -> None:
    """Set when a scope expires. Its originals cannot be read after that."""
    from app.api.vault.vault import ScopeAnswer
    from app.cli.host import caller_for

    ends: datetime | None = None if when == "never" else moment_ahead(when)
    body = {"expires": None if ends is None else ends.isoformat()}

    async def here(host: "Services") -> "ScopeAnswer":
        changed = await host.vault.set_expiry(caller_for(target.here), scope, ends)
        return ScopeAnswer.model_validate(changed)

    changed = target.do(
        here, lambda service: ScopeAnswer.model_validate(service.ask("PATCH", _path(scope), body))
    )
    print(
        f"Scope {changed.id} ends {'never' if changed.expires is None else f'at {changed.expires:%Y-%m-%dT%H:%M:%SZ}'}."
    )


@commands.command(
    epilog="""Examples:

\b
  sluice vault erase --scope talk-1                  a whole scope
  sluice vault erase --scope talk-1 --handle PERSON_1
  sluice vault erase --value - < value.txt           one value, in every scope of the tenant

--value accepts only - (standard input): a value on the command line would stay in the shell's history."""
)
@placed()
def erase(
    target: CommandTarget,
    scope: Annotated[str | None, typer.Option(help="Scope to erase, or the scope of the handle.")] = None,
    handle: Annotated[
        str | None, typer.Option(help="Erase only this handle of the scope, like PERSON_1.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="-", help="Erase a value, which - reads from standard input.")
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Erase a scope, a handle or a value permanently and print a receipt with counts.

    docs/data-handling.md explains what erasure means on disks and in backups.
    """
    from app.core.content.handles import Handle

    if value is not None:
        if value != "-" or scope or handle:
            fail(
                "--value - cannot be combined with --scope or --handle; it reads the value from standard input.",
                USAGE,
            )
        text = _standard_input()
        if not yes:
            fail("This cannot be undone: confirm it with --yes.", USAGE)
        _erase_value(target, text)
        return
    if scope is None:
        fail("Choose what to erase: --scope NAME, --scope NAME --handle PERSON_1, or --value -.", USAGE)
    parsed = None if handle is None else Handle.parse(handle)
    if handle is not None and parsed is None:
        fail("This is not a handle. A handle looks like PERSON_1.", USAGE)
    what = f"scope {scope}" if parsed is None else f"{parsed.name} in scope {scope}"
    target.confirm(f"Erase {what}{target.of_tenant}?", yes=yes)
    _erase_place(target, scope, parsed)


def _erase_value(target: CommandTarget, text: str) -> None:
    from app.api.vault.vault import ReceiptAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "ReceiptAnswer":
        return ReceiptAnswer.model_validate(await host.vault.erase_value(caller_for(target.here), text))

    path, body = "/api/v1/vault/erasures", {"value": text}
    receipt = target.do(here, lambda service: ReceiptAnswer.model_validate(service.ask("POST", path, body)))
    show_json(_receipt(receipt))


def _erase_place(target: CommandTarget, scope: str, handle: "Handle | None") -> None:
    from app.api.vault.vault import ReceiptAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "ReceiptAnswer":
        caller = caller_for(target.here)
        if handle is None:
            return ReceiptAnswer.model_validate(await host.vault.erase_scope(caller, scope))
        return ReceiptAnswer.model_validate(await host.vault.erase_handle(caller, scope, handle))

    def there(service: "ServiceCalls") -> "ReceiptAnswer":
        entry = "" if handle is None else f"/entries/{handle.name}"
        return ReceiptAnswer.model_validate(service.ask("DELETE", f"{_path(scope)}{entry}"))

    show_json(_receipt(target.do(here, there)))


for _name, _command, _epilog in rings.COMMANDS:
    commands.command(_name, epilog=_epilog)(_command)


@commands.command(epilog="Example:\n\n\b\n  sluice vault find < value.txt")
@placed()
def find(target: CommandTarget) -> None:
    """List where a tenant's live scopes have the value on standard input: what an erasure of it would delete."""
    from app.cli.host import caller_for
    from app.core.content.handles import Handle

    text = _standard_input()

    async def here(host: "Services") -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        cursor: str | None = None
        while True:
            page = await host.vault.erasures.find_value(
                caller_for(target.here), text, limit=1000, cursor=cursor
            )
            rows += [(place.scope, Handle(place.label, place.ordinal).name) for place in page.items]
            cursor = page.next
            if cursor is None:
                return rows

    def there(service: "ServiceCalls") -> list[tuple[str, str]]:
        places = service.pages("/api/v1/vault/occurrences", method="POST", body={"value": text})
        return [(place["scope"], place["handle"]) for place in places]

    show_table(("SCOPE", "HANDLE"), target.do(here, there))


@commands.command(epilog="Example, after an upgrade:\n\n\b\n  sluice vault index")
def index() -> None:
    """Fill the blind index with values of older releases, which the service otherwise does in the background.

    Until it is filled, finding or erasing a value opens every scope that has such values.
    """
    from app.cli.host import on_host

    def tell(done: int, left: int) -> None:
        note(f"{done} values of {left} or more." if left > done else f"{done} values.")

    print(f"Indexed {on_host(lambda host: host.vault.index.fill(tell))} values.")


@commands.command(
    "restore-epoch",
    epilog="Example, after a restore from a backup and before the service starts:\n\n\b\n  sluice vault restore-epoch",
)
def restore_epoch() -> None:
    """Skip handle numbers after the database was restored from a backup.

    Handles issued after the backup are known outside: their numbers must not name other values.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    epoch = on_host(lambda host: host.vault.restore_epoch(caller_for(SYSTEM_TENANT)))
    print(f"The restore epoch is now {epoch}; the service may start.")


@commands.command(
    "replay-erasures",
    epilog="""Examples, after a restore from a backup and before the service starts:

\b
  sluice vault replay-erasures                          the files of this host
  sluice vault replay-erasures a/erasures.jsonl b/erasures.jsonl""",
)
def replay_erasures(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Files of erasures, of all hosts; none: those that this host has. A bucket is read, too.",
        ),
    ] = None,
    *,
    incomplete: Annotated[
        bool,
        typer.Option(
            "--incomplete", help="Go on although the mark counts more erasures than the files have."
        ),
    ] = False,
) -> None:
    """Erase again what was erased after the backup, skip handle numbers, and renew the mark of the database.

    The service does this by itself at its start where it has all files of erasures.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    caller = caller_for(SYSTEM_TENANT)
    receipt = on_host(lambda host: host.replay.replay(caller, files or [], incomplete=incomplete))
    print(
        f"Repeated {receipt.repeated} erasures: {_counted(receipt.erased)}. {receipt.stored} were in the database. "
        f"The restore epoch is now {receipt.epoch}; the service may start."
    )
    if receipt.jobs:
        note(f"Took over {receipt.jobs} orders and receipts of erasures.")
    if receipt.foreign:
        note(f"Skipped {receipt.foreign} erasures of other databases.")
    if receipt.unreadable:
        note(
            f"Skipped {receipt.unreadable} lines that are no erasures: each was cut off while it was written."
        )
    note("Revoke the API keys that were revoked since the backup: they are valid again.")


def _counted(counts: dict[str, int]) -> str:
    return " ".join(f"{label}={count}" for label, count in sorted(counts.items())) or "-"


def _standard_input() -> str:
    import sys

    text = sys.stdin.read().removesuffix("\n")
    if not text:
        fail("Standard input is empty.", USAGE)
    return text


def _path(scope: str) -> str:
    from app.cli.calls import segment

    return f"{_SCOPES}/{segment(scope)}"


def _described(scope: "ScopeAnswer") -> dict[str, object]:
    return {
        "scope": scope.id,
        "created": scope.created,
        "expires": scope.expires,
        "state": scope.state,
        "counts": scope.counts,
    }


def _receipt(receipt: "ReceiptAnswer") -> dict[str, object]:
    return {
        "id": receipt.id,
        "kind": receipt.kind,
        "at": receipt.at,
        "scope": receipt.scope,
        "erased": receipt.counts,
    }
