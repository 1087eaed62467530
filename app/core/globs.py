"""Patterns for names in which ``*`` is the only special character; matching takes linear time."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for whole names; ``*`` matches any number of characters, every other character itself.

    Patterns come from operators, so they are no regular expressions: matching takes time linear in pattern and text.
    """

    pattern: str
    _pieces: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pieces", tuple(self.pattern.split("*")))

    @property
    def literal(self) -> bool:
        """Return whether the pattern matches exactly one name."""
        return len(self._pieces) == 1

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches all of ``name``."""
        if self.literal:
            return name == self.pattern
        first, *middle, last = self._pieces
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        position, end = len(first), len(name) - len(last)
        for piece in middle:
            start = name.find(piece, position, end)
            if start < 0:
                return False
            position = start + len(piece)
        return True
