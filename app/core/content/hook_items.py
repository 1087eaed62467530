"""Convert results of MCP servers to context items, which middlewares can read and change, and back."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.errors import InternalError, UpstreamUnavailableError

Items = list[Any]

_MACHINE_TYPES: Final[Mapping[str, type]] = {"isError": bool, "requestState": str, "ttlMs": int}
_MACHINE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "resultType": frozenset({"complete", "input_required", "task"}),
    "cacheScope": frozenset({"public", "private"}),
}
"""Values of result members that only machines read; changing one character would break them."""

_BLOCK_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text"}),
    "image": frozenset({"type", "data", "mimeType"}),
    "audio": frozenset({"type", "data", "mimeType"}),
    "resource_link": frozenset({"type", "uri", "title", "description", "mimeType", "size"}),
    "resource": frozenset({"type", "resource"}),
}
"""Members of a block that middlewares read as part of it; they read and change all others as free JSON."""

_RESOURCE_MEMBERS: Final = frozenset({"uri", "mimeType", "text", "blob"})


class ResultParts:
    """Take one result apart: ``items`` go through middlewares, ``result`` rebuilds it from what they return.

    ``kind`` is ``tool``, ``prompt`` or ``resource``; any other result is free JSON.
    """

    def __init__(self, kind: str, result: Mapping[str, Any]) -> None:
        self._original = result
        self._list = {"tool": "content", "prompt": "messages", "resource": "contents"}.get(kind, "")
        if not isinstance(result.get(self._list), list):
            self._list = ""
        self._extras: list[dict[str, Any]] = []
        self._body = self._read_parts(result.get(self._list, []))
        in_items = {self._list, "structuredContent"}
        rest = {
            key: value
            for key, value in result.items()
            if key not in in_items and not _is_machine_only(key, value)
        }
        self._free_members = {"rest": rest, "parts": self._extras}
        self.items: Items = [*self._body, _free_item(self._free_members)]

    def result(self, items: Items) -> dict[str, Any]:
        """Return the result with changed ``items``; items that a middleware put in front stay in front.

        Raise InternalError if a middleware dropped items.
        """
        added = len(items) - len(self.items)
        if added < 0:
            raise InternalError("A middleware dropped parts of a result.")
        free = items[-1]["structuredContent"]
        result = {**self._original, **free["rest"]}
        body = items[added:-1]
        if self._list == "content":
            result["content"] = [*_texts(items[:added]), *_rejoined_all(body[0]["content"], free["parts"])]
            if "structuredContent" in self._original:
                result["structuredContent"] = body[0]["structuredContent"]
        elif self._list == "messages":
            result["messages"] = [*_messages(items[:added]), *_rejoined_all(body, free["parts"])]
        elif self._list == "contents":
            result["contents"] = _rejoined_all([item["resource"] for item in body], free["parts"])
            result = _with_notes(result, _texts(items[:added]))
        else:
            if "structuredContent" in self._original:
                result["structuredContent"] = body[0]["structuredContent"]
            result = _with_notes(result, _texts(items[:added]))
        return result

    def _read_parts(self, parts: list[Any]) -> Items:
        if self._list == "messages":
            return [self._read_message(part) for part in parts]
        if self._list == "contents":
            return [
                {"type": "resource", "resource": self._read_part(part, _RESOURCE_MEMBERS)} for part in parts
            ]
        item: dict[str, Any] = {"type": "tool_result", "content": [self._read_block(part) for part in parts]}
        if "structuredContent" in self._original:
            item["structuredContent"] = self._original["structuredContent"]
        return [item] if self._list or "structuredContent" in item else []

    def _read_message(self, message: Any) -> Any:
        if not isinstance(message, dict):
            raise _malformed()
        content = message.get("content")
        extra = {key: value for key, value in message.items() if key not in {"role", "content"}}
        if isinstance(content, dict):
            readable, inner = _split_block(content)
            content, extra = readable, {**extra, **({"content": inner} if inner else {})}
        self._extras.append(extra)
        return {"role": message.get("role", "user"), "content": content}

    def _read_block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            self._extras.append({})
            return block
        readable, extra = _split_block(block)
        self._extras.append(extra)
        return readable

    def _read_part(self, part: Any, members: frozenset[str]) -> Any:
        if not isinstance(part, dict):
            raise _malformed()
        self._extras.append({key: value for key, value in part.items() if key not in members})
        return {key: value for key, value in part.items() if key in members}


def _is_machine_only(key: str, value: Any) -> bool:
    kind = _MACHINE_TYPES.get(key)
    if kind is not None:
        return type(value) is kind
    return isinstance(value, str) and value in _MACHINE_WORDS.get(key, ())


def _malformed() -> UpstreamUnavailableError:
    return UpstreamUnavailableError("The server's result is malformed.")


def _split_block(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of a block that middlewares read as part of it, and all others."""
    kind = block.get("type")
    read_members = _BLOCK_MEMBERS.get(kind) if isinstance(kind, str) else None
    if read_members is None:
        return block, {}
    readable = {key: value for key, value in block.items() if key in read_members}
    extra = {key: value for key, value in block.items() if key not in read_members}
    inner = readable.get("resource")
    if isinstance(inner, dict):
        readable["resource"] = {key: value for key, value in inner.items() if key in _RESOURCE_MEMBERS}
        extra_inner = {key: value for key, value in inner.items() if key not in _RESOURCE_MEMBERS}
        extra |= {"resource": extra_inner} if extra_inner else {}
    return readable, extra


def _rejoined_all(parts: list[Any], extras: list[dict[str, Any]]) -> list[Any]:
    return [_rejoined(part, extra) for part, extra in zip(parts, extras, strict=True)]


def _rejoined(part: Any, extra: Mapping[str, Any]) -> Any:
    if not extra or not isinstance(part, dict):
        return part
    nested = {
        key: {**part[key], **extra[key]}
        for key in ("resource", "content")
        if isinstance(part.get(key), dict) and isinstance(extra.get(key), dict)
    }
    return {**part, **extra, **nested}


def _free_item(value: Any) -> dict[str, Any]:
    return {"type": "tool_result", "content": [], "structuredContent": value}


def _texts(items: Items) -> list[dict[str, Any]]:
    """Return the items that middlewares added, as text blocks."""
    blocks: list[dict[str, Any]] = []
    for item in items:
        content = item.get("content") if "role" in item else None
        blocks.append({"type": "text", "text": content} if isinstance(content, str) else item)
    return blocks


def _messages(items: Items) -> list[dict[str, Any]]:
    return [{"role": "user", "content": block} for block in _texts(items)]


def _with_notes(result: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a result that has no place for added text with that text in its ``_meta``."""
    if not blocks:
        return result
    notes = [block.get("text") for block in blocks]
    return {**result, "_meta": {**(result.get("_meta") or {}), "dev.sluice/notes": notes}}


def free_items(value: Any) -> Items:
    """Return any JSON value as context items."""
    return [_free_item(value)]


def free_value(items: Items) -> Any:
    """Return the JSON value of items made by ``free_items``."""
    return items[-1]["structuredContent"]
