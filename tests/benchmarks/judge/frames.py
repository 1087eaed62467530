"""Reads files of frames, and fills their slots by a seeded draw."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

_HEADING: Final = re.compile(r"(?m)^\[(?=(?:(?:ok|bad) )?[\w\- ]+\]$)")
_SLOT: Final = re.compile(r"\{([a-z_]+\d?)\}")
_TRIES: Final = 4

Change = Callable[[str, random.Random], str]


class DrawnText(NamedTuple):
    """A text of a test part; ``kind`` says how it was made, ``bad`` whether it is to be found."""

    kind: str
    bad: bool
    text: str


class Frames(NamedTuple):
    """The frames of each kind, and what may stand in each slot."""

    kinds: Mapping[tuple[bool, str], Sequence[str]]
    slots: Mapping[str, Sequence[str]]

    @classmethod
    @lru_cache(maxsize=4)
    def read(cls, path: Path) -> "Frames":
        """Read a file: a heading ``[ok kind]`` or ``[bad kind]`` before frames, ``[slot]`` before values."""
        kinds: dict[tuple[bool, str], Sequence[str]] = {}
        slots: dict[str, Sequence[str]] = {}
        for part in _HEADING.split(path.read_text(encoding="utf-8"))[1:]:
            heading, *lines = [line.replace("\\n", "\n") for line in part.split("\n") if line]
            label, _, kind = heading.rstrip("]").partition(" ")
            if kind:
                kinds[label == "bad", kind] = lines
            else:
                slots[label] = lines[0].split("¦")
        return cls(kinds, slots)

    def drawn(
        self, kind: str, frames: Sequence[str], each: int, *, bad: bool, change: Change
    ) -> Iterator[DrawnText]:
        """Yield at most ``each`` different texts of ``frames``, in turn, as ``change`` writes them."""
        draw = random.Random(f"judge {kind}")
        texts: dict[str, None] = {}
        for number in range(_TRIES * each):
            text = self._filled(self._filled(frames[number % len(frames)], draw), draw)
            texts.setdefault(change(text.replace("{{", "{").replace("}}", "}"), draw))
            if len(texts) == each:
                break
        yield from (DrawnText(kind, bad, text) for text in texts)

    def every(self, each: int) -> Iterator[DrawnText]:
        """Yield at most ``each`` different texts of every kind."""
        for (bad, kind), frames in self.kinds.items():
            yield from self.drawn(kind, frames, each, bad=bad, change=lambda text, _: text)

    def _filled(self, text: str, draw: random.Random) -> str:
        return _SLOT.sub(lambda slot: draw.choice(self.slots[slot[1]]), text)
