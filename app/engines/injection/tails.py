"""Find a tail of gibberish behind a request, as a search for what breaks a refusal comes up with.

Such a tail is made of pieces of words and of signs that no language, and no code, puts side by side: words run into
each other and into brackets that are never closed.
"""

import re
from typing import Final, NamedTuple

from app.engines.injection.vocabulary import Vocabulary

_TOKEN: Final = re.compile(r"\S+")
_RIMS: Final = ".,;:!?\"'()“”‘’…"  # noqa: RUF001 - the quotation marks of several languages
_LINKS: Final = re.compile(r"https?://|www\.|\w@\w|^[\w.\-/]+$")
_ODD: Final = re.compile(r"[^\w\s.,;:!?'\"()\-–—…&/%€$£+@#]")  # noqa: RUF001 - dashes
_INNER: Final = re.compile(r"\w[^\w\s'’\-./,:@&–—]+\w|[a-z][A-Z]")  # noqa: RUF001 - dashes
_SIGNS: Final = re.compile(r"[^\w\s]{2,}\Z")
_PLAIN_SIGNS: Final = frozenset(
    {"--", "---", "...", "…", "->", "=>", ":)", ":(", ":-)", "<3", "**", "||", "&&", "=="}
)
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_USUAL: Final = 0.35
"""The share of odd tokens from which on a text is gibberish."""
_GLUED: Final = 9
"""Least letters of an unknown word that may be pieces of known ones."""
_LEAST_SUM: Final = 0.5
_LEAST_TOKENS: Final = 3
_LEAST_LETTERS: Final = 24
_LEAST_HEAD: Final = 3
_MOST_ODD_HEAD: Final = 0.2
_UNPAIRED: Final = 2
_CODE: Final = re.compile(
    r"""\w\(\)|\w\(["'\w]+[,)]|;(?=\s|$)| [=!<>+*-]?= |=>|::|</|\w\.\w+\(|\w\[["'\w]|\w:\s|\(\w+ |["'](?=[\s,)\]}:;])"""
    r"""|\$\w|&&|\|\||^\s*[#/*]|--\w|\d\]"""
)
"""What programs, markup and logs are written with; gibberish has little of it."""
_LEAST_CODE: Final = 0.25
"""Such signs for each token of a tail from which on it may be code."""
_LONGEST: Final = 4_000
"""Most characters in which a tail is looked for: requests with one are short."""

SENSELESS_TAIL: Final = 0.6
"""How strongly a tail that makes no sense indicates an attack: nobody has another use for it."""


class Tail(NamedTuple):
    """Where gibberish begins; ``senseless``: it is not code either, as its brackets do not pair."""

    start: int
    senseless: bool


def tail(text: str) -> Tail | None:
    """Return the tail of gibberish of ``text``, or None; what is before it is a request that reads well."""
    if len(text) > _LONGEST or _ODD.search(text) is None:
        return None
    tokens = list(_TOKEN.finditer(text))
    words = Vocabulary.shared()
    odd = [_oddness(token[0], words) for token in tokens]
    best, total, begin = _LEAST_SUM, 0.0, None
    for place in range(len(tokens) - 1, _LEAST_HEAD - 1, -1):
        total += odd[place] - _USUAL
        if total >= best and odd[place] >= _USUAL and len(tokens) - place >= _LEAST_TOKENS:
            best, begin = total, place
    if begin is None or sum(odd[:begin]) > _MOST_ODD_HEAD * begin:
        return None
    start = tokens[begin].start()
    if len(text) - start < _LEAST_LETTERS:
        return None
    return Tail(start, _senseless(text, start))


def _oddness(token: str, words: Vocabulary) -> float:
    """Return how strange a token is beside words of a language: 1 for signs and pieces run into each other."""
    core = token.strip(_RIMS)
    if words.knows(core) and not _ODD.search(token):
        return 0.0
    if _LINKS.search(core) and not _INNER.search(core):
        return 0.0 if not core.isalpha() or core[:1].isupper() else 0.4
    if _INNER.search(token) or _ODD.search(token) or (_SIGNS.match(token) and token not in _PLAIN_SIGNS):
        return 1.0
    if len(core) >= _GLUED and core.isascii() and core.isalpha() and words.parted(core) is not None:
        return 0.8
    return 0.4


def _senseless(text: str, start: int) -> bool:
    """Return whether the tail follows in the same line, is not code, and closes brackets that were never opened."""
    if "\n" in text[max(0, start - 2) :]:
        return False
    tokens = len(_TOKEN.findall(text, start))
    if len(_CODE.findall(text[start:])) >= _LEAST_CODE * tokens:
        return False
    stack: list[str] = []
    unopened = 0
    for sign in text[start:]:
        if sign in "([{":
            stack.append(sign)
        elif sign in _PAIRS:
            if stack and stack[-1] == _PAIRS[sign]:
                stack.pop()
            else:
                unopened += 1
    return unopened > 0 and unopened + len(stack) >= _UNPAIRED
