"""``sluice groups``: read and import groups of primitives on the host."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from app.cli.terminal import USAGE, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.core.access import Caller
    from app.services.catalog.group_changes import GroupPlan
    from app.services.catalog.groups import GroupService

T = TypeVar("T")

commands = typer.Typer(
    help="List, show, export and import groups of tools, prompts and resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Literal["yaml", "json"]


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice groups list\n  sluice groups list --tenant acme --json"
)
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List the groups of a tenant by name."""
    groups = _in_tenant(tenant, lambda groups, caller: groups.list(caller))
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
def show(
    name: Annotated[str, typer.Argument(help="Name of the group.")],
    tenant: Tenant = "default",
    *,
    json: Json = False,
) -> None:
    """Show one group with its members."""
    group = _in_tenant(tenant, lambda groups, caller: groups.get(caller, name))
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
def export(
    tenant: Tenant = "default",
    form: Annotated[Format, typer.Option("--format", help="Output format of the document.")] = "yaml",
    output: Annotated[
        Path | None, typer.Option(help="Write to this file [default: standard output].")
    ] = None,
) -> None:
    """Export all groups of a tenant as one document that `import` and the declarative file accept."""
    from app.services.data_files import write_document

    document = write_document(_in_tenant(tenant, lambda groups, caller: groups.export(caller)), form)
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
def import_(
    file: Annotated[str, typer.Argument(help="A .yaml, .yml or .json file; - is standard input (YAML).")],
    tenant: Tenant = "default",
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
    from app.core.errors import ServiceError

    form: Format = "json" if file.lower().endswith(".json") else "yaml"
    if file != "-" and not file.lower().endswith((".json", ".yaml", ".yml")):
        fail("The file name must end in .yaml, .yml or .json.", USAGE)
    body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        plan = _in_tenant(
            tenant,
            lambda groups, caller: groups.import_document(caller, body, form, dry_run=dry_run, prune=prune),
            begins=not dry_run,
        )
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


def _in_tenant(
    tenant: str, work: Callable[["GroupService", "Caller"], Awaitable[T]], *, begins: bool = False
) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must exist; ``begins`` as in ``on_host``."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def worked(host: "Services") -> T:
        await host.tenants.get(caller_for(SYSTEM_TENANT), tenant)
        host.groups.catalog = None  # without connections, a command cannot check what the servers offer
        return await work(host.groups, caller_for(tenant))

    return on_host(worked, begins=begins)


def _show_plan(plan: "GroupPlan", *, dry_run: bool) -> None:
    for sign, names in (("+", plan.created), ("~", plan.updated), ("-", plan.removed)):
        for name in names:
            print(f"{sign} {name}")
    for sentence in plan.warnings:
        note(f"Note: {sentence}")
    if not plan.changes:
        note("Nothing changes.")
    elif dry_run:
        note("Dry run: nothing was changed.")
