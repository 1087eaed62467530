"""Arguments that fit a JSON schema, and what is wrong with those that do not, told from the schema alone.

Schemas come from other people's servers: no pattern of theirs is tried, and depth and size are bounded.
A value is given only where it surely fits; where that cannot be said, there is none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 8
_MAX_TEXT: Final = 64
_MAX_SHOWN: Final = 20
_MAX_NAMED: Final = 64
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
_RANGE: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_SANE: Final = 1e15
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
Schema = Mapping[str, Any]


def example_arguments(schema: Any) -> dict[str, Any] | None:
    """Return arguments with every required property and those that the schema itself gives values for, or None."""
    if not isinstance(schema, Mapping):
        return None
    found = _Sampler(schema).value(schema, 0)
    return found if isinstance(found, dict) else None


def constraints(schema: Any) -> dict[str, str]:
    """Return in words what each bounded argument must be, by its name; arguments without bounds are not named."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return {}
    sampler = _Sampler(schema)
    told: dict[str, str] = {}
    for name, one in list(schema["properties"].items())[:_MAX_NAMED]:
        resolved = sampler.resolved(one)
        said = _said(resolved) if resolved is not None else ""
        if said:
            told[str(name)] = said
    return told


def required_names(schema: Any) -> list[str]:
    """Return the names of the arguments that must be given."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


class _Sampler:
    """Finds values for the parts of one schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = 512  # schemas may refer to themselves in many places at once

    def resolved(self, schema: Any) -> Schema | None:
        """Return what a schema stands for, through references into the same document; None where that is unknown."""
        for _ in range(_MAX_DEPTH):
            if schema is True:
                return {}
            if not isinstance(schema, Mapping):
                return None
            reference = schema.get("$ref")
            if reference is None:
                return schema
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._target(reference)
            if not isinstance(target, Mapping):
                return None
            notes = {"description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly"}
            if not set(beside) <= notes and set(beside) & set(target):
                return None
            schema = {**target, **beside}
        return None

    def value(self, schema: Any, depth: int) -> Any:
        """Return a value that fits, or _NOTHING."""
        self._left -= 1
        resolved = self.resolved(schema)
        if resolved is None or depth > _MAX_DEPTH or self._left < 0:
            return _NOTHING
        for given in _given(resolved):
            if self._fits(resolved, given):
                return given
        if "const" in resolved or "enum" in resolved or _OPAQUE & set(resolved):
            return _NOTHING
        return self._composed(resolved, depth)

    def _composed(self, schema: Schema, depth: int) -> Any:
        merged: Schema | None = schema
        if "allOf" in schema:
            merged = self._merged(schema)
        if merged is None:
            return _NOTHING
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
        return made if _within(schema, len(made), "minProperties", "maxProperties") else _NOTHING

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
        unique = {json.dumps(one, sort_keys=True, default=str) for one in made}
        return _NOTHING if schema.get("uniqueItems") and len(unique) < len(made) else made

    def _merged(self, schema: Schema) -> Schema | None:
        """Return ``allOf`` as one schema, None where two parts say the same word differently."""
        parts = schema["allOf"]
        if not isinstance(parts, list):
            return None
        merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            resolved = self.resolved(part)
            if resolved is None or "allOf" in resolved:
                return None
            for key, value in resolved.items():
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

    def _fits(self, schema: Schema, value: Any) -> bool:
        """Return whether a plain value keeps the words of its own level; what lies deeper is not looked into."""
        named = schema.get("enum", [value])
        if (
            ("const" in schema and schema["const"] != value)
            or not isinstance(named, list)
            or value not in named
        ):
            return False
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if kinds and not any(_is_a(value, one) for one in kinds):
            return False
        if isinstance(value, str):
            return _within(schema, len(value), "minLength", "maxLength")
        if _is_a(value, "number"):
            return _in_range(schema, value)
        # Whole objects and lists that a schema gives are its author's word, as far as their own level goes.
        return not isinstance(value, dict) or set(required_names(schema)) <= set(value)

    def _surely_not(self, schema: Any, value: Any) -> bool:
        resolved = self.resolved(schema)
        return resolved is not None and not self._fits(resolved, value)

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node: Any = self._root
        for step in reference[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or key not in node:
                return None
            node = node[key]
        return node


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
    least, most = schema.get("minLength", 0), schema.get("maxLength", _MAX_TEXT)
    if not _is_a(least, "integer") or not _is_a(most, "integer") or least > _MAX_TEXT:
        return _NOTHING
    return ("text" * _MAX_TEXT)[: min(max(int(least), 4), int(most))]


def _number(schema: Schema) -> Any:
    """Return a number in the range: 1 where that is one, else the nearest that the bounds allow."""
    bounds = _bounds(schema)
    if bounds is None:
        return _NOTHING
    lows = [bounds[word] for word in _RANGE[:2] if word in bounds]
    highs = [bounds[word] for word in _RANGE[2:4] if word in bounds]
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
    return next((one for one in tried if _in_range(schema, one)), _NOTHING)


def _bounds(schema: Schema) -> dict[str, float] | None:
    """Return the bounds of a number, None where one of them is no number that can be reckoned with."""
    given = {word: schema[word] for word in _RANGE if word in schema}
    sane = all(_is_a(bound, "number") and abs(bound) < _SANE for bound in given.values())
    return given if sane else None


def _in_range(schema: Schema, value: float) -> bool:
    bounds = _bounds(schema)
    if bounds is None or abs(value) >= _SANE:
        return False
    step = bounds.get("multipleOf", 0)
    if "multipleOf" in bounds and (step <= 0 or (value / step) != int(value / step)):
        return False
    above = bounds.get("exclusiveMinimum", -_SANE) < value < bounds.get("exclusiveMaximum", _SANE)
    return above and bounds.get("minimum", -_SANE) <= value <= bounds.get("maximum", _SANE)


def _within(schema: Schema, count: int, least: str, most: str) -> bool:
    low, high = schema.get(least, 0), schema.get(most, count)
    return bool(_is_a(low, "number") and _is_a(high, "number") and low <= count <= high)


def _is_a(value: Any, kind: Any) -> bool:
    if kind in ("integer", "number"):
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return numeric and (kind == "number" or isinstance(value, int) or value.is_integer())
    kinds = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
    return isinstance(kind, str) and kind in kinds and isinstance(value, kinds[kind])


def _said(schema: Schema) -> str:
    """Return in words the bounds of one argument, empty where it has none worth saying."""
    if "const" in schema:
        return f"must be {_shown(schema['const'])}"
    if isinstance(schema.get("enum"), list):
        named = ", ".join(_shown(one) for one in schema["enum"][:_MAX_SHOWN])
        more = ", …" if len(schema["enum"]) > _MAX_SHOWN else ""
        return f"must be one of {named}{more}"
    said = [
        f"{words} {schema[word]}{unit}" for word, words, unit in _BOUNDS if _is_a(schema.get(word), "number")
    ]
    kind = schema.get("type")
    if isinstance(schema.get("pattern"), str):
        said.append("matching the pattern of its schema")
    if isinstance(schema.get("format"), str):
        said.append(f"in the format {schema['format'][:_MAX_TEXT]}")
    if not said:
        return ""
    article = "an" if kind in ("integer", "array", "object") else "a"
    return ", ".join([f"must be {article} {kind}" if isinstance(kind, str) else "must be", *said])


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
    return said if len(said) <= _MAX_TEXT else said[: _MAX_TEXT - 1] + "…"
