# ruff: noqa: RUF001 - apostrophes and words as they occur in texts
"""Filter false names of a tagger: identifiers, digests, labels of form fields, cells of several columns."""

import re
from collections.abc import Iterator
from typing import Final

_COLUMNS: Final = re.compile(r"[ \u00a0]{3,}|\t+|(?:[ \t]*\r?\n){2,}")
"""Separators of cells and paragraphs, which never separate the parts of a name."""

_DIGEST: Final = re.compile(r"[0-9a-f]{6,}|(?=[^\d]*\d)[\w\-]+")
_CAPITALS: Final = re.compile(r"[A-Z]+")
_CODE_PART: Final = re.compile(r"[A-Z]{1,3}")
_BEFORE_PART: Final = re.compile(r"\d[\-./]\Z")
_AFTER_PART: Final = re.compile(r"[\-./]\d")
"""What joins a few capitals to the digits of an article's or a case's number: PW-9508-TJ."""
_NUMBERED: Final = re.compile(
    r"[A-Z]{1,4}[\-#]?\d{3,}[\w\-]*|\d{7,}|[0-9a-f]*[a-f]\d[0-9a-f]+", re.IGNORECASE
)
_WORD_OF_PLACE: Final = re.compile(
    r"(?=[^\d]*[^\W\d_]{3})[^\W\d_](?:[^\W\d_]|[.'’\-](?=\w))*(?:\d{1,4}[a-z]?)?\.?|[^\x00-\u02ff].*"
)
_POST_CODE: Final = re.compile(r"[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]\d[A-Z] \d[A-Z]\d|\d{4} [A-Z]{2}")
_BREAKS: Final = re.compile(r"[\s,;|\"'()\[\]{}:/=]+")
_FORM_WORDS_TEXT: Final = """
    address adresse anschrift apellidos ausweis birth birthdate cognome correo courriel customer date
    dirección dob d.o.b duda e-mail email endereço fax firma firstname geburtsdatum hosp hospital id
    indirizzo insurance kunde lastname mail medicare mobile mrn nachname naam nom nombre nome nhs
    passport patient phone policy prénom signature ssn steuer steuer-id straße surname tel telefon
    telefono teléfono telefone téléphone ticket user username visa vorname zip
"""
_FORM_WORDS: Final = frozenset(_FORM_WORDS_TEXT.split())


_HEADS_TEXT: Final = """
    address age amount city club company country customer date days department doctor email goals grade guest id item
    manager name nights owner paid patient phone player position price product role room score site start state status
    team title total type value when
"""
_HEADS: Final = frozenset(_HEADS_TEXT.split())
"""Usual heads of columns; a lone word beside one of them in the first line of a table is a head, too."""

_CELLS: Final = re.compile(r"\t|[,;|]")
_LONGEST_ROW: Final = 400


def plausible_parts(text: str, start: int, end: int, label: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of a tagger's finding ``text[start:end]`` that are plausible for ``label``."""
    if label == "ADDRESS":
        if _is_place(text[start:end]):
            yield start, end
    elif label == "PERSON":
        done = start
        for gap in _COLUMNS.finditer(text, start, end):
            if _can_be_person(text, done, gap.start()):
                yield done, gap.start()
            done = gap.end()
        if _can_be_person(text, done, end):
            yield done, end
    else:
        yield start, end


def _can_be_person(text: str, start: int, end: int) -> bool:
    """Return whether a piece is neither a form label, nor a digest, nor part of a program's identifier."""
    name = text[start:end]
    before, after = text[max(0, start - 1) : start], text[end : end + 2]
    if not name.strip() or (after[:1].isdigit() and _CAPITALS.fullmatch(name.split()[-1])):
        return False
    if any(character.isspace() for character in name):
        return True
    if name.lower() in _FORM_WORDS or _DIGEST.fullmatch(name) or _is_head(text, start, end):
        return False
    if _CAPITALS.fullmatch(name) and (before.isdigit() or "_" in (before, after[:1])):
        return False
    if _CODE_PART.fullmatch(name) and (
        _BEFORE_PART.search(text, max(0, start - 2), start) or _AFTER_PART.match(text, end)
    ):
        return False
    return after != "::" and not (name.islower() and after[:1] == "(")


def _is_head(text: str, start: int, end: int) -> bool:
    """Return whether a lone word is a cell of a table's first line in which usual heads of columns stand."""
    rows = text[:_LONGEST_ROW].split("\n", 2)
    if end > len(rows[0]) or len(rows) == 1:
        return False
    cells = [cell.strip() for cell in _CELLS.split(rows[0])]
    if len(cells) == 1 or len(_CELLS.findall(rows[1])) != len(cells) - 1:
        return False
    heads = sum(bool(_HEADS.intersection(re.split(r"[\s_]+", cell.lower()))) for cell in cells)
    return text[start:end] in cells and heads > 0


def _is_place(address: str) -> bool:
    """Return whether an address has a word and does not begin with a number of another kind, or is a post code."""
    tokens = [token for token in _BREAKS.split(address) if token]
    if not tokens or _NUMBERED.fullmatch(tokens[0]):
        return _POST_CODE.fullmatch(address) is not None
    return any(map(_WORD_OF_PLACE.fullmatch, tokens)) or _POST_CODE.fullmatch(address) is not None
