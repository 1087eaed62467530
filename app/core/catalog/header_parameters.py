"""Parameters of tools that clients repeat in HTTP headers (``x-mcp-header``): what a schema declares, and how well.

Source: MCP 2026-07-28, streamable HTTP, custom headers from tool parameters. A header is ``Mcp-Param-`` and the
declared token, so a tool can name no header but its own.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

HEADER_MARK: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_TYPES: Final = frozenset({"boolean", "integer", "string"})
_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DATA: Final = frozenset({"const", "default", "enum", "examples"})

ParameterPath = tuple[str, ...]
"""The names of the members that lead from a tool's arguments to one value."""


class _Place:
    """Where a part of a schema stands: the members that lead there, or that no value stands there for certain."""

    __slots__ = ("member", "parent")

    def __init__(self, parent: "_Place | None", member: str) -> None:
        self.parent, self.member = parent, member

    def path(self) -> ParameterPath:
        members, place = [], self
        while place.parent is not None:
            members.append(place.member)
            place = place.parent
        return tuple(reversed(members))


def declared_headers(schema: Any) -> dict[ParameterPath, str]:
    """Return the header's token by path of each parameter that a valid schema repeats in a header."""
    return {
        place.path(): part[HEADER_MARK]
        for part, place in _parts(schema)
        if place is not None and isinstance(part.get(HEADER_MARK), str)
    }


def declares_headers_wrongly(schema: Any) -> bool:
    """Return whether a schema has a mark that clients must refuse: then it is unclear what goes into which header.

    A mark is valid at a property that is reached through ``properties`` alone, on a string, an integer or a boolean,
    with a token that no other mark of the schema has in any case.
    """
    seen: set[str] = set()
    for part, place in _parts(schema):
        if HEADER_MARK not in part:
            continue
        token, kind = part[HEADER_MARK], part.get("type")
        if place is None or place.parent is None or not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return True
        if not isinstance(kind, str) or kind not in _TYPES or token.lower() in seen:
            return True
        seen.add(token.lower())
    return False


def value_at(arguments: Any, path: ParameterPath) -> Any:
    """Return the value of a parameter, None where the arguments have none."""
    for member in path:
        arguments = arguments.get(member) if isinstance(arguments, Mapping) else None
    return arguments


def _parts(root: Any) -> Iterator[tuple[Mapping[str, Any], _Place | None]]:
    """Yield every part of a JSON Schema that may be a schema, below unknown keywords too, never instance data."""
    waiting: list[tuple[Any, _Place | None]] = [(root, _Place(None, ""))]
    while waiting:
        part, place = waiting.pop()
        if isinstance(part, list):
            waiting.extend((inner, None) for inner in part)
        if not isinstance(part, Mapping):
            continue
        yield part, place
        for keyword, value in part.items():
            if keyword in _MAPS and isinstance(value, Mapping):
                reached = place if keyword == "properties" else None
                waiting.extend(
                    (inner, _Place(reached, member) if reached is not None else None)
                    for member, inner in value.items()
                )
            elif keyword not in _DATA and keyword != HEADER_MARK:
                waiting.append((value, None))
