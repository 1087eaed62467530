"""Groups of primitives: named, nested collections, and the tree of one tenant's groups."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from app.core.catalog.primitives import GROUPS_META, Member, Primitive, PrimitiveKind
from app.core.globs import Glob
from app.core.strictjson import dumps

MAX_GROUPS: Final = 1000
MAX_MEMBERS: Final = 2000
MAX_MEMBERS_IN_ALL: Final = 20_000
"""Members of all groups of a tenant together, since each list of a server is matched against all of them."""

_MAX_META_BYTES: Final = 16_384
_MAX_ICON: Final = 65_536
_RESERVED_NAMES: Final = frozenset({"export", ".", ".."})
_NAME = re.compile(r"[^\s/*\x00-\x1f\x7f](?:[^/*\x00-\x1f\x7f]{0,126}[^\s/*\x00-\x1f\x7f])?")
_SCHEMES = ("https://", "http://", "data:")

_Pattern = tuple[Glob, str | None, str]
_Patterns = Mapping[int, Mapping[str, Sequence[_Pattern]]]


class GroupAnnotations(BaseModel):
    """Hints for clients; unknown members are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    title: str | None = Field(default=None, max_length=256)
    audience: list[Literal["user", "assistant"]] | None = None
    priority: float | None = Field(default=None, ge=0, le=1)
    lastModified: str | None = Field(default=None, max_length=64)  # noqa: N815 - the wire's name


class GroupIcon(BaseModel):
    """One picture for the group."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    src: str = Field(max_length=_MAX_ICON, description="An https, http or data URI.")
    mimeType: str | None = Field(default=None, max_length=128)  # noqa: N815 - the wire's name
    sizes: list[Annotated[str, StringConstraints(max_length=32)]] | None = Field(default=None, max_length=32)
    theme: Literal["light", "dark"] | None = None

    @field_validator("src")
    @classmethod
    def _is_safe(cls, src: str) -> str:
        if not src.lower().startswith(_SCHEMES):
            raise ValueError("an icon's src must begin with https://, http:// or data:")
        return src


class GroupDefinition(BaseModel):
    """A group as an operator defines it: in a file, over REST and in the database.

    A member of kind ``group`` nests that group; its name is exact, and it has no server.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(
        min_length=1,
        max_length=128,
        description="Unique within the tenant; printable, without `/` and `*`.",
    )
    title: str | None = Field(default=None, min_length=1, max_length=256)
    description: str | None = Field(default=None, min_length=1, max_length=4096)
    annotations: GroupAnnotations | None = None
    icons: list[GroupIcon] | None = Field(default=None, max_length=16)
    meta: dict[str, Any] | None = Field(
        default=None, alias="_meta", description="Passed on to clients; the parent groups are added to it."
    )
    members: list[Member] = Field(default_factory=list, max_length=MAX_MEMBERS)

    @field_validator("name")
    @classmethod
    def _is_plain(cls, name: str) -> str:
        if name in _RESERVED_NAMES:
            raise ValueError("this name is reserved")
        if not (_NAME.fullmatch(name) and name.isprintable()):
            raise ValueError(
                "a group's name must be printable, without / and * and without spaces at its ends"
            )
        return name

    @field_validator("meta")
    @classmethod
    def _leaves_groups_to_us(cls, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        if meta is not None and GROUPS_META in meta:
            raise ValueError(f"{GROUPS_META} is computed from the members of the parent groups; remove it")
        if meta is not None and len(dumps(meta)) > _MAX_META_BYTES:
            raise ValueError(f"_meta may have at most {_MAX_META_BYTES} bytes")
        return meta

    @model_validator(mode="after")
    def _has_valid_members(self) -> Self:
        for member in self.members:
            if member.kind is PrimitiveKind.GROUP and (member.server is not None or "*" in member.name):
                raise ValueError("a member of kind group must be one exact group name without a server")
            if member.kind is PrimitiveKind.MIDDLEWARE and member.server is not None:
                raise ValueError("a middleware belongs to no server")
        return self

    @property
    def distinct(self) -> list[Member]:
        """Return the members sorted and without duplicates, so that equal groups compare as equal."""
        return sorted(set(self.members), key=lambda member: (member.kind, member.name, member.server or ""))

    @property
    def subgroups(self) -> list[str]:
        """Return the names of the groups that are members."""
        return [member.name for member in self.members if member.kind is PrimitiveKind.GROUP]

    def document(self) -> dict[str, Any]:
        """Return the group as it is stored, without name, members and absent fields."""
        return self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude={"name", "members"}
        )

    def declared(self) -> dict[str, Any]:
        """Return the group as in a declarative file, without absent fields."""
        members = [member.model_dump(mode="json", exclude_none=True) for member in self.distinct]
        return {"name": self.name, **_in_field_order(self.document()), "members": members}


