"""``sluice groups``: read and import groups of primitives, on the host or at a service."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import USAGE, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.api.catalog.groups import GroupPlanAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.access import Caller
    from app.core.catalog.groups import GroupDefinition
    from app.services.catalog.groups import GroupInfo

commands = typer.Typer(
    help="List, show, export and import groups of tools, prompts and resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/groups"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Literal["yaml", "json"]


class ListedGroup(NamedTuple):
    """A group, the groups that it is in, and who manages it."""

    definition: "GroupDefinition"
    parents: tuple[str, ...]
    origin: str


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice groups list\n  sluice groups list --tenant acme --json"
)
@placed()
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List the groups of a tenant by name."""

    async def here(host: "Services") -> list[ListedGroup]:
        return [_of_host(group) for group in await host.groups.list(await _caller(host, target))]

    groups = target.do(here, lambda service: [_listed(each) for each in service.pages(_PATH)])
    if json:
        show_json([group.definition.declared() for group in groups])
        return
    show_table(
        ("NAME", "TITLE", "MEMBERS", "IN", "FROM"),
        [
            (
                group.definition.name,
                group.definition.title,
                len(group.definition.distinct),
                ", ".join(group.parents),
                group.origin,
            )
            for group in groups
        ],
    )


@commands.command(epilog="Example:\n\n\b\n  sluice groups show email")
@placed()
def show(
    target: CommandTarget,
    name: Annotated[str, typer.Argument(help="Name of the group.")],
    *,
    json: Json = False,
) -> None:
    """Show one group with its members."""
    from app.cli.calls import segment

    async def here(host: "Services") -> ListedGroup:
        return _of_host(await host.groups.get(await _caller(host, target), name))

    group = target.do(here, lambda service: _listed(service.ask("GET", f"{_PATH}/{segment(name)}")))
    if json:
        show_json(group.definition.declared())
        return
    definition = group.definition
    for label, value in (
        ("Name", name),
        ("Title", definition.title),
        ("Description", definition.description),
        ("In groups", ", ".join(group.parents)),
        ("From", group.origin),
    ):
        if value:
            print(f"{label}: {value}")
    if not definition.members:
        note("It has no members.")
        return
    print()
    show_table(
        ("KIND", "NAME", "SERVER"),
        [(member.kind, member.name, member.server) for member in definition.distinct],
    )


@commands.command(
    epilog="""Examples:

\b
  sluice groups export > groups.yaml
  sluice groups export --format json --output groups.json"""
)
@placed()
def export(
    target: CommandTarget,
    form: Annotated[Format, typer.Option("--format", help="Output format of the document.")] = "yaml",
    output: Annotated[
        Path | None, typer.Option(help="Write to this file [default: standard output].")
    ] = None,
) -> None:
    """Export all groups of a tenant as one document that `import` and the declarative file accept."""
    from app.services.data_files import write_document

    async def here(host: "Services") -> str:
        return write_document(await host.groups.export(await _caller(host, target)), form)

    document = target.do(here, lambda service: service.text(f"{_PATH}/export", format=form))
    if output is None:
        print(document, end="")
    else:
        output.write_text(document, encoding="utf-8")
        note(f"Written to {output}.")


@commands.command(
    "import",
    epilog="""Examples:

\b
  sluice groups import groups.yaml --dry-run      show what would change
  sluice groups import groups.yaml --prune        remove all other groups
  sluice groups export --tenant a | sluice groups import - --tenant b""",
)
@placed()
def import_(
    target: CommandTarget,
    file: Annotated[str, typer.Argument(help="A .yaml, .yml or .json file; - is standard input (YAML).")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without changing it.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove the groups that the file does not name.")
    ] = False,
    json: Json = False,
) -> None:
    """Create and replace groups from a document, all or none. Importing it again changes nothing."""
    from app.api.catalog.groups import GroupPlanAnswer
    from app.core.errors import ServiceError

    form: Format = "json" if file.lower().endswith(".json") else "yaml"
    if file != "-" and not file.lower().endswith((".json", ".yaml", ".yml")):
        fail("The file name must end in .yaml, .yml or .json.", USAGE)
    body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()

    async def here(host: "Services") -> "GroupPlanAnswer":
        caller = await _caller(host, target)
        plan = await host.groups.import_document(caller, body, form, dry_run=dry_run, prune=prune)
        return GroupPlanAnswer.model_validate(plan)

    def there(service: "ServiceCalls") -> "GroupPlanAnswer":
        path, media_type = f"{_PATH}/import", f"application/{form}"
        plan = service.send("POST", path, body, media_type, dry_run=dry_run, prune=prune)
        return GroupPlanAnswer.model_validate(plan)

    try:
        plan = target.do(here, there, begins=not dry_run)
    except ServiceError as error:
        place = error.details.get("pointer")
        fail(f"{file}: {error.message}" + (f" (at {place})" if place else ""))
    if json:
        show_json(
            {
                "created": plan.created,
                "updated": plan.updated,
                "removed": plan.removed,
                "unchanged": plan.unchanged,
                "warnings": plan.warnings,
            }
        )
        return
    _show_plan(plan, dry_run=dry_run)


async def _caller(host: "Services", target: CommandTarget) -> "Caller":
    from app.cli.host import tenant_caller

    host.groups.catalog = None  # without connections, a command cannot check what the servers offer
    return await tenant_caller(host, target.here)


def _of_host(group: "GroupInfo") -> ListedGroup:
    return ListedGroup(group.definition, tuple(group.parents), group.origin)


def _listed(answered: dict[str, Any]) -> ListedGroup:
    from app.core.catalog.groups import GroupDefinition

    definition = GroupDefinition.model_validate(answered["group"])
    return ListedGroup(definition, tuple(answered["parents"]), answered["origin"])


def _show_plan(plan: "GroupPlanAnswer", *, dry_run: bool) -> None:
    for sign, names in (("+", plan.created), ("~", plan.updated), ("-", plan.removed)):
        for name in names:
            print(f"{sign} {name}")
    for sentence in plan.warnings:
        note(f"Note: {sentence}")
    if not (plan.created or plan.updated or plan.removed):
        note("Nothing changes.")
    elif dry_run:
        note("Dry run: nothing was changed.")
