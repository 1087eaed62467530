"""The audit record of one request to a server: before it is sent, and when the answer is back."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.core.access import Caller
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK, OUTCOME_REFUSED, OUTCOME_SENT
from app.core.catalog.primitives import Primitive
from app.core.contracts.policy import Policy
from app.core.errors import (
    AuditUnavailableError,
    InternalError,
    RateLimitedError,
    ServiceError,
    StoreUnavailableError,
)
from app.core.offload import off_loop
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.core.upstream import NO_HOOKS, Hooks, UpstreamError
from app.services.audit.audit import AuditService
from app.services.forward.tool_hooks import HookScope

_SENT_FIRST = "tool.call"
"""Tools act, so their calls are recorded before they are sent; reads are recorded once, at the end."""


ResultHook = Callable[[Policy, str, bool], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class PrimitiveRequest:
    """One request of a client: ``params`` complete, as they came; names and URIs in them are the exposed ones.

    ``group`` is the group whose endpoint the request came to, None at the endpoint that serves everything.
    ``arrived`` is called first, with the policy, the server that the result came from and whether the result is
    suspected of an attack; it returns members for the result's ``_meta``. Then ``on_answer`` gets the result as it is
    recorded and its JSON, so that it need not be encoded a second time.
    """

    caller: Caller
    params: Mapping[str, Any]
    request: RequestInfo
    hooks: Hooks = NO_HOOKS
    scope: HookScope = field(default_factory=HookScope)
    group: str | None = None
    on_answer: Callable[[Mapping[str, Any], bytes], None] = lambda _result, _encoded: None
    arrived: ResultHook | None = None


@dataclass(slots=True)
class ForwardRecord:
    """What is known of a request so far: digests and sizes, never content."""

    audit: AuditService
    incoming: PrimitiveRequest
    action: str
    primitive: Primitive | None = None
    server: str | None = None
    policy_version: int | None = None
    sent_json: bytes = b""
    answer: bytes = b""
    outcome: str = OUTCOME_OK
    error_code: str | None = None
    rpc_code: int | None = None
    sent: bool = False
    started_ns: int = field(default_factory=time.perf_counter_ns)

    async def sending(self) -> None:
        """Record that the request goes to its server now."""
        if self.action == _SENT_FIRST:
            await self._record(OUTCOME_SENT)
        self.sent = True

    async def note_arguments(self, arguments: Any) -> None:
        """Note the arguments that the server will get, without the primitive's name."""
        self.sent_json = await off_loop(_characters(arguments), dumps, arguments)

    async def note_answer(self, result: Mapping[str, Any]) -> None:
        """Note the result that the client will get."""
        self.answer = await off_loop(_characters(result), dumps, result)
        self.incoming.on_answer(result, self.answer)
        if result.get("isError") is True:
            self.outcome, self.error_code = OUTCOME_FAILED, "tool_error"

    async def refused(self, code: str) -> None:
        """Record that the request was not forwarded."""
        self.error_code = code
        await self._record(OUTCOME_REFUSED)

    @asynccontextmanager
    async def refusals(self) -> AsyncIterator[None]:
        """Record a refusal that is raised inside, and raise it again."""
        try:
            yield
        except (AuditUnavailableError, StoreUnavailableError, RateLimitedError):
            raise
        except ServiceError as error:
            await self.refused(error.code)
            raise

    @asynccontextmanager
    async def recorded(self) -> AsyncIterator[None]:
        """Record how the body ended; if that cannot be recorded, there is no answer."""
        try:
            yield
        except (asyncio.CancelledError, AuditUnavailableError, StoreUnavailableError):
            raise
        except UpstreamError as error:
            self.error_code, self.rpc_code = "upstream_error", error.code
            await self._record(OUTCOME_FAILED)
            raise
        except Exception as error:
            self.error_code = error.code if isinstance(error, ServiceError) else InternalError.code
            await self._record(OUTCOME_FAILED if self.sent else OUTCOME_REFUSED)
            raise
        await self._record(self.outcome)

    async def _record(self, outcome: str) -> None:
        caller, audit = self.incoming.caller, self.audit
        came_back = outcome != OUTCOME_SENT and self.answer
        event = audit.new_event(
            caller,
            self.action,
            outcome,
            self.incoming.request,
            policy_version=self.policy_version,
            error_code=None if outcome == OUTCOME_SENT else self.error_code,
            in_hmac=audit.digest(caller.tenant, self.sent_json) if self.sent_json else None,
            out_hmac=audit.digest(caller.tenant, self.answer) if came_back else None,
            bytes_in=len(self.sent_json),
            bytes_out=len(self.answer),
            duration_us=(time.perf_counter_ns() - self.started_ns) // 1000,
            details=self._details(),
        )
        await audit.record(event)

    def _details(self) -> dict[str, str | int | bool]:
        details: dict[str, str | int | bool] = {}
        if self.primitive is not None:
            details = {"server": self.primitive.server, self.primitive.kind.value: self.primitive.name}
        elif self.server is not None:
            details = {"server": self.server}
        if self.rpc_code is not None:
            details["rpc_code"] = self.rpc_code
        return details


def _characters(value: Any, depth: int = 4) -> int:
    """Return roughly how many characters there are to encode: texts near the top, where large ones are."""
    if isinstance(value, str):
        return len(value)
    if depth == 0 or not isinstance(value, dict | list):
        return 1
    inside = value.values() if isinstance(value, dict) else value
    return len(value) + sum(_characters(member, depth - 1) for member in inside)
