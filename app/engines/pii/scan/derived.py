"""Cache the probes of patterns on disk next to the compiled databases: deriving them takes most of a start.

A cache file is plain JSON, named by a digest of every pattern and of the deriving code. It is never executed, and a
file that differs from what was written is not used.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from app.engines.pii.scan import bytesets, image, rims, shapes, spelling, stored, superset
from app.engines.pii.scan.shapes import NotDerivableError, PatternReading, alphabet
from app.engines.pii.scan.superset import Probe, probe_of

_CODE: Final = (bytesets, image, rims, shapes, spelling, superset, sys.modules[__name__])
_SIZE: Final = 32
_KIND: Final = "json"


class Question(NamedTuple):
    """A pattern for which to derive a probe, or a ``core`` that every relevant match of the pattern contains.

    ``itself``: derive from the pattern first, and from the core only if the probe's reach is unlimited.
    """

    pattern: str
    flags: int
    core: str | None = None
    core_flags: int = 0
    itself: bool = True


def probes_of(questions: Sequence[Question]) -> list[Probe | str]:
    """Return the probe of each pattern, or the reason why there is none."""
    digest = _digest(questions)
    content = stored.read(digest, _KIND) if digest else None
    cached = _unpacked(content) if content else None
    if cached is not None:
        return cached
    answers = [_answer(question) for question in questions]
    if digest:
        stored.keep(digest, _packed(answers), _KIND)
    return answers


def around(core: str, shape: str, flags: int) -> Probe:
    """Return a probe that hits at matches of ``core`` and reaches as far as the characters of ``shape`` do.

    Each relevant match of ``shape`` contains a match of ``core``.
    """
    probe, reading = probe_of(core, flags), PatternReading(shape, flags)
    inside = alphabet(reading.shape)
    return probe._replace(left=inside, right=inside, ahead=reading.ahead + 2, tame=False)


def _answer(question: Question) -> Probe | str:
    pattern, flags, core, core_flags, itself = question
    try:
        if itself:
            try:
                probe = probe_of(pattern, flags)
            except NotDerivableError:
                if core is None:
                    raise
            else:
                if core is None or not (probe.left or probe.right):
                    return probe
        return around(core or "", pattern, core_flags)
    except NotDerivableError as error:
        return str(error)


def _sources(modules: Sequence[ModuleType]) -> bytes:
    """Return a digest of the deriving code; empty if it cannot be read, and then nothing is cached."""
    try:
        code = [Path(str(module.__file__)).read_bytes() for module in modules]
    except OSError:
        return b""
    return hashlib.blake2b(b"\0".join((sys.version.encode(), *code))).digest()


# Read at import and not later: if the code changed in between, its digest would name what older code derived.
_SOURCES: Final = _sources(_CODE)


def _digest(questions: Sequence[Question]) -> bytes:
    serialized = json.dumps(questions).encode()
    return hashlib.blake2b(_SOURCES + serialized, digest_size=_SIZE).digest() if _SOURCES else b""


def _packed(answers: Sequence[Probe | str]) -> bytes:
    rows = [
        answer
        if isinstance(answer, str)
        else [[expression.decode("latin-1") for expression in answer.expressions], *answer[1:]]
        for answer in answers
    ]
    content = json.dumps(rows).encode()
    return hashlib.blake2b(content, digest_size=_SIZE).digest() + content


def _unpacked(kept: bytes) -> list[Probe | str] | None:
    """Return what `_packed` wrote, or None if the content was changed."""
    content = kept[_SIZE:]
    if hashlib.blake2b(content, digest_size=_SIZE).digest() != kept[:_SIZE]:
        return None
    return [row if isinstance(row, str) else _probe(*row) for row in json.loads(content)]


def _probe(expressions: list[str], *others: Any) -> Probe:
    *numbers, borders, opening = others
    return Probe._make(
        (
            tuple(expression.encode("latin-1") for expression in expressions),
            *numbers,
            tuple(map(tuple, borders)),
            opening,
        )
    )
