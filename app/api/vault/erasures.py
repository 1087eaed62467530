"""Erasures over REST: look at what would go, order it, follow it, and read the signed receipt."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Path
from fastapi.encoders import jsonable_encoder
from pydantic import ConfigDict, Field, StringConstraints
from starlette.responses import JSONResponse, Response

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, TenantName
from app.api.vault.subjects import Reason, SubjectValueBody, subject_values
from app.core.access import Role
from app.edge.limits import needs
from app.services.vault.erasure_orders import MOST_SCOPES, ORDER, ErasureOrder, ErasureOrders
from app.services.vault.subjects import MOST_VALUES, SubjectTotals

_ID = "0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11"
_STATED = (
    f'{{"id": "{_ID}", "tenant": "default", "kind": "values", "values": 1, "variants": true, '
    '"reason": "Request 2026-114", "ordered_by": "0123abcd", "ordered": "2026-11-23T12:00:00.000000Z", '
    '"finished": "2026-11-23T12:00:02.000000Z", "erased": {"EMAIL": 2}, "scopes": 2, "unreadable": 0}'
)
_NOTE = (
    f"sluice erasure receipt 1\n{_STATED}\n\n\N{EM DASH} sluice/0f1e2d3c4b5a6978 "
    "dPfKPOjsraF7RHARaWdiVSp6lLROq7g4R8Fm4t0xD+8sxX2Znz9sxogPyw7KUTBfZIMCvZJ/6uD43CxlrtmIcJV0kAc=\n"
)

router = new_router("/erasures", "erasures")


class ErasureOrderBody(Body):
    """What to erase, and why: one of `values`, `scopes` and `tenant`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "values": [{"value": "jane.smith@example.com"}],
                    "variants": True,
                    "preview": True,
                    "reason": "Request for erasure 2026-114",
                }
            ]
        }
    )

    values: Annotated[list[SubjectValueBody], Field(min_length=1, max_length=MOST_VALUES)] | None = Field(
        default=None, description="Values of a person, in every scope of the tenant."
    )
    variants: bool = Field(
        default=False, description="Also other spellings of the values, as a search has them."
    )
    scopes: (
        Annotated[
            list[Annotated[str, StringConstraints(min_length=1, max_length=200)]],
            Field(min_length=1, max_length=MOST_SCOPES),
        ]
        | None
    ) = Field(default=None, description="Names of scopes, with all they hold.")
    tenant: TenantName | None = Field(
        default=None,
        description="A disabled tenant with all it has. Needs the role operator in the tenant `system`.",
    )
    preview: bool = Field(default=False, description="Only say what would be erased.")
    reason: Reason


class ErasurePreviewAnswer(AnswerBody):
    """What an order would erase now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "total": 2,
                    "scopes": 2,
                    "counts": {"EMAIL": 2},
                    "by_value": [2],
                    "indexed": True,
                    "unreadable": 0,
                }
            ]
        }
    )

    total: int = Field(description="Number of handles.")
    scopes: int = Field(description="Number of scopes that have one of them.")
    counts: dict[str, int] = Field(description="Number of handles by type.")
    by_value: list[int] = Field(
        description="Number of handles of each value; empty where no values are named."
    )
    indexed: bool = Field(description="Whether every value of the tenant is in the index.")
    unreadable: int = Field(
        description="Values outside the index that could not be opened, and so not compared."
    )


class ErasureOrderAnswer(AnswerBody):
    """An order that is taken; the background does it."""

    id: UUID = Field(examples=[_ID])
    state: Literal["running", "done"]
    done: int = Field(description="Steps that are done: handles, or scopes.")
    total: int


class ErasureJobAnswer(ErasureOrderAnswer):
    """How far an erasure is, and its receipt once it is done."""

    kind: Literal["values", "scopes", "tenant"]
    reason: str
    actor: str
    created: datetime
    finished: datetime | None
    scopes: int = Field(description="Scopes in which something was erased; the audit record names each.")
    counts: dict[str, int] = Field(description="Number of handles erased, by type.")
    unreadable: int = Field(description="Values that could not be opened, and so not compared.")
    receipt: str | None = Field(
        description="A signed note (C2SP signed-note) under the key of the audit log; null until it is done.",
        examples=[_NOTE],
    )


ErasurePath = Annotated[UUID, Path(description="Id of an erasure.", examples=[_ID])]


@router.post(
    "",
    status_code=202,
    summary="Erase values, scopes or a tenant",
    response_model=ErasureOrderAnswer,
    responses={200: {"description": "A preview: nothing was changed.", "model": ErasurePreviewAnswer}},
)
@needs(Role.ERASER, Role.OPERATOR, action=ORDER)
async def order_erasure(
    body: ErasureOrderBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> Response:
    """Take an order, or say with `preview` what it would erase. On record. Needs the role eraser and a reason.

    The background begins within seconds and goes on after a restart; `GET /api/v1/erasures/{id}` says how far it is.
    """
    orders = ErasureOrders.over(services.vault, services.tenant_erasure)
    values = None if body.values is None else subject_values(body.values)
    order = ErasureOrder(body.reason, values, body.scopes, body.tenant, body.variants)
    if body.preview:
        totals = await orders.preview(caller, order, info)
        return JSONResponse(jsonable_encoder(preview_answer(totals)))
    job = await orders.order(caller, order, info)
    answer = ErasureOrderAnswer.model_validate(job)
    headers = {"location": f"/api/v1/erasures/{job.id}"}
    return JSONResponse(jsonable_encoder(answer), status_code=202, headers=headers)


@router.get("/{erasure}", summary="Get an erasure and its receipt")
async def get_erasure(
    erasure: ErasurePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ErasureJobAnswer:
    """Return how far an erasure of the caller's tenant is. Needs the role eraser or auditor."""
    orders = ErasureOrders.over(services.vault, services.tenant_erasure)
    return ErasureJobAnswer.model_validate(await orders.get(caller, erasure, info))


def preview_answer(totals: SubjectTotals) -> ErasurePreviewAnswer:
    """Return what an order would erase as the route shows it."""
    return ErasurePreviewAnswer(
        total=totals.entries,
        scopes=totals.scopes,
        counts=totals.counts,
        by_value=totals.by_value,
        indexed=totals.indexed,
        unreadable=totals.unreadable,
    )
