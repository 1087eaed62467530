# ruff: noqa: RUF001 - quotes and dashes as they occur in texts
"""Find people where the structure of a text says so: initials, owners in code, speakers, signatures, lists of names.

A tagger reads the words around a name; here there are none, or they say little. The lists of names that come with the
tagger decide what structure alone leaves open.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""

Place = tuple[int, int]

_NAME: Final = r"[^\W\d_a-z][^\W\d_]{1,30}(?:['’\-][^\W\d_]{1,30}){0,2}"
_INITIALS: Final = re.compile(r"[A-Z]\.(?<![\w.]..)(?:[ \-]?[A-Z]\.){0,2}(?!\w\w?\.)")
_AFTER_INITIALS: Final = re.compile(rf" ?({_NAME})(?![\w@])")
_BEFORE_INITIALS: Final = re.compile(rf"(?<![\w@])({_NAME}),? \Z")
_MARKS: Final = ("TODO(", "FIXME(", "HACK(", "XXX(", "BUG(")
_OWNER: Final = re.compile(r"\b(?:TODO|FIXME|HACK|XXX|BUG)\(@?([^\W\d_]{2,30}(?:[.\-][^\W\d_]{2,30})?)\)")
_TRAILER: Final = re.compile(
    rf"(?:(?:Reviewed|Signed-off|Co-authored|Acked|Tested|Reported|Suggested)-by:|@author)"
    rf" +({_NAME}(?: (?:[A-Z]\. )?{_NAME}){{0,3}})"
)
_CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?"
_DAY: Final = r"(?:\d{1,4}[./\-]\d{1,2}[./\-]\d{1,4},? )?"
_SPEAKER: Final = re.compile(
    rf"^[ \t>*\-]{{0,4}}(\[?{_DAY}{_CLOCK}\]?[ \-–]{{1,3}})?({_NAME}(?: {_NAME})?)"
    rf"( \({_CLOCK}\))?\*{{0,2}}:\*{{0,2}}[ \t]",
    re.MULTILINE,
)
_HEADER: Final = re.compile(
    rf"^(?:({_NAME}(?: {_NAME})?)[ \t]{{1,3}}\[?{_CLOCK}\]?[ \t]*$|<({_NAME})>[ \t])", re.MULTILINE
)
"""The line above what somebody writes in a chat, with the time; and a nickname before it."""

_NICKNAME: Final = re.compile(r"^<[@+%~&]?([^\W\d_]{2,20})>[ \t]+(?=[^\s<])", re.MULTILINE)
"""A nickname in small letters, which is a tag where the text closes tags."""

_BARE_INITIALS: Final = re.compile(rf"(?<![\w@])({_NAME}) [A-Z]{{1,2}}(?=[,.;)](?:\s|\Z))")
"""A last name with initials that no dot follows, as references write it."""

_LAST_LINES: Final = 160
_LONGEST_CLOSING: Final = 40
_SIGNATURE: Final = re.compile(rf"[ \t]*(?:-{{1,3}}|[~—–/])?[ \t]*({_NAME})[ \t.]*")
_CLOSING_TEXT: Final = (
    "best bests cheers thanks thank thx tks br regards sincerely yours love greetings faithfully xx x xo kind warmly ta"
    " cordially gruß grüße cordialement saludos saluti abraços groeten hilsen hälsningar pozdravem pozdrawiam terveisin"
)
_CLOSING: Final = frozenset(_CLOSING_TEXT.split())
_OFFICES_TEXT: Final = (
    "accounting accounts admin administration billing care customer editor hr it legal management marketing office"
    " operations reception sales security service sincerely staff support team thanks regards cheers"
)
_OFFICES: Final = frozenset(_OFFICES_TEXT.split())
"""Words that sign a text and are nobody's name."""

_TOPICS_TEXT: Final = (
    "api asap cleanup cpu deprecated docs gpu hack later lint memory migration none nobody perf performance refactor"
    " release remove security speed style test tests todo typing unknown urgent ux ui wip"
)
_TOPICS: Final = frozenset(_TOPICS_TEXT.split())
"""Words that stand where the owner of a remark in code does, and name a topic or a time."""

