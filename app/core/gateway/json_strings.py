"""Change the strings inside of JSON that arrives in parts, over any cut, even inside of an escape.

Everything around the strings stays as it came. A string whose text is JSON again is read the same way, so that what is
put in is escaped once more.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from app.core.content.handles import json_escaped
from app.core.content.json_text import MAX_LITERALS
from app.core.gateway.channels import ChannelText, TextPiece

OpenString = Callable[[str], ChannelText | None]
"""Returns what changes the string at a JSON pointer, or None if it stays.

The pointer of a member's name ends in a slash: it is that of its object, and an empty step.
"""

_OUTSIDE: Final = re.compile(r'[^"{}\[\],]+')
_INSIDE: Final = re.compile(r'[^"\\]+')
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]", re.DOTALL
)
_OPEN_ESCAPE: Final = re.compile(
    r"\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z"
)
_JSON_BEGIN: Final = re.compile(r'[ \t\r\n]*(?:\{[ \t\r\n]*["}]|\[[ \t\r\n]*[{"\]])')
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_BETWEEN: Final = frozenset('{}[]",:0123456789.eE+-truefalsn')
_MAYBE_JSON: Final = re.compile(r"[ \t\r\n]{0,16}(?:[\[{][ \t\r\n]{0,16})?\Z")


class JsonStrings:
    """A ``ChannelText`` for JSON: ``open_string`` says for each value and each name of a member what changes it."""

    def __init__(self, open_string: OpenString, *, pointer: str = "", depth: int = 1) -> None:
        self._open_string, self._base, self._depth = open_string, pointer, depth
        self._open = ""
        self._steps: list[str | int] = []
        self._is_inside = self._is_name = False
        self._expects_name = False
        self._name = ""
        self._text: ChannelText | None = None
        self._spelled: deque[tuple[str, int]] = deque()

    def feed(self, text: str) -> Sequence[TextPiece]:
        """Return what is complete; an escape that is cut waits for its rest."""
        pieces: list[TextPiece] = []
        text = self._open + text
        self._open = ""
        place = 0
        while place < len(text):
            place = (
                self._read_string(text, place, pieces) if self._is_inside else self._read(text, place, pieces)
            )
        return pieces

    def finish(self) -> Sequence[TextPiece]:
        """Return the rest of JSON that ended, perhaps too early."""
        pieces: list[TextPiece] = []
        if self._is_inside:
            self._end_string(pieces)
        if self._open:
            pieces.append(TextPiece(self._open, self._open))
            self._open = ""
        return pieces

    def _read(self, text: str, place: int, pieces: list[TextPiece]) -> int:
        run = _OUTSIDE.match(text, place)
        end = run.end() if run is not None else place + 1
        mark = text[place:end]
        if mark == '"':
            self._begin_string()
        elif mark in {"{", "["}:
            self._steps.append("" if mark == "{" else 0)
            self._expects_name = mark == "{"
        elif mark in {"}", "]"}:
            if self._steps:
                self._steps.pop()
            self._expects_name = False
        elif mark == "," and self._steps:
            last = self._steps[-1]
            self._steps[-1] = last + 1 if isinstance(last, int) else last
            self._expects_name = not isinstance(last, int)
        pieces.append(TextPiece(mark, mark))
        return end

    def _begin_string(self) -> None:
        self._is_inside = True
        self._is_name = self._expects_name
        self._expects_name = False
        self._name = ""
        self._spelled.clear()
        self._text = self._opened()

    def _opened(self) -> ChannelText | None:
        steps = [*self._steps[:-1], ""] if self._is_name else self._steps
        pointer = self._base + "".join(
            "/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps
        )
        return (
            self._open_string(pointer)
            if self._is_name
            else perhaps_json(self._open_string, pointer, self._depth)
        )

    def _read_string(self, text: str, place: int, pieces: list[TextPiece]) -> int:
        """Read a run of plain characters, an escape, or the end of the string."""
        if text[place] == '"':
            self._end_string(pieces)
            pieces.append(TextPiece('"', '"'))
            return place + 1
        if text[place] != "\\":
            run = _INSIDE.match(text, place)
            end = run.end() if run is not None else place + 1
            self._add(text[place:end], text[place:end], pieces)
            return end
        if _OPEN_ESCAPE.match(text, place):
            self._open = text[place:]
            return len(text)
        escape = _ESCAPE.match(text, place)
        # A backslash that begins no escape is no JSON; it stays as it is.
        spelled = escape[0] if escape is not None else "\\"
        self._add(_decoded(spelled), spelled, pieces)
        return place + len(spelled)

    def _add(self, decoded: str, spelled: str, pieces: list[TextPiece]) -> None:
        if self._is_name:
            self._name += decoded
        if self._text is None:
            pieces.append(TextPiece(spelled, spelled))
            return
        self._spelled.append((spelled, len(decoded)))
        self._take(self._text.feed(decoded), pieces)

    def _end_string(self, pieces: list[TextPiece]) -> None:
        self._is_inside = False
        if self._is_name and self._steps:
            self._steps[-1] = self._name
        if self._text is not None:
            if self._open:
                self._spelled.append((self._open, len(self._open)))
                self._take(self._text.feed(self._open), pieces)
                self._open = ""
            self._take(self._text.finish(), pieces)
            self._text = None

    def _take(self, changed: Sequence[TextPiece], pieces: list[TextPiece]) -> None:
        """Write the pieces of a string's text in the string's own spelling."""
        for piece in changed:
            spelled = self._spelling_of(len(piece.source))
            text = spelled if piece.text == piece.source else json_escaped(piece.text, 1)
            pieces.append(TextPiece(spelled, text))

    def _spelling_of(self, size: int) -> str:
        """Remove the spelling of the next ``size`` characters and return it."""
        parts: list[str] = []
        while size > 0 and self._spelled:
            spelled, characters = self._spelled.popleft()
            if characters > size:  # only a run of plain characters is longer than one
                self._spelled.appendleft((spelled[size:], characters - size))
                spelled, characters = spelled[:size], size
            parts.append(spelled)
            size -= characters
        return "".join(parts)


class _PerhapsJson:
    """A text that its first characters tell to be JSON or not."""

    def __init__(self, open_string: OpenString, pointer: str, depth: int, plain: ChannelText) -> None:
        self._open_string, self._pointer, self._depth = open_string, pointer, depth
        self._plain = plain
        self._text: ChannelText | None = None
        self._begin = ""

    def feed(self, text: str) -> Sequence[TextPiece]:
        if self._text is None:
            self._begin += text
            if _MAYBE_JSON.match(self._begin):
                return []
            text, self._begin = self._begin, ""
            self._text = self._chosen(text)
        return self._text.feed(text)

    def finish(self) -> Sequence[TextPiece]:
        if self._text is None:
            return [*self._plain.feed(self._begin), *self._plain.finish()]
        return self._text.finish()

    def _chosen(self, begin: str) -> ChannelText:
        if _JSON_BEGIN.match(begin) is None:
            return self._plain
        pointer = f"{self._pointer}#" if self._pointer else ""
        return JsonStrings(self._open_string, pointer=pointer, depth=self._depth + 1)


def perhaps_json(open_string: OpenString, pointer: str, depth: int) -> ChannelText | None:
    """Return what changes a string that may hold JSON again, or None if it stays."""
    plain = open_string(pointer)
    if plain is None or depth >= MAX_LITERALS:
        return plain
    return _PerhapsJson(open_string, pointer, depth, plain)


class JsonEscaping:
    """A ``ChannelText`` for a text that may turn out to be JSON: what is put into one of its strings is escaped.

    The text is changed by ``plain`` as it stands, so that positions are judged over all of it.
    """

    def __init__(self, plain: ChannelText) -> None:
        self._plain = plain
        self._is_json = True
        self._is_inside = self._is_escaped = False
        self._level = 0

    def feed(self, text: str) -> Sequence[TextPiece]:
        """Return what is complete."""
        return [self._escaped(piece) for piece in self._plain.feed(text)]

    def finish(self) -> Sequence[TextPiece]:
        """Return the rest."""
        return [self._escaped(piece) for piece in self._plain.finish()]

    def _escaped(self, piece: TextPiece) -> TextPiece:
        is_inside = self._is_json and self._is_inside
        if self._is_json:
            self._follow(piece.source)
        if not is_inside or piece.text == piece.source:
            return piece
        return TextPiece(piece.source, json_escaped(piece.text, 1))

    def _follow(self, text: str) -> None:
        place = 0
        while place < len(text) and self._is_json:
            if self._is_escaped:
                self._is_escaped, place = False, place + 1
            elif self._is_inside:
                run = _INSIDE.match(text, place)
                place = run.end() if run is not None else place
                if place < len(text):
                    self._is_escaped, self._is_inside = text[place] == "\\", text[place] != '"'
                    place += 1
            else:
                place = self._follow_outside(text, place)

    def _follow_outside(self, text: str, place: int) -> int:
        blanks = _BLANKS.match(text, place)
        place = blanks.end() if blanks is not None else place
        if place == len(text):
            return place
        character = text[place]
        if character in "{[":
            self._level += 1
        elif self._level == 0 or character not in _BETWEEN:
            self._is_json = False  # whatever comes now is no JSON any more
        elif character in "}]":
            self._level -= 1
            self._is_json = self._level > 0
        self._is_inside = character == '"'
        return place + 1


def _decoded(escape: str) -> str:
    try:
        return str(json.loads(f'"{escape}"'))
    except ValueError:
        return escape
