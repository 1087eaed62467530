"""Payloads of intercepted events as context items, so that middlewares can read and change them, and back again."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.core.content.chat_items import all_texts, as_item, as_native, native_steps
from app.core.content.hook_items import ResultParts, free_items, free_value
from app.core.errors import InternalError, InvalidArgumentsError

Items = list[Any]
_Back = Callable[[Items, dict[str, Any]], None]
_KINDS: Final[Mapping[str, str]] = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
}
_FRAMING: Final = frozenset({"jsonrpc", "id", "method"})
_MACHINE: Final = frozenset(
    {
        *(
            "model",
            "modelPreferences",
            "includeContext",
            "temperature",
            "maxTokens",
            "max_tokens",
            "n",
            "seed",
        ),
        *("max_completion_tokens", "stopSequences", "stop", "tools", "toolChoice", "tool_choice", "stream"),
        *(
            "top_p",
            "top_k",
            "response_format",
            "id",
            "object",
            "created",
            "usage",
            "finish_reason",
            "stopReason",
        ),
        *("stop_reason", "index", "role", "type", "_meta", "task", "mode", "elicitationId", "action"),
        *("system_fingerprint", "service_tier", "logprobs", "resultType", "requestState", "cursor"),
    }
)
"""Members that only machines read: no middleware is shown them."""

_SYSTEM: Final = ("systemPrompt", "system", "instructions")
_SAID: Final = {"prompt": "user", "input": "user", "text": "assistant", "output": "assistant"}
"""Members in which interfaces have what is said as text, or as a list of messages or texts, and by whom."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some items and how they are written back; ``path`` is where the first stands in the body, ``each`` if in a list.

    ``takes`` says how items that a middleware puts in front are written here, None where they cannot be.
    """

    path: tuple[str | int, ...]
    items: Items
    back: _Back
    each: bool = False
    takes: Callable[[Any], Any] | None = None
    skipped: int = 1
    """How many steps into an item are ours and not the payload's."""
    native: Sequence[Any] = ()
    """What the payload has in place of the items."""


