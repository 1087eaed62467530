"""Find calls in JSON from their begin: members may stand before the one that shows the object to be a call.

A whole text is judged at once. In a stream, what is restored inside of an object waits until the object shows itself
to be a call or ends; text outside of objects never waits.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from app.core.content.active_calls import BLANK, MEMBER_KEY, kind_of_member, needs_value, shows_call

LONGEST_HOLD: Final = 1024 * 1024
"""After so many characters an object counts as a call: what was held back in it is not restored."""

_DEEPEST: Final = 10_000
_MOST_LEVELS: Final = 8
_LONGEST_MEMBER: Final = 1200
_VALUE_REACH: Final = 120
_SHORT_REST: Final = 200
_OPENING: Final = re.compile(
    rf"\{{{BLANK}(?:(?P<escapes>\\*+)(?P<quote>[\"'])|[A-Za-z_$][\w$-]{{0,60}}+\s*+:|/[/*])"
)
_UNFINISHED: Final = re.compile(
    rf"[{{,](?:\s|\\+[nrt])*(?:\\*(?:[\"'][\w. \\-]{{0,{_LONGEST_MEMBER}}}+(?:[\"']\s*)?)?"
    r"|[A-Za-z_$][\w$-]{0,60}\s*|/)?\Z"
)
_TOKEN: Final = re.compile(r"(?P<escapes>\\++)?+(?P<quote>[\"'])|(?P<run>\\++)|(?P<mark>[{},])")
_SPACES: Final = re.compile(r"\s{2,}")
_BACKSLASHES: Final = re.compile(r"(?:\\{128})++")
"""Whether a quote is escaped depends on a remainder, so that this many can be left out."""

_OPEN_QUOTED: Final = re.compile(r"\\*(?:[\"'][^\"'\s]{0,101})?\Z")
T = TypeVar("T")
Piece = tuple[str, T | None, bool]
"""A text, the handle that it is (None: plain text), and whether the handle is in an active position."""


@dataclass(slots=True)
class _Object:
    """An object that has not ended; ``kinds`` are the kinds of members that it had so far."""

    start: int
    kinds: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Level:
    """The open objects whose quotes have so many backslashes, as inside of strings of JSON."""

    escapes: int
    quotes: str
    objects: list[_Object] = field(default_factory=list)
    string: str = ""

    def read_quote(self, escapes: int, quote: str) -> None:
        """Begin or end a string, if the quote is one of this level and not an escaped one."""
        if escapes % (2 * (self.escapes + 1)) != self.escapes:
            return
        if self.string:
            self.string = "" if quote == self.string else self.string
        elif quote in self.quotes:
            self.string = quote


class OpenObjects:
    """Follow the objects in a text that comes in pieces; offsets count from the begin of the first piece."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        """Begins of calls: from the object's bracket to the end of the name that shows it. Take them out when read."""
        self._levels: dict[int, _Level] = {}
        self._first: int | None = None
        self._rest, self._rest_start = "", 0
        self.length = 0
        self._lost_start: int | None = None

    @property
    def earliest(self) -> int:
        """Return the offset from which on a call may have begun; the length where nothing is open."""
        start = self._first
        settled = self._rest_start if self._rest else self.length
        return settled if start is None else min(start, settled)

    @property
    def is_lost(self) -> bool:
        """Return whether an object is open that is too long to wait for."""
        return self._lost_start is not None

    def read(self, text: str, *, ends: bool = False) -> None:
        """Follow the next piece; ``ends``: it is the last one."""
        if not self._levels and not self._rest and "{" not in text:
            self.length += len(text)
            return None
        before = len(self._rest)
        text = self._rest + text
        self.length += len(text) - before
        offset = self.length - len(text)
        place = 0
        while (token := self._next(text, place)) is not None:
            start = self._rest_start if token.start() == 0 and before else offset + token.start()
            self._limit(start)
            if token["quote"] is not None:
                for level in self._levels.values():
                    level.read_quote(len(token["escapes"] or ""), token["quote"])
            elif token["run"] is not None:
                if token.end() == len(text) and not ends:
                    return self._keep(text, token.start(), start)
            elif token["mark"] == "}":
                self._close(start)
            elif not ends and _is_unfinished(text, token.start()):
                return self._keep(text, token.start(), start)
            else:
                self._read_mark(text, token.start(), start, offset)
            place = token.end()
        self._rest = ""
        self._limit(self.length)
        if ends and self._lost_start is not None:
            self.calls.append((self._lost_start, self.length))
        return None

    def _next(self, text: str, place: int) -> re.Match[str] | None:
        if self._levels:
            return _TOKEN.search(text, place)
        bracket = text.find("{", place)
        return _TOKEN.match(text, bracket) if bracket >= 0 else None

    def _keep(self, text: str, place: int, start: int) -> None:
        rest = text[place:]
        if len(rest) > _SHORT_REST:
            rest = _SPACES.sub(" ", _BACKSLASHES.sub("", rest))
        self._rest, self._rest_start = rest, start
        self._limit(start)

    def _read_mark(self, text: str, place: int, start: int, offset: int) -> None:
        opening = _OPENING.match(text, place)
        escapes = len(opening["escapes"] or "") if opening is not None else 0
        if text[place] == "{":
            self._open(start, escapes if opening is not None else None, opening["quote"] if opening else None)
        key = MEMBER_KEY.match(text, place)
        if key is None:
            return
        levels = self._levels_of(None if key[2] is None else len(key[1]))
        kind = kind_of_member(key, text)
        for level in levels:
            kinds = level.objects[-1].kinds
            if kind is not None:
                kinds.add(kind)
            if shows_call(key, text) or {"weak", "naming"} <= kinds:
                self.calls.append((level.objects[-1].start, offset + key.end()))

    def _levels_of(self, escapes: int | None) -> list[_Level]:
        """Return the levels to which a member may belong; ``escapes`` is None for a name without quotes."""
        if escapes is not None and escapes in self._levels:
            return [self._levels[escapes]]
        return [level for level in self._levels.values() if not level.string]

    def _open(self, start: int, escapes: int | None, quote: str | None) -> None:
        for level in self._levels.values():
            if not level.string or (quote is not None and level.escapes == escapes):
                level.string = ""
                level.objects.append(_Object(start))
        is_inside = quote is None and any(level.string for level in self._levels.values())
        if escapes is not None and escapes not in self._levels and not is_inside:
            self._levels[escapes] = _Level(escapes, '"' if quote == '"' else "\"'", [_Object(start)])
        self._first = self._first_start()
        if len(self._levels) > _MOST_LEVELS or any(
            len(level.objects) > _DEEPEST for level in self._levels.values()
        ):
            self._lose(start)

    def _close(self, place: int) -> None:
        for escapes, level in list(self._levels.items()):
            if not level.string:
                level.objects.pop()
                if not level.objects:
                    del self._levels[escapes]
        self._first = self._first_start()
        if self._lost_start is not None and self._first != self._lost_start:
            self.calls.append((self._lost_start, place))
            self._lost_start = None

    def _limit(self, place: int) -> None:
        first = self._first
        if first is not None and self._lost_start is None and place - first > LONGEST_HOLD:
            self._lose(place)

    def _lose(self, place: int) -> None:
        self._lost_start = self._first
        if self._lost_start is not None:
            self.calls.append((self._lost_start, place))

    def _first_start(self) -> int | None:
        return min((level.objects[0].start for level in self._levels.values()), default=None)


