"""What a caller must know about the languages of a text."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

LANGUAGE = "en"
"""The language of the name tagger."""

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_OTHER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_DEGRADED = "names, places and organizations may be missed; everything else is found in every language."
_FOREIGN_LEAST = 20
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


def warnings_for(texts: Sequence[str], language: str) -> list[str]:
    """Return what a caller must know about the languages of ``texts``; never holds content."""
    return warnings((evidence(text, language) for text in texts), language)


def evidence(text: str, language: str) -> dict[str, int]:
    """Return what of a text counts for `warnings`, as numbers that add up over the texts of a context.

    It is remembered beside the findings, so it must depend on the text and the language alone and hold no content.
    """
    if language.lower() != "auto" or text.isascii():
        return {}
    return {"latin": len(_LATIN.findall(text)), "other": len(_OTHER.findall(text))}


def warnings(found: Iterable[Mapping[str, int]], language: str) -> list[str]:
    """Return what a caller must know, from the `evidence` of all texts; runs in the server, so imports stay light."""
    code = language.lower()
    if code != "auto":
        if not _CODE.fullmatch(language):
            return [f"The language is no code; {_DEGRADED}"]
        return [] if re.split("[-_]", code)[0] == LANGUAGE else [f"No name tagger for '{code}': {_DEGRADED}"]
    total: Counter[str] = Counter()
    for one in found:
        total.update(one)
    if total["other"] >= _FOREIGN_LEAST and total["other"] * 4 > total["latin"]:
        return [f"Part of the text is in a script that the name tagger does not know: {_DEGRADED}"]
    return []
