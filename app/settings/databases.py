"""The settings of the database that stores everything."""

from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator

from app.settings.sections import Section


class DatabaseSettings(Section):
    """The database that stores everything."""

    url: SecretStr = Field(
        default=SecretStr("sqlite:///var/sluice.db"),
        description="`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user:password@host/name`.",
    )
    direct_url: SecretStr | None = Field(
        default=None,
        description="Address of the PostgreSQL server itself, where `SLUICE_DATABASE__URL` is that of a connection "
        "pooler: for migrations, announcements and locks.",
    )
    read_url: SecretStr | None = Field(
        default=None,
        description="Address of a streaming replica for queries of the audit record and for document retrieval; it is "
        "asked while it is at most two seconds behind. Behind a pooler if `SLUICE_DATABASE__URL` is.",
    )
    migrate: Literal["auto", "never"] = Field(
        default="auto",
        description="`auto` migrates a SQLite file at start; otherwise `sluice db upgrade` does.",
    )
    pool_size: int = Field(default=10, ge=1, le=200, description="PostgreSQL connections per process.")
    connect_timeout_s: float = Field(
        default=2,
        gt=0,
        le=60,
        description="Time limit for connecting, in seconds; after that, requests are refused.",
    )
    vector_index_chunks: int = Field(
        default=20_000,
        ge=1,
        le=10_000_000,
        description="Chunks above which a tenant's vectors get an index (HNSW; PostgreSQL with pgvector 0.8 or newer), "
        "and readable chunks above which a question is looked up in it instead of compared with all.",
    )
    statement_timeout_s: float = Field(
        default=3,
        gt=0,
        le=60,
        description="Time limit of one statement, in seconds; after that, its request is refused.",
    )
    pool_timeout_s: float = Field(
        default=0.5, gt=0, le=60, description="Seconds to wait for a free connection."
    )

    @field_validator("url")
    @classmethod
    def known_engine(cls, url: SecretStr) -> SecretStr:
        """Refuse a URL of another database, without repeating it (it may contain a password)."""
        if not _is_postgresql(url) and _engine_of(url) != "sqlite":
            raise ValueError("the database must be sqlite:///… or postgresql://…")
        return url

    @field_validator("direct_url", "read_url")
    @classmethod
    def is_postgresql(cls, url: SecretStr | None) -> SecretStr | None:
        """Refuse a URL of another database, without repeating it."""
        if url is not None and not _is_postgresql(url):
            raise ValueError("it must be postgresql://…")
        return url

    @property
    def owner_url(self) -> str:
        """Return the address of the database itself, past a pooler: migrations go there."""
        return (self.direct_url or self.url).get_secret_value()

    @property
    def replica(self) -> str | None:
        """Return the address of the replica, if there is one."""
        return self.read_url.get_secret_value() if self.read_url is not None else None

    @property
    def addresses(self) -> dict[str, str]:
        """Return each address by the name of its variable."""
        named = {
            "SLUICE_DATABASE__URL": self.url,
            "SLUICE_DATABASE__DIRECT_URL": self.direct_url,
            "SLUICE_DATABASE__READ_URL": self.read_url,
        }
        return {name: url.get_secret_value() for name, url in named.items() if url is not None}

    @property
    def sqlite_file(self) -> Path | None:
        """Return the SQLite file, or None if the database is PostgreSQL."""
        scheme, _, rest = self.url.get_secret_value().partition("://")
        if not scheme.startswith("sqlite"):
            return None
        return Path(unquote(rest.partition("?")[0]).removeprefix("/"))

    @property
    def display_name(self) -> str:
        """Return what people may read of where the database is: never a password."""
        if self.sqlite_file is not None:
            return f"SQLite database {self.sqlite_file.absolute()}"
        parts = urlsplit(self.owner_url)
        place = f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}{parts.path}"
        return f"PostgreSQL database {place}"


class DirectorySettings(Section):
    """The directory of shards, where tenants live in several databases; docs/scale.md."""

    url: SecretStr | None = Field(
        default=None,
        description="`postgresql://user:password@host/name`: a database of its own, which says for all shards which of "
        "them has a tenant or a key. Only who makes tenants and keys waits for it.",
    )
    shard: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="Name of this shard in the directory; every process that serves this database has the same.",
    )

    @field_validator("url")
    @classmethod
    def is_postgresql(cls, url: SecretStr | None) -> SecretStr | None:
        """Refuse a URL of another database, without repeating it."""
        if url is not None and not _is_postgresql(url):
            raise ValueError("the directory must be postgresql://…")
        return url


def _engine_of(url: SecretStr) -> str:
    return url.get_secret_value().partition("://")[0].partition("+")[0]


def _is_postgresql(url: SecretStr) -> bool:
    return _engine_of(url) in {"postgresql", "postgres"}
