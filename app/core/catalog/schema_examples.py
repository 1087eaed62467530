"""Find example arguments that fit a JSON schema, from the schema alone.

Schemas come from foreign servers: their patterns are never evaluated, and depth and size are bounded.
There is an example only if it certainly fits.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.core.catalog.schema_reading import (
    MAX_DEPTH,
    MAX_TEXT,
    RANGE,
    Schema,
    in_range,
    is_a,
    number_bounds,
    required_names,
    resolved,
    unique,
    within,
)

_MAX_ITEMS: Final = 8
_OPAQUE_WORDS: Final = frozenset(
    re.findall(
        r"\S+",
        """pattern patternProperties propertyNames not if then else dependentRequired dependentSchemas dependencies
        contains unevaluatedProperties unevaluatedItems contentEncoding contentMediaType contentSchema $dynamicRef
        $recursiveRef""",
    )
)
"""Keywords that may forbid a value in ways that are not checked here."""

_VALIDATING_WORDS: Final = _OPAQUE_WORDS | frozenset(
    re.findall(
        r"\S+",
        """type enum const properties required additionalProperties items prefixItems minItems maxItems uniqueItems
        minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minProperties maxProperties
        anyOf oneOf allOf format""",
    )
)
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T09:30:00Z",
    "time": "09:30:00Z",
    "duration": "PT1H",
    "email": "name@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "json-pointer": "/name",
    "binary": "text",
    "password": "text",
}
_NO_EXAMPLE: Final = object()


def example_arguments(schema: Any) -> dict[str, Any] | None:
    """Return arguments with every required property and those for which the schema has examples, or None."""
    if not isinstance(schema, Mapping):
        return None
    arguments = _ExampleFinder(schema).value(schema, 0)
    return arguments if isinstance(arguments, dict) else None


class _ExampleFinder:
    """Find values for the parts of one schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._remaining_steps = 512  # schemas may refer to themselves in many places at once

    def value(self, schema: Any, depth: int) -> Any:
        """Return a value that fits, or _NO_EXAMPLE."""
        self._remaining_steps -= 1
        target = resolved(self._root, schema)
        if target is None or depth > MAX_DEPTH or self._remaining_steps < 0:
            return _NO_EXAMPLE
        for candidate in _named_values(target):
            if self._fits(target, candidate):
                return candidate
        if "const" in target or "enum" in target or _OPAQUE_WORDS & set(target):
            return _NO_EXAMPLE
        return self._composed_example(target, depth)

    def _composed_example(self, schema: Schema, depth: int) -> Any:
        merged: Schema | None = schema
        if "allOf" in schema:
            merged = self._merge_all_of(schema)
        if merged is None or _OPAQUE_WORDS & set(merged):
            return _NO_EXAMPLE
        if "const" in merged or "enum" in merged:  # a part of allOf lists the values
            return next(
                (candidate for candidate in _named_values(merged) if self._fits(merged, candidate)),
                _NO_EXAMPLE,
            )
        for word in ("anyOf", "oneOf"):
            if word not in merged:
                continue
            # Validating keywords beside the alternatives would apply as well, so only annotations may be there.
            beside = {key: value for key, value in merged.items() if key != word}
            if set(beside) & _VALIDATING_WORDS or not isinstance(merged[word], list):
                return _NO_EXAMPLE
            return self._example_of_alternative(merged[word], depth, only_one=word == "oneOf")
        return self._example_of_type(merged, depth)

    def _example_of_alternative(self, alternatives: Sequence[Any], depth: int, *, only_one: bool) -> Any:
        for number, alternative in enumerate(alternatives):
            example = self.value(alternative, depth + 1)
            if example is _NO_EXAMPLE or example is None:
                continue
            others = [other for place, other in enumerate(alternatives) if place != number]
            if not only_one or all(self._surely_rejects(other, example) for other in others):
                return example
        return _NO_EXAMPLE

    def _example_of_type(self, schema: Schema, depth: int) -> Any:
        kind = _main_type(schema)
        if kind == "object":
            return self._object_example(schema, depth)
        if kind == "array":
            return self._array_example(schema, depth)
        if kind == "string":
            example = _string_example(schema)
        elif kind in ("integer", "number"):
            example = _number_example(schema)
        else:
            example = {"boolean": True, "null": None}.get(kind, _NO_EXAMPLE)
        return example if example is not _NO_EXAMPLE and self._fits(schema, example) else _NO_EXAMPLE

    def _object_example(self, schema: Schema, depth: int) -> Any:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            return _NO_EXAMPLE
        required = required_names(schema)
        members: dict[str, Any] = {}
        for name, property_schema in properties.items():
            if name in required:
                members[name] = self.value(property_schema, depth + 1)
            elif depth == 0 and isinstance(property_schema, Mapping) and property_schema.get("examples"):
                example = self.value(property_schema, depth + 1)
                members |= {} if example is _NO_EXAMPLE else {name: example}
        for name in required:
            if name not in properties:
                free = schema.get("additionalProperties", True)
                members[name] = "text" if free in (True, {}) else _NO_EXAMPLE
        if any(member is _NO_EXAMPLE for member in members.values()):
            return _NO_EXAMPLE
        return members if within(schema, len(members), "minProperties", "maxProperties") else _NO_EXAMPLE

    def _array_example(self, schema: Schema, depth: int) -> Any:
        least = schema.get("minItems", 1)
        first = schema.get("prefixItems", [])
        if not isinstance(least, int) or least > _MAX_ITEMS or not isinstance(first, list):
            return _NO_EXAMPLE
        most = schema.get("maxItems", _MAX_ITEMS)
        count = min(max(least, len(first), 1), most if isinstance(most, int) else 1)
        items: list[Any] = []
        for place in range(count):
            part = first[place] if place < len(first) else schema.get("items", {"type": "string"})
            example = self.value(part, depth + 1)
            if example is _NO_EXAMPLE:
                return [] if least == 0 else _NO_EXAMPLE
            items.append(example)
        fits = within(schema, len(items), "minItems", "maxItems") and unique(schema, items)
        return items if fits else _NO_EXAMPLE

    def _merge_all_of(self, schema: Schema) -> Schema | None:
        """Return ``allOf`` as one schema, or None if two parts have different values for a keyword."""
        parts = schema["allOf"]
        if not isinstance(parts, list):
            return None
        merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            target = resolved(self._root, part)
            if target is None or "allOf" in target:
                return None
            for key, value in target.items():
                if (
                    key == "properties"
                    and isinstance(merged.get(key), Mapping)
                    and isinstance(value, Mapping)
                ):
                    if set(merged[key]) & set(value):
                        return None
                    merged[key] = {**merged[key], **value}
                elif key == "required" and isinstance(merged.get(key), list) and isinstance(value, list):
                    merged[key] = [*merged[key], *value]
                elif key in _VALIDATING_WORDS and key in merged and merged[key] != value:
                    return None
                else:
                    merged[key] = value
        closed = "additionalProperties" in merged and merged["additionalProperties"] is False
        return None if closed else merged

    def _fits(self, schema: Schema, value: Any, depth: int = 0) -> bool:
        """Return whether a value fits a schema, apart from patterns and other opaque keywords."""
        named = schema.get("enum", [value])
        if (
            ("const" in schema and schema["const"] != value)
            or not isinstance(named, list)
            or value not in named
        ):
            return False
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if kinds and not any(is_a(value, kind) for kind in kinds):
            return False
        if isinstance(value, str) and not within(schema, len(value), "minLength", "maxLength"):
            return False
        if is_a(value, "number") and not in_range(schema, value):
            return False
        return depth <= MAX_DEPTH and self._fits_parts(schema, value, depth + 1)

    def _fits_parts(self, schema: Schema, value: Any, depth: int) -> bool:
        """Return whether the members of a value fit, and the value fits the alternatives of its schema."""
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            if not isinstance(properties, Mapping) or not set(required_names(schema)) <= set(value):
                return False
            rest = schema.get("additionalProperties", True)
            parts = [(properties.get(name, rest), member) for name, member in value.items()]
            if not within(schema, len(value), "minProperties", "maxProperties"):
                return False
        elif isinstance(value, list):
            first = schema.get("prefixItems", [])
            first = first if isinstance(first, list) else []
            rest = [schema.get("items", True)] * len(value)
            parts = list(zip([*first, *rest], value, strict=False))
            if not within(schema, len(value), "minItems", "maxItems") or not unique(schema, value):
                return False
        else:
            parts = []
        return all(self._accepts(part, member, depth) for part, member in parts) and all(
            sum(self._accepts(alternative, value, depth) for alternative in schema[word])
            in counts(len(schema[word]))
            for word, counts in _MATCH_COUNTS.items()
            if isinstance(schema.get(word), list)
        )

    def _accepts(self, schema: Any, value: Any, depth: int) -> bool:
        self._remaining_steps -= 1
        target = resolved(self._root, schema)
        return self._remaining_steps > 0 and target is not None and self._fits(target, value, depth)

    def _surely_rejects(self, schema: Any, value: Any) -> bool:
        return resolved(self._root, schema) is not None and not self._accepts(schema, value, 0)


