"""The policy of a tenant: allowed middlewares, default and fixed arguments, limits, grants and tool hooks."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from app.core.access import Caller, Role
from app.core.catalog.interceptors import InterceptorPolicy
from app.core.catalog.primitives import Disclosure, Member, PrimitiveKind
from app.core.content.handles import Handle
from app.core.content.secret_labels import is_secret
from app.core.contracts.gateway_policy import GatewayPolicy
from app.core.contracts.policy_steps import Step
from app.core.globs import Glob
from app.core.identities import (
    BY_SETTINGS_ALONE,
    MappingRule,
    checked_conditions,
    checked_grant,
    checked_network,
)

HeaderToken = Annotated[str, StringConstraints(min_length=1, max_length=128)]
ScopeReference = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Limits(BaseModel):
    """Limits on one tenant's use; the edge enforces the rates, the services the rest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_second: float = Field(
        default=100, ge=0.001, le=1e6, description="Refill rate of the token bucket."
    )
    burst: int = Field(default=300, gt=0, le=10**6, description="Size of the token bucket, in requests.")
    in_flight: int = Field(
        default=64, gt=0, le=10**6, description="Requests of this tenant that may run or wait at once."
    )
    max_blocks: int = Field(
        default=4096, gt=0, le=10**6, description="Content items and nested blocks of one context."
    )
    max_depth: int = Field(default=64, gt=0, le=1000, description="Nesting depth of one context.")
    deadline_ms: int = Field(
        default=30_000, gt=0, le=3_600_000, description="Time limit of one request, in milliseconds."
    )
    description_reads_per_minute: int = Field(
        default=120, gt=0, le=10**6, description="Reads of tool_descriptions by one caller per minute."
    )


class Grant(BaseModel):
    """Which primitives behind this server some callers may see and use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: list[str] | None = Field(
        default=None, description="Ids of API keys, or grants of mapping rules; null: every key."
    )
    roles: list[Role] | None = Field(default=None, description="Callers with any of these; null: every role.")
    groups: list[str] = Field(
        default_factory=list, description="All members of these groups and of their subgroups."
    )
    members: list[Member] = Field(default_factory=list, description="Primitives by kind, name and server.")


class ToolHook(BaseModel):
    """Which middlewares process the result of a call to a server, and whether its arguments are restored.

    Only the first tool hook that matches a primitive applies to it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kinds: list[Literal["tool", "prompt", "resource"]] = Field(
        default=["tool", "prompt", "resource"], description="Kinds of primitives to which the hook applies."
    )
    names: list[str] = Field(default_factory=lambda: ["*"], description="Exposed names; `*` is any text.")
    servers: list[str] | None = Field(default=None, description="Names of servers; null: all.")
    restore_arguments: bool = Field(
        default=False,
        description="Restore originals in a tool's arguments before it runs; needs `pii_redaction` among "
        "`results`, so that nobody reads originals through a tool.",
    )
    headers: list[HeaderToken] = Field(
        default_factory=list,
        max_length=64,
        description="With `restore_arguments`: HTTP headers that may carry originals, by the token that the tool "
        "declares (`x-mcp-header`). A call that would put an original into another header is refused.",
    )
    results: list[Step] = Field(default_factory=list, description="Middlewares for results, in order.")

    @model_validator(mode="after")
    def _redacts_what_it_restores(self) -> Self:
        if self.restore_arguments and all(step.name != "pii_redaction" for step in self.results):
            raise ValueError("restore_arguments needs pii_redaction among the results")
        return self


class DisclosurePolicy(BaseModel):
    """Which callers get tool descriptions in two stages."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: Disclosure | None = Field(
        default=None, description="For all servers; null: the setting of each server."
    )
    keys: dict[str, Disclosure] = Field(
        default_factory=dict, description="By id of the API key; these override the default."
    )
    without_handle: Literal["refuse", "caller", "off"] = Field(
        default="refuse",
        description="Clients of revision 2026-07-28 that send no handle: refuse them, remember reads per caller for "
        "`caller_ttl_s`, or do not require that descriptions were read.",
    )
    caller_ttl_s: int = Field(
        default=3600, gt=0, le=10**7, description="Seconds for which reads are remembered per caller."
    )


class ConcernPolicy(BaseModel):
    """How concerns filter lists."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    apply_defaults: bool = Field(
        default=False, description="Filter by a concern's default if no value is set."
    )
    expose: bool = Field(default=False, description="Show the mapping of each primitive in `_meta.concerns`.")


