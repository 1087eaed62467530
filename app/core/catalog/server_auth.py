"""How this service gets tokens for an MCP server behind it (OAuth 2.1), as its settings say."""

from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

ServerAuthMode = Literal["client_credentials", "token_exchange", "id_jag", "user_grant"]
ClientAuth = Literal["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
SigningAlgorithm = Literal["RS256", "PS256", "ES256", "EdDSA"]
SubjectTokenType = Literal["access_token", "id_token", "jwt"]

CLIENT_SECRET: Final = "clientSecret"  # noqa: S105 - the name of a credential
PRIVATE_KEY: Final = "privateKey"
PROVIDER_SECRET: Final = "providerSecret"  # noqa: S105 - the name of a credential
PROVIDER_KEY: Final = "providerKey"
CREDENTIAL_NAMES: Final = frozenset({CLIENT_SECRET, PRIVATE_KEY, PROVIDER_SECRET, PROVIDER_KEY})
"""Names in a server's ``credentials``, which are sealed like its headers."""

_OF_USERS: Final = frozenset({"token_exchange", "id_jag", "user_grant"})
_MAYBE_PUBLIC: Final = frozenset({"id_jag", "user_grant"})
"""Grants that a client without a credential may use."""
_CREDENTIAL_OF: Final[dict[str, str]] = {
    "client_secret_basic": CLIENT_SECRET,
    "client_secret_post": CLIENT_SECRET,
    "private_key_jwt": PRIVATE_KEY,
}
_PROVIDER_CREDENTIAL_OF: Final[dict[str, str]] = {
    "client_secret_basic": PROVIDER_SECRET,
    "client_secret_post": PROVIDER_SECRET,
    "private_key_jwt": PROVIDER_KEY,
}
_MOST_SCOPES: Final = 50

Scope = Annotated[str, StringConstraints(pattern=r"^[!#-\[\]-~]{1,256}$")]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2048)]


class ServerAuthProvider(BaseModel):
    """As which client this service exchanges users' tokens at their own identity provider."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    issuer: Address = Field(description="The identity provider, exactly as its tokens name it.")
    client_id: str = Field(alias="clientId", min_length=1, max_length=1024)
    client_auth: Literal["client_secret_basic", "client_secret_post", "private_key_jwt"] = Field(
        default="client_secret_basic",
        alias="clientAuth",
        description="The secret or key is `providerSecret` or `providerKey` in `credentials`.",
    )
    signing_algorithm: SigningAlgorithm = Field(default="RS256", alias="signingAlgorithm")

    @field_validator("issuer")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return _checked_address(text)


class ServerAuth(BaseModel):
    """With which grant, and at which authorization server, tokens for a server are got.

    ``issuer`` binds the credentials: they go to this authorization server only, whatever the server's metadata says.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    mode: ServerAuthMode = Field(
        description="client_credentials: this service calls as itself. token_exchange: with a token for the user, from "
        "the user's own issuer (RFC 8693). id_jag: with one from the server's authorization server, for an assertion "
        "of the user's identity provider (enterprise-managed authorization). user_grant: with what the user "
        "granted there in a browser (authorization code)."
    )
    issuer: Address = Field(description="The authorization server, exactly as its metadata names it.")
    client_id: str = Field(alias="clientId", min_length=1, max_length=1024)
    client_auth: ClientAuth = Field(
        default="client_secret_basic",
        alias="clientAuth",
        description="How this service proves itself at the token endpoint. The secret or key is in `credentials`.",
    )
    signing_algorithm: SigningAlgorithm = Field(
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

    audience: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        description="Name by which the issuer knows the server, for token_exchange, beside its `resource`.",
    )
    subject_token_type: SubjectTokenType = Field(
        default="access_token",
        alias="subjectTokenType",
        description="As what the user's token is shown to its own issuer, which decides whether it takes that.",
    )
    provider: ServerAuthProvider | None = Field(
        default=None, description="The users' identity provider, for id_jag alone."
    )
    listing: Literal["client_credentials", "headers"] = Field(
        default="client_credentials",
        description="How the server is listed where calls go with users' tokens: as this service itself, or with "
        "nothing but the `headers`.",
    )

    @field_validator("issuer", "token_uri", "resource")
    @classmethod
    def _is_address(cls, text: str | None) -> str | None:
        return text if text is None else _checked_address(text)

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if self.client_auth == "none" and (self.lists_itself or self.mode not in _MAYBE_PUBLIC):
            raise ValueError("client credentials and token exchange need a clientAuth other than none")
        if (self.mode == "id_jag") != (self.provider is not None):
            raise ValueError("provider is for id_jag, which needs it")
        if self.of_users and self.token_uri is not None:
            # Whoever configures servers must not have users' tokens, assertions or codes sent to an address of theirs.
            raise ValueError(
                f"tokenUri is not for {self.mode}: the metadata of the issuer says where it is asked"
            )
        return self

    @property
    def of_users(self) -> bool:
        """Return whether calls go with the token of the user who calls."""
        return self.mode in _OF_USERS

    @property
    def lists_itself(self) -> bool:
        """Return whether this service gets tokens of its own."""
        return not self.of_users or self.listing == "client_credentials"

    @property
    def reached(self) -> dict[str, Any]:
        """Return the members that decide where credentials go."""
        provider = self.provider.issuer if self.provider is not None else None
        return {"issuer": self.issuer, "token_uri": self.token_uri, "provider": provider}

    @property
    def credential(self) -> str | None:
        """Return the name of the credential that ``client_auth`` needs, None if it needs none."""
        return _CREDENTIAL_OF.get(self.client_auth)

    @property
    def provider_credential(self) -> str | None:
        """Return the name of the credential that ``provider`` needs, None without one."""
        return _PROVIDER_CREDENTIAL_OF[self.provider.client_auth] if self.provider is not None else None


def _checked_address(text: str) -> str:
    parts = urlsplit(text)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.username is not None
        or parts.fragment
        or not (text.isascii() and text.isprintable())
        or " " in text
    ):
        raise ValueError("an address here begins with https:// and has no credentials and no fragment")
    return text
