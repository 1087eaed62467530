"""Responses of OpenAI, and the items of conversations.

Source: the types of openai-python 3.54.0 (Apache-2.0) and openai-openapi of 2026-08-21 (MIT); only names are taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.core.gateway.answer_texts import AnswerText, TextSetting, answer_texts, block_setting, runner_of
from app.core.gateway.answers import LOGPROBS_DROPPED, AnswerTable, ToolCall
from app.core.gateway.body_parts import BodyItem
from app.core.gateway.channels import ChannelKind, OpenChannel, Path, TextChannel, ToolRunner, index_in
from app.core.gateway.citations import moved_annotation
from app.core.gateway.json_body import JsonBody, json_text
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.requests import NOTE, Placement, RequestTable
from app.core.gateway.signed_blocks import SignedBlock, digest_of, seal_of
from app.core.gateway.sse import StreamEvent, written_event
from app.core.gateway.streams import EventStream, Fragment, below, written

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members(
        *("model", "background", "background_options", "include", "max_output_tokens", "max_tool_calls"),
        *("parallel_tool_calls", "prompt_cache_retention", "service_tier", "store", "stream", "temperature"),
        *("stream_options", "top_logprobs", "top_p", "truncation", "access_programs", "context_management"),
        *("image", "moderation", "prompt_cache_options", "reasoning", "personality"),
        *("previous_response_id", "conversation"),
    ),
    "input": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "instructions": MemberRule(MemberForm.SPEECH, LeafRole.SYSTEM),
    "tools": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "text": definition(LeafRole.FORMAT),
    "prompt": MemberRule(MemberForm.VALUES, LeafRole.USER),
    "metadata": definition(LeafRole.METADATA),
    "user": definition(LeafRole.USER_ID),
    "safety_identifier": definition(LeafRole.USER_ID),
    "prompt_cache_key": definition(LeafRole.METADATA),
}

ITEM_MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members("include"),
    "items": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "metadata": definition(LeafRole.METADATA),
}

SIGNED: Final = frozenset({"reasoning", "compaction"})

_CLIENT_TOOLS: Final = frozenset(
    {
        *(
            "function",
            "custom",
            "local_shell",
            "apply_patch",
            "computer",
            "computer_use_preview",
            "namespace",
        ),
        *("computer_use", "tool_search"),
    }
)


def _noted(body: Mapping[str, Any], text: str) -> Placement:
    instructions = body.get("instructions")
    if not isinstance(instructions, str | None):
        return Placement()  # what no API takes stays, so that the provider can say so
    rest = f"\n\n{instructions}" if instructions else ""
    return Placement(values={("instructions",): f"{text}{rest}"})


def _echoed(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the instructions that a response repeats as the caller wrote them, without our note."""
    instructions = response.get("instructions")
    if not isinstance(instructions, str) or not instructions.startswith(NOTE):
        return {}
    return {"instructions": instructions.removeprefix(NOTE).removeprefix("\n\n") or None}


def _added(body: Mapping[str, Any], items: list[Any]) -> Placement:
    current = body.get("input")
    if isinstance(current, list):
        return Placement(fronts={("input",): items})
    rest = [{"role": "user", "content": current}] if isinstance(current, str) else []
    return Placement(values={("input",): [*items, *rest]})


def _runner(tool: Mapping[str, Any]) -> ToolRunner:
    kind, environment = tool.get("type"), tool.get("environment")
    if kind == "shell":
        is_local = isinstance(environment, dict) and environment.get("type") == "local"
        return ToolRunner.CLIENT if is_local else ToolRunner.PROVIDER
    is_callers = isinstance(kind, str) and kind in _CLIENT_TOOLS
    return ToolRunner.CLIENT if is_callers else ToolRunner.PROVIDER


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("input",),
    signed=SIGNED,
    sessions=(("prompt_cache_key",), ("user",), ("safety_identifier",), ("metadata", "user_id")),
    conversation=(("conversation",), ("conversation", "id")),
    previous=(("previous_response_id",),),
    note=_noted,
    added=_added,
    runner=_runner,
)
ITEMS_REQUEST: Final = RequestTable(members=ITEM_MEMBERS, messages=("items",), signed=SIGNED)


