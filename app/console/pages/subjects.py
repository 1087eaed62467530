"""A person's values: find them in every spelling, erase them, and print the receipt."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Path
from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs, takes
from app.services.vault.erasure_orders import ORDER, ErasureOrder, ErasureOrders
from app.services.vault.subjects import MOST_VALUES, SEARCH, SubjectRequest, SubjectService, SubjectValue

PAGE: Final = "/console/subjects"
_LONGEST_VALUE: Final = 1000
_LISTED: Final = 100

ErasurePath = Annotated[UUID, Path()]

router = new_pages()


@router.get(PAGE)
async def show_search(visit: VisitDep) -> Response:
    """Show the form; what is sought never stands in an address."""
    visit.caller.require(Role.ERASER)
    return _page(visit, {"values": "", "reason": "", "variants": True}, None)


@router.post(PAGE)
@takes(FORM)
@needs(Role.ERASER, action=SEARCH)
async def search_values(visit: VisitDep, form: FormDep) -> Response:
    """Say where the values are, and how many; the search is on record, with its reason."""
    asked, values = _asked(form)
    wanted = SubjectRequest(values, asked["reason"], asked["variants"])
    page = await SubjectService.over(visit.services.vault).search(
        visit.caller, wanted, visit.info, limit=_LISTED
    )
    by_value = list(zip((value.value for value in values), page.totals.by_value, strict=False))
    result = {
        "totals": page.totals,
        "by_value": by_value,
        "groups": page.items,
        "more": page.next is not None,
    }
    return _page(visit, asked, result)


@router.post(f"{PAGE}/erase")
@takes(FORM)
@needs(Role.ERASER, action=ORDER)
async def order_erasure(visit: VisitDep, form: FormDep) -> Response:
    """Order the erasure that was looked at, and lead to where it is seen to run."""
    if form.get("sure") != "on":
        raise InvalidArgumentsError("Tick that the values are to be erased: nothing brings them back.")
    asked, values = _asked(form)
    order = ErasureOrder(asked["reason"], values, variants=asked["variants"])
    job = await _orders(visit).order(visit.caller, order, visit.info)
    return see(f"{PAGE}/erasures/{job.id}")


@router.get(PAGE + "/erasures/{erasure}")
async def show_erasure(visit: VisitDep, erasure: ErasurePath) -> Response:
    """Show how far an erasure is, and its receipt once it is done."""
    job = await _orders(visit).get(visit.caller, erasure, visit.info)
    return visit.page("erasure.html", {"job": job, "is_done": job.finished is not None})


def _orders(visit: Visit) -> ErasureOrders:
    return ErasureOrders.over(visit.services.vault, visit.services.tenant_erasure)


def _asked(form: Mapping[str, str]) -> tuple[dict[str, Any], list[SubjectValue]]:
    """Return what a form asks for: one value a line."""
    lines = [line.strip() for line in form.get("values", "").splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_VALUES or any(len(line) > _LONGEST_VALUE for line in lines):
        raise InvalidArgumentsError(
            f"Give 1 to {MOST_VALUES} values, one a line, each of at most {_LONGEST_VALUE} characters."
        )
    asked = {
        "values": "\n".join(lines),
        "reason": form.get("reason", ""),
        "variants": form.get("variants") == "on",
    }
    return asked, [SubjectValue(line) for line in lines]


def _page(visit: Visit, asked: Mapping[str, Any], result: Mapping[str, Any] | None) -> Response:
    return visit.page("subjects.html", {"asked": asked, "result": result})
