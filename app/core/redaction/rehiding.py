"""Originals that were put into a tool's arguments, hidden again in what the tool returns."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, quote_plus

from app.core.content.handles import find_handles

_UNKNOWN: Final = "[HIDDEN]"
"""Stands for a spelling that differs from the known one in letters whose cases are no pairs."""

_MEMBERS: Final = frozenset(
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
_KINDS: Final = frozenset(
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
"""Words of the protocol that an original may happen to be: as names of members and as kinds they stay."""

_BETWEEN_DIGITS: Final = re.compile(r"[\s()./+-]")
_LONG_NUMBER: Final = 7
"""A number of so many digits is hidden without what stands between them, too: systems store it so."""

_ALONE: Final = 3
"""Shorter originals are hidden only where they stand alone: everywhere they would be inside other words."""


@dataclass(frozen=True)
class Restored:
    """What stood behind the handles of one call: original text by text to the handle as it is written.

    Detection is no proof; these texts are known, so they are replaced wherever they stand: in values, names of members
    and URIs, in any case of letters, inside longer words, as they are written inside JSON, and long numbers without
    what stands between their digits. A tool that encodes otherwise or takes apart what it was given can still show it:
    which tools may be given originals is the operator's choice.
    """

    handles: Mapping[str, str]

    def hidden(self, value: Any) -> Any:
        """Return a JSON value with every known original replaced by its handle."""
        if isinstance(value, str):
            return self._hidden_text(value)
        if isinstance(value, list):
            return [self.hidden(one) for one in value]
        if isinstance(value, dict):
            return {
                key if key in _MEMBERS else self.hidden(key): one if _is_kind(key, one) else self.hidden(one)
                for key, one in value.items()
            }
        if isinstance(value, int) and not isinstance(value, bool):
            return self._spelled.get(str(value), value)
        return value

    def _hidden_text(self, text: str) -> str:
        lowered = text.lower()
        # Looking for plain texts is fast; what is there at all is usually nothing.
        present = [spelling for spelling in self._spelled if spelling in lowered]
        if not present:
            return text
        words = "|".join(_matching(one) for one in sorted(present, key=len, reverse=True))
        pattern = re.compile(words, re.IGNORECASE)
        made, position = [], 0
        for handle in find_handles(text, exact=True):  # an original may be a word that handles are made of
            made += [
                pattern.sub(self._handle, text[position : handle.start]),
                text[handle.start : handle.end],
            ]
            position = handle.end
        return "".join([*made, pattern.sub(self._handle, text[position:])])

    def _handle(self, found: re.Match[str]) -> str:
        return self._spelled.get(found[0].lower(), _UNKNOWN)

    @cached_property
    def _spelled(self) -> Mapping[str, str]:
        return {
            spelling.lower(): handle
            for original, handle in self.handles.items()
            for spelling in _spellings(original)
        }


def texts_of(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts_of(one)


def _is_kind(member: str, value: Any) -> bool:
    return member in {"type", "role"} and isinstance(value, str) and value in _KINDS


def _spellings(original: str) -> set[str]:
    """Return the original as it stands in text, in URIs, as a bare number, and inside one or two layers of JSON."""
    layer = {original}
    found = {original, quote(original), quote(original, safe=""), quote_plus(original)}
    number = _BETWEEN_DIGITS.sub("", original)
    if number.isdecimal() and len(number.lstrip("0")) >= _LONG_NUMBER:
        found |= {number, number.lstrip("0")}
    for _ in range(2):
        layer = {json.dumps(one, ensure_ascii=plain)[1:-1] for one in layer for plain in (True, False)}
        found = found | layer
    return found - {""}


def _matching(text: str) -> str:
    escaped = re.escape(text)
    if len(text) >= _ALONE:
        return escaped
    return rf"(?<!\w){escaped}(?!\w)"
