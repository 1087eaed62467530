"""How this service gets tokens for an MCP server behind it (OAuth 2.1), as its settings say."""

from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

ServerAuthMode = Literal["client_credentials"]
ClientAuth = Literal["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]

CLIENT_SECRET: Final = "clientSecret"  # noqa: S105 - the name of a credential
PRIVATE_KEY: Final = "privateKey"
CREDENTIAL_NAMES: Final = frozenset({CLIENT_SECRET, PRIVATE_KEY})
"""Names in a server's ``credentials``, which are sealed like its headers."""

_CREDENTIAL_OF: Final[dict[str, str]] = {
    "client_secret_basic": CLIENT_SECRET,
    "client_secret_post": CLIENT_SECRET,
    "private_key_jwt": PRIVATE_KEY,
}
_MOST_SCOPES: Final = 50

Scope = Annotated[str, StringConstraints(pattern=r"^[!#-\[\]-~]{1,256}$")]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2048)]


class ServerAuth(BaseModel):
    """With which grant, and at which authorization server, tokens for a server are got.

    ``issuer`` binds the credentials: they go to this authorization server only, whatever the server's metadata says.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    mode: ServerAuthMode = Field(description="client_credentials: this service calls as itself.")
    issuer: Address = Field(description="The authorization server, exactly as its metadata names it.")
    client_id: str = Field(alias="clientId", min_length=1, max_length=1024)
    client_auth: ClientAuth = Field(
        default="client_secret_basic",
        alias="clientAuth",
        description="How this service proves itself at the token endpoint. The secret or key is in `credentials`.",
    )
    signing_algorithm: Literal["RS256", "PS256", "ES256", "EdDSA"] = Field(
        default="RS256", alias="signingAlgorithm", description="Signature of `private_key_jwt`."
    )
    token_uri: Address | None = Field(
        default=None, alias="tokenUri", description="Token endpoint; null: the issuer's metadata says."
    )
    resource: Address | None = Field(
        default=None,
        description="Resource that tokens are for (RFC 8707); null: what the server's metadata says, else its url.",
    )
    scopes: tuple[Scope, ...] | None = Field(
        default=None,
        max_length=_MOST_SCOPES,
        description="Scopes to ask for; null: those that the server asks for in its challenge or its metadata.",
    )

    @field_validator("issuer", "token_uri", "resource")
    @classmethod
    def _is_address(cls, text: str | None) -> str | None:
        if text is not None:
            parts = urlsplit(text)
            if (
                parts.scheme not in {"http", "https"}
                or not parts.hostname
                or parts.username is not None
                or parts.fragment
                or not (text.isascii() and text.isprintable())
                or " " in text
            ):
                raise ValueError(
                    "an address here begins with https:// and has no credentials and no fragment"
                )
        return text

    @model_validator(mode="after")
    def _proves_itself(self) -> Self:
        if self.client_auth == "none":
            raise ValueError("client credentials need a clientAuth other than none")
        return self

    @property
    def reached(self) -> dict[str, Any]:
        """Return the members that decide where credentials go."""
        return {"issuer": self.issuer, "token_uri": self.token_uri}

    @property
    def credential(self) -> str | None:
        """Return the name of the credential that ``client_auth`` needs, None if it needs none."""
        return _CREDENTIAL_OF.get(self.client_auth)
