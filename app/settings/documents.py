"""An index of documents on a separate server, for collections that outgrow the database's search."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, model_validator

from app.settings.sections import BaseUrl, Section


class DocumentsSettings(Section):
    """An index of documents on another server; docs/document-retrieval.md lists what is sent to it."""

    kind: Literal["opensearch", "elasticsearch", "qdrant"] = Field(
        default="opensearch",
        description="OpenSearch 2 or 3, Elasticsearch 8 or 9, or Qdrant 1.11 or later.",
    )
    url: BaseUrl | None = Field(
        default=None,
        description="Base URL, such as `https://search.internal:9200`; without it, the database is searched.",
    )
    user: str = Field(default="", max_length=200, description="User name (OpenSearch and Elasticsearch).")
    password: SecretStr | None = Field(default=None, description="Password of the user.")
    api_key: SecretStr | None = Field(
        default=None, description="API key, instead of a user (Elasticsearch and Qdrant)."
    )
    prefix: str = Field(
        default="sluice",
        pattern=r"^[a-z][a-z0-9-]{0,40}$",
        description="Prefix of index names; services with separate databases need different prefixes.",
    )
    verify: bool = Field(default=True, description="Check the server's certificate.")
    ca_file: Path | None = Field(
        default=None, description="PEM file of the authority that signed the server's certificate."
    )
    timeout_s: float = Field(
        default=5, gt=0, le=120, description="Time limit of one request to the index, in seconds."
    )
    failures: int = Field(
        default=5, ge=1, le=1000, description="Consecutive failures after which the index is not queried."
    )
    cool_down_s: float = Field(
        default=30, gt=0, le=3600, description="Seconds without queries before the next attempt."
    )

    @model_validator(mode="after")
    def admitted(self) -> "DocumentsSettings":
        """Refuse credentials that the server does not support, and a missing file."""
        if self.kind == "opensearch" and self.api_key is not None:
            raise ValueError("OpenSearch has no API keys; set a user and a password")
        if self.kind == "qdrant" and (self.user or self.password is not None):
            raise ValueError("Qdrant has no users; set an API key")
        if self.api_key is not None and self.user:
            raise ValueError("set an API key or a user, not both")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise ValueError("ca_file must name an existing file")
        return self
