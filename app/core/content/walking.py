"""Read free JSON values into leaves: every string and long number at any depth, also in JSON inside strings."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from app.core.content.json_text import JsonText, read_json_text
from app.core.content.leaves import ContextValue, Leaf, LeafPlace
from app.core.content.shapes.encodings import LEAST_MEDIA, TextCodec, count_media, decoded_bytes, decoded_text
from app.core.content.shapes.heads import is_table, plain_pointer, tables
from app.core.content.shapes.members import (
    ALWAYS_ENCODED,
    ENCODED,
    MACHINE,
    is_machine_word,
    media_type_of,
)
from app.core.content.shapes.split_values import LONGEST, lists_of, split_value, written_elements
from app.core.content.telling_names import VALUE_NAMES, cue_of
from app.core.errors import TooLargeError

BLOCK_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result"})
_MIME_FIELDS = ("mimeType", "media_type")

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.\-]*[0-9]{0,4}")
_PICTURES = frozenset({"image", "audio", "video"})
_LEAST_CODE = 64
"""A shorter string is text, unless something says that it is encoded."""
_JSON_ENDS = frozenset('}]" \t\r\n')
"""A text that ends with none of these is no JSON object, array or string."""

_PLAIN_MEMBERS = 2
_MIN_DIGITS = 7
"""Numbers with fewer digits identify nobody, unless the name of their member says what they are."""
_MIN_NAMED_DIGITS = 2

SIGNED_REASONING = "signed_reasoning"
"""Counted with what cannot be scanned or changed, although it is scanned: it can only not be changed."""

Path = tuple[str | int, ...]


def _no_counts() -> Counter[str]:
    """Return an empty counter without its initialiser, which takes as long as reading a short text."""
    return Counter.__new__(Counter)


@dataclass(slots=True)
class ContextReading:
    """The result of parsing a context; see ``Context`` for the members."""

    leaves: list[Leaf] = field(default_factory=list)
    openings: list[tuple[ContextValue, bool]] = field(default_factory=list)
    """The texts to which text may be added, and whether each is of a message."""
    has_messages: bool = False
    skipped: Counter[str] = field(default_factory=_no_counts)
    unscanned: Counter[str] = field(default_factory=_no_counts)
    blocks: int = 0

    @property
    def user_texts(self) -> tuple[ContextValue, ...]:
        """Return the texts of the last user message that has text; without messages, those of all items."""
        last_message = max((value.path[0] for value, in_message in self.openings if in_message), default=None)
        return tuple(
            value
            for value, in_message in self.openings
            if (in_message and value.path[0] == last_message) or not (in_message or self.has_messages)
        )


def pointer_of(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of ``path``."""
    return "".join([f"/{step}" if isinstance(step, int) else f"/{_escaped(step)}" for step in path])


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1") if "~" in step or "/" in step else step


