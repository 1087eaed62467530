"""Policies over REST: versioned rules of a tenant."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Query
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, LimitQuery, Page, TenantName, answer_page
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
_PATCHES: Final = {
    "burst": Example(
        summary="Change one limit and drop the grants", value={"limits": {"burst": 50}, "grants": None}
    )
}

PolicyBody = Annotated[Policy, FromBody(openapi_examples=_EXAMPLES)]
PatchBody = Annotated[
    dict[str, Any],
    FromBody(
        openapi_examples=_PATCHES,
        description="JSON merge patch (RFC 7396): null resets a member to its default, objects are merged, lists and "
        "values replace.",
    ),
]
ExpectedQuery = Annotated[
    int | None,
    Query(
        ge=0,
        le=_MAX_VERSION,
        description="The version on which the change is based; required (428). Refused (409) unless it is current.",
    ),
]
TenantQuery = Annotated[
    TenantName | None,
    Query(description="Tenant, if not the caller's; only for operators of the tenant `system`."),
]

router = new_router("/policies", "policies")


class PolicyAnswer(AnswerBody):
    """A version of a policy; version 0 is the default before any was stored."""

    version: int
    policy: Policy
    created: datetime | None
    created_by: str | None = Field(description="Id of the key that stored it.")


class WideningAnswer(AnswerBody):
    """A right that a change widens."""

    pointer: str = Field(description="JSON pointer into the policy.")
    reason: str


class PolicyChangeAnswer(PolicyAnswer):
    """The version that a change made, and what it allows beyond the version before."""

    widened: Sequence[WideningAnswer] = Field(
        description="What callers may do or see now that they could not before; empty: the change widens no right."
    )


@router.get("", summary="Get a policy")
async def get_policy(
    caller: CallerDep, services: ServicesDep, info: InfoDep, tenant: TenantQuery = None
) -> PolicyAnswer:
    """Return the current version. Needs the role operator."""
    return PolicyAnswer.model_validate(await services.policies.current(caller, tenant, info))


@router.put("", summary="Replace a policy")
@needs(Role.OPERATOR, action="policy.put")
async def put_policy(
    body: PolicyBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
    tenant: TenantQuery = None,
) -> PolicyChangeAnswer:
    """Store the next version. Every process uses it at once. Needs the role operator."""
    stored = await services.policies.put(caller, tenant, body, info, expected_version=expected_version)
    return PolicyChangeAnswer.model_validate(stored)


@router.patch("", summary="Change a part of a policy")
@needs(Role.OPERATOR, action="policy.patch")
async def patch_policy(
    body: PatchBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
    tenant: TenantQuery = None,
) -> PolicyChangeAnswer:
    """Store the next version, with what the patch names changed. Needs the role operator."""
    stored = await services.policies.patch(caller, tenant, body, info, expected_version=expected_version)
    return PolicyChangeAnswer.model_validate(stored)


@router.get("/versions", summary="List the versions of a policy")
async def list_policy_versions(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    tenant: TenantQuery = None,
    limit: LimitQuery = 100,
    cursor: Annotated[
        int | None, Query(ge=0, le=_MAX_VERSION, description="`next` of the previous page.")
    ] = None,
) -> Page[PolicyAnswer]:
    """Return versions, newest first. Needs the role operator."""
    versions = await services.policies.history(caller, tenant, info, before=cursor, limit=limit + 1)
    return answer_page(versions, limit, PolicyAnswer.model_validate, lambda version: str(version.version))
