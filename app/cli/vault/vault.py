"""``sluice vault``: manage scopes, erasure and keys of the vault on the host."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import confirm, fail, note, show_json, show_lines, show_table
from app.cli.times import moment_ahead

if TYPE_CHECKING:
    from app.services.vault.erasure import ErasureReceipt
    from app.store.vault.vault import StoredScope

commands = typer.Typer(
    help="Manage the vault: scopes, expiry, erasure, keys. These commands never show originals.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]
Scope = Annotated[str, typer.Argument(help="Name of a scope.")]


@commands.command(epilog="Examples:\n\n\b\n  sluice vault scopes\n  sluice vault scopes --tenant acme --json")
def scopes(
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of scopes to show.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Cursor that the previous page printed.")] = None,
    *,
    json: Json = False,
) -> None:
    """List live scopes with the number of handles of each type."""
    from app.cli.host import caller_for, on_host

    page = on_host(lambda host: host.vault.list_scopes(caller_for(tenant), limit=limit, cursor=cursor))
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
def show(scope: Scope, tenant: Tenant = "default") -> None:
    """Show a scope: when it was created, when it expires, and its number of handles."""
    from app.cli.host import caller_for, on_host

    show_json(_described(on_host(lambda host: host.vault.get_scope(caller_for(tenant), scope))))


@commands.command(
    epilog="Examples:\n\n\b\n  sluice vault expire talk-1 7d\n  sluice vault expire talk-1 never"
)
def expire(
    scope: Scope,
    when: Annotated[str, typer.Argument(metavar="TIME", help="New expiry: 7d, 2027-01-31, or never.")],
    tenant: Tenant = "default",
) -> None:
    """Set when a scope expires. Its originals cannot be read after that."""
    from app.cli.host import caller_for, on_host

    ends: datetime | None = None if when == "never" else moment_ahead(when)
    changed = on_host(lambda host: host.vault.set_expiry(caller_for(tenant), scope, ends))
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
def erase(
    scope: Annotated[str | None, typer.Option(help="Scope to erase, or the scope of the handle.")] = None,
    handle: Annotated[
        str | None, typer.Option(help="Erase only this handle of the scope, like PERSON_1.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="-", help="Erase a value, which - reads from standard input.")
    ] = None,
    tenant: Tenant = "default",
    *,
    yes: Yes = False,
) -> None:
    """Erase a scope, a handle or a value permanently and print a receipt with counts.

    docs/data-handling.md explains what erasure means on disks and in backups.
    """
    import sys

    from app.cli.host import caller_for, on_host
    from app.cli.terminal import USAGE
    from app.core.content.handles import Handle

    caller = caller_for(tenant)
    if value is not None:
        if value != "-" or scope or handle:
            fail(
                "--value - cannot be combined with --scope or --handle; it reads the value from standard input.",
                USAGE,
            )
        text = sys.stdin.read().removesuffix("\n")
        if not text:
            fail("Standard input is empty.", USAGE)
        if not yes:
            fail("This cannot be undone: confirm it with --yes.", USAGE)
        show_json(_receipt(on_host(lambda host: host.vault.erase_value(caller, text))))
        return
    if scope is None:
        fail("Choose what to erase: --scope NAME, --scope NAME --handle PERSON_1, or --value -.", USAGE)
    if handle is None:
        confirm(f"Erase scope {scope} of tenant {tenant}?", yes=yes)
        show_json(_receipt(on_host(lambda host: host.vault.erase_scope(caller, scope))))
        return
    parsed = Handle.parse(handle)
    if parsed is None:
        fail("This is not a handle. A handle looks like PERSON_1.", USAGE)
    confirm(f"Erase {parsed.name} in scope {scope} of tenant {tenant}?", yes=yes)
    show_json(_receipt(on_host(lambda host: host.vault.erase_handle(caller, scope, parsed))))


@commands.command(
    "new-ring", epilog="Example:\n\n\b\n  SLUICE_KEYS__FILE=/etc/sluice/keyring.json sluice vault new-ring"
)
def new_ring() -> None:
    """Create the key ring file with one random key if it does not exist. In production the service never creates it."""
    from app.cli.host import ring_file
    from app.custody_wiring import make_ring
    from app.settings import load

    path = ring_file()
    if path.exists():
        fail(f"{path} already exists; `sluice vault rotate-keys` adds a key to it.")
    make_ring(load())
    print(f"{path} has version 1.")
    note("Back it up separately from the database: without it nothing can be restored.")


@commands.command(
    "rotate-keys",
    epilog="""Example, with one host:

