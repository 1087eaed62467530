"""The sections of the settings: each outside knob with its bounds, default and meaning."""

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    field_validator,
)
from pydantic_settings import NoDecode

from app.core.access import DEFAULT_TENANT, KEY_PATTERN

MIB = 1024 * 1024


def _split(value: Any) -> Any:
    """Take a comma-separated text as well as a list."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


def _base_url(url: str) -> str:
    """Refuse what is no base URL, without repeating it (it may hold a password)."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("a base URL is http://host… or https://host…")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "a base URL has no user, password, query or fragment; credentials have settings of their own"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(_base_url)]


class Section(BaseModel):
    """A part of the settings; unknown names are an error, values never appear in messages."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HttpSettings(Section):
    """Where the service listens and what the edge lets in."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on; development allows loopback only.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    workers: int = Field(default=1, ge=1, le=64, description="Processes; more than one needs PostgreSQL.")
    allowed_hosts: Names = Field(
        default=("127.0.0.1", "localhost", "[::1]"),
        description="Names allowed in the Host header, with commas between; without a port, any port.",
    )
    allowed_origins: Names = Field(
        default=("http://127.0.0.1", "http://localhost", "http://[::1]"),
        description="Origins that browsers may call from, with commas between; without a port, any port.",
    )
    max_body_bytes: int = Field(
        default=8 * MIB,
        ge=1024,
        le=256 * MIB,
        description="Largest request body, counted before it is parsed.",
    )
    header_timeout_s: float = Field(
        default=10, gt=0, description="Time to send the request line and headers."
    )
    body_timeout_s: float = Field(default=15, gt=0, description="Time to send the body.")
    keep_alive_s: int = Field(default=30, gt=0, description="Time that an idle connection stays open.")
    drain_s: int = Field(
        default=20,
        ge=0,
        description="Time that running requests get to end after SIGTERM before they are cut.",
    )


class DatabaseSettings(Section):
    """Where everything is stored."""

    url: SecretStr = Field(
        default=SecretStr("sqlite:///var/sluice.db"),
        description="`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user:password@host/name`.",
    )
    migrate: Literal["auto", "never"] = Field(
        default="auto",
        description="`auto` migrates a SQLite file at start; otherwise `sluice db upgrade` does.",
    )
    pool_size: int = Field(default=10, ge=1, le=200, description="PostgreSQL connections of one process.")
    connect_timeout_s: float = Field(
        default=2, gt=0, le=60, description="Time to connect; then requests are refused."
    )
    statement_timeout_s: float = Field(
        default=3, gt=0, le=60, description="Time for one statement; then its request is refused."
    )
    pool_timeout_s: float = Field(default=0.5, gt=0, le=60, description="Time to wait for a free connection.")

    @field_validator("url")
    @classmethod
    def known_engine(cls, url: SecretStr) -> SecretStr:
        """Refuse a URL of another database, without repeating it (it may hold a password)."""
        if url.get_secret_value().partition("://")[0].partition("+")[0] not in {
            "sqlite",
            "postgresql",
            "postgres",
        }:
            raise ValueError("the database must be sqlite:///… or postgresql://…")
        return url

    @property
    def sqlite_file(self) -> Path | None:
        """Return the SQLite file, or None where the database is PostgreSQL."""
        scheme, _, rest = self.url.get_secret_value().partition("://")
        if not scheme.startswith("sqlite"):
            return None
        return Path(unquote(rest.partition("?")[0]).removeprefix("/"))


class AuthSettings(Section):
    """How callers prove who they are."""

    required: bool = Field(
        default=True,
        description="If off, every caller is the development caller with all roles; never in production.",
    )
    bootstrap_key: SecretStr | None = Field(
        default=None,
        description="First API key, `slc_<8 hex digits>_<43 of base64url>`; without it the first start in "
        "development makes one and prints it once.",
    )

    @field_validator("bootstrap_key")
    @classmethod
    def well_formed(cls, key: SecretStr | None) -> SecretStr | None:
        """Refuse a key of another format, without repeating it."""
        if key is not None and not KEY_PATTERN.fullmatch(key.get_secret_value()):
            raise ValueError("a key is slc_<8 hex digits>_<43 characters of base64url>")
        return key


