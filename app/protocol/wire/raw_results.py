"""Answers that the SDK's models must not touch: what servers behind this one say passes whole, both ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, SERVER_INFO_META_KEY
from mcp_types.methods import CACHEABLE_METHODS, validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.strictjson import dumps
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.primitives import Method

_MODERN_ONLY: Final = frozenset({"resultType", "ttlMs", "cacheScope"})


@dataclass(frozen=True, slots=True)
class RawResults:
    """Answers ``methods`` in front of the SDK's kernel, which would drop every member that it does not know.

    The params are checked as the kernel checks them; handlers get them, and what they return goes out, as JSON objects.
    Registered as a middleware of the SDK's server.
    """

    methods: Mapping[str, Method]
    server: Server[Any]
    stamp: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        # The SDK makes a copy at each access, which costs more than all else that is done to a result here.
        object.__setattr__(self, "stamp", {SERVER_INFO_META_KEY: self.server.server_info_stamp})

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, or let the rest of the chain do it."""
        method = self.methods.get(ctx.method)
        if method is None:
            return await call_next(ctx)
        try:
            validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        except KeyError:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", data=ctx.method) from None
        handled = await method.handle(ctx, ctx.params or {})
        result = self._enveloped(ctx, cast("dict[str, Any]", handled))
        exchange = exchange_of(ctx)
        if exchange.spliced is not None:
            exchange.encoded = _spliced(result, *exchange.spliced)
        elif exchange.written is not None and exchange.written[0] is handled:
            exchange.encoded = _completed(*exchange.written, result)
        return result

    def _enveloped(self, context: Context, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result as the client's revision wants it."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return {key: value for key, value in result.items() if key not in _MODERN_ONLY}
        meta_value = result.get("_meta")
        meta = meta_value if isinstance(meta_value, Mapping) else {}
        made = {**result, "_meta": {**meta, **self.stamp}}
        made.setdefault("resultType", "complete")
        if context.method in CACHEABLE_METHODS and made["resultType"] != "input_required":
            # What is seen hangs on the caller, so no cache may share it.
            made.setdefault("ttlMs", 0)
            made["cacheScope"] = "private"
        return made


def _completed(result: Mapping[str, Any], encoded: bytes, made: Mapping[str, Any]) -> bytes | None:
    """Return the JSON of ``made`` where it is the result whose JSON is known and more members, else None."""
    if any(key not in made or made[key] is not value for key, value in result.items()):
        return None
    more = {key: value for key, value in made.items() if key not in result}
    if not more:
        return encoded
    return encoded[:-1] + (b"," if result else b"") + dumps(more)[1:]


def _spliced(result: Mapping[str, Any], member: str, parts: list[bytes]) -> bytes:
    """Return the result's JSON, ``member`` of it put together from parts that were encoded before."""
    head = b'{"' + member.encode() + b'":[' + b",".join(parts) + b"]"
    rest = {key: value for key, value in result.items() if key != member}
    return head + b"," + dumps(rest)[1:] if rest else head + b"}"
