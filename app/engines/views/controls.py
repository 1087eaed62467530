"""Read a text without its control characters and terminal escapes, which no reader sees."""

import re
from collections.abc import Iterator
from typing import Final

from app.engines.views.mapping import Substitution, TextView, apart, respelled

CONTROL: Final = "control"

_BYTES: Final = bytes((*range(9), *range(14, 32), 127))
_PRESENT: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_WRITTEN: Final = re.compile(r"\\(?:x1[bB]|u001[bB]|u\{0{0,4}1[bB]\}|033|e)\[|\^\[\[|\u241b\[")
_SEQUENCE: Final = r"[0-?]{0,64}[ -/]{0,4}[@-~]"
_CONTROLS: Final = re.compile(
    # What a terminal takes as colour and movement, as a title or link, and as the choice of a set of characters.
    rf"(?:\x1b\[|\x9b){_SEQUENCE}|\x1b[\]PX^_][^\x07\x1b\x9c]{{0,512}}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,4}[0-~]|\x1b[0-Z\\^_`-~]"
    r"|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
_SPELLED: Final = re.compile(
    rf"(?:\\(?<!\\\\)\\*+(?:x1[bB]|u001[bB]|u\{{0{{0,4}}1[bB]\}}|033|e)|\^\[|\u241b)\[{_SEQUENCE}"
)


def without_controls(text: str) -> TextView | None:
    """Return the view of ``text`` without control characters; None if there are none."""
    if text.isascii():
        # Many times faster than a search; line breaks make no text printable.
        encoded = text.encode("ascii")
        present = len(encoded.translate(None, _BYTES)) < len(encoded)
    else:
        present = _PRESENT.search(text) is not None
    changes = list(_removed(text, _CONTROLS)) if present else []
    if ("[" in text) and ("\\" in text or "^[[" in text or "\u241b" in text) and _WRITTEN.search(text):
        changes = apart([*changes, *_removed(text, _SPELLED)])
    return respelled(text, changes) if changes else None


def control_places(text: str) -> set[int]:
    """Return the offsets of all control characters of ``text``, and of what belongs to terminal escapes."""
    return {place for match in _CONTROLS.finditer(text) for place in range(*match.span())}


def _removed(text: str, pattern: re.Pattern[str]) -> Iterator[Substitution]:
    return (Substitution(*match.span(), "", CONTROL) for match in pattern.finditer(text))
