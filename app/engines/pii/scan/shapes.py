"""Describe patterns as sequences of byte sets: a superset of what a regular expression may match."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library has no public name
from typing import Any, Final

from app.engines.pii.scan.bytesets import (
    ANYTHING,
    AT_EDGE,
    NOTHING,
    ByteSet,
    category,
    character,
    characters,
    mask_of,
)
from app.engines.pii.scan.image import AS_ASCII

UNLIMITED: Final = 1 << 30
_LINE_END: Final = mask_of(ord("\n"))
_FUZZY = re.compile(r"\{[^{}]*[eids<][^{}]*\}|\[:\^?\w+:\]")
_EVERYWHERE = "(?i)"
_GLOBAL = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII


class NotDerivableError(Exception):
    """A pattern whose matches cannot be described in advance."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    set: ByteSet


@dataclass(frozen=True, slots=True)
class Sequence:
    """Shapes one after the other; none of them is itself a sequence."""

    items: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several shapes."""

    branches: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A shape repeated from ``least`` to ``most`` times."""

    item: "Shape"
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Beside:
    """Zero width: the character before (``behind``) or after is in a set, which may include the edge of the text."""

    may: int
    behind: bool


@dataclass(frozen=True, slots=True)
class Boundary:
    """Zero width: the start or end of a word."""


Shape = Chars | Sequence | Choice | Repeat | Beside | Boundary
NOTHING_AT_ALL: Final = Sequence(())


def joined(items: Iterable[Shape]) -> Shape:
    """Return a sequence without nested sequences."""
    flat: list[Shape] = []
    for item in items:
        flat += item.items if isinstance(item, Sequence) else [item]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def width(shape: Shape) -> tuple[int, int]:
    """Return the minimum and maximum number of characters in a match."""
    match shape:
        case Chars():
            return 1, 1
        case Sequence(items):
            widths = [width(item) for item in items]
            return sum(low for low, _ in widths), min(UNLIMITED, sum(high for _, high in widths))
        case Choice(branches):
            widths = [width(branch) for branch in branches]
            return min(low for low, _ in widths), max(high for _, high in widths)
        case Repeat(item, least, most):
            low, high = width(item)
            return low * least, min(UNLIMITED, high * most)
        case _:
            return 0, 0


def alphabet(shape: Shape) -> int:
    """Return every byte that can be part of a match."""
    match shape:
        case Chars(byte_set):
            return byte_set.may
        case Sequence(items) | Choice(items):
            union = 0
            for item in items:
                union |= alphabet(item)
            return union
        case Repeat(item):
            return alphabet(item)
        case _:
            return 0


def positions(shape: Shape) -> int:
    """Return the size of the automaton of a shape."""
    match shape:
        case Chars():
            return 1
        case Sequence(items) | Choice(items):
            return min(UNLIMITED, sum(map(positions, items)))
        case Repeat(item, _, most):
            return 2 if isinstance(item, Chars) else min(UNLIMITED, positions(item) * most)
        case _:
            return 0


def effort(shape: Shape) -> int:
    """Return an upper bound on the ways to match at one place, which backtracking may have to try."""
    match shape:
        case Sequence(items):
            ways = 1
            for item in items:
                ways = min(UNLIMITED, ways * effort(item))
            return ways
        case Choice(branches):
            return min(UNLIMITED, sum(effort(branch) for branch in branches))
        case Repeat(item, least, most):
            inner = effort(item)
            if inner == 1:
                return min(UNLIMITED, most - least + 1)
            return UNLIMITED if most * inner.bit_length() > UNLIMITED.bit_length() else inner**most
        case _:
            return 1


