"""Hide originals in a tool's result again that were restored in its arguments."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, quote_plus

from app.core.content.handles import Handle, Original, find_handles, restore_text

_UNKNOWN_SPELLING: Final = "[HIDDEN]"
"""Replaces a spelling that lower-casing does not map to a known one, because its letters have no case pairs."""

_PROTOCOL_MEMBERS: Final = frozenset(
    [
        "annotations",
        "blob",
        "content",
        "contents",
        "data",
        "description",
        "id",
        "input",
        "isError",
        "messages",
        "meta",
        "mimeType",
        "name",
        "resource",
        "role",
        "size",
        "structuredContent",
        "text",
        "title",
        "toolUseId",
        "type",
        "uri",
        "_meta",
        "parts",
        "rest",
        "message",
    ]
)
_PROTOCOL_KINDS: Final = frozenset(
    [
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "tool_use",
        "tool_result",
        "message",
        "user",
        "assistant",
    ]
)
"""Words of the protocol; they stay as member names and as kinds even if an original is the same word."""

_BETWEEN_DIGITS: Final = re.compile(r"[\s()./+-]")
_MIN_NUMBER_DIGITS: Final = 7
"""A number with at least this many digits is also hidden without separators, since systems store it so."""

_MIN_INSIDE_WORDS: Final = 3
"""Shorter originals are hidden only as whole words, since they occur inside many other words."""


@dataclass(frozen=True)
class Restored:
    """The originals restored in one call; ``handles`` maps each original text to its handle as written.

    Detection could miss them, but these texts are known, so they are replaced everywhere: in values, member names and
    URIs, in any letter case, inside longer words, as written inside JSON, and long numbers also without separators.
    A tool that encodes or splits its arguments in other ways can still reveal them: the operator chooses which tools
    receive originals.
    """

    handles: Mapping[str, str]

    def hidden(self, value: Any) -> Any:
        """Return a JSON value with every known original replaced by its handle."""
        if isinstance(value, str):
            return self._hidden_text(value)
        if isinstance(value, list):
            return [self.hidden(element) for element in value]
        if isinstance(value, dict):
            return {
                key if key in _PROTOCOL_MEMBERS else self.hidden(key): member
                if _is_kind(key, member)
                else self.hidden(member)
                for key, member in value.items()
            }
        if isinstance(value, int) and not isinstance(value, bool):
            return self._handle_by_spelling.get(str(value), value)
        return value

    def _hidden_text(self, text: str) -> str:
        lowered = text.lower()
        # Substring search is fast, and usually finds nothing.
        present = [spelling for spelling in self._handle_by_spelling if spelling in lowered]
        if not present:
            return text
        words = "|".join(_spelling_pattern(spelling) for spelling in sorted(present, key=len, reverse=True))
        pattern = re.compile(words, re.IGNORECASE)
        pieces, position = [], 0
        for handle in find_handles(text, exact=True):  # an original may be a word that handles contain
            pieces += [
                pattern.sub(self._handle_for, text[position : handle.start]),
                text[handle.start : handle.end],
            ]
            position = handle.end
        return "".join([*pieces, pattern.sub(self._handle_for, text[position:])])

    def _handle_for(self, match: re.Match[str]) -> str:
        return self._handle_by_spelling.get(match[0].lower(), _UNKNOWN_SPELLING)

    @cached_property
    def _handle_by_spelling(self) -> Mapping[str, str]:
        return {
            spelling.lower(): handle
            for original, handle in self.handles.items()
            for spelling in _spellings(original)
        }


def texts_of(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, including member names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts_of(part)


def with_names(value: Any, originals: Mapping[Handle, Original]) -> Any:
    """Return a JSON value with the originals of handles in the names of its members; values are not changed."""
    if isinstance(value, list):
        return [with_names(element, originals) for element in value]
    if isinstance(value, dict):
        return {restore_text(key, originals): with_names(part, originals) for key, part in value.items()}
    return value


def _is_kind(member: str, value: Any) -> bool:
    return member in {"type", "role"} and isinstance(value, str) and value in _PROTOCOL_KINDS


def _spellings(original: str) -> set[str]:
    """Return the spellings of an original in text, in URIs, as a bare number, and inside one or two layers of JSON."""
    layer = {original}
    spellings = {original, quote(original), quote(original, safe=""), quote_plus(original)}
    number = _BETWEEN_DIGITS.sub("", original)
    if number.isdecimal() and len(number.lstrip("0")) >= _MIN_NUMBER_DIGITS:
        spellings |= {number, number.lstrip("0")}
    for _ in range(2):
        layer = {
            json.dumps(spelling, ensure_ascii=plain)[1:-1] for spelling in layer for plain in (True, False)
        }
        spellings = spellings | layer
    return spellings - {""}


def _spelling_pattern(text: str) -> str:
    escaped = re.escape(text)
    if len(text) >= _MIN_INSIDE_WORDS:
        return escaped
    return rf"(?<!\w){escaped}(?!\w)"
