"""Concerns ("security: high"): what hosts may configure, the values of primitives, and the filtering of lists."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from app.core.catalog.primitives import CONCERNS_META, PrimitiveKind
from app.core.globs import Glob

MAX_CONCERNS: Final = 64
_MAX_VALUES: Final = 100
_MAX_TEXT: Final = 200
_MAX_NUMBER: Final = 2**53
FILTERED_KINDS: Final = (
    PrimitiveKind.TOOL,
    PrimitiveKind.PROMPT,
    PrimitiveKind.RESOURCE,
    PrimitiveKind.TEMPLATE,
    PrimitiveKind.TASK,
)
"""Kinds that concerns filter; lists of groups and middlewares are never filtered."""

Scalar = bool | int | float | str
ConcernName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
OnInvalid = Literal["ignore", "clamp", "error"]

_SCALAR_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
_RANGE_FAULT: Final = "a range must be {min, max, step?}: finite numbers, min below max, step above 0"
_VALUES_FAULT: Final = f"values must be 1 to {_MAX_VALUES} different strings, numbers or booleans, or a range"
_MAPPED_FAULT: Final = (
    "a mapped value must be one value, a list of values (any of them matches) or a range {min?, max?}"
)


def is_number(value: object) -> bool:
    """Return whether ``value`` is a JSON number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite_number(value: object) -> bool:
    """Return whether ``value`` is a finite number; an integer of any size is."""
    return is_number(value) and (isinstance(value, int) or math.isfinite(value))  # type: ignore[arg-type]


def is_scalar(value: object) -> bool:
    """Return whether ``value`` has the type and size of a concern's value."""
    if isinstance(value, str):
        return 0 < len(value) <= _MAX_TEXT and value.isprintable()
    if is_number(value):
        return is_finite_number(value) and abs(value) <= _MAX_NUMBER  # type: ignore[arg-type]
    return isinstance(value, bool)


def same(value: object, other: object) -> bool:
    """Return whether two JSON scalars are equal; ``true`` is not 1."""
    return isinstance(value, bool) is isinstance(other, bool) and value == other


class ValueRange(BaseModel):
    """The numbers from ``min`` to ``max``; with ``step`` only ``min`` plus multiples of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    min: Annotated[int | float, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
    max: Annotated[int | float, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
    step: Annotated[int | float, Field(gt=0, le=_MAX_NUMBER)] | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min >= self.max:
            raise ValueError(_RANGE_FAULT)
        return self

    def includes(self, value: Any) -> bool:
        """Return whether the range includes ``value``."""
        if not is_scalar(value) or not is_number(value) or not self.min <= value <= self.max:
            return False
        return (
            self.step is None or (_as_fraction(value) - _as_fraction(self.min)) % _as_fraction(self.step) == 0
        )

    def nearest(self, value: float) -> Scalar:
        """Return the number of the range nearest to ``value``; of two equally near, the lower."""
        bounded = min(max(value, self.min), self.max)
        if self.step is None:
            return bounded
        first, step = _as_fraction(self.min), _as_fraction(self.step)
        below = (_as_fraction(bounded) - first) // step
        rest = _as_fraction(bounded) - first - below * step
        last = (_as_fraction(self.max) - first) // step
        nearest = first + min(below + (rest * 2 > step), last) * step
        whole = isinstance(self.min, int) and isinstance(self.step, int)
        return int(nearest) if whole else float(nearest)

    def wire(self) -> dict[str, int | float]:
        """Return the JSON form."""
        return self.model_dump(exclude_none=True)


def _as_fraction(number: float) -> Fraction:
    """Return the number's decimal value, in which 0.3 is three times 0.1."""
    return Fraction(str(number))


def _check_values(raw: Any) -> tuple[Scalar, ...] | ValueRange:
    if isinstance(raw, ValueRange):
        return raw
    if isinstance(raw, Mapping):
        try:
            return ValueRange.model_validate(dict(raw))
        except ValidationError:
            raise ValueError(_RANGE_FAULT) from None
    if not isinstance(raw, list | tuple) or not 0 < len(raw) <= _MAX_VALUES:
        raise ValueError(_VALUES_FAULT)
    for number, value in enumerate(raw):
        if not is_scalar(value) or any(same(value, other) for other in raw[:number]):
            raise ValueError(_VALUES_FAULT)
    return tuple(raw)


def _check_scalar(raw: Any) -> Scalar:
    if not is_scalar(raw):
        raise ValueError("a value must be a string, a number or a boolean")
    value: Scalar = raw
    return value


