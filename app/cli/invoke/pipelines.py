"""``sluice pipelines``: read, change and try pipelines on the host."""

import json as json_module
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.cli.invoke.invoke import parsed_items, read_arguments, read_input
from app.cli.terminal import USAGE, confirm, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.core.access import Caller
    from app.core.contracts.pipelines import Pipeline

T = TypeVar("T")

commands = typer.Typer(
    help="List, show, store, delete and run pipelines of middlewares.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="Name of the pipeline.")]
Expected = Annotated[
    int | None,
    typer.Option(help="Refuse the change unless this is the current version; 0: no pipeline exists."),
]


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice pipelines list\n  sluice pipelines list --tenant acme --json"
)
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List the pipelines of a tenant by name."""
    versions = _in_tenant(tenant, lambda services, caller: services.pipelines.list(caller))
    if json:
        show_json([{**version.pipeline.declared(), "version": version.version} for version in versions])
        return
    show_table(
        ("NAME", "VERSION", "PHASE", "STEPS", "FROM"),
        [
            (
                version.pipeline.name,
                version.version,
                version.pipeline.phase,
                " > ".join(step.name for step in version.pipeline.steps),
                version.origin,
            )
            for version in versions
        ],
    )


@commands.command(
    epilog="Examples:\n\n\b\n  sluice pipelines show to_model\n  sluice pipelines show to_model > p.yaml"
)
def show(name: Name, tenant: Tenant = "default", *, json: Json = False) -> None:
    """Show a pipeline in the form that `put` and the declarative file accept."""
    from app.services.data_files import write_document

    version = _in_tenant(tenant, lambda services, caller: services.pipelines.get(caller, name))
    if json:
        show_json(version.pipeline.declared())
        return
    print(write_document(version.pipeline.declared(), "yaml"), end="")
    note(f"Version {version.version}, from {version.origin}.")


@commands.command(
    epilog="""Examples:

\b
  sluice pipelines put to_model.yaml
  sluice pipelines put - --expected-version 3 < to_model.yaml"""
)
def put(
    file: Annotated[str, typer.Argument(help="A .yaml, .yml or .json file; - is standard input (YAML).")],
    tenant: Tenant = "default",
    expected_version: Expected = None,
) -> None:
    """Store a pipeline as its next version. Every process uses it at once."""
    from app.core.errors import ServiceError

    pipeline = _read(file)
    try:
        stored = _in_tenant(
            tenant,
            lambda services, caller: services.pipelines.put(
                caller, pipeline, expected_version=expected_version
            ),
            begins=True,
        )
    except ServiceError as error:
        place = error.details.get("pointer")
        fail(f"{file}: {error.message}" + (f" (at {place})" if place else ""))
    note(f"{pipeline.name} is stored as version {stored.version}.")


@commands.command(epilog="Example:\n\n\b\n  sluice pipelines delete to_model --yes")
def delete(
    name: Name,
    tenant: Tenant = "default",
    expected_version: Expected = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Delete a pipeline. Its versions stay in the history."""
    confirm(f"Delete the pipeline {name}? Calls to it will then fail.", yes=yes)
    _in_tenant(
        tenant,
        lambda services, caller: services.pipelines.delete(caller, name, expected_version=expected_version),
    )
    note(f"{name} is deleted.")


@commands.command(
    epilog="""Examples:

\b
  echo "Mail Jane Smith." | sluice pipelines run to_model --dry-run
  sluice pipelines run to_model context.json --dry-run --json
  sluice pipelines run from_model answer.txt --scope talk-1"""
)
def run(
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="File to read; - is standard input.", show_default=False)
    ] = "-",
    tenant: Tenant = "default",
    arguments: Annotated[str | None, typer.Option(help="All arguments as one JSON object.")] = None,
    scope: Annotated[str | None, typer.Option(help="Name of the vault scope.")] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what each step changes without storing anything.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print content and metadata as JSON.")] = False,
) -> None:
    """Run a pipeline on this host on a text or a context."""
    values = read_arguments(arguments, [], scope) | ({"dryRun": True} if dry_run else {})
    raw = read_input(file)
    items = parsed_items(raw, required=False)
    content = [{"type": "text", "text": raw.removesuffix("\n")}] if items is None else items
    result = _in_tenant(
        tenant, lambda services, caller: services.invoke.invoke(caller, name, values, content, _request())
    )
    if json:
        show_json({"content": result.content, "metadata": result.metadata})
        return
    for step in result.metadata["steps"]:
        note(f"{step['name']}: {step['outcome']}, {step['durationMs']:.1f} ms")
        for change in step.get("changes", []):
            note(f"  - {_line(change['before'])}\n  + {_line(change['after'])}")
        for item in step.get("added", []):
            note(f"  + {_line(item)}")
    if items is None:
        print("\n".join(str(item["text"]) for item in result.content if item.get("type") == "text"))
    else:
        show_json(result.content)


def _request() -> Any:
    import math
    from uuid import uuid4

    from app.core.request import RequestInfo

    return RequestInfo(request_id=str(uuid4()), traceparent=None, address=None, deadline=math.inf)


def _line(item: Any) -> str:
    return json_module.dumps(item, ensure_ascii=False)


def _read(file: str) -> "Pipeline":
    from pydantic import ValidationError

    from app.core.contracts.pipelines import Pipeline
    from app.services.data_files import read_document

    if file != "-" and not file.lower().endswith((".json", ".yaml", ".yml")):
        fail("The file name must end in .yaml, .yml or .json.", USAGE)
    body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    value = read_document(body, "json" if file.lower().endswith(".json") else "yaml")
    try:
        return Pipeline.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        fail(f"{file}: {first['msg']} (at /{'/'.join(map(str, first['loc']))})")


def _in_tenant(
    tenant: str, work: Callable[["Services", "Caller"], Awaitable[T]], *, begins: bool = False
) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must exist; ``begins`` as in ``on_host``."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def worked(host: "Services") -> T:
        await host.tenants.get(caller_for(SYSTEM_TENANT), tenant)
        return await work(host, caller_for(tenant))

    return on_host(worked, begins=begins)
