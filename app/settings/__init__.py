"""All settings of the service: one frozen model with sections, read once at start.

``SLUICE_SECTION__NAME`` in the environment overrides ``name`` in ``[section]`` of the TOML file ``SLUICE_CONFIG``.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from app.core.catalog.servers import MCPServerSettings
from app.settings.auth import AuthSettings
from app.settings.databases import DatabaseSettings, DirectorySettings
from app.settings.documents import DocumentsSettings
from app.settings.engines import EnginesSettings, RemoteEngine
from app.settings.sections import (
    AuditSettings,
    DetectionSettings,
    GroundingSettings,
    HttpSettings,
    KeysSettings,
    Section,
    SessionsSettings,
    TelemetrySettings,
    TrafficSettings,
    UpstreamsSettings,
    VaultSettings,
)

__all__ = [
    "CLIENT_VARIABLES",
    "CONFIG_VARIABLE",
    "AuditSettings",
    "AuthSettings",
    "ConfigurationError",
    "DatabaseSettings",
    "DetectionSettings",
    "DirectorySettings",
    "DocumentsSettings",
    "EnginesSettings",
    "GroundingSettings",
    "HttpSettings",
    "KeysSettings",
    "RemoteEngine",
    "Section",
    "SessionsSettings",
    "Settings",
    "TelemetrySettings",
    "TrafficSettings",
    "UpstreamsSettings",
    "VaultSettings",
    "is_loopback",
    "is_sample",
    "known_variables",
    "load",
    "purpose_of",
    "variable",
    "walk",
]

PREFIX = "SLUICE_"
CONFIG_VARIABLE = "SLUICE_CONFIG"
TEST_PREFIX = "SLUICE_TEST_"
CLIENT_VARIABLES = frozenset({"SLUICE_URL", "SLUICE_API_KEY"})  # read by commands that call a service

_SAMPLE_WORDS = ("changeme", "change-me", "change_me", "example", "sample", "insecure", "placeholder")
_SAMPLE_PASSWORDS = frozenset({"password", "passwd", "postgres", "secret", "sluice", "admin", "root", "test"})
_MIN_DISTINCT = 12  # a random 43-character secret has fewer distinct characters less than once in 10^9


class ConfigurationError(Exception):
    """The service cannot start as configured; ``faults`` are sentences without secrets."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


MiddlewareServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]


