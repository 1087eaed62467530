"""The tools to choose from: those that a caller names or defines, or else those it sees behind this server."""

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
_MAX_LISTS: Final = 8
_READING_WEIGHT: Final = 400
"""Cost of reading one definition, in characters, for the decision to leave the event loop."""
_POINTER: Final = "/arguments/availableTools"

ToolArgument = str | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class OfferedTools:
    """Tools with distinct names; ``definitions`` has None for a tool of which only the name is known."""

    candidates: tuple[ToolCandidate, ...]
    definitions: tuple[Mapping[str, Any] | None, ...]

    @classmethod
    def visible(cls, definitions: Sequence[Mapping[str, Any]]) -> "OfferedTools":
        """Return the tools that a caller sees behind this server."""
        return cls(tuple(candidate_of(definition) for definition in definitions), tuple(definitions))

    @classmethod
    def of_caller(
        cls, tools: Sequence[ToolArgument], visible_definitions: Sequence[Mapping[str, Any]]
    ) -> "OfferedTools":
        """Return the tools in a caller's arguments.

        A bare name refers to a definition with that name among ``tools``, or else among ``visible_definitions``.
        Repetitions count once. Raise InvalidArgumentsError for two different definitions of one name.
        """
        by_name: dict[str, Mapping[str, Any] | None] = {}
        for number, tool in enumerate(tools):
            definition = None if isinstance(tool, str) else tool
            name = _checked_name(tool, f"{_POINTER}/{number}")
            earlier = by_name.get(name)
            if earlier is not None and definition is not None and earlier != definition:
                raise InvalidArgumentsError(
                    "Two different definitions have the same name; send each tool once.",
                    details={"pointer": f"{_POINTER}/{number}/name"},
                )
            by_name[name] = earlier if definition is None else definition
        visible = {
            tool["name"]: tool for tool in visible_definitions if by_name.get(tool["name"], tool) is None
        }
        merged = {name: visible.get(name) if tool is None else tool for name, tool in by_name.items()}
        return cls(
            tuple(
                ToolCandidate(name) if definition is None else candidate_of(definition)
                for name, definition in merged.items()
            ),
            tuple(merged.values()),
        )

    def tokens(self, position: int) -> int:
        """Estimate how many tokens the definition at ``position`` takes, or its name without a definition."""
        definition = self.definitions[position]
        return tokens_of({"name": self.candidates[position].name} if definition is None else definition)

    def defined(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the known definitions of ``names``, in that order."""
        by_name = {
            candidate.name: definition
            for candidate, definition in zip(self.candidates, self.definitions, strict=True)
        }
        return [definition for name in names if (definition := by_name.get(name)) is not None]


class VisibleTools:
    """A cache of the most recently used lists of tools.

    The tools behind this server are one object until they change, and reading thousands of definitions takes longer
    than ranking them.
    """

    def __init__(self) -> None:
        self._offered_by_list: OrderedDict[int, tuple[Sequence[Mapping[str, Any]], OfferedTools]] = (
            OrderedDict()
        )

    async def offered(self, definitions: Sequence[Mapping[str, Any]]) -> OfferedTools:
        """Return the tools in ``definitions``."""
        entry = self._offered_by_list.get(id(definitions))
        if entry is None or entry[0] is not definitions:
            offered = await off_loop(_READING_WEIGHT * len(definitions), OfferedTools.visible, definitions)
            entry = self._offered_by_list[id(definitions)] = definitions, offered
        self._offered_by_list.move_to_end(id(definitions))
        while len(self._offered_by_list) > _MAX_LISTS:
            self._offered_by_list.popitem(last=False)
        return entry[1]


async def offered_by(
    tools: Sequence[ToolArgument], visible: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
) -> OfferedTools:
    """Return the tools in a caller's arguments; bare names are looked up among the ``visible`` ones."""
    visible_definitions = await visible() if any(isinstance(tool, str) for tool in tools) else ()
    return await off_loop(_READING_WEIGHT * len(tools), OfferedTools.of_caller, tools, visible_definitions)


def _checked_name(tool: ToolArgument, pointer: str) -> str:
    name = tool if isinstance(tool, str) else tool.get("name")
    if isinstance(tool, Mapping):
        pointer = f"{pointer}/name"
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidArgumentsError(
            f"A tool must be a name, or an MCP definition with one: 1 to {_LONGEST_NAME} printable characters.",
            details={"pointer": pointer},
        )
    return name
