"""Join chunks of a document into one text."""

from collections.abc import Sequence
from typing import Final

GAP: Final = "\n\n[\u2026]\n\n"
_LONGEST_OVERLAP: Final = 400


def assembled_text(chunks: Sequence[tuple[int, str]]) -> str:
    """Return chunks, in ascending order of ordinal, as one text: overlaps appear once, gaps are marked."""
    text = ""
    last = -2
    for ordinal, chunk in chunks:
        if not text:
            text = chunk
        elif ordinal == last + 1:
            shared = _overlap(text, chunk)
            text += chunk[shared:] if shared else f"\n\n{chunk}"
        else:
            text += GAP + chunk
        last = ordinal
    return text


def _overlap(before: str, after: str) -> int:
    """Return the length of the end of ``before`` that is also the beginning of ``after``."""
    most = min(len(before), len(after), _LONGEST_OVERLAP)
    return next((size for size in range(most, 0, -1) if before.endswith(after[:size])), 0)