class InterceptedPayload:
    """One payload, bare or in its frame; ``items`` go through a middleware, ``payload`` puts them back.

    ``tools`` are the definitions that the payload offers a model, None where it offers none.
    """

    def __init__(self, event: str, phase: str, payload: Any) -> None:
        self._given = payload
        self._member, self._body = _unframed(event, phase, payload)
        self._event = event
        self._shape: ResultParts | None = None
        self._parts: list[_Part] = []
        if phase == "response" and event in _KINDS:
            self._shape = ResultParts(_KINDS[event], self._body)
            self.items: Items = self._shape.items
        else:
            self._read(event, phase)
            self.items = [item for part in self._parts for item in part.items]
        offered = self._body.get("tools")
        self.tools: list[Any] | None = offered if isinstance(offered, list) else None

    def payload(self, items: Items, tools: Sequence[Any] | None = None) -> Any:
        """Return the whole payload with changed ``items`` (and ``tools``), in the form in which it came."""
        if self._shape is not None:
            body = self._shape.result(items)
        else:
            body = dict(self._body)
            added = len(items) - len(self.items)
            if added < 0:
                raise InternalError("A middleware dropped parts of a payload.")
            position = added
            for part in self._parts:
                mine = items[position : position + len(part.items)]
                position += len(part.items)
                if part.takes is not None and added:
                    mine, added = [*map(part.takes, items[:added]), *mine], 0
                part.back(mine, body)
            if added:
                raise InvalidArgumentsError(
                    "There is no place in this payload for what the interceptor adds; give messages.",
                    details={"pointer": "/payload"},
                )
        if tools is not None:
            body["tools"] = list(tools)
        if self._member is None:
            return body
        return (
            {**self._given, self._member: body} if body != self._given.get(self._member, {}) else self._given
        )

    def path(self, pointer: str) -> str | None:
        """Return where in the payload stands what ``pointer`` names in the items: ``params.messages[2].content``."""
        found = re.match(r"/(\d+)([^#]*)", pointer)
        if found is None:
            return None
        number = int(found[1])
        rest = [int(step) if step.isdecimal() else step for step in found[2].split("/")[1:]]
        steps = self._in_result(number, rest) if self._shape is not None else self._in_parts(number, rest)
        return None if steps is None else _dotted([*([self._member] if self._member else []), *steps])

    def _in_result(self, number: int, rest: list[str | int]) -> list[str | int] | None:
        if number == len(self.items) - 1:
            return None
        kind = _KINDS[self._event]
        if kind == "tool":
            return rest
        return ["messages", number, *rest] if kind == "prompt" else ["contents", number, *rest[1:]]

    def _in_parts(self, number: int, rest: list[str | int]) -> list[str | int] | None:
        for part in self._parts:
            if number < len(part.items):
                if part.each:
                    return [*part.path, number, *native_steps(part.native[number], rest)]
                steps = native_steps(part.native[0], rest) if part.native else rest
                return [*part.path, *steps[part.skipped :]]
            number -= len(part.items)
        return None

    def _read(self, event: str, phase: str) -> None:
        body = self._body
        match event, phase:
            case "tools/call", _:
                self._tool(body)
                self._rest({"name", "arguments"})
            case "prompts/get", _:
                self._free("arguments")
                self._rest({"name", "arguments"})
            case "resources/read", _:
                self._link("uri")
                self._rest({"uri"})
            case "elicitation/create", "request":
                self._text("message")
                self._link("url")
                self._free("requestedSchema")
            case "elicitation/create", _:
                self._free("content")
            case "context/transform", _:
                self._context(body)
            case "sampling/createMessage" | "llm/completion", _:
                self._chat(as_blocks=event == "sampling/createMessage")

    def _tool(self, body: Mapping[str, Any]) -> None:
        if isinstance(body.get("arguments"), str | list | dict):
            item = {"type": "tool_use", "id": "call", "name": body.get("name"), "input": body["arguments"]}
            back = _setting("arguments", lambda one: one["input"])
            self._parts.append(_Part(("arguments",), [item], back))

    def _context(self, body: Mapping[str, Any]) -> None:
        if not isinstance(body.get("context"), list):
            raise InvalidArgumentsError(
                "The payload of context/transform is {context: [...]}.",
                details={"pointer": "/payload/context"},
            )
        items = body["context"]
        back = _listing("context", items)
        self._parts.append(_Part(("context",), items, back, each=True, takes=_same, native=items))

    def _chat(self, *, as_blocks: bool) -> None:
        """Read what a model is asked or answers, in the forms of MCP and of the usual completion interfaces."""
        body = self._body
        for name in _SYSTEM:
            self._message(name, "system")
        self._list("messages", _as_block if as_blocks else _as_message)
        read = {*_SYSTEM, "messages"}
        for name, role in {"content": self._speaker(), **_SAID}.items():
            value = body.get(name)
            if name != "content" and isinstance(value, list):
                self._list(name, _as_text if all_texts(value) else _as_message)
            else:
                self._message(name, role)
            read |= {name} if isinstance(value, str | list) or name == "content" else set()
        if isinstance(body.get("choices"), list):
            self._choices(body["choices"])
            read.add("choices")
        if isinstance(body.get("message"), dict):
            self._whole(("message",), body["message"], partial(_setting, "message"))
            read.add("message")
        self._rest(read)

    def _speaker(self) -> str:
        role = self._body.get("role")
        return role if isinstance(role, str) else "assistant"

    def _list(self, name: str, takes: Callable[[Any], Any]) -> None:
        native = self._body.get(name)
        if not isinstance(native, list) or not all(isinstance(one, str | dict) for one in native):
            self._message(name, "user")
            return
        items, back = [as_item(one) for one in native], _listing(name, native)
        self._parts.append(_Part((name,), items, back, each=True, takes=takes, native=native))

    def _rest(self, read: set[str]) -> None:
        """Read every other member that people may have written as free JSON."""
        known = read | _MACHINE
        rest = {key: one for key, one in self._body.items() if key not in known}
        if rest:
            self._parts.append(_Part((), free_items(rest), _merging(free_value)))

    def _choices(self, choices: list[Any]) -> None:
        """Read each answer that a model gives: a message, a part of one in a stream, or bare text."""
        for number, choice in enumerate(choices):
            if not isinstance(choice, dict):
                continue
            for name in ("message", "delta"):
                if isinstance(choice.get(name), dict):
                    self._whole(("choices", number, name), choice[name], partial(_choosing, number, name))
            if isinstance(choice.get("text"), str):
                item = {"role": "assistant", "content": choice["text"]}
                back = _choosing(number, "text", lambda one: one["content"])
                self._parts.append(_Part(("choices", number, "text"), [item], back))

    def _whole(
        self,
        path: tuple[str | int, ...],
        message: dict[str, Any],
        back: Callable[[Callable[[Any], Any]], _Back],
    ) -> None:
        item = as_item(_with_role(message))
        written = back(lambda made: _as_given(message, as_native(_with_role(message), made)))
        self._parts.append(_Part(path, [item], written, skipped=0, native=[_with_role(message)]))

    def _message(self, name: str, role: str) -> None:
        value = self._body.get(name)
        if isinstance(value, str | list) or (isinstance(value, dict) and name == "content"):
            given = {"role": role, "content": value}
            back = _setting(name, lambda one: as_native(given, one)["content"])
            self._parts.append(_Part((name,), [as_item(given)], back, native=[given]))

    def _text(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "text", "text": self._body[name]}
            self._parts.append(_Part((name,), [item], _setting(name, lambda one: one["text"])))

    def _link(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "resource_link", "uri": self._body[name]}
            self._parts.append(_Part((name,), [item], _setting(name, lambda one: one["uri"])))

    def _free(self, name: str) -> None:
        if isinstance(self._body.get(name), dict | list):
            back = _setting(name, lambda one: free_value([one]))
            self._parts.append(_Part((name,), free_items(self._body[name]), back))


