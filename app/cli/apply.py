"""``sluice apply``: apply a declarative file to a tenant."""

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

The file has `mcpServers` in the form that MCP hosts use, and may have groups, concerns, concernMappings, toolFilter,
aliases, disclosure, pipelines, providers, a policy. Running services apply the changes at once. See
docs/declarative-file.md."""

_SIGNS = {"add": "+", "change": "~", "remove": "-"}


def apply(
    file: Annotated[Path, typer.Argument(help="Declarative file, JSON or YAML.", show_default=False)],
    tenant: Annotated[
        str | None, typer.Option(help="Name of the tenant [SLUICE_UPSTREAMS__TENANT; default: default].")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without changing it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Apply a declarative file as a whole: servers, groups, concerns, mappings, pipelines, providers and the policy.

    Entries of an earlier file that this file lacks are removed. What was created over REST stays.
    """
    from app.cli.host import caller_for, on_host
    from app.services.declare.declaration_files import read_file

    declaration = read_file(file)
    plan = on_host(
        lambda services: services.declarations.apply(
            caller_for(tenant or services.settings.upstreams.tenant), declaration, dry_run=dry_run
        ),
        begins=not dry_run,
    )
    for warning in plan.warnings:
        note(f"Warning: {warning}")
    if json:
        changes = [
            {"action": change.action, "kind": change.kind, "name": change.name} for change in plan.changes
        ]
        show_json({"applied": not dry_run, "changes": changes, "unchanged": plan.unchanged})
    else:
        print("\n".join(plan_lines(plan, dry_run=dry_run)))


def plan_lines(plan: "DeclarationPlan", *, dry_run: bool) -> list[str]:
    """Return the plan as readable lines."""
    lines = [f"{_SIGNS[change.action]} {change.kind} {change.name}" for change in plan.changes]
    if not plan.changes:
        return [f"Nothing to change: {plan.unchanged} entries match the file."]
    verb = "would change" if dry_run else "changed"
    return [*lines, f"{len(plan.changes)} {verb}, {plan.unchanged} match the file."]
