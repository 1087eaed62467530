"""What a host configured, from the strongest source to the weakest, and what holds of it."""

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
"""The sources of a session that come before any update, the stronger one first."""

_MAX_NAME: Final = 64
_UPDATE: Final = "update"
_REPLACED: Final = "replaced"
_UNUSABLE: Final = ""
"""Stands for a value that is no value of any concern, so that nobody can make a session remember much."""

_MESSAGES: Final = MappingProxyType(
    {
        "undeclared": "No concern of this name is declared, so it is ignored.",
        "out_of_values": "The value is none of the declared ones, so it is ignored.",
        "clamped": "The value is none of the declared ones, so the nearest one is used.",
    }
)


class Layer(NamedTuple):
    """What one source says: names and values, None for a concern that shall not filter.

    ``pointer`` leads to the values in the request that brings them; an invalid value of a concern that refuses
    those is an error only there, because nobody could mend it elsewhere.
    """

    values: Mapping[str, Any]
    pointer: str | None = None


@dataclass(frozen=True)
class Effective:
    """What filters a list: one valid value by name, and what was not taken as it was said."""

    configuration: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[Mapping[str, str], ...] = ()
    definitions: Mapping[str, ConcernDefinition] = field(default_factory=dict, repr=False)

    def lists(self, mapped: Mapping[str, Any]) -> bool:
        """Return whether a primitive with these mapped values is listed."""
        return matches(mapped, self.configuration, self.definitions)

    @cached_property
    def fingerprint(self) -> str:
        """Return what cursors and remembered lists are bound to; empty where nothing filters."""
        if not self.configuration:
            return ""
        said = [[name, value, self._values(name)] for name, value in self.configuration.items()]
        return hashlib.sha256(dumps(said)).hexdigest()[:16]

    def _values(self, name: str) -> Any:
        definition = self.definitions.get(name)
        return definition.wire()["values"] if definition is not None else None


NOTHING_CONFIGURED: Final = Effective()


def given(raw: Any, pointer: str) -> Layer:
    """Return the configuration that a request brings at ``pointer``, or refuse what has not that form."""
    if not isinstance(raw, Mapping):
        raise InvalidArgumentsError(
            "Concerns are configured by an object of names and values.", details={"pointer": pointer}
        )
    if len(raw) > MAX_CONCERNS or any(len(name) > _MAX_NAME for name in raw):
        raise InvalidArgumentsError(
            f"At most {MAX_CONCERNS} concerns are configured at once, each by a name of at most {_MAX_NAME} "
            "characters.",
            details={"pointer": pointer},
        )
    return Layer(raw, pointer)


def effective(
    layers: Sequence[Layer],
    definitions: Mapping[str, ConcernDefinition],
    *,
    apply_defaults: bool = False,
) -> Effective:
    """Return what holds of ``layers``, the strongest first; a value that is ignored leaves the weaker ones."""
    decided: dict[str, Scalar | None] = {}
    warnings: dict[str, Mapping[str, str]] = {}
    for layer in layers:
        for name, value in layer.values.items():
            definition = definitions.get(name)
            if name in decided:
                continue
            if definition is None:
                warnings.setdefault(name, _warning(name, "undeclared"))
            elif value is None or definition.holds(value):
                decided[name] = value
            else:
                nearest = _mended(definition, value, layer.pointer)
                warnings.setdefault(name, _warning(name, "out_of_values" if nearest is None else "clamped"))
                if nearest is not None:
                    decided[name] = nearest
    if apply_defaults:
        for name, definition in definitions.items():
            if decided.get(name) is None:
                decided[name] = definition.default
    configuration = {name: decided[name] for name in sorted(decided) if decided[name] is not None}
    found: Mapping[str, Any] = MappingProxyType(configuration)
    return Effective(found, tuple(warnings.values()), definitions)


def _mended(definition: ConcernDefinition, value: Any, pointer: str | None) -> Scalar | None:
    if definition.on_invalid == "error" and pointer is not None:
        raise InvalidArgumentsError(
            "The value is none of those that this concern declares; concerns/list shows them.",
            details={"pointer": f"{pointer}/{definition.name}"},
        )
    return definition.nearest(value) if definition.on_invalid == "clamp" else None


def _warning(name: str, code: Literal["undeclared", "out_of_values", "clamped"]) -> Mapping[str, str]:
    return {"concern": name, "code": code, "message": _MESSAGES[code]}


def session_layers(remembered: Mapping[str, Any]) -> list[Layer]:
    """Return what a session remembers as layers, the strongest first."""
    sources = (_UPDATE, *HANDSHAKE_SOURCES)
    return [Layer(remembered[source]) for source in sources if remembered.get(source)]


def replaced(remembered: Mapping[str, Any]) -> bool:
    """Return whether an update replaced everything, so that stored preferences do not count either."""
    return bool(remembered.get(_REPLACED))


def handshaken(remembered: Mapping[str, Any], source: str, raw: Any) -> dict[str, Any]:
    """Return what a session remembers once a message of the handshake said ``raw``.

    Nothing is refused: a client that cannot connect could not mend it. What has not the form of a
    configuration is dropped, the rest is judged whenever a list is made.
    """
    if not isinstance(raw, Mapping):
        return dict(remembered)
    kept = [name for name in raw if len(name) <= _MAX_NAME][:MAX_CONCERNS]
    values = {name: raw[name] if raw[name] is None or is_scalar(raw[name]) else _UNUSABLE for name in kept}
    return {**remembered, source: values}


def updated(
    remembered: Mapping[str, Any],
    update: Layer,
    definitions: Mapping[str, ConcernDefinition],
    *,
    replace: bool = False,
) -> tuple[dict[str, Any], tuple[Mapping[str, str], ...]]:
    """Return what a session remembers after an update, and the warnings; raise where a value is refused.

    An update merges into the one before. ``replace`` forgets that and every weaker source.
    """
    said = effective([update], definitions)
    removed = {name: None for name, value in update.values.items() if value is None and name in definitions}
    if replace:
        return {_UPDATE: dict(said.configuration), _REPLACED: True}, said.warnings
    before = {name: value for name, value in remembered.get(_UPDATE, {}).items() if name in definitions}
    return {**remembered, _UPDATE: {**before, **removed, **said.configuration}}, said.warnings
