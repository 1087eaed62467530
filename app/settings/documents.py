"""An index of documents on a server of its own, for those who outgrow the database's search."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, model_validator

from app.settings.sections import BaseUrl, Section


class DocumentsSettings(Section):
    """An index of documents on another server; docs/document-retrieval.md says what it is given."""

    kind: Literal["opensearch", "elasticsearch", "qdrant"] = Field(
        default="opensearch",
        description="OpenSearch 2 or 3, Elasticsearch 8 or 9, or Qdrant 1.11 or later.",
    )
    url: BaseUrl | None = Field(
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
        default=5, ge=1, le=1000, description="Failures in a row after which it is left alone."
    )
    cool_down_s: float = Field(
        default=30, gt=0, le=3600, description="How long it is left alone before one request tries again."
    )

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
