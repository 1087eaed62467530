"""What a table says of one kind of block."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from app.core.content.leaves import LeafPlace


def _no_places() -> Mapping[str, LeafPlace]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of block. Members that it does not name are read by the rule of ``members.py``.

    ``place`` is that of its strings; None: that of what is around it. ``places`` are members with a place of their
    own; what goes to a tool is data, whatever its members are called. ``names`` are members with names of tools or
    servers that the receiver looks up: scanned, never changed. ``opens`` is the member with the speaker's text, in
    front of which a middleware may put more. ``tool`` is the member with the name of the tool that it calls. ``media``
    is what its encoded contents count as, ``unreadable`` whether it counts even if it holds no contents. ``reasons``:
    a signature in it covers all of it.
    """

    place: LeafPlace | None = None
    places: Mapping[str, LeafPlace] = field(default_factory=_no_places)
    names: frozenset[str] = frozenset()
    opens: str | None = None
    tool: str | None = None
    media: str = "blob"
    unreadable: bool = False
    reasons: bool = False


def call(*arguments: str, tool: str | None = "name", names: tuple[str, ...] = ()) -> Shape:
    """Return the shape of a call of a tool, with its ``arguments``; all strings of it belong to the call."""
    return Shape(
        place=LeafPlace.TOOL_INPUT,
        places=MappingProxyType(dict.fromkeys(arguments, LeafPlace.TOOL_INPUT)),
        names=frozenset({"name", "namespace", "server_label", "toolset_name", *names}),
        tool=tool,
    )


def result(*results: str, names: tuple[str, ...] = ()) -> Shape:
    """Return the shape of what a tool answered, with its ``results``."""
    return Shape(
        place=LeafPlace.TOOL_RESULT,
        places=MappingProxyType(dict.fromkeys(results, LeafPlace.TOOL_RESULT)),
        names=frozenset({"name", "namespace", "server_label", "tool_name", "toolset_name", *names}),
    )


def media(kind: str, *, unreadable: bool = True) -> Shape:
    """Return the shape of images, sound, films and files."""
    return Shape(media=kind, unreadable=unreadable)


def document() -> Shape:
    """Return the shape of a document, whose texts are not the speaker's."""
    return Shape(place=LeafPlace.RESOURCE, media="document")


REASONING = Shape(reasons=True)
