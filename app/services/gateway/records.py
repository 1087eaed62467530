"""The audit record of one request through a door: before it leaves, before the first original, at the end."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from app.core.access import Caller
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK, OUTCOME_REFUSED, OUTCOME_SENT, Decision
from app.core.errors import (
    AuditUnavailableError,
    InternalError,
    OverloadedError,
    RateLimitedError,
    ServiceError,
    StoreUnavailableError,
)
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.invoke.calls import block_of, blocked_by, flags_of, speaks_against
from app.services.invoke.pipeline_steps import StepReport, audited, engines_of

_REQUEST = "gateway.request"
_RESTORE = "gateway.restore"
_CHECK = "gateway.check"
_ANSWER = "gateway.answer"
_UNRECORDED = (AuditUnavailableError, StoreUnavailableError, RateLimitedError, OverloadedError)
_LONGEST_NAME = 200
_TOKENS = re.compile(r"[a-z_]{1,33}_tokens")
_MOST_TOKENS = 2**53
_CACHED = "cached_tokens"
_CACHE_DETAILS = ("prompt_tokens_details", "input_tokens_details")
CLIENT_GONE = "client_gone"
"""The error code in the record where the caller left before the answer ended."""
CREDENTIAL_ENDED = "credential_ended"
"""The error code in the record where the answer was cut because the caller's key or token counts no more."""


