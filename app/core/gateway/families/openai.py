"""OpenAI's door, and whatever is compatible with it: paths, headers, errors and lists of models.

Source: openai-python 3.54.0 (Apache-2.0) and the public API documentation; only names are taken.
"""

from collections.abc import Sequence
from typing import Any, Final

from app.core.gateway.families import openai_chat, openai_embeddings, openai_responses
from app.core.gateway.provider_kind import ApiFamily, HeaderRules, ModelPage, ProviderKind, RouteRow, relisted

CHAT: Final = ApiFamily(
    "openai_chat",
    {"": openai_chat.REQUEST, "completions": openai_chat.LEGACY_REQUEST},
    openai_chat.ANSWER,
    openai_chat.ChatStream,
)
RESPONSES: Final = ApiFamily(
    "openai_responses",
    {
        "": openai_responses.REQUEST,
        **dict.fromkeys(
            ("conversations.create", "conversations.update", "conversations.items.create"),
            openai_responses.ITEMS_REQUEST,
        ),
    },
    openai_responses.ANSWER,
    openai_responses.ResponseStream,
)
EMBEDDINGS: Final = ApiFamily("openai_embeddings", {"": openai_embeddings.REQUEST}, openai_embeddings.ANSWER)

_ITEMS: Final = "/conversations/{conversation}/items"
_ROUTES: Final = (
    RouteRow("POST", "/chat/completions", "chat.completions", CHAT),
    RouteRow("POST", "/completions", "completions", CHAT),
    RouteRow("POST", "/responses", "responses.create", RESPONSES),
    RouteRow("GET", "/responses/{response}", "responses.get", RESPONSES),
    RouteRow("DELETE", "/responses/{response}", "responses.delete"),
    RouteRow("POST", "/responses/{response}/cancel", "responses.cancel", RESPONSES),
    RouteRow("GET", "/responses/{response}/input_items", "responses.input_items", RESPONSES),
    RouteRow("POST", "/conversations", "conversations.create", RESPONSES),
    RouteRow("GET", "/conversations/{conversation}", "conversations.get", RESPONSES),
    RouteRow("POST", "/conversations/{conversation}", "conversations.update", RESPONSES),
    RouteRow("DELETE", "/conversations/{conversation}", "conversations.delete"),
    RouteRow("POST", _ITEMS, "conversations.items.create", RESPONSES),
    RouteRow("GET", _ITEMS, "conversations.items", RESPONSES),
    RouteRow("GET", f"{_ITEMS}/{{item}}", "conversations.items.get", RESPONSES),
    RouteRow("DELETE", f"{_ITEMS}/{{item}}", "conversations.items.delete", RESPONSES),
    RouteRow("POST", "/embeddings", "embeddings", EMBEDDINGS, answers=False),
    RouteRow("POST", "/moderations", "moderations", EMBEDDINGS, answers=False),
    RouteRow("GET", "/models", "models"),
    RouteRow("GET", "/models/{model}", "models.get"),
)

_REFUSED: Final = frozenset(
    {
        *("realtime", "audio", "images", "files", "batches", "uploads", "fine_tuning", "vector_stores"),
        *("assistants", "threads", "containers", "evals", "videos", "skills", "chatkit", "organization"),
        *("responses/input_tokens", "responses/compact", "edits", "webhooks", "chat/completions"),
    }
)

_HEADERS: Final = HeaderRules(
    requests=frozenset(
        {
            *("accept", "content-type", "user-agent", "openai-organization", "openai-project", "openai-beta"),
            *("x-stainless-*", "idempotency-key", "x-client-request-id"),
        }
    ),
    answers=frozenset(
        {
            *("content-type", "cache-control", "x-request-id", "retry-after", "retry-after-ms"),
            *("x-should-retry", "openai-*", "x-ratelimit-*"),
        }
    ),
    parameters=frozenset(
        {
            *("include", "include[]", "stream", "starting_after", "include_obfuscation", "after", "before"),
            *("limit", "order", "api-version"),
        }
    ),
    key=lambda key: ("Authorization", f"Bearer {key}"),
    key_headers=("authorization", "api-key", "x-api-key", "x-sluice-key"),
)


def _form(status: int, code: str, message: str) -> Any:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _models(pages: Sequence[ModelPage]) -> bytes | None:
    listed = relisted(
        pages, lambda name: {"id": name, "object": "model", "created": 0, "owned_by": "unknown"}
    )
    return listed.text.encode() if listed is not None else None


KIND: Final = ProviderKind(
    name="openai",
    prefix="/openai/v1",
    routes=_ROUTES,
    refused=_REFUSED,
    sockets="responses",
    headers=_HEADERS,
    form=_form,
    models=_models,
    empty_list=b'{"object": "list", "data": []}',
)
