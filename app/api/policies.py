"""Policies over REST: versioned rules of a tenant."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Body as FromBody
from fastapi import Query
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, LimitQuery, Page, TenantPath, answer_page
from app.core.access import Role
from app.core.contracts.policy import Policy
from app.edge.limits import needs

_MAX_VERSION: Final = 2**53
_EXAMPLES: Final = {
    "strict": Example(
        summary="Redact strictly, whatever callers request",
        value={
            "allowed_middlewares": ["pii_redaction", "pii_restoration"],
            "fixed_arguments": {"pii_redaction": {"aggressiveness": "strict"}},
            "limits": {"requests_per_second": 50, "burst": 100},
        },
    )
}

PolicyBody = Annotated[Policy, FromBody(openapi_examples=_EXAMPLES)]
ExpectedQuery = Annotated[
    int | None,
    Query(ge=0, le=_MAX_VERSION, description="Refuse the change (409) unless this is the current version."),
]

router = new_router("/policies", "policies")


class PolicyAnswer(AnswerBody):
    """A version of a policy; version 0 is the default before any was stored."""

    version: int
    policy: Policy
    created: datetime | None
    created_by: str | None = Field(description="Id of the key that stored it.")


@router.get("", summary="Get the policy of the caller's tenant")
async def get_own_policy(caller: CallerDep, services: ServicesDep, info: InfoDep) -> PolicyAnswer:
    """Return the current version. Needs the role operator."""
    return PolicyAnswer.model_validate(await services.policies.current(caller, None, info))


@router.put("", summary="Change the policy of the caller's tenant")
@needs(Role.OPERATOR, action="policy.put")
async def put_own_policy(
    body: PolicyBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> PolicyAnswer:
    """Store the next version. Every process uses it at once. Needs the role operator."""
    stored = await services.policies.put(caller, None, body, info, expected_version=expected_version)
    return PolicyAnswer.model_validate(stored)


@router.get("/{tenant}", summary="Get a tenant's policy")
async def get_policy(
    tenant: TenantPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> PolicyAnswer:
    """Return the current version. Only operators of `system` may name another tenant."""
    return PolicyAnswer.model_validate(await services.policies.current(caller, tenant, info))


@router.put("/{tenant}", summary="Change a tenant's policy")
@needs(Role.OPERATOR, action="policy.put")
async def put_policy(
    tenant: TenantPath,
    body: PolicyBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> PolicyAnswer:
    """Store the next version. Only operators of `system` may name another tenant."""
    stored = await services.policies.put(caller, tenant, body, info, expected_version=expected_version)
    return PolicyAnswer.model_validate(stored)


@router.get("/{tenant}/versions", summary="List the versions of a tenant's policy")
async def list_versions(
    tenant: TenantPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: Annotated[
        int | None, Query(ge=0, le=_MAX_VERSION, description="`next` of the previous page.")
    ] = None,
) -> Page[PolicyAnswer]:
    """Return versions, newest first. Needs the role operator."""
    versions = await services.policies.history(caller, tenant, info, before=cursor, limit=limit + 1)
    return answer_page(versions, limit, PolicyAnswer.model_validate, lambda version: str(version.version))
