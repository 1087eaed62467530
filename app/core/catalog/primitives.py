"""Primitives of the servers behind this one, and the catalog of those that one tenant may see."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.core.client_features import ClientFeatures
from app.core.globs import Glob
from app.core.strictjson import dumps

SERVERS_CHANGED: Final = "servers"
GROUPS_CHANGED: Final = "groups"
CONCERNS_CHANGED: Final = "concerns"
DESCRIPTIONS_CHANGED: Final = "descriptions"
"""Kinds of ``Changed`` after which a tenant's catalog must be rebuilt."""

GROUPS_META: Final = "io.modelcontextprotocol/groups"
CONCERNS_META: Final = "concerns"
QUALIFIED_URI: Final = "sluice://"


class PrimitiveKind(StrEnum):
    """Kinds of what can be listed, grouped and mapped to concerns."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"
    TASK = "task"
    MIDDLEWARE = "middleware"
    GROUP = "group"
    INSTRUCTIONS = "instructions"
    """What a server advises models; it is approved like a definition, but no client lists it."""


NAME_FIELD: Final[Mapping[PrimitiveKind, str]] = MappingProxyType(
    {
        PrimitiveKind.TOOL: "name",
        PrimitiveKind.PROMPT: "name",
        PrimitiveKind.RESOURCE: "uri",
        PrimitiveKind.TEMPLATE: "uriTemplate",
    }
)
"""The member of a definition by which clients address it, for the kinds that upstream servers list."""

INSTRUCTIONS_NAME: Final = "instructions"
"""The name under which a server's instructions are approved."""

Disclosure = Literal["flat", "staged"]
MemberKind = Literal[
    PrimitiveKind.TOOL,
    PrimitiveKind.PROMPT,
    PrimitiveKind.RESOURCE,
    PrimitiveKind.TEMPLATE,
    PrimitiveKind.TASK,
    PrimitiveKind.MIDDLEWARE,
    PrimitiveKind.GROUP,
]


@dataclass(frozen=True, slots=True)
class Offer:
    """A primitive as its server defines it; ``definition`` is the server's unchanged JSON object.

    ``listed_to``: None if the server lists it to everyone, else with which features of a client it lists it.
    """

    kind: PrimitiveKind
    server: str
    own_name: str
    definition: Mapping[str, Any]
    listed_to: frozenset[ClientFeatures] | None = None

    @property
    def digest(self) -> str:
        """Return SHA-256 (hex) of the whole definition, independent of the order of members."""
        return hashlib.sha256(dumps(_sorted(self.definition))).hexdigest()


@dataclass(frozen=True, eq=False)
class Primitive:
    """A primitive as clients see it.

    ``name`` is the exposed name (``server__tool``, a URI, an alias), ``own_name`` its server's name for it.
    ``definition`` is complete in wire form, with the exposed name and the groups in ``_meta``. ``short`` is the
    first stage of progressive disclosure, which every tool has; ``staged``: its server shows that by default.
    ``groups`` are the direct groups, ``within`` those and all their ancestors. ``concerns`` maps names of concerns to
    the mapped value, list or range. ``listed_to`` are the features of clients that its server lists it to, None: all.
    """

    kind: PrimitiveKind
    server: str
    own_name: str
    name: str
    definition: Mapping[str, Any]
    digest: str
    groups: tuple[str, ...] = ()
    within: frozenset[str] = frozenset()
    concerns: Mapping[str, Any] = field(default_factory=dict)
    short: Mapping[str, Any] | None = None
    staged: bool = False
    listed_to: frozenset[ClientFeatures] | None = None


@dataclass(frozen=True, eq=False)
class Catalog:
    """One tenant's primitives at one moment, by kind and exposed name, in the order of listing; immutable.

    ``shadowed`` lists what is hidden because another server already offers that name: (kind, name, server).
    """

    primitives: Mapping[PrimitiveKind, Mapping[str, Primitive]]
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Groups by name in wire form, ``_meta`` included, in alphabetical order."""

    group_parents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each group itself and all its ancestors."""

    middleware_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shadowed: tuple[tuple[PrimitiveKind, str, str], ...] = ()

    def of(self, kind: PrimitiveKind) -> Mapping[str, Primitive]:
        """Return the primitives of a kind by exposed name."""
        return self.primitives.get(kind, {})

    @cached_property
    def differs_by_client(self) -> bool:
        """Return whether a server lists anything only to clients that it can ask."""
        return any(
            primitive.listed_to is not None for kind in NAME_FIELD for primitive in self.of(kind).values()
        )

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """Return a digest for each list whose changes clients are notified of: kinds, "group", "middleware"."""
        digests = {
            kind.value: _digest(
                [
                    [primitive.definition, primitive.short, primitive.staged, *_listed_to(primitive)]
                    for primitive in self.of(kind).values()
                ]
            )
            for kind in NAME_FIELD
        }
        # With staged tools, the lists of resources and templates also contain the one that describes tools.
        described = str(any(primitive.staged for primitive in self.of(PrimitiveKind.TOOL).values()))
        for kind in (PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE):
            digests[kind.value] += described
        digests["group"] = _digest(list(self.groups.values()))
        digests["middleware"] = _digest(dict(self.middleware_groups))
        for kind in NAME_FIELD:
            concerns = {
                name: primitive.concerns for name, primitive in self.of(kind).items() if primitive.concerns
            }
            digests[f"{kind.value} concerns"] = _digest(concerns)
        return digests


class Member(BaseModel):
    """A pattern for primitives: kind, exposed name (with ``*``) and optionally server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: MemberKind = Field(description="tool, prompt, resource, template, task, middleware or group.")
    name: str = Field(
        min_length=1,
        max_length=2048,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="The exposed name (`server__tool`, a URI); `*` stands for any characters.",
    )
    server: str | None = Field(default=None, max_length=64, description="Only primitives of this server.")

    def matches(self, kind: PrimitiveKind, name: str, server: str | None) -> bool:
        """Return whether the pattern matches a primitive."""
        return kind is self.kind and self.server in (None, server) and Glob(self.name).matches(name)


def _listed_to(primitive: Primitive) -> list[list[str]]:
    return sorted(sorted(features) for features in primitive.listed_to or ())


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


def _digest(value: Any) -> str:
    return hashlib.sha256(dumps(_sorted(value))).hexdigest()
