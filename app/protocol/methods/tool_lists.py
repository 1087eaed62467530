"""Narrowing tools/list: by the request's own ``_meta``, or by what tool_filter suggested in this session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.core.content.context import Context as Items
from app.core.contracts.policy import Policy
from app.core.errors import InvalidArgumentsError, NotFoundError, ServiceError
from app.core.tools.requests import ToolRequest, request_of
from app.core.tools.selection import Selection, SelectionLimits
from app.protocol.wire.capabilities import VENDOR
from app.protocol.wire.exchange import Context
from app.protocol.wire.state import SESSION_META, state_of
from app.services.catalog.listing import CallerView, Filter
from app.services.catalog.tool_lists import ToolListService, narrowing_to

TOOL_FILTER: Final = "tool_filter"
"""The middleware whose suggestion a session may take over."""

TOOL_FILTER_META: Final = f"{VENDOR}toolFilter"
_POINTER: Final = "/_meta/dev.sluice~1toolFilter"
_TOOLS: Final = "tools"
"""Under which a session remembers the tools that its lists are narrowed to."""


class ToolQuestion(BaseModel):
    """``_meta["dev.sluice/toolFilter"]`` of tools/list: what the tools are wanted for, as text or as a conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    query: str | None = Field(default=None, max_length=100_000)
    context: list[Any] | None = None
    max_tools: int | None = Field(default=None, alias="maxTools", ge=1, le=10_000)
    min_score: float | None = Field(default=None, alias="minScore", ge=0, le=1)
    pinned: list[str] = Field(default=[], max_length=1_000)

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if (self.query is None) is (self.context is None):
            raise ValueError("give either query or context")
        return self

    @property
    def items(self) -> list[Any]:
        """Return what the tools are wanted for, as context items."""
        return [{"type": "text", "text": self.query}] if self.context is None else self.context

    @property
    def arguments(self) -> dict[str, Any]:
        """Return how far the choice goes, as arguments of tool_filter."""
        return self.model_dump(by_alias=True, exclude={"query", "context"}, exclude_unset=True)

    def request(self, policy: Policy) -> ToolRequest:
        """Return what to rank on; a context that cannot be read is an InvalidArgumentsError."""
        limits = policy.limits
        return request_of(Items.parse(self.items, max_blocks=limits.max_blocks, max_depth=limits.max_depth))

    def wanted(self, policy: Policy) -> SelectionLimits:
        """Return how far the choice goes: as the client says, else the policy."""
        rules = policy.tool_listing
        return SelectionLimits(
            max_tools=self.max_tools or rules.max_tools,
            min_score=rules.min_score if self.min_score is None else self.min_score,
            gap=0.0,
            pinned=(*self.pinned, *rules.pinned),
        )


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a request or its session makes of a list of tools, and what the answer says of that."""

    filters: Sequence[Filter] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[Mapping[str, str]] = ()


async def narrowing(
    context: Context,
    tools: ToolListService,
    view: CallerView,
    filters: Sequence[Filter],
    short: Filter | None,
) -> Narrowing:
    """Return how the list of this request is narrowed; what the request says goes before its session."""
    meta_value = (context.params or {}).get("_meta")
    meta: Mapping[str, Any] = meta_value if isinstance(meta_value, Mapping) else {}
    asked = TOOL_FILTER_META in meta
    if view.policy.tool_listing.mode == "off":
        return Narrowing(warnings=({"name": TOOL_FILTER_META, "reason": "off"},) if asked else ())
    if asked:
        question = tool_question(meta[TOOL_FILTER_META])
        request = _request(question, view.policy)
        chosen = await tools.chosen(view, filters, short, request, question.wanted(view.policy))
        return Narrowing(_present(narrowing_to(view, chosen.chosen)), {TOOL_FILTER_META: _told(chosen)})
    remembered = (await state_of(context)).preferences.get(_TOOLS)
    return Narrowing() if remembered is None else Narrowing(_present(narrowing_to(view, remembered["names"])))


async def take_over(
    context: Context, arguments: Mapping[str, Any], metadata: Mapping[str, Any], policy: Policy
) -> tuple[str, str | None]:
    """Let the session's lists of tools follow what tool_filter suggested, where the arguments ask for that.

    Return what became of it (``narrowed``, ``cleared``, or ``unchanged`` where there is no session or the policy
    does not narrow), and the handle that a modern client sends back. The session's streams hear list_changed.
    """
    narrows = not (arguments.get("clearSession") or arguments.get("clear_session"))
    if narrows and policy.tool_listing.mode == "off":
        return "unchanged", None
    state = await state_of(context)
    if not narrows and _TOOLS not in state.preferences:
        return "cleared", state.handle
    kept = {"names": list(metadata["suggestedToolSet"])} if narrows else None
    try:
        await state.remember({_TOOLS: kept}, publish=True)
    except NotFoundError:
        return "unchanged", None
    return ("narrowed" if narrows else "cleared"), state.handle


def handle_meta(handle: str | None) -> dict[str, Any]:
    """Return the ``_meta`` of an answer that brings a handle."""
    return {} if handle is None else {"_meta": {SESSION_META: handle}}


def tool_question(raw: Any) -> ToolQuestion:
    """Return what ``_meta`` asks of a list of tools, or refuse with a pointer to the first fault."""
    try:
        return ToolQuestion.model_validate(raw)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = "".join(f"/{part}" for part in fault["loc"])
        raise InvalidArgumentsError(
            'A filter of tools is {"query": text} or {"context": items}, with maxTools, minScore and pinned '
            "where you want them.",
            details={"pointer": f"{_POINTER}{where}"},
        ) from None


def _request(question: ToolQuestion, policy: Policy) -> ToolRequest:
    try:
        return question.request(policy)
    except ServiceError as error:
        pointer = error.details.get("pointer")
        if isinstance(pointer, str):
            error.details["pointer"] = f"{_POINTER}{pointer}"
        raise


def _present(narrowing: Filter | None) -> tuple[Filter, ...]:
    return () if narrowing is None else (narrowing,)


def _told(chosen: Selection) -> dict[str, Any]:
    report = chosen.report
    metadata: dict[str, Any] = {
        "relevantTools": [{"name": name, "score": score} for name, score in chosen.relevant],
        "total": chosen.total,
        "engine": {"name": report.name, "version": report.version, "degraded": report.degraded},
    }
    if chosen.unknown_pinned:
        metadata["unknownPinned"] = list(chosen.unknown_pinned)
    return metadata
