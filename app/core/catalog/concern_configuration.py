"""Merge the concern configurations of a host, from the strongest source to the weakest."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from app.core.catalog.concerns import MAX_CONCERNS, ConcernDefinition, Scalar, is_scalar, matches
from app.core.errors import InvalidArgumentsError
from app.core.strictjson import dumps

HANDSHAKE_SOURCES: Final = ("initialized", "initialize")
"""The sources of a session before any update, the stronger one first."""

_MAX_NAME: Final = 64
_UPDATE_SOURCE: Final = "update"
_REPLACED_MARK: Final = "replaced"
_UNUSABLE_VALUE: Final = ""
"""Replaces anything that cannot be a concern's value, so that a client cannot make a session store much."""

_MESSAGES: Final = MappingProxyType(
    {
        "undeclared": "No concern with this name is declared, so it is ignored.",
        "out_of_values": "The value is not a declared one, so it is ignored.",
        "clamped": "The value is not a declared one, so the nearest one is used.",
    }
)


class Layer(NamedTuple):
    """The configuration of one source: values by name, None for a concern that must not filter.

    ``pointer`` is the JSON pointer to the values in the current request. If a concern refuses invalid values, they
    are an error only in a request, because the caller could not correct them elsewhere.
    """

    values: Mapping[str, Any]
    pointer: str | None = None


@dataclass(frozen=True)
class Effective:
    """The configuration that filters a list: one valid value per name, and warnings about ignored or clamped values."""

    configuration: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[Mapping[str, str], ...] = ()
    definitions: Mapping[str, ConcernDefinition] = field(default_factory=dict, repr=False)

    def lists(self, mapped: Mapping[str, Any]) -> bool:
        """Return whether a primitive with these mapped values is listed."""
        return matches(mapped, self.configuration, self.definitions)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest for cursors and remembered lists; empty if nothing filters."""
        if not self.configuration:
            return ""
        parts = [[name, value, self._declared_values(name)] for name, value in self.configuration.items()]
        return hashlib.sha256(dumps(parts)).hexdigest()[:16]

    def _declared_values(self, name: str) -> Any:
        definition = self.definitions.get(name)
        return definition.wire()["values"] if definition is not None else None


NOTHING_CONFIGURED: Final = Effective()


def requested_layer(raw: Any, pointer: str) -> Layer:
    """Return the configuration in a request at ``pointer``; raise InvalidArgumentsError if it is malformed."""
    if not isinstance(raw, Mapping):
        raise InvalidArgumentsError(
            "A concern configuration must be an object of names and values.", details={"pointer": pointer}
        )
    if len(raw) > MAX_CONCERNS or any(len(name) > _MAX_NAME for name in raw):
        raise InvalidArgumentsError(
            f"A request may configure at most {MAX_CONCERNS} concerns, with names of at most {_MAX_NAME} characters.",
            details={"pointer": pointer},
        )
    return Layer(raw, pointer)


def effective(
    layers: Sequence[Layer],
    definitions: Mapping[str, ConcernDefinition],
    *,
    apply_defaults: bool = False,
) -> Effective:
    """Merge ``layers``, the strongest first; an ignored value leaves the decision to weaker layers.

    Raise InvalidArgumentsError for an invalid value of a concern that refuses those.
    """
    decided: dict[str, Scalar | None] = {}
    warnings: dict[str, Mapping[str, str]] = {}
    for layer in layers:
        for name, value in layer.values.items():
            definition = definitions.get(name)
            if name in decided:
                continue
            if definition is None:
                warnings.setdefault(name, _warning(name, "undeclared"))
            elif value is None or definition.includes(value):
                decided[name] = value
            else:
                nearest = _corrected(definition, value, layer.pointer)
                warnings.setdefault(name, _warning(name, "out_of_values" if nearest is None else "clamped"))
                if nearest is not None:
                    decided[name] = nearest
    if apply_defaults:
        for name, definition in definitions.items():
            if name not in decided:  # null is a decision, too: this concern does not filter
                decided[name] = definition.default
    configuration = {name: decided[name] for name in sorted(decided) if decided[name] is not None}
    frozen: Mapping[str, Any] = MappingProxyType(configuration)
    return Effective(frozen, tuple(warnings.values()), definitions)


def _corrected(definition: ConcernDefinition, value: Any, pointer: str | None) -> Scalar | None:
    if definition.on_invalid == "error" and pointer is not None:
        raise InvalidArgumentsError(
            "The value is not among those that this concern declares; concerns/list returns them.",
            details={"pointer": f"{pointer}/{definition.name}"},
        )
    return definition.nearest(value) if definition.on_invalid == "clamp" else None


def _warning(name: str, code: Literal["undeclared", "out_of_values", "clamped"]) -> Mapping[str, str]:
    return {"concern": name, "code": code, "message": _MESSAGES[code]}


def session_layers(remembered: Mapping[str, Any]) -> list[Layer]:
    """Return the remembered configuration of a session as layers, the strongest first."""
    sources = (_UPDATE_SOURCE, *HANDSHAKE_SOURCES)
    return [Layer(remembered[source]) for source in sources if remembered.get(source)]


def replaced(remembered: Mapping[str, Any]) -> bool:
    """Return whether an update replaced every other source, including stored preferences."""
    return bool(remembered.get(_REPLACED_MARK))


def with_handshake(remembered: Mapping[str, Any], source: str, raw: Any) -> dict[str, Any]:
    """Return the remembered configuration of a session after a handshake message with ``raw``.

    Nothing is refused: a client that cannot connect could not correct it. Malformed parts are dropped, the rest
    is validated whenever a list is made.
    """
    if not isinstance(raw, Mapping):
        return dict(remembered)
    kept = [name for name in raw if len(name) <= _MAX_NAME][:MAX_CONCERNS]
    values = {
        name: raw[name] if raw[name] is None or is_scalar(raw[name]) else _UNUSABLE_VALUE for name in kept
    }
    return {**remembered, source: values}


def updated(
    remembered: Mapping[str, Any],
    update: Layer,
    definitions: Mapping[str, ConcernDefinition],
    *,
    replace: bool = False,
) -> tuple[dict[str, Any], tuple[Mapping[str, str], ...]]:
    """Return the remembered configuration of a session after an update, and warnings.

    An update is merged into the previous one. ``replace`` forgets the previous one and every weaker source. Raise
    InvalidArgumentsError if a value is refused.
    """
    result = effective([update], definitions)
    removed = {name: None for name, value in update.values.items() if value is None and name in definitions}
    if replace:
        return {_UPDATE_SOURCE: {**removed, **result.configuration}, _REPLACED_MARK: True}, result.warnings
    before = {
        name: value for name, value in remembered.get(_UPDATE_SOURCE, {}).items() if name in definitions
    }
    return {**remembered, _UPDATE_SOURCE: {**before, **removed, **result.configuration}}, result.warnings
