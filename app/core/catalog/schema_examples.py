"""Arguments that fit a JSON schema, told from the schema alone.

Schemas come from other people's servers: no pattern of theirs is tried, and depth and size are bounded.
A value is given only where it surely fits; where that cannot be said, there is none.
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
_OPAQUE: Final = frozenset(
    re.findall(
        r"\S+",
        """pattern patternProperties propertyNames not if then else dependentRequired dependentSchemas dependencies
        contains unevaluatedProperties unevaluatedItems contentEncoding contentMediaType contentSchema $dynamicRef
        $recursiveRef""",
    )
)
"""Words that may forbid a value in ways not looked into here."""

_VALIDATING: Final = _OPAQUE | frozenset(
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
_NOTHING: Final = object()


def example_arguments(schema: Any) -> dict[str, Any] | None:
    """Return arguments with every required property and those that the schema itself gives values for, or None."""
    if not isinstance(schema, Mapping):
        return None
    found = _Sampler(schema).value(schema, 0)
    return found if isinstance(found, dict) else None


class _Sampler:
    """Finds values for the parts of one schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = 512  # schemas may refer to themselves in many places at once

    def value(self, schema: Any, depth: int) -> Any:
        """Return a value that fits, or _NOTHING."""
        self._left -= 1
        target = resolved(self._root, schema)
        if target is None or depth > MAX_DEPTH or self._left < 0:
            return _NOTHING
        for given in _given(target):
            if self._fits(target, given):
                return given
        if "const" in target or "enum" in target or _OPAQUE & set(target):
            return _NOTHING
        return self._composed(target, depth)

    def _composed(self, schema: Schema, depth: int) -> Any:
        merged: Schema | None = schema
        if "allOf" in schema:
            merged = self._merged(schema)
        if merged is None or _OPAQUE & set(merged):
            return _NOTHING
        if "const" in merged or "enum" in merged:  # a part of allOf names the values
            return next((one for one in _given(merged) if self._fits(merged, one)), _NOTHING)
        for word in ("anyOf", "oneOf"):
            if word not in merged:
                continue
            # Parts beside the alternatives would have to hold as well; only notes may stand there.
            beside = {key: value for key, value in merged.items() if key != word}
            if set(beside) & _VALIDATING or not isinstance(merged[word], list):
                return _NOTHING
            return self._alternative(merged[word], depth, only_one=word == "oneOf")
        return self._made(merged, depth)

    def _alternative(self, alternatives: Sequence[Any], depth: int, *, only_one: bool) -> Any:
        for number, one in enumerate(alternatives):
            found = self.value(one, depth + 1)
            if found is _NOTHING or found is None:
                continue
            others = [other for place, other in enumerate(alternatives) if place != number]
            if not only_one or all(self._surely_not(other, found) for other in others):
                return found
        return _NOTHING

    def _made(self, schema: Schema, depth: int) -> Any:
        kind = _kind(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            made = _text(schema)
        elif kind in ("integer", "number"):
            made = _number(schema)
        else:
            made = {"boolean": True, "null": None}.get(kind, _NOTHING)
        return made if made is not _NOTHING and self._fits(schema, made) else _NOTHING

    def _object(self, schema: Schema, depth: int) -> Any:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            return _NOTHING
        required = required_names(schema)
        made: dict[str, Any] = {}
        for name, one in properties.items():
            if name in required:
                made[name] = self.value(one, depth + 1)
            elif depth == 0 and isinstance(one, Mapping) and one.get("examples"):
                found = self.value(one, depth + 1)
                made |= {} if found is _NOTHING else {name: found}
        for name in required:
            if name not in properties:
                free = schema.get("additionalProperties", True)
                made[name] = "text" if free in (True, {}) else _NOTHING
        if any(one is _NOTHING for one in made.values()):
            return _NOTHING
        return made if within(schema, len(made), "minProperties", "maxProperties") else _NOTHING

    def _array(self, schema: Schema, depth: int) -> Any:
        least = schema.get("minItems", 1)
        first = schema.get("prefixItems", [])
        if not isinstance(least, int) or least > _MAX_ITEMS or not isinstance(first, list):
            return _NOTHING
        most = schema.get("maxItems", _MAX_ITEMS)
        count = min(max(least, len(first), 1), most if isinstance(most, int) else 1)
        made: list[Any] = []
        for place in range(count):
            part = first[place] if place < len(first) else schema.get("items", {"type": "string"})
            found = self.value(part, depth + 1)
            if found is _NOTHING:
                return [] if least == 0 else _NOTHING
            made.append(found)
        fits = within(schema, len(made), "minItems", "maxItems") and unique(schema, made)
        return made if fits else _NOTHING

    def _merged(self, schema: Schema) -> Schema | None:
        """Return ``allOf`` as one schema, None where two parts say the same word differently."""
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
                elif key in _VALIDATING and key in merged and merged[key] != value:
                    return None
                else:
                    merged[key] = value
        closed = "additionalProperties" in merged and merged["additionalProperties"] is False
        return None if closed else merged

    def _fits(self, schema: Schema, value: Any, depth: int = 0) -> bool:
        """Return whether a value keeps the words of a schema, patterns and other opaque words aside."""
        named = schema.get("enum", [value])
        if (
            ("const" in schema and schema["const"] != value)
            or not isinstance(named, list)
            or value not in named
        ):
            return False
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if kinds and not any(is_a(value, one) for one in kinds):
            return False
        if isinstance(value, str) and not within(schema, len(value), "minLength", "maxLength"):
            return False
        if is_a(value, "number") and not in_range(schema, value):
            return False
        return depth <= MAX_DEPTH and self._fits_parts(schema, value, depth + 1)

    def _fits_parts(self, schema: Schema, value: Any, depth: int) -> bool:
        """Return whether the members of a value, and the alternatives of its schema, say nothing against it."""
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            if not isinstance(properties, Mapping) or not set(required_names(schema)) <= set(value):
                return False
            rest = schema.get("additionalProperties", True)
            parts = [(properties.get(name, rest), one) for name, one in value.items()]
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
        return all(self._takes(part, one, depth) for part, one in parts) and all(
            sum(self._takes(one, value, depth) for one in schema[word]) in counts(len(schema[word]))
            for word, counts in _COUNTS.items()
            if isinstance(schema.get(word), list)
        )

    def _takes(self, schema: Any, value: Any, depth: int) -> bool:
        self._left -= 1
        target = resolved(self._root, schema)
        return self._left > 0 and target is not None and self._fits(target, value, depth)

    def _surely_not(self, schema: Any, value: Any) -> bool:
        return resolved(self._root, schema) is not None and not self._takes(schema, value, 0)


_COUNTS: Final[Mapping[str, Callable[[int], range]]] = {
    "anyOf": lambda count: range(1, count + 1),
    "oneOf": lambda _: range(1, 2),
    "allOf": lambda count: range(count, count + 1),
}
"""How many of the parts of each word a value must fit."""


def _given(schema: Schema) -> list[Any]:
    """Return the values that a schema itself names, the most telling first."""
    found: list[Any] = []
    if isinstance(schema.get("examples"), list):
        found += schema["examples"][:_MAX_ITEMS]
    found += [schema[word] for word in ("example", "const", "default") if schema.get(word) is not None]
    if isinstance(schema.get("enum"), list):
        found += schema["enum"][:_MAX_ITEMS]
    return found


def _kind(schema: Schema) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        named = next((one for one in named if one != "null"), None)
    if isinstance(named, str):
        return named
    return "object" if "properties" in schema or "required" in schema else "string"


def _text(schema: Schema) -> Any:
    if "format" in schema:
        return _FORMATS.get(schema["format"], _NOTHING) if isinstance(schema["format"], str) else _NOTHING
    least, most = schema.get("minLength", 0), schema.get("maxLength", MAX_TEXT)
    if not is_a(least, "integer") or not is_a(most, "integer") or least > MAX_TEXT:
        return _NOTHING
    return ("text" * MAX_TEXT)[: min(max(int(least), 4), int(most))]


def _number(schema: Schema) -> Any:
    """Return a number in the range: 1 where that is one, else the nearest that the bounds allow."""
    bounds = number_bounds(schema)
    if bounds is None:
        return _NOTHING
    lows = [bounds[word] for word in RANGE[:2] if word in bounds]
    highs = [bounds[word] for word in RANGE[2:4] if word in bounds]
    tried: list[float] = [1, 0]
    for bound in (*lows, *highs):
        whole = int(bound)
        tried += [whole, whole + 1, whole - 1]
    step = bounds.get("multipleOf")
    if step is not None and step > 0:
        times = int(max(lows, default=0) // step)
        unit = int(step) if float(step).is_integer() else step
        tried = [unit * (times + more) for more in (0, 1, 2)]
    if _kind(schema) == "number" and lows and highs:
        tried.append((max(lows) + min(highs)) / 2)
    return next((one for one in tried if in_range(schema, one)), _NOTHING)
