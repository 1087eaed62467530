"""Messages of Anthropic, and the counting of their tokens.

Source: the types of anthropic-sdk-python 2.12.0 (MIT); only the names of members are taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.core.gateway.answer_texts import AnswerText, TextSetting, answer_texts, block_setting, runner_of
from app.core.gateway.answers import AnswerTable, ToolCall
from app.core.gateway.body_parts import BodyItem
from app.core.gateway.channels import ChannelKind, OpenChannel, Path, TextChannel, ToolRunner, index_in
from app.core.gateway.json_body import JsonBody, json_text
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.requests import Placement, RequestTable
from app.core.gateway.signed_blocks import SignedBlock, digest_of, seal_of
from app.core.gateway.sse import StreamEvent, written_event
from app.core.gateway.streams import EventStream, Fragment, below, written

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members(
        *("model", "max_tokens", "service_tier", "speed", "stream", "temperature", "top_k", "top_p"),
        *("thinking", "cache_control", "inference_geo", "billing_policy", "betas", "fallback_credit_token"),
    ),
    "messages": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "system": MemberRule(MemberForm.SPEECH, LeafRole.SYSTEM),
    "tools": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "mcp_servers": definition(LeafRole.TOOLS),
    "output_config": definition(LeafRole.FORMAT),
    "output_format": definition(LeafRole.FORMAT),
    "stop_sequences": definition(LeafRole.STOP),
    "metadata": definition(LeafRole.METADATA),
    "container": definition(LeafRole.METADATA),
    "diagnostics": definition(LeafRole.METADATA),
    "thread": definition(LeafRole.METADATA),
    "fallbacks": definition(LeafRole.METADATA),
    "context_management": definition(LeafRole.SYSTEM),
    "compaction": definition(LeafRole.SYSTEM),
}

SIGNED: Final = frozenset({"thinking", "redacted_thinking", "compaction"})

_PROVIDER_TOOLS: Final = ("web_search_", "web_fetch_", "code_execution_", "tool_search_", "advisor_", "mcp_")


_MOST_BREAKPOINTS: Final = 4
"""How many blocks of a request may have cache_control; a request with more is refused."""


def _noted(body: Mapping[str, Any], text: str) -> Placement:
    system = body.get("system")
    if not isinstance(system, str | list | None):
        return Placement()
    note: dict[str, Any] = {"type": "text", "text": text}
    behind = [*_breakpoints(system), *_breakpoints(body.get("messages"))]
    own = [body["cache_control"]] if isinstance(body.get("cache_control"), dict) else []
    if len(behind) + len(own) + sum(1 for _ in _breakpoints(body.get("tools"))) < _MOST_BREAKPOINTS:
        # No breakpoint may live shorter than one behind it.
        note["cache_control"] = next(iter([*behind, *own]), {"type": "ephemeral"})
    if isinstance(system, list):
        return Placement(fronts={("system",): [note]})
    rest = [{"type": "text", "text": system}] if isinstance(system, str) and system else []
    return Placement(values={("system",): [note, *rest]})


def _breakpoints(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the breakpoints of the provider's cache in a list of blocks or messages, in order."""
    for block in value if isinstance(value, list) else ():
        if isinstance(block, dict):
            yield from _breakpoints(block.get("content"))
            if isinstance(block.get("cache_control"), dict):
                yield block["cache_control"]


def _added(_body: Mapping[str, Any], items: list[Any]) -> Placement:
    return Placement(fronts={("messages",): items})


def _runner(tool: Mapping[str, Any]) -> ToolRunner:
    kind = tool.get("type")
    of_provider = isinstance(kind, str) and kind.startswith(_PROVIDER_TOOLS)
    return ToolRunner.PROVIDER if of_provider else ToolRunner.CLIENT


def _documents(value: Any) -> Iterator[str]:
    """Yield the texts of documents in the order of the body, also of those in results of tools."""
    if isinstance(value, list):
        for element in value:
            yield from _documents(element)
    elif isinstance(value, dict) and value.get("type") == "document":
        source = value.get("source")
        text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else ""
        yield text if isinstance(text, str) else ""
    elif isinstance(value, dict):
        for member in ("messages", "content"):
            yield from _documents(value.get(member))


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("messages",),
    signed=SIGNED,
    sessions=(("metadata", "user_id"),),
    note=_noted,
    added=_added,
    runner=_runner,
    documents=_documents,
)


def _message_texts(value: Any, path: Path = ()) -> Iterator[AnswerText]:
    """Yield the texts of a message, or of a part of it at ``path``; its blocks are shown one after the other."""
    yield from answer_texts(value, path, TextSetting(run="message"))


def _items(body: Mapping[str, Any]) -> Iterator[BodyItem]:
    if isinstance(body.get("content"), list):
        message = {"role": "assistant", "content": body["content"]}
        yield BodyItem(message, ("content",), 1, LeafRole.ASSISTANT)


def _calls(body: Mapping[str, Any]) -> Iterator[ToolCall]:
    content = body.get("content")
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and "input" in block:
            yield ToolCall(block.get("name"), block["input"], runner_of(block), ("content", number))


ANSWER: Final = AnswerTable(
    items=_items,
    texts=_message_texts,
    calls=_calls,
    lists=("content",),
    signed=SIGNED,
)

