"""Issuers of tokens over REST, for operators of the tenant ``system``, and dry runs of tokens and claims."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Body as FromBody
from fastapi import Path, Query
from fastapi.openapi.models import Example
from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.contracts.issuers import IssuerSettings
from app.edge.limits import needs
from app.services.access.identity.issuer_sealing import (
    LONGEST_NAME,
    SECRET,
    SECRET_MEMBERS,
    SubmittedIssuer,
    secrets_of,
    shown_issuer,
)
from app.services.access.identity.issuers import IssuerRecord
from app.services.access.identity.token_trials import TokenTrial

_MAX_VERSION: Final = 2**31 - 1
_LONGEST_TOKEN: Final = 16_384
_EXAMPLE: Final[dict[str, Any]] = {
    "issuer": "https://login.example.com",
    "audience": ["https://sluice.example.com/mcp"],
    "rules": [{"when": {"groups": "llm-users"}, "tenant": "acme", "roles": ["invoker"]}],
}


def _schema(kept: str) -> dict[str, Any]:
    """Return the schema of an issuer; ``kept`` says what a secret may be."""
    schema = IssuerSettings.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = schema.pop("$defs", {})
    for definition in definitions.values():
        if SECRET in definition.get("properties", {}):
            definition["properties"][SECRET] = {"type": ["string", "null"], "description": kept}
            definition["required"] = [name for name in definition["required"] if name != SECRET]
    whole: dict[str, Any] = _inlined(schema, definitions)
    whole.pop("title", None)
    whole["description"] = "An issuer in the form of the settings; see docs/identity.md."
    return whole


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with every reference replaced by what it names."""
    if isinstance(value, list):
        return [_inlined(each, definitions) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "$ref" in value:
        return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {name: _inlined(each, definitions) for name, each in value.items()}


IssuerBody = Annotated[
    dict[str, Any],
    WithJsonSchema(
        _schema(
            "Secret, never shown again. null, or no member at all, keeps the stored value; an empty text removes that "
            "of `console`."
        )
    ),
    FromBody(
        openapi_examples={"main": Example(summary="People of a group call as a tenant", value=_EXAMPLE)}
    ),
]
IssuerPath = Annotated[
    str, Path(pattern=r"^[0-9a-f]{16}$", description="`id` of an issuer.", examples=["8d4f0a1b2c3d4e5f"])
]
IssuerCursor = Annotated[
    str | None, Query(max_length=LONGEST_NAME, description="`next` of the previous page.")
]
ExpectedQuery = Annotated[
    int | None,
    Query(
        ge=1,
        le=_MAX_VERSION,
        description="The version on which the change is based; required (428). Refused (409) unless it is current.",
    ),
]

router = new_router("/issuers", "issuers")


class IssuerStateAnswer(AnswerBody):
    """What the process that answers knows of an issuer."""

    keys: int = Field(
        description="How many keys can verify its tokens; they are fetched with the first token."
    )
    fetched: datetime | None = Field(description="When these keys came.")
    asked: datetime | None = Field(description="When it was asked last.")
    error: str | None = Field(description="What was wrong then, or is wrong with what is stored.")


class IssuerAnswer(AnswerBody):
    """An issuer without its secrets."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "8d4f0a1b2c3d4e5f",
                    "issuer": "https://login.example.com",
                    "source": "stored",
                    "hidden": False,
                    "version": 1,
                    "settings": _EXAMPLE,
                    "secrets": [],
                    "state": {
                        "keys": 2,
                        "fetched": "2026-11-28T08:00:00Z",
                        "asked": "2026-11-28T09:00:00Z",
                        "error": "its keys could not be fetched: it does not answer",
                    },
                    "created": "2026-11-27T12:00:00Z",
                    "created_by": "0123abcd",
                    "updated": "2026-11-27T12:00:00Z",
                    "updated_by": "0123abcd",
                }
            ]
        }
    )

    id: str
    issuer: str
    source: Literal["settings", "stored"] = Field(
        description="`settings`: whoever runs the service has named it, and it is changed there."
    )
    hidden: bool = Field(description="The settings name it, too: what is stored of it does not count.")
    version: int | None = Field(description="Of what is stored; null: it stands in the settings.")
    settings: dict[str, Any] | None = Field(
        description="The issuer in the form of the settings, with null for each secret; null: it cannot be read."
    )
    secrets: Sequence[Literal["introspection", "console"]] = Field(
        description="Members for which a secret is known."
    )
    state: IssuerStateAnswer
    created: datetime | None
    created_by: str | None
    updated: datetime | None
    updated_by: str | None


class IssuerTrialAnswer(AnswerBody):
    """What asking an issuer showed."""

    ready: bool = Field(description="Whether tokens of it can be verified.")
    keys: int = Field(description="How many of its keys can verify tokens here.")
    algorithms: Sequence[str] = Field(
        description="Algorithms of these keys that are taken.", examples=[["RS256"]]
    )
    error: str | None = Field(description="Why it is not ready, in a sentence.")


class TokenExplainBody(Body):
    """A token, or an issuer and the claims of a token."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"issuer": "https://login.example.com", "claims": {"groups": ["llm-users"]}}]
        }
    )

    token: str | None = Field(default=None, min_length=1, max_length=_LONGEST_TOKEN)
    issuer: str | None = Field(default=None, max_length=LONGEST_NAME)
    claims: dict[str, Any] | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def one_of_both(self) -> Self:
        """Refuse a body that asks for both, or for nothing."""
        asked = (self.token is not None, self.issuer is not None, self.claims is not None)
        if asked not in {(True, False, False), (False, True, True)}:
            raise ValueError("send either token, or issuer and claims")
        return self


