"""Find the parts of an answer: fenced blocks of code with their language, inline code, and the prose between."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^[ \t]{0,12}(?:> ?)?(`{3,}|~{3,})[ \t]*([^\s`{]*)[^\n`]*$", re.MULTILINE)
_INLINE: Final = re.compile(r"`[^`\n]{1,300}`")


@dataclass(frozen=True, slots=True)
class Block:
    """Fenced code: its language in lower case (empty: none named) and the start and end of its content."""

    language: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of an answer; in ``without_blocks`` fenced code is blanked out, in ``masked`` all code."""

    text: str
    blocks: tuple[Block, ...]
    inline: tuple[tuple[int, int], ...]
    without_blocks: str
    masked: str

    @classmethod
    def of(cls, text: str) -> "Layout":
        """Read ``text``; a fence that is never closed ends with the text."""
        blocks: list[Block] = []
        opened: tuple[str, str, int, int] | None = None
        covered: list[tuple[int, int]] = []
        for match in _FENCE.finditer(text):
            mark, language = match[1], match[2].lower()
            if opened is None:
                opened = (mark, language, match.start(), min(len(text), match.end() + 1))
            elif mark[0] == opened[0][0] and len(mark) >= len(opened[0]) and not language:
                blocks.append(Block(opened[1], opened[3], max(opened[3], match.start())))
                covered.append((opened[2], match.end()))
                opened = None
        if opened is not None:
            blocks.append(Block(opened[1], opened[3], len(text)))
            covered.append((opened[2], len(text)))
        without = blanked(text, covered)
        inline = tuple(match.span() for match in _INLINE.finditer(without))
        return cls(text, tuple(blocks), inline, without, blanked(without, inline))


def blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return ``text`` with spaces for the characters of ``spans``, which are sorted; line breaks stay."""
    pieces = []
    position = 0
    for begin, end in spans:
        start = max(begin, position)
        gap = "".join("\n" if char == "\n" else " " for char in text[start:end])
        pieces += [text[position:start], gap]
        position = max(position, end)
    return "".join([*pieces, text[position:]])
