"""Read the JSON schemas of other people's servers: what they refer to, and what a value must keep.

No pattern of theirs is tried, and depth is bounded.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_DEPTH: Final = 8
MAX_TEXT: Final = 64
SANE: Final = 1e15
"""Numbers beyond are not reckoned with."""

RANGE: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_MAX_SHOWN: Final = 20
_MAX_NAMED: Final = 64
_NOTES: Final = frozenset(
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
    """Return what a schema stands for, through references into the same document; None where that is unknown."""
    for _ in range(MAX_DEPTH):
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return None
        reference = schema.get("$ref")
        if reference is None:
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        target = _target(root, reference)
        if not isinstance(target, Mapping):
            return None
        if not set(beside) <= _NOTES and set(beside) & set(target):
            return None
        schema = {**target, **beside}
    return None


def required_names(schema: Any) -> list[str]:
    """Return the names of the arguments that must be given."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


def constraints(schema: Any) -> dict[str, str]:
    """Return in words what each bounded argument must be, by its name; arguments without bounds are not named."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return {}
    told: dict[str, str] = {}
    for name, one in list(schema["properties"].items())[:_MAX_NAMED]:
        target = resolved(schema, one)
        said = _said(target) if target is not None else ""
        if said:
            told[str(name)] = said
    return told


def is_a(value: Any, kind: Any) -> bool:
    """Return whether a value is of a JSON type."""
    if kind in ("integer", "number"):
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return numeric and (kind == "number" or isinstance(value, int) or value.is_integer())
    return isinstance(kind, str) and kind in _KINDS and isinstance(value, _KINDS[kind])


def within(schema: Schema, count: int, least: str, most: str) -> bool:
    """Return whether a size lies between two words of a schema."""
    low, high = schema.get(least, 0), schema.get(most, count)
    return bool(is_a(low, "number") and is_a(high, "number") and low <= count <= high)


def number_bounds(schema: Schema) -> dict[str, float] | None:
    """Return the bounds of a number, None where one of them is no number that can be reckoned with."""
    given = {word: schema[word] for word in RANGE if word in schema}
    sane = all(is_a(bound, "number") and abs(bound) < SANE for bound in given.values())
    return given if sane else None


def in_range(schema: Schema, value: float) -> bool:
    """Return whether a number keeps the bounds of a schema."""
    bounds = number_bounds(schema)
    if bounds is None or abs(value) >= SANE:
        return False
    step = bounds.get("multipleOf", 0)
    if "multipleOf" in bounds and (step <= 0 or (value / step) != int(value / step)):
        return False
    above = bounds.get("exclusiveMinimum", -SANE) < value < bounds.get("exclusiveMaximum", SANE)
    return above and bounds.get("minimum", -SANE) <= value <= bounds.get("maximum", SANE)


def unique(schema: Schema, values: Sequence[Any]) -> bool:
    """Return whether values differ where a schema wants that."""
    told = {json.dumps(one, sort_keys=True, default=str) for one in values}
    return not schema.get("uniqueItems") or len(told) == len(values)


def _target(root: Schema, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node


def _said(schema: Schema) -> str:
    """Return in words the bounds of one argument, empty where it has none worth saying."""
    if "const" in schema:
        return f"must be {_shown(schema['const'])}"
    if isinstance(schema.get("enum"), list):
        named = ", ".join(_shown(one) for one in schema["enum"][:_MAX_SHOWN])
        more = ", …" if len(schema["enum"]) > _MAX_SHOWN else ""
        return f"must be one of {named}{more}"
    said = [
        f"{words} {schema[word]}{unit}"
        for word, words, unit in _BOUNDS
        if is_a(schema.get(word), "number") and abs(schema[word]) < SANE
    ]
    kind = schema.get("type")
    if isinstance(schema.get("pattern"), str):
        said.append("matching the pattern of its schema")
    if isinstance(schema.get("format"), str):
        said.append(f"in the format {schema['format'][:MAX_TEXT]}")
    if not said:
        return ""
    article = "an" if kind in ("integer", "array", "object") else "a"
    known = isinstance(kind, str) and kind in _KINDS
    return ", ".join([f"must be {article} {kind}" if known else "must be", *said])


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


def _shown(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=False, default=str)
    return said if len(said) <= MAX_TEXT else said[: MAX_TEXT - 1] + "…"
