# ruff: noqa: RUF001 - apostrophes as they occur in texts
"""Find last names that a tagger took for organizations or places, by what is said of them.

A last name alone, or a row of them, looks like a company: "Varga, Osei and Lund abstained". What only people do, are
called, or have done to them decides: votes, heirs, marriages, children. What companies do as well counts for names that
a list of last names supports.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""

Place = tuple[int, int]


def _any(words: str) -> str:
    """Return an expression for one of the ``words``; ``_`` joins those of several."""
    return "(?:" + "|".join(word.replace("_", " ") for word in words.split()) + ")"


_NAME: Final = r"[^\W\d_a-z][^\W\d_]{1,30}(?:['’\-][^\W\d_]{2,30}){0,2}"
_REMARK: Final = r"(?: \([^()\n]{1,24}\))?"
_JOINT: Final = r"(?:,? (?:and|or|nor|&) |, (?:Mr|Mrs|Ms|Dr) |, | ?; | ?/ ?)"
_NEXT: Final = re.compile(rf"{_REMARK}{_JOINT}({_NAME})(?![\w@]|\.\w| {_NAME})")
_BACK: Final = re.compile(rf"(?<![\w@])(?<![A-Z]\. )({_NAME}){_REMARK}{_JOINT}\Z")
_SPACED: Final = re.compile(rf"(?<![\w@])({_NAME}) \Z")
_TITLES_TEXT: Final = (
    "messrs mr mrs ms dr prof justice justices judge senator captain detective nurse dear hi hello"
)
_TITLES: Final = frozenset(_TITLES_TEXT.split())
_ROW_END: Final = re.compile(rf"{_REMARK}")
_REACH: Final = 72
_LONGEST_ROW: Final = 12
_LONGEST_ACRONYM: Final = 6
_LEAST_LISTED: Final = 2
"""Known last names in a row of three or more, with which it needs no other words."""

_WORD: Final = re.compile(_NAME)
_KIN: Final = (
    "wife husband widow son sons daughter daughters mother father sister brother children parents lawyer"
)
_DOES: Final = re.compile(
    r" (?:abstained|resigned|retired|testified|apologi[sz]ed|confessed|married|divorced|fainted|smiled|nodded"
    r"|graduated|dissented|pleaded (?:not )?guilty|vot(?:ed?|es) (?:no|yes|against|for|in favou?r)|et al\b"
    r"|(?:is|was|are|were|has been|have been) (?:all |both )?(?:present|absent|pregnant|ill|sick|late|born|married"
    r"|injured|arrested|hired|fired|dismissed|promoted|suspended|elected|interviewed|hospitali[sz]ed|discharged"
    r"|acquitted|convicted|on (?:leave|holiday|vacation|call|duty)|at (?:home|lunch|school))"
    rf"|and (?:his|her|their) {_any(_KIN)})\b"
    rf"|['’]s? {_any(_KIN)}\b"
)
"""What only people do, behind their names."""

_BELONGS: Final = re.compile(
    r" (?:family|families|brothers|sisters|siblings|children|kids|twins|household|heirs|estate|wedding|funeral)\b"
)
_THE: Final = re.compile(r"\b[Tt]he \Z")
_ROLES: Final = _any(
    """
    founders trustees lawyers attorneys heirs witnesses players authors nominees candidates jurors nurses doctors
    inspectors editors reviewers tenants defendants plaintiffs students teachers winners speakers guests attendees
    participants passengers victims suspects scorers substitutes interviewees trainees interns colleagues members
    directors drivers jury crew panel council committee board cast squad goals Present present Absent absent
    """
)
_CALLED: Final = re.compile(
    rf"\b(?i:{_ROLES})(?: (?:are|were|included?|consists? of|today|so far|this (?:year|term|week|month)"
    r"))?(?:,|:| -| –)? ?\(?\Z"
    rf"|\b(?i:{_ROLES}) (?:of|for|on|to|in) [\w ]{{1,24}}(?:,|:| -| –| are| were) ?\Z"
    r"|\bMessrs\.? \Z"
    r"|\b(?i:hir(?:e|ed|ing)|fired|promot(?:e|ed|ing)|married|arrest(?:ed|ing)|interview(?:ed|ing)?|elected"
    r"(?: to [\w ]{1,24}:)?) \Z"
)
"""What only people are called, or have done to them, before their names."""

_MAY_DO: Final = re.compile(
    r" (?:said|says|told|asked|replied|answered|wrote|thinks?|believes?|knew|knows?|wants?|denied|den(?:y|ies)|argued?"
    r"|argues|insist(?:s|ed)|agreed?|agrees|disagreed?|disagrees|refused|admit(?:s|ted)|explain(?:s|ed)|promised|left"
    r"|complain(?:s|ed)|signed|joined|sold|founded|met|will (?:meet|join|attend|speak|share|call)"
    r"|ha(?:s|ve) (?:agreed|signed|left|been))\b"
)
_MAY_BE: Final = re.compile(
    r"\b(?i:thanks? to|thank|invit(?:e|ed)|ask(?:ed)?|tell|told|cc:?|copy|e?mail(?:ed)?|phone|call(?:ed)?|remind|meet"
    r"|met|blam(?:e|ed)|spoke (?:with|to)|talk(?:ed)? (?:with|to)|met with|meeting with|waiting for|according to) \Z"
)
_MAY_ALL_BE: Final = re.compile(
    r"\b(?i:by|neither|either|both|only|between|without|for|to|with|from|are|partners?,?:?|owners?:?) \Z"
)
"""What companies do as well, or have done to them: to a single one, and to several."""


def spoken_of(text: str, others: Iterable[Place], kinds: Kinds) -> Iterator[Place]:
    """Yield the places of last names in ``text`` that stand at or beside ``others``, findings that are not people."""
    done = -1
    for place in sorted(set(others)):
        if place[0] < done or (row := _row(text, place, kinds)) is None:
            continue
        done = _ROW_END.match(text, row[-1][1]).end()  # type: ignore[union-attr]
        names = [text[slice(*name)] for name in row]
        before = text[max(0, row[0][0] - _REACH) : row[0][0]]
        if any(name.isupper() and len(name) <= _LONGEST_ACRONYM for name in names):
            continue
        if _are_people(text, before, done, [set(kinds(name.lower())) for name in names]):
            yield from row


def _row(text: str, place: Place, kinds: Kinds) -> list[Place] | None:
    """Return the single words at ``place`` and joined with it, in order; None where a name has several words."""
    start, end = place
    words = [word.span() for word in _WORD.finditer(text, start, end)]
    if not words or _is_second(text, words[0][0], kinds):
        return None
    row = [words[0]]
    while len(row) < _LONGEST_ROW and (behind := _NEXT.match(text, row[-1][1])):
        row.append(behind.span(1))
    while len(row) < _LONGEST_ROW and (ahead := _BACK.search(text, max(0, row[0][0] - _REACH), row[0][0])):
        if _is_second(text, ahead.start(), kinds):
            break
        row.insert(0, ahead.span(1))
    return row if row[-1][1] >= words[-1][1] else None


def _is_second(text: str, start: int, kinds: Kinds) -> bool:
    """Return whether the word at ``start`` follows another in capitals that may belong to the same name."""
    first = _SPACED.search(text, max(0, start - _REACH), start)
    if first is None or first[1].lower() in _TITLES:
        return False
    lists = kinds(first[1].lower())
    return not ("w" in lists and not set("flco") & set(lists))


def _are_people(text: str, before: str, end: int, lists: list[set[str]]) -> bool:
    """Return whether the words before and from ``end`` say that a row with these ``lists`` is one of people."""
    row = len(lists)
    if any(each & set("ocsw") and not each & set("l") for each in lists):
        return False
    family = _BELONGS.match(text, end) and _THE.search(before)
    if _DOES.match(text, end) or _CALLED.search(before) or family:
        return True
    last = sum("l" in each and not each & set("ow") for each in lists)
    weak = _MAY_DO.match(text, end) or _MAY_BE.search(before) or (row > 1 and _MAY_ALL_BE.search(before))
    if last and weak:
        return True
    several = last >= _LEAST_LISTED and any(each in ({"l"}, {"f", "l"}) for each in lists)
    return several and row > _LEAST_LISTED and not any("o" in each for each in lists)
