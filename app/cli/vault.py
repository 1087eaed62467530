"""``sluice vault``: scopes, erasure and keys of the vault, on the host."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import confirm, fail, note, show_json, show_lines, show_table
from app.cli.times import moment_ahead

if TYPE_CHECKING:
    from app.services.vault.erasure import ErasureReceipt
    from app.store.vault.vault import StoredScope

commands = typer.Typer(
    help="Look after the vault: scopes, expiry, erasure, keys. Originals are not shown here.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Whose vault.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Scope = Annotated[str, typer.Argument(help="Name of a scope.")]


@commands.command(epilog="Examples:\n\n\b\n  sluice vault scopes\n  sluice vault scopes --tenant acme --json")
def scopes(
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Scopes to show.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where the page before ended.")] = None,
    *,
    json: Json = False,
) -> None:
    """List live scopes with the number of handles of each type."""
    from app.cli.host import caller_for, on_host

    page = on_host(lambda host: host.vault.list_scopes(caller_for(tenant), limit=limit, cursor=cursor))
    if json:
        show_lines(_described(one) for one in page.items)
    else:
        show_table(
            ("SCOPE", "CREATED", "EXPIRES", "HANDLES"),
            [(one.id, one.created, one.expires or "never", _counted(one.counts)) for one in page.items],
        )
    if page.next:
        note(f"There are more: --cursor '{page.next}'")


@commands.command(epilog="Example:\n\n\b\n  sluice vault show talk-1")
def show(scope: Scope, tenant: Tenant = "default") -> None:
    """Show one scope: when it was made, when it ends, how many handles it holds."""
    from app.cli.host import caller_for, on_host

    show_json(_described(on_host(lambda host: host.vault.get_scope(caller_for(tenant), scope))))


@commands.command(
    epilog="Examples:\n\n\b\n  sluice vault expire talk-1 7d\n  sluice vault expire talk-1 never"
)
def expire(
    scope: Scope,
    when: Annotated[str, typer.Argument(metavar="TIME", help="7d, 2027-01-31, or never.")],
    tenant: Tenant = "default",
) -> None:
    """Set when a scope ends; its originals cannot be read from then on."""
    from app.cli.host import caller_for, on_host

    ends: datetime | None = None if when == "never" else moment_ahead(when)
    changed = on_host(lambda host: host.vault.set_expiry(caller_for(tenant), scope, ends))
    print(
        f"Scope {changed.id} ends {'never' if changed.expires is None else f'at {changed.expires:%Y-%m-%dT%H:%M:%SZ}'}."
    )


@commands.command(
    epilog="""Examples:

\b
  sluice vault erase --scope talk-1                  a whole conversation
  sluice vault erase --scope talk-1 --handle PERSON_1
  sluice vault erase --value - < value.txt           one value, in every scope of the tenant

A value on the command line would stand in the shell's history: only - (standard input) is taken."""
)
def erase(
    scope: Annotated[str | None, typer.Option(help="Scope to erase, or in which the handle is.")] = None,
    handle: Annotated[str | None, typer.Option(help="One handle of the scope, like PERSON_1.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="-", help="- reads a value from standard input.")
    ] = None,
    tenant: Tenant = "default",
    *,
    yes: Yes = False,
) -> None:
    """Erase a scope, a handle or a value, for ever; prints a receipt with numbers.

    docs/data-handling.md says what erasing means on disks and in backups.
    """
    import sys

    from app.cli.host import caller_for, on_host
    from app.cli.terminal import USAGE
    from app.core.content.handles import Handle

    caller = caller_for(tenant)
    if value is not None:
        if value != "-" or scope or handle:
            fail("--value - stands alone and reads the value from standard input.", USAGE)
        text = sys.stdin.read().removesuffix("\n")
        if not text:
            fail("There is no value on standard input.", USAGE)
        if not yes:
            fail("This cannot be undone: say --yes to confirm it.", USAGE)
        show_json(_receipt(on_host(lambda host: host.vault.erase_value(caller, text))))
        return
    if scope is None:
        fail("Say what to erase: --scope NAME, --scope NAME --handle PERSON_1, or --value -.", USAGE)
    if handle is None:
        confirm(f"Erase scope {scope} of tenant {tenant}?", yes=yes)
        show_json(_receipt(on_host(lambda host: host.vault.erase_scope(caller, scope))))
        return
    parsed = Handle.parse(handle)
    if parsed is None:
        fail("That is no handle; one looks like PERSON_1.", USAGE)
    confirm(f"Erase {parsed.name} in scope {scope} of tenant {tenant}?", yes=yes)
    show_json(_receipt(on_host(lambda host: host.vault.erase_handle(caller, scope, parsed))))


@commands.command(
    "new-ring", epilog="Example:\n\n\b\n  SLUICE_KEYS__FILE=/etc/sluice/keyring.json sluice vault new-ring"
)
def new_ring() -> None:
    """Make the file of the key ring with one random key, where there is none; production does not make its own."""
    from app.cli.host import ring_file
    from app.engines.cipher import KeyRing

    path = ring_file()
    if path.exists():
        fail(f"{path} exists already; `sluice vault rotate-keys` adds a key to it.")
    KeyRing.create(path)
    print(f"{path} holds version 1.")
    note("Back it up, apart from the database: without it nothing can be restored.")


@commands.command(
    "rotate-keys",
    epilog="""Example, with one host:

\b
  sluice vault rotate-keys      then restart the service, then:
  sluice vault rewrap

With several hosts: `rotate-keys --prepare`, copy the file to all, restart them, then
`rotate-keys --activate 2`, copy and restart again, then `rewrap`; see docs/operations.md.""",
)
def rotate_keys(
    activate: Annotated[
        int | None, typer.Option(help="Let this version of the ring wrap from now on.")
    ] = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Only add a new version; it does not wrap yet.")
    ] = False,
) -> None:
    """Add a key to the ring file and let it wrap; older versions go on opening what they wrapped."""
    from app.cli.host import ring_file
    from app.engines.cipher import KeyRing

    path = ring_file()
    ring = KeyRing.load(path)
    if activate is not None:
        if activate not in ring.versions:
            fail(f"The ring has no version {activate}; it has {', '.join(map(str, sorted(ring.versions)))}.")
        ring = ring.activated(activate)
    else:
        ring = ring.with_new_version()
        if not prepare:
            ring = ring.activated(max(ring.versions))
    ring.save(path)
    print(f"{path} holds versions {', '.join(map(str, sorted(ring.versions)))}; version {ring.active} wraps.")
    note(
        "Restart the service, then run `sluice vault rewrap`. Back the file up: without it nothing can be restored."
    )


@commands.command(epilog="Example:\n\n\b\n  sluice vault rewrap")
def rewrap() -> None:
    """Carry every data key to the active version of the ring, in batches, while the service serves."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    receipt = on_host(lambda host: host.vault.rewrap(caller_for(SYSTEM_TENANT)))
    print(
        f"Re-wrapped {receipt.rewrapped} keys under version {receipt.active}; {receipt.left} left on others."
    )
    if receipt.left == 0:
        note(
            "Older versions are no longer needed, except by backups of the database that are older than now."
        )


@commands.command(
    "restore-epoch",
    epilog="Example, after a restore from a backup and before the service starts:\n\n\b\n  sluice vault restore-epoch",
)
def restore_epoch() -> None:
    """Make numbering jump after the database was restored from a backup.

    Handles that were given after the backup are known outside: none of their numbers may name another value.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    epoch = on_host(lambda host: host.vault.restore_epoch(caller_for(SYSTEM_TENANT)))
    print(f"The restore epoch is now {epoch}; the service may start.")


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