def response_texts(value: Any) -> Iterator[AnswerText]:
    """Yield the texts of a response, or of a list of items."""
    if not isinstance(value, dict):
        return
    output = value.get("output")
    for number, item in enumerate(output if isinstance(output, list) else ()):
        yield from answer_texts(item, ("output", number), TextSetting(run="output"))
    rest = {
        name: member for name, member in value.items() if name != "output" or not isinstance(member, list)
    }
    yield from answer_texts(rest, (), TextSetting(run="echo"))


def _output(body: Mapping[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for member in ("output", "data"):
        entries = body.get(member)
        for number, item in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(item, dict):
                yield member, number, item


def _items(body: Mapping[str, Any]) -> Iterator[BodyItem]:
    for member, number, item in _output(body):
        yield BodyItem(item, (member, number), 0, LeafRole.ASSISTANT)


def _calls(body: Mapping[str, Any]) -> Iterator[ToolCall]:
    for member, number, item in _output(body):
        name = next((name for name in ("arguments", "input", "action", "operation") if name in item), None)
        if name is not None:
            yield ToolCall(item.get("name"), item[name], runner_of(item), (member, number))


ANSWER: Final = AnswerTable(
    items=_items,
    texts=response_texts,
    calls=_calls,
    lists=("output", "data"),
    signed=SIGNED,
    ids={
        "response": ("id",),
        "conversation": ("conversation", "id"),
        "previous_response": ("previous_response_id",),
    },
    echoed=_echoed,
)


_O, _C, _S, _N = "output_index", "content_index", "summary_index", "command_index"
_TEXTS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "response.output_text": (("output", _O, "content", _C, "text"), "text"),
    "response.refusal": (("output", _O, "content", _C, "refusal"), "refusal"),
    "response.reasoning_text": (("output", _O, "content", _C, "text"), "text"),
    "response.reasoning_summary_text": (("output", _O, "summary", _S, "text"), "text"),
    "response.function_call_arguments": (("output", _O, "arguments"), "arguments"),
    "response.mcp_call_arguments": (("output", _O, "arguments"), "arguments"),
    "response.custom_tool_call_input": (("output", _O, "input"), "input"),
    "response.code_interpreter_call_code": (("output", _O, "code"), "code"),
    "response.shell_call_command": (("output", _O, "action", "commands", _N), "command"),
    "response.shell_call_output_content": (("output", _O, "output", _N), "output"),
    "response.audio.transcript": (("audio", "transcript"), "transcript"),
}
"""By the beginning of an event's type: the place of its text in the response, and its member when it is whole."""

_WHOLES: Final[Mapping[str, tuple[str, ...]]] = {
    "response": (),
    "item": ("output", _O),
    "part": ("output", _O, "content", _C),
    "annotation": ("output", _O, "content", _C, "annotations", "annotation_index"),
}
"""Members of events that hold a part of the response, and its place."""

_KINDS: Final[Mapping[str, ChannelKind]] = {
    "response.refusal": ChannelKind.REFUSAL,
    "response.reasoning_text": ChannelKind.REASONING,
    "response.reasoning_summary_text": ChannelKind.REASONING,
    "response.shell_call_output_content": ChannelKind.TOOL_RESULT,
}
_ARGUMENTS: Final = frozenset({"arguments", "input", "code", "action"})
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
_MEDIA: Final = frozenset({"response.audio.delta", "response.audio.done"})
_ENDINGS: Final = (".delta", ".done", ".added")


class ResponseStream(EventStream):
    """A streamed response; a channel is a text of one of its items."""

    keeps_texts = True

    def __init__(self, open_channel: OpenChannel, documents: Sequence[OffsetMap] = ()) -> None:
        super().__init__(open_channel, documents)
        self._items: dict[int | None, Mapping[str, Any]] = {}
        self._last: dict[Path, tuple[dict[str, Any], Path]] = {}
        self._waiting: dict[Path, list[tuple[StreamEvent, JsonBody]]] = {}
        self._number = -1

    def changed(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        """Yield what goes out for one event."""
        value = body.value
        kind = str(value.get("type"))
        number = value.get("sequence_number")
        self._number = max(self._number, number) if isinstance(number, int) else self._number
        stem = next((kind.removesuffix(end) for end in _ENDINGS if kind.endswith(end)), kind)
        if kind.endswith(".delta") and kind not in _MEDIA:
            yield from self._delta(event, body, stem)
        elif stem in _TEXTS:
            yield from self._whole_text(event, body, stem)
        elif isinstance(value.get("annotation"), dict):
            yield from self._annotation(event, body)
        else:
            yield from self._whole(event, body, kind)

    def _delta(self, event: StreamEvent, body: JsonBody, stem: str) -> Iterator[bytes]:
        value = body.value
        base = _place(_TEXTS[stem][0], value) if stem in _TEXTS else ("events", stem, *_indices(value))
        fragments = [
            Fragment(("delta", *text.path[len(base) :]), text)
            for text in answer_texts(value.get("delta"), base, TextSetting())
        ]
        fragments = [
            Fragment(fragment.place, self._text(fragment.text.path, fragment.text.text, stem, value))
            for fragment in fragments
        ]
        for fragment in fragments:
            self._last[fragment.text.path] = value, fragment.place
        values = self.fragments_changed(fragments)
        if values and value.get("logprobs"):
            values["logprobs",] = []
            self.notes[LOGPROBS_DROPPED] += 1
        yield written(event, body, values)
        for fragment in fragments:
            yield from self._released(fragment.text.path)

    def _whole_text(self, event: StreamEvent, body: JsonBody, stem: str) -> Iterator[bytes]:
        value = body.value
        places, member = _TEXTS[stem]
        base = _place(places, value)
        if value.get("type") == f"{stem}.done":
            yield from self.finished(base)
        whole = value.get(member)
        texts = (
            self._text(text.path, text.text, stem, value) for text in answer_texts(whole, base, TextSetting())
        )
        values = below((member,), self.wholes_changed(whole, base, texts))
        if self.is_changed(base) and value.get("logprobs"):
            values["logprobs",] = []
            self.notes[LOGPROBS_DROPPED] += 1
        yield written(event, body, values)

    def _whole(self, event: StreamEvent, body: JsonBody, kind: str) -> Iterator[bytes]:
        """Yield an event that holds a part of the response, or none."""
        value = body.value
        values: dict[Path, Any] = {}
        for member, places in _WHOLES.items():
            part = value.get(member)
            if not isinstance(part, dict):
                continue
            if "reasoning_summary" in kind:
                places = ("output", _O, "summary", _S)  # noqa: PLW2901 - a part of a summary stands elsewhere
            base = _place(places, value)
            if kind.endswith(".done") or kind in _LAST:
                yield from self.finished(base)
            self._notice(member, part, value)
            self._seal(body, member, part, kind)
            setting = TextSetting(run="output")
            echoed = _echoed(part) if not base else {}
            part = {**part, **echoed}
            values.update({(member, name): text for name, text in echoed.items()})
            texts = response_texts(part) if not base else answer_texts(part, base, setting)
            values.update(below((member,), self.wholes_changed(part, base, texts)))
        if kind in _LAST:
            yield from self.finished(())
            self.ended = True
        yield written(event, body, values)

    def _annotation(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        """Yield a citation, once the text is whole that it speaks of."""
        value = body.value
        path = _place(_TEXTS["response.output_text"][0], value)
        run = self.run_of(path)
        end = value["annotation"].get("end_index")
        settled = run.offsets.source_length if run is not None and not run.is_settled else None
        if settled is not None and isinstance(end, int) and end > settled:
            self._waiting.setdefault(path, []).append((event, body))
            return
        yield self._moved(event, body, path)

    def _moved(self, event: StreamEvent, body: JsonBody, path: Path) -> bytes:
        annotation = body.value["annotation"]
        base = _place(_WHOLES["annotation"], body.value)
        texts = answer_texts(annotation, base, TextSetting(ChannelKind.CITATION))
        values = self.wholes_changed(annotation, base, texts)
        values.update(dict(moved_annotation(annotation, (), self.offsets_of(path))))
        return written(event, body, below(("annotation",), values))

    def _released(self, path: Path) -> Iterator[bytes]:
        run = self.run_of(path)
        waiting = self._waiting.pop(path, [])
        for number, (event, body) in enumerate(waiting):
            end = body.value["annotation"]["end_index"]
            if run is not None and not run.is_finished and end > run.offsets.source_length:
                self._waiting[path] = waiting[number:]
                return
            yield self._moved(event, body, path)

    def after_text(self, path: Path) -> Iterator[bytes]:
        """Yield the citations that waited for the text at ``path``."""
        yield from self._released(path)
        self._last.pop(path, None)

    def _text(self, path: Path, text: str, stem: str, value: Mapping[str, Any]) -> AnswerText:
        item = self._items.get(index_in(value, _O), {})
        is_arguments = len(path) > 2 and path[2] in _ARGUMENTS  # noqa: PLR2004 - the step behind the item
        if is_arguments:
            setting = block_setting(item, TextSetting(ChannelKind.ARGUMENTS))
            return AnswerText(
                path, text, TextChannel(path, setting.kind, setting.tool, setting.runner), is_json=True
            )
        kind = _KINDS.get(stem, ChannelKind.TEXT)
        run = "" if kind is ChannelKind.REASONING else "output"
        return AnswerText(path, text, TextChannel(path, kind, run=run))

    def _notice(self, member: str, part: dict[str, Any], value: Mapping[str, Any]) -> None:
        if member == "item":
            self._items[index_in(value, _O)] = part
        if member == "response":
            conversation = part.get("conversation")
            named = {
                "response": part.get("id"),
                "conversation": conversation.get("id") if isinstance(conversation, dict) else None,
            }
            self.ids.update({name: text for name, text in named.items() if isinstance(text, str)})
            if isinstance(part.get("usage"), dict):
                self.usage.update(part["usage"])

    def _seal(self, body: JsonBody, member: str, part: dict[str, Any], kind: str) -> None:
        """Keep whole signed items for whoever seals them."""
        if member == "item" and kind.endswith(".done"):
            self._seal_item(body, part, ("item",), ("output", _index(body.value, _O)))
        elif member == "response" and kind in _LAST:
            output = part.get("output")
            for number, item in enumerate(output if isinstance(output, list) else ()):
                if isinstance(item, dict):
                    self._seal_item(body, item, ("response", "output", number), ("output", number))

    def _seal_item(self, body: JsonBody, item: dict[str, Any], place: Path, path: Path) -> None:
        seal = seal_of(item, SIGNED)
        if seal is not None:
            kind = str(item["type"])
            self.note_signed(SignedBlock(digest_of(kind, seal), kind, path, body.raw(place)))

    def continued(self, path: Path, rest: str) -> bytes:
        """Return a delta like the last one, with the rest of its text."""
        last, place = self._last.get(path, ({"type": "response.output_text.delta"}, ("delta",)))
        delta: Any = rest
        for step in reversed(place[1:]):
            delta = {step: delta}
        event = {**last, "delta": delta, **({"logprobs": []} if "logprobs" in last else {})}
        return written_event(json_text(event), str(last["type"]))

    def failure(self, code: str, message: str) -> bytes:
        """Return the event with which a stream ends that cannot go on."""
        event = {"type": "error", "code": f"sluice_{code}", "message": message, "param": None}
        return written_event(json_text({**event, "sequence_number": self._number + 1}), "error")


def _place(steps: tuple[str, ...], value: Mapping[str, Any]) -> Path:
    """Return the place of a text in the response, with the event's indices."""
    return tuple(_index(value, step) if step.endswith("_index") else step for step in steps)


def _index(value: Mapping[str, Any], name: str) -> int:
    return index_in(value, name) or 0


def _indices(value: Mapping[str, Any]) -> Path:
    return tuple(_index(value, name) for name in (_O, _C, _S, _N))