class ConcernDefinition(BaseModel):
    """One concern: its name, its meaning, its possible values and its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ConcernName = Field(description="Letters, digits, `.`, `_` and `-`; unique in the tenant.")
    description: str = Field(min_length=1, max_length=2000, description="What the concern means, for people.")
    values: Annotated[
        tuple[Scalar, ...] | ValueRange,
        PlainValidator(_check_values),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1, "maxItems": _MAX_VALUES},
                    {
                        "type": "object",
                        "required": ["min", "max"],
                        "additionalProperties": False,
                        "properties": {name: {"type": "number"} for name in ("min", "max", "step")},
                    },
                ]
            }
        ),
    ] = Field(description="An ordered list, or a range of numbers.")
    default: Annotated[Scalar, PlainValidator(_check_scalar), WithJsonSchema(_SCALAR_SCHEMA)] = Field(
        description="One of the values; it filters only if the policy sets `apply_defaults`."
    )
    on_invalid: OnInvalid = Field(
        default="ignore",
        description="What to do with a host's value that is not among the values: ignore it with a warning, clamp it "
        "to the nearest one (numbers only), or answer with an error.",
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if not self.includes(self.default):
            raise ValueError("the default must be one of the values")
        if self.on_invalid == "clamp" and not self.numeric:
            raise ValueError("clamp needs numeric values, because other values have no nearest one")
        return self

    @field_serializer("values")
    def _serialize_values(self, values: tuple[Scalar, ...] | ValueRange) -> Any:
        return values.wire() if isinstance(values, ValueRange) else list(values)

    @property
    def numeric(self) -> bool:
        """Return whether all values are numbers."""
        return isinstance(self.values, ValueRange) or all(is_number(value) for value in self.values)

    def includes(self, value: Any) -> bool:
        """Return whether ``value`` is one of the values."""
        if isinstance(self.values, ValueRange):
            return self.values.includes(value)
        return any(same(value, listed) for listed in self.values)

    def nearest(self, value: Any) -> Scalar | None:
        """Return the value nearest to a number (of two equally near, the lower), or None if there is none."""
        if not self.numeric or not is_finite_number(value):
            return None
        if isinstance(self.values, ValueRange):
            return self.values.nearest(value)
        return min(self.values, key=lambda listed: (abs(_as_fraction(value) - _as_fraction(listed)), listed))  # type: ignore[arg-type]

    def rank(self, value: Any) -> int | float | None:
        """Return the position of ``value`` in the order of the values, or None if it has none."""
        if isinstance(self.values, ValueRange):
            return value if is_number(value) else None
        return next((place for place, listed in enumerate(self.values) if same(value, listed)), None)

    def misfit(self, mapped: Any) -> str | None:
        """Return a JSON pointer, relative to ``mapped``, to its first part outside the values, or None."""
        if isinstance(mapped, Mapping):
            for end in ("min", "max"):
                if end in mapped and not self._can_bound(mapped[end]):
                    return f"/{end}"
            return None
        if isinstance(mapped, list | tuple):
            wrong = (f"/{number}" for number, member in enumerate(mapped) if not self.includes(member))
            return next(wrong, None)
        return None if self.includes(mapped) else ""

    def _can_bound(self, value: Any) -> bool:
        if isinstance(self.values, ValueRange):
            return is_number(value) and self.values.min <= value <= self.values.max
        return self.includes(value)

    def wire(self) -> dict[str, Any]:
        """Return the wire form for hosts: name, description, values and default."""
        return self.model_dump(mode="json", exclude={"on_invalid"})


def mapped_value(raw: Any) -> Any:
    """Return a valid mapped value (one value, a list or a range), or raise ValueError."""
    if isinstance(raw, Mapping):
        ends = {"min", "max"}
        if not raw or not ends.issuperset(raw) or not all(is_scalar(end) for end in raw.values()):
            raise ValueError(_MAPPED_FAULT)
        return dict(raw)
    if isinstance(raw, list | tuple):
        if not 0 < len(raw) <= _MAX_VALUES or not all(is_scalar(member) for member in raw):
            raise ValueError(_MAPPED_FAULT)
        return list(raw)
    if not is_scalar(raw):
        raise ValueError(_MAPPED_FAULT)
    return raw


Mapped = Annotated[
    Any,
    PlainValidator(mapped_value),
    WithJsonSchema(
        {
            "anyOf": [
                _SCALAR_SCHEMA,
                {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1},
                {"type": "object", "properties": {"min": _SCALAR_SCHEMA, "max": _SCALAR_SCHEMA}},
            ]
        }
    ),
]


class ConcernMapping(BaseModel):
    """The values of concerns to which some primitives are mapped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: PrimitiveKind = Field(description="tool, prompt, resource, template or task.")
    name: str = Field(
        min_length=1,
        max_length=2048,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="The exposed name (`server__tool`, a URI); `*` stands for any characters.",
    )
    concerns: dict[ConcernName, Mapped] = Field(
        max_length=MAX_CONCERNS,
        description="By name of the concern: one value, a list of values (any of them matches), or a range "
        "`{min?, max?}` in the order of the values. A concern that is not listed does not filter the primitive.",
    )

    @field_validator("kind")
    @classmethod
    def _is_filtered(cls, kind: PrimitiveKind) -> PrimitiveKind:
        if kind not in FILTERED_KINDS:
            raise ValueError("concerns filter tools, prompts, resources, templates and tasks")
        return kind


