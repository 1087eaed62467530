"""What of the events of OpenAI and Anthropic is text: chat completions, responses, messages."""

import json
from collections.abc import Callable, Collection, Hashable
from typing import Any

from sluice_client.event_streams import Close, Collect, Event, Feed, Pass, Step


def _changed(event: Event, *path: str | int, to: Any) -> Event:
    """Return a copy of ``event`` in which the member at ``path`` is ``to``."""
    copy = json.loads(json.dumps(event))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return dict(copy)


def _at(event: Event, *path: str | int) -> Callable[[str], Event]:
    return lambda text: _changed(event, *path, to=text)


class ChatEvents:
    """Chunks of a chat completion; choices may be interleaved."""

    def __init__(self, tools: Collection[str]) -> None:
        self.restored: dict[str, str] = {}
        self._tools = tools
        self._names: dict[Hashable, str] = {}
        self._open: dict[int, list[Hashable]] = {}

    def steps(self, event: Event) -> list[Step]:
        """Split a chunk: its texts into their channels, the rest passes on."""
        steps: list[Step] = []
        choices = event.get("choices") or []
        for choice in choices:
            steps += self._choice({**event, "choices": [choice]}, choice)
        return steps if choices else [Pass(lambda: event)]

    def _choice(self, event: Event, choice: dict[str, Any]) -> list[Step]:
        index, delta = choice.get("index", 0), choice.get("delta") or {}
        steps: list[Step] = []
        rest = dict(delta)
        for member in ("content", "refusal", "reasoning_content", "reasoning"):
            text = delta.get(member)
            if isinstance(text, str) and text:
                only = _bare(event, choice, {member: text})
                steps.append(Feed((index, member), text, _at(only, "choices", 0, "delta", member)))
                self._begin(index, (index, member))
                del rest[member]
        calls = [self._call(event, choice, call, steps) for call in delta.get("tool_calls") or []]
        if delta.get("tool_calls"):
            rest["tool_calls"] = [call for call in calls if call]
            if not rest["tool_calls"]:
                del rest["tool_calls"]
        if choice.get("finish_reason") is not None:
            steps += [Close(channel) for channel in self._open.pop(index, [])]
        elif not rest and delta and not event.get("usage"):
            return steps
        changed = rest != delta
        passed = {**choice, "delta": rest, **({"logprobs": None} if changed and "logprobs" in choice else {})}
        steps.append(Pass(lambda: {**event, "choices": [passed]}))
        return steps

    def _call(
        self, event: Event, choice: dict[str, Any], call: dict[str, Any], steps: list[Step]
    ) -> dict[str, Any] | None:
        """Take the arguments out of a call whose tool may see originals; return what passes at once."""
        index = choice.get("index", 0)
        channel = (index, "tool", call.get("index", 0))
        function = call.get("function") or {}
        if function.get("name"):
            self._names[channel] = function["name"]
        name, text = self._names.get(channel, ""), function.get("arguments")
        if name not in self._tools or not text:
            return call
        only = {"index": call.get("index", 0), "function": {"arguments": text}}
        piece = _bare(event, choice, {"tool_calls": [only]})
        path = ("choices", 0, "delta", "tool_calls", 0, "function", "arguments")
        steps.append(Collect(channel, name, text, _at(piece, *path)))
        self._begin(index, channel)
        begins = "id" in call or function.get("name")
        return {**call, "function": {**function, "arguments": ""}} if begins else None

    def _begin(self, index: int, channel: Hashable) -> None:
        channels = self._open.setdefault(index, [])
        if channel not in channels:
            channels.append(channel)


def _bare(event: Event, choice: dict[str, Any], delta: dict[str, Any]) -> Event:
    """Return a chunk that has this delta and nothing that ends the choice."""
    only = {**choice, "delta": delta, "finish_reason": None}
    if "logprobs" in only:
        only["logprobs"] = None
    return {**event, "choices": [only], **({"usage": None} if "usage" in event else {})}


class MessageEvents:
    """Events of Anthropic's messages: a channel for each content block."""

    def __init__(self, tools: Collection[str]) -> None:
        self.restored: dict[str, str] = {}
        self._tools = tools
        self._names: dict[int, str] = {}

    def steps(self, event: Event) -> list[Step]:
        """Put texts and arguments into their channels; signed reasoning passes as it came."""
        kind, index, delta = event.get("type"), event.get("index", 0), event.get("delta") or {}
        if kind == "content_block_start" and event["content_block"].get("type") == "tool_use":
            self._names[index] = event["content_block"].get("name", "")
        if kind == "content_block_stop":
            return [Close(index), Pass(lambda: event)]
        if delta.get("type") == "text_delta":
            return [Feed(index, delta["text"], _at(event, "delta", "text"))]
        if delta.get("type") == "input_json_delta" and self._names.get(index, "") in self._tools:
            name = self._names[index]
            return [Collect(index, name, delta["partial_json"], _at(event, "delta", "partial_json"))]
        return [Pass(lambda: event)]


class ResponseEvents:
    """Events of OpenAI's responses; texts that later events repeat agree with what was streamed."""

    _TEXTS = ("response.output_text", "response.refusal", "response.reasoning_summary_text")
    _ARGUMENTS = "response.function_call_arguments"

    def __init__(self, tools: Collection[str]) -> None:
        self.restored: dict[str, str] = {}
        self._tools = tools
        self._names: dict[Any, str] = {}

    def steps(self, event: Event) -> list[Step]:
        """Put deltas into their channels; close them before what repeats them."""
        family, _, last = str(event.get("type", "")).rpartition(".")
        item = event.get("item") or {}
        if event.get("type") == "response.output_item.added" and item.get("type") == "function_call":
            self._names[event.get("output_index")] = item.get("name", "")
        output = event.get("output_index")
        channel = (family, output, event.get("content_index"), event.get("summary_index"))
        if last == "delta" and family in self._TEXTS:
            return [Feed(channel, event["delta"], _at(self._plain(event), "delta"))]
        if last == "delta" and family == self._ARGUMENTS and self._names.get(output, "") in self._tools:
            return [Collect(channel, self._names[output], event["delta"], _at(event, "delta"))]
        return [Close(channel), Pass(lambda: self._repeated(event))]

    def _plain(self, event: Event) -> Event:
        return {**event, "logprobs": []} if "logprobs" in event else event

    def _repeated(self, event: Event) -> Event:
        changed = self._replaced(event)
        assert isinstance(changed, dict)  # noqa: S101 -- an object stays one
        return changed

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._replaced(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._replaced(member) for member in value]
        return self.restored.get(value, value) if isinstance(value, str) else value
