"""Policies over REST: what a tenant allows, in versions."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Body as FromBody
from fastapi import Query
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, LimitQuery, Page, TenantPath, answer_page
from app.core.contracts.policy import Policy

_MAX_VERSION: Final = 2**53
_EXAMPLES: Final = {
    "strict": Example(
        summary="Redact strictly, whatever callers ask for",
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
    Query(ge=0, le=_MAX_VERSION, description="Refuse the change (409) unless this version holds."),
]

router = new_router("/policies", "policies")


class PolicyAnswer(AnswerBody):
    """A version of a policy; version 0 is what holds before anybody has said anything."""

    version: int
    policy: Policy
    created: datetime | None
    created_by: str | None = Field(description="Id of the key that stored it.")


@router.get("", summary="Get the policy of the caller's tenant")
async def get_own_policy(caller: CallerDep, services: ServicesDep, info: InfoDep) -> PolicyAnswer:
    """Return the version that holds; needs the role operator."""
    return PolicyAnswer.model_validate(await services.policies.current(caller, None, info))


@router.put("", summary="Change the policy of the caller's tenant")
async def put_own_policy(
    body: PolicyBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> PolicyAnswer:
    """Store the next version, which holds from now on in every process; needs the role operator."""
    stored = await services.policies.put(caller, None, body, info, expected_version=expected_version)
    return PolicyAnswer.model_validate(stored)


@router.get("/{tenant}", summary="Get a tenant's policy")
async def get_policy(
    tenant: TenantPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> PolicyAnswer:
    """Return the version that holds; another tenant than one's own is for operators of `system`."""
    return PolicyAnswer.model_validate(await services.policies.current(caller, tenant, info))


@router.put("/{tenant}", summary="Change a tenant's policy")
async def put_policy(
    tenant: TenantPath,
    body: PolicyBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> PolicyAnswer:
    """Store the next version; another tenant than one's own is for operators of `system`."""
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
        int | None, Query(ge=0, le=_MAX_VERSION, description="`next` of the page before.")
    ] = None,
) -> Page[PolicyAnswer]:
    """Return versions, newest first; needs the role operator."""
    versions = await services.policies.history(caller, tenant, info, before=cursor, limit=limit + 1)
    return answer_page(versions, limit, PolicyAnswer.model_validate, lambda version: str(version.version))
