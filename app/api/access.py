"""API keys over REST: list, create, rotate, revoke; secrets are shown once."""

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
    """What a new key may do and how long."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"roles": ["invoker"], "name": "chat backend"}]}
    )

    roles: list[Role] = Field(min_length=1, max_length=len(Role), description="What the key may do.")
    name: Word | None = Field(default=None, min_length=1, description="For people: who or what uses it.")
    expires: Moment | None = Field(default=None, description="When it ends; null: never.")
    cidrs: list[Word] = Field(
        default=[], max_length=_MAX_CIDRS, description="Networks it may be used from; none: from anywhere."
    )
    tenant: TenantName | None = Field(
        default=None, description="Another tenant; for key custodians of the tenant `system`."
    )
    override_unions: bool = Field(
        default=False, description="Allow a union of roles that is otherwise refused; it is recorded."
    )


class RotationBody(Body):
    """How long the old secret lives on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_s": 3600}]})

    overlap_s: float = Field(
        default=DEFAULT_OVERLAP_S, ge=0, le=MAX_OVERLAP_S, description="0 ends the old secret at once."
    )


class KeyAnswer(AnswerBody):
    """A key without its secret."""

    id: str
    tenant: str
    name: str | None
    roles: list[Role]
    cidrs: list[str]
    created: datetime
    created_by: str = Field(description="Id of the key that made it.")
    expires: datetime | None
    revoked: datetime | None
    rotating_until: datetime | None = Field(description="When the secret before the last rotation ends.")

    @field_validator("roles", mode="before")
    @classmethod
    def in_order(cls, roles: Any) -> Any:
        """Sort a set of roles."""
        return sorted(roles)


class NewKeyAnswer(KeyAnswer):
    """A key with its secret, shown this once."""

    key: str = Field(description="The whole key; it cannot be shown again.")


@router.get("", summary="List keys")
async def list_keys(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    tenant: Annotated[TenantName | None, Query(description="Another tenant (tenant `system` only).")] = None,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[KeyAnswer]:
    """By id, revoked and expired ones too; needs the role key-custodian."""
    keys = await services.access.list_keys(caller, tenant, info, after=cursor, limit=limit + 1)
    return answer_page(keys, limit, KeyAnswer.model_validate, lambda key: key.id)


@router.post("", status_code=201, summary="Create a key")
async def create_key(body: KeyBody, caller: CallerDep, services: ServicesDep, info: InfoDep) -> NewKeyAnswer:
    """Make a key and show its secret, this once; needs the role key-custodian."""
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
    """Everything but the secret; needs the role key-custodian."""
    return KeyAnswer.model_validate(await services.access.get_key(caller, key_id, info))


@router.delete("/{key_id}", summary="Revoke a key")
async def revoke_key(key_id: KeyId, caller: CallerDep, services: ServicesDep, info: InfoDep) -> KeyAnswer:
    """End a key with all its secrets; again is harmless. Needs the role key-custodian."""
    return KeyAnswer.model_validate(await services.access.revoke_key(caller, key_id, info))


@router.post("/{key_id}/rotate", summary="Rotate a key")
async def rotate_key(
    key_id: KeyId,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    body: RotationBody | None = None,
) -> NewKeyAnswer:
    """Give a key a new secret, shown this once; the old one lives on for a while. Needs key-custodian."""
    overlap_s = (body or RotationBody()).overlap_s
    return _shown(await services.access.rotate_key(caller, key_id, info, overlap_s=overlap_s))


def _shown(made: NewKey) -> NewKeyAnswer:
    known = KeyAnswer.model_validate(made.info).model_dump()
    return NewKeyAnswer(key=str(made.key), **known)
