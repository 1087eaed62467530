"""What the server says it can do, in every place where some client looks for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult

from app.core.access import Caller
from app.protocol.wire.exchange import Context, exchange_of

VENDOR: Final = "dev.sluice/"
_DESCRIBING = frozenset({"initialize", "server/discover"})


@dataclass(frozen=True, slots=True)
class Feature:
    """One proposal that is served: its literal capability key and value, and its settings as an extension.

    ``identifier`` is the extension's own name, where it has one; such a feature has no literal key.
    """

    key: str
    value: Any
    extension: Mapping[str, Any]
    identifier: str | None = None

    @property
    def extension_key(self) -> str:
        """Return the name of the extension."""
        return self.identifier or VENDOR + self.key


FeatureSource = Callable[[Caller], Awaitable[Feature | None]]
"""Tells what is served to a caller; None: nothing."""

InstructionSource = Callable[[Caller, str | None], Awaitable[Sequence[str]]]
"""Returns what servers advise models, for a caller at the endpoint of a group."""


async def _no_instructions(_caller: Caller, _group: str | None) -> Sequence[str]:
    return ()


CONTEXT_MIDDLEWARE: Final = Feature("contextMiddleware", {}, {})
GROUPS: Final = Feature("groups", {"listChanged": True}, {"listChanged": True})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Adds the features that are enabled; registered as a middleware of the SDK's server.

    The SDK strips unknown keys from the capabilities of both revisions, and ``extensions`` from those of
    ``initialize``. What it made of the result is the only seam where they can be added.
    """

    features: tuple[Feature, ...]
    sources: tuple[FeatureSource, ...] = ()
    alone: tuple[Feature, ...] = ()
    """What the endpoint of interceptors says, and nothing else."""
    instructions: InstructionSource = _no_instructions

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Let the SDK answer, then complete what it says about capabilities."""
        result = await call_next(ctx)
        if ctx.method in _DESCRIBING and isinstance(result, dict):
            exchange, handshake = exchange_of(ctx), ctx.method == "initialize"
            if exchange.facts.interceptors_only:
                shown = _completed({}, self.alone, handshake=handshake)
            else:
                features = await self._served_to(exchange.caller)
                shown = _completed(result["capabilities"], features, handshake=handshake)
                texts = await self.instructions(exchange.caller, exchange.group)
                result = {**result, "instructions": "\n\n".join([result["instructions"], *texts])}
            return {**result, "capabilities": shown}
        return result

    async def _served_to(self, caller: Caller) -> Sequence[Feature]:
        contributed = [await source(caller) for source in self.sources]
        return [*self.features, *(feature for feature in contributed if feature is not None)]


def _completed(shown: Mapping[str, Any], features: Sequence[Feature], *, handshake: bool) -> dict[str, Any]:
    extensions = {feature.extension_key: dict(feature.extension) for feature in features}
    capabilities = {**shown, "extensions": {**shown.get("extensions", {}), **extensions}}
    for feature in features:
        if feature.identifier is None:
            capabilities[feature.key] = feature.value
    # A feature with an identifier of its own is declared under `extensions` and nowhere else: the interceptors' text
    # moved there from `experimental`.
    experimental = {
        feature.key: dict(feature.extension) for feature in features if feature.identifier is None
    }
    if handshake and experimental:
        capabilities["experimental"] = {**shown.get("experimental", {}), **experimental}
    return capabilities
