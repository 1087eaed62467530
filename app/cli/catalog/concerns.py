"""``sluice concerns``: read concerns and their mappings on the host."""

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
    help="List and show concerns: properties by which hosts filter tools, prompts and resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice concerns list\n  sluice concerns list --tenant acme --json"
)
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List the concerns of a tenant by name."""
    concerns = _in_tenant(tenant, lambda concerns, caller: concerns.list(caller))
    if json:
        show_json([concern.definition.model_dump(mode="json") for concern in concerns])
        return
    show_table(
        ("NAME", "VALUES", "DEFAULT", "ON INVALID", "FROM"),
        [
            (
                *(concern.definition.name, _values(concern.definition), _spelled(concern.definition.default)),
                *(concern.definition.on_invalid, concern.origin),
            )
            for concern in concerns
        ],
    )


@commands.command(epilog="Example:\n\n\b\n  sluice concerns show security")
def show(
    name: Annotated[str, typer.Argument(help="Name of the concern.")],
    tenant: Tenant = "default",
    *,
    json: Json = False,
) -> None:
    """Show a concern and the primitives mapped to it."""

    async def read(concerns: "ConcernService", caller: "Caller") -> tuple[Any, list[Any]]:
        concern = await concerns.get(caller, name)
        mappings = await concerns.mappings(caller)
        mapped = [stored.mapping for stored in mappings if name in stored.mapping.concerns]
        return concern, mapped

    concern, mapped = _in_tenant(tenant, read)
    definition = concern.definition
    if json:
        mappings = [mapping.model_dump(mode="json") for mapping in mapped]
        show_json({"concern": definition.model_dump(mode="json"), "mappings": mappings})
        return
    for label, value in (
        ("Name", name),
        ("Description", definition.description),
        ("Values", _values(definition)),
        ("Default", _spelled(definition.default)),
        ("On invalid", definition.on_invalid),
        ("From", concern.origin),
    ):
        print(f"{label}: {value}")
    if not mapped:
        note("No primitive is mapped to it.")
        return
    print()
    rows = [(mapping.kind, mapping.name, _mapped(mapping.concerns[name])) for mapping in mapped]
    show_table(("KIND", "NAME", "ANSWERS TO"), rows)


def _in_tenant(tenant: str, work: Callable[["ConcernService", "Caller"], Awaitable[T]]) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must exist."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def worked(host: "Services") -> T:
        await host.tenants.get(caller_for(SYSTEM_TENANT), tenant)
        return await work(host.concerns, caller_for(tenant))

    return on_host(worked)


def _values(definition: "ConcernDefinition") -> str:
    return _mapped(definition.model_dump(mode="json")["values"])


def _mapped(value: Any) -> str:
    """Return a list as its parts, a range as its bounds, and any other value unchanged."""
    if isinstance(value, list):
        return ", ".join(_spelled(part) for part in value)
    if isinstance(value, dict):
        ends = " to ".join(_spelled(value[end]) if end in value else "any" for end in ("min", "max"))
        return f"{ends}, step {value['step']}" if "step" in value else ends
    return _spelled(value)


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
