"""``sluice keys``: administer API keys, on the host or at a service."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import cell, note, show_json, show_table, show_text
from app.cli.times import duration, moment_ahead

if TYPE_CHECKING:
    from app.api.access.keys import KeyAnswer, NewKeyAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.access import Caller
    from app.services.access.access import NewKey
    from app.store.access.access import KeyInfo

commands = typer.Typer(
    help="Create, list, approve, revoke and rotate API keys. Every change is recorded in the audit log.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/keys"
ROLES = "invoker, restorer, auditor, eraser, operator, key-custodian, delegate, provisioner"


@commands.command(
    epilog="""Examples:

\b
  sluice keys create --role invoker --name chat-backend
  sluice keys create --role restorer --role invoker --tenant acme --expires 90d --cidr 10.0.0.0/8
  KEY=$(sluice keys create --role auditor)
  sluice keys create --role invoker --url https://sluice.example.com

Only the key goes to standard output; messages go to standard error."""
)
@placed("named")
def create(
    target: CommandTarget,
    role: Annotated[list[str], typer.Option(help=f"Role of the key: {ROLES}. Repeatable.")],
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
    body = {
        "roles": role,
        "tenant": target.tenant,
        "name": name,
        "expires": expires.isoformat() if expires else None,
        "cidrs": cidr or [],
        "override_unions": override_unions,
    }

    async def made(host: "Services") -> "NewKeyAnswer":
        new = await host.access.create_key(
            _host(),
            role,
            tenant=target.here,
            name=name,
            expires=expires,
            cidrs=cidr or [],
            override_unions=override_unions,
        )
        return _shown(new, host)

    created = target.do(made, lambda service: _new(service.ask("POST", _PATH, body)), begins=True)
    note(f"Key {created.id} of tenant {created.tenant} ({_roles(created)}); it is shown only once:")
    _tell_pending(created)
    show_text(created.key)


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice keys list\n  sluice keys list --tenant acme --json"
)
@placed("named")
def list_(
    target: CommandTarget, *, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the keys of a tenant. Secrets are not stored and cannot be shown."""

    async def here(host: "Services") -> "list[KeyAnswer]":
        keys = await host.access.list_keys(_host(), target.here)
        return [_answer(key, host) for key in keys]

    def there(service: "ServiceCalls") -> "list[KeyAnswer]":
        return [_read(key) for key in service.pages(_PATH, tenant=target.tenant)]

    keys = target.do(here, there)
    if json:
        show_json([_described(key) for key in keys])
    else:
        head = ("ID", "NAME", "ROLES", "CREATED", "EXPIRES", "STATE")
        show_table(
            head, [(key.id, key.name, _roles(key), key.created, key.expires, key.state) for key in keys]
        )
        for key in keys:
            _tell_pending(key)


@commands.command(epilog="Example:\n\n\b\n  sluice keys revoke 0a1b2c3d")
@placed("none")
def revoke(
    target: CommandTarget,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Revoke a key now. Other processes notice within five seconds."""
    from app.cli.calls import segment

    async def here(host: "Services") -> "KeyAnswer":
        return _answer(await host.access.revoke_key(_host(), key_id), host)

    target.confirm(f"Revoke key {key_id}?", yes=yes)
    ended = target.do(here, lambda service: _read(service.ask("DELETE", f"{_PATH}/{segment(key_id)}")))
    show_text(f"Key {ended.id} of tenant {ended.tenant} is revoked.")


@commands.command(
    epilog="""Example:

\b
  sluice keys approve 0a1b2c3d

On a host that is a decision of whoever has access to the database; custodians without it approve at the service,
with --url."""
)
@placed("none")
def approve(
    target: CommandTarget,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
) -> None:
    """Let a key restore that a key custodian made or rotated, before its delay has passed."""
    from app.cli.calls import segment

    async def here(host: "Services") -> "KeyAnswer":
        return _answer(await host.access.approve_key(_host(), key_id), host)

    path = f"{_PATH}/{{}}/approve"
    approved = target.do(here, lambda service: _read(service.ask("POST", path.format(segment(key_id)))))
    show_text(f"Key {approved.id} of tenant {approved.tenant} has its roles now: {_roles(approved)}.")


@commands.command(
    epilog="""Examples:

\b
  sluice keys rotate 0a1b2c3d                 both secrets work for a day
  sluice keys rotate 0a1b2c3d --overlap 0s    the old secret ends now"""
)
@placed("none")
def rotate(
    target: CommandTarget,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The eight hexadecimal digits after slc_.")],
    overlap: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="How long the old secret still works [default: 24h]."
        ),
    ] = None,
) -> None:
    """Give a key a new secret and print it. It is shown only once."""
    from app.cli.calls import segment
    from app.services.access.access import DEFAULT_OVERLAP_S

    seconds = DEFAULT_OVERLAP_S if overlap is None else overlap.total_seconds()
    path = f"{_PATH}/{{}}/rotate"

    async def here(host: "Services") -> "NewKeyAnswer":
        return _shown(await host.access.rotate_key(_host(), key_id, overlap_s=seconds), host)

    made = target.do(
        here,
        lambda service: _new(service.ask("POST", path.format(segment(key_id)), {"overlap_s": seconds})),
    )
    until = made.rotating_until
    note(
        "The old secret no longer works."
        if until is None
        else f"The old secret works until {until:%Y-%m-%dT%H:%M:%SZ}."
    )
    _tell_pending(made)
    show_text(made.key)


def _host() -> "Caller":
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT

    return caller_for(SYSTEM_TENANT)


def _answer(info: "KeyInfo", host: "Services") -> "KeyAnswer":
    from app.api.access.keys import key_answer

    return key_answer(info, host.access.now())


def _shown(made: "NewKey", host: "Services") -> "NewKeyAnswer":
    from app.api.access.keys import NewKeyAnswer

    return NewKeyAnswer(key=str(made.key), **_answer(made.info, host).model_dump())


def _read(answered: object) -> "KeyAnswer":
    from app.api.access.keys import KeyAnswer

    return KeyAnswer.model_validate(answered)


def _new(answered: object) -> "NewKeyAnswer":
    from app.api.access.keys import NewKeyAnswer

    return NewKeyAnswer.model_validate(answered)


def _roles(key: "KeyAnswer") -> str:
    return ",".join(key.roles)


def _tell_pending(key: "KeyAnswer") -> None:
    if key.state == "pending":
        waiting = ", ".join(key.pending_roles)
        note(f"Key {key.id} waits for {waiting} until {cell(key.pending_until)}: sluice keys approve")


def _described(key: "KeyAnswer") -> dict[str, str | Sequence[str] | datetime | None]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "roles": key.roles,
        "cidrs": key.cidrs,
        "created": key.created,
        "created_by": key.created_by,
        "expires": key.expires,
        "state": key.state,
        "pending_roles": key.pending_roles,
        "pending_until": key.pending_until,
        "pending_by": key.pending_by,
    }
