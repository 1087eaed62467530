"""What the server says it can do, in every place where some client looks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult

from app.protocol.exchange import Context

VENDOR: Final = "dev.sluice/"
_DESCRIBING = frozenset({"initialize", "server/discover"})


@dataclass(frozen=True, slots=True)
class Feature:
    """One proposal that is served: its literal capability key and value, and its settings as an extension."""

    key: str
    value: Any
    extension: Mapping[str, Any]


CONTEXT_MIDDLEWARE: Final = Feature("contextMiddleware", {}, {})
GROUPS: Final = Feature("groups", {"listChanged": True}, {"listChanged": True})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Adds the features that are enabled; registered as a middleware of the SDK's server.

    The SDK strips unknown keys from the capabilities of both revisions, and ``extensions`` from those of
    ``initialize``. What it made of the result is the only seam where they can be added.
    """

    features: tuple[Feature, ...]

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Let the SDK answer, then complete what it says about capabilities."""
        result = await call_next(ctx)
        if ctx.method in _DESCRIBING and isinstance(result, dict):
            shown = self._completed(result["capabilities"], handshake=ctx.method == "initialize")
            return {**result, "capabilities": shown}
        return result

    def _completed(self, shown: Mapping[str, Any], *, handshake: bool) -> dict[str, Any]:
        extensions = {VENDOR + feature.key: dict(feature.extension) for feature in self.features}
        capabilities = {**shown, "extensions": {**shown.get("extensions", {}), **extensions}}
        for feature in self.features:
            capabilities[feature.key] = feature.value
        if handshake:
            experimental = {feature.key: dict(feature.extension) for feature in self.features}
            capabilities["experimental"] = {**shown.get("experimental", {}), **experimental}
        return capabilities
