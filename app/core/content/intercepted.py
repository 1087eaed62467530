"""Convert payloads of intercepted events to context items, which middlewares can read and change, and back."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from app.core.content.context import drop_logprobs
from app.core.content.hook_items import ResultParts, free_items, free_value
from app.core.content.payload_parts import (
    Items,
    PayloadPart,
    WriteBack,
    as_block,
    as_message,
    as_text,
    is_list_of_texts,
    merges,
    unchanged,
    with_role,
    without_added_role,
    writes_entry,
    writes_inner,
    writes_member,
)
from app.core.content.shapes.definitions import REQUEST_TYPE
from app.core.errors import InternalError, InvalidArgumentsError

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
        *("max_completion_tokens", "stream", "top_p", "top_k", "id", "object", "created", "usage"),
        *("finish_reason", "stopReason", "stop_reason", "index", "role", "type", "_meta", "task", "mode"),
        *(
            "elicitationId",
            "action",
            "system_fingerprint",
            "service_tier",
            "resultType",
            "requestState",
            "cursor",
        ),
        *("created_at", "completed_at", "modelId", "modelVersion", "responseId", "usageMetadata"),
    }
)
"""Members that only machines read; middlewares do not see them."""

_REQUEST_MEMBERS: Final = frozenset(
    {
        *("tools", "functions", "tool_choice", "toolChoice", "toolConfig", "tool_config", "function_call"),
        *("response_format", "output_config", "outputConfig", "generationConfig", "inferenceConfig"),
        *("stop", "stopSequences", "stop_sequences", "logprobs", "reasoning", "include", "thinking"),
        *(
            "user",
            "safety_identifier",
            "user_profile_id",
            "metadata",
            "previous_response_id",
            "prompt_cache_key",
        ),
        *("conversation", "container", "modalities", "safetySettings", "cachedContent", "guardrailConfig"),
    }
)
"""Members of a request to a model that are no part of the conversation: definitions, formats, an end user's id."""

_SYSTEM_MEMBERS: Final = (
    *("systemPrompt", "system", "instructions", "systemInstruction", "system_instruction"),
)
_LISTS_OF_MESSAGES: Final = ("messages", "contents")
_SYSTEM_OR_CONTENT: Final = frozenset({*_SYSTEM_MEMBERS, "content"})
_TEXT_ROLES: Final = {"prompt": "user", "input": "user", "text": "assistant", "output": "assistant"}
"""Members in which completion APIs put text, or a list of messages or texts, and the role of the speaker."""


