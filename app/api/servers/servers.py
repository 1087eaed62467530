"""The MCP servers of a tenant over REST: add, test, approve, pause and remove them."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Body, CursorQuery, LimitQuery, Page, answer_page
from app.api.servers.answers import (
    ApprovalAnswer,
    ServerAnswer,
    ServerDetailAnswer,
    TrialAnswer,
    approval_answer,
    detail_answer,
    server_answer,
    trial_answer,
)
from app.core.access import Role
from app.core.catalog.primitives import Disclosure, PrimitiveKind
from app.core.catalog.servers import SECRET_FIELDS, SERVER_NAME, MCPServerSettings, ServerName
from app.edge.limits import needs
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
    """Return the schema of settings in requests: a secret may be null, which keeps the stored one."""
    schema: dict[str, Any] = MCPServerSettings.model_json_schema()
    schema = _whole(schema, schema.pop("$defs", {}))
    for part in SECRET_FIELDS:
        schema["properties"][part] = {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                {"type": "null"},
            ],
            "description": "Secret, never shown again. A null value, or no object at all, keeps the stored value.",
        }
    return schema


def _whole(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with its definitions where they are referred to: the document has no place for them."""
    if isinstance(schema, list):
        return [_whole(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _whole(part, definitions) for name, part in schema.items()}


SettingsField = Annotated[dict[str, Any], WithJsonSchema(_settings_schema())]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ServerPath = Annotated[
    str, Path(pattern=rf"^{SERVER_NAME.pattern}$", description="Name of a server.", examples=["github"])
]


class ServerChange(Body):
    """All settings of a server; omitted settings get their defaults, omitted secrets are kept."""

    model_config = ConfigDict(
        populate_by_name=True,
        json_schema_extra={"examples": [{key: _EXAMPLE[key] for key in _EXAMPLE if key != "name"}]},
    )

    settings: SettingsField = Field(
        repr=False,
        description="An entry of `mcpServers` in the form that MCP hosts use; see docs/servers.md.",
    )
    tool_filter: list[ToolName] | None = Field(
        default=None,
        alias="toolFilter",
        max_length=_MAX_TOOLS,
        description="Exposed tools, by the server's names. null: all; []: none; names with a leading `-`: all others.",
    )
    aliases: dict[ToolName, ToolName] = Field(
        default={},
        max_length=_MAX_TOOLS,
        description="Exposed names of tools: `{alias: the server's own name}`.",
    )
    disclosure: Disclosure = Field(
        default="flat",
        description="`staged`: list tools briefly and describe them on request; `flat`: list full definitions.",
    )

    def submitted(self) -> SubmittedServer:
        """Return it as an argument of the service."""
        return SubmittedServer(self.settings, self.tool_filter, self.aliases, self.disclosure)


class ServerBody(ServerChange):
    """A new server."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [_EXAMPLE]})

    name: ServerName = Field(description="Prefix of the names of its tools: `github__list_issues`.")


class WantedBody(Body):
    """A definition to approve."""

    kind: PrimitiveKind = Field(description="Kind: tool, prompt, template or instructions.")
    name: str = Field(min_length=1, max_length=2048, description="Name that the server uses.")
    digest: Digest | None = Field(
        default=None, description="Approve only the definition with this digest; otherwise 409."
    )

    def wanted(self) -> WantedDefinition:
        """Return it as an argument of the service."""
        return WantedDefinition(self.kind, self.name, self.digest)


class ApprovalBody(Body):
    """What to approve; without a body, everything that the server offers now."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"primitives": [{"kind": "tool", "name": "list_issues"}]}]}
    )

    primitives: list[WantedBody] | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_PRIMITIVES,
        description="Approve only these definitions; others stay unchanged.",
    )
    listing: Digest | None = Field(
        default=None,
        description="`listing` of a test: refuse (409) if the server now offers something else.",
    )


@router.get("", summary="List servers")
async def list_servers(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[ServerAnswer]:
    """Return servers by name, with the state of each connection. Needs the role operator."""
    servers = await services.servers.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(
        servers,
        limit,
        lambda server: server_answer(server, services.upstreams),
        lambda server: server.entry.name,
    )


@router.post("", status_code=201, summary="Add a server")
@needs(Role.OPERATOR, action="servers.add")
async def add_server(
    body: ServerBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Store a server; nothing of it is served until it is approved. Needs the role operator.

    Its address must be public, or in a network that SLUICE_UPSTREAMS__ALLOWED_NETWORKS names.
    """
    record = await services.servers.add(caller, body.name, body.submitted(), info)
    return server_answer(record, services.upstreams)


@router.get("/{name}", summary="Get a server and the approval state of its definitions")
async def get_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerDetailAnswer:
    """Return for every definition whether it is served, and if not, what changed. Needs the role operator."""
    return detail_answer(await services.servers.get(caller, name, info), services.upstreams)


@router.put("/{name}", summary="Change a server")
@needs(Role.OPERATOR, action="servers.put")
async def put_server(
    name: ServerPath, body: ServerChange, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Replace the settings; a changed address, command, environment or header needs approval again.

    Omitted secrets are kept, unless the address or the command changes: then they must be sent again.
    """
    record = await services.servers.put(caller, name, body.submitted(), info)
    return server_answer(record, services.upstreams)


@router.delete("/{name}", status_code=204, summary="Remove a server")
@needs(Role.OPERATOR, action="servers.remove")
async def remove_server(name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep) -> None:
    """Remove the server, its secrets and its approvals. Needs the role operator."""
    await services.servers.remove(caller, name, info)


@router.post("/{name}/test", summary="Connect to a server once")
@needs(Role.OPERATOR, action="servers.test")
async def test_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TrialAnswer:
    """Connect, list what the server offers, and disconnect. If it cannot be listed, `ready` is false."""
    return trial_answer(await services.servers.test(caller, name, info))


@router.post("/{name}/approve", summary="Approve what a server offers")
@needs(Role.OPERATOR, action="servers.approve")
async def approve_server(
    name: ServerPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    body: ApprovalBody | None = None,
) -> ApprovalAnswer:
    """Connect, list and pin every definition, or only the named ones, and serve them from now on.

    A tool that would copy free text into HTTP headers is never approved. Needs the role operator.
    """
    approval = body or ApprovalBody()
    wanted = (
        None if approval.primitives is None else [primitive.wanted() for primitive in approval.primitives]
    )
    return approval_answer(
        await services.servers.approve(caller, name, wanted, info, listing=approval.listing)
    )


@router.post("/{name}/pause", summary="Pause a server")
@needs(Role.OPERATOR, action="servers.pause")
async def pause_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Stop serving a server until it is resumed; repeating it is harmless. Needs the role operator."""
    record = await services.servers.pause(caller, name, info)
    return server_answer(record, services.upstreams)


@router.post("/{name}/resume", summary="Resume a paused server")
@needs(Role.OPERATOR, action="servers.resume")
async def resume_server(
    name: ServerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ServerAnswer:
    """Serve a paused server again, or wait for its first approval. Needs the role operator."""
    record = await services.servers.resume(caller, name, info)
    return server_answer(record, services.upstreams)
