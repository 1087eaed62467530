"""What is said of an issuer of tokens: the same form in the settings and in what operators add over REST."""

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel

from app.core.access import Role, check_tenant, check_union
from app.core.contracts.identity_policy import DirectoryCondition
from app.core.errors import InvalidArgumentsError
from app.core.identities import (
    SCOPE_TEXT,
    ConsoleClient,
    Introspection,
    MappingRule,
    Provisioning,
    TrustedIssuer,
    checked_conditions,
    checked_grant,
    checked_network,
)

RETURN_PATH: Final = "/console/sign-in/return"
"""Where an issuer leads whoever signs in back to."""

Entries = TypeVar("Entries", bound=Collection[Any])


def _issuer_url(url: str) -> str:
    """Refuse what is no address of an issuer, without repeating it."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an issuer's address must have the form https://host…")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an issuer's address must not have a user, password, query or fragment")
    return url


def _scope(text: str) -> str:
    """Refuse what could not stand in a challenge."""
    if not SCOPE_TEXT.fullmatch(text):
        raise ValueError("a scope has no space, quote or backslash")
    return text


def _filled(entries: Entries) -> Entries:
    """Refuse an empty list."""
    if not entries:
        raise ValueError("this list has no entry")
    return entries


def _tenant(name: str) -> str:
    """Refuse what is no name of a tenant."""
    try:
        return check_tenant(name)
    except InvalidArgumentsError as error:
        raise ValueError(error.message) from None


TenantName = Annotated[str, AfterValidator(_tenant)]
IssuerUrl = Annotated[str, AfterValidator(_issuer_url)]
ScopeText = Annotated[str, AfterValidator(_scope)]
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"
]
Claim = Annotated[str, Field(min_length=1, max_length=500)]


class _Listed(BaseModel):
    """An entry of a list of the settings, with names as in JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    @model_validator(mode="before")
    @classmethod
    def named_once(cls, entry: Any) -> Any:
        """Refuse a member under both of its names, of which one would be passed over."""
        if isinstance(entry, Mapping):
            for name, info in cls.model_fields.items():
                if info.alias is not None and info.alias != name and {name, info.alias} <= entry.keys():
                    raise ValueError(f"{info.alias} is there twice, as {name} too: give one of them")
        return entry


