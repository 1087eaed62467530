"""What a ranker reads of an MCP tool definition, and what the definition costs a model."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.contracts.engines import ToolCandidate
from app.core.strictjson import dumps

CHARACTERS_PER_TOKEN: Final = 4.23
"""Measured on 644 public MCP tools: how many characters of a definition's JSON make one token."""

_DESCRIPTION: Final = 4_000
_PARAMETERS: Final = 64
_PARAMETER: Final = 300


def candidate_of(definition: Mapping[str, Any]) -> ToolCandidate:
    """Return what a ranker sees of ``definition``, bounded; members of other types than MCP's count as absent."""
    annotations = definition.get("annotations")
    titles = (definition.get("title"), annotations.get("title") if isinstance(annotations, Mapping) else None)
    title = next((one for one in titles if isinstance(one, str)), "")
    described = definition.get("description")
    text = f"{title}. " if title else ""
    text += described if isinstance(described, str) else ""
    return ToolCandidate(str(definition["name"]), text[:_DESCRIPTION], _parameters(definition))


def tokens_of(definition: Mapping[str, Any]) -> int:
    """Return about how many tokens ``definition`` takes in a model's context."""
    return round(len(dumps(definition).decode()) / CHARACTERS_PER_TOKEN)


def _parameters(definition: Mapping[str, Any]) -> tuple[str, ...]:
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ()
    found = []
    for name in list(properties)[:_PARAMETERS]:
        described = properties[name].get("description") if isinstance(properties[name], Mapping) else None
        found.append(f"{name} {described if isinstance(described, str) else ''}"[:_PARAMETER].strip())
    return tuple(found)
