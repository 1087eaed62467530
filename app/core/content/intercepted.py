"""Convert payloads of intercepted events to context items, which middlewares can read and change, and back."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.core.content.chat_items import as_item, as_native, is_list_of_texts, native_steps
from app.core.content.hook_items import ResultParts, free_items, free_value
from app.core.errors import InternalError, InvalidArgumentsError

Items = list[Any]
_WriteBack = Callable[[Items, dict[str, Any]], None]
_RESULT_KINDS: Final[Mapping[str, str]] = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
}
_FRAME_MEMBERS: Final = frozenset({"jsonrpc", "id", "method"})
_MACHINE_MEMBERS: Final = frozenset(
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
"""Members that only machines read; middlewares do not see them."""

_SYSTEM_MEMBERS: Final = ("systemPrompt", "system", "instructions")
_TEXT_ROLES: Final = {"prompt": "user", "input": "user", "text": "assistant", "output": "assistant"}
"""Members in which completion APIs put text, or a list of messages or texts, and the role of the speaker."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some items and how to write them back.

    ``path`` is the place of the items in the body; ``each``: it is a list with one entry per item. ``takes`` converts
    items that a middleware puts in front to entries of this place; None: it takes none.
    """

    path: tuple[str | int, ...]
    items: Items
    back: _WriteBack
    each: bool = False
    takes: Callable[[Any], Any] | None = None
    skipped: int = 1
    """How many steps of a path in an item do not exist in the payload."""
    native: Sequence[Any] = ()
    """What the payload contains in place of the items."""


class InterceptedPayload:
    """One payload, bare or in its JSON-RPC frame; ``items`` go through a middleware, ``payload`` writes them back.

    ``tools`` are the definitions that the payload offers to a model; None if it offers none.
    """

    def __init__(self, event: str, phase: str, payload: Any) -> None:
        self._original = payload
        self._member, self._body = _unframed(event, phase, payload)
        self._event = event
        self._result: ResultParts | None = None
        self._parts: list[_Part] = []
        if phase == "response" and event in _RESULT_KINDS:
            self._result = ResultParts(_RESULT_KINDS[event], self._body)
            self.items: Items = self._result.items
        else:
            self._read(event, phase)
            self.items = [item for part in self._parts for item in part.items]
        offered = self._body.get("tools")
        self.tools: list[Any] | None = offered if isinstance(offered, list) else None

    def payload(self, items: Items, tools: Sequence[Any] | None = None) -> Any:
        """Return the whole payload with changed ``items`` (and ``tools``), in its original form.

        Raise InternalError if a middleware dropped items, InvalidArgumentsError if no place takes added items.
        """
        if self._result is not None:
            body = self._result.result(items)
        else:
            body = dict(self._body)
            added = len(items) - len(self.items)
            if added < 0:
                raise InternalError("A middleware dropped parts of a payload.")
            position = added
            for part in self._parts:
                changed = items[position : position + len(part.items)]
                position += len(part.items)
                if part.takes is not None and added:
                    changed, added = [*map(part.takes, items[:added]), *changed], 0
                part.back(changed, body)
            if added:
                raise InvalidArgumentsError(
                    "This payload has no place for the text that the interceptor adds; send messages.",
                    details={"pointer": "/payload"},
                )
        if tools is not None:
            body["tools"] = list(tools)
        if self._member is None:
            return body
        return (
            {**self._original, self._member: body}
            if body != self._original.get(self._member, {})
            else self._original
        )

    def path(self, pointer: str) -> str | None:
        """Return the payload path, such as ``params.messages[2].content``, of a ``pointer`` into the items, or None."""
        match = re.match(r"/(\d+)([^#]*)", pointer)
        if match is None:
            return None
        number = int(match[1])
        rest = [int(step) if step.isdecimal() else step for step in match[2].split("/")[1:]]
        steps = (
            self._steps_in_result(number, rest)
            if self._result is not None
            else self._steps_in_part(number, rest)
        )
        return None if steps is None else _dotted_path([*([self._member] if self._member else []), *steps])

    def _steps_in_result(self, number: int, rest: list[str | int]) -> list[str | int] | None:
        if number == len(self.items) - 1:
            return None
        kind = _RESULT_KINDS[self._event]
        if kind == "tool":
            return rest
        return ["messages", number, *rest] if kind == "prompt" else ["contents", number, *rest[1:]]

    def _steps_in_part(self, number: int, rest: list[str | int]) -> list[str | int] | None:
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
                self._read_tool(body)
                self._read_rest({"name", "arguments"})
            case "prompts/get", _:
                self._read_free("arguments")
                self._read_rest({"name", "arguments"})
            case "resources/read", _:
                self._read_link("uri")
                self._read_rest({"uri"})
            case "elicitation/create", "request":
                self._read_text("message")
                self._read_link("url")
                self._read_free("requestedSchema")
            case "elicitation/create", _:
                self._read_free("content")
            case "context/transform", _:
                self._read_context(body)
            case "sampling/createMessage" | "llm/completion", _:
                self._read_chat(as_blocks=event == "sampling/createMessage")

    def _read_tool(self, body: Mapping[str, Any]) -> None:
        if isinstance(body.get("arguments"), str | list | dict):
            item = {"type": "tool_use", "id": "call", "name": body.get("name"), "input": body["arguments"]}
            back = _writes_member("arguments", lambda item: item["input"])
            self._parts.append(_Part(("arguments",), [item], back))

    def _read_context(self, body: Mapping[str, Any]) -> None:
        if not isinstance(body.get("context"), list):
            raise InvalidArgumentsError(
                "The payload of context/transform must be {context: [...]}.",
                details={"pointer": "/payload/context"},
            )
        items = body["context"]
        back = _writes_list("context", items)
        self._parts.append(_Part(("context",), items, back, each=True, takes=_unchanged, native=items))

    def _read_chat(self, *, as_blocks: bool) -> None:
        """Read a request to a model or its answer, in the forms of MCP and of common completion APIs."""
        body = self._body
        for name in _SYSTEM_MEMBERS:
            self._read_message(name, "system")
        self._read_list("messages", _as_block if as_blocks else _as_message)
        read = {*_SYSTEM_MEMBERS, "messages"}
        for name, role in {"content": self._role(), **_TEXT_ROLES}.items():
            value = body.get(name)
            if name != "content" and isinstance(value, list):
                self._read_list(name, _as_text if is_list_of_texts(value) else _as_message)
            else:
                self._read_message(name, role)
            read |= {name} if isinstance(value, str | list) or name == "content" else set()
        if isinstance(body.get("choices"), list):
            self._read_choices(body["choices"])
            read.add("choices")
        if isinstance(body.get("message"), dict):
            self._read_whole_message(("message",), body["message"], partial(_writes_member, "message"))
            read.add("message")
        self._read_rest(read)

    def _role(self) -> str:
        role = self._body.get("role")
        return role if isinstance(role, str) else "assistant"

    def _read_list(self, name: str, takes: Callable[[Any], Any]) -> None:
        native = self._body.get(name)
        if not isinstance(native, list) or not all(isinstance(entry, str | dict) for entry in native):
            self._read_message(name, "user")
            return
        items, back = [as_item(entry) for entry in native], _writes_list(name, native)
        self._parts.append(_Part((name,), items, back, each=True, takes=takes, native=native))

    def _read_rest(self, read: set[str]) -> None:
        """Read every other member that people may have written, as free JSON."""
        read_or_machine = read | _MACHINE_MEMBERS
        rest = {key: value for key, value in self._body.items() if key not in read_or_machine}
        if rest:
            self._parts.append(_Part((), free_items(rest), _merges(free_value)))

    def _read_choices(self, choices: list[Any]) -> None:
        """Read each choice of a model's answer: a message, a part of a streamed message, or bare text."""
        for number, choice in enumerate(choices):
            if not isinstance(choice, dict):
                continue
            for name in ("message", "delta"):
                if isinstance(choice.get(name), dict):
                    self._read_whole_message(
                        ("choices", number, name), choice[name], partial(_writes_choice, number, name)
                    )
            if isinstance(choice.get("text"), str):
                item = {"role": "assistant", "content": choice["text"]}
                back = _writes_choice(number, "text", lambda item: item["content"])
                self._parts.append(_Part(("choices", number, "text"), [item], back))

    def _read_whole_message(
        self,
        path: tuple[str | int, ...],
        message: dict[str, Any],
        back: Callable[[Callable[[Any], Any]], _WriteBack],
    ) -> None:
        item = as_item(_with_role(message))
        written = back(lambda made: _without_added_role(message, as_native(_with_role(message), made)))
        self._parts.append(_Part(path, [item], written, skipped=0, native=[_with_role(message)]))

    def _read_message(self, name: str, role: str) -> None:
        value = self._body.get(name)
        if isinstance(value, str | list) or (isinstance(value, dict) and name == "content"):
            message = {"role": role, "content": value}
            back = _writes_member(name, lambda item: as_native(message, item)["content"])
            self._parts.append(_Part((name,), [as_item(message)], back, native=[message]))

    def _read_text(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "text", "text": self._body[name]}
            self._parts.append(_Part((name,), [item], _writes_member(name, lambda item: item["text"])))

    def _read_link(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "resource_link", "uri": self._body[name]}
            self._parts.append(_Part((name,), [item], _writes_member(name, lambda item: item["uri"])))

    def _read_free(self, name: str) -> None:
        if isinstance(self._body.get(name), dict | list):
            back = _writes_member(name, lambda item: free_value([item]))
            self._parts.append(_Part((name,), free_items(self._body[name]), back))


