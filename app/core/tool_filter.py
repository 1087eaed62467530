"""Which tools of a server are exposed: all, some by name, or all but some."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Allows names; patterns with ``*`` are not known here: the filter names tools exactly."""

    names: frozenset[str] | None = None
    negative: bool = False

    @classmethod
    def parse(cls, names: Sequence[str] | None) -> "ToolFilter":
        """Read None (all), [] (none), ["get", "set"] (only these) or ["-delete"] (all but these).

        Mixed signs are a ValueError: what they would mean depends on whom one asks.
        """
        if names is None:
            return cls()
        signs = {name.startswith("-") for name in names}
        if len(signs) > 1:
            raise ValueError("a tool filter is all names or all names with a - in front, not a mixture")
        negative = signs == {True}
        return cls(frozenset(name[1:] if negative else name for name in names), negative)

    def allows(self, name: str) -> bool:
        """Return whether the tool of that name (its server's own) is exposed."""
        return self.names is None or (name in self.names) is not self.negative
