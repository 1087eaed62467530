"""``sluice concerns``: concerns and what primitives are mapped to, read on the host."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.cli.terminal import note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.core.access import Caller
    from app.core.catalog.concerns import ConcernDefinition
    from app.services.catalog.concerns import ConcernService

T = TypeVar("T")

commands = typer.Typer(
    help="List and show concerns: what hosts may ask of tools, prompts and resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Whose concerns.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice concerns list\n  sluice concerns list --tenant acme --json"
)
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List the concerns of a tenant by name."""
    found = _in_tenant(tenant, lambda concerns, caller: concerns.list(caller))
    if json:
        show_json([one.definition.model_dump(mode="json") for one in found])
        return
    show_table(
        ("NAME", "VALUES", "DEFAULT", "ON INVALID", "FROM"),
        [
            (
                *(one.definition.name, _values(one.definition), _spelled(one.definition.default)),
                *(one.definition.on_invalid, one.origin),
            )
            for one in found
        ],
    )


@commands.command(epilog="Example:\n\n\b\n  sluice concerns show security")
def show(
    name: Annotated[str, typer.Argument(help="Name of the concern.")],
    tenant: Tenant = "default",
    *,
    json: Json = False,
) -> None:
    """Show one concern and what is mapped to it."""

    async def read(concerns: "ConcernService", caller: "Caller") -> tuple[Any, list[Any]]:
        found = await concerns.get(caller, name)
        mapped = [one.mapping for one in await concerns.mappings(caller) if name in one.mapping.concerns]
        return found, mapped

    found, mapped = _in_tenant(tenant, read)
    definition = found.definition
    if json:
        mappings = [one.model_dump(mode="json") for one in mapped]
        show_json({"concern": definition.model_dump(mode="json"), "mappings": mappings})
        return
    for label, value in (
        ("Name", name),
        ("Description", definition.description),
        ("Values", _values(definition)),
        ("Default", _spelled(definition.default)),
        ("On invalid", definition.on_invalid),
        ("From", found.origin),
    ):
        print(f"{label}: {value}")
    if not mapped:
        note("Nothing is mapped to it.")
        return
    print()
    rows = [(one.kind, one.name, _mapped(one.concerns[name])) for one in mapped]
    show_table(("KIND", "NAME", "ANSWERS TO"), rows)


def _in_tenant(tenant: str, work: Callable[["ConcernService", "Caller"], Awaitable[T]]) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must be there."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def worked(host: "Services") -> T:
        await host.tenants.get(caller_for(SYSTEM_TENANT), tenant)
        return await work(host.concerns, caller_for(tenant))

    return on_host(worked)


def _values(definition: "ConcernDefinition") -> str:
    return _mapped(definition.model_dump(mode="json")["values"])


def _mapped(value: Any) -> str:
    """Return a list as its parts, a range as its ends, anything else as it is."""
    if isinstance(value, list):
        return ", ".join(_spelled(one) for one in value)
    if isinstance(value, dict):
        ends = " to ".join(_spelled(value[end]) if end in value else "any" for end in ("min", "max"))
        return f"{ends}, step {value['step']}" if "step" in value else ends
    return _spelled(value)


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
