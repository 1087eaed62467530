"""``sluice tenants``: administer tenants on the host."""

from typing import Annotated

import typer

from app.cli.terminal import note, show_json, show_table

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
                {"name": tenant.name, "created": tenant.created, "disabled": tenant.disabled}
                for tenant in tenants
            ]
        )
    else:
        show_table(
            ("NAME", "CREATED", "STATE"),
            [(tenant.name, tenant.created, "disabled" if tenant.disabled else "open") for tenant in tenants],
        )