@dataclass(frozen=True, eq=False)
class GroupTree:
    """All groups of a tenant and their nesting; immutable.

    A group may have several parents. Memberships of groups that do not exist are ignored.
    """

    groups: Mapping[str, GroupDefinition]

    @classmethod
    def build(cls, definitions: Iterable[GroupDefinition]) -> "GroupTree":
        """Build the tree with its groups in alphabetical order."""
        named = {definition.name: definition for definition in definitions}
        return cls(MappingProxyType({name: named[name] for name in sorted(named)}))

    @cached_property
    def parents(self) -> Mapping[str, frozenset[str]]:
        """Return for each group itself and all its ancestors."""
        return MappingProxyType({name: self.upward([name]) for name in self.groups})

    def direct(self, kind: PrimitiveKind, name: str, server: str | None = None) -> tuple[str, ...]:
        """Return the groups of which a primitive is a direct member, sorted, without their ancestors."""
        names = {group for wanted, group in self._exact.get((kind, name), ()) if wanted in (None, server)}
        for length, patterns in self._patterns.get(kind, {}).items():
            for pattern, wanted, group in patterns.get(name[:length], ()):
                if group not in names and wanted in (None, server) and pattern.matches(name):
                    names.add(group)
        return tuple(sorted(names))

    def upward(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of ``names`` that exist, and all their ancestors."""
        return self._reachable(names, lambda name: self.direct(PrimitiveKind.GROUP, name))

    def downward(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of ``names`` that exist, and all their descendants."""
        return self._reachable(names, lambda name: self.groups[name].subgroups)

    def wire(self) -> dict[str, dict[str, Any]]:
        """Return the groups in wire form by name, in alphabetical order."""
        return dict(self._wire)

    @cached_property
    def cycle(self) -> tuple[str, ...]:
        """Return the names along one cycle, the first repeated at the end; empty without a cycle."""
        return find_cycle({name: group.subgroups for name, group in self.groups.items()})

    def _reachable(self, names: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
        waiting = [name for name in names if name in self.groups]
        reached = set(waiting)
        while waiting:
            new = {name for name in following(waiting.pop()) if name in self.groups} - reached
            reached |= new
            waiting.extend(new)
        return frozenset(reached)

    @cached_property
    def _exact(self) -> Mapping[tuple[PrimitiveKind, str], Sequence[tuple[str | None, str]]]:
        index: dict[tuple[PrimitiveKind, str], list[tuple[str | None, str]]] = {}
        for group, member in self._members_by_group():
            if "*" not in member.name:
                index.setdefault((member.kind, member.name), []).append((member.server, group))
        return index

    @cached_property
    def _patterns(self) -> Mapping[PrimitiveKind, _Patterns]:
        """Index patterns by length and text of the part before their first star, so that few are tried."""
        index: dict[PrimitiveKind, dict[int, dict[str, list[_Pattern]]]] = {}
        for group, member in self._members_by_group():
            start, star, _ = member.name.partition("*")
            if star:
                prefixed = index.setdefault(member.kind, {}).setdefault(len(start), {}).setdefault(start, [])
                prefixed.append((Glob(member.name), member.server, group))
        return index

    def _members_by_group(self) -> Iterable[tuple[str, Member]]:
        return ((name, member) for name, group in self.groups.items() for member in group.members)

    @cached_property
    def _wire(self) -> Mapping[str, dict[str, Any]]:
        definitions: dict[str, dict[str, Any]] = {}
        for name, group in self.groups.items():
            parents = self.direct(PrimitiveKind.GROUP, name)
            definitions[name] = dict(stamped({"name": name, **_in_field_order(group.document())}, parents))
        return definitions


def find_cycle(below: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names along one cycle, the first repeated at the end; empty without a cycle."""
    done: set[str] = set()
    for start in below:
        path: list[str] = []
        on_path: set[str] = set()
        # (name, True) means leaving the group. No recursion, since groups may nest as deep as there are groups.
        waiting = [(start, False)]
        while waiting:
            name, leaving = waiting.pop()
            if leaving:
                on_path.discard(path.pop())
                done.add(name)
            elif name in on_path:
                return (*path[path.index(name) :], name)
            elif name not in done:
                path.append(name)
                on_path.add(name)
                waiting.append((name, True))
                waiting.extend((name_below, False) for name_below in below.get(name, ()))
    return ()


def stamped(definition: Mapping[str, Any], groups: Sequence[str]) -> Mapping[str, Any]:
    """Return a primitive's definition with its direct groups merged into ``_meta``.

    A list of groups that its server sent is removed: those names mean nothing in the list of groups that clients
    see here. Nothing is added to a primitive in no group.
    """
    meta_as_sent = definition.get("_meta")
    meta = {key: value for key, value in (meta_as_sent or {}).items() if key != GROUPS_META}
    if groups:
        meta[GROUPS_META] = list(groups)
    if meta:
        return {**definition, "_meta": meta}
    if meta_as_sent and GROUPS_META in meta_as_sent:
        return {key: value for key, value in definition.items() if key != "_meta"}
    return definition


def visible_groups(
    tree: GroupTree, primitives: Iterable[Primitive], *, restricted: bool, more: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the groups that are visible to a caller who sees these primitives.

    If nothing is hidden from the caller (``restricted`` False), every group is visible, even an empty one. Otherwise
    only groups with a visible primitive in them or below are; ``more`` are groups of visible things that are no
    ``Primitive``, such as middlewares.
    """
    if not restricted:
        return frozenset(tree.groups)
    return tree.upward({*more, *(name for primitive in primitives for name in primitive.groups)})


def hidden_by_session(preferences: Mapping[str, Any], tree: GroupTree) -> Callable[[Primitive], bool]:
    """Return a predicate for primitives that a session's model hid by switching off all their groups.

    A primitive in no group is never hidden, nor is one with at least one group that is on.
    """
    off = disabled_groups(preferences, tree)
    if not off:
        return lambda _primitive: False
    return lambda primitive: bool(primitive.groups) and off.issuperset(primitive.groups)


def disabled_groups(preferences: Mapping[str, Any], tree: GroupTree) -> frozenset[str]:
    """Return the existing groups that a session switched off."""
    remembered = preferences.get("groups")
    names = remembered.get("disabled", ()) if isinstance(remembered, Mapping) else ()
    return frozenset(name for name in names if isinstance(name, str) and name in tree.groups)


def switched(
    tree: GroupTree, disabled: Collection[str], names: Collection[str], *, on: bool
) -> frozenset[str]:
    """Return the groups that are off after switching ``names`` on or off.

    Switching off includes descendants unless another parent of theirs is still on; switching on includes all
    descendants.
    """
    if on:
        return frozenset(disabled) - tree.downward(names)
    off = set(disabled) | {name for name in names if name in tree.groups}
    below = tree.downward(names) - off
    while True:
        more = {name for name in below if off.issuperset(tree.direct(PrimitiveKind.GROUP, name))}
        if not more:
            return frozenset(off)
        off |= more
        below -= more


def _in_field_order(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("title", "description", "annotations", "icons", "_meta")
    return {field: document[field] for field in fields if field in document}
