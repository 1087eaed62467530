"""What is served beside the middlewares: the contract of one MCP method, and of what provides tools and the like."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.context import HandlerResult
from pydantic import BaseModel

from app.protocol.wire.exchange import Context


@dataclass(frozen=True, slots=True)
class Method:
    """One MCP method: the model of its params and what answers it.

    A ``raw`` one is a method of the specification whose handler gets the params, and whose result goes out, as JSON
    objects that no model has sieved.
    """

    params: type[BaseModel]
    handle: Callable[[Context, Any], Awaitable[HandlerResult]]
    raw: bool = False


class Primitives(Protocol):
    """What is served beside the middlewares; capabilities follow from the methods that it names.

    ``calls_back`` says whether a handler may send requests to a handshake client (sampling, elicitation,
    roots). Only then do clients that declared one of these get a session that is bound to this process.
    """

    @property
    def calls_back(self) -> bool:
        """Return whether handlers send requests to clients."""

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name (``tools/list``, ``prompts/get``, ...)."""

    def tool_input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool, or None; called for every ``tools/call``, so it must be cheap."""
