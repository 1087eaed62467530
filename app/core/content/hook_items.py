"""Results of servers as context items, so that middlewares can read and change them, and back again."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.errors import InternalError, UpstreamUnavailableError

Items = list[Any]

_UNTOUCHED: Final[Mapping[str, type]] = {"isError": bool, "requestState": str, "ttlMs": int}
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "resultType": frozenset({"complete", "input_required", "task"}),
    "cacheScope": frozenset({"public", "private"}),
}
"""Members of a result that only machines read, by what they may hold; a changed character would break them."""

_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text"}),
    "image": frozenset({"type", "data", "mimeType"}),
    "audio": frozenset({"type", "data", "mimeType"}),
    "resource_link": frozenset({"type", "uri", "title", "description", "mimeType", "size"}),
    "resource": frozenset({"type", "resource"}),
}
"""What a middleware reads of a block as such; all else is shown to it as free JSON, where it may change it too."""

_CONTENTS: Final = frozenset({"uri", "mimeType", "text", "blob"})


class ResultParts:
    """One result taken apart: ``items`` go through middlewares, ``result`` puts what comes back together.

    ``kind`` is ``tool``, ``prompt`` or ``resource``; every other result is free JSON.
    """

    def __init__(self, kind: str, result: Mapping[str, Any]) -> None:
        self._given = result
        self._list = {"tool": "content", "prompt": "messages", "resource": "contents"}.get(kind, "")
        if not isinstance(result.get(self._list), list):
            self._list = ""
        self._extras: list[dict[str, Any]] = []
        self._body = self._taken(result.get(self._list, []))
        apart = {self._list, "structuredContent"}
        rest = {
            key: value for key, value in result.items() if key not in apart and not _is_untouched(key, value)
        }
        self._free = {"rest": rest, "parts": self._extras}
        self.items: Items = [*self._body, _free(self._free)]

    def result(self, items: Items) -> dict[str, Any]:
        """Return the result with changed ``items``; what a middleware put in front is put in front here too."""
        added = len(items) - len(self.items)
        if added < 0:
            raise InternalError("A middleware dropped parts of a result.")
        free = items[-1]["structuredContent"]
        made = {**self._given, **free["rest"]}
        body = items[added:-1]
        if self._list == "content":
            made["content"] = [*_texts(items[:added]), *_merged(body[0]["content"], free["parts"])]
            if "structuredContent" in self._given:
                made["structuredContent"] = body[0]["structuredContent"]
        elif self._list == "messages":
            made["messages"] = [*_messages(items[:added]), *_merged(body, free["parts"])]
        elif self._list == "contents":
            made["contents"] = _merged([one["resource"] for one in body], free["parts"])
            made = _noted(made, _texts(items[:added]))
        else:
            if "structuredContent" in self._given:
                made["structuredContent"] = body[0]["structuredContent"]
            made = _noted(made, _texts(items[:added]))
        return made

    def _taken(self, parts: list[Any]) -> Items:
        if self._list == "messages":
            return [self._message(one) for one in parts]
        if self._list == "contents":
            return [{"type": "resource", "resource": self._part(one, _CONTENTS)} for one in parts]
        item: dict[str, Any] = {"type": "tool_result", "content": [self._block(one) for one in parts]}
        if "structuredContent" in self._given:
            item["structuredContent"] = self._given["structuredContent"]
        return [item] if self._list or "structuredContent" in item else []

    def _message(self, message: Any) -> Any:
        if not isinstance(message, dict):
            raise _malformed()
        content = message.get("content")
        extra = {key: value for key, value in message.items() if key not in {"role", "content"}}
        if isinstance(content, dict):
            handled, inner = _split(content)
            content, extra = handled, {**extra, **({"content": inner} if inner else {})}
        self._extras.append(extra)
        return {"role": message.get("role", "user"), "content": content}

    def _block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            self._extras.append({})
            return block
        handled, extra = _split(block)
        self._extras.append(extra)
        return handled

    def _part(self, part: Any, handled: frozenset[str]) -> Any:
        if not isinstance(part, dict):
            raise _malformed()
        self._extras.append({key: value for key, value in part.items() if key not in handled})
        return {key: value for key, value in part.items() if key in handled}


def _is_untouched(key: str, value: Any) -> bool:
    kind = _UNTOUCHED.get(key)
    if kind is not None:
        return type(value) is kind
    return isinstance(value, str) and value in _WORDS.get(key, ())


def _malformed() -> UpstreamUnavailableError:
    return UpstreamUnavailableError("The server's answer is not of the form that it should have.")


def _split(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a middleware reads of a block, and what else it has."""
    kind = block.get("type")
    known = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if known is None:
        return block, {}
    handled = {key: value for key, value in block.items() if key in known}
    extra = {key: value for key, value in block.items() if key not in known}
    inner = handled.get("resource")
    if isinstance(inner, dict):
        handled["resource"] = {key: value for key, value in inner.items() if key in _CONTENTS}
        more = {key: value for key, value in inner.items() if key not in _CONTENTS}
        extra |= {"resource": more} if more else {}
    return handled, extra


def _merged(parts: list[Any], extras: list[dict[str, Any]]) -> list[Any]:
    return [_joined(part, extra) for part, extra in zip(parts, extras, strict=True)]


def _joined(part: Any, extra: Mapping[str, Any]) -> Any:
    if not extra or not isinstance(part, dict):
        return part
    nested = {
        key: {**part[key], **extra[key]}
        for key in ("resource", "content")
        if isinstance(part.get(key), dict) and isinstance(extra.get(key), dict)
    }
    return {**part, **extra, **nested}


def _free(value: Any) -> dict[str, Any]:
    return {"type": "tool_result", "content": [], "structuredContent": value}


def _texts(items: Items) -> list[dict[str, Any]]:
    """Return what middlewares added, as text blocks."""
    blocks: list[dict[str, Any]] = []
    for item in items:
        content = item.get("content") if "role" in item else None
        blocks.append({"type": "text", "text": content} if isinstance(content, str) else item)
    return blocks


def _messages(items: Items) -> list[dict[str, Any]]:
    return [{"role": "user", "content": block} for block in _texts(items)]


def _noted(result: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a result that has no place for text of ours with that text in its ``_meta``."""
    if not blocks:
        return result
    notes = [block.get("text") for block in blocks]
    return {**result, "_meta": {**(result.get("_meta") or {}), "dev.sluice/notes": notes}}


def free_items(value: Any) -> Items:
    """Return any JSON value as context items."""
    return [_free(value)]


def free_value(items: Items) -> Any:
    """Return the JSON value of items made by ``free_items``."""
    return items[-1]["structuredContent"]
