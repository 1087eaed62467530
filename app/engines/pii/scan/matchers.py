"""Three engines that say where expressions hit in an image: Hyperscan, RE2, and none, where everything may hit."""

import hashlib
import logging
import platform
import re
import struct
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final, Literal, Protocol

from app.engines.pii.scan import stored
from app.engines.pii.scan.digits import Regions, beside_digits, digits_of
from app.engines.pii.scan.superset import WIDEST

MatcherName = Literal["auto", "hyperscan", "re2", "plain"]
Hits = dict[int, list[int]]

_TOGETHER: Final = 84
"""Expressions of a database: each costs a pass of its own, and the time to compile one grows faster than that."""

_SYNTAX = re.compile(rb"[\[({]")
_log = logging.getLogger(__name__)


class ExpressionMatcher(Protocol):
    """Says for each expression, by its number, where hits end in an image.

    A hit that is given as ``n`` ends in ``(n - grain, n]``. ``hits`` of None: nothing is known, anything may hit.
    """

    name: str
    grain: int

    def hits(self, image: bytes) -> Hits | None:
        """Return the hits of each expression that has any, sorted."""

    def serialized(self) -> bytes | None:
        """Return what another process can start from without compiling; None where there is nothing to compile."""


class PlainMatcher:
    """Knows nothing, so that every pattern runs over the whole text."""

    name = "plain"
    grain = 0

    def hits(self, image: bytes) -> Hits | None:
        """Return None."""
        del image
        return None

    def serialized(self) -> bytes | None:
        """Return None."""
        return None


