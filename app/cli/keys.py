"""``sluice keys``: API keys, administered on the host."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import confirm, note, show_json, show_table
from app.cli.times import duration, moment_ahead

if TYPE_CHECKING:
    from app.store.access.access import KeyInfo

commands = typer.Typer(
    help="Make, list, end and rotate API keys; every change is recorded.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ROLES = "invoker, restorer, auditor, eraser, operator, key-custodian"


@commands.command(
    epilog="""Examples:

\b
  sluice keys create --role invoker --name chat-backend
  sluice keys create --role restorer --role invoker --tenant acme --expires 90d --cidr 10.0.0.0/8
  KEY=$(sluice keys create --role auditor)

The key alone goes to standard output, what is said about it to standard error."""
)
def create(
    role: Annotated[list[str], typer.Option(help=f"What it may do: {ROLES}. Repeatable.")],
    tenant: Annotated[str, typer.Option(help="Whose key.")] = "default",
    name: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    expires: Annotated[
        datetime | None, typer.Option(parser=moment_ahead, metavar="TIME", help="End: 90d, or 2027-01-31.")
    ] = None,
    cidr: Annotated[
        list[str] | None, typer.Option(help="Network it may be used from, like 10.0.0.0/8. Repeatable.")
    ] = None,
    *,
    override_unions: Annotated[
        bool, typer.Option("--override-unions", help="Allow roles that one key should not have together.")
    ] = False,
) -> None:
    """Make a key and print it, once."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    made = on_host(
        lambda host: host.access.create_key(
            caller_for(SYSTEM_TENANT),
            role,
            tenant=tenant,
            name=name,
            expires=expires,
            cidrs=cidr or [],
            override_unions=override_unions,
        )
    )
    note(f"Key {made.info.id} of tenant {tenant} ({_roles(made.info)}); it is shown once:")
    print(made.key)


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice keys list\n  sluice keys list --tenant acme --json"
)
def list_(
    tenant: Annotated[str, typer.Option(help="Whose keys.")] = "default",
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the keys of a tenant; secrets are not stored and cannot be shown."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    found = on_host(lambda host: host.access.list_keys(caller_for(SYSTEM_TENANT), tenant))
    if json:
        show_json([_described(one) for one in found])
    else:
        head = ("ID", "NAME", "ROLES", "CREATED", "EXPIRES", "STATE")
        show_table(
            head, [(one.id, one.name, _roles(one), one.created, one.expires, _state(one)) for one in found]
        )


@commands.command(epilog="Example:\n\n\b\n  sluice keys revoke 0a1b2c3d")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight digits behind slc_.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """End a key now; other processes notice within five seconds."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    confirm(f"End key {key_id}?", yes=yes)
    ended = on_host(lambda host: host.access.revoke_key(caller_for(SYSTEM_TENANT), key_id))
    print(f"Key {ended.id} of tenant {ended.tenant} has ended.")


@commands.command(
    epilog="""Examples:

\b
  sluice keys rotate 0a1b2c3d                 both secrets work for a day
  sluice keys rotate 0a1b2c3d --overlap 0s    the old one ends now"""
)
def rotate(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight digits behind slc_.")],
    overlap: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="How long the old secret still works [default: 24h]."
        ),
    ] = None,
) -> None:
    """Give a key a new secret and print it, once."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.access.access import DEFAULT_OVERLAP_S

    seconds = DEFAULT_OVERLAP_S if overlap is None else overlap.total_seconds()
    made = on_host(lambda host: host.access.rotate_key(caller_for(SYSTEM_TENANT), key_id, overlap_s=seconds))
    until = made.info.rotating_until
    note(
        "The old secret has ended."
        if until is None
        else f"The old secret works until {until:%Y-%m-%dT%H:%M:%SZ}."
    )
    print(made.key)


def _roles(info: "KeyInfo") -> str:
    return ",".join(sorted(info.roles))


def _state(info: "KeyInfo") -> str:
    now = datetime.now(UTC)
    if info.revoked is not None:
        return "revoked"
    if info.expires is not None and info.expires <= now:
        return "expired"
    return "rotating" if info.rotating_until is not None and info.rotating_until > now else "live"


def _described(info: "KeyInfo") -> dict[str, str | Sequence[str] | datetime | None]:
    return {
        "id": info.id,
        "tenant": info.tenant,
        "name": info.name,
        "roles": sorted(info.roles),
        "cidrs": info.cidrs,
        "created": info.created,
        "created_by": info.created_by,
        "expires": info.expires,
        "state": _state(info),
    }
