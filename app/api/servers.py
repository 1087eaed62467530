"""The MCP servers of a tenant over REST: added, tried out, approved, paused and removed."""

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Body, CursorQuery, LimitQuery, Page, answer_page
from app.api.server_answers import (
    ApprovalAnswer,
    ServerAnswer,
    ServerDetailAnswer,
    TrialAnswer,
    approval_answer,
    detail_answer,
    server_answer,
    trial_answer,
)
from app.core.catalog.primitives import Disclosure, PrimitiveKind
from app.core.catalog.servers import SECRET_FIELDS, SERVER_NAME, MCPServerSettings, ServerName
from app.services.servers.approval import WantedDefinition
from app.services.servers.sealing import SubmittedServer

_MAX_TOOLS: Final = 2048
_MAX_PRIMITIVES: Final = 10_000
_EXAMPLE: Final[dict[str, Any]] = {
    "name": "github",
    "settings": {
        "type": "http",
        "url": "https://mcp.acme.example/mcp",
        "headers": {"Authorization": "Bearer secret"},
        "description": "Issues and pull requests",
    },
    "toolFilter": ["list_issues", "get_issue"],
    "aliases": {"issues": "list_issues"},
    "disclosure": "flat",
}

router = new_router("/servers", "servers")


def _settings_schema() -> dict[str, Any]:
    """Return the schema of settings as they may be given: a secret may be null, which keeps what is stored."""
    schema = MCPServerSettings.model_json_schema()
    for part in SECRET_FIELDS:
        schema["properties"][part] = {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                {"type": "null"},
            ],
            "description": "Secret: never shown again. A value of null, or no object at all, keeps what is stored.",
        }
    return schema


SettingsField = Annotated[dict[str, Any], WithJsonSchema(_settings_schema())]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ServerPath = Annotated[
    str, Path(pattern=rf"^{SERVER_NAME.pattern}$", description="Name of a server.", examples=["github"])
]


class ServerChange(Body):
    """All settings of a server; what is left out has its default, but secrets stay."""

    model_config = ConfigDict(
        populate_by_name=True,
        json_schema_extra={"examples": [{key: _EXAMPLE[key] for key in _EXAMPLE if key != "name"}]},
    )

    settings: SettingsField = Field(
        repr=False, description="An entry of `mcpServers`, as MCP hosts have it: docs/servers.md."
    )
    tool_filter: list[ToolName] | None = Field(
        default=None,
        alias="toolFilter",
        max_length=_MAX_TOOLS,
        description="Tools to expose, as the server names them: null all, [] none, all with a `-` in front: all but.",
    )
    aliases: dict[ToolName, ToolName] = Field(
        default={},
        max_length=_MAX_TOOLS,
        description="Exposed names of tools: `{alias: the server's own name}`.",
    )
    disclosure: Disclosure = Field(
        default="flat", description="`staged`: tools are listed briefly and described when asked."
    )

    def given(self) -> SubmittedServer:
        """Return what the service takes."""
        return SubmittedServer(self.settings, self.tool_filter, self.aliases, self.disclosure)


class ServerBody(ServerChange):
    """A new server."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [_EXAMPLE]})

    name: ServerName = Field(description="Stands in front of its tools: `github__list_issues`.")


class WantedBody(Body):
    """A definition to approve."""

    kind: PrimitiveKind = Field(description="tool, prompt or template.")
    name: str = Field(min_length=1, max_length=2048, description="As the server itself calls it.")
    digest: Digest | None = Field(default=None, description="Approve it in this form only; else 409.")

    def wanted(self) -> WantedDefinition:
        """Return what the service takes."""
        return WantedDefinition(self.kind, self.name, self.digest)


class ApprovalBody(Body):
    """What to approve; without a body all that the server offers now."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"primitives": [{"kind": "tool", "name": "list_issues"}]}]}
    )

    primitives: list[WantedBody] | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_PRIMITIVES,
        description="Only these definitions; the others stay as they are.",
    )
    listing: Digest | None = Field(
        default=None,
        description="`listing` of a test: refuse (409) when the server offers something else now.",
    )


@router.get("", summary="List servers")
async def list_servers(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[ServerAnswer]:
    """By name, with the state of each connection; needs the role operator."""
    servers = await services.servers.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(
        servers,
        limit,
        lambda server: server_answer(server, services.upstreams),
        lambda server: server.entry.name,
    )


@router.post("", status_code=201, summary="Add a server")
async def add_server(
    body: ServerBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Store a server, which serves nothing until it is approved; needs the role operator.

    It may lie at a public address, or in a network that SLUICE_UPSTREAMS__ALLOWED_NETWORKS names.
    """
    known = await services.servers.add(caller, body.name, body.given(), info)
    return server_answer(known, services.upstreams)


@router.get("/{name}", summary="Get a server and the standing of its definitions")
async def get_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerDetailAnswer:
    """Show for every definition whether it is served, and what changed where it is not; needs the role operator."""
    return detail_answer(await services.servers.get(caller, name, info), services.upstreams)


@router.put("/{name}", summary="Change a server")
async def put_server(
    name: ServerPath, body: ServerChange, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Replace the settings; another address, command, environment or header waits for approval again.

    Secrets that are not repeated stay, unless the address or the command changes: then they must be given again.
    """
    known = await services.servers.put(caller, name, body.given(), info)
    return server_answer(known, services.upstreams)


@router.delete("/{name}", status_code=204, summary="Remove a server")
async def remove_server(name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep) -> None:
    """Forget the server, its secrets and what was approved of it; needs the role operator."""
    await services.servers.remove(caller, name, info)


@router.post("/{name}/test", summary="Connect to a server once")
async def test_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TrialAnswer:
    """Connect, list, leave, and tell what was found; a server that cannot be listed is `ready: false`."""
    return trial_answer(await services.servers.test(caller, name, info))


@router.post("/{name}/approve", summary="Approve what a server offers")
async def approve_server(
    name: ServerPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    body: ApprovalBody | None = None,
) -> ApprovalAnswer:
    """Connect, list and pin every definition, or the named ones, and serve them from now on.

    A tool that would copy free text into HTTP headers is never approved. Needs the role operator.
    """
    asked = body or ApprovalBody()
    wanted = None if asked.primitives is None else [one.wanted() for one in asked.primitives]
    return approval_answer(await services.servers.approve(caller, name, wanted, info, listing=asked.listing))


@router.post("/{name}/pause", summary="Pause a server")
async def pause_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Serve nothing of it until it is resumed; again is harmless. Needs the role operator."""
    known = await services.servers.pause(caller, name, info)
    return server_answer(known, services.upstreams)


@router.post("/{name}/resume", summary="Resume a paused server")
async def resume_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Serve it as before, or wait for its first approval; needs the role operator."""
    known = await services.servers.resume(caller, name, info)
    return server_answer(known, services.upstreams)
