"""Convert MCP tool definitions for rankers, and estimate their cost in tokens."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.contracts.engines import ToolCandidate
from app.core.strictjson import dumps

CHARACTERS_PER_TOKEN: Final = 4.23
"""Characters of a definition's JSON per token, measured on 644 public MCP tools."""

_MAX_DESCRIPTION: Final = 4_000
_MAX_PARAMETERS: Final = 64
_MAX_PARAMETER: Final = 300


def candidate_of(definition: Mapping[str, Any]) -> ToolCandidate:
    """Return the parts of ``definition`` for a ranker, bounded; members with other types than MCP's are ignored."""
    annotations = definition.get("annotations")
    titles = (definition.get("title"), annotations.get("title") if isinstance(annotations, Mapping) else None)
    title = next((text for text in titles if isinstance(text, str)), "")
    description = definition.get("description")
    text = f"{title}. " if title else ""
    text += description if isinstance(description, str) else ""
    return ToolCandidate(str(definition["name"]), text[:_MAX_DESCRIPTION], _parameters(definition))


def tokens_of(definition: Mapping[str, Any]) -> int:
    """Estimate how many tokens ``definition`` takes in a model's context."""
    return round(len(dumps(definition).decode()) / CHARACTERS_PER_TOKEN)


def _parameters(definition: Mapping[str, Any]) -> tuple[str, ...]:
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ()
    parameters = []
    for name in list(properties)[:_MAX_PARAMETERS]:
        description = properties[name].get("description") if isinstance(properties[name], Mapping) else None
        parameters.append(
            f"{name} {description if isinstance(description, str) else ''}"[:_MAX_PARAMETER].strip()
        )
    return tuple(parameters)
