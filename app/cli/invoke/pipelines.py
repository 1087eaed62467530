"""``sluice pipelines``: read, change and try pipelines, on the host or at a service."""

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from app.cli.invoke.invoke import parsed_items, read_arguments, read_input
from app.cli.target import CommandTarget, placed
from app.cli.terminal import USAGE, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.contracts.pipelines import Pipeline
    from app.services.invoke.pipelines import PipelineVersion

commands = typer.Typer(
    help="List, show, store, delete and run pipelines of middlewares.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/pipelines"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="Name of the pipeline.")]
Expected = Annotated[
    int | None,
    typer.Option(help="Refuse the change unless this is the current version; 0: no pipeline exists."),
]


class ListedPipeline(NamedTuple):
    """A version of a pipeline, and who manages it."""

    pipeline: "Pipeline"
    version: int
    origin: str


class PipelineAnswered(NamedTuple):
    """What a pipeline made of a context."""

    content: Any
    metadata: Any


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice pipelines list\n  sluice pipelines list --tenant acme --json"
)
@placed()
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List the pipelines of a tenant by name."""
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> list[ListedPipeline]:
        caller = await tenant_caller(host, target.here)
        return [_of_host(version) for version in await host.pipelines.list(caller)]

    versions = target.do(here, lambda service: [_listed(each) for each in service.pages(_PATH)])
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
@placed()
def show(target: CommandTarget, name: Name, *, json: Json = False) -> None:
    """Show a pipeline in the form that `put` and the declarative file accept."""
    from app.cli.host import tenant_caller
    from app.services.data_files import write_document

    async def here(host: "Services") -> ListedPipeline:
        return _of_host(await host.pipelines.get(await tenant_caller(host, target.here), name))

    version = target.do(here, lambda service: _listed(service.ask("GET", _path(name))))
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
@placed()
def put(
    target: CommandTarget,
    file: Annotated[str, typer.Argument(help="A .yaml, .yml or .json file; - is standard input (YAML).")],
    expected_version: Expected = None,
) -> None:
    """Store a pipeline as its next version. Every process uses it at once."""
    from app.cli.host import tenant_caller
    from app.core.errors import ServiceError

    pipeline = _read(file)

    async def here(host: "Services") -> int:
        caller = await tenant_caller(host, target.here)
        return (await host.pipelines.put(caller, pipeline, expected_version=expected_version)).version

    def there(service: "ServiceCalls") -> int:
        body, path = pipeline.declared(), _path(pipeline.name)
        return _listed(service.ask("PUT", path, body, expected_version=expected_version)).version

    try:
        version = target.do(here, there, begins=True)
    except ServiceError as error:
        place = error.details.get("pointer")
        fail(f"{file}: {error.message}" + (f" (at {place})" if place else ""))
    note(f"{pipeline.name} is stored as version {version}.")


@commands.command(epilog="Example:\n\n\b\n  sluice pipelines delete to_model --yes")
@placed()
def delete(
    target: CommandTarget,
    name: Name,
    expected_version: Expected = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Delete a pipeline. Its versions stay in the history."""
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> None:
        caller = await tenant_caller(host, target.here)
        await host.pipelines.delete(caller, name, expected_version=expected_version)

    target.confirm(f"Delete the pipeline {name}, so that calls to it fail?", yes=yes)
    target.do(here, lambda service: service.ask("DELETE", _path(name), expected_version=expected_version))
    note(f"{name} is deleted.")


@commands.command(
    epilog="""Examples:

\b
  echo "Mail Jane Smith." | sluice pipelines run to_model --dry-run
  sluice pipelines run to_model context.json --dry-run --json
  sluice pipelines run from_model answer.txt --scope talk-1"""
)
@placed()
def run(
    target: CommandTarget,
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="File to read; - is standard input.", show_default=False)
    ] = "-",
    arguments: Annotated[str | None, typer.Option(help="All arguments as one JSON object.")] = None,
    scope: Annotated[str | None, typer.Option(help="Name of the vault scope.")] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what each step changes without storing anything.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print content and metadata as JSON.")] = False,
) -> None:
    """Run a pipeline on a text or a context."""
    from app.cli.calls import segment
    from app.cli.host import tenant_caller

    values = read_arguments(arguments, [], scope) | ({"dryRun": True} if dry_run else {})
    raw = read_input(file)
    items = parsed_items(raw, required=False)
    content = [{"type": "text", "text": raw.removesuffix("\n")}] if items is None else items

    async def here(host: "Services") -> PipelineAnswered:
        caller = await tenant_caller(host, target.here)
        done = await host.invoke.invoke(caller, name, values, content, _request())
        return PipelineAnswered(done.content, done.metadata)

    def there(service: "ServiceCalls") -> PipelineAnswered:
        path = f"/api/v1/middleware/{segment(name)}/invoke"
        done = service.ask("POST", path, {"arguments": values, "context": content})
        return PipelineAnswered(done["content"], done["metadata"])

    result = target.do(here, there)
    if "steps" not in result.metadata:
        fail(f"{name} is a middleware and no pipeline: run it with `sluice invoke {name}`.")
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


def _path(name: str) -> str:
    from app.cli.calls import segment

    return f"{_PATH}/{segment(name)}"


def _of_host(version: "PipelineVersion") -> ListedPipeline:
    return ListedPipeline(version.pipeline, version.version, version.origin)


def _listed(answered: dict[str, Any]) -> ListedPipeline:
    from app.core.contracts.pipelines import Pipeline

    pipeline = Pipeline.model_validate(answered["pipeline"])
    return ListedPipeline(pipeline, int(answered["version"]), answered["origin"])
