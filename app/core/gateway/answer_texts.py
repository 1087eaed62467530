"""Find every text of an answer or of a part of it, and say what it is, by the shapes that blocks have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.core.content.handles import find_handles
from app.core.content.leaves import LeafPlace
from app.core.content.shapes import members, tables
from app.core.content.shapes.shape import Shape
from app.core.gateway.channels import ChannelKind, Path, TextChannel, ToolRunner
from app.core.gateway.json_body import RawJson, json_text

DEEPEST: Final = 64
"""Texts that a provider nests more deeply pass unchanged."""

_CLIENT_CALLS: Final = frozenset(
    {
        *("tool_use", "function_call", "custom_tool_call", "local_shell_call", "apply_patch_call"),
        *("computer_call", "function", "custom"),
    }
)
"""Types of calls that the caller's program runs; all others are the provider's."""

_KINDS: Final[Mapping[str, ChannelKind]] = {
    "refusal": ChannelKind.REFUSAL,
    "reasoning_content": ChannelKind.REASONING,
    "annotations": ChannelKind.CITATION,
    "citations": ChannelKind.CITATION,
    "citation": ChannelKind.CITATION,
    "annotation": ChannelKind.CITATION,
}
_ECHOES: Final = frozenset({"instructions", "tools", "metadata", "prompt", "tool_choice"})
_SKIPPED: Final = (
    members.MACHINE
    | members.SEALED
    | members.SIGNATURES
    | {"logprobs", "object", "usage", "service_tier", "system_fingerprint", "obfuscation", "namespace"}
)
_OF_PLACES: Final[Mapping[LeafPlace | None, ChannelKind]] = {
    LeafPlace.TOOL_RESULT: ChannelKind.TOOL_RESULT,
    LeafPlace.DEFINITION: ChannelKind.ECHO,
}
_FUNCTIONS: Final = frozenset({"function", "custom", "function_call"})
_ARGUMENTS: Final = frozenset({"arguments", "input"})


@dataclass(frozen=True, slots=True)
class AnswerText:
    """One text of an answer; ``path`` is its place, ``is_json`` whether it is JSON in a string.

    ``is_value``: the text is that of the JSON value at ``path``, which is no string; names of its members may change.
    """

    path: Path
    text: str
    channel: TextChannel
    is_json: bool = False
    is_value: bool = False

    def written(self, changed: str) -> Any:
        """Return what to write at ``path`` for a ``changed`` text."""
        return RawJson(changed) if self.is_value else changed


@dataclass(frozen=True, slots=True)
class TextSetting:
    """Speaker, tool and kind of the texts around a place of an answer."""

    kind: ChannelKind = ChannelKind.OTHER
    tool: str | None = None
    runner: ToolRunner | None = None
    run: str = ""


def answer_texts(value: Any, path: Path, setting: TextSetting) -> Iterator[AnswerText]:
    """Yield the texts of ``value``, which is at ``path`` of the whole answer; those nested too deeply are left out."""
    if isinstance(value, str):
        yield _text(value, path, setting)
    elif len(path) > DEEPEST:
        return
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from answer_texts(element, (*path, number), setting)
    elif isinstance(value, dict):
        yield from _object_texts(value, path, setting)


def _text(text: str, path: Path, setting: TextSetting) -> AnswerText:
    is_url = not members.ADDRESSES.isdisjoint(path[-1:])
    channel = TextChannel(
        path=path,
        kind=setting.kind,
        tool=setting.tool,
        runner=setting.runner,
        address=is_url,
        run=setting.run if setting.kind in _RUNNING and not is_url else "",
    )
    return AnswerText(path, text, channel, is_json=setting.kind is ChannelKind.ARGUMENTS)


_RUNNING: Final = frozenset({ChannelKind.TEXT, ChannelKind.REFUSAL, ChannelKind.TOOL_RESULT})


def _object_texts(value: Mapping[str, Any], path: Path, setting: TextSetting) -> Iterator[AnswerText]:
    kind = value.get("type")
    shape = tables.TYPED.get(kind) if isinstance(kind, str) else None
    inside = block_setting(value, setting)
    for name, member in value.items():
        if _is_skipped(name, member, shape, is_text=kind == "text"):
            continue
        step = (*path, name)
        if isinstance(member, dict) and name in _FUNCTIONS:
            yield from answer_texts(member, step, called(member, ToolRunner.CLIENT, inside))
        elif inside.kind is ChannelKind.ARGUMENTS and name == "input" and not isinstance(member, str):
            yield from _arguments(member, step, inside)
        else:
            yield from answer_texts(member, step, _member_setting(name, shape, inside, path))


def _arguments(value: Any, path: Path, setting: TextSetting) -> Iterator[AnswerText]:
    """Yield the texts of arguments that are no text: one by one, or all as one where a name may hold a handle."""
    if _has_named(value):
        channel = TextChannel(path, ChannelKind.ARGUMENTS, setting.tool, setting.runner)
        yield AnswerText(path, json_text(value), channel, is_json=True, is_value=True)
    else:
        yield from argument_texts(value, path, setting)


def _has_named(value: Any) -> bool:
    """Return whether the name of a member holds text like a handle."""
    pending = [value]
    while pending:
        element = pending.pop()
        if isinstance(element, dict):
            if any(next(find_handles(name), None) is not None for name in element):
                return True
            pending.extend(element.values())
        elif isinstance(element, list):
            pending.extend(element)
    return False


def argument_texts(value: Any, path: Path, setting: TextSetting, pointer: str = "") -> Iterator[AnswerText]:
    """Yield the strings of arguments that are no text but JSON itself; ``path`` of their channel is the arguments'."""
    root = path[: len(path) - pointer.count("/")]
    if isinstance(value, str):
        channel = TextChannel(root, ChannelKind.ARGUMENTS, setting.tool, setting.runner, pointer)
        yield AnswerText(path, value, channel)
    elif isinstance(value, list | dict) and len(path) <= DEEPEST:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for step, member in entries:
            inner = pointer + "/" + str(step).replace("~", "~0").replace("/", "~1")
            yield from argument_texts(member, (*path, step), setting, inner)


