r"""Tell quickly whether a plain text can hold what a decoder reads: one pass without backtracking for each of them.

A gate may open for nothing; it must never stay closed where its decoder finds something, which a property test holds.
Gates read ASCII with ``?`` for every other character, which may be a blank, a dash or a letter.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import Any, Final

_AT: Final = r"at|\?t|arobase|arobas|arroba|chiocciola|klammeraffe|apenstaartje|kukac|snabel|aet"
_DOT: Final = "dot|punkt|point|punto|ponto|punt|period"
_JOINS: Final = r"[ _\-#*|~=^]"
_OF_RUN: Final = r"[A-Za-z0-9+/_\-]"
_ODD: Final = (
    r"[A-Za-z0-9+/_\-]*(?:[A-Za-z][A-Za-z0-9+/_\-]*[0-9]|[0-9][A-Za-z0-9+/_\-]*[A-Za-z]"
    r"|[a-z][A-Za-z0-9+/_\-]*[A-Z]|[A-Za-z0-9+/_\-][A-Z][A-Za-z0-9+/_\-]*[a-z])[A-Za-z0-9+/_\-]*"
)
_TOKEN: Final = rf"(?:{_ODD}|{_OF_RUN})"
_GAP: Final = r"[ \t\r\n][^A-Za-z0-9+/_\-]{0,2}"


_SIGNS: Final = r"[?\s\x0b\x1c-\x1f\"'`,;:/|_*+.\\\-~=#&<>()\[\]{}]"

CONTROLS: Final = r"[\x00-\x08\x0e-\x1f\x7f]|\^\["
QUOTED_PRINTABLE: Final = (
    # What mail programs escape; small numbers (``status=200``) are none.
    r"=\r?\n|=(?:[A-F][0-9A-F]|[0-9][A-F]|[2-9][0-9]{1,5}[A-Za-z_.@=?\-]|[0-9]{7}|[01][0-9]=)|[0-9]=[01][0-9]"
)
ESCAPES: Final = (
    rf"%[0-9A-Fa-fu]|&(?:#|[A-Za-z][A-Za-z0-9]{{1,30}};)|\\|{QUOTED_PRINTABLE}"
    rf"|(?i:[\[({{<] ?(?:@|\.|{_AT}|a(?: commercial)?|{_DOT}) ?[\])}}>])"
    r"| AT | @ |[0-9] (?:- )?[0-9] (?:- )?[0-9] "
)
LOUD: Final = r"[A-Za-z0-9_+.?\-] AT [A-Za-z0-9_?\-]+(?: DOT |\.)"
SINGLY: Final = r"[0-9](?: (?:- )?[0-9]){8}"
LETTERS: Final = "(?:[^ ] ){5}"
NAMED: Final = r"[Uu]\+[0-9A-Fa-f]{4}"
CODES: Final = r"(?:[0-9]{2,3}[, ][?\s\x0b\x1c-\x1f]{0,4}){7}"
PAIRS: Final = "|".join(f"(?:[0-9A-Fa-f]{{2}}{sign}){{7}}[0-9A-Fa-f]{{2}}" for sign in " :-")
CODEPOINTS: Final = (
    r"[Uu]\+|u00|0[xX][0-9A-Fa-f]{2}|(?:x[0-9A-Fa-f]{2}){5}|\\|(?:[0-9A-Fa-f]{2}[ :\-]){7}"
    r"|(?:[0-9]{2,3}[, ][?\s]{0,4}){7}"
)
_BEGIN: Final = r"(?:\A|[^A-Za-z0-9+/_\-])"
_HEX_BEGIN: Final = r"(?:\A|[^0-9A-Fa-f])"
_HEX: Final = "[0-9A-Fa-f]"
_TEXT_BYTE: Final = rf"(?:[2-7]{_HEX}|0[09AaDd])"
_NEXT_BYTE: Final = rf"[89ABab]{_HEX}"
_UTF_8: Final = (
    rf"(?:[CcDd]{_HEX}{_NEXT_BYTE}|[Ee]{_HEX}(?:{_NEXT_BYTE}){{2}}|[Ff]{_HEX}(?:{_NEXT_BYTE}){{3}})"
)


def _with_capital(size: int) -> list[str]:
    """Return patterns of a run of ``size`` characters or more with a capital, each for one place of the first.

    So a text is in few states at once, as an automaton needs to be quick.
    """
    other = r"[a-z0-9+/_\-]"
    places = [rf"{_BEGIN}{other}{{{before}}}[A-Z]{_OF_RUN}{{{size - 1 - before}}}" for before in range(size)]
    return [*places, rf"{_BEGIN}{other}{{{size},}}[A-Z]"]


RUNS: Final = "|".join(
    (
        # Base64 of text has letters of both cases; with a digit it may be short.
        *(
            rf"[{first}]{_OF_RUN}*[{second}]{_OF_RUN}*[{third}]"
            for first, second, third in permutations(("a-z", "A-Z", "0-9"))
        ),
        *_with_capital(14),
        *(rf"{run}{_OF_RUN}*=" for run in _with_capital(11)),
        rf"[A-Za-z]{_OF_RUN}*\+|\+{_OF_RUN}*[A-Za-z]",
        # Lines of equal width.
        rf"{_OF_RUN}{{16}}=*[\r\n\\]",
        # Hexadecimal: pairs from the beginning of a run, some in a row of which are text; random ones seldom are.
        rf"{_HEX_BEGIN}(?:{_HEX}{{2}})*(?:{_TEXT_BYTE}{{4}}|{_UTF_8}(?:{_TEXT_BYTE}|{_UTF_8}))",
    )
)
MIXED: Final = rf"[A-Za-z]{_OF_RUN}*[0-9]|[0-9]{_OF_RUN}*[A-Za-z]"
"""A letter and a digit in one run: most of what opens `RUNS`. Where there are identifiers it opens at once, while an
automaton as large as that of `RUNS` has to be built anew for nearly every text."""
SPACED: Final = (
    rf"{_BEGIN}{_TOKEN}{_GAP}(?:{_OF_RUN}+{_GAP})?{_TOKEN}{_GAP}(?:{_OF_RUN}+{_GAP})?{_TOKEN}"
    r"(?:[^A-Za-z0-9+/_\-]|\z)"
)
ENCODED: Final = f"{RUNS}|{SPACED}"
ADDRESSES: Final = (
    rf"(?i:{_JOINS}(?:{_AT}){_JOINS}{{1,3}}[a-z0-9\-]+(?:\.|{_JOINS}{{1,3}}(?:{_DOT}){_JOINS})"
    rf"|@[a-z0-9\-.]+{_JOINS}{{1,3}}(?:{_DOT}){_JOINS})"
)
AT_SIGNS: Final = rf"(?i:{_JOINS}(?:{_AT}){_JOINS}{{1,3}}|@)[A-Za-z0-9]"
"""Short, so that one place after the other takes no longer than one pass, whatever the text."""
SPELLED: Final = rf"\\|{ADDRESSES}"
_APART: Final = r"(?:\A|[^A-Za-z0-9])"
GROUPS: Final = rf"{_APART}[0-9](?:{_SIGNS}{{0,10}}[0-9]){{8}}"
ACCOUNTS: Final = rf"{_APART}[A-Z]{{2}}[0-9]{{2}}[?\s\x0b\x1c-\x1f_/|*:.,\-]"
NUMBERS: Final = f"{GROUPS}|{ACCOUNTS}"
ADDED: Final = (
    r"[\"'`][?\s\x0b\x1c-\x1f]{0,4}(?:\+|\|\||&|\.\.?|<<)[?\s\x0b\x1c-\x1f]{0,4}[\"'`][A-Za-z0-9_.@+?\-]"
)
QUOTED: Final = r"(?:[\"'`][^\t\r\n][\"'`][?\s\x0b\x1c-\x1f]{0,8},[?\s\x0b\x1c-\x1f]{0,8}){4}"
STRINGS: Final = (
    r"@[ \t]*\r?\n|\n[ \t>]{0,8}@"
    r"|[\"'`][?\s]{0,4}(?:\+|\|\||&|\.|<<)[?\s]{0,4}[\"'`]|[\"'`][^\t\r\n][\"'`][?\s]{0,8},|[\])}] ?[\[({]"
)


_MEMORY: Final = 32 << 20
"""Most bytes that one automaton may take. With the default of 8 MB, JSON full of identifiers fills that of the longest
gates, and RE2 goes on without one, seventy times as slowly; with more, they take about 3 MB each."""


@cache
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - loaded with the first text that is scanned

    options = re2.Options()
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("ascii"), options)


def passed(data: bytes, gate: str) -> bool:
    """Return whether ``gate`` opens for a text in ASCII, or one made so."""
    return _compiled(gate).search(data) is not None


def holds_any(text: str, characters: str) -> bool:
    """Return whether one of a few ``characters`` is in a text: quicker than a pass of any automaton."""
    return any(map(text.__contains__, characters))


def opens(text: str, gate: str) -> bool:
    """Return whether ``gate`` opens for any text; for a decoder that asks before a slow part of its work."""
    return passed(text.encode("ascii", "replace"), gate)


def matches(pattern: re.Pattern[str], text: str, gate: str) -> Iterator[re.Match[str]]:
    """Yield what ``pattern`` matches in ``text``; wherever a match begins, one of ``gate`` begins as well.

    Where ``gate`` begins with `_APART`, a match begins behind that.
    """
    data, end, apart = text.encode("ascii", "replace"), 0, gate.startswith(_APART)
    while (start := place(data, gate, end)) >= 0:
        if apart and not data[start : start + 1].isalnum():
            start += 1
        match = pattern.match(text, start)
        end = start + 1 if match is None else match.end()
        if match is not None:
            yield match


def place(data: bytes, gate: str, start: int = 0) -> int:
    """Return where ``gate`` first opens from ``start`` on, or -1."""
    match = _compiled(gate).search(data, start)
    return -1 if match is None else int(match.start())
