"""Putting chunks of a document together again."""

from collections.abc import Sequence
from typing import Final

GAP: Final = "\n\n[\u2026]\n\n"
_LONGEST_OVERLAP: Final = 400


def assembled_text(chunks: Sequence[tuple[int, str]]) -> str:
    """Return chunks, given by ordinal in ascending order, as one text: overlaps once, gaps marked."""
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
    """Return how many characters ``before`` ends with that ``after`` begins with."""
    most = min(len(before), len(after), _LONGEST_OVERLAP)
    return next((size for size in range(most, 0, -1) if before.endswith(after[:size])), 0)
