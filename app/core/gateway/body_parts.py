"""Take a body apart into context items, which middlewares read and change, and find what they changed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.core.content.context import Context
from app.core.content.leaves import Leaf, LeafPlace
from app.core.content.shapes.definitions import REQUEST_TYPE
from app.core.content.shapes.members import is_machine_word
from app.core.errors import InternalError
from app.core.gateway.channels import Path
from app.core.gateway.member_table import UNKNOWN, LeafRole, MemberForm, MemberRule

MAX_BLOCKS: Final = 65_536
MAX_DEPTH: Final = 72
"""A body may nest 64 levels; items add a few."""

_INSTRUCTING: Final = frozenset({"system", "developer"})
_PLAIN: Final = frozenset({"role", "content"})
_TOOL_ROLES: Final = frozenset({"tool", "function"})


@dataclass(frozen=True, slots=True)
class BodyItem:
    """One context item and its place: ``base`` in the body takes the place of the first ``skip`` steps in the item."""

    item: Any
    base: Path
    skip: int
    role: LeafRole

    def with_item(self, item: Any) -> "BodyItem":
        """Return the same place with another item."""
        return self if item is self.item else replace(self, item=item)

    def body_path(self, path: Path) -> Path:
        """Return where ``path`` of the item is in the body."""
        return (*self.base, *path[self.skip :])


@dataclass(frozen=True, slots=True)
class BodyLeaf:
    """A text of a body: its leaf, its path in the body (of the string around it, for JSON in strings), whose it is.

    ``in_json``: the leaf is a part of JSON inside of a string, such as the arguments of a tool.
    """

    leaf: Leaf
    path: Path
    role: LeafRole

    @property
    def in_json(self) -> bool:
        """Return whether the leaf stands inside of JSON in a string."""
        return bool(self.leaf.offsets)


def read_members(
    body: Mapping[str, Any], table: Mapping[str, MemberRule], unscanned: Counter[str]
) -> list[BodyItem]:
    """Return the items of a body by its family's table; count in ``unscanned`` what is not in it or unreadable."""
    items: list[BodyItem] = []
    for name, value in body.items():
        rule = table.get(name, UNKNOWN)
        if rule is UNKNOWN:
            unscanned["unknown"] += 1
        items += _member_items(name, value, rule, unscanned)
    return items


def _member_items(name: str, value: Any, rule: MemberRule, unscanned: Counter[str]) -> Iterator[BodyItem]:
    match rule.form:
        case MemberForm.MACHINE:
            if not _is_of_machines(value):
                yield _free(name, value, LeafRole.UNKNOWN)
        case MemberForm.MESSAGES if isinstance(value, list) and all(
            isinstance(element, str | dict) for element in value
        ):
            for number, item in enumerate(value):
                yield BodyItem(item, (name, number), 0, _role_of(item))
        case MemberForm.TEXTS if isinstance(value, list):
            yield from _texts(name, value, rule.role, unscanned)
        case MemberForm.MESSAGES | MemberForm.SPEECH | MemberForm.TEXTS if isinstance(value, str | list):
            speaker = "system" if rule.role is LeafRole.SYSTEM else "user"
            yield BodyItem({"role": speaker, "content": value}, (name,), 1, rule.role)
        case MemberForm.DEFINITION:
            yield BodyItem({"type": REQUEST_TYPE, "members": {name: value}}, (name,), 2, rule.role)
        case _:
            if value is not None:
                yield _free(name, value, rule.role)


def _free(name: str, value: Any, role: LeafRole) -> BodyItem:
    return BodyItem({"structuredContent": {name: value}}, (name,), 2, role)


def _texts(name: str, value: list[Any], role: LeafRole, unscanned: Counter[str]) -> Iterator[BodyItem]:
    for number, element in enumerate(value):
        if isinstance(element, str | dict):
            content = element if isinstance(element, str) else [element]
            base: Path = (name, number)
            if isinstance(element, str):
                yield BodyItem({"role": "user", "content": content}, base, 1, role)
            else:
                yield BodyItem({"role": "user", "content": content}, base, 2, role)
        elif isinstance(element, list) and not all(isinstance(token, int) for token in element):
            yield BodyItem({"structuredContent": element}, (name, number), 1, role)
    if any(isinstance(element, int | list) for element in value):
        unscanned["tokens"] += 1


