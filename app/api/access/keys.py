"""API keys over REST: list, create, approve, rotate and revoke them; secrets are shown once."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import ConfigDict, Field, field_validator

from app.api.auth import CallerDep, InfoDep, RouteServices, ServicesDep, new_router
from app.api.fields import (
    AnswerBody,
    Body,
    CursorQuery,
    KeyId,
    LimitQuery,
    Moment,
    Page,
    TenantName,
    Word,
    answer_page,
)
from app.core.access import KeyState, Role
from app.core.identities import EndUserRule
from app.edge.limits import needs
from app.services.access.access import DEFAULT_OVERLAP_S, MAX_OVERLAP_S, NewKey
from app.services.access.identity.shown_issuers import end_user_rules, identities
from app.services.access.key_usage import KeyUsage
from app.store.access.access import KeyInfo

_MAX_CIDRS: Final = 100

router = new_router("/keys", "keys")


class KeyBody(Body):
    """The roles, expiry and networks of a new key."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"roles": ["invoker"], "name": "chat backend"}]}
    )

    roles: list[Role] = Field(min_length=1, max_length=len(Role), description="Roles of the key.")
    name: Word | None = Field(
        default=None, min_length=1, description="Label that says who or what uses the key."
    )
    expires: Moment | None = Field(default=None, description="When the key expires; null: never.")
    cidrs: list[Word] = Field(
        default=[],
        max_length=_MAX_CIDRS,
        description="Networks from which the key may be used; empty: any network.",
    )
    tenant: TenantName | None = Field(
        default=None,
        description="Tenant of the key, if not the caller's; only for key custodians of the tenant `system`.",
    )
    override_unions: bool = Field(
        default=False,
        description="Allow a combination of roles that is refused by default; this is recorded.",
    )