class KeysSettings(Section):
    """The ring of keys that wrap the vault's data keys; it is never stored in the database."""

    ring: SecretStr | None = Field(
        default=None,
        description="The ring itself, `1:<base64 of 32 bytes>,2:…`; the highest version wraps.",
    )
    file: Path | None = Field(
        default=None,
        description="File of the ring (mode 0400). Default: `keyring.json` beside the SQLite file, otherwise "
        "`var/keyring.json`.",
    )


class VaultSettings(Section):
    """How long originals are kept."""

    default_ttl_s: int = Field(
        default=30 * 24 * 3600,
        ge=1,
        description="Lifetime of a scope, unless policy or request says otherwise.",
    )
    purge_interval_s: float = Field(
        default=60, gt=0, description="Time between two purges of expired scopes; reading stops at once."
    )


class DetectionSettings(Section):
    """The processes that look for personal data."""

    workers: int = Field(
        default=2,
        ge=1,
        le=32,
        description="Detector processes of each server process; on Linux they share their memory.",
    )
    cache_bytes: int = Field(
        default=67_108_864,
        ge=0,
        description="Memory in each server process for findings in texts seen before: keyed digests, offsets and "
        "types, no text; 0 turns it off.",
    )
    deadline_s: float = Field(
        default=20, gt=0, description="Time for one detection; then the request is refused."
    )
    matcher: Literal["auto", "hyperscan", "re2", "plain"] = Field(
        default="auto",
        description="What runs the patterns; it changes the time, never a finding. `auto` is the fastest installed.",
    )
    recognizers: Path | None = Field(
        default=None,
        description="YAML file of recognizers of your own, in Presidio's form; see `docs/detection-tuning.md`.",
    )
    warm: bool = Field(
        default=True, description="Load the detector at start instead of at the first request."
    )


class TelemetrySettings(Section):
    """Logs, metrics and traces; none of them holds content."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level that is logged."
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for people, `json` with one object a line for machines."
    )
    metrics: bool = Field(default=True, description="Serve Prometheus metrics at `/metrics`.")
    otlp_endpoint: str | None = Field(
        default=None,
        description="OTLP/HTTP collector, such as `http://localhost:4318/v1/traces`; needs the extra `otel`.",
    )


class SessionsSettings(Section):
    """Sessions of the MCP revision that has a handshake."""

    idle_s: float = Field(default=3600, gt=0, description="Time after which an unused session is forgotten.")


class TrafficSettings(Section):
    """Load that one process takes on; rates per tenant belong to the tenant's policy."""

    max_concurrency: int = Field(
        default=64, ge=1, description="Requests that run at once; the rest queue fairly."
    )


class GroundingSettings(Section):
    """What the middleware `hallucination_detection` may use beside the context."""

    packages: FilePath | None = Field(
        default=None,
        description='JSON file with the names of packages that exist: `{"pypi": ["requests", …], "npm": […]}`.',
    )
    check_urls: bool = Field(
        default=False,
        description="Let callers ask the network whether addresses in an answer exist (`checkUrls`); public ones only.",
    )


class UpstreamsSettings(Section):
    """The MCP servers behind this one; what belongs to one server stands in its own entry."""

    config: Path | None = Field(
        default=None,
        description="The declarative file: `mcpServers` as MCP hosts have it, beside it groups, concerns and more; "
        "applied at start (`sluice serve --config`).",
    )
    tenant: str = Field(default=DEFAULT_TENANT, description="The tenant to which that file applies.")
    servers: Names = Field(
        default=(), description="Names of the servers that this process serves, comma-separated; none: all."
    )
    filter: str | None = Field(
        default=None, description='Tools to expose, by server: `"a:x,y;c:-z"` (`sluice serve --filter`).'
    )
    descriptions: Path | None = Field(
        default=None,
        description="Folder with one `<tool>.json` for each tool whose description operators write as a file.",
    )
    connect_timeout_s: float = Field(
        default=10, gt=0, description="Time to connect to a server and to list it once."
    )
    max_result_bytes: int = Field(
        default=8 * MIB, ge=1024, description="Size of one answer of a server; a larger one is refused."
    )
    stdio_over_rest: bool = Field(
        default=False,
        description="Let operators add commands over REST, which run on this host; otherwise commands come only "
        "from the file and the command line.",
    )
    allowed_networks: Names = Field(
        default=(),
        description="Internal networks (CIDR, comma-separated) where servers added over REST may be; public "
        "addresses are always allowed, addresses of cloud metadata never.",
    )
    max_dedicated: int = Field(
        default=256,
        ge=0,
        description="Connections to servers that belong to one client session each (sampling, elicitation, roots).",
    )
