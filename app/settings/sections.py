"""The sections of the settings: each setting with its bounds, default and meaning."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

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

from app.core.access import DEFAULT_TENANT

MIB = 1024 * 1024


def _split(value: Any) -> Any:
    """Accept a comma-separated text as well as a list."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


def _base_url(url: str) -> str:
    """Refuse what is not a base URL, without repeating it (it may contain a password)."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("a base URL must have the form http://host… or https://host…")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "a base URL must not have a user, password, query or fragment; set credentials in their own settings"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(_base_url)]


def _shared_url(url: SecretStr) -> SecretStr:
    """Refuse what names no Redis, without repeating it (it may contain a password)."""
    parts = urlsplit(url.get_secret_value())
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        raise ValueError("a shared URL must have the form redis://host… or rediss://host…")
    return url


SharedUrl = Annotated[SecretStr, AfterValidator(_shared_url)]


class Section(BaseModel):
    """A part of the settings; unknown names are an error, values never appear in messages."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HttpSettings(Section):
    """Where the service listens and which requests the edge accepts."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on; development allows loopback only.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 uses any free port.")
    workers: int = Field(
        default=1, ge=1, le=64, description="Number of processes; more than one needs PostgreSQL."
    )
    allowed_hosts: Names = Field(
        default=("127.0.0.1", "localhost", "[::1]"),
        description="Names allowed in the Host header, comma-separated; a name without a port allows any port.",
    )
    allowed_origins: Names = Field(
        default=("http://127.0.0.1", "http://localhost", "http://[::1]"),
        description="Origins that browsers may call from, comma-separated; an origin without a port allows any port.",
    )
    max_body_bytes: int = Field(
        default=8 * MIB,
        ge=1024,
        le=256 * MIB,
        description="Maximum size of a request body in bytes, counted before it is parsed.",
    )
    max_bytes_in_flight: int = Field(
        default=128 * MIB,
        ge=1024,
        description="Maximum bytes of all request bodies that a process holds at once; larger bodies wait for their "
        "turn, at most `turn_timeout_s`.",
    )
    max_tenant_bytes: int = Field(
        default=64 * MIB, ge=1024, description="As `max_bytes_in_flight`, for the bodies of one tenant."
    )
    max_key_bytes: int = Field(
        default=32 * MIB, ge=1024, description="As `max_bytes_in_flight`, for the bodies of one API key."
    )
    parsers: int = Field(
        default=1,
        ge=1,
        le=8,
        description="Threads per process that parse bodies larger than 128 KiB.",
    )
    header_timeout_s: float = Field(
        default=10, gt=0, description="Time limit for sending the request line and headers, in seconds."
    )
    body_timeout_s: float = Field(
        default=15, gt=0, description="Time limit for sending the body, in seconds."
    )
    turn_timeout_s: float = Field(
        default=45,
        gt=0,
        description="Seconds that a large body waits for its turn before it is refused; it is not read meanwhile.",
    )
    keep_alive_s: int = Field(default=30, gt=0, description="Seconds that an idle connection stays open.")
    drain_s: int = Field(
        default=20,
        ge=0,
        description="Seconds that running requests have to finish after SIGTERM before they are aborted.",
    )


class KeysSettings(Section):
    """The ring of keys that wrap the vault's data keys; it is never stored in the database."""

    ring: SecretStr | None = Field(
        default=None,
        description="The key ring itself, `1:<base64 of 32 bytes>,2:…`; the highest version wraps new data keys.",
    )
    file: Path | None = Field(
        default=None,
        description="File of the key ring (mode 0400). Default: `keyring.json` beside the SQLite file, otherwise "
        "`var/keyring.json`.",
    )
    custodian: str | None = Field(
        default=None,
        pattern=r"^(pkcs11:token=[^;?]+;object=[^;?]+\?module-path=/\S+|aws-kms:\S+)$",
        description="Who opens the file of the key ring: `pkcs11:token=LABEL;object=LABEL?module-path=/…/module.so` or "
        "`aws-kms:ARN`; without it the file has the keys themselves.",
    )
    pin: SecretStr | None = Field(
        default=None, description="PIN of the token that SLUICE_KEYS__CUSTODIAN names."
    )
    outage_s: float = Field(
        default=3600,
        ge=0,
        description="Seconds for which keys serve on while their custodian does not answer; none is wrapped then.",
    )