def type_name(block: dict[str, Any]) -> str | None:
    """Return the type of a block, or None if it is no string."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else None


def _named_parts(parts: list[JsonText]) -> set[int]:
    """Return the positions of the numbers of a JSON text that stand in a table with heads, or form one value."""
    if not any(part.kind == "number" for part in parts):
        return set()
    strings = ((part.pointer, part.text) for part in parts if part.kind == "string")
    of_table = tuple(f"{table}/" for heads in tables(strings) for table in heads)
    named = {
        place
        for place, part in enumerate(parts)
        if part.kind == "number"
        and of_table
        and len(part.text) >= _MIN_NAMED_DIGITS
        and plain_pointer(part.pointer).startswith(of_table)
    }
    for places in lists_of([part.pointer for part in parts]):
        cue = _list_cue(plain_pointer(parts[places[0]].pointer).split("/")[:-1])
        if split_value([parts[place].text for place in places], cue):
            named.update(places)
    return named


def _list_cue(path: list[str]) -> str:
    """Return what says what the elements of a list are; its name may also stand beside it."""
    return path[-1] if path[-1].lower() in VALUE_NAMES else cue_of(path)


def _is_named(number: str, path: Iterable[str]) -> bool:
    """Return whether a number that is too short to identify anybody stands where it may."""
    steps = list(path)
    return len(number) >= _MIN_NAMED_DIGITS and (steps[-1].lower() in VALUE_NAMES or bool(cue_of(steps)))


class ValueReader:
    """Add the leaves of free JSON values to ``reading``."""

    def __init__(self, max_depth: int, max_blocks: int) -> None:
        self.max_depth = max_depth
        self.max_blocks = max_blocks
        self.reading = ContextReading()
        self.encoded_texts = 0
        self._tables = 0

    def read_plain(
        self,
        path: Path,
        block: Any,
        place: LeafPlace,
        role: str | None,
        *,
        opens: bool = False,
        in_message: bool = False,
    ) -> bool:
        """Read a string, or a block that has a text and nothing else, as most do.

        Return False, with nothing done, for all others.
        """
        if isinstance(block, str):
            self.count_block(path)
            self.read_text(path, block, place, role, opens=opens, in_message=in_message)
            return True
        if not isinstance(block, dict):
            return False
        if (
            len(block) != _PLAIN_MEMBERS
            or block.get("type") != "text"
            or not isinstance(block.get("text"), str)
        ):
            return False
        self.count_block(path)
        path = (*path, "text")
        self.check_depth(path)
        self.read_text(path, block["text"], place, role, opens=opens, in_message=in_message)
        return True

    def read_text(
        self,
        path: Path,
        text: str,
        place: LeafPlace,
        role: str | None,
        *,
        opens: bool = False,
        in_message: bool = False,
    ) -> None:
        """Read a text for people; with ``opens``, text may be added to it."""
        value = self.add_text(path, text, place, role)
        if opens:
            self.reading.openings.append((value, in_message))

    def count_block(self, path: Path) -> None:
        """Count one block; raise TooLargeError beyond the limits."""
        self.reading.blocks += 1
        if self.reading.blocks > self.max_blocks:
            raise TooLargeError(
                f"The context has more than {self.max_blocks} blocks.",
                details={"limit": "max_blocks", "value": self.max_blocks},
            )
        self.check_depth(path)

    def walk(
        self, path: Path, value: Any, place: LeafPlace, role: str | None, tool: str | None = None
    ) -> None:
        """Parse every string at any depth of a free JSON value."""
        if isinstance(value, str):
            self.add_text(path, value, place, role, tool)
        elif isinstance(value, bool) or value is None:
            return
        elif isinstance(value, int | float):
            digits = str(value)
            named = len(digits) >= _MIN_NAMED_DIGITS and self._tables > 0
            if (
                named
                or (isinstance(value, int) and len(digits) >= _MIN_DIGITS)
                or _is_named(digits, map(str, path))
            ):
                self._add_number(path, digits, place, role, tool)
        elif isinstance(value, dict):
            self.check_depth(path)
            tabled = is_table(value)
            self._tables += tabled
            for key, child in value.items():
                if not IDENTIFIER.fullmatch(key):
                    self.add_leaf((*path, key), key, LeafPlace.KEY, role, tool, encoding="name")
                self._parse_member((*path, key), value, child, place, role, tool)
            self._tables -= tabled
        else:
            self.check_depth(path)
            self._walk_list(path, value, place, role, tool)

    def _walk_list(
        self, path: Path, values: list[Any], place: LeafPlace, role: str | None, tool: str | None
    ) -> None:
        """Parse the elements of a list, which may be the rows of a table or the digits of one number."""
        tabled = is_table(values)
        self._tables += tabled
        elements = written_elements(values) if len(values) <= LONGEST else []
        split = bool(elements) and bool(split_value(elements, _list_cue([*map(str, path)])))
        for index, child in enumerate(values):
            if split and isinstance(child, int):
                self._add_number((*path, index), str(child), place, role, tool)
            else:
                self.walk((*path, index), child, place, role, tool)
        self._tables -= tabled

    def _add_number(
        self, path: Path, digits: str, place: LeafPlace, role: str | None, tool: str | None
    ) -> None:
        number_place = place if place is LeafPlace.FIELD else LeafPlace.NUMBER
        self.add_leaf(path, digits, number_place, role, tool, encoding="number")

    def check_depth(self, path: Path) -> None:
        """Raise TooLargeError if ``path`` leads deeper than the limit."""
        if len(path) > self.max_depth:
            raise TooLargeError(
                f"The context is nested deeper than {self.max_depth} levels.",
                details={"limit": "max_depth", "value": self.max_depth},
            )

    def _parse_member(
        self,
        path: Path,
        parent: dict[str, Any],
        child: Any,
        place: LeafPlace,
        role: str | None,
        tool: str | None,
    ) -> None:
        """Parse a member of a free object; in a tool result it may be a block with fields that only machines read."""
        key = path[-1]
        if place is LeafPlace.TOOL_RESULT and isinstance(child, str):
            if key in ENCODED and self.add_encoded(path, child, parent, place, role):
                return
            if type_name(parent) in BLOCK_TYPES and key in MACHINE and is_machine_word(child):
                return
            if (
                key in _MIME_FIELDS
                or (type_name(parent) in BLOCK_TYPES and key in MACHINE)
                or (key == "type" and "data" in parent)
            ):
                place = LeafPlace.FIELD  # the parsing depends on it, so it is reported and never changed
        self.walk(path, child, place, role, tool)

    def add_encoded(
        self,
        path: Path,
        code: str,
        holder: dict[str, Any],
        place: LeafPlace,
        role: str | None,
        *,
        media: str = "blob",
    ) -> bool:
        """Add the text that ``code`` encodes, or count it as ``media``; return False if it is no code but text.

        The members beside it (``holder``), its own name or its length must say that it is encoded.
        """
        mime = media_type_of(holder)
        always = path[-1] in ALWAYS_ENCODED or code[:5].lower() == "data:"
        if holder.get("type") == "text" or code.isdigit():
            return False
        if not always and mime is None and (len(code) < _LEAST_CODE or any(map(str.isspace, code))):
            return False
        if mime is None and media in _PICTURES:
            mime = f"{media}/*"
        decoded = decoded_text(code, mime)
        if decoded is not None:
            text, codec = decoded
            self.add_text(path, text, place, role, encoding="base64", codec=codec)
            self.encoded_texts += 1
            return True
        if decoded_bytes(code) is None:
            return False
        self.reading.unscanned[media] += 1
        return True

    def add_text(
        self,
        path: Path,
        text: str,
        place: LeafPlace,
        role: str | None,
        tool: str | None = None,
        encoding: str = "text",
        codec: TextCodec | None = None,
    ) -> ContextValue:
        """Add a text, or the parts of a JSON text, and return its value."""
        value = ContextValue(path, text, encoding, codec)
        pointer = pointer_of(path)
        if len(text) >= LEAST_MEDIA and (media := count_media(text)):
            self.reading.unscanned["blob"] += media
        parts = read_json_text(text) if text[-1:] in _JSON_ENDS else None
        if parts is None:
            self.reading.leaves.append(Leaf(value, text, pointer, place, role, tool))
        else:
            self._add_json_parts(value, parts, place, role, tool)
        return value

    def _add_json_parts(
        self, value: ContextValue, parts: list[JsonText], place: LeafPlace, role: str | None, tool: str | None
    ) -> None:
        base = pointer_of(value.path) + "#"
        named = _named_parts(parts)
        for number, part in enumerate(parts):
            part_place = (
                place if part.kind == "string" else LeafPlace.KEY if part.kind == "key" else LeafPlace.NUMBER
            )
            if part.kind == "key" and IDENTIFIER.fullmatch(part.text):
                continue
            if (
                part.kind == "number"
                and number not in named
                and len(part.text) < _MIN_DIGITS
                and not _is_named(part.text, part.pointer.replace("#", "").split("/"))
            ):
                continue
            if place is LeafPlace.FIELD:
                part_place = LeafPlace.FIELD
            pointer = base + part.pointer
            leaf = Leaf(value, part.text, pointer, part_place, role, tool, part.depth, part.offsets)
            self.reading.leaves.append(leaf)

    def add_leaf(
        self,
        path: Path,
        text: str,
        place: LeafPlace,
        role: str | None,
        tool: str | None = None,
        encoding: str = "text",
    ) -> None:
        """Add one leaf as it is."""
        self.reading.leaves.append(
            Leaf(ContextValue(path, text, encoding), text, pointer_of(path), place, role, tool)
        )