@dataclass(frozen=True, slots=True)
class ConcernTable:
    """One tenant's definitions, by name in alphabetical order, and its mappings; immutable.

    If several mappings match a primitive, exactly one applies: the one without ``*``, else the one with the most
    characters besides ``*``; among equals, the first in alphabetical order.
    """

    definitions: Mapping[str, ConcernDefinition] = field(default_factory=dict)
    _exact: Mapping[tuple[PrimitiveKind, str], Mapping[str, Any]] = field(default_factory=dict)
    _patterns: Mapping[PrimitiveKind, Sequence[tuple[Glob, Mapping[str, Any]]]] = field(default_factory=dict)

    @classmethod
    def build(
        cls, definitions: Iterable[ConcernDefinition], mappings: Iterable[ConcernMapping] = ()
    ) -> "ConcernTable":
        """Build the table of these definitions and mappings."""
        exact: dict[tuple[PrimitiveKind, str], Mapping[str, Any]] = {}
        patterns: dict[PrimitiveKind, list[tuple[Glob, Mapping[str, Any]]]] = {}
        for mapping in mappings:
            glob = Glob(mapping.name)
            if glob.literal:
                exact[mapping.kind, mapping.name] = mapping.concerns
            else:
                patterns.setdefault(mapping.kind, []).append((glob, mapping.concerns))
        for rows in patterns.values():
            rows.sort(key=lambda row: (-len(row[0].pattern.replace("*", "")), row[0].pattern))
        named = {
            definition.name: definition
            for definition in sorted(definitions, key=lambda definition: definition.name)
        }
        return cls(MappingProxyType(named), exact, patterns)

    def mapping_of(
        self, kind: PrimitiveKind, name: str, meta: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return the mapped values of the primitive with that exposed name.

        If no mapping matches it, they come from its own ``_meta``, limited to declared concerns.
        """
        values = self._exact.get((kind, name))
        if values is None:
            values = next((row for glob, row in self._patterns.get(kind, ()) if glob.matches(name)), None)
        return values if values is not None else self._mapping_in_meta(meta)

    def wire(self) -> list[dict[str, Any]]:
        """Return the definitions in wire form."""
        return [definition.wire() for definition in self.definitions.values()]

    def _mapping_in_meta(self, meta: Mapping[str, Any] | None) -> Mapping[str, Any]:
        declared = (meta or {}).get(CONCERNS_META)
        if not isinstance(declared, Mapping):
            return {}
        mapped: dict[str, Any] = {}
        for name in self.definitions:
            try:
                if name in declared:
                    mapped[name] = mapped_value(declared[name])
            except ValueError:
                continue  # an invalid value must not filter anything
        return mapped


NO_CONCERNS: Final = ConcernTable()


def matches(
    mapped: Mapping[str, Any],
    effective: Mapping[str, Scalar],
    definitions: Mapping[str, ConcernDefinition],
) -> bool:
    """Return whether a primitive with these mapped values is listed under an effective configuration."""
    return all(
        name not in mapped or _value_matches(mapped[name], value, definitions[name])
        for name, value in effective.items()
        if name in definitions
    )


def _value_matches(mapped: Any, value: Scalar, definition: ConcernDefinition) -> bool:
    if isinstance(mapped, Mapping):
        position = definition.rank(value)
        low = definition.rank(mapped["min"]) if "min" in mapped else -math.inf
        high = definition.rank(mapped["max"]) if "max" in mapped else math.inf
        return None not in (position, low, high) and low <= position <= high  # type: ignore[operator]
    if isinstance(mapped, list | tuple):
        return any(same(listed, value) for listed in mapped)
    return same(mapped, value)
