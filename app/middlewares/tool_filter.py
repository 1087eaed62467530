"""Choose the tools that a conversation needs, so that a model sees only these and not hundreds."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import Field, StringConstraints, model_validator

from app.core.content.context import Context
from app.core.contracts.engines import Engines
from app.core.contracts.middleware import Arguments, Invocation, Middleware, Outcome, no_tools
from app.core.offload import off_loop
from app.core.tools.offered import MAX_TOOLS, VisibleTools, offered_by
from app.core.tools.requests import request_of
from app.core.tools.selection import SESSION, Selection, SelectionLimits, selected

ToolName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_MAX_PINNED: Final = 1_000


class ToolFilterArguments(Arguments):
    """Which tools are available, and how many of them to suggest."""

    available_tools: list[str | dict[str, Any]] | None = Field(
        default=None,
        alias="availableTools",
        max_length=MAX_TOOLS,
        description="Names of tools, complete MCP definitions, or both mixed; without it, the tools that you see "
        "behind this server.",
    )
    max_tools: int = Field(
        default=10,
        alias="maxTools",
        ge=1,
        le=MAX_TOOLS,
        description="Maximum number of relevant tools.",
    )
    min_score: float = Field(
        default=0.001,
        alias="minScore",
        ge=0,
        le=1,
        description="Minimum score of a tool; 0.05 suggests about three tools.",
    )
    gap: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Stop before a tool whose score is below this fraction of the previous one; 0 never stops.",
    )
    max_tokens: int | None = Field(
        default=None,
        alias="maxTokens",
        ge=1,
        le=10_000_000,
        description="Approximate maximum of tokens for all suggested definitions together.",
    )
    pinned: list[ToolName] = Field(
        default=[], max_length=_MAX_PINNED, description="Tools that are always suggested."
    )
    allow_empty: bool = Field(
        default=False,
        alias="allowEmpty",
        description="Suggest nothing if no tool reaches minScore, instead of the best ones.",
    )
    return_definitions: bool = Field(
        default=False,
        alias="returnDefinitions",
        description="Also return the definitions of the suggested tools.",
    )
    apply_to_session: bool = Field(
        default=False,
        alias="applyToSession",
        description="Over MCP: narrow tools/list of this session to the suggested tools.",
    )
    clear_session: bool = Field(
        default=False,
        alias="clearSession",
        description="Over MCP: let tools/list of this session show all tools again.",
    )

    @model_validator(mode="after")
    def _does_not_apply_and_clear(self) -> Self:
        if self.apply_to_session and self.clear_session:
            raise ValueError("applyToSession and clearSession exclude each other")
        return self


class ToolFilter(Middleware[ToolFilterArguments]):
    """Rank tools for a conversation and suggest the best; the content stays unchanged."""

    name = "tool_filter"
    title = "Tool filter"
    description = "Reduce the tool set to the tools that are relevant to the conversation"
    phase = "outbound"
    arguments = ToolFilterArguments

    def __init__(self, engines: Engines) -> None:
        super().__init__(engines)
        self._visible = VisibleTools()

    async def apply(self, context: Context, arguments: ToolFilterArguments) -> Outcome:
        """Choose among the tools in the arguments, without a caller."""
        return await self._choose(context, arguments, no_tools)

    async def invoke(
        self, context: Context, arguments: ToolFilterArguments, invocation: Invocation
    ) -> Outcome:
        """Choose among the tools in the arguments, or else among those that the caller sees."""
        return await self._choose(context, arguments, invocation.visible_tools)

    async def _choose(
        self,
        context: Context,
        arguments: ToolFilterArguments,
        visible: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
    ) -> Outcome:
        available = arguments.available_tools
        offered = await (
            self._visible.offered(await visible()) if available is None else offered_by(available, visible)
        )
        request = await off_loop(context.characters, request_of, context)
        selection = await selected(
            self.engines.tools, request, offered.candidates, limits_of(arguments), offered.tokens
        )
        metadata = metadata_of(selection)
        if arguments.return_definitions:
            metadata["definitions"] = offered.defined(selection.chosen)
        if arguments.apply_to_session or arguments.clear_session:
            metadata[SESSION] = (
                "unchanged"  # the layer that serves the session overwrites this if it changes the list
            )
        counts = {
            "tools": selection.total,
            "relevant": len(selection.relevant),
            "suggested": len(selection.chosen),
        }
        return Outcome(context, metadata, counts, engine=selection.report)


def limits_of(arguments: ToolFilterArguments) -> SelectionLimits:
    """Return the limits of the choice in the arguments."""
    return SelectionLimits(
        max_tools=arguments.max_tools,
        min_score=arguments.min_score,
        gap=arguments.gap,
        max_tokens=arguments.max_tokens,
        pinned=tuple(arguments.pinned),
        allow_empty=arguments.allow_empty,
    )


def metadata_of(selection: Selection) -> dict[str, Any]:
    """Return a choice in the proposal's form, and the total number of tools."""
    metadata: dict[str, Any] = {
        "relevantTools": [{"name": name, "score": score} for name, score in selection.relevant],
        "suggestedToolSet": list(selection.chosen),
        "total": selection.total,
    }
    if selection.unknown_pinned:
        metadata["unknownPinned"] = list(selection.unknown_pinned)
    return metadata
