"""One request to a server as the record will tell it: before it leaves, and when it came back."""

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
"""Tools act, so their calls are on record before they leave; what is only read is recorded once."""


Arrived = Callable[[Policy, str, bool], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a client: ``params`` as they came, complete; names and URIs in them are exposed ones.

    ``group`` is the one whose endpoint it came to, None at the one that serves everything. ``on_answer`` is given the
    result as it is on record, and its JSON, so that nobody needs to write it a second time. ``arrived`` is told before
    that, of a result, under which policy, from which server it came and whether it is suspected of an attack, and
    returns what its ``_meta`` is to say.
    """

    caller: Caller
    params: Mapping[str, Any]
    request: RequestInfo
    hooks: Hooks = NO_HOOKS
    scope: HookScope = field(default_factory=HookScope)
    group: str | None = None
    on_answer: Callable[[Mapping[str, Any], bytes], None] = lambda _result, _encoded: None
    arrived: Arrived | None = None


@dataclass(slots=True)
class ForwardRecord:
    """What is known of a request so far; digests and sizes, never what was said."""

    audit: AuditService
    asked: Asked
    action: str
    primitive: Primitive | None = None
    server: str | None = None
    policy_version: int | None = None
    given: bytes = b""
    answer: bytes = b""
    outcome: str = OUTCOME_OK
    error_code: str | None = None
    rpc_code: int | None = None
    sent: bool = False
    started_ns: int = field(default_factory=time.perf_counter_ns)

    async def leaves(self) -> None:
        """Record that the request goes to its server now."""
        if self.action == _SENT_FIRST:
            await self._record(OUTCOME_SENT)
        self.sent = True

    async def takes(self, arguments: Any) -> None:
        """Take note of what the server will be given, but for its names."""
        self.given = await off_loop(_characters(arguments), dumps, arguments)

    async def answered(self, result: Mapping[str, Any]) -> None:
        """Take note of what the client will be given."""
        self.answer = await off_loop(_characters(result), dumps, result)
        self.asked.on_answer(result, self.answer)
        if result.get("isError") is True:
            self.outcome, self.error_code = OUTCOME_FAILED, "tool_error"

    async def refused(self, code: str) -> None:
        """Record that the request was not passed on."""
        self.error_code = code
        await self._record(OUTCOME_REFUSED)

    @asynccontextmanager
    async def refusals(self) -> AsyncIterator[None]:
        """Record it when what happens inside is refused, and pass the refusal on."""
        try:
            yield
        except (AuditUnavailableError, StoreUnavailableError, RateLimitedError):
            raise
        except ServiceError as error:
            await self.refused(error.code)
            raise

    @asynccontextmanager
    async def recorded(self) -> AsyncIterator[None]:
        """Record how the body ended; without the record there is no answer."""
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
        caller, audit = self.asked.caller, self.audit
        came_back = outcome != OUTCOME_SENT and self.answer
        event = audit.new_event(
            caller,
            self.action,
            outcome,
            self.asked.request,
            policy_version=self.policy_version,
            error_code=None if outcome == OUTCOME_SENT else self.error_code,
            in_hmac=audit.digest(caller.tenant, self.given) if self.given else None,
            out_hmac=audit.digest(caller.tenant, self.answer) if came_back else None,
            bytes_in=len(self.given),
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
    """Return about how much there is to write: the texts near the top, where large ones are."""
    if isinstance(value, str):
        return len(value)
    if depth == 0 or not isinstance(value, dict | list):
        return 1
    inside = value.values() if isinstance(value, dict) else value
    return len(value) + sum(_characters(one, depth - 1) for one in inside)