class Settings(BaseSettings):
    """All settings; build them with `load()`, or directly with sections as arguments."""

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
        description="`development` listens on loopback only, and its first key has all roles; `production` "
        "refuses sample secrets, missing authentication and weak database settings.",
    )
    http: HttpSettings = HttpSettings()
    database: DatabaseSettings = DatabaseSettings()
    directory: DirectorySettings = DirectorySettings()
    auth: AuthSettings = AuthSettings()
    keys: KeysSettings = KeysSettings()
    vault: VaultSettings = VaultSettings()
    detection: DetectionSettings = DetectionSettings()
    grounding: GroundingSettings = GroundingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    audit: AuditSettings = AuditSettings()
    sessions: SessionsSettings = SessionsSettings()
    traffic: TrafficSettings = TrafficSettings()
    upstreams: UpstreamsSettings = UpstreamsSettings()
    engines: EnginesSettings = EnginesSettings()
    documents: DocumentsSettings = DocumentsSettings()
    middleware_servers: dict[MiddlewareServerName, MCPServerSettings] = Field(
        default={},
        repr=False,
        description="MCP servers whose middlewares are offered here as `name__middleware`, by name, each as in "
        '`mcpServers`: `{"acme": {"url": "https://…/mcp", "headers": {…}}}`; docs/plug-ins.md.',
    )
    plugins: dict[str, dict[str, Any]] = Field(
        default={},
        description="Settings of installed plug-ins, by the name of their middleware, such as "
        '`{"shouting": {"marks": 3}}`; docs/plug-ins.md.',
    )

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
        """Return the file of the key ring if `keys.ring` is not set."""
        database = self.database.sqlite_file or Path("var/sluice.db")
        return self.keys.file or database.with_name("keyring.json")

    @property
    def erasure_file(self) -> Path:
        """Return the file in which this host notes erasures: beside the keys, or by its name in the shared folder."""
        if self.vault.mark_folder is None:
            return self.key_file.with_name("erasures.jsonl")
        return self.vault.mark_folder / f"erasures-{gethostname()}.jsonl"

    @property
    def erasure_files(self) -> list[Path]:
        """Return patterns of the files that note erasures: this host's own, and in a shared folder all hosts'."""
        return [self.key_file.with_name("erasures.jsonl"), self.erasure_file.with_name("erasures*.jsonl")]

    def check(self) -> None:
        """Raise ConfigurationError for unsafe combinations; the database checks what needs a connection."""
        faults = list(self._conflicts())
        if self.environment == "production":
            faults += self._unfit_for_production()
        if faults:
            raise ConfigurationError(faults)

    def _conflicts(self) -> Iterator[str]:
        if self.http.workers > 1 and self.database.sqlite_file is not None:
            yield "SQLite serves one process: set SLUICE_HTTP__WORKERS=1 or SLUICE_DATABASE__URL=postgresql://…"
        if self.database.sqlite_file is not None and len(self.database.addresses) > 1:
            further = " and ".join(list(self.database.addresses)[1:])
            yield f"Only PostgreSQL has {further}: unset it, or set SLUICE_DATABASE__URL=postgresql://…"
        if (self.directory.url is None) != (self.directory.shard is None):
            yield "SLUICE_DIRECTORY__URL and SLUICE_DIRECTORY__SHARD belong together: set both, or neither."
        if self.vault.mark_folder is not None and not self.vault.mark_folder.is_dir():
            yield f"SLUICE_VAULT__MARK names {self.vault.mark}, which is no folder: mount or make it."
        if self.environment == "development" and not is_loopback(self.http.host):
            yield "Development listens on loopback only: other addresses need SLUICE_ENVIRONMENT=production."
        yield from self.auth.conflicts(self.environment)

    def _unfit_for_production(self) -> Iterator[str]:
        if not self.auth.required:
            yield "Production needs authentication: remove SLUICE_AUTH__REQUIRED=false."
        if self.auth.bootstrap_key and is_sample(self.auth.bootstrap_key.get_secret_value()):
            yield "SLUICE_AUTH__BOOTSTRAP_KEY is a sample: generate a random one."
        if self.keys.ring and any(is_sample(key) for key in _secrets_of(self.keys.ring)):
            yield "SLUICE_KEYS__RING contains a sample key: each must be the base64 of 32 random bytes."
        if self.documents.url is not None and not self.documents.verify:
            yield "Production checks certificates: remove SLUICE_DOCUMENTS__VERIFY=false (__CA_FILE helps)."
        directory = (
            {}
            if self.directory.url is None
            else {"SLUICE_DIRECTORY__URL": self.directory.url.get_secret_value()}
        )
        for name, url in {**self.database.addresses, **directory}.items():
            password = unquote(urlsplit(url).password or "").lower()
            if password in _SAMPLE_PASSWORDS or any(word in password for word in _SAMPLE_WORDS):
                yield f"{name} has a sample password: choose a random one."


def load() -> Settings:
    """Read, validate and check the settings; raise ConfigurationError with one sentence per fault."""
    variables = known_variables()
    faults = [
        f"Unknown setting {name}; docs/configuration.md lists all settings."
        for name in sorted(os.environ.keys() - variables)
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
    """Return whether ``secret`` looks typed by a person rather than randomly generated."""
    lowered = secret.lower()
    return len(set(secret)) < _MIN_DISTINCT or any(word in lowered for word in _SAMPLE_WORDS)


def walk(model: type[BaseModel] = Settings, section: str = "") -> Iterator[tuple[str, str, FieldInfo]]:
    """Yield section, name and field of every setting, in the order of the documentation.

    The section is "" at the top level, and `outer__inner` for nested sections.
    """
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from walk(inner, f"{section}__{name}" if section else name)
        else:
            yield section, name, field


def purpose_of(section: str) -> str:
    """Return the purpose of a section, named as in `walk`."""
    model: type[BaseModel] = Settings
    for name in section.split("__"):
        inner = model.model_fields[name].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return model.__doc__ or ""


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
    *sections, name = ("", *(part for part in fault["loc"] if isinstance(part, str)))
    section = "__".join(filter(None, sections))
    reason = str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{variable(section, name)} is wrong: {reason[:1].lower()}{reason[1:]}."


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            [f"{CONFIG_VARIABLE} is set to {path}, which cannot be read: {error.strerror}."]
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path} is not a valid TOML file: {error}."]) from None
