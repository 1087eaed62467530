"""Texts that a regular expression finds, for each of its alternatives at least one."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

_PARSER: Any = re._parser  # type: ignore[attr-defined] # the parser behind re.compile, which has no public door


def examples_of(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield texts in which each alternative, and each optional part, is there once; some may not match."""
    yield from dict.fromkeys(_sequence(_PARSER.parse(pattern.pattern, pattern.flags)))


def _sequence(parsed: Sequence[Any]) -> list[str]:
    """Return texts for one part after the other: all in their first form, then each in all of its forms."""
    forms = [_forms(str(kind), value) for kind, value in parsed]
    texts = ["".join(each[0] for each in forms)]
    for place, each in enumerate(forms):
        before = "".join(other[0] for other in forms[:place])
        after = "".join(other[0] for other in forms[place + 1 :])
        texts += [before + form + after for form in each[1:]]
    return texts


def _forms(kind: str, value: Any) -> list[str]:
    texts = [""]  # for borders, and for what must not stand there
    match kind:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
            texts = [_letter(kind, value)]
        case "BRANCH":
            texts = [text for alternative in value[1] for text in _sequence(alternative)]
        case "SUBPATTERN":
            texts = _sequence(value[3])
        case "ATOMIC_GROUP":
            texts = _sequence(value)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, inner = value
            some = [text * max(least, 1) for text in _sequence(inner)]
            texts = ["" if least == 0 else some[0], *some]
        case "ASSERT" if value[0] > 0:
            texts = _sequence(value[1])
    return texts


def _letter(kind: str, value: Any) -> str:
    if kind == "IN":
        return _member(value)
    return chr(value) if kind == "LITERAL" else "x" if value != ord("x") else "y"


def _member(members: Sequence[tuple[Any, Any]]) -> str:
    (kind, value), *_ = members
    if str(kind) == "NEGATE":
        excluded = {chr(each) for name, each in members[1:] if str(name) == "LITERAL"}
        return next(letter for letter in "x:y-z" if letter not in excluded)
    if str(kind) == "RANGE":
        return chr(value[0])
    if str(kind) == "CATEGORY":
        return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "1", "CATEGORY_WORD": "x"}.get(str(value), "-")
    return chr(value)
