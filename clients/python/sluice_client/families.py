"""The calls of model providers that a wrapped client covers: what goes out redacted, what comes back restored."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sluice_client.event_shapes import ChatEvents, MessageEvents, ResponseEvents
from sluice_client.event_streams import EventShapes

Family = Literal["chat", "responses", "messages"]
SHAPES: Mapping[Family, Callable[[Collection[str]], EventShapes]] = {
    "chat": ChatEvents,
    "responses": ResponseEvents,
    "messages": MessageEvents,
}
PARAMETERS = "dev.sluice.parameters"
"""Type of the item with the parameters of a call beside its messages; every string in it is read as text."""
_MACHINE = {
    *("model", "stream", "stream_options", "timeout", "extra_headers", "extra_query", "service_tier"),
    *("reasoning_effort", "previous_response_id", "include", "modalities", "betas", "tool_choice"),
    *("truncation", "verbosity", "encoding_format", "inference_geo", "container", "prompt_cache_retention"),
}
"""Parameters that only machines read."""

Body = dict[str, Any]


def plain(value: Any) -> Any:
    """Return ``value`` as JSON: objects of the provider's library, such as an earlier answer, become theirs."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return value


def _spread(answer: Body) -> list[Any]:
    return [choice["message"] for choice in answer["choices"]]


def _gathered_chat(answer: Body, items: list[Any]) -> Body:
    choices = []
    for choice, message in zip(answer["choices"], items, strict=True):
        dropped = {"logprobs": None} if message != choice["message"] and "logprobs" in choice else {}
        choices.append({**choice, "message": message, **dropped})
    return {**answer, "choices": choices}


@dataclass(frozen=True, slots=True)
class Covered:
    """One call: which parameter holds its items, and where the answer has texts."""

    items: str
    family: Family | None
    parts: Callable[[Body], list[Any]]
    joined: Callable[[Body, list[Any]], Body]


_CHAT = Covered("messages", "chat", _spread, _gathered_chat)
_RESPONSE = Covered(
    "input",
    "responses",
    lambda answer: list(answer.get("output") or []),
    lambda answer, items: {**answer, "output": items},
)
_MESSAGE = Covered(
    "messages",
    "messages",
    lambda answer: [{"role": "assistant", "content": answer["content"]}],
    lambda answer, items: {**answer, "content": items[0]["content"]},
)
_EMBEDDINGS = Covered("input", None, lambda _: [], lambda answer, _: answer)
_COUNT = Covered("messages", None, lambda _: [], lambda answer, _: answer)
CALLS: Mapping[str, Mapping[str, Covered]] = {
    "openai": {
        "chat.completions.create": _CHAT,
        "responses.create": _RESPONSE,
        "embeddings.create": _EMBEDDINGS,
    },
    "anthropic": {"messages.create": _MESSAGE, "messages.count_tokens": _COUNT},
}
"""The covered calls of each library, by the path of its client."""

PASSED = {"models", "close", "base_url", "is_closed"}
"""Members of a client that send no content."""


def outbound(call: Covered, parameters: Body) -> tuple[list[Any], Callable[[list[Any]], Body]]:
    """Return the items to redact, and how the call is put together from the redacted ones."""
    values = {name: plain(value) for name, value in parameters.items()}
    texts = values.get(call.items)
    single = isinstance(texts, str)
    items = [texts] if single else list(texts or [])
    other = {
        name: value
        for name, value in values.items()
        if name != call.items and name not in _MACHINE and isinstance(value, str | list | dict)
    }

    def joined(redacted: list[Any]) -> Body:
        *content, changed = redacted
        body = {**values, **changed["parameters"]}
        if call.items in values:
            body[call.items] = content[0] if single else content
        return body

    return [*items, {"type": PARAMETERS, "parameters": other}], joined
