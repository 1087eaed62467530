"""The plug-in contract: a middleware is one function from a context and arguments to a context."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.core.access import Caller
from app.core.content.context import Context
from app.core.contracts.engines import EngineReport, Engines

Phase = Literal["outbound", "inbound"]
ScopeName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
"""The caller's name of a vault scope: printable ASCII without spaces."""


class Arguments(BaseModel):
    """Base of every middleware's arguments; unknown names are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    strict: bool = Field(default=False, description="Refuse context items of unknown types.")


A = TypeVar("A", bound=Arguments)

REMOTE_SEPARATOR: Final = "__"
"""Between the server and its own name in the name of a middleware of another server."""

API_VERSION: Final = 1
"""Of the contract of this file; a plug-in that is written for another one stops the start."""


class NoSettings(BaseModel):
    """What a middleware takes that has no settings of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class VaultOptions:
    """How the service treats the Conceal and Reveal edits of an outcome.

    ``scope`` is the vault scope by name (None: a new random one for Conceal). ``return_mapping`` adds the
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
    """What a middleware made of a context.

    ``context`` may still hold Conceal edits (originals that want a handle) and Reveal edits (handles that want
    their original): the service resolves them in the one transaction that also stores the audit event, and
    adds ``redactions``, ``scope`` and ``unresolved`` to ``metadata``. ``counts`` go to the audit event.
    ``keep_content`` asks the service to seal the context as given into the audit event, and ``audit_details`` are
    identifiers and numbers for it, never content. ``engine`` is which engine judged: the service puts it into
    ``metadata`` and, where it is degraded, into the audit event.
    """

    context: Context
    metadata: dict[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    vault: VaultOptions = VaultOptions()
    keep_content: bool = False
    audit_details: Mapping[str, str | int | bool] = field(default_factory=dict)
    engine: EngineReport | None = None


async def no_tools() -> Sequence[Mapping[str, Any]]:
    """Return no tools: what a caller sees where no server stands behind this one."""
    return ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """Who invokes a middleware; ``until`` is a time of the event loop's clock, after which nobody waits.

    ``visible_tools`` gives the definitions of the tools that this caller sees behind this server.
    """

    caller: Caller
    until: float
    visible_tools: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]] = no_tools


class Middleware(ABC, Generic[A]):
    """One transformation; subclasses are stateless apart from the engines and settings they were given.

    ``conceals``: it puts handles in place of what must not pass, so no pipeline may skip it. ``restores``: it puts
    originals back. ``settings`` of a plug-in are an instance of its ``configuration``, read when the service starts.
    """

    api: ClassVar[int] = API_VERSION
    configuration: ClassVar[type[BaseModel]] = NoSettings
    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    phase: ClassVar[Phase]
    conceals: ClassVar[bool] = False
    restores: ClassVar[bool] = False
    arguments: type[A]

    def __init__(self, engines: Engines) -> None:
        self.engines = engines
        self.settings: Any = None

    @abstractmethod
    async def apply(self, context: Context, arguments: A) -> Outcome:
        """Transform ``context``; open no transaction, keep no state, block no event loop."""

    async def invoke(self, context: Context, arguments: A, _invocation: Invocation) -> Outcome:
        """Transform ``context`` for one caller; a middleware that needs to know the caller overrides this."""
        return await self.apply(context, arguments)
