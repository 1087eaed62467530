"""Answer every failure of a REST route with a problem document."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.core.errors import (
    InternalError,
    InvalidArgumentsError,
    InvalidRequestError,
    NotFoundError,
    ServiceError,
)
from app.edge.facts import RequestFacts, facts_of
from app.edge.problems import internal_error, log_cause, problem_response


def install_error_handlers(app: FastAPI) -> None:
    """Answer every failure of a route with a problem document that has the request id."""
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_bug)


def validation_error(faults: Sequence[Mapping[str, Any]]) -> InvalidArgumentsError:
    """Return an error that says where a body or a parameter is wrong, without repeating its value."""
    fault = faults[0]
    place, *path = fault["loc"]
    if fault["type"] == "extra_forbidden":
        # The last step is the unknown name itself: the caller's text, not ours.
        path = path[:-1]
        reason = "it has an unknown member"
    else:
        reason = str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
        reason = reason[:1].lower() + reason[1:]
    if place == "body":
        pointer = "".join(f"/{_escaped(step)}" for step in path)
        return InvalidArgumentsError(
            f"The body is wrong at {pointer or 'its top'}: {reason}.", details={"pointer": pointer}
        )
    name = str(path[0]) if path else ""
    return InvalidArgumentsError(f"The parameter {name} is wrong: {reason}.", details={"parameter": name})


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)  # noqa: S101 - the handler is registered for this class
    return answer_of(error, facts_of(request.scope))


def answer_of(error: ServiceError, facts: RequestFacts) -> Response:
    """Return the answer to a request that failed in its route, and note the failure."""
    facts.fail(error)
    log_cause(error, facts.request_id)
    return problem_response(error, facts.request_id)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    return await _on_service_error(request, validation_error(error.errors()))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    status = error.status_code
    failure: ServiceError
    if status == HTTPStatus.NOT_FOUND:
        failure = NotFoundError("This path does not exist; GET /api/v1/openapi.json lists all paths.")
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        failure = InvalidRequestError("This path does not support that method.")
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        failure = internal_error()
    else:
        failure = InvalidRequestError("The request is not valid HTTP for this path.")
    facts = facts_of(request.scope)
    facts.error_code = failure.code
    return problem_response(failure, facts.request_id, status=status, headers=error.headers)


async def _on_bug(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the edge logs it
    facts = facts_of(request.scope)
    facts.error_code = InternalError.code
    return problem_response(internal_error(), facts.request_id)


def _escaped(step: object) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")