def _role_of(item: Any) -> LeafRole:
    """Return whose the texts of a message or item are, as far as its role or type tells."""
    if isinstance(item, str):
        return LeafRole.USER
    role, kind = item.get("role"), item.get("type")
    if role in _INSTRUCTING:
        return LeafRole.SYSTEM
    if role in _TOOL_ROLES:
        return LeafRole.TOOL_RESULT
    if role == "user" or (role is None and isinstance(kind, str) and kind.startswith("input_")):
        return LeafRole.USER
    if role is None and isinstance(kind, str) and kind.endswith(("_output", "_result")):
        return LeafRole.TOOL_RESULT
    return LeafRole.ASSISTANT


def _is_of_machines(value: Any) -> bool:
    """Return whether nothing in ``value`` needs to be scanned: numbers, flags and words as machines write them."""
    if isinstance(value, str):
        return is_machine_word(value)
    if isinstance(value, dict):
        return all(is_machine_word(name) and _is_of_machines(member) for name, member in value.items())
    return not isinstance(value, list) or all(map(_is_of_machines, value))


def plain_text(item: Any) -> str | None:
    """Return the text of a message that is a role and a text; None for any other item."""
    if not isinstance(item, dict) or item.keys() != _PLAIN or not isinstance(item["role"], str):
        return None
    content = item["content"]
    return content if isinstance(content, str) else None


def read_context(items: Sequence[BodyItem]) -> Context:
    """Return the items as middlewares read them; raise TooLargeError for an item that is too large or too deep."""
    return Context.parse(
        [item.item for item in items], max_blocks=MAX_BLOCKS * len(items), max_depth=MAX_DEPTH
    )


def body_leaves(items: Sequence[BodyItem], context: Context, signed: Sequence[Path]) -> Iterator[BodyLeaf]:
    """Yield the leaves of ``context``, which is that of ``items``, and where they are in the body.

    ``signed`` are the paths of signed blocks.
    """
    sealed, sizes = frozenset(signed), {len(path) for path in signed}
    for leaf in context.leaves:
        number, *inside = leaf.value.path
        item = items[int(number)]
        path = item.body_path(tuple(inside))
        is_signed = any(path[:size] in sealed for size in sizes)
        yield BodyLeaf(leaf, path, LeafRole.SIGNED if is_signed else _leaf_role(item, leaf, path))


def _leaf_role(item: BodyItem, leaf: Leaf, path: Path) -> LeafRole:
    if leaf.place is LeafPlace.USER:
        return LeafRole.USER_ID
    if leaf.place is LeafPlace.FIELD:
        return LeafRole.MACHINE
    if item.role in {LeafRole.USER, LeafRole.ASSISTANT, LeafRole.TOOL_RESULT}:
        if path[-1] == "name" and len(path) == len(item.base) + 1:
            return LeafRole.NAME
        if leaf.place is LeafPlace.TOOL_RESULT:
            return LeafRole.TOOL_RESULT
    return item.role


def changes(items: Sequence[BodyItem], changed: Sequence[Any]) -> dict[Path, Any]:
    """Return the new values by their paths in the body; raise InternalError if the form of an item changed."""
    values: dict[Path, Any] = {}
    for before, after in zip(items, changed, strict=True):
        for path, value in _differences(before.item, after, ()):
            if len(path) < before.skip or (before.skip and not path):
                raise InternalError("A middleware changed the form of a body.")
            values[before.body_path(path)] = value
    return values


def _differences(before: Any, after: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name, member in before.items():
            yield from _differences(member, after[name], (*path, name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, element in enumerate(before):
            yield from _differences(element, after[number], (*path, number))
    elif type(before) is not type(after) or before != after:
        yield path, after


def string_pairs(before: Any, after: Any) -> Iterator[tuple[str, str]]:
    """Yield each string of ``before`` and the string in its place in ``after``, where both have the same form."""
    if isinstance(before, str):
        if isinstance(after, str):
            yield before, after
    elif isinstance(before, dict):
        if isinstance(after, dict) and before.keys() == after.keys():
            for name, member in before.items():
                yield from string_pairs(member, after[name])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for inner, changed in zip(before, after, strict=True):
            yield from string_pairs(inner, changed)
