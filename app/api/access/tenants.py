"""Tenants over REST, for operators of the tenant ``system``."""

from datetime import datetime

from pydantic import ConfigDict, Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import (
    AnswerBody,
    Body,
    CursorQuery,
    LimitQuery,
    Page,
    TenantName,
    TenantPath,
    answer_page,
)
from app.core.access import Role
from app.edge.limits import needs

router = new_router("/tenants", "tenants")


class TenantBody(Body):
    """A new tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme"}]})

    name: TenantName = Field(
        description="1 to 63 lower-case letters, digits and hyphens; a name is never reused."
    )


class TenantChange(Body):
    """A change to a tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"disabled": False}]})

    disabled: bool = Field(description="Whether to refuse all keys of the tenant; its data stays.")


class TenantAnswer(AnswerBody):
    """A tenant."""

    name: str
    created: datetime
    created_by: str
    disabled: datetime | None
    erased: datetime | None = Field(default=None, description="When its erasure was ordered.")
    emptied: datetime | None = Field(default=None, description="When nothing was left to delete.")


@router.get("", summary="List tenants")
async def list_tenants(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[TenantAnswer]:
    """Return tenants by name. Needs the role operator in the tenant `system`."""
    tenants = await services.tenants.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(tenants, limit, TenantAnswer.model_validate, lambda tenant: tenant.name)


@router.post("", status_code=201, summary="Create a tenant")
@needs(Role.OPERATOR, action="tenant.create")
async def create_tenant(
    body: TenantBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TenantAnswer:
    """Create a tenant with a name that was never used. Needs the role operator in the tenant `system`."""
    return TenantAnswer.model_validate(await services.tenants.create(caller, body.name, info))


@router.get("/{tenant}", summary="Get a tenant")
async def get_tenant(
    tenant: TenantPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TenantAnswer:
    """Return a tenant. Needs the role operator in the tenant `system`."""
    return TenantAnswer.model_validate(await services.tenants.get(caller, tenant, info))


@router.patch("/{tenant}", summary="Disable or enable a tenant")
@needs(Role.OPERATOR, action="tenant.change")
async def change_tenant(
    tenant: TenantPath, body: TenantChange, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TenantAnswer:
    """Disable or enable a tenant other than `system`. Needs the role operator in the tenant `system`."""
    switch = services.tenants.disable if body.disabled else services.tenants.enable
    return TenantAnswer.model_validate(await switch(caller, tenant, info))


@router.delete("/{tenant}", status_code=202, summary="Erase a tenant")
@needs(Role.OPERATOR, action="tenant.erase")
async def erase_tenant(
    tenant: TenantPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TenantAnswer:
    """Delete all that a disabled tenant has, permanently; its name and its record stay.

    The background begins within a minute; `emptied` says when it is done. Needs the role operator in the tenant
    `system`.
    """
    return TenantAnswer.model_validate(await services.tenant_erasure.erase(caller, tenant, info))
