"""Chat completions of OpenAI and of whatever is compatible with them, and legacy completions.

Source: the types of openai-python 3.54.0 (Apache-2.0) and openai-openapi of 2026-08-21 (MIT); only names are taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.core.gateway.answer_texts import AnswerText, TextSetting, answer_texts, called
from app.core.gateway.answers import LOGPROBS_DROPPED, AnswerTable, ToolCall
from app.core.gateway.body_parts import BodyItem
from app.core.gateway.channels import ChannelKind, OpenChannel, Path, TextChannel, ToolRunner, index_in
from app.core.gateway.json_body import JsonBody, json_text
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.requests import Placement, RequestTable
from app.core.gateway.sse import StreamEvent, written_event
from app.core.gateway.streams import EventStream, Fragment, below, written

_OPTIONS: Final = {
    **machine_members(
        *("model", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens"),
        *("modalities", "moderation", "n", "parallel_tool_calls", "presence_penalty", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning_effort", "seed", "service_tier", "store", "stream", "best_of"),
        *("stream_options", "temperature", "top_logprobs", "top_p", "verbosity", "audio", "echo"),
    ),
    "stop": definition(LeafRole.STOP),
    "metadata": definition(LeafRole.METADATA),
    "user": definition(LeafRole.USER_ID),
    "safety_identifier": definition(LeafRole.USER_ID),
    "prompt_cache_key": definition(LeafRole.METADATA),
}

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **_OPTIONS,
    "messages": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "tools": definition(LeafRole.TOOLS),
    "functions": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "function_call": definition(LeafRole.TOOLS),
    "response_format": definition(LeafRole.FORMAT),
    "prediction": definition(LeafRole.ASSISTANT),
    "web_search_options": definition(LeafRole.TOOLS),
}

LEGACY_MEMBERS: Final[Mapping[str, MemberRule]] = {
    **_OPTIONS,
    "prompt": MemberRule(MemberForm.TEXTS, LeafRole.USER),
    "suffix": MemberRule(MemberForm.SPEECH, LeafRole.USER),
}

_SESSIONS: Final = (("prompt_cache_key",), ("user",), ("safety_identifier",))


def _noted(body: Mapping[str, Any], text: str) -> Placement:
    return _added(body, [{"role": "system", "content": text}])


def _added(body: Mapping[str, Any], items: list[Any]) -> Placement:
    if not isinstance(body.get("messages"), list):
        return Placement()  # what no API takes stays, so that the provider can say so
    return Placement(fronts={("messages",): items})


def _runner(_tool: Mapping[str, Any]) -> ToolRunner:
    return ToolRunner.CLIENT


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("messages",),
    sessions=(*_SESSIONS, ("metadata", "user_id")),
    note=_noted,
    added=_added,
    runner=_runner,
)
LEGACY_REQUEST: Final = RequestTable(members=LEGACY_MEMBERS, messages=("prompt",), sessions=_SESSIONS)


def _choices(body: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    choices = body.get("choices") if isinstance(body, dict) else None
    for number, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            yield number, choice


def _texts(body: Any) -> Iterator[AnswerText]:
    for number, choice in _choices(body):
        setting = TextSetting(ChannelKind.TEXT, run=str(number))
        yield from answer_texts(choice, ("choices", number), setting)
    if isinstance(body, dict):
        rest = {name: member for name, member in body.items() if name != "choices"}
        yield from answer_texts(rest, (), TextSetting())


def _items(body: Mapping[str, Any]) -> Iterator[BodyItem]:
    for number, choice in _choices(body):
        if isinstance(choice.get("message"), dict):
            message = {"role": "assistant", **choice["message"]}
            yield BodyItem(message, ("choices", number, "message"), 0, LeafRole.ASSISTANT)
        if isinstance(choice.get("text"), str):
            item = {"role": "assistant", "content": choice["text"]}
            yield BodyItem(item, ("choices", number, "text"), 1, LeafRole.ASSISTANT)


def _calls(body: Mapping[str, Any]) -> Iterator[ToolCall]:
    for number, choice in _choices(body):
        message = choice.get("message")
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            for member, argument in (("function", "arguments"), ("custom", "input")):
                inner = call.get(member) if isinstance(call, dict) else None
                if isinstance(inner, dict):
                    path = ("choices", number, "message", "tool_calls", position)
                    yield ToolCall(inner.get("name"), inner.get(argument), ToolRunner.CLIENT, path)


ANSWER: Final = AnswerTable(items=_items, texts=_texts, calls=_calls)


_HEAD: Final = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_CALLS: Final = frozenset({"tool_calls", "function_call"})
_WHOLE: Final = frozenset({"annotations"})
_CONTENT: Final = frozenset({"content"})
_PLAIN: Final = frozenset({"index", "delta", "finish_reason", "logprobs"})


class ChatStream(EventStream):
    """A streamed completion. A channel is a member of the message of a choice, or of one of its tool calls."""

    def __init__(self, open_channel: OpenChannel, documents: Sequence[OffsetMap] = ()) -> None:
        super().__init__(open_channel, documents)
        self._last: Mapping[str, Any] = {}
        self._contents: dict[int, AnswerText] = {}
        self._names: dict[Path, str] = {}
        self._open: set[int] = set()

    def changed(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        """Yield what goes out for one chunk."""
        value = body.value
        self._notice(value)
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices:
            if "error" in value:
                yield from self.finished(())
                self.ended = True
            yield event.raw
            return
        self._last = value
        values: dict[Path, Any] = {}
        for place, choice in enumerate(choices):
            if isinstance(choice, dict):
                yield from self._choice(place, choice, values)
        # Some servers never say that they are done; when every choice has its reason, the answer is whole.
        self.ended = not self._open
        yield written(event, body, values)

    def _notice(self, value: Mapping[str, Any]) -> None:
        if isinstance(value.get("usage"), dict):
            self.usage.update(value["usage"])

    def _choice(self, place: int, choice: dict[str, Any], values: dict[Path, Any]) -> Iterator[bytes]:
        """Add the new values of a choice to ``values``; yield what must go out before them."""
        index = index_in(choice, "index")
        number = place if index is None else index
        text = _plain_content(choice) if index is not None and number in self._contents else None
        if text is not None:
            changed_text = self.runs.opened(self._contents[number]).feed(text)
            self._open.add(number)
            if changed_text != text:
                values["choices", place, "delta", "content"] = changed_text
            return
        base: Path = ("choices", number)
        fragments = list(self._fragments(place, choice, base))
        for fragment in fragments if index is not None else ():
            if fragment.text.path == (*base, "message", "content"):
                self._contents[number] = fragment.text
        changed = self.fragments_changed(fragments)
        self._open.add(number)
        if choice.get("finish_reason") is not None:
            self._open.discard(number)
            places = {fragment.text.path: fragment for fragment in fragments}
            for path in self.runs.open_below(base):
                rest = self.runs.runs[path].finish()
                if rest and path in places:
                    fragment = places[path]
                    changed[fragment.place] = changed.get(fragment.place, fragment.text.text) + rest
                elif rest:
                    yield self.continued(path, rest)
        delta = choice.get("delta")
        if isinstance(delta, dict) and not _WHOLE.isdisjoint(delta):
            whole = {name: delta[name] for name in _WHOLE if name in delta}
            message: Path = (*base, "message")
            texts = answer_texts(whole, message, TextSetting(ChannelKind.TEXT))
            content = self.offsets_of((*message, "content"))
            beside = {**whole, "content": ""} if content is not None else whole
            changed.update(below(("choices", place, "delta"), self.wholes_changed(beside, message, texts)))
        if changed and choice.get("logprobs"):
            changed["choices", place, "logprobs"] = None
            self.notes[LOGPROBS_DROPPED] += 1
        values.update(changed)

    def _fragments(self, place: int, choice: dict[str, Any], base: Path) -> Iterator[Fragment]:
        delta, run = choice.get("delta"), str(base[1])
        if isinstance(choice.get("text"), str):
            path: Path = (*base, "text")
            channel = TextChannel(path, ChannelKind.TEXT, run=run)
            yield Fragment(("choices", place, "text"), AnswerText(path, choice["text"], channel))
        if not isinstance(delta, dict):
            return
        message: Path = (*base, "message")
        at: Path = ("choices", place, "delta")
        plain = {name: member for name, member in delta.items() if name not in _CALLS | _WHOLE}
        for text in answer_texts(plain, message, TextSetting(ChannelKind.TEXT, run=run)):
            yield Fragment((*at, *text.path[len(message) :]), text)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                number = index_in(call, "index")
                step = position if number is None else number
                yield from self._called(call, (*at, "tool_calls", position), (*message, "tool_calls", step))
        if isinstance(delta.get("function_call"), dict):
            yield from self._called({"function_call": delta["function_call"]}, at, message)

    def _called(self, call: dict[str, Any], at: Path, base: Path) -> Iterator[Fragment]:
        """Yield the parts of the arguments of one call; its name comes with the first of them."""
        for kind, function in call.items():
            if not isinstance(function, dict):
                continue
            path: Path = (*base, kind)
            name = function.get("name")
            if isinstance(name, str) and name:
                self._names[path] = name
            setting = called({"name": self._names.get(path)}, ToolRunner.CLIENT, TextSetting())
            for text in answer_texts(function, path, setting):
                yield Fragment((*at, *text.path[len(base) :]), text)

    def continued(self, path: Path, rest: str) -> bytes:
        """Return a chunk that continues one text of one choice."""
        choice: dict[str, Any] = {"index": path[1]}
        if path[2] == "text":
            choice["text"] = rest
        else:
            choice["delta"] = _delta(path[3:], rest)
        choice.update(logprobs=None, finish_reason=None)
        head = {name: self._last[name] for name in _HEAD if name in self._last}
        return written_event(json_text({**head, "choices": [choice]}))

    def failure(self, code: str, message: str) -> bytes:
        """Return the chunk with which a stream ends that cannot go on."""
        error = {"message": message, "type": "server_error", "param": None, "code": f"sluice_{code}"}
        return written_event(json_text({"error": error}))


def _plain_content(choice: Mapping[str, Any]) -> str | None:
    """Return the text of a choice that continues its message and says nothing else; None for any other."""
    delta = choice.get("delta")
    if not isinstance(delta, dict) or delta.keys() != _CONTENT or not choice.keys() <= _PLAIN:
        return None
    if choice.get("finish_reason") is not None or choice.get("logprobs"):
        return None
    text = delta["content"]
    return text if isinstance(text, str) and text[:5].lower() != "data:" else None


def _delta(path: Path, rest: str) -> Any:
    """Return a delta with ``rest`` at ``path``; calls of tools say in ``index`` which they are."""
    if not path:
        return rest
    step, *steps = path
    if isinstance(step, int):
        return [{"index": step, **_delta(tuple(steps), rest)}] if steps else [rest]
    return {step: _delta(tuple(steps), rest)}
