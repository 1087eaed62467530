"""The REST dialect: plain HTTP under ``/api/v1``."""

from collections.abc import Mapping
from urllib.parse import quote

from sluice_client.errors import ProtocolError, SluiceError, error_of
from sluice_client.results import Json, MiddlewareInfo
from sluice_client.wire import JSON_TYPE, Progress, Steps, WireAnswer, WireCall, encoded, seconds, short

FIRST_ERROR_STATUS = 400
_BY_STATUS = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "too_large",
    415: "invalid_request",
    422: "invalid_arguments",
    429: "rate_limited",
}


def problem(answer: WireAnswer) -> SluiceError | None:
    """Return the error of a problem document (RFC 9457), None for a success."""
    if answer.status < FIRST_ERROR_STATUS:
        return None
    try:
        body = answer.json()
    except ProtocolError:
        body = None
    if not isinstance(body, Mapping):
        body = {}
    kind = body.get("code") or _BY_STATUS.get(answer.status, "unknown")
    details = dict(body["details"]) if isinstance(body.get("details"), Mapping) else {}
    if "pointer" in body:
        details["pointer"] = body["pointer"]
    title = short(body.get("title"), f"HTTP {answer.status} without an explanation of Sluice.")
    return error_of(
        str(kind),
        short(body.get("detail"), title),
        request_id=body.get("request_id") or answer.headers.get("x-request-id"),
        retry_after=seconds(answer.headers.get("retry-after")),
        details=details,
        status=answer.status,
    )


class RestDialect:
    """Send every call as plain HTTP."""

    session: str | None = None

    def opening(self, lost: str | None = None) -> Steps[None]:  # noqa: ARG002 -- nothing is ever lost here
        """Do nothing: every request is self-contained."""
        yield from ()

    def closing(self) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def list_middleware(self) -> Steps[list[MiddlewareInfo]]:
        """Get ``/api/v1/middleware``."""
        answer = yield WireCall("GET", "/api/v1/middleware", problem, repeatable=True)
        body = answer.json()
        listed = body.get("middleware", body.get("items")) if isinstance(body, Mapping) else None
        if not isinstance(listed, list):
            raise ProtocolError("The list of middlewares has an unknown shape: is the service much newer?")
        return [MiddlewareInfo.from_wire(entry) for entry in listed]

    def invoke(
        self,
        name: str,
        items: list[Json],
        arguments: Mapping[str, Json],
        *,
        repeatable: bool,
        progress: Progress | None,  # noqa: ARG002 -- plain HTTP has no progress
    ) -> Steps[tuple[list[Json], Mapping[str, Json]]]:
        """Post to ``/api/v1/middleware/{name}/invoke``."""
        answer = yield WireCall(
            "POST",
            f"/api/v1/middleware/{quote(name, safe='')}/invoke",
            problem,
            headers={"Content-Type": JSON_TYPE},
            body=encoded({"arguments": arguments, "context": items}),
            repeatable=repeatable,
        )
        return content_of(answer.json())


def content_of(result: Json) -> tuple[list[Json], Mapping[str, Json]]:
    """Return content and metadata of a result on either surface."""
    if not isinstance(result, Mapping) or not isinstance(result.get("content"), list):
        raise ProtocolError("The result has no content: does Sluice listen at this address?")
    return result["content"], result.get("metadata") or {}
