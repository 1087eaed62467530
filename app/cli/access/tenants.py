"""``sluice tenants``: administer tenants on the host."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import confirm, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.store.access.tenants import Tenant

Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]

commands = typer.Typer(
    help="Create and list tenants: parties that share the service but no data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.command(
    epilog="Example:\n\n\b\n  sluice tenants create acme && sluice keys create --tenant acme --role invoker"
)
def create(
    name: Annotated[str, typer.Argument(help="Name of 1 to 63 lower-case letters, digits and hyphens.")],
) -> None:
    """Create a tenant. It has no keys yet."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    created = on_host(lambda host: host.tenants.create(caller_for(SYSTEM_TENANT), name), begins=True)
    print(f"Tenant {created.name} is created.")
    note(f"Create a key for it: sluice keys create --tenant {created.name} --role invoker")


@commands.command("list", epilog="Example:\n\n\b\n  sluice tenants list")
def list_(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all tenants."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    tenants = on_host(lambda host: host.tenants.list(caller_for(SYSTEM_TENANT)))
    if json:
        show_json(
            [
                {
                    "name": tenant.name,
                    "created": tenant.created,
                    "disabled": tenant.disabled,
                    "erased": tenant.erased,
                    "emptied": tenant.emptied,
                }
                for tenant in tenants
            ]
        )
    else:
        show_table(
            ("NAME", "CREATED", "STATE"),
            [(tenant.name, tenant.created, _state(tenant)) for tenant in tenants],
        )


@commands.command(epilog="Example:\n\n\b\n  sluice tenants disable acme && sluice tenants erase acme")
def disable(name: Annotated[str, typer.Argument(help="Name of the tenant.")]) -> None:
    """Refuse all keys of a tenant; its data stays."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    on_host(lambda host: host.tenants.disable(caller_for(SYSTEM_TENANT), name))
    print(f"Tenant {name} is disabled.")


@commands.command(epilog="Example:\n\n\b\n  sluice tenants erase acme")
def erase(name: Annotated[str, typer.Argument(help="Name of the tenant.")], *, yes: Yes = False) -> None:
    """Delete all that a disabled tenant has, permanently; its name and its record stay.

    docs/data-handling.md explains what erasure means on disks and in backups.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def work(host: "Services") -> dict[str, int]:
        await host.tenant_erasure.erase(caller_for(SYSTEM_TENANT), name)
        return await host.tenant_erasure.empty(lambda table, rows: note(f"{table}: {rows} rows deleted"))

    confirm(f"Erase tenant {name} with all its keys, scopes, servers and documents?", yes=yes)
    deleted = on_host(work)
    print(f"Tenant {name} is erased: {sum(deleted.values())} rows deleted.")
    note("The service looks again for ten minutes, for what requests stored that were under way.")


def _state(tenant: "Tenant") -> str:
    if tenant.emptied or tenant.erased:
        return "erased" if tenant.emptied else "being erased"
    return "disabled" if tenant.disabled else "open"
