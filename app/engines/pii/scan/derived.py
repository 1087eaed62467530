"""The probes of patterns, kept on disk beside the compiled databases: to derive them takes most of a start.

What is kept is plain JSON under a digest of every pattern and of the code that derives; it is never run, and a file
that is not to the byte what was written is not used.
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
    """A pattern to derive a probe from; or from ``core``, which each of its matches that matter holds.

    ``itself``: the pattern alone is asked first, and its core where it gives no probe of a limited reach.
    """

    pattern: str
    flags: int
    core: str | None = None
    core_flags: int = 0
    itself: bool = True


def probes_of(questions: Sequence[Question]) -> list[Probe | str]:
    """Return for each pattern its probe, or the reason why there is none."""
    digest = _digest(questions)
    kept = stored.read(digest, _KIND) if digest else None
    known = _unpacked(kept) if kept else None
    if known is not None:
        return known
    answers = [_answer(question) for question in questions]
    if digest:
        stored.keep(digest, _packed(answers), _KIND)
    return answers


def around(core: str, shape: str, flags: int) -> Probe:
    """Return a probe that hits where ``core`` is, and reaches as far as the characters of ``shape`` do.

    Each match of ``shape`` that matters holds a match of ``core``.
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
    """Return a digest of the code that derives; nothing where it cannot be read, and then nothing is kept."""
    try:
        code = [Path(str(module.__file__)).read_bytes() for module in modules]
    except OSError:
        return b""
    return hashlib.blake2b(b"\0".join((sys.version.encode(), *code))).digest()


# Read with the modules and not later: code that changed in between would give its name to what older code derived.
_SOURCES: Final = _sources(_CODE)


def _digest(questions: Sequence[Question]) -> bytes:
    asked = json.dumps(questions).encode()
    return hashlib.blake2b(_SOURCES + asked, digest_size=_SIZE).digest() if _SOURCES else b""


def _packed(answers: Sequence[Probe | str]) -> bytes:
    rows = [
        one if isinstance(one, str) else [[each.decode("latin-1") for each in one.expressions], *one[1:]]
        for one in answers
    ]
    content = json.dumps(rows).encode()
    return hashlib.blake2b(content, digest_size=_SIZE).digest() + content


def _unpacked(kept: bytes) -> list[Probe | str] | None:
    """Return what `_packed` wrote, or None where it is no longer that."""
    content = kept[_SIZE:]
    if hashlib.blake2b(content, digest_size=_SIZE).digest() != kept[:_SIZE]:
        return None
    return [one if isinstance(one, str) else _probe(*one) for one in json.loads(content)]


def _probe(expressions: list[str], *others: Any) -> Probe:
    *numbers, borders, opening = others
    return Probe._make(
        (tuple(each.encode("latin-1") for each in expressions), *numbers, tuple(map(tuple, borders)), opening)
    )
