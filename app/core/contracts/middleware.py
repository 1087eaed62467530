"""The plug-in contract: a middleware is a function from a context and arguments to a context."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.core.access import Caller
from app.core.content.context import Context
from app.core.contracts.engines import EngineReport, Engines
from app.core.contracts.settled_texts import SettledTexts

Phase = Literal["outbound", "inbound"]
ScopeName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
"""A caller's name for a vault scope: printable ASCII without spaces."""


class Arguments(BaseModel):
    """Base class of every middleware's arguments; unknown names are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    strict: bool = Field(
        default=False, description="Refuse items of unknown types, and whatever cannot be scanned."
    )


A = TypeVar("A", bound=Arguments)

REMOTE_SEPARATOR: Final = "__"
"""Separator of server and own name in the name of another server's middleware."""

API_VERSION: Final = 1
"""Version of the contract in this file; the service does not start with a plug-in for another version."""


class NoSettings(BaseModel):
    """Settings of a middleware that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class VaultOptions:
    """How the service handles the Conceal and Reveal edits of an outcome.

    ``scope`` is the name of the vault scope (None: a new random one for Conceal). ``return_mapping`` adds the
    originals to the metadata; that and ``restores`` need the role restorer.
    """

    scope: str | None = None
    conceals: bool = False
    restores: bool = False
    return_mapping: bool = False
    canonical: bool = False
    tagged: bool = False
    ttl_s: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a middleware.

    ``context`` may still have Conceal edits (originals that need a handle) and Reveal edits (handles that need their
    original): the service resolves them in the same transaction that stores the audit event, and adds ``redactions``,
    ``scope`` and ``unresolved`` to ``metadata``. ``counts`` go to the audit event. ``keep_content`` makes the service
    seal the original context into the audit event; ``audit_details`` are identifiers and numbers for the event, never
    content. ``engine`` is the engine that judged: the service adds it to ``metadata`` and, if it is degraded, to the
    audit event.
    """

    context: Context
    metadata: dict[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    vault: VaultOptions = VaultOptions()
    keep_content: bool = False
    audit_details: Mapping[str, str | int | bool] = field(default_factory=dict)
    engine: EngineReport | None = None


async def no_tools() -> Sequence[Mapping[str, Any]]:
    """Return no tools, for callers without a server behind this one."""
    return ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """Who invokes a middleware; ``until`` is the deadline on the event loop's clock, in seconds.

    ``visible_tools`` returns the definitions of the tools that this caller sees behind this server. ``settled`` are
    texts beside the context that stay as they are.
    """

    caller: Caller
    until: float
    visible_tools: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]] = no_tools
    settled: SettledTexts = field(default_factory=SettledTexts)


class Middleware(ABC, Generic[A]):
    """One transformation; subclasses have no state apart from their engines and settings.

    ``conceals``: it replaces sensitive text by handles, so no pipeline may skip it. ``restores``: it restores
    originals. ``settings`` of a plug-in are an instance of its ``configuration``, read when the service starts.
    """

    api: ClassVar[int] = API_VERSION
    configuration: ClassVar[type[BaseModel]] = NoSettings
    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    phase: ClassVar[Phase]
    conceals: ClassVar[bool] = False
    restores: ClassVar[bool] = False
    evidence: ClassVar[str | None] = None
    """The argument that takes what stood before an answer, for callers that show it answers alone."""
    arguments: type[A]

    def __init__(self, engines: Engines) -> None:
        self.engines = engines
        self.settings: Any = None

    @abstractmethod
    async def apply(self, context: Context, arguments: A) -> Outcome:
        """Transform ``context``; do not open transactions, keep state or block the event loop."""

    async def invoke(self, context: Context, arguments: A, _invocation: Invocation) -> Outcome:
        """Transform ``context`` for one caller; override this if a middleware needs to know the caller."""
        return await self.apply(context, arguments)


class ImmediateMiddleware(Middleware[A]):
    """A transformation that computes at once, whoever asks.

    It is a plain function, which waits for nothing: no time limit is set around it, since none could end it.
    """

    @abstractmethod
    def transformed(self, context: Context, arguments: A) -> Outcome:
        """Return the outcome; take no longer than it takes to read the context."""

    async def apply(self, context: Context, arguments: A) -> Outcome:
        """Return the same, for callers that wait for every middleware."""
        return self.transformed(context, arguments)
