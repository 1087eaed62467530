"""The policy of a tenant: a field for each member, what a change would do and widen, and the versions so far."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, cast, get_args

from fastapi import Query
from starlette.responses import Response

from app.console.samples import MOST_CHARACTERS, SAMPLE, sample_items, sample_text, shown_items
from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from app.edge.limits import needs, takes
from app.services.access.policies import PolicyVersion
from app.services.access.policy_documents import PolicyDifference
from app.services.previews.policies import (
    Door,
    PolicyComparison,
    PolicyPreviews,
    PolicySample,
    SampleOutcome,
    shown_less,
)
from app.services.previews.policy_form import read_form, sections, typed_fields

PAGE: Final = "/console/policies"
_LISTED: Final = 20
_MOST_VERSION: Final = 2**53
_DOORS: Final[Mapping[Door, str]] = {
    "gateway": "a request to a model",
    "call": "a call of a middleware",
    "tool": "the result of a tool",
}

VersionQuery = Annotated[int | None, Query(ge=0, le=_MOST_VERSION)]

router = new_pages()


@router.get(PAGE)
async def show_policy(
    visit: VisitDep, before: Annotated[int | None, Query(ge=0, le=_MOST_VERSION)] = None
) -> Response:
    """Show the policy that holds as a form, and the versions before it."""
    current = await visit.services.policies.current(visit.caller, None, visit.info)
    return await _page(visit, current, before=before)


@router.post(PAGE + "/preview")
@takes(FORM)
@needs(Role.OPERATOR, action="policy.preview")
async def preview_policy(visit: VisitDep, form: FormDep) -> Response:
    """Show what the form would change and widen, and what it would do to a sample."""
    return await _changed(visit, form)


@router.post(PAGE)
@takes(FORM)
@needs(Role.OPERATOR, action="policy.put")
async def store_policy(visit: VisitDep, form: FormDep) -> Response:
    """Store the form as the next version; one that widens must be confirmed."""
    return await _changed(visit, form, stores=True)


@router.get(PAGE + "/difference")
async def show_difference(
    visit: VisitDep, before: VersionQuery = None, after: VersionQuery = None
) -> Response:
    """Show what a version changed against another, by default against the one before it."""
    comparison = await _previews(visit).compare(visit.caller, before, after, None, visit.info)
    if after is None:
        after = (await visit.services.policies.get(visit.caller.tenant))[0]
    values = {
        "before": comparison.version,
        "after": after,
        "changes": _rows(comparison.changes),
        "widened": comparison.widened,
    }
    return visit.page("policy_difference.html", values)


async def _changed(visit: Visit, form: Mapping[str, str], *, stores: bool = False) -> Response:
    """Show what a form would do, or store it; what refuses it is said on the form, with what was typed."""
    policies = visit.services.policies
    current = await policies.current(visit.caller, None, visit.info)
    expected = _expected(form)
    try:
        _check_current(expected, current)
        policy = read_form(form, current.policy.model_dump(mode="json"))
        if stores:
            comparison = await _previews(visit).preview(visit.caller, policy, visit.info)
            if not comparison.widened or form.get("sure") == "on":
                await policies.put(visit.caller, None, policy, visit.info, expected_version=expected)
                return see(PAGE)
            fault = "It widens what somebody may see or do: tick that this is meant, and store it again."
            return await _page(visit, current, form, comparison, fault, expected=expected)
        comparison = await _previews(visit).preview(visit.caller, policy, visit.info, _sample(form))
    except (ConflictError, InvalidArgumentsError, NotFoundError) as error:
        status = HTTPStatus.CONFLICT if isinstance(error, ConflictError) else HTTPStatus.UNPROCESSABLE_ENTITY
        return await _page(visit, current, form, None, error.message, expected=expected, status=status)
    return await _page(visit, current, form, comparison, expected=expected, status=HTTPStatus.OK)


async def _page(
    visit: Visit,
    current: PolicyVersion,
    form: Mapping[str, str] | None = None,
    comparison: PolicyComparison | None = None,
    fault: str | None = None,
    *,
    expected: int | None = None,
    before: int | None = None,
    status: HTTPStatus | None = None,
) -> Response:
    listed = await visit.services.policies.history(
        visit.caller, None, visit.info, before=before, limit=_LISTED + 1
    )
    typed = form or {}
    values = {
        "current": current,
        "expected": current.version if expected is None else expected,
        "sections": sections(current.policy.model_dump(mode="json"), typed_fields(typed)),
        "versions": listed[:_LISTED],
        "next": listed[_LISTED - 1].version if len(listed) > _LISTED else None,
        "doors": _DOORS,
        "most": MOST_CHARACTERS,
        "asked": {
            "sample": typed.get("sample", SAMPLE),
            "door": typed.get("door", "gateway"),
            "name": typed.get("name", ""),
            "other": typed.get("other", ""),
        },
        "comparison": comparison,
        "changes": _rows(comparison.changes) if comparison is not None else [],
        "now": _outcome(comparison.now if comparison is not None else None),
        "then": _outcome(comparison.then if comparison is not None else None),
        "less": _less(comparison),
        "fault": fault,
    }
    usual = HTTPStatus.OK if fault is None else HTTPStatus.UNPROCESSABLE_ENTITY
    return visit.page("policies.html", values, status=status or usual)


def _previews(visit: Visit) -> PolicyPreviews:
    return PolicyPreviews(visit.services.policies, visit.services.invoke)


def _expected(form: Mapping[str, str]) -> int:
    text = form.get("expected_version", "")
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_VERSION):
        raise InvalidArgumentsError(
            "The form does not say on which version it is based: load the page again."
        )
    return int(text)


def _check_current(expected: int, current: PolicyVersion) -> None:
    if expected != current.version:
        raise ConflictError("The policy was changed meanwhile: load the page again, and repeat the change.")


def _sample(form: Mapping[str, str]) -> PolicySample | None:
    """Return the sample of the form, None where its field is empty."""
    if not form.get("sample", "").strip():
        return None
    door = form.get("door", "")
    if door not in get_args(Door):
        raise InvalidArgumentsError("The form has a choice that there is not.")
    items = sample_items(sample_text(form["sample"]))
    return PolicySample(
        items, cast("Door", door), form.get("name", "").strip(), form.get("other", "").strip()
    )


def _outcome(outcome: SampleOutcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    return {**outcome._asdict(), "text": shown_items(outcome.content)}


def _less(comparison: PolicyComparison | None) -> Mapping[str, int]:
    """Return of which types the changed policy finds fewer values in the sample."""
    if comparison is None or comparison.now is None or comparison.then is None:
        return {}
    return shown_less(comparison.now, comparison.then)


def _rows(changes: Sequence[PolicyDifference]) -> list[dict[str, str]]:
    return [
        {"pointer": change.pointer, "before": _spelled(change.before), "after": _spelled(change.after)}
        for change in changes
    ]


def _spelled(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