_MATCH_COUNTS: Final[Mapping[str, Callable[[int], range]]] = {
    "anyOf": lambda count: range(1, count + 1),
    "oneOf": lambda _: range(1, 2),
    "allOf": lambda count: range(count, count + 1),
}
"""How many of the alternatives under each keyword a value must fit."""


def _named_values(schema: Schema) -> list[Any]:
    """Return the values that a schema itself contains, the most useful first."""
    values: list[Any] = []
    if isinstance(schema.get("examples"), list):
        values += schema["examples"][:_MAX_ITEMS]
    values += [schema[word] for word in ("example", "const", "default") if schema.get(word) is not None]
    if isinstance(schema.get("enum"), list):
        values += schema["enum"][:_MAX_ITEMS]
    return values


def _main_type(schema: Schema) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        named = next((kind for kind in named if kind != "null"), None)
    if isinstance(named, str):
        return named
    return "object" if "properties" in schema or "required" in schema else "string"


def _string_example(schema: Schema) -> Any:
    if "format" in schema:
        return (
            _FORMATS.get(schema["format"], _NO_EXAMPLE) if isinstance(schema["format"], str) else _NO_EXAMPLE
        )
    least, most = schema.get("minLength", 0), schema.get("maxLength", MAX_TEXT)
    if not is_a(least, "integer") or not is_a(most, "integer") or least > MAX_TEXT:
        return _NO_EXAMPLE
    return ("text" * MAX_TEXT)[: min(max(int(least), 4), int(most))]


def _number_example(schema: Schema) -> Any:
    """Return a number in the range: 1 if possible, else one near the bounds."""
    bounds = number_bounds(schema)
    if bounds is None:
        return _NO_EXAMPLE
    lows = [bounds[word] for word in RANGE[:2] if word in bounds]
    highs = [bounds[word] for word in RANGE[2:4] if word in bounds]
    candidates: list[float] = [1, 0]
    for bound in (*lows, *highs):
        whole = int(bound)
        candidates += [whole, whole + 1, whole - 1]
    step = bounds.get("multipleOf")
    if step is not None and step > 0:
        times = int(max(lows, default=0) // step)
        unit = int(step) if float(step).is_integer() else step
        candidates = [unit * (times + more) for more in (0, 1, 2)]
    if _main_type(schema) == "number" and lows and highs:
        candidates.append((max(lows) + min(highs)) / 2)
    return next((candidate for candidate in candidates if in_range(schema, candidate)), _NO_EXAMPLE)
