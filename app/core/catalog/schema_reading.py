"""Read the JSON schemas of foreign servers: resolve references and check the bounds of values.

Their patterns are never evaluated, and depth is bounded.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_DEPTH: Final = 8
MAX_TEXT: Final = 64
MAX_MAGNITUDE: Final = 1e15
"""Numbers of this magnitude or more are treated as unknown."""

RANGE: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_MAX_SHOWN: Final = 20
_MAX_NAMED: Final = 64
_ANNOTATIONS: Final = frozenset(
    ("description", "title", "default", "examples", "example", "deprecated", "readOnly", "writeOnly")
)
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
Schema = Mapping[str, Any]


def resolved(root: Schema, schema: Any) -> Schema | None:
    """Resolve the references of a schema within the same document; return None if that is impossible."""
    for _ in range(MAX_DEPTH):
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return None
        reference = schema.get("$ref")
        if reference is None:
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        target = _follow_reference(root, reference)
        if not isinstance(target, Mapping):
            return None
        if not set(beside) <= _ANNOTATIONS and set(beside) & set(target):
            return None
        schema = {**target, **beside}
    return None


def required_names(schema: Any) -> list[str]:
    """Return the names of the required arguments."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def constraints(schema: Any) -> dict[str, str]:
    """Describe in words what each bounded argument must be, by name; leave out arguments without bounds."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return {}
    descriptions: dict[str, str] = {}
    for name, property_schema in list(schema["properties"].items())[:_MAX_NAMED]:
        target = resolved(schema, property_schema)
        description = _describe(target) if target is not None else ""
        if description:
            descriptions[str(name)] = description
    return descriptions


def is_a(value: Any, kind: Any) -> bool:
    """Return whether a value has a JSON type."""
    if kind in ("integer", "number"):
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return numeric and (kind == "number" or isinstance(value, int) or value.is_integer())
    return isinstance(kind, str) and kind in _KINDS and isinstance(value, _KINDS[kind])


def within(schema: Schema, count: int, least: str, most: str) -> bool:
    """Return whether a size lies between the values of two keywords of a schema."""
    low, high = schema.get(least, 0), schema.get(most, count)
    return bool(is_a(low, "number") and is_a(high, "number") and low <= count <= high)


def number_bounds(schema: Schema) -> dict[str, float] | None:
    """Return the bounds of a number, or None if one of them is no number or too large."""
    bounds = {word: schema[word] for word in RANGE if word in schema}
    usable = all(is_a(bound, "number") and abs(bound) < MAX_MAGNITUDE for bound in bounds.values())
    return bounds if usable else None


def in_range(schema: Schema, value: float) -> bool:
    """Return whether a number is within the bounds of a schema."""
    bounds = number_bounds(schema)
    if bounds is None or abs(value) >= MAX_MAGNITUDE:
        return False
    step = bounds.get("multipleOf", 0)
    if "multipleOf" in bounds and (step <= 0 or (value / step) != int(value / step)):
        return False
    above = (
        bounds.get("exclusiveMinimum", -MAX_MAGNITUDE) < value < bounds.get("exclusiveMaximum", MAX_MAGNITUDE)
    )
    return above and bounds.get("minimum", -MAX_MAGNITUDE) <= value <= bounds.get("maximum", MAX_MAGNITUDE)


def unique(schema: Schema, values: Sequence[Any]) -> bool:
    """Return whether all values differ, or the schema does not require that."""
    spellings = {json.dumps(value, sort_keys=True, default=str) for value in values}
    return not schema.get("uniqueItems") or len(spellings) == len(values)


def _follow_reference(root: Schema, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node


def _describe(schema: Schema) -> str:
    """Describe the bounds of one argument in words; empty if it has none."""
    if "const" in schema:
        return f"must be {_as_json(schema['const'])}"
    if isinstance(schema.get("enum"), list):
        named = ", ".join(_as_json(value) for value in schema["enum"][:_MAX_SHOWN])
        more = ", …" if len(schema["enum"]) > _MAX_SHOWN else ""
        return f"must be one of {named}{more}"
    phrases = [
        f"{words} {schema[word]}{unit}"
        for word, words, unit in _BOUNDS
        if is_a(schema.get(word), "number") and abs(schema[word]) < MAX_MAGNITUDE
    ]
    kind = schema.get("type")
    if isinstance(schema.get("pattern"), str):
        phrases.append("matching the pattern of its schema")
    if isinstance(schema.get("format"), str):
        phrases.append(f"in the format {schema['format'][:MAX_TEXT]}")
    if not phrases:
        return ""
    article = "an" if kind in ("integer", "array", "object") else "a"
    has_type = isinstance(kind, str) and kind in _KINDS
    return ", ".join([f"must be {article} {kind}" if has_type else "must be", *phrases])


_BOUNDS: Final = (
    ("minimum", "at least", ""),
    ("exclusiveMinimum", "greater than", ""),
    ("maximum", "at most", ""),
    ("exclusiveMaximum", "less than", ""),
    ("multipleOf", "a multiple of", ""),
    ("minLength", "at least", " characters"),
    ("maxLength", "at most", " characters"),
    ("minItems", "at least", " items"),
    ("maxItems", "at most", " items"),
)


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
