"""Anthropic's door: paths, headers, errors and lists of models.

Source: anthropic-sdk-python 2.12.0 (MIT) and the public API documentation; only names are taken.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.core.gateway.families import anthropic_messages
from app.core.gateway.json_body import JsonBody
from app.core.gateway.provider_kind import ApiFamily, HeaderRules, ModelPage, ProviderKind, RouteRow, relisted

MESSAGES: Final = ApiFamily(
    "anthropic_messages",
    {"": anthropic_messages.REQUEST},
    anthropic_messages.ANSWER,
    anthropic_messages.MessageStream,
)

_ROUTES: Final = (
    RouteRow("POST", "/v1/messages", "messages", MESSAGES),
    RouteRow("POST", "/v1/messages/count_tokens", "messages.count_tokens", MESSAGES, answers=False),
    RouteRow("GET", "/v1/models", "models"),
    RouteRow("GET", "/v1/models/{model}", "models.get"),
)

_REFUSED: Final = frozenset(
    {"messages/batches", "files", "complete", "skills", "organizations", "agents", "sessions", "environments"}
)

_HEADERS: Final = HeaderRules(
    requests=frozenset(
        {
            *("accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta"),
            *("anthropic-workspace-id", "anthropic-user-profile-id", "x-stainless-*", "idempotency-key"),
        }
    ),
    answers=frozenset(
        {
            *("content-type", "cache-control", "request-id", "retry-after", "retry-after-ms"),
            *("x-should-retry", "anthropic-*"),
        }
    ),
    parameters=frozenset({"beta", "after_id", "before_id", "limit"}),
    key=lambda key: ("x-api-key", key),
)

_KINDS: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def _form(status: int, code: str, message: str) -> Any:
    error = {"type": _KINDS.get(status, "invalid_request_error"), "message": message, "code": code}
    return {"type": "error", "error": error, "request_id": None}


def _models(pages: Sequence[ModelPage]) -> bytes | None:
    listed = relisted(
        pages,
        lambda name: {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "1970-01-01T00:00:00Z",
        },
    )
    return _with_ends(listed).text.encode() if listed is not None else None


def _with_ends(listed: JsonBody) -> JsonBody:
    """Return a list whose first and last id are those that it has now, and that ends there."""
    data = listed.value["data"]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    ends = {"first_id": first, "last_id": last, "has_more": False}
    return listed.replaced({(name,): end for name, end in ends.items() if name in listed.value})


KIND: Final = ProviderKind(
    name="anthropic",
    prefix="/anthropic",
    routes=_ROUTES,
    refused=_REFUSED,
    sockets="v1/messages",
    headers=_HEADERS,
    form=_form,
    models=_models,
    empty_list=b'{"data": [], "has_more": false, "first_id": null, "last_id": null}',
    whole_list=(("limit", "1000"),),
)