\b
  sluice vault rotate-keys      wait ten seconds, then:
  sluice vault rewrap

With several hosts: `rotate-keys --prepare`, copy the file to all, wait ten seconds, then
`rotate-keys --activate 2`, copy and wait again, then `rewrap`; see docs/operations.md.""",
)
def rotate_keys(
    activate: Annotated[
        int | None, typer.Option(help="Make this version of the ring the active one.")
    ] = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Add a new version without activating it.")
    ] = False,
) -> None:
    """Add a key to the ring file and activate it. Older versions still unwrap what they wrapped."""
    from app.cli.host import ring_file
    from app.custody_wiring import load_ring, save_ring
    from app.settings import load

    path, settings = ring_file(), load()
    ring = load_ring(settings)
    if activate is not None:
        if activate not in ring.versions:
            fail(f"The ring has no version {activate}; it has {', '.join(map(str, sorted(ring.versions)))}.")
        ring = ring.activated(activate)
    else:
        ring = ring.with_new_version()
        if not prepare:
            ring = ring.activated(max(ring.versions))
    save_ring(settings, ring)
    print(f"{path} has versions {', '.join(map(str, sorted(ring.versions)))}; version {ring.active} wraps.")
    note(
        "The service reads it within ten seconds; then run `sluice vault rewrap`. "
        "Back the file up: without it nothing can be restored."
    )


@commands.command(
    "seal-ring",
    epilog="""Example:

\b
  export SLUICE_KEYS__CUSTODIAN=aws-kms:arn:aws:kms:eu-central-1:111122223333:key/0f1e2d3c
  sluice vault seal-ring""",
)
def seal_ring() -> None:
    """Let the custodian of the settings seal the ring file, which lies open or is sealed by another one."""
    from app.cli.host import ring_file
    from app.custody_wiring import custodian, save_ring
    from app.engines.cipher import KeyRing
    from app.engines.custody.sealed_ring import open_ring, sealed_by
    from app.settings import load

    path, settings = ring_file(), load()
    if settings.keys.custodian is None:
        fail("SLUICE_KEYS__CUSTODIAN must name who seals the ring.")
    former = sealed_by(path)
    opener = custodian(settings, former) if former is not None else None
    save_ring(settings, KeyRing.load(path) if opener is None else open_ring(path, opener))
    print(f"{path} is sealed by {settings.keys.custodian}.")
    note("Copies of the file from before still open: destroy them, except a backup in a safe.")


@commands.command(epilog="Example:\n\n\b\n  sluice vault rewrap")
def rewrap() -> None:
    """Re-wrap every data key under the active version of the ring, in batches, while the service runs."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    receipt = on_host(lambda host: host.vault.rewrap(caller_for(SYSTEM_TENANT)))
    print(
        f"Re-wrapped {receipt.rewrapped} keys under version {receipt.active}; "
        f"{receipt.left} remain under other versions."
    )
    if receipt.left == 0:
        note("Older versions are needed only for database backups made before now.")


@commands.command(epilog="Example:\n\n\b\n  sluice vault find < value.txt")
def find(tenant: Tenant = "default") -> None:
    """List where a tenant's live scopes have the value on standard input: what an erasure of it would delete."""
    import sys

    from app.assembly import Services
    from app.cli.host import caller_for, on_host
    from app.cli.terminal import USAGE
    from app.core.content.handles import Handle

    text = sys.stdin.read().removesuffix("\n")
    if not text:
        fail("Standard input is empty.", USAGE)

    async def work(host: Services) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        cursor: str | None = None
        while True:
            page = await host.vault.erasures.find_value(caller_for(tenant), text, limit=1000, cursor=cursor)
            rows += [(place.scope, Handle(place.label, place.ordinal).name) for place in page.items]
            cursor = page.next
            if cursor is None:
                return rows

    show_table(("SCOPE", "HANDLE"), on_host(work))


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


def _described(scope: "StoredScope") -> dict[str, object]:
    return {
        "scope": scope.id,
        "created": scope.created,
        "expires": scope.expires,
        "state": scope.state,
        "counts": scope.counts,
    }


def _receipt(receipt: "ErasureReceipt") -> dict[str, object]:
    return {
        "id": receipt.id,
        "kind": receipt.kind,
        "at": receipt.at,
        "scope": receipt.scope,
        "erased": receipt.counts,
    }