class HyperscanMatcher:
    """Automata at hundreds of megabytes a second; the databases are shared, the scratch is a thread's.

    Plain words are one database, all else a few: what begins alike is in one and followed as one. What only hits beside
    a digit is looked for beside the digits alone: most text has few.
    """

    name = "hyperscan"
    grain = 1

    _HEAD: Final = struct.Struct(">II")

    def __init__(
        self,
        expressions: Sequence[bytes],
        first_word: int,
        reaches: Sequence[int],
        serialized: bytes | None = None,
    ) -> None:
        import hyperscan  # noqa: PLC0415 - a large library, and not there on every platform

        self._library = hyperscan
        self._local = threading.local()
        self._digest = digest(expressions, reaches)
        given = serialized if serialized is not None else stored.read(self._digest)
        loaded = self._loaded(given) if given else None
        self._databases = loaded if loaded is not None else self._compiled(expressions, first_word, reaches)
        if loaded is None:
            stored.keep(self._digest, self.serialized())

    def serialized(self) -> bytes:
        """Return the databases with what they were made from, for other processes and later starts."""
        parts = [(bytes(self._library.dumpb(database)), reach) for database, reach in self._databases]
        return self._digest + b"".join(self._HEAD.pack(len(part), reach) + part for part, reach in parts)

    def hits(self, image: bytes) -> Hits:
        """Return where hits end."""
        found: Hits = {}

        def add(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if number in found:
                found[number].append(end)
            else:
                found[number] = [end]

        digits = digits_of(image)
        regions: dict[int, Regions] = {}
        for (database, reach), scratch in zip(self._databases, self._scratches(), strict=True):
            if not reach:
                database.scan(image, match_event_handler=add, scratch=scratch)
                continue
            if reach not in regions:
                regions[reach] = beside_digits(image, digits, reach)
            part, moved = regions[reach]
            if moved is None:
                database.scan(part, match_event_handler=add, scratch=scratch)
            elif part:
                whole, found = found, {}
                database.scan(part, match_event_handler=add, scratch=scratch)
                for number, ends in found.items():
                    whole[number] = moved(ends)
                found = whole
        return found

    def _scratches(self) -> list[Any]:
        scratches: list[Any] | None = getattr(self._local, "scratches", None)
        if scratches is None:
            scratches = [self._library.Scratch(database) for database, _ in self._databases]
            self._local.scratches = scratches
        return scratches

    def _compiled(
        self, expressions: Sequence[bytes], first_word: int, reaches: Sequence[int]
    ) -> list[tuple[Any, int]]:
        pattern = self._library.HS_FLAG_DOTALL | self._library.HS_FLAG_CASELESS
        flags = {
            number: pattern | (self._library.HS_FLAG_SINGLEMATCH if number >= first_word else 0)
            for number in range(len(expressions))
        }
        groups: list[tuple[int, Sequence[int]]] = [(0, range(first_word, len(expressions)))]
        for reach in sorted(set(reaches)):
            mine = [number for number in range(first_word) if reaches[number] == reach]
            groups.append((reach, [number for number in mine if not _SYNTAX.search(expressions[number])]))
            others = [number for number in mine if _SYNTAX.search(expressions[number])]
            others.sort(key=expressions.__getitem__)
            groups += [
                (reach, others[start : start + _TOGETHER]) for start in range(0, len(others), _TOGETHER)
            ]
        databases = []
        for reach, group in groups:
            if group:
                database = self._library.Database()
                database.compile(
                    expressions=[expressions[number] for number in group],
                    ids=group,
                    elements=len(group),
                    flags=[flags[number] for number in group],
                )
                databases.append((database, reach))
        return databases

    def _loaded(self, serialized: bytes) -> list[tuple[Any, int]] | None:
        """Return the databases of ``serialized``, or None where they were made of or for something else."""
        if serialized[: len(self._digest)] != self._digest:
            return None
        databases, place = [], len(self._digest)
        try:
            while place < len(serialized):
                size, reach = self._HEAD.unpack_from(serialized, place)
                place += self._HEAD.size
                part = serialized[place : place + size]
                databases.append((self._library.loadb(part, self._library.HS_MODE_BLOCK), reach))
                place += size
        except (self._library.HyperscanError, struct.error):
            return None
        return databases


class Re2Matcher:
    """RE2's set of expressions over blocks of the image: says which hit in a block, not where in it."""

    name = "re2"
    grain = 512

    _OVERLAP: Final = WIDEST + 2
    _MEMORY: Final = 256 << 20

    def __init__(self, expressions: Sequence[bytes]) -> None:
        import re2  # noqa: PLC0415 - first use only

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = self._MEMORY
        options.log_errors = False
        options.dot_nl = True
        self._set = re2.Set.SearchSet(options)
        for expression in expressions:
            self._set.Add(b"(?i)" + expression)
        # RE2 says nothing where it gives up for want of memory; then this one is missing too.
        self._canary = self._set.Add(b"")
        self._set.Compile()
        self._all = range(len(expressions))

    def hits(self, image: bytes) -> Hits:
        """Return for each expression the ends of the blocks in which hits end."""
        found: Hits = {}
        for start in range(0, len(image), self.grain):
            end = start + self.grain
            numbers = self._set.Match(image[max(0, start - self._OVERLAP) : end]) or ()
            for number in numbers if self._canary in numbers else self._all:
                if number != self._canary:
                    found.setdefault(number, []).append(end)
        return found

    def serialized(self) -> bytes | None:
        """Return None: RE2 builds its automaton while it searches."""
        return None


def digest(expressions: Sequence[bytes], reaches: Sequence[int]) -> bytes:
    """Return what compiled databases depend on: the expressions, where they hit, the library, the processor."""
    facts = [f"{_TOGETHER} alike", str(reaches), version("hyperscan")]
    facts += [platform.machine(), platform.system(), _processor()]
    state = hashlib.blake2b("\0".join(facts).encode(), digest_size=32)
    for expression in expressions:
        state.update(len(expression).to_bytes(4, "big") + expression)
    return state.digest()


def _processor() -> str:
    """Return the abilities of the processor: a database made for another does not load."""
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
    serialized: bytes | None = None,
) -> ExpressionMatcher:
    """Return the matcher of that name; ``auto`` takes the fastest that this platform has.

    The expressions from ``first_word`` on are of words: one hit tells as much as all. ``reaches`` says of each how far
    from a digit it can hit at most where that matters; 0: anywhere.
    """
    if name == "plain":
        return PlainMatcher()
    if name in ("auto", "hyperscan"):
        try:
            return HyperscanMatcher(expressions, first_word, reaches, serialized)
        except ImportError:
            if name == "hyperscan":
                raise
            _log.warning("no Hyperscan on this platform: RE2 looks for personal data, with the same findings")
    return Re2Matcher(expressions)