class PatternReading:
    """The shape of one parsed pattern, and how far its look-arounds reach.

    ``led``: the shape begins with the text that the pattern requires before its matches.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        self.ahead = self.behind = 0
        self.led = False
        self._groups: dict[int, Any] = {}
        self._open: set[int] = set()
        if _FUZZY.search(pattern):
            raise NotDerivableError("fuzzy matching or set operations")
        if _EVERYWHERE in pattern:
            # It applies to the whole pattern, wherever it is.
            pattern, flags = pattern.replace(_EVERYWHERE, ""), flags | re.IGNORECASE
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                tree = _parser.parse(pattern, flags & _GLOBAL)
        except (re.error, OverflowError, RecursionError, Warning) as error:
            raise NotDerivableError(type(error).__name__) from None
        self._collect(tree)
        self.shape = self._led(list(tree), tree.state.flags)

    def _collect(self, tree: Any) -> None:
        """Record the content of each group, for back references."""
        for kind, argument in tree:
            if str(kind) == "SUBPATTERN" and argument[0] is not None:
                self._groups[argument[0]] = argument
            for part in _inner(str(kind), argument):
                self._collect(part)

    def _led(self, tree: list[Any], flags: int) -> Shape:
        """Return the shape of a whole pattern; words required before a match are often more specific than the match."""
        kind, argument = tree[0] if tree else ("", (0, ()))
        if str(kind) == "ASSERT" and argument[0] < 0:
            before = self._sequence(argument[1], flags)
            if width(before)[0] > 1:
                self.led = True
                self.behind = max(self.behind, min(UNLIMITED, width(before)[1] + 1))
                return joined([before, self._sequence(tree[1:], flags)])
        return self._sequence(tree, flags)

    def _sequence(self, tree: Any, flags: int) -> Shape:
        return joined(self._shape(str(kind), argument, flags) for kind, argument in tree)

    def _shape(self, kind: str, argument: Any, flags: int) -> Shape:  # noqa: PLR0911 - one for each kind of node
        match kind:
            case "LITERAL":
                return Chars(character(argument, flags))
            case "NOT_LITERAL":
                return _class(character(argument, flags).inverted())
            case "ANY":
                return Chars(ANYTHING if flags & re.DOTALL else _without_line_end())
            case "IN":
                return _class(_members(argument, flags))
            case "BRANCH":
                return _choice([self._sequence(branch, flags) for branch in argument[1]])
            case "SUBPATTERN":
                _, added, removed, inner = argument
                return self._sequence(inner, (flags | added) & ~removed)
            case "ATOMIC_GROUP":
                return self._sequence(argument, flags)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                limit = UNLIMITED if most is _parser.MAXREPEAT else int(most)
                return _repeat(self._sequence(inner, flags), int(least), limit)
            case _:
                return self._narrowing(kind, argument, flags)

    def _narrowing(self, kind: str, argument: Any, flags: int) -> Shape:
        match kind:
            case "ASSERT" | "ASSERT_NOT":
                return self._look(argument, flags, negative=kind == "ASSERT_NOT")
            case "AT":
                return _position(str(argument), flags)
            case "GROUPREF":
                return self._reference(argument, flags)
            case "GROUPREF_EXISTS":
                _, yes, no = argument
                return _choice([self._sequence(part, flags) for part in (yes, no or ())])
            case _:
                raise NotDerivableError(kind)

    def _look(self, argument: tuple[int, Any], flags: int, *, negative: bool) -> Shape:
        """Return what a look-around requires of the adjacent character, or an empty shape if it requires more."""
        direction, tree = argument
        seen = self._sequence(tree, flags)
        far = min(UNLIMITED, width(seen)[1] + 1)
        if direction < 0:
            self.behind = max(self.behind, far)
        else:
            self.ahead = max(self.ahead, far)
        chars = seen if isinstance(seen, Chars) else _as_class(seen)
        if chars is not None:
            return Beside(chars.set.inverted().may if negative else chars.set.may, direction < 0)
        at_edge = isinstance(seen, Beside) and not negative
        return seen if at_edge else NOTHING_AT_ALL

    def _reference(self, number: int, flags: int) -> Shape:
        """Return the shape of a back reference: whatever its group may match."""
        if number in self._open or number not in self._groups:
            raise NotDerivableError("reference")
        _, added, removed, inner = self._groups[number]
        self._open.add(number)
        shape = self._sequence(inner, (flags | added) & ~removed)
        self._open.discard(number)
        return shape


def _inner(kind: str, argument: Any) -> list[Any]:  # noqa: PLR0911 - one for each kind of node
    match kind:
        case "SUBPATTERN":
            return [argument[3]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case "GROUPREF_EXISTS":
            return [part for part in argument[1:] if part]
        case _:
            return []


def _members(items: Any, flags: int) -> ByteSet:
    byte_set = NOTHING
    negated = False
    for kind, argument in items:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                byte_set |= character(argument, flags)
            case "RANGE":
                byte_set |= characters(argument[0], argument[1], flags)
            case "CATEGORY":
                byte_set |= category(str(argument), flags)
            case other:
                raise NotDerivableError(other)
    byte_set |= ByteSet(0, _entirely(items))
    return byte_set.inverted() if negated else byte_set


def _entirely(items: Any) -> int:
    """Return the letters in a class that also includes every other character that they represent in an image."""

    def named(character: str) -> bool:
        code = ord(character)
        return any(
            (str(kind) == "LITERAL" and argument == code)
            or (str(kind) == "RANGE" and argument[0] <= code <= argument[1])
            for kind, argument in items
        )

    partly = {letter for other, letter in AS_ASCII.items() if not named(other)}
    small = set(AS_ASCII.values())
    return mask_of(*(ord(letter) for letter in small - partly | set(map(str.upper, small)) if named(letter)))


def _class(byte_set: ByteSet) -> Chars:
    """Return one character of a set; unlike in a look-around, it is never the edge."""
    return Chars(ByteSet(byte_set.may & ~AT_EDGE, byte_set.must & ~AT_EDGE))


def _without_line_end() -> ByteSet:
    return ByteSet(ANYTHING.may & ~_LINE_END, ANYTHING.must & ~_LINE_END)


def _as_class(shape: Shape) -> Chars | None:
    """Return a choice of single characters as one set."""
    if isinstance(shape, Choice) and all(isinstance(branch, Chars) for branch in shape.branches):
        byte_set = NOTHING
        for branch in shape.branches:
            if isinstance(branch, Chars):
                byte_set |= branch.set
        return Chars(byte_set)
    return None


def _choice(branches: list[Shape]) -> Shape:
    sides = [branch for branch in branches if isinstance(branch, Beside)]
    if len(sides) == len(branches) and len({side.behind for side in sides}) == 1:
        union = 0
        for side in sides:
            union |= side.may
        return Beside(union, sides[0].behind)
    return branches[0] if len(branches) == 1 else Choice(tuple(branches))


def _repeat(item: Shape, least: int, most: int) -> Shape:
    if width(item)[1] == 0:
        return NOTHING_AT_ALL
    return item if least == most == 1 else Repeat(item, least, most)


def _position(name: str, flags: int) -> Shape:
    """Return what an anchor requires of the adjacent character; ``Beside`` the edge means that there is none."""
    lines = bool(flags & re.MULTILINE)
    match name:
        case "AT_BEGINNING":
            return Beside(AT_EDGE | (_LINE_END if lines else 0), behind=True)
        case "AT_BEGINNING_STRING":
            return Beside(AT_EDGE, behind=True)
        case "AT_END":
            return Beside(AT_EDGE | _LINE_END, behind=False)
        case "AT_END_STRING":
            return Beside(AT_EDGE, behind=False)
        case "AT_BOUNDARY":
            return Boundary()
        case _:
            return NOTHING_AT_ALL
