"""Read content blocks of all interfaces into leaves, by the tables of ``shapes`` and the rule for other members."""

import re
from dataclasses import dataclass, replace
from typing import Any

from app.core.content.leaves import LeafPlace
from app.core.content.shapes import members, tables
from app.core.content.shapes.definitions import DefinitionReader
from app.core.content.shapes.shape import Shape
from app.core.content.walking import IDENTIFIER, SIGNED_REASONING, Path, ValueReader, pointer_of, type_name
from app.core.errors import InvalidArgumentsError

_DATA_PLACES = frozenset({LeafPlace.TOOL_INPUT, LeafPlace.STRUCTURED})
_FOREIGN_PLACES = frozenset({LeafPlace.TOOL_RESULT, LeafPlace.DEFINITION})
_PLAIN = Shape()
_TEXT_PART = Shape(opens="text")
_LONG_CODE = 255
"""In a block of an image or a file, a longer string may be its contents, whatever its member is called."""

_OPAQUE_REASONING = frozenset({"encrypted_content", "data", "redactedContent"})


@dataclass(frozen=True, slots=True)
class _Around:
    """What holds for the strings of a block: their place, speaker and tool, and what encoded data counts as."""

    place: LeafPlace
    role: str | None
    tool: str | None = None
    media: str = "blob"
    sealed: bool = False
    opens: bool = False
    in_message: bool = False


