"""Filter the tools that a server exposes: all, some by name, or all but some."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExposedTools:
    """A set of exposed tools by exact name; patterns with ``*`` are not supported."""

    names: frozenset[str] | None = None
    negative: bool = False

    @classmethod
    def parse(cls, names: Sequence[str] | None) -> "ExposedTools":
        """Parse None (all), [] (none), ["get", "set"] (only these) or ["-delete"] (all but these).

        Raise ValueError for mixed signs, whose meaning would be ambiguous.
        """
        if names is None:
            return cls()
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise ValueError("a tool filter must be a list of names")
        signs = {name.startswith("-") for name in names}
        if len(signs) > 1:
            raise ValueError("a tool filter must not mix names with and without a leading -")
        negative = signs == {True}
        return cls(frozenset(name[1:] if negative else name for name in names), negative)

    def allows(self, name: str) -> bool:
        """Return whether the tool with that name (its server's own) is exposed."""
        return self.names is None or (name in self.names) is not self.negative

    def narrowed(self, other: "ExposedTools") -> "ExposedTools":
        """Return the filter that allows what both filters allow."""
        if self.names is None:
            return other
        if other.names is None:
            return self
        if self.negative and other.negative:
            return ExposedTools(self.names | other.names, negative=True)
        chosen, second = (other, self) if self.negative else (self, other)
        return ExposedTools(frozenset(name for name in chosen.names or () if second.allows(name)))

    def spelled(self) -> list[str] | None:
        """Return the form that ``parse`` reads, in alphabetical order."""
        if self.names is None:
            return None
        return sorted(f"-{name}" if self.negative else name for name in self.names)


def parse_filters(text: str) -> dict[str, list[str]]:
    """Parse ``"a:x,y;c:-z"``, tools by server, the form of ``sluice serve --filter``.

    ``a:`` exposes nothing of a. Raise ValueError for a part without a server, a repeated server, or mixed signs.
    """
    names_by_server: dict[str, list[str]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        server, colon, listed = part.partition(":")
        server = server.strip()
        if not colon or not server:
            raise ValueError('a filter must have the form "server:tool,tool;server:-tool"')
        if server in names_by_server:
            raise ValueError("a filter must name each server only once")
        names_by_server[server] = [name.strip() for name in listed.split(",") if name.strip()]
        ExposedTools.parse(names_by_server[server])
    return names_by_server