_DELTAS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
"""The member of a delta with a part of a text."""

_DELTA_TYPES: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "input": ("input_json_delta", "partial_json"),
    "content": ("compaction_delta", "content"),
}
"""The delta that continues a member of a block."""


class MessageStream(EventStream):
    """A streamed message; blocks are told apart by their index."""

    def __init__(self, open_channel: OpenChannel, documents: Sequence[OffsetMap] = ()) -> None:
        super().__init__(open_channel, documents)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._thoughts: dict[int, dict[str, list[str]]] = {}

    def changed(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        """Yield what goes out for one event."""
        value = body.value
        kind, index = value.get("type"), index_in(value, "index")
        if kind == "content_block_delta" and index is not None and isinstance(value.get("delta"), dict):
            if value["delta"].get("type") == "signature_delta":
                # What is signed has ended, and its rest belongs before the signature.
                yield from self.finished(("content", index))
            yield written(event, body, self._delta(index, value["delta"]))
        elif (
            kind == "content_block_start"
            and index is not None
            and isinstance(value.get("content_block"), dict)
        ):
            yield written(event, body, self._start(index, value["content_block"]))
        elif kind == "content_block_stop" and index is not None:
            yield from self.finished(("content", index))
            self._sealed(index)
            yield event.raw
        else:
            yield from self._other(event, body)

    def _other(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        value = body.value
        kind = value.get("type")
        self._notice(value if kind != "message_start" else value.get("message"))
        if kind == "message_start":
            message = value.get("message")
            values = self.wholes_changed(message, (), _message_texts(message))
            yield written(event, body, below(("message",), values))
        elif kind == "message_delta":
            delta = value.get("delta")
            yield written(
                event, body, below(("delta",), self.wholes_changed(delta, (), _message_texts(delta)))
            )
        else:
            if kind in ("message_stop", "error"):
                yield from self.finished(())
                self.ended = True
            yield event.raw

    def _notice(self, holder: Any) -> None:
        if not isinstance(holder, dict):
            return
        if isinstance(holder.get("usage"), dict):
            self.usage.update(holder["usage"])

    def _start(self, index: int, block: dict[str, Any]) -> dict[Path, Any]:
        self._blocks[index] = block
        self._thoughts[index] = {
            name: [text] if isinstance(text := block.get(name), str) else []
            for name in ("thinking", "signature", "data", "content", "encrypted_content")
        }
        base: Path = ("content", index)
        return below(("content_block",), self.wholes_changed(block, base, _message_texts(block, base)))

    def _delta(self, index: int, delta: dict[str, Any]) -> dict[Path, Any]:
        kind = delta.get("type")
        block = self._blocks.get(index, {})
        self._collect(index, delta)
        if kind == "citations_delta":
            base: Path = ("content", index, "citations", 0)
            setting = TextSetting(ChannelKind.CITATION)
            citation = delta.get("citation")
            values = self.wholes_changed(citation, base, answer_texts(citation, base, setting))
            return below(("delta", "citation"), values)
        member = _DELTAS.get(kind) if isinstance(kind, str) else None
        if member is None or not isinstance(delta.get(member), str):
            values = self.wholes_changed(delta, ("content", index, "delta"), self._unknown(index, delta))
            return below(("delta",), values)
        name = "input" if kind == "input_json_delta" else member
        path: Path = ("content", index, name)
        setting = block_setting(block, TextSetting(ChannelKind.TEXT, run="message" if name == "text" else ""))
        channel = TextChannel(path, setting.kind, setting.tool, setting.runner, run=setting.run)
        text = AnswerText(path, delta[member], channel, is_json=kind == "input_json_delta")
        return self.fragments_changed([Fragment(("delta", member), text)])

    def _unknown(self, index: int, delta: dict[str, Any]) -> Iterator[AnswerText]:
        yield from answer_texts(delta, ("content", index, "delta"), TextSetting())

    def _collect(self, index: int, delta: dict[str, Any]) -> None:
        """Keep what a signature covers, as the provider wrote it."""
        thought = self._thoughts.setdefault(index, {})
        for name in ("thinking", "signature", "content", "encrypted_content"):
            if isinstance(delta.get(name), str):
                thought.setdefault(name, []).append(delta[name])

    def _sealed(self, index: int) -> None:
        """Keep a block that turned out to be signed for whoever seals it."""
        block = dict(self._blocks.get(index, {}))
        block.update({name: "".join(parts) for name, parts in self._thoughts.pop(index, {}).items() if parts})
        seal = seal_of(block, SIGNED)
        if seal is not None:
            kind = str(block["type"])
            self.note_signed(SignedBlock(digest_of(kind, seal), kind, ("content", index), json_text(block)))

    def continued(self, path: Path, rest: str) -> bytes:
        """Return a delta that continues the text at ``path``."""
        kind, member = _DELTA_TYPES.get(str(path[2]), ("text_delta", "text"))
        delta = {"type": "content_block_delta", "index": path[1], "delta": {"type": kind, member: rest}}
        return written_event(json_text(delta), "content_block_delta")

    def failure(self, code: str, message: str) -> bytes:
        """Return the event with which a stream ends that cannot go on."""
        error = {"type": "api_error", "message": message, "code": f"sluice_{code}"}
        return written_event(json_text({"type": "error", "error": error}), "error")