def _is_unfinished(text: str, place: int) -> bool:
    """Return whether more text decides what begins with the bracket or the comma at ``place``."""
    key = MEMBER_KEY.match(text, place)
    if key is None:
        return _UNFINISHED.match(text, place) is not None
    return key.end() == len(text) or (
        needs_value(key)
        and len(text) - key.end() < _VALUE_REACH
        and _OPEN_QUOTED.match(text, key.end()) is not None
    )


def begun_calls(text: str) -> list[tuple[int, int]]:
    """Return the begins of calls in JSON anywhere in ``text``: from the object's bracket to the member that shows it.

    The ranges are in order and apart. Brackets are read twice: with strings as JSON has them, and as if there were no
    strings; where the latter leaves no open object, the call is taken to begin with the last one that was open.
    """
    objects = OpenObjects()
    objects.read(text, ends=True)
    joined: list[tuple[int, int]] = []
    for start, end in sorted([*objects.calls, *_begun_by_brackets(text)]):
        _join(joined, start, end)
    return joined


def is_inside(ranges: Sequence[tuple[int, int]], place: int) -> bool:
    """Return whether ``place`` is in one of ``ranges``, which are in order and apart."""
    number = bisect_right(ranges, place, key=lambda span: span[0]) - 1
    return number >= 0 and place < ranges[number][1]


def _begun_by_brackets(text: str) -> list[tuple[int, int]]:
    begun: list[tuple[int, int]] = []
    open_brackets: list[int] = []
    last = -1
    for bracket in _OBJECT_BRACKET.finditer(text):
        if bracket[0] == "}":
            last = open_brackets.pop() if open_brackets else last
            continue
        if bracket[0] == "{":
            open_brackets.append(bracket.start())
        key = MEMBER_KEY.match(text, bracket.start())
        if key is not None and shows_call(key, text):
            start = open_brackets[-1] if open_brackets else last
            if start >= 0:
                begun.append((start, key.end()))
    return begun


def _join(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a range to those that begin before it ends; they stay in order and apart."""
    while ranges and start < ranges[-1][1]:
        begin, stop = ranges.pop()
        start, end = min(start, begin), max(end, stop)
    ranges.append((start, end))


_OBJECT_BRACKET: Final = re.compile(r"[{},]")


class HeldPieces(Generic[T]):
    """Hold pieces of a stream back while they are inside of an object that may still show itself to be a call."""

    def __init__(self) -> None:
        self._objects = OpenObjects()
        self._held: list[
            tuple[int, Piece[T]]
        ] = []  # a deque takes room for 64 pieces, in each channel of a stream
        self._calls: list[tuple[int, int]] = []

    def pass_on(self, pieces: Iterable[Piece[T]], *, ends: bool = False) -> list[Piece[T]]:
        """Take the next pieces, and return those that are decided, in order; ``ends``: there are no more."""
        for text, handle, active in pieces:
            place = self._objects.length
            # A handle is a part of a name or a value; its own brackets open nothing.
            self._objects.read(text if handle is None else "xx")
            self._held.append((place, (text, handle, active or self._objects.is_lost)))
        if ends:
            self._objects.read("", ends=True)
        for start, end in self._objects.calls:
            _join(self._calls, start, end)
        self._objects.calls.clear()
        earliest = self._objects.length if ends or self._objects.is_lost else self._objects.earliest
        decided: list[Piece[T]] = []
        for place, (text, handle, active) in self._held:
            acts = handle is not None and (active or is_inside(self._calls, place))
            if handle is not None and not acts and place >= earliest:
                break
            decided.append((text, handle, acts))
        del self._held[: len(decided)]
        if not self._held:
            self._calls.clear()
        return decided
