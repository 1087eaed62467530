"""``sluice concerns``: read concerns and their mappings, on the host or at a service."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.catalog.concerns import ConcernDefinition

commands = typer.Typer(
    help="List and show concerns: properties by which hosts filter tools, prompts and resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/concerns"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class ListedConcern(NamedTuple):
    """A concern, and who manages it."""

    definition: "ConcernDefinition"
    origin: str


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice concerns list\n  sluice concerns list --tenant acme --json"
)
@placed()
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List the concerns of a tenant by name."""
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> list[ListedConcern]:
        caller = await tenant_caller(host, target.here)
        return [ListedConcern(each.definition, each.origin) for each in await host.concerns.list(caller)]

    concerns = target.do(here, lambda service: [_listed(each) for each in service.pages(_PATH)])
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
@placed()
def show(
    target: CommandTarget,
    name: Annotated[str, typer.Argument(help="Name of the concern.")],
    *,
    json: Json = False,
) -> None:
    """Show a concern and the primitives mapped to it."""
    from app.cli.calls import segment
    from app.cli.host import tenant_caller
    from app.core.catalog.concerns import ConcernMapping

    async def here(host: "Services") -> tuple[ListedConcern, list[ConcernMapping]]:
        caller = await tenant_caller(host, target.here)
        concern = await host.concerns.get(caller, name)
        mappings = await host.concerns.mappings(caller)
        return ListedConcern(concern.definition, concern.origin), [each.mapping for each in mappings]

    def there(service: "ServiceCalls") -> tuple[ListedConcern, list[ConcernMapping]]:
        concern = _listed(service.ask("GET", f"{_PATH}/{segment(name)}"))
        mappings = service.pages("/api/v1/concern-mappings")
        return concern, [ConcernMapping.model_validate(each["mapping"]) for each in mappings]

    concern, mappings = target.do(here, there)
    mapped = [mapping for mapping in mappings if name in mapping.concerns]
    definition = concern.definition
    if json:
        shown = [mapping.model_dump(mode="json") for mapping in mapped]
        show_json({"concern": definition.model_dump(mode="json"), "mappings": shown})
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


def _listed(answered: dict[str, Any]) -> ListedConcern:
    from app.core.catalog.concerns import ConcernDefinition

    return ListedConcern(ConcernDefinition.model_validate(answered["concern"]), answered["origin"])


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
