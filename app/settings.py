"""Every outside knob of the service: one frozen model with sections, read once at start.

``SLUICE_SECTION__NAME`` in the environment wins over ``name`` in ``[section]`` of the TOML file ``SLUICE_CONFIG``.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from app.core.access import KEY_PATTERN

PREFIX = "SLUICE_"
CONFIG_VARIABLE = "SLUICE_CONFIG"
TEST_PREFIX = "SLUICE_TEST_"
CLIENT_VARIABLES = frozenset({"SLUICE_URL", "SLUICE_API_KEY"})  # of commands that talk to a service
MIB = 1024 * 1024

_SAMPLE_WORDS = ("changeme", "change-me", "change_me", "example", "sample", "insecure", "placeholder")
_SAMPLE_PASSWORDS = frozenset({"password", "passwd", "postgres", "secret", "sluice", "admin", "root", "test"})
_LEAST_DISTINCT = 12  # a random 43-character secret has fewer distinct characters less than once in 10^9


class ConfigurationError(Exception):
    """The service cannot start as configured; ``faults`` are sentences, none of which holds a secret."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def _split(value: Any) -> Any:
    """Take a comma-separated text as well as a list."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


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
        description="Off, every caller is the development caller with all roles; never in production.",
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
    """The ring of keys that wrap the vault's data keys; it never lies in the database."""

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
        description="Life of a scope where neither policy nor request says otherwise.",
    )
    purge_interval_s: float = Field(
        default=60, gt=0, description="Time between two purges of expired scopes; reading stops at once."
    )


class DetectionSettings(Section):
    """The processes that look for personal data."""

    workers: int = Field(
        default=1,
        ge=1,
        le=32,
        description="Detector processes of each server process, each with its own model.",
    )
    deadline_s: float = Field(
        default=20, gt=0, description="Time for one detection; then the request is refused."
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


class Settings(BaseSettings):
    """All settings; build with `load()`, or by hand with sections as arguments."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        nested_model_default_partial_update=True,
    )

    environment: Literal["development", "production"] = Field(
        default="development",
        description="`development` listens on loopback only, its first key has all roles; `production` "
        "refuses sample secrets, missing authentication and weak database settings.",
    )
    http: HttpSettings = HttpSettings()
    database: DatabaseSettings = DatabaseSettings()
    auth: AuthSettings = AuthSettings()
    keys: KeysSettings = KeysSettings()
    vault: VaultSettings = VaultSettings()
    detection: DetectionSettings = DetectionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    sessions: SessionsSettings = SessionsSettings()
    traffic: TrafficSettings = TrafficSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- pydantic-settings passes it by name
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments, then the environment, then the TOML file."""
        path = os.environ.get(CONFIG_VARIABLE)
        if not path:
            return init_settings, env_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, _read_toml(Path(path)))

    @property
    def key_file(self) -> Path:
        """Return where the key ring lies when `keys.ring` is not given."""
        database = self.database.sqlite_file or Path("var/sluice.db")
        return self.keys.file or database.with_name("keyring.json")

    def check(self) -> None:
        """Refuse combinations that are unsafe; what needs a connection is checked by the database itself."""
        faults = list(self._conflicts())
        if self.environment == "production":
            faults += self._unfit_for_production()
        if faults:
            raise ConfigurationError(faults)

    def _conflicts(self) -> Iterator[str]:
        if self.http.workers > 1 and self.database.sqlite_file is not None:
            yield "SQLite serves one process: set SLUICE_HTTP__WORKERS=1 or SLUICE_DATABASE__URL=postgresql://…"
        if self.environment == "development" and not is_loopback(self.http.host):
            yield "Development listens on loopback only: other addresses need SLUICE_ENVIRONMENT=production."

    def _unfit_for_production(self) -> Iterator[str]:
        if not self.auth.required:
            yield "Production needs authentication: remove SLUICE_AUTH__REQUIRED=false."
        if self.auth.bootstrap_key and is_sample(self.auth.bootstrap_key.get_secret_value()):
            yield "SLUICE_AUTH__BOOTSTRAP_KEY is a sample: draw a random one."
        if self.keys.ring and any(is_sample(key) for key in _secrets_of(self.keys.ring)):
            yield "SLUICE_KEYS__RING holds a sample key: each must be the base64 of 32 random bytes."
        password = unquote(urlsplit(self.database.url.get_secret_value()).password or "").lower()
        if password in _SAMPLE_PASSWORDS or any(word in password for word in _SAMPLE_WORDS):
            yield "SLUICE_DATABASE__URL has a sample password: choose a random one."


def load() -> Settings:
    """Read, validate and check the settings; raise ConfigurationError with one sentence per fault."""
    known = known_variables()
    faults = [
        f"Unknown setting {name}; docs/configuration.md lists all settings."
        for name in sorted(os.environ.keys() - known)
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX)
    ]
    if faults:
        raise ConfigurationError(faults)
    try:
        settings = Settings()
    except ValidationError as error:
        raise ConfigurationError([_sentence(fault) for fault in error.errors(include_input=False)]) from None
    except SettingsError as error:
        raise ConfigurationError([f"{error}."]) from None
    settings.check()
    return settings


def is_loopback(host: str) -> bool:
    """Return whether ``host`` can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_sample(secret: str) -> bool:
    """Return whether ``secret`` looks typed by a person rather than drawn at random."""
    lowered = secret.lower()
    return len(set(secret)) < _LEAST_DISTINCT or any(word in lowered for word in _SAMPLE_WORDS)


def walk() -> Iterator[tuple[str, str, FieldInfo]]:
    """Yield section ("" at the top), name and field of every setting, in the order of the documentation."""
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            for inner, inner_field in section.model_fields.items():
                yield name, inner, inner_field
        else:
            yield "", name, field


def variable(section: str, name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + (f"{section}__{name}" if section else name).upper()


def known_variables() -> frozenset[str]:
    """Return every environment variable that the service or its command line reads."""
    return frozenset(
        {CONFIG_VARIABLE, *CLIENT_VARIABLES, *(variable(section, name) for section, name, _ in walk())}
    )


def _secrets_of(ring: SecretStr) -> list[str]:
    return [part.partition(":")[2] for part in ring.get_secret_value().split(",") if part.strip()]


def _sentence(fault: Mapping[str, Any]) -> str:
    section, name = ("", *map(str, fault["loc"]))[-2:]
    reason = str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{variable(section, name)} is wrong: {reason[:1].lower()}{reason[1:]}."


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            [f"{CONFIG_VARIABLE} names {path}, which cannot be read: {error.strerror}."]
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path} is no valid TOML file: {error}."]) from None