_CONJUNCTION: Final = re.compile(rf",? (?:and|or|nor|&) (?=[A-Z\u00c0-\uffff])({_NAME})(?![\w@]| {_NAME})")
_ROW: Final = re.compile(rf"(?<![\w@])(?:{_NAME}, ){{1,6}}{_NAME}\Z")
_ROW_REACH: Final = 160
_SINGLE: Final = re.compile(_NAME)
_LEAST_LISTED: Final = 2
_WORD: Final = re.compile(r"[^\W\d_]+")
_NEXT: Final = re.compile(
    rf"(?:, (?:and |or )?| (?:and|or|nor|&) |/)({_NAME})(?![\w@]|['’]\w{{2}}|[ ]{_NAME})"
)
_BEFORE: Final = re.compile(rf"(?<![\w@])(?<![A-Z]\. )({_NAME})(?:, (?:and |or )?| (?:and|or|nor|&) |/)\Z")
_BEFORE_REACH: Final = 48
_FIRST: Final = re.compile(rf"(?<=[\w,] )({_NAME}) \Z")
"""A word in capitals inside a sentence, right before another."""

_TITLES_TEXT: Final = "mr mrs ms dr prof sir justice judge senator captain detective nurse dear hi hello"
_TITLES: Final = frozenset(_TITLES_TEXT.split())


def structured_people(text: str, people: Iterable[Place], kinds: Kinds) -> Iterator[Place]:
    """Yield the places of people in ``text`` that its structure shows; ``people`` are those that a tagger found."""
    yield from _with_initials(text, kinds)
    yield from _with_bare_initials(text, kinds)
    yield from _owners(text, kinds)
    if "<" in text:
        yield from _nicknames(text, kinds)
    if ":" in text:
        yield from _speakers(text, kinds)
    yield from _signature(text, kinds)
    places = set(people)
    for match in _CONJUNCTION.finditer(text):
        row = _ROW.search(text, max(0, match.start() - _ROW_REACH), match.start())
        places.update(enumerated := [] if row is None else _enumerated(text, row.start(), match.end(), kinds))
        yield from enumerated
    for place in sorted(places):
        yield from _listed(text, place, places, kinds)


def _with_initials(text: str, kinds: Kinds) -> Iterator[Place]:
    """Yield known last names with the initials before or behind them, and any name before a comma and initials."""
    for match in _INITIALS.finditer(text):
        start, end = match.span()
        if (last := _AFTER_INITIALS.match(text, end)) and _is_listed(last[1], kinds):
            yield start, last.end()
        elif (last := _BEFORE_INITIALS.search(text, max(0, start - _BEFORE_REACH), start)) and (
            _may_be_last if "," in last[0] else _is_listed
        )(last[1], kinds):
            yield last.start(), end


def _with_bare_initials(text: str, kinds: Kinds) -> Iterator[Place]:
    """Yield last names that no other list holds, with the bare initials behind them."""
    for match in _BARE_INITIALS.finditer(text):
        lists = set(kinds(match[1].lower()))
        if "l" in lists and not lists & set("cosw") and not match[1].isupper():
            yield match.span()


def _nicknames(text: str, kinds: Kinds) -> Iterator[Place]:
    """Yield the nicknames before the lines of a chat, of which there are two at least."""
    names = [match for match in _NICKNAME.finditer(text) if "w" not in kinds(match[1].lower())]
    if len(names) > 1 and "</" not in text:
        yield from (name.span(1) for name in names)


def _enumerated(text: str, start: int, end: int, kinds: Kinds) -> list[Place]:
    """Return the places of last names in a row of capitalized words; none if one of them is something else."""
    names = list(_SINGLE.finditer(text, start, end))
    if _follows_name(text, start, kinds):
        names.pop(0)
    listed = sum("l" in kinds(name[0].lower()) for name in names)
    if listed < _LEAST_LISTED or any(set("cosw") & set(kinds(name[0].lower())) for name in names):
        return []
    return [name.span() for name in names]