class TriedRuleAnswer(AnswerBody):
    """A rule, and what it says of the claims."""

    when: Mapping[str, Any] = Field(description="Claims that the rule asks for.")
    tenant: str
    roles: Sequence[Role]
    grants: Sequence[str]
    cidrs: Sequence[str]
    missing: Sequence[str] = Field(description="Names of the claims that do not have what it asks for.")
    missing_groups: Sequence[str] = Field(
        description="Groups of the mirror, as the rule names them, in which the owner is not."
    )
    maps: bool = Field(description="Whether this rule decides: the first of which nothing is missing.")


class TokenExplainAnswer(AnswerBody):
    """What would become of a token."""

    taken: bool
    reason: str | None = Field(
        description="Why not, as in the record; `elsewhere`: a rule of another tenant decides."
    )
    issuer: str | None
    rules: Sequence[TriedRuleAnswer] = Field(description="In the order in which they count.")


@router.get("", summary="List issuers")
async def list_issuers(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: IssuerCursor = None,
) -> Page[IssuerAnswer]:
    """Return the issuers of the settings and those that are stored. Needs the role operator in the tenant `system`."""
    records = await services.issuers.list(caller, info)
    following = [record for record in records if cursor is None or record.issuer > cursor]
    return answer_page(following[: limit + 1], limit, issuer_answer, lambda record: record.issuer)


@router.post("", status_code=201, summary="Add an issuer")
@needs(Role.OPERATOR, action="issuers.add")
async def add_issuer(
    body: IssuerBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> IssuerAnswer:
    """Store an issuer, whose tokens count at once. Needs operator and key-custodian in the tenant `system`.

    Its rules cannot give the roles restorer, operator and key-custodian, nor map to `system`: the settings can.
    """
    return issuer_answer(await services.issuers.add(caller, SubmittedIssuer(body), info))


@router.post("/explain", summary="Try a token or claims")
@needs(Role.KEY_CUSTODIAN, action="identity.explain")
async def explain_token(
    body: TokenExplainBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> TokenExplainAnswer:
    """Say which rule maps a token, or would map one with these claims, and what others miss. Nothing is kept.

    Of claims only names are in the answer. Custodians of other tenants than `system` see their own tenant's rules.
    Needs the role key-custodian.
    """
    if body.token is not None:
        return explained_answer(await services.issuers.explain(caller, body.token, info))
    issuer, claims = body.issuer or "", body.claims or {}
    return explained_answer(await services.issuers.explain_claims(caller, issuer, claims, info))


@router.get("/{issuer}", summary="Get an issuer")
async def get_issuer(
    issuer: IssuerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> IssuerAnswer:
    """Return an issuer without its secrets. Needs the role operator in the tenant `system`."""
    return issuer_answer(await services.issuers.get(caller, issuer, info))


@router.put("/{issuer}", summary="Change an issuer")
@needs(Role.OPERATOR, action="issuers.put")
async def put_issuer(
    issuer: IssuerPath,
    body: IssuerBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> IssuerAnswer:
    """Replace what is stored of an issuer; secrets that are not repeated stay. Tokens are mapped anew at once.

    Needs operator and key-custodian in the tenant `system`. One of the settings is refused (409).
    """
    record = await services.issuers.put(
        caller, issuer, SubmittedIssuer(body), info, expected_version=expected_version
    )
    return issuer_answer(record)


@router.delete("/{issuer}", status_code=204, summary="Remove an issuer")
@needs(Role.OPERATOR, action="issuers.remove")
async def remove_issuer(
    issuer: IssuerPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> None:
    """Trust an issuer no more: its tokens, sessions and streams end. Needs the role operator in `system`."""
    await services.issuers.remove(caller, issuer, info, expected_version=expected_version)


@router.post("/{issuer}/test", summary="Ask an issuer for its keys once")
@needs(Role.OPERATOR, action="issuers.test")
async def test_issuer(
    issuer: IssuerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> IssuerTrialAnswer:
    """Fetch its metadata and keys. If that fails, `ready` is false and `error` says why."""
    return IssuerTrialAnswer.model_validate(await services.issuers.test(caller, issuer, info))


def issuer_answer(record: IssuerRecord) -> IssuerAnswer:
    """Return an issuer as operators see it."""
    stored, entry = record.stored, record.entry
    secrets = [name for name in SECRET_MEMBERS if entry is not None and name in secrets_of(entry)]
    return IssuerAnswer.model_validate(
        {
            "id": record.id,
            "issuer": record.issuer,
            "source": record.source,
            "hidden": record.hidden,
            "version": stored.version if stored is not None else None,
            "settings": shown_issuer(entry) if entry is not None else None,
            "secrets": secrets,
            "state": IssuerStateAnswer.model_validate(record.state),
            **{
                name: getattr(stored, name, None)
                for name in ("created", "created_by", "updated", "updated_by")
            },
        }
    )


def explained_answer(trial: TokenTrial) -> TokenExplainAnswer:
    """Return a dry run as custodians see it."""
    described = trial.described()
    rules = [
        {**shown, "when": dict(rule.when)}
        for shown, rule in zip(described["rules"], trial.rules, strict=True)
    ]
    return TokenExplainAnswer.model_validate({**described, "rules": rules})
