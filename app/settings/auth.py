"""The settings of how callers authenticate: keys, and issuers of tokens."""

from collections.abc import Iterator

from pydantic import Field, SecretStr, field_validator

from app.core.access import KEY_PATTERN
from app.core.contracts.identity_policy import EndUserPolicy
from app.core.contracts.issuers import IssuerSettings, TenantName
from app.core.identities import EndUserRules
from app.settings.sections import BaseUrl, Section

__all__ = ["AuthSettings", "IssuerSettings"]


class TenantEndUsers(EndUserPolicy):
    """What services of one tenant may do for the end users whom they name."""

    tenant: TenantName


class AuthSettings(Section):
    """How callers authenticate."""

    required: bool = Field(
        default=True,
        description="Require keys. If off, every caller is the development caller with all roles; never in production.",
    )
    bootstrap_key: SecretStr | None = Field(
        default=None,
        description="First API key, `slc_<8 hex digits>_<43 of base64url>`; without it, the first start in "
        "development creates one and prints it once.",
    )
    issuers: tuple[IssuerSettings, ...] = Field(
        default=(),
        description="Issuers whose tokens are taken beside keys, in JSON or as `[[auth.issuers]]`: "
        '`[{"issuer": "https://login.example.com", "audience": ["https://sluice.example.com/mcp"], "rules": '
        '[{"when": {"groups": "llm-users"}, "tenant": "acme", "roles": ["invoker"]}]}]`; docs/identity.md.',
    )
    end_users: tuple[TenantEndUsers, ...] = Field(
        default=(),
        description="What services may do for the end users whom they name (`X-Sluice-User`), for each tenant beside "
        "its policy, in JSON or as `[[auth.end_users]]`: "
        '`[{"tenant": "acme", "rules": [{"users": ["*@partner.example"], "roles": ["invoker"]}]}]`; docs/identity.md.',
    )
    resource: BaseUrl | None = Field(
        default=None,
        description="Address at which clients reach this service, such as `https://sluice.example.com`, where no "
        "audience of an issuer says it; clients that ask for tokens are told it.",
    )

    @field_validator("bootstrap_key")
    @classmethod
    def well_formed(cls, key: SecretStr | None) -> SecretStr | None:
        """Refuse a key of another format, without repeating it."""
        if key is not None and not KEY_PATTERN.fullmatch(key.get_secret_value()):
            raise ValueError("a key must have the form slc_<8 hex digits>_<43 characters of base64url>")
        return key

    @field_validator("issuers")
    @classmethod
    def once(cls, issuers: tuple[IssuerSettings, ...]) -> tuple[IssuerSettings, ...]:
        """Refuse an issuer that stands there twice: which of its rules come first would be unclear."""
        if len({entry.issuer for entry in issuers}) < len(issuers):
            raise ValueError("an issuer stands there twice; put its rules into one entry")
        opaque = [
            entry for entry in issuers if entry.introspection and "opaque" in entry.introspection.tokens
        ]
        if len(opaque) > 1:
            raise ValueError(
                "only one issuer may take opaque tokens: they do not say whose they are, and no other is to see them"
            )
        return issuers

    @field_validator("end_users")
    @classmethod
    def once_for_each(cls, entries: tuple[TenantEndUsers, ...]) -> tuple[TenantEndUsers, ...]:
        """Refuse a tenant that stands there twice: which of its rules come first would be unclear."""
        if len({entry.tenant for entry in entries}) < len(entries):
            raise ValueError("a tenant stands there twice; put its rules into one entry")
        return entries

    def bounds(self) -> dict[str, EndUserRules]:
        """Return the rules for end users, by tenant."""
        return {entry.tenant: entry.bounds() for entry in self.end_users}

    def conflicts(self, environment: str) -> Iterator[str]:
        """Yield what of the issuers is not safe."""
        if any(entry.is_plain for entry in self.issuers):
            yield "SLUICE_AUTH__ISSUERS names an address in plain http: only this machine is asked so, in development."
        elif environment == "production" and not all(entry.is_encrypted for entry in self.issuers):
            yield "SLUICE_AUTH__ISSUERS names an address in plain http: production needs https."
