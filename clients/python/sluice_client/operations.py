"""The use cases of both clients, written once and without I/O."""

from collections.abc import Mapping
from typing import Literal

from sluice_client.errors import SluiceError
from sluice_client.mcp import HANDSHAKE, MODERN, HandshakeDialect, ModernDialect, Revision
from sluice_client.rest import RestDialect, problem
from sluice_client.results import (
    ContextLike,
    Health,
    InvokeResult,
    Json,
    MiddlewareInfo,
    RedactResult,
    RestoreResult,
    items_of,
)
from sluice_client.wire import Dialect, Progress, Steps, WireAnswer, WireCall

Transport = Literal["rest", "mcp"]
REDACTION = "pii_redaction"
RESTORATION = "pii_restoration"
NOT_READY_STATUS = 503


def dialect_for(transport: Transport, revision: Revision) -> Dialect:
    """Return the dialect of ``transport`` and ``revision``."""
    if transport == "rest":
        return RestDialect()
    if transport != "mcp":
        raise ValueError(f"transport is 'rest' or 'mcp', not {transport!r}.")
    if revision == MODERN:
        return ModernDialect()
    if revision == HANDSHAKE:
        return HandshakeDialect()
    raise ValueError(f"revision is {HANDSHAKE!r} or {MODERN!r}, not {revision!r}.")


def list_middleware(dialect: Dialect) -> Steps[list[MiddlewareInfo]]:
    """List the middlewares that the caller may invoke."""
    return (yield from dialect.list_middleware())


def invoke(
    dialect: Dialect,
    name: str,
    context: ContextLike,
    arguments: Mapping[str, Json],
    *,
    repeatable: bool,
    progress: Progress | None,
) -> Steps[InvokeResult]:
    """Run a middleware on a context."""
    content, metadata = yield from dialect.invoke(
        name, items_of(context), arguments, repeatable=repeatable, progress=progress
    )
    return InvokeResult(content, metadata)


def redact(
    dialect: Dialect, context: ContextLike, arguments: Mapping[str, Json], progress: Progress | None
) -> Steps[RedactResult]:
    """Redact; with a named scope equal values get equal handles, so the call may be repeated."""
    repeatable = arguments.get("scope") is not None
    content, metadata = yield from dialect.invoke(
        REDACTION, items_of(context), arguments, repeatable=repeatable, progress=progress
    )
    return RedactResult(content, metadata)


def restore(
    dialect: Dialect, context: ContextLike, arguments: Mapping[str, Json], progress: Progress | None
) -> Steps[RestoreResult]:
    """Restore; it changes nothing in the vault, so the call may be repeated."""
    content, metadata = yield from dialect.invoke(
        RESTORATION, items_of(context), arguments, repeatable=True, progress=progress
    )
    return RestoreResult(content, metadata)


def health() -> Steps[Health]:
    """Return whether the service is ready; not being ready is a result, not an error."""

    def failure(answer: WireAnswer) -> SluiceError | None:
        return None if answer.status == NOT_READY_STATUS else problem(answer)

    answer = yield WireCall("GET", "/readyz", failure, repeatable=True)
    body = answer.json()
    checks = body.get("checks", body) if isinstance(body, Mapping) else {}
    return Health(answer.status != NOT_READY_STATUS, checks)
