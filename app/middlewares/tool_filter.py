"""Choose the tools that a conversation needs, so that a model is shown these and not hundreds."""

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
    """Which tools there are and how many of them may be suggested."""

    available_tools: list[str | dict[str, Any]] | None = Field(
        default=None,
        alias="availableTools",
        max_length=MAX_TOOLS,
        description="Names of tools, whole MCP definitions, or both mixed; without it the tools that you see "
        "behind this server.",
    )
    max_tools: int = Field(
        default=10,
        alias="maxTools",
        ge=1,
        le=MAX_TOOLS,
        description="How many tools are found relevant at most.",
    )
    min_score: float = Field(
        default=0.001,
        alias="minScore",
        ge=0,
        le=1,
        description="Tools below this score are left out; 0.05 suggests about three tools.",
    )
    gap: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Stop before a tool whose score is less than this part of the one before; 0 never stops.",
    )
    max_tokens: int | None = Field(
        default=None,
        alias="maxTokens",
        ge=1,
        le=10_000_000,
        description="About how many tokens the suggested definitions may take together.",
    )
    pinned: list[ToolName] = Field(
        default=[], max_length=_MAX_PINNED, description="Tools that are suggested in any case."
    )
    allow_empty: bool = Field(
        default=False,
        alias="allowEmpty",
        description="Suggest nothing where no tool reaches minScore, instead of the best ones.",
    )
    return_definitions: bool = Field(
        default=False,
        alias="returnDefinitions",
        description="Answer with the definitions of the suggested tools, too.",
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
    def _wants_one_thing_of_the_session(self) -> Self:
        if self.apply_to_session and self.clear_session:
            raise ValueError("applyToSession and clearSession exclude each other")
        return self


class ToolFilter(Middleware[ToolFilterArguments]):
    """Rank tools on a conversation and suggest the best; the content stays as it is."""

    name = "tool_filter"
    title = "Tool filter"
    description = "Reduce the tool set to the tools that are relevant to the conversation"
    phase = "outbound"
    arguments = ToolFilterArguments

    def __init__(self, engines: Engines) -> None:
        super().__init__(engines)
        self._visible = VisibleTools()

    async def apply(self, context: Context, arguments: ToolFilterArguments) -> Outcome:
        """Choose among the tools that the arguments give, on behalf of nobody in particular."""
        return await self._chosen(context, arguments, no_tools)

    async def invoke(
        self, context: Context, arguments: ToolFilterArguments, invocation: Invocation
    ) -> Outcome:
        """Choose among the tools that the arguments give, else those that the caller sees."""
        return await self._chosen(context, arguments, invocation.visible_tools)

    async def _chosen(
        self,
        context: Context,
        arguments: ToolFilterArguments,
        visible: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
    ) -> Outcome:
        given = arguments.available_tools
        offered = await (
            self._visible.offered(await visible()) if given is None else offered_by(given, visible)
        )
        request = await off_loop(context.characters, request_of, context)
        chosen = await selected(
            self.engines.tools, request, offered.candidates, wanted_of(arguments), offered.tokens
        )
        metadata = metadata_of(chosen)
        if arguments.return_definitions:
            metadata["definitions"] = offered.defined(chosen.chosen)
        if arguments.apply_to_session or arguments.clear_session:
            metadata[SESSION] = "unchanged"  # what serves the session says so where that is no longer true
        counts = {"tools": chosen.total, "relevant": len(chosen.relevant), "suggested": len(chosen.chosen)}
        return Outcome(context, metadata, counts, engine=chosen.report)


def wanted_of(arguments: ToolFilterArguments) -> SelectionLimits:
    """Return how far the arguments want the choice to go."""
    return SelectionLimits(
        max_tools=arguments.max_tools,
        min_score=arguments.min_score,
        gap=arguments.gap,
        max_tokens=arguments.max_tokens,
        pinned=tuple(arguments.pinned),
        allow_empty=arguments.allow_empty,
    )


def metadata_of(chosen: Selection) -> dict[str, Any]:
    """Return a choice as the proposal has it, and of how many tools it is."""
    metadata: dict[str, Any] = {
        "relevantTools": [{"name": name, "score": score} for name, score in chosen.relevant],
        "suggestedToolSet": list(chosen.chosen),
        "total": chosen.total,
    }
    if chosen.unknown_pinned:
        metadata["unknownPinned"] = list(chosen.unknown_pinned)
    return metadata