class VaultSettings(Section):
    """How long originals are kept, and what is remembered outside the database."""

    default_ttl_s: int = Field(
        default=30 * 24 * 3600,
        ge=1,
        description="Lifetime of a scope in seconds, unless the policy or the request sets one.",
    )
    purge_interval_s: float = Field(
        default=60,
        gt=0,
        description="Seconds between purges of expired scopes; an expired scope cannot be read even before.",
    )
    mark: str | None = Field(
        default=None,
        min_length=1,
        description="Folder for the mark that shows whether the database was restored from a backup, and for the "
        "files of erasures; all hosts share it, no backup of the database has it. Or `s3://bucket/folder` for both "
        "(extra `s3`). Default: the key ring's folder.",
    )

    @field_validator("mark")
    @classmethod
    def known_place(cls, mark: str | None) -> str | None:
        """Refuse a URL that is no location in S3, without repeating it."""
        if (
            mark is not None
            and "://" in mark
            and not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,62}(?:/[\w./!*'()-]*)?", mark)
        ):
            raise ValueError("the place must be a folder or s3://bucket/folder, without credentials")
        return mark

    @property
    def mark_folder(self) -> Path | None:
        """Return the folder of the marks that all hosts share; None: none is named, or a place in S3 is."""
        return None if self.mark is None or "://" in self.mark else Path(self.mark)


class DetectionSettings(Section):
    """The processes that detect personal data."""

    workers: int = Field(
        default=2,
        ge=1,
        le=32,
        description="Detector processes per server process; on Linux they share their memory.",
    )
    cache_bytes: int = Field(
        default=67_108_864,
        ge=0,
        description="Bytes per server process for a cache of findings in earlier texts: keyed digests, offsets and "
        "types, no text; 0 turns it off.",
    )
    deadline_s: float = Field(
        default=20,
        gt=0,
        description="Time limit of one detection, in seconds; after that, the request is refused.",
    )
    matcher: Literal["auto", "hyperscan", "re2", "plain"] = Field(
        default="auto",
        description="Engine that runs the patterns; it affects speed, never findings. `auto` is the fastest installed.",
    )
    recognizers: Path | None = Field(
        default=None,
        description="YAML file with your own recognizers, in Presidio's format; see `docs/detection-tuning.md`.",
    )
    warm: bool = Field(
        default=True, description="Load the detector at start instead of at the first request."
    )


class TelemetrySettings(Section):
    """Logs, metrics and traces; none of them contains content."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level that is logged."
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for people, `json` with one object per line for machines."
    )
    metrics: bool = Field(default=True, description="Serve Prometheus metrics at `/metrics`.")
    otlp_endpoint: str | None = Field(
        default=None,
        description="OTLP/HTTP collector, such as `http://localhost:4318/v1/traces`; needs the extra `otel`.",
    )


class AuditSettings(Section):
    """The audit log; docs/audit.md."""

    anchors: Names = Field(
        default=(),
        description="Where each signed checkpoint is kept besides the database, comma-separated: "
        "`file:///folder/checkpoints.jsonl`, `s3://bucket/folder`, `syslog+tls://host:6514?ca=/folder/ca.pem`, "
        "`https://witness.example/#KEY`; docs/audit.md.",
    )
    sinks: Names = Field(
        default=(),
        description="Where every event of the record is delivered as OCSF, comma-separated: "
        "`file:///folder/events.jsonl`, `s3://bucket/folder`, "
        "`syslog+tls://host:6514?ca=/folder/ca.pem`, `syslog+tcp://host:601`, "
        "`otlp+https://host:4318?headers=/folder/headers`, "
        "`kafka+tls://host:9093/topic?config=/folder/properties`; docs/sinks.md.",
    )
    archive: str | None = Field(
        default=None,
        min_length=1,
        description="Where each month of the record that is over is kept as Parquet: a folder, `file:///folder` or "
        "`s3://bucket/folder` (extra `archive`). Events are deleted after their time only once they are there; "
        "docs/audit.md.",
    )


class SessionsSettings(Section):
    """Sessions of the MCP revision with a handshake."""

    idle_s: float = Field(
        default=3600, gt=0, description="Seconds after which an unused session is forgotten."
    )


class TrafficSettings(Section):
    """The load that one process accepts; rates per tenant are in the tenant's policy."""

    max_concurrency: int = Field(
        default=64, ge=1, description="Requests that run concurrently; all others queue fairly."
    )
    shared_url: SharedUrl | None = Field(
        default=None,
        description="Redis, as `redis://host:6379/0` or `rediss://user:password@host:6379/0` (extra `redis`): rates "
        "and caps per tenant are counted over all processes and hosts. Default: each process counts by itself; "
        "docs/operations.md.",
    )


class GroundingSettings(Section):
    """What the middleware `hallucination_detection` may use in addition to the context."""

    packages: FilePath | None = Field(
        default=None,
        description='JSON file with the names of existing packages: `{"pypi": ["requests", …], "npm": […]}`.',
    )
    check_urls: bool = Field(
        default=False,
        description="Let callers check the addresses in an answer over the network (`checkUrls`); public ones only.",
    )


class UpstreamsSettings(Section):
    """The MCP servers behind this one; settings of a single server are in its own entry."""

    config: Path | None = Field(
        default=None,
        description="The declarative file: `mcpServers` in the format of MCP hosts, with groups, concerns and more; "
        "applied at start (`sluice serve --config`).",
    )
    tenant: str = Field(
        default=DEFAULT_TENANT, description="The tenant to which the declarative file applies."
    )
    servers: Names = Field(
        default=(), description="Names of the servers that this process serves, comma-separated; none: all."
    )
    filter: str | None = Field(
        default=None, description='Tools to expose, by server: `"a:x,y;c:-z"` (`sluice serve --filter`).'
    )
    descriptions: Path | None = Field(
        default=None,
        description="Folder with a `<tool>.json` for each tool that operators describe in a file.",
    )
    connect_timeout_s: float = Field(
        default=10, gt=0, description="Time limit for connecting to a server and listing it once, in seconds."
    )
    max_result_bytes: int = Field(
        default=8 * MIB,
        ge=1024,
        description="Maximum size of one result of a server, in bytes; a larger one is refused.",
    )
    stdio_over_rest: bool = Field(
        default=False,
        description="Let operators add commands over REST, which then run on this host; otherwise commands come only "
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
        description="Maximum of connections to servers that belong to one client session each (sampling, elicitation, "
        "roots).",
    )
