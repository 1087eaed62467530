"""What the gateway does, over REST: tokens by model, what is under way, and whether masking is on for a client."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from app.api.access.policies import SampleAnswer
from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, KeyId
from app.services.gateway.usage import GatewayUsage
from app.services.previews.clients import ClientPreviews
from app.services.previews.policies import PolicyPreviews

ProviderQuery = Annotated[str, Query(max_length=64, description="Name of a provider; absent: any.")]
ModelQuery = Annotated[str, Query(max_length=200, description="Model, by the provider's name; absent: any.")]

router = new_router("/gateway", "gateway")


class ModelUseAnswer(AnswerBody):
    """Answers of one model."""

    provider: str
    model: str
    answers: int
    failed: int
    streams: int
    sent: int = Field(description="Tokens of requests, by the provider's count.")
    cached: int = Field(description="Those of them that came from the provider's cache.")
    cached_share: float | None = Field(description="`cached` / `sent`; null: no token was counted.")
    received: int = Field(description="Tokens of answers.")
    median_first_byte_ms: float | None


class GatewayUseAnswer(AnswerBody):
    """The use by provider and model, of the newest answers of the last 24 hours."""

    models: Sequence[ModelUseAnswer]
    looked_at: int = Field(description="How many answers were looked at, 1,000 at most.")
    more: bool = Field(description="Whether there were others in that time.")


class UnderWayAnswer(AnswerBody):
    """What is under way in the process that answers."""

    doors: dict[str, int] = Field(description="Requests and streams of the tenant, by API.")


class ClientMaskingAnswer(AnswerBody):
    """What happens to the requests of a client."""

    policy_version: int
    is_on: bool = Field(description="Whether what is found is hidden.")
    reasons: Sequence[str] = Field(description="Why not, and what else keeps the client from using it.")
    steps: Sequence[str] = Field(description="Middlewares for its requests, in order.")
    restores: bool = Field(description="Whether originals are put into its answers.")
    sample: str = Field(description="An invented text.")
    outcome: SampleAnswer = Field(description="What the provider would get of it.")


@router.get("/usage", summary="Count the tokens of the last day by model")
async def get_gateway_usage(caller: CallerDep, services: ServicesDep, info: InfoDep) -> GatewayUseAnswer:
    """Return what the audit record says of the newest answers. Needs the role auditor, and is recorded."""
    usage = GatewayUsage(services.audit, services.invoke.traffic)
    return GatewayUseAnswer.model_validate(await usage.recent(caller, info))


@router.get("/under-way", summary="Count the requests that are under way")
async def get_gateway_load(caller: CallerDep, services: ServicesDep, info: InfoDep) -> UnderWayAnswer:
    """Return the requests and streams of the tenant in this process. Needs the role operator or auditor."""
    usage = GatewayUsage(services.audit, services.invoke.traffic)
    return UnderWayAnswer(doors=dict(await usage.under_way(caller, info)))


@router.get("/clients/{key_id}", summary="Say whether masking is on for a client")
async def get_client_masking(
    key_id: KeyId,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    provider: ProviderQuery = "",
    model: ModelQuery = "",
) -> ClientMaskingAnswer:
    """Return which policy and pipeline apply to requests of a key, with an invented sample shown as the model gets it.

    Needs the role operator.
    """
    previews = PolicyPreviews(services.policies, services.invoke)
    masking: Any = await ClientPreviews(services.access, previews).masking(
        caller, key_id, info, provider=provider, model=model
    )
    return ClientMaskingAnswer.model_validate(masking)
