"""The model providers of a tenant over REST: add, change, test and remove them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Body as FromBody
from fastapi import Path
from fastapi.openapi.models import Example
from pydantic import ConfigDict, Field, WithJsonSchema

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, CursorQuery, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.errors import InvalidArgumentsError
from app.core.gateway.providers import (
    PROVIDER_NAME,
    ModelName,
    ProviderEntry,
    ProviderKindName,
    ProviderLimits,
)
from app.edge.limits import needs
from app.services.gateway.provider_sealing import SubmittedProvider, shown_provider
from app.services.gateway.providers import ProviderRecord

_EXAMPLE: Final[dict[str, Any]] = {
    "kind": "openai",
    "baseUrl": "https://api.openai.com/v1",
    "apiKey": "sk-the-key-of-the-provider",
    "models": ["gpt-*"],
    "aliases": {"fast": "gpt-5-mini"},
}
_ANSWER: Final[dict[str, Any]] = {
    **{name: value for name, value in _EXAMPLE.items() if name != "apiKey"},
    "name": "main",
    "hasApiKey": True,
    "extraHeaders": {},
    "order": 10,
    "callerKey": False,
    "allowedNetworks": [],
    "limits": ProviderLimits().model_dump(mode="json", by_alias=True),
    "description": None,
    "origin": "api",
    "created": "2026-11-23T12:00:00Z",
    "created_by": "0123abcd",
    "updated": "2026-11-23T12:00:00Z",
}


def _body_schema() -> dict[str, Any]:
    """Return the schema of a provider in requests: a secret may be null or absent, which keeps the stored one."""
    schema = ProviderEntry.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    schema.pop("title", None)
    kept = "Secret, never shown again. null, or no member at all, keeps the stored value"
    schema["properties"]["name"]["description"] = "Optional; must equal the name in the path."
    schema["properties"]["apiKey"]["description"] = f"{kept}; an empty text removes it."
    schema["properties"]["extraHeaders"] = {
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            {"type": "null"},
        ],
        "description": f"Headers of every request to it. {kept}.",
    }
    schema["properties"]["limits"] = ProviderLimits.model_json_schema(by_alias=True)
    schema["required"] = [name for name in schema["required"] if name != "name"]
    schema["description"] = "A provider in the form of the declarative file; see docs/gateway.md."
    return schema


ProviderBody = Annotated[
    dict[str, Any],
    WithJsonSchema(_body_schema()),
    FromBody(
        openapi_examples={"main": Example(summary="The API of OpenAI, with a short name", value=_EXAMPLE)}
    ),
]
ProviderPath = Annotated[
    str, Path(pattern=rf"^{PROVIDER_NAME.pattern}$", description="Name of a provider.", examples=["main"])
]

router = new_router("/providers", "providers")


class StoredProviderAnswer(AnswerBody):
    """A provider without its secrets."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANSWER]})

    name: str
    kind: ProviderKindName
    baseUrl: str = Field(description="Address in front of its paths.")  # noqa: N815 - the file's names
    hasApiKey: bool = Field(description="Whether a key is stored.")  # noqa: N815
    extraHeaders: dict[str, None] = Field(  # noqa: N815
        description="Headers of every request to it, by name; values are secret."
    )
    models: Sequence[ModelName] = Field(description="Models that may be used; `*` stands for any characters.")
    aliases: dict[ModelName, ModelName] = Field(description="Names for its models.")
    order: int | None = Field(description="Where several providers have a model, the lowest number is used.")
    callerKey: bool = Field(description="Whether callers may bring a key of their own.")  # noqa: N815
    allowedNetworks: Sequence[str] = Field(  # noqa: N815
        description="Networks that are not public where it may be."
    )
    limits: ProviderLimits
    description: str | None
    origin: Literal["file", "host", "api"] = Field(
        description="`file`: managed by the declarative file; `host`: by the command line; `api`: over REST."
    )
    created: datetime
    created_by: str = Field(description="Id of the key that stored it first.")
    updated: datetime


class ProviderTrialAnswer(AnswerBody):
    """What asking a provider for its models showed."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [{"ready": True, "status": 200, "models": ["gpt-5-mini"], "error": None}]
        },
    )

    ready: bool = Field(description="Whether it answered with a list of models.")
    status: int | None = Field(description="HTTP status of its answer; null: none came.")
    models: Sequence[str] = Field(description="Models that it lists and that `models` allows.")
    error: str | None = Field(description="Why it is not ready, in a sentence.")


@router.get("", summary="List providers")
async def list_providers(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[StoredProviderAnswer]:
    """Return providers by name. Needs the role operator."""
    providers = await services.providers.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(providers, limit, provider_answer, lambda record: record.entry.name)


@router.get("/{name}", summary="Get a provider")
async def get_provider(
    name: ProviderPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> StoredProviderAnswer:
    """Return a provider without its secrets. Needs the role operator."""
    return provider_answer(await services.providers.get(caller, name, info))


@router.put("/{name}", summary="Add or change a provider")
@needs(Role.OPERATOR, action="providers.put")
async def put_provider(
    name: ProviderPath, body: ProviderBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> StoredProviderAnswer:
    """Store all settings of a provider; omitted ones get their defaults, omitted secrets are kept.

    If `baseUrl` or `allowedNetworks` change, secrets must be sent again. The address must be public, or in a network
    of `allowedNetworks` that SLUICE_UPSTREAMS__ALLOWED_NETWORKS covers. Needs the role operator.
    """
    if body.get("name") not in (None, name):
        raise InvalidArgumentsError(
            "The name in the body differs from the name in the path; leave it out.",
            details={"pointer": "/name"},
        )
    return provider_answer(await services.providers.put(caller, name, SubmittedProvider(body), info))


@router.delete("/{name}", status_code=204, summary="Remove a provider")
@needs(Role.OPERATOR, action="providers.remove")
async def remove_provider(
    name: ProviderPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> None:
    """Remove a provider and its secrets. Needs the role operator."""
    await services.providers.remove(caller, name, info)


@router.post("/{name}/test", summary="Ask a provider for its models once")
@needs(Role.OPERATOR, action="providers.test")
async def test_provider(
    name: ProviderPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ProviderTrialAnswer:
    """List the provider's models with the stored key. If that fails, `ready` is false and `error` says why."""
    return ProviderTrialAnswer.model_validate(await services.providers.test(caller, name, info))


def provider_answer(record: ProviderRecord) -> StoredProviderAnswer:
    """Return a provider as operators see it."""
    stored = record.stored
    beside = {
        "name": stored.name,
        "origin": stored.origin,
        "created": stored.created,
        "created_by": stored.created_by,
        "updated": stored.updated,
    }
    return StoredProviderAnswer.model_validate({**shown_provider(record.entry), **beside})
