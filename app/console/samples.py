"""Read what somebody pastes to try it: a text, a conversation, or the body of a request to a model."""

import json
from collections.abc import Sequence
from typing import Any, Final

from app.core.errors import InvalidArgumentsError
from app.core.strictjson import loads

MOST_CHARACTERS: Final = 20_000
SAMPLE: Final = (
    "Hello, I am Jane Smith. Please call me on +44 20 7946 0958 or write to jane.smith@example.com. "
    "My card 4111 1111 1111 1111 was charged twice, and my SSN is 123-45-6789."
)
_BODY_MEMBERS: Final = ("messages", "input", "contents")
"""Where the APIs of providers have the conversation."""


def sample_text(text: str) -> str:
    """Return a pasted text with the ends of lines that texts have elsewhere, or raise InvalidArgumentsError."""
    text = text.replace("\r\n", "\n")
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise InvalidArgumentsError(f"Give a text of 1 to {MOST_CHARACTERS} characters.")
    return text


def sample_items(text: str) -> list[Any]:
    """Return a pasted text as items of a context: what is no JSON of a conversation is one text."""
    parsed = _parsed(text)
    if isinstance(parsed, list) and parsed and all(isinstance(item, dict) for item in parsed):
        return parsed
    if isinstance(parsed, dict):
        name = next((name for name in _BODY_MEMBERS if isinstance(parsed.get(name), list)), None)
        if name is not None:
            return [*_instructions(parsed), *parsed[name]]
    return [{"type": "text", "text": text}]


def sample_body(text: str) -> dict[str, Any] | None:
    """Return a pasted body of a request to a model, None where it is something else."""
    parsed = _parsed(text)
    return parsed if isinstance(parsed, dict) else None


def shown_items(items: Sequence[Any]) -> str:
    """Return items as people read them: a text alone as it is, anything else as JSON."""
    texts = [_plain(item) for item in items]
    if texts and all(text is not None for text in texts):
        return "\n".join(str(text) for text in texts)
    return json.dumps(list(items), indent=2, ensure_ascii=False)


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in {"[", "{"}:
        return None
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except Exception:  # noqa: BLE001 - what cannot be read as JSON is a text that looks like it
        return None


def _instructions(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what instructs the model as a message in front of the others."""
    instructions = body.get("system", body.get("instructions"))
    return [{"role": "system", "content": instructions}] if isinstance(instructions, str | list) else []


def _plain(item: Any) -> str | None:
    """Return the text of an item that is nothing but a text or a message with a role, else None."""
    if not isinstance(item, dict):
        return item if isinstance(item, str) else None
    if item.keys() == {"type", "text"} and isinstance(item["text"], str):
        return item["text"]
    if item.keys() == {"role", "content"} and isinstance(item["content"], str):
        return f"{item['role']}: {item['content']}"
    return None