class InterceptedPayload:
    """One payload, bare or in its JSON-RPC frame; ``items`` go through a middleware, ``payload`` writes them back.

    ``tools`` are the definitions that the payload offers to a model; None if it offers none.
    """

    def __init__(self, event: str, phase: str, payload: Any) -> None:
        self._original = payload
        self._member, self._body = _unframed(event, phase, payload)
        self._event = event
        self._result: ResultParts | None = None
        self._parts: list[PayloadPart] = []
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
        for name in [name for name in body if body[name] != self._body.get(name)]:
            drop_logprobs(body, name)
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
                    return [*part.path, number, *rest]
                return [*part.path, *rest[part.skipped :]]
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
            back = writes_member("arguments", lambda item: item["input"])
            self._parts.append(PayloadPart(("arguments",), [item], back))

    def _read_context(self, body: Mapping[str, Any]) -> None:
        if not isinstance(body.get("context"), list):
            raise InvalidArgumentsError(
                "The payload of context/transform must be {context: [...]}.",
                details={"pointer": "/payload/context"},
            )
        items = body["context"]
        back = writes_member("context", each=True)
        self._parts.append(PayloadPart(("context",), items, back, each=True, takes=unchanged))

    def _read_chat(self, *, as_blocks: bool) -> None:
        """Read a request to a model or its answer, in the forms of MCP and of common completion APIs."""
        body = self._body
        for name in _SYSTEM_MEMBERS:
            self._read_message(name, "system")
        for name in _LISTS_OF_MESSAGES:
            self._read_list(name, as_block if as_blocks else as_message)
        read = {*_SYSTEM_MEMBERS, *_LISTS_OF_MESSAGES}
        for name, role in {"content": self._role(), **_TEXT_ROLES}.items():
            value = body.get(name)
            if name != "content" and isinstance(value, list):
                self._read_list(name, as_text if is_list_of_texts(value) else as_message)
            else:
                self._read_message(name, role)
            read |= {name} if isinstance(value, str | list) or name == "content" else set()
        if isinstance(body.get("choices"), list):
            self._read_choices(body["choices"])
            read.add("choices")
        if isinstance(body.get("message"), dict):
            self._read_whole_message(("message",), body["message"], partial(writes_member, "message"))
            read.add("message")
        read |= self._read_other_answers()
        self._read_request(read)
        self._read_rest(read | _REQUEST_MEMBERS)

    def _read_other_answers(self) -> set[str]:
        """Read the answers of Gemini and of Bedrock's Converse; return the members that were read."""
        read = set()
        candidates = self._body.get("candidates")
        for number, candidate in enumerate(candidates if isinstance(candidates, list) else []):
            content = candidate.get("content") if isinstance(candidate, dict) else None
            if isinstance(content, dict):
                path = ("candidates", number, "content")
                self._read_whole_message(
                    path, content, partial(writes_entry, "candidates", number, "content")
                )
                read.add("candidates")
        output = self._body.get("output")
        if isinstance(output, dict) and isinstance(output.get("message"), dict):
            back = partial(writes_inner, "output", "message")
            self._read_whole_message(("output", "message"), output["message"], back)
            read.add("output")
        return read

    def _read_request(self, read: set[str]) -> None:
        """Read definitions, formats, stop words and an end user's id as one item."""
        members = {
            name: value
            for name, value in self._body.items()
            if name not in read and (name in _REQUEST_MEMBERS or (name == "text" and isinstance(value, dict)))
        }
        if members:
            read.update(members)
            item = {"type": REQUEST_TYPE, "members": members}
            self._parts.append(PayloadPart((), [item], merges(lambda items: items[0]["members"])))

    def _role(self) -> str:
        role = self._body.get("role")
        return role if isinstance(role, str) else "assistant"

    def _read_list(self, name: str, takes: Callable[[Any], Any]) -> None:
        native = self._body.get(name)
        if not isinstance(native, list) or not all(isinstance(entry, str | dict) for entry in native):
            self._read_message(name, "user")
            return
        back = writes_member(name, each=True)
        self._parts.append(PayloadPart((name,), native, back, each=True, takes=takes))

    def _read_rest(self, read: set[str]) -> None:
        """Read every other member that people may have written, as free JSON."""
        read_or_machine = read | _MACHINE_MEMBERS
        rest = {key: value for key, value in self._body.items() if key not in read_or_machine}
        if rest:
            self._parts.append(PayloadPart((), free_items(rest), merges(free_value)))

    def _read_choices(self, choices: list[Any]) -> None:
        """Read each choice of a model's answer: a message, a part of a streamed message, or bare text."""
        for number, choice in enumerate(choices):
            if not isinstance(choice, dict):
                continue
            for name in ("message", "delta"):
                if isinstance(choice.get(name), dict):
                    self._read_whole_message(
                        ("choices", number, name),
                        choice[name],
                        partial(writes_entry, "choices", number, name),
                    )
            if isinstance(choice.get("text"), str):
                item = {"role": "assistant", "content": choice["text"]}
                back = writes_entry("choices", number, "text", lambda item: item["content"])
                self._parts.append(PayloadPart(("choices", number, "text"), [item], back))

    def _read_whole_message(
        self,
        path: tuple[str | int, ...],
        message: dict[str, Any],
        back: Callable[[Callable[[Any], Any]], WriteBack],
    ) -> None:
        written = back(lambda made: without_added_role(message, made))
        self._parts.append(PayloadPart(path, [with_role(message)], written, skipped=0))

    def _read_message(self, name: str, role: str) -> None:
        value = self._body.get(name)
        if isinstance(value, str | list) or (isinstance(value, dict) and name in _SYSTEM_OR_CONTENT):
            message = {"role": role, "content": value}
            self._parts.append(
                PayloadPart((name,), [message], writes_member(name, lambda item: item["content"]))
            )

    def _read_text(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "text", "text": self._body[name]}
            self._parts.append(PayloadPart((name,), [item], writes_member(name, lambda item: item["text"])))

    def _read_link(self, name: str) -> None:
        if isinstance(self._body.get(name), str):
            item = {"type": "resource_link", "uri": self._body[name]}
            self._parts.append(PayloadPart((name,), [item], writes_member(name, lambda item: item["uri"])))

    def _read_free(self, name: str) -> None:
        if isinstance(self._body.get(name), dict | list):
            back = writes_member(name, lambda item: free_value([item]))
            self._parts.append(PayloadPart((name,), free_items(self._body[name]), back))


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
