"""Three engines that locate hits of expressions in an image: Hyperscan, RE2, and none, where anything may hit."""

import hashlib
import logging
import platform
import re
import struct
import threading
from collections.abc import Container, Sequence
from importlib.metadata import version
from typing import Any, Final, Literal, Protocol

from app.engines.pii.scan import stored
from app.engines.pii.scan.digits import Regions, beside_digits, digits_of
from app.engines.pii.scan.superset import WIDEST

MatcherName = Literal["auto", "hyperscan", "re2", "plain"]
Hits = dict[int, list[int]]

_TOGETHER: Final = 84
"""Expressions per database: each database costs a pass, and compile time grows faster than this number."""

_FEW_DIGITS: Final = 256
"""With fewer than one digit in so many bytes, the few places of values are looked at whatever the words are."""

_WORDS: Final = -1
"""The part of the words, which are searched before all else."""

_SYNTAX = re.compile(rb"[\[({]")
_log = logging.getLogger(__name__)


class ExpressionMatcher(Protocol):
    """Find for each expression, by its number, where hits end in an image.

    A hit reported as ``n`` ends in ``(n - grain, n]``. If a method returns None, anything may hit anywhere.
    """

    name: str
    grain: int

    def words(self, image: bytes) -> Hits | None:
        """Return a hit of each word that has any."""

    def hits(self, image: bytes, parts: Container[int]) -> Hits | None:
        """Return the hits of each expression in ``parts`` that has any, sorted; it may return those of others."""

    def serialized(self) -> bytes | None:
        """Return the data from which another process starts without compiling; None if there is nothing to compile."""


class PlainMatcher:
    """Locate nothing, so that every pattern runs over the whole text."""

    name = "plain"
    grain = 0

    def words(self, image: bytes) -> Hits | None:
        """Return None."""
        del image
        return None

    def hits(self, image: bytes, parts: Container[int]) -> Hits | None:
        """Return None."""
        del image, parts
        return None

    def serialized(self) -> bytes | None:
        """Return None."""
        return None


