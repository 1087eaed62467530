"""Settings of an MCP server behind this one: how to reach it and what to expose of it."""

import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from app.core.catalog.primitives import Disclosure
from app.core.catalog.server_auth import CREDENTIAL_NAMES, ServerAuth

SEPARATOR: Final = "__"
SERVER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SECRET_FIELDS: Final = frozenset({"credentials", "env", "headers"})
"""Members with credentials; they are sealed at rest, and only their names are shown."""

ServerType = Literal["stdio", "http", "sse"]
ServerName = Annotated[str, StringConstraints(pattern=rf"^{SERVER_NAME.pattern}$")]
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPE_SPELLINGS: Final = {"streamable-http": "http", "streamable_http": "http", "streamableHttp": "http"}


class MCPServerSettings(BaseModel):
    """One entry of ``mcpServers``, the format that MCP hosts share, with a few additional members.

    Without ``type``, a ``command`` means stdio and a ``url`` means streamable HTTP.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    type: ServerType = Field(default="stdio", description="stdio, http (streamable HTTP) or sse (legacy).")
    command: str | None = Field(default=None, min_length=1, max_length=4096)
    args: list[Annotated[str, StringConstraints(max_length=8192)]] = Field(
        default_factory=list, max_length=256
    )
    url: str | None = Field(default=None, max_length=2048)
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="Secret: never shown again.")
    headers: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Secret: never shown again."
    )
    auth: ServerAuth | None = Field(
        default=None,
        description="How tokens for the server are got; null: it gets its `headers` and nothing else.",
    )
    credentials: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="Secret: `clientSecret` or `privateKey` (PEM) of `auth`, `providerSecret` or `providerKey` of its "
        "`provider`; never shown again.",
    )
    description: str | None = Field(default=None, max_length=4096)
    cwd: str | None = Field(default=None, max_length=4096, description="Folder in which the command runs.")
    namespace: bool = Field(
        default=True, description="False exposes its names without the prefix `server__`."
    )
    roots: bool = Field(
        default=False,
        description="Whether the server may ask clients for their roots. Refused for stdio: a command runs on the "
        "host of the service, so a client could name the folders there that it reads.",
    )
    definitions: Literal["pinned", "trusted"] = Field(
        default="pinned",
        description="pinned: what the server changes waits for an operator. trusted: it is served at once and put on "
        "record, except a name that another server has, a changed readOnlyHint or destructiveHint, and a new or "
        "changed x-mcp-header.",
    )
    instructions: bool = Field(
        default=False,
        description="Whether the server's instructions for models, approved and cleaned, are passed on among those of "
        "this service.",
    )
    timeout_s: float = Field(
        default=60,
        gt=0,
        le=3600,
        validation_alias=AliasChoices("timeoutS", "timeout_s"),
        serialization_alias="timeoutS",
        description="Time limit of one call, in seconds.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_type(cls, entry: Any) -> Any:
        """Infer a missing type, and accept the spellings that hosts use."""
        if not isinstance(entry, dict):
            return entry
        named = entry.get("type", entry.get("transport"))
        kind = _TYPE_SPELLINGS.get(named, named) if isinstance(named, str) else named
        if kind is None:
            kind = "http" if entry.get("url") else "stdio"
        return {**{key: value for key, value in entry.items() if key != "transport"}, "type": kind}

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if _CONTROL.search(url) or " " in url:
                raise ValueError("a server's url must not contain spaces or control characters")
            if parts.port == 0:  # a port that is no number raises ValueError here
                raise ValueError("a server's port must be between 1 and 65535")
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("a server's url must begin with https:// or http:// and name a host")
            if parts.username or parts.password:
                raise ValueError("a server's url must not contain credentials; send them as headers")
        return url

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        if not all(_HEADER.fullmatch(name) and not _CONTROL.search(value) for name, value in headers.items()):
            raise ValueError("a header's name must be one word and its value one line")
        return headers

    @field_validator("credentials")
    @classmethod
    def _are_credentials(cls, credentials: dict[str, str]) -> dict[str, str]:
        if not credentials.keys() <= CREDENTIAL_NAMES or not all(credentials.values()):
            raise ValueError(f"the names in credentials are {', '.join(sorted(CREDENTIAL_NAMES))}")
        return credentials

    @field_validator("command", "cwd", "args", "env")
    @classmethod
    def _holds_no_nul(cls, value: Any) -> Any:
        texts = [value] if isinstance(value, str) else value or []
        if any("\0" in text for text in texts) or (
            isinstance(value, dict)
            and any("=" in name or not name or "\0" in text for name, text in value.items())
        ):
            raise ValueError(
                "commands, arguments and environment must not contain NUL, and environment names no ="
            )
        return value

    @model_validator(mode="after")
    def _has_its_address(self) -> Self:
        if self.type == "stdio" and not self.command:
            raise ValueError("a stdio server needs a command")
        if self.type == "stdio" and self.roots:
            raise ValueError(
                "roots must be false for a stdio server: it runs on this host, where clients have no folders"
            )
        if self.type != "stdio" and not self.url:
            raise ValueError(f"a server of type {self.type} needs a url")
        if self.type != "http" and self.auth is not None:
            raise ValueError("auth is for servers of type http")
        return self

    @property
    def missing_credential(self) -> str | None:
        """Return the name of the credential that ``auth`` needs and that is not there, None if none is missing."""
        wanted = [] if self.auth is None else [self.auth.credential, self.auth.provider_credential]
        return next((name for name in wanted if name is not None and name not in self.credentials), None)

    @property
    def of_users(self) -> bool:
        """Return whether calls go with the token of the user who calls."""
        return self.auth is not None and self.auth.of_users


class ServerEntry(BaseModel):
    """A server and what is exposed of it, in the shape of the REST body and of the database row.

    ``tool_filter`` lists the server's own tool names, either all to include or all with a leading ``-`` to exclude;
    None exposes all tools, [] none. ``aliases`` map an exposed name to the server's own tool name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: ServerName
    settings: MCPServerSettings
    tool_filter: list[str] | None = None
    aliases: dict[str, str] = Field(default_factory=dict)
    disclosure: Disclosure = "flat"
