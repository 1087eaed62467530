"""Validate arguments against another server's JSON Schema, as far as arguments need it."""

from collections.abc import Mapping
from typing import Any, Final

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_MAX_DEPTH: Final = 16


def schema_fault(schema: Any, value: Any, pointer: str = "", depth: int = 0) -> str | None:
    """Return the JSON pointer of the first value that ``schema`` refuses, or None if it refuses none.

    Checked are type, enum, const, required, properties, additionalProperties and items; the server itself checks all
    other keywords, and values that nest deeper than arguments usually do.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    if not _fits(schema, value):
        return pointer or "/"
    if isinstance(value, dict):
        return _object_fault(schema, value, pointer, depth)
    if isinstance(value, list):
        faults = (
            schema_fault(schema.get("items"), item, f"{pointer}/{number}", depth + 1)
            for number, item in enumerate(value)
        )
        return next((fault for fault in faults if fault is not None), None)
    return None


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    named = schema.get("type")
    kinds = named if isinstance(named, list) else [named]
    expected = [_TYPES[kind] for kind in kinds if isinstance(kind, str) and kind in _TYPES]
    if expected and not any(_has_type(value, kind) for kind in expected):
        return False
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return False
    return "const" not in schema or bool(value == schema["const"])


def _has_type(value: Any, kind: tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (bool in kind or not isinstance(value, bool))


def _object_fault(schema: Mapping[str, Any], value: dict[str, Any], pointer: str, depth: int) -> str | None:
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in value:
            return f"{pointer}/{name}"
    named = schema.get("properties")
    properties: Mapping[str, Any] = named if isinstance(named, Mapping) else {}
    additional = schema.get("additionalProperties", True)
    for name, member in value.items():
        if name not in properties and additional is False:
            return pointer or "/"
        fault = schema_fault(properties.get(name, additional), member, f"{pointer}/{name}", depth + 1)
        if fault is not None:
            return fault
    return None
