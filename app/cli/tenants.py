"""``sluice tenants``: tenants, administered on the host."""

from typing import Annotated

import typer

from app.cli.terminal import note, show_json, show_table

commands = typer.Typer(
    help="Make and list tenants: parties that share the service and nothing else.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.command(
    epilog="Example:\n\n\b\n  sluice tenants create acme && sluice keys create --tenant acme --role invoker"
)
def create(
    name: Annotated[str, typer.Argument(help="1 to 63 lower-case letters, digits and hyphens.")],
) -> None:
    """Make a tenant; it has no keys yet."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    made = on_host(lambda host: host.tenants.create(caller_for(SYSTEM_TENANT), name))
    print(f"Tenant {made.name} is there.")
    note(f"It needs a key: sluice keys create --tenant {made.name} --role invoker")


@commands.command("list", epilog="Example:\n\n\b\n  sluice tenants list")
def list_(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all tenants."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    found = on_host(lambda host: host.tenants.list(caller_for(SYSTEM_TENANT)))
    if json:
        show_json([{"name": one.name, "created": one.created, "disabled": one.disabled} for one in found])
    else:
        show_table(
            ("NAME", "CREATED", "STATE"),
            [(one.name, one.created, "disabled" if one.disabled else "open") for one in found],
        )
