"""What a tenant's policy says of identities: whom tokens make callers, and what is done for which end users."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from app.core.access import Role
from app.core.identities import (
    BY_SETTINGS_ALONE,
    EndUserRule,
    EndUserRules,
    MappingRule,
    Provisioning,
    checked_conditions,
    checked_grant,
    checked_network,
)

Claim = Annotated[str, Field(min_length=1, max_length=500)]
GroupName = Annotated[str, Field(min_length=1, max_length=512)]
UserPattern = Annotated[str, Field(min_length=1, max_length=512)]
GrantName = Annotated[str, AfterValidator(checked_grant)]


class DirectoryCondition(BaseModel):
    """What a person must be in the mirror of the tenant's people and groups."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    groups: list[GroupName] = Field(
        min_length=1,
        max_length=20,
        description="Groups of the mirror, by their names in any case; the person must be in all of them.",
        examples=[["llm-users"]],
    )


class IdentityRule(BaseModel):
    """Makes whoever has a token with certain claims a caller of this tenant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Claim = Field(description="The issuer, letter by letter as in its tokens.")
    when: dict[Claim, bool | Claim | list[Claim]] = Field(
        default_factory=dict,
        max_length=20,
        description="Claims that the token must have, as in the settings (docs/identity.md).",
    )
    directory: DirectoryCondition | None = Field(
        default=None,
        description="What its owner must be in the mirror, beside `when` or alone; the issuer needs `provisioning`.",
    )
    roles: list[Role] = Field(
        min_length=1,
        description="Roles of the caller; restorer, operator and key-custodian are given by the settings alone.",
    )
    grants: list[GrantName] = Field(
        default_factory=list,
        max_length=100,
        description="Names that count where this policy lists ids of keys.",
        examples=[["guests"]],
    )
    cidrs: list[Annotated[str, AfterValidator(checked_network)]] = Field(
        default_factory=list,
        max_length=100,
        description="Networks that the caller may come from; none: any.",
        examples=[["10.0.0.0/8"]],
    )

    @field_validator("when")
    @classmethod
    def readable(cls, when: dict[str, Any]) -> dict[str, Any]:
        """Refuse what could not be compared."""
        checked_conditions(when)
        return when

    @field_validator("roles")
    @classmethod
    def within_reach(cls, roles: list[Role]) -> list[Role]:
        """Refuse roles that only the settings give, and unions that one key may not have."""
        refused = sorted(BY_SETTINGS_ALONE.intersection(roles))
        if refused:
            raise ValueError(f"only the settings of the service map to {', '.join(refused)}")
        return roles

    @model_validator(mode="after")
    def names_somebody(self) -> Self:
        """Refuse a rule that everybody would match."""
        if not self.when and self.directory is None:
            raise ValueError("a rule needs when, directory, or both: it would map everybody")
        return self

    def rule_of(self, tenant: str) -> MappingRule:
        """Return the rule, which maps to this tenant."""
        return MappingRule(
            when=checked_conditions(self.when),
            tenant=tenant,
            roles=frozenset(self.roles),
            grants=frozenset(self.grants),
            networks=tuple(self.cidrs),
            groups=tuple(self.directory.groups) if self.directory is not None else (),
        )


class EndUserMirror(BaseModel):
    """How an end user whom a service names is found in the mirror."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    attribute: Literal["userName", "externalId"] = Field(
        default="userName", description="What services call people by; userName counts in any case."
    )
    required: bool = Field(
        default=True,
        description="Refuse whoever is not there as an active person; false: only who is there and not active, or was "
        "deleted within two days.",
    )


class EndUserBound(BaseModel):
    """Bounds what services may do for some end users."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    users: list[UserPattern] = Field(
        default_factory=list,
        max_length=1000,
        description="Names as services give them, in any case; `*` is any text. None: everybody who is in the groups.",
        examples=[["*@partner.example"]],
    )
    directory: DirectoryCondition | None = Field(
        default=None,
        description="What they must be in the mirror, beside `users` or alone; needs `provisioning`.",
    )
    roles: list[Role] | None = Field(
        default=None,
        min_length=1,
        description="The service has none but these then; null: those that it has.",
    )
    grants: list[GrantName] | None = Field(
        default=None,
        max_length=100,
        description="Names by which this policy lists these end users where it lists ids of keys: lists count only "
        "where they name the service and its end user; null: only the service is looked for.",
        examples=[["guests"]],
    )
    refuse: bool = Field(default=False, description="Do nothing for these end users.")

    @model_validator(mode="after")
    def bounds_somebody(self) -> Self:
        """Refuse a rule that names nobody, or says nothing of them."""
        if not self.users and self.directory is None:
            raise ValueError('a rule needs users, directory, or both; {"users": ["*"]} is everybody')
        if self.refuse and (self.roles is not None or self.grants is not None):
            raise ValueError("a rule that refuses has no roles and no grants")
        if not self.refuse and self.roles is None and self.grants is None:
            raise ValueError("a rule needs roles, grants or refuse")
        return self

    def rule(self) -> EndUserRule:
        """Return the rule."""
        return EndUserRule(
            users=tuple(self.users),
            groups=tuple(self.directory.groups) if self.directory is not None else (),
            roles=frozenset(self.roles) if self.roles is not None else None,
            grants=frozenset(self.grants) if self.grants is not None else None,
            refuse=self.refuse,
        )


class EndUserPolicy(BaseModel):
    """What services may do for the end users whom they name (`X-Sluice-User`): never more than for themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    provisioning: EndUserMirror | None = Field(
        default=None,
        description="How they are found in the mirror of people and groups; null: it is not asked.",
    )
    rules: list[EndUserBound] = Field(
        default_factory=list,
        max_length=200,
        description="The first that matches counts, beside those of the settings; without one the service has its own "
        "rights.",
    )

    @model_validator(mode="after")
    def finds_groups(self) -> Self:
        """Refuse rules that name groups where nobody would be found in them."""
        if self.provisioning is None and any(rule.directory is not None for rule in self.rules):
            raise ValueError(
                "a rule names groups of the mirror (directory): set provisioning, which says how end users are found "
                "there"
            )
        return self

    def bounds(self) -> EndUserRules:
        """Return the rules."""
        mirror = self.provisioning
        return EndUserRules(
            rules=tuple(rule.rule() for rule in self.rules),
            mirror=Provisioning(attribute=mirror.attribute, required=mirror.required) if mirror else None,
        )


class IdentityPolicy(BaseModel):
    """Whom tokens make callers of this tenant, for issuers whose tokens the settings let it map; and end users."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: list[IdentityRule] = Field(
        default_factory=list,
        max_length=200,
        description="The first that matches counts, after all rules of the settings; to change them needs the role "
        "key-custodian, too.",
    )
    end_users: EndUserPolicy = Field(default_factory=EndUserPolicy)