class RuleSettings(_Listed):
    """Whom a token with certain claims, or the mirror's groups of its owner, make a caller."""

    when: dict[Claim, bool | Claim | Annotated[tuple[Claim, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    directory: DirectoryCondition | None = None
    tenant: TenantName
    roles: Annotated[frozenset[Role], Field(min_length=1)]
    grants: frozenset[Annotated[str, AfterValidator(checked_grant)]] = frozenset()
    cidrs: tuple[Annotated[str, AfterValidator(checked_network)], ...] = ()

    @field_validator("roles")
    @classmethod
    def fit_together(cls, roles: frozenset[Role]) -> frozenset[Role]:
        """Refuse unions of roles that let one caller both configure and read."""
        try:
            check_union(roles)
        except InvalidArgumentsError as error:
            refused = " + ".join(error.details["refused"])
            raise ValueError(f"one rule may not give {refused}") from None
        return roles

    @field_validator("when")
    @classmethod
    def names_scopes(cls, when: dict[str, Any]) -> dict[str, Any]:
        """Refuse scopes that could not stand in a challenge."""
        return checked_conditions(when)

    @model_validator(mode="after")
    def names_somebody(self) -> Self:
        """Refuse a rule that everybody would match."""
        if not self.when and self.directory is None:
            raise ValueError("a rule needs when, directory, or both: it would map everybody")
        return self

    def rule(self) -> MappingRule:
        """Return the rule."""
        groups = tuple(self.directory.groups) if self.directory is not None else ()
        return MappingRule(self.when, self.tenant, self.roles, self.grants, self.cidrs, groups)


class IntrospectionSettings(_Listed):
    """How an issuer is asked whether a token still counts."""

    client_id: Annotated[str, Field(min_length=1, max_length=500)]
    client_secret: SecretStr
    uri: IssuerUrl | None = None
    tokens: Annotated[frozenset[Literal["opaque", "signed"]], AfterValidator(_filled)] = frozenset({"opaque"})
    cache: Annotated[int, Field(ge=1, le=60)] = 30

    def introspection(self) -> Introspection:
        """Return how the issuer is asked."""
        return Introspection(
            client_id=self.client_id,
            client_secret=self.client_secret.get_secret_value(),
            uri=self.uri,
            opaque="opaque" in self.tokens,
            signed="signed" in self.tokens,
            cache_s=self.cache,
        )


class ConsoleSignIn(_Listed):
    """As which client of an issuer people sign in to the console."""

    client_id: Annotated[str, Field(min_length=1, max_length=500)]
    client_secret: SecretStr | None = None
    redirect_uri: IssuerUrl
    name: Annotated[str, Field(min_length=1, max_length=60)] = "your company's account"
    scopes: tuple[ScopeText, ...] = ("openid",)

    @field_validator("redirect_uri")
    @classmethod
    def leads_back(cls, uri: str) -> str:
        """Refuse an address at which the console does not wait."""
        if not urlsplit(uri).path == RETURN_PATH:
            raise ValueError(f"redirectUri is the address of this service followed by {RETURN_PATH}")
        return uri

    @field_validator("scopes")
    @classmethod
    def open_id(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse scopes for which an issuer gives no ID token."""
        if "openid" not in scopes:
            raise ValueError("scopes must name openid")
        return scopes

    def client(self) -> ConsoleClient:
        """Return the client."""
        return ConsoleClient(
            client_id=self.client_id,
            redirect_uri=self.redirect_uri,
            name=self.name,
            client_secret=self.client_secret.get_secret_value() if self.client_secret is not None else None,
            scopes=self.scopes,
        )


class ProvisioningSettings(_Listed):
    """How the owner of a token is found among the people that the issuer mirrors here."""

    claim: Annotated[str, Field(min_length=1, max_length=500, pattern="^[^/]")] = "sub"
    attribute: Literal["externalId", "userName"] = "externalId"
    required: bool = True

    def provisioning(self) -> Provisioning:
        """Return how people are found."""
        return Provisioning(self.claim, self.attribute, self.required)


class IssuerSettings(_Listed):
    """An issuer of tokens, and what its tokens must be like."""

    issuer: IssuerUrl
    audience: Annotated[tuple[Claim, ...], AfterValidator(_filled)]
    jwks_uri: IssuerUrl | None = None
    rules: tuple[RuleSettings, ...] = ()
    tenants: tuple[TenantName, ...] = ()
    algorithms: Annotated[frozenset[Algorithm], Field(min_length=1)] = frozenset({"RS256", "ES256", "EdDSA"})
    max_token_age: Annotated[int, Field(ge=1, le=86_400)] = 600
    leeway: Annotated[int, Field(ge=0, le=120)] = 30
    scopes: tuple[ScopeText, ...] = ()
    introspection: IntrospectionSettings | None = None
    console: ConsoleSignIn | None = None
    provisioning: ProvisioningSettings | None = None

    @model_validator(mode="after")
    def maps(self) -> Self:
        """Refuse an issuer whose tokens nothing could map."""
        if not self.rules and not self.tenants:
            raise ValueError("the issuer has no entry in rules, and no tenants whose policies have some")
        if self.provisioning is None and any(rule.directory is not None for rule in self.rules):
            raise ValueError(
                "a rule names groups of the mirror (directory), but nothing says how a token's owner is found there: "
                'give the issuer provisioning, such as {"claim": "sub", "attribute": "externalId"}'
            )
        # An ID token says who signed in to the console; as an access token it must open nothing.
        if self.console is not None and self.console.client_id in self.audience:
            raise ValueError("the console's clientId is no audience: its ID tokens would open every door")
        return self

    def trusted(self) -> TrustedIssuer:
        """Return the issuer."""
        return TrustedIssuer(
            issuer=self.issuer,
            audience=frozenset(self.audience),
            rules=tuple(rule.rule() for rule in self.rules),
            jwks_uri=self.jwks_uri,
            algorithms=frozenset(self.algorithms),
            max_token_age_s=self.max_token_age,
            leeway_s=self.leeway,
            scopes=self.scopes,
            tenants=self.tenants,
            introspection=self.introspection.introspection() if self.introspection is not None else None,
            console=self.console.client() if self.console is not None else None,
            provisioning=self.provisioning.provisioning() if self.provisioning is not None else None,
        )

    @property
    def is_plain(self) -> bool:
        """Return whether anything of it is asked in plain http anywhere but on this machine."""
        plain = [url for url in self._addresses if url.startswith("http:")]
        return any(not _on_this_machine(urlsplit(url).hostname or "") for url in plain)

    @property
    def is_encrypted(self) -> bool:
        """Return whether all of it is asked by https."""
        return all(url.startswith("https:") for url in self._addresses)

    @property
    def _addresses(self) -> list[str]:
        asked = self.introspection.uri if self.introspection is not None else None
        led = self.console.redirect_uri if self.console is not None else None
        return [url for url in (self.issuer, self.jwks_uri, asked, led) if url is not None]


def _on_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
