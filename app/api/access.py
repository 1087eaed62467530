"""API keys over REST: list, create, rotate and revoke them; secrets are shown once."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import ConfigDict, Field, field_validator

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
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
from app.core.access import Role
from app.services.access.access import DEFAULT_OVERLAP_S, MAX_OVERLAP_S, NewKey

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

    @field_validator("roles", mode="before")
    @classmethod
    def in_order(cls, roles: Any) -> Any:
        """Sort a set of roles."""
        return sorted(roles)


class NewKeyAnswer(KeyAnswer):
    """A key with its secret, which is shown only once."""

    key: str = Field(description="The whole key; it cannot be shown again.")


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
    return answer_page(keys, limit, KeyAnswer.model_validate, lambda key: key.id)


@router.post("", status_code=201, summary="Create a key")
async def create_key(body: KeyBody, caller: CallerDep, services: ServicesDep, info: InfoDep) -> NewKeyAnswer:
    """Create a key and show its secret, this once. Needs the role key-custodian."""
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
    return _shown(made)


@router.get("/{key_id}", summary="Get a key")
async def get_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """Return a key without its secret. Needs the role key-custodian."""
    return KeyAnswer.model_validate(await services.access.get_key(caller, key_id, info))


@router.delete("/{key_id}", summary="Revoke a key")
async def revoke_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """Revoke a key with all its secrets; repeating it is harmless. Needs the role key-custodian."""
    return KeyAnswer.model_validate(await services.access.revoke_key(caller, key_id, info))


@router.post("/{key_id}/rotate", summary="Rotate a key")
async def rotate_key(
    key_id: KeyId,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    body: RotationBody | None = None,
) -> NewKeyAnswer:
    """Give a key a new secret, shown only once; the old one works for `overlap_s`. Needs the role key-custodian."""
    overlap_s = (body or RotationBody()).overlap_s
    return _shown(await services.access.rotate_key(caller, key_id, info, overlap_s=overlap_s))


def _shown(made: NewKey) -> NewKeyAnswer:
    fields = KeyAnswer.model_validate(made.info).model_dump()
    return NewKeyAnswer(key=str(made.key), **fields)
