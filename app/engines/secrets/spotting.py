"""The interface between the scanner and its rules, and the rules made from formats."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from app.engines.secrets.checks import is_placeholder, is_random
from app.engines.secrets.formats import ALPHABETS, NAME_REACH, SecretFormat

_ALNUM: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_GLUE: Final = frozenset(b"._")
"""What ends a sentence, or stands between a key and a name around it: ``backup_AIza…_old``."""
_ESCAPED: Final = (b"\\n", b"\\t", b"\\r", b"\\b", b"\\f")
_NAME_TO_VALUE: Final = (
    r"[A-Za-z0-9_.\- ]{0,40}[\"'\]]{0,2}[ \t]{0,3}(?:=>|:=|=|:|,|>|\|| value=)[ \t]{0,3}"
    r"[\"'\x60]?(?:(?i:bearer|basic|token) )?"
)
_SHORT_NAME: Final = 6
_LOWER: Final = frozenset(bytes([code]) for code in b"abcdefghijklmnopqrstuvwxyz")
_SURE, _LIKELY, _NAMED = 1.0, 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Spot:
    """A credential in a text, by offsets; ``score`` states how sure its rule is."""

    start: int
    end: int
    label: str
    score: float


Find = Callable[[bytes, int], Spot | None]
"""Returns the credential at a place where a keyword begins, or None."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A rule that the scanner triggers: its provider, the keyword for the gate, and the function to call then."""

    provider: str
    gate: str
    find: Find
    entropy: bool = False
    """Whether it judges only by name and randomness of a value; ``entropy: false`` switches such rules off."""


def stands_alone(data: bytes, start: int) -> bool:
    r"""Return whether no letter or digit precedes ``start``, except the n of an escaped line break (``\n``)."""
    if start == 0 or data[start - 1] not in _ALNUM:
        return True
    return data[max(0, start - 2) : start] in _ESCAPED


@cache
def compiled(pattern: str) -> Any:
    """Return the RE2 pattern, compiled once.

    Patterns have no groups, so that RE2 need not record positions for every character of a window.
    """
    import re2  # noqa: PLC0415 - loaded with the first keyword found, so start-up does not pay for it

    return re2.compile(pattern.encode("ascii"))


def value_behind(data: bytes, at: int) -> int:
    """Return where the value assigned to the name that continues at ``at`` begins, or -1."""
    sign = compiled(_NAME_TO_VALUE).match(data, at, at + NAME_REACH)
    return -1 if sign is None else sign.end()


@dataclass(slots=True, eq=False)
class FormatFinder:
    """Searches for one format around its keyword; compiled when the keyword first occurs."""

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
            match = self._compiled.search(data, max(0, at - kind.before), at + kind.reach)
        else:
            begin = value_behind(data, at + len(kind.gate)) if kind.name else at
            match = self._compiled.match(data, begin, begin + kind.reach) if begin >= 0 else None
        if match is None:
            return None
        start, end = match.span()
        if end < len(data) and data[end] in self._follows:
            end = data.rfind(b"_", start, end)
            if end < 0 or self._compiled.fullmatch(data, start, end) is None:
                return None
        if not stands_alone(data, start):
            return None
        return self._judged(data[start:end].decode("ascii"), start, end)

    def _may_begin(self, data: bytes, at: int) -> bool:
        """Return whether the keyword occurs exactly as in the format, and not inside another word."""
        kind = self.format
        if not kind.name:
            return data.startswith(kind.literal, at) and (kind.before > 0 or stands_alone(data, at))
        behind = at + len(kind.name)
        # A short name is part of many words: accept exa in EXA_KEY, but not in example.
        whole = len(kind.name) > _SHORT_NAME or data[behind : behind + 1] not in _LOWER
        return whole and stands_alone(data, at)

    def _compile(self) -> None:
        last = self.format.pieces[-1]
        extra = ALPHABETS[last.alphabet][0] if last.alphabet in ALPHABETS else ""
        more = frozenset(extra.encode()) - _GLUE
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
