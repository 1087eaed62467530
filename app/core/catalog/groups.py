"""Groups of primitives: named, nested collections, and the tree that one tenant's groups form."""

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
"""Of all groups of a tenant together: each list of a server is held against all of them."""

_MAX_META_BYTES: Final = 16_384
_MAX_ICON: Final = 65_536
_RESERVED_NAMES: Final = frozenset({"export", ".", ".."})
_NAME = re.compile(r"[^\s/*\x00-\x1f\x7f](?:[^/*\x00-\x1f\x7f]{0,126}[^\s/*\x00-\x1f\x7f])?")
_SCHEMES = ("https://", "http://", "data:")

_Pattern = tuple[Glob, str | None, str]
_Patterns = Mapping[int, Mapping[str, Sequence[_Pattern]]]


class GroupAnnotations(BaseModel):
    """Hints for clients; members beyond the known ones are kept."""

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
            raise ValueError("an icon's src begins with https://, http:// or data:")
        return src


class GroupDefinition(BaseModel):
    """A group as an operator writes it: in a file, over REST and in the database.

    A member of kind ``group`` nests that group: its name is exact, and no server goes with it.
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
        default=None, alias="_meta", description="Passed on to clients; the groups above are added to it."
    )
    members: list[Member] = Field(default_factory=list, max_length=MAX_MEMBERS)

    @field_validator("name")
    @classmethod
    def _is_plain(cls, name: str) -> str:
        if name in _RESERVED_NAMES:
            raise ValueError("this name is reserved")
        if not (_NAME.fullmatch(name) and name.isprintable()):
            raise ValueError("a group's name is printable, without / and *, and no space stands at its ends")
        return name

    @field_validator("meta")
    @classmethod
    def _is_ours_to_pass_on(cls, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        if meta is not None and GROUPS_META in meta:
            raise ValueError(f"{GROUPS_META} is made from the members of the groups above")
        if meta is not None and len(dumps(meta)) > _MAX_META_BYTES:
            raise ValueError(f"_meta has at most {_MAX_META_BYTES} bytes")
        return meta

    @model_validator(mode="after")
    def _names_what_exists(self) -> Self:
        for member in self.members:
            if member.kind is PrimitiveKind.GROUP and (member.server is not None or "*" in member.name):
                raise ValueError("a member of kind group is one group by its exact name, without a server")
            if member.kind is PrimitiveKind.MIDDLEWARE and member.server is not None:
                raise ValueError("a middleware belongs to no server")
        return self

    @property
    def distinct(self) -> list[Member]:
        """Return the members sorted and each once, so that equal groups are equal however they were written."""
        return sorted(set(self.members), key=lambda one: (one.kind, one.name, one.server or ""))

    @property
    def subgroups(self) -> list[str]:
        """Return the names of the groups that are members."""
        return [one.name for one in self.members if one.kind is PrimitiveKind.GROUP]

    def document(self) -> dict[str, Any]:
        """Return what is stored beside name and members, absent fields omitted."""
        return self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude={"name", "members"}
        )

    def declared(self) -> dict[str, Any]:
        """Return the group as a declarative file has it, absent fields omitted."""
        members = [one.model_dump(mode="json", exclude_none=True) for one in self.distinct]
        return {"name": self.name, **_ordered(self.document()), "members": members}


@dataclass(frozen=True, eq=False)
class GroupTree:
    """All groups of a tenant and how they are nested; immutable.

    A group may be below several others. Memberships of groups that do not exist are left out.
    """

    groups: Mapping[str, GroupDefinition]

    @classmethod
    def build(cls, definitions: Iterable[GroupDefinition]) -> "GroupTree":
        """Return the tree, its groups in alphabetical order."""
        named = {one.name: one for one in definitions}
        return cls(MappingProxyType({name: named[name] for name in sorted(named)}))

    @cached_property
    def parents(self) -> Mapping[str, frozenset[str]]:
        """For each group itself and all groups above it."""
        return MappingProxyType({name: self.upward([name]) for name in self.groups})

    def direct(self, kind: PrimitiveKind, name: str, server: str | None = None) -> tuple[str, ...]:
        """Return the groups that a primitive is a member of, without those above them, sorted."""
        found = {group for wanted, group in self._exact.get((kind, name), ()) if wanted in (None, server)}
        for length, patterns in self._patterns.get(kind, {}).items():
            for pattern, wanted, group in patterns.get(name[:length], ()):
                if group not in found and wanted in (None, server) and pattern.matches(name):
                    found.add(group)
        return tuple(sorted(found))

    def upward(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of ``names`` that exist and all groups above them."""
        return self._reached(names, lambda name: self.direct(PrimitiveKind.GROUP, name))

    def downward(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of ``names`` that exist and all groups below them."""
        return self._reached(names, lambda name: self.groups[name].subgroups)

    def wire(self) -> dict[str, dict[str, Any]]:
        """Return the groups by name as clients see them, in alphabetical order."""
        return dict(self._wire)

    @cached_property
    def cycle(self) -> tuple[str, ...]:
        """Return the names around one cycle, the first again at the end; empty where there is none."""
        return find_cycle({name: one.subgroups for name, one in self.groups.items()})

    def _reached(self, names: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
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
        for group, member in self._members():
            if "*" not in member.name:
                index.setdefault((member.kind, member.name), []).append((member.server, group))
        return index

    @cached_property
    def _patterns(self) -> Mapping[PrimitiveKind, _Patterns]:
        """Patterns by what stands before their first star, and that by its length, so that few are tried."""
        index: dict[PrimitiveKind, dict[int, dict[str, list[_Pattern]]]] = {}
        for group, member in self._members():
            start, star, _ = member.name.partition("*")
            if star:
                found = index.setdefault(member.kind, {}).setdefault(len(start), {}).setdefault(start, [])
                found.append((Glob(member.name), member.server, group))
        return index

    def _members(self) -> Iterable[tuple[str, Member]]:
        return ((name, member) for name, one in self.groups.items() for member in one.members)

    @cached_property
    def _wire(self) -> Mapping[str, dict[str, Any]]:
        shown: dict[str, dict[str, Any]] = {}
        for name, one in self.groups.items():
            above = self.direct(PrimitiveKind.GROUP, name)
            shown[name] = dict(stamped({"name": name, **_ordered(one.document())}, above))
        return shown


def find_cycle(below: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names around one cycle, the first again at the end; empty where there is none."""
    done: set[str] = set()
    for start in below:
        path: list[str] = []
        on_path: set[str] = set()
        # (name, True) is left again; no recursion, for the nesting may be as deep as there are groups.
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
                waiting.extend((one, False) for one in below.get(name, ()))
    return ()


def stamped(definition: Mapping[str, Any], groups: Sequence[str]) -> Mapping[str, Any]:
    """Return a primitive's definition with its direct groups in ``_meta``, merged into what stands there.

    Where it is in no group nothing is added, and a list of groups that its server sent is taken out: those names
    mean nothing in the list of groups that clients see here.
    """
    given = definition.get("_meta")
    meta = {key: value for key, value in (given or {}).items() if key != GROUPS_META}
    if groups:
        meta[GROUPS_META] = list(groups)
    if meta:
        return {**definition, "_meta": meta}
    if given and GROUPS_META in given:
        return {key: value for key, value in definition.items() if key != "_meta"}
    return definition


def visible_groups(
    tree: GroupTree, primitives: Iterable[Primitive], *, restricted: bool, more: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the groups that a caller sees who sees these primitives.

    Where nothing is withheld from the caller (``restricted`` False) that is every group, empty ones included; else
    those with a visible primitive in them or below; ``more`` are the groups of what is no ``Primitive``.
    """
    if not restricted:
        return frozenset(tree.groups)
    return tree.upward({*more, *(name for one in primitives for name in one.groups)})


def hidden_by_session(preferences: Mapping[str, Any], tree: GroupTree) -> Callable[[Primitive], bool]:
    """Return what tells whether a session's model has switched a primitive off with all its groups.

    A primitive in no group is never hidden, nor one with at least one group that is on.
    """
    off = disabled_groups(preferences, tree)
    if not off:
        return lambda _primitive: False
    return lambda primitive: bool(primitive.groups) and off.issuperset(primitive.groups)


def disabled_groups(preferences: Mapping[str, Any], tree: GroupTree) -> frozenset[str]:
    """Return the existing groups that a session has switched off."""
    remembered = preferences.get("groups")
    names = remembered.get("disabled", ()) if isinstance(remembered, Mapping) else ()
    return frozenset(name for name in names if isinstance(name, str) and name in tree.groups)


def switched(
    tree: GroupTree, disabled: Collection[str], names: Collection[str], *, on: bool
) -> frozenset[str]:
    """Return which groups are off once ``names`` were switched on or off.

    Off takes the groups below along unless another group above them is still on; on takes all below along.
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


def _ordered(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("title", "description", "annotations", "icons", "_meta")
    return {field: document[field] for field in fields if field in document}
