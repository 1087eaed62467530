"""The tools to choose from: as a caller names or defines them, else as it sees them behind this server."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.contracts.engines import ToolCandidate
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop
from app.core.tools.definitions import candidate_of, tokens_of

MAX_TOOLS: Final = 10_000
_LONGEST_NAME: Final = 256
_LISTS_READ: Final = 8
_READING: Final = 400
"""What reading one definition weighs beside one character, for the decision to leave the event loop."""
_POINTER: Final = "/arguments/availableTools"

Given = str | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class OfferedTools:
    """Tools with distinct names; ``definitions`` has None where no more than the name is known."""

    candidates: tuple[ToolCandidate, ...]
    definitions: tuple[Mapping[str, Any] | None, ...]

    @classmethod
    def visible(cls, definitions: Sequence[Mapping[str, Any]]) -> "OfferedTools":
        """Return the tools that a caller sees behind this server."""
        return cls(tuple(candidate_of(one) for one in definitions), tuple(definitions))

    @classmethod
    def given(cls, tools: Sequence[Given], seen: Sequence[Mapping[str, Any]]) -> "OfferedTools":
        """Return the tools that a caller gives.

        A name stands for the definition of that name given beside it, else the one that the caller sees (``seen``).
        Two different definitions of one name are an InvalidArgumentsError; repetitions count once.
        """
        found: dict[str, Mapping[str, Any] | None] = {}
        for number, one in enumerate(tools):
            definition = None if isinstance(one, str) else one
            name = _checked(one, f"{_POINTER}/{number}")
            held = found.get(name)
            if held is not None and definition is not None and held != definition:
                raise InvalidArgumentsError(
                    "Two different definitions have the same name; send each tool once.",
                    details={"pointer": f"{_POINTER}/{number}/name"},
                )
            found[name] = held if definition is None else definition
        known = {one["name"]: one for one in seen if found.get(one["name"], one) is None}
        merged = {name: known.get(name) if one is None else one for name, one in found.items()}
        return cls(
            tuple(ToolCandidate(name) if one is None else candidate_of(one) for name, one in merged.items()),
            tuple(merged.values()),
        )

    def tokens(self, position: int) -> int:
        """Return about how many tokens the definition at ``position`` takes, or its name where that is all."""
        definition = self.definitions[position]
        return tokens_of({"name": self.candidates[position].name} if definition is None else definition)

    def defined(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the definitions of ``names``, as far as they are known, in that order."""
        known = {
            one.name: definition for one, definition in zip(self.candidates, self.definitions, strict=True)
        }
        return [definition for name in names if (definition := known.get(name)) is not None]


class VisibleTools:
    """Remembers what was read of the lists seen last.

    The tools behind this server come as one object until they change, and to read thousands takes longer than to
    rank them.
    """

    def __init__(self) -> None:
        self._read: OrderedDict[int, tuple[Sequence[Mapping[str, Any]], OfferedTools]] = OrderedDict()

    async def offered(self, definitions: Sequence[Mapping[str, Any]]) -> OfferedTools:
        """Return what ``definitions`` offer."""
        held = self._read.get(id(definitions))
        if held is None or held[0] is not definitions:
            offered = await off_loop(_READING * len(definitions), OfferedTools.visible, definitions)
            held = self._read[id(definitions)] = definitions, offered
        self._read.move_to_end(id(definitions))
        while len(self._read) > _LISTS_READ:
            self._read.popitem(last=False)
        return held[1]


async def offered_by(
    tools: Sequence[Given], visible: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
) -> OfferedTools:
    """Return the tools that a caller gives; names alone are looked up among the ``visible`` ones."""
    seen = await visible() if any(isinstance(one, str) for one in tools) else ()
    return await off_loop(_READING * len(tools), OfferedTools.given, tools, seen)


def _checked(one: Given, pointer: str) -> str:
    name = one if isinstance(one, str) else one.get("name")
    if isinstance(one, Mapping):
        pointer = f"{pointer}/name"
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidArgumentsError(
            f"A tool is its name, or an MCP definition with one: 1 to {_LONGEST_NAME} printable characters.",
            details={"pointer": pointer},
        )
    return name
