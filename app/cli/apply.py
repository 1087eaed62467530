"""``sluice apply``: bring a tenant to what a declarative file says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import note, show_json

if TYPE_CHECKING:
    from app.services.declare.declarations import DeclarationPlan

EPILOG = """Examples:

\b
  sluice apply servers.json --dry-run
  sluice apply deploy/sluice.yaml --tenant acme

The file has `mcpServers` as MCP hosts write it; beside it groups, concerns, concernMappings, toolFilter, aliases,
disclosure and pipelines. Running services follow at once. docs/declarative-file.md describes all of it."""

_SIGNS = {"add": "+", "change": "~", "remove": "-"}


def apply(
    file: Annotated[Path, typer.Argument(help="JSON or YAML.", show_default=False)],
    tenant: Annotated[
        str | None, typer.Option(help="Tenant [SLUICE_UPSTREAMS__TENANT; default: default].")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, change nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Apply a declarative file: servers, groups, concerns and their mappings, pipelines, all or nothing.

    What an earlier file had and this one has not is removed; what was made over REST stays.
    """
    from app.cli.host import caller_for, on_host
    from app.services.declare.declaration_files import read_file

    read = read_file(file)
    plan = on_host(
        lambda services: services.declarations.apply(
            caller_for(tenant or services.settings.upstreams.tenant), read, dry_run=dry_run
        )
    )
    for warning in plan.warnings:
        note(f"Warning: {warning}")
    if json:
        changes = [{"action": one.action, "kind": one.kind, "name": one.name} for one in plan.changes]
        show_json({"applied": not dry_run, "changes": changes, "unchanged": plan.unchanged})
    else:
        print("\n".join(told(plan, dry_run=dry_run)))


def told(plan: "DeclarationPlan", *, dry_run: bool) -> list[str]:
    """Return the plan in lines for people."""
    lines = [f"{_SIGNS[one.action]} {one.kind} {one.name}" for one in plan.changes]
    if not plan.changes:
        return [f"Nothing to change: {plan.unchanged} things are as the file says."]
    done = "would change" if dry_run else "changed"
    return [*lines, f"{len(plan.changes)} {done}, {plan.unchanged} are as the file says."]