class BlockReader:
    """Add the leaves of blocks to the reading of ``values``."""

    def __init__(self, values: ValueReader, *, strict: bool) -> None:
        self.values = values
        self.reading = values.reading
        self.definitions = DefinitionReader(values)
        self.strict = strict

    def read(
        self,
        path: Path,
        block: dict[str, Any],
        place: LeafPlace,
        role: str | None,
        *,
        opens: bool = False,
        in_message: bool = False,
    ) -> None:
        """Read one block of a list of blocks or items."""
        if self.values.read_plain(path, block, place, role, opens=opens, in_message=in_message):
            return
        self.values.count_block(path)
        kind = type_name(block)
        around = _Around(place, role, opens=opens, in_message=in_message)
        if kind == "text" and not isinstance(block.get("text"), str):
            raise fault((*path, "text"), "A text block needs a string in text.")
        if kind == "resource" and not isinstance(block.get("resource"), dict):
            raise fault((*path, "resource"), "An embedded resource needs an object in resource.")
        shape = tables.TYPED.get(kind) if kind is not None else None
        if kind == "tool_result" or (
            kind is None and (isinstance(block.get("content"), list) or "structuredContent" in block)
        ):
            self._read_tool_result(path, block, role)
        elif kind == "resource":
            self._read_resource(path, block, around)
        elif shape is not None:
            self._read_whole(path, block, shape, around)
        elif "type" not in block and (
            tables.is_one_part(block) if place is LeafPlace.TOOL_RESULT else tables.is_untyped_block(block)
        ):
            self._read_whole(path, block, _TEXT_PART, around)
        elif place is LeafPlace.TOOL_RESULT:
            self.values.walk(path, block, place, role)
        elif self.definitions.reads(kind):
            self.definitions.read_request(path, block)
        else:
            self._count_unknown(path, kind)
            self._read_whole(path, block, tables.guessed_shape(kind), around)

    def read_content(
        self, path: Path, content: Any, place: LeafPlace, role: str | None, *, opens: bool = False
    ) -> None:
        """Read the content of a message or of a tool's result: a string, a block or a list of blocks."""
        if isinstance(content, str):
            self.values.read_text(path, content, place, role, opens=opens, in_message=True)
        elif isinstance(content, dict):
            self.read(path, content, place, role, opens=opens, in_message=True)
        elif isinstance(content, list) and not any(isinstance(block, dict) for block in content):
            # No blocks, but rows of data: what an element is, may stand in another one.
            for index in range(len(content)):
                self.values.count_block((*path, index))
            self.values.walk(path, content, place, role)
        elif isinstance(content, list):
            for index, block in enumerate(content):
                step = (*path, index)
                if isinstance(block, dict):
                    self.read(step, block, place, role, opens=opens, in_message=True)
                else:
                    self.values.count_block(step)
                    self.values.walk(step, block, place, role)
        elif content is not None:
            self.values.walk(path, content, place, role)

    def read_member(
        self, path: Path, value: Any, holder: dict[str, Any], place: LeafPlace, role: str | None
    ) -> None:
        """Read a member that no shape names, by the rule for such members."""
        self._read_members_value(path, value, holder, _Around(place, role))

    def read_function(self, path: Path, function: Any, role: str | None) -> None:
        """Read a called function: JSON text in ``arguments``, or free text in ``input``."""
        if not isinstance(function, dict):
            self.values.walk(path, function, LeafPlace.TOOL_INPUT, role)
            return
        self._read_whole(path, function, tables.FUNCTION, _Around(LeafPlace.TEXT, role))

    def read_name(self, path: Path, value: Any, role: str | None) -> None:
        """Read the name of a tool or function: scanned and reported, never changed."""
        self._add_machine_strings(path, value, _Around(LeafPlace.FIELD, role))

    def _count_unknown(self, path: Path, kind: str | None) -> None:
        if self.strict:
            raise fault((*path, "type"), "Unknown type of context item; strict: true refuses it.")
        # A type that is not a plain name may be content, and metadata must not repeat content.
        name = kind if kind is not None and re.fullmatch(r"[a-z][a-z0-9_./-]{0,40}", kind) else "unknown"
        self.reading.skipped[name] += 1

    def _read_tool_result(self, path: Path, block: dict[str, Any], role: str | None) -> None:
        self.read_content((*path, "content"), block.get("content"), LeafPlace.TOOL_RESULT, role)
        self.values.walk(
            (*path, "structuredContent"), block.get("structuredContent"), LeafPlace.STRUCTURED, role
        )
        for name, value in block.items():
            if name not in {"content", "structuredContent"}:
                self._read_members_value((*path, name), value, block, _Around(LeafPlace.TOOL_RESULT, role))

    def _read_resource(self, path: Path, block: dict[str, Any], around: _Around) -> None:
        place = around.place if around.place is LeafPlace.TOOL_RESULT else LeafPlace.RESOURCE
        for name, value in block.items():
            if name == "resource":
                self._read_whole((*path, name), value, _PLAIN, replace(around, place=place, opens=False))
            else:
                self._read_members_value((*path, name), value, block, replace(around, opens=False))

    def _read_whole(self, path: Path, block: dict[str, Any], shape: Shape, outer: _Around) -> None:
        """Read all members of a block of one shape, and count what of it cannot be read or changed."""
        around = self._inside(block, shape, outer)
        counted, encoded = self.reading.unscanned[around.media], self.values.encoded_texts
        for name, value in block.items():
            self._read_shaped((*path, name), value, block, shape, around)
        count = self.reading.unscanned[around.media] - counted
        if shape.media != "blob" and (
            count > 1 or (shape.unreadable and count == 0 and encoded == self.values.encoded_texts)
        ):
            self.reading.unscanned[around.media] = counted + 1
        if not self.reading.unscanned[around.media]:
            del self.reading.unscanned[around.media]

    def _inside(self, block: dict[str, Any], shape: Shape, outer: _Around) -> _Around:
        place = outer.place
        if shape.place is not None and place not in _FOREIGN_PLACES:
            place = shape.place
        tool = block.get(shape.tool) if shape.tool else None
        sealed = outer.sealed
        if not sealed and _is_sealed(block, shape):
            sealed = True
            opaque = any(block.get(name) for name in _OPAQUE_REASONING)
            self.reading.unscanned["reasoning" if opaque else SIGNED_REASONING] += 1
        return replace(
            outer,
            place=place,
            tool=tool if isinstance(tool, str) else outer.tool,
            media=outer.media if shape.media == "blob" else shape.media,
            sealed=sealed,
        )

    def _read_shaped(
        self, path: Path, value: Any, holder: dict[str, Any], shape: Shape, around: _Around
    ) -> None:
        name = path[-1]
        place = shape.places.get(str(name))
        if around.sealed:
            self._read_members_value(path, value, holder, around)
        elif name in shape.names:
            self._add_machine_strings(path, value, around)
        elif name == shape.opens and isinstance(value, str):
            self.values.read_text(
                path, value, around.place, around.role, opens=around.opens, in_message=around.in_message
            )
        elif place in _DATA_PLACES:
            self.values.walk(path, value, place, around.role, around.tool)
        elif around.place is LeafPlace.DEFINITION:
            self.definitions.read_named(path, value, around.role)
        elif place is LeafPlace.URI:
            self._read_members_value(path, value, holder, around)
        else:
            inner = around if place is None else replace(around, place=place)
            self._read_members_value(path, value, holder, inner)

    def _read_members_value(self, path: Path, value: Any, holder: dict[str, Any], around: _Around) -> None:
        """Read the value of a member by the rule for members that no shape names."""
        name = str(path[-1])
        if not IDENTIFIER.fullmatch(name):
            self.values.add_leaf(path, name, LeafPlace.KEY, around.role)
        if name == "_meta":
            # Data of programs, which hosts may show to models.
            self.values.walk(
                path, value, LeafPlace.FIELD if around.sealed else LeafPlace.STRUCTURED, around.role
            )
            return
        if name in members.REFERENCES and value and around.media != "blob" and not _is_code(value):
            self.reading.unscanned[around.media] += 1
        if name == "logprobs" and value:
            # Values are cut over many tokens there; they go where the text beside them changes.
            self.reading.unscanned["logprobs"] += 1
        shape = tables.UNTYPED.get(name, _PLAIN) if "type" not in holder else _PLAIN
        if shape.place in _DATA_PLACES and not around.sealed and not shape.places:
            self.values.walk(path, value, shape.place, around.role)
        else:
            self._read_value(path, name, value, holder, around, shape)

    def _read_value(
        self,
        path: Path,
        name: str,
        value: Any,
        holder: dict[str, Any],
        around: _Around,
        shape: Shape,
    ) -> None:
        self.values.check_depth(path)
        if isinstance(value, str):
            self._read_string(path, name, value, holder, around)
        elif isinstance(value, dict):
            self._read_object(path, value, around, shape)
        elif isinstance(value, list):
            for index, child in enumerate(value):
                self._read_value((*path, index), name, child, holder, around, shape)
        elif name not in members.COUNTERS:
            place = LeafPlace.FIELD if around.sealed else around.place
            self.values.walk(path, value, place, around.role, around.tool)

    def _read_object(self, path: Path, block: dict[str, Any], around: _Around, shape: Shape) -> None:
        """Read an object inside a block; it may be a block itself."""
        around = replace(around, opens=False)
        kind = type_name(block)
        if kind == "tool_result" and not around.sealed:
            self.values.count_block(path)
            self._read_tool_result(path, block, around.role)
        elif kind == "resource" and isinstance(block.get("resource"), dict) and not around.sealed:
            self.values.count_block(path)
            self._read_resource(path, block, around)
        elif (
            kind is not None
            and kind in tables.TYPED
            and (kind != "text" or isinstance(block.get("text"), str))
        ):
            self.values.count_block(path)
            self._read_whole(path, block, tables.TYPED[kind], around)
        else:
            self._read_whole(path, block, shape, around)

    def _read_string(self, path: Path, name: str, text: str, holder: dict[str, Any], around: _Around) -> None:
        if name in members.SEALED or name in members.SIGNATURES or (around.sealed and name == "data"):
            if not around.sealed and name in members.SEALED and text:
                self.reading.unscanned["encrypted"] += 1
            if not members.is_opaque(text):
                self._add_machine_strings(path, text, around)
        elif name in members.MACHINE:
            self._add_machine_strings(path, text, around)
        elif around.sealed:
            self.values.add_text(path, text, LeafPlace.FIELD, around.role)
        elif _is_code(text) or name in members.ENCODED or (around.media != "blob" and len(text) > _LONG_CODE):
            self._read_code(path, name, text, holder, around)
        elif name in members.ADDRESSES:
            self._read_address(path, text, around)
        else:
            self.values.add_text(path, text, around.place, around.role, around.tool)

    def _read_code(self, path: Path, name: str, text: str, holder: dict[str, Any], around: _Around) -> None:
        media, place = around.media, around.place
        if not self.values.add_encoded(path, text, holder, place, around.role, media=media):
            if name in members.ADDRESSES:
                self._read_address(path, text, around)
            else:
                self.values.add_text(path, text, place, around.role, around.tool)

    def _read_address(self, path: Path, text: str, around: _Around) -> None:
        place = around.place if text[:5].lower() == "data:" else LeafPlace.URI
        self.values.add_leaf(path, text, place, around.role)

    def _add_machine_strings(self, path: Path, value: Any, around: _Around) -> None:
        """Report what only machines read, unless it is a plain word; read anything else like text."""
        if isinstance(value, str):
            if not members.is_machine_word(value):
                self.values.add_leaf(path, value, LeafPlace.FIELD, around.role)
        elif isinstance(value, list):
            for index, child in enumerate(value):
                self._add_machine_strings((*path, index), child, around)
        else:
            self.values.walk(path, value, LeafPlace.FIELD if around.sealed else around.place, around.role)


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and value[:5].lower() == "data:" and ";base64," in value[:200]


def _is_sealed(block: dict[str, Any], shape: Shape) -> bool:
    """Return whether the provider signed a block or encrypted it, so that no character of it may change."""
    if any(block.get(name) for name in ("thoughtSignature", "thought_signature")):
        return True
    if not shape.reasons:
        return False
    inner = block.get("reasoningText")
    holders = [block, inner] if isinstance(inner, dict) else [block]
    return any(holder.get(name) for holder in holders for name in ("signature", *_OPAQUE_REASONING))


def fault(path: Path, message: str) -> InvalidArgumentsError:
    """Return the error for something wrong at ``path`` of the context."""
    return InvalidArgumentsError(message, details={"pointer": "/context" + pointer_of(path)})