def _unframed(event: str, phase: str, payload: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the member of the frame that contains the body (None without a frame), and the body."""
    if not isinstance(payload, dict):
        raise InvalidArgumentsError("The payload must be an object.", details={"pointer": "/payload"})
    member = "result" if phase == "response" and "result" in payload else "params"
    names = payload.keys()
    if payload.get("method") == event or "jsonrpc" in names:
        framed = member in names or names <= _FRAME_MEMBERS
    else:
        framed = names <= _FRAME_MEMBERS | {member} and not names.isdisjoint({member, "method"})
    if not framed or not isinstance(payload.get("method", event), str):
        return None, payload
    if payload.get("method", event) != event:
        raise InvalidArgumentsError(
            "The payload's method is not the event's.", details={"pointer": "/payload/method"}
        )
    body = payload.get(member, {})
    if not isinstance(body, dict):
        raise InvalidArgumentsError(
            f"The payload's {member} must be an object.", details={"pointer": f"/payload/{member}"}
        )
    return member, body


def _writes_member(name: str, value: Callable[[Any], Any]) -> _WriteBack:
    def back(items: Items, body: dict[str, Any]) -> None:
        body[name] = value(items[0])

    return back


def _writes_choice(number: int, name: str, value: Callable[[Any], Any]) -> _WriteBack:
    def back(items: Items, body: dict[str, Any]) -> None:
        choices = list(body["choices"])
        choices[number] = {**choices[number], name: value(items[0])}
        body["choices"] = choices

    return back


def _writes_list(name: str, native: Sequence[Any]) -> _WriteBack:
    """Return a function that writes items back; extra items in front are additions."""

    def back(items: Items, body: dict[str, Any]) -> None:
        added = len(items) - len(native)
        written = [as_native(entry, item) for entry, item in zip(native, items[added:], strict=True)]
        body[name] = [*items[:added], *written]

    return back


def _merges(value: Callable[[Items], Any]) -> _WriteBack:
    def back(items: Items, body: dict[str, Any]) -> None:
        body.update(value(items))

    return back


def _unchanged(item: Any) -> Any:
    return item


def _as_block(item: Any) -> Any:
    """Return a message in the form of MCP sampling, in which content is a block."""
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


def _without_added_role(message: Mapping[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    return {key: member for key, member in item.items() if key in message or key != "role"}


def _dotted_path(steps: Sequence[str | int | None]) -> str:
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