class SecretPolicy(BaseModel):
    """Who gets secrets restored, when originals are restored at all.

    Restoring anything needs the role restorer; a tool hook restores with the authority of the policy.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    restorable_by: list[Role] | None = Field(
        default=None,
        description="Callers with any of these roles; null: everybody who may restore; an empty list: nobody.",
    )
    keys: list[str] | None = Field(
        default=None,
        description="Ids of the API keys, or grants of mapping rules, for which secrets are restored; null: every key.",
    )

    def restorable(self, handles: Iterable[Handle], caller: Caller) -> set[Handle]:
        """Return those of ``handles`` whose originals ``caller`` may have."""
        by_role = self.restorable_by is None or not caller.roles.isdisjoint(self.restorable_by)
        if by_role and caller.is_listed(self.keys):
            return set(handles)
        return {handle for handle in handles if not is_secret(handle.label)}


class ToolListing(BaseModel):
    """How tool lists are narrowed to what a conversation needs, if a client requests that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["off", "narrow"] = Field(
        default="narrow",
        description="narrow: narrow lists as clients request; off: always list every tool that a client may use.",
    )
    max_tools: int = Field(
        default=20,
        ge=1,
        le=10_000,
        description="Maximum of relevant tools in a list, if the client sets none.",
    )
    min_score: float = Field(
        default=0.001, ge=0, le=1, description="Minimum score of relevant tools, if the client sets none."
    )
    pinned: list[Annotated[str, Field(max_length=2048)]] = Field(
        default_factory=list, max_length=1000, description="Exposed names of tools that are always listed."
    )
    always_servers: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list, max_length=1000, description="Servers whose tools are always listed."
    )


class UntrustedPolicy(BaseModel):
    """What a session may do after it received untrusted content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Literal["allow", "confirm", "refuse"] = Field(
        default="allow",
        description="Calls of tools that are not marked as read-only (`readOnlyHint`), after such content: allow, "
        "let a person confirm each, or refuse.",
    )
    servers: list[str] | None = Field(
        default=None,
        description="Servers whose results are not trusted; null: all. A result in which the `prompt_injection` of a "
        "tool hook suspects an attack is never trusted.",
    )
    without_handle: Literal["untrusted", "trusted"] = Field(
        default="untrusted",
        description="What to assume about clients of revision 2026-07-28 that send no handle, since nothing can be "
        "remembered about them.",
    )

    def distrusts(self, server: str, *, suspected: bool) -> bool:
        """Return whether to remember a result of ``server`` as untrusted."""
        return self.after != "allow" and (suspected or self.servers is None or server in self.servers)


class CustodyPolicy(BaseModel):
    """How keys come to roles that a key custodian must not get hold of alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delay_h: int = Field(
        default=24,
        ge=1,
        le=168,
        description="Hours after which the roles restorer and operator of a new or rotated key have effect without the "
        "approval of another key custodian. A shorter delay counts only after the longer one has passed.",
    )


