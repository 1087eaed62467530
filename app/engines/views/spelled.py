r"""Read addresses whose signs are words, ``kim_at_example_dot_org``, and signs with an escape before them, ``a\\.b``.

Words such as "at" and "dot" are common, and programs join names by underscores. So they only count where a host under
a usual top-level domain follows.
"""

import re
from collections.abc import Iterator
from typing import Final

from app.engines.views import gates
from app.engines.views.mapping import Substitution

SPELLED: Final = "spelled"

_AT: Final = "at|ät|aet|arobase|arobas|arroba|chiocciola|klammeraffe|apenstaartje|kukac|snabel"
_DOT: Final = "dot|punkt|point|punto|ponto|punt|period"
_MARK: Final = r"[_\-#*|~=^]{1,2}"
_POINT: Final = rf"(?:\.| ?{_MARK}(?:{_DOT}){_MARK} ?| (?:{_DOT}) )"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}?[A-Za-z0-9])?"
_TOPS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|uk|de|fr|it|es|nl|be|ch|at|pl|se|no|dk|fi|pt|ie|cz|ru|ua|tr"
    "|jp|cn|kr|au|nz|ca|us|mx|br|ar|za|eu|example|test"
)
_SIGN: Final = re.compile(
    rf"[@ _\-#*|~=^](?<=[A-Za-z0-9].)"
    rf"(?:(?<=@)|(?<= )(?i:{_AT}) |(?<= ){_MARK}(?i:{_AT}){_MARK} |(?<![@ ])[_\-#*|~=^]?(?i:{_AT}){_MARK})"
    r"(?=[A-Za-z0-9])"
)
_HOST: Final = re.compile(
    rf"(?i){_LABEL}(?:{_POINT}{_LABEL}){{0,3}}?{_POINT}(?:{_TOPS})(?![A-Za-z0-9(=\[]|[._-]\w)"
)
_WORD: Final = re.compile(rf"(?i) ?{_MARK}(?:{_DOT}){_MARK} ?| (?:{_DOT}) ")
_BEFORE: Final = re.compile(rf"(?i)[A-Za-z0-9]{{1,32}}(?:{_POINT}[A-Za-z0-9]{{1,32}}){{1,4}}\Z")
_MARKS: Final = 2
"""How many marks a sign may have before the one at which its gate opens."""
_REACH: Final = 160
_ESCAPED: Final = re.compile(r"\\(?<!\\\\)\\*+([.@\-_+:()#, ])")


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+\-]{0,63}\Z")
_LETTER: Final = re.compile(r"[A-Za-z]")
_TELLING: Final = re.compile(r"[A-Za-z0-9][._+\-][A-Za-z0-9]|[0-9]{2}")
_INVITED: Final = re.compile(
    r"(?i)(?:e-?mails?|mail|correo|courriel|contact|address|write|reach|reply|cc|bcc)"
    r"(?:[ ](?:is|me|us|him|her|to|at|address|them|was|an|a)){0,3}(?: to|[:=-])? ?\Z"
)
"""What stands before an address, but not before the name of a place."""
_UNNAMED: Final = frozenset(
    {
        *(
            "me",
            "us",
            "him",
            "her",
            "them",
            "it",
            "you",
            "we",
            "i",
            "here",
            "there",
            "live",
            "found",
            "is",
            "are",
        ),
        *(
            "was",
            "out",
            "back",
            "service",
            "page",
            "site",
            "server",
            "address",
            "team",
            "form",
            "desk",
            "again",
        ),
    }
)


def spelled(text: str) -> Iterator[Substitution]:
    """Yield the words that stand for the signs of an address, and the signs that are escaped."""
    read = 0
    for sign in _signs(text):
        if sign.start() < read or (host := _HOST.match(text, sign.end())) is None:
            continue
        dots = list(_WORD.finditer(text, *host.span()))
        if not dots and (
            sign.group() == "@" or (sign.group().strip(" ").isalpha() and not _names_someone(text, sign))
        ):
            # An address as usual, or "meet us at example.com".
            continue
        read = sign.end()
        if sign.group() != "@":
            yield Substitution(*sign.span(), "@", SPELLED)
        for dot in dots:
            yield Substitution(*dot.span(), ".", SPELLED)
        before = text[max(0, sign.start() - _REACH) : sign.start()]
        if local := _BEFORE.search(before):
            offset = sign.start() - len(before)
            for dot in _WORD.finditer(before, local.start()):
                yield Substitution(offset + dot.start(), offset + dot.end(), ".", SPELLED)
    if "\\" in text:
        for escaped in _ESCAPED.finditer(text):
            yield Substitution(*escaped.span(), escaped[1], "escapes")


def _signs(text: str) -> Iterator[re.Match[str]]:
    """Yield what may be a sign, where there is a host at all: the gate is much quicker than the expression.

    Signs may overlap, and one may come twice: not each has a host, and the next one is not to be missed for it.
    """
    data, after = text.encode("ascii", "replace"), 0
    if not gates.passed(data, gates.ADDRESSES):
        return
    while (place := gates.place(data, gates.AT_SIGNS, after)) >= 0:
        for start in range(max(0, place - _MARKS), place + 1):
            if sign := _SIGN.match(text, start):
                yield sign
        after = place + 1


def _names_someone(text: str, sign: re.Match[str]) -> bool:
    """Return whether the word before "at" is written as the beginning of an address, or follows its announcement."""
    before = text[max(0, sign.start() - _REACH) : sign.start()]
    name = _NAME.search(before.rsplit(" ", 1)[-1])
    if name is None or name.group().lower() in _UNNAMED or not _LETTER.search(name.group()):
        return False
    return (
        _TELLING.search(name.group()) is not None or _INVITED.search(before[: -len(name.group())]) is not None
    )