def _unframed(event: str, phase: str, payload: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the member in which a frame has the body, None without a frame, and the body."""
    if not isinstance(payload, dict):
        raise InvalidArgumentsError("The payload is an object.", details={"pointer": "/payload"})
    member = "result" if phase == "response" and "result" in payload else "params"
    names = payload.keys()
    if payload.get("method") == event or "jsonrpc" in names:
        framed = member in names or names <= _FRAMING
    else:
        framed = names <= _FRAMING | {member} and not names.isdisjoint({member, "method"})
    if not framed or not isinstance(payload.get("method", event), str):
        return None, payload
    if payload.get("method", event) != event:
        raise InvalidArgumentsError(
            "The payload is of another method than the event.", details={"pointer": "/payload/method"}
        )
    body = payload.get(member, {})
    if not isinstance(body, dict):
        raise InvalidArgumentsError(
            "What the payload frames is an object.", details={"pointer": f"/payload/{member}"}
        )
    return member, body


def _setting(name: str, value: Callable[[Any], Any]) -> _Back:
    def back(items: Items, body: dict[str, Any]) -> None:
        body[name] = value(items[0])

    return back


def _choosing(number: int, name: str, value: Callable[[Any], Any]) -> _Back:
    def back(items: Items, body: dict[str, Any]) -> None:
        choices = list(body["choices"])
        choices[number] = {**choices[number], name: value(items[0])}
        body["choices"] = choices

    return back


def _listing(name: str, native: Sequence[Any]) -> _Back:
    """Return what writes items back; those in front of the given ones are added."""

    def back(items: Items, body: dict[str, Any]) -> None:
        added = len(items) - len(native)
        written = [as_native(given, one) for given, one in zip(native, items[added:], strict=True)]
        body[name] = [*items[:added], *written]

    return back


def _merging(value: Callable[[Items], Any]) -> _Back:
    def back(items: Items, body: dict[str, Any]) -> None:
        body.update(value(items))

    return back


def _same(item: Any) -> Any:
    return item


def _as_block(item: Any) -> Any:
    """Return a message in the form that sampling has: its content is a block."""
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return {**item, "content": {"type": "text", "text": content}}
    return item if content is not None else {"role": "user", "content": item}


def _as_message(item: Any) -> Any:
    if isinstance(item, dict) and "role" in item:
        return item
    return {"role": "user", "content": item["text"] if isinstance(item, dict) and "text" in item else item}


def _as_text(item: Any) -> Any:
    return item["text"] if isinstance(item, dict) and isinstance(item.get("text"), str) else item


def _with_role(message: dict[str, Any]) -> dict[str, Any]:
    return message if isinstance(message.get("role"), str) else {**message, "role": "assistant"}


def _as_given(message: Mapping[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in item.items() if key in message or key != "role"}


def _dotted(steps: Sequence[str | int | None]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def tool_name(definition: Any) -> str | None:
    """Return the name of a tool, as MCP or as completion interfaces define it."""
    if not isinstance(definition, dict):
        return None
    inner = definition.get("function")
    name = inner.get("name") if isinstance(inner, dict) else definition.get("name")
    return name if isinstance(name, str) else None
