"""Identities: which issuers are trusted, whom their tokens make, and what a token or claims would become."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Path
from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.errors import ConflictError, InvalidArgumentsError, ServiceError
from app.core.strictjson import loads
from app.edge.limits import needs, takes
from app.services.access.identity.issuer_sealing import SubmittedIssuer, secrets_of, shown_issuer
from app.services.access.identity.issuer_trials import IssuerTrial
from app.services.access.identity.issuers import IssuerRecord
from app.services.access.identity.mirror_counts import mirror_counts
from app.services.access.identity.shown_issuers import identities
from app.services.access.identity.token_trials import TOKEN_FAULTS, TokenTrial

PAGE: Final = "/console/identities"
REASONS: Final = {
    **TOKEN_FAULTS,
    "unmapped": "No rule maps it.",
    "ended": "A rule maps it, but its tenant does not exist or is disabled, or its owner may not call any more.",
    "elsewhere": "A rule of another tenant decides.",
}
_EXAMPLE: Final = {
    "issuer": "https://login.example.com",
    "audience": ["https://sluice.example.com/mcp"],
    "rules": [{"when": {"groups": "llm-users"}, "tenant": "acme", "roles": ["invoker"]}],
}
_MOST_TOKEN: Final = 16_384
_REFUSALS: Final = (InvalidArgumentsError, ConflictError)

IssuerPath = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]

router = new_pages()


@router.get(PAGE)
async def show_identities(visit: VisitDep) -> Response:
    """Show the issuers with their rules, and the form for a dry run."""
    return await _page(visit, {})


@router.post(PAGE + "/try")
@takes(FORM)
@needs(Role.KEY_CUSTODIAN, action="identity.explain")
async def try_token(visit: VisitDep, form: FormDep) -> Response:
    """Say whom a token, or claims, would make; neither is kept or shown again."""
    issuers, token = visit.services.issuers, form.get("token", "").strip()
    try:
        if token:
            trial = await issuers.explain(visit.caller, token[: _MOST_TOKEN + 1], visit.info)
        else:
            claims = _object(form.get("claims", ""), "The claims")
            trial = await issuers.explain_claims(
                visit.caller, form.get("issuer", "").strip(), claims, visit.info
            )
    except InvalidArgumentsError as error:
        return await _page(visit, {"fault": error.message}, HTTPStatus.UNPROCESSABLE_ENTITY)
    return await _page(visit, {"trial": _tried(trial), "tried_issuer": form.get("issuer", "")})


@router.post(PAGE + "/issuers")
@takes(FORM)
@needs(Role.OPERATOR, action="issuers.add")
async def add_issuer(visit: VisitDep, form: FormDep) -> Response:
    """Store the issuer of the form; what refuses it is said there, with what was typed."""
    typed = form.get("settings", "")
    try:
        submitted = SubmittedIssuer(_object(typed, "The issuer"))
        record = await visit.services.issuers.add(visit.caller, submitted, visit.info)
    except _REFUSALS as error:
        values = {"refused": error.message, "typed": typed}
        return await _page(visit, values, HTTPStatus.UNPROCESSABLE_ENTITY)
    return see(f"{PAGE}/issuers/{record.id}")


@router.get(PAGE + "/issuers/{issuer}")
async def show_issuer(visit: VisitDep, issuer: IssuerPath) -> Response:
    """Show one issuer and the form to change it."""
    record = await visit.services.issuers.get(visit.caller, issuer, visit.info)
    return _issuer_page(visit, record)


@router.post(PAGE + "/issuers/{issuer}")
@takes(FORM)
@needs(Role.OPERATOR, action="issuers.put")
async def change_issuer(visit: VisitDep, issuer: IssuerPath, form: FormDep) -> Response:
    """Store the form as the next version."""
    issuers, typed = visit.services.issuers, form.get("settings", "")
    try:
        submitted = SubmittedIssuer(_object(typed, "The issuer"))
        await issuers.put(visit.caller, issuer, submitted, visit.info, expected_version=_version(form))
    except _REFUSALS as error:
        record = await issuers.get(visit.caller, issuer, visit.info)
        return _issuer_page(visit, record, refused=error.message, typed=typed)
    return see(f"{PAGE}/issuers/{issuer}")


@router.post(PAGE + "/issuers/{issuer}/test")
@takes(FORM)
@needs(Role.OPERATOR, action="issuers.test")
async def test_issuer(visit: VisitDep, issuer: IssuerPath, form: FormDep) -> Response:  # noqa: ARG001 - its token is checked
    """Ask the issuer for its metadata and keys once, and show what came of it."""
    trial = await visit.services.issuers.test(visit.caller, issuer, visit.info)
    record = await visit.services.issuers.get(visit.caller, issuer, visit.info)
    return _issuer_page(visit, record, trial)


@router.post(PAGE + "/issuers/{issuer}/remove")
@takes(FORM)
@needs(Role.OPERATOR, action="issuers.remove")
async def remove_issuer(visit: VisitDep, issuer: IssuerPath, form: FormDep) -> Response:
    """Trust the issuer no more."""
    await visit.services.issuers.remove(visit.caller, issuer, visit.info, expected_version=_version(form))
    return see(PAGE)


async def _page(visit: Visit, values: Mapping[str, Any], status: int = HTTPStatus.OK) -> Response:
    services, caller = visit.services, visit.caller
    shown = await identities(services.access, services.policies, caller, visit.info)
    administers = visit.may(Role.OPERATOR) and services.access.authority.reaches_all(caller)
    records = await services.issuers.list(caller, visit.info) if administers else []
    defaults = {
        "issuers": shown,
        "administers": administers,
        "records": records,
        "names": sorted({*(each.issuer for each in shown), *(each.issuer for each in records)}),
        "may_change": services.issuers.may_change(caller),
        "mirror": await mirror_counts(services.audit, caller, visit.info),
        "typed": json.dumps(_EXAMPLE, indent=2),
        "fault": None,
        "refused": None,
        "trial": None,
        "tried_issuer": "",
        "longest_token": _MOST_TOKEN,
    }
    return visit.page("identities.html", {**defaults, **values}, status=status)


def _issuer_page(
    visit: Visit,
    record: IssuerRecord,
    trial: IssuerTrial | None = None,
    *,
    refused: str | None = None,
    typed: str | None = None,
) -> Response:
    document = shown_issuer(record.entry) if record.entry is not None else {}
    values = {
        "record": record,
        "secrets": secrets_of(record.entry) if record.entry is not None else (),
        "typed": typed if typed is not None else json.dumps(document, indent=2, ensure_ascii=False),
        "trial": trial,
        "refused": refused,
        "may_change": visit.services.issuers.may_change(visit.caller) and record.stored is not None,
    }
    status = HTTPStatus.OK if refused is None else HTTPStatus.UNPROCESSABLE_ENTITY
    return visit.page("issuer.html", values, status=status)


def _tried(trial: TokenTrial) -> dict[str, Any]:
    return {
        "taken": trial.rule is not None,
        "why": REASONS.get(trial.reason or "", ""),
        "issuer": trial.issuer.issuer if trial.issuer is not None else None,
        "rows": [{"rule": rule, "result": result} for rule, result in trial.results()],
    }


def _object(text: str, subject: str) -> dict[str, Any]:
    """Return the JSON object that somebody typed, or raise InvalidArgumentsError without repeating it."""
    try:
        value = loads(text.encode())
    except ServiceError:
        value = None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f'{subject} must be a JSON object, such as {{"sub": "ada"}}.')
    return value


def _version(form: Mapping[str, str]) -> int | None:
    text = form.get("expected_version", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 - as stored
