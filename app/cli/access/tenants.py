"""``sluice tenants``: administer tenants on the host or at a service."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import note, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.access.tenants import TenantAnswer
    from app.assembly import Services
    from app.core.access import Caller
    from app.store.access.tenants import Tenant

_PATH = "/api/v1/tenants"
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]

commands = typer.Typer(
    help="Create and list tenants: parties that share the service but no data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.command(
    epilog="Example:\n\n\b\n  sluice tenants create acme && sluice keys create --tenant acme --role invoker"
)
@placed("none")
def create(
    target: CommandTarget,
    name: Annotated[str, typer.Argument(help="Name of 1 to 63 lower-case letters, digits and hyphens.")],
) -> None:
    """Create a tenant. It has no keys yet."""

    async def here(host: "Services") -> "TenantAnswer":
        return _answer(await host.tenants.create(_host(), name))

    created = target.do(
        here, lambda service: _answer(service.ask("POST", _PATH, {"name": name})), begins=True
    )
    show_text(f"Tenant {created.name} is created.")
    note(f"Create a key for it: sluice keys create --tenant {created.name} --role invoker")


@commands.command("list", epilog="Example:\n\n\b\n  sluice tenants list")
@placed("none")
def list_(
    target: CommandTarget, *, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List all tenants."""

    async def here(host: "Services") -> "list[TenantAnswer]":
        return [_answer(tenant) for tenant in await host.tenants.list(_host())]

    tenants = target.do(here, lambda service: [_answer(tenant) for tenant in service.pages(_PATH)])
    if json:
        names = ("name", "created", "disabled", "erased", "emptied")
        show_json([{name: getattr(tenant, name) for name in names} for tenant in tenants])
    else:
        show_table(
            ("NAME", "CREATED", "STATE"),
            [(tenant.name, tenant.created, _state(tenant)) for tenant in tenants],
        )


@commands.command(epilog="Example:\n\n\b\n  sluice tenants disable acme && sluice tenants erase acme")
@placed("none")
def disable(target: CommandTarget, name: Annotated[str, typer.Argument(help="Name of the tenant.")]) -> None:
    """Refuse all keys of a tenant; its data stays."""
    from app.cli.calls import segment

    async def here(host: "Services") -> None:
        await host.tenants.disable(_host(), name)

    body = {"disabled": True}
    target.do(here, lambda service: _done(service.ask("PATCH", f"{_PATH}/{segment(name)}", body)))
    show_text(f"Tenant {name} is disabled.")


@commands.command(epilog="Example:\n\n\b\n  sluice tenants erase acme")
@placed("none")
def erase(
    target: CommandTarget,
    name: Annotated[str, typer.Argument(help="Name of the tenant.")],
    *,
    yes: Yes = False,
) -> None:
    """Delete all that a disabled tenant has, permanently; its name and its record stay.

    docs/data-handling.md explains what erasure means on disks and in backups. A service does it in the background.
    """
    from app.cli.calls import segment

    async def here(host: "Services") -> dict[str, int] | None:
        await host.tenant_erasure.erase(_host(), name)
        return await host.tenant_erasure.empty(lambda table, rows: note(f"{table}: {rows} rows deleted"))

    target.confirm(f"Erase tenant {name} with all its keys, scopes, servers and documents?", yes=yes)
    deleted = target.do(here, lambda service: _done(service.ask("DELETE", f"{_PATH}/{segment(name)}")))
    if deleted is None:
        show_text(f"The erasure of tenant {name} is ordered.")
        note("The service begins within a minute; `sluice tenants list` says when it is done.")
        return
    show_text(f"Tenant {name} is erased: {sum(deleted.values())} rows deleted.")
    note("The service looks again for ten minutes, for what requests stored that were under way.")


def _host() -> "Caller":
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT

    return caller_for(SYSTEM_TENANT)


def _answer(tenant: "Tenant | dict[str, object]") -> "TenantAnswer":
    from app.api.access.tenants import TenantAnswer

    return TenantAnswer.model_validate(tenant)


def _done(answered: "dict[str, object]") -> None:
    """Take the answer to a change: it must be that of a tenant."""
    _answer(answered)


def _state(tenant: "TenantAnswer") -> str:
    if tenant.emptied or tenant.erased:
        return "erased" if tenant.emptied else "being erased"
    return "disabled" if tenant.disabled else "open"
