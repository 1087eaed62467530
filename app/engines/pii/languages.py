"""What a caller must know about the languages of a text."""

import re
from collections.abc import Sequence

from app.engines.pii.nlp import LANGUAGE

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_OTHER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_DEGRADED = "names, places and organizations may be missed; everything else is found in every language."
_FOREIGN_LEAST = 20
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


def warnings_for(texts: Sequence[str], language: str) -> list[str]:
    """Return what a caller must know about the languages of ``texts``; never holds content."""
    code = language.lower()
    if code != "auto":
        if not _CODE.fullmatch(language):
            return [f"The language is no code; {_DEGRADED}"]
        return [] if re.split("[-_]", code)[0] == LANGUAGE else [f"No name tagger for '{code}': {_DEGRADED}"]
    latin = other = 0
    for text in texts:
        if not text.isascii():
            latin += len(_LATIN.findall(text))
            other += len(_OTHER.findall(text))
    if other >= _FOREIGN_LEAST and other * 4 > latin:
        return [f"Part of the text is in a script that the name tagger does not know: {_DEGRADED}"]
    return []
