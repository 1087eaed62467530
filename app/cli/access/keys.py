"""``sluice keys``: administer API keys on the host."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import cell, confirm, note, show_json, show_table
from app.cli.times import duration, moment_ahead

if TYPE_CHECKING:
    from app.store.access.access import KeyInfo

commands = typer.Typer(
    help="Create, list, approve, revoke and rotate API keys. Every change is recorded in the audit log.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ROLES = "invoker, restorer, auditor, eraser, operator, key-custodian, delegate, provisioner"


@commands.command(
    epilog="""Examples:

\b
  sluice keys create --role invoker --name chat-backend
  sluice keys create --role restorer --role invoker --tenant acme --expires 90d --cidr 10.0.0.0/8
  KEY=$(sluice keys create --role auditor)

Only the key goes to standard output; messages go to standard error."""
)
def create(
    role: Annotated[list[str], typer.Option(help=f"Role of the key: {ROLES}. Repeatable.")],
    tenant: Annotated[str, typer.Option(help="Name of the tenant.")] = "default",
    name: Annotated[str | None, typer.Option(help="Label that says what the key is for.")] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(parser=moment_ahead, metavar="TIME", help="When it expires: 90d, or 2027-01-31."),
    ] = None,
    cidr: Annotated[
        list[str] | None, typer.Option(help="Network from which it may be used, like 10.0.0.0/8. Repeatable.")
    ] = None,
    *,
    override_unions: Annotated[
        bool,
        typer.Option("--override-unions", help="Allow a combination of roles that is refused by default."),
    ] = False,
) -> None:
    """Create a key and print it. It is shown only once."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    created = on_host(
        lambda host: host.access.create_key(
            caller_for(SYSTEM_TENANT),
            role,
            tenant=tenant,
            name=name,
            expires=expires,
            cidrs=cidr or [],
            override_unions=override_unions,
        ),
        begins=True,
    )
    note(f"Key {created.info.id} of tenant {tenant} ({_roles(created.info)}); it is shown only once:")
    print(created.key)


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice keys list\n  sluice keys list --tenant acme --json"
)
def list_(
    tenant: Annotated[str, typer.Option(help="Name of the tenant.")] = "default",
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the keys of a tenant. Secrets are not stored and cannot be shown."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    keys = on_host(lambda host: host.access.list_keys(caller_for(SYSTEM_TENANT), tenant))
    if json:
        show_json([_described(key) for key in keys])
    else:
        head = ("ID", "NAME", "ROLES", "CREATED", "EXPIRES", "STATE")
        show_table(
            head, [(key.id, key.name, _roles(key), key.created, key.expires, _state(key)) for key in keys]
        )
        for key in keys:
            if _state(key) == "pending":
                waiting = ", ".join(sorted(key.pending_roles))
                note(f"Key {key.id} waits for {waiting} until {cell(key.pending_until)}: sluice keys approve")


@commands.command(epilog="Example:\n\n\b\n  sluice keys revoke 0a1b2c3d")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Revoke a key now. Other processes notice within five seconds."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    confirm(f"Revoke key {key_id}?", yes=yes)
    ended = on_host(lambda host: host.access.revoke_key(caller_for(SYSTEM_TENANT), key_id))
    print(f"Key {ended.id} of tenant {ended.tenant} is revoked.")


@commands.command(
    epilog="""Example:

\b
  sluice keys approve 0a1b2c3d

On a host that is a decision of whoever has access to the database; custodians without it approve over REST:
POST /api/v1/keys/0a1b2c3d/approve."""
)
def approve(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
) -> None:
    """Let a key restore that a key custodian made or rotated, before its delay has passed."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    approved = on_host(lambda host: host.access.approve_key(caller_for(SYSTEM_TENANT), key_id))
    print(f"Key {approved.id} of tenant {approved.tenant} has its roles now: {_roles(approved)}.")


@commands.command(
    epilog="""Examples:

\b
  sluice keys rotate 0a1b2c3d                 both secrets work for a day
  sluice keys rotate 0a1b2c3d --overlap 0s    the old secret ends now"""
)
def rotate(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
    overlap: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="How long the old secret still works [default: 24h]."
        ),
    ] = None,
) -> None:
    """Give a key a new secret and print it. It is shown only once."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.access.access import DEFAULT_OVERLAP_S

    seconds = DEFAULT_OVERLAP_S if overlap is None else overlap.total_seconds()
    made = on_host(lambda host: host.access.rotate_key(caller_for(SYSTEM_TENANT), key_id, overlap_s=seconds))
    until = made.info.rotating_until
    note(
        "The old secret no longer works."
        if until is None
        else f"The old secret works until {until:%Y-%m-%dT%H:%M:%SZ}."
    )
    print(made.key)


def _roles(info: "KeyInfo") -> str:
    return ",".join(sorted(info.roles))


def _state(info: "KeyInfo") -> str:
    return info.state(datetime.now(UTC))


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
        "pending_roles": sorted(info.pending_roles),
        "pending_until": info.pending_until,
        "pending_by": info.pending_by,
    }