@dataclass(slots=True)
class GatewayRecord:
    """What is known of a request so far: names, numbers and digests, never content.

    ``findings`` counts what middlewares find, by label, and ``steps`` says how each of them ended: in the request until
    it leaves, then in the answer until that may go out. ``egress`` counts what only the egress check noticed. ``usage``
    are the provider's numbers of tokens, ``notes`` what was left out of the answer. ``error_code`` tells why an answer
    ended before its end.
    """

    audit: AuditService
    caller: Caller
    request: RequestInfo
    operation: str
    provider: str | None = None
    model: str | None = None
    scope: str | None = None
    policy_version: int | None = None
    streams: bool = False
    observed: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    status: int = 0
    error_code: str | None = None
    findings: Counter[str] = field(default_factory=Counter)
    steps: list[StepReport] = field(default_factory=list)
    egress: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    usage: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    unscanned: int = 0
    prefix_changed: int = 0
    sent: bool = False
    started_ns: int = field(default_factory=time.perf_counter_ns)
    sent_ns: int = 0
    first_ns: int = 0
    _refusal: Mapping[str, str | int | bool] = field(default_factory=dict)

    async def sending(self, body: bytes) -> None:
        """Record that these bytes leave now; without the record they do not."""
        tenant = self.caller.tenant
        details: dict[str, str | int | bool] = {
            "stream": self.streams,
            "unscanned": self.unscanned,
            "prefix_changed": self.prefix_changed,
            **audited(self.steps),
        }
        if self.observed:
            details["observed"] = True
        counts = self.findings + Counter({f"egress_{label}": number for label, number in self.egress.items()})
        digest = self.audit.digest(tenant, body) if body else None
        await self._record(_REQUEST, OUTCOME_SENT, details, counts, in_hmac=digest, bytes_in=len(body))
        self.sent, self.sent_ns = True, time.perf_counter_ns()
        self.audit.observe(self.egress)
        self.forget_steps()

    def forget_steps(self) -> None:
        """Begin anew with what middlewares find and how they end."""
        self.findings.clear()
        self.steps.clear()

    @property
    def left(self) -> str:
        """Return why an answer was not sent to its end: its credential counts no more, or its client is gone."""
        return CREDENTIAL_ENDED if self.request.is_cut() else CLIENT_GONE

    async def releasing(self, *, restores: bool) -> None:
        """Record that the first original, or an answer that the checks have passed, is about to go to the caller."""
        action = _RESTORE if restores else _CHECK
        await self._record(action, OUTCOME_OK, {"stage": "started", **audited(self.steps)}, self.findings)
        self.forget_steps()

    def begun(self) -> None:
        """Note the time of the first bytes of the answer."""
        if not self.first_ns:
            self.first_ns = time.perf_counter_ns()

    async def ended(self) -> None:
        """Record how the answer ended."""
        details: dict[str, str | int | bool] = {
            "status": self.status,
            "stream": self.streams,
            **_tokens(self.usage),
            **+Counter(self.notes),
            **audited(self.steps),
            **self._refusal,
        }
        if self.first_ns:
            details["first_byte_us"] = (self.first_ns - self.sent_ns) // 1000
        outcome = OUTCOME_OK if self.error_code is None else OUTCOME_FAILED
        counts = self.restored + self.findings
        await self._record(
            _ANSWER, outcome, details, counts, error_code=self.error_code, bytes_out=self.bytes_out
        )

    def whole(self) -> "RecordedRun":
        """Return what records how a block ends: refused, failed, left by the client, or answered."""
        return RecordedRun(self)

    async def failed(self, error: BaseException) -> None:
        """Record that the request ended with ``error``, as far as something can still be recorded."""
        if isinstance(error, _UNRECORDED):
            return
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            if self.sent:
                self.error_code = self.left
                await asyncio.shield(self.ended())
            return
        if not isinstance(error, Exception):
            return
        self.error_code = error.code if isinstance(error, ServiceError) else InternalError.code
        flags, self._refusal = flags_of(error) or ({}, {})
        self.findings.update(flags)
        if self.sent:
            await self.ended()
        else:
            outcome = OUTCOME_REFUSED if isinstance(error, ServiceError) else OUTCOME_FAILED
            details = {**audited(self.steps), **self._refusal}
            await self._record(_REQUEST, outcome, details, self.findings, error_code=self.error_code)
        self.audit.observe(blocked_by(error))

    async def _record(
        self,
        action: str,
        outcome: str,
        details: Mapping[str, str | int | bool],
        counts: Mapping[str, int],
        *,
        error_code: str | None = None,
        in_hmac: str | None = None,
        bytes_in: int = 0,
        bytes_out: int = 0,
    ) -> None:
        tenant = self.caller.tenant
        named = {"operation": self.operation, "provider": self.provider, "model": self.model}
        about = {name: value[:_LONGEST_NAME] for name, value in named.items() if value is not None}
        event = self.audit.new_event(
            self.caller,
            action,
            outcome,
            self.request,
            policy_version=self.policy_version,
            error_code=error_code,
            scope_ref=None if self.scope is None else self.audit.scope_ref(tenant, self.scope),
            in_hmac=in_hmac,
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            counts=dict(counts),
            decision=self._decision(details, counts, error_code),
            engines=engines_of(self.steps),
            duration_us=(time.perf_counter_ns() - self.started_ns) // 1000,
            details={**about, **details},
        )
        await self.audit.record(event)
        self.audit.observe(self.findings)

    def _decision(
        self, details: Mapping[str, str | int | bool], counts: Mapping[str, int], error_code: str | None
    ) -> Decision | None:
        """Return what became of the content of a request or an answer; None where it ended for another reason."""
        if error_code is not None:
            return block_of(error_code)
        if self.observed or speaks_against(details):
            return "flag" if any(counts.values()) or not self.observed else "allow"
        return "change" if any(counts.values()) else "allow"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A block whose end goes on record: an object, since a suspended generator takes more for as long as it streams."""

    record: GatewayRecord

    async def __aenter__(self) -> None:
        """Begin the block."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.record.ended()
        else:
            await self.record.failed(error)


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of tokens among what a provider says of its use, also of those that its cache had."""
    details = (usage.get(name) for name in _CACHE_DETAILS)
    cached = [part.get(_CACHED) for part in details if isinstance(part, Mapping)]
    named = [*usage.items(), *((_CACHED, number) for number in cached)]
    return {
        name: number
        for name, number in named
        if _TOKENS.fullmatch(name) and type(number) is int and 0 <= number <= _MOST_TOKENS
    }