def _owners(text: str, kinds: Kinds) -> Iterator[Place]:
    for match in _OWNER.finditer(text) if any(mark in text for mark in _MARKS) else ():
        owner = match[1].lower()
        if owner not in _TOPICS and ("f" in kinds(owner) or "w" not in kinds(owner)):
            yield match.span(1)
    for match in _TRAILER.finditer(text) if "-by:" in text or "@author" in text else ():
        yield match.span(1)


def _speakers(text: str, kinds: Kinds) -> Iterator[Place]:
    """Yield the names before what they say: known ones, any beside the time of a chat, others who talk to known ones.

    Others speak twice at least: a label that happens once may as well be a word ("Agent:").
    """
    unknown: dict[str, list[Place]] = {}
    talks = False
    for match in _SPEAKER.finditer(text):
        parts = [kinds(part.lower()) for part in _WORD.findall(match[2])]
        are_listed = all(set("fl") & set(part) and "w" not in part for part in parts)
        may_be = not any(set("wo") & set(part) for part in parts)
        if are_listed or ((match[1] or match[3]) and may_be):
            talks = True
            yield match.span(2)
        elif may_be and not any("c" in part for part in parts):
            unknown.setdefault(match[2], []).append(match.span(2))
    for places in unknown.values() if talks else ():
        if len(places) > 1:
            yield from places
    for match in _HEADER.finditer(text):
        if not any(
            set("wo") & set(kinds(part.lower())) for part in _WORD.findall(match[match.lastindex or 0])
        ):
            yield match.span(match.lastindex or 0)


def _signature(text: str, kinds: Kinds) -> Iterator[Place]:
    """Yield a single word that ends a text on a line of its own: any behind a closing, else a known name."""
    lines = text[-_LAST_LINES:].rstrip().rsplit("\n", 3)
    signature = _SIGNATURE.fullmatch(lines[-1]) if len(lines) > 1 else None
    if signature is None or signature[1].lower() in _OFFICES:
        return
    closing = next((line for line in lines[-2::-1] if line.strip()), "")
    closed = len(closing) <= _LONGEST_CLOSING and _CLOSING.intersection(
        word.lower() for word in _WORD.findall(closing)
    )
    lists = kinds(signature[1].lower())
    if "f" in lists or ("w" not in lists and (closed or "l" in lists)):
        start = len(text.rstrip()) - len(lines[-1])
        yield start + signature.start(1), start + signature.end(1)


def _listed(text: str, place: Place, places: set[Place], kinds: Kinds) -> Iterator[Place]:
    """Yield the single names that are joined with the single name at ``place``, and add them to ``places``."""
    start, end = place
    if " " in text[start:end]:
        return
    while (match := _NEXT.match(text, end)) and _joins(match, places, kinds):
        yield match.span(1)
        end = match.end()
    while match := _BEFORE.search(text, max(0, start - _BEFORE_REACH), start):
        if _follows_name(text, match.start(1), kinds) or not _joins(match, places, kinds):
            return
        yield match.span(1)
        start = match.start(1)


def _follows_name(text: str, start: int, kinds: Kinds) -> bool:
    """Return whether the word at ``start`` ends a name of several words: Pink Floyd, New York."""
    first = _FIRST.search(text, max(0, start - _BEFORE_REACH), start)
    if first is None or first[1].lower() in _TITLES:
        return False
    lists = set(kinds(first[1].lower()))
    return not ("w" in lists and not lists & set("flco"))


def _joins(match: re.Match[str], places: set[Place], kinds: Kinds) -> bool:
    """Return whether a neighbour is new and may be a name."""
    if match.span(1) in places or match[1].lower() in _CLOSING or not _may_be_last(match[1], kinds):
        return False
    places.add(match.span(1))
    return True


def _is_listed(word: str, kinds: Kinds) -> bool:
    """Return whether lists hold a word as a name, and not as a common word."""
    lists = set(kinds(word.lower()))
    return bool(lists & set("fl")) and not lists & set("cw")


def _may_be_last(word: str, kinds: Kinds) -> bool:
    """Return whether a word is a known name, or at least no known word, place, or company."""
    lists = set(kinds(word.lower()))
    return "w" not in lists and ("l" in lists or "f" in lists or not (lists & set("cos") or word.isupper()))
