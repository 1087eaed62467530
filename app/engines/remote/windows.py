"""Cut a long text so that an engine with a bounded input reads all of it."""

from collections.abc import Iterator

CHARACTERS = 16_000
OVERLAP = 500
"""Overlap of two windows, so that a sentence cut at the end of one is whole in the next."""


def windows(text: str) -> Iterator[str]:
    """Yield ``text`` in parts of bounded length; an empty text is one part."""
    start = 0
    while True:
        yield text[start : start + CHARACTERS]
        start += CHARACTERS - OVERLAP
        if start + OVERLAP >= len(text):
            return