class RotationBody(Body):
    """How long the old secret stays valid."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_s": 3600}]})

    overlap_s: float = Field(
        default=DEFAULT_OVERLAP_S,
        ge=0,
        le=MAX_OVERLAP_S,
        description="Seconds for which the old secret stays valid; 0 ends it at once.",
    )


class KeyAnswer(AnswerBody):
    """A key without its secret."""

    id: str
    tenant: str
    name: str | None
    roles: list[Role]
    cidrs: list[str]
    created: datetime
    created_by: str = Field(description="Id of the key that created it.")
    expires: datetime | None
    revoked: datetime | None
    rotating_until: datetime | None = Field(
        description="When the secret before the last rotation stops working."
    )
    state: KeyState = Field(description="`pending`: a role waits for the approval of another key custodian.")
    pending_roles: list[Role] = Field(description="Roles without effect until then.")
    pending_until: datetime | None = Field(
        description="When they take effect without an approval; revoke the key to prevent it."
    )
    pending_by: str | None = Field(description="Id of the key that requested them.")

    @field_validator("roles", "pending_roles", mode="before")
    @classmethod
    def in_order(cls, roles: Any) -> Any:
        """Sort a set of roles."""
        return sorted(roles)


class NewKeyAnswer(KeyAnswer):
    """A key with its secret, which is shown only once; with `state: pending` some of its roles have no effect yet."""

    key: str = Field(description="The whole key; it cannot be shown again.")


class KeyUseAnswer(AnswerBody):
    """When a key was used last."""

    key_id: str
    last_used: date | None = Field(
        description="Last day (UTC) on which the key is on record; null: none within 90 days."
    )


class IdentityRuleAnswer(AnswerBody):
    """A rule that makes callers."""

    when: Mapping[str, Any] = Field(description="Claims that the token must have.")
    groups: Sequence[str] = Field(description="Groups of the mirror in which its owner must be.")
    roles: Sequence[Role]
    grants: Sequence[str]
    networks: Sequence[str] = Field(description="Networks that the caller may come from; empty: any.")
    source: Literal["settings", "stored", "policy"] = Field(
        description="Where the rule stands; `stored`: in an issuer that an operator of `system` has added."
    )


class IdentityAnswer(AnswerBody):
    """An issuer whose tokens can make callers of the tenant."""

    issuer: str
    audience: Sequence[str]
    algorithms: Sequence[str]
    max_token_age_s: int
    rules: Sequence[IdentityRuleAnswer] = Field(description="In the order in which they count.")


class EndUserRuleAnswer(AnswerBody):
    """A rule that bounds what services may do for end users."""

    users: Sequence[str] = Field(description="Patterns for their names; empty: everybody in the groups.")
    groups: Sequence[str] = Field(description="Groups of the mirror in which they must be.")
    roles: Sequence[Role] | None = Field(description="The service has none but these; null: its own.")
    grants: Sequence[str] | None = Field(
        description="Names of these users in lists; null: none is looked for."
    )
    refuse: bool
    source: Literal["settings", "policy"] = Field(description="Where the rule stands.")


class IdentitiesAnswer(AnswerBody):
    """The issuers of a tenant, and the rules for the end users whom services name."""

    issuers: Sequence[IdentityAnswer]
    end_users: Sequence[EndUserRuleAnswer] = Field(
        description="In the order in which they count, each place for itself."
    )


_PENDING: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": NewKeyAnswer, "description": "The key exists; a role of it waits for an approval."}
}


@router.get("", summary="List keys")
async def list_keys(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    tenant: Annotated[
        TenantName | None,
        Query(
            description="Tenant whose keys to list, if not the caller's; only for callers of the tenant `system`."
        ),
    ] = None,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[KeyAnswer]:
    """Return keys by id, including revoked and expired ones. Needs the role key-custodian."""
    keys = await services.access.list_keys(caller, tenant, info, after=cursor, limit=limit + 1)
    moment = services.access.now()
    return answer_page(keys, limit, lambda key: key_answer(key, moment), lambda key: key.id)


@router.post("", status_code=201, responses=_PENDING, summary="Create a key")
@needs(Role.KEY_CUSTODIAN, action="key.create")
async def create_key(
    body: KeyBody, caller: CallerDep, services: ServicesDep, info: InfoDep, response: Response
) -> NewKeyAnswer:
    """Create a key and show its secret, this once. Needs the role key-custodian.

    The roles restorer and operator have no effect (202, `state: pending`) until another custodian approves the key, or
    until the delay of the policy (`custody.delay_h`) has passed.
    """
    made = await services.access.create_key(
        caller,
        body.roles,
        info,
        tenant=body.tenant,
        name=body.name,
        expires=body.expires,
        cidrs=body.cidrs,
        override_unions=body.override_unions,
    )
    return _shown(made, services, response)


@router.get("/usage", summary="Say when keys were used last")
async def get_key_usage(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[KeyUseAnswer]:
    """Return the last day of use of the tenant's keys, by id. Needs the role key-custodian.

    Days come from the counts of the audit record, some seconds behind it, so that no call writes anything for this.
    """
    keys = await services.access.list_keys(caller, None, info, after=cursor, limit=limit + 1)
    used = await KeyUsage(services.access).last_used(caller, [key.id for key in keys], info)
    return answer_page(
        keys,
        limit,
        lambda key: KeyUseAnswer(key_id=key.id, last_used=used.get(key.id)),
        lambda key: key.id,
    )


@router.get("/identities", summary="List the issuers whose tokens make callers")
async def list_identities(caller: CallerDep, services: ServicesDep, info: InfoDep) -> IdentitiesAnswer:
    """Return issuers with the rules that map their tokens to the caller's tenant, and rules for end users.

    Needs the role key-custodian.
    """
    listed = await identities(services.access, services.policies, caller, info)
    bounds = await end_user_rules(services.access, caller)
    return IdentitiesAnswer(
        issuers=[IdentityAnswer.model_validate(issuer) for issuer in listed],
        end_users=[_end_user_rule(rule, source) for source, rules in bounds for rule in rules.rules],
    )


def _end_user_rule(rule: EndUserRule, source: Literal["settings", "policy"]) -> EndUserRuleAnswer:
    return EndUserRuleAnswer(
        users=rule.users,
        groups=rule.groups,
        roles=None if rule.roles is None else sorted(rule.roles),
        grants=None if rule.grants is None else sorted(rule.grants),
        refuse=rule.refuse,
        source=source,
    )


@router.get("/{key_id}", summary="Get a key")
async def get_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """Return a key without its secret. Needs the role key-custodian."""
    return key_answer(await services.access.get_key(caller, key_id, info), services.access.now())


@router.delete("/{key_id}", summary="Revoke a key")
@needs(Role.KEY_CUSTODIAN, action="key.revoke")
async def revoke_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """Revoke a key with all its secrets; repeating it is harmless. Needs the role key-custodian."""
    return key_answer(await services.access.revoke_key(caller, key_id, info), services.access.now())


@router.post("/{key_id}/approve", summary="Approve a key that waits")
@needs(Role.KEY_CUSTODIAN, action="key.approve")
async def approve_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """Give a key the roles in `pending_roles`. Needs the role key-custodian.

    Refused (403) for the key that requested them, for the key itself, and for a key that either of them made or
    rotated within the delay: whoever made a secret may know it.
    """
    return key_answer(await services.access.approve_key(caller, key_id, info), services.access.now())


@router.post("/{key_id}/rotate", responses=_PENDING, summary="Rotate a key")
@needs(Role.KEY_CUSTODIAN, action="key.rotate")
async def rotate_key(
    key_id: KeyId,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    response: Response,
    body: RotationBody | None = None,
) -> NewKeyAnswer:
    """Give a key a new secret, shown only once; the old one works for `overlap_s`. Needs the role key-custodian.

    Of a key with the role restorer or operator, the new secret does not have it (202, `state: pending`) until another
    custodian approves it or the delay has passed; the old one does as before, for `overlap_s`.
    """
    overlap_s = (body or RotationBody()).overlap_s
    made = await services.access.rotate_key(caller, key_id, info, overlap_s=overlap_s)
    return _shown(made, services, response)


def key_answer(key: KeyInfo, moment: datetime) -> KeyAnswer:
    """Return a key as custodians see it at ``moment``."""
    return KeyAnswer.model_validate({**asdict(key), "state": key.state(moment)})


def _shown(made: NewKey, services: RouteServices, response: Response) -> NewKeyAnswer:
    described = key_answer(made.info, services.access.now())
    if described.state == "pending":
        response.status_code = HTTPStatus.ACCEPTED
    return NewKeyAnswer(key=str(made.key), **described.model_dump())