class HyperscanMatcher:
    """Search with automata at hundreds of megabytes a second; threads share the databases, each has its own scratch.

    Words form one database, all others a few: expressions with the same beginning are matched together.
    Expressions that hit only near a digit are searched only near digits: most texts have few. Those of other parts are
    in other databases.
    """

    name = "hyperscan"
    grain = 1

    _HEAD: Final = struct.Struct(">III")

    def __init__(
        self,
        expressions: Sequence[bytes],
        first_word: int,
        reaches: Sequence[int],
        parts: Sequence[int],
        serialized: bytes | None = None,
    ) -> None:
        import hyperscan  # noqa: PLC0415 - a large library, not available on every platform

        self._library = hyperscan
        self._local = threading.local()
        self._digest = digest(expressions, reaches, parts)
        content = serialized if serialized is not None else stored.read(self._digest)
        loaded = self._loaded(content) if content else None
        self._databases = (
            loaded if loaded is not None else self._compiled(expressions, first_word, reaches, parts)
        )
        if loaded is None:
            stored.keep(self._digest, self.serialized())

    def serialized(self) -> bytes:
        """Return the databases and the digest of their sources, for other processes and later starts."""
        dumped = [
            (bytes(self._library.dumpb(database)), reach, part) for database, reach, part in self._databases
        ]
        return self._digest + b"".join(
            self._HEAD.pack(len(content), reach, part + 1) + content for content, reach, part in dumped
        )

    def words(self, image: bytes) -> Hits | None:
        """Return the end of one hit of each word; None where digits are so few that words are not worth a pass."""
        if len(digits_of(image)) * _FEW_DIGITS < len(image):
            return None
        ends_of: Hits = {}

        def add(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            ends_of[number] = [end]

        for (database, _, part), scratch in zip(self._databases, self._scratches(), strict=True):
            if part == _WORDS:
                database.scan(image, match_event_handler=add, scratch=scratch)
        return ends_of

    def hits(self, image: bytes, parts: Container[int]) -> Hits:
        """Return the ends of hits of the expressions in ``parts``."""
        ends_of: Hits = {}

        def add(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if number in ends_of:
                ends_of[number].append(end)
            else:
                ends_of[number] = [end]

        digits = digits_of(image)
        regions: dict[int, Regions] = {}
        for (database, reach, of_part), scratch in zip(self._databases, self._scratches(), strict=True):
            if of_part not in parts:
                continue
            if not reach:
                database.scan(image, match_event_handler=add, scratch=scratch)
                continue
            if reach not in regions:
                regions[reach] = beside_digits(image, digits, reach)
            part, moved = regions[reach]
            if moved is None:
                database.scan(part, match_event_handler=add, scratch=scratch)
            elif part:
                whole, ends_of = ends_of, {}
                database.scan(part, match_event_handler=add, scratch=scratch)
                for number, ends in ends_of.items():
                    whole[number] = moved(ends)
                ends_of = whole
        return ends_of

    def _scratches(self) -> list[Any]:
        scratches: list[Any] | None = getattr(self._local, "scratches", None)
        if scratches is None:
            scratches = [self._library.Scratch(database) for database, _, _ in self._databases]
            self._local.scratches = scratches
        return scratches

    def _compiled(
        self, expressions: Sequence[bytes], first_word: int, reaches: Sequence[int], parts: Sequence[int]
    ) -> list[tuple[Any, int, int]]:
        flags = self._library.HS_FLAG_DOTALL | self._library.HS_FLAG_CASELESS
        groups: list[tuple[int, int, Sequence[int]]] = [(0, _WORDS, range(first_word, len(expressions)))]
        for reach, part in sorted(set(zip(reaches[:first_word], parts, strict=True))):
            mine = [
                number for number in range(first_word) if (reaches[number], parts[number]) == (reach, part)
            ]
            groups.append(
                (reach, part, [number for number in mine if not _SYNTAX.search(expressions[number])])
            )
            others = [number for number in mine if _SYNTAX.search(expressions[number])]
            others.sort(key=expressions.__getitem__)
            groups += [
                (reach, part, others[start : start + _TOGETHER]) for start in range(0, len(others), _TOGETHER)
            ]
        databases = []
        for reach, part, group in groups:
            if group:
                single = self._library.HS_FLAG_SINGLEMATCH if part == _WORDS else 0
                database = self._library.Database()
                database.compile(
                    expressions=[expressions[number] for number in group],
                    ids=group,
                    elements=len(group),
                    flags=[flags | single] * len(group),
                )
                databases.append((database, reach, part))
        return databases

    def _loaded(self, serialized: bytes) -> list[tuple[Any, int, int]] | None:
        """Return the databases of ``serialized``, or None if they do not fit these expressions or this machine."""
        if serialized[: len(self._digest)] != self._digest:
            return None
        databases, place = [], len(self._digest)
        try:
            while place < len(serialized):
                size, reach, part = self._HEAD.unpack_from(serialized, place)
                place += self._HEAD.size
                content = serialized[place : place + size]
                databases.append((self._library.loadb(content, self._library.HS_MODE_BLOCK), reach, part - 1))
                place += size
        except (self._library.HyperscanError, struct.error):
            return None
        return databases


class Re2Matcher:
    """Search blocks of the image with RE2's set of expressions: it finds which hit in a block, not where."""

    name = "re2"
    grain = 512

    _OVERLAP: Final = WIDEST + 2
    _MEMORY: Final = 256 << 20

    def __init__(self, expressions: Sequence[bytes], first_word: int) -> None:
        self._first_word = first_word
        self._others, self._words = self._set(expressions[:first_word]), self._set(expressions[first_word:])

    def words(self, image: bytes) -> Hits:
        """Return the ends of the blocks in which hits of words end."""
        return {self._first_word + number: ends for number, ends in self._hits(self._words, image).items()}

    def hits(self, image: bytes, parts: Container[int]) -> Hits:
        """Return the ends of the blocks in which hits end, for each expression of all parts."""
        del parts
        return self._hits(self._others, image)

    def _set(self, expressions: Sequence[bytes]) -> tuple[Any, int]:
        """Return a set of ``expressions``, and the number of its canary."""
        import re2  # noqa: PLC0415 - first use only

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = self._MEMORY
        options.log_errors = False
        options.dot_nl = True
        expressions_set = re2.Set.SearchSet(options)
        for expression in expressions:
            expressions_set.Add(b"(?i)" + expression)
        # RE2 does not report if it gives up for lack of memory; then this expression is missing too.
        canary = expressions_set.Add(b"")
        expressions_set.Compile()
        return expressions_set, canary

    def _hits(self, searched: tuple[Any, int], image: bytes) -> Hits:
        ends_of: Hits = {}
        expressions_set, canary = searched
        for start in range(0, len(image), self.grain):
            end = start + self.grain
            numbers = expressions_set.Match(image[max(0, start - self._OVERLAP) : end]) or ()
            for number in numbers if canary in numbers else range(canary):
                if number != canary:
                    ends_of.setdefault(number, []).append(end)
        return ends_of

    def serialized(self) -> bytes | None:
        """Return None: RE2 builds its automaton during the search."""
        return None


def digest(expressions: Sequence[bytes], reaches: Sequence[int], parts: Sequence[int]) -> bytes:
    """Return a digest of everything a database depends on: expressions, reaches, parts, library, processor."""
    facts = [f"{_TOGETHER} alike", str(reaches), str(parts), version("hyperscan")]
    facts += [platform.machine(), platform.system(), _processor()]
    state = hashlib.blake2b("\0".join(facts).encode(), digest_size=32)
    for expression in expressions:
        state.update(len(expression).to_bytes(4, "big") + expression)
    return state.digest()


def _processor() -> str:
    """Return the features of the processor: a database compiled for another one does not load."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as facts:  # noqa: PTH123
            return next((line for line in facts if line.startswith(("flags", "Features"))), "")
    except OSError:
        return platform.processor()


def build(
    name: MatcherName,
    expressions: Sequence[bytes],
    first_word: int,
    reaches: Sequence[int],
    parts: Sequence[int],
    serialized: bytes | None = None,
) -> ExpressionMatcher:
    """Return the matcher of that name; ``auto`` selects the fastest on this platform.

    The expressions from ``first_word`` on are words, for which one hit suffices. ``reaches`` holds for each expression
    the maximum distance of a relevant hit from a digit; 0: anywhere. ``parts`` holds the part of each that is no word.
    """
    if name == "plain":
        return PlainMatcher()
    if name in ("auto", "hyperscan"):
        try:
            return HyperscanMatcher(expressions, first_word, reaches, parts, serialized)
        except ImportError:
            if name == "hyperscan":
                raise
            _log.warning("no Hyperscan on this platform: RE2 looks for personal data, with the same findings")
    return Re2Matcher(expressions, first_word)
