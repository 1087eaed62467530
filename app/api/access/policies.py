"""Policies over REST: versioned rules of a tenant."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import Body as FromBody
from fastapi import Query
from fastapi.openapi.models import Example
from pydantic import Field, model_validator

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, LimitQuery, Page, TenantName, answer_page
from app.core.access import Role
from app.core.contracts.policy import Policy
from app.edge.limits import needs
from app.services.access.policy_documents import merged, policy_of
from app.services.previews.policies import Door, PolicyPreviews, PolicySample

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

_PREVIEWS: Final = {
    "looser": Example(
        summary="What a model would see if addresses stayed",
        value={
            "patch": {"default_arguments": {"pii_redaction": {"exclude": ["email"]}}},
            "sample": {"context": [{"type": "text", "text": "Mail jane.smith@example.com."}]},
        },
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


class SampleBody(Body):
    """Content to try, and the way on which it comes."""

    context: list[dict[str, Any]] = Field(description="Content items; they are not kept.")
    door: Door = Field(
        default="gateway",
        description="`gateway`: a request for `model` of `provider`. `call`: an invocation of `middleware` without "
        "arguments. `tool`: a result of `tool` of `server`.",
    )
    provider: str = Field(default="", max_length=200, description="Provider; without: any.")
    model: str = Field(default="", max_length=200, description="Model, by the provider's name; without: any.")
    middleware: str = Field(
        default="pii_redaction", max_length=200, description="Middleware or pipeline that is invoked."
    )
    tool: str = Field(default="", max_length=2048, description="Exposed name of a tool.")
    server: str = Field(default="", max_length=64, description="Its server.")

    def sample(self) -> PolicySample:
        """Return the sample as the service takes it."""
        places = {
            "gateway": (self.provider, self.model),
            "call": (self.middleware, ""),
            "tool": (self.tool, self.server),
        }
        return PolicySample(self.context, self.door, *places[self.door])


class PreviewBody(Body):
    """A policy, or a patch of the one that holds, and a sample."""

    policy: Policy | None = Field(default=None, description="The whole policy, as PUT takes it.")
    patch: dict[str, Any] | None = Field(default=None, description="JSON merge patch, as PATCH takes it.")
    sample: SampleBody | None = None

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if (self.policy is None) == (self.patch is None):
            raise ValueError("give either policy or patch")
        return self


class DifferenceAnswer(AnswerBody):
    """A member that differs."""

    pointer: str = Field(description="JSON pointer into the policy, at most two levels deep.")
    before: Any = Field(description="Its value before.")
    after: Any = Field(description="Its value after.")


class SampleAnswer(AnswerBody):
    """What a policy does to a sample."""

    content: Sequence[Any] = Field(description="The items that pass; handles are temporary.")
    findings: dict[str, int] = Field(description="Numbers of findings by type.")
    steps: Sequence[str] = Field(description="Middlewares that looked at it, in order.")
    refused: str | None = Field(description="Why nothing passes; null: it passes.")
    note: str | None = Field(description="What else there is to know, in a sentence.")


class ComparisonAnswer(AnswerBody):
    """How two policies differ."""

    version: int = Field(description="The version that is compared.")
    changes: Sequence[DifferenceAnswer]
    widened: Sequence[WideningAnswer] = Field(
        description="What callers may do or see under the other one; empty: it widens no right."
    )


class PreviewAnswer(ComparisonAnswer):
    """What storing a policy would change."""

    now: SampleAnswer | None = Field(description="The sample under the version that holds.")
    then: SampleAnswer | None = Field(description="The sample under the other one.")


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


@router.get("/difference", summary="Compare two versions of a policy")
async def compare_policies(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    before: Annotated[
        int | None,
        Query(
            ge=0, le=_MAX_VERSION, description="A version; 0: the default; absent: the one before `after`."
        ),
    ] = None,
    after: Annotated[
        int | None,
        Query(ge=0, le=_MAX_VERSION, description="The other version; absent: the one that holds."),
    ] = None,
    tenant: TenantQuery = None,
) -> ComparisonAnswer:
    """Return what `after` changes, and what it allows beyond `before`. Needs the role operator."""
    previews = PolicyPreviews(services.policies, services.invoke)
    return ComparisonAnswer.model_validate(await previews.compare(caller, before, after, tenant, info))


@router.post("/preview", summary="Show what storing a policy would do")
@needs(Role.OPERATOR, action="policy.preview")
async def preview_policy(
    body: Annotated[PreviewBody, FromBody(openapi_examples=_PREVIEWS)],
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    tenant: TenantQuery = None,
) -> PreviewAnswer:
    """Check a policy as PUT does, compare it with the version that holds, and try both on a sample; nothing is stored.

    A sample runs with the middlewares of the caller's tenant, whatever the caller may invoke. Needs the role operator.
    """
    policy = body.policy
    if policy is None:
        current = await services.policies.current(caller, tenant, info)
        policy = policy_of(merged(current.policy.model_dump(mode="json"), body.patch))
    previews = PolicyPreviews(services.policies, services.invoke)
    sample = body.sample.sample() if body.sample is not None else None
    return PreviewAnswer.model_validate(await previews.preview(caller, policy, info, sample, tenant))
