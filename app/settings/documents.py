"""An index of documents on a server of its own, for those who outgrow the database's search."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from app.settings.sections import Section


class DocumentsSettings(Section):
    """An index of documents on another server; docs/document-retrieval.md says what it is given."""

    kind: Literal["opensearch", "elasticsearch", "qdrant"] = Field(
        default="opensearch",
        description="OpenSearch 2 or 3, Elasticsearch 8 or 9, or Qdrant 1.11 or later.",
    )
    url: str | None = Field(
        default=None,
        description="Base URL, such as `https://search.internal:9200`; without it the database is searched.",
    )
    user: str = Field(default="", max_length=200, description="User name (OpenSearch and Elasticsearch).")
    password: SecretStr | None = Field(default=None, description="Its password.")
    api_key: SecretStr | None = Field(
        default=None, description="API key, in place of a user (Elasticsearch and Qdrant)."
    )
    prefix: str = Field(
        default="sluice",
        pattern=r"^[a-z][a-z0-9-]{0,40}$",
        description="How the names of indexes begin; services with databases of their own need one each.",
    )
    verify: bool = Field(default=True, description="Whether the server's certificate is checked.")
    ca_file: Path | None = Field(
        default=None, description="PEM file with the authority that signed the server's certificate."
    )
    timeout_s: float = Field(default=5, gt=0, le=120, description="Time for one request to it.")
    failures: int = Field(
        default=5, ge=1, le=1000, description="Questions that fail in a row before it is left alone."
    )
    cool_down_s: float = Field(
        default=30, gt=0, le=3600, description="How long it is left alone before one question tries."
    )

    @field_validator("url")
    @classmethod
    def plain(cls, url: str | None) -> str | None:
        """Refuse what is no base URL, without repeating it (it may hold a password)."""
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("a base URL is http://host… or https://host…")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("a base URL has no user, password, query or fragment")
        return url

    @model_validator(mode="after")
    def admitted(self) -> "DocumentsSettings":
        """Refuse credentials that the server does not know, and a file that is not there."""
        if self.kind == "opensearch" and self.api_key is not None:
            raise ValueError("an API key is unknown to OpenSearch, which takes a user and a password")
        if self.kind == "qdrant" and (self.user or self.password is not None):
            raise ValueError("a user is unknown to Qdrant, which takes an API key")
        if self.api_key is not None and self.user:
            raise ValueError("give an API key or a user, not both")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise ValueError("ca_file names no file")
        return self