def called(function: Mapping[str, Any], runner: ToolRunner, setting: TextSetting) -> TextSetting:
    """Return the setting of the texts inside a function call."""
    name = function.get("name")
    tool = name if isinstance(name, str) else setting.tool
    return replace(setting, kind=ChannelKind.ARGUMENTS, tool=tool, runner=runner)


def block_setting(block: Mapping[str, Any], setting: TextSetting) -> TextSetting:
    """Return the setting of the texts inside a block, by its type."""
    kind = block.get("type")
    shape = tables.TYPED.get(kind) if isinstance(kind, str) else None
    if shape is None or setting.kind is ChannelKind.CITATION:
        return setting
    if shape.reasons or kind in {"summary_text", "reasoning_text"}:
        return replace(setting, kind=ChannelKind.REASONING)
    if shape.place is LeafPlace.TOOL_INPUT or LeafPlace.TOOL_INPUT in shape.places.values():
        return called(block, runner_of(block), setting)
    if shape.place in _OF_PLACES:
        return replace(setting, kind=_OF_PLACES[shape.place])
    if setting.kind is ChannelKind.OTHER:
        return replace(setting, kind=ChannelKind.REFUSAL if kind == "refusal" else ChannelKind.TEXT)
    return setting


def runner_of(block: Mapping[str, Any]) -> ToolRunner:
    """Return who runs the tool that a block calls."""
    kind, environment = block.get("type"), block.get("environment")
    if not isinstance(kind, str):
        return ToolRunner.PROVIDER
    if kind == "shell_call":
        is_local = isinstance(environment, dict) and environment.get("type") == "local"
        return ToolRunner.CLIENT if is_local else ToolRunner.PROVIDER
    if kind == "tool_search_call":
        return ToolRunner.CLIENT if block.get("execution") == "client" else ToolRunner.PROVIDER
    return ToolRunner.CLIENT if kind in _CLIENT_CALLS else ToolRunner.PROVIDER


def _is_skipped(name: str, member: Any, shape: Shape | None, *, is_text: bool) -> bool:
    if name in _SKIPPED or name == "name" or (shape is not None and name in shape.names):
        return True
    if not isinstance(member, str):
        return False
    is_code = name in members.ENCODED and not is_text
    return is_code or member[:5].lower() == "data:"


def _member_setting(name: str, shape: Shape | None, setting: TextSetting, path: Path) -> TextSetting:
    if name in _KINDS:
        return replace(setting, kind=_KINDS[name])
    if not path and name in _ECHOES:
        return replace(setting, kind=ChannelKind.ECHO)
    if shape is not None and setting.kind is ChannelKind.ARGUMENTS:
        place = shape.places.get(name)
        if place is LeafPlace.TOOL_RESULT:
            return replace(setting, kind=ChannelKind.TOOL_RESULT)
    return setting
