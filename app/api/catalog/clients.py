"""What a client sees, over REST: the catalog of a key, for operators."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, KeyId
from app.core.catalog.primitives import PrimitiveKind
from app.services.previews.catalogs import concern_values

_MOST_CONCERNS = 64

GroupQuery = Annotated[
    str | None, Query(max_length=64, description="Look through the endpoint of this group.")
]
ConcernQuery = Annotated[
    list[str],
    Query(
        max_length=_MOST_CONCERNS,
        description="Concerns in the client's request, each as `name=value`.",
    ),
]

router = new_router("/clients", "clients")


class SeenPrimitiveAnswer(AnswerBody):
    """A primitive that the client may use."""

    kind: PrimitiveKind
    name: str
    server: str
    staged: bool = Field(description="Whether its description is read before it is called.")
    listed: bool = Field(description="false: a concern keeps it out of lists.")
    groups: Sequence[str]
    concerns: Mapping[str, Any]


class ClientCatalogAnswer(AnswerBody):
    """What a client sees."""

    policy_version: int
    restricted: bool = Field(description="Whether grants or a group decide what it sees.")
    configuration: Mapping[str, Any] = Field(description="Concerns that filter its lists.")
    warnings: Sequence[Mapping[str, str]]
    primitives: Sequence[SeenPrimitiveAnswer] = Field(description="The first 500, listed ones first.")
    listed: int = Field(description="How many are in its lists.")
    filtered: int = Field(description="How many it may use that a concern keeps out of lists.")
    withheld: int = Field(description="How many there are beside them.")
    refused: str | None = Field(description="Why it sees nothing at all; null: it may list.")


@router.get("/{key_id}/catalog", summary="Say what a client sees")
async def get_client_catalog(
    key_id: KeyId,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    group: GroupQuery = None,
    concern: ConcernQuery = [],  # noqa: B006 - read only
) -> ClientCatalogAnswer:
    """Return the tools, prompts and resources that a key may use, and in which form. Needs the role operator."""
    seen = await services.client_catalogs.seen(
        caller, key_id, info, group=group, concerns=concern_values(concern)
    )
    return ClientCatalogAnswer.model_validate(seen)
