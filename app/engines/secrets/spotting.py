"""Spots: what a rule is to the scanner, and the rules that come from formats."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from app.engines.secrets.checks import is_placeholder, is_random
from app.engines.secrets.formats import ALPHABETS, NAME_REACH, SecretFormat

_ALNUM: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_ESCAPED: Final = (b"\\n", b"\\t", b"\\r", b"\\b", b"\\f")
_NAME_TO_VALUE: Final = (
    r"[A-Za-z0-9_.\- ]{0,40}[\"'\]]{0,2}[ \t]{0,3}(?:=>|:=|=|:|,|>)[ \t]{0,3}"
    r"[\"'\x60]?(?:(?i:bearer|basic|token) )?"
)
_SHORT_NAME: Final = 6
_LOWER: Final = frozenset(bytes([one]) for one in b"abcdefghijklmnopqrstuvwxyz")
_SURE, _LIKELY, _NAMED = 1.0, 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Spot:
    """A credential in a text, by offsets; ``score`` says how sure its rule is."""

    start: int
    end: int
    label: str
    score: float


Find = Callable[[bytes, int], Spot | None]
"""Looks at the place where a keyword begins and returns the credential that stands there."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """What the scanner triggers: the provider, the keyword that the gate knows, and what then looks."""

    provider: str
    gate: str
    find: Find
    entropy: bool = False
    """Whether it judges by the name and the look of a value alone, which ``entropy: false`` switches off."""


def stands_alone(data: bytes, start: int) -> bool:
    r"""Say whether no letter or digit stands in front, other than the n of an escaped line break (``\n``)."""
    if start == 0 or data[start - 1] not in _ALNUM:
        return True
    return data[max(0, start - 2) : start] in _ESCAPED


@cache
def compiled(pattern: str) -> Any:
    """Return the RE2 pattern, compiled once.

    Patterns have no groups: RE2 then walks its automaton and keeps no record of every character of a window.
    """
    import re2  # noqa: PLC0415 - loaded when a keyword is seen, not when the service starts

    return re2.compile(pattern.encode("ascii"))


def value_behind(data: bytes, at: int) -> int:
    """Return where the value begins that is assigned to the name which goes on at ``at``, or -1."""
    found = compiled(_NAME_TO_VALUE).match(data, at, at + NAME_REACH)
    return -1 if found is None else found.end()


@dataclass(slots=True, eq=False)
class FormatFinder:
    """Looks for one format around its keyword; compiled when its keyword is seen for the first time."""

    format: SecretFormat
    _compiled: Any = field(default=None)
    _follows: frozenset[int] = field(default=_ALNUM)

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the secret whose keyword begins at ``at``, or None."""
        kind = self.format
        if not self._may_begin(data, at):
            return None
        if self._compiled is None:
            self._compile()
        if kind.before:
            found = self._compiled.search(data, max(0, at - kind.before), at + kind.reach)
        else:
            begin = value_behind(data, at + len(kind.gate)) if kind.name else at
            found = self._compiled.match(data, begin, begin + kind.reach) if begin >= 0 else None
        if found is None:
            return None
        start, end = found.span()
        if end < len(data) and data[end] in self._follows:
            return None
        if not stands_alone(data, start):
            return None
        return self._judged(data[start:end].decode("ascii"), start, end)

    def _may_begin(self, data: bytes, at: int) -> bool:
        """Say whether the keyword stands as the format has it: exactly, and not inside another word."""
        kind = self.format
        if not kind.name:
            return data.startswith(kind.literal, at) and (kind.before > 0 or stands_alone(data, at))
        behind = at + len(kind.name)
        # A short name is a part of many words: exa stands in EXA_KEY, and not in example.
        whole = len(kind.name) > _SHORT_NAME or data[behind : behind + 1] not in _LOWER
        return whole and stands_alone(data, at)

    def _compile(self) -> None:
        last = self.format.pieces[-1]
        extra = ALPHABETS[last.alphabet][0] if last.alphabet in ALPHABETS else ""
        more = frozenset(extra.encode()) - frozenset(b".")
        self._follows = _ALNUM | more if not last.literal else frozenset()
        self._compiled = compiled(self.format.pattern)

    def _judged(self, secret: str, start: int, end: int) -> Spot | None:
        head, tail = self.format.random_part
        core = secret[head : len(secret) - tail]
        if is_placeholder(core):
            return None
        if not is_random(core, self.format.variety):
            return None
        if self.format.name:
            score = _NAMED
        else:
            check = self.format.check
            score = _SURE if check is not None and check(secret) else _LIKELY
        return Spot(start, end, self.format.label, score)
