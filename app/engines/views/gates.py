r"""Tell quickly whether a plain text can hold what a decoder reads: one pass without backtracking for each of them.

A gate may open for nothing; it must never stay closed where its decoder finds something, which a property test holds.
Gates read ASCII alone, so any other text passes all of them.
"""

from functools import cache
from typing import Any, Final

_AT: Final = "at|arobase|arobas|arroba|chiocciola|klammeraffe|apenstaartje|kukac|snabel|aet"
_DOT: Final = "dot|punkt|point|punto|ponto|punt|period"
_JOINS: Final = r"[ _\-#*|~=^]"
_OF_RUN: Final = r"[A-Za-z0-9+/_\-]"
_LEAST_RUN: Final = 11
_ODD: Final = (
    r"(?:[A-Za-z0-9+/_\-]*(?:[A-Za-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z])[A-Za-z0-9+/_\-]*|[A-Za-z0-9+/_\-])"
)
_GAP: Final = r"=*[ \t\r\n][^A-Za-z0-9+/_\-]{0,2}"
_SIGNS: Final = r"[\s\"'`,;:/|_*+.\\\-~=#&<>()\[\]{}]"

ESCAPES: Final = r"[%&\\=\[({<]| AT | @ |[0-9] (?:- )?[0-9] (?:- )?[0-9] "
CODEPOINTS: Final = (
    r"[Uu]\+|u00|0[xX][0-9A-Fa-f]{2}|(?:x[0-9A-Fa-f]{2}){5}|\\|(?:[0-9A-Fa-f]{2}[ :\-]){7}"
    r"|(?:[0-9]{2,3}[, ]\s{0,4}){7}"
)
ENCODED: Final = (
    "|".join(
        f"{_OF_RUN}{{{before}}}[A-Z0-9]{_OF_RUN}{{{_LEAST_RUN - 1 - before}}}" for before in range(_LEAST_RUN)
    )
    + rf"|{_ODD}{_GAP}(?:{_OF_RUN}+{_GAP})?{_ODD}{_GAP}(?:{_OF_RUN}+{_GAP})?{_ODD}"
)
SPELLED: Final = (
    rf"\\|(?i:{_JOINS}(?:{_AT}){_JOINS}{{1,3}}[a-z0-9\-]+(?:\.|{_JOINS}{{1,3}}(?:{_DOT}){_JOINS})"
    rf"|@[a-z0-9\-.]+{_JOINS}{{1,3}}(?:{_DOT}){_JOINS})"
)
PIECES: Final = (
    rf"[0-9]{_SIGNS}{{1,10}}[0-9]|[A-Z]{{2}}[0-9]{{2}}[\s_/|*:.,\-]|@[ \t]*\r?\n|\n[ \t>]{{0,8}}@"
    r"|[\"'`]\s{0,4}(?:\+|\|\||&|\.|<<)\s{0,4}[\"'`]|[\"'`][^\s][\"'`]\s{0,8},|[\])}] ?[\[({]"
)


@cache
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - loaded with the first text that is scanned

    return re2.compile(pattern.encode("ascii"))


def passed(data: bytes, gate: str) -> bool:
    """Return whether ``gate`` opens for a text in ASCII."""
    return _compiled(gate).search(data) is not None