class RetentionPolicy(BaseModel):
    """For how long the audit record keeps events; younger, held and unsealed ones are never deleted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    audit_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Days after which events are deleted; null: never. The log still proves that they were sealed.",
    )
    hold: bool = Field(default=False, description="Legal hold: delete no event of this tenant.")
    held_scopes: list[ScopeReference] = Field(
        default_factory=list,
        max_length=1000,
        description="Legal hold on single scopes: keep the events that have one of these as `scope_ref`.",
    )


Claim = Annotated[str, Field(min_length=1, max_length=500)]


class IdentityRule(BaseModel):
    """Makes whoever has a token with certain claims a caller of this tenant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Claim = Field(description="The issuer, letter by letter as in its tokens.")
    when: dict[Claim, bool | Claim | list[Claim]] = Field(
        min_length=1,
        max_length=20,
        description="Claims that the token must have, as in the settings (docs/identity.md).",
    )
    roles: list[Role] = Field(
        min_length=1,
        description="Roles of the caller; restorer, operator and key-custodian are given by the settings alone.",
    )
    grants: list[Annotated[str, AfterValidator(checked_grant)]] = Field(
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

    def rule_of(self, tenant: str) -> MappingRule:
        """Return the rule, which maps to this tenant."""
        return MappingRule(
            when=checked_conditions(self.when),
            tenant=tenant,
            roles=frozenset(self.roles),
            grants=frozenset(self.grants),
            networks=tuple(self.cidrs),
        )


class IdentityPolicy(BaseModel):
    """Whom tokens make callers of this tenant, for issuers whose tokens the settings let it map."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: list[IdentityRule] = Field(
        default_factory=list,
        max_length=200,
        description="The first that matches counts, after all rules of the settings; to change them needs the role "
        "key-custodian, too.",
    )


Milliseconds = Annotated[int, Field(gt=0, le=3_600_000)]


class Policy(BaseModel):
    """One version of a tenant's policy.

    A caller's arguments override ``default_arguments``; ``fixed_arguments`` override the caller's, and a caller who
    sends a different value for a fixed argument is refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed_middlewares: list[str] | None = Field(default=None, description="Names; null allows all.")
    default_arguments: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Per middleware, the arguments used if the caller sends none."
    )
    fixed_arguments: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Per middleware, the arguments that callers cannot change."
    )
    timeouts_ms: dict[str, Milliseconds] = Field(
        default_factory=dict,
        description="Per middleware, its time limit in milliseconds, within the request's limit.",
    )
    audit_content: bool = Field(
        default=False, description="Keep the sealed context in the audit event of audit_logging."
    )
    audit_end_users: bool = Field(
        default=False,
        description="Keep the end user's name sealed in each audit event, beside its digest.",
    )
    scope_ttl_s: int | None = Field(
        default=None, gt=0, le=10**10, description="Lifetime of a new vault scope, in seconds."
    )
    limits: Limits = Field(default_factory=Limits)
    grants: list[Grant] | None = Field(
        default=None, description="Who sees which tools, prompts and resources; null: every invoker sees all."
    )
    passages: list[ToolHook] = Field(
        default_factory=list,
        description="Tool hooks: middlewares between clients and the servers behind this one.",
    )
    disclosure: DisclosurePolicy = Field(default_factory=DisclosurePolicy)
    concerns: ConcernPolicy = Field(default_factory=ConcernPolicy)
    untrusted: UntrustedPolicy = Field(default_factory=UntrustedPolicy)
    secrets: SecretPolicy = Field(default_factory=SecretPolicy)
    tool_listing: ToolListing = Field(default_factory=ToolListing)
    custody: CustodyPolicy = Field(default_factory=CustodyPolicy)
    retention: RetentionPolicy = Field(default_factory=RetentionPolicy)
    interceptors: dict[str, InterceptorPolicy] = Field(
        default_factory=dict,
        description="Per middleware or pipeline, recommendations for callers that invoke it as an interceptor.",
    )
    gateway: GatewayPolicy = Field(default_factory=GatewayPolicy)
    identity: IdentityPolicy = Field(default_factory=IdentityPolicy)
    agentic_groups: bool = Field(
        default=False,
        description="Offer enable_groups and disable_groups in sessions of the handshake revision.",
    )

    def tool_hook_of(self, kind: PrimitiveKind, name: str, server: str) -> ToolHook | None:
        """Return the tool hook that applies to a primitive, or None."""
        for hook in self.passages:
            matches = kind.value in hook.kinds and (hook.servers is None or server in hook.servers)
            if matches and any(Glob(pattern).matches(name) for pattern in hook.names):
                return hook
        return None
