"""Patterns with ``*`` for names: linear in the text, with no other special character."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Glob:
    """Matches whole names; ``*`` stands for any number of characters, everything else for itself.

    No regular expressions: patterns come from operators, and matching takes time linear in pattern and text.
    """

    pattern: str
    _pieces: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pieces", tuple(self.pattern.split("*")))

    @property
    def literal(self) -> bool:
        """Return whether the pattern names exactly one thing."""
        return len(self._pieces) == 1

    def matches(self, name: str) -> bool:
        """Return whether the whole of ``name`` fits."""
        if self.literal:
            return name == self.pattern
        first, *middle, last = self._pieces
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        position, end = len(first), len(name) - len(last)
        for piece in middle:
            found = name.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True
