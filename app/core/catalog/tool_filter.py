"""Which tools of a server are exposed: all, some by name, or all but some."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExposedTools:
    """Allows names; patterns with ``*`` are not known here: the filter names tools exactly."""

    names: frozenset[str] | None = None
    negative: bool = False

    @classmethod
    def parse(cls, names: Sequence[str] | None) -> "ExposedTools":
        """Read None (all), [] (none), ["get", "set"] (only these) or ["-delete"] (all but these).

        Mixed signs are a ValueError: what they would mean depends on whom one asks.
        """
        if names is None:
            return cls()
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise ValueError("a tool filter is a list of names")
        signs = {name.startswith("-") for name in names}
        if len(signs) > 1:
            raise ValueError("a tool filter is all names or all names with a - in front, not a mixture")
        negative = signs == {True}
        return cls(frozenset(name[1:] if negative else name for name in names), negative)

    def allows(self, name: str) -> bool:
        """Return whether the tool of that name (its server's own) is exposed."""
        return self.names is None or (name in self.names) is not self.negative

    def narrowed(self, other: "ExposedTools") -> "ExposedTools":
        """Return the filter that allows what both allow."""
        if self.names is None:
            return other
        if other.names is None:
            return self
        if self.negative and other.negative:
            return ExposedTools(self.names | other.names, negative=True)
        chosen, second = (other, self) if self.negative else (self, other)
        return ExposedTools(frozenset(name for name in chosen.names or () if second.allows(name)))

    def spelled(self) -> list[str] | None:
        """Return what ``parse`` reads, in alphabetical order."""
        if self.names is None:
            return None
        return sorted(f"-{name}" if self.negative else name for name in self.names)


def parse_filters(text: str) -> dict[str, list[str]]:
    """Read ``"a:x,y;c:-z"``, tools by server, as ``sluice serve --filter`` takes it.

    ``a:`` exposes nothing of a. A part without a server, a server named twice, or mixed signs are a ValueError.
    """
    found: dict[str, list[str]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        server, colon, listed = part.partition(":")
        server = server.strip()
        if not colon or not server:
            raise ValueError('a filter is written "server:tool,tool;server:-tool"')
        if server in found:
            raise ValueError("a filter names each server once")
        found[server] = [name.strip() for name in listed.split(",") if name.strip()]
        ExposedTools.parse(found[server])
    return found
