"""Clean what servers say to models: definitions and instructions lose escape sequences and hidden or active markup."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.content.sanitizing import sanitized

_TEXTS: Final = frozenset({"description", "title"})
_DATA: Final = frozenset({"const", "default", "enum", "examples", "icons"})
"""Members whose values are data: to change them would change what a tool takes."""

_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Members that map names to schemas: a parameter may be called ``description``."""

LONGEST_INSTRUCTIONS: Final = 8192


def cleaned_definition(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition whose titles and descriptions, at any depth, hold nothing that people do not see."""
    cleaned: dict[str, Any] = _cleaned(definition)
    return cleaned


def cleaned_instructions(text: str) -> str:
    """Return a server's advice to models, cleaned and bounded."""
    return sanitized(text[:LONGEST_INSTRUCTIONS]).text.strip()


def _cleaned(root: Mapping[str, Any]) -> dict[str, Any]:
    """Copy without recursion: a schema may be as deep as the edge allows."""
    result: dict[str, Any] = {}
    waiting: list[tuple[Any, Any, bool]] = [(root, result, False)]
    while waiting:
        source, target, names = waiting.pop()
        members = source.items() if isinstance(source, Mapping) else enumerate(source)
        for key, value in members:
            kept = value
            if isinstance(value, str):
                if not names and key in _TEXTS:
                    kept = sanitized(value).text
            elif isinstance(value, Mapping) and (names or key not in _DATA):
                kept = {}
                waiting.append((value, kept, not names and key in _NAMED))
            elif isinstance(value, list) and (names or key not in _DATA):
                kept = [None] * len(value)
                waiting.append((value, kept, False))
            target[key] = kept
    return result
